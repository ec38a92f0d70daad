//! The gateway of HTTP that ships, over the simulated broker. Each request is a future that the
//! client polls when it reads; one that leaves drops its futures.
//!
//! The [`Ledger`] tells which request a command and an output belong to. So the oracle learns the
//! content of an answer once the client reads it.

mod ledger;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use http_api::{
    Actor, Asker, BrokerTurn, Events as _, Following, GatewayClient, GatewayError, GatewayOptions,
    GatewayState, Leased, RequestQueue, Step, Token, Wanted, Work,
};
use journal::{Disk, Durable};
use model::{
    AdminCommand, Command, DependsOn, Draining, Lsn, Nanos, NewMessage, Output, QueueName, Reply,
    SessionId, WallClock,
};

use super::{Outside, Server, brief, is_late, shows_one};
use crate::Wish;
use crate::history::Changes;
use crate::http_client::{HttpWish, Post, Received};
use crate::registration::name;
use ledger::{Ledger, RequestId};

/// The shipped gateway, its clients, and the facts about both that the oracle needs.
#[derive(Debug)]
pub(super) struct Gateway {
    /// Away while it takes a step.
    state: Option<GatewayState>,
    requests: Arc<RequestQueue>,
    handle: GatewayClient,
    connections: BTreeMap<u64, Connection>,
    /// Outputs for its sessions that it has not taken.
    said: VecDeque<Output>,
    ledger: Ledger,
}

/// The requests of one client that it has not read the answers to.
#[derive(Debug, Default)]
struct Connection {
    calls: Vec<(RequestId, Call)>,
    following: Option<Following>,
}

type Asked<T> = Pin<Box<dyn Future<Output = Result<T, GatewayError>>>>;

/// A request under way.
enum Call {
    Work(Asked<Vec<Reply>>),
    Receive(Asked<Vec<Leased>>),
    Follow {
        call: Asked<Following>,
        /// The client has left the stream before it began.
        has_left: bool,
    },
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Work(_) => "Work",
            Self::Receive(_) => "Receive",
            Self::Follow { .. } => "Follow",
        })
    }
}

/// The simulated broker during one step of the gateway.
struct SimulatedBroker<'a, D: Disk> {
    server: &'a mut Server<D>,
    outside: &'a mut Outside,
}

impl<D: Disk> BrokerTurn for SimulatedBroker<'_, D> {
    fn now(&self) -> Nanos {
        self.server.now
    }

    fn steps(&self) -> u64 {
        self.server.broker.steps()
    }

    fn stalled(&self) -> bool {
        self.server.broker.stalled()
    }

    fn holds_back(&self) -> bool {
        self.server.broker.holds_back()
    }

    fn takes(&self, session: SessionId, command: &Command) -> bool {
        self.server.broker.takes(session, command)
    }

    fn uncommitted_max(&self) -> usize {
        self.server.broker.uncommitted_max()
    }

    fn session_id(&self, number: u64) -> SessionId {
        SessionId(SESSIONS + number)
    }

    fn open_session(&mut self, session: SessionId) {
        self.server.broker.open_session(session);
    }

    fn name_session(&mut self, session: SessionId, name: Arc<str>) {
        self.server.broker.name_session(session, name);
    }

    fn act_for(&mut self, session: SessionId, actor: &Actor) {
        self.server.broker.act_for(session, actor.principal.clone());
    }

    fn let_overtake(&mut self, session: SessionId) {
        self.server.broker.let_overtake(session);
    }

    fn dismiss_session(&mut self, session: SessionId, outputs: &mut Vec<Output>) {
        let Self { server, outside } = self;
        server.gateway.ledger.end_session(session.0);
        outside.oracle.closed(server.now, session.0, &BTreeSet::new());
        server.step_broker(outside, |broker, now, said| broker.dismiss_session(now, session, said));
        outputs.extend(server.gateway.said.drain(..));
    }

    fn handle(&mut self, session: SessionId, command: Command, outputs: &mut Vec<Output>) {
        let Self { server, outside } = self;
        server.handle_http(session.0, &command, outside);
        outputs.extend(server.gateway.said.drain(..));
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.server.gateway.said.pop_front()
    }

    fn note_awaited(&mut self, after: DependsOn) {
        self.server.writing.note_awaited(after);
    }
}

impl<D: Disk> Server<D> {
    /// The gateway's own sessions begin.
    pub(super) fn open_gateway(&mut self, outside: &mut Outside) {
        let options = GatewayOptions {
            instance: self.now.0,
            receives_max: RECEIVES_MAX,
            transactions_max: 0,
            wall_clock: WallClock::default(),
            draining: Draining::default(),
        };
        let mut broker = SimulatedBroker { server: self, outside };
        let state = GatewayState::open(options, &mut broker);
        self.gateway.state = Some(state);
    }

    /// A client of HTTP has connected.
    pub fn connect_http(&mut self, id: u64) {
        self.gateway.connections.insert(id, Connection::default());
    }

    /// Answers that a client may read by now, and the changes that each reflects.
    pub fn release_http(&mut self, id: u64) -> Vec<(Received, Vec<Changes>)> {
        let all = Durable { written: Lsn(u64::MAX), synced: Lsn(u64::MAX) };
        let durable = if self.gate_is_open { all } else { self.broker.durable() };
        let untaken = self.gateway.state_mut().release(durable);
        self.gateway.requests.give_back(untaken);
        self.gateway.read(id)
    }

    /// Serves all clients of HTTP, each command at a time of its own.
    pub(super) fn serve_http(&mut self, outside: &mut Outside) {
        self.gateway.state_mut().resume_postponed();
        loop {
            let now = self.tick(outside);
            if !self.is_serving() {
                return;
            }
            if self.gateway.is_due(now) {
                self.step_gateway(outside, STEPS);
                continue;
            }
            self.gateway.ledger.note_idle(outside);
            let Some((client, wish)) = outside.next_http() else { return };
            outside.trace(now, || format!("client {client} asks for {}", wish.summary()));
            let actor = Actor { principal: self.principal.clone(), from: None };
            self.gateway.begin(now, client, wish, actor);
        }
    }

    /// A client is gone: the gateway hears of all that it had under way.
    pub(super) fn leave_http(&mut self, id: u64) {
        self.gateway.connections.remove(&id);
        self.gateway.ledger.forget(id);
    }

    /// True if the gateway has something to do that nothing but a stall keeps it from.
    pub(super) fn gateway_is_due(&self) -> bool {
        self.gateway.is_due(self.now)
    }

    /// Lets the gateway take in outputs that other threads caused; tells if there were any.
    pub(super) fn wake_gateway(&mut self, outside: &mut Outside) -> bool {
        let has_mail = !self.gateway.said.is_empty();
        if has_mail {
            self.step_gateway(outside, 0);
        }
        has_mail
    }

    fn step_gateway(&mut self, outside: &mut Outside, steps_max: u64) {
        let mut state = self.gateway.state.take().expect("invariant: it is put back below");
        let requests = Arc::clone(&self.gateway.requests);
        state.step(&mut SimulatedBroker { server: self, outside }, &requests, steps_max);
        self.gateway.state = Some(state);
    }

    /// Lets the broker do something for the gateway, and takes in its outputs.
    fn step_broker(
        &mut self,
        outside: &mut Outside,
        step: impl FnOnce(&mut crate::Paged<D::File>, Nanos, &mut Vec<Output>),
    ) {
        let outputs = self.ask_broker(outside, step);
        self.route(None, outputs, outside);
    }

    fn ask_broker(
        &mut self,
        outside: &mut Outside,
        step: impl FnOnce(&mut crate::Paged<D::File>, Nanos, &mut Vec<Output>),
    ) -> Vec<Output> {
        self.stepped_at = self.now;
        let frames = self.broker.counters().frames;
        let mut outputs = Vec::new();
        self.tell_room(outside);
        let memory = self.broker.memory_bytes();
        step(&mut self.broker, self.now, &mut outputs);
        self.appended = self.broker.counters().frames - frames;
        self.tell_memory(memory, outside);
        outputs
    }

    fn handle_http(&mut self, session: u64, command: &Command, outside: &mut Outside) {
        let request = self.gateway.ledger.note_command(session, command);
        if let Command::CancelSend { ticket } = command {
            outside.oracle.abandons(*ticket);
            if self.ignores_hang_ups {
                return;
            }
        }
        let mut outputs = self.ask_broker(outside, |broker, now, outputs| {
            broker.handle(now, SessionId(session), command.clone(), outputs);
        });
        let is_answered = !matches!(
            command,
            Command::Receive { .. }
                | Command::CancelReceive { .. }
                | Command::CancelSend { .. }
                | Command::Credit { .. }
        );
        let ahead = outputs.iter().take_while(|it| is_answered && is_late(&it.reply)).count();
        self.route(None, outputs.drain(..ahead).collect(), outside);
        let answer = is_answered.then(|| outputs.remove(0));
        self.judge_http(session, command, answer.as_ref(), request, outside);
        self.gateway.said.extend(answer);
        self.route(None, outputs, outside);
    }

    /// Lets the oracle judge the answer to a command.
    fn judge_http(
        &mut self,
        session: u64,
        command: &Command,
        answer: Option<&Output>,
        request: Option<RequestId>,
        outside: &mut Outside,
    ) {
        let reply = answer.map(|output| &output.reply);
        outside.trace(self.now, || format!("for {session}: {} -> {reply:?}", brief(command)));
        let changes = outside.judge_http(self.now, session, command, reply);
        let Some(Output { after, reply, .. }) = answer else { return };
        if shows_one(reply) && outside.oracle.are_in_memory(changes.clone()) {
            assert_eq!(after.lsn, Lsn::ZERO, "{command:?} is about memory alone");
            let may_write = outside.oracle.sheds();
            assert!(self.appended == 0 || may_write, "{command:?} went to the disk");
        }
        if let Some(request) = request {
            self.gateway.ledger.note_reply(request, reply, changes);
        }
    }

    /// True if the outputs for a session go to the gateway.
    pub(super) fn is_of_gateway(&self, session: u64) -> bool {
        session >= SESSIONS && SessionId(session) != super::operator::SESSION
    }

    /// Lets the oracle judge outputs that the gateway did not ask for, or late answers to commands
    /// that waited.
    pub(super) fn route_http(&mut self, output: Output, outside: &mut Outside) {
        let Output { session: SessionId(id), after, ref reply } = output;
        outside.trace(self.now, || format!("for {id}: {}", brief(reply)));
        let (now, ledger) = (self.now, &mut self.gateway.ledger);
        match reply {
            Reply::Delivered(delivery) if id == LEASES => {
                let link = delivery.link.expect("a receive is a link");
                let changes = ledger.note_received(now, link, reply, outside);
                outside.assert_in_memory(&changes, after, reply);
            }
            Reply::TimedOut { link: Some(link) } => {
                ledger.note_received(now, *link, reply, outside);
            }
            Reply::Delivered(delivery) => {
                let changes = outside.oracle.delivered(now, id, delivery);
                outside.assert_in_memory(&changes, after, reply);
                ledger.note_event(id, delivery.message, changes);
            }
            Reply::ConsumerCutOff { link, full } => {
                outside.oracle.cut_off(now, id, link.0, full);
            }
            Reply::Late { ticket, reply } => {
                let changes = outside.oracle.late(now, id, *ticket, reply);
                ledger.note_late(*ticket, reply, changes);
            }
            _ => panic!("{reply:?} for {id}, unasked"),
        }
        self.gateway.said.push_back(output);
    }
}

impl Default for Gateway {
    fn default() -> Self {
        let requests = Arc::new(RequestQueue::default());
        Self {
            state: None,
            handle: GatewayClient::new(Arc::clone(&requests), UNREAD_MAX),
            requests,
            connections: BTreeMap::new(),
            said: VecDeque::new(),
            ledger: Ledger::default(),
        }
    }
}

impl Gateway {
    fn state_mut(&mut self) -> &mut GatewayState {
        self.state.as_mut().expect("invariant: it is away only while it takes a step")
    }

    fn is_due(&self, now: Nanos) -> bool {
        let state = self.state.as_ref().expect("invariant: no step is taken meanwhile");
        let is_slow = state.deadline().is_some_and(|deadline| deadline <= now);
        is_slow || !self.said.is_empty() || state.is_behind(&self.requests)
    }

    /// A request of a client reaches the queue.
    fn begin(&mut self, now: Nanos, client: u64, wish: HttpWish, actor: Actor) {
        if wish == HttpWish::Leave {
            return self.leave_stream(client);
        }
        let Some(connection) = self.connections.get_mut(&client) else { return };
        let request = self.ledger.begin(client);
        let handle = self.handle.clone();
        let mut call = match wish {
            HttpWish::Leave => return,
            HttpWish::Send { to, post } => {
                let message = post.message(now);
                self.ledger.note_send(Arc::clone(&message.body));
                Call::work(handle, actor, Work::steps(vec![Step::Put { to, message, count: 1 }]))
            }
            HttpWish::Settle { token, how: settling } => {
                self.ledger.note_settling(token, settling);
                Call::work(handle, actor, Work::steps(vec![Step::Settle { token, settling }]))
            }
            HttpWish::Browse { queue } => Call::work(handle, actor, Work::command(browse(&queue))),
            HttpWish::Receive { queue, max, wait, lease } => {
                let (queue, asker) = (name(&queue), Asker::default());
                let wanted = Wanted { queue, wait, lease, max, asker };
                Call::Receive(Box::pin(async move { handle.receive(actor, wanted).await }))
            }
            HttpWish::Follow { topic } => {
                let topic = name(&topic);
                let call: Asked<_> = Box::pin(async move { handle.follow(actor, topic).await });
                Call::Follow { call, has_left: false }
            }
        };
        let answer = call.poll(request, &mut self.ledger);
        assert!(answer.is_none(), "no request is answered before the gateway has seen it");
        connection.calls.push((request, call));
    }

    /// A client reads no more of the stream that it follows.
    fn leave_stream(&mut self, client: u64) {
        let Some(connection) = self.connections.get_mut(&client) else { return };
        connection.following = None;
        for (_, call) in &mut connection.calls {
            if let Call::Follow { has_left, .. } = call {
                *has_left = true;
            }
        }
        self.ledger.forget_stream(client);
    }

    /// Takes the answers that have come for a client.
    fn read(&mut self, client: u64) -> Vec<(Received, Vec<Changes>)> {
        let Some(connection) = self.connections.get_mut(&client) else { return Vec::new() };
        let mut all = Vec::new();
        connection.calls.retain_mut(|(request, call)| {
            let Some((answer, changes)) = call.poll(*request, &mut self.ledger) else {
                return true;
            };
            let heard = match answer {
                Answer::Work => Received::Answer,
                Answer::Leased(leased) => Received::Leased(leased),
                Answer::Follows(following) => {
                    connection.following = following.or(connection.following.take());
                    Received::Answer
                }
            };
            all.push((heard, changes));
            false
        });
        let Some(mut following) = connection.following.take() else { return all };
        while let Some(event) = poll(pin!(following.next())) {
            let Some(event) = event else {
                self.ledger.end_stream(client);
                all.push((Received::End, Vec::new()));
                return all;
            };
            all.push((Received::Event, vec![self.ledger.take_event(client, event.message)]));
        }
        connection.following = Some(following);
        all
    }
}

/// The answer to a call.
enum Answer {
    Work,
    Leased(Vec<Token>),
    Follows(Option<Following>),
}

impl Call {
    fn work(handle: GatewayClient, actor: Actor, work: Work) -> Self {
        Self::Work(Box::pin(async move { handle.ask(actor, work).await }))
    }

    /// The answer, once it is there, and the changes that it reflects.
    fn poll(&mut self, request: RequestId, ledger: &mut Ledger) -> Option<(Answer, Vec<Changes>)> {
        Some(match self {
            Self::Work(call) => {
                let answer = poll(call.as_mut())?;
                (Answer::Work, ledger.end_work(request, &answer))
            }
            Self::Receive(call) => {
                let answer = poll(call.as_mut())?;
                let changes = ledger.end_receive(request, &answer);
                let leased = answer.unwrap_or_default();
                (Answer::Leased(leased.iter().map(|leased| leased.token).collect()), changes)
            }
            Self::Follow { call, has_left } => {
                let following = poll(call.as_mut())?.ok();
                let following = following.filter(|_| !*has_left);
                (Answer::Follows(following), ledger.end_follow(request))
            }
        })
    }
}

/// A poll that nothing wakes: the simulation polls again when a client reads.
fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

impl Outside {
    /// The first request that the server has not seen, and its client.
    fn next_http(&mut self) -> Option<(u64, HttpWish)> {
        let mut clients = self.http_clients.values_mut();
        clients.find_map(|client| Some((client.id, client.outbound.pop_front()?)))
    }

    /// Commands of the gateway that do not concern the oracle reflect nothing.
    fn judge_http(
        &mut self,
        now: Nanos,
        session: u64,
        command: &Command,
        reply: Option<&Reply>,
    ) -> Changes {
        let wish = match command {
            Command::Watch { .. } | Command::Receive { .. } | Command::CancelReceive { .. } => {
                return 0..0;
            }
            Command::CloseConsumer { .. } | Command::CancelSend { .. } => return 0..0,
            Command::Admin(admin) => {
                let page = match reply {
                    Some(Reply::Page(page)) => page,
                    other => panic!("{other:?} to who looks through a queue"),
                };
                return self.oracle.browsed(now, browsed(admin).as_str(), page);
            }
            Command::Release { message, priority, delay } => {
                let delay = delay.expect("invariant: it says how long");
                let delay = u32::try_from(delay.as_secs()).expect("invariant: a second or none");
                Wish::Release { id: message.0, priority: *priority, delay }
            }
            Command::Bury { message, priority } => {
                Wish::Bury { id: message.0, priority: *priority }
            }
            _ => return self.oracle.commanded(now, session, command, reply),
        };
        self.oracle.answered(now, session, &wish, reply.expect("it is answered at once"))
    }

    /// A reply that shows one message of memory alone waits for nothing.
    fn assert_in_memory(&self, changes: &Changes, after: DependsOn, reply: &Reply) {
        if self.oracle.are_in_memory(changes.clone()) {
            assert_eq!(after.lsn, Lsn::ZERO, "{reply:?} is in memory alone");
        }
    }
}

/// A look through all of a queue.
fn browse(queue: &str) -> Command {
    Command::Admin(Box::new(AdminCommand::Browse {
        queue: name(queue),
        state: None,
        selector: None,
        after: None,
        max: model::limits::PAGE_MESSAGES_MAX,
    }))
}

/// The queue that is looked through.
fn browsed(admin: &AdminCommand) -> &QueueName {
    let AdminCommand::Browse { queue, .. } = admin else { panic!("nobody asks for {admin:?}") };
    queue
}

impl Post {
    /// The message to store if it comes now.
    fn message(&self, now: Nanos) -> NewMessage {
        NewMessage {
            priority: self.priority,
            delay: self.delay,
            expires: self.ttl.map(|ttl| now + ttl),
            persistence: self.persistence,
            send_id: self.send_id.as_deref().map(Arc::from),
            ..NewMessage::new(Arc::from(&self.body[..]))
        }
    }
}

/// Sessions behind this one are the gateway's: two of its own and those of followers.
const SESSIONS: u64 = 1 << 40;

/// The session of all leases.
const LEASES: u64 = SESSIONS + 1;

/// Steps of the broker in a turn of the gateway, so that commands have times of their own.
const STEPS: u64 = 1;

/// Receives that may wait: so few that some are refused.
const RECEIVES_MAX: usize = 16;

/// Messages that a follower may leave unread: so few that credit runs out.
const UNREAD_MAX: usize = 3;
