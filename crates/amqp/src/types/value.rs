//! A value of any type.

use crate::decode_error::DecodeError;
use crate::types::compound::{Array, Described, List, Map};
use crate::types::reader::Reader;

/// A value of any type (1.6), as it lies in the bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// True or false.
    Boolean(bool),
    /// 8 bits without sign.
    Ubyte(u8),
    /// 16 bits without sign.
    Ushort(u16),
    /// 32 bits without sign.
    Uint(u32),
    /// 64 bits without sign.
    Ulong(u64),
    /// 8 bits with sign.
    Byte(i8),
    /// 16 bits with sign.
    Short(i16),
    /// 32 bits with sign.
    Int(i32),
    /// 64 bits with sign.
    Long(i64),
    /// IEEE 754 binary32.
    Float(f32),
    /// IEEE 754 binary64.
    Double(f64),
    /// IEEE 754 decimal32, not interpreted.
    Decimal32([u8; 4]),
    /// IEEE 754 decimal64, not interpreted.
    Decimal64([u8; 8]),
    /// IEEE 754 decimal128, not interpreted.
    Decimal128([u8; 16]),
    /// One Unicode character.
    Char(char),
    /// Milliseconds since 1970-01-01T00:00:00Z.
    Timestamp(i64),
    /// RFC 4122.
    Uuid([u8; 16]),
    /// Octets.
    Binary(&'a [u8]),
    /// UTF-8.
    String(&'a str),
    /// ASCII, from a bounded set of names.
    Symbol(&'a str),
    /// Values one after another.
    List(List<'a>),
    /// Keys and values.
    Map(Map<'a>),
    /// Values of one type.
    Array(Array<'a>),
    /// A value of a type that its descriptor names.
    Described(Described<'a>),
}

impl<'a> Value<'a> {
    /// Decodes exactly one value.
    ///
    /// # Errors
    /// When the bytes are no value, or more than one.
    pub fn decode(bytes: &'a [u8]) -> Result<Value<'a>, DecodeError> {
        let mut reader = Reader::new(bytes);
        let value = reader.value()?;
        reader.finish()?;
        Ok(value)
    }

    /// The text of a string or symbol.
    pub fn as_str(&self) -> Option<&'a str> {
        match *self {
            Value::String(text) | Value::Symbol(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number of any width, if an `i64` holds it; a timestamp is one of milliseconds.
    pub fn as_i64(&self) -> Option<i64> {
        match *self {
            Value::Ubyte(number) => Some(number.into()),
            Value::Ushort(number) => Some(number.into()),
            Value::Uint(number) => Some(number.into()),
            Value::Ulong(number) => i64::try_from(number).ok(),
            Value::Byte(number) => Some(number.into()),
            Value::Short(number) => Some(number.into()),
            Value::Int(number) => Some(number.into()),
            Value::Long(number) | Value::Timestamp(number) => Some(number),
            _ => None,
        }
    }
}
