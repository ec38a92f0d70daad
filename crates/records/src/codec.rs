//! The bytes of records. A frame's payload, and a snapshot's chunk, is records one after another.
//!
//! *varint* is LEB128: seven bits a byte, lowest first, the high bit set on all but the last.
//! *u64* is eight bytes, little endian. *bytes* is a varint length and that many bytes.
//! Times are nanoseconds since the Unix epoch, spans are nanoseconds.
//!
//! ```text
//! Message   1 · flags · message varint · STANDING · ENVELOPE · body bytes
//! Changed   2 · flags · message varint · STANDING
//! Deleted   3 · message varint
//! Sequence  4 · next message varint · next buried order varint · latest time u64
//! Located   5 · flags · message varint · STANDING · ENVELOPE · location varint
//!             · record bytes varint
//! Shared    6 · copies varint (at least 1) · of each: flags · message varint · STANDING · ENVELOPE
//!             · body bytes
//! Subscribed   7 · see registration.rs
//! Unsubscribed 8 · subscription varint
//! Subscriptions 9 · next subscription varint
//! Chained  10 · more byte (0 or 1) · first frame varint
//! ValueSet 11, ValueDeleted 12, KeyDeadline 13 · see key_records.rs
//! Collection 14, FieldsSet 15, FieldsGone 16, Collections 17 · see collection_records.rs
//! SendId   20 · see send_id_record.rs
//! OwnPolicy 21 · see policy_record.rs
//!
//! flags     one byte
//!           bits 0-1  state: 0 ready, 1 delayed, 2 buried
//!           bits 2-3  durability: 1 written, 2 synced; in Changed 0
//!           bit  4    order is present
//!           bit  5    counters are present
//!           bit  6    EXTENSION is present
//!           bit  7    order is below zero: what is written is its distance from zero
//! STANDING  priority varint (at most 2^32 - 1) · delay varint
//!           · until u64 when delayed, buried order varint when buried
//!           · order varint when flagged, else it is the message's number
//!           · five counters when flagged, varints of at most 2^32 - 1:
//!             delivered, expired, released, buried, kicked; else all are 0
//! ENVELOPE  created u64 · lease varint · queue name bytes (UTF-8; empty in a subscription)
//! EXTENSION the last of STANDING (in Changed) or ENVELOPE: a byte that says which of these
//!           follow, in this order
//!           bit 0  failed deliveries varint of at most 2^32 - 1
//!           bit 1  expires u64
//!           bit 2  dead letter: reason byte (0 expired, 1 attempts, 2 rejected, 3 undeliverable,
//!                  4 overflow)
//!                  · at u64 · attempts varint · from bytes (UTF-8)
//!           bit 3  in Changed: the queue that it was moved to, bytes (UTF-8)
//!                  in ENVELOPE: the sender u64, not zero
//!           bit 4  in ENVELOPE: format byte
//!           bit 5  in Located: group varint, the number of the first message of the Shared record
//!                  that holds this one
//!           bit 6  subscription varint: in ENVELOPE where it waits, in Changed where it was moved
//!                  to; not beside bit 3
//!           bit 7  the subscription that the dead letter is from, varint; not without bit 2
//! ```
//! Numbers of messages are from 1 to 2^62 - 1, orders so far from zero on either side. *Location*
//! is the position of the frame that holds the message's Message or Shared record, *record bytes*
//! that record's whole size.
//! A put of 100 bytes into a queue named `default` with a lease of a minute is 130 bytes.

use alloc::vec::Vec;

use model::{Durability, Lsn, MessageId, Nanos, QueueName, limits};

use crate::collection_records::{CollectionView, FieldsView};
use crate::copies::Copies;
use crate::extension::Extension;
use crate::key_records::{DeadlineView, ValueView};
use crate::policy_record::OwnPolicyView;
use crate::record::{
    MessageCounters, Place, RecordError, RecordView, Standing, StoredEnvelope, StoredState,
};
use crate::registration::SubscriptionView;
use crate::send_id_record::SendIdView;
use crate::wire::{Reader, put_bytes, put_varint};

/// Appends a record.
///
/// # Panics
/// When the record is of a message that is kept in memory only, or of no message.
pub fn encode(record: &RecordView<'_>, out: &mut Vec<u8>) {
    match *record {
        RecordView::Message { ref envelope, body } => {
            out.push(MESSAGE);
            put_envelope(out, envelope);
            put_bytes(out, body);
        }
        RecordView::Changed { message, ref standing, moved } => {
            let extension = Extension::of_change(standing, moved);
            out.push(CHANGED);
            put_standing(out, Durability::None, message, standing, !extension.is_empty());
            extension.put(out);
        }
        RecordView::Deleted { message } => {
            out.push(DELETED);
            put_number(out, message.0);
        }
        RecordView::Sequence { next_message, next_buried, latest } => {
            out.push(SEQUENCE);
            put_number(out, next_message);
            put_number(out, next_buried);
            out.extend_from_slice(&latest.0.to_le_bytes());
        }
        RecordView::Located { ref envelope, location, record_bytes } => {
            out.push(LOCATED);
            put_envelope(out, envelope);
            put_varint(out, location.0);
            put_varint(out, record_bytes.into());
        }
        RecordView::Shared { copies, body } => {
            out.push(SHARED);
            copies.put(out);
            put_bytes(out, body);
        }
        RecordView::Subscribed(ref subscription) => subscription.put(SUBSCRIBED, out),
        RecordView::Unsubscribed { number } => {
            out.push(UNSUBSCRIBED);
            put_number(out, number);
        }
        RecordView::Subscriptions { next } => {
            out.push(SUBSCRIPTIONS);
            put_number(out, next);
        }
        RecordView::Chained { first, more } => {
            out.extend_from_slice(&[CHAINED, more.into()]);
            put_number(out, first.0);
        }
        RecordView::SendId(ref sent) => sent.put(SEND_ID, out),
        RecordView::OwnPolicy(ref policy) => policy.put(OWN_POLICY, out),
        RecordView::ValueSet(ref value) => value.put(VALUE_SET, out),
        RecordView::ValueDeleted { name } => {
            out.push(VALUE_DELETED);
            put_bytes(out, name.as_bytes());
        }
        RecordView::KeyDeadline(ref deadline) => deadline.put(KEY_DEADLINE, out),
        RecordView::Collection(ref collection) => collection.put(COLLECTION, out),
        RecordView::FieldsSet(ref fields) => fields.put(FIELDS_SET, out),
        RecordView::FieldsGone(ref fields) => fields.put(FIELDS_GONE, out),
        RecordView::Collections { next } => {
            out.push(COLLECTIONS);
            put_number(out, next);
        }
    }
}

/// How many bytes a record takes.
#[must_use]
pub fn encoded_bytes(record: &RecordView<'_>) -> u64 {
    let mut bytes = Vec::new();
    encode(record, &mut bytes);
    bytes.len() as u64
}

/// The Chained record at `at` says from now on that its frame is the last of the chain.
///
/// # Panics
/// When none lies there, or it says so already.
pub fn end_chain(records: &mut [u8], at: usize) {
    assert_eq!(records.get(at), Some(&CHAINED), "a Chained record lies there");
    let more = records.get_mut(at + 1).expect("invariant: a Chained record lies there");
    assert_eq!(*more, 1, "a chain ends once");
    *more = 0;
}

/// A frame that is part of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link<'a> {
    /// The first frame of its chain.
    pub first: Lsn,
    /// The next frame is of the chain too.
    pub more: bool,
    /// Its other records.
    pub records: &'a [u8],
}

impl<'a> Link<'a> {
    /// The frame with that payload; `None` if it is part of no chain.
    ///
    /// # Errors
    /// The payload begins with a damaged Chained record.
    pub fn of(payload: &'a [u8]) -> Result<Option<Self>, RecordError> {
        if payload.first() != Some(&CHAINED) {
            return Ok(None);
        }
        match Records::new(payload).next().transpose()? {
            Some((RecordView::Chained { first, more }, size)) => {
                let records = payload.get(size..).unwrap_or_default();
                Ok(Some(Self { first, more, records }))
            }
            _ => Err(RecordError::Misplaced("chained")),
        }
    }
}

/// The records of a frame or of a snapshot's chunk, for people to look at. Ends after an error.
pub fn describe(payload: &[u8]) -> impl Iterator<Item = Result<RecordView<'_>, RecordError>> {
    Records::new(payload).map(|record| record.map(|(record, _)| record))
}

/// The records of a payload, each with its size in bytes. Ends after an error.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    reader: Reader<'a>,
    failed: bool,
}

impl<'a> Records<'a> {
    /// Those of a frame or of a snapshot's chunk.
    #[must_use]
    pub fn new(payload: &'a [u8]) -> Self {
        Self { reader: Reader::new(payload), failed: false }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<(RecordView<'a>, usize), RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        let before = self.reader.remaining();
        if self.failed || before == 0 {
            return None;
        }
        Some(match decode(&mut self.reader) {
            Ok(record) => Ok((record, before - self.reader.remaining())),
            Err(error) => {
                self.failed = true;
                Err(error)
            }
        })
    }
}

#[inline]
fn decode<'a>(reader: &mut Reader<'a>) -> Result<RecordView<'a>, RecordError> {
    Ok(match reader.byte()? {
        MESSAGE => RecordView::Message { envelope: envelope(reader)?, body: reader.bytes()? },
        CHANGED => changed(reader)?,
        DELETED => RecordView::Deleted { message: MessageId(number(reader)?) },
        SEQUENCE => RecordView::Sequence {
            next_message: number(reader)?,
            next_buried: number(reader)?,
            latest: Nanos(reader.fixed()?),
        },
        LOCATED => RecordView::Located {
            envelope: envelope(reader)?,
            location: Lsn(reader.varint()?),
            record_bytes: reader.small()?,
        },
        SHARED => RecordView::Shared { copies: Copies::read(reader)?, body: reader.bytes()? },
        SUBSCRIBED => RecordView::Subscribed(SubscriptionView::read(reader)?),
        UNSUBSCRIBED => RecordView::Unsubscribed { number: number(reader)? },
        SUBSCRIPTIONS => RecordView::Subscriptions { next: number(reader)? },
        CHAINED => {
            let more = match reader.byte()? {
                0 => false,
                1 => true,
                _ => return Err(RecordError::Invalid("more")),
            };
            RecordView::Chained { first: Lsn(number(reader)?), more }
        }
        SEND_ID => RecordView::SendId(SendIdView::read(reader)?),
        OWN_POLICY => RecordView::OwnPolicy(OwnPolicyView::read(reader)?),
        VALUE_SET => RecordView::ValueSet(ValueView::read(reader)?),
        VALUE_DELETED => RecordView::ValueDeleted { name: text(reader, "name")? },
        KEY_DEADLINE => RecordView::KeyDeadline(DeadlineView::read(reader)?),
        COLLECTION => RecordView::Collection(CollectionView::read(reader)?),
        FIELDS_SET => RecordView::FieldsSet(FieldsView::read(reader, true)?),
        FIELDS_GONE => RecordView::FieldsGone(FieldsView::read(reader, false)?),
        COLLECTIONS => RecordView::Collections { next: number(reader)? },
        kind => return Err(RecordError::UnknownKind(kind)),
    })
}

/// Appends an envelope as it is in a record.
///
/// # Panics
/// When the message is kept in memory only: it has no record.
pub fn put_envelope(out: &mut Vec<u8>, envelope: &StoredEnvelope<'_>) {
    assert!(envelope.durability != Durability::None, "what memory keeps has no record");
    let is_plain = Extension::is_empty_of(envelope);
    put_standing(out, envelope.durability, envelope.message, &envelope.standing, !is_plain);
    out.extend_from_slice(&envelope.created.0.to_le_bytes());
    put_varint(out, envelope.lease.0);
    match envelope.place {
        Place::Queue(queue) => put_bytes(out, queue.as_bytes()),
        Place::Subscription(_) => put_bytes(out, &[]),
    }
    if !is_plain {
        Extension::of_envelope(envelope).put(out);
    }
}

/// The envelope that [`put_envelope`] wrote.
///
/// # Errors
/// The bytes are not one.
pub fn decode_envelope(bytes: &[u8]) -> Result<StoredEnvelope<'_>, RecordError> {
    envelope(&mut Reader::new(bytes))
}

pub(crate) fn envelope<'a>(reader: &mut Reader<'a>) -> Result<StoredEnvelope<'a>, RecordError> {
    let Head { durability, message, mut standing, extended } = standing(reader)?;
    if durability == Durability::None {
        return Err(RecordError::Invalid("durability"));
    }
    let created = Nanos(reader.fixed()?);
    let lease = Nanos(reader.varint()?);
    let queue = text(reader, "queue name")?;
    let extension =
        if extended { Extension::read_of_envelope(reader)? } else { Extension::default() };
    extension.apply(&mut standing);
    let place = match (queue, extension.subscription) {
        (queue, None) => Place::Queue(queue),
        ("", Some(number)) => Place::Subscription(number),
        _ => return Err(RecordError::Invalid("queue name")),
    };
    let Extension { format, group, sender, .. } = extension;
    let envelope = StoredEnvelope {
        message,
        place,
        durability,
        created,
        lease,
        format,
        group,
        sender,
        standing,
    };
    Ok(envelope)
}

/// The beginning of STANDING.
struct Head<'a> {
    durability: Durability,
    message: MessageId,
    standing: Standing<'a>,
    extended: bool,
}

fn put_standing(
    out: &mut Vec<u8>,
    durability: Durability,
    message: MessageId,
    standing: &Standing<'_>,
    is_extended: bool,
) {
    let has_order = standing.order != place_of(message);
    let has_counters =
        MessageCounters { failed: 0, ..standing.counters } != MessageCounters::default();
    let state = match standing.state {
        StoredState::Ready => READY,
        StoredState::Delayed { .. } => DELAYED,
        StoredState::Buried { .. } => BURIED,
    };
    let mut flags = state | (durability as u8) << DURABILITY_SHIFT;
    flags |= if has_order { HAS_ORDER } else { 0 };
    flags |= if standing.order < 0 { IS_IN_FRONT } else { 0 };
    flags |= if has_counters { HAS_COUNTERS } else { 0 };
    flags |= if is_extended { HAS_EXTENSION } else { 0 };
    out.push(flags);
    put_number(out, message.0);
    put_varint(out, standing.priority.into());
    put_varint(out, standing.delay.0);
    match standing.state {
        StoredState::Ready => {}
        StoredState::Delayed { until } => out.extend_from_slice(&until.0.to_le_bytes()),
        StoredState::Buried { order } => put_number(out, order),
    }
    if has_order {
        put_number(out, standing.order.unsigned_abs());
    }
    if has_counters {
        put_counters(out, &standing.counters);
    }
}

#[inline]
fn standing<'a>(reader: &mut Reader<'a>) -> Result<Head<'a>, RecordError> {
    let flags = reader.byte()?;
    if flags & (IS_IN_FRONT | HAS_ORDER) == IS_IN_FRONT {
        return Err(RecordError::Invalid("flags"));
    }
    let durability = match (flags & DURABILITY_MASK) >> DURABILITY_SHIFT {
        0 => Durability::None,
        1 => Durability::Written,
        2 => Durability::Synced,
        _ => return Err(RecordError::Invalid("durability")),
    };
    let message = MessageId(number(reader)?);
    let priority = reader.small()?;
    let delay = Nanos(reader.varint()?);
    let state = match flags & STATE_MASK {
        READY => StoredState::Ready,
        DELAYED => StoredState::Delayed { until: Nanos(reader.fixed()?) },
        BURIED => StoredState::Buried { order: number(reader)? },
        _ => return Err(RecordError::Invalid("state")),
    };
    let order = match flags & (HAS_ORDER | IS_IN_FRONT) {
        0 => place_of(message),
        HAS_ORDER => number(reader)? as i64,
        _ => -(number(reader)? as i64),
    };
    let counters =
        if flags & HAS_COUNTERS != 0 { counters(reader)? } else { MessageCounters::default() };
    let standing = Standing { priority, delay, state, order, counters, expires: None, dead: None };
    Ok(Head { durability, message, standing, extended: flags & HAS_EXTENSION != 0 })
}

fn changed<'a>(reader: &mut Reader<'a>) -> Result<RecordView<'a>, RecordError> {
    let Head { durability, message, mut standing, extended } = standing(reader)?;
    if durability != Durability::None {
        return Err(RecordError::Invalid("durability"));
    }
    let extension =
        if extended { Extension::read_of_change(reader)? } else { Extension::default() };
    let moved = extension.moved_to()?;
    extension.apply(&mut standing);
    Ok(RecordView::Changed { message, standing, moved })
}

fn put_counters(out: &mut Vec<u8>, counters: &MessageCounters) {
    put_varint(out, counters.delivered.into());
    put_varint(out, counters.expired.into());
    put_varint(out, counters.released.into());
    put_varint(out, counters.buried.into());
    put_varint(out, counters.kicked.into());
}

fn counters(reader: &mut Reader<'_>) -> Result<MessageCounters, RecordError> {
    Ok(MessageCounters {
        delivered: reader.small()?,
        expired: reader.small()?,
        released: reader.small()?,
        buried: reader.small()?,
        kicked: reader.small()?,
        failed: 0,
    })
}

/// The number of a message or a place in an order. The bound keeps "the next one" from overflowing
/// in any damaged record.
pub(crate) fn number(reader: &mut Reader<'_>) -> Result<u64, RecordError> {
    let number = reader.varint()?;
    if number == 0 || number >= NUMBER_END {
        return Err(RecordError::Invalid("number"));
    }
    Ok(number)
}

/// Appends the number of a message or a place in an order, as [`number`] reads it.
#[inline]
pub(crate) fn put_number(out: &mut Vec<u8>, number: u64) {
    debug_assert!(number > 0, "numbers and orders begin with 1");
    debug_assert!(number < NUMBER_END, "no reader takes a larger number");
    put_varint(out, number);
}

pub(crate) fn text<'a>(
    reader: &mut Reader<'a>,
    field: &'static str,
) -> Result<&'a str, RecordError> {
    core::str::from_utf8(reader.bytes()?).map_err(|_| RecordError::Invalid(field))
}

/// A queue's name as the log has it, checked.
///
/// # Errors
/// It is no name.
pub fn queue_name(name: &str) -> Result<QueueName, RecordError> {
    QueueName::new(name).map_err(|_| RecordError::Invalid("queue name"))
}

/// The place among ready messages of its priority that a new message has, behind all others.
#[must_use]
pub const fn place_of(id: MessageId) -> i64 {
    // Numbers are below 2^62.
    id.0 as i64
}

/// Bytes that a Changed record takes at most: it may have two names of queues.
pub const CHANGED_BYTES_MAX: usize = 128 + 2 * limits::QUEUE_NAME_BYTES_MAX;

const MESSAGE: u8 = 1;
const CHANGED: u8 = 2;
const DELETED: u8 = 3;
const SEQUENCE: u8 = 4;
const LOCATED: u8 = 5;
const SHARED: u8 = 6;
const SUBSCRIBED: u8 = 7;
const UNSUBSCRIBED: u8 = 8;
const SUBSCRIPTIONS: u8 = 9;
const CHAINED: u8 = 10;
const VALUE_SET: u8 = 11;
const VALUE_DELETED: u8 = 12;
const KEY_DEADLINE: u8 = 13;
const COLLECTION: u8 = 14;
const FIELDS_SET: u8 = 15;
const FIELDS_GONE: u8 = 16;
const COLLECTIONS: u8 = 17;
const SEND_ID: u8 = 20;
const OWN_POLICY: u8 = 21;

const STATE_MASK: u8 = 0b11;
const READY: u8 = 0;
const DELAYED: u8 = 1;
const BURIED: u8 = 2;
const DURABILITY_MASK: u8 = 0b1100;
const DURABILITY_SHIFT: u32 = 2;
const HAS_ORDER: u8 = 1 << 4;
const HAS_COUNTERS: u8 = 1 << 5;
const HAS_EXTENSION: u8 = 1 << 6;
const IS_IN_FRONT: u8 = 1 << 7;
const NUMBER_END: u64 = 1 << 62;

const _: () = assert!(Durability::Written as u8 == 1 && Durability::Synced as u8 == 2);
const _: () = assert!(NUMBER_END <= i64::MAX as u64, "an order may be below zero");
/// Each bit of the flags has one meaning.
const _: () = assert!(
    STATE_MASK ^ DURABILITY_MASK ^ HAS_ORDER ^ HAS_COUNTERS ^ HAS_EXTENSION ^ IS_IN_FRONT == !0
);
const _: () = assert!(DURABILITY_MASK == STATE_MASK << DURABILITY_SHIFT);
