//! Random senders to narrow queues that block them. No queue ever holds too much, no send
//! overtakes, none is forgotten, and none waits if there is a place. In half of the worlds bodies
//! leave memory at once, and a sender that inserts behind an element has to have it back.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use engine::{Effects, Engine, EngineOptions, QueueBounds, QueuePolicies, QueuePolicy, WhenFull};
use model::{
    Capacity, Command, Destination, End, LinkId, ListCommand, MessageId, Nanos, NewMessage, Output,
    PRIORITY_DEFAULT, Persistence, QueueName, Refusal, Reply, SessionId, StorePolicy,
    TransactionId,
};
use testkit::{Rng, Seen, seeds};

use crate::support::log::Log;
use crate::support::paging;

const QUEUES: [&str; 3] = ["a", "b", "c"];
const SESSIONS: u64 = 4;
const STEPS: usize = 1_500;
const BLOCK_TIMEOUT: Nanos = Nanos::from_secs(5);
const WORKER: SessionId = SessionId(100);

/// A send of a session that was not told its result: the targets, and its numbers.
#[derive(Clone, Debug)]
struct Waiting {
    by: SessionId,
    queues: Vec<(&'static str, u64)>,
    bytes: usize,
    /// Behind this one it is to be, if that is still there; else nowhere.
    pivot: Option<u64>,
    since: Nanos,
}

struct World {
    rng: Rng,
    now: Nanos,
    bounds: QueueBounds,
    engine: Engine,
    effects: Effects,
    log: Log,
    /// Late replies that were not looked at.
    late: Vec<Output>,
    sent: u64,
    transactions: u64,
    waiting: BTreeMap<u64, Waiting>,
    /// Messages that were stored in each queue and not taken, in order.
    stored: BTreeMap<&'static str, VecDeque<(u64, usize)>>,
    seen: Seen,
}

#[test]
fn blocked_sends_resume_in_order() {
    let mut seen = Seen::default();
    for seed in seeds(40) {
        let log_bodies_max = if seed % 2 == 0 { u64::MAX } else { 0 };
        let mut world = World::new(Rng::new(seed), log_bodies_max);
        for _ in 0..STEPS {
            world.step();
            world.check();
        }
        seen.merge(world.seen);
    }
    seen.expect(
        &["at once", "waits", "later", "refused", "gone", "taken", "nowhere", "came back"],
        101,
    );
}

impl World {
    fn new(mut rng: Rng, log_bodies_max: u64) -> Self {
        let messages_max = (!rng.one_in(4)).then(|| 1 + rng.below(5));
        let bytes_max = (messages_max.is_none() || rng.one_in(2)).then(|| 24 + rng.below(40));
        let when_full = WhenFull::Block;
        let bounds = QueueBounds { messages_max, bytes_max, when_full, target_age: None };
        let bounded = QueuePolicy { bounds, ..QueuePolicy::default() };
        let named = QUEUES.map(|queue| (name(queue), bounded)).into();
        let queue_policies = QueuePolicies { named, ..QueuePolicies::default() };
        let options = EngineOptions::new(StorePolicy::Always);
        let options = EngineOptions {
            queue_policies,
            block_timeout: BLOCK_TIMEOUT,
            log_bodies_max,
            ..options
        };
        let mut engine = Engine::new(options);
        crate::support::users::open(&mut engine, WORKER);
        let mut world = Self {
            rng,
            now: Nanos::SECOND,
            bounds,
            engine,
            effects: Effects::default(),
            log: Log::default(),
            late: Vec::new(),
            sent: 0,
            transactions: 0,
            waiting: BTreeMap::new(),
            stored: BTreeMap::new(),
            seen: Seen::default(),
        };
        for (queue, link) in QUEUES.iter().zip(0..) {
            world.ask(WORKER, Command::Watch { link: LinkId(link), queue: name(queue) });
        }
        world
    }

    fn step(&mut self) {
        match self.rng.below(12) {
            0..3 => self.put(),
            3 | 4 => self.insert(),
            5 => self.commit(),
            6..9 => self.take(),
            9 if self.rng.one_in(6) => self.close(),
            10 if self.rng.one_in(10) => self.now = self.now + BLOCK_TIMEOUT,
            _ => self.now = self.now + Nanos(self.rng.below(400_000_000)),
        }
        self.pass_time();
    }

    fn session(&mut self) -> SessionId {
        let session = SessionId(1 + self.rng.below(SESSIONS));
        crate::support::users::open(&mut self.engine, session);
        session
    }

    fn put(&mut self) {
        let (by, queue) = (self.session(), self.rng.pick(&QUEUES));
        let bytes = 8 + self.rng.below(12) as usize;
        self.sent += 1;
        let message = message(self.sent, bytes);
        let to = Destination::Queue(name(queue));
        let reply = self.ask(by, Command::PutTo { to, message, transaction: None }).unwrap();
        let (queues, since) = (vec![(queue, self.sent)], self.now);
        self.note(reply, Waiting { by, queues, bytes, pivot: None, since });
    }

    /// Behind an element, as a client of lists does.
    fn insert(&mut self) {
        let (by, queue) = (self.session(), self.rng.pick(&QUEUES));
        let stored = self.stored.get(queue).into_iter().flatten().copied().collect::<Vec<_>>();
        if stored.is_empty() {
            return;
        }
        let (pivot, pivot_bytes) = self.rng.pick(&stored);
        let bytes = 8 + self.rng.below(12) as usize;
        self.sent += 1;
        let insert = ListCommand::Insert {
            queue: name(queue),
            origin: End::Head,
            pivot: body(pivot, pivot_bytes),
            towards: End::Tail,
            element: body(self.sent, bytes),
            persistence: Persistence::Persistent,
        };
        let reply = self.ask(by, Command::List(insert)).unwrap();
        let (queues, since) = (vec![(queue, self.sent)], self.now);
        self.note(reply, Waiting { by, queues, bytes, pivot: Some(pivot), since });
    }

    /// One message for each of some queues.
    fn commit(&mut self) {
        let (by, bytes) = (self.session(), 8 + self.rng.below(12) as usize);
        self.transactions += 1;
        let transaction = TransactionId(self.transactions);
        self.ask(by, Command::Begin { transaction });
        let count = 1 + self.rng.below(QUEUES.len() as u64) as usize;
        let mut queues = Vec::new();
        for queue in &QUEUES[..count] {
            self.sent += 1;
            queues.push((*queue, self.sent));
            let message = message(self.sent, bytes);
            let to = Destination::Queue(name(queue));
            let transaction = Some(transaction);
            self.ask(by, Command::PutTo { to, message, transaction });
        }
        let reply = self.ask(by, Command::Commit { transaction }).unwrap();
        let since = self.now;
        self.note(reply, Waiting { by, queues, bytes, pivot: None, since });
    }

    fn note(&mut self, reply: Reply, sent: Waiting) {
        match reply {
            Reply::Waits { ticket } => {
                assert!(self.is_held_off(&sent), "{sent:?} waits though there is a place");
                self.seen.saw("waits");
                assert!(self.waiting.insert(ticket, sent).is_none(), "a ticket is given once");
            }
            reply => {
                self.seen.saw("at once");
                self.store(sent, &reply);
            }
        }
    }

    fn store(&mut self, sent: Waiting, reply: &Reply) {
        for (queue, number) in sent.queues {
            let stored = self.stored.entry(queue).or_default();
            let pivot = sent.pivot.map(|pivot| stored.iter().position(|(it, _)| *it == pivot));
            match (pivot, reply) {
                (None, Reply::Stored { .. } | Reply::Done) => {
                    stored.push_back((number, sent.bytes));
                }
                (Some(Some(place)), Reply::Count(count)) => {
                    stored.insert(place + 1, (number, sent.bytes));
                    assert_eq!(*count, stored.len() as u64);
                }
                (Some(None), Reply::Count(0) | Reply::NotFound) => self.seen.saw("nowhere"),
                _ => panic!("{reply:?}, where {queue} has {stored:?}"),
            }
        }
    }

    /// The worker takes the first of a queue, which has to be the first that was stored.
    fn take(&mut self) {
        let link = LinkId(self.rng.below(QUEUES.len() as u64) as u32);
        let queue = QUEUES[link.0 as usize];
        let (wait, margin, lease) = (Some(Nanos::ZERO), Nanos::ZERO, None);
        let reply = self.ask(WORKER, Command::Receive { link, wait, margin, lease }).unwrap();
        let first = self.stored.get_mut(queue).and_then(VecDeque::pop_front);
        let Some((number, bytes)) = first else {
            assert!(matches!(reply, Reply::TimedOut { .. }), "{reply:?}");
            return;
        };
        let Reply::Delivered(delivery) = reply else { panic!("{reply:?}") };
        assert_eq!(*delivery.body, *body(number, bytes), "{queue} gives in the order of coming");
        self.seen.saw("taken");
        self.delete(delivery.message);
    }

    fn delete(&mut self, message: MessageId) {
        assert_eq!(self.ask(WORKER, Command::Delete { message }), Some(Reply::Done));
    }

    fn close(&mut self) {
        let session = self.session();
        self.hear();
        paging::before(&mut self.engine);
        self.engine.close_session(self.now, session, Capacity::UNBOUNDED, &mut self.effects);
        self.take_in();
        let before = self.waiting.len();
        self.hear();
        self.waiting.retain(|_, sent| sent.by != session);
        self.seen.add("gone", (before - self.waiting.len()) as u64);
    }

    fn pass_time(&mut self) {
        self.hear();
        while self.engine.poll_timeout().is_some_and(|at| at <= self.now) {
            paging::before(&mut self.engine);
            self.engine.handle_timeout(self.now, Capacity::UNBOUNDED, &mut self.effects);
            self.take_in();
            self.hear();
        }
    }

    /// Bodies come back if a command needs them.
    fn take_in(&mut self) {
        let Self { engine, effects, log, now, .. } = self;
        let came = paging::after(engine, &|lsn| log.payload(lsn), *now, effects);
        self.seen.add("came back", came);
        self.log.absorb(&self.effects);
        self.late.append(&mut self.effects.outputs);
        self.effects.clear();
    }

    /// Handles late replies.
    fn hear(&mut self) {
        for Output { session, reply, .. } in std::mem::take(&mut self.late) {
            let Reply::Late { ticket, reply } = reply else { panic!("{reply:?} to {session:?}") };
            let sent = self.waiting.remove(&ticket).expect("who is answered late waits");
            assert_eq!(sent.by, session);
            match *reply {
                Reply::Refused(Refusal::QueueFull(_)) => {
                    assert!(
                        self.now.since(sent.since) >= BLOCK_TIMEOUT,
                        "{sent:?} has waited so long"
                    );
                    self.seen.saw("refused");
                }
                reply => {
                    self.seen.saw("later");
                    self.store(sent, &reply);
                }
            }
        }
    }

    /// Queues are within their bounds; and the send that waits longest finds no place.
    fn check(&self) {
        self.engine.check();
        for queue in QUEUES {
            let (count, bytes) = self.held(queue);
            assert!(count <= self.bounds.messages_max.unwrap_or(u64::MAX), "{queue}: {count}");
            assert!(bytes <= self.bounds.bytes_max.unwrap_or(u64::MAX), "{queue}: {bytes} bytes");
        }
        if let Some((ticket, first)) = self.waiting.first_key_value() {
            let finds = first.queues.iter().all(|(queue, _)| self.fits(queue, first.bytes));
            assert!(!finds, "{ticket} waits longest, though there is a place for {first:?}");
        }
    }

    fn held(&self, queue: &str) -> (u64, u64) {
        let all = self.stored.get(queue).into_iter().flatten();
        all.fold((0, 0), |(count, sum), (_, bytes)| (count + 1, sum + *bytes as u64))
    }

    fn fits(&self, queue: &str, more: usize) -> bool {
        let (count, bytes) = self.held(queue);
        count < self.bounds.messages_max.unwrap_or(u64::MAX)
            && bytes + more as u64 <= self.bounds.bytes_max.unwrap_or(u64::MAX)
    }

    /// A queue has no place for it, or another send waits for one there already.
    fn is_held_off(&self, sent: &Waiting) -> bool {
        sent.queues.iter().any(|(queue, _)| {
            let others = self.waiting.values().flat_map(|other| &other.queues);
            !self.fits(queue, sent.bytes) || others.clone().any(|(other, _)| other == queue)
        })
    }

    fn ask(&mut self, by: SessionId, command: Command) -> Option<Reply> {
        self.hear();
        paging::before(&mut self.engine);
        self.engine.handle(self.now, by, command, Capacity::UNBOUNDED, &mut self.effects);
        self.take_in();
        let its = self.late.iter().position(|output| !matches!(output.reply, Reply::Late { .. }));
        let behind = self.late.split_off(its.unwrap_or(0));
        // While its bodies came others went on.
        self.hear();
        self.late = behind;
        its.map(|_| self.late.remove(0).reply)
    }
}

fn message(number: u64, bytes: usize) -> NewMessage {
    NewMessage { priority: PRIORITY_DEFAULT, ..NewMessage::new(body(number, bytes)) }
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

/// Tells the number, in so many bytes.
fn body(number: u64, bytes: usize) -> Arc<[u8]> {
    format!("{number:0bytes$}").into_bytes().into()
}
