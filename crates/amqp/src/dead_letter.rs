//! A dead letter's account of its end: in annotations, and again in application properties, which
//! are all that a JMS client reads. Its application properties are the only ones that are encoded
//! anew (ADR 23).

use alloc::vec::Vec;

use model::{DeadLetter, Death, Nanos, PropertyValue};

use crate::encode::MapWriter;
use crate::message::{self, Message};
use crate::types::{Map, Value};

/// The annotations: why, of which queue or topic, when, and after how many attempts.
const ANNOTATIONS: [&str; 4] = [
    "x-opt-dead-letter-reason",
    "x-opt-dead-letter-queue",
    "x-opt-dead-letter-time",
    "x-opt-dead-letter-attempts",
];

/// The same as properties, by names that JMS allows.
const PROPERTIES: [&str; 4] =
    ["dead_letter_reason", "dead_letter_queue", "dead_letter_time", "dead_letter_attempts"];

/// Appends the message's own annotations and those of a dead letter.
pub(crate) fn annotate(out: &mut Vec<u8>, dead: &DeadLetter, message: Option<&Message<'_>>) {
    let own = message.and_then(Message::message_annotations);
    message::message_annotations(out, |map| {
        copy(map, own, &ANNOTATIONS);
        let [reason, queue, time, attempts] = ANNOTATIONS;
        map.symbol(reason, Value::String(dead.reason.word()));
        map.symbol(queue, Value::String(dead.from.as_str()));
        map.symbol(time, Value::Timestamp(millis(dead.at)));
        map.symbol(attempts, Value::Uint(dead.attempts));
    });
}

/// Appends the message's own application properties and those of a dead letter, of types that JMS
/// has.
pub(crate) fn describe(out: &mut Vec<u8>, dead: &DeadLetter, message: Option<&Message<'_>>) {
    let own = message.and_then(Message::application_properties);
    message::application_properties(out, |map| {
        copy(map, own, &PROPERTIES);
        let [reason, queue, time, attempts] = PROPERTIES;
        map.string(reason, Value::String(dead.reason.word()));
        map.string(queue, Value::String(dead.from.as_str()));
        map.string(time, Value::Long(millis(dead.at)));
        map.string(attempts, Value::Int(i32::try_from(dead.attempts).unwrap_or(i32::MAX)));
    });
}

/// The property of that name of a dead letter, as selectors see it.
pub(crate) fn property<'m>(death: &Death<'m>, name: &str) -> Option<PropertyValue<'m>> {
    let [reason, queue, time, attempts] = PROPERTIES;
    Some(match name {
        _ if name == reason => PropertyValue::String(death.reason.word()),
        _ if name == queue => PropertyValue::String(death.from.as_str()),
        _ if name == time => PropertyValue::Integer(millis(death.at)),
        _ if name == attempts => PropertyValue::Integer(death.attempts.into()),
        _ => return None,
    })
}

fn copy(map: &mut MapWriter<'_>, own: Option<Map<'_>>, but: &[&str]) {
    if let Some(own) = own {
        map.copy(own, but);
    }
}

fn millis(time: Nanos) -> i64 {
    i64::try_from(time.0 / 1_000_000).unwrap_or(i64::MAX)
}
