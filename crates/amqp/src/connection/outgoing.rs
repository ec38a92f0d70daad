//! Messages for the peer: deliveries become transfers, as the peer's window and largest frame
//! allow (2.5.6, 2.6.14).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use model::{Delivery, LinkId, Nanos, Settlement};

use crate::Connection;
use crate::connection::departure::Opening;
use crate::connection::event::Awaited;
use crate::connection::limits::OUTPUT_BYTES_MAX;
use crate::connection::link::{Kind, Link};
use crate::connection::session::{Outgoing, Session, SessionKey, Unsettled, Waiting, wire};
use crate::connection::work::settle;
use crate::error::{Error, condition};
use crate::message::MESSAGE_FORMAT;
use crate::performative::{Transfer, TransferFrames};

/// The least size of frames, if the peer takes them, however little may wait in the output.
const FRAME_BYTES_LEAST: u32 = 4_096;

/// How much may be sent.
#[derive(Clone, Copy, Debug)]
struct Room {
    /// Bytes of a frame.
    frame: u32,
    /// Bytes that may wait in the output.
    output: usize,
}

impl Connection {
    /// Sets how many bytes of deliveries may wait in `out` until they are sent: 1 MiB at most, as
    /// at first. One more frame, of at most so many bytes, may wait too.
    pub fn allow(&mut self, bytes: usize) {
        self.room = bytes.min(OUTPUT_BYTES_MAX);
    }

    /// The present moment by the machine's clock.
    fn wall_now(&self) -> Nanos {
        self.options.wall_clock.wall_time(self.now)
    }

    /// Sends a delivery that has its times by the machine's clock.
    pub(super) fn emit_delivery(&mut self, delivery: &Delivery, out: &mut Vec<u8>) {
        // A link that ends gave back its unsent deliveries when it began to end.
        let Some(id) = delivery.link else { return };
        let Some(link) = self.links.get(&id).filter(|link| !link.is_ending()) else { return };
        let key = link.session;
        let is_copy = matches!(&link.kind, Kind::Consumer(consumer) if consumer.browses);
        let mut outgoing =
            Outgoing::new(id, delivery, Opening::of(delivery, self.wall_now()), is_copy);
        if self.is_too_large(&outgoing) {
            let why = "the next message is larger than the link takes (max-message-size)";
            let error = Error::new(condition::LINK_MESSAGE_SIZE_EXCEEDED, why);
            return self.detach_link(id, error);
        }
        if !self.send_at_once(key, &mut outgoing, out) {
            self.let_wait(key, Waiting::Delivery(Box::new(outgoing)));
            self.send_waiting(key, out);
        }
    }

    /// The peer said how large its messages may be (2.7.3).
    fn is_too_large(&mut self, outgoing: &Outgoing) -> bool {
        let consumer = self.consumer(outgoing.link);
        consumer.is_some_and(|consumer| outgoing.bytes() as u64 > consumer.message_bytes_max)
    }

    /// Sends a delivery if nothing stands in its way. Gives whether it is done with; if not, it
    /// waits.
    fn send_at_once(
        &mut self,
        key: SessionKey,
        outgoing: &mut Outgoing,
        out: &mut Vec<u8>,
    ) -> bool {
        let is_first = self.sessions.get(&key).is_some_and(|session| session.waiting.is_empty());
        if !is_first || self.congested || out.len() >= self.room {
            return false;
        }
        if self.lacks_credit(outgoing) {
            return false;
        }
        self.filled_last = key;
        let is_done = self.send(key, outgoing, out);
        self.congested = out.len() >= self.room;
        is_done
    }

    /// Lets something of a consumer wait behind all else of its session.
    pub(super) fn let_wait(&mut self, key: SessionKey, waiting: Waiting) {
        let consumer = self.links.get_mut(&waiting.link()).and_then(Link::consumer);
        let (Some(session), Some(consumer)) = (self.sessions.get_mut(&key), consumer) else {
            return;
        };
        self.held_bytes += waiting.bytes();
        consumer.places.push_back(session.place(waiting));
    }

    /// Goes on with deliveries that found no room. The sessions take turns: one that always has
    /// more than fits does not keep the others from sending.
    pub(super) fn send_congested(&mut self, out: &mut Vec<u8>) {
        if !self.congested || out.len() >= self.room {
            return;
        }
        self.congested = false;
        let mut sessions: Vec<_> = self.sessions.keys().copied().collect();
        let next = sessions.partition_point(|session| *session <= self.filled_last);
        sessions.rotate_left(next);
        for session in sessions {
            self.send_from(session, out);
        }
    }

    /// Sends the deliveries that the peer's window and the room in `out` allow, in order. If other
    /// sessions wait for room, it sends when it is this session's turn.
    pub(super) fn send_waiting(&mut self, key: SessionKey, out: &mut Vec<u8>) {
        if !self.congested {
            self.send_from(key, out);
        }
    }

    fn send_from(&mut self, key: SessionKey, out: &mut Vec<u8>) {
        if out.len() < self.room {
            self.filled_last = key;
        }
        while out.len() < self.room
            && let Some(session) = self.sessions.get_mut(&key)
            && let Some((place, waiting)) = session.waiting.pop_first()
        {
            let (link, bytes) = (waiting.link(), waiting.bytes());
            match waiting {
                Waiting::Drained(link, drain) => self.emit_drained(link, drain, out),
                Waiting::Delivery(outgoing) if self.lacks_credit(&outgoing) => {
                    if !self.go_without(place, outgoing) {
                        continue;
                    }
                }
                Waiting::Delivery(mut outgoing) => {
                    if !self.send(key, &mut outgoing, out) {
                        let Some(session) = self.sessions.get_mut(&key) else { return };
                        session.waiting.insert(place, Waiting::Delivery(outgoing));
                        break;
                    }
                }
            }
            if let Some(consumer) = self.consumer(link) {
                consumer.places.pop_front();
            }
            self.held_bytes = self.held_bytes.saturating_sub(bytes);
        }
        self.congested |= out.len() >= self.room && self.sessions.contains_key(&key);
    }

    /// Sends the part of a delivery that the window allows. Gives whether that was all: of a link
    /// that is gone there is no more.
    fn send(&mut self, key: SessionKey, outgoing: &mut Outgoing, out: &mut Vec<u8>) -> bool {
        self.send_part(key, outgoing, out).unwrap_or(true)
    }

    fn send_part(
        &mut self,
        key: SessionKey,
        outgoing: &mut Outgoing,
        out: &mut Vec<u8>,
    ) -> Option<bool> {
        let has_begun = outgoing.sent > 0;
        if !self.sessions.get(&key)?.may_send() {
            return Some(false);
        }
        self.flush_answers(out);
        self.sent_at = self.now;
        let delivery = if has_begun { None } else { Some(self.number_delivery(key, outgoing)?) };
        let link = self.links.get_mut(&outgoing.link)?;
        let handle = link.handle;
        let settles = link.consumer()?.settles;
        let tag = delivery.map(|delivery| wire(delivery).to_be_bytes());
        let transfer = Transfer {
            handle,
            delivery_id: delivery.map(wire),
            delivery_tag: tag.as_ref().map(<[u8; 4]>::as_slice),
            message_format: delivery.map(|_| MESSAGE_FORMAT),
            settled: settles.then_some(true),
            ..Transfer::default()
        };
        let session = self.sessions.get_mut(&key)?;
        let own = u32::try_from(self.room).unwrap_or(u32::MAX).max(FRAME_BYTES_LEAST);
        let room = Room { frame: self.peer.frame_bytes_max.min(own), output: self.room };
        if !outgoing.write(transfer, session, room, out) {
            return Some(false);
        }
        if settles {
            self.settle_sent(outgoing);
        }
        Some(true)
    }

    /// Gives a delivery its number: from here on it counts for the peer.
    fn number_delivery(&mut self, key: SessionKey, outgoing: &Outgoing) -> Option<u64> {
        let consumer = self.links.get_mut(&outgoing.link)?.consumer()?;
        consumer.spend(outgoing.charge);
        let session = self.sessions.get_mut(&key)?;
        let delivery = session.number();
        if !consumer.settles {
            consumer.unsent.remove(&outgoing.message);
            consumer.unsettled.insert(delivery);
            let message = (!consumer.browses).then_some(outgoing.message);
            let unsettled = Unsettled { link: outgoing.link, message };
            self.held_bytes += unsettled.bytes();
            session.unsettled.insert(delivery, unsettled);
        }
        if consumer.lags() {
            self.request_grant(outgoing.link);
        }
        Some(delivery)
    }

    /// The peer has taken its credit back while the message was on its way.
    fn lacks_credit(&mut self, outgoing: &Outgoing) -> bool {
        let consumer = self.consumer(outgoing.link);
        outgoing.sent == 0 && consumer.is_some_and(|consumer| consumer.credit == 0)
    }

    /// Gives back a delivery that found no credit. A copy is kept until there is some, since it
    /// would not come again. Gives whether it is gone from here.
    fn go_without(&mut self, place: u64, outgoing: Box<Outgoing>) -> bool {
        let Some(consumer) = self.consumer(outgoing.link) else { return true };
        if consumer.browses {
            consumer.places.pop_front();
            consumer.parked.push_back((place, outgoing));
            return false;
        }
        consumer.dispose(outgoing.charge);
        if consumer.unsent.remove(&outgoing.message) {
            self.release(VecDeque::from([outgoing.message]));
        }
        true
    }

    /// Lets a browser's copies wait again where they did, now that there is credit.
    pub(super) fn unpark(&mut self, id: LinkId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let session = self.sessions.get_mut(&link.session);
        let consumer = link.consumer().filter(|consumer| consumer.credit > 0);
        let (Some(session), Some(consumer)) = (session, consumer) else { return };
        for (place, outgoing) in consumer.parked.drain(..).rev() {
            consumer.places.push_front(place);
            session.waiting.insert(place, Waiting::Delivery(outgoing));
        }
    }

    /// A delivery that was sent settled is accepted once it has left (2.6.12: "at most once").
    fn settle_sent(&mut self, outgoing: &Outgoing) {
        let Some(consumer) = self.consumer(outgoing.link) else { return };
        if consumer.unsent.remove(&outgoing.message) {
            self.ask(settle(outgoing.message, Settlement::Accept, None), Awaited::Ignored);
        }
    }
}

impl Outgoing {
    fn new(link: LinkId, delivery: &Delivery, opening: Opening, is_copy: bool) -> Self {
        let Opening { prefix, start, end } = opening;
        let body = delivery.body.share();
        let (message, charge) = (delivery.message, delivery.charge);
        Self { link, message, prefix, body, charge, start, end, is_copy, sent: 0 }
    }

    /// Appends as many frames as the window takes and there is room for, but one at least. Gives
    /// whether the delivery is complete.
    fn write(
        &mut self,
        transfer: Transfer<'_>,
        session: &mut Session,
        room: Room,
        out: &mut Vec<u8>,
    ) -> bool {
        let begin = self.sent;
        let left = self.bytes() - begin;
        let mut frames = TransferFrames::new(transfer, session.channel, left, room.frame);
        let full = room.output.max(out.len() + 1);
        while session.may_send()
            && out.len() < full
            && let Some(part) = frames.write_next(out)
        {
            session.send();
            self.copy(begin + part.start..begin + part.end, out);
            self.sent = begin + part.end;
        }
        self.sent == self.bytes()
    }

    /// Appends a part of the prefix and of the stored bytes.
    fn copy(&self, part: Range<usize>, out: &mut Vec<u8>) {
        let prefix = self.prefix.len();
        let own = part.start.min(prefix)..part.end.min(prefix);
        let start = self.start + part.start.saturating_sub(prefix);
        let end = self.start + part.end.saturating_sub(prefix);
        out.extend_from_slice(self.prefix.get(own).unwrap_or_default());
        out.extend_from_slice(self.body.get(start..end).unwrap_or_default());
    }
}
