//! Random senders in a small memory. It never holds more than it may. Sends go on in their order,
//! none is forgotten, and none waits while there is memory. A transaction is whole or not at all.
//! Parts of transactions wait apart; one that fits overtakes one that does not.

use std::collections::BTreeMap;

use engine::{Effects, Engine, EngineOptions};
use model::{
    Capacity, Command, Destination, End, ListCommand, MessageId, Nanos, NewMessage, Output,
    Persistence, QueueName, Refusal, Reply, SessionId, StorePolicy, TransactionId,
};
use testkit::{Rng, Seen, seeds};

const SESSIONS: u64 = 4;
const STEPS: usize = 1_000;
const BLOCK_TIMEOUT: Nanos = Nanos::from_secs(5);
const LIMIT: u64 = 128 * 1024;
const WORKER: SessionId = SessionId(100);

/// A command of a session that was not told its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Put,
    /// So many elements at once.
    Batch(u64),
    Part(TransactionId),
    Commit(TransactionId),
}

impl Sent {
    fn transaction(self) -> Option<TransactionId> {
        match self {
            Self::Put | Self::Batch(_) => None,
            Self::Part(id) | Self::Commit(id) => Some(id),
        }
    }

    /// In which of the two lists it waits.
    fn list(self) -> usize {
        usize::from(self.transaction().is_some())
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    by: SessionId,
    sent: Sent,
    since: Nanos,
}

struct World {
    rng: Rng,
    now: Nanos,
    engine: Engine,
    effects: Effects,
    waiting: BTreeMap<u64, Waiting>,
    /// When a send went on last that was not refused, and one that may have been; of parts apart.
    moved: [Nanos; 2],
    perhaps_moved: [Nanos; 2],
    /// The last that went on: of sends, and of each transaction.
    last: u64,
    last_parts: BTreeMap<TransactionId, u64>,
    transactions: u64,
    /// Parts that were taken, and whether one was refused.
    parts: BTreeMap<TransactionId, (u64, bool)>,
    stored: u64,
    seen: Seen,
}

#[test]
fn sends_wait_for_memory_in_order() {
    let mut seen = Seen::default();
    for seed in seeds(40) {
        let mut world = World::new(Rng::new(seed));
        for _ in 0..STEPS {
            world.step();
            world.check();
        }
        seen.merge(world.seen);
    }
    let all = [
        "at once",
        "waits",
        "later",
        "late",
        "too many",
        "gone",
        "taken",
        "undone",
        "whole",
        "overtakes",
    ];
    seen.expect(&all, 51);
}

impl World {
    fn new(rng: Rng) -> Self {
        let options = EngineOptions::new(StorePolicy::Always);
        let mut engine = Engine::new(EngineOptions {
            memory_limit: LIMIT,
            block_timeout: BLOCK_TIMEOUT,
            ..options
        });
        engine.open_session(WORKER);
        Self {
            rng,
            now: Nanos::SECOND,
            engine,
            effects: Effects::default(),
            waiting: BTreeMap::new(),
            moved: [Nanos::ZERO; 2],
            perhaps_moved: [Nanos::ZERO; 2],
            last: 0,
            last_parts: BTreeMap::new(),
            transactions: 0,
            parts: BTreeMap::new(),
            stored: 0,
            seen: Seen::default(),
        }
    }

    fn step(&mut self) {
        match self.rng.below(12) {
            0..4 => self.put(),
            4 => self.batch(),
            5 => self.transact(),
            6 | 7 => self.take(),
            8 if self.rng.one_in(6) => self.close(),
            9 if self.rng.one_in(4) => self.now = self.now + BLOCK_TIMEOUT,
            _ => self.now = self.now + Nanos(self.rng.below(400_000_000)),
        }
        self.pass_time();
    }

    fn session(&mut self) -> SessionId {
        let session = SessionId(1 + self.rng.below(SESSIONS));
        self.engine.open_session(session);
        session
    }

    /// A message in no log, so that its body does not leave.
    fn message(&mut self) -> NewMessage {
        let bytes = 500 + self.rng.below(6_500) as usize;
        NewMessage {
            persistence: Persistence::NonPersistent,
            ..NewMessage::new(vec![7; bytes].into())
        }
    }

    fn put(&mut self) {
        let by = self.session();
        let (to, message) = (destination(), self.message());
        self.send(by, Sent::Put, Command::PutTo { to, message, transaction: None });
    }

    fn batch(&mut self) {
        let (by, count) = (self.session(), 1 + self.rng.below(3));
        let push = || ListCommand::Push {
            queue: name(),
            end: End::Tail,
            elements: model::OneOrMany::Many(vec![vec![7; 800].into()]),
            only_existing: false,
            persistence: Persistence::NonPersistent,
        };
        let commands = (0..count).map(|_| Command::List(push())).collect();
        self.send(by, Sent::Batch(count), Command::Batch { commands });
    }

    /// Some parts, and the commit or a rollback behind them, even if the parts wait or are refused.
    fn transact(&mut self) {
        let most = if self.rng.one_in(4) { 8 } else { 3 };
        let (by, count) = (self.session(), 1 + self.rng.below(most));
        self.transactions += 1;
        let id = TransactionId(self.transactions);
        self.ask(by, Command::Begin { transaction: id });
        self.parts.insert(id, (0, false));
        for _ in 0..count {
            let (to, message) = (destination(), self.message());
            let transaction = Some(id);
            self.send(by, Sent::Part(id), Command::PutTo { to, message, transaction });
        }
        if self.rng.one_in(4) {
            assert_eq!(self.ask(by, Command::Rollback { transaction: id }), Reply::Done);
            let left = self.waiting.values().any(|waiting| waiting.sent == Sent::Part(id));
            assert!(!left, "no part of what was rolled back waits");
        } else {
            self.send(by, Sent::Commit(id), Command::Commit { transaction: id });
        }
    }

    fn send(&mut self, by: SessionId, sent: Sent, command: Command) {
        let same_list = |waiting: &&Waiting| waiting.sent.list() == sent.list();
        let awaited = self.waiting.values().any(|waiting| same_list(&waiting));
        let reply = self.ask(by, command);
        match reply {
            Reply::Waits { ticket } => {
                self.seen.saw("waits");
                let waiting = Waiting { by, sent, since: self.now };
                assert!(self.waiting.insert(ticket, waiting).is_none(), "a ticket is given once");
            }
            Reply::Refused(Refusal::MemoryFull) => {
                assert!(awaited, "the first may wait");
                self.seen.saw("too many");
                self.refused(sent);
            }
            reply => {
                let own = |waiting: &Waiting| waiting.sent.transaction() == sent.transaction();
                let overtakes_own = self.waiting.values().any(own);
                assert!(!overtakes_own || self.is_rolled_back(sent), "{sent:?} overtook its like");
                self.seen.saw(if awaited { "overtakes" } else { "at once" });
                self.answered(sent, &reply);
            }
        }
    }

    /// A part of a transaction that cannot commit is refused at once.
    fn is_rolled_back(&self, sent: Sent) -> bool {
        matches!(sent, Sent::Part(id) if self.parts[&id].1)
    }

    fn answered(&mut self, sent: Sent, reply: &Reply) {
        match (sent, reply) {
            (Sent::Put, Reply::Stored { .. }) => self.stored += 1,
            (Sent::Batch(count), Reply::Batch(replies)) => {
                assert_eq!(replies.len() as u64, count);
                self.stored += count;
            }
            (Sent::Part(id), Reply::Done) => self.parts.get_mut(&id).unwrap().0 += 1,
            (Sent::Commit(id), Reply::Done) => {
                let (parts, refused) = self.parts[&id];
                assert!(!refused, "{id:?} lacks a part");
                self.seen.saw("whole");
                self.stored += parts;
            }
            (sent, Reply::Refused(Refusal::TransactionFailed)) => {
                self.seen.saw("undone");
                self.refused(sent);
            }
            other => panic!("{other:?}"),
        }
    }

    fn refused(&mut self, sent: Sent) {
        if let Sent::Part(id) = sent {
            self.parts.get_mut(&id).unwrap().1 = true;
        }
    }

    /// Deletes one of the first messages.
    fn take(&mut self) {
        let queue = name();
        let pop = ListCommand::Pop { queue, end: End::Head, max: 1 + self.rng.below(3) };
        let reply = self.ask(WORKER, Command::List(pop));
        if let Reply::Elements(elements) = reply {
            self.stored -= elements.len() as u64;
            self.seen.saw("taken");
        }
    }

    fn close(&mut self) {
        let session = self.session();
        self.engine.close_session(self.now, session, Capacity::UNBOUNDED, &mut self.effects);
        self.hear();
        let before = self.waiting.len();
        self.waiting.retain(|_, waiting| waiting.by != session);
        self.seen.add("gone", (before - self.waiting.len()) as u64);
    }

    fn pass_time(&mut self) {
        while self.engine.poll_timeout().is_some_and(|at| at <= self.now) {
            self.engine.handle_timeout(self.now, Capacity::UNBOUNDED, &mut self.effects);
            self.hear();
        }
    }

    /// Handles late replies, and gives the one that is not late.
    fn hear(&mut self) -> Option<Reply> {
        let outputs = std::mem::take(&mut self.effects.outputs);
        self.effects.clear();
        let mut answer = None;
        for Output { reply, .. } in outputs {
            let Reply::Late { ticket, reply } = reply else {
                assert!(answer.replace(reply).is_none(), "a command is answered once");
                continue;
            };
            let waiting = self.waiting.remove(&ticket).expect("who is answered late waits");
            let list = waiting.sent.list();
            if *reply == Reply::Refused(Refusal::MemoryFull) {
                let since = waiting.since.max(self.moved[list]);
                assert!(self.now.since(since) >= BLOCK_TIMEOUT, "{waiting:?} has waited so long");
                self.seen.saw("late");
                self.refused(waiting.sent);
                continue;
            }
            self.perhaps_moved[list] = self.now;
            if !matches!(*reply, Reply::Refused(_)) {
                let last = match waiting.sent.transaction() {
                    None => &mut self.last,
                    Some(id) => self.last_parts.entry(id).or_default(),
                };
                assert!(ticket > *last, "{ticket} goes on behind {last}");
                *last = ticket;
                self.moved[list] = self.now;
                self.seen.saw("later");
            }
            self.answered(waiting.sent, &reply);
        }
        answer
    }

    /// Stored messages are known, memory holds no more than it may, and sends that wait lack
    /// memory.
    fn check(&self) {
        self.engine.check();
        let statistics = self.engine.statistics();
        assert_eq!(statistics.ready, self.stored);
        let bytes = self.engine.memory_bytes();
        assert!(bytes <= LIMIT + LIMIT / 16, "{bytes} bytes");
        for list in 0..2 {
            let waiting = self.waiting.values().filter(|waiting| waiting.sent.list() == list);
            let oldest = waiting.map(|waiting| waiting.since).min();
            // Parts may wait for the share that transactions have.
            let is_full = bytes >= LIMIT / 8 * 7 || list == 1 && self.open_bytes() > LIMIT / 4;
            assert!(oldest.is_none() || is_full, "{:?}, with {bytes} bytes", self.waiting);
            let moved = self.perhaps_moved[list];
            let is_served =
                oldest.is_none_or(|since| self.now.since(since.max(moved)) < BLOCK_TIMEOUT);
            assert!(is_served, "{:?} wait at {}", self.waiting, self.now);
        }
    }

    /// About the bytes that open transactions hold.
    fn open_bytes(&self) -> u64 {
        self.engine.uncommitted_bytes() as u64
    }

    fn ask(&mut self, by: SessionId, command: Command) -> Reply {
        self.engine.handle(self.now, by, command, Capacity::UNBOUNDED, &mut self.effects);
        self.hear().expect("each command is answered")
    }
}

fn name() -> QueueName {
    QueueName::new("q").unwrap()
}

fn destination() -> Destination {
    Destination::Queue(name())
}

#[test]
fn message_number_is_given_on_storing() {
    let mut world = World::new(Rng::new(1));
    world.engine.open_session(SessionId(1));
    let put = |bytes: usize| {
        let persistence = Persistence::NonPersistent;
        let message = NewMessage { persistence, ..NewMessage::new(vec![7; bytes].into()) };
        Command::PutTo { to: destination(), message, transaction: None }
    };
    let first = world.ask(SessionId(1), put(LIMIT as usize / 8 * 7));
    assert_eq!(first, Reply::Stored { message: MessageId(1) });
    assert!(matches!(world.ask(SessionId(1), put(1)), Reply::Waits { .. }));
    assert_eq!(world.ask(WORKER, Command::Delete { message: MessageId(1) }), Reply::Done);
    world.engine.handle_timeout(world.now, Capacity::UNBOUNDED, &mut world.effects);
    let late = world.effects.outputs.first().map(|output| output.reply.clone());
    let stored = Box::new(Reply::Stored { message: MessageId(2) });
    assert_eq!(late, Some(Reply::Late { ticket: 1, reply: stored }));
}
