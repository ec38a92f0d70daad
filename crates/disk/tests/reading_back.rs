//! The journal on a real directory. Some threads read frames back while others write behind them,
//! past the page cache and through it, and files are used again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]

use std::collections::VecDeque;
use std::fs;
use std::iter;
use std::sync::{Mutex, MutexGuard};

use disk::{Choice, File, Method, RealDisk};
use journal::{Journal, JournalOptions, OldFrames, Recover};
use model::{Durability, LiveRecords, Lsn, Nanos, StorePolicy};
use testkit::Rng;

const FRAMES: u64 = 5_000;

/// More of them are written until so many files were used again: on a busy machine the readers
/// hold files for longer.
const RECYCLED: u64 = 6;

/// Then the files are not used again at all.
const FRAMES_MAX: u64 = 20 * FRAMES;

/// The newest frames, so many of them, are all live.
const LIVE: usize = 700;

/// Nothing is recovered here.
struct Nothing;

impl Recover for Nothing {
    fn load(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn replay(&mut self, _: Lsn, _: &[u8], _: bool) -> Result<(), String> {
        Ok(())
    }

    fn wanted(&self) -> Vec<Lsn> {
        Vec::new()
    }

    fn restore(&mut self, _: Lsn, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn finish(&mut self, _: Lsn) -> Result<(), String> {
        Ok(())
    }

    fn live(&self) -> impl Iterator<Item = (Lsn, u64)> {
        iter::empty()
    }

    fn snapshot_bytes(&self) -> u64 {
        0
    }
}

fn options() -> JournalOptions {
    JournalOptions {
        segment_bytes: 512 * 1024,
        extent_bytes: 128 * 1024,
        reserve_bytes: 64 * 1024,
        frame_payload_bytes_max: 20_000,
        batch_bytes: 64 * 1024,
        ..JournalOptions::new(StorePolicy::Periodic(Nanos(1)))
    }
}

fn payload_of(key: u64) -> Vec<u8> {
    let bytes = key.wrapping_mul(0x9E37_79B9) % 3000 + u64::from(key.is_multiple_of(50)) * 9000;
    let seed = key.to_le_bytes();
    (0..bytes as usize + 8).map(|index| seed[index % 8].wrapping_add((index / 8) as u8)).collect()
}

/// The state that the threads share: the journal, and the live frames in it.
struct Log {
    journal: Journal<File>,
    live: VecDeque<Lsn>,
    next: Lsn,
    /// The key of each frame's payload, from the first frame on.
    keys: Vec<u64>,
}

impl Log {
    fn append_new(&mut self) {
        self.append(self.next.0);
        while self.live.len() > LIVE {
            let oldest = self.live.pop_front().unwrap();
            self.free(oldest);
        }
    }

    fn append(&mut self, key: u64) {
        let payload = payload_of(key);
        let level = if self.next.0 % 7 < 3 { Durability::Written } else { Durability::Synced };
        let kept = LiveRecords::one(payload.len() as u64);
        self.journal.append(Nanos(self.next.0), self.next, &payload, level, kept);
        self.live.push_back(self.next);
        self.keys.push(key);
        self.next = self.next.next();
    }

    fn free(&mut self, lsn: Lsn) {
        self.journal.free(lsn, payload_of(self.key(lsn)).len() as u64);
    }

    fn key(&self, lsn: Lsn) -> u64 {
        self.keys[lsn.0 as usize - 1]
    }

    /// Appends the live frames of a segment that is compacted anew.
    fn restate(&mut self, old: OldFrames) {
        for (lsn, payload) in old.frames {
            let Ok(index) = self.live.binary_search(&lsn) else { continue };
            if !self.journal.takes_restated(LiveRecords::one(payload.len() as u64)) {
                break;
            }
            self.live.remove(index);
            self.append(self.key(lsn));
            self.free(lsn);
        }
    }
}

struct Shared<'a> {
    disk: &'a RealDisk,
    log: Mutex<Log>,
}

impl Shared<'_> {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap()
    }

    fn is_done(&self) -> bool {
        let log = self.log();
        let is_enough = log.journal.counters().segments_recycled >= RECYCLED;
        log.next.0 > if is_enough { FRAMES } else { FRAMES_MAX }
    }

    /// Appends, and lets others in between.
    fn feed(&self) {
        while !self.is_done() {
            let mut log = self.log();
            let mut few = 20;
            while few > 0 && !log.journal.stalled() {
                log.append_new();
                few -= 1;
            }
            drop(log);
            self.write();
        }
    }

    fn write(&self) {
        let now = Nanos(self.log().next.0);
        let write = self.log().journal.poll_write(now);
        if let Some(write) = write {
            let result = write.perform(self.disk);
            self.log().journal.handle_write(now, write, result).expect("the disk works");
        }
    }

    fn run_chores(&self) {
        let now = Nanos(self.log().next.0);
        let mut log = self.log();
        let chore = log.journal.poll_chore(now).or_else(|| {
            if log.journal.wants_snapshot() {
                log.journal.begin_snapshot(now);
            }
            let wanted = log.journal.takes_snapshot_chunk();
            wanted.then(|| log.journal.snapshot_chunk(b"nothing", true))
        });
        drop(log);
        if let Some(chore) = chore {
            let done = chore.perform(self.disk);
            let mut log = self.log();
            let old = log.journal.handle_chore(now, done).expect("the disk works");
            log.restate(old);
        }
    }

    /// Reads back live and written frames, over and over.
    fn read(&self, seed: u64) -> u64 {
        let (mut rng, mut count) = (Rng::new(seed), 0);
        while !self.is_done() {
            let at = rng.draw();
            let mut log = self.log();
            let written = log.journal.durable().written;
            let within = log.live.partition_point(|lsn| *lsn <= written);
            // The newest half of the time: there the writing is.
            let back =
                if at >> 63 == 0 { 1 + (at >> 33) as usize % 5 } else { (at >> 33) as usize };
            let Some(index) = within.checked_sub(1 + back % within.max(1)) else { continue };
            let lsn = log.live[index];
            let fetch = log.journal.fetch(lsn, (at >> 40) as usize % 100_000);
            drop(log);
            let done = fetch.perform(self.disk);
            let mut log = self.log();
            let fetched = log.journal.handle_fetch(done).expect("it is what was written");
            assert_eq!(fetched.first(), lsn);
            for (lsn, payload) in fetched.frames() {
                assert!(payload == payload_of(log.key(lsn)), "frame {lsn}");
                count += 1;
            }
        }
        count
    }
}

#[test]
fn frames_read_back_while_segments_recycle() {
    for method in [Method::Direct, Method::Buffered] {
        let name = format!("dunlin-reading-back-{}-{method:?}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let disk = RealDisk::open(&path, Choice::Force(method)).unwrap();
        let (journal, _) = Journal::open(&disk, options(), &mut Nothing).unwrap();
        let log = Log { journal, live: VecDeque::new(), next: Lsn(1), keys: Vec::new() };
        let shared = Shared { disk: &disk, log: Mutex::new(log) };
        let read: u64 = std::thread::scope(|scope| {
            let readers = [1, 2].map(|seed| {
                let shared = &shared;
                scope.spawn(move || shared.read(seed))
            });
            scope.spawn(|| {
                while !shared.is_done() {
                    shared.write()
                }
            });
            scope.spawn(|| {
                while !shared.is_done() {
                    shared.run_chores()
                }
            });
            shared.feed();
            readers.map(|reader| reader.join().unwrap()).iter().sum()
        });
        let counters = shared.log().journal.counters();
        fs::remove_dir_all(&path).unwrap();
        assert!(counters.segments_recycled >= RECYCLED, "{counters:?}");
        assert!(read > 100, "{read} frames were read");
    }
}
