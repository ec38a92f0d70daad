//! Queues and topics that go with the session that made them. Messages sent there are in memory
//! only.

use alloc::format;

use model::{QueueName, limits};

use crate::directory::Directory;
use crate::store::MessageStore;

impl Directory {
    /// A name that no destination has. No client can guess it: a peer that knows it was told it. A
    /// peer that still knows an old name reaches no other client by it.
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
