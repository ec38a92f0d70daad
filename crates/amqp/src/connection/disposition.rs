//! The peer's dispositions of our deliveries (2.6.12, 2.7.6, 3.4, 4.4).

use alloc::vec::Vec;

use model::{DeadReason, Settlement, TransactionId};

use crate::Connection;
use crate::connection::Fault;
use crate::connection::arrival;
use crate::connection::event::{Answer, transaction};
use crate::connection::session::{SessionKey, wire};
use crate::connection::work::{SettlingRange, Work};
use crate::error::{Error, condition};
use crate::performative::{Disposition, Role};
use crate::state::{DeliveryState, Modified, Outcome};

impl Connection {
    /// Settles deliveries of ours. A state that is no outcome is news only for a sender that
    /// resumes (3.4.1). A sender's disposition of its own deliveries changes nothing: they were
    /// settled here before.
    pub(super) fn handle_disposition(
        &mut self,
        key: SessionKey,
        disposition: &Disposition<'_>,
    ) -> Result<(), Fault> {
        if disposition.role == Role::Sender {
            return Ok(());
        }
        let (outcome, transaction) = match &disposition.state {
            Some(DeliveryState::Outcome(outcome)) => (Some(outcome), None),
            Some(DeliveryState::Transactional { txn_id, outcome }) => {
                let unknown = || {
                    let why = "no such transaction";
                    Fault::Session(key, Error::new(condition::TRANSACTION_UNKNOWN_ID, why))
                };
                (outcome.as_ref(), Some(transaction(txn_id).ok_or_else(unknown)?))
            }
            _ => (None, None),
        };
        // Settled without an outcome: the link's default is its outcome (3.5.3).
        if outcome.is_none() && !disposition.settled {
            return Ok(());
        }
        let last = disposition.last.unwrap_or(disposition.first);
        let session = self.sessions.get(&key);
        let deliveries = session.and_then(|session| session.deliveries(disposition.first, last));
        let Some((next, last)) = deliveries else { return Ok(()) };
        self.miss_parts(key, next, last, transaction);
        let answered = outcome.filter(|_| !disposition.settled).cloned();
        let answer = answered.map(|outcome| match transaction {
            Some(transaction) => Answer::Enlisted(transaction, outcome),
            None => Answer::Outcome(outcome),
        });
        let settlement = outcome.map(|outcome| self.settlement_of(outcome));
        let range = SettlingRange { session: key, next, last, settlement, transaction, answer };
        self.work.push_back(Work::Settle(range));
        Ok(())
    }

    /// The settlement that an outcome means, with the delay that it may say for the next delivery.
    fn settlement_of(&self, outcome: &Outcome) -> Settlement {
        let delay = || match outcome {
            Outcome::Modified(modified) => arrival::redelivery(modified, self.present()),
            _ => None,
        };
        let settlement = settlement(outcome);
        let failed = settlement == Settlement::Fail;
        match settlement {
            Settlement::Fail | Settlement::Release => {
                delay().map_or(settlement, |delay| Settlement::GiveBack { failed, delay })
            }
            settlement => settlement,
        }
    }

    /// Deliveries that went back when their link ended are no part of a transaction any more. The
    /// peer still believes so: it has not heard of that, or speaks of links that it has detached.
    fn miss_parts(
        &mut self,
        key: SessionKey,
        next: u64,
        last: u64,
        transaction: Option<TransactionId>,
    ) {
        // One that cannot commit anyway needs no looking.
        let open = transaction.and_then(|transaction| self.transactions.get(&transaction));
        let session = self.sessions.get(&key).filter(|_| matches!(open, Some(None)));
        if session.is_some_and(|it| it.released_ranges.lost(next, last, &it.unsettled)) {
            self.lose_part(transaction);
        }
    }

    /// Settles in our turn the deliveries that the peer wanted settled by us (2.6.12).
    pub(super) fn emit_settled(
        &mut self,
        key: SessionKey,
        delivery: u64,
        answer: Answer,
        out: &mut Vec<u8>,
    ) {
        if let Some(channel) = self.channel_of(key) {
            self.answer(channel, Role::Sender, wire(delivery), answer, out);
        }
    }
}

/// The settlement that an outcome means for the message.
pub(super) const fn settlement(outcome: &Outcome) -> Settlement {
    match outcome {
        Outcome::Accepted => Settlement::Accept,
        Outcome::Rejected(_) => Settlement::Park(DeadReason::Rejected),
        Outcome::Modified(Modified { undeliverable_here: true, .. }) => {
            Settlement::Park(DeadReason::Undeliverable)
        }
        Outcome::Modified(Modified { delivery_failed: true, .. }) => Settlement::Fail,
        Outcome::Released | Outcome::Modified(_) => Settlement::Release,
    }
}
