//! Disconnects the consumers of a subscription that holds more than it may, if its rules say so. A
//! subscriber that does not read costs no more than that, and slows no client.
//!
//! A subscription that is not durable ends with its consumers. A durable one stays: its messages
//! were promised to a subscriber that may be away. A subscriber that comes back may have to catch
//! up with more than the bound. It is disconnected only after it has been within the bound.

use model::{QueueFull, WhenFull};

use crate::store::queue::{Queue, Role};

impl Queue {
    /// Its first consumer comes, and is given the time to take the messages that are there.
    pub(crate) fn let_catch_up(&mut self) {
        if self.delivery.consumers.is_empty() {
            self.admission.catches_up = self.is_beyond_bounds();
        }
    }

    /// The bound that the queue exceeds, if its consumers are to be disconnected for it.
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
