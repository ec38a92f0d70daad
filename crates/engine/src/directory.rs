//! Topics, subscriptions and the policies of queues, by name.

pub(crate) mod administration;
pub(crate) mod own_policies;
pub(crate) mod patterns;
pub(crate) mod policy;
pub(crate) mod privacy;
pub(crate) mod subscription_expiry;
pub(crate) mod subscriptions;
pub(crate) mod targets;
pub(crate) mod temporary;
pub(crate) mod topics;

use model::QueueName;

use crate::directory::own_policies::OwnPolicies;
use crate::directory::subscriptions::Subscriptions;
use crate::directory::topics::Topics;
use crate::{DeadLettersMax, QueuePolicies};

/// Topics, subscriptions and the policies of queues, by name.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) topics: Topics,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) queue_policies: QueuePolicies,
    pub(crate) own_policies: OwnPolicies,
    pub(crate) dead_letter_queue: QueueName,
    pub(crate) dead_letters_max: DeadLettersMax,
    /// Queues and topics that go with their sessions.
    pub(crate) temporaries: usize,
}
