//! Commits that are more than one frame wait until the log has room for all their frames: a chain
//! that ran out of room would have to be undone on the disk.
//!
//! Whoever drives the engine makes the room and says when it is there, or that there will be none.
//! Meanwhile nothing can be added to the transaction, nobody sees anything of it, and everybody
//! else is served. It goes with its session like any other.

use model::{ChainRoom, DependsOn, Nanos, Refusal, TransactionId};

use crate::Effects;
use crate::engine::{Engine, Outcome, Transactions};
use crate::session::{SessionSlot, Sessions};
use crate::transactions::Span;

impl Engine {
    /// What the first of the commits that wait needs, at most. Have it made ready, then call
    /// [`Engine::commit_awaiting`].
    #[must_use]
    pub fn awaited_room(&self) -> Option<ChainRoom> {
        let &(by, id) = self.transactions.awaiting.front()?;
        let records = self.directory.records_of_transaction(by, id, &self.sessions);
        let cut_at = self.log.chain_frame_bytes();
        // Of any two neighbours the first ended since it and a record of the second are more.
        let frames = 2 * (records.bytes / (cut_at - 2 * HEAD_BYTES_MAX)) + 2;
        let bytes = records.bytes + frames * HEAD_BYTES_MAX;
        Some(ChainRoom {
            bytes: bytes as u64,
            frames: frames as u64,
            frame_bytes: cut_at.max(records.largest_bytes + HEAD_BYTES_MAX),
            snapshot_bytes: records.snapshot_bytes,
        })
    }

    /// There is room for the first of the commits that wait: it takes effect. Or there will be
    /// none: it is refused and rolled back. No effect when none waits.
    pub fn commit_awaiting(&mut self, now: Nanos, has_room: bool, effects: &mut Effects) {
        self.store.advance(now, &mut self.log);
        let Some((by, id)) = self.transactions.awaiting.pop_front() else { return };
        let ticket = self.sessions.at(by).transactions.open.get(&id).and_then(|it| it.ticket);
        let session = self.sessions.at(by).identity.id;
        let outcome = if has_room {
            self.commit_now(by, id, Span::Chain, effects)
        } else {
            self.refuse_commit(by, id, Refusal::StoreFull, effects)
        };
        let outcome = match ticket {
            Some(ticket) => outcome.late(ticket, DependsOn::NOTHING),
            None => outcome,
        };
        self.conclude(session, outcome, effects);
    }
}

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

/// A Chained record.
const HEAD_BYTES_MAX: usize = 12;
