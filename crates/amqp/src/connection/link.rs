//! One link: the state that both ends share.
//!
//! ```text
//!            the engine's answer        attach told
//!   Opening -------------------> Open
//!      |                          |   the peer detaches, or an error does
//!      +----------> Ending <------+   frames are ignored; gone once both ends have detached
//! ```

use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use model::{
    DependsOn, Destination, MessageId, QueueName, Settlement, SubscriptionName, TransactionId,
    limits,
};

use crate::connection::limits::{
    BROWSER_AHEAD_MAX, CONSUMER_AHEAD_BYTES_MAX, CONSUMER_AHEAD_MAX, LINK_BYTES, PRODUCER_CREDIT,
};
use crate::connection::session::{Outgoing, SessionKey};
use crate::performative::{Attach, Role};

/// One link of a session.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) session: SessionKey,
    /// The number by which both ends speak of it.
    pub(crate) handle: u32,
    /// With the peer's role it names the link in this connection (2.6.1).
    pub(crate) name: Box<str>,
    pub(crate) standing: Standing,
    /// Events of this link may not be told before this: its attach.
    pub(crate) after: DependsOn,
    pub(crate) kind: Kind,
    /// Bytes of the text of its selector.
    pub(crate) selector_bytes: usize,
    /// The destination that goes with it.
    pub(crate) temporary: Option<Destination>,
    /// Our attach, until it is told.
    pub(crate) attach: Option<Box<Attach>>,
    /// The peer has asked for a flow that has to wait for the attach.
    pub(crate) echo: bool,
    /// We have sent our detach.
    pub(crate) detached: bool,
    /// The peer has sent its detach.
    pub(crate) peer_detached: bool,
}

/// How far a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The engine is asked.
    Opening,
    /// The engine agrees.
    Open,
    /// It is going; the peer's frames for it do not matter any more.
    Ending,
}

/// The node at our end.
#[derive(Debug)]
pub(crate) enum Kind {
    /// The peer sends.
    Producer(Producer),
    /// The peer receives.
    Consumer(Consumer),
    /// The peer looks for a subscription, to end it.
    Lookup(Option<SubscriptionName>),
}

/// The receiving end of a link, which is ours.
#[derive(Debug)]
pub(crate) struct Producer {
    pub(crate) to: Recipient,
    /// Deliveries that the peer may begin.
    pub(crate) credit: u32,
    /// The peer's count of deliveries.
    pub(crate) delivery_count: u32,
    /// Deliveries that the engine has not answered, and answered ones that the peer was not told
    /// of.
    pub(crate) unanswered: u32,
    /// A delivery of which the last frame has not come.
    pub(crate) partial: Option<Box<Partial>>,
}

/// The recipient of the messages that come in by a link.
#[derive(Debug)]
pub(crate) enum Recipient {
    /// One destination: the link's own producer in the engine.
    Node,
    /// The address in each message.
    Relay,
    /// The keys of a table.
    Table(QueueName),
    /// The coordinator, with the transactions that were begun here and not ended.
    Coordinator(BTreeSet<TransactionId>),
}

/// A delivery of which the last frame has not come.
#[derive(Debug)]
pub(crate) struct Partial {
    pub(crate) id: u32,
    pub(crate) settled: bool,
    pub(crate) format: u32,
    pub(crate) enlisted: Enlisted,
    /// It goes on with a delivery that we know nothing of, and is ignored (2.7.5).
    pub(crate) resumes: bool,
    pub(crate) bytes: Vec<u8>,
}

/// The transaction of a delivery, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enlisted {
    No,
    In(TransactionId),
    /// In one with an id that we never gave.
    Unknown,
}

/// The sending end of a link, which is ours.
///
/// The engine counts the messages that it gave to the consumer; each of them is sent or returned,
/// and `disposed` counts these. The peer counts by `delivery_count`, which a drain advances as
/// well (2.6.7).
#[derive(Debug)]
pub(crate) struct Consumer {
    /// Each delivery is sent settled.
    pub(crate) settles: bool,
    /// It gets copies and holds nothing.
    pub(crate) browses: bool,
    /// The outcome of a delivery that the peer settles without a state.
    pub(crate) default: Settlement,
    /// Bytes of the largest message that the peer takes.
    pub(crate) message_bytes_max: u64,
    pub(crate) delivery_count: u32,
    /// Deliveries that may follow `delivery_count`.
    pub(crate) credit: u32,
    /// How far the latest drain is.
    pub(crate) drain: Drain,
    /// Its number: each flow that asks for one begins another, and only the latest is answered.
    pub(crate) drains: u32,
    /// The engine's limits as they were said last.
    pub(crate) said: u64,
    pub(crate) said_bytes: u64,
    pub(crate) disposed: u64,
    /// Bytes of these, as the engine counts them.
    pub(crate) disposed_bytes: u64,
    /// All that its durable deliveries have depended on so far.
    pub(crate) latest: DependsOn,
    /// A command for the engine is on its way.
    pub(crate) granting: bool,
    /// Held messages that have not begun to be sent.
    pub(crate) unsent: BTreeSet<MessageId>,
    /// Which of the session's unsettled deliveries are its own.
    pub(crate) unsettled: BTreeSet<u64>,
    /// How many of these the peer works on at a time, as far as it has shown.
    pub(crate) at_a_time: usize,
    /// The places of its own waiting deliveries in the session, in order.
    pub(crate) places: VecDeque<u64>,
    /// A browser's copies that found no credit, with their places: no more than the engine is
    /// ahead. The engine would not make them again.
    pub(crate) parked: VecDeque<(u64, Box<Outgoing>)>,
    /// To be deleted when the peer closes the link.
    pub(crate) durable: Option<Box<SubscriptionName>>,
}

/// How far it is that the peer's credit is used up, as it asked (2.6.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drain {
    /// It did not ask, or has changed its mind.
    None,
    /// The engine has to hear of it.
    Asked,
    /// The engine has heard of it.
    Begun,
    /// The engine has nothing more. The peer is told once that is durable, and behind all earlier
    /// deliveries.
    Ended,
}

impl Link {
    /// Bytes of memory that it takes.
    pub(crate) const fn bytes(&self) -> usize {
        let selector = limits::SELECTOR_MEMORY_FACTOR * self.selector_bytes;
        LINK_BYTES + 2 * self.name.len() + selector
    }

    /// The peer's end.
    pub(crate) const fn peer_role(&self) -> Role {
        match self.kind {
            Kind::Producer(_) => Role::Sender,
            Kind::Consumer(_) | Kind::Lookup(_) => Role::Receiver,
        }
    }

    pub(crate) const fn producer(&mut self) -> Option<&mut Producer> {
        match &mut self.kind {
            Kind::Producer(producer) => Some(producer),
            _ => None,
        }
    }

    pub(crate) const fn consumer(&mut self) -> Option<&mut Consumer> {
        match &mut self.kind {
            Kind::Consumer(consumer) => Some(consumer),
            _ => None,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.standing == Standing::Open
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.standing == Standing::Ending
    }
}

impl Producer {
    pub(crate) const fn new(to: Recipient, delivery_count: u32) -> Self {
        Self { to, credit: 0, delivery_count, unanswered: 0, partial: None }
    }

    /// True if half of the credit is used and answered.
    pub(crate) const fn is_due(&self) -> bool {
        self.credit + self.unanswered <= PRODUCER_CREDIT / 2
    }

    /// Grants new credit if that is due. Gives whether it did.
    pub(crate) const fn renew(&mut self) -> bool {
        let due = self.is_due();
        if due {
            self.credit = PRODUCER_CREDIT - self.unanswered;
        }
        due
    }

    /// The peer has counted so far, maybe without sending: it gave credit up (2.6.7).
    pub(crate) const fn count(&mut self, delivery_count: u32) {
        let skipped = delivery_count.wrapping_sub(self.delivery_count);
        if skipped <= self.credit {
            self.delivery_count = delivery_count;
            self.credit -= skipped;
        }
    }

    /// The delivery that begins is one of those that were allowed. Gives whether it was.
    pub(crate) const fn begin(&mut self) -> bool {
        let allowed = self.credit > 0;
        self.credit = self.credit.saturating_sub(1);
        self.delivery_count = self.delivery_count.wrapping_add(1);
        allowed
    }

    /// Bytes received of an unfinished delivery.
    pub(crate) fn partial_bytes(&self) -> usize {
        self.partial.as_ref().map_or(0, |partial| partial.bytes.len())
    }
}

impl Consumer {
    /// One that the engine has not heard of.
    pub(crate) const fn new(settles: bool, default: Settlement, message_bytes_max: u64) -> Self {
        Self {
            settles,
            browses: false,
            default,
            message_bytes_max,
            delivery_count: 0,
            credit: 0,
            drain: Drain::None,
            drains: 0,
            said: 0,
            said_bytes: 0,
            disposed: 0,
            disposed_bytes: 0,
            latest: DependsOn::NOTHING,
            granting: false,
            unsent: BTreeSet::new(),
            unsettled: BTreeSet::new(),
            at_a_time: 1,
            places: VecDeque::new(),
            parked: VecDeque::new(),
            durable: None,
        }
    }

    /// The peer has so much credit from its count on; it does not know of deliveries under way
    /// (2.6.7).
    pub(crate) fn set_credit(&mut self, counted: Option<u32>, credit: u32, drain: bool) {
        let unknown_to_peer = self.delivery_count.wrapping_sub(counted.unwrap_or_default());
        self.credit = credit.saturating_sub(unknown_to_peer);
        self.drain = if drain { Drain::Asked } else { Drain::None };
        self.drains = self.drains.wrapping_add(drain.into());
    }

    /// True if the peer waits for the end of this drain: no flow has followed the one that asked
    /// for it.
    pub(crate) fn awaits(&self, drain: u32) -> bool {
        self.drain == Drain::Ended && self.drains == drain
    }

    /// How many messages the engine may give it in all.
    pub(crate) fn limit(&self) -> u64 {
        self.disposed + u64::from(self.credit.min(self.ahead_max()))
    }

    /// How many bytes of bodies the engine may give it in all before it gives no more.
    pub(crate) const fn limit_bytes(&self) -> u64 {
        if self.browses { u64::MAX } else { self.disposed_bytes + CONSUMER_AHEAD_BYTES_MAX }
    }

    /// True if the engine should hear of larger limits now: not for each single message.
    pub(crate) fn lags(&self) -> bool {
        let ahead = self.said.saturating_sub(self.disposed);
        let lags = self.limit() > self.said && ahead <= u64::from(self.ahead_max() / 2);
        lags || self.credit > 0 && self.lags_in_bytes()
    }

    /// The same of bytes.
    pub(crate) const fn lags_in_bytes(&self) -> bool {
        let ahead = self.said_bytes.saturating_sub(self.disposed_bytes);
        ahead <= CONSUMER_AHEAD_BYTES_MAX / 2
    }

    /// True if the engine's limit was smaller than the peer's credit.
    pub(crate) const fn is_throttled(&self) -> bool {
        self.credit > self.ahead_max()
    }

    const fn ahead_max(&self) -> u32 {
        if self.browses { BROWSER_AHEAD_MAX } else { CONSUMER_AHEAD_MAX }
    }

    /// One message that counts for so many bytes begins to be sent.
    pub(crate) fn spend(&mut self, charge: u64) {
        assert!(self.credit > 0, "invariant: nothing is sent without credit");
        self.credit -= 1;
        self.delivery_count = self.delivery_count.wrapping_add(1);
        self.dispose(charge);
    }

    /// One message is sent or goes back.
    pub(crate) const fn dispose(&mut self, charge: u64) {
        self.disposed += 1;
        self.disposed_bytes += charge;
    }

    /// It has taken its credit back, and gets nothing until it gives some again.
    pub(crate) fn has_stopped(&self) -> bool {
        self.drain != Drain::None && self.credit == 0
    }

    /// All credit is used up (2.6.7: "as if by messages").
    pub(crate) const fn exhaust(&mut self) {
        self.delivery_count = self.delivery_count.wrapping_add(self.credit);
        self.credit = 0;
    }
}

/// Messages that a link which goes has not sent, to be given back.
pub(crate) fn drain_unsent(consumer: &mut Consumer) -> VecDeque<MessageId> {
    core::mem::take(&mut consumer.unsent).into_iter().collect()
}
