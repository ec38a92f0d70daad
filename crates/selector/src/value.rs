//! A selector's view of a message.

use model::PropertyValue;

/// The properties and header fields of one message.
///
/// Header fields are asked for by their names as well: `JMSDeliveryMode` (the strings
/// `PERSISTENT` and `NON_PERSISTENT`), `JMSPriority` (0 to 9), `JMSMessageID`, `JMSTimestamp`
/// (milliseconds since 1970), `JMSCorrelationID` and `JMSType`. The same name has to give the same
/// value throughout one match.
pub trait PropertySource {
    /// The value of a property, [`PropertyValue::Null`] if there is none. Names are case-sensitive.
    fn property(&self, name: &str) -> PropertyValue<'_>;
}

/// The value of a condition: `None` is unknown.
pub(crate) type Truth = Option<bool>;

/// A value as an operand or the result of an operator.
pub(crate) trait Operand<'a>: Sized {
    /// A condition as a value.
    fn of(truth: Truth) -> Self;

    /// This value as a condition. A value that is no boolean is unknown.
    fn truth(self) -> Truth;

    /// This value as a string.
    fn string(self) -> Option<&'a str>;

    /// This value as a double, the way Java promotes it when the other operand is one.
    fn float(self) -> Option<f64>;
}

impl<'a> Operand<'a> for PropertyValue<'a> {
    fn of(truth: Truth) -> Self {
        truth.map_or(PropertyValue::Null, PropertyValue::Boolean)
    }

    fn truth(self) -> Truth {
        match self {
            PropertyValue::Boolean(truth) => Some(truth),
            _ => None,
        }
    }

    fn string(self) -> Option<&'a str> {
        match self {
            PropertyValue::String(text) => Some(text),
            _ => None,
        }
    }

    fn float(self) -> Option<f64> {
        match self {
            // Java rounds a long to the nearest double as well.
            PropertyValue::Integer(exact) => Some(exact as f64),
            PropertyValue::Float(approximate) => Some(approximate),
            _ => None,
        }
    }
}
