//! What an operator chooses: the store's policy, and rules of single queues.

use alloc::collections::BTreeMap;

use model::{Formats, QueueName, StorePolicy};

/// What an engine is made with; fixed for its life.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// What "persistent" means here.
    pub policy: StorePolicy,
    /// The rules of queues.
    pub queue_policies: QueuePolicies,
    /// How to look into bodies.
    pub formats: Formats,
}

impl EngineOptions {
    /// No queue has rules of its own, and bodies are raw.
    #[must_use]
    pub fn new(policy: StorePolicy) -> Self {
        Self { policy, queue_policies: QueuePolicies::default(), formats: Formats::RAW }
    }
}

/// The rules of every queue: some by name, one for all others.
#[derive(Clone, Debug, Default)]
pub struct QueuePolicies {
    /// For queues that are not named.
    pub default: QueuePolicy,
    /// For these queues, whole: nothing is inherited from `default`.
    pub named: BTreeMap<QueueName, QueuePolicy>,
}

/// The rules of one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuePolicy {
    /// Where a released message lines up.
    pub release_order: ReleaseOrder,
}

/// Where a released message lines up among those of its priority. A lease that ends by time or
/// with its session is no release: such a message always keeps its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReleaseOrder {
    /// Where it was: in front of all that were stored after it..
    #[default]
    Front,
    /// Behind all that are ready now, so that workers who only release visit every message.
    Back,
}

impl QueuePolicies {
    /// The rules of this queue.
    #[must_use]
    pub fn of(&self, queue: &QueueName) -> QueuePolicy {
        self.named.get(queue).copied().unwrap_or(self.default)
    }
}
