//! Transactions: what comes in by a link to the coordinator (4.2, 4.3).
//!
//! A transaction lives until it is discharged, or until the link by which it was declared goes:
//! then it is rolled back.

use alloc::collections::BTreeSet;

use model::{After, Command, LinkId, Refusal, Reply, TransactionId};

use crate::Connection;
use crate::connection::event::{Answer, Awaited, Fact, Incoming, transaction};
use crate::connection::link::Recipient;
use crate::connection::refusal;
use crate::error::{Error, condition};
use crate::transaction::CoordinatorRequest;

impl Connection {
    pub(super) fn coordinate(&mut self, incoming: Incoming, message: &[u8]) {
        match CoordinatorRequest::decode(message) {
            Ok(CoordinatorRequest::Declare { global_id: None }) => self.declare(incoming),
            Ok(CoordinatorRequest::Declare { global_id: Some(_) }) => {
                let why = "no distributed transactions";
                self.reject(incoming, Error::new(condition::NOT_IMPLEMENTED, why));
            }
            Ok(CoordinatorRequest::Discharge { txn_id, fail }) => {
                self.discharge(incoming, txn_id, fail);
            }
            Err(error) => self.reject(incoming, error.into()),
        }
    }

    fn declare(&mut self, incoming: Incoming) {
        let transaction = TransactionId(self.transactions_begun);
        self.transactions_begun += 1;
        self.ask(Command::Begin { transaction }, Awaited::Declared(incoming, transaction));
    }

    /// Only where it was declared can a transaction be discharged.
    fn discharge(&mut self, incoming: Incoming, txn_id: &[u8], fail: bool) {
        let open = self.open_transactions(incoming.link);
        let known = transaction(txn_id).filter(|id| open.is_some_and(|open| open.remove(id)));
        let is_doomed = known.and_then(|id| self.transactions.remove(&id)).unwrap_or_default();
        match known {
            Some(transaction) if is_doomed && !fail => {
                self.ask(Command::Rollback { transaction }, Awaited::Unheard);
                let why = "a part of the transaction was refused";
                self.reject(incoming, Error::new(condition::TRANSACTION_ROLLBACK, why));
            }
            Some(transaction) if fail => {
                self.ask(Command::Rollback { transaction }, Awaited::Discharged(incoming));
            }
            Some(transaction) => {
                self.ask(Command::Commit { transaction }, Awaited::Discharged(incoming));
            }
            None => {
                let why = "no such transaction";
                self.reject(incoming, Error::new(condition::TRANSACTION_UNKNOWN_ID, why));
            }
        }
    }

    fn open_transactions(&mut self, link: LinkId) -> Option<&mut BTreeSet<TransactionId>> {
        match &mut self.producer(link)?.to {
            Recipient::Coordinator(open) => Some(open),
            _ => None,
        }
    }

    /// A part of a transaction was refused before the engine heard of it: it cannot commit (4.3).
    pub(super) fn doom(&mut self, transaction: Option<TransactionId>) {
        let open = transaction.and_then(|id| self.transactions.get_mut(&id));
        if let Some(is_doomed) = open {
            *is_doomed = true;
        }
    }

    pub(super) fn declared(
        &mut self,
        incoming: Incoming,
        transaction: TransactionId,
        after: After,
        reply: &Reply,
    ) -> Option<(After, Fact)> {
        if let Reply::Refused(refusal) = reply {
            return self.answered(incoming, after, Answer::rejected(refusal::error(refusal)));
        }
        match self.open_transactions(incoming.link) {
            Some(open) => {
                open.insert(transaction);
                self.transactions.insert(transaction, false);
            }
            // Its link has gone meanwhile.
            None => self.ask(Command::Rollback { transaction }, Awaited::Unheard),
        }
        self.answered(incoming, after, Answer::Declared(transaction))
    }

    /// A commit that is refused was rolled back, whatever the reason (4.3).
    pub(super) fn discharged(
        &mut self,
        incoming: Incoming,
        after: After,
        reply: &Reply,
    ) -> Option<(After, Fact)> {
        let answer = match reply {
            Reply::Refused(refusal @ Refusal::NoSuchTransaction) => {
                Answer::rejected(refusal::error(refusal))
            }
            Reply::Refused(refusal) => {
                let why = refusal::error(refusal).description.unwrap_or_default();
                Answer::rejected(Error::new(condition::TRANSACTION_ROLLBACK, why))
            }
            _ => Answer::ACCEPTED,
        };
        self.answered(incoming, after, answer)
    }

    pub(super) fn roll_back_all(&mut self, open: BTreeSet<TransactionId>) {
        for transaction in open {
            self.transactions.remove(&transaction);
            self.ask(Command::Rollback { transaction }, Awaited::Unheard);
        }
    }
}
