//! Memory for next to nothing: bodies leave it and come back as they were. A send without room
//! waits in line and not for ever, or is refused with the limit's name. Receives and settlements
//! wait for no memory.

use std::collections::BTreeSet;
use std::rc::Rc;

use model::{Nanos, Persistence, StorePolicy};
use sim::{
    Character, Fault, FaultyDisk, Rng, Scenario, Tally, Value, Wish, World, simulate, words,
};

/// Lives with little memory.
fn lives(adapt: impl Fn(&mut Scenario, &mut Rng)) -> Tally {
    let mut total = Tally::default();
    for seed in 1..=SEEDS {
        let mut scenario = Scenario::new(seed);
        let mut rng = Rng::new(seed);
        (scenario.clients, scenario.amqp_clients) = (rng.between(3, 8), 0);
        scenario.redis_clients = 0;
        scenario.falls_per_thousand = rng.pick(&[0, 2, 5]);
        scenario.persistences = vec![NonPersistent, NonPersistent, Persistent];
        scenario.steps = 800;
        adapt(&mut scenario, &mut rng);
        scenario.cramp(&mut rng);
        scenario.block_timeout = Nanos::from_millis(rng.pick(&[20, 2000, 20_000]));
        total += simulate(scenario).unwrap_or_else(|failure| panic!("{failure}"));
    }
    println!("{total}");
    total
}

#[test]
fn memory_full_sends_wait_bounded_time() {
    let total = lives(|scenario, _| {
        (scenario.policy, scenario.journal.policy) = (StorePolicy::Memory, StorePolicy::Memory);
    });
    assert!(total.scarcity.waits > 3 * SEEDS, "{total}");
    assert!(total.scarcity.went_on > SEEDS / 2, "{total}");
    assert!(total.scarcity.held_off > 3 * SEEDS, "{total}");
}

#[test]
fn bodies_leave_memory_and_come_back() {
    let total = lives(|_, _| ());
    assert!(total.spilled > 2 * SEEDS, "{total}");
    assert!(total.scarcity.waits > SEEDS, "{total}");
    assert!(total.scarcity.went_on > SEEDS / 4, "{total}");
}

/// Parts of a transaction wait, and its commit waits for them.
#[test]
fn transactions_and_topics_wait_whole() {
    let total = lives(|scenario, rng| {
        (scenario.clients, scenario.amqp_clients) = (rng.between(0, 3), rng.between(1, 4));
        scenario.steps = 1500;
        // Full devices are another matter: see scarcity.rs.
        (scenario.quota, scenario.journal.disk_bytes_max) = (None, None);
        scenario.journal.segments_max = None;
        scenario.faults.retain(|fault| *fault != Fault::Full);
    });
    assert!(total.spilled > 2 * SEEDS, "{total}");
    assert!(total.scarcity.waits > 3 * SEEDS, "{total}");
    assert!(total.scarcity.went_on > SEEDS, "{total}");
    assert!(total.scarcity.held_off > 3 * SEEDS, "{total}");
}

/// Elements, values and whole transactions of Redis wait in one line with all others.
#[test]
fn elements_wait_among_messages() {
    let total = lives(|scenario, rng| {
        (scenario.clients, scenario.redis_clients) = (rng.pick(&[0, 3]), rng.between(3, 6));
        scenario.falls_per_thousand = rng.pick(&[0, 0, 2]);
        scenario.steps = 1_000;
    });
    assert!(total.scarcity.waits > SEEDS / 2, "{total}");
    assert!(total.scarcity.went_on > SEEDS / 8, "{total}");
    assert!(total.scarcity.held_off > SEEDS / 2, "{total}");
}

/// Places are scarce as well, in queues or in lists.
#[test]
fn sends_wait_for_place_and_memory() {
    let total = lives(|scenario, rng| {
        scenario.steps = 500;
        if rng.coin() {
            scenario.narrow(rng);
        } else {
            (scenario.clients, scenario.redis_clients) = (rng.pick(&[0, 0, 3]), rng.between(3, 6));
            scenario.narrow_lists(rng);
        }
    });
    assert!(total.scarcity.waits > SEEDS, "{total}");
    assert!(total.scarcity.went_on > SEEDS / 4, "{total}");
    assert!(total.scarcity.held_off > SEEDS, "{total}");
}

/// While a line waits for memory and no time passes, all receives and settlements are answered, and
/// the memory that they free lets the line go on.
#[test]
fn settling_needs_no_memory_unblocks_sends() {
    for policy in [StorePolicy::Memory, StorePolicy::Always] {
        let mut world = world(policy);
        let [worker, first, second] = [(); 3].map(|()| world.connect(Character::Anyone));
        let mut stored = 0;
        while put(&mut world, first) {
            stored += 1;
        }
        assert!(!put(&mut world, second), "{second} waits behind {first}");
        let began = world.now();
        let watched: Rc<BTreeSet<Rc<str>>> = Rc::new([Rc::from("default")].into());
        for taken in 0..stored {
            let mut ask = |wish| world.ask_meanwhile(worker, wish).expect("nobody waits").line;
            let reserve = || Wish::Reserve { watched: watched.clone(), timeout: Some(0) };
            let id = job_id(&ask(reserve()));
            assert_eq!(ask(Wish::Release { id, priority: 0, delay: 0 }), "RELEASED");
            let id = job_id(&ask(reserve()));
            assert_eq!(ask(Wish::Bury { id, priority: 0 }), "BURIED");
            assert_eq!(ask(Wish::Kick { queue: "default".into(), max: 1 }), "KICKED 1");
            let id = job_id(&ask(reserve()));
            assert_eq!(ask(Wish::Touch { id }), "TOUCHED");
            assert_eq!(ask(Wish::Delete { id }), "DELETED", "{taken} of {stored}");
        }
        for sender in [first, second] {
            let used = world.ask_meanwhile(sender, Wish::ListUsed);
            assert!(used.is_some(), "{sender} went on, and what it sent next is answered");
        }
        assert!(world.now().since(began) < Nanos::from_millis(1), "no time has passed");
    }
}

/// Bodies that the disk has not written cannot leave memory, so no more sends are taken: the world
/// asserts that memory stays within its bounds. Once the disk has written them, sends are taken
/// again.
#[test]
fn stalled_disk_keeps_memory_within_limit() {
    let disk = FaultyDisk::new(1);
    let mut world = world_on(&disk, StorePolicy::Always, 24 * 1024);
    (disk.calls()..disk.calls() + 100).for_each(|call| disk.inject(call, Fault::Slow));
    let mut refused = 0;
    for _ in 0..100 {
        let sender = world.connect(Character::Anyone);
        let answer = world.ask_meanwhile(sender, put_of(Persistent));
        refused += u64::from(answer.is_some_and(|answer| answer.line == "OUT_OF_MEMORY"));
    }
    assert!(refused > 25, "{refused} were refused, and some wait for the disk");
    world.pass(FaultyDisk::STALL + Nanos::from_millis(500));
    let sender = world.connect(Character::Anyone);
    let answer = world.ask(sender, put_of(Persistent)).expect("nothing fails");
    assert!(answer.line.starts_with("INSERTED "), "{} when all is written", answer.line);
}

/// A command that waits for memory, and then reads more elements than there is memory for, is
/// performed all the same. Bodies that came for its sake are no reason to wait again: else they
/// would come again for ever.
#[test]
fn insertion_ignores_bodies_fetched_for_it() {
    for commands in [&["LINSERT l1 BEFORE p x"][..], &["MULTI", "LINSERT l1 BEFORE p x", "EXEC"]] {
        let disk = FaultyDisk::new(1);
        let mut world = world_on(&disk, StorePolicy::Always, 24 * 1024);
        let client = world.connect_redis();
        let large = "7".repeat(900);
        for _ in 0..32 {
            world.ask_redis(client, &[words(&["RPUSH", "l1", &large])]).expect("nothing fails");
        }
        let words = |command: &&str| words(&command.split(' ').collect::<Vec<_>>());
        let commands: Vec<_> = commands.iter().map(words).collect();
        let answer = world.ask_redis(client, &commands).expect("nothing fails");
        let none = Value::Integer(-1);
        let expected = if commands.len() == 1 { none } else { Value::Array(vec![none]) };
        assert_eq!(answer, Some(expected), "it was looked for in all of them");
    }
}

/// A world with little memory, in which nothing leaves it that the log has not.
fn world(policy: StorePolicy) -> World<FaultyDisk> {
    world_on(&FaultyDisk::new(1), policy, 24 * 1024)
}

fn world_on(disk: &FaultyDisk, policy: StorePolicy, memory_limit: u64) -> World<FaultyDisk> {
    let mut scenario = Scenario::new(1);
    (scenario.policy, scenario.journal.policy) = (policy, policy);
    (scenario.quota, scenario.journal.disk_bytes_max) = (None, None);
    scenario.journal.segments_max = None;
    scenario.faults_per_million = 0;
    scenario.journal.spill_bytes_max = 0;
    scenario.memory_limit = memory_limit;
    scenario.stalls = true;
    (scenario.journal.segment_bytes, scenario.journal.extent_bytes) = (1 << 20, 1 << 19);
    scenario.log_bodies_max = u64::MAX;
    scenario.block_timeout = Nanos::from_secs(30);
    let mut world = World::new(scenario, disk.clone(), disk.clone());
    world.start();
    world
}

/// True if it is taken at once.
fn put(world: &mut World<FaultyDisk>, client: u64) -> bool {
    let answer = world.ask_meanwhile(client, put_of(NonPersistent));
    answer.is_some_and(|answer| answer.line.starts_with("INSERTED "))
}

fn put_of(persistence: Persistence) -> Wish {
    let (queue, body) = ("default".into(), Rc::from([7; 900]));
    Wish::Put { queue, priority: 0, delay: 0, lease: 60, persistence, body }
}

fn job_id(reserved: &str) -> u64 {
    let id = reserved.strip_prefix("RESERVED ").and_then(|rest| rest.split(' ').next());
    id.and_then(|id| id.parse().ok()).unwrap_or_else(|| panic!("{reserved} is no job"))
}

use Persistence::{NonPersistent, Persistent};

const SEEDS: u64 = 200;
