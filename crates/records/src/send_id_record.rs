//! The name that a sender gave a message, as a record says it.
//!
//! ```text
//! SendId   20 · flags (bit 0 to a topic, bit 1 fingerprint) · its name bytes
//!             · deduplication id bytes · message varint · copies varint of at most 2^32 - 1
//!             · seen at u64 · fingerprint u64 when flagged
//! ```
//! It is in the frame of the message that was stored first under that id, or in the same chain, and
//! in every snapshot while it is remembered. Texts are UTF-8. *Message* is the first of those that
//! were stored, *copies* how many there were. If two records have one id and destination, the one
//! that was seen later holds.

use alloc::vec::Vec;

use model::{Destination, MessageId, Nanos, limits};

use crate::codec::{number, put_number, queue_name, text};
use crate::record::{FieldValue, RecordError};
use crate::wire::{Reader, put_bytes, put_varint};

/// A sender's name for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendIdView<'a> {
    /// True if it was sent to a topic, else to a queue.
    pub to_topic: bool,
    /// The name of that.
    pub to: &'a str,
    /// Its sender's name for it.
    pub id: &'a str,
    /// The first message that was stored.
    pub message: MessageId,
    /// How many were stored.
    pub copies: u32,
    /// When it was sent.
    pub at: Nanos,
    /// Tells it from another message; not known of those that older versions stored.
    pub fingerprint: Option<u64>,
}

impl<'a> SendIdView<'a> {
    /// Bytes that such a record takes at most, without its two texts.
    pub const FIXED_BYTES_MAX: usize = 1 + 1 + 2 + 2 + 9 + 5 + 8 + 8;

    /// The destination.
    ///
    /// # Errors
    /// Its name is none.
    pub fn destination(&self) -> Result<Destination, RecordError> {
        let name = queue_name(self.to)?;
        Ok(if self.to_topic { Destination::Topic(name) } else { Destination::Queue(name) })
    }

    pub(crate) fn put(&self, kind: u8, out: &mut Vec<u8>) {
        out.push(kind);
        let (before, texts) = (out.len(), self.to.len() + self.id.len());
        let has_fingerprint = u8::from(self.fingerprint.is_some());
        out.push(u8::from(self.to_topic) | has_fingerprint << 1);
        put_bytes(out, self.to.as_bytes());
        put_bytes(out, self.id.as_bytes());
        put_number(out, self.message.0);
        put_varint(out, self.copies.into());
        out.extend_from_slice(&self.at.0.to_le_bytes());
        if let Some(fingerprint) = self.fingerprint {
            out.extend_from_slice(&fingerprint.to_le_bytes());
        }
        // Its kind came before.
        let bytes = 1 + out.len() - before;
        debug_assert!(bytes <= texts + Self::FIXED_BYTES_MAX, "room was counted for no more");
    }

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, RecordError> {
        let flags = reader.byte()?;
        if flags > 3 {
            return Err(RecordError::Invalid("flags"));
        }
        let (to_topic, has_fingerprint) = (flags & 1 != 0, flags & 2 != 0);
        let to = text(reader, "destination")?;
        let id = text(reader, "deduplication id")?;
        if id.len() > limits::SEND_ID_BYTES_MAX {
            return Err(RecordError::Invalid("deduplication id"));
        }
        let message = MessageId(number(reader)?);
        let (copies, at) = (reader.small()?, Nanos(reader.fixed()?));
        let fingerprint = if has_fingerprint { Some(reader.fixed()?) } else { None };
        Ok(Self { to_topic, to, id, message, copies, at, fingerprint })
    }

    pub(crate) fn fields(&self, each: &mut impl FnMut(&'static str, FieldValue<'_>)) {
        let kind = if self.to_topic { "topic" } else { "queue" };
        each(kind, FieldValue::Text(self.to));
        each("send_id", FieldValue::Text(self.id));
        each("message", FieldValue::Number(self.message.0));
        each("copies", FieldValue::Number(self.copies.into()));
        each("at_ns", FieldValue::Number(self.at.0));
        if let Some(fingerprint) = self.fingerprint {
            each("fingerprint", FieldValue::Number(fingerprint));
        }
    }
}

const _: () =
    assert!(limits::SEND_ID_BYTES_MAX < 1 << 14 && limits::QUEUE_NAME_BYTES_MAX < 1 << 14);
