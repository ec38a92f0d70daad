//! Queues and topics that go with the session that made them. What is sent there is in memory
//! only.

use alloc::format;

use model::{QueueName, limits};

use crate::directory::Directory;
use crate::store::MessageStore;

impl Directory {
    /// A name that no destination has. Nobody can guess it: a peer that knows it was told it, and
    /// one that still knows an old name reaches nobody else by it.
    pub(crate) fn temporary_name(
        &self,
        topic: bool,
        mut secret: u128,
        store: &MessageStore,
    ) -> QueueName {
        let kind = if topic { "topic" } else { "queue" };
        loop {
            let name = format!("{}{kind}/{secret:032x}", limits::TEMPORARY_PREFIX);
            let name = QueueName::new(&name).expect("invariant: the name is short and plain");
            let queue = store.queues.find(name.as_str());
            if queue.is_none() && self.topics.find(name.as_str()).is_none() {
                return name;
            }
            secret = secret.wrapping_add(1);
        }
    }
}
