//! Small values, and when keys are to go, as records say them.
//!
//! ```text
//! ValueSet     11 · flags · name bytes · value bytes · at u64 when flagged
//!              flags  bit 0  it goes at that moment
//! ValueDeleted 12 · name bytes
//! KeyDeadline  13 · flags · name bytes · at u64 · OVER: each when flagged
//!              flags  bit 0  it goes at that moment    bit 1  it is a value, else a list
//!                     bit 2  a list of that name is over, and not all of it was deleted yet
//! OVER         at u64 · below varint · above varint, its distance from zero
//! ```
//! The expired members are the ready messages in the queue that were stored before *at* and have an
//! order less than *below* and greater than *above*, which is below zero. Names are UTF-8. Each
//! record states its whole subject, so the last one holds.

use alloc::vec::Vec;

use model::{MessageId, Nanos};

use crate::codec::place_of;
use crate::codec::{number, put_number, text};
use crate::record::{FieldValue, RecordError};
use crate::wire::{Reader, put_bytes};

/// A small value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueView<'a> {
    /// Its name.
    pub name: &'a str,
    /// The value.
    pub bytes: &'a [u8],
    /// When it goes.
    pub at: Option<Nanos>,
}

/// When a key is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadlineView<'a> {
    /// Its name.
    pub name: &'a str,
    /// True if it is a value, else a list.
    pub of_value: bool,
    /// When it goes; `None`: it stays.
    pub at: Option<Nanos>,
    /// The part of a list of that name that is over, and was not all deleted yet.
    pub over: Option<ExpiredList>,
}

/// Which ready messages of a queue are over: those of a list that has reached its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExpiredList {
    /// They were stored before this moment.
    pub at: Nanos,
    /// Their order is less: later arrivals, even if they are old, took a place behind,
    pub below: u64,
    /// or in front: their order is greater.
    pub above: i64,
}

impl ExpiredList {
    /// True if a ready message of this place, stored at this moment, is among them.
    #[must_use]
    pub fn has(&self, order: i64, created: Nanos) -> bool {
        let is_among = self.above < order && order < place_of(MessageId(self.below));
        is_among && created < self.at
    }
}

impl<'a> ValueView<'a> {
    pub(crate) fn put(&self, kind: u8, out: &mut Vec<u8>) {
        out.push(kind);
        out.push(if self.at.is_some() { HAS_AT } else { 0 });
        put_bytes(out, self.name.as_bytes());
        put_bytes(out, self.bytes);
        put_moment(out, self.at);
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, RecordError> {
        let flags = reader.byte()?;
        if flags & !HAS_AT != 0 {
            return Err(RecordError::Invalid("flags"));
        }
        let name = text(reader, "name")?;
        let bytes = reader.bytes()?;
        Ok(Self { name, bytes, at: moment(reader, flags, HAS_AT)? })
    }

    pub(crate) fn fields(&self, each: &mut impl FnMut(&'static str, FieldValue<'_>)) {
        each("name", FieldValue::Text(self.name));
        each("value", FieldValue::Bytes(self.bytes));
        if let Some(at) = self.at {
            each("at_ns", FieldValue::Number(at.0));
        }
    }
}

impl<'a> DeadlineView<'a> {
    pub(crate) fn put(&self, kind: u8, out: &mut Vec<u8>) {
        out.push(kind);
        assert!(!self.of_value || self.over.is_none(), "a value goes at once");
        let present =
            [(self.at.is_some(), HAS_AT), (self.of_value, OF_VALUE), (self.over.is_some(), OVER)];
        out.push(present.iter().map(|(is, bit)| if *is { *bit } else { 0 }).sum());
        put_bytes(out, self.name.as_bytes());
        put_moment(out, self.at);
        if let Some(over) = self.over {
            put_moment(out, Some(over.at));
            assert!(over.above < 0, "arrivals in front take orders below zero");
            put_number(out, over.below);
            put_number(out, over.above.unsigned_abs());
        }
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, RecordError> {
        let flags = reader.byte()?;
        let of_value = flags & OF_VALUE != 0;
        if flags & !(HAS_AT | OF_VALUE | OVER) != 0 || (of_value && flags & OVER != 0) {
            return Err(RecordError::Invalid("flags"));
        }
        let name = text(reader, "name")?;
        let at = moment(reader, flags, HAS_AT)?;
        let over = moment(reader, flags, OVER)?;
        let over = over.map(|at| {
            let (below, above) = (number(reader)?, -(number(reader)? as i64));
            Ok(ExpiredList { at, below, above })
        });
        let over = over.transpose()?;
        Ok(Self { name, of_value, at, over })
    }

    pub(crate) fn fields(&self, each: &mut impl FnMut(&'static str, FieldValue<'_>)) {
        each("name", FieldValue::Text(self.name));
        each("of_value", FieldValue::Number(self.of_value.into()));
        if let Some(at) = self.at {
            each("at_ns", FieldValue::Number(at.0));
        }
        if let Some(over) = self.over {
            each("over_ns", FieldValue::Number(over.at.0));
            each("below", FieldValue::Number(over.below));
            each("above", FieldValue::Signed(over.above));
        }
    }
}

pub(crate) fn put_moment(out: &mut Vec<u8>, moment: Option<Nanos>) {
    if let Some(moment) = moment {
        out.extend_from_slice(&moment.0.to_le_bytes());
    }
}

pub(crate) fn moment(
    reader: &mut Reader<'_>,
    flags: u8,
    bit: u8,
) -> Result<Option<Nanos>, RecordError> {
    if flags & bit == 0 { Ok(None) } else { reader.fixed().map(|at| Some(Nanos(at))) }
}

pub(crate) const HAS_AT: u8 = 1;
const OF_VALUE: u8 = 1 << 1;
const OVER: u8 = 1 << 2;

const _: () = assert!(HAS_AT ^ OF_VALUE ^ OVER == 0b111, "each bit has one meaning");
