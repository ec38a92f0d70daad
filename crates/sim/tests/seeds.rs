//! Six thousand simulations, each decided by its seed; some have clients of AMQP, some of Redis.

use sim::{Scenario, Tally, simulate};

/// Two threads: as many as the smallest machine that runs the tests has cores.
const THREADS: u64 = 2;
const SEEDS: u64 = 6_000;

#[test]
fn six_thousand_seeds_keep_every_promise() {
    let share = |thread: u64| {
        let mut total = Tally::default();
        for seed in (1..=SEEDS).filter(|seed| seed % THREADS == thread) {
            total += simulate(Scenario::scarce(seed)).unwrap_or_else(|failure| panic!("{failure}"));
        }
        total
    };
    let mut total = Tally::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || share(n))).collect();
        for thread in threads {
            total += thread.join().expect("a seed failed; its command is printed above");
        }
    });
    println!("{total}");
    // A simulation in which nothing goes wrong proves nothing.
    assert!(total.falls > SEEDS, "{total}");
    assert!(total.recoveries_fallen > SEEDS / 10, "{total}");
    assert!(total.failures > SEEDS / 100, "{total}");
    assert!(total.snapshots > SEEDS / 2, "{total}");
    // A start uses spares as they are, so only segments that held frames are recycled.
    assert!(total.segments_recycled > SEEDS / 10, "{total}");
    assert!(total.refusals > SEEDS / 100, "{total}");
    assert!(total.spilled > SEEDS / 2, "{total}");
    assert!(total.scarcity.waits > SEEDS / 10, "{total}");
    assert!(total.scarcity.shed > SEEDS / 10, "{total}");
    assert!(total.subscriptions > SEEDS, "{total}");
    assert!(total.keys > SEEDS, "{total}");
    assert!(total.runs > SEEDS / 10, "{total}");
}
