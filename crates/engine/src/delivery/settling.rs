//! Rules of redelivery, leases, kicks and pauses, for the commands that settle.

use model::{DependsOn, MessageId, Nanos, QueueName, Reply};

use crate::ids::{QueueSlot, SessionSlot};
use crate::log::FrameWriter;
use crate::outcome::Outcome;
use crate::sessions::Sessions;
use crate::store::MessageStore;
use crate::store::queue::Pause;
use crate::store::timers::Timer;

impl MessageStore {
    /// How long a message is hidden before its next delivery, as the rules of its queue say.
    pub(crate) fn redelivery_delay(&self, id: MessageId) -> Option<Nanos> {
        let message = self.message(id);
        let rules = &self.queues.at(message.queue()).policy.redelivery;
        // Most queues have none.
        rules.delay?;
        rules.delay_of(id, message.counters().failed)
    }

    pub(crate) fn next_to_kick(&self, slot: QueueSlot, from_buried: bool) -> Option<MessageId> {
        let queue = self.queues.at(slot);
        if from_buried { queue.first_buried() } else { queue.first_delayed().map(|(_, id)| id) }
    }

    /// Not journalled: a restart ends all pauses.
    pub(crate) fn pause(
        &mut self,
        name: &QueueName,
        duration: Nanos,
        log: &FrameWriter,
    ) -> Outcome {
        let Some(slot) = self.queues.find(name.as_str()) else { return log.not_found() };
        let until = self.latest + duration;
        let queue = self.queues.at_mut(slot);
        let before = queue.pause_ends();
        let paused = duration != Nanos::ZERO;
        queue.delivery.pause = paused.then_some(Pause { asked: duration, until });
        queue.count_paused();
        self.timers.change(Timer::Pause(slot), before, queue.pause_ends());
        Outcome::reply(DependsOn::NOTHING, Reply::Done).waking(slot)
    }

    /// The queue's pause ends, by time.
    pub(crate) fn end_pause(&mut self, slot: QueueSlot) -> QueueSlot {
        let queue = self.queues.at_mut(slot);
        self.timers.change(Timer::Pause(slot), queue.pause_ends(), None);
        queue.delivery.pause = None;
        slot
    }
}

impl FrameWriter {
    /// Conservative, for it may reflect any change so far.
    pub(crate) fn not_found(&self) -> Outcome {
        Outcome::reply(self.after_all(), Reply::NotFound)
    }
}

impl Sessions {
    /// The queue of a message that this session leases or holds, and has not settled in a
    /// transaction.
    pub(crate) fn held_queue(
        &self,
        by: SessionSlot,
        id: MessageId,
        store: &MessageStore,
    ) -> Option<QueueSlot> {
        let message = store.messages.get(id.0)?;
        let is_held = message.state().holder() == Some(by);
        let is_settled = || self.at(by).settling().contains(&id);
        (is_held && !is_settled()).then_some(message.queue())
    }
}
