//! Sends that wait for room, and the room that commands need.

pub(crate) mod adding;
pub(crate) mod batch_load;
pub(crate) mod blocked_sends;
pub(crate) mod bounds;
pub(crate) mod check;
pub(crate) mod departure_rate;
mod entries_load;
pub(crate) mod needed;
pub(crate) mod overflow;
pub(crate) mod send_timeouts;
pub(crate) mod source_waits;
mod stream_load;
pub(crate) mod tally;
pub(crate) mod wait_lists;

use alloc::collections::{BTreeMap, BTreeSet};

use model::{Bound, Command, DependsOn, Nanos, QueueName, Refusal};

use crate::directory::topics::TopicSlot;
use crate::ids::{QueueSlot, SessionSlot};

/// Sends that wait for room, and queues that hold more than their bounds.
#[derive(Debug)]
pub(crate) struct Admission {
    blocked_sends: BlockedSends,
    /// Queues that hold more than they may, since there was no room for dead letters.
    overfull: BTreeSet<QueueSlot>,
    /// There are more dead letters than may be since this step.
    has_to_evict: bool,
}

/// The bounds of all queues, and the sends that wait for a change of a queue or a list.
#[derive(Debug)]
pub(crate) struct StoreAdmission {
    /// Some queues may not hold any number of messages.
    is_bounded: bool,
    /// Queues that no client finds any more, with a line in which sends still wait.
    leaving: BTreeSet<QueueSlot>,
    /// The sends that depend on the elements of a list.
    sources: SourceWaits,
}

/// There is no place for a command in a queue, or no memory for it.
#[derive(Debug)]
pub(crate) struct Shortage {
    pub(crate) refusal: Refusal,
    /// The list in which it may wait for one, if it ever can be done.
    pub(crate) waits_at: Option<WaitListId>,
    /// Bytes that the command would store.
    pub(crate) bytes: u64,
}

/// Which waiting sends depend on which lists.
#[derive(Debug, Default)]
pub(crate) struct SourceWaits {
    /// Their tickets, by the list.
    tickets: BTreeMap<QueueName, BTreeSet<u64>>,
    /// Lists that have changed since their sends were looked at.
    changed: BTreeMap<QueueName, Look>,
    /// When the timer is due.
    due: Option<Nanos>,
}

/// How far the sends of a list have been looked at.
#[derive(Clone, Copy, Debug, Default)]
struct Look {
    /// The first ticket that was not.
    next: u64,
    /// The list has changed again meanwhile.
    again: bool,
}

/// All sends that wait, by ticket: the first to come first.
#[derive(Debug)]
pub(crate) struct BlockedSends {
    sends: BTreeMap<u64, BlockedSend>,
    /// Bytes that all of them store.
    bytes: u64,
    /// Bytes of memory that all of them take.
    memory_bytes: u64,
    /// The part of these bytes that belongs to sends that wait for memory.
    for_memory_bytes: u64,
    /// Sends that wait for memory, but for those of the next list.
    for_memory: WaitList,
    /// Parts of transactions that wait for memory, and commits behind their own parts.
    for_parts: WaitList,
    /// Lines with a first send that would go on if the log was not behind.
    held_back: BTreeSet<WaitListId>,
    /// The log takes only records of settlements.
    is_log_behind: bool,
    /// No send may begin to wait any more.
    is_closed: bool,
    next: u64,
    /// How long a line may stand still.
    still_max: Nanos,
}

/// One that waits.
#[derive(Debug)]
pub(crate) struct BlockedSend {
    pub(crate) by: SessionSlot,
    pub(crate) command: Command,
    bytes: u64,
    /// The list that it waits in.
    pub(crate) at: WaitListId,
    since: Nanos,
    /// When it is given up, if it said how long it waits.
    until: Option<Nanos>,
    /// A position that its answer waits for as well.
    pub(crate) floor: DependsOn,
}

/// Messages that left lately.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drain {
    /// In each of the last slices of the target age; by the slice's number.
    counts: [u64; SLICES],
    /// The number of the latest slice.
    slice: u64,
}

const SLICES: usize = 8;

/// The sum of the parts of a transaction.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The messages that it stores in queues.
    queues: Puts,
    /// The messages that it publishes, by topic.
    topics: BTreeMap<TopicSlot, Puts>,
    settled_bytes: usize,
    /// Of the changes of tables.
    written_bytes: usize,
    written_bytes_max: usize,
}

/// Messages of a transaction.
#[derive(Clone, Copy, Debug, Default)]
struct Puts {
    messages: usize,
    /// Of those that are journalled: records without bodies, one for each.
    envelope_bytes: usize,
    envelope_bytes_max: usize,
    body_bytes: usize,
    body_bytes_max: usize,
    /// Records of their senders' names.
    name_bytes: usize,
    snapshot_bytes: u64,
}

/// One message of a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Put {
    pub(crate) envelope_bytes: usize,
    pub(crate) body_bytes: usize,
    /// The record of its sender's name for it.
    pub(crate) name_bytes: usize,
    pub(crate) snapshot_bytes: u64,
    pub(crate) is_journalled: bool,
}

/// The most that the records of a commit may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Records {
    pub(crate) bytes: usize,
    pub(crate) largest_bytes: usize,
    /// In a snapshot.
    pub(crate) snapshot_bytes: u64,
    /// Messages that it stores, journalled or not.
    pub(crate) messages: usize,
}

/// The shortage that a list of waiting sends is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WaitListId {
    /// Memory for the message or value that a command brings.
    Memory,
    /// Memory for a part of a transaction; a commit waits there behind its own parts.
    Transactions,
    /// A place in this queue.
    Queue(QueueSlot),
}

/// The sends that wait for one thing.
#[derive(Debug, Default)]
pub(crate) struct WaitList {
    tickets: BTreeSet<u64>,
    /// When it went on last.
    moved: Nanos,
    /// When its timer is due; set while a send waits.
    due: Option<Nanos>,
    /// The bound that it is for, if the rules of the queue have changed since.
    bound: Option<Bound>,
    /// There is a place for the first, but it looks into paged-out bodies: its turn comes when they
    /// are here. No send overtakes it meanwhile.
    looks: bool,
}
