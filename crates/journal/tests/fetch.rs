//! Frames read back while the log goes on.

use std::collections::BTreeMap;

use journal::JournalOptions;
use model::{Lsn, StorePolicy};
use testkit::Rng;

use crate::store::faulty::{Fault, FaultyDisk};
use crate::store::{MemoryDisk, Store, tiny, value};

fn always() -> JournalOptions {
    tiny(StorePolicy::Always)
}

fn opened() -> Store {
    let mut store = Store::open(&MemoryDisk::default(), always()).unwrap();
    store.settle();
    store
}

/// The segment's name that holds frame 1, as long as it holds it.
fn oldest(store: &Store) -> String {
    store.disk.segments().first().expect("there are segments").clone()
}

/// Churns until segments were used again.
fn churn(store: &mut Store, rounds: u64) {
    let recycled = store.journal.counters().segments_recycled;
    for key in 1000..1000 + rounds {
        assert!(store.put(key, &value(key, 1000)));
        store.remove(key);
    }
    assert!(store.journal.counters().segments_recycled > recycled, "files were used again");
}

#[test]
fn pinned_segment_stays_until_unpinned() {
    let mut store = opened();
    assert!(store.put(1, b"one"));
    let name = oldest(&store);
    store.journal.pin(Lsn(1));
    store.journal.pin(Lsn(1));
    let before = store.disk.file(&name).borrow().clone();
    store.remove(1);
    churn(&mut store, 200);
    store.journal.unpin(Lsn(1));
    churn(&mut store, 200);
    let kept = store.disk.file(&name).borrow()[4096..2 * 4096].to_vec();
    assert!(kept == before[4096..2 * 4096], "the frame is as it was");
    let held = store.journal.counters().segments;
    store.journal.unpin(Lsn(1));
    assert_eq!(store.journal.counters().segments, held - 1, "no further snapshot is needed");
    churn(&mut store, 20);
    assert_ne!(oldest(&store), name);
    store.journal.check();
}

#[test]
fn unpinned_segment_is_recycled() {
    let mut store = opened();
    assert!(store.put(1, b"one"));
    let name = oldest(&store);
    store.remove(1);
    churn(&mut store, 200);
    assert_ne!(oldest(&store), name);
}

#[test]
fn pin_of_living_segment_is_harmless() {
    let mut store = opened();
    assert!(store.put(1, b"one"));
    store.journal.pin(Lsn(1));
    store.journal.unpin(Lsn(1));
    churn(&mut store, 200);
    let again = Store::open(&store.disk.image(), always()).unwrap();
    assert_eq!(again.values.contents(), store.values.contents());
}

/// From a few bytes to more than an index's step.
fn any_bytes(dice: &mut Rng) -> usize {
    let largest = [100, 100, 2000, 2000, 60_000, 200_000][dice.below(6) as usize];
    dice.below(largest) as usize
}

/// Segments in which an index has several entries, and values that are longer than its steps.
fn roomy() -> JournalOptions {
    JournalOptions {
        segment_bytes: 1024 * 1024,
        extent_bytes: 256 * 1024,
        reserve_bytes: 256 * 1024,
        frame_payload_bytes_max: 250_000,
        batch_bytes: 300_000,
        ..JournalOptions::new(StorePolicy::Always)
    }
}

/// The payload of the frame that stores a value.
fn frame_of(key: u64, value: &[u8]) -> Vec<u8> {
    [&b"+"[..], &key.to_le_bytes(), value].concat()
}

fn payload(key: u64, bytes: usize) -> Vec<u8> {
    frame_of(key, &value(key, bytes))
}

/// The frames that a fetch brings.
fn fetched(store: &mut Store, lsn: Lsn, bytes: usize) -> Vec<(Lsn, Vec<u8>)> {
    let done = store.journal.fetch(lsn, bytes).perform(&store.disk);
    let fetched = store.journal.handle_fetch(done).expect("the disk works");
    assert_eq!(fetched.first(), lsn);
    fetched.frames().map(|(lsn, payload)| (lsn, payload.to_vec())).collect()
}

/// The payload of each live value's frame, by position.
fn live_frames(store: &Store) -> BTreeMap<Lsn, Vec<u8>> {
    let values = store.values.0.iter();
    values.map(|(key, (lsn, value))| (*lsn, frame_of(*key, value.as_ref().unwrap()))).collect()
}

/// Checks that every live frame comes back, for any amount that is asked for.
fn check_all(store: &mut Store, dice: &mut Rng) {
    let frames = live_frames(store);
    let written = store.journal.durable().written;
    for (lsn, expected) in frames.iter().filter(|(lsn, _)| **lsn <= written) {
        let bytes = dice.below(400_000) as usize;
        let found = fetched(store, *lsn, bytes);
        assert_eq!(&found[0].1, expected, "frame {lsn}");
        let positions: Vec<_> = found.iter().map(|(lsn, _)| lsn.0).collect();
        assert!(positions.iter().copied().eq(lsn.0..lsn.0 + found.len() as u64));
        assert!(found.last().unwrap().0 <= written, "only what is written");
        for (lsn, payload) in found {
            assert!(frames.get(&lsn).is_none_or(|expected| *expected == payload), "frame {lsn}");
        }
    }
}

#[test]
fn fetch_returns_frames_of_any_size() {
    let mut dice = Rng::new(0x5EED);
    let mut store = Store::open(&MemoryDisk::default(), roomy()).unwrap();
    let mut key = 0;
    for round in 0..40 {
        for _ in 0..dice.below(60) {
            store.settle();
            assert!(store.append_put(key, &value(key, any_bytes(&mut dice))));
            key += 1;
            while dice.below(3) > 0 && store.journal.room() == u64::MAX {
                assert!(store.append_put(key, &value(key, any_bytes(&mut dice))));
                key += 1;
            }
        }
        let keys: Vec<u64> = store.values.0.keys().copied().collect();
        for key in keys {
            if dice.below(3) == 0 {
                store.remove(key);
            }
        }
        check_all(&mut store, &mut dice);
        if round % 5 == 4 {
            store.settle();
            store = Store::open(&store.disk, roomy()).unwrap();
            check_all(&mut store, &mut dice);
        }
        store.journal.check();
    }
    let counters = store.journal.counters();
    assert!(counters.fetches > 100 && counters.fetched_bytes > 1_000_000, "{counters:?}");
}

#[test]
fn compactions_come_into_it() {
    let mut dice = Rng::new(0xC0);
    let mut store = Store::open(&MemoryDisk::default(), roomy()).unwrap();
    for key in 0..1500 {
        assert!(store.put(key, &value(key, 10_000)));
        if key >= 4 && key % 25 != 0 {
            store.remove(key - 1);
        }
        if key % 100 == 0 {
            check_all(&mut store, &mut dice);
        }
    }
    assert!(store.journal.counters().compactions > 0);
    check_all(&mut store, &mut dice);
}

#[test]
fn sequential_reader_needs_few_calls() {
    let mut store = Store::open(&MemoryDisk::default(), roomy()).unwrap();
    for key in 0..31 {
        store.settle();
        while store.journal.unwritten().bytes < 200_000 {
            store.append_put(key * 1000 + u64::from(store.journal.unwritten().frames), &[7; 900]);
        }
    }
    store.settle();
    let last = store.journal.durable().written;
    let (mut next, mut bytes) = (Lsn(1), 0);
    while next <= last {
        let found = fetched(&mut store, next, 256 * 1024);
        bytes += found.iter().map(|(_, payload)| payload.len() as u64).sum::<u64>();
        next = found.last().unwrap().0.next();
    }
    let counters = store.journal.counters();
    assert!(counters.fetched_bytes < bytes * 3 / 2, "{counters:?} for {bytes}");
    assert!(counters.fetches < bytes / (200 * 1024), "{counters:?} for {bytes}");
}

#[test]
fn fetch_returns_frames_beside_open_writes() {
    let mut store = opened();
    for key in 0..50_u64 {
        store.append_put(2 * key, &value(2 * key, 3000));
        let first = store.journal.poll_write(store.now).unwrap();
        store.append_put(2 * key + 1, &value(2 * key + 1, 3000));
        let second = store.journal.poll_write(store.now).unwrap();
        store.perform(second).unwrap();
        let written = store.journal.durable().written;
        assert_eq!(written.0, 2 * key, "the second is not yet written, for the first is not");
        if written > Lsn::ZERO {
            let found = fetched(&mut store, written, 100_000);
            assert_eq!(found, [(written, payload(2 * key - 1, 3000))]);
        }
        store.perform(first).unwrap();
        store.settle();
    }
}

#[test]
fn fetch_reads_no_unwritten_blocks() {
    let mut store = opened();
    assert!(store.put(1, b"one"));
    store.append_put(2, b"two");
    let flight = store.journal.poll_write(store.now).unwrap();
    store.append_put(3, b"three");
    let disk = FaultyDisk::new(&store.disk, Fault::None);
    let done = store.journal.fetch(Lsn(1), 100_000).perform(&disk);
    assert_eq!(disk.end.get(), 2 * 4096, "the header's block and that of the first batch");
    assert_eq!(store.journal.handle_fetch(done).unwrap().frames().count(), 1);
    store.perform(flight).unwrap();
}

#[test]
fn fetch_returns_frames_of_chain() {
    let mut store = opened();
    for key in 0..3 {
        store.append_put(key, &value(key, 4000));
    }
    store.journal.end_chain();
    store.settle();
    let found = fetched(&mut store, Lsn(1), 1 << 20);
    let expected: Vec<_> = (0..3).map(|key| (Lsn(key + 1), payload(key, 4000))).collect();
    assert_eq!(found, expected);
}

#[test]
fn fetch_keeps_its_segment_until_handled() {
    // With its frame: two blocks each would be copied before anything is removed.
    const A_BLOCK: usize = 3900;
    let mut store = opened();
    for key in 0..80 {
        assert!(store.put(key, &value(key, A_BLOCK)));
    }
    let name = oldest(&store);
    let fetch = store.journal.fetch(Lsn(1), 0);
    let last = store.journal.fetch(Lsn(10), usize::MAX);
    for key in (0..80).filter(|key| key % 8 > 0) {
        store.remove(key);
    }
    // The rest is copied forward, the value of the first frame too.
    churn(&mut store, 400);
    assert_ne!(store.values.0[&0].0, Lsn(1), "it lies elsewhere now");
    let done = fetch.perform(&store.disk);
    let found = store.journal.handle_fetch(done).unwrap();
    assert_eq!(found.frames().next(), Some((Lsn(1), &payload(0, A_BLOCK)[..])));
    churn(&mut store, 100);
    let done = last.perform(&store.disk);
    let found = store.journal.handle_fetch(done).unwrap();
    assert_eq!(found.frames().next(), Some((Lsn(10), &payload(9, A_BLOCK)[..])));
    churn(&mut store, 100);
    assert_ne!(oldest(&store), name, "then it goes");
}

#[test]
fn fetch_fault_fails_or_is_harmless() {
    let mut dice = Rng::new(0xFA);
    let (mut failed, mut harmless) = (0, 0);
    let mut store = Store::open(&MemoryDisk::default(), roomy()).unwrap();
    for key in 0..120 {
        assert!(store.put(key, &value(key, any_bytes(&mut dice))));
    }
    let frames = live_frames(&store);
    let image = store.disk.image();
    for round in 0..200 {
        let mut store = Store::open(&image.image(), roomy()).unwrap();
        let lsn = Lsn(1 + dice.below(120));
        let fault = match round % 4 {
            0 => Fault::Refused,
            1 => Fault::Short(dice.below(120_000) as usize),
            2 => Fault::Flipped(dice.below(80_000 * 8) as usize),
            _ => Fault::None,
        };
        let disk = FaultyDisk::new(&store.disk, fault);
        let done = store.journal.fetch(lsn, dice.below(100_000) as usize).perform(&disk);
        match store.journal.handle_fetch(done) {
            Ok(found) => {
                harmless += 1;
                assert!(!matches!(fault, Fault::Refused));
                assert!(found.frames().next().is_some());
                for (lsn, payload) in found.frames() {
                    assert!(frames[&lsn] == payload, "{fault:?}: frame {lsn}");
                }
            }
            Err(error) => {
                failed += 1;
                assert!(!matches!(fault, Fault::None), "{error}");
                assert!(store.journal.poll_write(store.now).is_none(), "nothing more is done");
                assert!(store.journal.poll_chore(store.now).is_none());
            }
        }
    }
    assert!(failed > 65 && harmless > 65, "{failed} failed, {harmless} did no harm");
}

#[test]
fn fetch_detects_every_flipped_bit() {
    let mut store = opened();
    for key in 0..4 {
        store.append_put(key, &value(key, 40));
    }
    store.settle();
    // Mark, then frames of 24 + 9 + 40 bytes: the third of them.
    let from = (64 + 2 * 73) * 8;
    for bit in from..from + 73 * 8 {
        let mut again = Store::open(&store.disk.image(), always()).unwrap();
        let disk = FaultyDisk::new(&again.disk, Fault::Flipped(bit));
        let done = again.journal.fetch(Lsn(3), 0).perform(&disk);
        let error = again.journal.handle_fetch(done).expect_err("a flipped bit");
        assert!(error.to_string().contains("frame 3"), "{error}");
        assert!(error.to_string().contains(".segment"), "{error}");
    }
}

/// The device still has the earlier bytes: a frame of the same position that was cut off.
#[test]
fn fetch_rejects_overwritten_cut_off_frame() {
    let disk = MemoryDisk::default();
    let mut store = Store::open(&disk, always()).unwrap();
    assert!(store.put(1, b"one"));
    store.append_put(2, b"two");
    let lost = store.journal.poll_write(store.now).unwrap();
    store.append_put(3, b"old");
    let kept = store.journal.poll_write(store.now).unwrap();
    store.perform(kept).unwrap();
    drop((lost, store));
    let name = &disk.segments()[0];
    let old = disk.file(name).borrow()[3 * 4096..4 * 4096].to_vec();
    let mut again = Store::open(&disk, always()).unwrap();
    assert!(again.put(4, b"four"));
    assert!(again.put(5, b"five"));
    assert_eq!(fetched(&mut again, Lsn(3), 0), [(Lsn(3), frame_of(5, b"five"))]);
    disk.file(name).borrow_mut()[3 * 4096..4 * 4096].copy_from_slice(&old);
    let done = again.journal.fetch(Lsn(3), 0).perform(&disk);
    again.journal.handle_fetch(done).expect_err("it is another's");
}

/// The first frame of a torn batch that recovery cut off, if the log left a segment early.
#[test]
fn fetch_skips_cut_off_segment_end() {
    let disk = MemoryDisk::default();
    let mut store = Store::open(&disk, always()).unwrap();
    for key in 0..13 {
        assert!(store.put(key, b"a block each"));
    }
    store.append_put(13, b"cut off");
    store.append_put(14, &value(14, 4000));
    let torn = store.journal.poll_write(store.now).unwrap();
    store.perform(torn).unwrap();
    drop(store);
    let name = disk.segments()[0].clone();
    disk.file(&name).borrow_mut()[15 * 4096..].fill(0);
    // The next frame does not fit into the two blocks that are left.
    let large = || JournalOptions { frame_payload_bytes_max: 3 * 4096, ..always() };
    let mut again = Store::open(&disk, large()).unwrap();
    again.settle();
    assert!(again.append_put(15, &value(15, 8_500)));
    again.write_all();
    assert_eq!(again.values.0[&15].0, Lsn(14), "it follows what was not cut off");
    drop(again);
    let mut again = Store::open(&disk, large()).unwrap();
    assert_eq!(fetched(&mut again, Lsn(13), 1 << 20), [(Lsn(13), frame_of(12, b"a block each"))]);
    assert_eq!(fetched(&mut again, Lsn(14), 0), [(Lsn(14), frame_of(15, &value(15, 8_500)))]);
}

/// The same if a whole segment is read in pieces, one of which begins with the frame that was cut
/// off.
#[test]
fn compaction_skips_cut_off_segment_end() {
    let frame_payload_bytes_max = 4 * 4096;
    let options = || JournalOptions { frame_payload_bytes_max, ..tiny(StorePolicy::Never) };
    let disk = MemoryDisk::default();
    let mut store = Store::open(&disk, options()).unwrap();
    store.settle();
    for key in 1..=12 {
        assert!(store.put(key, b"a block each"));
    }
    assert!(store.put(13, b"cut off"));
    drop(store);
    let name = disk.segments()[0].clone();
    disk.file(&name).borrow_mut()[9 * 4096..10 * 4096].fill(0);
    let mut again = Store::open(&disk, options()).unwrap();
    again.settle();
    // The last of them does not fit into the rest of the segment.
    for key in 9..=13 {
        let large = if key == 13 { value(13, 13_000) } else { b"in its place".to_vec() };
        assert!(again.append_put(key, &large));
        again.write_all();
    }
    assert!(holds(&disk, &name, 13, b"cut off"), "it is still there");
    for key in (1..=12).filter(|key| *key != 9) {
        again.remove(key);
    }
    for key in 14..400 {
        assert!(again.put(key, &value(key, 3000)));
        if key % 16 > 0 {
            again.remove(key);
        }
    }
    assert!(again.journal.counters().compactions > 0);
    let last = Store::open(&disk, options()).unwrap();
    assert_eq!(last.values.contents()[&13], value(13, 13_000));
}

fn block(disk: &MemoryDisk, name: &str, number: usize) -> Vec<u8> {
    disk.file(name).borrow()[number * 4096..(number + 1) * 4096].to_vec()
}

fn holds(disk: &MemoryDisk, name: &str, number: usize, text: &[u8]) -> bool {
    block(disk, name, number).windows(text.len()).any(|window| window == text)
}

#[test]
fn fetch_after_failure_is_rejected() {
    let mut store = opened();
    assert!(store.put(1, b"one"));
    let out = store.journal.fetch(Lsn(1), 0);
    let disk = FaultyDisk::new(&store.disk, Fault::Refused);
    let refused = store.journal.fetch(Lsn(1), 0).perform(&disk);
    store.journal.handle_fetch(refused).expect_err("the disk failed");
    let done = out.perform(&store.disk);
    store.journal.handle_fetch(done).expect_err("a failure is final");
}
