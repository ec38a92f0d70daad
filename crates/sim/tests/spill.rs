//! Bodies that only memory has leave it at once and come back, on disks that are full or fail. A
//! receiver gets each message as it was sent, and every other promise holds.

use model::{Persistence, StorePolicy};
use sim::{Fault, Scenario, Tally, simulate};

/// Lives in which all bodies leave memory, with room for so many bytes of those that no log has.
fn lives(spill_bytes_max: u64, adapt: impl Fn(&mut Scenario)) -> Tally {
    let mut total = Tally::default();
    for seed in 1..=SEEDS {
        let mut scenario = Scenario::new(seed);
        (scenario.policy, scenario.journal.policy) = (StorePolicy::Always, StorePolicy::Always);
        scenario.persistences = vec![Persistence::NonPersistent, Persistence::Persistent];
        scenario.log_bodies_max = 0;
        scenario.journal.spill_bytes_max = spill_bytes_max;
        (scenario.quota, scenario.journal.disk_bytes_max) = (None, None);
        scenario.journal.segments_max = None;
        (scenario.steps, scenario.falls_per_thousand) = (600, 5);
        scenario.faults_per_million = 0;
        // The turns are for work that spills.
        scenario.has_users = false;
        adapt(&mut scenario);
        total += simulate(scenario).unwrap_or_else(|failure| panic!("{failure}"));
    }
    println!("{total}");
    total
}

#[test]
fn spilled_bodies_come_back_over_crashes() {
    let total = lives(ROOM, |_| ());
    assert!(total.spilled > 10 * SEEDS, "{total}");
    assert_eq!(total.failures, 0, "{total}");
}

#[test]
fn spilled_bodies_survive_spill_compaction() {
    // Much is to come and go before the process falls.
    let total = lives(SMALL_FILES, |scenario| {
        (scenario.steps, scenario.falls_per_thousand) = (3_000, 2);
    });
    assert!(total.moved > SEEDS / 4, "{total}");
    assert_eq!(total.failures, 0, "{total}");
}

#[test]
fn bodies_stay_with_full_spill() {
    let total = lives(LITTLE_ROOM, |_| ());
    assert!(total.spilled > SEEDS, "{total}");
    assert_eq!(total.failures, 0, "{total}");
}

#[test]
fn full_device_loses_nothing() {
    let total = lives(ROOM, |scenario| {
        scenario.quota = Some(scenario.journal.segment_bytes * 5);
        // It counts no failure, which their oracle does not know of.
        scenario.amqp_clients = 0;
    });
    assert!(total.spilled > SEEDS, "{total}");
    assert_eq!(total.failures, 0, "{total}");
}

#[test]
fn failing_disk_ends_the_process() {
    let total = lives(ROOM, |scenario| {
        scenario.faults_per_million = 5_000;
        scenario.faults = vec![Fault::Io, Fault::Short];
    });
    assert!(total.spilled > SEEDS, "{total}");
    assert!(total.failures > 0, "{total}");
}

/// More than there is.
const ROOM: u64 = 1024 * 1024;

/// Enough, in files of half a KiB.
const SMALL_FILES: u64 = 8 * 1024;

/// For some bodies.
const LITTLE_ROOM: u64 = 4 * 1024;

const SEEDS: u64 = 60;
