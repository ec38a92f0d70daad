//! Scripted workloads in which every single call to the disk crashes, fails or takes long.
//!
//! A first run without faults counts the calls; then one run for each call and each of its faults.
//! The scripts are seeds, chosen for the parts that they touch, by clients of each protocol.

use std::sync::atomic::{AtomicU64, Ordering};

use model::{Durability, Nanos, Persistence, StorePolicy};
use sim::{Fall, Fault, FaultyDisk, Moment, Scenario, Tally, simulate_on};

/// The clients that are connected.
#[derive(Clone, Copy, Debug)]
enum Clients {
    /// Of beanstalkd.
    Beanstalkd,
    /// Of AMQP, with transactions (chains of them are in `large_commits.rs`), and of beanstalkd.
    Amqp,
    /// Of Redis, with MULTI, and of beanstalkd.
    Redis,
}

const PERIODIC: StorePolicy = StorePolicy::Periodic(Nanos::from_millis(25));

/// Scripts: a quiet scenario each, with nothing going wrong by itself.
fn scripts() -> Vec<Scenario> {
    let scripts = [
        (Clients::Beanstalkd, 96, StorePolicy::Always),
        (Clients::Beanstalkd, 106, PERIODIC),
        (Clients::Beanstalkd, 60, StorePolicy::Never),
        (Clients::Amqp, 2, StorePolicy::Always),
        (Clients::Amqp, 54, PERIODIC),
        (Clients::Redis, 24, StorePolicy::Always),
        (Clients::Redis, 57, StorePolicy::Never),
    ];
    let found = scripts.into_iter().map(|(clients, first, policy)| {
        let mut seeds = (first..first + SEEDS).map(|seed| script(clients, seed, policy));
        seeds.find(touches_everything).expect("a script that touches everything")
    });
    found.collect()
}

/// True if everything happens that a fault could meet, except compactions: stores so small seldom
/// gain anything by one.
fn touches_everything(script: &Scenario) -> bool {
    let tally = run(script, &[], 1);
    tally.calls > 200
        && tally.snapshots > 2
        && tally.segments_recycled > 2
        && (script.amqp_clients == 0 || tally.subscriptions > 0)
        && (script.redis_clients == 0 || tally.keys > 0)
}

fn script(clients: Clients, seed: u64, policy: StorePolicy) -> Scenario {
    let mut scenario = Scenario::new(seed);
    scenario.policy = policy;
    scenario.journal.policy = policy;
    scenario.journal.segment_bytes = 40 * 1024;
    scenario.journal.extent_bytes = 16 * 1024;
    scenario.journal.reserve_bytes = 32 * 1024;
    scenario.journal.batch_bytes = 16 * 1024;
    scenario.journal.disk_bytes_max = None;
    scenario.journal.segments_max = None;
    scenario.faults_per_million = 0;
    scenario.falls_per_thousand = 0;
    scenario.quota = None;
    (scenario.clients, scenario.amqp_clients, scenario.redis_clients) = match clients {
        Clients::Beanstalkd => (4, 0, 0),
        Clients::Amqp => (1, 4, 0),
        Clients::Redis => (1, 0, 4),
    };
    scenario.pipeline = 3;
    scenario.steps = 500;
    scenario.persistences = PERSISTENCES.to_vec();
    scenario
}

/// Mostly the persistence of a protocol without a choice.
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
    each_so_many(1, calls, case);
}

/// The same with every call, or each so many of them: see [`share_of`].
fn each_so_many(many: u64, calls: u64, case: impl Fn(u64) + Sync) {
    let case = &case;
    let chosen = move |call: &u64| call.is_multiple_of(many);
    std::thread::scope(|scope| {
        for half in 0..2 {
            let own = move |call: &u64| call / many % 2 == half;
            scope.spawn(move || (1..=calls).filter(chosen).filter(own).for_each(case));
        }
    });
}

/// Jobs meet a fault in every call, the others in each fifth, and slow calls are few. With
/// `DUNLIN_EVERY_CALL=1` each meets every call, which takes half an hour.
fn share_of(script: &Scenario) -> u64 {
    if std::env::var_os("DUNLIN_EVERY_CALL").is_some() {
        return 1;
    }
    let is_plain = script.amqp_clients + script.redis_clients == 0;
    match (script.stalls, is_plain) {
        (true, _) => 5,
        (false, true) => 1,
        (false, false) => 5,
    }
}

#[test]
fn crash_at_any_call_loses_nothing() {
    for mut script in scripts() {
        let calls = run(&script, &[], 1).calls;
        let is_plain = script.amqp_clients + script.redis_clients == 0;
        let all = [Moment::During, Moment::Before, Moment::After];
        // The outcome of the others does not depend on the client that asked.
        let moments = if is_plain { &all[..] } else { &all[..1] };
        for fall in [Fall::Process, Fall::Power] {
            script.fall = Some(fall);
            each_so_many(share_of(&script), calls, |call| {
                for moment in moments {
                    run(&script, &[(call, Fault::Crash(*moment))], call);
                }
            });
        }
    }
}

#[test]
fn crash_during_recovery_loses_nothing() {
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
fn fault_in_any_call_ends_confirming() {
    for script in scripts() {
        let calls = run(&script, &[], 1).calls;
        for fault in [Fault::Io, Fault::Full, Fault::Short] {
            let (met, ended) = (AtomicU64::new(0), AtomicU64::new(0));
            each_so_many(share_of(&script), calls, |call| {
                let tally = run(&script, &[(call, fault)], call);
                let ends = tally.failures + tally.recoveries_fallen > 0;
                met.fetch_add(1, Ordering::Relaxed);
                ended.fetch_add(u64::from(ends), Ordering::Relaxed);
            });
            // A device without room for new files is waited out. No caller hears of a call that is
            // performed while the process falls.
            let (met, ended) = (met.into_inner(), ended.into_inner());
            let is_heard = fault == Fault::Full || ended * 10 > met * 8;
            assert!(is_heard, "{fault:?}: {ended} of {met} end the process");
        }
    }
}

#[test]
fn slow_call_is_no_failure() {
    for mut script in scripts() {
        script.stalls = true;
        let calls = run(&script, &[], 1).calls;
        each_so_many(share_of(&script), calls, |call| {
            let slow = (call, Fault::Slow);
            let tally = run(&script, &[slow], call);
            assert_eq!(tally.failures + tally.recoveries_fallen, 0, "slow is not broken: {call}");
            // A call that was begun meanwhile is half done when the power fails.
            let fails = (call + 1 + call % 5, Fault::Crash(Moment::During));
            run(&Scenario { fall: Some(Fall::Power), ..script.clone() }, &[slow, fails], call);
        });
    }
}

/// A script is looked for among so many, from the one on that was found before.
const SEEDS: u64 = 100;

/// Every so many calls of a script begin a recovery in which each call crashes.
const STRIDE: u64 = 23;

/// More calls than a recovery of the scripts makes.
const RECOVERY_CALLS: u64 = 90;
