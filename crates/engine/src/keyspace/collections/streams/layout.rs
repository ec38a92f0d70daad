//! The fields of streams and groups, and their values, as bytes.
//!
//! ```text
//! of a stream   0                  last id · greatest removed id · entries added u64
//!               1 · id             its fields and values in turns, each behind its length
//!               2 · group          number of the group u64 · last id · entries read u64, or -1
//! of a group    3 · consumer       seen at u64 · active at u64, or -1
//!               4 · id             delivered at u64 · deliveries u64 · consumer
//! ```
//! A group has a number of its own, as a collection has, so that it is gone at once. Ids are 16
//! bytes in their order. A second tree has the pending entries of a group by consumer and id.

use alloc::vec::Vec;

use model::{FieldAndValue, Nanos, StreamId};
use records::{put_bytes, texts};

use crate::collections::packed_tree::KeyParts;
use crate::collections::short_bytes::ShortBytes;

/// The past of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// The greatest id that it has had.
    pub(super) last: StreamId,
    /// The greatest id of those that were taken out.
    pub(super) removed: StreamId,
    /// How many entries it has had.
    pub(super) added: u64,
}

/// A group of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// The number of its consumers and pending entries.
    pub(super) number: u64,
    /// The last entry that it has read.
    pub(super) last: StreamId,
    /// How many it has read since the stream's begin, if that is known.
    pub(super) read: Option<u64>,
}

/// A consumer of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Consumer {
    /// When it read last, or tried to.
    pub(super) seen: Nanos,
    /// When it got something last.
    pub(super) active: Option<Nanos>,
}

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pending<'p> {
    /// When it was delivered last.
    pub(super) delivered: Nanos,
    /// How many times it was delivered.
    pub(super) count: u64,
    /// The consumer that has it.
    pub(super) consumer: &'p [u8],
}

impl State {
    pub(super) fn to_value(self) -> Vec<u8> {
        let Self { last, removed, added } = self;
        [&last.to_bytes()[..], &removed.to_bytes(), &added.to_be_bytes()].concat()
    }

    pub(super) fn of(value: &[u8]) -> Option<Self> {
        let (last, removed, added) = (id_at(value, 0)?, id_at(value, 16)?, number_at(value, 32)?);
        (value.len() == 40).then_some(Self { last, removed, added })
    }
}

impl Group {
    pub(super) fn to_value(self) -> Vec<u8> {
        let Self { number, last, read } = self;
        let read = read.unwrap_or(NONE);
        [&number.to_be_bytes()[..], &last.to_bytes(), &read.to_be_bytes()].concat()
    }

    pub(super) fn of(value: &[u8]) -> Option<Self> {
        let (number, last, read) = (number_at(value, 0)?, id_at(value, 8)?, number_at(value, 24)?);
        let read = Some(read).filter(|read| *read != NONE);
        (value.len() == 32).then_some(Self { number, last, read })
    }
}

impl Consumer {
    pub(super) fn to_value(self) -> Vec<u8> {
        let active = self.active.map_or(NONE, |at| at.0);
        [self.seen.0.to_be_bytes(), active.to_be_bytes()].concat()
    }

    pub(super) fn of(value: &[u8]) -> Option<Self> {
        let (seen, active) = (number_at(value, 0)?, number_at(value, 8)?);
        let active = Some(active).filter(|at| *at != NONE).map(Nanos);
        (value.len() == 16).then_some(Self { seen: Nanos(seen), active })
    }
}

impl<'p> Pending<'p> {
    pub(super) fn to_value(self) -> Vec<u8> {
        let Self { delivered, count, consumer } = self;
        [&delivered.0.to_be_bytes()[..], &count.to_be_bytes(), consumer].concat()
    }

    pub(super) fn of(value: &'p [u8]) -> Option<Self> {
        let delivered = Nanos(number_at(value, 0)?);
        let (count, consumer) = (number_at(value, 8)?, value.get(16..)?);
        Some(Self { delivered, count, consumer })
    }
}

/// The value of an entry.
pub(super) fn entry_value(fields: &[FieldAndValue]) -> Vec<u8> {
    let bytes = fields.iter().map(|(field, value)| field.len() + value.len() + 2 * 5).sum();
    let mut out = Vec::with_capacity(bytes);
    for (field, value) in fields {
        put_bytes(&mut out, field);
        put_bytes(&mut out, value);
    }
    out
}

/// The fields and values of an entry in turns.
pub(super) fn entry_texts(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    texts(value)
}

pub(super) fn entry_field(id: StreamId) -> ShortBytes {
    tagged(ENTRY, &id.to_bytes())
}

pub(super) fn group_field(group: &[u8]) -> ShortBytes {
    tagged(GROUP, group)
}

pub(super) fn consumer_field(consumer: &[u8]) -> ShortBytes {
    tagged(CONSUMER, consumer)
}

pub(super) fn pending_field(id: StreamId) -> ShortBytes {
    tagged(PENDING, &id.to_bytes())
}

/// The field of a stream's past.
pub(super) fn state_field() -> ShortBytes {
    ShortBytes::of([&[STATE]])
}

fn tagged(tag: u8, rest: &[u8]) -> ShortBytes {
    ShortBytes::of([&[tag], rest])
}

/// The kind of a field, and the rest of it.
pub(super) fn untagged(field: KeyParts<'_>) -> Option<(u8, KeyParts<'_>)> {
    let ([tag], rest) = field.split()?;
    Some((tag, rest))
}

/// The id that this is.
pub(super) fn id_of(rest: KeyParts<'_>) -> Option<StreamId> {
    let (id, rest) = rest.split()?;
    rest.parts().iter().all(|part| part.is_empty()).then_some(StreamId::of_bytes(id))
}

/// The key at which the pending entries of a consumer begin in the second tree.
pub(super) fn consumer_place(group: u64, consumer: &[u8]) -> Vec<u8> {
    let bytes = u16::try_from(consumer.len()).expect("invariant: a name is short");
    [&group.to_be_bytes(), &bytes.to_be_bytes()[..], consumer].concat()
}

fn id_at(value: &[u8], at: usize) -> Option<StreamId> {
    value.get(at..)?.first_chunk().map(|bytes| StreamId::of_bytes(*bytes))
}

fn number_at(value: &[u8], at: usize) -> Option<u64> {
    value.get(at..)?.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

pub(super) const STATE: u8 = 0;
pub(super) const ENTRY: u8 = 1;
pub(super) const GROUP: u8 = 2;
pub(super) const CONSUMER: u8 = 3;
pub(super) const PENDING: u8 = 4;

/// Instead of a moment, or of a number of entries.
const NONE: u64 = u64::MAX;

/// Bytes of the value of a pending entry beside its consumer.
pub(super) const PENDING_BYTES_BESIDE: usize = 16;
