//! Commits that are more than one frame wait until the log has room for all their frames: a chain
//! that ran out of room would have to be undone on the disk.
//!
//! The driver of the engine makes the room and reports it, or reports that there will be none.
//! Meanwhile the transaction takes no parts, no session sees any of it, and the engine serves all
//! other sessions. It goes with its session like any other.

use model::TransactionId;

use crate::ids::SessionSlot;
use crate::outcome::Outcome;
use crate::sessions::Sessions;
use crate::transactions::Transactions;

impl Transactions {
    /// Its answer comes later.
    pub(crate) fn await_room(
        &mut self,
        by: SessionSlot,
        id: TransactionId,
        sessions: &mut Sessions,
    ) -> Outcome {
        let transaction = sessions.at_mut(by).transactions_mut().open.get_mut(&id);
        let transaction = transaction.expect("invariant: it was just found");
        assert!(!transaction.waits, "a transaction is committed once");
        transaction.waits = true;
        self.awaiting.push_back((by, id));
        Outcome::NOTHING
    }

    /// A session that closes no longer awaits room for its commits.
    pub(crate) fn stop_awaiting(&mut self, by: SessionSlot) {
        self.awaiting.retain(|(session, _)| *session != by);
    }
}
