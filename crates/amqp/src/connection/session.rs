//! One session: its windows, its numbers, and the deliveries that are on their way.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{LinkId, MessageId};

use crate::connection::limits::INCOMING_WINDOW;
use crate::connection::released_ranges::ReleasedRanges;
use crate::performative::{Begin, Flow};

/// A session of the connection's life: channels are reused, this is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SessionKey(pub(crate) u32);

/// Both ends of a session (2.5).
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) channel: u16,
    /// The largest handle that the peer takes.
    pub(crate) handle_max: u32,
    pub(crate) handles: BTreeMap<u32, LinkId>,
    /// Our begin was told.
    pub(crate) begun: bool,
    /// One end wants to end it; the peer's frames do not matter any more.
    pub(crate) ending: bool,
    /// We have sent our end.
    pub(crate) ended: bool,
    /// The peer has sent its end.
    pub(crate) peer_ended: bool,
    /// The number of the next transfer frame of the peer (2.5.6).
    next_incoming_id: u32,
    /// Transfer frames that the peer may still send.
    incoming_window: u32,
    /// The number of our next transfer frame.
    next_outgoing_id: u32,
    /// Transfer frames that we may still send.
    remote_window: u32,
    /// The number of our next delivery; the peer sees its low 32 bits.
    next_delivery: u64,
    /// Our unsettled deliveries.
    pub(crate) unsettled: BTreeMap<u64, Unsettled>,
    /// How many of these there may be before consumers get nothing.
    unsettled_max: usize,
    /// Consumers that get nothing for that, though they have credit.
    held_back: BTreeSet<LinkId>,
    /// Those that went back when their links ended.
    pub(crate) released_ranges: ReleasedRanges,
    /// Entries that wait for the peer's window, in the order of its places.
    pub(crate) waiting: BTreeMap<u64, Waiting>,
    next_place: u64,
}

/// An unsettled delivery of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unsettled {
    pub(crate) link: LinkId,
    /// The message that the engine holds for it; a copy has none.
    pub(crate) message: Option<MessageId>,
}

impl Unsettled {
    /// Bytes for it that no message accounts for. Messages bound how many deliveries of them there
    /// are; copies there may be any number of.
    pub(crate) const fn bytes(&self) -> usize {
        if self.message.is_none() { UNSETTLED_COPY_BYTES } else { 0 }
    }
}

/// Bytes of memory that an unsettled copy takes: it stands in two collections. Measured.
const UNSETTLED_COPY_BYTES: usize = 88;

/// An entry that waits for the peer's window.
#[derive(Debug)]
pub(crate) enum Waiting {
    Delivery(Box<Outgoing>),
    /// The answer to a drain of a link, behind the deliveries that were there for it.
    Drained(LinkId, u32),
}

/// A message on its way to the peer.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) link: LinkId,
    pub(crate) message: MessageId,
    /// The bytes before the stored ones.
    pub(crate) prefix: Vec<u8>,
    pub(crate) body: Arc<[u8]>,
    /// Bytes of it as the engine counts them.
    pub(crate) charge: u64,
    /// Which of the stored bytes are sent.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The engine does not hold it for the consumer: its body may be here alone.
    pub(crate) is_copy: bool,
    /// Bytes of it that were sent; none: it has not begun.
    pub(crate) sent: usize,
}

/// Bytes of memory that a delivery takes while it waits, without body and prefix: it stands in
/// three collections and lies in a box. Counted, since a peer may let a thousand wait on each link.
const WAITING_BYTES: usize = 192;

impl Waiting {
    pub(crate) const fn link(&self) -> LinkId {
        match self {
            Self::Delivery(delivery) => delivery.link,
            Self::Drained(link, _) => *link,
        }
    }

    /// Bytes that it alone holds.
    pub(crate) const fn bytes(&self) -> usize {
        match self {
            Self::Delivery(delivery) if delivery.is_copy => WAITING_BYTES + delivery.bytes(),
            Self::Delivery(delivery) => WAITING_BYTES + delivery.prefix.len(),
            Self::Drained(..) => 0,
        }
    }
}

impl Outgoing {
    /// Bytes of the message as the peer gets it.
    pub(crate) const fn bytes(&self) -> usize {
        self.prefix.len() + self.end - self.start
    }
}

impl Session {
    pub(crate) fn new(channel: u16, begin: &Begin, unsettled_max: usize) -> Self {
        Self {
            channel,
            handle_max: begin.handle_max,
            handles: BTreeMap::new(),
            begun: false,
            ending: false,
            ended: false,
            peer_ended: false,
            next_incoming_id: begin.next_outgoing_id,
            incoming_window: INCOMING_WINDOW,
            next_outgoing_id: 0,
            remote_window: begin.incoming_window,
            next_delivery: 0,
            unsettled: BTreeMap::new(),
            unsettled_max,
            held_back: BTreeSet::new(),
            released_ranges: ReleasedRanges::default(),
            waiting: BTreeMap::new(),
            next_place: 0,
        }
    }

    /// The peer has so many deliveries to settle that its consumers get nothing.
    pub(crate) fn is_full(&self) -> bool {
        self.unsettled.len() >= self.unsettled_max
    }

    /// A consumer is to get something. Gives whether it may; if not, it is held back until then.
    pub(crate) fn admit(&mut self, link: LinkId) -> bool {
        let is_admitted = !self.is_full();
        if !is_admitted {
            self.held_back.insert(link);
        }
        is_admitted
    }

    /// The links that were held back, once there is room again: each once, however many deliveries
    /// are settled, until it is held back anew.
    pub(crate) fn readmit(&mut self) -> BTreeSet<LinkId> {
        if self.is_full() { BTreeSet::new() } else { core::mem::take(&mut self.held_back) }
    }

    /// A link that ends is to get nothing any more.
    pub(crate) fn forget_held_back(&mut self, link: LinkId) {
        self.held_back.remove(&link);
    }

    /// Lets something wait behind all else. Gives its place.
    pub(crate) fn place(&mut self, waiting: Waiting) -> u64 {
        let place = self.next_place;
        self.next_place += 1;
        self.waiting.insert(place, waiting);
        place
    }

    /// The begin that answers the peer's (2.7.2).
    pub(crate) fn begin(&self, handle_max: u32) -> Begin {
        Begin {
            remote_channel: Some(self.channel),
            next_outgoing_id: self.next_outgoing_id,
            incoming_window: self.incoming_window,
            outgoing_window: OUTGOING_WINDOW,
            handle_max,
            ..Begin::default()
        }
    }

    /// A transfer frame has come. Gives whether it was within the window.
    pub(crate) const fn receive(&mut self) -> bool {
        let allowed = self.incoming_window > 0;
        self.next_incoming_id = self.next_incoming_id.wrapping_add(1);
        self.incoming_window = self.incoming_window.saturating_sub(1);
        allowed
    }

    /// Opens the window anew once half of it is used. Gives whether it did.
    pub(crate) const fn renew(&mut self) -> bool {
        let due = self.incoming_window <= INCOMING_WINDOW / 2;
        if due {
            self.incoming_window = INCOMING_WINDOW;
        }
        due
    }

    /// The peer's windows. It does not know of transfers under way (2.5.6): "remote-incoming-window
    /// = next-incoming-id(flow) + incoming-window(flow) - next-outgoing-id(endpoint)".
    pub(crate) const fn set_windows(&mut self, flow: &Flow) {
        let counted = match flow.next_incoming_id {
            Some(counted) => counted,
            None => 0,
        };
        let unknown_to_peer = self.next_outgoing_id.wrapping_sub(counted);
        self.remote_window = flow.incoming_window.saturating_sub(unknown_to_peer);
    }

    /// A flow about the session alone.
    pub(crate) fn flow(&self) -> Flow {
        Flow {
            next_incoming_id: Some(self.next_incoming_id),
            incoming_window: self.incoming_window,
            next_outgoing_id: self.next_outgoing_id,
            outgoing_window: OUTGOING_WINDOW,
            ..Flow::default()
        }
    }

    pub(crate) const fn may_send(&self) -> bool {
        self.remote_window > 0
    }

    /// One transfer frame leaves.
    pub(crate) fn send(&mut self) {
        assert!(self.remote_window > 0, "invariant: no frame leaves without the peer's window");
        self.remote_window -= 1;
        self.next_outgoing_id = self.next_outgoing_id.wrapping_add(1);
    }

    /// Numbers a delivery.
    pub(crate) const fn number(&mut self) -> u64 {
        let delivery = self.next_delivery;
        self.next_delivery += 1;
        delivery
    }

    /// Our deliveries that a disposition means, as far as there were any: numbers on the wire count
    /// modulo 2^32 (2.8.8, 2.8.10).
    pub(crate) const fn deliveries(&self, first: u32, last: u32) -> Option<(u64, u64)> {
        let count = last.wrapping_sub(first);
        let back = wire(self.next_delivery).wrapping_sub(first) as u64;
        if count > i32::MAX as u32 || back == 0 || back > self.next_delivery {
            return None;
        }
        let first = self.next_delivery - back;
        let last = first + count as u64;
        Some((first, if last < self.next_delivery { last } else { self.next_delivery - 1 }))
    }
}

/// A delivery's number as the peer sees it.
pub(crate) const fn wire(delivery: u64) -> u32 {
    let [.., b0, b1, b2, b3] = delivery.to_be_bytes();
    u32::from_be_bytes([b0, b1, b2, b3])
}

/// We send as much as the peer's window allows, so our own is no limit.
const OUTGOING_WINDOW: u32 = i32::MAX.cast_unsigned();

#[cfg(test)]
mod tests {
    use super::*;

    /// A peer holds as much as it may, by one of many links, and settles its deliveries one by one.
    #[test]
    fn held_back_links_are_readmitted_once() {
        const LINKS: u32 = 8_192;
        let mut session = Session::new(0, &Begin::default(), 1);
        let unsettled = Unsettled { link: LinkId(0), message: None };
        session.unsettled.insert(session.next_delivery, unsettled);
        assert!((1..=LINKS).all(|link| !session.admit(LinkId(link))));
        assert!(session.readmit().is_empty(), "it is full");
        let mut looks = 0;
        for delivery in 0..10_000 {
            session.unsettled.remove(&delivery);
            looks += session.readmit().len();
            assert!(session.admit(LinkId(1)));
            session.unsettled.insert(delivery + 1, unsettled);
        }
        assert_eq!(looks, LINKS as usize);
    }
}
