//! An AMQP peer that reads a queue: it sends all requests at once, and takes all answers.

use std::io::Read as _;
use std::net::SocketAddr;

use amqp::frame::{self, Frame, FrameKind, Split};
use amqp::performative::{Attach, Begin, Close, Flow, Open, Performative, Role, Transfer};
use amqp::protocol_header::ProtocolHeader;
use amqp::state::{DeliveryState, Outcome};
use amqp::terminus::{AttachTarget, DistributionMode, Source, Target};

use super::Client;

pub(crate) struct Reader {
    client: Client,
    /// Bytes that have come and are not decoded yet.
    bytes: Vec<u8>,
}

/// The request of a peer.
pub(crate) struct Wish {
    pub(crate) queue: &'static str,
    /// It is a topic.
    pub(crate) topic: bool,
    /// Copies, instead of the messages themselves.
    pub(crate) copies: bool,
    pub(crate) credit: u32,
}

impl Reader {
    /// Connects and asks for messages. Nothing is settled.
    pub(crate) fn new(address: SocketAddr, wish: &Wish) -> Self {
        let mut client = Client::new(address);
        client.send(greeting(wish));
        let mut header = [0; 8];
        client.socket.read_exact(&mut header).unwrap();
        assert_eq!(header, ProtocolHeader::AMQP.encode());
        Self { client, bytes: Vec::new() }
    }

    /// The part of the next message in one frame; `None` when the server closes.
    pub(crate) fn piece(&mut self) -> Option<Vec<u8>> {
        loop {
            match self.hear() {
                Heard::Transfer { piece, .. } => return Some(piece),
                Heard::End => return None,
                _ => {}
            }
        }
    }

    /// The next message; `None` when the server closes.
    pub(crate) fn message(&mut self) -> Option<Vec<u8>> {
        let mut message = Vec::new();
        loop {
            match self.hear() {
                Heard::Transfer { more, piece } => {
                    message.extend(piece);
                    if !more {
                        return Some(message);
                    }
                }
                Heard::End => return None,
                _ => {}
            }
        }
    }

    /// Opens a link to send by, and waits until it may.
    pub(crate) fn attach_sender(&mut self, handle: u32, queue: &str) {
        let node = Target { address: Some(queue.into()), ..Target::default() };
        let attach = Attach {
            target: Some(AttachTarget::Node(node)),
            initial_delivery_count: Some(0),
            ..Attach::new(format!("s{handle}"), handle, Role::Sender)
        };
        self.say(&Performative::Attach(Box::new(attach)), &[]);
        self.await_credit();
    }

    /// Why its link was closed.
    pub(crate) fn detached(&mut self) -> String {
        loop {
            match self.hear() {
                Heard::Detached(why) => return why,
                Heard::End => panic!("it is detached first"),
                _ => {}
            }
        }
    }

    /// The outcome of its message, with the reason if it was rejected.
    pub(crate) fn outcome(&mut self) -> Result<(), String> {
        loop {
            match self.hear() {
                Heard::Outcome(outcome) => return outcome,
                Heard::End => panic!("it is answered"),
                _ => {}
            }
        }
    }

    /// Waits until it may send.
    fn await_credit(&mut self) {
        loop {
            match self.hear() {
                Heard::Credit => return,
                Heard::End => panic!("it may send first"),
                _ => {}
            }
        }
    }

    /// Sends a message by the link with handle 1.
    pub(crate) fn send(&mut self, id: u32, message: &[u8]) {
        let tag = id.to_be_bytes();
        let transfer = Transfer {
            handle: 1,
            delivery_id: Some(id),
            delivery_tag: Some(&tag),
            message_format: Some(0),
            ..Transfer::default()
        };
        self.say(&Performative::Transfer(transfer), message);
    }

    /// Sends anything else.
    pub(crate) fn say(&mut self, performative: &Performative<'_>, payload: &[u8]) {
        let mut out = Vec::new();
        put(&mut out, performative, payload);
        self.client.send(out);
    }

    /// The next frame. A close is answered.
    fn hear(&mut self) -> Heard {
        loop {
            if let Ok(Split::Frame { frame: Frame { body, .. }, length }) =
                Frame::split(&self.bytes, u32::MAX)
            {
                let heard = Heard::of(body);
                self.bytes.drain(..length);
                if matches!(heard, Heard::End) {
                    self.say(&Performative::Close(Close::default()), &[]);
                }
                return heard;
            }
            let mut scratch = vec![0; 64 * 1024];
            let count = self.client.socket.read(&mut scratch).unwrap_or(0);
            if count == 0 {
                return Heard::End;
            }
            self.bytes.extend_from_slice(&scratch[..count]);
        }
    }
}

enum Heard {
    Transfer { more: bool, piece: Vec<u8> },
    Credit,
    Outcome(Result<(), String>),
    Detached(String),
    End,
    Nothing,
}

impl Heard {
    fn of(body: &[u8]) -> Self {
        if body.is_empty() {
            return Self::Nothing;
        }
        match Performative::decode(body).unwrap() {
            (Performative::Transfer(transfer), piece) => {
                Self::Transfer { more: transfer.more, piece: piece.to_vec() }
            }
            (Performative::Flow(flow), _) if flow.link_credit.is_some() => Self::Credit,
            (Performative::Disposition(told), _) => Self::Outcome(outcome(told.state)),
            (Performative::Close(_), _) => Self::End,
            (Performative::Detach(detach), _) => {
                let error = detach.error.unwrap();
                assert!(detach.closed, "it is closed");
                Self::Detached(format!("{} ({})", error.condition, error.description.unwrap()))
            }
            _ => Self::Nothing,
        }
    }
}

fn outcome(state: Option<DeliveryState<'_>>) -> Result<(), String> {
    match state {
        Some(DeliveryState::Outcome(Outcome::Accepted)) => Ok(()),
        Some(DeliveryState::Outcome(Outcome::Rejected(Some(error)))) => {
            Err(format!("{} ({})", error.condition, error.description.unwrap()))
        }
        other => panic!("{other:?}"),
    }
}

/// All that it says of its own accord.
fn greeting(wish: &Wish) -> Vec<u8> {
    let mut out = ProtocolHeader::AMQP.encode().to_vec();
    let source = Source {
        address: Some(wish.queue.into()),
        capabilities: wish.topic.then_some("topic").into_iter().collect(),
        distribution_mode: wish.copies.then_some(DistributionMode::Copy),
        ..Source::default()
    };
    let flow = Flow {
        next_incoming_id: Some(0),
        incoming_window: WINDOW,
        handle: Some(0),
        delivery_count: Some(0),
        link_credit: Some(wish.credit),
        ..Flow::default()
    };
    for performative in [
        Performative::Open(Box::new(Open::new("reader"))),
        Performative::Begin(Box::new(Begin { incoming_window: WINDOW, ..Begin::default() })),
        Performative::Attach(Box::new(Attach {
            source: Some(source),
            ..Attach::new("r", 0, Role::Receiver)
        })),
        Performative::Flow(flow),
    ] {
        put(&mut out, &performative, &[]);
    }
    out
}

fn put(out: &mut Vec<u8>, performative: &Performative<'_>, payload: &[u8]) {
    frame::write(out, FrameKind::Amqp, 0, |out| {
        performative.encode(out);
        out.extend_from_slice(payload);
    });
}

/// More frames than any test has.
const WINDOW: u32 = 1_000_000;
