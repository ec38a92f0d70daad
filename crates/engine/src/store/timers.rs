//! All that happens by time, in the order of time.
//!
//! A queue has one timer for the first of its delayed messages, and a session one for the first of
//! its leases. Each timer is set exactly as long as there is an event to wait for: there are no
//! stale ones to skip.

use alloc::collections::BTreeSet;

use model::Nanos;

use crate::admission::WaitListId;
use crate::ids::{ConsumerKey, QueueSlot, SessionSlot};

/// An event that is due. At one moment they fire in this order: first those that may make a message
/// ready, then those that give up waiting for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A queue that is leaving holds a message to be forgotten.
    Forget(QueueSlot),
    /// The time of the first small value is over.
    Values,
    /// Sessions that wait for members are served.
    Members,
    /// Entries of collections that are gone are to be dropped.
    Collections,
    /// Pictures of collections end.
    Pictures,
    /// The time of the queue's list is over.
    End(QueueSlot),
    /// The time of the first of the queue's messages is over.
    Expire(QueueSlot),
    /// The delay of the queue's first delayed message ends.
    Delay(QueueSlot),
    /// The queue's pause ends.
    Pause(QueueSlot),
    /// The session's first lease ends.
    Lease(SessionSlot),
    /// Nothing has kept the subscription of this number for as long as it may be so.
    Unused(u64),
    /// The queue goes on with work that was too much for one step.
    Resume(QueueSlot),
    /// The consumer goes on to look at its queue.
    Browse(ConsumerKey),
    /// Lists have changed that decide the needs of waiting sends.
    Sources,
    /// A send that waits for a place in a queue, or for memory, goes on, or gives up.
    Admit(WaitListId),
    /// The send with this ticket has waited as long for a place as it was to.
    GiveUp(u64),
    /// The margin before the session's first lease ends begins, and the consumer asked to know.
    Margin(ConsumerKey),
    /// The session's command that waits for a member has waited long enough.
    WaitForMember(SessionSlot),
    /// The consumer has waited long enough.
    Wait(ConsumerKey),
}

#[derive(Debug, Default)]
pub(crate) struct Timers {
    due: BTreeSet<(Nanos, Timer)>,
}

impl Timers {
    /// Moves a timer from one moment to another; `None` is not set.
    pub(crate) fn change(&mut self, timer: Timer, from: Option<Nanos>, to: Option<Nanos>) {
        if from == to {
            return;
        }
        if let Some(at) = from {
            let was_set = self.due.remove(&(at, timer));
            assert!(was_set, "{timer:?} was to be set for {at}");
        }
        if let Some(at) = to {
            let is_new = self.due.insert((at, timer));
            assert!(is_new, "{timer:?} is set twice for {at}");
        }
    }

    pub(crate) fn first(&self) -> Option<(Nanos, Timer)> {
        self.due.first().copied()
    }

    /// The timers that are due by `now`.
    pub(crate) fn due(&self, now: Nanos) -> impl Iterator<Item = Timer> {
        self.due.iter().take_while(move |(at, _)| *at <= now).map(|(_, timer)| *timer)
    }

    pub(crate) fn len(&self) -> usize {
        self.due.len()
    }

    pub(crate) fn contains(&self, at: Nanos, timer: Timer) -> bool {
        self.due.contains(&(at, timer))
    }
}
