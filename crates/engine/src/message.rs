//! One message as the engine keeps it, and where it can stand.
//!
//! ```text
//!                  put
//!                   │      receive, lease
//!   delay ends ┌────▼───┐ ───────────────▶ ┌────────┐
//!  ┌──────────▶│ Ready  │                  │ Leased │──▶ gone: delete (from any state)
//!  │   kick    └────────┘ ◀─────────────── └────────┘
//!  │            ▲          release, lease    │    │
//!  │            │ kick     ends, close       │    │
//!  │       ┌────┴───┐          bury          │    │
//!  │       │ Buried │ ◀──────────────────────┘    │
//!  │       └────────┘                             │
//!  │       ┌─────────┐      release with delay    │
//!  └───────┤ Delayed │ ◀──────────────────────────┘
//!          └─────────┘ ◀── put with delay
//! ```
//! A lease by the message's number takes it out of Delayed and Buried too.

use alloc::boxed::Box;

use model::{Durability, Lsn, MessageId, Nanos};

use crate::queue::QueueSlot;
use crate::record::{Counters, Envelope, Standing, StoredState};
use crate::session::SessionSlot;

/// A million of these lie in memory, each with a body of its own: see the size below.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) body: Box<[u8]>,
    pub(crate) created: Nanos,
    pub(crate) lease: Nanos,
    /// The frame with its Message record; [`Lsn::ZERO`] where nothing is journalled.
    pub(crate) location: Lsn,
    /// The last frame about it since the process started.
    pub(crate) changed: Lsn,
    /// When its delay or lease ends, or its place among the buried.
    moment: u64,
    /// What most messages never have.
    history: Option<Box<History>>,
    pub(crate) queue: QueueSlot,
    pub(crate) priority: u32,
    pub(crate) delivered: u32,
    /// The size of the Message record at `location`.
    pub(crate) record_bytes: u32,
    holder: SessionSlot,
    kind: Kind,
    pub(crate) durability: Durability,
    /// In recovery: the body is still in the log.
    pub(crate) body_missing: bool,
}

/// The allocator adds 8 bytes and rounds up to 16: 96 for this, 112 for a body of 100, 8 for the
/// pointer in the page and under 1 for indexes make 217 bytes a message.
const _: () = assert!(size_of::<Message>() <= 88);

/// Where a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    Delayed { until: Nanos },
    Leased { holder: SessionSlot, until: Nanos },
    Buried { order: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ready,
    Delayed,
    Leased,
    Buried,
}

/// What a message that was stored without delay and is deleted at its first delivery never has.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) delay: Nanos,
    /// Zero: the message's id.
    order: u64,
    pub(crate) expired: u32,
    pub(crate) released: u32,
    pub(crate) buried: u32,
    pub(crate) kicked: u32,
}

impl Message {
    /// A message as a record describes it, not yet in the log.
    pub(crate) fn new(envelope: &Envelope<'_>, queue: QueueSlot, body: Box<[u8]>) -> Self {
        let mut message = Self {
            body,
            created: envelope.created,
            lease: envelope.lease,
            location: Lsn::ZERO,
            changed: Lsn::ZERO,
            moment: 0,
            history: None,
            queue,
            priority: 0,
            delivered: 0,
            record_bytes: 0,
            holder: SessionSlot(0),
            kind: Kind::Ready,
            durability: envelope.durability,
            body_missing: false,
        };
        message.assume(envelope.message, &envelope.standing);
        message
    }

    /// Takes over all that a record says about what can change.
    pub(crate) fn assume(&mut self, id: MessageId, standing: &Standing) {
        self.priority = standing.priority;
        self.set_delay(standing.delay);
        self.set_order(id, standing.order);
        self.set_counters(standing.counters);
        self.set_state(match standing.state {
            StoredState::Ready => State::Ready,
            StoredState::Delayed { until } => State::Delayed { until },
            StoredState::Buried { order } => State::Buried { order },
        });
    }

    pub(crate) fn set_state(&mut self, state: State) {
        (self.kind, self.moment) = match state {
            State::Ready => (Kind::Ready, 0),
            State::Delayed { until } => (Kind::Delayed, until.0),
            State::Leased { holder, until } => {
                self.holder = holder;
                (Kind::Leased, until.0)
            }
            State::Buried { order } => (Kind::Buried, order),
        };
    }

    pub(crate) fn set_delay(&mut self, delay: Nanos) {
        if delay != self.delay() {
            self.history_mut().delay = delay;
        }
    }

    pub(crate) fn set_order(&mut self, id: MessageId, order: u64) {
        if order != self.order(id) {
            self.history_mut().order = if order == id.0 { 0 } else { order };
        }
    }

    pub(crate) fn history_mut(&mut self) -> &mut History {
        self.history.get_or_insert_default()
    }

    pub(crate) fn state(&self) -> State {
        match self.kind {
            Kind::Ready => State::Ready,
            Kind::Delayed => State::Delayed { until: Nanos(self.moment) },
            Kind::Leased => State::Leased { holder: self.holder, until: Nanos(self.moment) },
            Kind::Buried => State::Buried { order: self.moment },
        }
    }

    pub(crate) fn is_journalled(&self) -> bool {
        self.durability != Durability::None
    }

    /// The delay that was last asked for it.
    pub(crate) fn delay(&self) -> Nanos {
        self.history.as_ref().map_or(Nanos::ZERO, |history| history.delay)
    }

    /// Its place among ready messages of its priority.
    pub(crate) fn order(&self, id: MessageId) -> u64 {
        match &self.history {
            Some(history) if history.order != 0 => history.order,
            _ => id.0,
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        let delivered = self.delivered;
        self.history.as_ref().map_or(Counters { delivered, ..Counters::default() }, |history| {
            Counters {
                delivered,
                expired: history.expired,
                released: history.released,
                buried: history.buried,
                kicked: history.kicked,
            }
        })
    }

    /// What the log is told about it: a lease is not journalled.
    pub(crate) fn standing(&self, id: MessageId) -> Standing {
        Standing {
            priority: self.priority,
            delay: self.delay(),
            state: match self.state() {
                State::Ready | State::Leased { .. } => StoredState::Ready,
                State::Delayed { until } => StoredState::Delayed { until },
                State::Buried { order } => StoredState::Buried { order },
            },
            order: self.order(id),
            counters: self.counters(),
        }
    }

    pub(crate) fn envelope<'a>(&self, id: MessageId, queue: &'a str) -> Envelope<'a> {
        Envelope {
            message: id,
            queue,
            durability: self.durability,
            created: self.created,
            lease: self.lease,
            standing: self.standing(id),
        }
    }

    fn set_counters(&mut self, counters: Counters) {
        if counters == self.counters() {
            return;
        }
        self.delivered = counters.delivered;
        if counters != self.counters() {
            let history = self.history_mut();
            history.expired = counters.expired;
            history.released = counters.released;
            history.buried = counters.buried;
            history.kicked = counters.kicked;
        }
    }
}
