//! How the engine looks into stored messages without knowing them, for selectors and other
//! protocols.

use alloc::vec::Vec;
use core::ops::Range;

use model::{
    Format, Formats, Found, MessageGroup, Nanos, Outline, PropertyValue, Subject, TRACE_CONTEXT,
    jms_of_priority,
};

use crate::dead_letter;
use crate::message::{BodyKind, Message, Place, Section};
use crate::types::Value;

/// The format of a stored message that came by AMQP: its bytes as they came.
pub const FORMAT: Format = Format(1);

/// The annotation that says from when on a message may be delivered.
const DELIVERY_TIME: &str = "x-opt-delivery-time";

/// The same, in milliseconds from when it was sent.
const DELIVERY_DELAY: &str = "x-opt-delivery-delay";

/// The readers for [`FORMAT`], and for messages that other protocols brought. Consumers of AMQP see
/// these with a header and the time of arrival, without properties, all payload.
#[must_use]
pub fn formats() -> Formats {
    Formats { property, outline, index, payload, fingerprint, group }
}

/// A header field of JMS by its JMS name, or an application property.
fn property<'m>(subject: &Subject<'m>, found: Found<'_, 'm>, name: &str) -> PropertyValue<'m> {
    let Found { outline, index } = found;
    let is_ours = subject.format == FORMAT;
    let message = is_ours.then(|| Message::of_outline(subject.body, outline));
    if name.starts_with("JMS")
        && let Some(field) = header_field(subject, message.as_ref(), name)
        && field != PropertyValue::Null
    {
        return field;
    }
    if let Some(death) = &subject.death
        && let Some(value) = dead_letter::property(death, name)
    {
        return value;
    }
    let Some(message) = message else { return PropertyValue::Null };
    if index.is_empty() {
        return message.application_property(name).map(seen).unwrap_or_default();
    }
    let first = index.partition_point(|(other, _)| *other < name);
    let found = index.get(first).filter(|(other, _)| *other == name);
    found.map(|(_, value)| *value).unwrap_or_default()
}

/// The beginnings of the sections; bytes that are no message have none.
fn outline(format: Format, body: &[u8]) -> Outline {
    let message = if format == FORMAT { Message::head_of_stored(body) } else { None };
    message.map(|message| message.outline()).unwrap_or_default()
}

fn group(format: Format, body: &[u8]) -> Option<MessageGroup> {
    Message::head_of_stored((format == FORMAT).then_some(body)?)?.group()
}

/// All application properties, sorted by their names; of equal ones the first comes first.
fn index(format: Format, body: &[u8]) -> Vec<(&str, PropertyValue<'_>)> {
    let message = if format == FORMAT { Message::head_of_stored(body) } else { None };
    let properties = message.and_then(|message| message.application_properties());
    let many = properties.filter(|properties| properties.len() > INDEXED_FROM);
    let named = many.into_iter().flat_map(|properties| properties.iter());
    let named = named.filter_map(|(name, value)| Some((name.as_str()?, seen(value))));
    let mut index: Vec<_> = named.collect();
    index.sort_by_key(|(name, _)| *name);
    index
}

/// Properties beyond which an index finds one sooner than a look at each.
const INDEXED_FROM: usize = 16;

/// The fields and properties that JMS names, or its mapping onto AMQP. A name that is none of them
/// may be an application property's.
fn header_field<'m>(
    subject: &Subject<'m>,
    message: Option<&Message<'m>>,
    name: &str,
) -> Option<PropertyValue<'m>> {
    let field = |place| {
        message.and_then(|message| message.property(place)).map_or(PropertyValue::Null, seen)
    };
    let value = match name {
        "JMSMessageID" => field(Place::MessageId),
        "JMSCorrelationID" => field(Place::CorrelationId),
        "JMSType" => field(Place::Subject),
        "JMSDestination" => field(Place::To),
        "JMSReplyTo" => field(Place::ReplyTo),
        "JMSXGroupID" => field(Place::GroupId),
        "JMSXGroupSeq" => field(Place::GroupSequence),
        "JMS_AMQP_REPLY_TO_GROUP_ID" => field(Place::ReplyToGroupId),
        "JMSXUserID" => user(message?.property(Place::UserId)),
        "JMSTimestamp" => match message {
            Some(_) => field(Place::CreationTime),
            None => millis(subject.created),
        },
        "JMSExpiration" => expiration(subject, message),
        "JMSDeliveryTime" => delivery_time(subject, message),
        "JMS_AMQP_TTL" => ttl(message),
        "JMSPriority" => PropertyValue::Integer(match message {
            Some(message) => message.header().priority.into(),
            None => jms_of_priority(subject.priority).into(),
        }),
        "JMSDeliveryMode" => {
            let durable = message.map_or(subject.is_persistent, |it| it.header().durable);
            PropertyValue::String(if durable { "PERSISTENT" } else { "NON_PERSISTENT" })
        }
        "JMSRedelivered" => PropertyValue::Boolean(subject.failed > 0),
        "JMSXDeliveryCount" => PropertyValue::Integer(i64::from(subject.failed) + 1),
        _ => return None,
    };
    Some(value)
}

/// When its time is over, in milliseconds since 1970; 0: never, as in JMS.
fn expiration<'m>(subject: &Subject<'m>, message: Option<&Message<'m>>) -> PropertyValue<'m> {
    let said = message.and_then(Message::absolute_expiry_time);
    match (said, subject.expires) {
        (Some(time), _) => PropertyValue::Integer(time),
        (None, Some(time)) => millis(time),
        (None, None) => PropertyValue::Integer(0),
    }
}

/// From when on it could be delivered, in milliseconds since 1970.
fn delivery_time<'m>(subject: &Subject<'m>, message: Option<&Message<'m>>) -> PropertyValue<'m> {
    let number = |symbol| message?.message_annotation(symbol)?.as_i64();
    let sent = message.and_then(|message| message.property(Place::CreationTime)?.as_i64());
    match (number(DELIVERY_TIME), number(DELIVERY_DELAY), sent) {
        (Some(time), _, _) => PropertyValue::Integer(time),
        (None, delay, Some(sent)) => {
            PropertyValue::Integer(sent.saturating_add(delay.unwrap_or_default()))
        }
        (None, _, None) => millis(subject.created),
    }
}

fn ttl<'m>(message: Option<&Message<'m>>) -> PropertyValue<'m> {
    let ttl = message.and_then(|message| message.header().ttl);
    ttl.map_or(PropertyValue::Null, |millis| PropertyValue::Integer(millis.into()))
}

fn millis<'m>(time: Nanos) -> PropertyValue<'m> {
    PropertyValue::Integer(i64::try_from(time.0 / 1_000_000).unwrap_or(i64::MAX))
}

/// The name of a user, which is binary.
fn user(id: Option<Value<'_>>) -> PropertyValue<'_> {
    match id {
        Some(Value::Binary(name)) => {
            core::str::from_utf8(name).map_or(PropertyValue::Opaque, PropertyValue::String)
        }
        _ => PropertyValue::Null,
    }
}

pub(crate) fn seen(value: Value<'_>) -> PropertyValue<'_> {
    match value {
        Value::Null => PropertyValue::Null,
        Value::Boolean(value) => PropertyValue::Boolean(value),
        Value::Float(value) => PropertyValue::Float(value.into()),
        Value::Double(value) => PropertyValue::Float(value),
        Value::String(text) | Value::Symbol(text) => PropertyValue::String(text),
        // The nearest double, as of an integer that a selector's arithmetic makes too large.
        Value::Ulong(number) if i64::try_from(number).is_err() => {
            PropertyValue::Float(number as f64)
        }
        _ => value.as_i64().map_or(PropertyValue::Opaque, PropertyValue::Integer),
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

/// The fingerprint of a message's content: its body, its content type and its properties, in any
/// order. It leaves out how the message is to be delivered, when it was sent, and of which request
/// it is a part. A raw body has the same as one in a data section without more.
fn fingerprint(format: Format, body: &[u8]) -> u64 {
    let Some(message) = (format == FORMAT).then(|| Message::stored(body)).flatten() else {
        return model::fingerprint(body, 0);
    };
    let content_type = message.property(Place::ContentType).and_then(|value| value.as_str());
    let content_type = content_type.map(|text| model::fingerprint(text.as_bytes(), OF_TYPE));
    let application = message.application_properties();
    let pairs = application.iter().flat_map(|map| map.sound_pairs());
    let named = pairs.filter_map(|(name, value)| Some((name.as_str()?, value)));
    let said = named.filter(|(name, _)| !TRACE_CONTEXT.contains(name));
    let properties = said.fold(0u64, |sum, (name, value)| {
        sum.wrapping_add(of_property(model::fingerprint(name.as_bytes(), OF_PROPERTY), value))
    });
    let content = body.get(payload(format, body)).unwrap_or_default();
    model::fingerprint(content, properties.wrapping_add(content_type.unwrap_or_default()))
}

/// The fingerprint of a value, of any width of its type.
fn of_property(name: u64, value: Value<'_>) -> u64 {
    let of = |kind: u8, bytes: &[u8]| model::fingerprint(bytes, model::fingerprint(&[kind], name));
    match (seen(value), value) {
        (PropertyValue::Null, _) => of(0, &[]),
        (PropertyValue::Boolean(value), _) => of(1, &[value.into()]),
        (PropertyValue::Integer(value), _) => of(2, &value.to_le_bytes()),
        (PropertyValue::Float(value), _) => of(3, &value.to_bits().to_le_bytes()),
        (PropertyValue::String(text), _) => of(4, text.as_bytes()),
        (PropertyValue::Opaque, Value::Binary(bytes)) => of(5, bytes),
        (PropertyValue::Opaque, Value::Uuid(bytes)) => of(6, &bytes),
        (PropertyValue::Opaque, Value::Char(letter)) => of(7, &u32::from(letter).to_le_bytes()),
        (PropertyValue::Opaque, Value::Decimal32(bytes)) => of(8, &bytes),
        (PropertyValue::Opaque, Value::Decimal64(bytes)) => of(9, &bytes),
        (PropertyValue::Opaque, Value::Decimal128(bytes)) => of(10, &bytes),
        (PropertyValue::Opaque, _) => of(11, &[]),
    }
}

// Seeds, by which the same bytes tell different things. They are stored: they never change.
const OF_TYPE: u64 = 1;
const OF_PROPERTY: u64 = 2;

/// Bytes of a body's content, which are its last ones.
fn content_length(message: &Message<'_>) -> Option<usize> {
    content_of(message).map(<[u8]>::len)
}

/// The content of a body that is one data section, or one string or binary.
pub(crate) fn content_of<'m>(message: &Message<'m>) -> Option<&'m [u8]> {
    match message.body_kind() {
        BodyKind::Data => {
            let mut sections = message.data();
            let first = sections.next()?;
            sections.next().is_none().then_some(first)
        }
        BodyKind::Value => message.text_or_binary(),
        BodyKind::Empty | BodyKind::Sequence => None,
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use model::{DeadReason, Death, QueueName};

    use super::*;
    use crate::message::{self, Header, Properties};

    fn look<'m>(
        subject: &Subject<'m>,
        index: &[(&'m str, PropertyValue<'m>)],
        name: &str,
    ) -> PropertyValue<'m> {
        let outline = &outline(subject.format, subject.body);
        property(subject, Found { outline, index }, name)
    }

    fn subject(format: Format, body: &[u8]) -> Subject<'_> {
        Subject {
            format,
            body,
            priority: 2 * 256,
            is_persistent: true,
            created: Nanos::from_millis(1_000),
            expires: Some(Nanos::from_millis(9_000)),
            failed: 2,
            death: None,
        }
    }

    #[test]
    fn selectors_see_why_letters_are_dead() {
        let from = QueueName::new("orders").unwrap();
        let (reason, at) = (DeadReason::Attempts, Nanos::from_millis(77));
        let death = Some(Death { reason, from: &from, at, attempts: 10 });
        for (format, body) in [(FORMAT, &[][..]), (Format::RAW, b"job")] {
            let subject = Subject { death, ..subject(format, body) };
            let seen = |name| look(&subject, &[], name);
            assert_eq!(seen("dead_letter_reason"), PropertyValue::String("attempts"));
            assert_eq!(seen("dead_letter_queue"), PropertyValue::String("orders"));
            assert_eq!(seen("dead_letter_time"), PropertyValue::Integer(77));
            assert_eq!(seen("dead_letter_attempts"), PropertyValue::Integer(10));
            assert_eq!(seen("dead_letter_other"), PropertyValue::Null);
        }
        assert_eq!(look(&subject(FORMAT, &[]), &[], "dead_letter_reason"), PropertyValue::Null);
    }

    /// Each name of JMS reads its field, of a message with all of them and of one of another
    /// protocol.
    #[test]
    fn jms_names_show_header_fields() {
        let mut body = Vec::new();
        Header { durable: false, priority: 7, ttl: Some(500), ..Header::default() }
            .encode(&mut body);
        message::message_annotations(&mut body, |map| {
            map.symbol(DELIVERY_TIME, Value::Timestamp(1_234));
        });
        let properties = Properties {
            message_id: Some(Value::String("ID:1")),
            user_id: Some(b"me"),
            to: Some("there"),
            subject: Some("type"),
            reply_to: Some("back"),
            correlation_id: Some(Value::Ulong(5)),
            absolute_expiry_time: Some(8_000),
            creation_time: Some(1_200),
            group_id: Some("g"),
            group_sequence: Some(3),
            reply_to_group_id: Some("r"),
            ..Properties::default()
        };
        properties.encode(&mut body);
        message::application_properties(&mut body, |map| map.string("JMSXAppID", Value::Long(1)));
        let (text, number) = (PropertyValue::String, PropertyValue::Integer);
        let cases = [
            ("JMSMessageID", text("ID:1"), PropertyValue::Null),
            ("JMSXUserID", text("me"), PropertyValue::Null),
            ("JMSDestination", text("there"), PropertyValue::Null),
            ("JMSType", text("type"), PropertyValue::Null),
            ("JMSReplyTo", text("back"), PropertyValue::Null),
            ("JMSCorrelationID", number(5), PropertyValue::Null),
            ("JMSExpiration", number(8_000), number(9_000)),
            ("JMSTimestamp", number(1_200), number(1_000)),
            ("JMSDeliveryTime", number(1_234), number(1_000)),
            ("JMSXGroupID", text("g"), PropertyValue::Null),
            ("JMSXGroupSeq", number(3), PropertyValue::Null),
            ("JMS_AMQP_REPLY_TO_GROUP_ID", text("r"), PropertyValue::Null),
            ("JMS_AMQP_TTL", number(500), PropertyValue::Null),
            ("JMSPriority", number(7), number(7)),
            ("JMSDeliveryMode", text("NON_PERSISTENT"), text("PERSISTENT")),
            ("JMSRedelivered", PropertyValue::Boolean(true), PropertyValue::Boolean(true)),
            ("JMSXDeliveryCount", number(3), number(3)),
            ("JMSXAppID", number(1), PropertyValue::Null),
            ("JMSXOther", PropertyValue::Null, PropertyValue::Null),
        ];
        for (name, ours, raw) in cases {
            assert_eq!(look(&subject(FORMAT, &body), &[], name), ours, "{name}");
            assert_eq!(look(&subject(Format::RAW, b"job"), &[], name), raw, "{name}");
        }
        let never = Subject { expires: None, ..subject(FORMAT, &[]) };
        assert_eq!(look(&never, &[], "JMSExpiration"), number(0));
    }

    #[test]
    fn index_matches_the_scan() {
        for count in [INDEXED_FROM, INDEXED_FROM + 1, 100] {
            let mut body = Vec::new();
            message::application_properties(&mut body, |map| {
                for number in (0..count).rev() {
                    map.string(&number.to_string(), Value::Ulong(number as u64));
                }
            });
            let index = index(FORMAT, &body);
            assert_eq!(index.len(), if count > INDEXED_FROM { count } else { 0 });
            for number in 0..count + 10 {
                let name = format!("{number}");
                let looked = look(&subject(FORMAT, &body), &[], &name);
                assert_eq!(look(&subject(FORMAT, &body), &index, &name), looked, "{name}");
                assert_eq!(looked == PropertyValue::Null, number >= count);
            }
        }
        assert_eq!(index(Format::RAW, b"job"), []);
    }

    #[test]
    fn numbers_keep_their_value() {
        let largest = 9_223_372_036_854_775_807;
        assert_eq!(seen(Value::Ulong(largest)), PropertyValue::Integer(i64::MAX));
        assert_eq!(
            seen(Value::Ulong(largest + 1)),
            PropertyValue::Float(9_223_372_036_854_775_808.0)
        );
        assert_eq!(
            seen(Value::Ulong(u64::MAX)),
            PropertyValue::Float(18_446_744_073_709_551_615.0)
        );
        assert_eq!(seen(Value::Long(i64::MIN)), PropertyValue::Integer(i64::MIN));
        assert_eq!(seen(Value::Null), PropertyValue::Null);
    }

    #[test]
    fn property_of_unknown_type_is_opaque() {
        for value in [
            Value::Uuid([7; 16]),
            Value::Char('x'),
            Value::Binary(b"x"),
            Value::Decimal32([0; 4]),
            Value::Decimal64([0; 8]),
            Value::Decimal128([0; 16]),
        ] {
            assert_eq!(seen(value), PropertyValue::Opaque, "{value:?}");
        }
    }
}
