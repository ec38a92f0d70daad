//! Commands on lists that wait for an element.
//!
//! Such a command is a consumer of its own in each of its queues, in one line with all consumers
//! that wait there: the longest wait is served first. It gets its elements once, after the command
//! that brought them has ended, in the same frame if that has room. Then it is a consumer no more.
//! If one command brought elements to several queues, they serve in the order in which they got
//! them. If the log takes no more in one call, the rest is served in the next.

use alloc::boxed::Box;
use alloc::vec::Vec;

use model::{DependsOn, Nanos, QueueName, Refusal};

use crate::Effects;
use crate::delivery::receiving::Wanted;
use crate::directory::Directory;
use crate::ids::{ConsumerKey, LIST_LINK, QueueSlot, SessionSlot};
use crate::keyspace::{Asked, Popping};
use crate::outcome::Outcome;
use crate::sessions::Sessions;
use crate::store::MessageStore;

impl Sessions {
    /// Makes the answers of a command, from the output `first` on, wait for this position too; and
    /// its later answer, if it waits.
    pub(crate) fn raise_answers(
        &mut self,
        by: SessionSlot,
        floor: DependsOn,
        first: usize,
        effects: &mut Effects,
    ) {
        if floor == DependsOn::NOTHING {
            return;
        }
        let key = ConsumerKey { session: by, link: LIST_LINK };
        if let Some(popping) = self.consumer_mut(key).and_then(|it| it.popping_mut()) {
            popping.raise(floor);
        }
        let id = self.at(by).id();
        for output in effects.outputs.iter_mut().skip(first).filter(|it| it.session == id) {
            output.after = output.after.and(floor);
        }
    }

    pub(crate) fn is_popping(&self, key: ConsumerKey) -> bool {
        self.consumer(key).is_some_and(|consumer| consumer.popping().is_some())
    }

    pub(crate) fn wait_in(
        &mut self,
        by: SessionSlot,
        queues: &[QueueSlot],
        asked: Asked,
        wait: Option<Nanos>,
        store: &mut MessageStore,
    ) -> Outcome {
        let key = ConsumerKey { session: by, link: LIST_LINK };
        let popping = Box::new(Popping { asked, floor: DependsOn::NOTHING });
        self.at_mut(by).begin_popping(key.link, queues.iter().copied().collect(), popping);
        for &queue in queues {
            store.queues.at_mut(queue).delivery.consumers.insert(key);
        }
        let lease = None;
        self.begin_wait(key, Wanted { wait, margin: Nanos::ZERO, lease }, store);
        Outcome::NOTHING
    }
}

impl Directory {
    /// The queues of these names, which are made where they are not there.
    pub(crate) fn queues_to_wait_in(
        &mut self,
        by: SessionSlot,
        names: Vec<QueueName>,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> Result<Vec<QueueSlot>, Refusal> {
        let mut queues = Vec::with_capacity(names.len());
        for name in names {
            match self.queue_to_consume(by, name, store) {
                Ok(queue) => queues.push(queue),
                Err(refusal) => {
                    queues
                        .into_iter()
                        .for_each(|queue| self.remove_if_idle(queue, sessions, store));
                    return Err(refusal);
                }
            }
        }
        Ok(queues)
    }

    /// Ends the wait of a command on lists, if this is one.
    pub(crate) fn end_popping(
        &mut self,
        key: ConsumerKey,
        sessions: &mut Sessions,
        store: &mut MessageStore,
    ) -> Option<Box<Popping>> {
        sessions.consumer(key)?.popping()?;
        let was_waiting = sessions.end_wait(key, store);
        assert!(was_waiting, "a command on lists is there while it waits");
        let (popping, watched) = sessions.at_mut(key.session).end_popping(key.link);
        for queue in watched {
            store.end_watch(key, queue, None);
            self.remove_if_idle(queue, sessions, store);
        }
        Some(popping)
    }
}
