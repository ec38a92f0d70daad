//! From a request to its answer.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::body::{Body as _, Incoming};
use hyper::header::{
    ALLOW, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, TRANSFER_ENCODING,
};
use hyper::{Method, Request, StatusCode};
use model::{
    Command, Envelopes, Introduction, LoginOffer, NotPermitted, Principal, QueueName, Refusal,
    Reply, Right,
};
use serde::Serialize;
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::body::{Answer, Body, Reader};
use crate::byte_budget::ByteBudget;
use crate::byte_share::Hangup;
use crate::departure::Asker;
use crate::gateway::{Actor, ConnectionPermit, Gateway, Work};
use crate::latest::Latest;
use crate::memory_gauge::{MemoryGauge, REQUEST_BYTES};
use crate::open::Open;
use crate::origin::{self, AllowedHost, Caller};
use crate::problem::{Problem, Result};
use crate::query::{Query, segments};
use crate::route::Resource;

/// The operator's options.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of one message with its envelope.
    pub message_bytes_max: usize,
    /// Bytes that requests and unread answers hold: half of it for sends, an eighth for all other
    /// requests, a quarter for answers, an eighth for events.
    pub buffered_bytes: usize,
    /// How long a client waits for room there.
    pub block_timeout: Duration,
    /// How long a request may pause in the middle; `None`: for ever.
    pub half_sent: Option<Duration>,
    /// How long a connection may have no request open; `None`: for ever.
    pub idle: Option<Duration>,
    /// How long clients have for their last answers when the server stops.
    pub stop: Duration,
    /// Names by which requests may call the server, beside addresses and `localhost`.
    pub allowed_hosts: Vec<AllowedHost>,
    /// How to look into messages, and to make those that have properties.
    pub envelopes: Envelopes,
    /// The count of bytes that requests and answers hold.
    pub held_bytes: Arc<AtomicUsize>,
}

/// The options that may change while the server runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adjustable {
    /// See [`Options::half_sent`].
    pub half_sent: Option<Duration>,
    /// See [`Options::idle`].
    pub idle: Option<Duration>,
    /// See [`Options::allowed_hosts`].
    pub allowed_hosts: Vec<AllowedHost>,
}

impl Options {
    /// Takes over what has changed; those that share them keep theirs.
    fn adjust(shared: &mut Arc<Self>, now: Adjustable) {
        let Adjustable { half_sent, idle, allowed_hosts } = now;
        let is_same = (half_sent, idle) == (shared.half_sent, shared.idle);
        if !is_same || allowed_hosts != shared.allowed_hosts {
            let options = Arc::make_mut(shared);
            (options.half_sent, options.idle) = (half_sent, idle);
            options.allowed_hosts = allowed_hosts;
        }
    }

    /// Bytes of a request that holds several messages.
    pub(crate) fn batch_bytes_max(&self) -> usize {
        (2 * self.buffered_bytes.max(self.message_bytes_max)).min(BATCH_BYTES_MAX)
    }

    /// Memory for the messages that the lines of one request make.
    pub(crate) fn lines_bytes_max(&self) -> usize {
        2 * self.batch_bytes_max()
    }

    /// Memory for the JSON of one transaction.
    pub(crate) fn json_bytes_max(&self) -> usize {
        8 * self.batch_bytes_max()
    }
}

/// Answers requests.
#[derive(Clone)]
pub(crate) struct App<G> {
    pub(crate) gateway: G,
    pub(crate) options: Arc<Options>,
    /// Those of new connections, which all share them.
    current: Arc<Mutex<Arc<Options>>>,
    pub(crate) open: Open,
    pub(crate) budget: ByteBudget,
    pub(crate) reader: Reader,
    pub(crate) latest: Latest,
    /// The one for whom requests are answered.
    actor: Actor,
}

/// The connection that a request came by.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// It came to an address that only this machine reaches.
    pub(crate) over_loopback: bool,
    /// The address of its client; `None`: it came by a socket in the file system.
    pub(crate) address: Option<SocketAddr>,
    /// Its client has to log in.
    pub(crate) offer: Option<LoginOffer>,
    /// The verified certificate of its client, in DER.
    pub(crate) certificate: Option<Arc<[u8]>>,
    /// The one that its client is before it says a word.
    pub(crate) introduction: Introduction,
    /// Closes it.
    pub(crate) hangup: Hangup,
    /// Its client, which may leave.
    pub(crate) asker: Asker,
    /// Its place among all connections.
    pub(crate) permit: SharedPermit,
}

/// The place of a connection, kept until that has ended and its requests too.
#[derive(Clone)]
pub(crate) struct SharedPermit(Arc<Place<dyn ConnectionPermit>>);

struct Place<P: ?Sized> {
    /// A request of it has logged in, or asked what everybody may ask.
    has_entered: AtomicBool,
    permit: P,
}

impl SharedPermit {
    pub(crate) fn new(permit: impl ConnectionPermit) -> Self {
        Self(Arc::new(Place { has_entered: AtomicBool::new(false), permit }))
    }

    /// False as long as its client may be anybody who wants to take a place.
    pub(crate) fn has_entered(&self) -> bool {
        self.0.has_entered.load(Ordering::Relaxed)
    }

    fn note_request(&self, by: &Principal) {
        self.0.has_entered.store(true, Ordering::Relaxed);
        if *by != Principal::Stranger {
            self.0.permit.note_request();
        }
    }
}

impl fmt::Debug for SharedPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedPermit").finish_non_exhaustive()
    }
}

/// A request, its path and query understood.
pub(crate) struct Asked {
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) caller: Caller,
    pub(crate) peer: Peer,
    body: Incoming,
}

impl Peer {
    /// Its client has shown these certificates, its own first, and they were verified.
    pub(crate) fn show(&mut self, certificates: Option<&[CertificateDer<'static>]>) {
        self.certificate = certificates.and_then(<[_]>::first).map(|it| Arc::from(it.as_ref()));
        if let Some(offer) = &mut self.offer {
            offer.certificate = self.certificate.is_some();
        }
    }
}

impl<G: Gateway> App<G> {
    pub(crate) fn new(gateway: G, options: Options) -> Self {
        // As much again as all that they say and are answered, and half of the receives that may
        // wait: so many connections of one request each find a place.
        let open = Open::new(options.buffered_bytes);
        let Options { buffered_bytes, block_timeout, held_bytes, .. } = &options;
        let budget = ByteBudget::new(*buffered_bytes, *block_timeout, held_bytes);
        let reader = Reader { budget: budget.clone(), idle: options.half_sent };
        let (options, latest) = (Arc::new(options), Latest::default());
        let current = Arc::new(Mutex::new(Arc::clone(&options)));
        // Until a request comes the broker itself asks, to sample its figures.
        let actor = Actor::default();
        Self { gateway, options, current, open, budget, reader, latest, actor }
    }

    /// For a new connection, which keeps the options that hold when it comes.
    pub(crate) fn adjusted(mut self) -> Self {
        if let Some(now) = self.gateway.adjustable() {
            let mut current = self.current.lock().expect("invariant: no task panics with them");
            Options::adjust(&mut current, now);
            self.options = Arc::clone(&current);
            self.reader.idle = self.options.half_sent;
        }
        self
    }

    /// Answers one request of a connection, of any kind.
    pub(crate) async fn answer(&self, request: Request<Incoming>, peer: Peer) -> Answer {
        let _counted = MemoryGauge::new(&self.options.held_bytes, REQUEST_BYTES);
        let is_head = request.method() == Method::HEAD;
        let answer = self.try_answer(request, peer).await.and_then(|answer| self.hold(answer));
        let answer = answer.unwrap_or_else(|problem| problem.answer());
        if is_head { head_alone(answer) } else { answer }
    }

    fn hold(&self, answer: Answer) -> Result<Answer> {
        let (head, body) = answer.into_parts();
        Ok(Answer::from_parts(head, body.held(&self.budget.answers)?))
    }

    async fn try_answer(&self, request: Request<Incoming>, peer: Peer) -> Result<Answer> {
        let (head, body) = request.into_parts();
        let caller = origin::check(&head, &self.options.allowed_hosts, peer.over_loopback)?;
        check_coding(&head.headers)?;
        let segments = segments(head.uri.path());
        let is_probe = segments.as_ref().is_ok_and(|segments| is_probe(&head.method, segments));
        let principal = match peer.offer {
            None => Principal::Everyone,
            Some(_) if is_probe => Principal::Stranger,
            Some(offer) => self.log_in(&head.headers, &peer, offer).await?,
        };
        peer.permit.note_request(&principal);
        if head.method == Method::OPTIONS && head.uri.path() == "*" {
            return Ok(allowed(ANY_METHODS));
        }
        let resource = Resource::of_path(head.uri.path(), segments)?;
        resource.check(&head.method)?;
        if head.method == Method::OPTIONS {
            return Ok(allowed(resource.methods()));
        }
        let actor = Actor { principal, from: peer.address };
        let query = Query::parse(head.uri.query())?;
        let asked = Asked { query, headers: head.headers, caller, peer, body };
        // The rest of the head is not kept for as long as the answer takes.
        let method = if head.method == Method::HEAD { Method::GET } else { head.method };
        drop(head.uri);
        Self { actor, ..self.clone() }.dispatch(&method, resource, asked).await
    }

    async fn dispatch(&self, method: &Method, at: Resource, asked: Asked) -> Result<Answer> {
        match at {
            Resource::Index => self.index(asked),
            Resource::Health => self.health(asked),
            Resource::Ready => self.ready(asked),
            Resource::Metrics => self.metrics(asked).await,
            Resource::OpenApi => self.open_api(asked),
            Resource::Journal => self.journal(asked).await,
            Resource::Queues => self.queues(asked).await,
            Resource::Queue(queue) if method == Method::DELETE => {
                self.delete_queue(queue, asked).await
            }
            Resource::Queue(queue) => self.queue(queue, asked).await,
            Resource::Messages(queue) if method == Method::POST => {
                self.send(model::Destination::Queue(queue), asked).await
            }
            Resource::Messages(queue) => self.receive_or_browse(queue, asked).await,
            Resource::Purge(queue) => self.purge(queue, asked).await,
            Resource::Move(queue) => self.move_messages(queue, asked).await,
            Resource::Policies => self.policies(asked).await,
            Resource::Policy(queue) => match *method {
                Method::GET => self.policy(queue, asked).await,
                Method::DELETE => self.reset_policy(queue, asked).await,
                _ => self.change_policy(method, queue, asked).await,
            },
            Resource::Message(id) => self.message(id, asked).await,
            Resource::Lease(token) => self.accept(token, asked).await,
            Resource::LeaseAction(token, action) => self.act(token, action, asked).await,
            Resource::Topics => self.topics(asked).await,
            Resource::TopicMessages(topic) => {
                self.send(model::Destination::Topic(topic), asked).await
            }
            Resource::TopicEvents(topic) => self.events(topic, asked).await,
            Resource::Subscriptions => self.subscriptions(asked).await,
            Resource::Subscription(name) => self.unsubscribe(name, asked).await,
            Resource::Tables => self.tables(asked).await,
            Resource::Table(table) => self.table(table, asked).await,
            Resource::TableKey(at) => self.table_key(method, at, asked).await,
            Resource::Transactions => self.transact(asked).await,
        }
    }

    /// Has a work done for the client of the request.
    pub(crate) async fn ask(&self, work: Work) -> Result<Vec<Reply>> {
        Ok(self.gateway.ask(self.actor.clone(), work).await?)
    }

    /// The one for whom the request is answered.
    pub(crate) const fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Lets those pass who may use what belongs to the broker as a whole.
    ///
    /// # Errors
    /// 403 for others.
    pub(crate) fn check_operator(&self) -> Result<()> {
        if self.actor.principal.may_operate() {
            return Ok(());
        }
        let (user, right) = (self.actor.principal.user().cloned(), Right::Operate);
        Err(Refusal::NotPermitted(Box::new(NotPermitted { user, right, name: None })).into())
    }

    /// True if the client may look at a name.
    pub(crate) fn sees(&self, name: &QueueName) -> bool {
        self.actor.principal.on(name.as_str(), None).contains(Right::Look)
    }

    /// One command, and its reply, which is no refusal.
    pub(crate) async fn command(&self, command: Command) -> Result<Reply> {
        let mut replies = self.ask(Work::command(command)).await?;
        match replies.pop() {
            Some(Reply::Refused(refusal)) => Err(refusal.into()),
            Some(reply) => Ok(reply),
            None => Err(Problem::busy()),
        }
    }
}

impl Asked {
    /// The body; everything else has to be understood by now.
    pub(crate) fn into_body(self) -> Result<Incoming> {
        self.query.finish()?;
        Ok(self.body)
    }
}

/// The answer to `HEAD`: all but the body, with the body's length.
fn head_alone(answer: Answer) -> Answer {
    let length = answer.body().size_hint().exact().map(HeaderValue::from);
    let mut answer = answer.map(|_| Body::Sent);
    answer.headers_mut().extend(length.map(|length| (CONTENT_LENGTH, length)));
    answer
}

/// True if it needs no login: a load balancer that checks the server has no user, and learns of no
/// message.
fn is_probe(method: &Method, segments: &[String]) -> bool {
    match segments {
        [] => method == Method::OPTIONS,
        [one] => PROBES.contains(&one.as_str()),
        _ => false,
    }
}

/// Refuses a body with a transfer coding other than `chunked`: the broker would store the coded
/// bytes unnoticed.
fn check_coding(headers: &HeaderMap) -> Result<()> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).into_iter();
    if codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked")) {
        return Ok(());
    }
    Err(Problem::not_implemented("of transfer codings only chunked is known"))
}

/// The answer to `OPTIONS`: the allowed methods.
fn allowed(methods: &'static str) -> Answer {
    let mut answer = no_content();
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    answer
}

/// An answer that is JSON.
pub(crate) fn json(status: StatusCode, json: &impl Serialize) -> Answer {
    let text = serde_json::to_string(json).expect("invariant: what is answered has a text");
    let mut answer = Answer::new(Body::from(text));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// An answer that is text of some kind.
pub(crate) fn text(kind: &'static str, text: impl Into<bytes::Bytes>) -> Answer {
    let mut answer = Answer::new(Body::from(text));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// An answer that says nothing but that it was done.
pub(crate) fn no_content() -> Answer {
    let mut answer = Answer::new(Body::Sent);
    *answer.status_mut() = StatusCode::NO_CONTENT;
    answer
}

/// All methods that any resource allows.
const ANY_METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// The paths of the checks that the server lives, and takes messages.
const PROBES: [&str; 2] = ["health", "ready"];

/// Bytes of a request that holds several messages, if there is memory for it.
const BATCH_BYTES_MAX: usize = 64 * 1024 * 1024;
