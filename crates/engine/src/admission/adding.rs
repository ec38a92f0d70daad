//! The bytes that a command adds to the log, known before it is given. A command that adds bytes
//! may have to wait for the disk while others go on.

use model::{
    CollectionCommand, Command, Durability, NewMessage, Persistence, StreamCommand, TransactionId,
    limits,
};
use records::FieldsDraft;

use crate::admission::Admission;
use crate::admission::batch_load::RECORD_BYTES_MAX;
use crate::demand::{Demand, Stores};
use crate::ids::SessionSlot;
use crate::log::FrameWriter;
use crate::sessions::Sessions;

impl Sessions {
    /// The same of a session that is there.
    pub(crate) fn bytes_added(
        &self,
        by: SessionSlot,
        command: &Command,
        log: &FrameWriter,
    ) -> Option<usize> {
        match Demand::of(command).stores {
            Stores::Transaction(id) => self.bytes_of_commit(by, id, log),
            Stores::Batch(commands) => {
                let all = commands.iter().map(|command| Demand::of(command).stores);
                all.filter_map(|stores| log.bytes_of(stores)).reduce(|a, b| a + b)
            }
            stores => log.bytes_of(stores),
        }
    }

    fn bytes_of_commit(
        &self,
        by: SessionSlot,
        id: TransactionId,
        log: &FrameWriter,
    ) -> Option<usize> {
        let transaction = self.at(by).transactions().open().get(&id)?;
        let written = Some(transaction.tally().written_bytes()).filter(|bytes| *bytes > 0);
        let puts = transaction.puts().filter_map(|(_, message)| log.bytes_of_message(message));
        puts.chain(written).reduce(|a, b| a + b)
    }
}

impl FrameWriter {
    fn bytes_of(&self, stores: Stores<'_>) -> Option<usize> {
        match stores {
            Stores::Message { message, part_of: None, .. } => self.bytes_of_message(message),
            Stores::Elements { elements, persistence, .. } => self
                .is_durable(persistence)
                .then(|| elements.iter().map(|it| it.len() + AROUND_BYTES_MAX).sum()),
            Stores::Value { value, .. } => Some(value.len() + AROUND_BYTES_MAX),
            Stores::Values(values) => {
                Some(values.iter().map(|(_, value)| value.len() + AROUND_BYTES_MAX).sum())
            }
            Stores::Edited { edit, .. } => Some(edit.bytes_max() + AROUND_BYTES_MAX),
            Stores::Entries(command) => Some(entries_bytes(command)),
            Stores::Stream(command) => Some(stream_bytes(command)),
            // A part of a transaction is stored with that. A batch holds no commit and no batch.
            Stores::Message { part_of: Some(_), .. }
            | Stores::Nothing
            | Stores::Transaction(_)
            | Stores::Batch(_) => None,
        }
    }

    fn bytes_of_message(&self, message: &NewMessage) -> Option<usize> {
        self.is_durable(message.persistence).then(|| message.body.len() + AROUND_BYTES_MAX)
    }

    fn is_durable(&self, persistence: Persistence) -> bool {
        self.durability(persistence) > Durability::None
    }
}

impl Admission {
    /// True if this call may append the bytes that the send adds. The first send of a call always
    /// finds its room.
    pub(crate) fn fits_into_call(
        &self,
        ticket: u64,
        sessions: &Sessions,
        log: &FrameWriter,
    ) -> bool {
        let blocked = self.blocked(ticket);
        log.is_unspent() || {
            let bytes = sessions.bytes_added(blocked.by, &blocked.command, log).unwrap_or(0);
            bytes <= log.bytes_left_in_call()
        }
    }
}

/// Bytes of the records of a command on a collection. What it makes of others is not known before.
fn entries_bytes(command: &CollectionCommand) -> usize {
    let count = match command {
        CollectionCommand::SetFields { fields, .. } => fields.len(),
        CollectionCommand::AddMembers { members, .. } => members.len(),
        CollectionCommand::SetScores { members, .. } => members.len(),
        _ => 1,
    };
    command.body_bytes() + count * FieldsDraft::ENTRY_BYTES_MAX + AROUND_BYTES_MAX
}

/// The same of a command on a stream: what it stores, and the stream's past.
fn stream_bytes(command: &StreamCommand) -> usize {
    let texts = match command {
        StreamCommand::Append { fields, .. } => 2 * fields.len(),
        _ => 1,
    };
    let names = 2 * limits::STREAM_NAME_BYTES_MAX;
    command.body_bytes() + names + texts * FieldsDraft::ENTRY_BYTES_MAX + AROUND_BYTES_MAX
}

/// Bytes around a body, with the name of its queue and its deduplication id.
const AROUND_BYTES_MAX: usize =
    RECORD_BYTES_MAX + limits::QUEUE_NAME_BYTES_MAX + limits::SEND_ID_BYTES_MAX;
