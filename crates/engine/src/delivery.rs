//! Which consumer is delivered which message, and when.

pub(crate) mod browsing;
pub(crate) mod credit_consumers;
pub(crate) mod dead_letters;
pub(crate) mod deleted_queues;
pub(crate) mod delivered;
pub(crate) mod matching;
pub(crate) mod move_messages;
pub(crate) mod paging;
pub(crate) mod receiving;
pub(crate) mod settling;
pub(crate) mod slow_consumers;
pub(crate) mod views;
pub(crate) mod woken;

use alloc::sync::Arc;

use model::Nanos;
use selector::Selector;

use crate::collections::order_set::OrderSet;
use crate::ids::QueueSlot;
use crate::store::dispatch::DispatchList;

/// How far a consumer has looked.
#[derive(Debug)]
pub(crate) struct Browsing {
    selector: Option<Selector>,
    /// The next (priority, order) to look at.
    next: (u32, i64),
    /// When it goes on with work that was too much for one step.
    resumes: Option<Nanos>,
}

/// The messages of a queue that consumers of one selector see.
#[derive(Debug)]
pub(crate) struct View {
    selector: Selector,
    /// Those that match, of all ready ones before `scan` and some behind it; and the consumers that
    /// wait for them.
    dispatch: DispatchList,
    /// How many have this selector; the view goes with the last.
    consumers: u64,
    /// The next place to look at; `None` when all have been looked at.
    scan: Option<(u32, i64)>,
    /// Ready ones before `scan`, and some behind it, that could not be looked into: their bodies
    /// were away.
    unseen: OrderSet,
}

/// A consumer with a limit.
#[derive(Debug)]
pub(crate) struct CreditConsumer {
    queue: QueueSlot,
    interest: Interest,
    /// How many messages it may have had since it was opened.
    limit: u64,
    /// How many it has had.
    delivered: u64,
    /// How many bytes of bodies it may have had before it gets another one.
    bytes_limit: u64,
    /// How many it has had, unless it browses.
    bytes: u64,
    /// It is to be told when nothing more is there for it.
    draining: bool,
}

/// The messages and bytes that a consumer may have had since it was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    pub(crate) messages: u64,
    /// Of bodies.
    pub(crate) bytes: u64,
}

/// The messages that a consumer wants of its queue.
#[derive(Debug)]
pub(crate) enum Interest {
    /// To hold messages: those of the view of this selector, or any.
    Take { view: Option<Arc<str>>, turn: Turn },
    /// To look at them.
    Browse(Browsing),
}

/// When a consumer is served, of all that wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    /// Its place: given when it first waited, and anew whenever it is served.
    place: Option<u64>,
    /// Its ticket in the line while it waits. Its place, or an earlier one while it waits alone.
    ticket: Option<u64>,
}

impl Turn {
    pub(crate) const fn place(&self) -> Option<u64> {
        self.place
    }

    pub(crate) const fn ticket(&self) -> Option<u64> {
        self.ticket
    }
}

impl View {
    pub(crate) const fn selector(&self) -> &Selector {
        &self.selector
    }

    pub(crate) const fn dispatch(&self) -> &DispatchList {
        &self.dispatch
    }

    pub(crate) const fn dispatch_mut(&mut self) -> &mut DispatchList {
        &mut self.dispatch
    }

    pub(crate) const fn consumers(&self) -> u64 {
        self.consumers
    }

    /// The first ready message that could not be looked into.
    pub(crate) fn first_unseen(&self) -> Option<(u32, i64)> {
        self.unseen.first()
    }

    /// True if the view has looked into the message at this place.
    pub(crate) fn is_certain(&self, place: (u32, i64)) -> bool {
        self.scan.is_none_or(|scan| place < scan) && !self.unseen.contains(place.0, place.1)
    }
}
