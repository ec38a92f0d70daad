//! Bodies that are values and no bytes, such as the maps and streams of JMS, for protocols and
//! people that read no AMQP.

use alloc::format;
use alloc::string::String;

use model::{Content, Format};

use crate::formats::FORMAT;
use crate::message::{BodyKind, Message, Section};
use crate::types::Value;

/// The value of a body that is one and no text or binary, or a sequence. Nothing for a larger one
/// than [`SHOWN_BYTES_MAX`], or one that is malformed inside.
pub(crate) fn content(format: Format, body: &[u8]) -> Option<Content> {
    let message = Message::stored((format == FORMAT).then_some(body)?)?;
    if message.section(Section::Body).len() > SHOWN_BYTES_MAX {
        return None;
    }
    match message.body_kind() {
        BodyKind::Value if message.text_or_binary().is_none() => message.value().ok()?.map(shown),
        BodyKind::Sequence => Some(list(message.sequence()?.into_iter())),
        BodyKind::Value | BodyKind::Data | BodyKind::Empty => None,
    }
}

fn shown(value: Value<'_>) -> Content {
    match value {
        Value::Boolean(value) => Content::Boolean(value),
        Value::Float(number) => Content::Float(number.into()),
        Value::Double(number) => Content::Float(number),
        Value::Decimal32(bytes) => Content::Binary(bytes.to_vec()),
        Value::Decimal64(bytes) => Content::Binary(bytes.to_vec()),
        Value::Decimal128(bytes) => Content::Binary(bytes.to_vec()),
        Value::Binary(bytes) => Content::Binary(bytes.to_vec()),
        Value::Char(letter) => Content::String(letter.into()),
        Value::Uuid(bytes) => Content::String(uuid(bytes)),
        Value::String(text) | Value::Symbol(text) => Content::String(text.into()),
        Value::List(values) => list(values.iter()),
        Value::Array(values) => list(values.iter()),
        Value::Map(map) => {
            Content::Map(map.iter().map(|(key, value)| (shown(key), shown(value))).collect())
        }
        Value::Described(described) => shown(described.value()),
        Value::Ulong(number) if i64::try_from(number).is_err() => Content::Unsigned(number),
        // The integers, and null.
        _ => value.as_i64().map_or(Content::Null, Content::Integer),
    }
}

fn list<'a>(values: impl Iterator<Item = Value<'a>>) -> Content {
    Content::List(values.map(shown).collect())
}

/// As RFC 9562 writes it.
fn uuid(bytes: [u8; 16]) -> String {
    let number = u128::from_be_bytes(bytes);
    let part = |shift: u32| (number >> shift) & 0xffff;
    let (first, last) = (number >> 96, number & 0xffff_ffff_ffff);
    format!("{first:08x}-{:04x}-{:04x}-{:04x}-{last:012x}", part(80), part(64), part(48))
}

/// Bytes of the largest body that is shown: shown, each byte may take a hundred.
const SHOWN_BYTES_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::encode;
    use crate::message;

    fn of_value(value: Value<'_>) -> Option<Content> {
        let mut body = Vec::new();
        message::value(&mut body, value);
        content(FORMAT, &body)
    }

    #[test]
    fn values_are_shown() {
        let id = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef_u128.to_be_bytes();
        let text = |text: &str| Content::String(text.into());
        let cases = [
            (Value::Null, Content::Null),
            (Value::Boolean(true), Content::Boolean(true)),
            (Value::Byte(-1), Content::Integer(-1)),
            (Value::Ulong(5), Content::Integer(5)),
            (Value::Ulong(u64::MAX), Content::Unsigned(u64::MAX)),
            (Value::Timestamp(-7), Content::Integer(-7)),
            (Value::Float(0.5), Content::Float(0.5)),
            (Value::Double(-2.5), Content::Float(-2.5)),
            (Value::Char('ä'), text("ä")),
            (Value::Symbol("s"), text("s")),
            (Value::Uuid(id), text("01234567-89ab-cdef-0123-456789abcdef")),
            (Value::Decimal32([1; 4]), Content::Binary([1; 4].to_vec())),
        ];
        for (value, expected) in cases {
            assert_eq!(of_value(value), Some(expected), "{value:?}");
        }
    }

    #[test]
    fn maps_and_lists_are_shown() {
        let mut bytes = Vec::new();
        encode::map(&mut bytes, |map| {
            map.string("amount", Value::Int(3));
            map.symbol("raw", Value::Binary(b"\xff"));
        });
        let map = Value::decode(&bytes).unwrap();
        let pairs = [
            (Content::String("amount".into()), Content::Integer(3)),
            (Content::String("raw".into()), Content::Binary(b"\xff".to_vec())),
        ];
        assert_eq!(of_value(map), Some(Content::Map(pairs.to_vec())));
        let one = Content::List([Content::Integer(1), Content::Null].to_vec());
        let list = Value::decode(&[0xc0, 4, 2, 0x54, 1, 0x40]).unwrap();
        assert_eq!(of_value(list), Some(one.clone()));
        let array = Value::decode(&[0xe0, 4, 2, 0x54, 1, 2]).unwrap();
        let both = Content::List([1, 2].map(Content::Integer).to_vec());
        assert_eq!(of_value(array), Some(both.clone()));
        let described = Value::decode(&[0, 0x53, 9, 0xc0, 4, 2, 0x54, 1, 0x40]).unwrap();
        assert_eq!(of_value(described), Some(one));
        let sequences = [0, 0x53, 0x76, 0xc0, 3, 1, 0x54, 1, 0, 0x53, 0x76, 0xc0, 3, 1, 0x54, 2];
        assert_eq!(content(FORMAT, &sequences), Some(both));
    }

    #[test]
    fn content_shows_only_readable_values() {
        assert_eq!(of_value(Value::String("text")), None);
        assert_eq!(of_value(Value::Binary(b"bytes")), None);
        let mut data = Vec::new();
        message::data(&mut data, b"bytes");
        assert_eq!(content(FORMAT, &data), None);
        assert_eq!(content(Format::RAW, &data), None);
        let map_with_a_key_twice = [0, 0x53, 0x77, 0xc1, 5, 4, 0x54, 1, 0x40, 0x54, 1, 0x40];
        assert_eq!(content(FORMAT, &map_with_a_key_twice), None);
        let broken = [0, 0x53, 0x77, 0xc0, 3, 2, 0x54, 1];
        assert_eq!(content(FORMAT, &broken), None);
        let no_list = [0, 0x53, 0x76, 0x54, 1];
        assert_eq!(content(FORMAT, &no_list), None);
    }

    #[test]
    fn large_value_is_not_shown() {
        for (count, is_shown) in [(1_000, true), (SHOWN_BYTES_MAX, false)] {
            let mut body = Vec::new();
            encode::map(&mut body, |map| {
                map.string("long", Value::String(&"x".repeat(count)));
            });
            let value = Value::decode(&body).unwrap();
            assert_eq!(of_value(value).is_some(), is_shown, "{count}");
        }
    }
}
