//! The envelope of a message that has more than a payload, for protocols that name its parts in
//! words of their own: HTTP in headers, AMQP in sections.

use alloc::string::String;
use alloc::vec::Vec;

use crate::{Format, PropertyValue};

/// Between two of the ten priorities of JMS lie so many of the engine's, so that other protocols
/// have room there.
pub const PRIORITY_STEP: u32 = 256;

/// The most urgent priority of JMS; zero is the least.
pub const JMS_PRIORITY_MAX: u8 = 9;

/// The priority of JMS for a message that names none.
pub const JMS_PRIORITY_DEFAULT: u8 = 4;

/// The engine's priority for one of JMS; more than [`JMS_PRIORITY_MAX`] counts as that.
#[must_use]
pub fn priority_of_jms(priority: u8) -> u32 {
    u32::from(JMS_PRIORITY_MAX - priority.min(JMS_PRIORITY_MAX)) * PRIORITY_STEP
}

/// The priority of JMS that comes nearest to one of the engine's.
#[must_use]
pub fn jms_of_priority(priority: u32) -> u8 {
    let urgency = u8::try_from(priority / PRIORITY_STEP).unwrap_or(u8::MAX);
    JMS_PRIORITY_MAX.saturating_sub(urgency)
}

/// Properties by which systems tell to which request a message belongs (W3C). They differ each time
/// that a message is sent, also if it says the same.
pub const TRACE_CONTEXT: [&str; 3] = ["traceparent", "tracestate", "baggage"];

/// All of a message but its payload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Envelope<'m> {
    /// True if its sender wants it to survive the broker.
    pub durable: bool,
    /// JMS's: 9 is the most urgent.
    pub priority: u8,
    /// Milliseconds that it is worth something; `None`: for ever.
    pub ttl_millis: Option<u32>,
    /// When it was made, in milliseconds since 1970.
    pub created_millis: Option<i64>,
    /// The MIME type of the payload.
    pub content_type: Option<&'m str>,
    /// The name of its group: the messages of a group go to one consumer at a time.
    pub group: Option<&'m str>,
    /// The properties that the application added, by name. One of a type that [`PropertyValue`]
    /// does not know is [`PropertyValue::Null`].
    pub properties: Vec<(&'m str, PropertyValue<'m>)>,
}

/// The value of a body that is no bytes: a number, or a list or map of such.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// No value.
    Null,
    /// True or false.
    Boolean(bool),
    /// An integer that 64 bits with a sign hold; a moment is one, of milliseconds since 1970.
    Integer(i64),
    /// One that they do not hold.
    Unsigned(u64),
    /// Any of the floating-point numbers.
    Float(f64),
    /// Text.
    String(String),
    /// Octets.
    Binary(Vec<u8>),
    /// Values in their order.
    List(Vec<Content>),
    /// Keys and values, in the order of the sender. A key may be of any type.
    Map(Vec<(Content, Content)>),
}

/// How to put a payload into an envelope and to read an envelope. The owner of all protocols hands
/// it to those that do not know each other. Total: of a body of another format nothing can be read.
#[derive(Clone, Copy)]
pub struct Envelopes {
    /// A body that holds both, and its format.
    pub seal: fn(&Envelope<'_>, &[u8]) -> (Format, Vec<u8>),
    /// The envelope of a stored message; nothing if its format has none.
    pub read: for<'m> fn(Format, &'m [u8]) -> Option<Envelope<'m>>,
    /// The value of a stored one, if its payload shows that to programs alone, and it is small
    /// enough to be shown.
    pub content: fn(Format, &[u8]) -> Option<Content>,
}

impl core::fmt::Debug for Envelopes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Envelopes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jms_priorities_reverse_and_round_trip() {
        assert_eq!((priority_of_jms(9), priority_of_jms(0)), (0, 9 * PRIORITY_STEP));
        assert_eq!(priority_of_jms(200), 0);
        for priority in 0..=JMS_PRIORITY_MAX {
            assert_eq!(jms_of_priority(priority_of_jms(priority)), priority);
        }
        assert_eq!(jms_of_priority(u32::MAX), 0);
        assert_eq!(jms_of_priority(PRIORITY_STEP - 1), 9);
    }
}
