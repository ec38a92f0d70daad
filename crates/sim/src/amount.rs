//! How much is in a queue, and the bounds on it.

use model::{Bound, QueueBounds};

/// Messages and bytes of their bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

impl Amount {
    pub(crate) const fn one(bytes: u64) -> Self {
        Self { messages: 1, bytes }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self { messages: self.messages + other.messages, bytes: self.bytes + other.bytes }
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self {
            messages: self.messages.saturating_sub(other.messages),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    /// The bound that it is beyond.
    pub(crate) fn exceeds(self, bounds: &QueueBounds) -> Option<Bound> {
        match (bounds.messages_max, bounds.bytes_max) {
            (Some(max), _) if self.messages > max => Some(Bound::Messages(max)),
            (_, Some(max)) if self.bytes > max => Some(Bound::Bytes(max)),
            _ => None,
        }
    }
}
