//! How the engine looks into stored messages without knowing them: what selectors and other
//! protocols see.

use core::ops::Range;

use model::{Format, PayloadReader, PropertyReader, Value as Seen};

use crate::message::{BodyKind, Message, Section};
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
    let Ok(message) = Message::scan(body) else { return Seen::Null };
    let field = if name.starts_with("JMS") { header_field(&message, name) } else { None };
    field.or_else(|| message.application_property(name).map(seen)).unwrap_or_default()
}

fn header_field<'m>(message: &Message<'m>, name: &str) -> Option<Seen<'m>> {
    let properties = message.properties();
    match name {
        "JMSMessageID" => properties.message_id.map(seen),
        "JMSCorrelationID" => properties.correlation_id.map(seen),
        "JMSType" => properties.subject.map(Seen::String),
        "JMSTimestamp" => properties.creation_time.map(Seen::Integer),
        "JMSExpiration" => properties.absolute_expiry_time.map(Seen::Integer),
        "JMSPriority" => Some(Seen::Integer(message.header().priority.into())),
        "JMSDeliveryMode" => {
            let durable = message.header().durable;
            Some(Seen::String(if durable { "PERSISTENT" } else { "NON_PERSISTENT" }))
        }
        "JMSXGroupID" => properties.group_id.map(Seen::String),
        "JMSXGroupSeq" => properties.group_sequence.map(|number| Seen::Integer(number.into())),
        "JMSXUserID" => {
            properties.user_id.and_then(|user| core::str::from_utf8(user).ok()).map(Seen::String)
        }
        _ => None,
    }
}

fn seen(value: Value<'_>) -> Seen<'_> {
    match value {
        Value::Boolean(value) => Seen::Boolean(value),
        Value::Float(value) => Seen::Float(value.into()),
        Value::Double(value) => Seen::Float(value),
        Value::String(text) | Value::Symbol(text) => Seen::String(text),
        _ => value.as_i64().map_or(Seen::Null, Seen::Integer),
    }
}

/// The content of a body that is one data section, or one string or binary; else all sections of
/// the body as they are.
fn payload(format: Format, body: &[u8]) -> Range<usize> {
    let Some(message) = (format == FORMAT).then(|| Message::scan(body).ok()).flatten() else {
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
        BodyKind::Value => match message.value().ok()?? {
            Value::String(text) => Some(text.len()),
            Value::Binary(bytes) => Some(bytes.len()),
            _ => None,
        },
        BodyKind::Empty | BodyKind::Sequence => None,
    }
}
