//! The server of the simulation does the work of the real one around broker and sessions. It has
//! one thread and no sockets, and others move its clock.
//!
//! A turn drains the input that has arrived, steps the broker for each command, and polls for
//! writes and housekeeping. The simulation performs and completes each polled call later, in any
//! order, so that anything may happen in between. Bytes leave through the real gate; answers by
//! AMQP wait as events, as they do in the real server.

mod amqp_connection;
mod elements;
mod gateway;
mod intruder;
mod list_defects;
mod operator;
mod redis;
mod redis_connection;
mod split_commits;
mod writing;

use std::collections::BTreeMap;

use beanstalk::{InputBuffer, JournalFacts, ListenerState, Session, StatsFacts};
use broker::{Chore, ChoreDone, JournalFailed};
use journal::{Disk, Gate};
use model::{Command, DependsOn, Lsn, Nanos, Output, Principal, Reply, SessionId, StorePolicy};

use crate::history::Changes;
use crate::inspection::next_id;
use crate::{
    AmqpClient, Client, FaultyDisk, HttpClient, KeyOracle, Oracle, Paged, RedisClient, Rng,
};
use amqp_connection::AmqpConnection;
use gateway::Gateway;
pub use list_defects::ListDefect;
use redis_connection::RedisConnection;
use split_commits::SplitCommits;
use writing::{InFlight, Writing};

/// Clients and oracles: they watch the server and complain.
#[derive(Debug)]
pub struct Outside {
    /// By number, which is that of their session too.
    pub clients: BTreeMap<u64, Client>,
    /// Clients of AMQP, likewise.
    pub amqp_clients: BTreeMap<u64, AmqpClient>,
    /// Clients of Redis' protocol, likewise.
    pub redis_clients: BTreeMap<u64, RedisClient>,
    /// Those of HTTP, likewise; their sessions are the gateway's.
    pub http_clients: BTreeMap<u64, HttpClient>,
    /// Judges the replies about messages that clients read.
    pub oracle: Oracle,
    /// Judges the replies about keys that clients read.
    pub keys: KeyOracle,
    /// Print the commands and replies of the broker by AMQP.
    pub trace: bool,
}

/// Defects of a server, for tests of the oracle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerDefects {
    /// Replies leave before they are safe.
    pub gate_is_open: bool,
    /// The parts of a transaction are frames of their own.
    pub splits_commits: bool,
    /// Something about lists.
    pub lists: Option<ListDefect>,
    /// The gateway takes in replies that others caused, and does not look for writes that are due
    /// then.
    pub forgets_mail: bool,
    /// Moments that clients name are taken by the machine's clock as it was at the start.
    pub keeps_first_clock: bool,
    /// A send that waits goes on when its client of HTTP is gone.
    pub ignores_hang_ups: bool,
}

/// A running process.
pub struct Server<D: Disk> {
    /// The state machine under test.
    pub broker: Paged<D::File>,
    /// The virtual time.
    pub now: Nanos,
    /// A defect for tests of the oracle: nothing is held at the gate.
    pub gate_is_open: bool,
    /// Another: a commit is as many frames as it has parts.
    splits: Option<SplitCommits>,
    /// Another: see there.
    list_defect: Option<ListDefect>,
    /// Another: see there.
    ignores_hang_ups: bool,
    /// The one for whom all clients act.
    principal: Principal,
    /// What the intruder has tried so far.
    intrusions: u64,
    shared: ListenerState,
    redis_shared: resp::ListenerState,
    connections: BTreeMap<u64, Connection>,
    amqp_connections: BTreeMap<u64, AmqpConnection>,
    redis_connections: BTreeMap<u64, RedisConnection>,
    gateway: Gateway,
    /// Bytes that unanswered commands of Redis bring, by client.
    bringing: BTreeMap<u64, u64>,
    /// Commands, alike, that were done at once.
    pub(crate) runs: u64,
    /// Elements of lists may have got ids that the oracle of messages has not heard of.
    ids_given: bool,
    writing: Writing,
    writes: Vec<InFlight<D>>,
    chore: Option<Housekeeping<D>>,
    /// Frames that the command under way appended.
    appended: u64,
    /// When the broker was last asked for something. Things that this makes due happen later.
    stepped_at: Nanos,
    /// Clients that are gone, of which the broker hears once it is not stalled.
    leaving: Vec<u64>,
    /// Commits that wait for room in the log, by client.
    committing: BTreeMap<u64, Command>,
    /// Changes that the operator reads once they are safe.
    stated: Vec<(DependsOn, Changes)>,
}

struct Connection {
    session: Session,
    input: InputBuffer,
    gate: Gate,
    /// Bytes that were encoded and not yet taken; the first byte is at `taken` of the stream.
    output: Vec<u8>,
    taken: u64,
    /// The peer sends nothing more, and the session does not know yet.
    ended: bool,
    /// The session knows.
    told: bool,
    /// The command under way is about messages, so that the client and the oracle want to know.
    concerns_messages: bool,
    /// A command that the broker could not take yet.
    postponed: Option<Command>,
}

enum Housekeeping<D: Disk> {
    Asked(Chore<D::File>, Call),
    Performed(ChoreDone<D::File>, Call),
}

/// When a call can go on, and when it does at the latest.
#[derive(Clone, Copy)]
struct Call {
    earliest: Nanos,
    latest: Nanos,
}

impl Call {
    fn at(now: Nanos) -> Self {
        Self { earliest: now, latest: now + DEVICE_DELAY_MAX }
    }

    /// It was performed, and its caller hears of it soon or much later.
    fn performed(self, now: Nanos, is_slow: bool) -> Self {
        if is_slow { Self::at(now + FaultyDisk::STALL) } else { self }
    }
}

impl<D: Disk> Server<D> {
    /// A process that has just recovered.
    pub fn new(
        broker: Paged<D::File>,
        now: Nanos,
        policy: StorePolicy,
        defects: ServerDefects,
        outside: &mut Outside,
    ) -> Self {
        let shared = ListenerState::new(crate::workload::BODY_BYTES_MAX, Box::new(NoFacts));
        let mut broker = broker;
        broker.open_session(operator::SESSION);
        let mut server = Self {
            broker,
            now,
            gate_is_open: defects.gate_is_open,
            splits: defects.splits_commits.then(SplitCommits::default),
            list_defect: defects.lists,
            ignores_hang_ups: defects.ignores_hang_ups,
            principal: Principal::Everyone,
            intrusions: 0,
            shared,
            redis_shared: redis_connection::shared(policy),
            connections: BTreeMap::new(),
            amqp_connections: BTreeMap::new(),
            redis_connections: BTreeMap::new(),
            gateway: Gateway::default(),
            bringing: BTreeMap::new(),
            runs: 0,
            ids_given: false,
            writing: Writing::new(defects.forgets_mail),
            writes: Vec::new(),
            chore: None,
            appended: 0,
            stepped_at: Nanos::ZERO,
            leaving: Vec::new(),
            committing: BTreeMap::new(),
            stated: Vec::new(),
        };
        server.open_gateway(outside);
        server
    }

    /// A client has connected.
    pub fn connect(&mut self, id: u64) {
        self.open_session(id);
        let connection = Connection {
            session: Session::new(SessionId(id), &mut self.shared),
            input: InputBuffer::default(),
            gate: Gate::default(),
            output: Vec::new(),
            taken: 0,
            ended: false,
            told: false,
            concerns_messages: false,
            postponed: None,
        };
        self.connections.insert(id, connection);
    }

    /// A client of AMQP has connected.
    pub fn connect_amqp(&mut self, id: u64) {
        self.open_session(id);
        self.amqp_connections.insert(id, AmqpConnection::new(id, self.now));
    }

    fn open_session(&mut self, id: u64) {
        self.broker.open_session(SessionId(id));
        self.broker.act_for(SessionId(id), self.principal.clone());
    }

    /// A client is gone. The broker hears of it once it is not stalled; until then answers may come
    /// for the client, which reads none.
    pub fn disconnect(&mut self, id: u64, outside: &mut Outside) {
        self.tick(outside);
        if !self.leaving.contains(&id) {
            self.leaving.push(id);
        }
        self.bid_farewell(outside);
        self.poll(outside);
    }

    /// True if the broker has not heard yet of all clients that are gone.
    pub fn has_leaving(&self) -> bool {
        !self.leaving.is_empty() || self.gateway_is_due()
    }

    /// Bytes of a client have arrived.
    pub fn receive(&mut self, id: u64, bytes: &[u8]) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.input.append(bytes);
        } else if let Some(connection) = self.amqp_connections.get_mut(&id) {
            connection.append(bytes);
        } else if let Some(connection) = self.redis_connections.get_mut(&id) {
            connection.append(bytes);
        }
    }

    /// The client sends nothing more after the bytes that have arrived.
    pub fn half_close(&mut self, id: u64) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.ended = !connection.told;
        }
    }

    /// Bytes that the gate lets a client have now, at most so many.
    pub fn release(&mut self, id: u64, bytes_max: usize) -> Vec<u8> {
        let durable = self.broker.durable();
        if let Some(connection) = self.amqp_connections.get_mut(&id) {
            return connection.release(durable, self.gate_is_open, bytes_max);
        }
        if let Some(connection) = self.redis_connections.get_mut(&id) {
            return connection.release(durable, self.gate_is_open, bytes_max);
        }
        let Some(connection) = self.connections.get_mut(&id) else { return Vec::new() };
        let released = connection.gate.released(durable) - connection.taken;
        let released = usize::try_from(released).unwrap_or(usize::MAX).min(bytes_max);
        let count = if self.gate_is_open { connection.output.len() } else { released };
        connection.taken += count as u64;
        connection.output.drain(..count).collect()
    }

    /// From now on the server's own scheduler decides when the log is written.
    pub fn schedule_writes(&mut self) {
        self.writing.is_scheduled = true;
    }

    /// From now on the server does only work that ends the process well.
    pub fn begin_shutdown(&mut self, outside: &mut Outside) {
        self.broker.begin_shutdown();
        self.writing.begin_to_end();
        self.poll(outside);
    }

    /// One turn of the loop: all input, then due writes and housekeeping.
    pub fn turn(&mut self, outside: &mut Outside) {
        let before = self.broker.steps();
        self.bid_farewell(outside);
        let ids: Vec<u64> = self.connections.keys().copied().collect();
        for id in ids {
            self.serve(id, outside);
        }
        let ids: Vec<u64> = self.amqp_connections.keys().copied().collect();
        for id in ids {
            self.serve_amqp(id, outside);
        }
        let ids: Vec<u64> = self.redis_connections.keys().copied().collect();
        for id in ids {
            self.serve_redis(id, outside);
        }
        self.serve_http(outside);
        self.intrude(outside);
        // A reactor that has nothing to do looks at nothing.
        if !self.writing.is_scheduled || self.broker.steps() > before {
            self.commit(outside);
        }
        let held_back = self.broker.holds_back();
        self.poll_chore();
        // A command that is held back is no step, and matters to due writes; so may a chore.
        if held_back || self.broker.holds_back() {
            self.commit(outside);
        }
    }

    /// Lets time pass, firing everything due on the way. The device answers within
    /// [`DEVICE_DELAY_MAX`], so time stops at a call that is due: `false`, complete one first.
    pub fn advance(&mut self, to: Nanos, outside: &mut Outside) -> bool {
        self.assert_no_write_forgotten();
        let mut waits_for_disk = false;
        for _ in 0..TIMERS_MAX {
            let due = self.broker.poll_timeout().filter(|_| !waits_for_disk);
            let due = due.unwrap_or(Nanos::MAX);
            let patience = self.patience();
            let write = self.writing.deadline();
            let next = to.min(due).min(patience).min(write).max(self.now);
            self.now = next;
            if write <= next {
                self.commit(outside);
                continue;
            }
            if due <= next {
                let has_fired = self.fire(outside);
                if self.is_due() && self.is_busy() {
                    return false;
                }
                waits_for_disk = !has_fired;
                continue;
            }
            if patience <= next || to <= next {
                return patience > next;
            }
        }
        panic!("something is due for ever: {:?} at {}", self.broker.poll_timeout(), self.now);
    }

    /// True if something is under way at the disk that can go on.
    pub fn is_busy(&self) -> bool {
        self.calls().any(|call| call.earliest <= self.now)
    }

    /// True if nothing is due and the log takes more, so that each waiting client waits for other
    /// clients.
    pub fn is_settled(&self) -> bool {
        let due = self.broker.poll_timeout();
        !self.broker.holds_back() && due.is_none_or(|due| due > self.now)
    }

    /// Performs one of the calls that were polled, or hands one back that was performed.
    ///
    /// # Errors
    /// When the journal has failed: the process must stop.
    pub fn progress(
        &mut self,
        disk: &D,
        rng: &mut Rng,
        is_slow: &dyn Fn() -> bool,
        outside: &mut Outside,
    ) -> Result<(), JournalFailed> {
        let calls = self.calls().enumerate();
        let ready = calls.filter(|(_, call)| call.earliest <= self.now).map(|(index, _)| index);
        let ready: Vec<_> = ready.collect();
        let choice = rng.pick(&ready);
        if choice < self.writes.len() {
            self.progress_write(choice, disk, is_slow)?;
        } else {
            self.progress_chore(disk, is_slow)?;
        }
        self.poll(outside);
        Ok(())
    }

    /// Performs everything that was polled and not performed: the process is falling.
    pub fn perform_rest(&mut self, disk: &D, rng: &mut Rng) {
        while !self.writes.is_empty() {
            let in_flight = self.writes.swap_remove(rng.index(self.writes.len()));
            if in_flight.result.is_none() {
                // The process has ended and reads no result.
                let _ = in_flight.write.write.perform(disk);
            }
        }
        if let Some(Housekeeping::Asked(chore, _)) = self.chore.take() {
            drop(chore.perform(disk));
        }
    }

    fn progress_write(
        &mut self,
        index: usize,
        disk: &D,
        is_slow: &dyn Fn() -> bool,
    ) -> Result<(), JournalFailed> {
        let in_flight = self.writes.get_mut(index).expect("invariant: drawn within the length");
        if in_flight.result.is_none() {
            in_flight.result = Some(in_flight.write.write.perform(disk));
            in_flight.call = in_flight.call.performed(self.now, is_slow());
            return Ok(());
        }
        let in_flight = self.writes.swap_remove(index);
        let result = in_flight.result.expect("invariant: performed");
        let failed = result.is_err();
        let outcome = self.complete_write(in_flight.write, result);
        assert!(!failed || outcome.is_err(), "a failed write must end the process");
        outcome
    }

    fn progress_chore(
        &mut self,
        disk: &D,
        is_slow: &dyn Fn() -> bool,
    ) -> Result<(), JournalFailed> {
        match self.chore.take() {
            None => Ok(()),
            Some(Housekeeping::Asked(chore, call)) => {
                let done = chore.perform(disk);
                let call = call.performed(self.now, is_slow());
                self.chore = Some(Housekeeping::Performed(done, call));
                Ok(())
            }
            Some(Housekeeping::Performed(done, _)) => self.broker.handle_chore(self.now, done),
        }
    }

    /// The oracle hears how much memory messages took at most, before and after a step.
    fn tell_memory(&self, before: u64, outside: &mut Outside) {
        let uncommitted = self.broker.uncommitted_bytes() as u64;
        outside.oracle.see_memory(before.max(self.broker.memory_bytes()), uncommitted);
    }

    /// The oracle hears if the device has room for the next step.
    fn tell_room(&self, outside: &mut Outside) {
        outside.oracle.see_room(self.broker.room() < u64::MAX / 2);
    }

    /// The broker hears of the clients that are gone, if it can.
    fn bid_farewell(&mut self, outside: &mut Outside) {
        while !self.leaving.is_empty() && !self.broker.stalled() {
            self.stepped_at = self.now;
            let id = self.leaving.remove(0);
            if outside.http_clients.remove(&id).is_some() {
                self.leave_http(id);
                continue;
            }
            let begun = self.amqp_connections.get(&id).map(AmqpConnection::begun);
            let begun = begun.unwrap_or_default();
            self.broker.note_begun(SessionId(id), begun.clone());
            self.forget(id, outside);
            self.tell_room(outside);
            outside.oracle.closed(self.now, id, &begun);
            outside.keys.closed(self.now, id);
            let mut outputs = Vec::new();
            let memory = self.broker.memory_bytes();
            self.broker.close_session(self.now, SessionId(id), &mut outputs);
            self.tell_memory(memory, outside);
            self.committing.remove(&id);
            self.route(None, outputs, outside);
        }
    }

    fn forget(&mut self, id: u64, outside: &mut Outside) {
        if let Some(connection) = self.connections.remove(&id) {
            connection.session.close(&mut self.shared);
        }
        if let Some(connection) = self.redis_connections.remove(&id) {
            connection.close(&mut self.redis_shared);
        }
        self.amqp_connections.remove(&id);
        outside.clients.remove(&id);
        outside.amqp_clients.remove(&id);
        outside.redis_clients.remove(&id);
    }

    /// The disk calls under way: all writes in their order, then the chore.
    fn calls(&self) -> impl Iterator<Item = Call> {
        let chore = self.chore.iter().map(|chore| match chore {
            Housekeeping::Asked(_, call) | Housekeeping::Performed(_, call) => *call,
        });
        self.writes.iter().map(|in_flight| in_flight.call).chain(chore)
    }

    /// When the first of them goes on at the latest.
    fn patience(&self) -> Nanos {
        self.calls().map(|call| call.latest).min().unwrap_or(Nanos::MAX)
    }

    fn poll(&mut self, outside: &mut Outside) {
        self.commit(outside);
        self.poll_chore();
    }

    fn poll_chore(&mut self) {
        if self.chore.is_none() {
            let chore = self.broker.poll_chore(self.now);
            self.chore = chore.map(|chore| Housekeeping::Asked(chore, Call::at(self.now)));
        }
    }

    fn serve(&mut self, id: u64, outside: &mut Outside) {
        loop {
            self.hurry(outside);
            let is_serving = self.is_serving();
            let Some(connection) = self.connections.get_mut(&id) else { return };
            if !is_serving || connection.output.len() > OUTPUT_BYTES_MAX {
                return;
            }
            let postponed = connection.postponed.take();
            let is_new = postponed.is_none();
            let command = postponed.or_else(|| connection.poll_command(&mut self.shared));
            let Some(mut command) = command else { return };
            connection.concerns_messages = concerns_messages(&command);
            // A command that ends a wait is no wish of the client's.
            let gives_up = matches!(command, Command::CancelSends);
            let is_wish = !gives_up && !matches!(command, Command::CancelReceive { .. });
            if is_new && connection.concerns_messages && is_wish {
                outside.client(id).commanded(&mut command);
            }
            if !self.broker.takes(SessionId(id), &command) {
                connection.postponed = Some(command);
                return;
            }
            let now = self.tick(outside);
            self.stepped_at = now;
            if gives_up {
                outside.oracle.gives_up(id);
            }
            if std::mem::take(&mut self.ids_given) {
                outside.oracle.skip_to(next_id(&mut self.broker, now));
            }
            let frames = self.broker.counters().frames;
            let mut outputs = Vec::new();
            self.tell_room(outside);
            let before = self.broker.memory_bytes();
            self.broker.handle(now, SessionId(id), command, &mut outputs);
            self.appended = self.broker.counters().frames - frames;
            self.tell_memory(before, outside);
            self.route(Some(id), outputs, outside);
        }
    }

    fn serve_amqp(&mut self, id: u64, outside: &mut Outside) {
        loop {
            let now = self.tick(outside);
            let is_serving = self.is_serving();
            let Some(connection) = self.amqp_connections.get_mut(&id) else { return };
            if !is_serving || connection.unsent() > OUTPUT_BYTES_MAX {
                return;
            }
            let Some(command) = connection.poll_command(now) else { return };
            if !self.broker.takes(SessionId(id), &command) {
                connection.postpone(command);
                return;
            }
            self.stepped_at = now;
            let frames = self.broker.counters().frames;
            let mut outputs = Vec::new();
            self.tell_room(outside);
            let before = self.broker.memory_bytes();
            match &mut self.splits {
                None => self.broker.handle(now, SessionId(id), command.clone(), &mut outputs),
                Some(splits) => {
                    outputs = splits.handle(&mut self.broker, now, SessionId(id), command.clone());
                }
            }
            self.appended = self.broker.counters().frames - frames;
            self.tell_memory(before, outside);
            if matches!(command, Command::Commit { .. }) && outputs.is_empty() {
                self.committing.insert(id, command);
                continue;
            }
            // All others are answered at once, before the outputs that they cause for others;
            // except for credit.
            let is_answered = !matches!(command, Command::Credit { .. });
            if is_answered {
                let ahead = outputs.iter().take_while(|it| is_late(&it.reply)).count();
                self.route(None, outputs.drain(..ahead).collect(), outside);
            }
            let answer = is_answered.then(|| outputs.remove(0));
            answer.iter().for_each(|answer| self.writing.note_awaited(answer.after));
            self.judge(id, &command, answer.as_ref(), outside);
            if let Some(Output { after, reply, .. }) = answer
                && let Some(connection) = self.amqp_connections.get_mut(&id)
            {
                connection.handle_reply(after, reply);
            }
            self.route(None, outputs, outside);
        }
    }

    /// Lets client and oracle judge a command of a session of AMQP and its answer.
    fn judge(&self, id: u64, command: &Command, answer: Option<&Output>, outside: &mut Outside) {
        let reply = answer.map(|output| &output.reply);
        outside.trace(self.now, || format!("for {id}: {} -> {reply:?}", brief(command)));
        let client = outside.amqp_clients.get_mut(&id).expect("invariant: connected");
        client.commanded(command);
        let evicted = outside.oracle.counted().evicted;
        let changes = outside.oracle.commanded(self.now, id, command, reply);
        // A message that it makes a dead letter may take the place of one that is in the log.
        let evicts = outside.oracle.counted().evicted > evicted;
        let Some(Output { after, reply, .. }) = answer else { return };
        if shows_one(reply) && outside.oracle.are_in_memory(changes.clone()) {
            assert_eq!(after.lsn, Lsn::ZERO, "{command:?} is about memory alone");
            let rolls_back = matches!(command, Command::Rollback { .. });
            let may_write = rolls_back || evicts || outside.oracle.sheds();
            assert!(self.appended == 0 || may_write, "{command:?} went to the disk");
        }
        if let Reply::Waits { ticket } = reply {
            return client.waits(*ticket);
        }
        client.answered(reply, changes);
    }

    /// Hands an output that answers no current command to a session of AMQP, or the answer to a
    /// commit that waited.
    fn route_amqp(&mut self, output: Output, outside: &mut Outside) {
        if matches!(output.reply, Reply::Done | Reply::Refused(_)) {
            return self.answer_commit(output, outside);
        }
        let Output { session: SessionId(id), after, reply } = output;
        outside.trace(self.now, || format!("for {id}: {}", brief(&reply)));
        let Outside { amqp_clients, oracle, .. } = outside;
        let client = amqp_clients.get_mut(&id).expect("invariant: connected");
        match &reply {
            Reply::Delivered(delivery) => {
                let changes = oracle.delivered(self.now, id, delivery);
                if oracle.are_in_memory(changes.clone()) {
                    assert_eq!(after.lsn, Lsn::ZERO, "{delivery:?} is in memory alone");
                }
                client.awaits(delivery, changes);
            }
            Reply::Drained { link, delivered } => {
                let changes = oracle.drained(self.now, id, link.0, *delivered);
                client.awaits_drained(link.0, changes);
            }
            Reply::ConsumerCutOff { link, full } => {
                oracle.cut_off(self.now, id, link.0, full);
                client.lose(link.0);
            }
            Reply::Late { ticket, reply } => {
                let changes = oracle.late(self.now, id, *ticket, reply);
                if shows_one(reply) && oracle.are_in_memory(changes.clone()) {
                    assert_eq!(after.lsn, Lsn::ZERO, "{ticket} is about memory alone");
                }
                client.answered_late(*ticket, reply, changes);
            }
            _ => panic!("{reply:?} for {id}, unasked"),
        }
        if let Some(connection) = self.amqp_connections.get_mut(&id) {
            connection.handle_reply(after, reply);
        }
    }

    fn answer_commit(&mut self, output: Output, outside: &mut Outside) {
        let id = output.session.0;
        let command = self.committing.remove(&id).expect("invariant: only a commit waits");
        (self.appended, self.stepped_at) = (0, self.now);
        self.judge(id, &command, Some(&output), outside);
        if let Some(connection) = self.amqp_connections.get_mut(&id) {
            connection.handle_reply(output.after, output.reply);
        }
    }

    /// Hands outputs to their sessions; first the one that answers the command itself: the effect
    /// of the command caused the others.
    fn route(&mut self, own: Option<u64>, mut outputs: Vec<Output>, outside: &mut Outside) {
        outputs.sort_by_key(|output| Some(output.session.0) != own);
        for output in outputs {
            let id = output.session.0;
            if self.is_of_gateway(id) {
                self.route_http(output, outside);
                continue;
            }
            self.writing.note_awaited(output.after);
            if self.redis_connections.contains_key(&id) {
                self.route_redis(output, outside);
                continue;
            }
            if self.amqp_connections.contains_key(&id) || self.committing.contains_key(&id) {
                self.route_amqp(output, outside);
                continue;
            }
            let Output { session, after, reply } = output;
            outside.trace(self.now, || format!("for {id}: {}", brief(&reply)));
            let Some(connection) = self.connections.get_mut(&session.0) else {
                panic!("{reply:?} for {session:?}, which is gone");
            };
            if let Reply::Waits { ticket } = reply {
                let Outside { clients, oracle, .. } = outside;
                let client = clients.get_mut(&session.0).expect("invariant: connected");
                oracle.wish_waits(self.now, session.0, ticket, client.asking());
            } else if connection.concerns_messages {
                let Outside { clients, oracle, .. } = outside;
                let client = clients.get_mut(&session.0).expect("invariant: connected");
                let appended = (Some(session.0) == own).then_some(self.appended);
                let (ticket, reply) = match &reply {
                    Reply::Late { ticket, reply } => (Some(*ticket), &**reply),
                    reply => (None, reply),
                };
                if let (Some(_), Reply::Stored { message }) = (ticket, reply)
                    && std::mem::take(&mut self.ids_given)
                {
                    oracle.skip_to(message.0);
                }
                client.answered(reply, |wish| {
                    let changes = match ticket {
                        Some(ticket) => oracle.late(self.now, session.0, ticket, reply),
                        None => oracle.answered(self.now, session.0, wish, reply),
                    };
                    if shows_one(reply) && oracle.are_in_memory(changes.clone()) {
                        assert_eq!(after, DependsOn::NOTHING, "{wish:?} is about memory alone");
                        let may_write = oracle.sheds() || appended.unwrap_or(0) == 0;
                        assert!(may_write, "{wish:?} went to the disk");
                    }
                    changes
                });
            }
            connection.session.handle_reply(reply, &mut self.shared, &mut connection.output);
            connection.push(after);
        }
    }

    /// Every step has a time of its own, and so has every delay and lease that ends: the oracle
    /// knows which came first.
    fn tick(&mut self, outside: &mut Outside) -> Nanos {
        self.now = self.now + Nanos(1);
        while self.is_due() && self.fire(outside) {}
        if !self.is_due() && !self.broker.stalled() {
            outside.oracle.timed(self.now);
        }
        self.now
    }

    /// True if commands may be fed: all clients that are gone have left the broker.
    fn is_serving(&self) -> bool {
        !self.broker.stalled() && self.leaving.is_empty()
    }

    /// Everything that would be due with the next command happens before it is read: it may use up
    /// the room that the command needs.
    fn hurry(&mut self, outside: &mut Outside) {
        for _ in 0..HURRIES_MAX {
            let next = self.now + Nanos(1);
            if self.broker.poll_timeout().is_none_or(|due| due > next) {
                break;
            }
            self.tick(outside);
        }
    }

    fn is_due(&self) -> bool {
        self.broker.poll_timeout().is_some_and(|due| due <= self.now)
    }

    /// Due things happen; true if anything did, since a flush may have to wait for the disk. A
    /// retry by time, as of the spill when it was full, may let others go on at the same moment:
    /// these do so the second time.
    fn fire(&mut self, outside: &mut Outside) -> bool {
        (0..2).any(|_| self.fire_once(outside))
    }

    fn fire_once(&mut self, outside: &mut Outside) -> bool {
        self.bid_farewell(outside);
        if self.stepped_at == self.now {
            self.now = self.now + Nanos(1);
        }
        let before = (self.broker.poll_timeout(), self.broker.steps());
        let was_stalled = self.broker.stalled();
        let mut outputs = Vec::new();
        let memory = self.broker.memory_bytes();
        self.tell_room(outside);
        self.broker.handle_timeout(self.now, &mut outputs);
        self.tell_memory(memory, outside);
        self.route(None, outputs, outside);
        if !was_stalled {
            outside.oracle.shed_what_stayed(self.now);
        }
        // Due things wait while the broker is stalled, and the oracle does not hear of them then.
        if !was_stalled && !self.broker.stalled() && !self.is_due() {
            outside.oracle.timed(self.now);
        }
        self.poll(outside);
        (self.broker.poll_timeout(), self.broker.steps()) != before
    }
}

impl Outside {
    fn trace(&self, now: Nanos, text: impl FnOnce() -> String) {
        if self.trace {
            eprintln!("{now} {}", text());
        }
    }

    fn client(&mut self, id: u64) -> &mut Client {
        self.clients.get_mut(&id).expect("invariant: a connection has a client")
    }
}

impl Connection {
    fn poll_command(&mut self, shared: &mut ListenerState) -> Option<Command> {
        let Self { session, input, output, .. } = self;
        let command = session.poll_command(input, shared, output);
        self.push(DependsOn::NOTHING);
        command.or_else(|| self.end_of_input())
    }

    /// All commands that have arrived were given: the session hears that there will be no more.
    fn end_of_input(&mut self) -> Option<Command> {
        if !std::mem::take(&mut self.ended) {
            return None;
        }
        self.told = true;
        self.session.handle_half_close()
    }

    fn push(&mut self, after: DependsOn) {
        self.gate.push(after, self.taken + self.output.len() as u64);
    }
}

fn concerns_messages(command: &Command) -> bool {
    !matches!(
        command,
        Command::OpenProducer { .. } | Command::Watch { .. } | Command::Unwatch { .. }
    )
}

/// True if it answers an earlier command.
const fn is_late(reply: &Reply) -> bool {
    matches!(reply, Reply::Late { .. })
}

/// Without the bytes of a body, which come last.
fn brief(said: &impl std::fmt::Debug) -> String {
    let mut text = format!("{said:?}");
    text.truncate(text.find("body: ").unwrap_or(text.len()));
    text
}

/// True if a reply is about one message, and waits for nothing else.
fn shows_one(reply: &Reply) -> bool {
    matches!(reply, Reply::Stored { .. } | Reply::Delivered(_) | Reply::Found { .. } | Reply::Done)
}

struct NoFacts;

impl StatsFacts for NoFacts {
    fn pid(&self) -> u32 {
        1
    }
    fn version(&self) -> &str {
        "simulation"
    }
    fn user_time(&self) -> Nanos {
        Nanos::ZERO
    }
    fn system_time(&self) -> Nanos {
        Nanos::ZERO
    }
    fn uptime(&self) -> Nanos {
        Nanos::ZERO
    }
    fn instance_id(&self) -> u64 {
        0
    }
    fn hostname(&self) -> &str {
        "nowhere"
    }
    fn os(&self) -> &str {
        "none"
    }
    fn platform(&self) -> &str {
        "none"
    }
    fn journal(&self) -> JournalFacts {
        JournalFacts::default()
    }
}

/// The device answers every call within this time; a process that waits longer is not simulated.
const DEVICE_DELAY_MAX: Nanos = Nanos::from_millis(20);

/// More things than are due one right after the other; one that waits for the disk stays due.
const HURRIES_MAX: usize = 64;

/// More timers than there can be messages, waits and pauses.
const TIMERS_MAX: usize = 10_000;

/// A connection that does not read is not served beyond this.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;
