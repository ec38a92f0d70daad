//! Values and performatives that no honest peer sends, each with its error.

use std::iter;

use amqp::DecodeErrorKind::{self as Kind, *};
use amqp::limits::{DELIVERY_TAG_BYTES_MAX, EMPTY_ELEMENTS_MAX, NESTING_MAX, SYMBOLS_MAX};
use amqp::performative::Performative;
use amqp::sasl::{Plain, SaslBody};
use amqp::types::Value;

use crate::bytes;

#[test]
fn hostile_values_are_refused() {
    let hostile = [
        ("nothing", "", Truncated, 0),
        ("a uint without its end", "70 0000", Truncated, 1),
        ("a string longer than the bytes", "a1 05 6162", Truncated, 2),
        ("a binary of 4 GiB", "b0 ffffffff 00", Truncated, 5),
        ("a negative size, as some read it", "b1 80000000 00", Truncated, 5),
        ("an unknown constructor", "4f", UnknownConstructor(0x4f), 0),
        ("an unknown constructor of 16 octets", "9f", UnknownConstructor(0x9f), 0),
        ("something behind the value", "40 40", TrailingBytes, 1),
        ("a boolean of 2", "56 02", NotBoolean, 1),
        ("a string that is not UTF-8", "a1 02 c328", NotUtf8, 0),
        ("a symbol that is not ASCII", "a3 02 c3a9", NotAscii, 0),
        ("a surrogate as a char", "73 0000d800", NotChar, 0),
        ("a char beyond Unicode", "73 00110000", NotChar, 0),
        ("a list smaller than its count", "c0 00", SizeMismatch, 0),
        ("a long list smaller than its count", "d0 00000003 000000", SizeMismatch, 0),
        ("a list of 4 GiB", "d0 ffffffff 00000001 40", Truncated, 5),
        ("a list of one element more than bytes", "c0 02 02 40", TooManyElements, 0),
        ("a list of 2^32 elements", "d0 00000005 ffffffff 40", TooManyElements, 0),
        ("a list with less elements than bytes", "c0 03 01 4040", SizeMismatch, 4),
        ("an element that leaves its list", "c0 03 01 5201 40", TrailingBytes, 5),
        ("an element longer than its list", "c0 03 01 a109 616263", Truncated, 5),
        ("a map with a key and no value", "c1 02 01 40", OddMap, 0),
        ("a map of 2^32-2 elements", "d1 00000006 fffffffe 4040", TooManyElements, 0),
        ("an array of 2^32-1 nulls", "f0 00000005 ffffffff 40", TooManyElements, 0),
        ("an array of 2^32-1 empty lists", "f0 00000005 ffffffff 45", TooManyElements, 0),
        ("an array of 2^32-1 trues", "f0 00000005 ffffffff 41", TooManyElements, 0),
        ("an array of 2^32-1 described zeros", "f0 00000008 ffffffff 00530143", TooManyElements, 0),
        ("an array of 2^32-1 ubytes", "f0 00000006 ffffffff 50 01", TooManyElements, 0),
        ("an array without constructor", "e0 01 00", Truncated, 3),
        ("an array with bytes behind its elements", "e0 04 01 50 0102", SizeMismatch, 5),
        ("an array of unknown things", "e0 03 01 4f 00", UnknownConstructor(0x4f), 3),
        ("an array of twice described things", "e0 07 01 0053010053 01 40", BadDescriptor, 6),
        ("a described descriptor", "00 00 53 01 53 02 40", BadDescriptor, 1),
        ("a string as descriptor", "00 a1 01 61 40", BadDescriptor, 1),
        ("a list as descriptor", "00 45 40", BadDescriptor, 1),
        ("a descriptor without value", "00 53 01", Truncated, 3),
        ("a descriptor alone", "00", Truncated, 1),
    ];
    for (name, hex, kind, offset) in hostile {
        let error = Value::decode(&bytes(hex)).expect_err(name);
        assert_eq!((error.kind, error.offset), (kind, offset), "{name}");
    }
}

#[test]
fn nesting_ends_at_its_limit() {
    let lists = |depth: u32| nested(depth, list);
    let described = |depth: u32| nested(depth, |inner| [&[0x00, 0x53, 0x01], inner].concat());
    let maps = |depth: u32| {
        nested(depth, |inner| {
            let size = u32::try_from(inner.len() + 5).unwrap().to_be_bytes();
            [&[0xd1], &size[..], &[0, 0, 0, 2, 0x40], inner].concat()
        })
    };
    let arrays = |depth: u32| {
        let innermost = vec![0xf0, 0, 0, 0, 5, 0, 0, 0, 0, 0x40];
        iter::successors(Some(innermost), |inner| {
            let size = u32::try_from(inner.len() + 4).unwrap().to_be_bytes();
            Some([&[0xf0], &size[..], &[0, 0, 0, 1], inner].concat())
        })
        .nth(depth as usize - 1)
        .unwrap()
    };
    for nest in [&lists as &dyn Fn(u32) -> Vec<u8>, &described, &maps, &arrays] {
        assert!(Value::decode(&nest(NESTING_MAX)).is_ok());
        let error = Value::decode(&nest(NESTING_MAX + 1)).unwrap_err();
        assert_eq!(error.kind, TooDeep);
        assert_eq!(Value::decode(&nest(5_000)).unwrap_err().kind, TooDeep);
    }
}

fn nested(depth: u32, wrap: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    (0..depth).fold(vec![0x40], |inner, _| wrap(&inner))
}

/// A list with one element.
fn list(element: &[u8]) -> Vec<u8> {
    let size = u32::try_from(element.len() + 4).unwrap().to_be_bytes();
    [&[0xd0], &size[..], &[0, 0, 0, 1], element].concat()
}

#[test]
fn empty_elements_have_a_limit() {
    let array = array_of_zeros;
    let encoded = array(EMPTY_ELEMENTS_MAX);
    let Ok(Value::Array(zeros)) = Value::decode(&encoded) else { panic!() };
    assert_eq!(zeros.iter().count(), EMPTY_ELEMENTS_MAX as usize);
    assert_eq!(Value::decode(&array(EMPTY_ELEMENTS_MAX + 1)).unwrap_err().kind, TooManyElements);
}

/// In any frame: lists of arrays, maps of them, or several fields.
#[test]
fn empty_elements_count_over_all_arrays() {
    let half = |more| array_of_zeros(EMPTY_ELEMENTS_MAX / 2 + more);
    let several = |elements: &[Vec<u8>]| {
        let size = u32::try_from(elements.concat().len() + 4).unwrap().to_be_bytes();
        let count = u32::try_from(elements.len()).unwrap().to_be_bytes();
        [&[0xd0], &size[..], &count, &elements.concat()].concat()
    };
    let both = |more| several(&[several(&[half(0)]), half(more)]);
    assert!(Value::decode(&both(0)).is_ok());
    assert_eq!(Value::decode(&both(1)).unwrap_err().kind, TooManyElements);
    let state = |more| {
        let [first, second] =
            [half(0), half(more)].map(|array| [&[0xa3, 1, b'k'], &array[..]].concat());
        let info = |pair: &[u8]| {
            let map = [&[0xc1, u8::try_from(pair.len() + 1).unwrap(), 2], pair].concat();
            let error = [&[0xa3, 1, b'c', 0x40], &map[..]].concat();
            let error =
                [&[0, 0x53, 0x1d, 0xc0, u8::try_from(error.len() + 1).unwrap(), 3], &error[..]];
            let rejected = error.concat();
            let size = u8::try_from(rejected.len() + 1).unwrap();
            [&[0, 0x53, 0x25, 0xc0, size, 1], &rejected[..]].concat()
        };
        let unsettled = [&[0xa0, 1, 1], &info(&first)[..], &[0xa0, 1, 2], &info(&second)].concat();
        let map = [&[0xc1, u8::try_from(unsettled.len() + 1).unwrap(), 4], &unsettled[..]].concat();
        let fields = [&bytes("a10161 43 41 40404040")[..], &map].concat();
        let size = u8::try_from(fields.len() + 1).unwrap();
        [&[0, 0x53, 0x12, 0xc0, size, 8], &fields[..]].concat()
    };
    assert!(Performative::decode(&state(0)).is_ok());
    assert_eq!(Performative::decode(&state(1)).unwrap_err().kind, TooManyElements);
}

fn array_of_zeros(count: u32) -> Vec<u8> {
    [&[0xf0, 0, 0, 0, 5][..], &count.to_be_bytes(), &[0x43]].concat()
}

fn performative_error(hex: &str) -> Kind {
    Performative::decode(&bytes(hex)).expect_err(hex).kind
}

#[test]
fn hostile_performatives_are_refused() {
    let hostile = [
        ("no described value", "45", UnexpectedType(0x45)),
        ("a composite of another kind", "00 53 28 45", UnknownDescriptor),
        ("SASL in an AMQP frame", "00 53 41 c0 04 01 a3 01 61", UnknownDescriptor),
        ("an unknown symbol", "00 a3 03 616263 45", UnknownDescriptor),
        ("a descriptor above a byte", "00 80 0000000100000010 45", UnknownDescriptor),
        ("a map for a list", "00 53 10 c1 01 00", UnexpectedType(0xc1)),
        ("a field of another type", "00 53 10 c0 03 01 52 01", UnexpectedType(0x52)),
        ("an open without container", "00 53 10 45", MissingField("container-id")),
        ("an open whose container is null", "00 53 10 c0 02 01 40", MissingField("container-id")),
        ("frames of no bytes", "00 53 10 c0 06 03 a1 01 61 40 43", InvalidField("max-frame-size")),
        (
            "frames of 511",
            "00 53 10 c0 0a 03 a10161 40 70 000001ff",
            InvalidField("max-frame-size"),
        ),
        ("an open of 11 fields", "00 53 10 c0 0e 0b a1 0161 40404040404040404040", TooManyFields),
        ("a begin without windows", "00 53 11 c0 03 02 40 43", MissingField("incoming-window")),
        ("an attach without handle", "00 53 12 c0 04 01 a1 01 61", MissingField("handle")),
        ("an attach without role", "00 53 12 c0 05 02 a1 01 61 43", MissingField("role")),
        (
            "a sender that does not count",
            "00 53 12 c0 06 03 a1 01 61 43 42",
            MissingField("initial-delivery-count"),
        ),
        (
            "a settle mode of 3",
            "00 53 12 c0 08 04 a10161 43 41 5003",
            InvalidField("snd-settle-mode"),
        ),
        (
            "a settle mode of 2",
            "00 53 12 c0 09 05 a10161 43 41 40 5002",
            InvalidField("rcv-settle-mode"),
        ),
        (
            "a target for a source",
            "00 53 12 c0 0b 06 a10161 43 41 4040 005329 45",
            UnknownDescriptor,
        ),
        (
            "a source for a target",
            "00 53 12 c0 0c 07 a10161 43 41 404040 005328 45",
            UnknownDescriptor,
        ),
        (
            "a null where a source is no list",
            "00 53 12 c0 09 06 a10161 43 41 4040 43",
            UnexpectedType(0x43),
        ),
        ("a flow without windows", "00 53 13 45", MissingField("incoming-window")),
        ("a transfer without handle", "00 53 14 45", MissingField("handle")),
        ("an unknown state", "00 53 14 c0 0c 08 43 404040404040 005399 45", UnknownDescriptor),
        ("a disposition without first", "00 53 15 c0 02 01 41", MissingField("first")),
        ("a txn without id", "00 53 15 c0 09 05 41 43 4040 005334 45", MissingField("txn-id")),
        (
            "a txn in a txn",
            "00 53 15 c0 12 05 41 43 4040 005334 c00802 a00100 005334 45",
            UnknownDescriptor,
        ),
        ("an error without condition", "00 53 18 c0 05 01 00531d 45", MissingField("condition")),
        ("payload behind a close", "00 53 18 45 00", TrailingBytes),
        ("payload behind a flow", "00 53 13 c0 05 04 40434343 ff", TrailingBytes),
        ("bytes behind the fields", "00 53 18 c0 03 01 40 40", SizeMismatch),
        ("a list that leaves the frame", "00 53 18 c0 09 01 40", Truncated),
    ];
    for (name, hex, kind) in hostile {
        assert_eq!(performative_error(hex), kind, "{name}");
    }
}

#[test]
fn hostile_maps_of_fields_are_refused() {
    let open = |properties: &str| {
        let properties = bytes(properties);
        let size = u8::try_from(properties.len() + 12).unwrap();
        let head = bytes("a1 01 61 4040404040404040");
        let body = [&[0x00, 0x53, 0x10, 0xc0, size, 10][..], &head, &properties].concat();
        Performative::decode(&body).map(drop).unwrap_err().kind
    };
    assert_eq!(open("c1 05 02 a1 01 61 40"), InvalidField("key"));
    assert_eq!(open("c1 04 02 52 01 40"), InvalidField("key"));
    assert_eq!(open("c1 02 01 40"), OddMap);
    assert_eq!(open("c1 06 02 a3 01 61 40 40"), SizeMismatch);
    assert_eq!(open("45"), UnexpectedType(0x45));
}

#[test]
fn hostile_symbols_are_refused() {
    let open = |locales: &[u8]| {
        let size = u32::try_from(locales.len() + 11).unwrap().to_be_bytes();
        let head = [&[0x00, 0x53, 0x10, 0xd0][..], &size, &[0, 0, 0, 6], &bytes("a10161 40404040")];
        Performative::decode(&[&head.concat(), locales].concat()).map(drop)
    };
    assert_eq!(open(&bytes("a3 01 61")), Ok(()), "one symbol");
    assert_eq!(open(&bytes("e0 02 00 a3")), Ok(()), "none");
    for (hex, kind) in [
        ("a1 01 61", InvalidField("outgoing-locales")),
        ("e0 04 01 a1 01 61", InvalidField("outgoing-locales")),
        ("c0 04 01 a3 01 61", InvalidField("outgoing-locales")),
        ("f0 00000005 ffffffff a3", TooManyElements),
    ] {
        assert_eq!(open(&bytes(hex)).unwrap_err().kind, kind, "{hex}");
    }
    let empty_symbols = |count: u32| {
        let size = (count + 5).to_be_bytes();
        [&[0xf0][..], &size, &count.to_be_bytes(), &[0xa3], &vec![0; count as usize]].concat()
    };
    assert_eq!(open(&empty_symbols(SYMBOLS_MAX)), Ok(()));
    assert_eq!(open(&empty_symbols(SYMBOLS_MAX + 1)).unwrap_err().kind, TooManyElements);
}

#[test]
fn delivery_tag_length_is_limited() {
    let transfer = |length: usize| {
        let tag = vec![7; length];
        let (size, tag_size) = (u8::try_from(length + 5).unwrap(), u8::try_from(length).unwrap());
        let head = [0x00, 0x53, 0x14, 0xc0, size, 3, 0x43, 0x43, 0xa0, tag_size];
        Performative::decode(&[&head, &tag[..]].concat()).map(drop)
    };
    assert_eq!(transfer(DELIVERY_TAG_BYTES_MAX), Ok(()));
    let error = transfer(DELIVERY_TAG_BYTES_MAX + 1).unwrap_err();
    assert_eq!((error.kind, error.offset), (InvalidField("delivery-tag"), 8));
    assert_eq!(error.condition(), "amqp:invalid-field");
}

#[test]
fn hostile_unsettled_maps_are_refused() {
    let attach = |unsettled: &str| {
        let unsettled = bytes(unsettled);
        let size = u8::try_from(unsettled.len() + 10).unwrap();
        let head = [&[0x00, 0x53, 0x12, 0xc0, size, 8][..], &bytes("a10161 43 41 40404040")];
        Performative::decode(&[&head.concat(), &unsettled[..]].concat()).map(drop)
    };
    assert_eq!(attach("c1 05 02 a0 01 61 40"), Ok(()));
    assert_eq!(attach("c1 08 02 a0 01 61 00 53 24 45"), Ok(()));
    for (hex, kind) in [
        ("c1 05 02 a3 01 61 40", UnexpectedType(0xa3)),
        ("c1 05 02 a0 01 61 43", UnexpectedType(0x43)),
        ("c1 08 02 a0 01 61 00 53 28 45", UnknownDescriptor),
        ("c1 04 01 a0 01 61", OddMap),
    ] {
        assert_eq!(attach(hex).unwrap_err().kind, kind, "{hex}");
    }
}

#[test]
fn hostile_sasl_is_refused() {
    let hostile = [
        ("an open", "00 53 10 c0 04 01 a1 01 61", UnknownDescriptor),
        ("an init without mechanism", "00 53 41 45", MissingField("mechanism")),
        ("an init with four fields", "00 53 41 c0 07 04 a3 01 61 404040", TooManyFields),
        ("a mechanism that is a string", "00 53 41 c0 04 01 a1 01 61", UnexpectedType(0xa1)),
        ("no mechanisms", "00 53 40 45", MissingField("sasl-server-mechanisms")),
        ("an empty array", "00 53 40 c0 05 01 e0 02 00 a3", MissingField("sasl-server-mechanisms")),
        ("an outcome of 5", "00 53 44 c0 03 01 50 05", InvalidField("code")),
        ("no response", "00 53 43 c0 02 01 40", MissingField("response")),
        ("a response longer than its frame", "00 53 43 c0 06 01 b0 7fffffff", Truncated),
        ("something behind", "00 53 43 c0 03 01 a0 00 00", TrailingBytes),
    ];
    for (name, hex, kind) in hostile {
        assert_eq!(SaslBody::decode(&bytes(hex)).expect_err(name).kind, kind, "{name}");
    }
}

#[test]
fn plain_needs_three_parts() {
    let plain = Plain::parse(b"\0user\0secret").unwrap();
    assert_eq!((plain.authorization_id, plain.user, plain.password), ("", "user", "secret"));
    assert_eq!(Plain::parse(b"boss\0user\0").unwrap().authorization_id, "boss");
    for wrong in [&b""[..], b"user", b"\0user", b"\0user\0a\0b", b"\0us\xff\0a"] {
        assert_eq!(Plain::parse(wrong), None, "{wrong:?}");
    }
    assert!(plain.has_user() && !Plain::parse(b"\0\0token").unwrap().has_user());
    assert!(!format!("{plain:?}").contains("secret"));
    let init = SaslBody::Init {
        mechanism: "PLAIN",
        initial_response: Some(b"\0user\0secret"),
        hostname: None,
    };
    assert_eq!(format!("{init:?}"), "Init(PLAIN)");
}
