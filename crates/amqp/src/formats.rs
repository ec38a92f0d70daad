//! How the engine looks into stored messages without knowing them: what selectors and other
//! protocols see.

use core::ops::Range;

use model::{Format, PayloadReader, PropertyReader, Value as Seen};

use crate::message::{BodyKind, Message, Place, Section};
use crate::types::Value;

/// The format of a stored message that came by AMQP: its bytes as they came.
pub const FORMAT: Format = Format(1);

/// The readers for [`FORMAT`]; any other format has no properties and is all payload.
#[must_use]
pub fn formats() -> (PropertyReader, PayloadReader) {
    (property, payload)
}

/// A header field of JMS by its JMS name, or an application property.
fn property<'m>(format: Format, body: &'m [u8], name: &str) -> Seen<'m> {
    if format != FORMAT {
        return Seen::Null;
    }
    let Some(message) = Message::head_of_stored(body) else { return Seen::Null };
    let field = if name.starts_with("JMS") { header_field(&message, name) } else { None };
    field.or_else(|| message.application_property(name).map(seen)).unwrap_or_default()
}

fn header_field<'m>(message: &Message<'m>, name: &str) -> Option<Seen<'m>> {
    let place = match name {
        "JMSMessageID" => Place::MessageId,
        "JMSCorrelationID" => Place::CorrelationId,
        "JMSType" => Place::Subject,
        "JMSTimestamp" => Place::CreationTime,
        "JMSExpiration" => Place::AbsoluteExpiryTime,
        "JMSXGroupID" => Place::GroupId,
        "JMSXGroupSeq" => Place::GroupSequence,
        "JMSXUserID" => return user(message.property(Place::UserId)?),
        "JMSPriority" => return Some(Seen::Integer(message.header().priority.into())),
        "JMSDeliveryMode" => {
            let durable = message.header().durable;
            return Some(Seen::String(if durable { "PERSISTENT" } else { "NON_PERSISTENT" }));
        }
        _ => return None,
    };
    message.property(place).map(seen)
}

/// The name of a user, which is binary.
fn user(id: Value<'_>) -> Option<Seen<'_>> {
    match id {
        Value::Binary(name) => core::str::from_utf8(name).ok().map(Seen::String),
        _ => None,
    }
}

pub(crate) fn seen(value: Value<'_>) -> Seen<'_> {
    match value {
        Value::Null => Seen::Null,
        Value::Boolean(value) => Seen::Boolean(value),
        Value::Float(value) => Seen::Float(value.into()),
        Value::Double(value) => Seen::Float(value),
        Value::String(text) | Value::Symbol(text) => Seen::String(text),
        // The nearest double, as of an integer that a selector's arithmetic makes too large.
        Value::Ulong(number) if i64::try_from(number).is_err() => Seen::Float(number as f64),
        _ => value.as_i64().map_or(Seen::Opaque, Seen::Integer),
    }
}

/// The content of a body that is one data section, or one string or binary; else all sections of
/// the body as they are.
fn payload(format: Format, body: &[u8]) -> Range<usize> {
    let Some(message) = (format == FORMAT).then(|| Message::stored(body)).flatten() else {
        return 0..body.len();
    };
    let end = body.len() - message.section(Section::Footer).len();
    let length = content_length(&message).unwrap_or(message.section(Section::Body).len());
    end.saturating_sub(length)..end
}

/// Bytes of what a body holds, which are its last ones.
fn content_length(message: &Message<'_>) -> Option<usize> {
    match message.body_kind() {
        BodyKind::Data => {
            let mut sections = message.data();
            let first = sections.next()?;
            sections.next().is_none().then_some(first.len())
        }
        BodyKind::Value => message.text_or_binary().map(<[u8]>::len),
        BodyKind::Empty | BodyKind::Sequence => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_what_they_are_worth() {
        let largest = 9_223_372_036_854_775_807;
        assert_eq!(seen(Value::Ulong(largest)), Seen::Integer(i64::MAX));
        assert_eq!(seen(Value::Ulong(largest + 1)), Seen::Float(9_223_372_036_854_775_808.0));
        assert_eq!(seen(Value::Ulong(u64::MAX)), Seen::Float(18_446_744_073_709_551_615.0));
        assert_eq!(seen(Value::Long(i64::MIN)), Seen::Integer(i64::MIN));
        assert_eq!(seen(Value::Null), Seen::Null);
    }

    #[test]
    fn what_selectors_do_not_know_is_there_all_the_same() {
        for value in [
            Value::Uuid([7; 16]),
            Value::Char('x'),
            Value::Binary(b"x"),
            Value::Decimal32([0; 4]),
            Value::Decimal64([0; 8]),
            Value::Decimal128([0; 16]),
        ] {
            assert_eq!(seen(value), Seen::Opaque, "{value:?}");
        }
    }
}
