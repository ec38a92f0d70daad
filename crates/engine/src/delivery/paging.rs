//! The messages of a queue from one place to the next, looked at without touching them.
//!
//! A place is a [`PageEnd`]: the state, and the key that orders the messages of that state. So a
//! client that goes on from a place later meets no message twice and skips none that stayed,
//! whichever came and went meanwhile. Held messages are in no order of their queue: they are looked
//! for among all messages, by their numbers.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::iter;
use core::ops::Bound;

use model::{MessageId, MessageState, Nanos, PageEnd, Refusal, Reply, limits};
use selector::Selector;

use crate::bodies::Bodies;
use crate::delivery::matching::{Seen, looks_of};
use crate::ids::QueueSlot;
use crate::store::MessageStore;
use crate::store::message::Message;
use crate::store::queue::Queue;

/// Which messages are looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageQuery<'s> {
    pub(crate) queue: QueueSlot,
    /// Only those in this state; `None`: in any.
    pub(crate) state: Option<MessageState>,
    /// Also those that a session holds.
    pub(crate) held: bool,
    pub(crate) selector: Option<&'s Selector>,
    /// Only those behind this place.
    pub(crate) after: Option<PageEnd>,
    /// The most to find.
    pub(crate) max: usize,
}

/// The findings of one step.
#[derive(Debug, Default)]
pub(crate) struct PageRange {
    /// Each with its place.
    found: Vec<(PageEnd, MessageId)>,
    /// The end of the step; `None`: there is nothing behind it.
    next: Option<PageEnd>,
    /// The body that is away and ended the step, if one did.
    unseen: Option<Unseen>,
}

/// A message that was to be looked into while its body was away.
#[derive(Clone, Copy, Debug)]
struct Unseen {
    message: MessageId,
    /// Nothing was looked at before.
    is_first: bool,
}

impl PageRange {
    /// This one message, or nothing.
    pub(crate) fn of(found: Option<(PageEnd, MessageId)>) -> Self {
        Self { found: found.into_iter().collect(), ..Self::default() }
    }

    pub(crate) fn found(&self) -> &[(PageEnd, MessageId)] {
        &self.found
    }

    pub(crate) const fn next(&self) -> Option<PageEnd> {
        self.next
    }

    /// The answer once the first so many of these have been changed.
    pub(crate) fn reply(&self, count: usize) -> Reply {
        let last = count.checked_sub(1).and_then(|last| self.found.get(last));
        let next = match last {
            _ if count == self.found.len() => self.next,
            Some((place, _)) => Some(*place),
            // Not even one fits, which a log that is not stalled has room for.
            None => return Reply::Refused(Refusal::StoreFull),
        };
        let count = count as u64;
        next.map_or(Reply::Count(count), |next| Reply::CountUntil { count, next })
    }
}

impl Bodies {
    /// Looks at the next messages of a queue, ready ones first, as many as one step may.
    pub(crate) fn seek(&self, sought: &PageQuery<'_>, store: &mut MessageStore) -> PageRange {
        let (page_range, cost) = self.look(sought, store);
        store.took_steps(cost / COST_OF_STEP);
        page_range
    }

    /// The same, and its cost.
    fn look(&self, sought: &PageQuery<'_>, store: &MessageStore) -> (PageRange, usize) {
        let mut page_range = PageRange::default();
        let mut cost = 0;
        let begun = sought.after.map_or(0, |after| section(after.state));
        for &state in SECTIONS.get(begun..).unwrap_or_default() {
            if sought.state.is_some_and(|only| only != state) {
                continue;
            }
            for place in store.places(sought, state) {
                if cost >= COST_MAX || page_range.found.len() >= sought.max {
                    return (page_range, cost);
                }
                let message = store.message(place.message);
                let is_its = state != MessageState::Leased || is_held_in(sought.queue, message);
                if is_its && sought.selector.is_some() && self.here(message).is_none() {
                    let is_first = page_range.next.is_none();
                    page_range.unseen = Some(Unseen { message: place.message, is_first });
                    return (page_range, cost);
                }
                page_range.next = Some(place);
                cost += sought.selector.filter(|_| is_its).map_or(1, cost_of);
                if is_its && self.is_wanted(sought.selector, message) {
                    page_range.found.push((place, place.message));
                }
            }
        }
        page_range.next = None;
        (page_range, cost)
    }

    /// The message that stops a look before it has looked at anything: its body is away.
    pub(crate) fn stopped_at_once(
        &self,
        sought: &PageQuery<'_>,
        store: &MessageStore,
    ) -> Option<MessageId> {
        self.look(sought, store)
            .0
            .unseen
            .filter(|unseen| unseen.is_first)
            .map(|unseen| unseen.message)
    }

    pub(crate) fn is_wanted(&self, selector: Option<&Selector>, message: &Message) -> bool {
        selector.is_none_or(|selector| {
            let body = self.here(message);
            let body = body.expect("invariant: who looks into a body awaits it");
            Seen::of(message, body, self.formats()).matches(selector)
        })
    }
}

impl MessageStore {
    /// The places to look at for messages in this state, in their order.
    fn places<'a>(
        &'a self,
        sought: &PageQuery<'_>,
        state: MessageState,
    ) -> Box<dyn Iterator<Item = PageEnd> + 'a> {
        let queue = self.queues.at(sought.queue);
        let after = sought.after.filter(|after| after.state == state);
        match state {
            MessageState::Ready => Box::new(self.ready_places(queue, after)),
            MessageState::Leased if !sought.held || queue.counts().leased() == 0 => {
                Box::new(iter::empty())
            }
            MessageState::Leased => {
                let first = after.map_or(0, |after| after.place.saturating_add(1));
                let all = self.messages.iter_from(first);
                Box::new(all.map(move |(number, _)| place(state, number, MessageId(number))))
            }
            MessageState::Delayed => {
                let after = after.map(|after| (Nanos(after.place), after.message));
                let delayed = queue.delayed_after(behind(after));
                Box::new(delayed.map(move |(until, id)| place(state, until.0, id)))
            }
            MessageState::Buried => {
                let after = after.map(|after| after.place);
                let buried = queue.buried_after(behind(after));
                Box::new(buried.map(move |(order, id)| place(state, order, id)))
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
            ..place(MessageState::Ready, order as u64, self.message_of(order))
        })
    }
}

fn behind<T>(after: Option<T>) -> Bound<T> {
    after.map_or(Bound::Unbounded, Bound::Excluded)
}

fn place(state: MessageState, place: u64, message: MessageId) -> PageEnd {
    PageEnd { state, priority: 0, place, message }
}

/// Messages passed by in one walk, where each that is held against a selector counts for several:
/// so many of these as one step of a consumer that selects.
const COST_MAX: usize = limits::SCAN_MESSAGES_MAX * COST_OF_SELECTOR;

const COST_OF_SELECTOR: usize = 16;

const _: () = assert!(limits::FRAME_RECORDS_MAX <= COST_MAX, "what fits a frame is found at once");

fn is_held_in(queue: QueueSlot, message: &Message) -> bool {
    message.queue() == queue && message.state().holder().is_some()
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
