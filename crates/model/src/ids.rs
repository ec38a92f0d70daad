//! Identities and positions. Each is a type of its own, so that no two can be mistaken.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use crate::limits;

/// A position in the log: the number of a frame, 1, 2, 3 … without gaps over the life of a
/// journal. [`Lsn::ZERO`] is before the first frame and is always durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    /// Before the first frame; an output that depends on it depends on nothing.
    pub const ZERO: Self = Self(0);

    /// The position after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A message's identity: ascending from 1 over all queues, never reused in one journal's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u64);

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One client's session with the engine, never reused while the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// One producer or consumer of a session; the protocol chooses the number. Producers and
/// consumers are numbered apart: link 0 may be both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// A transaction of a session; the protocol chooses the number, and none twice in one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(pub u64);

/// The destination of messages. A queue and a topic may have the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Destination {
    /// Each message goes to one consumer.
    Queue(QueueName),
    /// Each message goes to every subscription.
    Topic(QueueName),
}

impl Destination {
    /// Its name, whichever it is.
    #[must_use]
    pub fn name(&self) -> &QueueName {
        match self {
            Self::Queue(name) | Self::Topic(name) => name,
        }
    }
}

/// The name of a queue or a topic: 1 to [`limits::QUEUE_NAME_BYTES_MAX`] bytes of UTF-8 without
/// control characters. Protocols may allow less. Cloning is cheap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueName(Arc<str>);

impl QueueName {
    /// A checked name.
    ///
    /// # Errors
    /// [`NameError`] when it is empty, too long or holds a control character.
    pub fn new(name: &str) -> Result<Self, NameError> {
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if name.len() > limits::QUEUE_NAME_BYTES_MAX {
            return Err(NameError::TooLong { bytes: name.len() });
        }
        if name.chars().any(char::is_control) {
            return Err(NameError::ControlCharacter);
        }
        Ok(Self(Arc::from(name)))
    }

    /// True if it is of the names that the engine gives temporary destinations, and no one else.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        self.0.starts_with(limits::TEMPORARY_PREFIX)
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl core::borrow::Borrow<str> for QueueName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<QueueName> for String {
    fn from(name: QueueName) -> Self {
        Self::from(&*name.0)
    }
}

/// Why a text is not a queue's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// It has no bytes.
    Empty,
    /// It has more than [`limits::QUEUE_NAME_BYTES_MAX`] bytes.
    TooLong {
        /// How many it has.
        bytes: usize,
    },
    /// It holds a control character.
    ControlCharacter,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a queue's name must not be empty"),
            Self::TooLong { bytes } => write!(
                f,
                "a queue's name has at most {} bytes, this one has {bytes}",
                limits::QUEUE_NAME_BYTES_MAX
            ),
            Self::ControlCharacter => {
                f.write_str("a queue's name must not hold control characters")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        assert_eq!(QueueName::new(""), Err(NameError::Empty));
        assert_eq!(QueueName::new("a\nb"), Err(NameError::ControlCharacter));
        let long = "x".repeat(limits::QUEUE_NAME_BYTES_MAX + 1);
        assert_eq!(QueueName::new(&long), Err(NameError::TooLong { bytes: long.len() }));
        let longest = "x".repeat(limits::QUEUE_NAME_BYTES_MAX);
        assert_eq!(QueueName::new(&longest).unwrap().as_str(), longest);
    }
}
