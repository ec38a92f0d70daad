//! A story of clients of Redis: batches over two lists, commands that wait, and a protected list.
//! The process or the power falls at every single call to the disk.
//!
//! The oracle judges it: each answer is Redis' own, and a batch is there whole or not at all after
//! each recovery. Waiting clients are served in turn. Answered commands survive. An element popped
//! under protection is back unless the client's next command took it for good.

use std::panic::{AssertUnwindSafe, catch_unwind};

use model::{Nanos, StorePolicy};
use sim::{
    Fall, Fault, FaultyDisk, ListDefect, Moment, Scenario, ServerDefects, Tally, Value, Words,
    World, words,
};

/// A quiet life after the story: nothing goes wrong by itself.
pub(crate) fn scenario(policy: StorePolicy) -> Scenario {
    let mut scenario = Scenario::new(1);
    scenario.policy = policy;
    scenario.journal.policy = policy;
    // Changes that are more than one frame are more than one batch too.
    scenario.journal.batch_bytes = 8192;
    scenario.steps = 0;
    scenario.faults_per_million = 0;
    scenario.falls_per_thousand = 0;
    scenario.quota = None;
    scenario
}

/// Commands in one go; `BIG` stands for an element of which two are more than a batch.
fn commands(lines: &[&str]) -> Vec<Words> {
    let big = "0123456789".repeat(420);
    let command = |line: &&str| {
        let all = line.split(' ').map(|word| if word == "BIG" { &*big } else { word });
        words(&all.collect::<Vec<_>>())
    };
    lines.iter().map(command).collect()
}

/// A world in which clients ask line by line.
pub(crate) struct Story<'w>(pub(crate) &'w mut World<FaultyDisk>);

impl Story<'_> {
    /// Waits for the last answer, which is none where the last command waits.
    pub(crate) fn ask(&mut self, client: u64, lines: &[&str]) -> Option<Option<Value>> {
        let answer = self.0.ask_redis(client, &commands(lines))?;
        assert!(!matches!(answer, Some(Value::Error(_))), "{lines:?}: {answer:?}");
        Some(answer)
    }

    pub(crate) fn waits(&mut self, client: u64, line: &str) -> Option<()> {
        let answer = self.ask(client, &[line])?;
        assert_eq!(answer, None, "{line} waits");
        Some(())
    }
}

/// Tells it until the process falls.
fn story(world: &mut World<FaultyDisk>) -> Option<()> {
    world.start();
    let [one, two, three] = [(); 3].map(|()| world.connect_redis());
    let mut it = Story(world);
    it.ask(one, &["LPUSH l1 BIG b c", "SET v1 BIG"])?;
    // Two clients wait for elements that one batch brings: the list that it fills first serves the
    // client that waited longer.
    it.waits(two, "BRPOP l2 l3 0")?;
    it.waits(three, "BLMOVE l3 l1 LEFT RIGHT 0")?;
    it.ask(one, &["MULTI", "LMOVE l1 l2 RIGHT LEFT", "LPUSH l3 BIG x", "GETDEL v1", "EXEC"])?;
    // A batch that changes two lists, one that changes nothing, one that comes too late.
    it.ask(two, &["MULTI", "RPOP l1", "LPUSH l2 BIG y", "RPUSH l3 BIG y", "EXEC"])?;
    it.ask(one, &["WATCH l1 l2", "MULTI", "LLEN l1", "EXEC"])?;
    it.ask(one, &["WATCH l2"])?;
    it.ask(three, &["RPUSH l2 BIG"])?;
    it.ask(one, &["MULTI", "DEL l2", "RPUSH l1 BIG", "EXEC"])?;
    // An element popped under protection comes back once, and then is done with.
    it.ask(one, &["LPUSH p1 first second"])?;
    it.ask(two, &["RPOP p1"])?;
    it.0.disconnect(two);
    it.ask(three, &["RPOP p1"])?;
    it.ask(three, &["LLEN p1"])?;
    // A connection breaks while it waits, with a command behind that is never read.
    it.waits(three, "BLPOP v2 0")?;
    it.0.disconnect(three);
    let two_again = it.0.connect_redis();
    it.ask(one, &["RPUSH l3 BIG", "RENAME l3 l1", "PEXPIRE l1 50", "LTRIM l1 0 1"])?;
    it.0.pass(Nanos::from_millis(60));
    it.ask(one, &["LPUSH l1 BIG", "LSET l1 0 new"])?;
    // Commands that one client repeats are one frame: there is a place for all of it or for none.
    it.ask(two_again, &["RPUSH l2 x", "RPUSH l2 BIG", "RPUSH l2 z"])?;
    it.ask(two_again, &["LPOP l2", "LPOP l2"])?;
    Some(())
}

/// A story, told to a world until its process falls.
pub(crate) type Tell = fn(&mut World<FaultyDisk>) -> Option<()>;

fn run(tell: Tell, scenario: &Scenario, disk_seed: u64, fault: Option<(u64, Moment)>) -> Tally {
    let disk = FaultyDisk::new(disk_seed);
    if let Some((call, moment)) = fault {
        disk.inject(call, Fault::Crash(moment));
    }
    let mut world = World::new(scenario.clone(), disk.clone(), disk);
    let told = tell(&mut world);
    assert!(told.is_some() || fault.is_some(), "the story ends where nothing falls");
    world.run()
}

/// Tells a story to the end, and then with the process or the power falling at every call to the
/// disk.
pub(crate) fn fall_at_every_call(tell: Tell, scenario: &Scenario) {
    for fall in [Fall::Process, Fall::Power] {
        let scenario = Scenario { fall: Some(fall), ..scenario.clone() };
        let calls = run(tell, &scenario, 1, None).calls;
        assert!(calls > 60, "{:?}: {calls} calls", scenario.policy);
        for call in 1..=calls {
            for moment in [Moment::Before, Moment::During] {
                run(tell, &scenario, call, Some((call, moment)));
            }
        }
    }
}

#[test]
fn batch_is_whole_after_any_crash() {
    POLICIES.into_iter().for_each(|policy| fall_at_every_call(story, &scenario(policy)));
}

#[test]
fn batch_in_parts_is_noticed() {
    for policy in POLICIES {
        let lists = Some(ListDefect::SplitsBatches);
        let defects = ServerDefects { lists, ..ServerDefects::default() };
        let scenario = Scenario { fall: Some(Fall::Power), defects, ..scenario(policy) };
        let calls = run(story, &scenario, 1, None).calls;
        // Which sectors a power cut takes is the disk's to draw.
        let cases = (1..=calls).flat_map(|call| (0..DRAWS).map(move |draw| (call, draw)));
        let noticed = { cases }.any(|(call, draw)| {
            let told = || run(story, &scenario, call * DRAWS + draw, Some((call, Moment::During)));
            catch_unwind(AssertUnwindSafe(told)).is_err()
        });
        assert!(noticed, "{policy:?}");
    }
}

#[test]
fn memory_store_never_calls_the_disk() {
    let scenario = scenario(StorePolicy::Memory);
    assert_eq!(run(story, &scenario, 1, None).calls, 0);
}

/// Disks that are tried with each call.
const DRAWS: u64 = 8;

pub(crate) const POLICIES: [StorePolicy; 3] =
    [StorePolicy::Always, StorePolicy::Periodic(Nanos::from_millis(25)), StorePolicy::Never];
