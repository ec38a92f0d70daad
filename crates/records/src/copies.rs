//! The copies of a message that several durable subscriptions take: one body, an envelope each.

use alloc::vec::Vec;

use crate::codec::{envelope, put_envelope};
use crate::record::{RecordError, StoredEnvelope};
use crate::wire::{Reader, put_varint};

/// The envelopes of a Shared record, as its bytes have them. Their messages ascend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copies<'a> {
    count: u32,
    /// The number of the first message: the group of all.
    first: u64,
    bytes: &'a [u8],
}

/// Envelopes in the making.
#[derive(Debug, Default)]
pub struct CopiesDraft {
    count: u32,
    first: u64,
    /// The number of the last message: the next is larger.
    last: u64,
    bytes: Vec<u8>,
}

impl Copies<'_> {
    /// How many there are; at least one.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }
}

impl<'a> Copies<'a> {
    /// Their common name: the number of the first.
    #[must_use]
    pub fn group(&self) -> u64 {
        self.first
    }

    /// Each, ascending.
    pub fn iter(&self) -> impl Iterator<Item = StoredEnvelope<'a>> + use<'a> {
        let (mut reader, group) = (Reader::new(self.bytes), self.first);
        let all = (0..self.count).map_while(move |_| envelope(&mut reader).ok());
        all.map(move |envelope| StoredEnvelope { group, ..envelope })
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        assert!(self.count > 0, "a record without messages is not written");
        debug_assert!(self.first > 0, "a group has the number of its first message");
        put_varint(out, self.count.into());
        out.extend_from_slice(self.bytes);
    }

    /// Checks each, so that [`Copies::iter`] meets no error.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, RecordError> {
        let count = reader.small()?;
        let from = reader.clone();
        let (mut first, mut last) = (0, 0);
        for _ in 0..count {
            let copy = envelope(reader)?;
            if copy.message.0 <= last || copy.group != 0 {
                return Err(RecordError::Invalid("copies"));
            }
            last = copy.message.0;
            first = if first == 0 { last } else { first };
        }
        if count == 0 {
            return Err(RecordError::Invalid("copies"));
        }
        Ok(Self { count, first, bytes: from.until(reader) })
    }
}

impl CopiesDraft {
    /// Adds one.
    ///
    /// # Panics
    /// When its number is not larger than that of the one before.
    pub fn push(&mut self, envelope: &StoredEnvelope<'_>) {
        if self.count == 0 {
            self.first = envelope.message.0;
        }
        assert!(envelope.message.0 > self.last, "copies ascend");
        self.last = envelope.message.0;
        self.count += 1;
        put_envelope(&mut self.bytes, &StoredEnvelope { group: 0, ..*envelope });
    }

    /// Bytes of all envelopes so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// All so far.
    #[must_use]
    pub fn copies(&self) -> Copies<'_> {
        Copies { count: self.count, first: self.first, bytes: &self.bytes }
    }
}
