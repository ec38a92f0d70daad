//! Bodies that leave memory and come back without having been in the log.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use journal::{Disk, DiskError, DiskErrorKind, Spill, SpillPlace, SpillWrite};
use model::{Nanos, StorePolicy};
use testkit::Rng;

use crate::store::faulty::{Fault, FaultyDisk};
use crate::store::{MemoryDisk, MemoryFile, Store, tiny, value};

const SEGMENT_BYTES: u64 = 64 * 1024;

fn spill() -> Spill<MemoryFile> {
    Spill::new(SEGMENT_BYTES, 1 << 30)
}

fn body(key: u64, bytes: usize) -> Arc<[u8]> {
    value(key, bytes).into()
}

/// Puts one body, and has it written.
fn put(spill: &mut Spill<MemoryFile>, disk: &MemoryDisk, body: &Arc<[u8]>) -> SpillPlace {
    let write = spill.put(Nanos::ZERO, &[Arc::clone(body)]).expect("there is room");
    let places = spill.handle_write(Nanos::ZERO, write.perform(disk)).expect("the disk works");
    places[0]
}

fn fetched<D: Disk<File = MemoryFile>>(
    spill: &mut Spill<MemoryFile>,
    disk: &D,
    place: SpillPlace,
) -> Result<Arc<[u8]>, DiskError> {
    let done = spill.fetch(place).perform(disk);
    spill.handle_fetch(done)
}

fn remove_idle(spill: &mut Spill<MemoryFile>, disk: &MemoryDisk) {
    while let Some(removal) = spill.poll_removal() {
        spill.handle_removal(removal.perform(disk)).expect("the disk works");
    }
}

fn names(disk: &MemoryDisk) -> Vec<String> {
    disk.names().unwrap()
}

/// The expected content of the spill, by the record of all puts.
struct Model {
    spill: Spill<MemoryFile>,
    disk: MemoryDisk,
    dice: Rng,
    now: Nanos,
    stored: BTreeMap<SpillPlace, Arc<[u8]>>,
    out: Vec<Out>,
    put: u64,
    full: u64,
    moved: u64,
}

/// A write that is out, and its bodies.
struct Out {
    write: SpillWrite<MemoryFile>,
    bodies: Vec<Arc<[u8]>>,
}

impl Model {
    fn new(seed: u64, bytes_max: u64) -> Self {
        Self {
            spill: Spill::new(SEGMENT_BYTES, bytes_max),
            disk: MemoryDisk::default(),
            dice: Rng::new(seed),
            now: Nanos::ZERO,
            stored: BTreeMap::new(),
            out: Vec::new(),
            put: 0,
            full: 0,
            moved: 0,
        }
    }

    fn step(&mut self) {
        match self.dice.below(9) {
            0 | 1 => self.put(),
            2 | 3 => self.write(),
            4 => self.fetch(),
            5 | 6 => self.free(),
            7 => self.move_on(),
            _ => remove_idle(&mut self.spill, &self.disk),
        }
        self.now = self.now + Nanos::from_millis(10);
        self.spill.check();
    }

    fn put(&mut self) {
        let bodies: Vec<_> = (0..1 + self.dice.below(20))
            .map(|_| {
                self.put += 1;
                let largest = [10, 100, 5000, 100_000][self.dice.below(4) as usize];
                body(self.put, self.dice.below(largest) as usize)
            })
            .collect();
        if let Some(write) = self.spill.put(self.now, &bodies) {
            assert_eq!(write.places().len(), bodies.len());
            self.out.push(Out { write, bodies });
        }
    }

    /// One of those that are out, in any order.
    fn write(&mut self) {
        if self.out.is_empty() {
            return;
        }
        let index = self.dice.below(self.out.len() as u64) as usize;
        let Out { write, bodies } = self.out.swap_remove(index);
        let promised = write.places().to_vec();
        match self.spill.handle_write(self.now, write.perform(&self.disk)) {
            Ok(places) => {
                assert_eq!(places, promised);
                for (place, body) in places.into_iter().zip(bodies) {
                    assert!(self.stored.insert(place, body).is_none(), "a place is one body's");
                }
            }
            Err(error) => {
                assert_eq!(error.kind, DiskErrorKind::Full);
                assert!(self.spill.put(self.now, &bodies).is_none(), "it was full right now");
                self.full += 1;
            }
        }
    }

    fn any_place(&mut self) -> Option<SpillPlace> {
        let count = self.stored.len() as u64;
        let index = self.dice.below(count.max(1)) as usize;
        self.stored.keys().nth(index).copied()
    }

    fn fetch(&mut self) {
        let Some(place) = self.any_place() else { return };
        let found = fetched(&mut self.spill, &self.disk, place).expect("the disk works");
        assert!(found == self.stored[&place]);
    }

    /// Some of them, or all, perhaps while one is being read.
    fn free(&mut self) {
        let out = self.any_place().map(|place| (place, self.spill.fetch(place)));
        let count = [1, 5, 20, 1000][self.dice.below(4) as usize];
        let expected = out.as_ref().map(|(place, _)| Arc::clone(&self.stored[place]));
        for _ in 0..count {
            let Some(place) = self.any_place() else { break };
            let body = self.stored.remove(&place).unwrap();
            self.spill.free(place, body.len());
        }
        remove_idle(&mut self.spill, &self.disk);
        if let Some((_, fetch)) = out {
            let found = self.spill.handle_fetch(fetch.perform(&self.disk)).expect("it is there");
            assert!(Some(found) == expected);
        }
    }

    /// Puts the live bodies of a file that is mostly dead elsewhere, and the file goes.
    fn move_on(&mut self) {
        let Some(places) = self.spill.sparse(self.now) else { return };
        let is_in = |place: &SpillPlace| places.contains(&NonZeroU64::from(*place));
        let moved: Vec<_> = self.stored.keys().copied().filter(is_in).collect();
        let bodies: Vec<_> = moved.iter().map(|place| Arc::clone(&self.stored[place])).collect();
        let write = self.spill.put_again(self.now, &bodies).expect("it was asked for");
        let before = self.spill.counters().disk_bytes;
        if let Ok(to) = self.spill.handle_write(self.now, write.perform(&self.disk)) {
            for (place, body) in moved.iter().zip(&bodies) {
                self.stored.remove(place);
                self.spill.free(*place, body.len());
            }
            self.stored.extend(to.into_iter().zip(bodies));
            remove_idle(&mut self.spill, &self.disk);
            assert!(self.spill.counters().disk_bytes < before, "it frees more than it takes");
            self.moved += 1;
        } else {
            self.full += 1;
        }
    }

    fn end(&mut self) {
        while !self.out.is_empty() {
            self.write();
        }
        for (place, body) in self.stored.clone() {
            assert!(fetched(&mut self.spill, &self.disk, place).unwrap() == body);
            self.spill.free(place, body.len());
        }
        remove_idle(&mut self.spill, &self.disk);
        self.spill.check();
        assert_eq!(names(&self.disk), [""; 0], "nothing is left");
        assert_eq!(self.spill.counters().disk_bytes, 0);
        assert_eq!(self.spill.counters().live, 0);
        let directory = self.disk.directory();
        assert_eq!((directory.syncs, directory.writes_synced), (0, 0), "it is never synced");
    }
}

#[test]
fn spilled_bodies_return_until_freed() {
    for seed in 1..20 {
        let mut model = Model::new(seed, 1 << 30);
        (0..500).for_each(|_| model.step());
        assert!(model.spill.counters().fetches > 20, "{:?}", model.spill.counters());
        model.end();
    }
}

#[test]
fn spilled_bodies_return_in_scarce_room() {
    let (mut full, mut moved) = (0, 0);
    for seed in 1..25 {
        let mut model = Model::new(seed, 2_000_000);
        model.disk.directory().quota = Some(1_000_000);
        (0..500).for_each(|_| model.step());
        full += model.full;
        moved += model.moved;
        assert_eq!(model.spill.counters().refused, model.full);
        model.end();
    }
    assert!(full > 100, "the device was full {full} times");
    assert!(moved > 0, "some files were emptied");
}

#[test]
fn spill_on_full_device_retries_later() {
    let (mut spill, disk) = (spill(), MemoryDisk::default());
    let first = body(1, 1000);
    let place = put(&mut spill, &disk, &first);
    // The rest of the first file fits in, and nothing behind it.
    disk.directory().quota = Some(disk.bytes() + 100_000);
    let many: Vec<_> = (0..20).map(|key| body(key, 10_000)).collect();
    let write = spill.put(Nanos::ZERO, &many).unwrap();
    let refused = spill.handle_write(Nanos::ZERO, write.perform(&disk)).unwrap_err();
    assert_eq!(refused.kind, DiskErrorKind::Full);
    assert_eq!(names(&disk).len(), 1, "only the first file is there");
    assert_eq!(spill.counters().live, 1);
    assert!(spill.put(Nanos::from_millis(1), &many).is_none());
    disk.directory().quota = None;
    let later = Nanos::SECOND;
    let write = spill.put(later, &many).expect("it is tried again");
    let places = spill.handle_write(later, write.perform(&disk)).unwrap();
    assert_eq!(fetched(&mut spill, &disk, places[19]).unwrap(), many[19]);
    assert_eq!(fetched(&mut spill, &disk, place).unwrap(), first);
    spill.check();
}

#[test]
fn files_stay_below_their_limit() {
    let (mut spill, disk) = (Spill::new(SEGMENT_BYTES, 100_000), MemoryDisk::default());
    let place = put(&mut spill, &disk, &body(1, 90_000));
    let more = [body(2, 20_000)];
    assert!(spill.put(Nanos::ZERO, &more).is_none());
    spill.free(place, 90_000);
    assert!(spill.put(Nanos::ZERO, &more).is_none(), "the file is still there");
    remove_idle(&mut spill, &disk);
    assert!(spill.put(Nanos::ZERO, &more).is_some());
}

/// However few bodies live in each file, the files have little more than twice the live bytes, and
/// two files.
#[test]
fn spill_moves_bodies_of_sparse_files() {
    let mut model = Model::new(1, 1 << 30);
    for _ in 0..200 {
        model.put();
        model.write();
    }
    let all: Vec<_> = model.stored.keys().copied().collect();
    for place in all.iter().filter(|place| !NonZeroU64::from(**place).get().is_multiple_of(7)) {
        let body = model.stored.remove(place).unwrap();
        model.spill.free(*place, body.len());
    }
    let dead = model.spill.counters();
    assert!(dead.disk_bytes > 4 * dead.live_bytes, "{dead:?}");
    while model.spill.sparse(model.now).is_some() {
        model.move_on();
        model.spill.check();
    }
    let left = model.spill.counters();
    assert_eq!((left.live, left.live_bytes), (dead.live, dead.live_bytes));
    assert!(left.disk_bytes <= 2 * (left.live_bytes + SEGMENT_BYTES), "{left:?}");
    model.end();
}

#[test]
fn spill_fills_files_in_turn() {
    let (mut spill, disk) = (spill(), MemoryDisk::default());
    for key in 0..64 {
        put(&mut spill, &disk, &body(key, 1024 - 8));
    }
    assert_eq!(names(&disk), ["0000000000000001.spill"]);
    put(&mut spill, &disk, &body(64, 10));
    assert_eq!(names(&disk).len(), 2);
}

#[test]
fn spill_returns_bodies_of_any_length() {
    let (mut spill, disk) = (spill(), MemoryDisk::default());
    for bytes in [0, 1, 55, 56, 57, 4023, 4024, 4025, 4096, 65_536, 16 * 1024 * 1024] {
        let body = body(7, bytes);
        let place = put(&mut spill, &disk, &body);
        assert!(fetched(&mut spill, &disk, place).unwrap() == body, "{bytes} bytes");
    }
}

#[test]
fn spill_record_detects_every_flip() {
    let (mut spill, disk) = (spill(), MemoryDisk::default());
    for bytes in [40, 5000] {
        let place = put(&mut spill, &disk, &body(1, bytes));
        // For a long body the same bit of the second read flips too.
        for bit in 0..(8 + bytes).min(4032) * 8 {
            let faulty = FaultyDisk::new(&disk, Fault::Flipped(bit));
            let error = fetched(&mut spill, &faulty, place).expect_err("a flipped bit");
            assert!(error.to_string().contains(".spill"), "{error}");
        }
    }
    spill.check();
}

#[test]
fn spill_short_read_is_an_error() {
    let (mut spill, disk) = (spill(), MemoryDisk::default());
    let body = body(1, 9000);
    let place = put(&mut spill, &disk, &body);
    for bytes in [0, 4, 8, 100, 4095] {
        let faulty = FaultyDisk::new(&disk, Fault::Short(bytes));
        fetched(&mut spill, &faulty, place).expect_err("a short read");
    }
    let faulty = FaultyDisk::new(&disk, Fault::Refused);
    fetched(&mut spill, &faulty, place).expect_err("a failed read");
    assert_eq!(fetched(&mut spill, &disk, place).unwrap(), body, "the next one succeeds");
}

#[test]
fn spill_body_of_another_is_rejected() {
    let (mut spill, disk) = (spill(), MemoryDisk::default());
    let one = put(&mut spill, &disk, &body(1, 40));
    put(&mut spill, &disk, &body(2, 40));
    let file = disk.file(&names(&disk)[0]);
    let (begin, other) = (file.borrow()[..64].to_vec(), file.borrow()[64..128].to_vec());
    assert_ne!(begin, other);
    file.borrow_mut()[..64].copy_from_slice(&other);
    fetched(&mut spill, &disk, one).expect_err("it belongs elsewhere");
}

#[test]
fn spill_survives_a_failed_write() {
    let (mut spill, disk) = (spill(), MemoryDisk::default());
    let first = body(1, 100);
    let place = put(&mut spill, &disk, &first);
    let write = spill.put(Nanos::ZERO, &[body(2, 100)]).unwrap();
    let done = write.perform(&FaultyDisk::new(&disk, Fault::Refused));
    let error = spill.handle_write(Nanos::ZERO, done).unwrap_err();
    assert_eq!(error.kind, DiskErrorKind::Failed);
    assert_eq!(fetched(&mut spill, &disk, place).unwrap(), first);
    spill.check();
    put(&mut spill, &disk, &body(3, 100));
    assert_eq!(names(&disk).len(), 2, "the file in which it failed takes no more");
    spill.free(place, first.len());
    remove_idle(&mut spill, &disk);
    assert_eq!(names(&disk), ["0000000000000002.spill"]);
}

#[test]
fn spill_write_avoids_file_being_made() {
    let (mut spill, disk) = (spill(), MemoryDisk::default());
    let one = spill.put(Nanos::ZERO, &[body(1, 10)]).unwrap();
    let two = spill.put(Nanos::ZERO, &[body(2, 10)]).unwrap();
    for write in [two, one] {
        spill.handle_write(Nanos::ZERO, write.perform(&disk)).unwrap();
    }
    assert_eq!(names(&disk).len(), 2);
    for key in 3..60 {
        put(&mut spill, &disk, &body(key, 1000));
    }
    assert_eq!(names(&disk).len(), 2, "both are filled");
    spill.check();
}

#[test]
fn recovery_removes_leftover_spill_files() {
    let (mut spill, disk) = (spill(), MemoryDisk::default());
    let mut store = Store::open(&disk, tiny(StorePolicy::Always)).unwrap();
    assert!(store.put(1, b"one"));
    let before = names(&disk);
    disk.create("notes.spill").unwrap();
    for key in 0..100 {
        put(&mut spill, &disk, &body(key, 5000));
    }
    assert!(names(&disk).len() > before.len() + 5);
    let image = disk.image();
    let mut values = crate::store::Values::default();
    journal::verify(&image, &mut values).unwrap();
    assert_eq!(names(&image), names(&disk), "who only looks removes nothing");
    let again = Store::open(&disk, tiny(StorePolicy::Always)).unwrap();
    assert_eq!(again.values.contents(), store.values.contents());
    let left: Vec<_> = names(&disk).into_iter().filter(|name| name.contains("spill")).collect();
    assert_eq!(left, ["notes.spill"], "which is somebody else's");
}
