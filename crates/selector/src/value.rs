//! What a selector sees of a message.

/// The value of a property or header field, and of every expression over them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Missing; as the value of a condition: unknown.
    Null,
    /// A boolean.
    Boolean(bool),
    /// An exact number: JMS byte, short, int or long.
    Integer(i64),
    /// An approximate number: JMS float or double.
    Float(f64),
    /// A string.
    String(&'a str),
}

/// The properties and header fields of one message.
///
/// Header fields are asked for by their names as well: `JMSDeliveryMode` (the strings
/// `PERSISTENT` and `NON_PERSISTENT`), `JMSPriority` (0 to 9), `JMSMessageID`, `JMSTimestamp`
/// (milliseconds since 1970), `JMSCorrelationID` and `JMSType`. The same name has to give the same
/// value throughout one match.
pub trait Properties {
    /// The value of a property, [`Value::Null`] if there is none. Names are case-sensitive.
    fn property(&self, name: &str) -> Value<'_>;
}

/// The value of a condition: `None` is unknown.
pub(crate) type Truth = Option<bool>;

impl<'a> Value<'a> {
    /// This value as a condition. What is no boolean is unknown.
    pub(crate) fn truth(self) -> Truth {
        match self {
            Value::Boolean(truth) => Some(truth),
            _ => None,
        }
    }

    /// This value as a string.
    pub(crate) fn string(self) -> Option<&'a str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// This value as a double, the way Java promotes it when the other operand is one.
    pub(crate) fn float(self) -> Option<f64> {
        match self {
            // Java rounds a long to the nearest double as well.
            Value::Integer(exact) => Some(exact as f64),
            Value::Float(approximate) => Some(approximate),
            _ => None,
        }
    }
}

impl From<Truth> for Value<'_> {
    fn from(truth: Truth) -> Self {
        truth.map_or(Value::Null, Value::Boolean)
    }
}
