//! A queue seen as a list: its ready messages in the order of delivery, the next one at the head.
//!
//! Messages that are delayed, leased or buried are not in the list; they come back into it at
//! their place.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::{Body, Format, Nanos, OneOrMany, Payload, Persistence, QueueName, Shows};

/// One of the two ends of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// The end from which the next message is delivered.
    Head,
    /// The end at which usual sends are stored.
    Tail,
}

impl End {
    /// The other one.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Head => Self::Tail,
            Self::Tail => Self::Head,
        }
    }
}

/// The commands on lists. Places count from an end that the command names: 0 is the message at that
/// end, -1 the one at the other. A queue is created when something is stored in it.
///
/// A popped element is gone when the reply leaves, unless the queue's policy protects it
/// (`QueuePolicy::pop_lease`). Then the session holds it until its next command or for so long.
/// `Settle`, `Credit` and `CancelPop` do not count as such: no client sent them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListCommand {
    /// Store elements at an end, one after the other: the last is outermost. → `Count` of the
    /// elements in the list then, `Refused`
    Push {
        /// The list.
        queue: QueueName,
        /// The end of the list.
        end: End,
        /// The elements, at least one.
        elements: OneOrMany<Arc<[u8]>>,
        /// Only if there is something already; else → `Count(0)`.
        only_existing: bool,
        /// How durable they are to be.
        persistence: Persistence,
    },
    /// Take up to `max` elements from an end, the outermost first; fewer if one frame or one
    /// reply holds no more. → `Elements`, which are none if `max` is 0; `NotFound` if the
    /// list is empty or its queue is paused
    Pop {
        /// The list.
        queue: QueueName,
        /// The end of the list.
        end: End,
        /// The most to take.
        max: u64,
    },
    /// A run: store elements as so many [`ListCommand::Push`] of one each would, one behind the
    /// other, of which none is only for a list that is there. → `Count` of the elements in the list
    /// then, `Refused` as each of them would be; `NotBatchable` if others might come between
    /// them
    PushEach {
        /// The list.
        queue: QueueName,
        /// The end of the list.
        end: End,
        /// The elements, at least one.
        elements: OneOrMany<Arc<[u8]>>,
        /// How durable they are to be.
        persistence: Persistence,
    },
    /// A run: take elements as so many [`ListCommand::Pop`] of one each would, one behind the
    /// other. → as of those of one with this `max`; `NotBatchable` if others might come between
    /// them
    PopEach {
        /// The list.
        queue: QueueName,
        /// The end of the list.
        end: End,
        /// The most to take, at least 1.
        max: u64,
    },
    /// The same as `Pop` from the first of several lists that is not empty. If all are empty, it
    /// waits for an element: the longest wait is served first, after the command that brings
    /// something has ended. At most one waits in a session, `PopFirst` or `Move`; neither waits in
    /// a batch. → `Popped`, `TimedOut`
    PopFirst {
        /// The lists, the preferred first.
        queues: Vec<QueueName>,
        /// The end of the list.
        end: End,
        /// The most to take, at least 1.
        max: u64,
        /// How long to wait; zero: not at all, `None`: for ever.
        wait: Option<Nanos>,
    },
    /// Take the element at one end of a list and store it at one end of another, or the same, in
    /// one step. Waits for an element as `PopFirst` does. → `Elements` with that one, `TimedOut`,
    /// `Refused`
    Move {
        /// The source.
        from: QueueName,
        /// At which end.
        from_end: End,
        /// The target.
        to: QueueName,
        /// At which end.
        to_end: End,
        /// How long to wait, in all, for an element and for a place; zero: not at all, `None`:
        /// for ever.
        wait: Option<Nanos>,
    },
    /// End a `PopFirst` or `Move` of this session that waits. → nothing of its own: that is
    /// answered `TimedOut`; no effect if none waits. Ends sends that wait for a place, as
    /// [`crate::Command::CancelSends`] does
    CancelPop,
    /// How many elements there are. → `Count`
    Length {
        /// The list.
        queue: QueueName,
    },
    /// The elements from one place to another, both included, as far as they are there; in the
    /// order in which they lie from `origin`. → `Elements`, `Refused` when they are too much for
    /// one reply
    Range {
        /// The list.
        queue: QueueName,
        /// The end from which places count.
        origin: End,
        /// The first place.
        first: i64,
        /// The last place.
        last: i64,
    },
    /// Put another element at a place. → `Done`, `NotFound` if there is no list, `Refused`
    /// (`NoSuchPlace`)
    Replace {
        /// The list.
        queue: QueueName,
        /// The end from which places count.
        origin: End,
        /// The place.
        at: i64,
        /// The new element.
        element: Arc<[u8]>,
        /// How durable it is to be.
        persistence: Persistence,
    },
    /// Store an element beside the first, from `origin` on, that equals `pivot`. → `Count` of the
    /// elements in the list then, `Count(0)` if there is no pivot, `NotFound` if there is no
    /// list
    Insert {
        /// The list.
        queue: QueueName,
        /// The end from which the pivot is looked for.
        origin: End,
        /// The element to look for.
        pivot: Arc<[u8]>,
        /// The side of the pivot: towards this end.
        towards: End,
        /// The element to store.
        element: Arc<[u8]>,
        /// How durable it is to be.
        persistence: Persistence,
    },
    /// Delete the elements that equal this one, the first from `origin` on. → `Count` of them,
    /// `Refused` if one frame does not hold that
    Remove {
        /// The list.
        queue: QueueName,
        /// The end from which they are looked for.
        origin: End,
        /// The element to look for.
        element: Arc<[u8]>,
        /// The most to delete.
        max: u64,
    },
    /// Delete all but the elements from one place to another, both included. One command deletes
    /// so many as fit into one frame. → `Count` of those deleted; `CountSoFar`: ask again, with
    /// the same places; `Refused` if that would delete others and one frame does not hold all
    Keep {
        /// The list.
        queue: QueueName,
        /// The end from which places count.
        origin: End,
        /// The first place.
        first: i64,
        /// The last place.
        last: i64,
    },
    /// Find the places of the elements that equal this one, in search order. → `Places`
    Locate {
        /// The list.
        queue: QueueName,
        /// The end from which the places in the reply count.
        origin: End,
        /// The end from which they are looked for.
        from: End,
        /// The element to look for.
        element: Arc<[u8]>,
        /// How many that are found first do not count.
        skip: u64,
        /// The most to find.
        max: u64,
        /// The most elements to look at; `None`: all.
        scan_max: Option<u64>,
    },
}

impl ListCommand {
    /// How many elements it brings.
    #[must_use]
    pub fn elements(&self) -> usize {
        match self {
            Self::Push { elements, .. } | Self::PushEach { elements, .. } => elements.len(),
            Self::Insert { .. } | Self::Replace { .. } => 1,
            _ => 0,
        }
    }

    /// Bytes of the elements that it brings.
    #[must_use]
    pub fn body_bytes(&self) -> usize {
        match self {
            Self::Push { elements, .. } | Self::PushEach { elements, .. } => {
                elements.iter().map(|element| element.len()).sum()
            }
            Self::Insert { element, .. } | Self::Replace { element, .. } => element.len(),
            _ => 0,
        }
    }

    /// Sets how long the command waits, if it is one that may wait.
    pub const fn set_wait(&mut self, time: Nanos) {
        if let Self::PopFirst { wait, .. } | Self::Move { wait, .. } = self {
            *wait = Some(time);
        }
    }
}

/// An element of a list: the message's body, and which of its bytes are for a protocol that does
/// not know the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// How the body is to be read.
    pub format: Format,
    /// Which bytes are the payload.
    pub payload: Payload,
    /// The body.
    pub body: Body,
}

impl Element {
    /// One that every protocol sees whole.
    #[must_use]
    pub fn raw(body: Arc<[u8]>) -> Self {
        Self { format: Format::RAW, payload: Payload::WHOLE, body: Body::Here(body) }
    }

    /// The bytes for a protocol that does not know the format.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        self.body.get(self.payload.range(self.format, &self.body)).unwrap_or_default()
    }

    /// See [`Shows`].
    pub fn shows(&mut self) -> Shows<'_> {
        Shows { body: &mut self.body }
    }
}
