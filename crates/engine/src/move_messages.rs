//! Messages that go from one queue to another, as they are, without being stored again.

use model::{MessageId, PageEnd, QueueName, Refusal, Reply, limits};
use records::CHANGED_BYTES_MAX;

use crate::Effects;
use crate::engine::{Bodies, Context, Directory, Engine, MessageStore, Outcome};
use crate::log::Log;
use crate::message::State;
use crate::paging::{PageQuery, Stretch};
use crate::queue::QueueSlot;
use crate::targets::is_reserved;
use crate::woken::Woken;

/// What an operator asks to move.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    /// Where to; `None`: each dead letter to the queue or the subscription it is from.
    pub(crate) to: Option<QueueName>,
    /// Only this one.
    pub(crate) message: Option<MessageId>,
    /// Only those that came to be there before this message's number.
    pub(crate) before: MessageId,
    /// The most to move.
    pub(crate) max: u64,
}

impl Engine {
    /// Puts a message that is in no index into a queue, where it is ready at this place among those
    /// of its priority. A queue that it has left may go.
    pub(crate) fn relocate(
        &mut self,
        id: MessageId,
        to: QueueSlot,
        order: i64,
        effects: &mut Effects,
    ) {
        let from = self.store.living(id).queue;
        self.store.reorder(id, order);
        self.bodies.change_queue(id, to, &mut self.store);
        self.store.amend(id, |message| message.history_mut().moved = true);
        self.store.queues.at_mut(to).came_one();
        self.enter(id, State::Ready);
        self.bodies.journal_change(id, &mut self.store, &mut self.log, effects);
        if self.store.living(id).is_journalled() {
            self.log.room = self.log.room.saturating_sub(RELOCATION_BYTES_MAX);
        }
        self.admission.drained_one(from, &mut self.store);
        self.remove_if_idle(from);
    }

    /// Moves messages that nobody holds, so many as fit into one frame.
    pub(crate) fn move_messages(
        &mut self,
        sought: &PageQuery<'_>,
        transfer: &Transfer,
        effects: &mut Effects,
    ) -> Outcome {
        assert!(!sought.held, "what somebody holds stays");
        if transfer.to.as_ref().is_some_and(is_reserved) {
            return Outcome::refused(Refusal::NoSuchDestination);
        }
        let stretch = match transfer.message {
            Some(id) => self.bodies.stretch_of(sought, id, &self.store, &self.context),
            None => self.seek(sought),
        };
        if transfer.message.is_some() && stretch.found.is_empty() {
            return self.log.not_found();
        }
        let mut woken = Woken::of(sought.queue);
        let reply = self.move_found(&stretch, transfer, &mut woken, effects);
        self.log.outcome_of(reply).waking_just(woken)
    }

    fn move_found(
        &mut self,
        stretch: &Stretch,
        transfer: &Transfer,
        woken: &mut Woken,
        effects: &mut Effects,
    ) -> Reply {
        let mut count = 0;
        let mut last = None;
        for (place, id) in &stretch.found {
            if count == transfer.max {
                break;
            }
            match self.move_one(*id, transfer, effects) {
                Ok(to) => {
                    count += u64::from(to.is_some());
                    woken.extend(to);
                }
                Err(refusal) => {
                    let until = |next| Reply::CountUntil { count, next };
                    return last.filter(|_| count > 0).map_or(Reply::Refused(refusal), until);
                }
            }
            last = Some(*place);
        }
        let next = stretch.next.filter(|_| count < transfer.max);
        next.map_or(Reply::Count(count), |next| Reply::CountUntil { count, next })
    }

    /// Moves one message, unless it stays. Says where it is now.
    fn move_one(
        &mut self,
        id: MessageId,
        transfer: &Transfer,
        effects: &mut Effects,
    ) -> Result<Option<QueueSlot>, Refusal> {
        let message = self.store.living(id);
        let end = i64::try_from(transfer.before.0).unwrap_or(i64::MAX);
        let came_before = id < transfer.before && message.order(id) < end;
        let to = transfer
            .to
            .clone()
            .map(MoveTarget::Queue)
            .or_else(|| self.directory.origin_of(id, &self.store));
        let Some(to) = to.filter(|_| came_before && !self.store.is_over(id)) else {
            return Ok(None);
        };
        if !self.log.takes_change() || !self.store.may_relocate(id, &self.log) {
            return Err(Refusal::StoreFull);
        }
        let slot = match to {
            MoveTarget::Queue(name) => self.directory.find_or_create(name, &mut self.store)?,
            MoveTarget::Subscription(slot) => slot,
        };
        let order = self.store.last_place();
        self.leave(id);
        self.store.amend(id, |message| message.revive());
        self.relocate(id, slot, order, effects);
        Ok(Some(slot))
    }
}

impl MessageStore {
    /// Whether there is room to say that a message is in another queue: it is to be said again with
    /// the message when that is stored anew.
    pub(crate) fn may_relocate(&self, id: MessageId, log: &Log) -> bool {
        !self.living(id).is_journalled() || log.room >= RELOCATION_BYTES_MAX
    }
}

impl Directory {
    /// Where a dead letter is from. What a subscription had that is gone is nobody else's.
    fn origin_of(&self, id: MessageId, store: &MessageStore) -> Option<MoveTarget> {
        let dead = store.living(id).dead()?;
        let Some(number) = dead.subscription else {
            return (!is_reserved(&dead.from)).then(|| MoveTarget::Queue(dead.from.clone()));
        };
        Some(MoveTarget::Subscription(self.subscriptions.get(number)?.queue))
    }
}

impl Bodies {
    /// This one message, if it is among those that are sought.
    fn stretch_of(
        &self,
        sought: &PageQuery<'_>,
        id: MessageId,
        store: &MessageStore,
        context: &Context,
    ) -> Stretch {
        let found = store.find(id).filter(|message| {
            let is_there = message.queue == sought.queue && message.state().holder().is_none();
            is_there && self.is_wanted(sought.selector, message, context)
        });
        let place = found.map(|message| PageEnd {
            state: message.state().shown().0,
            priority: message.priority,
            place: message.order(id) as u64,
            message: id,
        });
        Stretch::of(place.map(|place| (place, id)))
    }
}

/// Where a message is moved to.
enum MoveTarget {
    Queue(QueueName),
    Subscription(QueueSlot),
}

/// A Changed record, and as much again for the record of the message, which grows by that.
pub(crate) const RELOCATION_BYTES_MAX: u64 = 2 * CHANGED_BYTES_MAX as u64;

const _: () = assert!(RELOCATION_BYTES_MAX < limits::SETTLED_BYTES_ALWAYS as u64);
