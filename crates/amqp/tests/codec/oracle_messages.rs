//! Messages that we write are read by fe2o3-amqp, section by section, and the reverse.

use amqp::message::{self, BodyKind, Header, Message, Properties};
use amqp::types::Value;
use fe2o3_amqp_types::messaging::{
    ApplicationProperties, Data, Header as TheirHeader, MessageAnnotations,
    Properties as TheirProperties,
};
use serde_amqp::{from_slice, to_vec};

use crate::bytes;

fn header() -> Header {
    Header { durable: true, priority: 9, ttl: Some(700), first_acquirer: true, delivery_count: 300 }
}

fn properties() -> Properties<'static> {
    Properties {
        message_id: Some(Value::String("ID:1")),
        user_id: Some(b"user"),
        to: Some("to"),
        subject: Some("subject"),
        reply_to: Some("reply-to"),
        correlation_id: Some(Value::Ulong(5)),
        content_type: Some("text/plain"),
        content_encoding: Some("gzip"),
        absolute_expiry_time: Some(1_000),
        creation_time: Some(-1),
        group_id: Some("group"),
        group_sequence: Some(6),
        reply_to_group_id: Some("answers"),
    }
}

/// A message as another protocol's becomes one.
fn written() -> Vec<u8> {
    let mut out = Vec::new();
    header().encode(&mut out);
    message::message_annotations(&mut out, |map| map.symbol("x-opt-a", Value::Byte(3)));
    properties().encode(&mut out);
    message::application_properties(&mut out, |map| {
        map.string("colour", Value::String("red"));
        map.string("count", Value::Int(-3));
    });
    message::data(&mut out, b"body");
    out
}

#[test]
fn written_message_is_read_back() {
    let encoded = written();
    let read = Message::scan(&encoded).unwrap();
    assert_eq!((read.header(), read.properties()), (header(), properties()));
    assert_eq!(read.message_annotation("x-opt-a"), Some(Value::Byte(3)));
    assert_eq!(read.application_property("colour"), Some(Value::String("red")));
    assert_eq!(read.application_property("count"), Some(Value::Int(-3)));
    assert_eq!(read.body_kind(), BodyKind::Data);
    assert_eq!(read.data().collect::<Vec<_>>(), [b"body"]);
}

#[test]
fn sections_round_trip_through_oracle() {
    let encoded = written();
    let read = Message::scan(&encoded).unwrap();
    let section = |section| read.section(section);
    let theirs: TheirHeader = from_slice(section(message::Section::Header)).unwrap();
    assert_eq!((theirs.durable, theirs.priority.0, theirs.ttl), (true, 9, Some(700)));
    assert_eq!((theirs.first_acquirer, theirs.delivery_count), (true, 300));
    let again = to_vec(&theirs).unwrap();
    assert_eq!(Message::scan(&again).unwrap().header(), header());

    let theirs: TheirProperties = from_slice(section(message::Section::Properties)).unwrap();
    assert_eq!(theirs.to.as_deref(), Some("to"));
    assert_eq!(theirs.subject.as_deref(), Some("subject"));
    assert_eq!(theirs.reply_to.as_deref(), Some("reply-to"));
    assert_eq!(theirs.group_id.as_deref(), Some("group"));
    assert_eq!(theirs.reply_to_group_id.as_deref(), Some("answers"));
    assert_eq!(theirs.group_sequence, Some(6));
    assert_eq!(theirs.absolute_expiry_time.as_ref().map(|time| time.milliseconds()), Some(1_000));
    assert_eq!(theirs.creation_time.as_ref().map(|time| time.milliseconds()), Some(-1));
    let again = to_vec(&theirs).unwrap();
    assert_eq!(Message::scan(&again).unwrap().properties(), properties());
}

#[test]
fn maps_and_data_read_by_oracle() {
    let encoded = written();
    let read = Message::scan(&encoded).unwrap();
    let annotations = read.section(message::Section::MessageAnnotations);
    let theirs: MessageAnnotations = from_slice(annotations).unwrap();
    assert_eq!(to_vec(&theirs).unwrap(), annotations);
    let application = read.section(message::Section::ApplicationProperties);
    let theirs: ApplicationProperties = from_slice(application).unwrap();
    let again = to_vec(&theirs).unwrap();
    assert_eq!(Message::scan(&again).unwrap().application_property("count"), Some(Value::Int(-3)));
    let theirs: Data = from_slice(read.section(message::Section::Body)).unwrap();
    assert_eq!(&theirs.0[..], b"body");
}

#[test]
fn default_header_is_no_section() {
    let mut out = Vec::new();
    Header::default().encode(&mut out);
    assert_eq!(out, []);
    Header { durable: true, ..Header::default() }.encode(&mut out);
    assert_eq!(out, bytes("00 53 70 c0 02 01 41"));
}

#[test]
fn annotations_are_added_to_existing_ones() {
    let encoded = written();
    let read = Message::scan(&encoded).unwrap();
    let mut out = Vec::new();
    message::message_annotations(&mut out, |map| {
        map.symbol("x-opt-a", Value::Byte(4));
        map.copy(read.message_annotations().unwrap(), &["x-opt-a"]);
        map.symbol("x-opt-reason", Value::String("expired"));
    });
    for section in [message::Section::Properties, message::Section::ApplicationProperties] {
        out.extend_from_slice(read.section(section));
    }
    out.extend_from_slice(read.body_and_footer());
    let again = Message::scan(&out).unwrap();
    let annotations: Vec<_> = again.message_annotations().unwrap().iter().collect();
    assert_eq!(annotations.len(), 2);
    assert_eq!(again.message_annotation("x-opt-a"), Some(Value::Byte(4)));
    assert_eq!(again.message_annotation("x-opt-reason"), Some(Value::String("expired")));
    assert_eq!(again.properties(), properties());
}
