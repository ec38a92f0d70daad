//! The oracle can fail: each seeded defect is caught, by the same seeds that an honest disk passes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use model::{Nanos, Persistence, StorePolicy};
use sim::{
    Defect, Fault, FaultyDisk, ListDefect, LyingDisk, Moment, Rng, Scenario, ServerDefects, World,
    simulate,
};

/// Seeds within which every defect must show.
const SEEDS: u64 = 1000;

/// A scenario in which much goes wrong; `faults_per_million` calls fail.
fn rough(seed: u64, policy: StorePolicy, faults_per_million: u64) -> Scenario {
    let mut scenario = Scenario::new(seed);
    scenario.policy = policy;
    scenario.journal.policy = policy;
    scenario.steps = 400;
    scenario.falls_per_thousand = 10;
    scenario.faults_per_million = faults_per_million;
    scenario.faults = vec![Fault::Io];
    scenario.quota = None;
    scenario
}

/// The first seed with a simulation that complains about the defect.
fn first_complaint(defect: Defect, policy: StorePolicy, faults_per_million: u64) -> Option<u64> {
    (1..=SEEDS).find(|seed| {
        let scenario = rough(*seed, policy, faults_per_million);
        let run = || {
            let disk = FaultyDisk::new(*seed);
            let liar = LyingDisk::new(disk.clone(), defect);
            World::new(scenario, disk, liar).run()
        };
        let complaint = catch_unwind(AssertUnwindSafe(run)).is_err();
        let honest = || simulate(rough(*seed, policy, faults_per_million));
        complaint && honest().is_ok()
    })
}

fn assert_caught(defect: Defect, policy: StorePolicy, faults_per_million: u64) {
    let seed = first_complaint(defect, policy, faults_per_million);
    println!("{defect:?} with {policy:?}: caught by seed {seed:?}");
    assert!(seed.is_some(), "{defect:?} is not caught with {policy:?} by {SEEDS} seeds");
}

const PERIODIC: StorePolicy = StorePolicy::Periodic(Nanos::from_millis(25));

/// The hang of docs/inside/bugs.md: another thread causes a reply to HTTP. The reply waits for
/// frames for which no client waited before, and no thread writes them.
#[test]
fn gateway_that_forgets_mail_is_caught() {
    let scenario = |seed| {
        let mut scenario = rough(seed, StorePolicy::Always, 0);
        (scenario.scheduled, scenario.amqp_clients, scenario.http_clients) = (true, 2, 3);
        (scenario.redis_clients, scenario.clients) = (0, 1);
        scenario.falls_per_thousand = 0;
        scenario
    };
    let caught = (1..=SEEDS).find(|seed| {
        let mut forgetful = scenario(*seed);
        forgetful.defects.forgets_mail = true;
        simulate(forgetful).is_err() && simulate(scenario(*seed)).is_ok()
    });
    println!("a gateway that forgets its mail: caught by seed {caught:?}");
    assert!(caught.is_some(), "a gateway that forgets its mail is not noticed");
}

#[test]
fn clock_of_the_start_is_caught() {
    let scenario = |seed| {
        let mut scenario = rough(seed, StorePolicy::Always, 0);
        (scenario.steps_clock, scenario.redis_clients, scenario.amqp_clients) = (true, 3, 0);
        scenario
    };
    let caught = (1..=SEEDS).find(|seed| {
        let mut stale = scenario(*seed);
        stale.defects.keeps_first_clock = true;
        simulate(stale).is_err() && simulate(scenario(*seed)).is_ok()
    });
    println!("moments by the clock of the start: caught by seed {caught:?}");
    assert!(caught.is_some(), "moments by the clock of the start are not noticed");
}

/// The bug of clients that gave up (docs/inside/bugs.md): their sends were carried out all the
/// same.
#[test]
fn sends_of_gone_clients_are_caught() {
    let scenario = |seed| {
        let mut scenario = Scenario::new(seed);
        scenario.have_room();
        (scenario.clients, scenario.amqp_clients, scenario.redis_clients) = (0, 0, 0);
        (scenario.http_clients, scenario.pipeline, scenario.steps) = (5, 16, 1000);
        scenario.narrow(&mut Rng::new(seed));
        scenario.block_timeout = Nanos::from_secs(3600);
        scenario
    };
    let caught = (1..=SEEDS).find(|seed| {
        let mut deaf = scenario(*seed);
        deaf.defects.ignores_hang_ups = true;
        let complaint = simulate(deaf).err();
        let of_gone = |cause: String| cause.contains("for a client that is gone");
        complaint.is_some_and(|failure| of_gone(failure.cause)) && simulate(scenario(*seed)).is_ok()
    });
    println!("sends of clients that are gone: caught by seed {caught:?}");
    assert!(caught.is_some(), "sends of clients that are gone are not noticed");
}

#[test]
fn replies_before_the_sync_are_caught() {
    for policy in [StorePolicy::Always, PERIODIC, StorePolicy::Never] {
        let caught = (1..=SEEDS).any(|seed| {
            let mut scenario = rough(seed, policy, 0);
            scenario.defects.gate_is_open = true;
            simulate(scenario).is_err() && simulate(rough(seed, policy, 0)).is_ok()
        });
        assert!(caught, "replies that do not wait are not noticed with {policy:?}");
    }
}

/// A life of clients of AMQP alone.
fn amqp(seed: u64, policy: StorePolicy) -> Scenario {
    let mut scenario = rough(seed, policy, 0);
    scenario.clients = 0;
    scenario.amqp_clients = 4;
    scenario.redis_clients = 0;
    scenario
}

/// A life of clients of Redis alone.
fn redis(seed: u64, policy: StorePolicy) -> Scenario {
    let mut scenario = rough(seed, policy, 0);
    scenario.clients = 0;
    scenario.amqp_clients = 0;
    scenario.redis_clients = 4;
    scenario
}

/// True if a seed complains that a recovery fits no prefix of the history, and passes without the
/// defect.
fn is_caught(scenario: impl Fn(u64) -> Scenario, defects: ServerDefects) -> bool {
    complains(scenario, defects, "no prefix")
}

/// True if a seed complains of that, and passes without the defect.
fn complains(scenario: impl Fn(u64) -> Scenario, defects: ServerDefects, of: &str) -> bool {
    (1..=SEEDS).any(|seed| {
        let complaint = simulate(Scenario { defects, ..scenario(seed) }).err();
        let caught = complaint.is_some_and(|failure| failure.cause.contains(of));
        caught && simulate(scenario(seed)).is_ok()
    })
}

#[test]
fn amqp_answers_before_sync_are_caught() {
    for policy in [StorePolicy::Always, PERIODIC, StorePolicy::Never] {
        let defects = ServerDefects { gate_is_open: true, ..ServerDefects::default() };
        assert!(is_caught(|seed| amqp(seed, policy), defects), "not noticed with {policy:?}");
    }
}

#[test]
fn torn_commit_is_caught() {
    for policy in [StorePolicy::Always, PERIODIC, StorePolicy::Never] {
        let defects = ServerDefects { splits_commits: true, ..ServerDefects::default() };
        let scenario = |seed| Scenario {
            faults_per_million: 30_000,
            faults: vec![Fault::Crash(Moment::During)],
            persistences: vec![Persistence::Persistent],
            pipeline: 16,
            ..amqp(seed, policy)
        };
        assert!(is_caught(scenario, defects), "not noticed with {policy:?}");
    }
}

#[test]
fn redis_answers_before_sync_are_caught() {
    for policy in [StorePolicy::Always, PERIODIC, StorePolicy::Never] {
        let defects = ServerDefects { gate_is_open: true, ..ServerDefects::default() };
        assert!(is_caught(|seed| redis(seed, policy), defects), "not noticed with {policy:?}");
    }
}

#[test]
fn torn_batch_is_caught() {
    for policy in [StorePolicy::Always, PERIODIC, StorePolicy::Never] {
        let lists = Some(ListDefect::SplitsBatches);
        let scenario = |seed| Scenario {
            faults_per_million: 30_000,
            faults: vec![Fault::Crash(Moment::During)],
            pipeline: 16,
            ..redis(seed, policy)
        };
        let defects = ServerDefects { lists, ..ServerDefects::default() };
        assert!(is_caught(scenario, defects), "not noticed with {policy:?}");
    }
}

#[test]
fn elements_lost_by_crash_are_caught() {
    for policy in [StorePolicy::Always, PERIODIC, StorePolicy::Never] {
        let lists = Some(ListDefect::PushesToMemory);
        let defects = ServerDefects { lists, ..ServerDefects::default() };
        assert!(is_caught(|seed| redis(seed, policy), defects), "not noticed with {policy:?}");
    }
}

/// The complaint shows the wrong answer beside the right one.
#[test]
fn wrong_pops_are_caught() {
    for defect in [ListDefect::PopsFromWrongEnd, ListDefect::GivesTwice, ListDefect::LosesOne] {
        let defects = ServerDefects { lists: Some(defect), ..ServerDefects::default() };
        let scenario = |seed| redis(seed, StorePolicy::Always);
        assert!(complains(scenario, defects, ", not "), "{defect:?} is not noticed");
    }
}

/// Each defect with each policy that it can harm. Under `always` the log is neither flushed nor
/// written without a sync, so that two of them have nothing to spoil there.
#[test]
fn defects_are_caught_under_every_policy() {
    for (defect, faults_per_million) in DEFECTS {
        for policy in [StorePolicy::Always, PERIODIC, StorePolicy::Never] {
            let flushes = matches!(defect, Defect::BuffersWrites | Defect::RetriesSync);
            if policy != StorePolicy::Always || !flushes {
                assert_caught(defect, policy, faults_per_million);
            }
        }
    }
}

/// Each defect, and how many of a million calls must fail for it to show.
const DEFECTS: [(Defect, u64); 7] = [
    (Defect::SkipsDirectorySync, 0),
    (Defect::SkipsSync, 0),
    (Defect::WritesWithoutSync, 0),
    (Defect::BuffersWrites, 0),
    (Defect::IgnoresTornTail, 0),
    (Defect::RetriesSync, 20_000),
    (Defect::HidesErrors, 5000),
];
