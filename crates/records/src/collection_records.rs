//! Collections and their fields, as records say them.
//!
//! ```text
//! Collection  14 · flags · name bytes · number varint (at least 1) · at u64 when flagged
//!             flags  bit 0  it goes at that moment
//!                    bits 1-3  1 hash, 2 set, 3 sorted set, 4 stream
//! FieldsSet   15 · number varint · count varint (at least 1) · of each: field bytes · value bytes
//! FieldsGone  16 · number varint · count varint (at least 1) · of each: field bytes
//! Collections 17 · next number varint
//! ```
//! A name is that of the collection of the last Collection record with it, until a ValueSet or
//! ValueDeleted of the name. Numbers are never used again. The value of a member of a set is empty,
//! that of a member of a sorted set its score: eight bytes of IEEE 754, big endian. Each record
//! states what is, so the last one holds.

use alloc::vec::Vec;

use model::{CollectionKind, Nanos};

use crate::codec::{number, put_number, text};
use crate::key_records::{HAS_AT, moment, put_moment};
use crate::record::{FieldValue, RecordError};
use crate::wire::{Reader, put_bytes, put_varint};

/// A name and the collection that it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectionView<'a> {
    /// The name.
    pub name: &'a str,
    /// The kind of the collection.
    pub kind: CollectionKind,
    /// Its number.
    pub number: u64,
    /// When it goes.
    pub at: Option<Nanos>,
}

/// Fields of a collection, with their values or without, as a record's bytes have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldsView<'a> {
    number: u64,
    count: u32,
    bytes: &'a [u8],
    has_values: bool,
}

/// Fields in the making.
#[derive(Debug)]
pub struct FieldsDraft {
    number: u64,
    count: u32,
    bytes: Vec<u8>,
}

impl<'a> CollectionView<'a> {
    pub(crate) fn put(&self, kind: u8, out: &mut Vec<u8>) {
        out.push(kind);
        let at = if self.at.is_some() { HAS_AT } else { 0 };
        out.push(at | self.kind.number() << KIND_SHIFT);
        put_bytes(out, self.name.as_bytes());
        put_number(out, self.number);
        put_moment(out, self.at);
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, RecordError> {
        let flags = reader.byte()?;
        let kind = CollectionKind::of_number(flags >> KIND_SHIFT);
        let kind = kind.ok_or(RecordError::Invalid("flags"))?;
        let name = text(reader, "name")?;
        Ok(Self { name, kind, number: number(reader)?, at: moment(reader, flags, HAS_AT)? })
    }

    pub(crate) fn fields(&self, each: &mut impl FnMut(&'static str, FieldValue<'_>)) {
        each("name", FieldValue::Text(self.name));
        each("of", FieldValue::Text(kind_word(self.kind)));
        each("number", FieldValue::Number(self.number));
        if let Some(at) = self.at {
            each("at_ns", FieldValue::Number(at.0));
        }
    }
}

impl FieldsDraft {
    /// Bytes of an entry beside its own, at most: the lengths of a field and of a value.
    pub const ENTRY_BYTES_MAX: usize = 3 + 5;

    /// No field yet of the collection of this number.
    #[must_use]
    pub fn new(number: u64) -> Self {
        Self { number, count: 0, bytes: Vec::with_capacity(USUAL_BYTES) }
    }

    /// The number of the collection.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// How many there are.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Bytes of the record that they come to, at most.
    #[must_use]
    pub const fn record_bytes_max(&self) -> usize {
        1 + 10 + 5 + self.bytes.len()
    }

    /// One more, without a value.
    pub fn push(&mut self, field: [&[u8]; 2]) {
        put_varint(&mut self.bytes, (field[0].len() + field[1].len()) as u64);
        self.bytes.extend_from_slice(field[0]);
        self.bytes.extend_from_slice(field[1]);
        self.count += 1;
    }

    /// One more, with a value. A field may be in two parts.
    pub fn push_with(&mut self, field: [&[u8]; 2], value: &[u8]) {
        self.push(field);
        put_bytes(&mut self.bytes, value);
    }

    /// They, each pushed with a value.
    #[must_use]
    pub fn set(&self) -> FieldsView<'_> {
        let Self { number, count, ref bytes } = *self;
        FieldsView { number, count, bytes, has_values: true }
    }

    /// They, each pushed without one.
    #[must_use]
    pub fn gone(&self) -> FieldsView<'_> {
        FieldsView { has_values: false, ..self.set() }
    }
}

impl<'a> FieldsView<'a> {
    /// The number of the collection.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Each field and its value, which is empty where there is none.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let (mut reader, has_values) = (Reader::new(self.bytes), self.has_values);
        (0..self.count).map_while(move |_| one(&mut reader, has_values).ok())
    }

    pub(crate) fn put(&self, kind: u8, out: &mut Vec<u8>) {
        out.push(kind);
        assert!(self.count > 0, "a record without fields is not written");
        put_number(out, self.number);
        put_varint(out, self.count.into());
        out.extend_from_slice(self.bytes);
    }

    /// Checks each, so that [`FieldsView::iter`] meets no error.
    pub(crate) fn read(reader: &mut Reader<'a>, has_values: bool) -> Result<Self, RecordError> {
        let (number, count) = (number(reader)?, reader.small()?);
        if count == 0 || number == 0 {
            return Err(RecordError::Invalid("count"));
        }
        let from = reader.clone();
        for _ in 0..count {
            one(reader, has_values)?;
        }
        Ok(Self { number, count, bytes: from.until(reader), has_values })
    }

    pub(crate) fn fields(&self, each: &mut impl FnMut(&'static str, FieldValue<'_>)) {
        each("number", FieldValue::Number(self.number));
        each("count", FieldValue::Number(self.count.into()));
        if let Some((field, value)) = self.iter().next() {
            each("field", FieldValue::Bytes(field));
            if self.has_values {
                each("value", FieldValue::Bytes(value));
            }
        }
    }
}

fn one<'a>(reader: &mut Reader<'a>, has_value: bool) -> Result<(&'a [u8], &'a [u8]), RecordError> {
    let field = reader.bytes()?;
    Ok((field, if has_value { reader.bytes()? } else { &[] }))
}

const fn kind_word(kind: CollectionKind) -> &'static str {
    match kind {
        CollectionKind::Hash => "hash",
        CollectionKind::Set => "set",
        CollectionKind::SortedSet => "sorted_set",
        CollectionKind::Stream => "stream",
    }
}

const KIND_SHIFT: u8 = 1;

/// Most records of fields are no longer.
const USUAL_BYTES: usize = 192;
