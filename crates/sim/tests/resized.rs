//! A full disk whose log is of other sizes after each start: what was stored can be settled.

use journal::JournalOptions;
use model::{Nanos, Persistence, StorePolicy};
use sim::{Character, Fall, FaultyDisk, Rng, Scenario, Wish, World};

/// A sixteenth of what a server has: a reserve that is nearly as large as the smallest segment.
fn draw(rng: &mut Rng, room: u64) -> JournalOptions {
    let sizes = JournalOptions {
        extent_bytes: 256 * 1024,
        reserve_bytes: 64 * 1024,
        frame_payload_bytes_max: 38 * 1024,
        batch_bytes: 64 * 1024,
        ..JournalOptions::new(StorePolicy::Always)
    };
    let segment_bytes = rng.pick(&[0, 0, 128, 256, 512, 1024]) * 1024;
    let mut sizes = sizes.with_segment_bytes(segment_bytes);
    if rng.coin() {
        sizes = sizes.with_transactions();
    }
    let least = sizes.disk_bytes_min();
    if least > room {
        // What the device has is not enough for such a log.
        return draw(rng, room);
    }
    sizes.disk_bytes_max = rng.chance(1, 2).then(|| least.max(room * (40 + rng.below(70)) / 100));
    sizes
}

fn put(bytes: usize) -> Wish {
    let body = vec![b'x'; bytes].into();
    let persistence = Persistence::Persistent;
    Wish::Put { queue: "default".into(), priority: 0, delay: 0, lease: 60, persistence, body }
}

/// Puts until the disk is full; returns the ids.
fn fill(world: &mut World<FaultyDisk>, client: u64, bytes: usize) -> Vec<u64> {
    let mut ids = Vec::new();
    while ids.len() < 2_000 {
        let answer = world.ask(client, put(bytes)).expect("no fault was set").line;
        match answer.strip_prefix("INSERTED ") {
            Some(id) => ids.push(id.parse().expect("an id")),
            None => {
                assert_eq!(answer, "OUT_OF_MEMORY");
                break;
            }
        }
    }
    ids
}

fn delete(world: &mut World<FaultyDisk>, client: u64, id: u64) {
    let answer = world.ask(client, Wish::Delete { id }).expect("it does not wait for ever");
    assert_eq!(answer.line, "DELETED", "message {id} on a full disk");
}

/// Several processes, each with other sizes, fill the log and settle some of it in any order.
fn live(seed: u64) {
    let mut rng = Rng::new(seed);
    let room = (1536 + rng.below(3000)) * 1024;
    let disk = FaultyDisk::new(seed);
    disk.set_quota(Some(room));
    let mut scenario = Scenario::new(1);
    scenario.policy = StorePolicy::Always;
    scenario.journal = draw(&mut rng, room);
    let mut world = World::new(scenario, disk.clone(), disk.clone());
    world.start();
    let mut stored = Vec::new();
    for _ in 0..8 {
        let client = world.connect(Character::Anyone);
        let bytes = rng.pick(&[100, 1_000, 4_000, 8_000]);
        stored.append(&mut fill(&mut world, client, bytes));
        let crosswise = 1 + rng.below(20);
        stored.sort_by_key(|id| (id % crosswise, *id));
        let gone = stored.len() * rng.pick(&[0, 1, 5, 20, 60, 95]) / 100;
        stored.drain(..gone).for_each(|id| delete(&mut world, client, id));
        world.fall(rng.pick(&[Fall::Process, Fall::Power]));
        world.resize_log(|journal| *journal = draw(&mut rng, room));
        world.start();
    }
    let client = world.connect(Character::Anyone);
    stored.drain(..).for_each(|id| delete(&mut world, client, id));
    world.pass(Nanos::SECOND);
    let again = fill(&mut world, client, 1_000).len();
    assert!(again >= 10, "seed {seed}: what fits is taken again, {again} did");
}

#[test]
fn a_full_disk_is_drained_though_sizes_change_with_each_start() {
    (0..8).for_each(live);
}

/// What was left of the reserve was of larger files than the limit allowed, or too small for the
/// largest message: nothing was stored any more though nothing was there.
#[test]
fn what_is_drained_is_filled_again_though_sizes_change_with_each_start() {
    [144, 100_067].into_iter().for_each(live);
}
