//! A defect for tests of the oracle: the commands of a transaction are kept here and given part by
//! part at the commit. So they are as many frames, and a crash may keep some of them.

use std::collections::BTreeMap;

use model::{Command, DependsOn, Nanos, Output, Reply, SessionId, Settlement, TransactionId};

use crate::Paged;

/// Commands of open transactions.
#[derive(Debug, Default)]
pub(super) struct SplitCommits {
    parts: BTreeMap<(SessionId, TransactionId), Vec<Command>>,
}

impl SplitCommits {
    /// Performs the command, or some of it; the answer comes first.
    pub(super) fn handle<F: Clone>(
        &mut self,
        broker: &mut Paged<F>,
        now: Nanos,
        session: SessionId,
        mut command: Command,
    ) -> Vec<Output> {
        let mut outputs = Vec::new();
        let enlisted = match &mut command {
            Command::Put { transaction, .. }
            | Command::PutTo { transaction, .. }
            | Command::Settle { transaction, .. } => transaction.take(),
            _ => None,
        };
        if let Some(transaction) = enlisted {
            self.parts.entry((session, transaction)).or_default().push(command);
            return vec![Output { session, after: DependsOn::NOTHING, reply: Reply::Done }];
        }
        if let Command::Commit { transaction } | Command::Rollback { transaction } = &command {
            let undoes = matches!(command, Command::Rollback { .. });
            let parts = self.parts.remove(&(session, *transaction)).unwrap_or_default();
            for part in
                parts.into_iter().filter_map(|part| if undoes { undo(part) } else { Some(part) })
            {
                let mut own = Vec::new();
                broker.handle(now, session, part, &mut own);
                outputs.extend(own.drain(1..));
            }
        }
        let mut answered = Vec::new();
        broker.handle(now, session, command, &mut answered);
        answered.append(&mut outputs);
        answered
    }
}

/// The command that undoes a part that was never performed.
fn undo(part: Command) -> Option<Command> {
    match part {
        Command::Settle { message, transaction, .. } => {
            Some(Command::Settle { message, settlement: Settlement::Fail, transaction })
        }
        _ => None,
    }
}
