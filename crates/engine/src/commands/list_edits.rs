//! Commands that change a list: push, insert, replace, remove, trim.

use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{
    End, ListCommand, MessageId, OneOrMany, Persistence, QueueName, Refusal, Reply, limits,
};
use records::{CHANGED_BYTES_MAX, RecordView};

use crate::Effects;
use crate::admission::batch_load::RECORD_BYTES_MAX;
use crate::engine::Engine;
use crate::ids::{QueueSlot, SessionSlot};
use crate::keyspace::PopArgs;
use crate::keyspace::lists::editing::Insertion;
use crate::keyspace::lists::places::{Parting, Search, Span, place_within};
use crate::keyspace::lists::pushing::{Push, element};
use crate::keyspace::lists::runs::{SHOWN_BYTES_MAX, STEPS};
use crate::outcome::Outcome;
use crate::replies::shown_bytes_of;
use crate::store::message::State;

impl Engine {
    pub(crate) fn replace(
        &mut self,
        by: SessionSlot,
        name: &QueueName,
        (origin, at): (End, i64),
        (body, persistence): (Arc<[u8]>, Persistence),
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        let Some(slot) = self.keyspace.list_of(by, name, &mut self.store)? else {
            return Ok(self.log.not_found());
        };
        let count = self.keyspace.elements_count(slot, &mut self.store);
        if count == 0 {
            return Ok(self.log.not_found());
        }
        let place = place_within(at, count).filter(|place| *place < count);
        let place = place.ok_or(Refusal::NoSuchPlace)?;
        let rank = self.store.place_of_element(slot, origin, place)?;
        let (priority, order) = rank.ok_or(Refusal::NoSuchPlace)?;
        let draft = self.log.draft(effects);
        let old = self.store.message_of(order);
        let deadline = self.store.queues.at(slot).lifetime().at;
        self.keyspace.unindex(old, &mut self.sessions, &mut self.store);
        // In this order: in recovery no two are ever at one place.
        let message = self.store.message(old);
        if message.is_journalled() {
            let (record, level) = (RecordView::Deleted { message: old }, message.durability());
            self.log.append(&record, level, effects);
        }
        let new = element(body, priority, persistence);
        match self.store.draft_element(slot, &new, Some(order), &mut self.log, effects) {
            Err(refusal) => {
                self.log.take_back(&draft, effects);
                self.keyspace.index(old, State::Ready, &self.bodies, &mut self.store);
                self.keyspace.keep_deadline(slot, deadline, &mut self.store);
                Err(refusal)
            }
            Ok((id, message)) => {
                let gone = self.bodies.take(old, &mut self.store);
                self.bodies.release_record(&gone, effects);
                self.store.queues.at_mut(slot).count_deleted();
                self.keyspace.admit(id, message, &mut self.bodies, &mut self.store);
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
        let Some(slot) = self.keyspace.list_of(by, name, &mut self.store)? else {
            return Ok(self.log.not_found());
        };
        if self.keyspace.elements_count(slot, &mut self.store) == 0 {
            return Ok(self.log.not_found());
        }
        let Some((_, pivot)) =
            self.bodies.find_equal(slot, &insertion.beside, &mut self.store)?.pop()
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
        let Some(slot) = self.keyspace.list_of(by, name, &mut self.store)? else {
            return Ok(self.log.counted(0));
        };
        let found = self.bodies.find_equal(slot, search, &mut self.store)?;
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
        let Some(slot) = self.keyspace.list_of(by, name, &mut self.store)? else {
            return Ok(self.log.counted(0));
        };
        let Parting { near, far, first } =
            span.parting(self.keyspace.elements_count(slot, &mut self.store));
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
            self.keyspace.unindex(*id, &mut self.sessions, &mut self.store);
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
        let (id, message) = self.store.draft_element(slot, new, place, &mut self.log, effects)?;
        self.keyspace.admit(id, message, &mut self.bodies, &mut self.store);
        let count = self.keyspace.elements_count(slot, &mut self.store);
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
        let journalled =
            moving.iter().filter(|id| self.store.message(**id).is_journalled()).count();
        let bytes = journalled * CHANGED_BYTES_MAX;
        let frame_bytes = bytes + new.body.len() + CHANGED_BYTES_MAX;
        if frame_bytes > self.log.frame_bytes_max() {
            return Err(Refusal::ListTooLong);
        }
        // The elements that move aside are in one frame with it. If none moves, the draft of the
        // new element asks for room.
        if bytes > 0 && frame_bytes as u64 > self.log.room_left() {
            return Err(Refusal::StoreFull);
        }
        let place = self.store.place_at(end);
        let (id, message) =
            self.store.draft_element(slot, new, Some(place), &mut self.log, effects)?;
        for id in moving {
            let place = self.store.place_at(end);
            self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
            self.store.reorder(id, place);
            self.keyspace.index(id, State::Ready, &self.bodies, &mut self.store);
            self.bodies.journal_change(id, &mut self.store, &mut self.log, effects);
        }
        self.keyspace.admit(id, message, &mut self.bodies, &mut self.store);
        let count = self.keyspace.elements_count(slot, &mut self.store);
        Ok(self.log.counted(count).waking(slot))
    }
}

impl Engine {
    pub(crate) fn push(
        &mut self,
        name: QueueName,
        push: &Push,
        elements: OneOrMany<Arc<[u8]>>,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        self.keyspace.check_is_list(&name, &self.store)?;
        if push.only_existing {
            let known = self.store.queues.find(name.as_str());
            if known.is_none_or(|slot| self.keyspace.elements_count(slot, &mut self.store) == 0) {
                return Ok(self.log.counted(0));
            }
        }
        let slot = self.directory.find_or_create(name, &mut self.store)?;
        self.keyspace.end_list_if_over(slot, &mut self.store);
        let stored = self.store_elements(slot, push, elements, effects);
        if let Err(refusal) = stored {
            self.directory.remove_if_idle(slot, &mut self.sessions, &mut self.store);
            return Err(refusal);
        }
        let count = self.keyspace.elements_count(slot, &mut self.store);
        Ok(self.log.counted(count).waking(slot))
    }

    /// All of them or none, in one frame.
    fn store_elements(
        &mut self,
        slot: QueueSlot,
        push: &Push,
        elements: OneOrMany<Arc<[u8]>>,
        effects: &mut Effects,
    ) -> Result<(), Refusal> {
        if elements.len() > limits::TRANSACTION_RECORDS_MAX {
            return Err(Refusal::BatchTooLarge);
        }
        self.keyspace.state_if_stale(slot, &mut self.store, &mut self.log, effects);
        let priority = self.store.priority_at(slot, push.end);
        let elements = match elements {
            OneOrMany::One(body) => {
                // A push that fails leaves nothing behind.
                let (id, message) =
                    self.store.draft_pushed(slot, push, priority, body, &mut self.log, effects)?;
                self.keyspace.admit(id, message, &mut self.bodies, &mut self.store);
                return Ok(());
            }
            OneOrMany::Many(elements) => elements,
        };
        let (draft, next) = (self.log.draft(effects), self.store.next_message());
        let mut drafted = Vec::with_capacity(elements.len());
        if elements.len() > 1 {
            self.log.widen();
        }
        for body in elements {
            match self.store.draft_pushed(slot, push, priority, body, &mut self.log, effects) {
                Ok(one) => drafted.push(one),
                Err(refusal) => {
                    self.log.take_back(&draft, effects);
                    self.store.take_back_numbers(next);
                    return Err(refusal);
                }
            }
        }
        for (id, message) in drafted {
            self.keyspace.admit(id, message, &mut self.bodies, &mut self.store);
        }
        Ok(())
    }
}

impl Engine {
    pub(crate) fn range(
        &mut self,
        by: SessionSlot,
        name: &QueueName,
        span: Span,
    ) -> Result<Outcome, Refusal> {
        let Some(slot) = self.keyspace.list_of(by, name, &mut self.store)? else {
            return Ok(self.log.listed(Vec::new()));
        };
        let wanted = span.within(self.keyspace.elements_count(slot, &mut self.store));
        let count = wanted.end - wanted.start;
        if count > limits::LIST_SCAN_MAX as u64 {
            return Err(Refusal::ListTooLong);
        }
        if count == 0 {
            return Ok(self.log.listed(Vec::new()));
        }
        let first = self.store.place_of_element(slot, span.origin, wanted.start)?;
        let mut bytes = 0;
        let mut elements = Vec::with_capacity(count as usize);
        for id in self.store.elements_from(slot, span.origin, first).take(count as usize) {
            let element = self.bodies.element_of(id, &self.store);
            bytes += shown_bytes_of(&element);
            elements.push(element);
        }
        self.store.took_steps(elements.len());
        if bytes > self.replies.left() {
            return Err(self.replies.refusal());
        }
        Ok(self.log.listed(elements))
    }

    pub(crate) fn locate(
        &mut self,
        by: SessionSlot,
        name: &QueueName,
        search: &Search,
    ) -> Result<Outcome, Refusal> {
        let mut places = Vec::new();
        if let Some(slot) = self.keyspace.list_of(by, name, &mut self.store)? {
            let found = self.bodies.find_equal(slot, search, &mut self.store)?;
            let count = self.keyspace.elements_count(slot, &mut self.store);
            let opposite = search.origin != search.from;
            let place = |place: u64| if opposite { count - 1 - place } else { place };
            places.extend(found.into_iter().map(|(found, _)| place(found)));
        }
        Ok(Outcome::reply(self.log.after_all(), Reply::Places(places)))
    }
}

impl Engine {
    pub(crate) fn push_each(
        &mut self,
        name: QueueName,
        push: &Push,
        elements: OneOrMany<Arc<[u8]>>,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        if !self.store.is_quiet(&name) || !self.has_room_for(&name, &elements) {
            let Push { end, persistence, .. } = *push;
            let run = ListCommand::PushEach { queue: name, end, elements, persistence };
            return Ok(Outcome::apart(run));
        }
        self.store.took_steps(STEPS * elements.len());
        self.push(name, push, elements, effects)
    }

    pub(crate) fn pop_each(
        &mut self,
        by: SessionSlot,
        name: QueueName,
        hand: PopArgs,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        if !self.store.is_quiet(&name) || self.store.protects_popped(&name) {
            let PopArgs { end, max, .. } = hand;
            return Ok(Outcome::apart(ListCommand::PopEach { queue: name, end, max }));
        }
        self.store
            .took_steps(STEPS.saturating_mul(usize::try_from(hand.max).unwrap_or(usize::MAX)));
        self.pop(by, &name, PopArgs { bytes_max: SHOWN_BYTES_MAX, ..hand }, effects)
    }

    /// True if one frame, the log and memory surely take all of these.
    fn has_room_for(&self, name: &QueueName, elements: &[Arc<[u8]>]) -> bool {
        let around = RECORD_BYTES_MAX + name.as_str().len();
        let bytes: usize = elements.iter().map(|element| around + element.len()).sum();
        let has_room = !self.log.is_scarce() && bytes <= self.log.frame_bytes_max();
        has_room && self.surely_keeps(elements)
    }
}
