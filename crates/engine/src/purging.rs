//! Deleting what waits in a queue, and the queue with it, so many messages a call as fit into one
//! frame.

use model::{QueueName, Refusal, Reply, limits};

use crate::Effects;
use crate::engine::{Engine, Outcome};
use crate::log::Log;
use crate::paging::{PageQuery, Stretch};
use crate::queue::Role;

impl Engine {
    /// Deletes what is found. With what is over the queue may lose what held it up.
    pub(crate) fn purge(&mut self, sought: &PageQuery<'_>, effects: &mut Effects) -> Outcome {
        assert!(!sought.held, "what somebody holds is not purged");
        let stretch = self.seek(sought);
        let count = self.delete_found(&stretch, effects);
        let reply = stretch.reply(count);
        self.log.outcome_of(reply).waking(sought.queue)
    }

    pub(crate) fn delete_queue(&mut self, name: &QueueName, effects: &mut Effects) -> Outcome {
        let Some(slot) = self.store.queues.find(name.as_str()) else { return self.log.not_found() };
        let queue = self.store.queues.at(slot);
        let in_use = !queue.delivery.consumers.is_empty() || queue.index.counts.leased > 0;
        if in_use || queue.role != Role::Named {
            return Outcome::refused(Refusal::QueueInUse);
        }
        let (selector, max) = (None, limits::FRAME_RECORDS_MAX);
        let sought =
            PageQuery { queue: slot, state: None, held: false, selector, after: None, max };
        let stretch = self.seek(&sought);
        let count = self.delete_found(&stretch, effects);
        let reply = match stretch.reply(count) {
            Reply::Count(_) => Reply::Done,
            Reply::CountUntil { count, .. } => Reply::CountSoFar(count),
            other => other,
        };
        self.log.outcome_of(reply)
    }

    /// Deletes these as far as the frame takes it: so many.
    fn delete_found(&mut self, stretch: &Stretch, effects: &mut Effects) -> usize {
        let mut count = 0;
        for (_, id) in &stretch.found {
            if !self.log.takes_change() {
                break;
            }
            self.leave(*id);
            self.finish(*id, effects);
            count += 1;
        }
        count
    }
}

impl Log {
    /// The answer to what has changed all that it could.
    pub(crate) fn outcome_of(&self, reply: Reply) -> Outcome {
        match reply {
            Reply::Refused(refusal) => Outcome::refused(refusal),
            reply => Outcome::reply(self.after_all(), reply),
        }
    }
}
