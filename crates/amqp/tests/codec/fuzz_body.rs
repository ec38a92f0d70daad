//! Properties of decoding that hold for any bytes: run by the fuzzer in `fuzz/`, and by a test.

use amqp::bearer::Bearer;
use amqp::frame::{Frame, FrameKind, Split};
use amqp::limits::FRAME_BYTES_BEFORE_OPEN_MAX;
use amqp::message::{Message, Section};
use amqp::performative::Performative;
use amqp::protocol_header::ProtocolHeader;
use amqp::sasl::{Plain, SaslBody};
use amqp::transaction::CoordinatorRequest;
use amqp::types::{Map, Value};
use amqp::{DecodeError, FORMAT, encode};
use model::{Found, Nanos, PropertyValue, Subject};

/// A stream is cut into frames until it ends or is refused, and each frame is read.
pub(crate) fn frames(bytes: &[u8]) {
    let mut rest = bytes;
    let _ = ProtocolHeader::decode(bytes);
    loop {
        match Frame::split(rest, FRAME_BYTES_BEFORE_OPEN_MAX) {
            Err(error) => return check_error(rest, error),
            Ok(Split::Needs(more)) => {
                let limit = FRAME_BYTES_BEFORE_OPEN_MAX as usize;
                assert!(more > 0 && rest.len() + more <= limit, "{more} of {}", rest.len());
                return;
            }
            Ok(Split::Frame { frame, length }) => {
                assert!(length >= 8 + frame.body.len());
                match frame.kind {
                    FrameKind::Amqp => performative(frame.body),
                    FrameKind::Sasl => sasl(frame.body),
                }
                rest = &rest[length..];
            }
        }
    }
}

/// A valid performative survives our encoder.
pub(crate) fn performative(bytes: &[u8]) {
    match Performative::decode(bytes) {
        Err(error) => check_error(bytes, error),
        Ok((performative, payload)) => {
            assert!(!format!("{performative:?}").is_empty());
            let mut again = Vec::new();
            performative.encode(&mut again);
            again.extend_from_slice(payload);
            assert_eq!(Performative::decode(&again), Ok((performative, payload)));
            message(payload);
        }
    }
}

/// A valid SASL body survives our encoder.
pub(crate) fn sasl(bytes: &[u8]) {
    match SaslBody::decode(bytes) {
        Err(error) => check_error(bytes, error),
        Ok(body) => {
            if let SaslBody::Init { initial_response: Some(response), .. } = body {
                let _ = Plain::parse(response);
                let tokens = [Bearer::parse_oauthbearer(response), Bearer::parse_xoauth2(response)];
                assert!(tokens.into_iter().flatten().all(|it| !it.token.is_empty()));
            }
            let mut again = Vec::new();
            body.encode(&mut again);
            assert_eq!(SaslBody::decode(&again), Ok(body));
        }
    }
}

/// A message's sections are its bytes, and every query of it has an answer.
pub(crate) fn message(bytes: &[u8]) {
    stored(bytes);
    let message = match Message::scan(bytes) {
        Ok(message) => message,
        Err(error) => return check_error(bytes, error),
    };
    let sections = [
        Section::Header,
        Section::DeliveryAnnotations,
        Section::MessageAnnotations,
        Section::Properties,
        Section::ApplicationProperties,
        Section::Body,
        Section::Footer,
    ];
    let parts: Vec<u8> = sections.iter().flat_map(|part| message.section(*part)).copied().collect();
    assert_eq!(parts, bytes);
    check_encodings(&message);
    check_seen(&message);
    let maps = [
        message.delivery_annotations(),
        message.message_annotations(),
        message.application_properties(),
    ];
    maps.into_iter().flatten().for_each(check_map);
    let data: usize = message.data().map(<[u8]>::len).sum();
    assert!(data <= bytes.len());
    if let Ok(Some(value)) = message.value() {
        check_value(value);
    }
    let _ = CoordinatorRequest::decode(bytes);
}

/// Stored bytes are looked into without another check, valid or not.
fn stored(bytes: &[u8]) {
    let formats = amqp::formats();
    let index = (formats.index)(FORMAT, bytes);
    let outline = (formats.outline)(FORMAT, bytes);
    for name in NAMES {
        for index in [&index[..], &[]] {
            (formats.property)(&subject(bytes), Found { outline: &outline, index }, name);
        }
    }
    (formats.fingerprint)(FORMAT, bytes);
    let range = (formats.payload)(FORMAT, bytes);
    assert!(range.start <= range.end && range.end <= bytes.len());
}

/// Names that are looked for in every message.
const NAMES: [&str; 12] = [
    "JMSMessageID",
    "JMSCorrelationID",
    "JMSReplyTo",
    "JMSDestination",
    "JMSExpiration",
    "JMSDeliveryTime",
    "JMSXUserID",
    "JMSXGroupSeq",
    "JMSXDeliveryCount",
    "JMSPriority",
    "colour",
    "x",
];

fn subject(body: &[u8]) -> Subject<'_> {
    let (created, expires) = (Nanos::from_secs(1), None);
    let (failed, death) = (0, None);
    let (format, priority, is_persistent) = (FORMAT, 0, true);
    Subject { format, body, priority, is_persistent, created, expires, failed, death }
}

/// Selectors see the same values with an index and without.
fn check_seen(message: &Message<'_>) {
    let formats = amqp::formats();
    let index = (formats.index)(FORMAT, message.bytes());
    assert!(index.is_sorted_by_key(|(name, _)| *name));
    let outline = &(formats.outline)(FORMAT, message.bytes());
    let seen = |name| {
        let subject = subject(message.bytes());
        let value = (formats.property)(&subject, Found { outline, index: &[] }, name);
        let indexed = (formats.property)(&subject, Found { outline, index: &index }, name);
        assert_eq!(format!("{value:?}"), format!("{indexed:?}"), "{name}");
        value
    };
    let properties = message.properties();
    for (name, text) in [("JMSType", properties.subject), ("JMSXGroupID", properties.group_id)] {
        assert!(text.is_none_or(|text| seen(name) == PropertyValue::String(text)), "{name}");
    }
    let times = [
        ("JMSTimestamp", properties.creation_time),
        ("JMSExpiration", properties.absolute_expiry_time),
    ];
    for (name, time) in times {
        assert!(time.is_none_or(|time| seen(name) == PropertyValue::Integer(time)), "{name}");
    }
    for (key, value) in message.application_properties().iter().flat_map(|map| map.iter()) {
        // If a map has two values for one key, which none should, the first is seen.
        if let (Value::String(key), Value::Boolean(_) | Value::String(_)) = (key, value)
            && !key.starts_with("JMS")
            && message.application_property(key) == Some(value)
        {
            assert_ne!(seen(key), PropertyValue::Null, "{key}");
        }
    }
}

/// Header and properties mean the same when we write them.
fn check_encodings(message: &Message<'_>) {
    let mut again = Vec::new();
    message.header().encode(&mut again);
    message.properties().encode(&mut again);
    let read = Message::scan(&again).expect("what was read once is read again");
    assert_eq!(read.header(), message.header());
    assert_eq!(read.properties(), message.properties());
}

/// A map has as many pairs as it says.
fn check_map(map: Map<'_>) {
    assert_eq!(map.iter().count(), map.len());
    for (key, value) in map.iter() {
        check_value(value);
        if let Some(key) = key.as_str() {
            assert!(map.get(key).is_some());
        }
    }
}

/// A value can be walked, shown and written.
fn check_value(value: Value<'_>) {
    assert!(!format!("{value:?}").is_empty());
    let mut once = Vec::new();
    encode::value(&mut once, value);
    let mut twice = Vec::new();
    encode::value(&mut twice, Value::decode(&once).expect("what was read once is read again"));
    assert_eq!(once, twice);
}

/// One value of any type.
pub(crate) fn value(bytes: &[u8]) {
    match Value::decode(bytes) {
        Ok(value) => check_value(value),
        Err(error) => check_error(bytes, error),
    }
}

/// An error tells a place in the bytes and a condition for the peer.
fn check_error(bytes: &[u8], error: DecodeError) {
    assert!(error.offset <= bytes.len().max(5), "{error} of {}", bytes.len());
    assert!(error.condition().starts_with("amqp:"));
}
