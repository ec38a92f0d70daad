//! Streams: entries in the order of their ids, each of fields with values, and groups of consumers
//! that share them.
//!
//! A group remembers how far it has come. An entry that it has given to a consumer is pending until
//! that is acknowledged; another consumer may claim it. A stream is there until it is deleted, with
//! entries or without.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::{ClockLead, FieldAndValue, Nanos, QueueName, Texts, WallClock};

/// The place of an entry in its stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// Milliseconds since 1970, if nobody chose another number.
    pub millis: u64,
    /// Tells entries of the same millisecond apart.
    pub sequence: u64,
}

/// The id that a new entry gets. It has to be greater than all that were in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewStreamId {
    /// This one.
    Given(StreamId),
    /// The next of this millisecond.
    InMillisecond(u64),
    /// The next of now, or of the last entry's millisecond if that is later.
    Next,
}

/// The entries that leave a stream at its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamTrim {
    /// Those that stay.
    pub keep: StreamKept,
    /// How many leave at most.
    pub max: Option<u64>,
}

/// The entries of a stream that stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKept {
    /// The last ones, so many.
    Last(u64),
    /// From this id on.
    From(StreamId),
}

/// Entries from one id to another, both included, in either order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamRange {
    /// The first id.
    pub first: StreamId,
    /// The last id.
    pub last: StreamId,
    /// How many at most.
    pub max: Option<u64>,
}

/// The entries of a stream that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPlace {
    /// Those behind this id. A consumer of a group reads those pending with it.
    Behind(StreamId),
    /// Those that come from now on. A consumer of a group reads those that no consumer of the
    /// group has read.
    New,
}

/// The consumer of a group that reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamReader {
    /// The group.
    pub group: Arc<[u8]>,
    /// The consumer, which is made if it is not there.
    pub consumer: Arc<[u8]>,
    /// Entries that it reads are pending until it acknowledges them.
    pub acknowledges: bool,
}

/// Reading from streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRead {
    /// The consumer that reads; `None`: no group.
    pub reader: Option<StreamReader>,
    /// The streams, at least one.
    pub places: Vec<(QueueName, ReadPlace)>,
    /// How many entries of each at most, at least one.
    pub max: Option<u64>,
    /// How long to wait while there are none; zero: not at all, `None`: for ever.
    pub wait: Option<Nanos>,
}

/// A group of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupName {
    /// The stream.
    pub stream: QueueName,
    /// The group.
    pub group: Arc<[u8]>,
}

/// How far a group has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupStart {
    /// The last entry that it has read; `None`: the last of the stream.
    pub last: Option<StreamId>,
    /// How many it has read since the stream's begin, if that is known.
    pub read: Option<u64>,
}

/// A consumer that takes over entries which are pending with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamClaim {
    /// The group.
    pub of: GroupName,
    /// The consumer, which is made if it is not there.
    pub consumer: Arc<[u8]>,
    /// Only entries that were not delivered for so long.
    pub min_idle: Nanos,
    /// The answer has ids without fields, and no delivery is counted.
    pub only_ids: bool,
}

/// The facts of claimed entries that a client sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClaimedAs {
    /// They were delivered at that moment; `None`: now.
    pub delivered: Option<ClaimTime>,
    /// They were delivered so many times.
    pub count: Option<u64>,
    /// Entries that are pending with nobody are claimed as well.
    pub also_free: bool,
    /// The group has come at least to this entry.
    pub last: StreamId,
}

/// The moment of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimTime {
    /// So long ago.
    Ago(Nanos),
    /// At that moment; one that has not come yet: now.
    At(Nanos),
}

/// Commands on streams. A key of another kind is refused (`WrongKind`); a stream or group that is
/// not there as well, where one has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamCommand {
    /// Add an entry, and let others leave. → `Id`; `NotFound` if the stream has to be there and is
    /// not; `Refused`
    Append {
        /// The stream.
        name: QueueName,
        /// Its id.
        id: NewStreamId,
        /// Fields and values, at least one.
        fields: Vec<FieldAndValue>,
        /// Those that leave.
        trim: Option<StreamTrim>,
        /// Only if there is such a stream.
        only_existing: bool,
        /// How the machine's clock stands to the engine's: ids have the machine's time.
        lead: ClockLead,
    },
    /// Let entries leave. → `Count`; `CountSoFar`, but not in a batch: ask again for the rest
    Trim {
        /// The stream.
        name: QueueName,
        /// Those that leave.
        trim: StreamTrim,
    },
    /// Take entries out. → `Count` of those that were there
    Remove {
        /// The stream.
        name: QueueName,
        /// At least one.
        ids: Vec<StreamId>,
    },
    /// How many entries there are. → `Count`
    Length {
        /// The stream.
        name: QueueName,
    },
    /// Show entries. → `Entries`; `Refused` (`TooManyBytes`)
    Range {
        /// The stream.
        name: QueueName,
        /// Which.
        range: StreamRange,
        /// From the last one on.
        reverse: bool,
    },
    /// Read, waiting for entries. → `Read`; `TimedOut` if there is nothing; `Refused`
    Read(StreamRead),
    /// Change what a stream says of its past. → `Done`, `NotFound`, `Refused`
    SetLast {
        /// The stream.
        name: QueueName,
        /// The greatest id that it has had.
        last: StreamId,
        /// How many entries it has had.
        added: Option<u64>,
        /// The greatest id of those that were taken out.
        removed: Option<StreamId>,
    },
    /// Make a group. → `Done`, `Refused`
    CreateGroup {
        /// Which.
        of: GroupName,
        /// Its begin.
        start: GroupStart,
        /// Make the stream as well if it is not there.
        makes_stream: bool,
    },
    /// Move a group to another place. → `Done`, `Refused`
    SetGroup {
        /// Which.
        of: GroupName,
        /// The place.
        start: GroupStart,
    },
    /// Remove a group with its consumers. → `Count(1)`; `Count(0)` if there was none
    RemoveGroup {
        /// Which.
        of: GroupName,
    },
    /// Make a consumer. → `Count(1)`; `Count(0)` if it was there
    CreateConsumer {
        /// Its group.
        of: GroupName,
        /// Its name.
        consumer: Arc<[u8]>,
    },
    /// Remove a consumer; entries pending with it are so with nobody. → `Count` of these;
    /// `CountSoFar`, but not in a batch: ask again for the rest
    RemoveConsumer {
        /// Its group.
        of: GroupName,
        /// Its name.
        consumer: Arc<[u8]>,
    },
    /// These are done, and no more pending. → `Count` of those that were
    Acknowledge {
        /// The group.
        of: GroupName,
        /// At least one.
        ids: Vec<StreamId>,
    },
    /// How much is pending in a group. → `PendingCounts`
    CountPending {
        /// The group.
        of: GroupName,
    },
    /// Show pending entries. → `Pending`
    ShowPending {
        /// The group.
        of: GroupName,
        /// Which, in the order of their ids.
        range: StreamRange,
        /// Only those pending with this consumer.
        consumer: Option<Arc<[u8]>>,
        /// Only those that were not delivered for so long.
        min_idle: Nanos,
    },
    /// Take over these entries. Pending ones that are no more in the stream are pending no more.
    /// → `Entries` of those that it got
    Claim {
        /// How.
        claim: StreamClaim,
        /// Which, at least one.
        ids: Vec<StreamId>,
        /// The facts that are set.
        claimed: ClaimedAs,
    },
    /// Take over pending entries from an id on. → `Claimed`
    ClaimNext {
        /// How.
        claim: StreamClaim,
        /// From here on.
        from: StreamId,
        /// How many it gets or finds removed at most.
        max: u64,
    },
    /// → `Stream`, `NotFound`
    Describe {
        /// The stream.
        name: QueueName,
        /// So many of its entries and of each group's pending ones; zero: all. `None`: only counts,
        /// and its first and last entry.
        whole: Option<u64>,
    },
    /// → `Groups`, `NotFound`
    DescribeGroups {
        /// The stream.
        name: QueueName,
    },
    /// → `Consumers`, `NotFound`
    DescribeConsumers {
        /// The group.
        of: GroupName,
    },
}

/// The answer to a [`StreamCommand`], where it is no simpler one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamReply {
    /// The id of a new entry.
    Id(StreamId),
    /// Some entries.
    Entries(StreamEntries),
    /// The streams that had something to read.
    Read(Vec<(QueueName, StreamEntries)>),
    /// Entries that a consumer took over.
    Claimed {
        /// They.
        entries: StreamEntries,
        /// The next pending one that was not looked at.
        next: Option<StreamId>,
        /// Those that were pending, and no more in the stream.
        removed: Vec<StreamId>,
    },
    /// How much is pending in a group.
    PendingCounts(PendingCounts),
    /// Some pending entries.
    Pending(Vec<PendingEntry>),
    /// A stream.
    Stream(StreamDescription),
    /// The groups of a stream, by name.
    Groups(Vec<GroupDescription>),
    /// The consumers of a group, by name.
    Consumers(Vec<ConsumerDescription>),
}

/// Entries of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamEntries {
    entries: Vec<(StreamId, Option<u32>)>,
    texts: Texts,
}

/// How much is pending in a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingCounts {
    /// How many entries.
    pub count: u64,
    /// The first and the last of them.
    pub ends: Option<(StreamId, StreamId)>,
    /// Consumers with pending entries, by name, and how many.
    pub consumers: Vec<(Arc<[u8]>, u64)>,
}

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingEntry {
    /// Which.
    pub id: StreamId,
    /// The consumer that has it.
    pub consumer: Arc<[u8]>,
    /// When it was delivered last.
    pub delivered: Nanos,
    /// How long that is ago.
    pub idle: Nanos,
    /// How many times it was delivered.
    pub count: u64,
}

/// A stream as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamDescription {
    /// How many entries it has.
    pub length: u64,
    /// The greatest id that it has had.
    pub last: StreamId,
    /// The greatest id of those that were taken out.
    pub removed: StreamId,
    /// How many entries it has had.
    pub added: u64,
    /// The id of its first entry; zero: it has none.
    pub first: StreamId,
    /// How many groups it has.
    pub group_count: u64,
    /// Of a whole one the first entries; else the first and the last.
    pub entries: StreamEntries,
    /// Its groups, if it is whole.
    pub groups: Option<Vec<GroupDescription>>,
}

/// A group as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDescription {
    /// Its name.
    pub name: Arc<[u8]>,
    /// How many consumers it has.
    pub consumer_count: u64,
    /// How many entries are pending.
    pub pending_count: u64,
    /// The last entry that it has read.
    pub last: StreamId,
    /// How many it has read since the stream's begin, if that is known.
    pub read: Option<u64>,
    /// How many it has still to read, if that is known.
    pub lag: Option<u64>,
    /// Pending entries and consumers, where a stream is described as a whole.
    pub pending: Vec<PendingEntry>,
    /// See `pending`.
    pub consumers: Vec<ConsumerDescription>,
}

/// A consumer as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerDescription {
    /// Its name.
    pub name: Arc<[u8]>,
    /// How many entries are pending with it.
    pub pending_count: u64,
    /// When it read last, or tried to.
    pub seen: Nanos,
    /// How long that is ago.
    pub idle: Nanos,
    /// When it got something last.
    pub active: Option<Nanos>,
    /// How long that is ago.
    pub inactive: Option<Nanos>,
    /// Entries pending with it, where a stream is described as a whole.
    pub pending: Vec<PendingEntry>,
}

impl StreamId {
    /// In front of all entries.
    pub const ZERO: Self = Self { millis: 0, sequence: 0 };

    /// The greatest.
    pub const MAX: Self = Self { millis: u64::MAX, sequence: u64::MAX };

    /// With these parts.
    #[must_use]
    pub const fn new(millis: u64, sequence: u64) -> Self {
        Self { millis, sequence }
    }

    /// The one behind it; nothing behind the greatest.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        match (self.sequence.checked_add(1), self.millis.checked_add(1)) {
            (Some(sequence), _) => Some(Self { sequence, ..self }),
            (None, Some(millis)) => Some(Self { millis, sequence: 0 }),
            (None, None) => None,
        }
    }

    /// The one before it; nothing before zero.
    #[must_use]
    pub const fn previous(self) -> Option<Self> {
        match (self.sequence.checked_sub(1), self.millis.checked_sub(1)) {
            (Some(sequence), _) => Some(Self { sequence, ..self }),
            (None, Some(millis)) => Some(Self { millis, sequence: u64::MAX }),
            (None, None) => None,
        }
    }

    /// Bytes that stand in the order of the ids.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        ((self.millis as u128) << 64 | self.sequence as u128).to_be_bytes()
    }

    /// The id with these bytes.
    #[must_use]
    pub const fn of_bytes(bytes: [u8; 16]) -> Self {
        let both = u128::from_be_bytes(bytes);
        Self { millis: (both >> 64) as u64, sequence: both as u64 }
    }
}

impl StreamEntries {
    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of their fields and values.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.texts.bytes()
    }

    /// How many fields and values there are together.
    #[must_use]
    pub const fn text_count(&self) -> usize {
        self.texts.len()
    }

    /// One more: its fields and values in turns.
    pub fn push<'t>(&mut self, id: StreamId, texts: impl Iterator<Item = &'t [u8]>) {
        let before = self.texts.len();
        texts.for_each(|text| self.texts.push(text));
        let count = u32::try_from(self.texts.len() - before).unwrap_or(u32::MAX);
        self.entries.push((id, Some(count)));
    }

    /// One more, which is not in the stream, or whose fields nobody asks for.
    pub fn push_id(&mut self, id: StreamId) {
        self.entries.push((id, None));
    }

    /// Each with its fields and values in turns, if it has any.
    pub fn iter(
        &self,
    ) -> impl Iterator<Item = (StreamId, Option<impl ExactSizeIterator<Item = &[u8]>>)> {
        let mut start = 0;
        self.entries.iter().map(move |(id, count)| {
            let texts = count.map(|count| {
                let range = start..start + count as usize;
                start = range.end;
                range.map(|index| self.texts.get(index).unwrap_or_default())
            });
            (*id, texts)
        })
    }

    /// Their ids.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = StreamId> {
        self.entries.iter().map(|(id, _)| *id)
    }
}

impl StreamCommand {
    /// Bytes of the fields and values that it brings.
    #[must_use]
    pub fn body_bytes(&self) -> usize {
        match self {
            Self::Append { fields, .. } => {
                fields.iter().map(|(field, value)| field.len() + value.len()).sum()
            }
            _ => 0,
        }
    }

    /// How long it waits; nothing if it never does.
    pub const fn wait_mut(&mut self) -> Option<&mut Option<Nanos>> {
        match self {
            Self::Read(read) => Some(&mut read.wait),
            _ => None,
        }
    }

    /// The moments that it names become the engine's.
    pub fn tell_by(&mut self, clock: &WallClock) {
        match self {
            Self::Append { lead, .. } => *lead = clock.lead(),
            Self::Claim {
                claimed: ClaimedAs { delivered: Some(ClaimTime::At(at)), .. }, ..
            } => {
                *at = clock.engine_time(*at);
            }
            _ => {}
        }
    }
}

impl StreamReply {
    /// Tells moments by the machine's clock.
    pub(crate) fn tell_by(&mut self, clock: &WallClock) {
        match self {
            Self::Pending(pending) => tell_pending_by(pending, clock),
            Self::Stream(stream) => tell_groups_by(stream.groups.as_deref_mut(), clock),
            Self::Groups(groups) => tell_groups_by(Some(groups), clock),
            Self::Consumers(consumers) => tell_consumers_by(consumers, clock),
            Self::Id(_)
            | Self::Entries(_)
            | Self::Read(_)
            | Self::Claimed { .. }
            | Self::PendingCounts(_) => {}
        }
    }
}

fn tell_groups_by(groups: Option<&mut [GroupDescription]>, clock: &WallClock) {
    for group in groups.into_iter().flatten() {
        tell_pending_by(&mut group.pending, clock);
        tell_consumers_by(&mut group.consumers, clock);
    }
}

fn tell_consumers_by(consumers: &mut [ConsumerDescription], clock: &WallClock) {
    for consumer in consumers {
        consumer.seen = clock.wall_time(consumer.seen);
        consumer.active = consumer.active.map(|at| clock.wall_time(at));
        tell_pending_by(&mut consumer.pending, clock);
    }
}

fn tell_pending_by(pending: &mut [PendingEntry], clock: &WallClock) {
    pending.iter_mut().for_each(|entry| entry.delivered = clock.wall_time(entry.delivered));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_stand_in_order_of_their_bytes() {
        let ids = [(0, 0), (0, 1), (0, u64::MAX), (1, 0), (7, 9), (u64::MAX, u64::MAX)];
        let ids = ids.map(|(millis, sequence)| StreamId::new(millis, sequence));
        assert!(ids.is_sorted() && ids.map(StreamId::to_bytes).is_sorted());
        assert_eq!(ids.map(|id| StreamId::of_bytes(id.to_bytes())), ids);
        for id in ids {
            assert!(id.next().is_none_or(|next| next.previous() == Some(id) && next > id));
        }
        assert_eq!(StreamId::MAX.next(), None);
        assert_eq!(StreamId::ZERO.previous(), None);
        assert_eq!(StreamId::new(0, u64::MAX).next(), Some(StreamId::new(1, 0)));
    }

    #[test]
    fn entries_keep_their_fields_apart() {
        let mut entries = StreamEntries::default();
        entries.push(StreamId::new(1, 0), [&b"f"[..], b"v"].into_iter());
        entries.push_id(StreamId::new(2, 0));
        entries.push(StreamId::new(3, 0), [&b""[..], b"w", b"g", b""].into_iter());
        let seen: Vec<_> = entries
            .iter()
            .map(|(id, texts)| (id.millis, texts.map(Iterator::collect::<Vec<_>>)))
            .collect();
        let first = Some(Vec::from([&b"f"[..], b"v"]));
        let third = Some(Vec::from([&b""[..], b"w", b"g", b""]));
        assert_eq!(seen, [(1, first), (2, None), (3, third)]);
        assert_eq!((entries.len(), entries.bytes()), (3, 4));
    }
}
