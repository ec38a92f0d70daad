//! How full memory is, and the eviction of bodies until the rest fits.
//!
//! Other parts take memory too: the caller gives their bytes as `resting`, with those of the bodies
//! that do not leave ([`Bodies::resting_bytes`]).

use model::{Lsn, limits};

use crate::bodies::memory::{beside_messages_max, charge};
use crate::bodies::{Bodies, Stored};
use crate::store::MessageStore;

impl Bodies {
    /// The log can be read back up to this frame: bodies that waited for it may leave.
    pub(crate) fn set_written(&mut self, written: Lsn, store: &mut MessageStore) {
        if written > self.memory.written {
            self.memory.written = written;
            self.line_up_written(store);
        }
    }

    /// Recovery reads what the log has: any frame can be read back.
    pub(crate) fn begin_recovery(&mut self) {
        self.memory.written = Lsn(u64::MAX);
    }

    /// Recovery is over, and this is the last frame of the log.
    pub(crate) fn end_recovery(&mut self, last: Lsn) {
        self.memory.written = last;
    }

    /// Breaks an invariant, to see that the check finds it.
    #[cfg(test)]
    pub(crate) fn miscount(&mut self) {
        self.memory.movable += 1;
    }

    /// Bytes of bodies that may leave.
    pub(crate) const fn movable_bytes(&self) -> u64 {
        self.memory.movable
    }

    /// Bytes that do not leave: bodies that only memory has, commands that wait for bodies, and the
    /// tables of the spill and of shared bodies.
    pub(crate) fn resting_bytes(&self) -> u64 {
        let tables = self.memory.spilling.places_bytes() + self.sharing.memory_bytes();
        self.memory.fixed + self.awaited.bytes + tables
    }

    /// Bytes that open transactions may hold together, so that no number of them fills memory and
    /// stops every other send. One transaction may hold as much.
    #[must_use]
    pub fn uncommitted_max(&self) -> usize {
        let share = usize::try_from(self.memory.limit / 2).unwrap_or(usize::MAX);
        share.min(limits::UNCOMMITTED_BYTES_MAX)
    }

    /// Bytes that small values may take; names of messages may take as many.
    pub(crate) fn beside_messages_max(&self) -> u64 {
        beside_messages_max(self.memory.limit)
    }

    /// Bytes that commands waiting for memory may take, beside the share of everything else.
    pub(crate) const fn awaiting_bytes_max(&self) -> u64 {
        self.memory.limit / 16
    }

    /// True if any body has left.
    #[must_use]
    pub const fn has_paged_out(&self) -> bool {
        self.memory.paged_out > 0
    }

    /// How many bodies have left.
    #[must_use]
    pub const fn paged_out(&self) -> u64 {
        self.memory.paged_out
    }

    /// How often a body has left, or come into a queue from elsewhere without being here.
    #[must_use]
    pub const fn paged_out_total(&self) -> u64 {
        self.memory.paged_out_total
    }

    /// Bytes of bodies that may be here beside so many that do not leave, and never nothing.
    pub(crate) fn movable_max(&self, resting: u64) -> u64 {
        let Self { memory, .. } = self;
        memory.limit.saturating_sub(resting).max(memory.limit / 8).min(memory.movable_max)
    }

    /// Bytes that should have left.
    pub(crate) fn stuck_bytes(&self, resting: u64) -> u64 {
        self.memory.movable.saturating_sub(self.movable_max(resting))
    }

    /// True if nothing new is taken: all bodies that may leave could not make room for it.
    pub(crate) fn is_full(&self, resting: u64) -> bool {
        let (limit, stuck) = (self.memory.limit, self.stuck_bytes(resting));
        // Bodies leave in steps, each larger than the bytes that one command brings.
        let is_stuck =
            (stuck > limit / 4 && self.memory.large_owners.is_empty()) || stuck > limit / 2;
        resting + self.memory.spilling.stuck_bytes() >= limit / 8 * 7 || is_stuck
    }

    /// True if memory surely takes so many bytes more. Of `resting`, `for_memory` are those of
    /// commands that wait for memory.
    pub(crate) fn surely_keeps(&self, bytes: u64, resting: u64, for_memory: u64) -> bool {
        assert!(for_memory <= resting, "commands that wait for memory take a part of it");
        let limit = self.memory.limit;
        let all = resting + self.memory.spilling.stuck_bytes();
        let stuck = self.stuck_bytes(resting - for_memory);
        all + bytes < limit / 8 * 7 && stuck + bytes <= limit / 4
    }

    /// True if memory is so full that commands that add to it had better wait until the leaving
    /// bodies have left.
    pub(crate) fn waits_for_spill(&self, resting: u64) -> bool {
        let is_crowded = || self.stuck_bytes(resting) > self.memory.limit / 8;
        !self.memory.spilling.leaving.is_empty() && is_crowded()
    }

    /// How many bodies may leave now; `None`: too few are here to look at. More leave than came,
    /// and no more than do not hold up others.
    pub(crate) fn begin_trim(&mut self) -> Option<usize> {
        let came = core::mem::take(&mut self.memory.came);
        let is_small = self.memory.movable <= self.memory.always;
        let has_none = is_small && !self.memory.spilling.keeps_back();
        (!has_none).then_some(BODIES_PER_TRIM + 2 * came)
    }

    /// Lets at most so many bodies leave until the rest fits, as far as they can be read back.
    pub(crate) fn trim(&mut self, most: usize, resting: u64, store: &mut MessageStore) {
        for id in self.memory.spilling.take_kept_back(most) {
            self.line_up_to_leave(id, store);
        }
        let mut passed = 0;
        while self.is_beyond(resting)
            && passed < most
            && let Some((_, owner)) = self.memory.large_owners.last().copied()
        {
            passed += 1;
            self.page_out_last(owner, store);
        }
        store.took_steps(passed);
    }

    /// True if there are bodies to leave, and they are in line.
    pub(crate) fn may_trim(&self, resting: u64) -> bool {
        self.is_beyond(resting) && !self.memory.large_owners.is_empty()
    }

    fn is_beyond(&self, resting: u64) -> bool {
        let leaving = self.memory.spilling.leaving_bytes;
        assert!(leaving <= self.memory.movable, "only what may leave is leaving");
        self.memory.movable - leaving > self.movable_max(resting)
    }

    /// A body as recovery keeps it: in memory as long as there are few, so that a start takes no
    /// longer than the log is read. The log has it.
    pub(crate) fn recovered(&self, body: &[u8], resting: u64) -> Stored {
        let most = self.movable_max(resting).min(RECOVERED_BYTES_MAX);
        if self.memory.movable + charge(body.len()) <= most {
            return Stored::Here(body.into());
        }
        Stored::paged_out(u32::try_from(body.len()).unwrap_or(u32::MAX))
    }
}

/// Bodies that one call lets leave, beside twice as many as came since the call before: some 0.2
/// ms.
const BODIES_PER_TRIM: usize = 1024;

/// Bodies that a start brings into memory. Others come ahead of their readers.
const RECOVERED_BYTES_MAX: u64 = 256 * 1024 * 1024;
