//! One connection: SASL, sessions, links and transactions of one peer.
//!
//! It reads frames, asks the engine, and words the results. Answers come at two moments. A reply of
//! the engine is handed over at once ([`Connection::handle_reply`]), in the engine's order. It
//! becomes an [`Event`] that is emitted ([`Connection::emit`]) once all that it depends on is
//! durable. An event that depends on less may be emitted before an earlier one. So every count of
//! things on the wire (delivery-ids, windows, credit) is assigned when it is emitted.
//!
//! Answers that order others (begin, attach, detach, end, close) depend on all that any reply has
//! depended on so far. They are emitted in the order in which they were asked for. An answer that
//! needs an order but no engine asks the engine for nothing: it forgets a producer that never was.
//!
//! ```text
//!   Header -> SaslInit -> SaslResponse -> AmqpHeader -> Open -> Identifying -> Ready
//!     |                                                  ^
//!     +--------------------------------------------------+  without SASL
//!   with an offer: SaslInit, SaslResponse, Header -> LoggingIn -> where they lead above, or Closed
//!   Ready -> Leaving           the peer closes; what is under way is emitted, then our close
//!   any   -> Closing -> Closed we close; whatever comes is ignored until the peer's close
//! ```

mod actual;
mod address;
mod arrival;
mod attach;
mod begun;
mod coordinator;
mod departure;
mod disposition;
mod elsewhere;
mod ending;
mod event;
mod flow;
mod handshake;
mod incoming;
mod limits;
mod link;
mod login;
mod options;
mod outgoing;
mod refusal;
mod released_ranges;
mod reply;
mod session;
mod tables;
mod work;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use input::InputBuffer;
use model::{ClientName, Command, DependsOn, LinkId, Nanos, Reply, SessionId, TransactionId};

use crate::error::{Error, condition};
use crate::frame::{self, Frame, FrameKind, Split};
use crate::limits::{FRAME_BYTES_BEFORE_OPEN_MAX, FRAME_BYTES_MIN};
use crate::performative::{Close, Disposition, Performative, Role};

use event::{Awaited, Batch, Fact};
use limits::{
    CLOSE_WAIT, ENDS_BYTES_FREE, FRAME_STEPS, FRAMES_PER_POLL, LOOKED_BYTES_FREE,
    LOOKED_BYTES_PER_STEP, SESSION_BYTES, TRANSACTION_BYTES,
};
use link::Link;
use login::Login;
use session::{Session, SessionKey};
use work::Work;

pub use event::Event;
pub use options::Options;

/// One peer's side of the protocol; the crate's page says how to drive it.
#[derive(Debug)]
pub struct Connection {
    id: SessionId,
    options: Arc<Options>,
    phase: Phase,
    /// The latest moment that was told.
    now: Nanos,
    peer: Peer,
    /// Which session has a channel that the peer speaks on.
    channels: BTreeMap<u16, SessionKey>,
    sessions: BTreeMap<SessionKey, Session>,
    links: BTreeMap<LinkId, Link>,
    /// Bytes of memory that these take.
    link_bytes: usize,
    /// Links by the peer's role and their name (2.6.1).
    names: BTreeMap<(bool, Box<str>), LinkId>,
    sessions_begun: u32,
    links_attached: u32,
    transactions_begun: u64,
    /// Transactions that are open or being ended, and why a part was refused, by us or the engine.
    transactions: BTreeMap<TransactionId, Option<Box<Error>>>,
    /// The next questions for the engine.
    work: VecDeque<Work>,
    awaited: VecDeque<Awaited>,
    /// The same for sends that wait for a place in a queue, by ticket.
    blocked_sends: BTreeMap<u64, Awaited>,
    /// All that any reply has depended on so far.
    latest: DependsOn,
    batch: Option<Batch>,
    held_bytes: usize,
    /// Deliveries may wait for room in the output.
    congested: bool,
    /// Bytes of it.
    room: usize,
    /// The session that filled it last: the next one comes first when there is room again.
    filled_last: SessionKey,
    /// Bytes of input that were left unread.
    unread: usize,
    received_at: Nanos,
    sent_at: Nanos,
    half_sent: bool,
    reading: Reading,
    /// None: every peer may do everything.
    login: Option<Box<Login>>,
}

/// The cost of reading.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    /// Steps that the server has not been told of.
    steps: u64,
    /// There may be a whole frame that was left unread, so that others have their turn.
    is_paused: bool,
}

/// How far the connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Header,
    SaslInit,
    SaslResponse,
    /// The server has to say whether the peer is the user that it says.
    LoggingIn,
    AmqpHeader,
    Open,
    Identifying,
    Ready,
    /// The peer has closed; nothing more is read.
    Leaving,
    /// We have closed, and wait until then for the peer to do so too.
    Closing(Nanos),
    Closed,
}

/// The settings in the peer's open.
#[derive(Debug)]
struct Peer {
    frame_bytes_max: u32,
    channel_max: u16,
    /// It wants to hear of us so often.
    idle_timeout: Option<Nanos>,
    /// Its container, if that is a name.
    client: Option<ClientName>,
    /// The engine knows it by that name.
    is_identified: bool,
}

/// A fault of the peer, and how much of its doing it ends.
enum Fault {
    Connection(Error),
    Session(SessionKey, Error),
    Link(LinkId, Error),
}

impl Connection {
    /// A new connection, which expects the peer's first bytes.
    #[must_use]
    pub fn new(id: SessionId, options: Arc<Options>, now: Nanos) -> Self {
        Self {
            id,
            options,
            phase: Phase::Header,
            now,
            peer: Peer::unknown(),
            channels: BTreeMap::new(),
            sessions: BTreeMap::new(),
            links: BTreeMap::new(),
            link_bytes: 0,
            names: BTreeMap::new(),
            sessions_begun: 0,
            links_attached: 0,
            transactions_begun: 0,
            transactions: BTreeMap::new(),
            work: VecDeque::new(),
            awaited: VecDeque::new(),
            blocked_sends: BTreeMap::new(),
            latest: DependsOn::NOTHING,
            batch: None,
            held_bytes: 0,
            congested: false,
            room: limits::OUTPUT_BYTES_MAX,
            filled_last: SessionKey(0),
            unread: 0,
            received_at: now,
            sent_at: now,
            half_sent: false,
            reading: Reading::default(),
            login: None,
        }
    }

    /// Takes the next command for the engine out of `input`. Frames that need no engine are
    /// answered into `out`. Gives nothing in five cases:
    ///
    /// * `input` holds no whole frame,
    /// * the server has not answered a step of the peer's login,
    /// * the engine has to say whether the connection may be opened,
    /// * the engine has not answered a commit,
    /// * so many frames asked the engine for nothing that other connections should have their turn.
    pub fn poll_command(
        &mut self,
        now: Nanos,
        input: &mut InputBuffer,
        out: &mut Vec<u8>,
    ) -> Option<Command> {
        self.now = self.now.max(now);
        if input.len() != self.unread {
            self.received_at = self.now;
        }
        let mut frames = 0;
        let command = loop {
            if let Some(command) = self.next_work() {
                break Some(command);
            }
            if frames == FRAMES_PER_POLL || !self.read(input, out) {
                break None;
            }
            frames += 1;
        };
        self.reading.is_paused = command.is_none() && frames == FRAMES_PER_POLL;
        self.reading.steps += frames.saturating_sub(1) * FRAME_STEPS;
        self.unread = input.len();
        let is_part = !input.is_empty() && !self.is_committing() && !self.reading.is_paused;
        let is_part = is_part && self.phase != Phase::LoggingIn;
        self.half_sent = command.is_none() && (is_part || self.is_greeting());
        command
    }

    /// Steps of some 50 ns that reading took since the last call, beside those that the engine
    /// counts for commands.
    pub fn take_steps(&mut self) -> u64 {
        core::mem::take(&mut self.reading.steps)
    }

    /// Counts bytes that were looked at one by one. The bytes of a usual frame cost nothing extra.
    fn looked_at(&mut self, bytes: usize) {
        let beyond = bytes.saturating_sub(LOOKED_BYTES_FREE);
        self.reading.steps += (beyond / LOOKED_BYTES_PER_STEP) as u64;
    }

    /// Takes a reply of the engine, in the very order in which the engine made them. Gives the
    /// event for the peer, and the position that has to be durable before. It may make commands:
    /// [`Connection::has_more`] tells.
    ///
    /// # Panics
    /// When no reply is awaited: it would be taken for the answer to something else.
    pub fn handle_reply(&mut self, after: DependsOn, reply: Reply) -> Option<(DependsOn, Event)> {
        self.latest = self.latest.and(after);
        let (after, fact) = self.conclude(after, reply)?;
        debug_assert!(self.latest.and(after) == self.latest, "nothing waits for the future");
        Some((after, Event(fact)))
    }

    /// Tells an event, now that all that it depends on is durable. Events that are due at the same
    /// time are told in the order in which they were given. [`Connection::flush`] has to follow
    /// before `out` is sent; it may make commands.
    pub fn emit(&mut self, event: Event, out: &mut Vec<u8>) {
        if matches!(self.phase, Phase::Closing(_) | Phase::Closed) {
            return;
        }
        match event.0 {
            Fact::Opened => self.emit_open(out),
            Fact::OpenRefused(error) => self.refuse_open(*error, out),
            Fact::Begun(session) => self.emit_begin(session, out),
            Fact::Attached(link) => self.emit_attach(link, out),
            Fact::AttachRefused(link, error) => self.emit_refusal(link, error, out),
            Fact::Detached(link, how) => self.emit_detach(link, how, out),
            Fact::Ended(session, error) => self.emit_end(session, error, out),
            Fact::Closed => self.emit_close(out),
            Fact::Answered(incoming, answer) => self.emit_answer(&incoming, answer, out),
            Fact::Answerable(link) => self.renew_credit(link, out),
            Fact::Settled(session, delivery, answer) => {
                self.emit_settled(session, delivery, answer, out);
            }
            Fact::Delivered(mut delivery) => {
                delivery.tell_by(&self.options.wall_clock);
                self.emit_delivery(&delivery, out);
            }
            Fact::Drained(link, drain) => self.emit_drained_later(link, drain, out),
        }
    }

    /// Writes the answers that [`Connection::emit`] keeps so that one frame tells as much as
    /// several. Goes on with deliveries that found no room in `out` before.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        self.flush_answers(out);
        self.send_congested(out);
    }

    fn flush_answers(&mut self, out: &mut Vec<u8>) {
        let Some(batch) = self.batch.take() else { return };
        batch.answer.with_state(|state| {
            let last = (batch.last != batch.first).then_some(batch.last);
            let disposition = Disposition {
                role: batch.role,
                first: batch.first,
                last,
                settled: true,
                state: Some(state),
                batchable: false,
            };
            self.write(batch.channel, &Performative::Disposition(disposition), out);
        });
    }

    /// When [`Connection::handle_timeout`] is to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        match self.phase {
            Phase::Closed => None,
            Phase::Closing(until) => Some(until),
            _ => [self.silence_deadline(), self.heartbeat_deadline()].into_iter().flatten().min(),
        }
    }

    /// The server does not read the peer's bytes, through no fault of the peer's: it is not silent.
    pub fn excuse_silence(&mut self, now: Nanos) {
        self.received_at = self.received_at.max(now);
    }

    /// It is so late: says that we are alive, or gives up a peer that is not (2.4.5).
    pub fn handle_timeout(&mut self, now: Nanos, out: &mut Vec<u8>) {
        self.now = self.now.max(now);
        let is_past = |deadline: Option<Nanos>| deadline.is_some_and(|deadline| deadline <= now);
        if let Phase::Closing(until) = self.phase {
            if until <= now {
                self.phase = Phase::Closed;
            }
        } else if is_past(self.silence_deadline()) {
            let description = "nothing was heard for the idle timeout";
            self.fail(Error::new(condition::RESOURCE_LIMIT_EXCEEDED, description), out);
        } else if is_past(self.heartbeat_deadline()) {
            self.sent_at = self.now;
            frame::write(out, FrameKind::Amqp, 0, |_| ());
        }
    }

    /// The peer will send no more. Unless it has closed before and may wait for our close, it is
    /// lost, and there is nothing to wait for.
    pub fn handle_half_close(&mut self) {
        if self.phase != Phase::Leaving {
            self.phase = Phase::Closed;
        }
    }

    /// Closes the connection, since the server stops (2.8.16).
    pub fn begin_shutdown(&mut self, out: &mut Vec<u8>) {
        match self.phase {
            Phase::Ready | Phase::Leaving => {
                self.fail(Error::new(condition::CONNECTION_FORCED, "the broker stops"), out);
            }
            Phase::Closing(_) => {}
            _ => self.phase = Phase::Closed,
        }
    }

    /// Which session of the engine it is.
    #[must_use]
    pub const fn id(&self) -> SessionId {
        self.id
    }

    /// The connection is to be closed once `out` has been sent.
    #[must_use]
    pub fn wants_close(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// The peer has opened the connection.
    #[must_use]
    pub const fn has_opened(&self) -> bool {
        matches!(self.phase, Phase::Ready | Phase::Leaving)
    }

    /// The last [`poll_command`](Self::poll_command) found a frame that had begun and not ended,
    /// or a connection that is not open yet.
    #[must_use]
    pub const fn half_sent(&self) -> bool {
        self.half_sent
    }

    /// [`poll_command`](Self::poll_command) has something to give without any news.
    #[must_use]
    pub fn has_more(&self) -> bool {
        (self.reading.is_paused || !self.work.is_empty()) && !self.is_committing()
    }

    /// Deliveries wait for room in `out`: [`flush`](Self::flush) has more once that was sent.
    #[must_use]
    pub const fn is_congested(&self) -> bool {
        self.congested
    }

    /// Bytes of messages that have not come whole, of those that wait to be sent, and of copies
    /// that the peer has not settled. Sessions, links (with their selectors) and transactions count
    /// beyond the usual number. Bodies of messages that the engine holds for us lie there anyway,
    /// and do not count.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let ends = self.link_bytes
            + self.sessions.len() * SESSION_BYTES
            + self.transactions.len() * TRANSACTION_BYTES;
        self.held_bytes + ends.saturating_sub(ENDS_BYTES_FREE)
    }
}

/// Reading and writing.
impl Connection {
    /// Reads a header or a frame. Gives whether it did.
    fn read(&mut self, input: &mut InputBuffer, out: &mut Vec<u8>) -> bool {
        match self.phase {
            Phase::Header | Phase::AmqpHeader => self.read_header(input, out),
            Phase::LoggingIn | Phase::Identifying | Phase::Leaving => false,
            Phase::Closed => {
                input.consume(input.len());
                false
            }
            _ if self.is_committing() => false,
            _ => self.read_frame(input, out),
        }
    }

    fn read_frame(&mut self, input: &mut InputBuffer, out: &mut Vec<u8>) -> bool {
        let expects_sasl = self.expects_sasl();
        let split = Frame::split(input.unread(), self.incoming_frame_bytes_max());
        let length = match split {
            Ok(Split::Needs(_)) => return false,
            Ok(Split::Frame { frame, length }) => {
                let handled = self.handle_frame(&frame, out);
                if let Err(fault) = handled {
                    self.handle_fault(fault, out);
                }
                if let Some(login) = self.login.as_mut().filter(|_| expects_sasl) {
                    login.count(length);
                }
                length
            }
            Err(error) => {
                // The start of the next frame cannot be known.
                self.fail(error.into(), out);
                input.len()
            }
        };
        input.consume(length);
        true
    }

    fn handle_frame(&mut self, frame: &Frame<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let expects_sasl = self.expects_sasl();
        if expects_sasl != (frame.kind == FrameKind::Sasl) {
            let description = "a frame of another layer";
            return Err(Fault::Connection(Error::new(condition::NOT_ALLOWED, description)));
        }
        if expects_sasl {
            return self.handle_sasl(frame.body, out);
        }
        if frame.body.is_empty() {
            return Ok(());
        }
        let (performative, payload) = Performative::decode(frame.body).map_err(Fault::from)?;
        self.looked_at(frame.body.len() - payload.len());
        match (self.phase, performative) {
            (Phase::Closing(_), Performative::Close(_)) => self.phase = Phase::Closed,
            (Phase::Closing(_), _) => {}
            (Phase::Open, Performative::Open(open)) => return self.handle_open(&open, out),
            (Phase::Open, _) => return not_allowed("the connection is not open"),
            (_, Performative::Open(_)) => return not_allowed("the connection is open"),
            (_, performative) => return self.dispatch(frame.channel, performative, payload, out),
        }
        Ok(())
    }

    fn dispatch(
        &mut self,
        channel: u16,
        performative: Performative<'_>,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        match performative {
            Performative::Close(_) => {
                self.close_by_peer();
                return Ok(());
            }
            Performative::Begin(begin) => return self.begin(channel, &begin),
            _ => {}
        }
        let Some(&key) = self.channels.get(&channel) else {
            return not_allowed("no session has this channel");
        };
        if let Performative::End(_) = performative {
            self.end_by_peer(channel, key);
            return Ok(());
        }
        let transaction = coordinator::enlisted(&performative);
        if self.sessions.get(&key).is_none_or(|session| session.ending) {
            self.lose_part(transaction);
            return Ok(());
        }
        let handled = match performative {
            Performative::Attach(attach) => self.attach(key, *attach),
            Performative::Flow(flow) => self.handle_flow(key, &flow, out),
            Performative::Transfer(transfer) => self.receive(key, &transfer, payload, out),
            Performative::Disposition(disposition) => self.handle_disposition(key, &disposition),
            Performative::Detach(detach) => self.detach_by_peer(key, &detach),
            _ => unreachable!("what is not of a link was handled above"),
        };
        if let Err(fault) = &handled {
            self.set_rollback_only(transaction, fault.error());
        }
        handled
    }

    fn handle_fault(&mut self, fault: Fault, out: &mut Vec<u8>) {
        match fault {
            Fault::Connection(error) => self.fail(error, out),
            Fault::Session(session, error) => self.end_session(session, error),
            Fault::Link(link, error) => self.detach_link(link, error),
        }
    }

    /// Closes the connection for an error (2.4.3). Forgets the questions to the engine that were
    /// not polled: the end of its session does all that is left.
    fn fail(&mut self, error: Error, out: &mut Vec<u8>) {
        match self.phase {
            Phase::Closing(_) | Phase::Closed => return,
            Phase::Ready | Phase::Leaving | Phase::Identifying | Phase::Open => {}
            _ => {
                self.phase = Phase::Closed;
                return;
            }
        }
        self.flush_answers(out);
        if matches!(self.phase, Phase::Identifying | Phase::Open) {
            self.write_open(out);
        }
        let close = Close { error: Some(Box::new(error)) };
        self.write_unchecked(0, &Performative::Close(close), out);
        self.phase = Phase::Closing(self.now + CLOSE_WAIT);
        self.work.clear();
        self.held_bytes = 0;
        self.congested = false;
        self.sessions.clear();
        self.channels.clear();
        self.links.clear();
        self.link_bytes = 0;
        self.names.clear();
    }

    /// Appends a frame. One that is larger than the peer takes ends the connection instead.
    fn write(&mut self, channel: u16, performative: &Performative<'_>, out: &mut Vec<u8>) {
        self.flush_answers(out);
        let start = out.len();
        self.write_unchecked(channel, performative, out);
        if out.len() - start > self.peer.frame_bytes_max as usize {
            out.truncate(start);
            let description = "an answer does not fit into a frame";
            self.fail(Error::new(condition::FRAME_SIZE_TOO_SMALL, description), out);
        }
    }

    fn write_unchecked(
        &mut self,
        channel: u16,
        performative: &Performative<'_>,
        out: &mut Vec<u8>,
    ) {
        self.sent_at = self.now;
        frame::write(out, FrameKind::Amqp, channel, |out| performative.encode(out));
    }

    /// Adds a delivery to those that one disposition answers, if it is their neighbour.
    fn answer(
        &mut self,
        channel: u16,
        role: Role,
        id: u32,
        answer: event::Answer,
        out: &mut Vec<u8>,
    ) {
        if let Some(batch) = &mut self.batch {
            let is_next = batch.last.wrapping_add(1) == id;
            if is_next && batch.channel == channel && batch.role == role && batch.answer == answer {
                batch.last = id;
                return;
            }
        }
        self.flush_answers(out);
        self.batch = Some(Batch { channel, role, first: id, last: id, answer });
    }

    fn incoming_frame_bytes_max(&self) -> u32 {
        match self.phase {
            Phase::Ready | Phase::Closing(_) => self.options.max_frame_bytes.max(FRAME_BYTES_MIN),
            Phase::SaslInit | Phase::SaslResponse => match &self.login {
                Some(login) => login.frame_bytes_max(),
                None => FRAME_BYTES_BEFORE_OPEN_MAX,
            },
            _ => FRAME_BYTES_BEFORE_OPEN_MAX,
        }
    }

    const fn expects_sasl(&self) -> bool {
        matches!(self.phase, Phase::SaslInit | Phase::SaslResponse)
    }

    /// The next bytes of the peer are part of what comes before the first session.
    const fn is_greeting(&self) -> bool {
        matches!(
            self.phase,
            Phase::Header | Phase::SaslInit | Phase::SaslResponse | Phase::AmqpHeader | Phase::Open
        )
    }

    fn silence_deadline(&self) -> Option<Nanos> {
        let is_open = matches!(self.phase, Phase::Ready);
        self.options.idle_timeout.filter(|_| is_open).map(|span| self.received_at + span)
    }

    fn heartbeat_deadline(&self) -> Option<Nanos> {
        let is_open = matches!(self.phase, Phase::Ready | Phase::Leaving);
        self.peer.idle_timeout.filter(|_| is_open).map(|span| self.sent_at + Nanos(span.0 / 2))
    }
}

impl Fault {
    const fn error(&self) -> &Error {
        match self {
            Self::Connection(error) | Self::Session(_, error) | Self::Link(_, error) => error,
        }
    }
}

impl From<crate::DecodeError> for Fault {
    fn from(error: crate::DecodeError) -> Self {
        Self::Connection(error.into())
    }
}

/// The peer may not do that now; the connection ends.
fn not_allowed<T>(description: &str) -> Result<T, Fault> {
    Err(Fault::Connection(Error::new(condition::NOT_ALLOWED, description)))
}
