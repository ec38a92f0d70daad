//! Queues that hold next to nothing: whoever is taken, waits or is refused is so for a reason, with
//! the bound's name; nobody overtakes, nobody waits for ever, and nothing confirmed is lost.

use model::{Nanos, QueueBounds, WhenFull};
use sim::{Rng, Scenario, Tally, simulate};

/// Lives with bounds.
fn lives(adapt: impl Fn(&mut Scenario, &mut Rng)) -> Tally {
    let mut total = Tally::default();
    for seed in 1..=SEEDS {
        let mut scenario = Scenario::new(seed);
        let mut rng = Rng::new(seed);
        scenario.narrow(&mut rng);
        adapt(&mut scenario, &mut rng);
        total += simulate(scenario).unwrap_or_else(|failure| panic!("{failure}"));
    }
    println!("{total}");
    total
}

#[test]
fn who_finds_a_queue_full_waits_in_line_and_not_for_ever() {
    let total = lives(|scenario, rng| {
        let messages_max = Some(rng.between(1, 4));
        scenario.bound(QueueBounds { messages_max, ..QueueBounds::default() });
        scenario.pace_max = Nanos::from_millis(rng.pick(&[500, 5000, 20_000]));
        (scenario.clients, scenario.steps) = (rng.between(4, 8), 400);
    });
    assert!(total.scarcity.waits > 5 * SEEDS, "{total}");
    assert!(total.scarcity.went_on > SEEDS / 4, "{total}");
    assert!(total.scarcity.held_off > SEEDS, "{total}");
}

#[test]
fn who_finds_a_queue_full_that_refuses_is_told_its_bound() {
    let total = lives(|scenario, _| {
        scenario.bound(QueueBounds { when_full: WhenFull::Reject, ..scenario.bounds });
    });
    assert_eq!(total.scarcity.waits, 0, "{total}");
    assert!(total.scarcity.held_off > 5 * SEEDS, "{total}");
}

#[test]
fn the_oldest_goes_where_that_is_the_rule() {
    for when_full in [WhenFull::DropOldest, WhenFull::DeadLetter] {
        let total = lives(|scenario, rng| {
            let messages_max = Some(rng.between(1, 4));
            let bounds =
                QueueBounds { when_full, messages_max, target_age: None, ..scenario.bounds };
            scenario.bound(bounds);
        });
        assert_eq!(total.scarcity.waits, 0, "{total}");
        assert!(total.scarcity.shed > 4 * SEEDS, "{total}");
    }
}

const SEEDS: u64 = 200;
