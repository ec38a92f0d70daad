//! Commands on lists that wait for an element.
//!
//! Such a command is a consumer of its own in each of its queues, in one line with all consumers
//! that wait there: the longest wait is served first. It gets its elements once, after the command
//! that brought them has ended, in the same frame if that has room. Then it is a consumer no more.
//! If one command brought elements to several queues, they serve in the order in which they got
//! them. If the log takes no more in one call, the rest is served in the next.

use alloc::boxed::Box;

use model::{DependsOn, Nanos};

use crate::Effects;
use crate::delivery::receiving::Wanted;
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
