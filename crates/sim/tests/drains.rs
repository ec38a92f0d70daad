//! Lives of AMQP clients alone without interruptions. Consumers have time to drain, to change their
//! minds while the answer waits for the log, and to drain anew.

use sim::{Scenario, simulate};

/// Such a life.
fn life(seed: u64) -> Scenario {
    Scenario {
        clients: 0,
        redis_clients: 0,
        amqp_clients: 4,
        pipeline: 16,
        steps: 600,
        falls_per_thousand: 0,
        faults_per_million: 0,
        quota: None,
        ..Scenario::new(seed)
    }
}

/// The client refuses an answer to a drain that the engine has not ended.
#[test]
fn drain_answers_never_outlive_their_drain() {
    for seed in 1..=SEEDS {
        if let Err(failure) = simulate(life(seed)) {
            panic!("seed {seed}: {failure}");
        }
    }
}

/// Without generations of drains the first that fails is 20.
const SEEDS: u64 = 100;
