//! A snapshot of all journalled messages, taken in small chunks while traffic goes on.
//!
//! The snapshot is fuzzy: each message is shown as it is when its turn comes. Two rules make it
//! exact again. Replay starts at the frames after the snapshot's *begin*, so it repeats every
//! change that any part of the snapshot might lack. Records hold whole states, so it does no harm
//! to repeat a state that the snapshot already shows. Messages stored after the begin are not
//! visited: their Message records are among those frames.

use alloc::vec::Vec;

use model::{Format, Lsn, MessageId, Nanos};
use records::{RecordView, SubscriptionView, encode};

use crate::dedup::{Age, SendIds};
use crate::directory::{Directory, PolicyCursor};
use crate::keyspace::KeyCursor;
use crate::store::MessageStore;
use crate::store::message::Message;

/// How far a snapshot has come.
#[derive(Clone, Debug)]
pub struct SnapshotCursor {
    keys: KeyCursor,
    policies: PolicyCursor,
    /// The next subscription to visit.
    next_subscription: u64,
    /// Subscriptions from here on were made after the snapshot began.
    end_subscription: u64,
    /// The next deduplication id to visit.
    next_send_id: Age,
    /// Deduplication ids from here on were seen after the snapshot began.
    end_send_id: u64,
    /// The next message to visit.
    next: u64,
    /// Messages from here on were stored after the snapshot began.
    end: u64,
    /// The Sequence record is written.
    begun: bool,
    /// Messages, subscriptions and keys that one chunk visits at most; bounds how long it keeps
    /// others waiting (1,000 take about 100 µs). May be changed at any time; simulations like it
    /// small.
    pub chunk_messages_max: usize,
}

impl SnapshotCursor {
    /// Before all that a snapshot shows: subscriptions, deduplication ids and messages below these
    /// numbers.
    pub(crate) fn new(end_subscription: u64, end_send_id: u64, end: MessageId) -> Self {
        Self {
            keys: KeyCursor::default(),
            policies: PolicyCursor::default(),
            next_subscription: 0,
            end_subscription,
            next_send_id: (Nanos::ZERO, 0),
            end_send_id,
            next: 0,
            end: end.0,
            begun: false,
            chunk_messages_max: CHUNK_MESSAGES_MAX,
        }
    }

    /// True once: the first chunk begins with the numbers.
    pub(crate) const fn begins(&mut self) -> bool {
        !core::mem::replace(&mut self.begun, true)
    }

    pub(crate) const fn keys_mut(&mut self) -> &mut KeyCursor {
        &mut self.keys
    }

    pub(crate) const fn policies_mut(&mut self) -> &mut PolicyCursor {
        &mut self.policies
    }

    /// True if it has shown all that was there when it began.
    pub(crate) fn is_done(
        &self,
        directory: &Directory,
        dedup: &SendIds,
        store: &MessageStore,
    ) -> bool {
        let subscription = directory.subscriptions().iter_from(self.next_subscription).next();
        let send_id = dedup.iter_from(self.next_send_id).next();
        let message = store.messages.iter_from(self.next).next();
        self.keys.is_done()
            && self.policies.is_done()
            && subscription.is_none_or(|(number, _)| number >= self.end_subscription)
            && send_id.is_none_or(|((_, number), _)| number >= self.end_send_id)
            && message.is_none_or(|(number, _)| number >= self.end)
    }
}

impl MessageStore {
    /// Shows the next messages, at most so many.
    pub(crate) fn snapshot_messages(
        &self,
        cursor: &mut SnapshotCursor,
        chunk_max: usize,
        out: &mut Vec<u8>,
    ) {
        let end = cursor.end;
        let visited = self.messages.iter_from(cursor.next).take_while(|(number, _)| *number < end);
        for (number, message) in visited.take(chunk_max) {
            cursor.next = number + 1;
            self.snapshot_message(MessageId(number), message, out);
        }
    }

    /// A message came or went.
    pub(crate) fn snapshot_changed(&mut self, message: &Message, came: bool) {
        let bytes = self.snapshot_bytes_of(message);
        let (before, now) = if came { (0, bytes) } else { (bytes, 0) };
        self.change_snapshot_bytes(before, now);
    }

    /// The most bytes that the message takes in a snapshot.
    pub(crate) fn snapshot_bytes_of(&self, message: &Message) -> u64 {
        if !message.is_journalled() {
            return 0;
        }
        let name = self.queues.at(message.queue()).name.as_str().len() as u64;
        let dead = message.dead().map(|dead| DEAD_BYTES_MAX + dead.from().as_str().len() as u64);
        let extended = if message.format() == Format::RAW { 0 } else { EXTENSION_BYTES_MAX };
        let sender = if message.account().is_some() { SENDER_BYTES_MAX } else { 0 };
        PICTURE_BYTES_MAX + name + dead.unwrap_or(0) + extended + sender
    }

    /// Writes a message, unless it went with its subscription.
    fn snapshot_message(&self, id: MessageId, message: &Message, out: &mut Vec<u8>) {
        if !message.is_journalled() || self.queues.at(message.queue()).is_leaving() {
            return;
        }
        assert!(message.location() > Lsn::ZERO, "a journalled message is in the log");
        let envelope = self.queues.envelope_of(id, message);
        let (location, record_bytes) = (message.location(), message.record_bytes());
        encode(&RecordView::Located { envelope, location, record_bytes }, out);
    }
}

impl Directory {
    /// Shows the next subscriptions, before all messages; says how many were visited.
    pub(crate) fn snapshot_subscriptions(
        &self,
        cursor: &mut SnapshotCursor,
        chunk_max: usize,
        out: &mut Vec<u8>,
    ) -> usize {
        let end = cursor.end_subscription;
        let visited = self.subscriptions().iter_from(cursor.next_subscription);
        let visited = visited.take_while(|(number, _)| *number < end).take(chunk_max);
        let mut count = 0;
        for (number, entry) in visited {
            cursor.next_subscription = number + 1;
            count += 1;
            if entry.record_bytes() == 0 {
                continue;
            }
            if let Some(view) = SubscriptionView::of(number, entry.asks()) {
                encode(&RecordView::Subscribed(view), out);
            }
        }
        count
    }
}

impl SendIds {
    /// Shows the next deduplication ids that are remembered; says how many were visited.
    pub(crate) fn snapshot_send_ids(
        &self,
        cursor: &mut SnapshotCursor,
        chunk_max: usize,
        out: &mut Vec<u8>,
        store: &MessageStore,
    ) -> usize {
        let end = cursor.end_send_id;
        let visited = self.iter_from(cursor.next_send_id);
        let visited = visited.take_while(|((_, number), _)| *number < end).take(chunk_max);
        let mut count = 0;
        for (age, seen) in visited {
            cursor.next_send_id = (age.0, age.1 + 1);
            count += 1;
            if let Some(view) = seen.view(age)
                && self.is_remembered(age, store.latest)
            {
                encode(&RecordView::SendId(view), out);
            }
        }
        count
    }
}

/// Messages, subscriptions and keys of a chunk, unless another number is set.
const CHUNK_MESSAGES_MAX: usize = 1_000;

/// The most bytes that a message takes in a snapshot, if its queue has a name of so many bytes.
pub(crate) const fn snapshot_record_bytes_max(name_bytes: usize) -> u64 {
    PICTURE_BYTES_MAX + EXTENSION_BYTES_MAX + SENDER_BYTES_MAX + name_bytes as u64
}

/// A Located record without its queue's name, with numbers as large as they come in practice, and
/// its share of the cost of a chunk.
pub(crate) const PICTURE_BYTES_MAX: u64 = 104;

/// The extra bytes of records of messages that came with a format: the format, an expiry, the
/// numbers of a subscription and of a group.
pub(crate) const EXTENSION_BYTES_MAX: u64 = 24;

/// Bytes about the user who stored a message.
const SENDER_BYTES_MAX: u64 = 9;

/// Bytes about a dead letter, without the name of the queue that it is from.
const DEAD_BYTES_MAX: u64 = 24;

/// The most bytes that the record of a subscription or of a deduplication id takes in a snapshot.
/// Zero, if there is no record.
pub(crate) const fn snapshot_bytes_of_record(record_bytes: u64) -> u64 {
    if record_bytes == 0 { 0 } else { record_bytes + CHUNK_SHARE_BYTES }
}

/// A record's share of the cost of a chunk.
const CHUNK_SHARE_BYTES: u64 = 8;
