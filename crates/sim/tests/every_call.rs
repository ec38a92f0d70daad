//! Scripted workloads in which every single call to the disk crashes or fails.
//!
//! A first run without faults counts the calls; then one run for each call and each thing that
//! can go wrong in it. The scripts are seeds chosen for what they touch; the first test checks
//! that they still do.

use model::{Durability, Nanos, Persistence, StorePolicy};
use sim::{Fall, Fault, FaultyDisk, Moment, Scenario, Tally, simulate_on};

/// Scripts: a quiet scenario each, with nothing going wrong by itself.
fn scripts() -> Vec<Scenario> {
    let scripts = [
        (96, StorePolicy::Always),
        (106, StorePolicy::Periodic(Nanos::from_millis(25))),
        (60, StorePolicy::Never),
    ];
    let script = |(seed, policy)| {
        let mut scenario = Scenario::new(seed);
        scenario.policy = policy;
        scenario.journal.policy = policy;
        scenario.journal.segment_bytes = 64 * 1024;
        scenario.journal.extent_bytes = 32 * 1024;
        scenario.journal.reserve_bytes = 32 * 1024;
        scenario.journal.batch_bytes = 16 * 1024;
        scenario.faults_per_million = 0;
        scenario.falls_per_thousand = 0;
        scenario.quota = None;
        scenario.clients = 4;
        scenario.amqp_clients = 0;
        scenario.redis_clients = 0;
        scenario.pipeline = 3;
        scenario.steps = 500;
        scenario.persistences = PERSISTENCES.to_vec();
        scenario
    };
    scripts.into_iter().map(script).collect()
}

/// Mostly what a protocol asks that has no say.
const PERSISTENCES: [Persistence; 6] = [
    Persistence::Persistent,
    Persistence::Persistent,
    Persistence::Persistent,
    Persistence::NonPersistent,
    Persistence::Exactly(Durability::Written),
    Persistence::Exactly(Durability::Synced),
];

fn run(scenario: &Scenario, faults: &[(u64, Fault)], disk_seed: u64) -> Tally {
    let disk = FaultyDisk::new(disk_seed);
    for (call, fault) in faults {
        disk.inject(*call, *fault);
    }
    simulate_on(scenario.clone(), &disk).unwrap_or_else(|failure| {
        let policy = scenario.policy;
        panic!("{policy:?}, {:?}, {faults:?}, disk {disk_seed}: {failure}", scenario.fall)
    })
}

/// Runs on both cores; a failure says which case it was.
fn for_each_call(calls: u64, case: impl Fn(u64) + Sync) {
    let case = &case;
    std::thread::scope(|scope| {
        for half in 0..2 {
            scope.spawn(move || (1..=calls).filter(|call| call % 2 == half).for_each(case));
        }
    });
}

#[test]
fn scripts_touch_everything() {
    for script in scripts() {
        let tally = run(&script, &[], 1);
        assert!(tally.calls > 200, "{:?}: {tally}", script.policy);
        assert!(tally.snapshots > 2, "{:?}: {tally}", script.policy);
        assert!(tally.segments_recycled > 2, "{:?}: {tally}", script.policy);
        assert!(tally.compactions > 0, "{:?}: {tally}", script.policy);
    }
}

#[test]
fn a_crash_at_any_call_loses_nothing_that_was_promised() {
    for mut script in scripts() {
        let calls = run(&script, &[], 1).calls;
        for fall in [Fall::Process, Fall::Power] {
            script.fall = Some(fall);
            for_each_call(calls, |call| {
                for moment in [Moment::Before, Moment::During, Moment::After] {
                    run(&script, &[(call, Fault::Crash(moment))], call);
                }
            });
        }
    }
}

#[test]
fn a_crash_at_any_call_of_a_recovery_loses_nothing_either() {
    for mut script in scripts() {
        let calls = run(&script, &[], 1).calls;
        script.fall = Some(Fall::Power);
        for_each_call(calls / STRIDE, |step| {
            let first = step * STRIDE;
            for second in 1..=RECOVERY_CALLS {
                let crash = |call| (call, Fault::Crash(Moment::During));
                run(&script, &[crash(first), crash(first + second)], second);
            }
        });
    }
}

#[test]
fn a_fault_in_any_call_ends_confirming_and_loses_nothing() {
    for script in scripts() {
        let calls = run(&script, &[], 1).calls;
        for fault in [Fault::Io, Fault::Full, Fault::Short] {
            for_each_call(calls, |call| {
                run(&script, &[(call, fault)], call);
            });
        }
    }
}

/// Every so many calls of a script begin a recovery whose every call crashes.
const STRIDE: u64 = 23;

/// More calls than a recovery of the scripts makes.
const RECOVERY_CALLS: u64 = 45;
