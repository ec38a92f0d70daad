//! Memory of the engine, and the eviction of bodies.
//!
//! Messages stay in memory. Bodies of journalled messages are evicted while they need more room
//! than there is, since the log has them. Each queue has a line of bodies that may leave. The
//! engine evicts from the queue with the most such bytes, from the end of its line: the body that
//! is needed last. The newest leaves first, or one that came back for a reader far ahead. A body is
//! evicted only when its frame can be read back. Until then it is in no line, so that it blocks no
//! other body. Bodies that only memory has are in the same lines if there is a spill: see
//! `spilling.rs`.
//!
//! If the body of a message is paged out, its consumer gets [`model::PagedOut`], and the caller
//! fills that in. Only commands that look into bodies themselves wait for them here: see
//! `waits.rs`.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use model::{Body, BodyPlace, Formats, Lsn, MessageId, PagedOut, limits};

use crate::bodies::{
    Awaited, Bodies, BodyOwner, BodyRef, Groups, Memory, Push, ResidentBodies, SharedBody, Sharing,
    Spilled, Spilling, Stored,
};
use crate::dedup::SendIds;
use crate::directory::Directory;
use crate::directory::policy::EngineOptions;
use crate::ids::QueueSlot;
use crate::keyspace::Keyspace;
use crate::store::MessageStore;
use crate::store::message::Message;

impl<'b> BodyRef<'b> {
    /// The own body of a message of this queue.
    pub(crate) const fn own(
        stored: &'b Stored,
        queue: QueueSlot,
        frame: Option<Lsn>,
        spilled: Option<NonZeroU64>,
    ) -> Self {
        Self { stored, owner: BodyOwner::Queue(queue), frame, spilled }
    }

    /// The place of the body outside memory, even if it is in memory too. `None`: it has none.
    pub(crate) fn place(&self) -> Option<BodyPlace> {
        self.frame.map(BodyPlace::Frame).or_else(|| self.spilled.map(BodyPlace::Spill))
    }

    /// Its place in the spill, if it has one.
    pub(crate) fn lies(&self) -> Option<Spilled> {
        let bytes = u32::try_from(self.stored.len()).unwrap_or(u32::MAX);
        self.spilled.map(|place| Spilled { place, bytes })
    }

    /// True if nothing has it but memory, so that the spill may take it.
    pub(crate) fn is_only_here(&self) -> bool {
        self.stored.here().is_some() && self.place().is_none()
    }
}

impl ResidentBodies {
    /// A body of so many bytes leaves memory, or goes.
    fn leave(&mut self, id: MessageId, bytes: u64) {
        assert!(self.count > 0 && bytes <= self.bytes, "body {id} was counted at its owner");
        self.bytes -= bytes;
        self.count -= 1;
        assert!(self.count > 0 || self.bytes == 0, "an owner without bodies has no bytes");
        self.leave_line(id);
    }

    /// One of the bodies left memory. If it was at an end of the queue, it is mostly at an end of
    /// the line too. A body in between stays in the line until much of the line is gone.
    fn leave_line(&mut self, id: MessageId) {
        if self.line.front() == Some(&id) {
            self.line.pop_front();
        } else if self.line.back() == Some(&id) {
            self.line.pop_back();
        }
        // Gives back the memory that a crowd needed.
        let (capacity, needed) = (self.line.capacity(), 2 * self.line.len());
        if capacity > 2 * (needed + STALE_MAX) {
            self.line.shrink_to(needed);
        }
    }

    /// Too many of the line are gone.
    fn is_stale(&self) -> bool {
        self.line.len() > 2 * self.count + STALE_MAX
    }
}

impl Memory {
    fn new(options: &EngineOptions) -> Self {
        let (limit, movable_max) = (options.memory_limit, options.log_bodies_max);
        Self {
            limit,
            movable_max,
            always: (limit / 8).min(movable_max),
            fat_bytes: (limit.min(movable_max) / 4096).clamp(1, FAT_BYTES_MAX),
            written: Lsn::ZERO,
            movable: 0,
            fixed: 0,
            paged_out: 0,
            paged_out_total: 0,
            large_owners: BTreeSet::new(),
            unwritten: VecDeque::new(),
            passed_over: Vec::new(),
            came: 0,
            spilling: Spilling::new(options.spills),
        }
    }

    /// Zero where nothing is in line, or too little to look for: queues come and go with a few
    /// messages all the time.
    fn magnitude(&self, residents: &ResidentBodies) -> u32 {
        let bytes = if residents.line.is_empty() { 0 } else { residents.bytes };
        u64::BITS - (bytes / self.fat_bytes).leading_zeros()
    }

    /// Weighs an owner again after the bodies that may leave it have changed.
    fn weigh(&mut self, owner: BodyOwner, residents: &mut ResidentBodies) {
        let magnitude = self.magnitude(residents);
        let before = core::mem::replace(&mut residents.magnitude, magnitude);
        if before != magnitude {
            let was_known = self.large_owners.remove(&(before, owner));
            assert_eq!(was_known, before > 0, "{owner:?} is known by its weight");
            if magnitude > 0 {
                let is_new = self.large_owners.insert((magnitude, owner));
                assert!(is_new, "{owner:?} has one weight");
            }
        }
    }
}

/// Bytes that small values may take if memory has this limit; names of messages may take as many.
pub(crate) const fn beside_messages_max(limit: u64) -> u64 {
    let share = limit / 8;
    if share > BESIDE_MESSAGES_MIN { share } else { BESIDE_MESSAGES_MIN }
}

/// Bytes that a body takes in memory, with the allocator's share.
pub(crate) const fn charge(bytes: usize) -> u64 {
    bytes as u64 + BODY_BYTES_BESIDE
}

impl Bodies {
    pub(crate) fn new(options: &EngineOptions) -> Self {
        Self {
            formats: options.formats,
            memory: Memory::new(options),
            sharing: Sharing::default(),
            groups: Groups::default(),
            awaited: Awaited::default(),
        }
    }

    /// How to read bodies.
    pub(crate) const fn formats(&self) -> &Formats {
        &self.formats
    }

    /// The body of a message, if it is here.
    pub(crate) fn here<'b>(&'b self, message: &'b Message) -> Option<&'b Arc<[u8]>> {
        self.sharing.here(message)
    }

    /// A message comes into its queue.
    pub(crate) fn account(&mut self, id: MessageId, message: &Message, store: &mut MessageStore) {
        if let Some(kept) = message.kept() {
            self.settle_body(id, &kept, VecDeque::push_back, store);
        }
    }

    /// A body is there, here or elsewhere.
    pub(crate) fn settle_body(
        &mut self,
        id: MessageId,
        kept: &BodyRef<'_>,
        push: Push,
        store: &mut MessageStore,
    ) {
        if let Some(place) = kept.spilled {
            self.memory.spilling.lies(place, id);
        }
        let Stored::Here(body) = kept.stored else {
            assert!(kept.place().is_some(), "body {id} is away only where it can be read back");
            self.memory.paged_out += 1;
            self.memory.paged_out_total += 1;
            return;
        };
        let bytes = charge(body.len());
        if !self.may_leave(kept) {
            self.memory.fixed += bytes;
            return;
        }
        self.memory.movable += bytes;
        self.memory.came += 1;
        let is_written = self.is_written(kept);
        if kept.is_only_here() {
            self.memory.spilling.settle(id, bytes);
        }
        let is_in_line = is_written && !self.memory.spilling.is_leaving(id);
        self.change_residents(
            kept.owner,
            |residents| {
                residents.bytes += bytes;
                residents.count += 1;
                if is_in_line {
                    push(&mut residents.line, id);
                }
            },
            store,
        );
        if !is_written {
            self.memory.unwritten.push_back(id);
        }
    }

    /// True if its body may be elsewhere one day.
    fn may_leave(&self, kept: &BodyRef<'_>) -> bool {
        kept.frame.is_some() || self.memory.spilling.is_there()
    }

    /// True if the log has nothing to write before its body may leave.
    fn is_written(&self, kept: &BodyRef<'_>) -> bool {
        kept.frame.is_none_or(|frame| frame <= self.memory.written)
    }

    /// The body of that name.
    pub(crate) fn kept<'e>(
        &'e self,
        name: MessageId,
        store: &'e MessageStore,
    ) -> Option<BodyRef<'e>> {
        let own = || store.messages.get(name.0)?.kept();
        self.sharing.get(name).map(SharedBody::kept).or_else(own)
    }

    /// A message goes out of its queue.
    pub(crate) fn unaccount(&mut self, id: MessageId, message: &Message, store: &mut MessageStore) {
        match message.kept() {
            Some(kept) => self.move_body_out(id, &kept, store),
            None => self.stop_sharing_wait(message),
        }
    }

    /// A body goes, or changes.
    pub(crate) fn move_body_out(
        &mut self,
        id: MessageId,
        kept: &BodyRef<'_>,
        store: &mut MessageStore,
    ) {
        if let Some(place) = kept.spilled {
            self.memory.spilling.lies_no_more(place, id);
        }
        let Stored::Here(body) = kept.stored else {
            assert!(self.memory.paged_out > 0, "body {id} was counted when it left");
            self.memory.paged_out -= 1;
            self.awaited.has_left(paged_out_of(id, kept));
            return;
        };
        let bytes = charge(body.len());
        if !self.may_leave(kept) {
            assert!(bytes <= self.memory.fixed, "body {id} was counted among those that stay");
            self.memory.fixed -= bytes;
            return;
        }
        assert!(bytes <= self.memory.movable, "body {id} was counted among those that may leave");
        if kept.is_only_here() {
            self.memory.spilling.unaccount(id, bytes);
        }
        self.memory.movable -= bytes;
        self.change_residents(kept.owner, |residents| residents.leave(id, bytes), store);
    }

    fn change_residents(
        &mut self,
        owner: BodyOwner,
        change: impl FnOnce(&mut ResidentBodies),
        store: &mut MessageStore,
    ) {
        let (residents, memory) = self.residents_of(owner, store);
        change(residents);
        memory.weigh(owner, residents);
        if residents.is_stale() {
            self.drop_stale(owner, store);
        }
    }

    fn residents_of<'e>(
        &'e mut self,
        owner: BodyOwner,
        store: &'e mut MessageStore,
    ) -> (&'e mut ResidentBodies, &'e mut Memory) {
        let Bodies { sharing, memory, .. } = self;
        let queues = &mut store.queues;
        let residents = match owner {
            BodyOwner::Queue(slot) => queues.at_mut(slot).residents_mut(),
            BodyOwner::Sharing => &mut sharing.residents,
        };
        (residents, memory)
    }

    /// A body that was here already gets its place in line.
    pub(crate) fn line_up_to_leave(&mut self, id: MessageId, store: &mut MessageStore) {
        let kept = self.kept(id, store).filter(|kept| self.is_at_home(kept));
        if let Some(owner) = kept.map(|kept| kept.owner) {
            self.line_up_at(owner, id, store);
        }
    }

    fn line_up_at(&mut self, owner: BodyOwner, id: MessageId, store: &mut MessageStore) {
        let (residents, memory) = self.residents_of(owner, store);
        residents.line.push_back(id);
        if residents.line.len() == 1 {
            memory.weigh(owner, residents);
        }
        if residents.is_stale() {
            self.drop_stale(owner, store);
        }
    }

    /// True if it is here, and may leave.
    fn is_at_home(&self, kept: &BodyRef<'_>) -> bool {
        self.may_leave(kept) && kept.stored.here().is_some()
    }

    /// Lines up the bodies that have been written since: they may leave now.
    pub(crate) fn line_up_written(&mut self, store: &mut MessageStore) {
        while let Some(id) = self.memory.unwritten.front().copied() {
            let kept = self.kept(id, store);
            if kept.is_some_and(|kept| !self.is_written(&kept)) {
                break;
            }
            let owner = kept.filter(|kept| self.is_at_home(kept)).map(|kept| kept.owner);
            self.memory.unwritten.pop_front();
            if let Some(owner) = owner {
                self.line_up_at(owner, id, store);
            }
        }
    }

    /// Lines up the bodies that were passed over and are awaited no longer.
    pub(crate) fn let_go(&mut self, store: &mut MessageStore) {
        let passed_over = core::mem::take(&mut self.memory.passed_over);
        let (kept, free): (Vec<_>, Vec<_>) =
            passed_over.into_iter().partition(|id| self.awaited.keeps(*id));
        self.memory.passed_over = kept;
        for id in free.into_iter().rev() {
            self.line_up_to_leave(id, store);
        }
    }

    /// The body of a message as a reader gets it.
    pub(crate) fn body_of(&self, id: MessageId, message: &Message, store: &MessageStore) -> Body {
        if let Some(body) = self.sharing.here(message) {
            return Body::Here(Arc::clone(body));
        }
        let (place, name) = self.paged_out_of(id, message, store);
        let bytes = u32::try_from(message.body().len()).unwrap_or(u32::MAX);
        Body::PagedOut(PagedOut { place, message: name, bytes })
    }

    /// The place of a paged-out body, and its name.
    pub(crate) fn paged_out_of(
        &self,
        id: MessageId,
        message: &Message,
        store: &MessageStore,
    ) -> (BodyPlace, MessageId) {
        let name = message.shared().unwrap_or(id);
        let kept = message.kept().or_else(|| self.kept(name, store));
        paged_out_of(name, &kept.expect("invariant: a message has a body"))
    }

    /// A body that was away has come.
    pub(crate) fn bring(&mut self, id: MessageId, body: Arc<[u8]>, store: &mut MessageStore) {
        // A reader that goes on needs this body before the others, so it leaves last.
        self.bring_to(id, body, VecDeque::push_front, store);
    }

    /// Recovery has found the body of a message that no consumer reads yet: the log has it.
    pub(crate) fn replace_body(&mut self, id: MessageId, body: Stored, store: &mut MessageStore) {
        self.with_body(id, VecDeque::push_back, body, None, store);
    }

    fn bring_to(&mut self, id: MessageId, body: Arc<[u8]>, push: Push, store: &mut MessageStore) {
        let Some(kept) = self.kept(id, store) else { return };
        let (lies, is_shared) = (kept.lies(), kept.owner == BodyOwner::Sharing);
        let stays = kept.spilled.filter(|_| is_shared);
        self.with_body(id, push, Stored::Here(body), stays, store);
        self.memory.spilling.vacate(lies.filter(|_| !is_shared));
    }

    /// Evicts the last body in an owner's line. It waits elsewhere if it cannot leave yet: its
    /// frame may have been stored anew, or a command awaits the body.
    pub(crate) fn page_out_last(&mut self, owner: BodyOwner, store: &mut MessageStore) {
        let mut last = None;
        self.change_residents(owner, |residents| last = residents.line.pop_back(), store);
        let id = last.expect("invariant: an owner that is asked has bodies in line");
        let Some(kept) = self.resident(owner, id, store) else { return };
        let (bytes, spilled) = (kept.stored.len(), kept.spilled);
        if !self.is_written(&kept) {
            self.memory.unwritten.push_back(id);
        } else if self.awaited.keeps(id) {
            self.memory.passed_over.push(id);
        } else if kept.is_only_here() {
            self.memory.spilling.begin(id, charge(bytes));
        } else {
            assert!(kept.place().is_some(), "body {id} leaves only if it can be read back");
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            self.with_body(id, VecDeque::push_back, Stored::paged_out(bytes), spilled, store);
        }
    }

    /// A body takes another form, and the spill has it there.
    pub(crate) fn with_body(
        &mut self,
        name: MessageId,
        push: Push,
        stored: Stored,
        spilled: Option<NonZeroU64>,
        store: &mut MessageStore,
    ) {
        if self.sharing.get(name).is_some() {
            return self.with_shared(name, push, stored, spilled, store);
        }
        let Some(mut message) = store.messages.remove(name.0) else { return };
        self.unaccount(name, &message, store);
        message.set_body(stored);
        if !message.is_journalled() {
            message.set_spilled(spilled);
        }
        if let Some(kept) = message.kept() {
            self.settle_body(name, &kept, push, store);
        }
        store.messages.insert(name.0, message);
    }

    /// The body of that name, if it is of this owner, here, and may leave.
    fn resident<'e>(
        &'e self,
        owner: BodyOwner,
        name: MessageId,
        store: &'e MessageStore,
    ) -> Option<BodyRef<'e>> {
        self.kept(name, store).filter(|kept| kept.owner == owner && self.is_at_home(kept))
    }

    /// Drops the bodies that are gone from a line.
    fn drop_stale(&mut self, owner: BodyOwner, store: &mut MessageStore) {
        let line = core::mem::take(&mut self.residents_of(owner, store).0.line);
        let mut seen = BTreeSet::new();
        let is_there =
            |id: &MessageId| self.resident(owner, *id, store).is_some() && seen.insert(*id);
        let mut kept: VecDeque<_> = line.into_iter().filter(is_there).collect();
        kept.shrink_to(2 * kept.len() + STALE_MAX);
        store.took_steps(kept.len() / 16);
        let (residents, memory) = self.residents_of(owner, store);
        residents.line = kept;
        memory.weigh(owner, residents);
    }

    /// Checks that the counts agree with the bodies that are there.
    ///
    /// # Panics
    /// When they do not.
    pub(crate) fn check_memory(&self, store: &MessageStore) {
        let (mut paged_out, mut fixed) = (0, 0);
        let mut residents = alloc::collections::BTreeMap::<BodyOwner, (usize, u64)>::new();
        for (_, kept) in self.all_kept(store) {
            match kept.stored {
                Stored::Elsewhere { .. } => paged_out += 1,
                Stored::Here(body) if self.may_leave(&kept) => {
                    let (count, bytes) = residents.entry(kept.owner).or_default();
                    *count += 1;
                    *bytes += charge(body.len());
                }
                Stored::Here(body) => fixed += charge(body.len()),
            }
        }
        assert_eq!(
            (paged_out, fixed),
            (self.memory.paged_out, self.memory.fixed),
            "bodies are counted"
        );
        let all: u64 = residents.values().map(|(_, bytes)| bytes).sum();
        assert_eq!(all, self.memory.movable, "bodies that may leave are counted");
        let mut lined: BTreeSet<_> = self.memory.unwritten.iter().copied().collect();
        lined.extend(&self.memory.passed_over);
        let queues =
            || store.queues.iter().map(|(slot, it)| (BodyOwner::Queue(slot), it.residents()));
        let owners = || queues().chain([(BodyOwner::Sharing, &self.sharing.residents)]);
        lined.extend(owners().flat_map(|(_, residents)| &residents.line));
        for (name, kept) in self.all_kept(store) {
            let is_known = || lined.contains(&name) || self.memory.spilling.knows(name);
            assert!(!self.is_at_home(&kept) || is_known(), "no body stays for good");
        }
        for (owner, counted) in owners() {
            let ResidentBodies { line, count, bytes, magnitude: weighed } = counted;
            let found = residents.remove(&owner).unwrap_or_default();
            assert_eq!((*count, *bytes), found, "bodies of {owner:?} are counted");
            assert!(line.len() <= 2 * count + STALE_MAX, "lines are short");
            let magnitude = self.memory.magnitude(counted);
            assert_eq!(magnitude, *weighed, "owners are weighed");
            let is_large = self.memory.large_owners.contains(&(magnitude, owner));
            assert_eq!(is_large, magnitude > 0, "owners with large bodies are known");
        }
        assert!(residents.is_empty(), "bodies have owners");
        self.check_sharing(store);
        self.check_spilling(store);
    }

    /// All bodies, by their names.
    pub(crate) fn all_kept<'e>(
        &'e self,
        store: &'e MessageStore,
    ) -> impl Iterator<Item = (MessageId, BodyRef<'e>)> {
        let messages = store.messages.iter_from(0);
        let own = messages.filter_map(|(id, message)| Some((MessageId(id), message.kept()?)));
        own.chain(self.sharing.iter().map(|(name, shared)| (name, shared.kept())))
    }
}

impl SendIds {
    /// Small values, names of messages and selectors of subscriptions, beyond the usual.
    pub(crate) fn beside_messages_bytes(&self, keyspace: &Keyspace, directory: &Directory) -> u64 {
        let all = keyspace.memory_bytes()
            + self.memory_bytes()
            + directory.subscriptions().selectors_bytes();
        all.saturating_sub(BESIDE_MESSAGES_FREE)
    }
}

/// The place of a body that left memory, and its name.
pub(crate) fn paged_out_of(name: MessageId, kept: &BodyRef<'_>) -> (BodyPlace, MessageId) {
    let place = kept.place();
    (place.expect("invariant: a body leaves for where it can come back from"), name)
}

/// The most that is left to a queue without asking it.
const FAT_BYTES_MAX: u64 = 4096;

/// Bytes that the values, names and selectors of almost every broker take: they do not count.
const BESIDE_MESSAGES_FREE: u64 = 64 * 1024;

/// Bytes that values may take, and names too, even under a small limit.
const BESIDE_MESSAGES_MIN: u64 = 1024 * 1024;

/// The allocator's share of a body, and its counts.
const BODY_BYTES_BESIDE: u64 = 32;

/// Entries of a line that may be stale, beside as many as are not.
const STALE_MAX: usize = 64;

const _: () = assert!(limits::MESSAGE_BYTES_MAX <= u32::MAX as usize, "a length fits");

#[cfg(test)]
mod tests {
    use super::*;

    /// Taking messages from an end empties that end of the line, and in time returns its memory.
    #[test]
    fn residents_leave_line_in_order() {
        let mut residents = ResidentBodies::default();
        residents.line.extend((1..=10_000).map(MessageId));
        for id in 1..=4_000 {
            residents.leave_line(MessageId(id));
            residents.leave_line(MessageId(10_001 - id));
        }
        assert_eq!(residents.line, (4_001..=6_000).map(MessageId).collect::<VecDeque<_>>());
        assert!(residents.line.capacity() <= 4 * 2_000 + 2 * STALE_MAX);
        residents.leave_line(MessageId(5_000));
        assert_eq!(residents.line.len(), 2_000, "it is in between");
    }
}
