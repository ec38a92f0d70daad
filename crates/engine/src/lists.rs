//! Queues as lists: their ready messages in the order of delivery, which commands add to and take
//! from at both ends, and look at and change by their places.
//!
//! Ready messages are ordered by (priority, order). What is put at the tail is behind the last one:
//! it has that one's priority, where that is less urgent than the default, and its own number as
//! its order. What is put at the head has the first one's priority, where that is more urgent, and
//! an order below zero, in front of all that were given out before.
//!
//! A message whose time is over is no element, though it may not have gone yet.

mod editing;
mod places;
mod popping;
mod pushing;
pub(crate) mod runs;
mod waiting;

use model::{
    DependsOn, Element, End, ListCommand, MessageId, OneOrMany, Payload, QueueName, Refusal, Reply,
};

use crate::Effects;
use crate::engine::{Bodies, Context, Engine, MessageStore, Outcome};
use crate::keys::Keyspace;
use crate::log::Log;
use crate::message::State;
use crate::queue::{QueueSlot, Role};
use crate::session::SessionSlot;

use editing::Insertion;
use places::Search;
pub(crate) use places::Span;
pub(crate) use popping::{MoveArgs, PopArgs, says_arrived};
pub(crate) use pushing::Push;
pub(crate) use runs::as_run;
pub(crate) use waiting::{Popping, is_for_list_link};

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
            ListCommand::Length { queue } => self.length(by, &queue),
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

    fn length(&mut self, by: SessionSlot, name: &QueueName) -> Result<Outcome, Refusal> {
        let count = match self.list_of(by, name)? {
            Some(slot) => self.elements_count(slot),
            None => 0,
        };
        Ok(self.log.counted(count))
    }

    /// The queue of that name for a command that takes or looks at its elements. What is in a
    /// temporary one is for the session that made it.
    pub(crate) fn list_of(
        &mut self,
        by: SessionSlot,
        name: &QueueName,
    ) -> Result<Option<QueueSlot>, Refusal> {
        self.keyspace.check_is_list(name, &self.store)?;
        let Some(slot) = self.store.queues.find(name.as_str()) else { return Ok(None) };
        self.end_list_if_over(slot);
        match self.store.queues.at(slot).role {
            Role::Temporary(owner) if owner != by => Err(Refusal::OfAnotherSession),
            _ => Ok(Some(slot)),
        }
    }

    /// How many elements there are.
    pub(crate) fn elements_count(&mut self, slot: QueueSlot) -> u64 {
        self.end_list_if_over(slot);
        let queue = self.store.queues.at(slot);
        let ready = queue.index.counts.ready;
        if !queue.is_expiring(self.store.latest) {
            return ready;
        }
        let over = queue.index.expiring.range(..=(self.store.latest, MessageId(u64::MAX)));
        let is_ready =
            |id| self.store.living(id).state() == State::Ready && !self.store.is_doomed(id);
        let ready_over = over.clone().filter(|(_, id)| is_ready(*id));
        let (looked, ready_over) = (over.count(), ready_over.count());
        self.store.took_steps(looked);
        ready - ready_over as u64
    }
}

impl Keyspace {
    /// Whether the name is not that of a value.
    pub(crate) fn check_is_list(
        &self,
        name: &QueueName,
        store: &MessageStore,
    ) -> Result<(), Refusal> {
        if self.is_value(name, store) { Err(Refusal::WrongKind) } else { Ok(()) }
    }
}

impl MessageStore {
    /// The elements from this one on, away from that end.
    pub(crate) fn elements_from(
        &self,
        slot: QueueSlot,
        end: End,
        first: Option<(u32, i64)>,
    ) -> impl Iterator<Item = MessageId> {
        let queue = self.queues.at(slot);
        let is_expiring = queue.is_expiring(self.latest);
        core::iter::successors(first, move |at| queue.delivery.dispatch.ready().next_from(end, *at))
            .map(|(_, order)| self.message_of(order))
            .filter(move |id| !is_expiring || !self.is_over(*id))
    }

    /// All elements from an end on.
    pub(crate) fn elements(&self, slot: QueueSlot, end: End) -> impl Iterator<Item = MessageId> {
        self.elements_from(slot, end, self.queues.at(slot).delivery.dispatch.ready().at_end(end))
    }
}

impl Bodies {
    pub(crate) fn element_of(
        &self,
        id: MessageId,
        store: &MessageStore,
        context: &Context,
    ) -> Element {
        let message = store.living(id);
        let (format, payload) = (message.format, Payload::by(&context.formats));
        Element { format, payload, body: self.body_of(id, message, store) }
    }
}

impl Log {
    /// A count reflects all that was changed.
    pub(crate) fn counted(&self, count: u64) -> Outcome {
        Outcome::reply(self.after_all(), Reply::Count(count))
    }

    pub(crate) fn nothing_in_time(&self) -> Outcome {
        Outcome::reply(self.after_all(), Reply::TimedOut { link: None })
    }
}

/// Elements on their way to a session.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) elements: OneOrMany<Element>,
    pub(crate) after: DependsOn,
}
