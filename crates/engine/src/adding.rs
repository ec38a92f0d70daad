//! What a command adds to the log, told before it is given: what adds may have to wait for the disk
//! while all else goes on.

use model::{Command, Durability, KeyCommand, ListCommand, Persistence, SessionId, TransactionId};

use crate::engine::Engine;
use crate::session::SessionSlot;

impl Engine {
    /// Whether a command adds something durable. What only settles, takes or looks does not, nor
    /// what memory alone keeps.
    #[must_use]
    pub fn adds_to_log(&self, session: SessionId, command: &Command) -> bool {
        let Some(by) = self.sessions.slot(session) else { return false };
        match command {
            Command::Commit { transaction } => self.commits_durably(by, *transaction),
            Command::Batch { commands } => commands.iter().any(|command| self.stores(command)),
            command => self.stores(command),
        }
    }

    fn stores(&self, command: &Command) -> bool {
        match command {
            // In a transaction it is stored with that.
            Command::Put { message, transaction: None, .. }
            | Command::PutTo { message, transaction: None, .. }
            | Command::Publish { message, .. } => self.is_durable(message.persistence),
            Command::List(command) => match **command {
                ListCommand::Push { persistence, .. }
                | ListCommand::Insert { persistence, .. }
                | ListCommand::Replace { persistence, .. } => self.is_durable(persistence),
                _ => false,
            },
            Command::Key(command) => matches!(**command, KeyCommand::SetValue { .. }),
            _ => false,
        }
    }

    fn commits_durably(&self, by: SessionSlot, id: TransactionId) -> bool {
        let transaction = self.sessions.at(by).transactions.get(&id);
        let mut puts = transaction.into_iter().flat_map(|transaction| transaction.puts());
        puts.any(|(_, message)| self.is_durable(message.persistence))
    }

    fn is_durable(&self, persistence: Persistence) -> bool {
        self.policy.durability(persistence) > Durability::None
    }
}
