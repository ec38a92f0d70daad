//! Frames that a client of AMQP reads, one by one.

use amqp::error::condition;
use amqp::frame::{Frame, Split};
use amqp::message::Message;
use amqp::performative::{Attach, Detach, Disposition, Flow, Performative, Role, Transfer};
use amqp::protocol_header::ProtocolHeader;
use amqp::state::DeliveryState;

use super::{AmqpClient, Answer, Coming, Connected, End, Held, Standing};
use crate::history::Changes;

/// The content of a frame, in a few words, and the changes that it reflects.
type ReadFrame = (String, Changes);

impl AmqpClient {
    /// The client reads bytes; returns the content of each frame that they complete.
    ///
    /// # Panics When a frame does not agree with the engine.
    pub fn read(&mut self, bytes: &[u8]) -> Vec<ReadFrame> {
        self.inbound.extend_from_slice(bytes);
        let mut inbound = std::mem::take(&mut self.inbound);
        let mut told = Vec::new();
        let mut at = 0;
        while let Some(length) = self.read_one(inbound.get(at..).unwrap_or_default(), &mut told) {
            at += length;
        }
        inbound.drain(..at);
        self.inbound = inbound;
        told
    }

    fn read_one(&mut self, bytes: &[u8], told: &mut Vec<ReadFrame>) -> Option<usize> {
        if self.standing == Connected::Header {
            let header = ProtocolHeader::decode(bytes).expect("a header of AMQP")?;
            assert_eq!(header, ProtocolHeader::AMQP, "the layer that was asked for");
            self.standing = Connected::Open;
            return Some(ProtocolHeader::BYTES);
        }
        match Frame::split(bytes, self.frame_bytes).expect("a frame") {
            Split::Needs(_) => None,
            Split::Frame { frame, length } => {
                if !frame.body.is_empty() {
                    self.read_frame(&frame, told);
                }
                Some(length)
            }
        }
    }

    fn read_frame(&mut self, frame: &Frame<'_>, told: &mut Vec<ReadFrame>) {
        let (performative, payload) = Performative::decode(frame.body).expect("a performative");
        match performative {
            Performative::Open(_) => self.step_on(Connected::Open, Connected::Begin),
            Performative::Begin(_) => self.step_on(Connected::Begin, Connected::Ready),
            Performative::Attach(attach) => self.read_attach(&attach),
            Performative::Flow(flow) => told.extend(self.read_flow(&flow)),
            Performative::Transfer(transfer) => told.extend(self.read_transfer(&transfer, payload)),
            Performative::Disposition(disposition) => self.read_disposition(&disposition, told),
            Performative::Detach(detach) => self.read_detach(&detach),
            Performative::End(end) => panic!("client {} lost its session: {end:?}", self.id),
            Performative::Close(close) => {
                let asked = self.standing == Connected::Closing && close.error.is_none();
                assert!(asked, "client {} was closed: {close:?}", self.id);
                self.standing = Connected::Closed;
            }
        }
    }

    fn step_on(&mut self, from: Connected, to: Connected) {
        if self.standing != Connected::Closing {
            assert_eq!(self.standing, from, "client {} opens in order", self.id);
            self.standing = to;
        }
    }

    fn read_attach(&mut self, attach: &Attach) {
        let link = self.links.get_mut(&attach.handle).expect("a link that was attached");
        let refused = match attach.role {
            Role::Sender => attach.source.is_none(),
            Role::Receiver => attach.target.is_none(),
        };
        if link.standing == Standing::Attaching {
            link.standing = if refused { Standing::Refused } else { Standing::Open };
        }
    }

    fn read_flow(&mut self, flow: &Flow) -> Option<ReadFrame> {
        let link = self.links.get_mut(&flow.handle?)?;
        let counted = flow.delivery_count.unwrap_or_default();
        let credit = flow.link_credit.unwrap_or_default();
        match &mut link.end {
            End::Producer { limit, .. } | End::Coordinator { limit, .. } => {
                *limit = counted + credit;
                None
            }
            // The answer to an earlier drain was on its way when the client gave it up: credit that
            // it allowed since then stays.
            End::Consumer { received, limit, .. } if counted < *limit => {
                *received = counted;
                None
            }
            End::Consumer { received, limit, drains: drains @ true } => {
                assert_eq!((counted, credit), (*limit, 0), "all credit is used up");
                *received = counted;
                *drains = false;
                let handle = flow.handle?;
                let left = self.coming.iter().find(|coming| coming.handle == handle);
                let left = left.filter(|coming| !coming.returned).map(|coming| coming.message);
                assert_eq!(left, None, "a drain of {handle} ended before what there was for it");
                let changes = self.drained.remove(&handle);
                let changes = changes.expect("nothing more is there, as the engine said");
                Some((format!("drained {:?}", flow.handle), changes))
            }
            _ => None,
        }
    }

    fn read_transfer(&mut self, transfer: &Transfer<'_>, payload: &[u8]) -> Option<ReadFrame> {
        self.frames_read += 1;
        let handle = transfer.handle;
        let (of, delivery, mut bytes) = self.partial.take().unwrap_or_else(|| {
            let delivery = transfer.delivery_id.expect("the first frame has the number");
            (handle, delivery, Vec::new())
        });
        assert_eq!(of, handle, "a delivery is not interrupted on its session");
        bytes.extend_from_slice(payload);
        if transfer.more {
            self.partial = Some((of, delivery, bytes));
            return None;
        }
        Some(self.read_message(handle, delivery, &bytes))
    }

    fn read_message(&mut self, handle: u32, delivery: u32, bytes: &[u8]) -> ReadFrame {
        let link = self.links.get_mut(&handle).expect("a link that was attached");
        let End::Consumer { received, limit, .. } = &mut link.end else {
            panic!("{handle} is no consumer");
        };
        *received += 1;
        assert!(received <= limit, "client {} gave {limit} to {handle}", self.id);
        let is_detaching = link.standing == Standing::Detaching;
        let message = Message::scan(bytes).expect("a message");
        let (header, body) = (message.header(), message.data().flatten().copied());
        let body: Vec<u8> = body.collect();
        let is_it = |coming: &Coming| {
            let same = (coming.handle, coming.durable, coming.priority);
            same == (handle, header.durable, header.priority) && coming.body == body
        };
        let index = self.coming.iter().position(is_it);
        let index = index.unwrap_or_else(|| panic!("{handle} got what the engine never gave it"));
        let coming = self.coming.remove(index);
        assert_eq!(header.delivery_count, coming.failed, "failed deliveries of {}", coming.message);
        let reason = message.message_annotation("x-opt-dead-letter-reason");
        assert_eq!(reason.and_then(|reason| reason.as_str()), coming.dead, "why it is dead");
        if !is_detaching {
            let Coming { message, returned, .. } = coming;
            self.held.insert(delivery, Held { handle, message, returned });
        }
        let text = format!("delivery {delivery} of {} at {handle}", coming.message);
        (text, coming.changes)
    }

    fn read_disposition(&mut self, disposition: &Disposition<'_>, told: &mut Vec<ReadFrame>) {
        assert!(disposition.settled, "the broker settles what it answers");
        let Disposition { role, first, last, ref state, .. } = *disposition;
        let awaited = match role {
            Role::Receiver => &mut self.answers,
            Role::Sender => &mut self.settlings,
        };
        for delivery in first..=last.unwrap_or(first) {
            let possible = self.possible.remove(&delivery).filter(|_| role == Role::Sender);
            let awaited = awaited.remove(&delivery).or(possible.map(|answer| (answer, 0..0)));
            let (answer, changes) =
                awaited.unwrap_or_else(|| panic!("nobody awaits {role:?} {delivery}: {state:?}"));
            let state = state.as_ref().expect("an answer says what became of it");
            assert!(answer.is(state), "{role:?} {delivery}: {state:?}, not {answer:?}");
            if let DeliveryState::Declared { txn_id } = state {
                let id = txn_id.first_chunk().expect("an id of eight bytes");
                self.transactions.push(u64::from_be_bytes(*id));
            }
            told.push((format!("{role:?} {delivery}: {state:?}"), changes));
        }
    }

    fn read_detach(&mut self, detach: &Detach) {
        let link = self.links.remove(&detach.handle).expect("a link that was attached");
        let is_expected = matches!(link.standing, Standing::Detaching | Standing::Refused);
        let says = detach.error.as_ref().map(|error| &*error.condition);
        let is_beyond = says == Some(condition::RESOURCE_LIMIT_EXCEEDED);
        let is_cut_off = self.cut_off.remove(&detach.handle) && is_beyond;
        assert!(is_expected || is_cut_off, "client {} lost {link:?}: {detach:?}", self.id);
        if !link.has_detached {
            self.say_detach(detach.handle, true);
        }
        self.coming.retain(|coming| coming.handle != detach.handle);
        self.held.retain(|_, held| held.handle != detach.handle);
        self.drained.remove(&detach.handle);
    }
}

impl Answer {
    fn is(&self, state: &DeliveryState<'_>) -> bool {
        match (self, state) {
            (Self::Outcome(meant), DeliveryState::Outcome(said)) => meant == said,
            (
                Self::Enlisted(meant, outcome),
                DeliveryState::Transactional { txn_id, outcome: Some(said) },
            ) => meant.to_be_bytes()[..] == **txn_id && outcome == said,
            (Self::Declared, DeliveryState::Declared { .. }) => true,
            (Self::Refused, DeliveryState::Outcome(amqp::state::Outcome::Rejected(_))) => true,
            _ => false,
        }
    }
}
