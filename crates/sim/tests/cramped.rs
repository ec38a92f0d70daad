//! Memory for next to nothing: bodies leave it and come back as they were; who brings what there is
//! no room for waits in line and not for ever, or is refused with the limit's name; and who takes
//! and settles waits for no memory.

use std::collections::BTreeSet;
use std::rc::Rc;

use model::{Nanos, Persistence, StorePolicy};
use sim::{Character, Fault, FaultyDisk, Rng, Scenario, Tally, Wish, World, simulate};

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
        scenario.pace_max = Nanos::from_millis(rng.pick(&[20, 2000, 20_000]));
        total += simulate(scenario).unwrap_or_else(|failure| panic!("{failure}"));
    }
    println!("{total}");
    total
}

#[test]
fn who_finds_memory_full_waits_in_line_and_not_for_ever() {
    let total = lives(|scenario, _| {
        (scenario.policy, scenario.journal.policy) = (StorePolicy::Memory, StorePolicy::Memory);
    });
    assert!(total.scarcity.waits > 3 * SEEDS, "{total}");
    assert!(total.scarcity.went_on > SEEDS / 2, "{total}");
    assert!(total.scarcity.held_off > 3 * SEEDS, "{total}");
}

#[test]
fn bodies_leave_memory_and_come_back_as_they_were() {
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
        // A full device counts no failure, which this oracle does not know of.
        (scenario.quota, scenario.journal.disk_bytes_max) = (None, None);
        scenario.faults.retain(|fault| *fault != Fault::Full);
    });
    assert!(total.spilled > 2 * SEEDS, "{total}");
    assert!(total.scarcity.waits > 3 * SEEDS, "{total}");
    assert!(total.scarcity.went_on > SEEDS, "{total}");
    assert!(total.scarcity.held_off > 3 * SEEDS, "{total}");
}

/// While a line waits for memory and no time passes, all that takes and settles is answered, and
/// what leaves lets the line go on.
#[test]
fn who_takes_and_settles_waits_for_no_memory_and_lets_others_go_on() {
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

/// A world with little memory, in which nothing leaves it.
fn world(policy: StorePolicy) -> World<FaultyDisk> {
    let mut scenario = Scenario::new(1);
    (scenario.policy, scenario.journal.policy) = (policy, policy);
    (scenario.quota, scenario.journal.disk_bytes_max) = (None, None);
    scenario.faults_per_million = 0;
    scenario.journal.spill_bytes_max = 0;
    scenario.memory_limit = 24 * 1024;
    scenario.log_bodies_max = u64::MAX;
    scenario.pace_max = Nanos::from_secs(30);
    let disk = FaultyDisk::new(1);
    let mut world = World::new(scenario, disk.clone(), disk);
    world.start();
    world
}

/// Whether it is taken at once.
fn put(world: &mut World<FaultyDisk>, client: u64) -> bool {
    let (queue, persistence, body) = ("default".into(), NonPersistent, Rc::from([7; 900]));
    let put = Wish::Put { queue, priority: 0, delay: 0, lease: 60, persistence, body };
    let answer = world.ask_meanwhile(client, put);
    answer.is_some_and(|answer| answer.line.starts_with("INSERTED "))
}

fn job_id(reserved: &str) -> u64 {
    let id = reserved.strip_prefix("RESERVED ").and_then(|rest| rest.split(' ').next());
    id.and_then(|id| id.parse().ok()).unwrap_or_else(|| panic!("{reserved} is no job"))
}

use Persistence::{NonPersistent, Persistent};

const SEEDS: u64 = 200;
