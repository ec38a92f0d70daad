//! Commits that are more than one frame wait until the log has room for all their frames: a chain
//! that ran out of room would have to be undone on the disk.
//!
//! Whoever drives the engine makes the room and says when it is there, or that there will be none.
//! Meanwhile nothing can be added to the transaction, nobody sees anything of it, and everybody
//! else is served. It goes with its session like any other.

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
        let transaction = sessions.at_mut(by).transactions.open.get_mut(&id);
        transaction.expect("invariant: it was just found").waits = true;
        self.awaiting.push_back((by, id));
        Outcome::NOTHING
    }

    /// What a session that closes waits for is off.
    pub(crate) fn stop_awaiting(&mut self, by: SessionSlot) {
        self.awaiting.retain(|(session, _)| *session != by);
    }
}
