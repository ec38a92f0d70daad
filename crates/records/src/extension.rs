//! Fields that few messages have, at the end of their records: see EXTENSION in `codec.rs`.

use alloc::vec::Vec;

use model::{DeadReason, Format, Nanos};

use crate::codec::{number, put_number, text};
use crate::record::{DeadView, Place, RecordError, Standing, StoredEnvelope};
use crate::wire::{Reader, put_bytes, put_varint};

/// All fields that may follow; a missing one has its default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extension<'a> {
    failed: u32,
    expires: Option<Nanos>,
    dead: Option<DeadView<'a>>,
    pub(crate) moved: Option<&'a str>,
    pub(crate) sender: u64,
    pub(crate) format: Format,
    pub(crate) group: u64,
    pub(crate) subscription: Option<u64>,
}

impl<'a> Extension<'a> {
    pub(crate) fn of_envelope(envelope: &StoredEnvelope<'a>) -> Self {
        let subscription = match envelope.place {
            Place::Queue(_) => None,
            Place::Subscription(number) => Some(number),
        };
        let &StoredEnvelope { format, group, sender, .. } = envelope;
        Self { format, group, sender, subscription, ..Self::of_change(&envelope.standing, None) }
    }

    pub(crate) fn of_change(standing: &Standing<'a>, moved: Option<Place<'a>>) -> Self {
        let &Standing { counters, expires, dead, .. } = standing;
        let (moved, subscription) = match moved {
            Some(Place::Queue(queue)) => (Some(queue), None),
            Some(Place::Subscription(number)) => (None, Some(number)),
            None => (None, None),
        };
        Self { failed: counters.failed, expires, dead, moved, subscription, ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// True if that of an envelope is, without making it: of most it is.
    pub(crate) fn is_empty_of(envelope: &StoredEnvelope<'_>) -> bool {
        let Standing { counters, expires, dead, .. } = &envelope.standing;
        let stands_plainly = counters.failed == 0 && expires.is_none() && dead.is_none();
        let is_named = matches!(envelope.place, Place::Queue(_));
        let is_plain = envelope.format == Format::RAW && envelope.group == 0;
        stands_plainly && is_named && is_plain && envelope.sender == 0
    }

    /// The place that a change says the message was moved to; an error if a field in it belongs to
    /// an envelope.
    pub(crate) fn moved_to(&self) -> Result<Option<Place<'a>>, RecordError> {
        match (self.moved, self.subscription) {
            _ if self.format != Format::RAW || self.group != 0 => {}
            (None, None) => return Ok(None),
            (Some(queue), None) => return Ok(Some(Place::Queue(queue))),
            (None, Some(number)) => return Ok(Some(Place::Subscription(number))),
            (Some(_), Some(_)) => {}
        }
        Err(RecordError::Invalid("extension"))
    }

    pub(crate) fn apply(&self, standing: &mut Standing<'a>) {
        standing.counters.failed = self.failed;
        standing.expires = self.expires;
        standing.dead = self.dead;
    }

    /// Appends it, unless there is nothing in it.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        let present = [
            (self.failed != 0, FAILED),
            (self.expires.is_some(), EXPIRES),
            (self.dead.is_some(), DEAD),
            (self.moved.is_some() || self.sender != 0, NAMED),
            (self.format != Format::RAW, FORMAT),
            (self.group != 0, GROUP),
            (self.subscription.is_some(), SUBSCRIPTION),
            (self.dead.is_some_and(|dead| dead.subscription.is_some()), DEAD_SUBSCRIPTION),
        ];
        out.push(present.iter().map(|(is, bit)| if *is { *bit } else { 0 }).sum());
        if self.failed != 0 {
            put_varint(out, self.failed.into());
        }
        if let Some(expires) = self.expires {
            out.extend_from_slice(&expires.0.to_le_bytes());
        }
        if let Some(dead) = &self.dead {
            put_dead(out, dead);
        }
        if let Some(queue) = self.moved {
            put_bytes(out, queue.as_bytes());
        } else if self.sender != 0 {
            out.extend_from_slice(&self.sender.to_le_bytes());
        }
        if self.format != Format::RAW {
            out.push(self.format.0);
        }
        if self.group != 0 {
            put_number(out, self.group);
        }
        if let Some(number) = self.subscription {
            put_number(out, number);
        }
        if let Some(number) = self.dead.and_then(|dead| dead.subscription) {
            put_number(out, number);
        }
    }

    /// Reads that of a change.
    pub(crate) fn read_of_change(reader: &mut Reader<'a>) -> Result<Self, RecordError> {
        Self::read(reader, |read, reader| {
            read.moved = Some(text(reader, "queue name")?);
            Ok(())
        })
    }

    /// Reads that of an envelope.
    pub(crate) fn read_of_envelope(reader: &mut Reader<'a>) -> Result<Self, RecordError> {
        Self::read(reader, |read, reader| {
            read.sender = reader.fixed()?;
            if read.sender == 0 { Err(RecordError::Invalid("sender")) } else { Ok(()) }
        })
    }

    /// `named` reads the field of bit 3.
    fn read(
        reader: &mut Reader<'a>,
        named: impl FnOnce(&mut Self, &mut Reader<'a>) -> Result<(), RecordError>,
    ) -> Result<Self, RecordError> {
        let bits = reader.byte()?;
        if bits == 0 || bits & (DEAD | DEAD_SUBSCRIPTION) == DEAD_SUBSCRIPTION {
            return Err(RecordError::Invalid("extension"));
        }
        let has = |bit: u8| bits & bit != 0;
        let mut read = Self::default();
        if has(FAILED) {
            read.failed = reader.small()?;
        }
        if has(EXPIRES) {
            read.expires = Some(Nanos(reader.fixed()?));
        }
        if has(DEAD) {
            read.dead = Some(dead(reader)?);
        }
        if has(NAMED) {
            named(&mut read, reader)?;
        }
        if has(FORMAT) {
            read.format = Format(reader.byte()?);
        }
        if has(GROUP) {
            read.group = number(reader)?;
        }
        if has(SUBSCRIPTION) {
            read.subscription = Some(number(reader)?);
        }
        if has(DEAD_SUBSCRIPTION)
            && let Some(dead) = &mut read.dead
        {
            dead.subscription = Some(number(reader)?);
        }
        Ok(read)
    }
}

fn put_dead(out: &mut Vec<u8>, dead: &DeadView<'_>) {
    out.push(match dead.reason {
        DeadReason::Expired => 0,
        DeadReason::Attempts => 1,
        DeadReason::Rejected => 2,
        DeadReason::Undeliverable => 3,
        DeadReason::Overflow => 4,
    });
    out.extend_from_slice(&dead.at.0.to_le_bytes());
    put_varint(out, dead.attempts.into());
    put_bytes(out, dead.from.as_bytes());
}

fn dead<'a>(reader: &mut Reader<'a>) -> Result<DeadView<'a>, RecordError> {
    let reason = match reader.byte()? {
        0 => DeadReason::Expired,
        1 => DeadReason::Attempts,
        2 => DeadReason::Rejected,
        3 => DeadReason::Undeliverable,
        4 => DeadReason::Overflow,
        _ => return Err(RecordError::Invalid("reason")),
    };
    let at = Nanos(reader.fixed()?);
    let attempts = reader.small()?;
    Ok(DeadView { reason, from: text(reader, "origin")?, subscription: None, at, attempts })
}

const FAILED: u8 = 1;
const EXPIRES: u8 = 1 << 1;
const DEAD: u8 = 1 << 2;
const NAMED: u8 = 1 << 3;
const FORMAT: u8 = 1 << 4;
const GROUP: u8 = 1 << 5;
const SUBSCRIPTION: u8 = 1 << 6;
const DEAD_SUBSCRIPTION: u8 = 1 << 7;

/// Each bit has one meaning.
const _: () = assert!(
    FAILED ^ EXPIRES ^ DEAD ^ NAMED ^ FORMAT ^ GROUP ^ SUBSCRIPTION ^ DEAD_SUBSCRIPTION == !0
);
