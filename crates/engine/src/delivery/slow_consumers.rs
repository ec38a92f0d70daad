//! Consumers of a subscription that holds more than it may are disconnected, where its rules say
//! so: a subscriber that does not read costs no more than that, and slows nobody.
//!
//! A subscription that is not durable ends with its consumers. A durable one stays, for what it
//! keeps was promised to a subscriber who may be away; who comes back may have to catch up with
//! more than the bound, and is disconnected for it only after he has been within it.

use model::{QueueFull, WhenFull};

use crate::store::queue::{Queue, Role};

impl Queue {
    /// Its first consumer comes, and is given the time to take what is there.
    pub(crate) fn let_catch_up(&mut self) {
        if self.delivery.consumers.is_empty() {
            self.admission.catches_up = self.is_beyond_bounds();
        }
    }

    /// The bound that those who consume from it have left it beyond.
    pub(crate) fn cuts_off(&self) -> Option<QueueFull> {
        let bounds = &self.policy.bounds;
        let is_cut = bounds.when_full == WhenFull::Disconnect;
        if !is_cut
            || self.admission.spares
            || self.admission.catches_up
            || self.delivery.consumers.is_empty()
            || !matches!(self.role, Role::Subscription { .. })
        {
            return None;
        }
        let bound = self.held().exceeds(bounds)?;
        Some(QueueFull { queue: self.name.clone(), bound })
    }
}
