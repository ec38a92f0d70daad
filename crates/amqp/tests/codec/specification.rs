//! Encodings that the specification draws (1.2 to 1.6, 2.2, 2.3), each decoded and encoded.

use amqp::DecodeErrorKind::DuplicateKey;
use amqp::frame::{self, Frame, FrameKind, Split};
use amqp::message::Message;
use amqp::protocol_header::ProtocolHeader;
use amqp::types::{Descriptor, Value};
use amqp::{DecodeErrorKind, encode};

use crate::bytes;

#[test]
fn scalar_forms_read_and_smallest_written() {
    #[rustfmt::skip]
    let forms: [(&str, Value<'_>, &str); 44] = [
        ("40", Value::Null, "40"),
        ("41", Value::Boolean(true), "41"),
        ("42", Value::Boolean(false), "42"),
        ("56 01", Value::Boolean(true), "41"),
        ("56 00", Value::Boolean(false), "42"),
        ("50 ff", Value::Ubyte(255), "50 ff"),
        ("60 ffff", Value::Ushort(65535), "60 ffff"),
        ("70 00000000", Value::Uint(0), "43"),
        ("70 000000ff", Value::Uint(255), "52 ff"),
        ("70 00000100", Value::Uint(256), "70 00000100"),
        ("52 07", Value::Uint(7), "52 07"),
        ("43", Value::Uint(0), "43"),
        ("80 0000000000000001", Value::Ulong(1), "53 01"),
        ("80 ffffffffffffffff", Value::Ulong(u64::MAX), "80 ffffffffffffffff"),
        ("53 00", Value::Ulong(0), "44"),
        ("44", Value::Ulong(0), "44"),
        ("51 80", Value::Byte(-128), "51 80"),
        ("61 8000", Value::Short(i16::MIN), "61 8000"),
        ("71 ffffffff", Value::Int(-1), "54 ff"),
        ("71 00000080", Value::Int(128), "71 00000080"),
        ("54 80", Value::Int(-128), "54 80"),
        ("81 ffffffffffffffff", Value::Long(-1), "55 ff"),
        ("81 ffffffffffffff7f", Value::Long(-129), "81 ffffffffffffff7f"),
        ("55 7f", Value::Long(127), "55 7f"),
        ("72 3f800000", Value::Float(1.0), "72 3f800000"),
        ("82 3ff0000000000000", Value::Double(1.0), "82 3ff0000000000000"),
        ("74 01020304", Value::Decimal32([1, 2, 3, 4]), "74 01020304"),
        ("84 0102030405060708", Value::Decimal64([1, 2, 3, 4, 5, 6, 7, 8]), "84 0102030405060708"),
        ("94 00000000000000000000000000000007",
            Value::Decimal128([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]),
            "94 00000000000000000000000000000007"),
        ("73 0001f600", Value::Char('\u{1f600}'), "73 0001f600"),
        ("83 00000000000003e8", Value::Timestamp(1000), "83 00000000000003e8"),
        ("83 ffffffffffffffff", Value::Timestamp(-1), "83 ffffffffffffffff"),
        ("98 f81d4fae7dec11d0a76500a0c91e6bf6",
            Value::Uuid(*b"\xf8\x1d\x4f\xae\x7d\xec\x11\xd0\xa7\x65\x00\xa0\xc9\x1e\x6b\xf6"),
            "98 f81d4fae7dec11d0a76500a0c91e6bf6"),
        ("a0 03 010203", Value::Binary(&[1, 2, 3]), "a0 03 010203"),
        ("b0 00000001 09", Value::Binary(&[9]), "a0 01 09"),
        ("a0 00", Value::Binary(&[]), "a0 00"),
        ("a1 05 68656c6c6f", Value::String("hello"), "a1 05 68656c6c6f"),
        ("b1 00000002 c3a9", Value::String("é"), "a1 02 c3a9"),
        ("a1 00", Value::String(""), "a1 00"),
        ("a3 03 616263", Value::Symbol("abc"), "a3 03 616263"),
        ("b3 00000003 616263", Value::Symbol("abc"), "a3 03 616263"),
        ("54 00", Value::Int(0), "54 00"),
        ("55 00", Value::Long(0), "55 00"),
        ("50 00", Value::Ubyte(0), "50 00"),
    ];
    for (hex, value, smallest) in forms {
        assert_eq!(Value::decode(&bytes(hex)), Ok(value), "{hex}");
        let mut out = Vec::new();
        encode::value(&mut out, value);
        assert_eq!(out, bytes(smallest), "{value:?}");
    }
}

#[test]
fn lengths_from_256_take_four_octets() {
    for (length, head) in [(255, &[0xa1, 0xff][..]), (256, &[0xb1, 0, 0, 1, 0])] {
        let text = "x".repeat(length);
        let mut out = Vec::new();
        encode::value(&mut out, Value::String(&text));
        assert_eq!(out[..head.len()], *head);
        assert_eq!(Value::decode(&out), Ok(Value::String(&text)));
    }
}

#[test]
fn list_forms_decode_alike() {
    for hex in ["c0 04 02 52 01 41", "d0 00000007 00000002 52 01 41"] {
        let encoded = bytes(hex);
        let Ok(Value::List(list)) = Value::decode(&encoded) else { panic!("{hex}") };
        assert_eq!(list.iter().collect::<Vec<_>>(), [Value::Uint(1), Value::Boolean(true)]);
        let mut out = Vec::new();
        encode::value(&mut out, Value::List(list));
        assert_eq!(out, bytes("c0 04 02 52 01 41"));
    }
    for hex in ["45", "c0 01 00", "d0 00000004 00000000"] {
        let encoded = bytes(hex);
        let Ok(Value::List(list)) = Value::decode(&encoded) else { panic!("{hex}") };
        assert!(list.is_empty());
        let mut out = Vec::new();
        encode::value(&mut out, Value::List(list));
        assert_eq!(out, [0x45]);
    }
}

#[test]
fn maps_keep_their_order() {
    let encoded = bytes("c1 10 06 a3 01 62 52 01 a3 01 61 52 02 a3 01 63 52 03");
    let Ok(Value::Map(map)) = Value::decode(&encoded) else { panic!() };
    let keys: Vec<_> = map.iter().map(|(key, _)| key.as_str().unwrap()).collect();
    assert_eq!(keys, ["b", "a", "c"]);
    assert_eq!(map.get("b"), Some(Value::Uint(1)));
    assert_eq!(map.get("d"), None);
}

/// "A map in which there exist two identical key values is invalid" (1.6.23), in every map.
#[test]
fn equal_keys_are_invalid() {
    let twice = [
        ("a map", "c1 09 04 a3 01 62 43 a3 01 62 43"),
        ("two forms of a key", "c1 0c 04 a3 01 62 43 b3 00000001 62 43"),
        ("a map in a list", "c0 0c 01 c1 09 04 a3 01 62 43 a3 01 62 43"),
    ];
    for (name, hex) in twice {
        let error = Value::decode(&bytes(hex)).map(drop).unwrap_err();
        let said = (error.kind, error.condition());
        assert_eq!(said, (DuplicateKey, "amqp:decode-error"), "{name}");
    }
    for section in ["71", "72", "78"] {
        let hex = format!("00 53 {section} c1 0a 04 a3 01 62 43 a3 01 62 52 01");
        assert_eq!(Message::scan(&bytes(&hex)).unwrap_err().kind, DuplicateKey, "{section}");
    }
    let properties = bytes("00 53 74 c1 0a 04 a1 01 62 43 a1 01 62 52 01");
    assert_eq!(Message::scan(&properties).unwrap_err().kind, DuplicateKey);
    // The inside of a body is for its receiver alone.
    assert!(Message::scan(&bytes("00 53 77 c1 0a 04 a3 01 62 43 a3 01 62 52 01")).is_ok());
}

/// The figure in 1.5: a described value, here with a symbol as its descriptor.
#[test]
fn described_value_has_descriptor_and_value() {
    let encoded = bytes("00 a3 03 55524c a1 04 68747470");
    let Ok(Value::Described(described)) = Value::decode(&encoded) else { panic!() };
    assert_eq!(described.descriptor, Descriptor::Symbol("URL"));
    assert_eq!(described.value(), Value::String("http"));
}

/// The figure in 1.6.24: the elements of an array share one constructor, described or not.
#[test]
fn array_shares_its_constructor() {
    let encoded = bytes("e0 07 02 a3 01 61 02 6263");
    let Ok(Value::Array(array)) = Value::decode(&encoded) else { panic!() };
    assert_eq!(array.iter().collect::<Vec<_>>(), [Value::Symbol("a"), Value::Symbol("bc")]);

    let encoded = bytes("f0 0000000c 00000002 00 53 07 a1 01 78 01 79");
    let Ok(Value::Array(array)) = Value::decode(&encoded) else { panic!() };
    let values: Vec<Value<'_>> = array.iter().collect();
    let [Value::Described(first), Value::Described(second)] = values[..] else { panic!() };
    assert_eq!((first.descriptor, first.value()), (Descriptor::Code(7), Value::String("x")));
    assert_eq!((second.descriptor, second.value()), (Descriptor::Code(7), Value::String("y")));
    let mut out = Vec::new();
    encode::value(&mut out, Value::Array(array));
    assert_eq!(out, bytes("e0 09 02 00 53 07 a1 01 78 01 79"));
}

#[test]
fn protocol_headers_are_eight_octets() {
    assert_eq!(ProtocolHeader::AMQP.encode(), *b"AMQP\x00\x01\x00\x00");
    assert_eq!(ProtocolHeader::SASL.encode(), *b"AMQP\x03\x01\x00\x00");
    for known in [ProtocolHeader::AMQP, ProtocolHeader::TLS, ProtocolHeader::SASL] {
        let encoded = known.encode();
        assert_eq!(ProtocolHeader::decode(&encoded), Ok(Some(known)));
        for end in 0..encoded.len() {
            assert_eq!(ProtocolHeader::decode(&encoded[..end]), Ok(None));
        }
    }
    let error = ProtocolHeader::decode(b"GET / HTTP/1.1").unwrap_err();
    assert_eq!((error.kind, error.offset), (DecodeErrorKind::BadProtocolHeader, 0));
    assert_eq!(ProtocolHeader::decode(b"AMX").unwrap_err().offset, 2);
}

#[test]
fn empty_frame_is_eight_octets() {
    let mut out = Vec::new();
    frame::write(&mut out, FrameKind::Amqp, 0, |_| ());
    assert_eq!(out, bytes("00000008 02 00 0000"));
    let frame = Frame { kind: FrameKind::Amqp, channel: 0, body: &[] };
    assert_eq!(Frame::split(&out, 512), Ok(Split::Frame { frame, length: 8 }));
}

#[test]
fn extended_header_is_passed_over() {
    let stream = bytes("0000000e 03 00 0105 deadbeef 4142 ff");
    let frame = Frame { kind: FrameKind::Amqp, channel: 0x105, body: b"AB" };
    assert_eq!(Frame::split(&stream, 512), Ok(Split::Frame { frame, length: 14 }));
}
