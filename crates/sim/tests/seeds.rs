//! The general seeds, of which `cargo xtask test --only sim` runs ten thousand; some have clients
//! of AMQP, some of Redis.

use sim::{Scenario, Tally, simulate};

/// Two threads: as many as the smallest machine that runs the tests has cores.
const THREADS: u64 = 2;
const SEEDS: u64 = 500;

#[test]
fn five_hundred_seeds_keep_every_promise() {
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
    assert_eq!(total.rare_events(SEEDS), [""; 0], "{total}");
}
