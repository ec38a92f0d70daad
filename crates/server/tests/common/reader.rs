//! An AMQP peer that reads a queue: it takes what comes.

use std::net::SocketAddr;

use amqp::performative::{Attach, Close, Performative, Role, Transfer};
use amqp::state::{DeliveryState, Outcome};
use amqp::terminus::{DistributionMode, Source};
use testkit::amqp_peer::{AmqpPeer, credit, sender};

use super::Client;

pub(crate) struct Reader(AmqpPeer);

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
        let mut peer = AmqpPeer::with_session(Client::new(address).socket.into_inner());
        let source = Source {
            address: Some(wish.queue.into()),
            capabilities: wish.topic.then_some("topic").into_iter().collect(),
            distribution_mode: wish.copies.then_some(DistributionMode::Copy),
            ..Source::default()
        };
        let attach = Attach { source: Some(source), ..Attach::new("r", 0, Role::Receiver) };
        peer.say(&Performative::Attach(Box::new(attach)), &[]);
        peer.say(&credit(0, 0, wish.credit), &[]);
        Self(peer)
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
        self.0.say(&sender(handle, queue), &[]);
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
        self.0.say(&Performative::Transfer(transfer), message);
    }

    /// Sends anything else.
    pub(crate) fn say(&mut self, performative: &Performative<'_>, payload: &[u8]) {
        self.0.say(performative, payload);
    }

    /// The next frame. A close is answered.
    fn hear(&mut self) -> Heard {
        let Some(body) = self.0.frame() else { return Heard::End };
        let heard = Heard::of(&body);
        if matches!(heard, Heard::End) {
            self.0.say(&Performative::Close(Close::default()), &[]);
        }
        heard
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
