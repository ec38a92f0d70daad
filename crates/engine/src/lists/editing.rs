//! Changing a list by places: replacing, inserting, removing, keeping a part.
//!
//! A new element may take a place that another message had: its record says so, behind the one by
//! which that has gone or moved. A message that is there never gets such a place: a snapshot shows
//! each message as it is at a moment of its own, and might show two there.

use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{End, MessageId, Persistence, QueueName, Refusal, Reply, limits};
use records::{CHANGED_BYTES_MAX, RecordView};

use crate::Effects;
use crate::engine::{Engine, MessageStore, Outcome};
use crate::lists::places::{Parting, Search, Span, place_within};
use crate::lists::pushing::element;
use crate::log::{DELETED_BYTES_MAX, Log};
use crate::message::State;
use crate::queue::QueueSlot;
use crate::session::SessionSlot;

/// A new element and where it is to be.
#[derive(Clone, Debug)]
pub(crate) struct Insertion {
    /// Beside the first of these.
    pub(crate) beside: Search,
    /// On which side of it: towards this end.
    pub(crate) towards: End,
    pub(crate) element: Arc<[u8]>,
    pub(crate) persistence: Persistence,
}

impl Engine {
    pub(crate) fn replace(
        &mut self,
        by: SessionSlot,
        name: &QueueName,
        (origin, at): (End, i64),
        (body, persistence): (Arc<[u8]>, Persistence),
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        let Some(slot) = self.list_of(by, name)? else { return Ok(self.log.not_found()) };
        let count = self.elements_count(slot);
        if count == 0 {
            return Ok(self.log.not_found());
        }
        let place = place_within(at, count).filter(|place| *place < count);
        let place = place.ok_or(Refusal::NoSuchPlace)?;
        let rank = self.store.place_of_element(slot, origin, place)?;
        let (priority, order) = rank.ok_or(Refusal::NoSuchPlace)?;
        let draft = self.log.draft(effects);
        let old = self.store.message_of(order);
        let deadline = self.store.queues.at(slot).index.lifetime.at;
        self.leave(old);
        // In this order: in recovery no two are ever at one place.
        let message = self.store.living(old);
        if message.is_journalled() {
            let (record, level) = (RecordView::Deleted { message: old }, message.durability);
            self.log.append(&record, level, effects);
        }
        let new = element(body, priority, persistence);
        match self.store.draft_element(
            slot,
            &new,
            Some(order),
            &mut self.log,
            &self.context,
            effects,
        ) {
            Err(refusal) => {
                self.log.take_back(&draft, effects);
                self.enter(old, State::Ready);
                self.keyspace.keep_deadline(slot, deadline, &mut self.store);
                Err(refusal)
            }
            Ok((id, message)) => {
                let gone = self.admission.take(old, &mut self.bodies, &mut self.store);
                self.bodies.groups.release(&gone, effects);
                self.store.queues.at_mut(slot).usage.deleted_total += 1;
                self.admit(id, message);
                self.keyspace.keep_deadline(slot, deadline, &mut self.store);
                Ok(Outcome::reply(self.log.after_all(), Reply::Done).waking(slot))
            }
        }
    }

    pub(crate) fn insert(
        &mut self,
        by: SessionSlot,
        name: &QueueName,
        insertion: Insertion,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        let Some(slot) = self.list_of(by, name)? else { return Ok(self.log.not_found()) };
        if self.elements_count(slot) == 0 {
            return Ok(self.log.not_found());
        }
        let Some((_, pivot)) =
            self.bodies.find_equal(slot, &insertion.beside, &mut self.store, &self.context)?.pop()
        else {
            return Ok(self.log.counted(0));
        };
        let Insertion { towards, element: body, persistence, .. } = insertion;
        let pivot = self.store.rank(pivot);
        let beside = self
            .store
            .queues
            .at(slot)
            .delivery
            .dispatch
            .ready()
            .next_from(towards.opposite(), pivot);
        let Some(beside) = beside else {
            let new = element(body, self.store.priority_at(slot, towards), persistence);
            let place = (towards == End::Head).then(|| self.store.first_place());
            return self.admit_element(slot, &new, place, effects);
        };
        let (before, behind) = if towards == End::Head { (beside, pivot) } else { (pivot, beside) };
        let new = element(body, before.0, persistence);
        if before.0 < behind.0 {
            return self.admit_element(slot, &new, None, effects);
        }
        self.insert_between(slot, before, behind, &new, effects)
    }

    pub(crate) fn remove(
        &mut self,
        by: SessionSlot,
        name: &QueueName,
        search: &Search,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        let Some(slot) = self.list_of(by, name)? else { return Ok(self.log.counted(0)) };
        let found = self.bodies.find_equal(slot, search, &mut self.store, &self.context)?;
        let ids: Vec<_> = found.into_iter().map(|(_, id)| id).collect();
        self.delete_all(&ids, effects)
    }

    /// In several steps only where the same places mean the same in each.
    pub(crate) fn keep(
        &mut self,
        by: SessionSlot,
        name: &QueueName,
        span: Span,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        let Some(slot) = self.list_of(by, name)? else { return Ok(self.log.counted(0)) };
        let Parting { near, far, first } = span.parting(self.elements_count(slot));
        let at_once = self.log.deletions_max(limits::FRAME_RECORDS_MAX) as u64;
        if near + far > at_once
            && let Some((end, outside)) = first.filter(|(_, outside)| *outside > 0)
        {
            let count = at_once.min(outside);
            let ids = self.store.outermost(slot, end, count);
            self.delete_all(&ids, effects)?;
            return Ok(Outcome::reply(self.log.after_all(), Reply::CountSoFar(count)));
        }
        let mut ids = self.store.outermost(slot, span.origin, near);
        ids.extend(self.store.outermost(slot, span.origin.opposite(), far));
        self.delete_all(&ids, effects)
    }

    /// At once, or not at all.
    fn delete_all(&mut self, ids: &[MessageId], effects: &mut Effects) -> Result<Outcome, Refusal> {
        if ids.len() > self.log.deletions_max(limits::TRANSACTION_RECORDS_MAX) {
            return Err(Refusal::ListTooLong);
        }
        if ids.len() > limits::FRAME_RECORDS_MAX {
            self.log.widen();
        }
        self.store.took_steps(ids.len());
        for id in ids {
            self.leave(*id);
            self.finish(*id, effects);
        }
        Ok(self.log.counted(ids.len() as u64))
    }

    fn admit_element(
        &mut self,
        slot: QueueSlot,
        new: &model::NewMessage,
        place: Option<i64>,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        let (id, message) =
            self.store.draft_element(slot, new, place, &mut self.log, &self.context, effects)?;
        self.admit(id, message);
        let count = self.elements_count(slot);
        Ok(self.log.counted(count).waking(slot))
    }

    /// Between two neighbours of one priority there is mostly no place left: those on one side move
    /// outwards, the fewer of that priority.
    fn insert_between(
        &mut self,
        slot: QueueSlot,
        before: (u32, i64),
        behind: (u32, i64),
        new: &model::NewMessage,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        if let Some(place) = self.store.free_place(before.1, behind.1) {
            return self.admit_element(slot, new, Some(place), effects);
        }
        let (end, moving) = self.store.smaller_side(slot, before, behind)?;
        let journalled = moving.iter().filter(|id| self.store.living(**id).is_journalled()).count();
        let bytes = journalled * CHANGED_BYTES_MAX;
        let frame_bytes = bytes + new.body.len() + CHANGED_BYTES_MAX;
        if frame_bytes > self.log.frame_bytes_max {
            return Err(Refusal::ListTooLong);
        }
        // What moves aside is in one frame with it. Where nothing does, its draft asks for room.
        if bytes > 0 && frame_bytes as u64 > self.log.room_left() {
            return Err(Refusal::StoreFull);
        }
        let place = self.store.place_at(end);
        let (id, message) = self.store.draft_element(
            slot,
            new,
            Some(place),
            &mut self.log,
            &self.context,
            effects,
        )?;
        for id in moving {
            let place = self.store.place_at(end);
            self.leave(id);
            self.store.reorder(id, place);
            self.enter(id, State::Ready);
            self.bodies.journal_change(id, &mut self.store, &mut self.log, effects);
        }
        self.admit(id, message);
        let count = self.elements_count(slot);
        Ok(self.log.counted(count).waking(slot))
    }
}

impl MessageStore {
    fn outermost(&self, slot: QueueSlot, end: End, count: u64) -> Vec<MessageId> {
        self.elements(slot, end).take(count as usize).collect()
    }

    /// A place between two that no message has, living or yet to come.
    fn free_place(&self, before: i64, behind: i64) -> Option<i64> {
        let between = (before + 1..behind).take(PROBES_MAX).filter(|place| *place != 0);
        let is_free = |place: &i64| {
            let place = *place as u64;
            self.messages.get(place).is_none() && self.reordered.get(place).is_none()
        };
        between.into_iter().find(is_free)
    }

    /// Those of one priority on one side of a gap, from the gap outwards, and at which end: the
    /// fewer, as far as one frame takes them.
    fn smaller_side(
        &mut self,
        slot: QueueSlot,
        before: (u32, i64),
        behind: (u32, i64),
    ) -> Result<(End, Vec<MessageId>), Refusal> {
        let ready = self.queues.at(slot).delivery.dispatch.ready();
        let side = |first, end: End| {
            let from = end.opposite();
            core::iter::successors(Some(first), move |at| ready.next_from(from, *at))
                .take_while(|(priority, _)| *priority == before.0)
        };
        let (mut heads, mut tails) = (side(before, End::Head), side(behind, End::Tail));
        let mut count = 0;
        let end = loop {
            match (heads.next(), tails.next()) {
                (None, _) => break End::Head,
                (_, None) => break End::Tail,
                _ => count += 1,
            }
            if count >= limits::FRAME_RECORDS_MAX {
                return Err(Refusal::ListTooLong);
            }
        };
        let first = if end == End::Head { before } else { behind };
        let moving = side(first, end).map(|(_, order)| self.message_of(order)).collect();
        self.took_steps(2 * count);
        Ok((end, moving))
    }
}

impl Log {
    /// How many elements one command may delete now, at most so many. A batch has seen to it that
    /// there is room for all that it deletes.
    fn deletions_max(&self, max: usize) -> usize {
        if self.is_whole() {
            return limits::TRANSACTION_RECORDS_MAX;
        }
        max.min(self.settling_bytes_max() / DELETED_BYTES_MAX)
    }
}

/// Places that are tried before neighbours move.
const PROBES_MAX: usize = 64;
