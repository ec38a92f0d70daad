//! The gateway between HTTP's tasks and a broker: the tasks ask it, and it asks a [`BrokerTurn`].

mod answers;
mod broker;
mod client;
mod followers;
mod leases;
mod receives;
mod request_queue;
mod state;
mod works;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use input::ProxyFault;
use model::{
    BrokerStatistics, Command, Delivery, Destination, Introduction, LoginAnswer, LoginOffer,
    LoginStep, MessageId, Nanos, NewMessage, Principal, QueueName, Refusal, Reply, TableStep,
};
use tokio::sync::Notify;

pub use broker::BrokerTurn;
pub use client::{Following, GatewayClient};
pub use followers::WINDOW;
pub use request_queue::{REQUESTS_MAX, RequestQueue};
pub use state::{GatewayOptions, GatewayState};
pub use works::TRANSACTIONS_MAX;

use crate::app::Adjustable;
use crate::departure::Asker;
use crate::token::Token;

/// A connection that wants to be served.
#[derive(Debug)]
pub struct NewConnection {
    /// The address of its peer; `None`: it came by a socket in the file system.
    pub peer: Option<SocketAddr>,
    /// The peer is a proxy, which has not told yet where its client is.
    pub is_proxy: bool,
    /// Its peer is on this machine.
    pub is_local: bool,
    /// Ends it when this is rung.
    pub hangup: Weak<Notify>,
}

/// The place of a connection; dropping it leaves it to others.
pub trait ConnectionPermit: Send + Sync + 'static {
    /// A request has come on it; with users, of one of them.
    fn note_request(&self);

    /// It counts for this client from now on, as its proxy has told. Gives false if it has to end.
    fn count_for(&self, _client: SocketAddr) -> bool {
        true
    }
}

impl ConnectionPermit for () {
    fn note_request(&self) {}
}

/// The client of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginClient {
    /// Its address; `None`: it came by a socket in the file system.
    pub address: Option<SocketAddr>,
    /// Its verified certificate, in DER.
    pub certificate: Option<Arc<[u8]>>,
    /// The one that it is before it says a word.
    pub introduction: Introduction,
}

/// The one who asks for something, and whence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actor {
    /// The one for whom it is done.
    pub principal: Principal,
    /// The address of its client; `None`: it came by a socket in the file system, or is the broker
    /// itself.
    pub from: Option<SocketAddr>,
}

/// Sessions of the engine for tasks of the same process. Every answer comes when the log is as
/// durable as it depends on. A future that is dropped gives up its wait.
pub trait Gateway: Clone + Send + Sync + 'static {
    /// The stream that a subscriber of a topic reads from; dropping it ends the subscription.
    type Events: Events;
    /// The permit of an open connection.
    type ConnectionPermit: ConnectionPermit;

    /// The present moment by the engine's clock, by which messages expire.
    fn now(&self) -> Nanos;

    /// A time of the engine's by the machine's clock.
    fn wall_time(&self, time: Nanos) -> Nanos;

    /// The options for a new connection, if they may have changed.
    fn adjustable(&self) -> Option<Adjustable> {
        None
    }

    /// A place for one more connection; `None`: there are too many.
    fn admit(&self, connection: NewConnection) -> Option<Self::ConnectionPermit>;

    /// A client connected from an address that its listener does not take.
    fn turn_away(&self, _by_tls: bool, _client: Option<SocketAddr>) {}

    /// A proxy did not tell where its client is: it sent something else, or nothing in time.
    fn header_failed(&self, _by_tls: bool, _proxy: SocketAddr, _fault: Option<ProxyFault>) {}

    /// A client and the server could not agree about TLS.
    fn handshake_failed(&self, _from: Option<SocketAddr>, _error: &io::Error) {}

    /// How a client may log in whose bytes other machines can read, or cannot, and that was
    /// introduced so. `None`: there are no users.
    fn offer(&self, _is_private: bool, _client: &Introduction) -> Option<LoginOffer> {
        None
    }

    /// The answer to a step of a client's login. Without users it is asked for nothing, and
    /// refuses.
    fn login(
        &self,
        _step: LoginStep,
        _client: LoginClient,
    ) -> impl Future<Output = LoginAnswer> + Send {
        std::future::ready(LoginAnswer::Refused)
    }

    /// Does these one after the other, for this one.
    ///
    /// # Errors
    /// [`GatewayError`]; the steps before it were done, unless the work is atomic.
    fn ask(
        &self,
        actor: Actor,
        work: Work,
    ) -> impl Future<Output = Result<Vec<Reply>, GatewayError>> + Send;

    /// Leases messages for this one, waiting for the first.
    ///
    /// # Errors
    /// [`GatewayError`]; nothing was leased.
    fn receive(
        &self,
        actor: Actor,
        wanted: Wanted,
    ) -> impl Future<Output = Result<Vec<Leased>, GatewayError>> + Send;

    /// Takes back leased messages that never reached a client, as if they had not been leased.
    fn give_back(&self, tokens: Vec<Token>);

    /// Subscribes to a topic from now on, for this one.
    ///
    /// # Errors
    /// [`GatewayError`]; there is no subscription.
    fn follow(
        &self,
        actor: Actor,
        topic: QueueName,
    ) -> impl Future<Output = Result<Self::Events, GatewayError>> + Send;

    /// The readiness to take messages now.
    fn readiness(&self) -> Readiness;

    /// The counted figures.
    fn figures(&self) -> Figures;

    /// Why each file of the log is kept.
    fn segments(&self) -> impl Future<Output = Vec<SegmentFigures>> + Send;
}

/// The messages published to a topic, one after the other.
pub trait Events: Send + 'static {
    /// The next one; `None`: the subscription is over.
    fn next(&mut self) -> impl Future<Output = Option<Delivery>> + Send;

    /// Why it is over, if the client is to be told.
    fn end(&self) -> Option<String> {
        None
    }
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The steps, in this order.
    pub steps: Vec<Step>,
    /// All of it in one frame or nothing: only puts, steps on tables and settlements by
    /// [`Settling::Accept`], [`Settling::Release`] without delay and [`Settling::Fail`]. Answered
    /// without replies, but for `Committed`.
    pub atomic: bool,
    /// The client that asks: if it leaves, this waits for no place, for no memory and not for the
    /// log.
    pub asker: Asker,
}

impl Work {
    /// One command.
    #[must_use]
    pub fn command(command: Command) -> Self {
        Self::steps(vec![Step::Command(command)])
    }

    /// One after the other.
    #[must_use]
    pub const fn steps(steps: Vec<Step>) -> Self {
        Self { steps, atomic: false, asker: Asker::NOBODY }
    }

    /// All or nothing.
    #[must_use]
    pub const fn atomic(steps: Vec<Step>) -> Self {
        Self { steps, atomic: true, asker: Asker::NOBODY }
    }

    /// How many commands it is.
    #[must_use]
    pub fn commands(&self) -> u64 {
        let count = |step: &Step| if let Step::Put { count, .. } = step { *count } else { 1 };
        self.steps.iter().map(count).fold(0, u64::saturating_add)
    }

    /// Bytes of the bodies that it brings.
    #[must_use]
    pub fn body_bytes(&self) -> u64 {
        let bytes = self.steps.iter().map(|step| match step {
            Step::Put { message, .. } => message.body.len(),
            Step::Table(step) => step.body_bytes(),
            Step::Command(command) => command.body_bytes(),
            Step::Settle { .. } => 0,
        });
        bytes.sum::<usize>() as u64
    }

    /// The same for a client that may leave.
    #[must_use]
    pub fn by(self, asker: &Asker) -> Self {
        Self { asker: asker.clone(), ..self }
    }
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Store a message. → `Stored`, or `Done` if no subscription takes it; refused while the
    /// server drains
    Put {
        /// The destination.
        to: Destination,
        /// The message.
        message: NewMessage,
        /// How often.
        count: u64,
    },
    /// A step of an atomic work on a table.
    Table(TableStep),
    /// Settle a leased message. → `Done`
    Settle {
        /// The lease.
        token: Token,
        /// The outcome.
        settling: Settling,
    },
    /// Anything else, with the engine's own reply. None that waits.
    Command(Command),
}

/// The outcome of a leased message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settling {
    /// It is done with, and deleted.
    Accept,
    /// It goes back.
    Release {
        /// How long it stays hidden; `None`: as the rules of its queue say.
        delay: Option<Nanos>,
        /// Its new priority; `None`: the old one.
        priority: Option<u32>,
    },
    /// It goes back, and one failure more is counted.
    Fail,
    /// Its lease starts anew.
    Extend {
        /// For how long.
        lease: Nanos,
    },
    /// It is set aside until it is kicked.
    Bury {
        /// Its new priority; `None`: the old one.
        priority: Option<u32>,
    },
}

/// A request to receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The source.
    pub queue: QueueName,
    /// How long to wait for the first.
    pub wait: Nanos,
    /// How long each is leased.
    pub lease: Nanos,
    /// The most messages.
    pub max: usize,
    /// The client that asks: if it leaves, this waits for no message and gets none.
    pub asker: Asker,
}

/// A leased message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leased {
    /// The token that settles it.
    pub token: Token,
    /// The message.
    pub delivery: Delivery,
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayError {
    /// The engine refused it.
    Refused(Refusal),
    /// The lease is over: it ended by time, or the message was settled.
    LeaseOver(Token),
    /// Too much waits already.
    Busy,
    /// The server takes no messages until its next start.
    Draining,
    /// The server stops.
    Stopping,
    /// The client has left, and it would have had to wait.
    Left,
}

/// The readiness to take messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// They are.
    Ready,
    /// The server stops.
    Stopping,
    /// An operator asked to take none until the next start.
    Draining,
    /// The store is full; deletions still work.
    Full,
}

/// Counted figures for [Prometheus](https://prometheus.io/docs/instrumenting/exposition_formats/).
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// The engine's counts.
    pub broker: BrokerStatistics,
    /// Sums and gauges beside it.
    pub samples: Vec<Sample>,
    /// Distributions of times.
    pub summaries: Vec<Summary>,
}

/// A file of the log.
#[derive(Clone, Debug)]
pub struct SegmentFigures {
    /// Its name.
    pub file: String,
    /// How long it is.
    pub bytes: u64,
    /// How much of it holds frames.
    pub used_bytes: u64,
    /// Bytes of records that still matter.
    pub live_bytes: u64,
    /// How many records these are.
    pub live_records: u64,
    /// Why it is not used again.
    pub kept_for: &'static str,
    /// The queues with messages that need it, those with the oldest first.
    pub queues: Vec<QueueFigures>,
    /// Queues of which messages need it, also those that are not listed.
    pub queues_count: usize,
}

/// Messages of one queue, or of all subscriptions of a topic, that need a file of the log.
#[derive(Clone, Debug)]
pub struct QueueFigures {
    /// Its name.
    pub queue: QueueName,
    /// True if it is a topic.
    pub of_topic: bool,
    /// How many messages.
    pub messages: u64,
    /// The oldest of them.
    pub oldest: MessageId,
    /// When that was stored.
    pub created: Nanos,
}

/// One figure.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Its name, without the prefix `dunlin_`.
    pub name: &'static str,
    /// Its meaning.
    pub help: &'static str,
    /// True if it only grows.
    pub is_counter: bool,
    /// How much.
    pub value: u64,
}

/// How long something took.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Its name, without the prefix `dunlin_`.
    pub name: &'static str,
    /// Its meaning.
    pub help: &'static str,
    /// Quantiles and seconds.
    pub quantiles: Vec<(f64, f64)>,
    /// Seconds of all.
    pub sum: f64,
    /// How many.
    pub count: u64,
}
