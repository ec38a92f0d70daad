//! Random sends to bounded queues, and a model of them that fits on a page. It tells the refused
//! sends, the messages that go, and those that are left, in order. In half of the worlds bodies
//! leave memory at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{Effects, Engine, EngineOptions, QueueBounds, QueuePolicies, QueuePolicy, WhenFull};
use model::{
    AdminCommand, Capacity, Command, ConsumerMode, Destination, End, LinkId, ListCommand,
    MessageId, MessageState, Nanos, NewMessage, PRIORITY_DEFAULT, Persistence, QueueName, Refusal,
    Reply, SessionId, Settlement, StorePolicy, TransactionId,
};
use testkit::{Rng, Seen};

use crate::support::log::Log;
use crate::support::paging;

const BY: SessionId = SessionId(1);
const QUEUES: [&str; 3] = ["a", "b", "c"];
const STEPS: usize = 600;

/// A message as the model has it. Messages are numbered as they are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stored {
    number: u64,
    bytes: usize,
    priority: u32,
    order: i64,
    state: MessageState,
}

#[derive(Debug)]
struct Model {
    bounds: QueueBounds,
    queues: BTreeMap<&'static str, Vec<Stored>>,
    next: u64,
    places: i64,
}

struct World {
    rng: Rng,
    engine: Engine,
    effects: Effects,
    log: Log,
    model: Model,
    held: BTreeMap<MessageId, (&'static str, u64)>,
    transactions: u64,
    seen: Seen,
}

#[test]
fn queues_hold_what_their_bounds_allow() {
    let mut seen = Seen::default();
    for seed in 0..60 {
        let when_full = [WhenFull::Reject, WhenFull::DropOldest, WhenFull::DeadLetter];
        let when_full = when_full[(seed % 3) as usize];
        let mut rng = Rng::new(seed);
        let messages_max = (!rng.one_in(4)).then(|| 1 + rng.below(12));
        let bytes_max = (messages_max.is_none() || rng.one_in(2)).then(|| 10 + rng.below(60));
        eprintln!("seed {seed}: {when_full:?} {messages_max:?} {bytes_max:?}");
        let bounds = QueueBounds { messages_max, bytes_max, when_full, target_age: None };
        let log_bodies_max = if seed % 2 == 0 { u64::MAX } else { 0 };
        let mut world = World::new(rng, bounds, log_bodies_max);
        for _ in 0..STEPS {
            world.step();
            world.check();
        }
        seen.merge(world.seen);
    }
    seen.expect(&EXPECTED, 201);
}

/// Events that must have happened often enough for the test to mean something.
const EXPECTED: [&str; 8] =
    ["stored", "refused", "committed", "rolled back", "moved", "taken", "went", "came back"];

impl Model {
    fn held(&self, queue: &str) -> (u64, u64) {
        let all = self.queues.get(queue).into_iter().flatten();
        all.fold((0, 0), |(count, bytes), it| (count + 1, bytes + it.bytes as u64))
    }

    /// True if messages of these sizes may be stored, beside the messages that are there but for
    /// these.
    fn takes(&self, queue: &str, sizes: &[usize], without: (u64, u64)) -> bool {
        let bytes_max = self.bounds.bytes_max.unwrap_or(u64::MAX);
        if self.bounds.when_full != WhenFull::Reject {
            return sizes.iter().all(|bytes| *bytes as u64 <= bytes_max);
        }
        let (count, bytes) = self.held(queue);
        let sum: usize = sizes.iter().sum();
        count - without.0 + sizes.len() as u64 <= self.bounds.messages_max.unwrap_or(u64::MAX)
            && bytes - without.1 + sum as u64 <= bytes_max
    }

    fn store(&mut self, queue: &'static str, bytes: usize, priority: u32, state: MessageState) {
        self.places += 1;
        let stored = Stored { number: self.next, bytes, priority, order: self.places, state };
        self.next += 1;
        self.queues.entry(queue).or_default().push(stored);
    }

    fn at_end(&self, queue: &str, end: End) -> Option<usize> {
        let all = self.queues.get(queue)?.iter().enumerate();
        let ready = all.filter(|(_, it)| it.state == MessageState::Ready);
        let key = |(_, it): &(usize, &Stored)| (it.priority, it.order);
        let found = match end {
            End::Head => ready.min_by_key(key),
            End::Tail => ready.max_by_key(key),
        };
        found.map(|(index, _)| index)
    }

    /// The priority and place of an element that is pushed to an end.
    fn place(&mut self, queue: &str, end: End) -> (u32, i64) {
        let outermost = self.at_end(queue, end).map(|index| self.queues[queue][index].priority);
        let outermost = outermost.unwrap_or(PRIORITY_DEFAULT);
        self.places += 1;
        match end {
            End::Head => (outermost.min(PRIORITY_DEFAULT), -self.places),
            End::Tail => (outermost.max(PRIORITY_DEFAULT), self.places),
        }
    }

    /// Drops messages beyond the bounds; gives how many.
    fn shed(&mut self, queue: &str) -> u64 {
        if self.bounds.when_full == WhenFull::Reject {
            return 0;
        }
        let mut gone = 0;
        loop {
            let (count, bytes) = self.held(queue);
            let fits = count <= self.bounds.messages_max.unwrap_or(u64::MAX)
                && bytes <= self.bounds.bytes_max.unwrap_or(u64::MAX);
            let Some(last) = self.at_end(queue, End::Tail).filter(|_| !fits) else { return gone };
            let all = self.queues.get_mut(queue).unwrap();
            let priority = all[last].priority;
            let ready = |it: &&Stored| it.state == MessageState::Ready && it.priority == priority;
            let first = all.iter().filter(ready).min_by_key(|it| it.order).unwrap();
            let oldest = first.number.min(all[last].number);
            all.retain(|it| it.number != oldest);
            gone += 1;
        }
    }
}

impl World {
    fn new(rng: Rng, bounds: QueueBounds, log_bodies_max: u64) -> Self {
        let bounded = QueuePolicy { bounds, max_delivery_attempts: 0, ..QueuePolicy::default() };
        let named = QUEUES.map(|queue| (name(queue), bounded)).into();
        let queue_policies = QueuePolicies { named, ..QueuePolicies::default() };
        let options = EngineOptions::new(StorePolicy::Always);
        let mut engine = Engine::new(EngineOptions { queue_policies, log_bodies_max, ..options });
        crate::support::users::open(&mut engine, BY);
        let model = Model { bounds, queues: BTreeMap::new(), next: 0, places: 0 };
        let held = BTreeMap::new();
        let (effects, log) = (Effects::default(), Log::default());
        let (transactions, seen) = (0, Seen::default());
        let mut world = Self { rng, engine, effects, log, model, held, transactions, seen };
        for (queue, link) in QUEUES.iter().zip(0..) {
            let (queue, mode) = (name(queue), ConsumerMode::Take);
            let link = LinkId(link);
            world.run(Command::OpenConsumer { link, queue, selector: None, mode });
        }
        world
    }

    fn step(&mut self) {
        match self.rng.below(10) {
            0..3 => self.put(),
            3 | 4 => self.push(),
            5 => self.pass(),
            6 | 7 => self.take(),
            8 => self.settle(),
            _ => self.commit(),
        }
    }

    fn put(&mut self) {
        let queue = self.rng.pick(&QUEUES);
        let (bytes, priority) = (self.size(), self.rng.pick(&[7, 1024]));
        let delayed = self.rng.one_in(8);
        let delay = if delayed { Nanos::from_secs(1_000) } else { Nanos::ZERO };
        let number = self.model.next;
        let message = NewMessage { priority, delay, ..NewMessage::new(body(number, bytes)) };
        let to = Destination::Queue(name(queue));
        let reply = self.run(Command::PutTo { to, message, transaction: None });
        let takes = self.model.takes(queue, &[bytes], (0, 0));
        self.judge(queue, &reply, takes);
        if takes {
            let state = if delayed { MessageState::Delayed } else { MessageState::Ready };
            self.model.store(queue, bytes, priority, state);
            self.shed(queue);
        }
    }

    fn push(&mut self) {
        let (queue, end) = (self.rng.pick(&QUEUES), self.rng.pick(&[End::Head, End::Tail]));
        let sizes: Vec<_> = (0..=self.rng.below(3)).map(|_| self.size()).collect();
        let numbers = self.model.next..;
        let elements = numbers.zip(&sizes).map(|(number, bytes)| body(number, *bytes)).collect();
        let persistence = Persistence::Persistent;
        let reply = self.list(ListCommand::Push {
            queue: name(queue),
            end,
            elements,
            only_existing: false,
            persistence,
        });
        let takes = self.model.takes(queue, &sizes, (0, 0));
        self.judge(queue, &reply, takes);
        if takes {
            let (priority, _) = self.model.place(queue, end);
            for bytes in sizes {
                self.model.store(queue, bytes, priority, MessageState::Ready);
                let stored = self.model.queues.get_mut(queue).unwrap().last_mut().unwrap();
                stored.order *= if end == End::Head { -1 } else { 1 };
            }
            self.shed(queue);
        }
    }

    /// From one list to another.
    fn pass(&mut self) {
        let (from, to) = (self.rng.pick(&QUEUES), self.rng.pick(&QUEUES));
        let (from_end, to_end) = (End::Head, self.rng.pick(&[End::Head, End::Tail]));
        let Some(index) = self.model.at_end(from, from_end).filter(|_| from != to) else { return };
        let wait = Some(Nanos::ZERO);
        let reply =
            self.list(ListCommand::Move { from: name(from), from_end, to: name(to), to_end, wait });
        let bytes = self.model.queues[from][index].bytes;
        let takes = self.model.takes(to, &[bytes], (0, 0));
        self.judge(to, &reply, takes);
        if takes {
            let (priority, order) = self.model.place(to, to_end);
            let moved = self.model.queues.get_mut(from).unwrap().remove(index);
            let moved = Stored { priority, order, ..moved };
            self.model.queues.entry(to).or_default().push(moved);
            self.shed(to);
            self.seen.saw("moved");
        }
    }

    /// The next one is held.
    fn take(&mut self) {
        let link = self.rng.below(QUEUES.len() as u64) as u32;
        let queue = QUEUES[link as usize];
        let Some(index) = self.model.at_end(queue, End::Head) else { return };
        let held = self.held.values().filter(|(of, _)| *of == queue).count() as u64;
        if held > 3 {
            return;
        }
        // A consumer anew has a limit from zero.
        self.run(Command::CloseConsumer { link: LinkId(link) });
        let mode = ConsumerMode::Take;
        self.run(Command::OpenConsumer {
            link: LinkId(link),
            queue: name(queue),
            selector: None,
            mode,
        });
        let credit =
            Command::Credit { link: LinkId(link), limit: 1, bytes: u64::MAX, drain: false };
        let Reply::Delivered(delivery) = self.run(credit) else { panic!("it is ready") };
        let stored = &mut self.model.queues.get_mut(queue).unwrap()[index];
        assert_eq!(*delivery.body, *body(stored.number, stored.bytes));
        stored.state = MessageState::Leased;
        self.held.insert(delivery.message, (queue, stored.number));
        self.seen.saw("taken");
    }

    fn settle(&mut self) {
        let Some((message, (queue, number))) = self.held.pop_first() else { return };
        let (settlement, transaction) = (Settlement::Accept, None);
        let done = self.run(Command::Settle { message, settlement, transaction });
        assert_eq!(done, Reply::Done);
        self.model.queues.get_mut(queue).unwrap().retain(|it| it.number != number);
    }

    /// Messages for one queue, and one accepted of it or another.
    fn commit(&mut self) {
        self.transactions += 1;
        let transaction = TransactionId(self.transactions);
        self.run(Command::Begin { transaction });
        let (queue, count) = (self.rng.pick(&QUEUES), self.rng.below(4));
        let sizes: Vec<_> = (0..count).map(|_| self.size()).collect();
        for (number, bytes) in (self.model.next..).zip(&sizes) {
            let message = NewMessage::new(body(number, *bytes));
            let to = Destination::Queue(name(queue));
            self.run(Command::PutTo { to, message, transaction: Some(transaction) });
        }
        let settled = self.held.pop_first();
        let mut without = (0, 0);
        if let Some((message, (of, number))) = settled {
            let (settlement, transaction) = (Settlement::Accept, Some(transaction));
            self.run(Command::Settle { message, settlement, transaction });
            let bytes = self.model.queues[of].iter().find(|it| it.number == number).unwrap().bytes;
            without = if of == queue { (1, bytes as u64) } else { (0, 0) };
        }
        let reply = self.run(Command::Commit { transaction });
        let takes = sizes.is_empty() || self.model.takes(queue, &sizes, without);
        self.judge(queue, &reply, takes);
        let what = if takes { "committed" } else { "rolled back" };
        self.seen.saw(what);
        for bytes in sizes.into_iter().filter(|_| takes) {
            self.model.store(queue, bytes, 0, MessageState::Ready);
        }
        if let Some((_, (of, number))) = settled {
            let all = self.model.queues.get_mut(of).unwrap();
            let index = all.iter().position(|it| it.number == number).unwrap();
            if takes {
                all.remove(index);
            } else {
                all[index].state = MessageState::Ready;
            }
        }
        self.shed(queue);
    }

    fn shed(&mut self, queue: &str) {
        self.seen.add("went", self.model.shed(queue));
    }

    /// Asserts that it was refused for the bounds of the queue, or not at all.
    fn judge(&mut self, queue: &str, reply: &Reply, takes: bool) {
        match reply {
            Reply::Refused(Refusal::QueueFull(full)) => {
                assert!(!takes, "{reply:?}");
                assert_eq!(full.queue.as_str(), queue);
            }
            Reply::Refused(_) => panic!("{reply:?}"),
            _ => assert!(takes, "{reply:?}, though {queue} is full: {:?}", self.model),
        }
        self.seen.saw(if takes { "stored" } else { "refused" });
    }

    /// All queues are as the model has them, in order.
    fn check(&mut self) {
        self.engine.check();
        for queue in QUEUES {
            let mut expected: Vec<_> = self.model.queues.get(queue).cloned().unwrap_or_default();
            expected.retain(|it| it.state == MessageState::Ready);
            expected.sort_by_key(|it| (it.priority, it.order));
            let expected: Vec<_> =
                expected.iter().map(|it| body(it.number, it.bytes).to_vec()).collect();
            let (state, max) = (Some(MessageState::Ready), 1_000);
            let browse = AdminCommand::Browse {
                queue: name(queue),
                state,
                selector: None,
                after: None,
                max,
            };
            let found = match self.run(Command::Admin(Box::new(browse))) {
                Reply::Page(page) => page.messages,
                reply => panic!("{reply:?}"),
            };
            let found: Vec<_> =
                found.into_iter().map(|shown| shown.delivery.body.to_vec()).collect();
            assert_eq!(found, expected, "{queue}");
            let Reply::QueueStatistics(statistics) =
                self.run(Command::QueueStatistics { queue: name(queue) })
            else {
                panic!("it is kept by its consumer")
            };
            let (count, bytes) = self.model.held(queue);
            let sum = statistics.ready + statistics.leased + statistics.delayed;
            assert_eq!((sum, statistics.body_bytes), (count, bytes), "{queue}");
        }
    }

    fn size(&mut self) -> usize {
        8 + self.rng.below(12) as usize
    }

    fn list(&mut self, command: ListCommand) -> Reply {
        self.run(Command::List(command))
    }

    /// The answer to a command, at once or late.
    fn run(&mut self, command: Command) -> Reply {
        let now = Nanos::SECOND;
        paging::before(&mut self.engine);
        self.engine.handle(now, BY, command, Capacity::UNBOUNDED, &mut self.effects);
        let Self { engine, effects, log, .. } = self;
        let came = paging::after(engine, &|lsn| log.payload(lsn), now, effects);
        self.seen.add("came back", came);
        self.log.absorb(&self.effects);
        let first = self.effects.outputs.drain(..).next();
        self.effects.clear();
        first.map_or(Reply::Done, |output| output.reply)
    }
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

/// Tells the number, in so many bytes.
fn body(number: u64, bytes: usize) -> Arc<[u8]> {
    format!("{number:0bytes$}").into_bytes().into()
}
