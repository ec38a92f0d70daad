//! Queues that hold next to nothing: each send is taken, waits or is refused for a reason, with the
//! bound's name. No send overtakes another or waits for ever, and nothing confirmed is lost.

use model::Persistence::{NonPersistent, Persistent};
use model::{Nanos, QueueBounds, WhenFull};
use sim::{Fault, Rng, Scenario, Tally, simulate};

/// Lives with bounds.
fn lives(adapt: impl Fn(&mut Scenario, &mut Rng)) -> Tally {
    lives_of(SEEDS, adapt)
}

/// The same of so many seeds.
fn lives_of(seeds: u64, adapt: impl Fn(&mut Scenario, &mut Rng)) -> Tally {
    lives_from(1..=seeds, adapt)
}

/// The same of these seeds.
fn lives_from(
    seeds: impl IntoIterator<Item = u64>,
    adapt: impl Fn(&mut Scenario, &mut Rng),
) -> Tally {
    let mut total = Tally::default();
    for seed in seeds {
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
fn full_queue_sends_wait_bounded_time() {
    let total = lives(|scenario, rng| {
        let messages_max = Some(rng.between(1, 4));
        scenario.bound(QueueBounds { messages_max, ..QueueBounds::default() });
        scenario.block_timeout = Nanos::from_millis(rng.pick(&[500, 5000, 20_000]));
        (scenario.clients, scenario.steps) = (rng.between(4, 8), 400);
    });
    assert!(total.scarcity.waits > 5 * SEEDS, "{total}");
    assert!(total.scarcity.went_on > SEEDS / 4, "{total}");
    assert!(total.scarcity.held_off > SEEDS, "{total}");
}

#[test]
fn full_queue_refusal_names_its_bound() {
    let total = lives(|scenario, _| {
        scenario.bound(QueueBounds { when_full: WhenFull::Reject, ..scenario.bounds });
    });
    assert_eq!(total.scarcity.waits, 0, "{total}");
    assert!(total.scarcity.held_off > 5 * SEEDS, "{total}");
}

#[test]
fn full_queue_drops_oldest_by_rule() {
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

/// On a device that is full at times: a send is refused if no message can go for it.
#[test]
fn full_device_queue_drops_oldest() {
    for when_full in [WhenFull::DropOldest, WhenFull::DeadLetter] {
        let total = lives_of(SEEDS / 5, |scenario, rng| {
            (scenario.clients, scenario.amqp_clients) = (rng.between(3, 6), 0);
            let redis_clients = if when_full == WhenFull::DropOldest { 3 } else { 0 };
            (scenario.redis_clients, scenario.steps) = (redis_clients * rng.below(2), 4000);
            (scenario.falls_per_thousand, scenario.pipeline) = (rng.pick(&[0, 1]), 16);
            let bytes_max = Some(rng.pick(&[6_000, 20_000, 60_000]));
            let bounds = QueueBounds { when_full, bytes_max, ..QueueBounds::default() };
            scenario.bound(bounds);
            // A frame takes as many as are renamed.
            scenario.bound_lists(QueueBounds { messages_max: Some(20), ..bounds });
            (scenario.journal.segment_bytes, scenario.journal.disk_bytes_max) = (64 * 1024, None);
            scenario.journal.segments_max = None;
            scenario.quota = Some(scenario.journal.segment_bytes * rng.between(4, 6));
            scenario.persistences = vec![Persistent, Persistent, NonPersistent];
        });
        assert_eq!(total.scarcity.waits, 0, "{total}");
        assert!(total.refusals > SEEDS, "{total}");
        assert!(total.scarcity.shed > SEEDS, "{total}");
    }
}

/// Among consumers that fail and reject, topics and transactions: failures are then counted only in
/// memory. A message that is to become a dead letter is hidden until there is room.
#[test]
fn full_device_serves_consumers_and_transactions() {
    for when_full in [WhenFull::Block, WhenFull::DropOldest, WhenFull::DeadLetter] {
        let total = lives_of(SEEDS / 4, |scenario, rng| {
            (scenario.clients, scenario.redis_clients) = (rng.pick(&[0, 0, 2]), 0);
            (scenario.amqp_clients, scenario.http_clients) = (rng.between(2, 5), rng.pick(&[0, 2]));
            (scenario.falls_per_thousand, scenario.pipeline) = (rng.pick(&[0, 1, 3]), 16);
            scenario.steps = 1500;
            let bytes_max = Some(rng.pick(&[20_000, 60_000, 200_000]));
            let bounds = QueueBounds { when_full, bytes_max, ..QueueBounds::default() };
            let bounds = if when_full == WhenFull::Block { QueueBounds::default() } else { bounds };
            scenario.bound(bounds);
            scenario.bound_topics(bounds);
            scenario.journal.segment_bytes = 128 * 1024;
            scenario.journal.frame_payload_bytes_max = 48 * 1024;
            scenario.journal.disk_bytes_max = None;
            scenario.journal.segments_max = None;
            scenario.quota = Some(scenario.journal.segment_bytes * rng.between(4, 6));
            scenario.persistences = vec![Persistent, Persistent, NonPersistent];
        });
        assert_eq!(total.scarcity.waits, 0, "{total}");
        assert!(total.scarcity.set_aside > SEEDS / 2, "{total}");
    }
}

/// The disk stands still for seconds at times, and everything that is to be durable waits for it.
#[test]
fn full_queue_drops_oldest_during_stall() {
    for when_full in [WhenFull::DropOldest, WhenFull::DeadLetter] {
        // In the last life a fall leaves a doubt if a message was released to the back.
        let total = lives_from((1..=SEEDS / 4).chain([472]), |scenario, rng| {
            (scenario.clients, scenario.amqp_clients) = (rng.between(2, 5), rng.pick(&[0, 3]));
            (scenario.redis_clients, scenario.steps) = (0, 1000);
            (scenario.falls_per_thousand, scenario.pipeline) = (rng.pick(&[0, 1]), 16);
            let messages_max = Some(rng.between(1, 8));
            let bounds = QueueBounds { when_full, messages_max, ..QueueBounds::default() };
            scenario.have_room();
            scenario.bound(bounds);
            scenario.bound_topics(bounds);
            scenario.stalls = true;
            (scenario.faults, scenario.faults_per_million) = (vec![Fault::Slow], 50_000);
            scenario.persistences = vec![Persistent, NonPersistent];
        });
        assert_eq!(total.scarcity.waits, 0, "{total}");
        assert!(total.scarcity.shed > SEEDS, "{total}");
    }
}

/// Lives with topics and bounded subscriptions.
fn lives_of_topics(adapt: impl Fn(&mut Scenario, &mut Rng)) -> Tally {
    lives(|scenario, rng| {
        scenario.bound(QueueBounds::default());
        (scenario.clients, scenario.redis_clients) = (rng.pick(&[0, 0, 2]), 0);
        (scenario.amqp_clients, scenario.steps) = (rng.between(3, 6), 600);
        scenario.falls_per_thousand = rng.pick(&[0, 3, 10]);
        scenario.have_room();
        scenario.narrow_topics(rng);
        scenario.http_clients = rng.pick(&[0, 2, 4]);
        adapt(scenario, rng);
    })
}

#[test]
fn full_subscription_publishes_wait_bounded_time() {
    let total = lives_of_topics(|scenario, rng| {
        let messages_max = Some(rng.between(1, 3));
        let bytes_max = rng.pick(&[None, None, Some(600)]);
        scenario.bound_topics(QueueBounds { messages_max, bytes_max, ..QueueBounds::default() });
        scenario.block_timeout = Nanos::from_millis(rng.pick(&[20, 500, 5000, 20_000]));
    });
    assert!(total.scarcity.waits > SEEDS, "{total}");
    assert!(total.scarcity.went_on > SEEDS / 4, "{total}");
    assert!(total.scarcity.held_off > SEEDS, "{total}");
}

#[test]
fn full_subscription_refusal_names_its_bound() {
    let total = lives_of_topics(|scenario, _| {
        let bounds = QueueBounds { when_full: WhenFull::Reject, ..scenario.topic_bounds };
        scenario.bound_topics(bounds);
    });
    assert_eq!(total.scarcity.waits, 0, "{total}");
    assert!(total.scarcity.held_off > SEEDS, "{total}");
}

#[test]
fn full_subscription_drops_oldest_by_rule() {
    for when_full in [WhenFull::DropOldest, WhenFull::DeadLetter] {
        let total = lives_of_topics(|scenario, rng| {
            let messages_max = Some(rng.between(1, 4));
            let bounds =
                QueueBounds { when_full, messages_max, target_age: None, ..scenario.topic_bounds };
            scenario.bound_topics(bounds);
        });
        assert_eq!(total.scarcity.waits, 0, "{total}");
        assert!(total.scarcity.shed > SEEDS, "{total}");
    }
}

/// A subscriber beyond the bound hears so and goes; no publisher waits or is refused.
#[test]
fn full_subscription_disconnects_slow_consumer() {
    let total = lives_of_topics(|scenario, rng| {
        let (messages_max, when_full) = (Some(rng.between(1, 4)), WhenFull::Disconnect);
        let bounds =
            QueueBounds { when_full, messages_max, target_age: None, ..scenario.topic_bounds };
        scenario.bound_topics(bounds);
    });
    assert_eq!((total.scarcity.waits, total.scarcity.held_off), (0, 0), "{total}");
    assert!(total.scarcity.cut_off > SEEDS, "{total}");
}

/// Rules change while senders wait, messages go and subscribers are disconnected for them.
#[test]
fn rules_hold_at_once_and_survive() {
    let total = lives(|scenario, rng| {
        (scenario.clients, scenario.redis_clients) = (rng.between(1, 4), 0);
        (scenario.amqp_clients, scenario.steps) = (rng.between(2, 6), 600);
        scenario.falls_per_thousand = rng.pick(&[0, 0, 3, 10]);
        scenario.have_room();
        scenario.invite_operator(rng);
    });
    assert!(total.scarcity.waits > SEEDS, "{total}");
    assert!(total.scarcity.went_on > SEEDS / 4, "{total}");
    assert!(total.scarcity.held_off > SEEDS, "{total}");
    assert!(total.scarcity.shed > SEEDS, "{total}");
    assert!(total.scarcity.cut_off > SEEDS / 8, "{total}");
    assert!(total.rules > SEEDS / 4, "{total}");
}

/// Lives with lists that have bounds.
fn lives_of_lists(adapt: impl Fn(&mut Scenario, &mut Rng)) -> Tally {
    lives(|scenario, rng| {
        scenario.bound(QueueBounds::default());
        scenario.narrow_lists(rng);
        (scenario.clients, scenario.amqp_clients) = (rng.pick(&[0, 0, 2]), 0);
        (scenario.redis_clients, scenario.steps) = (rng.between(3, 6), 400);
        scenario.falls_per_thousand = rng.pick(&[0, 3, 10]);
        adapt(scenario, rng);
    })
}

#[test]
fn full_list_pushes_wait_bounded_time() {
    let total = lives_of_lists(|scenario, rng| {
        let messages_max = Some(rng.between(1, 4));
        let bytes_max = rng.pick(&[None, None, Some(600)]);
        scenario.bound_lists(QueueBounds { messages_max, bytes_max, ..QueueBounds::default() });
        scenario.block_timeout = Nanos::from_millis(rng.pick(&[20, 500, 5000, 20_000]));
    });
    assert!(total.scarcity.waits > 2 * SEEDS, "{total}");
    assert!(total.scarcity.went_on > SEEDS / 2, "{total}");
    assert!(total.scarcity.held_off > 2 * SEEDS, "{total}");
}

#[test]
fn full_list_refusal_names_its_bound() {
    let total = lives_of_lists(|scenario, rng| {
        // No client consumes from a list for good, so none is disconnected for it.
        let when_full = rng.pick(&[WhenFull::Reject, WhenFull::Disconnect]);
        scenario.bound_lists(QueueBounds { when_full, ..scenario.list_bounds });
    });
    assert_eq!(total.scarcity.waits, 0, "{total}");
    assert!(total.scarcity.held_off > 4 * SEEDS, "{total}");
}

#[test]
fn full_list_drops_oldest_by_rule() {
    for when_full in [WhenFull::DropOldest, WhenFull::DeadLetter] {
        let total = lives_of_lists(|scenario, rng| {
            let messages_max = Some(rng.between(1, 4));
            let bounds =
                QueueBounds { when_full, messages_max, target_age: None, ..scenario.list_bounds };
            scenario.bound_lists(bounds);
        });
        assert_eq!(total.scarcity.waits, 0, "{total}");
        assert!(total.scarcity.shed > 4 * SEEDS, "{total}");
    }
}

const SEEDS: u64 = 200;
