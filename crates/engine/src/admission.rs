//! Sends that wait for room, and the room that commands need.

pub(crate) mod adding;
pub(crate) mod batch_load;
pub(crate) mod blocked_sends;
pub(crate) mod bounds;
pub(crate) mod departure_rate;
pub(crate) mod needed;
pub(crate) mod overflow;
pub(crate) mod send_timeouts;
pub(crate) mod source_waits;
pub(crate) mod tally;
pub(crate) mod wait_lists;

use alloc::collections::BTreeSet;

use crate::admission::blocked_sends::BlockedSends;
use crate::ids::QueueSlot;

/// Sends that wait for room, and queues that hold more than their bounds.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(crate) blocked_sends: BlockedSends,
    /// Some queues may not hold any number of messages.
    pub(crate) is_bounded: bool,
    /// Queues that hold more than they may, since there was no room for dead letters.
    pub(crate) overfull: BTreeSet<QueueSlot>,
    /// There are more dead letters than may be since this step.
    pub(crate) has_to_evict: bool,
}
