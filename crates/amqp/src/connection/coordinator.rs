//! Transactions: deliveries that come in by a link to the coordinator (4.2, 4.3).
//!
//! A transaction lives until it is discharged, or until the link by which it was declared goes:
//! then it is rolled back.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;

use model::{Command, DependsOn, LinkId, Refusal, Reply, TransactionId};

use crate::Connection;
use crate::connection::event::{Answer, Awaited, Fact, Incoming, transaction};
use crate::connection::link::Recipient;
use crate::connection::refusal;
use crate::error::{Error, condition};
use crate::performative::Performative;
use crate::state::DeliveryState;
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

    /// Discharges a transaction. Only the link that declared it may do so.
    fn discharge(&mut self, incoming: Incoming, txn_id: &[u8], fail: bool) {
        let open = self.open_transactions(incoming.link);
        let known = transaction(txn_id).filter(|id| open.is_some_and(|open| open.remove(id)));
        let Some(transaction) = known else {
            let why = "no such transaction";
            return self.reject(incoming, Error::new(condition::TRANSACTION_UNKNOWN_ID, why));
        };
        // Nothing is known yet, so it is kept until the answer: a part may be refused meanwhile.
        let failure = self.transactions.get_mut(&transaction).and_then(Option::take);
        match failure {
            _ if fail => self.end(incoming, Command::Rollback { transaction }, transaction),
            None => self.end(incoming, Command::Commit { transaction }, transaction),
            Some(why) => {
                self.transactions.remove(&transaction);
                self.ask(Command::Rollback { transaction }, Awaited::Ignored);
                self.reject(incoming, rolled_back(*why));
            }
        }
    }

    fn end(&mut self, incoming: Incoming, command: Command, transaction: TransactionId) {
        self.ask(command, Awaited::Discharged(incoming, transaction));
    }

    fn open_transactions(&mut self, link: LinkId) -> Option<&mut BTreeSet<TransactionId>> {
        match &mut self.producer(link)?.to {
            Recipient::Coordinator(open) => Some(open),
            _ => None,
        }
    }

    /// A part of a transaction was refused, by us or by the engine: it cannot commit (4.3). The
    /// first reason is the one to tell.
    pub(super) fn set_rollback_only(&mut self, transaction: Option<TransactionId>, why: &Error) {
        let open = transaction.and_then(|id| self.transactions.get_mut(&id));
        if let Some(failure @ None) = open {
            *failure = Some(Box::new(why.clone()));
        }
    }

    /// A part of the transaction is lost, for its link or session has ended. To commit the rest
    /// would not be the peer's intent.
    pub(super) fn lose_part(&mut self, transaction: Option<TransactionId>) {
        if transaction.is_some() {
            let why = "a part of it was lost, since its link or session had ended";
            self.set_rollback_only(transaction, &Error::new(condition::ILLEGAL_STATE, why));
        }
    }

    pub(super) fn declared(
        &mut self,
        incoming: Incoming,
        transaction: TransactionId,
        after: DependsOn,
        reply: &Reply,
    ) -> Option<(DependsOn, Fact)> {
        if let Reply::Refused(refusal) = reply {
            return self.answered(incoming, after, Answer::rejected(refusal::error(refusal)));
        }
        match self.open_transactions(incoming.link) {
            Some(open) => {
                open.insert(transaction);
                self.transactions.insert(transaction, None);
            }
            // Its link has gone meanwhile.
            None => self.ask(Command::Rollback { transaction }, Awaited::Ignored),
        }
        self.answered(incoming, after, Answer::Declared(transaction))
    }

    /// A commit that is refused was rolled back, for any reason (4.3).
    pub(super) fn discharged(
        &mut self,
        incoming: Incoming,
        transaction: TransactionId,
        after: DependsOn,
        reply: &Reply,
    ) -> Option<(DependsOn, Fact)> {
        let failure = self.transactions.remove(&transaction).flatten();
        let answer = match (reply, failure) {
            (Reply::Refused(refusal @ Refusal::NoSuchTransaction), _) => {
                Answer::rejected(refusal::error(refusal))
            }
            (Reply::Refused(Refusal::TransactionFailed), Some(why)) => {
                Answer::rejected(rolled_back(*why))
            }
            (Reply::Refused(refusal), _) => Answer::rejected(rolled_back(refusal::error(refusal))),
            _ => Answer::ACCEPTED,
        };
        self.answered(incoming, after, answer)
    }

    pub(super) fn roll_back_all(&mut self, open: BTreeSet<TransactionId>) {
        for transaction in open {
            self.transactions.remove(&transaction);
            self.ask(Command::Rollback { transaction }, Awaited::Ignored);
        }
    }
}

/// The answer to a refused commit: the condition of the reason. Qpid JMS makes a
/// `TransactionRolledBackException` of every condition but `amqp:transaction:rollback`. The
/// specification has that one for this (4.5.8), but Qpid JMS makes a transaction in doubt of it.
fn rolled_back(why: Error) -> Error {
    let reason = why.description.unwrap_or_default();
    Error { description: Some(format!("the transaction was rolled back: {reason}")), ..why }
}

/// The transaction that a performative of the peer belongs to.
pub(super) fn enlisted(performative: &Performative<'_>) -> Option<TransactionId> {
    let state = match performative {
        Performative::Transfer(transfer) => &transfer.state,
        Performative::Disposition(disposition) => &disposition.state,
        _ => return None,
    };
    match state {
        Some(DeliveryState::Transactional { txn_id, .. }) => transaction(txn_id),
        _ => None,
    }
}
