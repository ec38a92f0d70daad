//! The invariants of keys: values, lists, and when they go.

use crate::keyspace::{Keyspace, snapshot_bytes};
use crate::store::MessageStore;
use crate::store::queue::{ListLifetime, Queue, Role};

impl MessageStore {
    /// The bytes that the lifetimes of lists may take in a snapshot.
    pub(crate) fn snapshot_bytes_of_lifetimes(&self) -> u64 {
        let queues = self.queues.iter().map(|(_, queue)| queue);
        queues.map(|queue| snapshot_bytes(&queue.name, queue.lifetime())).sum()
    }
}

impl Keyspace {
    pub(crate) fn check_lifetime(&self, queue: &Queue) {
        let (name, lifetime) = (&queue.name, queue.lifetime());
        assert!(lifetime.at.is_none() || queue.is_list(), "{name} is a list while it is to go");
        let has_expired_members = queue.counts().expired_members() > 0;
        assert_eq!(
            lifetime.over.is_some(),
            has_expired_members,
            "{name} is over while some of it is left"
        );
        let is_plain = lifetime == ListLifetime::default() || queue.role == Role::Named;
        assert!(is_plain, "only a list with a name has a lifetime");
        let is_known = lifetime == ListLifetime::default() || self.limits(name);
        assert!(is_known, "the lifetime of {name} is known");
    }
}
