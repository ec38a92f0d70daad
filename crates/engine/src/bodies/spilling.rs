//! Bodies that only memory has, on their way to the spill, from which they can be read back.
//!
//! They are in the same lines as the other bodies. At its turn a body stays in memory until the
//! caller, which took it with [`Engine::poll_spill`], says where it lies. Then it is paged out like
//! any other. The place is its own until [`Engine::take_vacated`] says that no reader needs it. A
//! body that came back needs no place.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use model::MessageId;

use crate::bodies::{Bodies, BodyOwner, BodyRef, Spilled, Spilling};
use crate::store::MessageStore;

impl Spilling {
    pub(crate) fn new(is_there: bool) -> Self {
        Self { is_there, ..Self::default() }
    }

    /// True if a body that no log has may leave one day.
    pub(crate) const fn is_there(&self) -> bool {
        self.is_there
    }

    /// Bytes that may leave and cannot for now.
    pub(crate) const fn stuck_bytes(&self) -> u64 {
        if self.is_full { self.bytes } else { 0 }
    }

    /// Bytes of memory that the table of places takes.
    pub(crate) fn places_bytes(&self) -> u64 {
        self.places.len() as u64 * PLACE_BYTES
    }

    /// True if its turn has come, and it is not in line.
    pub(crate) fn is_leaving(&self, id: MessageId) -> bool {
        self.leaving.contains(&id)
    }

    /// True if it stands in no line, and will.
    pub(crate) fn knows(&self, id: MessageId) -> bool {
        self.is_leaving(id) || self.kept_back.contains(&id)
    }

    /// A body has come that may leave.
    pub(crate) fn settle(&mut self, id: MessageId, bytes: u64) {
        self.bytes += bytes;
        if self.is_leaving(id) {
            self.leaving_bytes += bytes;
        }
    }

    /// It went, or changes.
    pub(crate) fn unaccount(&mut self, id: MessageId, bytes: u64) {
        self.bytes -= bytes;
        if self.is_leaving(id) {
            self.leaving_bytes -= bytes;
        }
    }

    /// The turn of a body has come.
    pub(crate) fn begin(&mut self, id: MessageId, bytes: u64) {
        assert!(self.is_there, "a body leaves for somewhere");
        if self.is_full {
            self.kept_back.insert(id);
        } else if self.leaving.insert(id) {
            self.leaving_bytes += bytes;
            self.queued.insert(id);
        }
    }

    /// The message is gone for good, and no reader needs its place in the spill.
    pub(crate) fn forget(&mut self, id: MessageId, spilled: Option<Spilled>) {
        self.kept_back.remove(&id);
        if self.queued.remove(&id) {
            self.leaving.remove(&id);
        }
        self.vacate(spilled);
    }

    pub(crate) fn lies(&mut self, place: NonZeroU64, id: MessageId) {
        let before = self.places.insert(place, id);
        assert!(before.is_none(), "a place has one body");
    }

    pub(crate) fn lies_no_more(&mut self, place: NonZeroU64) {
        self.places.remove(&place);
    }

    pub(crate) fn vacate(&mut self, spilled: Option<Spilled>) {
        self.vacated.extend(spilled);
    }

    /// True if some are kept back.
    pub(crate) fn keeps_back(&self) -> bool {
        !self.kept_back.is_empty()
    }

    /// Some of those that were kept back, where it takes them again.
    pub(crate) fn take_kept_back(&mut self, most: usize) -> Vec<MessageId> {
        let most = if self.is_full { 0 } else { most };
        core::iter::from_fn(|| self.kept_back.pop_first()).take(most).collect()
    }
}

impl Bodies {
    /// A body that nothing has but memory.
    pub(crate) fn spillable<'e>(
        &'e self,
        id: MessageId,
        store: &'e MessageStore,
    ) -> Option<&'e Arc<[u8]>> {
        self.kept(id, store).filter(BodyRef::is_only_here)?.stored.here()
    }

    /// It is not on its way any more.
    pub(crate) fn stops_leaving(&mut self, id: MessageId, store: &MessageStore) {
        let bytes =
            self.spillable(id, store).map_or(0, |body| crate::bodies::memory::charge(body.len()));
        let spilling = &mut self.memory.spilling;
        if spilling.leaving.remove(&id) {
            spilling.leaving_bytes -= bytes;
        }
    }

    /// Checks that the counts agree with the bodies that are there.
    ///
    /// # Panics
    /// When it is not.
    pub(crate) fn check_spilling(&self, store: &MessageStore) {
        let spilling = &self.memory.spilling;
        let (mut bytes, mut leaving, mut spilled) = (0, 0, 0);
        for (id, kept) in self.all_kept(store) {
            if kept.frame.is_some() || !spilling.is_there {
                continue;
            }
            if kept.is_only_here() {
                let charge = crate::bodies::memory::charge(kept.stored.len());
                bytes += charge;
                leaving += if spilling.is_leaving(id) { charge } else { 0 };
                continue;
            }
            let place = kept.spilled.unwrap_or_else(|| panic!("body {id} is somewhere"));
            assert_eq!(spilling.places.get(&place), Some(&id), "what lies there is known");
            let stays = kept.owner == BodyOwner::Sharing || kept.stored.here().is_none();
            assert!(stays, "only what is shared stays in the spill while it is here");
            spilled += 1;
        }
        assert_eq!(
            (bytes, leaving),
            (spilling.bytes, spilling.leaving_bytes),
            "bodies are counted"
        );
        assert_eq!(spilling.places.len(), spilled, "what lies in the spill is of somebody");
        let all_leave = spilling.queued.iter().all(|id| spilling.leaving.contains(id));
        assert!(all_leave, "what is to be taken is leaving");
    }
}

/// An entry of the tree of places: a place and its message.
const PLACE_BYTES: u64 = 32;
