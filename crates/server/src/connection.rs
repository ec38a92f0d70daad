//! One connection: its socket, its session and the bytes between the two.
//!
//! The socket is registered edge-triggered, so the connection itself remembers whether it may
//! still be read from or written to. It never blocks and takes no lock: the session is stepped by
//! the reactor, which holds the core.

use std::collections::BTreeSet;
use std::sync::Arc;

use access::{ConnectionId, LoginPeer};
use input::{Beginning, WrongProtocol};
use journal::Durable;
use model::{
    Command, DependsOn, LoginAnswer, LoginOffer, LoginStep, MessageId, Nanos, Output, Principal,
    Reply, Rights, SessionId,
};
use rustix::io::{Errno, read, retry_on_intr};

use crate::address::scheme;
use crate::audit::{AuditActor, LoginTrial};
use crate::buffered::{Buffered, Held};
use crate::client::Client;
use crate::config::Limits;
use crate::connection_permits::ConnectionPermit;
use crate::events::EventSet;
use crate::outgoing::Outgoing;
use crate::peer::{Peer, ProtocolState};
use crate::tls::{Received, Sent, Transport};
use crate::user_quotas::{Seat, UserQuotas};
use crate::wrong_protocol::Head;

/// A peer, as far as the server knows it.
#[derive(Debug)]
pub(crate) struct Connection {
    id: SessionId,
    client: Client,
    transport: Transport,
    permit: ConnectionPermit,
    peer: Peer,
    outgoing: Outgoing,
    /// The socket may hold bytes that were not read.
    readable: bool,
    /// The socket may take bytes.
    writable: bool,
    /// The peer sends no more, or the server reads no more.
    half_closed: HalfClosed,
    /// Reading or writing failed: nothing can be told to the peer any more.
    broken: bool,
    /// It may have whole commands unread: it was stopped by a limit, not by the end of its input.
    unfinished: bool,
    active_at: Nanos,
    half_sent_since: Option<Nanos>,
    /// The bytes in its buffers.
    held: Held,
    /// A command that the broker cannot take before the log has gone on.
    postponed: Option<Box<Command>>,
    /// The server stops, and the peer is to be told when all that came before is answered.
    farewell: bool,
    /// Something was said that has not to wait for the log.
    is_free: bool,
    /// The effect of the server's stop on a waiting command.
    dismissal: WaitCancel,
    /// Present until its first bytes tell its protocol.
    head: Option<Head>,
    /// The protocol of its peer, if another is served.
    wrong: Option<WrongProtocol>,
    /// The peer broke the rules of TLS, or refused the server's certificate.
    tls_failure: Option<Box<rustls::Error>>,
    login: Login,
    /// Its place among the connections of its peer's user.
    seat: Option<Seat>,
    /// Its peer's user is ahead of its rate until then.
    paused_until: Option<Nanos>,
    marks: ListFlags,
}

/// How far the login of a peer has come, as far as its session does not know.
#[derive(Debug, Default)]
struct Login {
    /// To be made once the peer's certificate is known.
    offer: Option<LoginOffer>,
    /// Since when its peer has to agree about keys or to log in; it may have to once more.
    due_since: Option<Nanos>,
    /// The doorkeeper was asked, and knows the connection.
    has_asked: bool,
    /// The step that it was asked for last.
    trial: Option<LoginTrial>,
}

/// How much is known about the end of a peer's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HalfClosed {
    No,
    /// The end is in sight, maybe behind bytes that were not read. The session is to be told.
    Announced,
    /// The session was told.
    Told,
}

/// A command that waits for the acts of others, as the server stops. Its peer waits for no certain
/// time, so it is not told that this time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitCancel {
    No,
    /// Its wait is ended.
    Begun,
    /// It has ended: the rest of the peer's commands is not read.
    Done,
}

/// The cause of a connection's end: it decides whether its deliveries count as failed attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// The peer is gone, or broke one of its duties.
    Lost,
    /// The server stops, or has no memory left for it.
    Dismissed,
}

/// The reactor's lists that a connection is in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ListFlags {
    /// To be read from and stepped in the next turn.
    pub(crate) attention: bool,
    /// Touched in this turn.
    pub(crate) touched: bool,
    /// Gave a command that waits until the log has gone on.
    pub(crate) postponed: bool,
    /// Holds replies that wait for a write.
    pub(crate) holding: bool,
    /// To be closed.
    pub(crate) finished: bool,
    /// The reactor hears when its socket takes bytes again.
    pub(crate) room_watched: bool,
    /// The deadline it is watched for.
    pub(crate) watched: Option<Nanos>,
}

impl Connection {
    pub(crate) fn new(
        id: SessionId,
        client: Client,
        transport: Transport,
        peer: Peer,
        permit: ConnectionPermit,
        now: Nanos,
    ) -> Self {
        Self {
            id,
            client,
            transport,
            permit,
            peer,
            outgoing: Outgoing::default(),
            readable: true,
            writable: true,
            half_closed: HalfClosed::No,
            broken: false,
            // The session opens its producer and consumer before the peer says a word.
            unfinished: true,
            active_at: now,
            half_sent_since: None,
            held: Held::default(),
            postponed: None,
            farewell: false,
            is_free: false,
            dismissal: WaitCancel::No,
            head: Some(Head::default()),
            wrong: None,
            tls_failure: None,
            login: Login { due_since: Some(now), ..Login::default() },
            seat: None,
            paused_until: None,
            marks: ListFlags::default(),
        }
    }

    /// The same for a peer that may have to log in, accepted then.
    pub(crate) fn with_offer(mut self, offer: Option<LoginOffer>, since: Nanos) -> Self {
        self.login.offer = offer;
        self.login.due_since = Some(since);
        self
    }

    pub(crate) const fn id(&self) -> SessionId {
        self.id
    }

    pub(crate) const fn marks(&mut self) -> &mut ListFlags {
        &mut self.marks
    }

    /// The socket has changed.
    pub(crate) fn notice(&mut self, readable: bool, writable: bool, half_closed: bool) {
        self.readable |= readable || half_closed;
        self.writable |= writable;
        if half_closed {
            self.announce_end();
        }
    }

    /// All of the peer's bytes are read.
    fn note_end(&mut self) {
        self.readable = false;
        self.unfinished = true;
        self.announce_end();
    }

    fn announce_end(&mut self) {
        if self.half_closed == HalfClosed::No {
            self.half_closed = HalfClosed::Announced;
        }
    }

    /// Reads once, at most as much as `scratch` holds; nothing while `allowance` or more bytes of
    /// answers are unsent. Tells how many bytes have come.
    pub(crate) fn receive(&mut self, scratch: &mut [u8], allowance: usize, now: Nanos) -> usize {
        if !self.may_receive(allowance) {
            return 0;
        }
        match retry_on_intr(|| read(self.client.socket(), &mut *scratch)) {
            Ok(0) => self.note_end(),
            Ok(count) => {
                // A socket that gave less has no more, and tells when it does; but its end tells
                // only once.
                self.readable = count == scratch.len() || self.half_closed != HalfClosed::No;
                self.active_at = now;
                self.unfinished = true;
                if let Some(seat) = &self.seat {
                    self.paused_until = seat.charge_bytes(now, count as u64).max(self.paused_until);
                }
                let received = scratch.get(..count).unwrap_or_default();
                self.take_received(received);
                return count;
            }
            Err(Errno::AGAIN) => self.readable = false,
            Err(_) => self.broken = true,
        }
        0
    }

    fn take_received(&mut self, received: &[u8]) {
        let mut transport = std::mem::replace(&mut self.transport, Transport::Plain);
        let taken = transport.receive(received, |plain| self.take_plain(plain));
        self.transport = transport;
        match taken {
            Ok(Received { is_end, is_handshake }) => {
                if is_end {
                    self.note_end();
                }
                // The peer waits for the server's part of the handshake, and nothing else does.
                if is_handshake {
                    self.broken |= self.transport.send(self.client.socket(), &[]).is_err();
                }
            }
            Err(error) => {
                self.tls_failure = Some(Box::new(error));
                // An alert tells the peer.
                let _ = self.transport.send(self.client.socket(), &[]);
                self.broken = true;
            }
        }
    }

    /// True while the peer may be anybody: it agrees with the server about keys, or has not logged
    /// in where it has to.
    pub(crate) fn is_stranger(&self) -> bool {
        self.transport.is_handshaking() || self.login.offer.is_some() || self.peer.needs_login()
    }

    fn take_plain(&mut self, plain: &[u8]) {
        self.look_at_beginning(plain);
        if !self.broken {
            self.peer.append(plain);
        }
    }

    /// A client of another protocol is closed before its bytes are taken for commands.
    fn look_at_beginning(&mut self, received: &[u8]) {
        let Some(head) = &mut self.head else { return };
        let found = head.append(received);
        if found == Beginning::TooShort {
            return;
        }
        self.head = None;
        if let Beginning::Of(wrong) = found
            && !self.peer.may_begin(wrong)
        {
            self.wrong = Some(wrong);
            self.broken = !self.peer.answers(wrong);
        }
    }

    /// The protocol of its peer, if another is served: it is, or will be, closed for that.
    pub(crate) fn wrong_protocol(&self) -> Option<WrongProtocol> {
        self.wrong.or_else(|| self.peer.speaks_http().then_some(WrongProtocol::Http))
    }

    /// The reason why TLS failed, if it did.
    pub(crate) fn tls_failure(&self) -> Option<&rustls::Error> {
        self.tls_failure.as_deref()
    }

    /// Its name for operators.
    pub(crate) fn name(&self) -> Arc<str> {
        self.client.name(scheme(self.peer.protocol(), self.transport.is_tls()))
    }

    fn may_receive(&self, allowance: usize) -> bool {
        self.readable
            && !self.broken
            && self.paused_until.is_none()
            && self.peer.input_bytes() <= INPUT_BYTES_MAX
            && !self.is_backlogged(allowance)
    }

    /// True if the peer leaves so much unread that its commands must wait.
    fn is_backlogged(&self, allowance: usize) -> bool {
        self.outgoing.len() >= allowance
    }

    /// From here on the input that is there is all there will be: the server stops.
    pub(crate) fn abandon_input(&mut self) {
        self.note_end();
        self.farewell = true;
    }

    /// The next command for the broker.
    pub(crate) fn next_command(
        &mut self,
        now: Nanos,
        commons: &mut ProtocolState,
        allowance: usize,
    ) -> Option<Command> {
        if self.broken || self.paused_until.is_some() || self.is_backlogged(allowance) {
            return None;
        }
        if let Some(command) = self.postponed.take() {
            return Some(*command);
        }
        // A session opens links only for a peer that has come through the handshake.
        if self.transport.is_handshaking() {
            return self.end_of_input();
        }
        if let Some(offer) = self.login.offer.take() {
            let certificate = !self.transport.certificate_names().is_empty();
            self.peer.set_offer(LoginOffer { certificate, ..offer }, commons);
        }
        let (before, is_held) = (self.outgoing.len(), self.outgoing.is_held());
        let command = self.peer.poll_command(now, commons, &mut self.outgoing);
        if self.permit.is_silent() && self.peer.has_spoken() && !self.peer.needs_login() {
            self.permit.note_command();
        }
        if command.is_some() || self.outgoing.len() > before {
            // The command has ended: half-sent bytes now belong to another.
            self.half_sent_since = None;
        }
        self.is_free |= !is_held && self.outgoing.len() > before;
        command.or_else(|| self.end_of_input())
    }

    /// The next step of its peer's login, for the doorkeeper.
    pub(crate) fn poll_login(&mut self) -> Option<(LoginPeer, LoginStep)> {
        let step = self.peer.poll_login()?;
        self.login.has_asked = true;
        self.login.trial = Some(LoginTrial::of(&step, self.client.introduction()));
        let peer = LoginPeer {
            connection: ConnectionId(self.id.0),
            address: self.client.address(),
            certificate: self.transport.certificate_names().into(),
            introduction: self.client.introduction().clone(),
        };
        Some((peer, step))
    }

    /// True if the doorkeeper may know it.
    pub(crate) const fn has_asked_doorkeeper(&self) -> bool {
        self.login.has_asked
    }

    /// Takes the answer to a step of its peer's login.
    pub(crate) fn handle_login(&mut self, answer: LoginAnswer, commons: &mut ProtocolState) {
        self.is_free |= !self.outgoing.is_held();
        self.peer.handle_login(answer, commons, &mut self.outgoing);
        self.unfinished = true;
    }

    /// Its place among the connections of its user.
    pub(crate) const fn take_seat(&mut self) -> Option<Seat> {
        self.seat.take()
    }

    /// Its user has, or has not, a place for it.
    pub(crate) fn set_seat(&mut self, seat: Option<Seat>) {
        self.seat = seat;
    }

    /// The server stops: what its peer has sent does not wait for its user's rates.
    pub(crate) fn leave_seat(&mut self) {
        (self.seat, self.paused_until) = (None, None);
    }

    /// Its peer may have become the user again that it was without a word, or none.
    pub(crate) fn keep_seat_of(&mut self, principal: &Principal, quotas: &UserQuotas) {
        if self.seat.as_ref().map(|seat| seat.rights().user()) != principal.user() {
            self.seat = principal.rights().map(|rights| quotas.seat_again(rights));
        }
    }

    /// Its peer has given a command, or several as one.
    pub(crate) fn charge_commands(&mut self, now: Nanos, command: &Command) {
        if let Some(seat) = &self.seat {
            self.paused_until = seat.charge_commands(now, command.count()).max(self.paused_until);
        }
    }

    /// True if its peer's user has waited long enough: it is to be read from again.
    pub(crate) fn end_pause(&mut self, now: Nanos) -> bool {
        self.paused_until.take_if(|until| *until <= now).is_some()
    }

    /// The one for whom its peer's commands are done from now on, if that has changed.
    pub(crate) fn take_principal(&mut self) -> Option<Principal> {
        self.peer.take_principal()
    }

    /// The one for whom they are done.
    pub(crate) fn principal(&self) -> Principal {
        self.peer.principal()
    }

    /// The peer as the audit log tells of it, as this user.
    pub(crate) fn audit_actor<'a>(&self, user: Option<&'a str>) -> AuditActor<'a> {
        let protocol = self.peer.protocol().name();
        let from = self.client.socket_address();
        AuditActor { user, from, protocol }
    }

    /// The login that the doorkeeper was asked for last.
    pub(crate) const fn login_trial(&self) -> Option<&LoginTrial> {
        self.login.trial.as_ref()
    }

    /// The rights of its peer's user have changed.
    pub(crate) fn set_rights(&mut self, rights: Arc<Rights>, commons: &mut ProtocolState) {
        if self.seat.as_mut().is_some_and(|seat| seat.set_rights(Arc::clone(&rights))) {
            self.paused_until = None;
        }
        self.peer.set_rights(rights, commons);
    }

    /// The cost of reading its peer's bytes beside the broker's steps, since the last call.
    pub(crate) fn take_steps(&mut self) -> u64 {
        self.peer.take_steps()
    }

    /// The broker cannot take the command that was given last: it comes again as the next.
    pub(crate) fn postpone(&mut self, command: Command) {
        self.postponed = Some(Box::new(command));
    }

    /// True if it has nothing to give before the log has gone on.
    pub(crate) fn is_postponed(&self) -> bool {
        self.postponed.is_some()
    }

    /// All commands that are there were given.
    fn end_of_input(&mut self) -> Option<Command> {
        self.unfinished = self.peer.has_more();
        if self.unfinished || self.half_closed != HalfClosed::Announced {
            return None;
        }
        self.half_closed = HalfClosed::Told;
        if !self.farewell {
            return self.peer.half_close();
        }
        let command = self.peer.stop_waiting();
        if command.is_some() {
            self.dismissal = WaitCancel::Begun;
        }
        command
    }

    /// Encodes a reply of the broker, and holds it until the log is as durable as it needs. Returns
    /// the position the peer depends on: none if the peer is not told.
    pub(crate) fn reply(
        &mut self,
        output: Output,
        commons: &mut ProtocolState,
        durable: Durable,
    ) -> DependsOn {
        assert!(output.session == self.id, "invariant: replies reach their own session");
        if self.dismissal == WaitCancel::Begun && gives_up(&output.reply) {
            self.dismissal = WaitCancel::Done;
            return DependsOn::NOTHING;
        }
        self.is_free |= durable.covers(output.after) && !self.outgoing.is_held();
        let awaited = self.peer.reply(output, commons, &mut self.outgoing);
        self.broken |= self.peer.is_cut_off();
        self.unfinished |= self.peer.input_bytes() > 0 || self.peer.has_more();
        awaited
    }

    /// Sends the bytes that are durable enough, in one call. Deliveries become answers only while
    /// the unsent ones come to less than `allowance`. Returns true if some bytes had not to wait
    /// for the log.
    pub(crate) fn send(&mut self, durable: Durable, allowance: usize, now: Nanos) -> bool {
        self.unfinished |= self.peer.release(durable, allowance, &mut self.outgoing);
        if self.farewell && !self.unfinished && !self.peer.is_holding() {
            self.farewell = false;
            self.peer.say_farewell(&mut self.outgoing);
        }
        let is_free = std::mem::take(&mut self.is_free);
        let released = self.outgoing.released(durable);
        let is_empty = released.is_empty() && !self.transport.wants_write();
        if is_empty || !self.writable || self.broken {
            return false;
        }
        match self.transport.send(self.client.socket(), released) {
            Ok(Sent { taken, is_writable }) => {
                self.writable = is_writable;
                if taken > 0 {
                    self.active_at = now;
                }
                self.outgoing.consume(taken);
            }
            Err(_) => self.broken = true,
        }
        is_free
    }

    /// Has the reactor hear when the socket takes bytes again, as long as it takes none.
    pub(crate) fn watch_room(&mut self, events: &EventSet) {
        let watch = !self.writable;
        if watch == self.marks.room_watched || self.broken {
            return;
        }
        self.marks.room_watched = watch;
        // Without memory for it nothing more could be sent.
        self.broken |= events.watch_room(self.client.socket(), self.id, watch).is_err();
    }

    /// Counts the bytes in its buffers now, unless it is to be closed.
    pub(crate) fn recount(&mut self, buffered: &Buffered) {
        if self.marks.finished {
            return;
        }
        let postponed = self.postponed.as_ref().map_or(0, |command| command.body_bytes());
        let answers = self.outgoing.held_bytes();
        let sending = self.transport.unsent_bytes();
        let held = self.peer.input_bytes() + self.peer.held_bytes() + answers + postponed + sending;
        self.held.recount(held, answers, buffered);
    }

    /// Keeps the connection open beyond the bound, if it holds an answer that may exceed all
    /// bounds.
    pub(crate) fn go_beyond(&mut self, buffered: &Buffered) -> bool {
        self.held.go_beyond(self.outgoing.held_bytes(), buffered)
    }

    /// It will be closed for its buffered bytes, which count no more. Its answers are dropped at
    /// once, its input together with the connection.
    pub(crate) fn let_go(&mut self, buffered: &Buffered) {
        self.broken = true;
        self.outgoing = Outgoing::default();
        self.held.recount(0, 0, buffered);
    }

    /// Bytes in its buffers that count against the bound, as they were counted last.
    pub(crate) const fn held(&self) -> usize {
        self.held.bounded()
    }

    /// When its peer sent or took something the last time.
    pub(crate) const fn active_at(&self) -> Nanos {
        self.active_at
    }

    /// Bytes of answers that have not left.
    pub(crate) fn unsent(&self) -> usize {
        self.outgoing.len()
    }

    /// True if it holds replies that wait for a write.
    pub(crate) fn is_held(&self) -> bool {
        (self.outgoing.is_held() || self.peer.is_holding()) && !self.broken
    }

    /// True if the next turn has something to do for it without any news.
    pub(crate) fn needs_attention(&self, allowance: usize) -> bool {
        self.may_receive(allowance)
            || (self.peer.is_congested() && self.outgoing.is_empty() && !self.broken)
            || (self.unfinished && !self.broken && !self.is_backlogged(allowance))
                && self.paused_until.is_none()
                && !self.is_postponed()
    }

    /// True if its peer asks for nothing more: all that it sent was read, and its end is known.
    pub(crate) fn has_hung_up(&self) -> bool {
        let is_over = self.half_closed != HalfClosed::No && !self.readable;
        let is_read = self.peer.input_bytes() == 0 && !self.peer.has_more();
        self.broken || is_over && is_read && !self.is_postponed()
    }

    /// True if it is to be closed as soon as its answers are sent.
    pub(crate) fn is_ending(&self) -> bool {
        self.broken || self.half_closed == HalfClosed::Told || self.peer.wants_close()
    }

    /// True if nothing can come of it any more.
    pub(crate) fn is_finished(&self) -> bool {
        let told = self.half_closed == HalfClosed::Told && !self.readable && !self.unfinished;
        let answered = told && !self.peer.awaits_reply() || self.dismissal == WaitCancel::Done;
        let is_sent = self.outgoing.is_empty() && !self.transport.wants_write();
        let silent = is_sent && !self.peer.is_holding() && !self.is_postponed();
        self.broken || ((answered || self.peer.wants_close()) && silent)
    }

    /// Notes whether a command is half sent, and tells when the connection is to be closed for it
    /// or for silence, unless something happens before.
    pub(crate) fn deadline(&mut self, limits: &Limits, now: Nanos) -> Option<Nanos> {
        // The rest may have come: the server does not read it.
        let is_half_sent = self.peer.half_sent() && self.paused_until.is_none();
        self.half_sent_since = is_half_sent.then(|| self.half_sent_since.unwrap_or(now));
        let half_sent = self
            .half_sent_since
            .zip(limits.half_sent)
            .map(|(since, limit)| since + crate::clock::nanos(limit));
        let idle = limits.idle.filter(|_| !self.is_owed());
        let idle = idle.map(|limit| self.active_at + crate::clock::nanos(limit));
        self.login.due_since = self.is_stranger().then(|| self.login.due_since.unwrap_or(now));
        let login = self.login.due_since.map(|since| since + LOGIN_SPAN_MAX);
        let is_leaving = self.paused_until.is_some() && self.half_closed != HalfClosed::No;
        let left = is_leaving.then(|| self.active_at + LEFT_SPAN_MAX);
        let all = [half_sent, idle, self.peer.poll_timeout(), login, self.paused_until, left];
        all.into_iter().flatten().min()
    }

    /// Returns true if the peer may be silent: it waits for an answer, or for a publication.
    fn is_owed(&self) -> bool {
        let is_waiting = self.is_postponed() || self.paused_until.is_some();
        is_waiting || self.is_held() || self.peer.awaits_reply() || self.peer.listens()
    }

    /// Tells the protocol the time. Returns true if that had an effect.
    pub(crate) fn handle_timeout(&mut self, now: Nanos) -> bool {
        let is_unheard = self.is_postponed() || self.paused_until.is_some();
        self.peer.handle_timeout(now, is_unheard, &mut self.outgoing)
    }

    /// See [`Peer::begun`].
    pub(crate) fn begun(&self) -> Option<BTreeSet<MessageId>> {
        self.peer.begun()
    }

    /// Ends the session's part; the broker's is the reactor's to end.
    pub(crate) fn close(mut self, commons: &mut ProtocolState, buffered: &Buffered) {
        self.held.recount(0, 0, buffered);
        if !self.broken {
            self.transport.close(self.client.socket());
        }
        self.peer.close(commons);
    }
}

/// True if it says of a command that waited that nothing came of it.
fn gives_up(reply: &Reply) -> bool {
    match reply {
        Reply::TimedOut { .. } => true,
        Reply::Late { reply, .. } => {
            matches!(**reply, Reply::TimedOut { .. } | Reply::Refused(_))
        }
        _ => false,
    }
}

/// With so many bytes of input that wait for the session there is one more read. The session takes
/// bodies out as they arrive, so more input only waits behind a command that waits. But a line may
/// be as long, and only the next byte tells if it ends or is too long.
const INPUT_BYTES_MAX: usize = 64 * 1024;

/// How long a peer that sends no more keeps its place while its user is ahead of its rate.
const LEFT_SPAN_MAX: Nanos = Nanos::from_secs(60);

/// The time in which a peer and the server agree about keys and the peer logs in, from the accepted
/// connection on, or since it gave its login back.
pub(crate) const LOGIN_SPAN_MAX: Nanos = Nanos::from_secs(10);

#[cfg(test)]
#[path = "connection_test.rs"]
mod tests;
