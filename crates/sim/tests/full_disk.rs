//! A full disk, or a log that may take no more: puts are refused, everything else goes on, and puts
//! work again once there is room.

use std::collections::BTreeSet;
use std::rc::Rc;

use journal::{JournalOptions, SEGMENTS_MIN};
use model::{Nanos, Persistence, StorePolicy};
use sim::{Character, Fall, FaultyDisk, Rng, Scenario, Wish, World};

const POLICIES: [StorePolicy; 3] =
    [StorePolicy::Always, StorePolicy::Periodic(Nanos::from_millis(25)), StorePolicy::Never];

/// The resource that is scarce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Device,
    Limit,
    /// Files that may be open.
    Segments,
}

const BOUNDS: [Bound; 3] = [Bound::Device, Bound::Limit, Bound::Segments];

const FALLS: [Fall; 2] = [Fall::Process, Fall::Power];

/// A world that runs, with room for so many bytes.
fn world(policy: StorePolicy, bound: Bound, bytes: u64) -> (World<FaultyDisk>, FaultyDisk) {
    bounded(scenario(policy), bound, bytes)
}

fn bounded(scenario: Scenario, bound: Bound, bytes: u64) -> (World<FaultyDisk>, FaultyDisk) {
    bounded_on(FaultyDisk::new(1), scenario, bound, bytes)
}

fn bounded_on(
    disk: FaultyDisk,
    mut scenario: Scenario,
    bound: Bound,
    bytes: u64,
) -> (World<FaultyDisk>, FaultyDisk) {
    match bound {
        Bound::Device => disk.set_quota(Some(bytes)),
        Bound::Limit => scenario.journal.disk_bytes_max = Some(bytes),
        Bound::Segments => {
            let fit = usize::try_from(bytes / scenario.journal.segment_bytes).expect("a few");
            scenario.journal.segments_max = Some(fit.max(SEGMENTS_MIN));
        }
    }
    let mut world = World::new(scenario, disk.clone(), disk.clone());
    world.start();
    (world, disk)
}

fn scenario(policy: StorePolicy) -> Scenario {
    let mut scenario = Scenario::new(1);
    scenario.policy = policy;
    scenario.journal.policy = policy;
    scenario.journal.segment_bytes = 256 * 1024;
    scenario.journal.extent_bytes = 32 * 1024;
    scenario.journal.reserve_bytes = 64 * 1024;
    scenario
}

fn put(bytes: usize) -> Wish {
    let body = vec![b'x'; bytes].into();
    let persistence = Persistence::Persistent;
    Wish::Put { queue: "default".into(), priority: 0, delay: 0, lease: 60, persistence, body }
}

/// Puts until the disk is full; returns the ids.
fn fill(world: &mut World<FaultyDisk>, client: u64, bytes: usize) -> Vec<u64> {
    let mut ids = Vec::new();
    loop {
        let answer = world.ask(client, put(bytes)).expect("no fault was set").line;
        match answer.strip_prefix("INSERTED ") {
            Some(id) => ids.push(id.parse().expect("an id")),
            None => {
                assert_eq!(answer, "OUT_OF_MEMORY");
                return ids;
            }
        }
        assert!(ids.len() < 10_000, "the disk never fills up");
    }
}

fn delete(world: &mut World<FaultyDisk>, client: u64, id: u64) {
    let answer = world.ask(client, Wish::Delete { id }).expect("no fault was set");
    assert_eq!(answer.line, "DELETED", "message {id} on a full disk");
}

/// One client, one message at a time: the worst case, since each delete takes a block of its own.
fn drain_one_by_one(bytes: usize, order: impl Fn(&mut Vec<u64>)) {
    for (policy, bound) in POLICIES.into_iter().flat_map(|policy| BOUNDS.map(|it| (policy, it))) {
        let (mut world, _) = world(policy, bound, 1536 * 1024);
        let client = world.connect(Character::Anyone);
        let mut ids = fill(&mut world, client, bytes);
        assert!(ids.len() > 20, "{policy:?}, {bound:?}: only {} fit", ids.len());
        order(&mut ids);
        ids.iter().for_each(|id| delete(&mut world, client, *id));
        world.pass(Nanos::SECOND);
        let again = fill(&mut world, client, bytes).len();
        assert!(again * 2 > ids.len(), "{policy:?}, {bound:?}: {} then {again}", ids.len());
    }
}

#[test]
fn full_disk_large_messages_oldest_first() {
    drain_one_by_one(10_000, |_| {});
}

#[test]
fn full_disk_large_messages_newest_first() {
    drain_one_by_one(10_000, |ids| ids.reverse());
}

#[test]
fn full_disk_small_messages_oldest_first() {
    drain_one_by_one(10, |_| {});
}

#[test]
fn full_disk_small_messages_crosswise() {
    // Every seventh: no segment is empty before the end.
    drain_one_by_one(100, |ids| ids.sort_by_key(|id| (id % 7, *id)));
}

/// Live records of all segments are put together, also once settling has begun the reserve.
#[test]
fn full_disk_stores_again_before_empty() {
    let cases = BOUNDS.into_iter().flat_map(|bound| {
        // Also of a reserve that is much smaller than a segment, as it usually is.
        [(500, 64), (2000, 64), (5000, 64), (500, 16), (2000, 16)].map(|(n, kib)| (bound, n, kib))
    });
    for (bound, bytes, reserve_kib) in cases {
        let mut scenario = scenario(StorePolicy::Always);
        scenario.journal.reserve_bytes = reserve_kib * 1024;
        let (mut world, _) = bounded(scenario, bound, 3 * 1024 * 1024);
        let client = world.connect(Character::Anyone);
        let mut ids = fill(&mut world, client, bytes);
        ids.sort_by_key(|id| (id % 11, *id));
        let (gone, rest) = ids.split_at(ids.len() * 9 / 10);
        gone.iter().for_each(|id| delete(&mut world, client, *id));
        world.pass(Nanos::SECOND);
        let again = fill(&mut world, client, bytes).len();
        assert!(again * 4 > ids.len(), "{bound:?}, {bytes}: {} then {again}", ids.len());
        rest.iter().for_each(|id| delete(&mut world, client, *id));
    }
}

/// A reserve in which settling went on is whole again after a restart, though extents of files are
/// larger than the rest of it. Else nothing could be settled any more, nor after the next restart.
#[test]
fn full_disk_drains_over_restarts() {
    let falls = [(Fall::Process, 1), (Fall::Power, 1), (Fall::Power, 2), (Fall::Power, 3)];
    for (bound, fall) in BOUNDS.into_iter().flat_map(|it| falls.map(|fall| (it, fall))) {
        for between in [1, 3, 10, 40] {
            drain_over_restarts(bound, fall, between);
        }
    }
}

/// So many are deleted in each life; the seed decides the outcome of each fall.
fn drain_over_restarts(bound: Bound, (fall, seed): (Fall, u64), between: usize) {
    let mut scenario = scenario(StorePolicy::Always);
    scenario.journal.extent_bytes = 2 * scenario.journal.reserve_bytes;
    // Copies are written at once: one delayed by 5 ms is lost with each of these lives.
    scenario.scheduled = false;
    let (mut world, _) = bounded_on(FaultyDisk::new(seed), scenario, bound, 1536 * 1024);
    let mut client = world.connect(Character::Anyone);
    let mut ids = fill(&mut world, client, 5000);
    // In this order nearly dead segments are compacted, and a restart may cut that short.
    ids.sort_by_key(|id| (id % 7, *id));
    for some in ids.chunks(between) {
        some.iter().for_each(|id| delete(&mut world, client, *id));
        world.fall(fall);
        world.start();
        client = world.connect(Character::Anyone);
    }
    // A third of this disk may hold dead bytes, until it is found to be full.
    let mut fit = || {
        world.pass(Nanos::SECOND);
        fill(&mut world, client, 5000).len()
    };
    let again = fit() + fit();
    assert!(again * 2 > ids.len(), "{bound:?}, {fall:?}, {seed}: {} then {again}", ids.len());
}

#[test]
fn puts_resume_once_device_has_room() {
    let (mut world, disk) = world(StorePolicy::Always, Bound::Device, 1024 * 1024);
    let client = world.connect(Character::Anyone);
    let ids = fill(&mut world, client, 5000);
    disk.set_quota(Some(4 * 1024 * 1024));
    world.pass(Nanos::SECOND);
    let answers = (0..50).map(|_| world.ask(client, put(5000)).expect("no fault was set").line);
    let stored = answers.filter(|line| line.starts_with("INSERTED")).count();
    assert_eq!(stored, 50, "after {}", ids.len());
}

#[test]
fn releases_leave_room_for_deletes() {
    for bytes in [100, 10_000] {
        let (mut world, _) = world(StorePolicy::Always, Bound::Device, 1536 * 1024);
        let client = world.connect(Character::Anyone);
        let ids = fill(&mut world, client, bytes);
        let watched: Rc<BTreeSet<Rc<str>>> = Rc::new([Rc::from("default")].into());
        for round in 0..1000 {
            let reserve = Wish::Reserve { watched: watched.clone(), timeout: Some(0) };
            let reserved = world.ask(client, reserve).expect("no fault was set").line;
            let id = reserved.split(' ').nth(1).and_then(|id| id.parse().ok()).expect("an id");
            let release = Wish::Release { id, priority: round, delay: 0 };
            let released = world.ask(client, release).expect("no fault was set").line;
            assert!(["RELEASED", "OUT_OF_MEMORY"].contains(&&*released), "{released}");
            if released == "OUT_OF_MEMORY" {
                break;
            }
        }
        // A message that a refused release leaves leased is this client's to delete, like the rest.
        ids.iter().for_each(|id| delete(&mut world, client, *id));
    }
}

#[test]
fn room_of_large_messages_fits_small() {
    for bound in BOUNDS {
        // Small messages need more of the snapshots' files, for which dead segments have to go.
        let (mut world, _) = world(StorePolicy::Always, bound, 1280 * 1024);
        let client = world.connect(Character::Anyone);
        for id in fill(&mut world, client, 10_000) {
            delete(&mut world, client, id);
        }
        world.pass(Nanos::SECOND);
        let small = fill(&mut world, client, 10).len();
        assert!(small > 150, "{bound:?}: only {small} fit");
    }
}

#[test]
fn disk_limit_survives_restarts_and_lowering() {
    let (mut world, disk) = world(StorePolicy::Always, Bound::Limit, 3 * 1024 * 1024);
    let client = world.connect(Character::Anyone);
    let stored = fill(&mut world, client, 5000);
    world.fall(Fall::Process);
    world.start();
    let client = world.connect(Character::Anyone);
    let more = fill(&mut world, client, 5000);
    assert!(more.len() < stored.len() / 8, "{} and then {}", stored.len(), more.len());
    world.fall(Fall::Power);
    world.resize_log(|journal| journal.disk_bytes_max = Some(1536 * 1024));
    world.start();
    let client = world.connect(Character::Anyone);
    let beyond = fill(&mut world, client, 5000);
    assert_eq!(beyond, [0_u64; 0], "what is there is too much already");
    for id in stored.into_iter().chain(more) {
        delete(&mut world, client, id);
    }
    world.pass(Nanos::SECOND);
    assert!(fill(&mut world, client, 5000).len() > 20, "what fits is taken again");
    assert!(disk.used() < 1600 * 1024, "{} bytes are not given back", disk.used());
}

/// With the limit segments become smaller. The reserve is of larger files then, which are not given
/// back before there is another: for that there may be no room.
#[test]
fn full_disk_drains_with_smaller_segments() {
    for (bound, fall) in BOUNDS.into_iter().flat_map(|it| FALLS.map(|fall| (it, fall))) {
        let (mut world, disk) = world(StorePolicy::Always, bound, 3 * 1024 * 1024);
        let client = world.connect(Character::Anyone);
        let stored = fill(&mut world, client, 5000);
        world.fall(fall);
        match bound {
            Bound::Limit => world.resize_log(|journal| journal.disk_bytes_max = Some(1536 * 1024)),
            // Others take the space that comes free.
            Bound::Device => disk.set_quota(Some(0)),
            Bound::Segments => {}
        }
        world.resize_log(|journal| journal.segment_bytes = 96 * 1024);
        world.start();
        let client = world.connect(Character::Anyone);
        stored.iter().for_each(|id| delete(&mut world, client, *id));
        disk.set_quota(None);
        world.pass(Nanos::SECOND);
        let again = fill_some(&mut world, client);
        assert!(again > 20, "{bound:?}, {fall:?}: what fits is taken again, {again} did");
    }
}

/// How many of some messages are stored.
fn fill_some(world: &mut World<FaultyDisk>, client: u64) -> usize {
    let answers = (0..50).map(|_| world.ask(client, put(5000)).expect("no fault was set").line);
    answers.filter(|line| line.starts_with("INSERTED")).count()
}

/// A sixteenth of a server's sizes: a reserve that is nearly as large as the smallest segment.
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
        // The device is too small for such a log.
        return draw(rng, room);
    }
    sizes.disk_bytes_max = rng.chance(1, 2).then(|| least.max(room * (40 + rng.below(70)) / 100));
    sizes
}

/// Several processes, each with other sizes, fill the log and settle some of it in any order.
fn live(seed: u64) {
    let mut rng = Rng::new(seed);
    let room = (1536 + rng.below(3000)) * 1024;
    let disk = FaultyDisk::new(seed);
    disk.set_quota(Some(room));
    let mut scenario = scenario(StorePolicy::Always);
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
fn full_disk_drains_with_changing_sizes() {
    (0..8).for_each(live);
}

/// The rest of the reserve was of larger files than the limit allowed, or too small for the largest
/// message. Nothing was stored any more, though the store was empty.
#[test]
fn drained_disk_refills_with_changing_sizes() {
    [144, 100_067].into_iter().for_each(live);
}
