//! Messages of several levels in one store: each survives the falls that its own level promises.

use model::{Durability, Nanos, Persistence, StorePolicy};
use sim::{Fall, Fault, Moment, Scenario, simulate};

const PERIODIC: StorePolicy = StorePolicy::Periodic(Nanos::from_millis(25));

/// A rough life of a store with senders that ask for one of these.
fn scenario(seed: u64, policy: StorePolicy, persistences: &[Persistence]) -> Scenario {
    let mut scenario = Scenario::new(seed);
    scenario.policy = policy;
    scenario.journal.policy = policy;
    scenario.persistences = persistences.to_vec();
    scenario.steps = 300;
    scenario.clients = 4;
    scenario.falls_per_thousand = 20;
    scenario.faults_per_million = 500;
    scenario.faults = vec![Fault::Io, Fault::Crash(Moment::During)];
    scenario
}

fn assert_kept(policy: StorePolicy, persistences: &[Persistence]) {
    for fall in [Fall::Process, Fall::Power] {
        for seed in 1..=SEEDS {
            let mut scenario = scenario(seed, policy, persistences);
            scenario.fall = Some(fall);
            simulate(scenario)
                .unwrap_or_else(|failure| panic!("{policy:?}, {persistences:?}: {failure}"));
        }
    }
}

#[test]
fn nonpersistent_messages_live_beside_durable_ones() {
    for policy in [StorePolicy::Always, PERIODIC, StorePolicy::Never] {
        assert_kept(policy, &[Persistence::Persistent, Persistence::NonPersistent]);
    }
}

#[test]
fn written_messages_live_beside_synced_ones() {
    let levels = [Durability::Written, Durability::Synced].map(Persistence::Exactly);
    for policy in [StorePolicy::Always, PERIODIC, StorePolicy::Never] {
        assert_kept(policy, &levels);
    }
}

/// Counts and absences waited only for frames as durable as the policy. So a crash could undo a
/// message that asked for less, although a reply had told of it.
#[test]
fn counts_wait_for_written_messages() {
    let mut scenario =
        scenario(75, StorePolicy::Always, &[Persistence::Exactly(Durability::Written)]);
    scenario.clients = 6;
    scenario.pipeline = 3;
    scenario.falls_per_thousand = 60;
    scenario.fall = Some(Fall::Process);
    for seed in 1..=200 {
        scenario.seed = seed;
        simulate(scenario.clone()).unwrap_or_else(|failure| panic!("{failure}"));
    }
}

/// Seeds of each policy and fall.
const SEEDS: u64 = 60;
