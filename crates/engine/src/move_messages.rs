//! Messages that go from one queue to another, as they are, without being stored again.

use model::{MessageId, PageEnd, QueueName, Refusal, Reply, limits};
use records::CHANGED_BYTES_MAX;

use crate::Effects;
use crate::engine::{Engine, Outcome};
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
        let from = self.living(id).queue;
        self.reorder(id, order);
        self.change_queue(id, to);
        self.amend(id, |message| message.history_mut().moved = true);
        self.store.queues.at_mut(to).came_one();
        self.enter(id, State::Ready);
        self.journal_change(id, effects);
        if self.living(id).is_journalled() {
            self.log.room = self.log.room.saturating_sub(RELOCATION_BYTES_MAX);
        }
        self.drained_one(from);
        self.remove_if_idle(from);
    }

    /// Whether there is room to say that a message is in another queue: it is to be said again with
    /// the message when that is stored anew.
    pub(crate) fn may_relocate(&self, id: MessageId) -> bool {
        !self.living(id).is_journalled() || self.log.room >= RELOCATION_BYTES_MAX
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
            Some(id) => self.stretch_of(sought, id),
            None => self.seek(sought),
        };
        if transfer.message.is_some() && stretch.found.is_empty() {
            return self.not_found();
        }
        let mut woken = Woken::of(sought.queue);
        let reply = self.move_found(&stretch, transfer, &mut woken, effects);
        self.outcome_of(reply).waking_just(woken)
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
        let message = self.living(id);
        let end = i64::try_from(transfer.before.0).unwrap_or(i64::MAX);
        let came_before = id < transfer.before && message.order(id) < end;
        let to = transfer.to.clone().map(MoveTarget::Queue).or_else(|| self.origin_of(id));
        let Some(to) = to.filter(|_| came_before && !self.is_over(id)) else { return Ok(None) };
        if !self.log.takes_change() || !self.may_relocate(id) {
            return Err(Refusal::StoreFull);
        }
        let slot = match to {
            MoveTarget::Queue(name) => self.find_or_create(name)?,
            MoveTarget::Subscription(slot) => slot,
        };
        let order = self.last_place();
        self.leave(id);
        self.amend(id, |message| message.revive());
        self.relocate(id, slot, order, effects);
        Ok(Some(slot))
    }

    /// Where a dead letter is from. What a subscription had that is gone is nobody else's.
    fn origin_of(&self, id: MessageId) -> Option<MoveTarget> {
        let dead = self.living(id).dead()?;
        let Some(number) = dead.subscription else {
            return (!is_reserved(&dead.from)).then(|| MoveTarget::Queue(dead.from.clone()));
        };
        Some(MoveTarget::Subscription(self.directory.subscriptions.get(number)?.queue))
    }

    /// This one message, if it is among those that are sought.
    fn stretch_of(&self, sought: &PageQuery<'_>, id: MessageId) -> Stretch {
        let found = self.find(id).filter(|message| {
            let is_there = message.queue == sought.queue && message.state().holder().is_none();
            is_there && self.is_wanted(sought.selector, message)
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
