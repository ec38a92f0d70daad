//! A story of transactions over queues, a topic and its durable subscriptions. The process or the
//! power falls at every single call to the disk. A second story of messages in memory never calls
//! the disk.
//!
//! The oracle judges it: a commit is there whole or not at all after each recovery, and answered
//! commands survive. Unsettled messages come back, and at the end all messages can be taken out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use model::{Destination, Nanos, QueueName, StorePolicy};
use sim::{
    AmqpWish, Draft, Fall, Fault, FaultyDisk, Moment, Scenario, ServerDefects, Subscribing, Tally,
    Verdict, World,
};

/// A quiet life after the story: nothing goes wrong by itself.
fn scenario(policy: StorePolicy) -> Scenario {
    let mut scenario = Scenario::new(1);
    scenario.policy = policy;
    scenario.journal.policy = policy;
    // Changes that are more than one frame are more than one batch too.
    scenario.journal.batch_bytes = 8192;
    scenario.steps = 0;
    scenario.faults_per_million = 0;
    scenario.falls_per_thousand = 0;
    scenario.quota = None;
    scenario
}

fn queue(name: &str) -> Destination {
    Destination::Queue(QueueName::new(name).expect("a name"))
}

fn topic(name: &str) -> Destination {
    Destination::Topic(QueueName::new(name).expect("a name"))
}

/// A client of AMQP in a world, and the kind of its messages.
struct Teller<'w> {
    world: &'w mut World<FaultyDisk>,
    client: u64,
    durable: bool,
    sent: u8,
}

impl Teller<'_> {
    fn send(&mut self, to: Destination, transaction: Option<u64>) -> Option<()> {
        self.sent += 1;
        // Two of them are more than a batch, three less than a frame.
        let body = Rc::from([self.sent; 3950]);
        let message =
            Draft { durable: self.durable, priority: 4, ttl: None, delay: 0, send_id: None, body };
        let send = AmqpWish::Send { to, message, transaction, settled: false };
        self.world.ask_amqp(self.client, send)
    }

    fn settle(&mut self, verdict: Verdict, transaction: Option<u64>) -> Option<()> {
        let delivery = *self.world.amqp(self.client).held().first().expect("it holds something");
        let settle = AmqpWish::Settle { delivery, verdict, transaction, settled: false };
        self.world.ask_amqp(self.client, settle)
    }

    fn declare(&mut self) -> Option<u64> {
        self.world.ask_amqp(self.client, AmqpWish::Declare)?;
        self.world.amqp(self.client).transactions().last().copied()
    }

    fn discharge(&mut self, transaction: u64, fail: bool) -> Option<()> {
        self.world.ask_amqp(self.client, AmqpWish::Discharge { transaction, fail })
    }

    fn subscribe(&mut self, name: Option<&str>, credit: u32) -> Option<()> {
        let (topic, name) = ("news".into(), name.map(Rc::from));
        let durable = name.is_some();
        let to = Subscribing { topic, name, durable, shared: false, global: false };
        self.world.ask_amqp(self.client, AmqpWish::Subscribe { to, credit })
    }

    fn consume(&mut self, queue: &str, credit: u32) -> Option<()> {
        self.world.ask_amqp(self.client, AmqpWish::Consume { queue: queue.into(), credit })
    }
}

/// Tells it until the process falls.
fn story(world: &mut World<FaultyDisk>) -> Option<()> {
    world.start();
    let client = world.connect_amqp("one");
    let mut it = Teller { world, client, durable: true, sent: 0 };
    it.subscribe(Some("first"), 0)?;
    it.subscribe(Some("second"), 1)?;
    for _ in 0..3 {
        it.send(queue("a"), None)?;
    }
    it.consume("a", 2)?;
    // From one queue to another and to the topic with two subscriptions, of which the second is
    // read.
    let moving = it.declare()?;
    it.settle(Verdict::Accepted, Some(moving))?;
    it.send(queue("b"), Some(moving))?;
    it.send(topic("news"), Some(moving))?;
    it.send(queue("b"), Some(moving))?;
    it.discharge(moving, false)?;
    // The same, and then not.
    let undone = it.declare()?;
    it.settle(Verdict::Accepted, Some(undone))?;
    it.send(queue("b"), Some(undone))?;
    it.send(topic("news"), Some(undone))?;
    it.discharge(undone, true)?;
    // A subscription and a queue settled together, one with a failure; beside it a message in
    // memory.
    it.consume("b", 2)?;
    let mixed = it.declare()?;
    it.settle(Verdict::Accepted, Some(mixed))?;
    it.settle(Verdict::Failed, Some(mixed))?;
    it.durable = false;
    it.send(topic("news"), Some(mixed))?;
    it.durable = true;
    it.send(topic("news"), Some(mixed))?;
    it.discharge(mixed, false)?;
    // It leaves with one open.
    let open = it.declare()?;
    it.send(queue("a"), Some(open))?;
    it.settle(Verdict::Accepted, Some(open))
}

fn run(scenario: &Scenario, disk_seed: u64, fault: Option<(u64, Moment)>) -> Tally {
    let disk = FaultyDisk::new(disk_seed);
    if let Some((call, moment)) = fault {
        disk.inject(call, Fault::Crash(moment));
    }
    let scenario = scenario.clone();
    let mut world = World::new(scenario, disk.clone(), disk);
    let told = story(&mut world);
    assert!(told.is_some() || fault.is_some(), "the story ends where nothing falls");
    world.run()
}

#[test]
fn commit_is_whole_after_any_crash() {
    for policy in POLICIES {
        for fall in [Fall::Process, Fall::Power] {
            let scenario = Scenario { fall: Some(fall), ..scenario(policy) };
            let calls = run(&scenario, 1, None).calls;
            assert!(calls > 60, "{policy:?}: {calls} calls");
            for call in 1..=calls {
                for moment in [Moment::Before, Moment::During] {
                    run(&scenario, call, Some((call, moment)));
                }
            }
        }
    }
}

#[test]
fn commit_in_parts_is_noticed() {
    for policy in POLICIES {
        let defects = ServerDefects { splits_commits: true, ..ServerDefects::default() };
        let scenario = Scenario { fall: Some(Fall::Power), defects, ..scenario(policy) };
        let calls = run(&scenario, 1, None).calls;
        // The disk chooses the outcome of a crash during two writes: some choices for each call.
        let mut falls = (1..=calls).flat_map(|call| (1..=8).map(move |seed| (call, seed * call)));
        let noticed = falls.any(|(call, seed)| {
            let told = || run(&scenario, seed, Some((call, Moment::During)));
            catch_unwind(AssertUnwindSafe(told)).is_err()
        });
        assert!(noticed, "{policy:?}");
    }
}

#[test]
fn nonpersistent_work_never_calls_the_disk() {
    for policy in POLICIES {
        let disk = FaultyDisk::new(1);
        // There is memory for all: nothing goes to the spill.
        let scenario = Scenario { log_bodies_max: u64::MAX, ..scenario(policy) };
        let mut world = World::new(scenario, disk.clone(), disk.clone());
        world.start();
        let client = world.connect_amqp("one");
        let mut it = Teller { world: &mut world, client, durable: false, sent: 0 };
        it.subscribe(Some("first"), 0).expect("nothing falls");
        it.subscribe(None, 10).expect("nothing falls");
        it.consume("a", 10).expect("nothing falls");
        it.consume("DLQ", 10).expect("nothing falls");
        it.world.pass(Nanos::from_secs(10));
        let calls = disk.calls();
        memory_story(&mut it).expect("nothing falls");
        it.world.pass(Nanos::from_secs(10));
        assert_eq!(disk.calls(), calls, "{policy:?}: calls while all was in memory");
        world.run();
    }
}

/// Sends, failures until there is a dead letter, transactions that commit and that do not.
fn memory_story(it: &mut Teller<'_>) -> Option<()> {
    for to in [queue("a"), topic("news"), queue("b")] {
        it.send(to, None)?;
    }
    for verdict in [Verdict::Accepted, Verdict::Failed, Verdict::Failed, Verdict::Failed] {
        it.settle(verdict, None)?;
    }
    for fail in [false, true] {
        it.send(queue("a"), None)?;
        let transaction = it.declare()?;
        it.settle(Verdict::Accepted, Some(transaction))?;
        it.send(topic("news"), Some(transaction))?;
        it.send(queue("a"), Some(transaction))?;
        it.discharge(transaction, fail)?;
    }
    Some(())
}

const POLICIES: [StorePolicy; 3] =
    [StorePolicy::Always, StorePolicy::Periodic(Nanos::from_millis(25)), StorePolicy::Never];
