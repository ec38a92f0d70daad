//! Commands on lists that read and pop, and those that wait for an element.

use alloc::vec::Vec;

use model::{
    DependsOn, ListCommand, MessageId, Nanos, OneOrMany, QueueName, Refusal, Reply, limits,
};
use records::CHANGED_BYTES_MAX;

use crate::Effects;
use crate::engine::Engine;
use crate::ids::{ConsumerKey, LIST_LINK, QueueSlot, SessionSlot};
use crate::keyspace::lists::Taken;
use crate::keyspace::lists::editing::Insertion;
use crate::keyspace::lists::places::{Search, Span};
use crate::keyspace::lists::pushing::Push;
use crate::keyspace::{Asked, DEADLINE_BYTES_MAX, MoveArgs, PopArgs};
use crate::log::DELETED_BYTES_MAX;
use crate::outcome::Outcome;
use crate::replies::shown_bytes_of;
use crate::store::message::Message;

impl Engine {
    pub(crate) fn list(
        &mut self,
        by: SessionSlot,
        command: ListCommand,
        effects: &mut Effects,
    ) -> Outcome {
        let outcome = self.list_unless_refused(by, command, effects);
        outcome.unwrap_or_else(|refusal| self.log.refuse(refusal))
    }

    fn list_unless_refused(
        &mut self,
        by: SessionSlot,
        command: ListCommand,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        match command {
            ListCommand::Push { queue, end, elements, only_existing, persistence } => {
                let push = Push { end, only_existing, persistence };
                self.push(queue, &push, elements, effects)
            }
            ListCommand::Pop { queue, end, max } => {
                self.pop(by, &queue, self.replies.hand(end, max), effects)
            }
            ListCommand::PushEach { queue, end, elements, persistence } => {
                let push = Push { end, only_existing: false, persistence };
                self.push_each(queue, &push, elements, effects)
            }
            ListCommand::PopEach { queue, end, max } => {
                self.pop_each(by, queue, self.replies.hand(end, max), effects)
            }
            ListCommand::PopFirst { queues, end, max, wait } => {
                self.pop_first(by, queues, self.replies.hand(end, max), wait, effects)
            }
            ListCommand::Move { from, from_end, to, to_end, wait } => {
                self.move_element(by, from, MoveArgs { from_end, to, to_end }, wait, effects)
            }
            ListCommand::CancelPop => {
                self.cancel_sends(by, effects);
                Ok(self.cancel_pop(by))
            }
            ListCommand::Length { queue } => {
                self.keyspace.length(by, &queue, &mut self.store, &self.log)
            }
            ListCommand::Range { queue, origin, first, last } => {
                self.range(by, &queue, Span { origin, first, last })
            }
            ListCommand::Replace { queue, origin, at, element, persistence } => {
                self.replace(by, &queue, (origin, at), (element, persistence), effects)
            }
            ListCommand::Insert { queue, origin, pivot, towards, element, persistence } => {
                let beside = Search { max: 1, ..Search::all(origin, pivot) };
                let insertion = Insertion { beside, towards, element, persistence };
                self.insert(by, &queue, insertion, effects)
            }
            ListCommand::Remove { queue, origin, element, max } => {
                let search = Search { max, ..Search::all(origin, element) };
                self.remove(by, &queue, &search, effects)
            }
            ListCommand::Keep { queue, origin, first, last } => {
                self.keep(by, &queue, Span { origin, first, last }, effects)
            }
            ListCommand::Locate { queue, origin, from, element, skip, max, scan_max } => {
                let search = Search { origin, from, element, skip, max, scan_max };
                self.locate(by, &queue, &search)
            }
        }
    }
}

impl Engine {
    pub(crate) fn pop(
        &mut self,
        by: SessionSlot,
        name: &QueueName,
        hand: PopArgs,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        let Some(slot) = self
            .keyspace
            .list_of(by, name, &mut self.store)?
            .filter(|slot| self.store.may_take(*slot))
        else {
            return Ok(self.log.not_found());
        };
        if hand.max == 0 {
            return Ok(Outcome::reply(self.log.after_all(), Reply::Elements(OneOrMany::new())));
        }
        let Taken { elements, after } = self.take_elements(by, slot, hand, effects)?;
        Ok(Outcome::reply(after, Reply::Elements(elements)))
    }

    /// Takes from the first of several lists that has elements, or waits.
    pub(crate) fn pop_first(
        &mut self,
        by: SessionSlot,
        names: Vec<QueueName>,
        hand: PopArgs,
        wait: Option<Nanos>,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        if names.len() > limits::CONSUMER_QUEUES_MAX {
            return Err(Refusal::TooManyWatched);
        }
        self.store.took_steps(names.len());
        for name in &names {
            if let Some(slot) = self.keyspace.list_of(by, name, &mut self.store)?
                && self.store.may_take(slot)
            {
                let queue = name.clone();
                let Taken { elements, after } = self.take_elements(by, slot, hand, effects)?;
                let elements = elements.into_vec();
                return Ok(Outcome::reply(after, Reply::Popped { queue, elements }));
            }
        }
        if wait == Some(Nanos::ZERO) {
            return Ok(self.log.nothing_in_time());
        }
        self.wait_to_pop(by, names, Asked::Elements(hand), wait, effects)
    }

    /// Moves an element from one list to another, or waits for one.
    pub(crate) fn move_element(
        &mut self,
        by: SessionSlot,
        from: QueueName,
        way: MoveArgs,
        wait: Option<Nanos>,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        match self.keyspace.list_of(by, &from, &mut self.store)? {
            Some(slot) if self.store.may_take(slot) => self.move_from(slot, way, effects),
            _ if wait == Some(Nanos::ZERO) => Ok(self.log.nothing_in_time()),
            _ => self.wait_to_pop(by, [from].into(), Asked::Move(way), wait, effects),
        }
    }

    /// Moves an element that is there.
    pub(crate) fn move_from(
        &mut self,
        from: QueueSlot,
        way: MoveArgs,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        self.keyspace.check_is_list(&way.to, &self.store)?;
        let id = self.store.elements(from, way.from_end).next();
        let id = id.expect("invariant: it was just seen that there is an element");
        if shown_bytes_of(&self.bodies.element_of(id, &self.store)) > self.replies.left() {
            return Err(self.replies.refusal());
        }
        if !self.store.may_relocate(id, &self.log) {
            return Err(Refusal::StoreFull);
        }
        let to = self.directory.find_or_create(way.to, &mut self.store)?;
        let is_only_logged = |it: &Message| it.is_journalled() && self.bodies.here(it).is_none();
        if self.store.queues.at(to).is_memory_only() && is_only_logged(self.store.message(id)) {
            // Seldom: a move that waited, to a queue that stores nothing, of an element that came
            // back from a lease. A command that need not wait is done when the body is here.
            return Err(Refusal::StoreFull);
        }
        self.keyspace.end_list_if_over(to, &mut self.store);
        self.store.took_steps(1);
        let element = self.bodies.element_of(id, &self.store);
        let deadline = self.store.queues.at(from).lifetime().at;
        self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
        if self.store.queues.at(to).is_memory_only() {
            self.bodies.abandon_record(id, &mut self.store, &mut self.log, effects);
        }
        let priority = self.store.priority_at(to, way.to_end);
        self.store.amend(id, |message| {
            message.set_priority(priority);
            message.revive();
        });
        let place = self.store.place_at(way.to_end);
        self.relocate(id, to, place, effects);
        if from == to {
            self.keyspace.keep_deadline(to, deadline, &mut self.store);
        }
        Ok(Outcome::reply(self.store.message(id).after(), Reply::Elements(OneOrMany::One(element)))
            .waking(to))
    }

    /// Takes elements from a list that has one: so many as are wanted, and as one frame and one
    /// reply hold. None, where the first is too much for that.
    pub(crate) fn take_elements(
        &mut self,
        by: SessionSlot,
        slot: QueueSlot,
        hand: PopArgs,
        effects: &mut Effects,
    ) -> Result<Taken, Refusal> {
        let max = hand.max.min(limits::FRAME_RECORDS_MAX as u64);
        let mut taken = Taken { elements: OneOrMany::new(), after: DependsOn::NOTHING };
        let mut bytes = 0;
        let mut last = None;
        while (taken.elements.len() as u64) < max
            && let Some(place) = self.store.element_behind(last, slot, hand.end)
        {
            let id = self.store.message_of(place.1);
            let its = limits::BESIDE_ELEMENT_BYTES + self.store.message(id).body().len();
            bytes += its;
            let is_first = taken.elements.is_empty();
            if is_first && its > self.replies.left() {
                return Err(self.replies.refusal());
            }
            let is_much = bytes > hand.bytes_max || its > self.replies.left();
            if !is_first && (is_much || !self.log.takes_more(1, DELETED_BYTES_MAX)) {
                break;
            }
            last = Some(place);
            taken.elements.push(self.bodies.element_of(id, &self.store));
            taken.after = taken.after.and(self.take_element(by, id, effects));
        }
        self.store.took_steps(taken.elements.len());
        Ok(taken)
    }

    /// The session's next command from its client says that the elements it took have reached it.
    /// Returns the position that answers wait for if they tell of that.
    pub(crate) fn settle_popped(&mut self, by: SessionSlot, effects: &mut Effects) -> DependsOn {
        if self.sessions.at(by).popped().is_empty() {
            return DependsOn::NOTHING;
        }
        let popped = self.sessions.at_mut(by).take_popped();
        self.store.took_steps(popped.len());
        for id in popped {
            self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
            self.finish(id, effects);
        }
        let after = self.log.after_open();
        self.log.seal(effects);
        after
    }

    /// Takes an element. Returns the position that an answer waits for if it tells that the element
    /// is gone, or leased.
    fn take_element(&mut self, by: SessionSlot, id: MessageId, effects: &mut Effects) -> DependsOn {
        let message = self.store.message(id);
        let (seen, queue) = (message.after(), message.queue());
        if let Some(span) = self.store.queues.at(queue).policy.pop_lease {
            self.keyspace.move_to_lease(by, id, Some(span), &mut self.sessions, &mut self.store);
            self.sessions.at_mut(by).note_popped(id);
            return seen;
        }
        self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
        seen.and(self.finish(id, effects))
    }
}

impl Engine {
    /// A command on lists waits until one of these gets an element.
    fn wait_to_pop(
        &mut self,
        by: SessionSlot,
        names: Vec<QueueName>,
        asked: Asked,
        wait: Option<Nanos>,
        effects: &mut Effects,
    ) -> Result<Outcome, Refusal> {
        self.stop_waiting(by, effects);
        let queues =
            self.directory.queues_to_wait_in(by, names, &mut self.sessions, &mut self.store)?;
        Ok(self.sessions.wait_in(by, &queues, asked, wait, &mut self.store))
    }

    pub(crate) fn cancel_pop(&mut self, by: SessionSlot) -> Outcome {
        if self.keyspace.end_wait(by, &mut self.store) {
            return self.log.nothing_in_time();
        }
        let key = ConsumerKey { session: by, link: LIST_LINK };
        let Some(popping) = self.directory.end_popping(key, &mut self.sessions, &mut self.store)
        else {
            return Outcome::NOTHING;
        };
        let (_, floor) = popping.into_parts();
        let after = self.log.after_all().and(floor);
        Outcome::reply(after, Reply::TimedOut { link: None })
    }

    /// Makes way for the records of the list command that the first in line at this queue asked
    /// for. False if it has to wait for the next call.
    pub(crate) fn makes_way_for(
        &mut self,
        key: ConsumerKey,
        slot: QueueSlot,
        id: MessageId,
        effects: &mut Effects,
    ) -> bool {
        // The records that follow may need another frame; but a list and its deadline are one.
        self.state_lifetimes(effects);
        let popping = self.sessions.consumer(key).and_then(|consumer| consumer.popping());
        match popping.map(|popping| popping.asked()) {
            Some(Asked::Elements(hand)) => {
                let ready = self.store.queues.at(slot).counts().ready();
                let most = hand.max.min(ready).min(limits::FRAME_RECORDS_MAX as u64) as usize;
                self.log.makes_way(most, most * DELETED_BYTES_MAX, effects)
            }
            // It is refused only where nothing else took the room.
            Some(Asked::Move(_))
                if !self.store.may_relocate(id, &self.log) && !self.log.is_unspent() =>
            {
                self.log.defer();
                false
            }
            Some(Asked::Move(_)) => self.log.makes_way(2, MOVED_BYTES_MAX, effects),
            None => true,
        }
    }

    /// The first in line at this queue is a command on lists, and there is an element: it is
    /// answered. Says which queue has got one by it.
    pub(crate) fn give_elements(
        &mut self,
        key: ConsumerKey,
        slot: QueueSlot,
        effects: &mut Effects,
    ) -> Option<QueueSlot> {
        let popping = self
            .directory
            .end_popping(key, &mut self.sessions, &mut self.store)
            .expect("invariant: it stands in the line");
        let (asked, floor) = popping.into_parts();
        let (outcome, woken) = match asked {
            Asked::Elements(hand) => {
                let queue = self.store.queues.at(slot).name.clone();
                let taken = self.take_elements(key.session, slot, hand, effects);
                let popped = taken.map(|Taken { elements, after }| {
                    let elements = elements.into_vec();
                    Outcome::reply(after, Reply::Popped { queue, elements })
                });
                (popped, None)
            }
            Asked::Move(way) => {
                let to = way.to.clone();
                let by = key.session;
                let moved = self.acting_as(by, |engine| engine.move_from(slot, way, effects));
                (moved, self.store.queues.find(to.as_str()))
            }
        };
        let outcome = outcome.unwrap_or_else(|refusal| self.log.refuse(refusal));
        let (after, reply) = outcome.into_answer().expect("invariant: it is answered");
        self.answer(self.sessions.at(key.session).id(), after.and(floor), reply, effects);
        woken
    }

    /// Ends the wait of a command on lists, if one waits: by time, or because a second one came,
    /// for each is answered once.
    pub(crate) fn stop_waiting(&mut self, by: SessionSlot, effects: &mut Effects) {
        if let Some((after, reply)) = self.cancel_pop(by).into_answer() {
            effects.reply(self.sessions.at(by).id(), after, reply);
        }
    }
}

/// Bytes of a record of a move, and of the record of a list that begins with it.
const MOVED_BYTES_MAX: usize = CHANGED_BYTES_MAX + DEADLINE_BYTES_MAX;
