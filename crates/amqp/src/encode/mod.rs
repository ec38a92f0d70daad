//! Encoders: each appends a value in its smallest form (1.6).

mod compound;

use alloc::vec::Vec;

use crate::types::{Descriptor, Symbols, Value, code};

pub(crate) use compound::{ListWriter, composite, copied_map};
pub use compound::{MapWriter, map};

/// A value of any type. The inside of lists, maps and arrays stays as it was encoded.
pub fn value(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Null => out.push(code::NULL),
        Value::Boolean(value) => boolean(out, value),
        Value::Ubyte(value) => ubyte(out, value),
        Value::Ushort(value) => ushort(out, value),
        Value::Uint(value) => uint(out, value),
        Value::Ulong(value) => ulong(out, value),
        Value::Int(value) => int(out, value),
        Value::Long(value) => long(out, value),
        Value::Binary(value) => binary(out, value),
        Value::String(value) => string(out, value),
        Value::Symbol(value) => symbol(out, value),
        Value::List(list) => compound::list(out, list),
        Value::Map(map) => copied_map(out, map),
        Value::Array(array) => compound::array(out, array),
        Value::Described(described) => {
            descriptor(out, described.descriptor);
            out.push(described.code);
            out.extend_from_slice(described.content);
        }
        _ => fixed_value(out, value),
    }
}

/// The types that have one form only.
fn fixed_value(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Byte(value) => fixed(out, code::BYTE, value.to_be_bytes()),
        Value::Short(value) => fixed(out, code::SHORT, value.to_be_bytes()),
        Value::Float(value) => fixed(out, code::FLOAT, value.to_be_bytes()),
        Value::Double(value) => fixed(out, code::DOUBLE, value.to_be_bytes()),
        Value::Decimal32(value) => fixed(out, code::DECIMAL_32, value),
        Value::Decimal64(value) => fixed(out, code::DECIMAL_64, value),
        Value::Decimal128(value) => fixed(out, code::DECIMAL_128, value),
        Value::Char(value) => fixed(out, code::CHAR, u32::from(value).to_be_bytes()),
        Value::Timestamp(value) => timestamp(out, value),
        Value::Uuid(value) => fixed(out, code::UUID, value),
        _ => unreachable!("`value` encodes all types of several forms"),
    }
}

fn fixed<const N: usize>(out: &mut Vec<u8>, code: u8, bytes: [u8; N]) {
    out.push(code);
    out.extend_from_slice(&bytes);
}

pub(crate) fn boolean(out: &mut Vec<u8>, value: bool) {
    out.push(if value { code::TRUE } else { code::FALSE });
}

pub(crate) fn ubyte(out: &mut Vec<u8>, value: u8) {
    fixed(out, code::UBYTE, [value]);
}

pub(crate) fn ushort(out: &mut Vec<u8>, value: u16) {
    fixed(out, code::USHORT, value.to_be_bytes());
}

pub(crate) fn uint(out: &mut Vec<u8>, value: u32) {
    match u8::try_from(value) {
        Ok(0) => out.push(code::UINT_0),
        Ok(small) => fixed(out, code::SMALL_UINT, [small]),
        Err(_) => fixed(out, code::UINT, value.to_be_bytes()),
    }
}

pub(crate) fn ulong(out: &mut Vec<u8>, value: u64) {
    match u8::try_from(value) {
        Ok(0) => out.push(code::ULONG_0),
        Ok(small) => fixed(out, code::SMALL_ULONG, [small]),
        Err(_) => fixed(out, code::ULONG, value.to_be_bytes()),
    }
}

fn int(out: &mut Vec<u8>, value: i32) {
    match i8::try_from(value) {
        Ok(small) => fixed(out, code::SMALL_INT, small.to_be_bytes()),
        Err(_) => fixed(out, code::INT, value.to_be_bytes()),
    }
}

fn long(out: &mut Vec<u8>, value: i64) {
    match i8::try_from(value) {
        Ok(small) => fixed(out, code::SMALL_LONG, small.to_be_bytes()),
        Err(_) => fixed(out, code::LONG, value.to_be_bytes()),
    }
}

pub(crate) fn timestamp(out: &mut Vec<u8>, value: i64) {
    fixed(out, code::TIMESTAMP, value.to_be_bytes());
}

pub(crate) fn binary(out: &mut Vec<u8>, bytes: &[u8]) {
    binary_head(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// The head of `length` bytes of binary.
pub(crate) fn binary_head(out: &mut Vec<u8>, length: usize) {
    sized_head(out, code::BINARY_8, code::BINARY_32, length);
}

pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    sized_head(out, code::STRING_8, code::STRING_32, text.len());
    out.extend_from_slice(text.as_bytes());
}

pub(crate) fn symbol(out: &mut Vec<u8>, symbol: &str) {
    debug_assert!(symbol.is_ascii(), "a symbol is ASCII (1.6.21)");
    sized_head(out, code::SYMBOL_8, code::SYMBOL_32, symbol.len());
    out.extend_from_slice(symbol.as_bytes());
}

fn sized_head(out: &mut Vec<u8>, short: u8, long: u8, length: usize) {
    match u8::try_from(length) {
        Ok(small) => fixed(out, short, [small]),
        Err(_) => fixed(out, long, size(length).to_be_bytes()),
    }
}

/// A size on the wire. A frame or a message has bounded all encoded values long before.
fn size(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("invariant: limits keep values far below 4 GiB")
}

/// One symbol by itself, several as an array (1.4, "multiple").
pub(crate) fn symbols(out: &mut Vec<u8>, symbols: &Symbols) {
    let mut several = symbols.iter();
    match (several.next(), several.next()) {
        (None, _) => out.push(code::NULL),
        (Some(one), None) => symbol(out, one),
        _ => compound::array_of_symbols(out, symbols),
    }
}

/// The beginning of a described value; its value has to follow.
pub(crate) fn described(out: &mut Vec<u8>, code: u64) {
    descriptor(out, Descriptor::Code(code));
}

fn descriptor(out: &mut Vec<u8>, descriptor: Descriptor<'_>) {
    out.push(code::DESCRIBED);
    match descriptor {
        Descriptor::Code(code) => ulong(out, code),
        Descriptor::Symbol(name) => symbol(out, name),
    }
}
