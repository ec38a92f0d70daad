//! Clients of HTTP among others. A follower of a topic gets the messages published while it
//! follows, in their order. A receiver gets each message under a lease that others may settle. A
//! settled message never comes again, after any fall.

use model::Nanos;
use sim::{Rng, Scenario, Tally, simulate};

/// Lives with clients of HTTP.
fn lives(adapt: impl Fn(&mut Scenario, &mut Rng)) -> Tally {
    let mut total = Tally::default();
    for seed in 1..=SEEDS {
        let mut scenario = Scenario::new(seed);
        let mut rng = Rng::new(seed);
        scenario.have_room();
        (scenario.http_clients, scenario.redis_clients) = (rng.between(2, 5), 0);
        scenario.clients = rng.pick(&[0, 0, 2]);
        scenario.amqp_clients = rng.pick(&[0, 1, 2]);
        scenario.steps = 500;
        adapt(&mut scenario, &mut rng);
        total += simulate(scenario).unwrap_or_else(|failure| panic!("{failure}"));
    }
    println!("{total}");
    total
}

#[test]
fn http_clients_lose_nothing_over_crashes() {
    let total = lives(|scenario, rng| {
        scenario.falls_per_thousand = rng.pick(&[0, 3, 10, 30]);
    });
    assert!(total.falls > SEEDS, "{total}");
    assert!(total.replies > 50 * SEEDS, "{total}");
}

/// A message that comes again under the name that its sender gave it is stored once, by any
/// protocol, and over any falls between.
#[test]
fn repeated_send_stored_once_over_crashes() {
    let total = lives(|scenario, rng| {
        (scenario.amqp_clients, scenario.named_per_hundred) = (rng.between(1, 3), 80);
        // Also while the first is not confirmed yet.
        scenario.pipeline = rng.pick(&[3, 16]);
        scenario.falls_per_thousand = rng.pick(&[3, 10, 30]);
        scenario.dedup_window = Nanos::from_millis(rng.pick(&[50, 2000, 60_000]));
        if rng.chance(1, 4) {
            scenario.narrow(rng);
            scenario.narrow_topics(rng);
        }
    });
    assert!(total.falls > SEEDS, "{total}");
    assert!(total.replies > 50 * SEEDS, "{total}");
}

/// A send that waits for a place when its client is gone is never stored, in any queue or topic.
#[test]
fn waiting_sends_end_with_their_client() {
    let total = lives(|scenario, rng| {
        (scenario.clients, scenario.amqp_clients, scenario.http_clients) = (0, 0, 5);
        scenario.narrow(rng);
        scenario.block_timeout = Nanos::from_secs(3600);
        scenario.falls_per_thousand = rng.pick(&[0, 3]);
        scenario.pipeline = 16;
        scenario.steps = 1000;
    });
    assert!(total.scarcity.abandoned > SEEDS / 2, "{total}");
    assert!(total.scarcity.went_on > SEEDS / 2, "{total}");
}

const SEEDS: u64 = 200;
