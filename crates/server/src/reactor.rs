//! One reactor: a thread that owns some connections and serves them in turns.
//!
//! [`Reactor::turn`] is the whole server in five lines. The commands of a turn become frames, and
//! their replies wait behind the gates of their connections. Most frames are written when the last
//! reactor falls asleep: at the begin of a later turn, by it or by a committer. The gates open once
//! the hub has published how durable the log has become.

use std::collections::VecDeque;

use journal::Durable;
use model::{LoginAnswer, Nanos, SessionId};

use crate::Failure;
use crate::config::Limits;
use crate::connection::{CloseReason, ListFlags};
use crate::connections::Connections;
use crate::deadlines::Deadlines;
use crate::events::{Event, EventSet, Events};
use crate::hub::{Commit, Hub, Phase};
use crate::listener::Acceptor;
use crate::log::Complaint;
use crate::mailbox::{Arrival, Sleep};

/// A thread's share of the server.
pub(crate) struct Reactor<'a> {
    pub(crate) hub: &'a Hub,
    pub(crate) index: usize,
    pub(crate) event_set: EventSet,
    events: Events,
    acceptor: Option<Acceptor>,
    pub(crate) connections: Connections,
    pub(crate) deadlines: Deadlines,
    pub(crate) lists: RunLists,
    /// When this turn began.
    pub(crate) now: Nanos,
    /// Those that hold in this turn.
    limits: Limits,
    /// Bytes of answers that a connection may leave unread in this turn.
    pub(crate) allowance: usize,
    /// Bytes of answers that others caused in this turn.
    pub(crate) mailed: usize,
    /// The complaint that connections were closed for their buffered bytes.
    eviction: Complaint,
    /// The broker took no commands when so many writes and chores were completed.
    pub(crate) stalled_at: Option<u64>,
    /// And did not take those of some connections when so many were.
    pub(crate) postponed_at: u64,
    /// The durable positions at the last opening of the gates, and the writes and chores completed
    /// then.
    durable: Durable,
    completions: u64,
    /// The last time that a client was answered which had not to wait for the log.
    pub(crate) answered_at: Nanos,
    /// How often users had been reviewed when the connections were held against them last.
    pub(crate) users_seen: u64,
    /// Turns in a row in which frames waited to be written and there was always more to do.
    busy_turns: u32,
    /// More may wait to be accepted.
    accept_more: bool,
    /// Until when peers may still read their answers, once the server stops.
    stopping_until: Option<Nanos>,
    scratch: Box<[u8]>,
}

/// Connections with something to do, by kind of work. A connection stands in each list once; its
/// own marks ensure that.
#[derive(Debug, Default)]
pub(crate) struct RunLists {
    /// Accepted, and not yet known to the core.
    pub(crate) arrivals: Vec<Arrival>,
    /// Answers to logins.
    pub(crate) logins: Vec<(SessionId, LoginAnswer)>,
    /// To be read from and stepped in this turn.
    pub(crate) attention: Vec<SessionId>,
    /// Their peers were heard in this turn to send no more.
    pub(crate) hung_up: Vec<SessionId>,
    /// To be read from for the last time, since the server stops.
    pub(crate) unread: VecDeque<SessionId>,
    /// Gave a command that waits until the log has gone on.
    pub(crate) postponed: Vec<SessionId>,
    /// Changed in this turn: to be sent to and looked at.
    pub(crate) touched: Vec<SessionId>,
    /// Hold replies that wait for a write.
    pub(crate) holding: Vec<SessionId>,
    /// Found to be over in this turn.
    pub(crate) finished: Vec<(SessionId, CloseReason)>,
    /// Served no longer, and to be closed.
    pub(crate) parting: VecDeque<(SessionId, CloseReason)>,
    /// Steps that closing may still take in this turn.
    pub(crate) closing_steps: u64,
    /// Gave the broker something to do in this turn.
    pub(crate) active: Vec<SessionId>,
}

impl<'a> Reactor<'a> {
    pub(crate) fn new(
        hub: &'a Hub,
        index: usize,
        event_set: EventSet,
        acceptor: Option<Acceptor>,
    ) -> Self {
        Self {
            hub,
            index,
            event_set,
            events: Events::new(),
            acceptor,
            connections: Connections::new(index),
            deadlines: Deadlines::default(),
            lists: RunLists::default(),
            now: hub.clock.now(),
            limits: hub.limits(),
            allowance: 0,
            mailed: 0,
            eviction: Complaint::default(),
            stalled_at: None,
            postponed_at: hub.completions(),
            durable: hub.durable(),
            completions: hub.completions(),
            answered_at: hub.clock.now(),
            users_seen: hub.users_generation(),
            busy_turns: 0,
            accept_more: false,
            stopping_until: None,
            scratch: vec![0; READ_BYTES_MAX].into_boxed_slice(),
        }
    }

    /// Serves until the server ends.
    pub(crate) fn serve(mut self) {
        let _serving = self.hub.begin_to_serve();
        while !self.is_over() {
            if let Err(failure) = self.turn() {
                return self.hub.fail(failure);
            }
        }
        // An ended reactor sleeps for good: the last one awake must know that it is the last.
        if self.hub.fall_asleep() && self.hub.is_write_due() {
            // No reactor is awake: releasing the lock leaves the write to the committers.
            drop(self.hub.lock());
        }
    }

    /// One turn.
    pub(crate) fn turn(&mut self) -> Result<(), Failure> {
        self.wait()?; //             for sockets, timers, completed writes and other threads
        self.read(); //              sockets -> input, without the lock
        let commit = self.step(); // input -> commands -> broker -> frames and replies, locked
        self.write(commit)?; //      an eager write -> disk; `wait` begins all others
        self.release(); //           replies whose frames are durable -> sockets
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Failure> {
        match self.sleep_span() {
            Some(Nanos::ZERO) => self.stay_awake()?,
            span => self.sleep(span)?,
        }
        self.hub.mailbox(self.index).awake();
        self.now = self.hub.now();
        self.adjust();
        self.allowance = self.hub.buffered.allowance(self.limits.output_bytes);
        while let Some(event) = self.events.pop_front() {
            self.notice(event);
        }
        self.accept();
        if self.hub.phase() == Phase::Stopping {
            self.stop();
        }
        Ok(())
    }

    /// Takes over limits that have changed: deadlines of connections may follow from them.
    fn adjust(&mut self) {
        let limits = self.hub.limits();
        if limits == self.limits {
            return;
        }
        self.limits = limits;
        for session in self.connections.ids() {
            if let Some(connection) = self.connections.get_mut(session) {
                self.lists.touch(session, connection.marks());
            }
        }
    }

    /// Looks for news without sleeping. Frames that wait are written after some turns of this, even
    /// though more may come.
    fn stay_awake(&mut self) -> Result<(), Failure> {
        self.busy_turns = if self.hub.is_write_due() { self.busy_turns + 1 } else { 0 };
        if self.busy_turns > BUSY_TURNS_MAX {
            self.commit_idle()?;
        }
        self.events.wait(&self.event_set, Some(Nanos::ZERO));
        Ok(())
    }

    /// Sleeps until something happens. Frames that wait are written now unless another reactor is
    /// still at work, which may bring more and then does this.
    fn sleep(&mut self, span: Option<Nanos>) -> Result<(), Failure> {
        if self.hub.is_write_due() {
            self.stay_awake()?;
            if !self.events.is_empty() {
                return Ok(());
            }
        }
        if self.hub.fall_asleep() && self.hub.is_write_due() {
            self.hub.wake_up();
            // It goes on with the turn and sees its own writes: its waker would cost two system
            // calls a write. Only here, where no sleep follows: a sleeping reactor is woken.
            self.hub.mailbox(self.index).awake();
            return self.commit_idle();
        }
        self.events.wait(&self.event_set, span);
        self.hub.wake_up();
        Ok(())
    }

    fn commit_idle(&mut self) -> Result<(), Failure> {
        self.busy_turns = 0;
        let commit = self.hub.commit_idle(self.waiting());
        self.write(commit)
    }

    /// Connections that wait for the log if all do. Zero if a client was lately answered without
    /// the log: it must not find this thread at the disk. Zero beside another reactor, as this one
    /// knows nothing of its connections.
    fn waiting(&self) -> usize {
        let mixed = self.now.since(self.answered_at) < MIXED_SPAN || self.hub.reactors() > 1;
        if mixed { 0 } else { self.lists.holding.len() }
    }

    /// How long nothing is to be done unless something happens. Says so to other threads first.
    fn sleep_span(&self) -> Option<Nanos> {
        let lists = &self.lists;
        let postpones = !lists.postponed.is_empty();
        let holds = !lists.holding.is_empty() || self.stalled_at.is_some() || postpones;
        let sleep = if holds { Sleep::ForWrites } else { Sleep::ForMail };
        let quiet = self.hub.mailbox(self.index).sleep(sleep);
        let completions = self.hub.completions();
        let waits = match self.stalled_at {
            Some(then) => then == completions,
            None => lists.attention.is_empty(),
        };
        let missed = holds && self.completions != completions
            || postpones && self.postponed_at != completions
            || self.hub.phase() > Phase::Serving && self.stopping_until.is_none();
        let unread = !lists.unread.is_empty();
        if !quiet || !waits || missed || unread || self.accept_more || lists.have_leaving() {
            return Some(Nanos::ZERO);
        }
        let accepting = self.acceptor.as_ref().and_then(Acceptor::deadline);
        let stopping = self.stopping_until.filter(|_| !self.connections.is_empty());
        let own = [accepting, self.deadlines.first(), stopping];
        let first = own.into_iter().flatten().fold(self.hub.deadline(), Nanos::min);
        (first < Nanos::MAX).then(|| first.since(self.hub.clock.now()))
    }

    fn notice(&mut self, event: Event) {
        match event {
            Event::Waker => self.hub.mailbox(self.index).reset_waker(),
            Event::Listener => self.accept_more = true,
            Event::Socket { session, readable, writable, half_closed } => {
                let Some(connection) = self.connections.get_mut(session) else { return };
                connection.notice(readable, writable, half_closed);
                self.lists.touch(session, connection.marks());
                if readable || half_closed {
                    self.lists.attend(session, connection.marks());
                }
                if half_closed {
                    self.lists.hung_up.push(session);
                }
            }
        }
    }

    fn accept(&mut self) {
        let Some(acceptor) = &mut self.acceptor else { return };
        if self.accept_more || acceptor.is_due(self.now) {
            self.accept_more = acceptor.accept(self.hub, self.now);
        }
    }

    /// Reads from the connections in the list until the turn has enough. The first one that it does
    /// not reach is first in the next turn. Some strangers wait for later turns, so that others do
    /// not wait for all of them.
    fn read(&mut self) {
        let (mut bytes, mut reached, mut strangers) = (self.read_the_last(), 0, 0);
        for session in &self.lists.attention {
            if bytes >= READ_BYTES_PER_TURN {
                self.lists.attention.rotate_left(reached);
                return;
            }
            reached += 1;
            let Some(connection) = self.connections.get_mut(*session) else { continue };
            if connection.is_stranger() {
                if strangers == STRANGERS_PER_TURN {
                    continue;
                }
                strangers += 1;
            }
            bytes += connection.receive(&mut self.scratch, self.allowance, self.now);
        }
    }

    /// The server stops: reads the last bytes of its peers, from as many as one turn has enough
    /// with. Returns the number of bytes.
    fn read_the_last(&mut self) -> usize {
        let mut bytes = 0;
        while bytes < READ_BYTES_PER_TURN
            && let Some(session) = self.lists.unread.pop_front()
        {
            let Some(connection) = self.connections.get_mut(session) else { continue };
            connection.leave_seat();
            bytes += connection.receive(&mut self.scratch, self.allowance, self.now);
            connection.abandon_input();
            self.lists.attend(session, connection.marks());
        }
        bytes
    }

    /// Writes the batch that this thread is to write. Blocks for as long as the device takes.
    fn write(&mut self, commit: Commit) -> Result<(), Failure> {
        let Commit::Here(transfer) = commit else { return Ok(()) };
        let disk = self.hub.disk.as_ref().expect("invariant: only a journal makes writes");
        let result = transfer.write.perform(disk);
        let mut core = self.hub.lock();
        self.hub
            .complete(&mut core, transfer, result)
            .map_err(|failed| Failure::Journal(failed.to_string()))?;
        self.hub.hand_over(&mut core);
        Ok(())
    }

    /// Opens the gates as far as the log is durable, and sends the released bytes.
    fn release(&mut self) {
        self.expire();
        if self.hub.phase() == Phase::Halted {
            return;
        }
        // In this order: a write that completes in between is seen by the next turn.
        self.completions = self.hub.completions();
        let durable = self.hub.durable();
        if durable != self.durable {
            self.durable = durable;
            self.touch_holding();
        }
        let mut touched = std::mem::take(&mut self.lists.touched);
        for session in touched.drain(..) {
            self.send(session);
        }
        // Taken and put back: its memory is used again in each turn.
        self.lists.touched = touched;
        let mut closed = 0;
        while closed < EVICTIONS_PER_TURN && self.hub.buffered.is_exceeded() && self.evict() {
            closed += 1;
        }
    }

    /// Closes the connection with the most buffered bytes, unless it may go beyond all bounds, or
    /// lets the other reactors check whether they have it. False: this turn closes no more here.
    fn evict(&mut self) -> bool {
        let hub = self.hub;
        let mean = hub.buffered.mean(hub.permits.open());
        let fullest = self.connections.fullest().filter(|connection| connection.held() >= mean);
        let Some(connection) = fullest else {
            let others =
                hub.mailboxes().iter().enumerate().filter(|(index, _)| *index != self.index);
            others.for_each(|(_, mailbox)| mailbox.notify_mail());
            return false;
        };
        let (held, most) = (connection.held(), hub.buffered.bytes_max());
        if held == 0 {
            return false;
        }
        if connection.go_beyond(&hub.buffered) {
            return true;
        }
        connection.let_go(&hub.buffered);
        self.lists.finish(connection.id(), CloseReason::Dismissed, connection.marks());
        let text = format_args!(
            "closed a connection that held {held} bytes, the most: all together held more than \
             {most} (--max-buffered-bytes)"
        );
        self.eviction.line(hub.log, self.now, text);
        true
    }

    /// Gives up the connections that have passed their deadline. One that this turn did not reach
    /// may have sent the bytes it owes: the reactor looks at it after serving it.
    fn expire(&mut self) {
        while let Some(session) = self.deadlines.pop_due(self.now) {
            let Some(connection) = self.connections.get_mut(session) else { continue };
            connection.marks().watched = None;
            if connection.end_pause(self.now) {
                self.lists.touch(session, connection.marks());
                self.lists.attend(session, connection.marks());
            }
            if connection.marks().attention {
                continue;
            }
            if connection.handle_timeout(self.now) {
                self.lists.touch(session, connection.marks());
            }
            let deadline = connection.deadline(&self.limits, self.now);
            if deadline.is_some_and(|deadline| deadline <= self.now) {
                self.lists.finish(session, CloseReason::Lost, connection.marks());
            } else {
                self.deadlines.watch(session, &mut connection.marks().watched, deadline);
            }
        }
    }

    fn touch_holding(&mut self) {
        for session in std::mem::take(&mut self.lists.holding) {
            if let Some(connection) = self.connections.get_mut(session) {
                connection.marks().holding = false;
                self.lists.touch(session, connection.marks());
            }
        }
    }

    /// Sends to one connection, and updates the event it waits for.
    pub(crate) fn send(&mut self, session: SessionId) {
        let parting = if self.is_stopping() { CloseReason::Dismissed } else { CloseReason::Lost };
        let Some(connection) = self.connections.get_mut(session) else { return };
        let limits = &self.limits;
        // As of now: others have taken room in this turn.
        let allowance = self.hub.buffered.allowance(limits.output_bytes);
        if connection.send(self.durable, allowance, self.now) {
            self.answered_at = self.now;
        }
        connection.watch_room(&self.event_set);
        connection.recount(&self.hub.buffered);
        connection.marks().touched = false;
        if connection.is_finished() {
            if let Some(wrong) = connection.wrong_protocol() {
                self.hub.tell_wrong_protocol(self.now, &connection.name(), wrong);
            }
            if let Some(error) = connection.tls_failure() {
                self.hub.tell_failed_handshake(self.now, &connection.name(), error);
            }
            return self.lists.finish(session, parting, connection.marks());
        }
        if connection.is_held() {
            self.lists.hold(session, connection.marks());
        }
        if connection.needs_attention(self.allowance) {
            self.lists.attend(session, connection.marks());
        }
        let deadline = connection.deadline(limits, self.now);
        self.deadlines.watch(session, &mut connection.marks().watched, deadline);
    }

    /// The server stops: reads for the last time, turn by turn. When their time is over, gives up
    /// on the peers that do not read their answers.
    fn stop(&mut self) {
        let Some(until) = self.stopping_until else { return self.begin_stop() };
        if until > self.now {
            return;
        }
        self.lists.unread.clear();
        for session in self.connections.ids() {
            if let Some(connection) = self.connections.get_mut(session) {
                self.lists.finish(session, CloseReason::Dismissed, connection.marks());
            }
        }
    }

    fn begin_stop(&mut self) {
        self.stopping_until = Some(self.now + crate::clock::nanos(self.limits.stop));
        self.acceptor = None;
        self.accept_more = false;
        self.lists.unread = self.connections.ids().into();
    }

    /// Returns true if input that has not yet come in is too late.
    pub(crate) const fn is_stopping(&self) -> bool {
        self.stopping_until.is_some()
    }

    /// True if the server ends here: at once, or with all peers served.
    fn is_over(&self) -> bool {
        match self.hub.phase() {
            Phase::Serving => false,
            Phase::Stopping => {
                let is_done = self.stopping_until.is_some() && self.connections.is_empty();
                is_done && self.hub.can_spare(self.index)
            }
            Phase::Halted => true,
        }
    }
}

impl RunLists {
    /// Connections are to be closed.
    pub(crate) fn have_leaving(&self) -> bool {
        !self.finished.is_empty() || !self.parting.is_empty()
    }

    pub(crate) fn attend(&mut self, session: SessionId, marks: &mut ListFlags) {
        if !std::mem::replace(&mut marks.attention, true) {
            self.attention.push(session);
        }
    }

    pub(crate) fn touch(&mut self, session: SessionId, marks: &mut ListFlags) {
        if !std::mem::replace(&mut marks.touched, true) {
            self.touched.push(session);
        }
    }

    pub(crate) fn postpone(&mut self, session: SessionId, marks: &mut ListFlags) {
        if !std::mem::replace(&mut marks.postponed, true) {
            self.postponed.push(session);
        }
    }

    pub(crate) fn hold(&mut self, session: SessionId, marks: &mut ListFlags) {
        if !std::mem::replace(&mut marks.holding, true) {
            self.holding.push(session);
        }
    }

    pub(crate) fn finish(
        &mut self,
        session: SessionId,
        parting: CloseReason,
        marks: &mut ListFlags,
    ) {
        if !std::mem::replace(&mut marks.finished, true) {
            self.finished.push((session, parting));
        }
    }
}

/// Turns for which frames wait while there is always more to do. Each gathers the commands of a
/// turn of clients, and takes tens of microseconds.
const BUSY_TURNS_MAX: u32 = 8;

/// Time in which a client that was answered without the log is expected to ask again.
const MIXED_SPAN: Nanos = Nanos::from_millis(100);

/// Bytes read in a turn, plus the input of the last connection: as many as a turn fills buffers
/// with by its answers.
pub(crate) const READ_BYTES_PER_TURN: usize = 8 * 1024 * 1024;

/// Strangers that are read from in a turn. The step of a handshake takes up to a tenth of a
/// millisecond, by RSA six times as long.
const STRANGERS_PER_TURN: usize = 32;

/// Connections closed in a turn for their buffered bytes: finding each takes a search among all.
const EVICTIONS_PER_TURN: usize = 256;

/// Bytes read from one connection in a turn: no peer that sends much keeps others waiting.
const READ_BYTES_MAX: usize = 64 * 1024;
