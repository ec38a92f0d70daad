//! The bytes that a command adds to the log, known before it is given. A command that adds bytes
//! may have to wait for the disk while others go on.

use model::{
    Command, Durability, KeyCommand, ListCommand, NewMessage, Persistence, TransactionId, limits,
};

use crate::admission::batch_load::RECORD_BYTES_MAX;
use crate::context::Context;
use crate::ids::SessionSlot;
use crate::sessions::Sessions;

impl Sessions {
    /// The same of a session that is there.
    pub(crate) fn bytes_added(
        &self,
        by: SessionSlot,
        command: &Command,
        context: &Context,
    ) -> Option<usize> {
        match command {
            Command::Commit { transaction } => self.bytes_of_commit(by, *transaction, context),
            Command::Batch { commands } => {
                commands.iter().filter_map(|command| context.bytes_of(command)).reduce(|a, b| a + b)
            }
            command => context.bytes_of(command),
        }
    }

    fn bytes_of_commit(
        &self,
        by: SessionSlot,
        id: TransactionId,
        context: &Context,
    ) -> Option<usize> {
        let puts = self.at(by).transactions.open.get(&id)?.puts();
        puts.filter_map(|(_, message)| context.bytes_of_message(message)).reduce(|a, b| a + b)
    }
}

impl Context {
    fn bytes_of(&self, command: &Command) -> Option<usize> {
        match command {
            // In a transaction it is stored with that.
            Command::Put { message, transaction: None, .. }
            | Command::PutTo { message, transaction: None, .. }
            | Command::Publish { message, .. } => self.bytes_of_message(message),
            Command::List(command) => match command {
                ListCommand::Push { persistence, .. }
                | ListCommand::PushEach { persistence, .. }
                | ListCommand::Insert { persistence, .. }
                | ListCommand::Replace { persistence, .. } => {
                    let records = command.elements() * AROUND_BYTES_MAX;
                    self.is_durable(*persistence).then(|| command.body_bytes() + records)
                }
                _ => None,
            },
            Command::Key(command) => {
                let sets = matches!(command, KeyCommand::SetValue { .. });
                sets.then(|| command.value_bytes() + AROUND_BYTES_MAX)
            }
            _ => None,
        }
    }

    fn bytes_of_message(&self, message: &NewMessage) -> Option<usize> {
        self.is_durable(message.persistence).then(|| message.body.len() + AROUND_BYTES_MAX)
    }

    fn is_durable(&self, persistence: Persistence) -> bool {
        self.policy.durability(persistence) > Durability::None
    }
}

/// Bytes around a body, with the name of its queue and its deduplication id.
const AROUND_BYTES_MAX: usize =
    RECORD_BYTES_MAX + limits::QUEUE_NAME_BYTES_MAX + limits::SEND_ID_BYTES_MAX;
