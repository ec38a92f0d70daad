//! The most that the records of a transaction may take, counted while its parts come in. It tells
//! whether the commit is one frame, and how much room a larger commit needs.
//!
//! Everything is counted as large as it can become. Message numbers are given at the commit, and
//! the takers of published messages are known only then.

use alloc::vec::Vec;

use model::{Durability, MessageId, NewMessage, Settlement, limits};
use records::{CHANGED_BYTES_MAX, Place, RecordView, StoredEnvelope, encode};

use crate::admission::{Put, Puts, Records, Tally};
use crate::dedup::SendIds;
use crate::dedup::remembering::send_id_bytes_max;
use crate::directory::{Directory, Target};
use crate::ids::QueueSlot;
use crate::log::DELETED_BYTES_MAX;
use crate::recovery::snapshot::snapshot_record_bytes_max;
use crate::store::MessageStore;

impl Put {
    /// The bytes that it counts for.
    pub(crate) fn bytes(&self) -> usize {
        self.envelope_bytes + self.body_bytes + self.name_bytes
    }
}

impl Puts {
    fn add(&mut self, put: &Put) {
        self.messages += 1;
        if !put.is_journalled {
            return;
        }
        self.envelope_bytes += put.envelope_bytes;
        self.envelope_bytes_max = self.envelope_bytes_max.max(put.envelope_bytes);
        self.body_bytes += put.body_bytes;
        self.body_bytes_max = self.body_bytes_max.max(put.body_bytes);
        self.name_bytes += put.name_bytes;
        self.snapshot_bytes += put.snapshot_bytes;
    }

    /// With so many copies of each in the log, and so many in all.
    fn records(&self, durable: usize, all: usize) -> Records {
        let messages = self.messages.saturating_mul(all);
        if durable == 0 {
            return Records { messages, ..Records::default() };
        }
        let pictures = self.snapshot_bytes.saturating_mul(durable as u64);
        let beside_envelopes = self.body_bytes.saturating_add(self.name_bytes);
        Records {
            bytes: self.envelope_bytes.saturating_mul(durable).saturating_add(beside_envelopes),
            largest_bytes: self.envelope_bytes_max.saturating_mul(durable) + self.body_bytes_max,
            // A record's share of a chunk is less than the record.
            snapshot_bytes: pictures.saturating_add(2 * self.name_bytes as u64),
            messages,
        }
    }
}

impl Records {
    fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            largest_bytes: self.largest_bytes.max(other.largest_bytes),
            snapshot_bytes: self.snapshot_bytes.saturating_add(other.snapshot_bytes),
            messages: self.messages.saturating_add(other.messages),
        }
    }
}

impl Tally {
    pub(crate) fn add_put(&mut self, target: Target, put: &Put) {
        match target {
            Target::Queue(_) => self.queues.add(put),
            Target::Topic(slot) => self.topics.entry(slot).or_default().add(put),
        }
    }

    /// Adds the settlement of a journalled message: its record takes so many bytes.
    pub(crate) fn add_settled(&mut self, bytes: usize) {
        self.settled_bytes += bytes;
    }

    /// Adds a change of a table: its records take so many bytes together.
    pub(crate) fn add_written(&mut self, bytes: usize) {
        self.written_bytes += bytes;
        self.written_bytes_max = self.written_bytes_max.max(bytes);
    }

    pub(crate) const fn written_bytes(&self) -> usize {
        self.written_bytes
    }

    pub(crate) fn settled_bytes(&self) -> usize {
        self.settled_bytes
    }
}

impl SendIds {
    /// Bytes that a message for that destination may take, in one copy, if its record is as durable
    /// as that.
    pub(crate) fn measure(
        &self,
        target: Target,
        new: &NewMessage,
        level: Durability,
        directory: &Directory,
        store: &MessageStore,
    ) -> Put {
        let (place, is_journalled) = match target {
            Target::Queue(slot) => {
                let queue = store.queues.at(slot);
                (queue.place(), level != Durability::None && !queue.is_memory_only())
            }
            Target::Topic(_) => (Place::Subscription(NUMBER_LARGE), level != Durability::None),
        };
        let id = MessageId(NUMBER_LARGE);
        let envelope = store.envelope_of_new(id, level.max(Durability::Written), new);
        let name_bytes = match target {
            Target::Queue(slot) => store.queues.at(slot).name.as_str().len(),
            Target::Topic(slot) => directory.topics().at(slot).name().as_str().len(),
        };
        let record =
            RecordView::Message { envelope: StoredEnvelope { place, ..envelope }, body: &[] };
        let mut bytes = Vec::with_capacity(ENVELOPE_BYTES_USUAL);
        encode(&record, &mut bytes);
        Put {
            envelope_bytes: bytes.len() + BODY_LENGTH_BYTES,
            body_bytes: new.body.len(),
            name_bytes: send_id_bytes_max(self.send_key(target, new, directory, store).as_ref()),
            snapshot_bytes: snapshot_record_bytes_max(name_bytes),
            is_journalled,
        }
    }
}

impl Directory {
    /// Bytes that the record of a settlement may take.
    pub(crate) fn settled_bytes_max(
        &self,
        from: QueueSlot,
        settlement: &Settlement,
        store: &MessageStore,
    ) -> usize {
        let names =
            store.queues.at(from).name.as_str().len() + self.dead_letters_name().as_str().len();
        match settlement {
            Settlement::Accept => DELETED_BYTES_MAX,
            Settlement::Release
            | Settlement::Return
            | Settlement::Fail
            | Settlement::GiveBack { .. }
            | Settlement::Park(_) => CHANGED_BYTES_MAX - 2 * limits::QUEUE_NAME_BYTES_MAX + names,
        }
    }

    /// The most that the records of a commit of all these may take now.
    pub(crate) fn records_of(&self, tally: &Tally) -> Records {
        let settled = Records {
            bytes: tally.settled_bytes,
            largest_bytes: if tally.settled_bytes == 0 { 0 } else { CHANGED_BYTES_MAX },
            // A dead letter grows in a snapshot by at most the bytes of its record.
            snapshot_bytes: tally.settled_bytes as u64,
            messages: 0,
        };
        let written = Records {
            bytes: tally.written_bytes,
            largest_bytes: tally.written_bytes_max,
            snapshot_bytes: tally.written_bytes as u64,
            messages: 0,
        };
        let settled = settled.and(written);
        let published = tally.topics.iter().map(|(slot, puts)| {
            let topic = self.topics().at(*slot);
            let words = self.matching_words(topic.name()).subscriptions;
            let numbers = topic.subscriptions().iter().chain(&words);
            let durable =
                numbers.filter(|number| self.subscriptions().at(**number).asks().is_durable());
            let patterns = self.subscriptions().patterns_count();
            puts.records(durable.count(), topic.subscriptions().len() + patterns)
        });
        published.fold(settled.and(tally.queues.records(1, 1)), Records::and)
    }
}

/// The length of a body, up to [`limits::MESSAGE_BYTES_MAX`].
pub(crate) const BODY_LENGTH_BYTES: usize = 4;

const _: () = assert!(limits::MESSAGE_BYTES_MAX < 1 << (7 * BODY_LENGTH_BYTES));

/// No message or subscription has a larger number.
const NUMBER_LARGE: u64 = (1 << 62) - 1;

/// Most messages have a queue with a short name, and no delay.
const ENVELOPE_BYTES_USUAL: usize = 96;
