//! When a send that waits for a place in a queue has one, and the cost of finding out.

use engine::{Effects, Engine, EngineOptions, QueueBounds, QueuePolicies, QueuePolicy, WhenFull};
use model::{
    Capacity, Command, Destination, LinkId, MessageId, Nanos, NewMessage, QueueName, Reply,
    SessionId, StorePolicy, Subscription, TransactionId, limits,
};

const SENDER: SessionId = SessionId(1);
const OTHER: SessionId = SessionId(2);
const WORKER: SessionId = SessionId(3);
const LINK: LinkId = LinkId(0);
const AGE: Nanos = Nanos::SECOND;
const BLOCK_TIMEOUT: Nanos = Nanos::from_secs(30);

struct World {
    engine: Engine,
    effects: Effects,
    now: Nanos,
}

impl World {
    fn new(bounds: QueueBounds) -> Self {
        let default = QueuePolicy { bounds, ..QueuePolicy::default() };
        let queue_policies = QueuePolicies { default, ..QueuePolicies::default() };
        let options = EngineOptions::new(StorePolicy::Always);
        let options = EngineOptions { queue_policies, block_timeout: BLOCK_TIMEOUT, ..options };
        let mut engine = Engine::new(options);
        for session in [SENDER, OTHER, WORKER] {
            engine.open_session(session);
        }
        Self { engine, effects: Effects::default(), now: Nanos::SECOND }
    }

    /// The immediate replies to a command, and those to others.
    fn ask(&mut self, by: SessionId, command: Command) -> Vec<Reply> {
        self.effects.clear();
        self.engine.handle(self.now, by, command, Capacity::UNBOUNDED, &mut self.effects);
        self.engine.check();
        self.effects.outputs.drain(..).map(|output| output.reply).collect()
    }

    fn put(&mut self, by: SessionId, queue: &str, delay: Nanos) -> Reply {
        let message = NewMessage { delay, ..NewMessage::new(vec![7; 10].into()) };
        let to = Destination::Queue(name(queue));
        self.ask(by, Command::PutTo { to, message, transaction: None }).remove(0)
    }

    fn watch(&mut self, queue: &str) {
        self.ask(WORKER, Command::Watch { link: LINK, queue: name(queue) });
    }

    /// The message that a worker takes.
    fn take(&mut self) -> MessageId {
        let (wait, lease) = (Some(Nanos::ZERO), Some(Nanos::from_secs(600)));
        let receive = Command::Receive { link: LINK, wait, margin: Nanos::ZERO, lease };
        match self.ask(WORKER, receive).remove(0) {
            Reply::Delivered(delivery) => delivery.message,
            other => panic!("{other:?}"),
        }
    }

    /// The replies to sends that wait, by then.
    fn pass(&mut self, span: Nanos) -> Vec<Reply> {
        self.now = self.now + span;
        self.effects.clear();
        while self.engine.poll_timeout().is_some_and(|at| at <= self.now) {
            self.engine.handle_timeout(self.now, Capacity::UNBOUNDED, &mut self.effects);
        }
        self.engine.check();
        self.effects.outputs.drain(..).map(|output| output.reply).collect()
    }
}

fn name(queue: &str) -> QueueName {
    QueueName::new(queue).unwrap()
}

fn aged() -> QueueBounds {
    QueueBounds { target_age: Some(AGE), when_full: WhenFull::Block, ..QueueBounds::default() }
}

fn narrow() -> QueueBounds {
    QueueBounds { messages_max: Some(1), when_full: WhenFull::Block, ..QueueBounds::default() }
}

fn is_stored(reply: &Reply) -> bool {
    match reply {
        Reply::Late { reply, .. } => is_stored(reply),
        reply => matches!(reply, Reply::Stored { .. } | Reply::Done),
    }
}

fn waits(reply: &Reply) -> bool {
    matches!(reply, Reply::Waits { .. })
}

/// A worker took it and works on it: nothing waits any more.
#[test]
fn blocked_send_resumes_after_oldest_leased() {
    let mut world = World::new(aged());
    assert!(is_stored(&world.put(SENDER, "jobs", Nanos::ZERO)));
    world.pass(AGE + AGE);
    assert!(waits(&world.put(SENDER, "jobs", Nanos::ZERO)));
    assert_eq!(world.pass(Nanos::ZERO), []);
    world.watch("jobs");
    world.take();
    assert!(matches!(&world.pass(Nanos::ZERO)[..], [late] if is_stored(late)));
}

#[test]
fn bury_or_unwatch_resumes_blocked_send() {
    let full = || {
        let mut world = World::new(aged());
        world.watch("jobs");
        let taken: Vec<_> = (0..16)
            .map(|_| {
                assert!(is_stored(&world.put(SENDER, "jobs", Nanos::ZERO)));
                world.take()
            })
            .collect();
        assert!(waits(&world.put(SENDER, "jobs", Nanos::ZERO)));
        assert_eq!(world.pass(Nanos::ZERO), []);
        (world, taken)
    };
    let (mut world, taken) = full();
    world.ask(WORKER, Command::Bury { message: taken[3], priority: 0 });
    assert!(matches!(&world.pass(Nanos::ZERO)[..], [late] if is_stored(late)));
    let (mut world, _) = full();
    world.ask(WORKER, Command::Unwatch { link: LINK, queue: name("jobs") });
    assert!(matches!(&world.pass(Nanos::ZERO)[..], [late] if is_stored(late)));
}

/// It was not to be had before its delay was over, so no consumer was late with it.
#[test]
fn delay_is_no_waiting() {
    let mut world = World::new(aged());
    let delay = Nanos::from_secs(60);
    assert!(is_stored(&world.put(SENDER, "jobs", delay)));
    world.pass(delay + Nanos(AGE.0 / 2));
    assert!(is_stored(&world.put(SENDER, "jobs", Nanos::ZERO)));
    world.pass(AGE);
    assert!(waits(&world.put(SENDER, "jobs", Nanos::ZERO)), "but from then on it waits");
    // The same if the delay is set anew, and if a worker buried it.
    let mut world = World::new(aged());
    world.watch("jobs");
    assert!(is_stored(&world.put(SENDER, "jobs", Nanos::ZERO)));
    let message = world.take();
    world.ask(WORKER, Command::Release { message, priority: 0, delay: Some(delay) });
    world.pass(delay + Nanos(AGE.0 / 2));
    assert!(is_stored(&world.put(SENDER, "jobs", Nanos::ZERO)));
    let message = world.take();
    world.ask(WORKER, Command::Bury { message, priority: 0 });
    world.take();
    world.pass(delay);
    world.ask(WORKER, Command::KickMessage { message });
    assert!(is_stored(&world.put(SENDER, "jobs", Nanos::ZERO)));
}

/// The time that it waited in one line, which went on, is no reason to give up in the next.
#[test]
fn blocked_commit_restarts_wait_per_queue() {
    let mut world = World::new(narrow());
    let (transaction, step) = (TransactionId(1), Nanos::from_secs(10));
    world.watch("a");
    assert!(is_stored(&world.put(OTHER, "a", Nanos::ZERO)));
    for _ in 0..3 {
        assert!(waits(&world.put(OTHER, "a", Nanos::ZERO)));
    }
    world.ask(SENDER, Command::Begin { transaction });
    for queue in ["a", "b"] {
        let message = NewMessage::new(vec![7; 10].into());
        let to = Destination::Queue(name(queue));
        world.ask(SENDER, Command::PutTo { to, message, transaction: Some(transaction) });
    }
    assert!(waits(&world.ask(SENDER, Command::Commit { transaction })[0]));
    assert!(is_stored(&world.put(OTHER, "b", Nanos::ZERO)));
    for _ in 0..3 {
        world.pass(step);
        let message = world.take();
        world.ask(WORKER, Command::Delete { message });
        assert!(matches!(&world.pass(Nanos::ZERO)[..], [late] if is_stored(late)));
    }
    world.pass(step);
    let message = world.take();
    world.ask(WORKER, Command::Delete { message });
    assert_eq!(world.pass(Nanos::ZERO), [], "it waits for a place in the other");
    assert_eq!(world.pass(step + step), []);
    world.watch("b");
    let message = world.take();
    world.ask(WORKER, Command::Delete { message });
    assert!(matches!(&world.pass(Nanos::ZERO)[..], [late] if is_stored(late)));
}

/// The takers of a message are found twice: for its places, and when it is stored.
#[test]
fn publish_counts_subscriptions_checked_for_places() {
    const SUBSCRIBERS: u32 = 500;
    let mut world = World::new(narrow());
    for link in 1..=SUBSCRIBERS {
        let selector = Some("colour = 'red'".into());
        let topic = name("news");
        let (name, shared, without) = (None, false, None);
        let subscription =
            Subscription { name, selector, shared, without, ..Subscription::new(topic) };
        let subscription = Box::new(subscription);
        let reply = world.ask(WORKER, Command::Subscribe { link: LinkId(link), subscription });
        assert!(matches!(reply[..], [Reply::Done]), "{reply:?}");
    }
    let before = world.engine.steps();
    let message = NewMessage::new(vec![7; 10].into());
    world.ask(SENDER, Command::Publish { topic: name("news"), message });
    let steps = world.engine.steps() - before;
    assert!(steps >= u64::from(2 * 2 * SUBSCRIBERS) + limits::COMMAND_STEPS as u64, "{steps}");
}
