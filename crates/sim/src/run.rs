//! Running whole simulations and telling of failures.

use std::fmt;
use std::ops::AddAssign;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{FaultyDisk, Scenario, Tally, World};

/// A broken promise.
#[derive(Clone, Debug)]
pub struct Failure {
    /// How to see it again.
    pub seed: u64,
    /// How many steps it had.
    pub steps: u64,
    /// The promise that broke.
    pub cause: String,
}

/// Runs one scenario over the faulty disk.
///
/// # Errors
/// When a promise was broken, with the command that repeats it.
pub fn simulate(scenario: Scenario) -> Result<Tally, Failure> {
    let disk = FaultyDisk::new(scenario.seed);
    simulate_on(scenario, &disk)
}

/// Runs one scenario over that disk.
///
/// # Errors
/// When a promise was broken.
pub fn simulate_on(scenario: Scenario, disk: &FaultyDisk) -> Result<Tally, Failure> {
    let (seed, steps) = (scenario.seed, scenario.steps);
    let run = || World::new(scenario, disk.clone(), disk.clone()).run();
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let cause = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
        Failure { seed, steps, cause: cause.unwrap_or_default() }
    })
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, steps, cause } = self;
        write!(
            f,
            "seed {seed} fails: {cause}\n\
             cargo run -p dunlin-sim --bin sim -- --seed {seed} --steps {steps} --verbose"
        )
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.falls += other.falls;
        self.recoveries += other.recoveries;
        self.recoveries_fallen += other.recoveries_fallen;
        self.failures += other.failures;
        self.replies += other.replies;
        self.refusals += other.refusals;
        self.calls += other.calls;
        self.snapshots += other.snapshots;
        self.segments_recycled += other.segments_recycled;
        self.compactions += other.compactions;
        self.scarcity += other.scarcity;
        self.spilled += other.spilled;
        self.moved += other.moved;
        self.runs += other.runs;
        self.subscriptions += other.subscriptions;
        self.keys += other.keys;
        self.rules += other.rules;
    }
}

impl Tally {
    /// Names the events that were too rare among `seeds` general seeds: a simulation in which
    /// nothing goes wrong proves nothing.
    pub fn rare_events(&self, seeds: u64) -> Vec<&'static str> {
        let events = [
            (self.falls, seeds, "falls"),
            (self.recoveries_fallen, seeds / 10, "falls in recovery"),
            (self.failures, seeds / 100, "failures of the journal"),
            (self.snapshots, seeds / 2, "snapshots"),
            // A start uses spares as they are, so only segments that held frames are recycled.
            (self.segments_recycled, seeds / 10, "segments used again"),
            (self.refusals, seeds / 100, "refusals for want of room"),
            (self.spilled, seeds / 2, "bodies spilled"),
            (self.scarcity.waits, seeds / 10, "sends that waited for room"),
            (self.scarcity.shed, seeds / 10, "messages dropped for newer ones"),
            (self.subscriptions, seeds, "subscriptions recovered"),
            (self.keys, seeds, "keys recovered"),
            (self.runs, seeds / 10, "runs of commands"),
        ];
        events.into_iter().filter(|(count, least, _)| count <= least).map(|event| event.2).collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} falls, {} of them in recovery, {} recoveries, {} journal failures, {} replies, \
             {} refusals, {} disk calls, {} snapshots, {} segments recycled, {} compactions, \
             {}, \
             {} bodies spilled, {} of them moved, {} runs, \
             {} subscriptions, {} keys and {} rules recovered",
            self.falls,
            self.recoveries_fallen,
            self.recoveries,
            self.failures,
            self.replies,
            self.refusals,
            self.calls,
            self.snapshots,
            self.segments_recycled,
            self.compactions,
            self.scarcity,
            self.spilled,
            self.moved,
            self.runs,
            self.subscriptions,
            self.keys,
            self.rules,
        )
    }
}
