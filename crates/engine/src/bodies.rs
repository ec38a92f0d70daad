//! Bodies of messages: in memory, shared, in the log or in the spill, and the waits for them.

pub(crate) mod eviction;
pub(crate) mod groups;
pub(crate) mod memory;
pub(crate) mod sharing;
pub(crate) mod spilling;
pub(crate) mod waits;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use model::{BodyPlace, Command, DependsOn, Formats, Lsn, MessageId, SessionId};

use crate::admission::WaitListId;
use crate::ids::{ConsumerKey, QueueSlot};
use crate::log::Placed;

/// Bodies of messages: in memory, shared, in the log or in the spill, and the waits for them.
#[derive(Debug)]
pub struct Bodies {
    /// How to read them.
    formats: Formats,
    memory: Memory,
    sharing: Sharing,
    groups: Groups,
    awaited: Awaited,
}

/// The groups that live, by the number of the first message that their record stored.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    groups: BTreeMap<u64, Group>,
}

/// The common state of all messages of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// How many of them live.
    copies: u32,
    /// Their record.
    placed: Placed,
    /// Bytes by which the record may grow when it is stored anew, beyond the growth that one
    /// message may add.
    more_bytes: u64,
}

/// The body of a message.
#[derive(Clone, Debug)]
pub(crate) enum Stored {
    /// It.
    Here(Arc<[u8]>),
    /// Only the log or the spill has it, or it is shared and [`crate::bodies::sharing`] has it; it
    /// has so many bytes at most.
    Elsewhere { bytes: u32, shared: bool },
}

impl Stored {
    /// Only the log has it, or the spill.
    pub(crate) const fn paged_out(bytes: u32) -> Self {
        Self::Elsewhere { bytes, shared: false }
    }

    /// It, if it is here.
    pub(crate) const fn here(&self) -> Option<&Arc<[u8]>> {
        match self {
            Self::Here(body) => Some(body),
            Self::Elsewhere { .. } => None,
        }
    }

    /// How many bytes it has, at most.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Here(body) => body.len(),
            Self::Elsewhere { bytes, .. } => *bytes as usize,
        }
    }
}

/// The place of a body in the spill, and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spilled {
    /// Nothing else is there.
    pub place: NonZeroU64,
    /// How many bytes it has.
    pub bytes: u32,
}

/// Bodies on their way to the spill, and bodies in it.
#[derive(Debug, Default)]
pub(crate) struct Spilling {
    /// There is one.
    is_there: bool,
    /// It takes nothing for now.
    is_full: bool,
    /// Bytes of bodies that are here, may leave, and are in no log.
    bytes: u64,
    /// The part of these bytes that is to leave now.
    leaving_bytes: u64,
    /// The messages of these bodies. Some may be gone.
    leaving: BTreeSet<MessageId>,
    /// Of these, those that the caller has not taken yet, the oldest first: so they lie in the
    /// order in which they are asked for, though the last to come are the first to leave.
    queued: BTreeSet<MessageId>,
    /// Messages that had to stay at their turn: the spill took nothing.
    kept_back: BTreeSet<MessageId>,
    /// The message of each place in the spill.
    places: BTreeMap<NonZeroU64, MessageId>,
    /// Places that are not needed any more.
    vacated: Vec<Spilled>,
}

/// The bodies that are shared, and which of them are here.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    bodies: BTreeMap<MessageId, SharedBody>,
    /// How many bodies were given a name that is no message's.
    separated: u64,
    residents: ResidentBodies,
}

/// A body with its copies.
#[derive(Debug)]
pub(crate) struct SharedBody {
    stored: Stored,
    /// The frame of the log that has it, or will: that of its group.
    frame: Option<Lsn>,
    /// Its place in the spill, even while the body is in memory.
    spilled: Option<NonZeroU64>,
    copies: u32,
}

/// A command that waits for a turn.
#[derive(Debug)]
pub(crate) enum Looker {
    /// A command that has done nothing yet. Its answer waits for `floor` too.
    Command { session: SessionId, command: Command, floor: DependsOn },
    /// The first send in this wait list: there is a place or memory for it.
    WaitList(WaitListId),
}

/// The bodies that the first waiting command needs.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Those of them that are still away, by their places.
    missing: BTreeSet<(BodyPlace, MessageId)>,
    /// All that was away at one time or another: it stays when it has come.
    needed: BTreeSet<MessageId>,
}

/// The commands and browsers that wait for bodies, and the bodies.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    lookers: VecDeque<Looker>,
    /// Bytes that these take.
    bytes: u64,
    turn: Turn,
    browsers: BTreeSet<ConsumerKey>,
    /// Queues with views that have not seen all.
    queues: BTreeSet<QueueSlot>,
    /// Bodies that browsers and views have not seen, by their places.
    unseen: BTreeSet<(BodyPlace, MessageId)>,
    /// The same, with those that have come since all looked: they stay until then.
    coming: BTreeSet<MessageId>,
    /// Something that was waited for will not come where it was: they look again.
    is_disturbed: bool,
}

/// The memory limits, and the bodies that may leave.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Bytes that everything together may take.
    limit: u64,
    /// And of these, bodies that may leave.
    movable_max: u64,
    /// The part of those that may always be in memory, however much else there is.
    always: u64,
    /// A queue with less than this is not asked to let bodies leave.
    fat_bytes: u64,
    /// Frames up to this one can be read back.
    written: Lsn,
    /// Bytes of bodies that may leave.
    movable: u64,
    /// Bytes of bodies that only memory has, and that do not leave.
    fixed: u64,
    /// Messages with a paged-out body.
    paged_out: u64,
    /// How many bodies have been paged out so far.
    paged_out_total: u64,
    /// Those with bodies in line, by the magnitude of the bytes of all that may leave.
    large_owners: BTreeSet<(u32, BodyOwner)>,
    /// Messages with frames that could not be read back at the last look, about in the order of
    /// these. Some may be gone, or here twice.
    unwritten: VecDeque<MessageId>,
    /// Bodies that had to stay at their turn to leave: a command, browser or view awaits them and
    /// more.
    passed_over: Vec<MessageId>,
    /// Bodies that came since some were last let go.
    came: usize,
    spilling: Spilling,
}

/// The owner of the line that a body is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BodyOwner {
    /// The queue of its message.
    Queue(QueueSlot),
    /// It is one of those that messages share.
    Sharing,
}

/// A body: a message's own, under its number, or a shared one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyRef<'b> {
    stored: &'b Stored,
    owner: BodyOwner,
    /// The frame of the log that has it, or will.
    frame: Option<Lsn>,
    /// The place of the body in the spill.
    spilled: Option<NonZeroU64>,
}

/// The bodies of one owner that are here and may leave.
#[derive(Debug, Default)]
pub(crate) struct ResidentBodies {
    /// The last is the first to leave. Some may be gone, or here twice; those are missing that
    /// cannot leave yet.
    line: VecDeque<MessageId>,
    count: usize,
    bytes: u64,
    /// See [`Memory::magnitude`].
    magnitude: u32,
}

/// The end of a line at which a body is inserted.
pub(crate) type Push = fn(&mut VecDeque<MessageId>, MessageId);
