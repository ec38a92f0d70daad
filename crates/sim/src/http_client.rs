//! One simulated client of HTTP: the requests that it sends, the answers that it still expects, the
//! leases that it got.
//!
//! It asks in the words of the server's gateway, which makes commands of requests; the bytes of
//! HTTP are tested with the server. Several requests may be under way at a time, as by HTTP/2.

use std::collections::VecDeque;
use std::rc::Rc;

use http_api::{Settling, Token};
use model::{Destination, Nanos, Persistence};

/// A client and the answers that it waits for.
#[derive(Debug)]
pub struct HttpClient {
    /// Its number, never used twice.
    pub id: u64,
    /// Requests that the server has not seen yet.
    pub outbound: VecDeque<HttpWish>,
    /// Leases that it has heard of.
    pub leases: Vec<Token>,
    /// Requests without an answer, except receives.
    unanswered: usize,
    /// Receives without one.
    receives: usize,
    follows: bool,
}

/// One thing that a client of HTTP wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpWish {
    /// `POST …/messages`
    Send {
        /// The destination.
        to: Destination,
        /// The message.
        post: Post,
    },
    /// `GET /topics/NAME/events`
    Follow {
        /// Which.
        topic: Rc<str>,
    },
    /// The stream of events ends.
    Leave,
    /// `GET /queues/NAME/messages`
    Receive {
        /// Which.
        queue: Rc<str>,
        /// The most messages.
        max: usize,
        /// How long it waits.
        wait: Nanos,
        /// How long they are leased.
        lease: Nanos,
    },
    /// `DELETE /leases/LEASE`, and all other requests that end or extend one.
    Settle {
        /// Which.
        token: Token,
        /// The settling of the message.
        how: Settling,
    },
    /// `GET /queues/NAME/messages?browse`
    Browse {
        /// Which.
        queue: Rc<str>,
    },
}

/// A message to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// The persistence that its sender asks for.
    pub persistence: Persistence,
    /// Its priority in the engine's numbers.
    pub priority: u32,
    /// How long it is worth something.
    pub ttl: Option<Nanos>,
    /// How long it is hidden.
    pub delay: Nanos,
    /// The sender's name of it, by which the broker recognises a repeated send.
    pub send_id: Option<Rc<str>>,
    /// Its bytes, unlike any other's.
    pub body: Rc<[u8]>,
}

/// A thing that a client reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// The answer to a request.
    Answer,
    /// The answer to a receive.
    Leased(Vec<Token>),
    /// A message of the topic that it follows.
    Event,
    /// The stream of events has ended.
    End,
}

impl HttpWish {
    /// For a trace: without the bytes of bodies.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut text = format!("{self:?}");
        text.truncate(text.find("body: ").unwrap_or(text.len()));
        text
    }
}

impl HttpClient {
    /// A client that has just connected.
    #[must_use]
    pub const fn new(id: u64) -> Self {
        Self {
            id,
            outbound: VecDeque::new(),
            leases: Vec::new(),
            unanswered: 0,
            receives: 0,
            follows: false,
        }
    }

    /// How many of its wishes are not answered.
    #[must_use]
    pub const fn outstanding(&self) -> usize {
        self.unanswered + self.receives
    }

    /// True if nothing is unanswered, except receives.
    #[must_use]
    pub fn is_content(&self) -> bool {
        self.outbound.is_empty() && self.unanswered == 0
    }

    /// True if it has asked to follow a topic and not left.
    #[must_use]
    pub const fn follows(&self) -> bool {
        self.follows
    }

    /// Sends the request of this wish.
    pub fn send(&mut self, wish: HttpWish) {
        match &wish {
            HttpWish::Receive { .. } => self.receives += 1,
            HttpWish::Leave => self.follows = false,
            wish => {
                self.follows |= matches!(wish, HttpWish::Follow { .. });
                self.unanswered += 1;
            }
        }
        if let HttpWish::Settle { token, how } = &wish
            && !matches!(how, Settling::Extend { .. })
        {
            self.leases.retain(|lease| lease != token);
        }
        self.outbound.push_back(wish);
    }

    /// It reads something.
    pub fn hear(&mut self, heard: Received) {
        match heard {
            Received::Answer => self.unanswered -= 1,
            Received::Leased(tokens) => {
                self.receives -= 1;
                self.leases.extend(tokens);
            }
            Received::Event => {}
            // It may have left this stream, and follow another by now.
            Received::End => self.follows &= self.outbound.contains(&HttpWish::Leave),
        }
    }
}
