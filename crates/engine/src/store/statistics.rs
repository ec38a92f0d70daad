//! Looking without touching: peeks, statistics, lists.
//!
//! No client sees a state that a crash could undo: an answer about one message waits for that
//! message, one about counts or an absence waits for all changes.

use alloc::boxed::Box;
use alloc::vec::Vec;

use model::{
    MessageId, MessageStatistics, Nanos, QueueName, QueueStatistics, Refusal, Reply, limits,
};

use crate::ids::QueueSlot;
use crate::log::FrameWriter;
use crate::outcome::Outcome;
use crate::sessions::acting::Sight;
use crate::store::MessageStore;

impl MessageStore {
    pub(crate) fn message_statistics(&self, id: MessageId, log: &FrameWriter) -> Outcome {
        let Some(message) = self.find(id) else { return log.not_found() };
        let (state, until) = message.state().shown();
        let counters = message.counters();
        let statistics = MessageStatistics {
            message: id,
            queue: self.queues.at(message.queue()).name.clone(),
            state,
            priority: message.priority(),
            age: self.latest.since(message.created()),
            delay: message.delay(),
            lease: message.lease(),
            time_left: until.since(self.latest),
            delivered: counters.delivered,
            expired: counters.expired,
            released: counters.released,
            buried: counters.buried,
            kicked: counters.kicked,
        };
        let reply = Reply::MessageStatistics(Box::new(statistics));
        Outcome::reply(log.after_all(), reply)
    }

    pub(crate) fn queue_statistics(&self, name: &QueueName, log: &FrameWriter) -> Outcome {
        let Some(slot) = self.queues.find(name.as_str()) else { return log.not_found() };
        let reply = Reply::QueueStatistics(Box::new(self.statistics_of(slot)));
        Outcome::reply(log.after_all(), reply)
    }

    pub(crate) fn broker_statistics(&self, log: &FrameWriter) -> Outcome {
        let reply = Reply::BrokerStatistics(Box::new(self.statistics()));
        Outcome::reply(log.after_all(), reply)
    }

    pub(crate) fn list_queues(&mut self, sight: Sight<'_>, log: &FrameWriter) -> Outcome {
        if !sight.is_whole() && self.queues.count() > limits::LISTED_NAMES_MAX {
            return log.refuse(Refusal::ListTooLong);
        }
        self.took_steps(self.queues.count() * sight.steps());
        let names = self.queues.listed_after(None).map(|(name, _)| name);
        let names = names.filter(|name| sight.sees(name)).cloned().collect();
        Outcome::reply(log.after_all(), Reply::Queues(names))
    }

    /// Looks at those of the page, however many there are, and at no more than
    /// [`limits::PAGE_LOOKS_MAX`] names that the user may not see.
    pub(crate) fn page_of_queues(
        &mut self,
        after: Option<&QueueName>,
        max: usize,
        sight: Sight<'_>,
        log: &FrameWriter,
    ) -> Outcome {
        let (mut queues, mut looked, mut next) = (Vec::new(), 0, None);
        let mut rest = self.queues.listed_after(after).peekable();
        while queues.len() < max
            && looked < max + limits::PAGE_LOOKS_MAX
            && let Some((name, slot)) = rest.next()
        {
            looked += 1;
            next = rest.peek().is_some().then(|| name.clone());
            if sight.sees(name) {
                queues.push(self.statistics_of(slot));
            }
        }
        drop(rest);
        self.took_steps(looked * sight.steps());
        Outcome::reply(log.after_all(), Reply::QueuePage { queues, next })
    }

    fn statistics_of(&self, slot: QueueSlot) -> QueueStatistics {
        let queue = self.queues.at(slot);
        let (messages_total, deleted_total, paused_total) = queue.usage().totals();
        QueueStatistics {
            queue: queue.name.clone(),
            urgent: queue.counts().urgent(),
            ready: queue.counts().ready(),
            leased: queue.counts().leased(),
            delayed: queue.counts().delayed(),
            buried: queue.counts().buried(),
            messages_total,
            producers: queue.producers(),
            consumers: queue.delivery.consumers.len() as u64,
            waiting: queue.waiting_count(),
            deleted_total,
            paused_total,
            pause: queue.delivery.pause.map_or(Nanos::ZERO, |pause| pause.asked),
            body_bytes: queue.body_bytes(),
            blocked_sends: queue.admission.line.len() as u64,
            pause_left: queue
                .delivery
                .pause
                .map_or(Nanos::ZERO, |pause| pause.until.since(self.latest)),
        }
    }
}
