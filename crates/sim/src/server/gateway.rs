//! The gateway of HTTP, as the server has it: one session for all leases and for what is sent, and
//! one for each who follows a topic. What is said waits until what it depends on is durable.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use journal::{Disk, Durable};
use model::{
    AdminCommand, Command, DependsOn, LinkId, Lsn, MessageId, Nanos, NewMessage, Output, QueueName,
    Reply, SessionId, Settlement, Subscription,
};

use super::{Outside, Server, brief, is_late, shows_one};
use crate::Wish;
use crate::history::Changes;
use crate::http_client::{Heard, HttpWish, Post, Settling, Token};
use crate::registration::name;

/// All that the gateway knows.
#[derive(Debug, Default)]
pub(super) struct Gateway {
    /// What clients are to read, by client.
    held: BTreeMap<u64, Vec<Held>>,
    /// What the broker is to be asked for, one after the other.
    todo: VecDeque<Todo>,
    receives: BTreeMap<LinkId, Receiving>,
    next_link: u32,
    leases: BTreeMap<u64, Lease>,
    leases_given: u64,
    /// By their sessions.
    followers: BTreeMap<u64, Follower>,
    sessions_given: u64,
    /// Whose sends wait, by ticket.
    paced: BTreeMap<u64, u64>,
    /// It gives a command of its own, and hears what comes of it at once.
    stepping: bool,
}

/// What a client is to read once these are durable, and the changes that it reflects.
#[derive(Debug)]
struct Held {
    after: Vec<DependsOn>,
    heard: Heard,
    changes: Vec<Changes>,
}

/// What the broker is to be asked for.
#[derive(Clone, Debug)]
enum Todo {
    /// By a session, on behalf of a client who hears the answer, or of nobody.
    Ask(u64, Command, Option<u64>),
    /// The session of a follower ends.
    Dismiss(u64),
}

/// A receive that is not answered.
#[derive(Debug)]
struct Receiving {
    client: u64,
    queue: Rc<str>,
    max: usize,
    lease: Nanos,
    got: Vec<Token>,
    after: Vec<DependsOn>,
    changes: Vec<Changes>,
}

/// A lease that somebody may settle.
#[derive(Clone, Copy, Debug)]
struct Lease {
    number: u64,
    ends: Nanos,
    priority: u32,
}

/// Who follows a topic.
#[derive(Clone, Copy, Debug)]
struct Follower {
    client: u64,
    limit: u64,
}

impl<D: Disk> Server<D> {
    /// A client of HTTP has connected.
    pub fn connect_http(&mut self, id: u64) {
        self.gateway.held.insert(id, Vec::new());
    }

    /// The sessions begin that are nobody's connection.
    pub(super) fn open_gateway(&mut self) {
        for session in [LEASES, ASKING] {
            self.broker.open_session(SessionId(session));
            self.broker.let_overtake(SessionId(session));
        }
    }

    /// What a client may read by now, and the changes that each reflects.
    pub fn release_http(&mut self, id: u64) -> Vec<(Heard, Vec<Changes>)> {
        let (durable, open) = (self.broker.durable(), self.gate_is_open);
        let Some(held) = self.gateway.held.get_mut(&id) else { return Vec::new() };
        let safe: Vec<Held> = held.extract_if(.., |it| open || it.is_safe(durable)).collect();
        let events = safe.iter().filter(|it| it.heard == Heard::Event).count() as u64;
        self.gateway.took(id, events);
        safe.into_iter().map(|it| (it.heard, it.changes)).collect()
    }

    /// Serves all clients of HTTP.
    pub(super) fn serve_http(&mut self, outside: &mut Outside) {
        loop {
            let now = self.tick(outside);
            self.gateway.leases.retain(|_, lease| lease.ends > now);
            if !self.is_serving() {
                return;
            }
            if let Some(todo) = self.next_todo() {
                self.step_http(now, todo, outside);
            } else if let Some((client, wish)) = outside.next_http() {
                outside.trace(now, || format!("client {client} asks for {}", wish.summary()));
                self.begin_http(now, client, wish, outside);
            } else {
                return;
            }
        }
    }

    /// A client is gone: its waiting ends, what it has not read of leases goes back, and what it
    /// sent is sent unless it waits.
    pub(super) fn leave_http(&mut self, id: u64, outside: &mut Outside) {
        let Some(held) = self.gateway.held.remove(&id) else { return };
        let unread = held.into_iter().filter_map(|it| match it.heard {
            Heard::Leased(tokens) => Some(tokens),
            _ => None,
        });
        unread.flatten().for_each(|token| self.gateway.give_back(token));
        let own = self.gateway.receives.iter().filter(|(_, it)| it.client == id);
        for link in own.map(|(link, _)| *link).collect::<Vec<_>>() {
            self.gateway.ask(LEASES, Command::CancelReceive { link }, None);
        }
        self.gateway.stop_following(id);
        let own = self.gateway.paced.iter().filter(|(_, client)| **client == id);
        for ticket in own.map(|(ticket, _)| *ticket).collect::<Vec<_>>() {
            let cancel = Todo::Ask(LEASES, Command::CancelSend { ticket }, None);
            self.step_http(self.now, cancel, outside);
        }
    }

    /// What may be done next: what is sent and waits for the log lets others pass.
    fn next_todo(&mut self) -> Option<Todo> {
        let takes = |todo: &Todo| match todo {
            Todo::Ask(session, command, _) => self.broker.takes(SessionId(*session), command),
            Todo::Dismiss(_) => true,
        };
        let index = self.gateway.todo.iter().position(takes)?;
        self.gateway.todo.remove(index)
    }

    fn begin_http(&mut self, now: Nanos, client: u64, wish: HttpWish, outside: &mut Outside) {
        let gateway = &mut self.gateway;
        match wish {
            HttpWish::Send { to, post } => {
                let command = Command::PutTo { to, message: post.message(now), transaction: None };
                gateway.ask(LEASES, command, Some(client));
            }
            HttpWish::Follow { topic } => {
                let session = gateway.begin_to_follow(client, &topic);
                self.broker.open_session(SessionId(session));
            }
            HttpWish::Leave => gateway.stop_following(client),
            HttpWish::Receive { queue, max, wait, lease } => {
                gateway.begin_receive(client, queue, max, wait, lease);
            }
            HttpWish::Browse { queue } => {
                let queue = name(&queue);
                let browse = AdminCommand::Browse {
                    queue,
                    state: None,
                    selector: None,
                    after: None,
                    max: model::limits::PAGE_MESSAGES_MAX,
                };
                gateway.ask(ASKING, Command::Admin(Box::new(browse)), Some(client));
            }
            HttpWish::Settle { token, how } => match gateway.settling(token, how) {
                Some(command) => gateway.ask(LEASES, command, Some(client)),
                // It is over.
                None => gateway.hold(client, Heard::Answer, vec![], vec![], outside),
            },
        }
    }

    fn step_http(&mut self, now: Nanos, todo: Todo, outside: &mut Outside) {
        self.gateway.stepping = true;
        self.give_command(now, todo, outside);
        self.gateway.stepping = false;
    }

    fn give_command(&mut self, now: Nanos, todo: Todo, outside: &mut Outside) {
        self.stepped_at = now;
        let frames = self.broker.counters().frames;
        let mut outputs = Vec::new();
        self.tell_room(outside);
        let memory = self.broker.memory_bytes();
        let Todo::Ask(session, command, client) = todo else {
            let Todo::Dismiss(session) = todo else { unreachable!("there are two kinds") };
            outside.oracle.closed(now, session, &BTreeSet::new());
            self.broker.dismiss_session(now, SessionId(session), &mut outputs);
            self.tell_memory(memory, outside);
            return self.route(None, outputs, outside);
        };
        if let Command::CancelSend { ticket } = command {
            outside.oracle.abandons(ticket);
            if self.ignores_hang_ups {
                return;
            }
        }
        self.broker.handle(now, SessionId(session), command.clone(), &mut outputs);
        self.appended = self.broker.counters().frames - frames;
        self.tell_memory(memory, outside);
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
        answer.iter().for_each(|answer| self.writing.note_awaited(answer.after));
        self.judge_http(session, &command, answer, client, outside);
        self.route(None, outputs, outside);
    }

    /// Lets the oracle judge what was asked for, and the client know.
    fn judge_http(
        &mut self,
        session: u64,
        command: &Command,
        answer: Option<Output>,
        client: Option<u64>,
        outside: &mut Outside,
    ) {
        let reply = answer.as_ref().map(|output| &output.reply);
        outside.trace(self.now, || format!("for {session}: {} -> {reply:?}", brief(command)));
        let changes = outside.judge_http(self.now, session, command, reply);
        let Some(Output { after, reply, .. }) = answer else { return };
        if shows_one(&reply) && outside.oracle.are_in_memory(changes.clone()) {
            assert_eq!(after.lsn, Lsn::ZERO, "{command:?} is about memory alone");
            let may_write = outside.oracle.sheds();
            assert!(self.appended == 0 || may_write, "{command:?} went to the disk");
        }
        if let (Command::Subscribe { .. }, Reply::Refused(_)) = (command, &reply) {
            self.gateway.lose(session, outside);
        }
        match (reply, client) {
            (Reply::Waits { ticket }, Some(client)) => {
                self.gateway.paced.insert(ticket, client);
            }
            (_, Some(client)) => {
                self.gateway.hold(client, Heard::Answer, vec![after], vec![changes], outside);
            }
            (_, None) => {}
        }
    }

    /// Whether what is said to a session is the gateway's to hear.
    pub(super) fn is_of_gateway(&self, session: u64) -> bool {
        session >= FOLLOWERS && SessionId(session) != super::operator::SESSION
    }

    /// Takes in what was not asked for, and the answers to what waited.
    pub(super) fn route_http(&mut self, output: Output, outside: &mut Outside) {
        let Output { session: SessionId(id), after, reply } = output;
        outside.trace(self.now, || format!("for {id}: {}", brief(&reply)));
        let (now, gateway) = (self.now, &mut self.gateway);
        match &reply {
            Reply::Delivered(delivery) if id == LEASES => {
                let link = delivery.link.expect("a receive is a link");
                let receiving = gateway.receives.get(&link).expect("a receive that goes on");
                let (queue, lease) = (receiving.queue.clone(), receiving.lease);
                let changes = outside.oracle.received(now, id, &queue, lease, &reply);
                outside.assert_in_memory(&changes, after, &reply);
                let ends = now + lease;
                let token = gateway.insert_lease(delivery.message.0, ends, delivery.priority);
                gateway.got(link, token, after, changes, outside);
            }
            Reply::TimedOut { link: Some(link) } => {
                let receiving = gateway.receives.get_mut(link).expect("a receive that goes on");
                let (queue, lease) = (receiving.queue.clone(), receiving.lease);
                let changes = outside.oracle.received(now, id, &queue, lease, &reply);
                receiving.after.push(after);
                receiving.changes.push(changes);
                gateway.end_receive(*link, outside);
            }
            Reply::Delivered(delivery) => {
                let changes = outside.oracle.delivered(now, id, delivery);
                outside.assert_in_memory(&changes, after, &reply);
                if let Some(client) = gateway.client_of(id) {
                    gateway.accept(id, delivery.message);
                    gateway.hold(client, Heard::Event, vec![after], vec![changes], outside);
                }
            }
            Reply::ConsumerCutOff { link, full } => {
                outside.oracle.cut_off(now, id, link.0, full);
                gateway.lose(id, outside);
            }
            Reply::Late { ticket, reply } => {
                let changes = outside.oracle.late(now, id, *ticket, reply);
                let client = gateway.paced.remove(ticket).expect("somebody waits with it");
                gateway.hold(client, Heard::Answer, vec![after], vec![changes], outside);
            }
            _ => panic!("{reply:?} for {id}, unasked"),
        }
    }
}

impl Gateway {
    /// Whether what is said comes of a command of its own.
    pub(super) const fn is_stepping(&self) -> bool {
        self.stepping
    }

    fn ask(&mut self, session: u64, command: Command, client: Option<u64>) {
        self.todo.push_back(Todo::Ask(session, command, client));
    }

    /// A client is to read something, if it is still there.
    fn hold(
        &mut self,
        client: u64,
        heard: Heard,
        after: Vec<DependsOn>,
        changes: Vec<Changes>,
        outside: &mut Outside,
    ) {
        let there = outside.http_clients.get_mut(&client).zip(self.held.get_mut(&client));
        if let Some((client, held)) = there {
            client.awaits(&heard);
            held.push(Held { after, heard, changes });
        } else if let Heard::Leased(tokens) = heard {
            tokens.into_iter().for_each(|token| self.give_back(token));
        }
    }

    fn begin_receive(
        &mut self,
        client: u64,
        queue: Rc<str>,
        max: usize,
        wait: Nanos,
        lease: Nanos,
    ) {
        let link = LinkId(self.next_link);
        self.next_link += 1;
        self.ask(LEASES, Command::Watch { link, queue: name(&queue) }, None);
        self.ask_for(link, wait, lease);
        let (got, after, changes) = (Vec::new(), Vec::new(), Vec::new());
        let receiving = Receiving { client, queue, max, lease, got, after, changes };
        self.receives.insert(link, receiving);
    }

    fn ask_for(&mut self, link: LinkId, wait: Nanos, lease: Nanos) {
        let (wait, lease) = (Some(wait), Some(lease));
        self.ask(LEASES, Command::Receive { link, wait, margin: Nanos::ZERO, lease }, None);
    }

    /// A receive has got a message more, and goes on while there are others.
    fn got(
        &mut self,
        link: LinkId,
        token: Token,
        after: DependsOn,
        changes: Changes,
        outside: &mut Outside,
    ) {
        let receiving = self.receives.get_mut(&link).expect("invariant: it goes on");
        receiving.got.push(token);
        receiving.after.push(after);
        receiving.changes.push(changes);
        if receiving.got.len() < receiving.max {
            let lease = receiving.lease;
            self.ask_for(link, Nanos::ZERO, lease);
        } else {
            self.end_receive(link, outside);
        }
    }

    fn end_receive(&mut self, link: LinkId, outside: &mut Outside) {
        let receiving = self.receives.remove(&link).expect("invariant: it goes on");
        let Receiving { client, got, after, changes, .. } = receiving;
        self.ask(LEASES, Command::CloseConsumer { link }, None);
        self.hold(client, Heard::Leased(got), after, changes, outside);
    }

    fn insert_lease(&mut self, message: u64, ends: Nanos, priority: u32) -> Token {
        self.leases_given += 1;
        let number = self.leases_given;
        self.leases.insert(message, Lease { number, ends, priority });
        Token { message, number }
    }

    fn give_back(&mut self, token: Token) {
        let lease = self.leases.get(&token.message);
        if lease.is_some_and(|lease| lease.number == token.number) {
            self.leases.remove(&token.message);
            let (message, settlement) = (MessageId(token.message), Settlement::Return);
            self.ask(LEASES, Command::Settle { message, settlement, transaction: None }, None);
        }
    }

    /// What ends or extends a lease; `None`: it is over.
    fn settling(&mut self, token: Token, how: Settling) -> Option<Command> {
        let lease = *self.leases.get(&token.message).filter(|it| it.number == token.number)?;
        let message = MessageId(token.message);
        let settle = |settlement| Command::Settle { message, settlement, transaction: None };
        if !matches!(how, Settling::Extend { .. }) {
            self.leases.remove(&token.message);
        }
        Some(match how {
            Settling::Accept => settle(Settlement::Accept),
            Settling::Fail => settle(Settlement::Fail),
            Settling::Release { priority, delay } => {
                let delay = Some(Nanos::from_secs(delay.into()));
                Command::Release { message, priority, delay }
            }
            Settling::Bury => Command::Bury { message, priority: lease.priority },
            Settling::Extend { lease } => Command::Renew { message, lease: Some(lease) },
        })
    }

    fn begin_to_follow(&mut self, client: u64, topic: &str) -> u64 {
        let session = FOLLOWERS + self.sessions_given;
        self.sessions_given += 1;
        self.followers.insert(session, Follower { client, limit: WINDOW });
        let (name, topic) = (None, name(topic));
        let asks = Subscription { name, ..Subscription::new(topic) };
        let subscribe = Command::Subscribe { link: FOLLOWING, subscription: Box::new(asks) };
        self.ask(session, subscribe, Some(client));
        self.allow(session, WINDOW);
        session
    }

    fn allow(&mut self, session: u64, limit: u64) {
        let (link, bytes) = (FOLLOWING, u64::MAX);
        self.ask(session, Command::Credit { link, limit, bytes, drain: false }, None);
    }

    /// Who follows by this session, and has not left.
    fn client_of(&self, session: u64) -> Option<u64> {
        self.followers.get(&session).map(|follower| follower.client)
    }

    /// What was handed on is done with.
    fn accept(&mut self, session: u64, message: MessageId) {
        let settlement = Settlement::Accept;
        self.ask(session, Command::Settle { message, settlement, transaction: None }, None);
    }

    /// A client has read so many events.
    fn took(&mut self, client: u64, events: u64) {
        let mut followers = self.followers.iter_mut();
        let own = followers.find(|(_, follower)| follower.client == client && events > 0);
        if let Some((session, follower)) = own {
            follower.limit += events;
            let (session, limit) = (*session, follower.limit);
            self.allow(session, limit);
        }
    }

    fn stop_following(&mut self, client: u64) {
        let mut followers = self.followers.iter();
        let own = followers.find(|(_, follower)| follower.client == client);
        if let Some(session) = own.map(|(session, _)| *session) {
            self.followers.remove(&session);
            self.todo.push_back(Todo::Dismiss(session));
        }
    }

    /// A follower has lost its subscription, or gets none.
    fn lose(&mut self, session: u64, outside: &mut Outside) {
        let Some(follower) = self.followers.remove(&session) else { return };
        self.todo.push_back(Todo::Dismiss(session));
        if let Some(client) = outside.http_clients.get_mut(&follower.client) {
            client.lose();
        }
    }
}

impl Held {
    fn is_safe(&self, durable: Durable) -> bool {
        self.after.iter().all(|after| durable.covers(*after))
    }
}

impl Outside {
    /// The request that came first of those that the server has not seen, and whose it is.
    fn next_http(&mut self) -> Option<(u64, HttpWish)> {
        let mut clients = self.http_clients.values_mut();
        clients.find_map(|client| Some((client.id, client.outbound.pop_front()?)))
    }

    /// What the gateway asks for and is no concern of the oracle's reflects nothing.
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

    /// What shows one message of memory alone waits for nothing.
    fn assert_in_memory(&self, changes: &Changes, after: DependsOn, reply: &Reply) {
        if self.oracle.are_in_memory(changes.clone()) {
            assert_eq!(after.lsn, Lsn::ZERO, "{reply:?} is in memory alone");
        }
    }
}

/// The queue that is looked through.
fn browsed(admin: &AdminCommand) -> &QueueName {
    let AdminCommand::Browse { queue, .. } = admin else { panic!("nobody asks for {admin:?}") };
    queue
}

impl Post {
    /// As it is stored when it comes now.
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

/// Sessions from here on are the gateway's: those of followers, and two.
const FOLLOWERS: u64 = 1 << 40;

/// The session of all leases.
const LEASES: u64 = u64::MAX - 1;

/// The session of those who look.
const ASKING: u64 = u64::MAX - 2;

/// The one consumer of a follower's session.
const FOLLOWING: LinkId = LinkId(0);

/// Messages that a follower may leave unread.
const WINDOW: u64 = 3;
