//! The invariants of keys: values, lists, and when they go.

use crate::engine::{Engine, MessageStore};
use crate::keys::{Keyspace, snapshot_bytes};
use crate::queue::{ListLifetime, Queue, Role};
use crate::timers::Timer;

impl Engine {
    /// Gives the number of timers that keys have beside those of queues.
    pub(crate) fn check_keys(&self) -> usize {
        self.keyspace.values.check();
        for (_, queue) in self.store.queues.iter() {
            self.keyspace.check_lifetime(queue);
        }
        let queues = || self.store.queues.iter().map(|(_, queue)| queue);
        let shown =
            queues().filter(|queue| queue.is_list() && !self.keyspace.values.holds(&queue.name));
        assert_eq!(shown.count() as u64, self.keyspace.lists, "lists that no value hides");
        let limited = queues().filter(|queue| queue.index.lifetime != ListLifetime::default());
        assert_eq!(limited.count(), self.keyspace.limited_count(), "lists with a lifetime");
        let first = self.keyspace.values.first_deadline();
        if let Some((at, _)) = first {
            assert!(self.store.timers.contains(*at, Timer::Values), "values go by time");
        }
        usize::from(first.is_some())
    }
}

impl MessageStore {
    /// What the lifetimes of lists may take in a snapshot.
    pub(crate) fn snapshot_bytes_of_lifetimes(&self) -> u64 {
        let queues = self.queues.iter().map(|(_, queue)| queue);
        queues.map(|queue| snapshot_bytes(&queue.name, queue.index.lifetime)).sum()
    }
}

impl Keyspace {
    fn check_lifetime(&self, queue: &Queue) {
        let (name, lifetime) = (&queue.name, queue.index.lifetime);
        assert_eq!(queue.index.counts.doomed, queue.index.doomed.count(), "doomed in {name}");
        assert!(lifetime.at.is_none() || queue.is_list(), "{name} is a list while it is to go");
        let is_doomed = queue.index.counts.doomed > 0;
        assert_eq!(lifetime.over.is_some(), is_doomed, "{name} is over while some of it is left");
        let is_plain = lifetime == ListLifetime::default() || queue.role == Role::Named;
        assert!(is_plain, "only a list with a name has a lifetime");
        let is_known = lifetime == ListLifetime::default() || self.limits(name);
        assert!(is_known, "the lifetime of {name} is known");
    }
}
