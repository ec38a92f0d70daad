//! Rot at rest: a journal with a flipped bit is refused, by file and offset, or read exactly.

use std::collections::BTreeMap;
use std::rc::Rc;

use broker::{Broker, Fetch, OpenError};
use model::{Nanos, Persistence, StorePolicy};
use sim::{Character, Fall, FaultyDisk, Kept, Paged, Rng, Scenario, Wish, World, inspect};

/// Far behind every delay of the messages.
const NOW: Nanos = Nanos(u64::MAX / 2);

const LAST_ID: u64 = 300;

fn scenario() -> Scenario {
    let mut scenario = Scenario::new(1);
    scenario.policy = StorePolicy::Always;
    scenario.journal.policy = StorePolicy::Always;
    scenario.journal.segment_bytes = 64 * 1024;
    scenario
}

/// A store with a snapshot and several segments behind it, as a power cut leaves it.
fn store() -> FaultyDisk {
    let disk = FaultyDisk::new(1);
    let mut world = World::new(scenario(), disk.clone(), disk.clone());
    world.start();
    let client = world.connect(Character::Anyone);
    let mut rng = Rng::new(1);
    for id in 1..=LAST_ID {
        let body = vec![id as u8; rng.between(1, 3000) as usize].into();
        let persistence = Persistence::Persistent;
        let queue = "default".into();
        let put = Wish::Put { queue, priority: 0, delay: 0, lease: 60, persistence, body };
        world.ask(client, put).expect("no fault was set");
        if id % 3 > 0 {
            world.ask(client, Wish::Delete { id }).expect("no fault was set");
        }
    }
    world.fall(Fall::Power);
    disk
}

/// Opens a store, of which `verify` must have said the same before.
fn open(disk: &FaultyDisk) -> Result<BTreeMap<u64, Kept>, OpenError> {
    let seen = disk.undisturbed(|| broker::verify(disk, scenario().options(), &mut |_| {}));
    let opened = Broker::open(disk, scenario().options());
    let recovery = opened.as_ref().map(|(_, recovery)| recovery);
    assert_eq!(seen.as_ref().ok(), recovery.as_ref().ok().copied());
    assert_eq!(seen.err().map(said), recovery.err().map(said));
    let (broker, _) = opened?;
    let disk = disk.clone();
    let mut broker = Paged::new(broker, Rc::new(move |fetch: Fetch<_>| fetch.perform(&disk)));
    let found = inspect(&mut broker, NOW, LAST_ID).found.into_iter();
    Ok(found.map(|(id, found)| (id, found.kept)).collect())
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[test]
fn rot_before_tail_refused_or_harmless() {
    let disk = store();
    let truth = open(&disk.fork()).expect("the store is sound");
    assert_eq!(truth.len(), 100);
    let mut refused = 0;
    let mut rng = Rng::new(2);
    for (name, bytes) in disk.files() {
        for _ in 0..bytes / 509 {
            let rotten = disk.fork();
            let at = rng.below(bytes);
            rotten.rot(&name, at, 1 << rng.below(8));
            match open(&rotten) {
                Ok(found) => assert!(
                    found == truth || lost_only_the_tail(&truth, &found),
                    "{name} at {at}: {} messages instead of {}",
                    found.len(),
                    truth.len()
                ),
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains(&name), "{text} does not name {name}");
                    assert!(text.chars().any(|c| c.is_ascii_digit()), "{text} names no offset");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 50, "only {refused} were refused");
}

/// The last batch of the log cannot be told from a torn one: nothing behind it says that it was
/// durable. In this store it holds the put of the last message.
fn lost_only_the_tail(truth: &BTreeMap<u64, Kept>, found: &BTreeMap<u64, Kept>) -> bool {
    let mut shorter = truth.clone();
    shorter.remove(&LAST_ID);
    *found == shorter
}
