//! Subscribers that the engine disconnects for unread messages.

use model::{Nanos, QueueFull, WhenFull};

use super::Oracle;
use crate::history::destination;
use crate::registration::is_subscription;

impl Oracle {
    /// A consumer was disconnected for this.
    ///
    /// # Panics
    /// When there was no reason.
    pub fn cut_off(&mut self, now: Nanos, client: u64, link: u32, full: &QueueFull) {
        self.pass(now);
        let consumer = self.consumers.get(&(client, link));
        let queue = consumer.unwrap_or_else(|| panic!("{client} has no {link}")).queue.clone();
        assert_eq!(full.queue.as_str(), destination(&queue), "what {client} consumes from");
        let bounds = self.places.rules.bounds_of(&queue);
        let exceeded = self.held(&queue).exceeds(&bounds);
        assert_eq!(exceeded, Some(full.bound), "{client} is cut off from {queue}");
        assert!(self.is_cut(&queue), "{client} may go on with {queue}");
        self.places.counted.cut_off += 1;
        self.close_consumer(client, link);
    }

    /// Asserts that no client goes on to consume from a subscription that must disconnect it for
    /// the messages that it holds.
    ///
    /// # Panics When a client does.
    pub fn assert_cut_off(&self) {
        let mut queues = self.consumers.values().map(|consumer| &consumer.queue);
        let spared = queues.find(|queue| self.is_cut(queue));
        assert_eq!(spared, None, "who consumes from it is not disconnected");
    }

    /// A subscriber comes: messages that are there are no reason to disconnect it.
    pub(super) fn let_catch_up(&mut self, queue: &str) {
        if !self.has_consumers(queue) {
            self.places.catching_up.remove(queue);
            if self.is_beyond(queue) {
                self.places.catching_up.insert(queue.into());
            }
        }
    }

    /// A message has left a queue: it may hold no more than it may by now.
    pub(super) fn drained_one(&mut self, queue: &str) {
        if self.places.catching_up.contains(queue) && !self.is_beyond(queue) {
            self.places.catching_up.remove(queue);
        }
    }

    fn is_cut(&self, queue: &str) -> bool {
        let disconnects = self.places.rules.bounds_of(queue).when_full == WhenFull::Disconnect;
        let is_let = self.places.spared.contains(queue) || self.places.catching_up.contains(queue);
        is_subscription(queue) && disconnects && !is_let && self.is_beyond(queue)
    }
}
