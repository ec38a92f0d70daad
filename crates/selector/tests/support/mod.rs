//! Messages for tests, and the three values of a selector over one.
#![allow(clippy::indexing_slicing, reason = "a broken test may panic")]

pub(crate) mod oracle;

use std::collections::BTreeMap;

use selector::{PropertySource, PropertyValue, Selector};

/// A property as a test holds it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Owned {
    Opaque,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    String(String),
}

/// The properties of one message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message(pub(crate) BTreeMap<String, Owned>);

impl PropertySource for Message {
    fn property(&self, name: &str) -> PropertyValue<'_> {
        match self.0.get(name) {
            None => PropertyValue::Null,
            Some(Owned::Opaque) => PropertyValue::Opaque,
            Some(Owned::Boolean(value)) => PropertyValue::Boolean(*value),
            Some(Owned::Integer(value)) => PropertyValue::Integer(*value),
            Some(Owned::Float(value)) => PropertyValue::Float(*value),
            Some(Owned::String(value)) => PropertyValue::String(value),
        }
    }
}

/// The truth of a condition: `None` is unknown. A match tells only true from the rest; the same
/// condition behind NOT tells false from unknown.
pub(crate) fn truth(text: &str, message: &Message) -> Option<bool> {
    let parse =
        |text: &str| Selector::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let (holds, fails) = (parse(text), parse(&format!("NOT ({text})")));
    match (holds.matches(message), fails.matches(message)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
        (true, true) => panic!("{text} is true and false of {message:?}"),
    }
}
