//! A call to the disk takes five seconds. Answers about durable messages wait for it. Answers about
//! messages in memory alone do not, by any protocol.

use std::collections::BTreeSet;
use std::rc::Rc;

use model::{Destination, Nanos, Persistence, QueueName, StorePolicy};
use sim::{
    AmqpWish, Character, Draft, Fault, FaultyDisk, Rng, Scenario, Subscribing, Verdict, Wish, World,
};

fn world(policy: StorePolicy) -> (World<FaultyDisk>, FaultyDisk) {
    world_of(1, policy)
}

/// A world with the journal of a seed.
fn world_of(seed: u64, policy: StorePolicy) -> (World<FaultyDisk>, FaultyDisk) {
    let mut scenario = Scenario::new(seed);
    scenario.policy = policy;
    scenario.journal.policy = policy;
    scenario.journal.disk_bytes_max = None;
    scenario.journal.segments_max = None;
    scenario.quota = None;
    scenario.faults_per_million = 0;
    scenario.stalls = true;
    scenario.log_bodies_max = u64::MAX;
    let disk = FaultyDisk::new(seed);
    let mut world = World::new(scenario, disk.clone(), disk.clone());
    world.start();
    (world, disk)
}

fn put(queue: &str, persistence: Persistence) -> Wish {
    put_of(queue, persistence, Rc::from([7; 100]))
}

fn put_of(queue: &str, persistence: Persistence, body: Rc<[u8]>) -> Wish {
    let queue = queue.into();
    Wish::Put { queue, priority: 0, delay: 0, lease: 60, persistence, body }
}

/// A client waits for a durable job, while the next calls to the disk take long.
fn stall(world: &mut World<FaultyDisk>, disk: &FaultyDisk) -> u64 {
    let waiting = world.connect(Character::Anyone);
    // A chore, or the watermark of its segment, may come before it.
    let calls = disk.calls() + 1..disk.calls() + 5;
    calls.clone().for_each(|call| disk.inject(call, Fault::Slow));
    let answer = world.ask_meanwhile(waiting, put("default", Persistence::Persistent));
    calls.for_each(|call| disk.withdraw(call));
    assert_eq!(answer, None, "it is not on the disk yet");
    waiting
}

/// And waits no longer than the call takes.
fn end(world: &mut World<FaultyDisk>, waiting: u64, began: Nanos) {
    assert!(world.now().since(began) < Nanos::from_millis(1), "no time has passed until now");
    let watched: Rc<BTreeSet<Rc<str>>> = Rc::new([Rc::from("default")].into());
    world.pass(FaultyDisk::STALL + Nanos::from_millis(500));
    let answer = world.ask(waiting, Wish::Reserve { watched, timeout: Some(0) });
    assert!(answer.is_some_and(|answer| answer.line.starts_with("RESERVED ")));
}

#[test]
fn nonpersistent_jobs_pass_while_disk_stalls() {
    for policy in POLICIES {
        let (mut world, disk) = world(policy);
        let client = worker(&mut world);
        let (waiting, began) = (stall(&mut world, &disk), world.now());
        work_in_memory(&mut world, client);
        end(&mut world, waiting, began);
    }
}

/// More is sent meanwhile than the log has prepared room for, and the disk prepares none.
#[test]
fn nonpersistent_jobs_pass_without_log_room() {
    for policy in POLICIES {
        let (mut world, disk) = world(policy);
        let client = worker(&mut world);
        let leased = durable_job(&mut world, client);
        let (waiting, began) = (stall(&mut world, &disk), world.now());
        let calls = disk.calls() + 1..disk.calls() + 100;
        calls.clone().for_each(|call| disk.inject(call, Fault::Slow));
        for _ in 0..100 {
            let sender = world.connect(Character::Anyone);
            let persistence = Persistence::Persistent;
            let (queue, body) = ("default".into(), Rc::from([7; 10_000]));
            let put = Wish::Put { queue, priority: 9, delay: 0, lease: 60, persistence, body };
            assert_eq!(world.ask_meanwhile(sender, put), None, "it is not on the disk");
        }
        work_in_memory(&mut world, client);
        let deleted = world.ask_meanwhile(client, Wish::Delete { id: leased });
        assert_eq!(deleted, None, "this is to be on the disk");
        calls.for_each(|call| disk.withdraw(call));
        end(&mut world, waiting, began);
    }
}

/// For any state of the journal and any order of commands: work in memory alone is answered at the
/// moment at which a client asks for it. Meanwhile senders, settlers, the log's room and its
/// snapshots wait for a disk that stands still.
#[test]
fn nonpersistent_work_passes_among_stalled_work() {
    for seed in 1..=SEEDS {
        let mut rng = Rng::new(seed);
        let (mut world, disk) = world_of(seed, rng.pick(&POLICIES));
        let client = worker(&mut world);
        let leased: Vec<u64> = (0..3).map(|_| durable_job(&mut world, client)).collect();
        let mut senders: Vec<u64> = (0..40).map(|_| world.connect(Character::Anyone)).collect();
        let calls = disk.calls() + 1..disk.calls() + 1_000;
        calls.clone().for_each(|call| disk.inject(call, Fault::Slow));
        let (waiting, began) = (stall(&mut world, &disk), world.now());
        let mut jobs = Jobs::default();
        for _ in 0..200 {
            if rng.chance(1, 6)
                && let Some(sender) = senders.pop()
            {
                let body = vec![7; rng.index(10_000)].into();
                let wish = put_of("default", Persistence::Persistent, body);
                assert_eq!(world.ask_meanwhile(sender, wish), None, "it is not on the disk");
            }
            let asked_at = world.now();
            jobs.work(&mut world, client, &mut rng);
            let took = world.now().since(asked_at);
            assert!(took < Nanos::from_millis(1), "seed {seed}: answered after {took}");
            world.pass(Nanos::from_millis(rng.pick(&[0, 0, 1, 15])));
        }
        assert!(world.now().since(began) < FaultyDisk::STALL, "it stalls still");
        let deleted = world.ask_meanwhile(client, Wish::Delete { id: rng.pick(&leased) });
        assert_eq!(deleted, None, "this is to be on the disk");
        calls.for_each(|call| disk.withdraw(call));
        world.pass(FaultyDisk::STALL + Nanos::from_millis(500));
        let used = world.ask(waiting, Wish::ListUsed).expect("nothing fails");
        assert_eq!(used.line, "USING default", "who waited was answered before");
    }
}

/// Jobs in memory, by their state.
#[derive(Default)]
struct Jobs {
    ready: u64,
    held: Vec<u64>,
    buried: Vec<u64>,
}

impl Jobs {
    /// Does one thing with one of them, which is answered at once.
    fn work(&mut self, world: &mut World<FaultyDisk>, client: u64, rng: &mut Rng) {
        let now = world.now();
        let mut ask = |wish: Wish| {
            let asked = wish.summary();
            let answer = world.ask_meanwhile(client, wish);
            answer.unwrap_or_else(|| panic!("{asked} waits at {now}")).line
        };
        match rng.below(8) {
            0..=2 => {
                let body = vec![8; rng.index(5_000)].into();
                let answer = ask(put_of("a", Persistence::NonPersistent, body));
                assert!(answer.starts_with("INSERTED "), "{answer}");
                self.ready += 1;
            }
            3 | 4 if self.ready > 0 => {
                let watched: Rc<BTreeSet<Rc<str>>> = Rc::new([Rc::from("a")].into());
                self.held.push(job_id(&ask(Wish::Reserve { watched, timeout: Some(0) })));
                self.ready -= 1;
            }
            5 if !self.buried.is_empty() => {
                let id = self.buried.pop().expect("there is one");
                assert_eq!(ask(Wish::KickJob { id }), "KICKED");
                self.ready += 1;
            }
            _ => {
                let Some(id) = self.held.pop() else { return };
                match rng.below(4) {
                    0 => {
                        assert_eq!(ask(Wish::Release { id, priority: 0, delay: 0 }), "RELEASED");
                        self.ready += 1;
                    }
                    1 => {
                        assert_eq!(ask(Wish::Bury { id, priority: 0 }), "BURIED");
                        self.buried.push(id);
                    }
                    _ => assert_eq!(ask(Wish::Delete { id }), "DELETED"),
                }
            }
        }
    }
}

/// A client that uses and watches a queue of its own.
fn worker(world: &mut World<FaultyDisk>) -> u64 {
    let client = world.connect(Character::Anyone);
    world.ask(client, Wish::Use { queue: "a".into() });
    world.ask(client, Wish::Watch { queue: "a".into() });
    world.ask(client, Wish::Ignore { queue: "default".into() });
    client
}

/// A job that it has leased.
fn durable_job(world: &mut World<FaultyDisk>, client: u64) -> u64 {
    world.ask(client, put("a", Persistence::Persistent)).expect("it lives");
    let watched: Rc<BTreeSet<Rc<str>>> = Rc::new([Rc::from("a")].into());
    let reserved = world.ask(client, Wish::Reserve { watched, timeout: Some(0) });
    job_id(&reserved.expect("it lives").line)
}

fn job_id(reserved: &str) -> u64 {
    reserved.split(' ').nth(1).and_then(|id| id.parse().ok()).expect("a job")
}

fn work_in_memory(world: &mut World<FaultyDisk>, client: u64) {
    let watched: Rc<BTreeSet<Rc<str>>> = Rc::new([Rc::from("a")].into());
    for _ in 0..50 {
        let mut ask = |wish| world.ask_meanwhile(client, wish).expect("nobody waits").line;
        assert!(ask(put("a", Persistence::NonPersistent)).starts_with("INSERTED "));
        let watched = watched.clone();
        let id = job_id(&ask(Wish::Reserve { watched, timeout: Some(0) }));
        assert_eq!(ask(Wish::Delete { id }), "DELETED");
    }
}

#[test]
fn nonpersistent_amqp_passes_while_disk_stalls() {
    let (mut world, disk) = world(StorePolicy::Always);
    let [sender, receiver] = [world.connect_amqp("one"), world.connect_amqp("two")];
    let queue = Destination::Queue(QueueName::new("a").expect("a name"));
    let topic = Destination::Topic(QueueName::new("news").expect("a name"));
    let to = Subscribing {
        topic: "news".into(),
        name: None,
        durable: false,
        shared: false,
        global: false,
    };
    world.ask_amqp(receiver, AmqpWish::Consume { queue: "a".into(), credit: 100 });
    world.ask_amqp(receiver, AmqpWish::Subscribe { to, credit: 100 });
    for to in [&queue, &topic] {
        world.ask_amqp(sender, AmqpWish::Produce { to: to.clone() });
    }
    let (waiting, began) = (stall(&mut world, &disk), world.now());
    for round in 0..20 {
        for to in [&queue, &topic] {
            let body = Rc::from([round; 50]);
            let message =
                Draft { durable: false, priority: 4, ttl: None, delay: 0, send_id: None, body };
            let (to, transaction) = (to.clone(), None);
            let send = AmqpWish::Send { to, message, transaction, settled: false };
            assert_eq!(world.ask_amqp_meanwhile(sender, send), Some(true), "it is accepted");
        }
        world.ask_amqp_meanwhile(receiver, AmqpWish::Declare);
        let held = world.amqp(receiver).held();
        assert_eq!(held.len(), 2, "both came");
        for delivery in held {
            let (verdict, transaction) = (Verdict::Accepted, None);
            let settle = AmqpWish::Settle { delivery, verdict, transaction, settled: false };
            assert_eq!(world.ask_amqp_meanwhile(receiver, settle), Some(true), "it is settled");
        }
        let transaction = world.amqp(receiver).transactions().last().copied();
        let transaction = transaction.expect("a transaction of nothing waits for nothing");
        let discharge = AmqpWish::Discharge { transaction, fail: false };
        assert_eq!(world.ask_amqp_meanwhile(receiver, discharge), Some(true));
    }
    end(&mut world, waiting, began);
}

/// A commit of one frame, and one of several: the commit waits, and the messages that it gave back
/// in memory do not.
#[test]
fn nonpersistent_release_of_stalled_commit_returns() {
    for bytes in [100, 9_000] {
        let (mut world, disk) = world(StorePolicy::Always);
        let client = world.connect_amqp("one");
        let [here, there] = ["a", "b"].map(|name| QueueName::new(name).expect("a name"));
        let [here, there] = [here, there].map(Destination::Queue);
        for to in [&here, &there] {
            world.ask_amqp(client, AmqpWish::Produce { to: to.clone() });
        }
        world.ask_amqp(client, AmqpWish::Consume { queue: "a".into(), credit: 100 });
        let send = |to: &Destination, durable, bytes: usize, transaction| {
            let body = vec![7; bytes].into();
            let message = Draft { durable, priority: 4, ttl: None, delay: 0, send_id: None, body };
            AmqpWish::Send { to: to.clone(), message, transaction, settled: false }
        };
        world.ask_amqp(client, send(&here, false, 50, None));
        world.ask_amqp(client, AmqpWish::Declare);
        let transaction = world.amqp(client).transactions().last().copied();
        for _ in 0..2 {
            world.ask_amqp(client, send(&there, true, bytes, transaction));
        }
        let [delivery] = world.amqp(client).held()[..] else { panic!("one was sent") };
        let (verdict, settled) = (Verdict::Failed, false);
        world.ask_amqp(client, AmqpWish::Settle { delivery, verdict, transaction, settled });
        let calls = disk.calls() + 1..disk.calls() + 5;
        calls.clone().for_each(|call| disk.inject(call, Fault::Slow));
        let transaction = transaction.expect("it was declared");
        let discharge = AmqpWish::Discharge { transaction, fail: false };
        assert_eq!(world.ask_amqp_meanwhile(client, discharge), Some(false), "it is not safe");
        let [again] = world.amqp(client).held()[..] else { panic!("it is to be had again") };
        assert_ne!(again, delivery);
        calls.for_each(|call| disk.withdraw(call));
    }
}

/// Under any of them the put of a durable job waits at least for a write.
const POLICIES: [StorePolicy; 3] =
    [StorePolicy::Always, StorePolicy::Periodic(Nanos::from_millis(25)), StorePolicy::Never];

const SEEDS: u64 = 100;
