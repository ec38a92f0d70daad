//! An AMQP peer that sends the frames of a test.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use amqp::frame::{self, Frame, FrameKind, Split};
use amqp::performative::{Attach, Begin, Disposition, Flow, Open, Performative, Role, Transfer};
use amqp::protocol_header::ProtocolHeader;
use amqp::state::{DeliveryState, Outcome};
use amqp::terminus::{AttachTarget, Source, Target};

/// A peer by a socket of its own: each method panics where the broker does something else.
#[derive(Debug)]
pub struct AmqpPeer {
    /// What it is connected by.
    pub socket: TcpStream,
    /// Received bytes that are not parsed yet.
    bytes: Vec<u8>,
    sent: u32,
}

/// More frames and credit than any test uses.
pub const MANY: u32 = 1_000_000;

#[allow(clippy::missing_panics_doc, reason = "the type says it once")]
impl AmqpPeer {
    /// Opens the connection.
    #[must_use]
    pub fn open(mut socket: TcpStream) -> Self {
        socket.write_all(&opening()).unwrap();
        let mut header = [0; 8];
        socket.read_exact(&mut header).unwrap();
        assert_eq!(header, ProtocolHeader::AMQP.encode());
        let mut peer = Self { socket, bytes: Vec::new(), sent: 0 };
        peer.hear(|heard| matches!(heard, Performative::Open(_)).then_some(()));
        peer
    }

    /// The same, with a session.
    #[must_use]
    pub fn with_session(socket: TcpStream) -> Self {
        let mut peer = Self::open(socket);
        peer.say(&begin(), &[]);
        peer
    }

    /// One that may send to a queue by the link 0, and receive from it by the link 1.
    #[must_use]
    pub fn worker(socket: TcpStream, queue: &str) -> Self {
        let mut peer = Self::with_session(socket);
        peer.say(&sender(0, queue), &[]);
        peer.say(&receiver(1, queue), &[]);
        peer.say(&credit(1, 0, MANY), &[]);
        peer.hear(|heard| match heard {
            Performative::Flow(flow) => flow.link_credit.filter(|credit| *credit > 0).map(drop),
            _ => None,
        });
        peer
    }

    /// Sends a message and waits until it is accepted.
    pub fn send(&mut self, body: &str) {
        self.transfer(body.as_bytes(), false);
        self.sent += 1;
        self.hear(|heard| match heard {
            Performative::Disposition(told) => match told.state {
                Some(DeliveryState::Outcome(Outcome::Accepted)) => Some(()),
                other => panic!("{other:?}"),
            },
            _ => None,
        });
    }

    /// One frame of a message; `more` says that others follow.
    pub fn transfer(&mut self, body: &[u8], more: bool) {
        let length = u8::try_from(body.len()).unwrap();
        let payload = [&[0, 0x53, 0x75, 0xa0, length], body].concat();
        let tag = self.sent.to_be_bytes();
        let transfer = Transfer {
            handle: 0,
            delivery_id: Some(self.sent),
            delivery_tag: Some(&tag),
            message_format: Some(0),
            more,
            ..Transfer::default()
        };
        self.say(&Performative::Transfer(transfer), &payload);
    }

    /// The next message, which must end with this; it is accepted.
    pub fn receive(&mut self, body: &str) {
        let id = self.await_message(body);
        let accepted = Disposition {
            role: Role::Receiver,
            first: id,
            last: None,
            settled: true,
            state: Some(DeliveryState::Outcome(Outcome::Accepted)),
            batchable: false,
        };
        self.say(&Performative::Disposition(accepted), &[]);
    }

    fn await_message(&mut self, body: &str) -> u32 {
        loop {
            let frame = self.frame().expect("it is open");
            if let (Performative::Transfer(transfer), payload) =
                Performative::decode(&frame).unwrap()
            {
                assert!(payload.ends_with(body.as_bytes()), "{payload:?}");
                return transfer.delivery_id.unwrap();
            }
        }
    }

    /// Sends a frame.
    pub fn say(&mut self, performative: &Performative<'_>, payload: &[u8]) {
        self.socket.write_all(&encoded(performative, payload)).unwrap();
    }

    /// Reads until something is found.
    pub fn hear<R>(&mut self, find: impl Fn(Performative<'_>) -> Option<R>) -> R {
        loop {
            let frame = self.frame().expect("it is open");
            let (performative, _) = Performative::decode(&frame).unwrap();
            if let Some(found) = find(performative) {
                return found;
            }
        }
    }

    /// The body of the next frame that has one, unless the broker closed the connection.
    pub fn frame(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Ok(Split::Frame { frame: Frame { body, .. }, length }) =
                Frame::split(&self.bytes, u32::MAX)
            {
                let body = body.to_vec();
                self.bytes.drain(..length);
                if body.is_empty() {
                    continue;
                }
                return Some(body);
            }
            let mut scratch = vec![0; 64 * 1024];
            let count = self.socket.read(&mut scratch).ok().filter(|count| *count > 0)?;
            self.bytes.extend_from_slice(&scratch[..count]);
        }
    }
}

/// The protocol and an open.
#[must_use]
pub fn opening() -> Vec<u8> {
    let open = Performative::Open(Box::new(Open::new("peer")));
    [&ProtocolHeader::AMQP.encode()[..], &encoded(&open, &[])].concat()
}

/// A session.
#[must_use]
pub fn begin() -> Performative<'static> {
    Performative::Begin(Box::new(Begin { incoming_window: MANY, ..Begin::default() }))
}

/// A link to send to a queue by.
#[must_use]
pub fn sender(handle: u32, queue: &str) -> Performative<'_> {
    let node = Target { address: Some(queue.into()), ..Target::default() };
    Performative::Attach(Box::new(Attach {
        target: Some(AttachTarget::Node(node)),
        initial_delivery_count: Some(0),
        ..Attach::new(format!("s{handle}"), handle, Role::Sender)
    }))
}

/// A link to receive from a queue by.
#[must_use]
pub fn receiver(handle: u32, queue: &str) -> Performative<'_> {
    let source = Source { address: Some(queue.into()), ..Source::default() };
    Performative::Attach(Box::new(Attach {
        source: Some(source),
        ..Attach::new("r", handle, Role::Receiver)
    }))
}

/// Credit for a link.
#[must_use]
pub fn credit(handle: u32, delivery_count: u32, credit: u32) -> Performative<'static> {
    Performative::Flow(Flow {
        next_incoming_id: Some(0),
        incoming_window: MANY,
        handle: Some(handle),
        delivery_count: Some(delivery_count),
        link_credit: Some(credit),
        ..Flow::default()
    })
}

/// A frame.
#[must_use]
pub fn encoded(performative: &Performative<'_>, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write(&mut out, FrameKind::Amqp, 0, |out| {
        performative.encode(out);
        out.extend_from_slice(payload);
    });
    out
}
