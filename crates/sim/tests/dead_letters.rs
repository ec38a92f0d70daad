//! Dead letters stop no sender: memory-only messages do not become any by default, and if there are
//! too many the oldest go.

use std::rc::Rc;

use model::Persistence::{NonPersistent, Persistent};
use model::{Destination, Nanos, QueueName, StorePolicy};
use sim::{AmqpWish, Draft, FaultyDisk, Rng, Scenario, Tally, World, simulate};

const SEEDS: u64 = 200;

fn lives(adapt: impl Fn(&mut Scenario, &mut Rng)) -> Tally {
    let mut total = Tally::default();
    for seed in 1..=SEEDS {
        let mut scenario = Scenario::new(seed);
        let mut rng = Rng::new(seed);
        (scenario.clients, scenario.redis_clients) = (rng.below(3), 0);
        (scenario.amqp_clients, scenario.steps) = (rng.between(2, 4), 800);
        scenario.have_room();
        adapt(&mut scenario, &mut rng);
        total += simulate(scenario).unwrap_or_else(|failure| panic!("{failure}"));
    }
    println!("{total}");
    total
}

/// Failed, rejected, expired, by clients that settle alone and in transactions, and over falls.
#[test]
fn dead_letters_keep_to_their_bound() {
    let total = lives(|scenario, rng| {
        scenario.dead_letters_max = Some(rng.between(1, 5));
        scenario.persistences =
            rng.pick(&[&[Persistent][..], &[Persistent, NonPersistent]]).to_vec();
    });
    assert!(total.scarcity.evicted > 2 * SEEDS, "{total}");
    assert!(total.recoveries > SEEDS, "{total}");
}

/// A sender of telemetry keeps no client from sending: its messages live for a moment, and no
/// client receives them.
#[test]
fn expired_telemetry_leaves_memory_to_others() {
    let mut scenario = Scenario::new(1);
    (scenario.policy, scenario.journal.policy) = (StorePolicy::Always, StorePolicy::Always);
    (scenario.faults_per_million, scenario.journal.spill_bytes_max) = (0, 0);
    scenario.have_room();
    scenario.stalls = false;
    (scenario.memory_limit, scenario.log_bodies_max) = (256 * 1024, u64::MAX);
    scenario.block_timeout = Nanos::from_secs(2);
    let disk = FaultyDisk::new(1);
    let mut world = World::new(scenario, disk.clone(), disk);
    world.start();
    let sender = world.connect_amqp("telemetry");
    let to = Destination::Queue(QueueName::new("a").expect("a name"));
    world.ask_amqp(sender, AmqpWish::Produce { to: to.clone() }).expect("nothing falls");
    for number in 0..200_u8 {
        let message = Draft {
            durable: false,
            priority: 4,
            ttl: Some(1),
            delay: 0,
            send_id: None,
            body: Rc::from([number; 4_000]),
        };
        let to = to.clone();
        let send = AmqpWish::Send { to, message, transaction: None, settled: false };
        let taken = world.ask_amqp_meanwhile(sender, send).expect("nothing falls");
        assert!(taken, "message {number} is taken at once");
        world.pass(Nanos::from_millis(2));
    }
}
