//! Bodies that only memory has, on their way to the spill, from which they can be read back.
//!
//! They are in the same lines as the other bodies. At its turn a body stays in memory until the
//! caller, which took it with [`Engine::poll_spill`], says where it lies. Then it is paged out like
//! any other. The place is its own until [`Engine::take_vacated`] says that no reader needs it. A
//! body that came back needs no place.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU64;
use core::ops::RangeInclusive;

use model::{BodyPlace, MessageId};

use crate::bodies::memory::charge;
use crate::bodies::waits::StoredBody;
use crate::bodies::{Bodies, BodyOwner, BodyRef, Spilled, Spilling, Stored};
use crate::store::MessageStore;
use crate::store::message::Message;

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
        assert!(self.is_there, "a body may leave for somewhere");
        self.bytes += bytes;
        if self.is_leaving(id) {
            self.leaving_bytes += bytes;
        }
    }

    /// It went, or changes.
    pub(crate) fn unaccount(&mut self, id: MessageId, bytes: u64) {
        assert!(bytes <= self.bytes, "body {id} was counted when it came");
        self.bytes -= bytes;
        if self.is_leaving(id) {
            self.leave_less(id, bytes);
        }
        assert!(self.leaving_bytes <= self.bytes, "only what may leave is leaving");
    }

    /// A body that is leaving is not, or is not so large any more.
    fn leave_less(&mut self, id: MessageId, bytes: u64) {
        assert!(bytes <= self.leaving_bytes, "body {id} was counted when its turn came");
        self.leaving_bytes -= bytes;
    }

    /// The turn of a body has come.
    pub(crate) fn begin(&mut self, id: MessageId, bytes: u64) {
        assert!(self.is_there, "a body leaves for somewhere");
        if self.is_full {
            self.kept_back.insert(id);
        } else if self.leaving.insert(id) {
            self.leaving_bytes += bytes;
            assert!(self.leaving_bytes <= self.bytes, "only what may leave is leaving");
            let is_new = self.queued.insert(id);
            assert!(is_new, "body {id} is taken once");
        }
    }

    /// The message is gone for good, and no reader needs its place in the spill.
    pub(crate) fn forget(&mut self, id: MessageId, spilled: Option<Spilled>) {
        self.kept_back.remove(&id);
        if self.queued.remove(&id) {
            let was_leaving = self.leaving.remove(&id);
            assert!(was_leaving, "body {id} is taken only while it is leaving");
        }
        self.vacate(spilled);
    }

    /// The spill has a body there.
    pub(crate) fn lies(&mut self, place: NonZeroU64, id: MessageId) {
        let before = self.places.insert(place, id);
        assert!(before.is_none(), "a place has one body");
    }

    /// The spill has a body there no longer, or not for this message.
    pub(crate) fn lies_no_more(&mut self, place: NonZeroU64, id: MessageId) {
        let was_there = self.places.remove(&place);
        debug_assert_eq!(was_there, Some(id), "a place is that of its body");
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
        let bytes = self.spillable(id, store).map_or(0, |body| charge(body.len()));
        let spilling = &mut self.memory.spilling;
        assert!(!spilling.queued.contains(&id), "body {id} was taken before");
        if spilling.leaving.remove(&id) {
            spilling.leave_less(id, bytes);
        }
    }

    /// Takes bodies that are to be put into the spill, of about so many bytes together.
    pub(crate) fn poll_spill(&mut self, bytes_max: u64, store: &MessageStore) -> Vec<StoredBody> {
        let mut bodies = Vec::new();
        let mut bytes = 0;
        while bytes < bytes_max
            && let Some(id) = self.memory.spilling.queued.pop_first()
        {
            let body = self.spillable(id, store).expect("invariant: what waits to leave is here");
            bytes += body.len() as u64;
            bodies.push((id, Arc::clone(body)));
        }
        bodies
    }

    /// True if [`Bodies::poll_spill`] would give something.
    #[must_use]
    pub fn has_to_spill(&self) -> bool {
        !self.memory.spilling.queued.is_empty()
    }

    /// A body that was taken is in the spill now, unless it is needed there no more.
    pub(crate) fn page_out_to(&mut self, id: MessageId, to: Spilled, store: &mut MessageStore) {
        self.stops_leaving(id, store);
        if self.spillable(id, store).is_none() {
            return self.memory.spilling.vacate(Some(to));
        }
        let Spilled { place, bytes } = to;
        self.with_body(id, VecDeque::push_back, Stored::paged_out(bytes), Some(place), store);
    }

    /// The body that lies at a place lies elsewhere as well. If it is needed, it stays there.
    pub(crate) fn move_spilled(&mut self, from: NonZeroU64, to: Spilled, store: &mut MessageStore) {
        let name = self.memory.spilling.places.get(&from).copied();
        let kept = name.and_then(|name| Some((name, self.kept(name, store)?.stored.clone())));
        let Some((name, stored)) = kept else {
            return self.memory.spilling.vacate(Some(to));
        };
        self.with_body(name, VecDeque::push_front, stored, Some(to.place), store);
        self.memory.spilling.vacate(Some(Spilled { place: from, ..to }));
    }

    /// The spill did not take these, and takes nothing else for now.
    pub(crate) fn keep_back(
        &mut self,
        ids: impl IntoIterator<Item = MessageId>,
        store: &MessageStore,
    ) {
        self.memory.spilling.is_full = true;
        let queued = core::mem::take(&mut self.memory.spilling.queued);
        for id in ids.into_iter().chain(queued) {
            self.stops_leaving(id, store);
            if self.spillable(id, store).is_some() {
                self.memory.spilling.kept_back.insert(id);
            }
        }
    }

    /// The spill may take something again.
    pub(crate) fn try_spill_again(&mut self) {
        self.memory.spilling.is_full = false;
    }

    /// How many bodies lie in the spill.
    #[must_use]
    pub fn spilled(&self) -> u64 {
        self.memory.spilling.places.len() as u64
    }

    /// Takes the places with bodies that only answers that were given may still need.
    pub(crate) fn take_vacated(&mut self) -> Vec<Spilled> {
        core::mem::take(&mut self.memory.spilling.vacated)
    }

    /// Bodies at this place in the spill and behind it that the asker of this one soon asks for.
    pub(crate) fn spilled_from(
        &self,
        place: NonZeroU64,
        store: &MessageStore,
    ) -> impl Iterator<Item = Spilled> {
        let places = self.memory.spilling.places.range(place..).take(SPILLED_AHEAD_MAX);
        let to_come =
            places.filter(|(place, id)| self.is_awaited_at(**id, BodyPlace::Spill(**place), store));
        to_come.filter_map(|(_, name)| self.kept(*name, store)?.lies())
    }

    /// Bodies that lie at these places.
    pub(crate) fn spilled_within(
        &self,
        places: RangeInclusive<NonZeroU64>,
        store: &MessageStore,
    ) -> impl Iterator<Item = Spilled> {
        let names = self.memory.spilling.places.range(places);
        names.filter_map(|(_, name)| self.kept(*name, store)?.lies())
    }

    /// A body was fetched from there: it comes back if it is waited for, or its message is ready.
    pub(crate) fn restore_spilled(
        &mut self,
        place: NonZeroU64,
        body: Arc<[u8]>,
        store: &mut MessageStore,
    ) {
        let id = self.memory.spilling.places.get(&place).copied();
        if let Some(id) = id.filter(|id| self.is_awaited_at(*id, BodyPlace::Spill(place), store)) {
            self.bring(id, body, store);
        }
    }

    /// A message is gone for good, and with it its body, unless that is shared.
    pub(crate) fn forget_body(
        &mut self,
        id: MessageId,
        message: &Message,
        store: &mut MessageStore,
    ) {
        match (message.shared(), message.kept()) {
            (Some(name), _) => self.part_from_body(name, store),
            (None, kept) => self.memory.spilling.forget(id, kept.and_then(|kept| kept.lies())),
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
                let its = charge(kept.stored.len());
                bytes += its;
                leaving += if spilling.is_leaving(id) { its } else { 0 };
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

/// A body so far behind the one that is asked for is not soon asked for.
const SPILLED_AHEAD_MAX: usize = 256;
