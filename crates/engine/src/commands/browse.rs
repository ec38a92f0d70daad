//! Commands that look at messages without taking them: browsing, pages, statistics.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::iter;
use core::ops::Bound;

use model::{LinkId, MessageId, MessageState, Nanos, PageEnd, Peek, Refusal, Reply};
use selector::Selector;

use crate::Effects;
use crate::delivery::Interest;
use crate::delivery::browsing::Stop;
use crate::delivery::matching::{Seen, looks_of, steps_of};
use crate::delivery::paging::{
    COST_MAX, COST_OF_SELECTOR, PageQuery, PageRange, Unseen, behind, place,
};
use crate::engine::Engine;
use crate::ids::{ConsumerKey, QueueSlot, SessionSlot};
use crate::outcome::Outcome;
use crate::store::message::Message;
use crate::store::queue::{Queue, whose_place};

impl Engine {
    /// Shows a consumer the next messages, as many as one step may.
    pub(crate) fn browse(&mut self, key: ConsumerKey, effects: &mut Effects) {
        let mut stop = Stop::Tired;
        for _ in 0..self.sessions.looks_at_once(key) {
            match self.look_on(key) {
                Ok(Some(id)) => self.show(key, id, effects),
                Ok(None) => {}
                Err(reason) => {
                    stop = reason;
                    break;
                }
            }
        }
        match stop {
            Stop::Full | Stop::End => {
                self.sessions.end_drain(key, &mut self.store, &self.log, effects)
            }
            Stop::Tired => {}
            Stop::Awaits(id) => {
                let is_paged_out = self.bodies.want(id, &self.store);
                assert!(is_paged_out, "it could not be looked into");
                self.bodies.awaited.browsers.insert(key);
            }
        }
        self.sessions.rest(key, stop, &mut self.store);
    }

    /// Shows new ready messages to the browsers that have seen all others. If the browsers are
    /// many, or their selectors take long, the rest look in steps of their own.
    pub(crate) fn show_to_browsers(&mut self, slot: QueueSlot, effects: &mut Effects) {
        let Some(queue) = self.store.queues.get(slot) else { return };
        if queue.delivery.browsers.is_empty() {
            return;
        }
        let browsers: Vec<_> = queue.delivery.browsers.iter().copied().collect();
        let before = self.store.totals.steps;
        for key in browsers {
            if self.store.totals.steps - before < BROWSING_STEPS_MAX {
                self.browse(key, effects);
            } else {
                self.sessions.rest(key, Stop::Tired, &mut self.store);
            }
        }
    }

    /// Looks at one message more; gives it if the consumer wants it.
    fn look_on(&mut self, key: ConsumerKey) -> Result<Option<MessageId>, Stop> {
        self.store.took_steps(self.sessions.browsed_by(key).map_or(1, steps_of));
        let credit_consumer = self.sessions.credit_consumer_mut(key).ok_or(Stop::End)?;
        if !credit_consumer.has_credit() {
            return Err(Stop::Full);
        }
        let Interest::Browse(browsing) = &mut credit_consumer.interest else {
            return Err(Stop::End);
        };
        let (priority, order) = browsing.next;
        let found = self
            .store
            .queues
            .at(credit_consumer.queue)
            .delivery
            .dispatch
            .ready()
            .first_from(priority, order);
        let (priority, order) = found.ok_or(Stop::End)?;
        let id = whose_place(&self.store.reordered, order);
        let message = self.store.messages.get(id.0).ok_or(Stop::End)?;
        let is_wanted = match (&browsing.selector, self.bodies.sharing.here(message)) {
            (None, _) => true,
            (Some(selector), Some(body)) => {
                Seen::of(message, body, &self.context.formats).matches(selector)
            }
            (Some(_), None) => return Err(Stop::Awaits(id)),
        };
        browsing.next = (priority, order + 1);
        let is_over = message.expires().is_some_and(|at| at <= self.store.latest);
        Ok((is_wanted && !is_over).then_some(id))
    }

    fn show(&mut self, key: ConsumerKey, id: MessageId, effects: &mut Effects) {
        let Some(credit_consumer) = self.sessions.credit_consumer_mut(key) else { return };
        credit_consumer.delivered += 1;
        let (after, reply) = self.delivered(Some(key.link), id);
        effects.reply(self.sessions.at(key.session).id(), after, reply);
    }
}

impl Engine {
    /// Looks at the next messages of a queue, ready ones first, as many as one step may.
    pub(crate) fn seek(&mut self, sought: &PageQuery<'_>) -> PageRange {
        let (page_range, cost) = self.look(sought);
        self.store.took_steps(cost / COST_OF_STEP);
        page_range
    }

    /// The same, and its cost.
    fn look(&self, sought: &PageQuery<'_>) -> (PageRange, usize) {
        let mut page_range = PageRange::default();
        let mut cost = 0;
        let begun = sought.after.map_or(0, |after| section(after.state));
        for &state in SECTIONS.get(begun..).unwrap_or_default() {
            if sought.state.is_some_and(|only| only != state) {
                continue;
            }
            for place in self.places(sought, state) {
                if cost >= COST_MAX || page_range.found.len() >= sought.max {
                    return (page_range, cost);
                }
                let message = self.store.message(place.message);
                let is_its = state != MessageState::Leased || is_held_in(sought.queue, message);
                if is_its
                    && sought.selector.is_some()
                    && self.bodies.sharing.here(message).is_none()
                {
                    let is_first = page_range.next.is_none();
                    page_range.unseen = Some(Unseen { message: place.message, is_first });
                    return (page_range, cost);
                }
                page_range.next = Some(place);
                cost += sought.selector.filter(|_| is_its).map_or(1, cost_of);
                if is_its && self.bodies.is_wanted(sought.selector, message, &self.context) {
                    page_range.found.push((place, place.message));
                }
            }
        }
        page_range.next = None;
        (page_range, cost)
    }

    /// The message that stops a look before it has looked at anything: its body is away.
    pub(crate) fn stopped_at_once(&self, sought: &PageQuery<'_>) -> Option<MessageId> {
        self.look(sought).0.unseen.filter(|unseen| unseen.is_first).map(|unseen| unseen.message)
    }

    /// The places to look at for messages in this state, in their order.
    fn places<'a>(
        &'a self,
        sought: &PageQuery<'_>,
        state: MessageState,
    ) -> Box<dyn Iterator<Item = PageEnd> + 'a> {
        let queue = self.store.queues.at(sought.queue);
        let after = sought.after.filter(|after| after.state == state);
        match state {
            MessageState::Ready => Box::new(self.ready_places(queue, after)),
            MessageState::Leased if !sought.held || queue.index.counts.leased == 0 => {
                Box::new(iter::empty())
            }
            MessageState::Leased => {
                let first = after.map_or(0, |after| after.place.saturating_add(1));
                let all = self.store.messages.iter_from(first);
                Box::new(all.map(move |(number, _)| place(state, number, MessageId(number))))
            }
            MessageState::Delayed => {
                let after = after.map(|after| (Nanos(after.place), after.message));
                let delayed = queue.index.delayed.range((behind(after), Bound::Unbounded));
                Box::new(delayed.map(move |(until, id)| place(state, until.0, *id)))
            }
            MessageState::Buried => {
                let after = after.map(|after| after.place);
                let buried = queue.index.buried.range((behind(after), Bound::Unbounded));
                Box::new(buried.map(move |(order, id)| place(state, *order, *id)))
            }
        }
    }

    fn ready_places<'a>(
        &'a self,
        queue: &'a Queue,
        after: Option<PageEnd>,
    ) -> impl Iterator<Item = PageEnd> + 'a {
        let first = match after {
            Some(after) => {
                queue.delivery.dispatch.ready().first_after(after.priority, after.place as i64)
            }
            None => queue.delivery.dispatch.ready().first(),
        };
        let ready = iter::successors(first, |(priority, order)| {
            queue.delivery.dispatch.ready().first_after(*priority, *order)
        });
        ready.map(|(priority, order)| PageEnd {
            priority,
            ..place(MessageState::Ready, order as u64, self.store.message_of(order))
        })
    }
}

impl Engine {
    pub(crate) fn peek(&self, by: SessionSlot, which: Peek) -> Outcome {
        match which {
            Peek::Message(id) => self.found(Some(id)),
            Peek::Ready(link) => self.peek_queue(by, link, |queue| {
                queue
                    .delivery
                    .dispatch
                    .ready()
                    .first()
                    .map(|(_, order)| self.store.message_of(order))
            }),
            Peek::Delayed(link) => {
                self.peek_queue(by, link, |queue| queue.index.delayed.first().map(|(_, id)| *id))
            }
            Peek::Buried(link) => self.peek_queue(by, link, |queue| {
                queue.index.buried.first_key_value().map(|(_, id)| *id)
            }),
        }
    }

    fn peek_queue(
        &self,
        by: SessionSlot,
        link: LinkId,
        first: impl FnOnce(&Queue) -> Option<MessageId>,
    ) -> Outcome {
        match self.sessions.producer_queue(by, link) {
            Some(slot) => self.found(first(self.store.queues.at(slot))),
            None => Outcome::refused(Refusal::NoSuchLink),
        }
    }

    fn found(&self, id: Option<MessageId>) -> Outcome {
        let message = id.and_then(|id| Some((id, self.store.find(id)?)));
        let Some((id, message)) = message else { return self.log.not_found() };
        let reply = Reply::Found {
            message: id,
            element: Box::new(self.bodies.element_of(id, &self.store, &self.context)),
        };
        Outcome::reply(message.after(), reply)
    }
}

/// Steps after which browsers that look for one message more take turns.
const BROWSING_STEPS_MAX: u64 = 16_384;

fn is_held_in(queue: QueueSlot, message: &Message) -> bool {
    message.queue == queue && message.state().holder().is_some()
}

/// The rank of a state among all messages of a queue.
fn section(state: MessageState) -> usize {
    SECTIONS.iter().position(|other| *other == state).unwrap_or(0)
}

const SECTIONS: [MessageState; 4] =
    [MessageState::Ready, MessageState::Leased, MessageState::Delayed, MessageState::Buried];

/// The cost of a message that is held against a selector.
fn cost_of(selector: &Selector) -> usize {
    COST_OF_SELECTOR * looks_of(selector)
}

/// Passing a message by takes less than a step of the engine.
const COST_OF_STEP: usize = 4;
