//! Bytes that commands of Redis bring and that memory is to keep.

use model::{
    CollectionCommand, CombinationTarget, Command, KeyCommand, ListCommand, StreamCommand,
};

use crate::oracle::memory::{BODY_BYTES_BESIDE, WAITING_BYTES};

/// Bytes of memory that a command takes while it waits, if it brings anything: see
/// docs/reference/memory.md.
pub(super) fn bytes_brought(command: &Command) -> Option<u64> {
    let bytes = match command {
        Command::List(
            ListCommand::Push { elements, .. } | ListCommand::PushEach { elements, .. },
        ) => elements.iter().map(|element| charge(element.len())).sum(),
        Command::List(ListCommand::Insert { pivot, element, .. }) => {
            charge(pivot.len()) + charge(element.len())
        }
        Command::List(ListCommand::Replace { element, .. }) => charge(element.len()),
        Command::Key(KeyCommand::SetValue { value, .. }) => charge(value.len()),
        Command::Key(KeyCommand::SetValues { values, .. }) => {
            values.iter().map(|(_, value)| charge(value.len())).sum()
        }
        Command::Key(KeyCommand::EditValue { edit, .. }) => charge(edit.body_bytes()),
        Command::Key(KeyCommand::Stream(command)) if stores_in_stream(command) => {
            charge(command.body_bytes())
        }
        Command::Key(KeyCommand::Collection(command)) if adds_to_memory(command) => {
            charge(command.body_bytes())
        }
        Command::Batch { commands } => {
            let all = commands.iter().map(bytes_of_any);
            commands.iter().find_map(bytes_brought).map(|_| all.sum())?
        }
        _ => return None,
    };
    Some(WAITING_BYTES + bytes)
}

/// True if memory is to keep something of what it brings or makes.
/// The same of a stream.
const fn stores_in_stream(command: &StreamCommand) -> bool {
    matches!(
        command,
        StreamCommand::Append { .. }
            | StreamCommand::CreateGroup { .. }
            | StreamCommand::CreateConsumer { .. }
    )
}

const fn adds_to_memory(command: &CollectionCommand) -> bool {
    match command {
        CollectionCommand::SetFields { .. }
        | CollectionCommand::EditField { .. }
        | CollectionCommand::AddMembers { .. }
        | CollectionCommand::SetScores { .. }
        | CollectionCommand::MoveMember { .. }
        | CollectionCommand::StoreRange { .. } => true,
        CollectionCommand::Combine(combination) => {
            matches!(combination.target, CombinationTarget::Stored(_))
        }
        _ => false,
    }
}

/// The same of a command of a batch, which counts in any case.
fn bytes_of_any(command: &Command) -> u64 {
    let without = match command {
        // Its value, which is none.
        Command::Key(_) => WAITING_BYTES + charge(0),
        _ => WAITING_BYTES,
    };
    bytes_brought(command).unwrap_or(without)
}

fn charge(bytes: usize) -> u64 {
    bytes as u64 + BODY_BYTES_BESIDE
}
