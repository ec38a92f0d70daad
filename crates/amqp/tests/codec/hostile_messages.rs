//! Messages with sections that lie, and messages that are unusual and right.

use amqp::DecodeErrorKind::*;
use amqp::error::condition::RESOURCE_LIMIT_EXCEEDED;
use amqp::limits::{BODY_SECTIONS_MAX, EMPTY_ELEMENTS_MAX, SECTION_ELEMENTS_MAX};
use amqp::message::{BodyKind, Header, Message, Properties, Section};
use amqp::transaction::CoordinatorRequest;
use amqp::types::Value;

use crate::bytes;

#[test]
fn hostile_messages_are_refused() {
    let hostile = [
        ("no section", "45", UnexpectedType(0x45)),
        ("an unknown section", "00 53 79 45", UnknownDescriptor),
        ("a performative", "00 53 14 c0 02 01 43", UnknownDescriptor),
        ("two headers", "00 53 70 45 00 53 70 45", SectionOrder),
        ("a header behind properties", "00 53 73 45 00 53 70 45", SectionOrder),
        ("properties behind the body", "00 53 75 a0 00 00 53 73 45", SectionOrder),
        ("two footers", "00 53 78 c1 01 00 00 53 78 c1 01 00", SectionOrder),
        ("a body behind the footer", "00 53 78 c1 01 00 00 53 75 a0 00", SectionOrder),
        ("two values", "00 53 77 40 00 53 77 40", SectionOrder),
        ("data and a value", "00 53 75 a0 00 00 53 77 40", SectionOrder),
        ("a sequence and data", "00 53 76 45 00 53 75 a0 00", SectionOrder),
        ("a header that is a map", "00 53 70 c1 01 00", UnexpectedType(0xc1)),
        ("a header of six fields", "00 53 70 c0 07 06 404040404040", TooManyFields),
        ("a priority that is a uint", "00 53 70 c0 03 02 40 43", UnexpectedType(0x43)),
        ("annotations under strings", "00 53 72 c1 05 02 a1 01 61 40", InvalidField("key")),
        ("properties under symbols", "00 53 74 c1 05 02 a3 01 61 40", InvalidField("key")),
        ("footers under strings, as of rhea", "00 53 78 c1 05 02 a1 01 61 40", InvalidField("key")),
        ("properties under null", "00 53 74 c1 03 02 40 40", InvalidField("key")),
        ("annotations without a value", "00 53 72 c1 04 01 a3 01 61", OddMap),
        ("annotations of 2^32-2", "00 53 72 d1 00000006 fffffffe a300", TooManyElements),
        ("a message id of a symbol", "00 53 73 c0 04 01 a3 01 61", InvalidField("message-id")),
        (
            "properties of 14 fields",
            "00 53 73 c0 0f 0e 4040404040404040404040404040",
            TooManyFields,
        ),
        ("data that is a string", "00 53 75 a1 00", UnexpectedType(0xa1)),
        ("data longer than the message", "00 53 75 b0 ffffffff 00", Truncated),
        ("a sequence that is a map", "00 53 76 c1 01 00", UnexpectedType(0xc1)),
        ("a value that is missing", "00 53 77", Truncated),
        ("a value of an unknown type", "00 53 77 4f", UnknownConstructor(0x4f)),
        ("a list as value that is longer", "00 53 77 c0 09 01 40", Truncated),
        ("a map as value without a value", "00 53 77 c1 02 01 40", OddMap),
        ("a described descriptor", "00 00 53 70 53 70 45", BadDescriptor),
        ("described descriptors in the value", "00 53 77 00 00 53 01 53 02 40", BadDescriptor),
    ];
    for (name, hex, kind) in hostile {
        assert_eq!(Message::scan(&bytes(hex)).expect_err(name).kind, kind, "{name}");
    }
    let bomb = [&bytes("00 53 77")[..], &[0x00, 0x53, 0x01].repeat(100), &[0x40]].concat();
    assert_eq!(Message::scan(&bomb).unwrap_err().kind, TooDeep);
}

/// However few bytes they take, elements and sections are counted: each would be looked at while
/// all other clients wait.
#[test]
fn sections_have_bounded_elements() {
    let annotations = |value: &[u8]| {
        let size = u32::try_from(value.len() + 7).unwrap().to_be_bytes();
        [&[0, 0x53, 0x72, 0xd1], &size[..], &[0, 0, 0, 2, 0xa3, 1, b'x'], value].concat()
    };
    let list = |count: u32, element: &[u8]| {
        let elements = element.repeat(count as usize);
        let size = u32::try_from(elements.len() + 4).unwrap().to_be_bytes();
        [&[0xd0], &size[..], &count.to_be_bytes(), &elements].concat()
    };
    let too_many = TooMany("elements before its body", SECTION_ELEMENTS_MAX);
    let nulls = |count| Message::scan(&annotations(&list(count, &[0x40]))).map(drop);
    assert_eq!(nulls(SECTION_ELEMENTS_MAX - 2), Ok(()));
    assert_eq!(nulls(SECTION_ELEMENTS_MAX - 1).unwrap_err().kind, too_many);
    assert_eq!(nulls(SECTION_ELEMENTS_MAX).unwrap_err().condition(), RESOURCE_LIMIT_EXCEEDED);
    // Two sections have as many together.
    let half = annotations(&list(SECTION_ELEMENTS_MAX / 2, &[0x40]));
    let footer = [&[0, 0x53, 0x78][..], &half[3..]].concat();
    let both = [&half[..], &bytes("00 53 75 a0 00"), &footer].concat();
    assert_eq!(Message::scan(&both).unwrap_err().kind, too_many);
    // Arrays of elements without bytes have one budget, too.
    let arrays = |count| Message::scan(&annotations(&list(count, &bytes("e0 02 80 40")))).map(drop);
    assert_eq!(arrays(EMPTY_ELEMENTS_MAX / 0x80), Ok(()));
    assert_eq!(arrays(EMPTY_ELEMENTS_MAX / 0x80 + 1).unwrap_err().kind, TooManyElements);
    // Numbers take bytes of their own and are passed over at once.
    let size = 1_000_000_u32;
    let numbers = [&[0xf0], &(size + 5).to_be_bytes()[..], &size.to_be_bytes(), &[0x50]].concat();
    assert!(Message::scan(&annotations(&[numbers, vec![7; size as usize]].concat())).is_ok());
}

#[test]
fn bodies_have_bounded_sections() {
    let body =
        |count: u32, section: &str| Message::scan(&bytes(section).repeat(count as usize)).map(drop);
    for section in ["00 53 75 a0 00", "00 53 76 45"] {
        assert_eq!(body(BODY_SECTIONS_MAX, section), Ok(()));
        let error = body(BODY_SECTIONS_MAX + 1, section).unwrap_err();
        assert_eq!(error.kind, TooMany("sections of a body", BODY_SECTIONS_MAX));
        assert_eq!(error.condition(), RESOURCE_LIMIT_EXCEEDED);
    }
}

/// The inside of a body is the receiver's: it is looked at when a reader asks for it.
#[test]
fn body_content_is_checked_on_read() {
    let message = bytes("00 53 77 c0 03 01 a1 ff");
    let scanned = Message::scan(&message).unwrap();
    assert_eq!(scanned.value().unwrap_err().kind, Truncated);
}

#[test]
fn message_tells_its_sections() {
    let message = bytes(
        "00 53 70 c0 03 01 41 41
         00 53 71 c1 05 02 a3 01 64 43
         00 53 72 c1 05 02 a3 01 6d 41
         00 53 73 c0 04 01 a1 01 69
         00 53 74 c1 05 02 a1 01 70 42
         00 53 75 a0 01 61 00 53 75 a0 01 62
         00 53 78 c1 01 00",
    );
    let lying = Message::scan(&message).unwrap_err();
    assert_eq!((lying.kind, lying.offset), (SizeMismatch, 7), "the header's size is one too large");

    let message = [&bytes("00 53 70 c0 02 01 41")[..], &message[8..]].concat();
    let scanned = Message::scan(&message).unwrap();
    assert_eq!(scanned.header(), Header { durable: true, ..Header::default() });
    assert_eq!(scanned.delivery_annotations().unwrap().get("d"), Some(Value::Uint(0)));
    assert_eq!(scanned.message_annotation("m"), Some(Value::Boolean(true)));
    assert_eq!(scanned.properties().message_id, Some(Value::String("i")));
    assert_eq!(scanned.application_property("p"), Some(Value::Boolean(false)));
    assert_eq!(scanned.application_property("q"), None);
    assert_eq!(scanned.data().collect::<Vec<_>>(), [b"a", b"b"]);
    assert_eq!((scanned.body_kind(), scanned.value()), (BodyKind::Data, Ok(None)));
    assert_eq!(scanned.section(Section::Header), bytes("00 53 70 c0 02 01 41"));
    assert_eq!(scanned.section(Section::Footer), bytes("00 53 78 c1 01 00"));
    let lengths = [scanned.bytes(), scanned.without_header(), scanned.body_and_footer()];
    assert_eq!(lengths.map(<[u8]>::len), [message.len(), message.len() - 17, 18]);
}

#[test]
fn message_sections_are_all_optional() {
    let empty = Message::scan(&[]).unwrap();
    assert_eq!((empty.header(), empty.body_kind()), (Header::default(), BodyKind::Empty));
    assert_eq!(empty.properties(), Properties::default());
    assert_eq!((empty.message_annotation("x"), empty.data().count()), (None, 0));
    assert_eq!((empty.without_header(), empty.body_and_footer()), (&[][..], &[][..]));

    let text = bytes("00 53 77 a1 02 6869");
    let text = Message::scan(&text).unwrap();
    assert_eq!(text.value(), Ok(Some(Value::String("hi"))));
    assert_eq!(text.without_header(), text.bytes());

    let symbolic = bytes("00 a3 11 616d71703a616d71702d76616c75653a2a 43");
    assert_eq!(Message::scan(&symbolic).unwrap().value(), Ok(Some(Value::Uint(0))));
}

#[test]
fn coordinator_takes_only_requests() {
    for (hex, kind) in [
        ("00 53 75 a0 00", UnknownDescriptor),
        ("00 53 77 40", UnexpectedType(0x40)),
        ("00 53 77 00 53 33 c0 03 01 a0 00", UnknownDescriptor),
        ("00 53 77 00 53 32 45", MissingField("txn-id")),
        ("00 53 77 00 53 31 c0 03 02 40 40", TooManyFields),
    ] {
        assert_eq!(CoordinatorRequest::decode(&bytes(hex)).expect_err(hex).kind, kind, "{hex}");
    }
}
