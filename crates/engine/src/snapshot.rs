//! A picture of all journalled messages, taken in small chunks while traffic goes on.
//!
//! The picture is fuzzy: each message is shown as it is when its turn comes. Two rules make it
//! exact again. Replay starts at the frames after the snapshot's *begin*, so it repeats every
//! change that any part of the picture might lack; and records hold whole states, so that
//! repeating one that the picture already shows does no harm. What is stored after the begin is
//! not visited: its Message record is among those frames.

use alloc::vec::Vec;

use model::{Format, Lsn, MessageId, Nanos};
use records::{RecordView, SubscriptionView, encode};

use crate::engine::{Directory, Engine, MessageStore};
use crate::keys::KeyCursor;
use crate::message::Message;
use crate::own_policies::PolicyCursor;
use crate::send_ids::{Age, SendIds};

/// How far a snapshot has come.
#[derive(Clone, Debug)]
pub struct SnapshotCursor {
    keys: KeyCursor,
    policies: PolicyCursor,
    /// The next subscription to visit.
    next_subscription: u64,
    /// Subscriptions from here on were made after the snapshot began.
    end_subscription: u64,
    /// The next send id to visit.
    next_send_id: Age,
    /// Send ids from here on were seen after the snapshot began.
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

impl Engine {
    /// Begins a snapshot: frames after [`Engine::last_lsn`] of now are to be replayed on it.
    #[must_use]
    pub fn snapshot_begin(&self) -> SnapshotCursor {
        SnapshotCursor {
            keys: KeyCursor::default(),
            policies: PolicyCursor::default(),
            next_subscription: 0,
            end_subscription: self.directory.subscriptions.next,
            next_send_id: (Nanos::ZERO, 0),
            end_send_id: self.dedup.next(),
            next: 0,
            end: self.store.next.message,
            begun: false,
            chunk_messages_max: CHUNK_MESSAGES_MAX,
        }
    }

    /// What a snapshot of now may take at most, with what its chunks cost the caller.
    #[must_use]
    pub fn snapshot_bytes_max(&self) -> u64 {
        self.store.totals.snapshot_bytes + self.keyspace.values.snapshot_bytes() + FIXED_BYTES
    }

    /// What a new message may take in a snapshot, in a queue with a name of so many bytes.
    pub(crate) fn snapshot_record_bytes_max(name_bytes: usize) -> u64 {
        PICTURE_BYTES_MAX + EXTENSION_BYTES_MAX + name_bytes as u64
    }

    /// Appends the next chunk of records; true when more are to come. Commands may be handled
    /// between two chunks. Frames up to [`Engine::last_lsn`] of the last chunk's moment are to be
    /// durable before the snapshot counts, for it may show what they hold.
    pub fn snapshot_chunk(&self, cursor: &mut SnapshotCursor, out: &mut Vec<u8>) -> bool {
        if !cursor.begun {
            cursor.begun = true;
            encode(&self.store.sequence(), out);
            if self.directory.subscriptions.next > 1 {
                encode(&RecordView::Subscriptions { next: self.directory.subscriptions.next }, out);
            }
        }
        let chunk_max = cursor.chunk_messages_max.max(1);
        let left = chunk_max - self.snapshot_keys(&mut cursor.keys, chunk_max, out);
        let left =
            left - self.directory.snapshot_policies(&mut cursor.policies, left, out, &self.context);
        let left = left - self.directory.snapshot_subscriptions(cursor, left, out);
        let left = left - self.dedup.snapshot_send_ids(cursor, left, out, &self.store);
        let end = cursor.end;
        let visited =
            self.store.messages.iter_from(cursor.next).take_while(|(number, _)| *number < end);
        for (number, message) in visited.take(left) {
            cursor.next = number + 1;
            self.store.snapshot_message(MessageId(number), message, out);
        }
        let subscription = self.directory.subscriptions.iter_from(cursor.next_subscription).next();
        let send_id = self.dedup.iter_from(cursor.next_send_id).next();
        let message = self.store.messages.iter_from(cursor.next).next();
        !cursor.keys.is_done()
            || !cursor.policies.is_done()
            || subscription.is_some_and(|(number, _)| number < cursor.end_subscription)
            || send_id.is_some_and(|((_, number), _)| number < cursor.end_send_id)
            || message.is_some_and(|(number, _)| number < end)
    }

    /// What a record of so many bytes may take in a snapshot, if there is one, of a subscription or
    /// of a send id.
    pub(crate) fn snapshot_bytes_of_record(record_bytes: u64) -> u64 {
        if record_bytes == 0 { 0 } else { record_bytes + CHUNK_SHARE_BYTES }
    }
}

impl MessageStore {
    /// A message came or went.
    pub(crate) fn snapshot_changed(&mut self, message: &Message, came: bool) {
        let bytes = self.snapshot_bytes_of(message);
        let sum = &mut self.totals.snapshot_bytes;
        *sum = if came { *sum + bytes } else { *sum - bytes };
    }

    /// What the message may take in a snapshot.
    pub(crate) fn snapshot_bytes_of(&self, message: &Message) -> u64 {
        if !message.is_journalled() {
            return 0;
        }
        let name = self.queues.at(message.queue).name.as_str().len() as u64;
        let dead = message.dead().map(|dead| DEAD_BYTES_MAX + dead.from.as_str().len() as u64);
        let extended = if message.format == Format::RAW { 0 } else { EXTENSION_BYTES_MAX };
        PICTURE_BYTES_MAX + name + dead.unwrap_or(0) + extended
    }

    /// What went with its subscription is not shown.
    fn snapshot_message(&self, id: MessageId, message: &Message, out: &mut Vec<u8>) {
        if !message.is_journalled() || self.queues.at(message.queue).is_leaving() {
            return;
        }
        assert!(message.location > Lsn::ZERO, "a journalled message is in the log");
        let envelope = self.queues.envelope_of(id, message);
        let (location, record_bytes) = (message.location, message.record_bytes);
        encode(&RecordView::Located { envelope, location, record_bytes }, out);
    }

    fn sequence(&self) -> RecordView<'static> {
        RecordView::Sequence {
            next_message: self.next.message,
            next_buried: self.next.buried,
            latest: self.latest,
        }
    }
}

impl Directory {
    /// Shows the next subscriptions, before all messages; says how many were visited.
    fn snapshot_subscriptions(
        &self,
        cursor: &mut SnapshotCursor,
        chunk_max: usize,
        out: &mut Vec<u8>,
    ) -> usize {
        let end = cursor.end_subscription;
        let visited = self.subscriptions.iter_from(cursor.next_subscription);
        let visited = visited.take_while(|(number, _)| *number < end).take(chunk_max);
        let mut count = 0;
        for (number, entry) in visited {
            cursor.next_subscription = number + 1;
            count += 1;
            if entry.record_bytes == 0 {
                continue;
            }
            if let Some(view) = SubscriptionView::of(number, &entry.asks) {
                encode(&RecordView::Subscribed(view), out);
            }
        }
        count
    }
}

impl SendIds {
    /// Shows the next send ids that are remembered; says how many were visited.
    fn snapshot_send_ids(
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

/// A Located record without its queue's name, with numbers as large as they come in practice, and
/// its share of what a chunk costs.
const PICTURE_BYTES_MAX: u64 = 104;

/// What records of messages that came with a format have beside: that, an expiry, the numbers of a
/// subscription and of a group.
const EXTENSION_BYTES_MAX: u64 = 24;

/// What is said of a dead letter, without the name of where it is from.
const DEAD_BYTES_MAX: u64 = 24;

/// A record's share of what a chunk costs.
const CHUNK_SHARE_BYTES: u64 = 8;

/// What a snapshot begins with: its header and the records of numbers.
const FIXED_BYTES: u64 = 4096 + 64;

const CHUNK_MESSAGES_MAX: usize = 1_000;
