//! The names that senders give their messages, so that one that is sent again is not stored again.
//!
//! A name counts for one destination, and for a while: the oldest are forgotten when their window
//! is over or when there are too many. A name is as durable as the messages that were stored under
//! it. Its record is in the same frame, and lives on without that message, in snapshots while its
//! window lasts. So a sender that could have been told that a message is stored is told so again,
//! after a crash too.
//!
//! A fingerprint stands beside the name. A sender that sends another message under it has made a
//! mistake. Without the fingerprint it would be told that its message is stored. It is refused.

mod lookup;
pub(crate) mod remembering;

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use model::{DependsOn, Destination, MessageId, Nanos, Reply, limits};
use records::SendIdView;

/// A sender's name for a message, at its destination.
pub(crate) type SendKey = (Destination, Arc<str>);

/// All names that are remembered.
#[derive(Debug)]
pub(crate) struct SendIds {
    /// For how long.
    window: Nanos,
    /// How many.
    count_max: usize,
    /// Bytes that they take of memory, and may take.
    bytes: u64,
    bytes_max: u64,
    /// The oldest first.
    seen: BTreeMap<Age, DedupEntry>,
    ages: BTreeMap<SendKey, Age>,
    /// The number of the next one.
    next: u64,
}

/// When a name was seen, and its number among all: those that come later are greater.
pub(crate) type Age = (Nanos, u64);

/// A name and the message it stands for.
#[derive(Debug)]
pub(crate) struct DedupEntry {
    key: SendKey,
    first: First,
    /// The size of its record; zero where it is in memory only.
    record_bytes: u64,
}

/// The fate of the message that was sent first under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct First {
    /// The first that was stored; `None`: no queue took it.
    message: Option<MessageId>,
    /// How many were stored.
    copies: u32,
    /// The position that its answer waited for.
    after: DependsOn,
    /// Tells it from another message; not known of those that older versions stored.
    fingerprint: Option<u64>,
}

/// The result of a search for a message that was sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentBefore {
    /// It is the same.
    Same(First),
    /// Another one was. An answer that tells so waits for this.
    Other(DependsOn),
}

/// A name of a message that is drafted.
#[derive(Debug)]
pub(crate) struct Sent {
    key: SendKey,
    message: Option<MessageId>,
    copies: u32,
    fingerprint: u64,
    record_bytes: u64,
}

impl First {
    /// How many messages were stored.
    pub(crate) const fn copies(&self) -> u32 {
        self.copies
    }

    /// The position that its answer waited for.
    pub(crate) const fn after(&self) -> DependsOn {
        self.after
    }

    /// The answer to it, and to all that are sent again.
    pub(crate) fn reply(&self) -> Reply {
        self.message.map_or(Reply::Done, |message| Reply::Stored { message })
    }
}

impl SendIds {
    pub(crate) const fn new(window: Nanos, count_max: usize, bytes_max: u64) -> Self {
        Self {
            window,
            count_max,
            bytes: 0,
            bytes_max,
            seen: BTreeMap::new(),
            ages: BTreeMap::new(),
            next: 1,
        }
    }

    /// Bytes of memory that they take.
    pub(crate) const fn memory_bytes(&self) -> u64 {
        self.bytes
    }

    /// The fate of the message, if it was seen and not too long ago.
    pub(crate) fn find(&self, key: &SendKey, now: Nanos) -> Option<&First> {
        let age = self.ages.get(key)?;
        self.seen.get(age).filter(|_| self.is_remembered(*age, now)).map(|seen| &seen.first)
    }

    pub(crate) fn is_remembered(&self, (at, _): Age, now: Nanos) -> bool {
        now < at + self.window
    }

    /// All from this age on, the oldest first.
    pub(crate) fn iter_from(&self, age: Age) -> impl Iterator<Item = (Age, &DedupEntry)> {
        self.seen.range(age..).map(|(age, seen)| (*age, seen))
    }

    /// The number of the next one.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Names are remembered only with a window and room for them.
    pub(crate) fn is_on(&self) -> bool {
        self.window > Nanos::ZERO && self.count_max > 0
    }

    fn insert(&mut self, at: Nanos, seen: DedupEntry) {
        let age = (at, self.next);
        self.next += 1;
        self.bytes += seen.memory_bytes();
        let before = self.ages.insert(seen.key.clone(), age);
        assert!(before.is_none(), "a name is entered once");
        let before = self.seen.insert(age, seen);
        assert!(before.is_none(), "an age is that of one name");
        debug_assert_eq!(self.seen.len(), self.ages.len(), "each name has an age");
    }

    fn remove(&mut self, age: Age) -> Option<DedupEntry> {
        let seen = self.seen.remove(&age)?;
        assert!(seen.memory_bytes() <= self.bytes, "the bytes of a name were counted");
        self.bytes -= seen.memory_bytes();
        let was_there = self.ages.remove(&seen.key);
        assert_eq!(was_there, Some(age), "a name is known by its age");
        Some(seen)
    }

    /// The oldest, if it is one too many or too old.
    fn superfluous(&self, now: Nanos) -> Option<Age> {
        let age = *self.seen.first_key_value()?.0;
        let is_full = self.seen.len() > self.count_max || self.bytes > self.bytes_max;
        (is_full || !self.is_remembered(age, now)).then_some(age)
    }

    pub(crate) fn check(&self, last_moment: Nanos) {
        assert_eq!(self.seen.len(), self.ages.len(), "each name has an age");
        assert!(self.seen.len() <= self.count_max, "no more names than may be");
        let bytes = self.seen.values().map(DedupEntry::memory_bytes).sum::<u64>();
        assert_eq!(bytes, self.bytes, "bytes of names");
        assert!(bytes <= self.bytes_max, "no more names than there is memory for");
        for (age, seen) in &self.seen {
            assert_eq!(self.ages.get(&seen.key), Some(age), "a name is known by its age");
            assert!(age.0 <= last_moment && age.1 < self.next, "a name was seen in the past");
            assert!(seen.key.1.len() <= limits::SEND_ID_BYTES_MAX, "names are short");
        }
    }
}

impl DedupEntry {
    /// Bytes of memory that it takes.
    fn memory_bytes(&self) -> u64 {
        SEEN_BYTES + self.key.1.len() as u64
    }

    /// As a record says it; `None` where it is in memory only.
    pub(crate) fn view(&self, (at, _): Age) -> Option<SendIdView<'_>> {
        let First { message, copies, fingerprint, .. } = self.first;
        let message = message.filter(|_| self.record_bytes > 0)?;
        Some(view_of(&self.key, message, copies, at, fingerprint))
    }
}

fn view_of(
    (to, id): &SendKey,
    message: MessageId,
    copies: u32,
    at: Nanos,
    fingerprint: Option<u64>,
) -> SendIdView<'_> {
    let to_topic = matches!(to, Destination::Topic(_));
    SendIdView { to_topic, to: to.name().as_str(), id, message, copies, at, fingerprint }
}

/// A name in memory, with its places in the indexes, but for its text. Measured.
const SEEN_BYTES: u64 = 400;
