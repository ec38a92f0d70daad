//! Commands that memory is refused to, and others: as long as bodies may leave, no send is held
//! off.

use std::sync::Arc;

use engine::{Effects, Engine, EngineOptions, QueueBounds, QueuePolicies, QueuePolicy, WhenFull};
use model::{
    Capacity, Command, Destination, End, LinkId, ListCommand, Lsn, Nanos, NewMessage, Persistence,
    QueueName, Refusal, Reply, SessionId, StorePolicy, Subscription, SubscriptionName,
};

const BY: SessionId = SessionId(1);
const OTHER: SessionId = SessionId(2);
const NOW: Nanos = Nanos::SECOND;
const LIMIT: u64 = 256 * 1024;
const BODY_BYTES: usize = 1000;
const LARGE_BYTES: u64 = 10_000;
const SUBSCRIPTIONS: u32 = 50;

struct World {
    engine: Engine,
    effects: Effects,
    log: Vec<(Lsn, Vec<u8>)>,
}

impl World {
    fn new(default: QueuePolicy) -> Self {
        Self::with(LIMIT, default)
    }

    fn with(memory_limit: u64, default: QueuePolicy) -> Self {
        let queue_policies = QueuePolicies { default, ..QueuePolicies::default() };
        let options = EngineOptions::new(StorePolicy::Always);
        Self::of(EngineOptions { queue_policies, memory_limit, ..options })
    }

    fn of(options: EngineOptions) -> Self {
        let mut engine = Engine::new(options);
        engine.open_session(BY);
        engine.open_session(OTHER);
        Self { engine, effects: Effects::default(), log: Vec::new() }
    }

    /// All but the last frames, so many, can be read back.
    fn write_but(&mut self, frames: u64) {
        let last = self.engine.last_lsn().0;
        let written = Some(Lsn(last.saturating_sub(frames)));
        self.engine.handle_capacity(Capacity { written, ..Capacity::UNBOUNDED });
    }

    fn ask(&mut self, by: SessionId, command: Command) -> Reply {
        self.effects.clear();
        self.engine.handle(NOW, by, command, Capacity::UNBOUNDED, &mut self.effects);
        self.engine.check();
        let mut start = 0;
        for frame in &self.effects.frames {
            self.log.push((frame.lsn, self.effects.records[start..frame.end].to_vec()));
            start = frame.end;
        }
        self.effects.outputs.remove(0).reply
    }

    /// The engine that a start makes from the log.
    fn recovered(&self, options: EngineOptions) -> Engine {
        let mut engine = Engine::new(options);
        for (lsn, payload) in &self.log {
            engine.replay(*lsn, payload, false).unwrap();
        }
        engine.finish_recovery(self.engine.last_lsn()).unwrap();
        engine.check();
        engine
    }

    /// Performs all that happens by itself now.
    fn pass_time(&mut self) {
        self.effects.clear();
        while self.engine.poll_timeout().is_some_and(|at| at <= NOW) {
            self.engine.handle_timeout(NOW, Capacity::UNBOUNDED, &mut self.effects);
            self.engine.check();
        }
    }

    fn put(&mut self, queue: &str, persistence: Persistence) -> Reply {
        let message = NewMessage { persistence, ..NewMessage::new(vec![7; BODY_BYTES].into()) };
        let to = Destination::Queue(name(queue));
        self.ask(OTHER, Command::PutTo { to, message, transaction: None })
    }

    fn push(&mut self, queue: &str, elements: usize) -> Reply {
        let elements = vec![vec![7; BODY_BYTES].into(); elements];
        let (queue, end, persistence) = (name(queue), End::Tail, Persistence::Persistent);
        let push = ListCommand::Push {
            queue,
            end,
            elements: model::OneOrMany::Many(elements),
            only_existing: false,
            persistence,
        };
        self.ask(BY, Command::List(push))
    }

    /// A durable subscription without a reader.
    fn subscribe(&mut self, number: u32) {
        let name = name(&format!("subscription-{number}"));
        let subscription = Box::new(Subscription {
            name: Some(SubscriptionName { user: None, client: None, name, durable: true }),
            ..Subscription::new(topic())
        });
        self.ask(BY, Command::Subscribe { link: LinkId(number), subscription });
    }

    fn publish(&mut self) -> Reply {
        let message = NewMessage::new(vec![7; LARGE_BYTES as usize].into());
        self.ask(
            OTHER,
            Command::PutTo { to: Destination::Topic(topic()), message, transaction: None },
        )
    }

    /// Puts messages that do not leave until nothing more is taken.
    fn fill(&mut self) {
        while self.put("filling", Persistence::NonPersistent) != refused() {}
    }
}

fn name(queue: &str) -> QueueName {
    QueueName::new(queue).unwrap()
}

fn topic() -> QueueName {
    name("news")
}

fn refused() -> Reply {
    Reply::Refused(Refusal::MemoryFull)
}

/// The messages just before a command are not written yet. They are the newest of the queue with
/// the most bodies, the first in line to leave.
#[test]
fn unwritten_bodies_do_not_block_eviction() {
    for queues in [1, 3] {
        let mut world = World::new(QueuePolicy::default());
        for number in 0..1_000 {
            world.write_but(4);
            let reply = world.put(&format!("queue-{}", number % queues), Persistence::Persistent);
            assert!(matches!(reply, Reply::Stored { .. }), "{number}: {reply:?}");
            let bytes = world.engine.memory_bytes();
            assert!(bytes <= LIMIT / 16 * 17, "{number}: {bytes} bytes");
        }
        assert!(world.engine.bodies().paged_out() > 800);
    }
}

/// Twelve times as much as there may be, had each subscription a body of its own. No client waits
/// for the disk, and nothing leaves. The bodies that a start finds count the same.
#[test]
fn published_body_takes_memory_once() {
    let memory_limit = 16 * LIMIT;
    let options = EngineOptions { memory_limit, ..EngineOptions::new(StorePolicy::Always) };
    let mut world = World::of(options.clone());
    (0..SUBSCRIPTIONS).for_each(|number| world.subscribe(number));
    let bodies = memory_limit / 4 / LARGE_BYTES;
    for number in 0..bodies {
        let reply = world.publish();
        assert!(matches!(reply, Reply::Stored { .. }), "{number}: {reply:?}");
    }
    world.write_but(0);
    assert_eq!(world.engine.bodies().paged_out(), 0, "there is room for all");
    let bytes = world.engine.memory_bytes();
    let beside = (bytes - bodies * LARGE_BYTES) / (bodies * u64::from(SUBSCRIPTIONS));
    assert!((128..150).contains(&beside), "{beside} a message beside its body");
    // A start counts each copy until it knows all.
    let roomy = EngineOptions { memory_limit: 64 * memory_limit, ..options };
    assert_eq!(world.recovered(roomy).memory_bytes(), bytes);
}

#[test]
fn sends_wait_until_log_is_written() {
    let mut world = World::new(QueuePolicy::default());
    let mut stored = 0;
    while matches!(world.put("jobs", Persistence::Persistent), Reply::Stored { .. }) {
        stored += 1;
    }
    assert!((200..400).contains(&stored), "{stored}");
    world.pass_time();
    assert_eq!(world.effects.outputs, [], "nothing is written, so nothing goes on");
    world.write_but(0);
    world.pass_time();
    let late = world.effects.outputs.iter().map(|output| &output.reply);
    let [Reply::Late { reply, .. }] = late.collect::<Vec<_>>()[..] else { panic!("one waited") };
    assert!(matches!(**reply, Reply::Stored { .. }), "{reply:?}");
    assert!(matches!(world.put("jobs", Persistence::Persistent), Reply::Stored { .. }));
}

/// The bytes that leave in one call are bounded, for all others wait meanwhile.
#[test]
fn bodies_leave_in_steps() {
    let mut world = World::with(16 * LIMIT, QueuePolicy::default());
    world.push("large", 5_000);
    world.write_but(1);
    let before = world.engine.steps();
    world.write_but(0);
    assert_eq!((world.engine.bodies().paged_out(), world.engine.steps() - before), (1_024, 1_024));
    // No send is refused meanwhile, and fewer bytes come than go.
    for number in 0..10 {
        world.write_but(0);
        let reply = world.put("jobs", Persistence::Persistent);
        assert!(matches!(reply, Reply::Stored { .. }), "{number}: {reply:?}");
    }
    assert!(world.engine.bodies().paged_out() > 1_400);
}

/// The spill takes nothing more. A command that brings much waits until others' bytes have room
/// beside those that are always kept: its own bytes are not in its way.
#[test]
fn blocked_push_ignores_its_own_bytes() {
    let options = EngineOptions::new(StorePolicy::Always);
    let mut world = World::of(EngineOptions { memory_limit: LIMIT, spills: true, ..options });
    world.engine.handle_unspilled([]);
    while world.engine.memory_bytes() < LIMIT / 8 * 7 {
        world.put("jobs", Persistence::NonPersistent);
    }
    let (much, waits) = (LIMIT as usize / 2 / BODY_BYTES, Reply::Waits { ticket: 1 });
    assert_eq!(world.push("list", much), waits);
    world.write_but(0);
    world.pass_time();
    assert_eq!(world.effects.outputs, [], "memory is full");
    let pop = ListCommand::Pop { queue: name("jobs"), end: End::Head, max: 5 };
    world.ask(OTHER, Command::List(pop));
    world.pass_time();
    let late = world.effects.outputs.iter().map(|output| &output.reply);
    assert!(matches!(late.collect::<Vec<_>>()[..], [Reply::Late { ticket: 1, .. }]));
}

/// A session's next command says that the element it popped has arrived, even if the command is
/// refused.
#[test]
fn refused_command_confirms_last_protected_pop() {
    let pop_lease = Some(Nanos::from_secs(60));
    let mut world = World::new(QueuePolicy { pop_lease, ..QueuePolicy::default() });
    // One stays, and so the queue, which takes memory too.
    world.push("list", 2);
    world.fill();
    let pop = ListCommand::Pop { queue: name("list"), end: End::Head, max: 1 };
    let popped = world.ask(BY, Command::List(pop));
    assert!(matches!(popped, Reply::Elements(elements) if elements.len() == 1));
    world.fill();
    assert_eq!(world.push("list", 1), refused());
    let told_after = world.effects.frames.last().map(|frame| frame.lsn);
    assert_eq!(told_after, Some(world.engine.last_lsn()), "its deletion is in the log");
    world.engine.close_session(NOW, BY, Capacity::UNBOUNDED, &mut world.effects);
    let length = Command::List(ListCommand::Length { queue: name("list") });
    assert_eq!(world.ask(OTHER, length), Reply::Count(1));
}

/// The bytes of a command count while it waits for the body that it looks into.
#[test]
fn body_waits_count_as_memory() {
    let options = EngineOptions { log_bodies_max: 0, ..EngineOptions::new(StorePolicy::Always) };
    let mut world = World::of(options);
    world.push("list", 1);
    world.write_but(0);
    assert_eq!(world.engine.bodies().paged_out(), 1);
    let (queue, origin) = (name("list"), End::Head);
    let (short, long): (Arc<[u8]>, Arc<[u8]>) = (vec![1; 900].into(), vec![1; 90_000].into());
    let insert = ListCommand::Insert {
        queue: queue.clone(),
        origin,
        pivot: Arc::clone(&short),
        towards: End::Tail,
        element: long,
        persistence: Persistence::Persistent,
    };
    let remove = ListCommand::Remove { queue, origin, element: short, max: 1 };
    for (command, bytes) in [(insert, 90_900), (remove, 900)] {
        let before = world.engine.memory_bytes();
        world.engine.open_session(BY);
        world.effects.clear();
        world.engine.handle(
            NOW,
            BY,
            Command::List(command),
            Capacity::UNBOUNDED,
            &mut world.effects,
        );
        world.engine.check();
        assert_eq!(world.effects.outputs, [], "it waits");
        assert!(world.engine.memory_bytes() >= before + bytes);
        world.engine.close_session(NOW, BY, Capacity::UNBOUNDED, &mut world.effects);
        world.engine.check();
        assert_eq!(world.engine.memory_bytes(), before, "who is gone takes none");
    }
}

/// Messages that wait for a place in a queue take memory like those in one.
#[test]
fn blocked_sends_count_as_memory() {
    let bounds =
        QueueBounds { messages_max: Some(1), when_full: WhenFull::Block, ..QueueBounds::default() };
    let mut world = World::new(QueuePolicy { bounds, ..QueuePolicy::default() });
    let replies: Vec<_> = (0..400).map(|_| world.put("narrow", Persistence::Persistent)).collect();
    let waiting = replies.iter().filter(|it| matches!(it, Reply::Waits { .. })).count();
    assert_eq!(replies.last(), Some(&refused()), "{waiting} wait");
    assert!((100..LIMIT as usize / BODY_BYTES).contains(&waiting), "{waiting} wait");
    assert!(world.engine.memory_bytes() > (waiting * BODY_BYTES) as u64);
    let waits = world.engine.memory_bytes();
    world.engine.close_session(NOW, OTHER, Capacity::UNBOUNDED, &mut world.effects);
    world.engine.check();
    assert!(world.engine.memory_bytes() < waits / 10, "who is gone takes none");
}
