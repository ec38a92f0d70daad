//! Lists, maps and arrays: written behind room for their short head, which grows when it must.

use alloc::vec::Vec;
use core::mem;

use crate::encode;
use crate::types::{Array, Fields, List, Map, Symbols, Value, code};

/// Constructor, size and count of one octet each.
const SHORT_HEAD_BYTES: usize = 3;

/// The two forms of a compound type.
struct Forms {
    short: u8,
    long: u8,
}

const LIST: Forms = Forms { short: code::LIST_8, long: code::LIST_32 };
const MAP: Forms = Forms { short: code::MAP_8, long: code::MAP_32 };
const ARRAY: Forms = Forms { short: code::ARRAY_8, long: code::ARRAY_32 };

/// Writes the elements that `write` appends, and their count, behind the smallest head that holds
/// them.
fn compound(out: &mut Vec<u8>, forms: Forms, write: impl FnOnce(&mut Vec<u8>) -> u32) {
    let start = out.len();
    let head_end = start + SHORT_HEAD_BYTES;
    out.resize(head_end, 0);
    let count = write(out);
    assert!(out.len() >= head_end, "elements are appended behind their head");
    let body = out.len() - head_end;
    match (u8::try_from(body + 1), u8::try_from(count), out.get_mut(start..head_end)) {
        (Ok(size), Ok(count), Some(head)) => head.copy_from_slice(&[forms.short, size, count]),
        _ => {
            let (size, count) = (encode::size(body + 4).to_be_bytes(), count.to_be_bytes());
            out.splice(start..head_end, [forms.long].into_iter().chain(size).chain(count));
        }
    }
}

/// Appends a described list, the form of most composite types. `write` gives its fields.
pub(crate) fn composite(out: &mut Vec<u8>, code: u64, write: impl FnOnce(&mut ListWriter<'_>)) {
    encode::described(out, code);
    let start = out.len();
    let mut is_empty = false;
    compound(out, LIST, |out| {
        let mut list = ListWriter { out, count: 0, nulls: 0 };
        write(&mut list);
        is_empty = list.count == 0;
        list.count
    });
    if is_empty {
        out.truncate(start);
        out.push(code::LIST_0);
    }
}

/// The fields of a composite type. Absent ones become null, but at the end nothing (1.4).
pub(crate) struct ListWriter<'o> {
    out: &'o mut Vec<u8>,
    count: u32,
    /// Absent fields since the last one that was written.
    nulls: u32,
}

impl ListWriter<'_> {
    /// Writes a field by `write`, unless it is absent.
    pub(crate) fn field<T>(&mut self, field: Option<T>, write: impl FnOnce(&mut Vec<u8>, T)) {
        let Some(field) = field else {
            self.nulls += 1;
            return;
        };
        let nulls = mem::take(&mut self.nulls);
        self.out.resize(self.out.len() + nulls as usize, code::NULL);
        self.count += nulls + 1;
        write(self.out, field);
    }

    pub(crate) fn boolean(&mut self, field: Option<bool>) {
        self.field(field, encode::boolean);
    }

    /// A boolean with the default false.
    pub(crate) fn flag(&mut self, field: bool) {
        self.boolean(field.then_some(true));
    }

    pub(crate) fn ubyte(&mut self, field: Option<u8>) {
        self.field(field, encode::ubyte);
    }

    pub(crate) fn ushort(&mut self, field: Option<u16>) {
        self.field(field, encode::ushort);
    }

    pub(crate) fn uint(&mut self, field: Option<u32>) {
        self.field(field, encode::uint);
    }

    pub(crate) fn ulong(&mut self, field: Option<u64>) {
        self.field(field, encode::ulong);
    }

    pub(crate) fn timestamp(&mut self, field: Option<i64>) {
        self.field(field, encode::timestamp);
    }

    pub(crate) fn binary(&mut self, field: Option<&[u8]>) {
        self.field(field, encode::binary);
    }

    pub(crate) fn string(&mut self, field: Option<&str>) {
        self.field(field, encode::string);
    }

    pub(crate) fn symbol(&mut self, field: Option<&str>) {
        self.field(field, encode::symbol);
    }

    pub(crate) fn value(&mut self, field: Option<Value<'_>>) {
        self.field(field, encode::value);
    }

    pub(crate) fn symbols(&mut self, field: &Symbols) {
        self.field((!field.is_empty()).then_some(field), encode::symbols);
    }

    pub(crate) fn fields(&mut self, field: &Fields) {
        let present = (!field.is_empty()).then(|| field.as_map());
        self.field(present, copied_map);
    }
}

/// Appends a map. `write` gives its pairs.
pub fn map(out: &mut Vec<u8>, write: impl FnOnce(&mut MapWriter<'_>)) {
    compound(out, MAP, |out| {
        let mut map = MapWriter { out, count: 0 };
        write(&mut map);
        map.count
    });
}

/// The pairs of a map.
pub struct MapWriter<'o> {
    out: &'o mut Vec<u8>,
    count: u32,
}

impl MapWriter<'_> {
    /// A pair under a symbol, as annotations have them.
    pub fn symbol(&mut self, key: &str, value: Value<'_>) {
        self.entry(Value::Symbol(key), value);
    }

    /// A pair under a string, as application properties have them.
    pub fn string(&mut self, key: &str, value: Value<'_>) {
        self.entry(Value::String(key), value);
    }

    /// A pair under any key.
    pub fn entry(&mut self, key: Value<'_>, value: Value<'_>) {
        encode::value(self.out, key);
        encode::value(self.out, value);
        self.count += 2;
    }

    /// All pairs of another map but those under the symbols or strings `but`.
    pub fn copy(&mut self, map: Map<'_>, but: &[&str]) {
        for (key, value) in map.iter() {
            if !key.as_str().is_some_and(|key| but.contains(&key)) {
                self.entry(key, value);
            }
        }
    }
}

pub(crate) fn copied_map(out: &mut Vec<u8>, map: Map<'_>) {
    compound(out, MAP, |out| {
        out.extend_from_slice(map.elements);
        map.count
    });
}

pub(crate) fn list(out: &mut Vec<u8>, list: List<'_>) {
    if list.is_empty() {
        return out.push(code::LIST_0);
    }
    compound(out, LIST, |out| {
        out.extend_from_slice(list.elements);
        list.count
    });
}

pub(crate) fn array(out: &mut Vec<u8>, array: Array<'_>) {
    compound(out, ARRAY, |out| {
        if let Some(descriptor) = array.descriptor {
            encode::descriptor(out, descriptor);
        }
        out.push(array.code);
        out.extend_from_slice(array.elements);
        array.count
    });
}

/// An array of symbols, all with a size of one octet if that suffices.
pub(crate) fn array_of_symbols(out: &mut Vec<u8>, symbols: &Symbols) {
    let is_short = symbols.iter().all(|symbol| u8::try_from(symbol.len()).is_ok());
    compound(out, ARRAY, |out| {
        out.push(if is_short { code::SYMBOL_8 } else { code::SYMBOL_32 });
        for symbol in symbols.iter() {
            let size = encode::size(symbol.len()).to_be_bytes();
            let skipped = if is_short { size.len() - 1 } else { 0 };
            out.extend(size.iter().skip(skipped));
            out.extend_from_slice(symbol.as_bytes());
        }
        encode::size(symbols.len())
    });
}
