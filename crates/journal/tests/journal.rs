//! The journal over a memory disk: group commit, recovery, reclaiming, refusals.

use journal::{FileFault, JournalOptions, OpenError};
use model::{Durability, Lsn, Nanos, StorePolicy};

use crate::store::{MemoryDisk, Store, tiny, value};

fn always() -> JournalOptions {
    tiny(StorePolicy::Always)
}

fn reopened(store: &Store) -> Store {
    Store::open(&store.disk.image(), always()).expect("the journal opens")
}

#[test]
fn settled_values_survive_reopening() {
    let mut store = Store::open(&MemoryDisk::default(), always()).unwrap();
    for key in 0..300 {
        assert!(store.put(key, &value(key, 100)));
    }
    for key in (0..300).step_by(3) {
        store.remove(key);
    }
    let again = reopened(&store);
    assert_eq!(again.values.contents(), store.values.contents());
    assert!(store.journal.counters().segments > 1, "the log rolled");
}

#[test]
fn waiting_frames_go_in_one_write() {
    let mut store = Store::open(&MemoryDisk::default(), always()).unwrap();
    store.settle();
    for key in 0..50 {
        store.append_put(key, b"x");
    }
    let write = store.journal.poll_write(store.now).unwrap();
    assert_eq!(write.frames(), 50);
    assert_eq!(store.journal.durable().synced, Lsn(0));
    store.perform(write).unwrap();
    assert_eq!(store.journal.durable().synced, Lsn(50));
    assert_eq!(store.journal.counters().syncs, 1);
}

#[test]
fn durable_position_moves_in_order() {
    let mut store = Store::open(&MemoryDisk::default(), always()).unwrap();
    store.settle();
    store.append_put(1, b"one");
    let first = store.journal.poll_write(store.now).unwrap();
    store.append_put(2, b"two");
    let second = store.journal.poll_write(store.now).unwrap();
    store.append_put(3, b"three");
    assert!(store.journal.poll_write(store.now).is_none(), "two in flight are enough");
    store.perform(second).unwrap();
    assert_eq!(store.journal.durable().synced, Lsn(0));
    store.perform(first).unwrap();
    assert_eq!(store.journal.durable().synced, Lsn(2));
}

#[test]
fn batch_behind_lost_one_is_discarded() {
    let disk = MemoryDisk::default();
    let mut store = Store::open(&disk, always()).unwrap();
    assert!(store.put(1, b"one"));
    store.append_put(2, b"two");
    let lost = store.journal.poll_write(store.now).unwrap();
    store.append_put(3, b"three");
    let kept = store.journal.poll_write(store.now).unwrap();
    store.perform(kept).unwrap();
    drop(lost);
    let mut again = Store::open(&disk, always()).unwrap();
    assert_eq!(again.values.contents().keys().copied().collect::<Vec<_>>(), [1]);
    // The new frame lies where the lost batch was to lie, right before the one that was cut off.
    assert!(again.put(4, b"four"));
    let third = Store::open(&disk.image(), always()).unwrap();
    assert_eq!(third.values.contents().keys().copied().collect::<Vec<_>>(), [1, 4]);
}

#[test]
fn torn_last_batch_ends_the_log() {
    let mut store = Store::open(&MemoryDisk::default(), always()).unwrap();
    store.put(1, b"one");
    store.put(2, &value(2, 3000));
    let [segment, ..] = &store.disk.segments()[..] else { panic!("no segment") };
    for torn in [8192, 8192 + 512, 8192 + 2048, 8192 + 3000] {
        let image = store.disk.image();
        image.file(segment).borrow_mut()[torn..12288].fill(0);
        let again = Store::open(&image, always()).unwrap();
        assert_eq!(again.values.contents().len(), 1, "torn at {torn}");
    }
}

/// Empty segments, too, are refused: the copy that cut them may have cut others.
#[test]
fn cut_segment_is_refused_by_length() {
    let mut store = Store::open(&MemoryDisk::default(), always()).unwrap();
    (1..20).for_each(|key| assert!(store.put(key, &value(key, 3_000))));
    for name in store.disk.segments() {
        let whole = store.disk.file(&name).borrow().len();
        for bytes in [0, 40, 600, 4_095, 4_096, 5_000, 8_192, whole - 4_096, whole - 1] {
            let image = store.disk.image();
            image.file(&name).borrow_mut().truncate(bytes);
            let changes = image.directory().changes;
            let Err(OpenError::File { file, fault }) = Store::open(&image, always()) else {
                panic!("{name} cut to {bytes} of {whole} bytes is taken for whole");
            };
            assert_eq!((&file, image.directory().changes), (&name, changes));
            let short = matches!(fault, FileFault::Short { bytes: b, .. } if b == bytes as u64);
            assert!(short, "{fault}");
        }
    }
}

/// Found by the fuzzer: a count that no journal lives to reach, but a file may claim.
#[test]
fn last_epoch_refuses_another_opening() {
    let disk = MemoryDisk::default();
    drop(Store::open(&disk, always()).unwrap());
    let number = u32::MAX.to_le_bytes();
    *disk.file("epoch").borrow_mut() = [number, crc32c::crc32c(&number).to_le_bytes()].concat();
    let changes = disk.directory().changes;
    let Err(OpenError::Corrupt { file, .. }) = Store::open(&disk, always()) else {
        panic!("there is no number for it");
    };
    assert_eq!((file.as_str(), disk.directory().changes), ("epoch", changes));
}

#[test]
fn rot_names_its_file_and_offset() {
    let mut store = Store::open(&MemoryDisk::default(), always()).unwrap();
    for key in 0..5 {
        store.put(key, &value(key, 100));
    }
    let [segment, ..] = &store.disk.segments()[..] else { panic!("no segment") };
    for batch in 0..3_u64 {
        let image = store.disk.image();
        let offset = 4096 * (batch + 1);
        image.file(segment).borrow_mut()[offset as usize + 100] ^= 1;
        let Err(OpenError::Corrupt { file, offset: at, .. }) = Store::open(&image, always()) else {
            panic!("rot in batch {batch} went unnoticed");
        };
        assert_eq!((&file, at), (segment, offset));
    }
}

#[test]
fn lost_segment_is_noticed() {
    let mut store = Store::open(&MemoryDisk::default(), always()).unwrap();
    for key in 0..40 {
        store.put(key, &value(key, 2000));
    }
    let held = store.journal.counters().segments as usize;
    assert!(held > 2);
    for segment in store.disk.segments().iter().take(held - 1) {
        let image = store.disk.image();
        image.directory().files.remove(segment);
        let opened = Store::open(&image, always());
        assert!(
            matches!(opened, Err(OpenError::Missing { .. } | OpenError::Corrupt { .. })),
            "{segment} was not missed"
        );
    }
}

#[test]
fn space_stays_bounded_by_what_lives() {
    let mut store = Store::open(&MemoryDisk::default(), always()).unwrap();
    let segment = always().segment_bytes;
    for key in 0..3000 {
        store.put(key, &value(key, 1000));
        if key >= 20 {
            store.remove(key - 20);
        }
        let counters = store.journal.counters();
        let bound = counters.live_bytes * 2 + 12 * segment;
        assert!(counters.disk_bytes <= bound, "{counters:?} at {key}");
    }
    let counters = store.journal.counters();
    assert!(counters.snapshots > 0);
    assert!(counters.segments_recycled > 0);
    assert_eq!(reopened(&store).values.contents(), store.values.contents());
}

#[test]
fn old_value_does_not_pin_log() {
    let mut store = Store::open(&MemoryDisk::default(), always()).unwrap();
    let segment = always().segment_bytes;
    for key in 0..2000 {
        store.put(key, &value(key, 1000));
        if key % 50 != 0 {
            store.remove(key);
        }
        let counters = store.journal.counters();
        assert!(counters.disk_bytes <= counters.live_bytes * 2 + 12 * segment, "{counters:?}");
    }
    assert!(store.journal.counters().compactions > 0);
    let again = reopened(&store);
    assert_eq!(again.values.contents().len(), 40);
    assert_eq!(again.values.contents(), store.values.contents());
}

/// So copies make no batch of others much larger.
#[test]
fn compaction_continues_after_its_appends_written() {
    const VALUE_BYTES: u64 = 1000;
    let mut store = Store::open(&MemoryDisk::default(), always()).unwrap();
    store.settle();
    let mut most = 0;
    for key in 0..2000 {
        assert!(store.append_put(key, &value(key, VALUE_BYTES as usize)));
        if key % 4 != 0 {
            store.append_remove(key);
        }
        store.write_all();
        loop {
            while store.chore() {}
            let waiting = store.journal.last().0 - store.journal.durable().written.0;
            if waiting == 0 {
                break;
            }
            most = most.max(waiting);
            store.write_all();
        }
    }
    let counters = store.journal.counters();
    assert!(counters.compactions > 0, "{counters:?}");
    let piece_bytes = always().segment_bytes / 4;
    // The last of a piece may exceed it.
    assert!(
        (1..=piece_bytes / VALUE_BYTES + 1).contains(&most),
        "{most} values were copied at once"
    );
    assert_eq!(reopened(&store).values.contents(), store.values.contents());
}

#[test]
fn full_device_refuses_puts_takes_removals() {
    let mut store = Store::open(&MemoryDisk::default(), always()).unwrap();
    store.settle();
    let quota = store.disk.bytes() + 5 * always().segment_bytes;
    store.disk.directory().quota = Some(quota);
    let mut stored = 0;
    while store.put(stored, &value(stored, 1000)) {
        stored += 1;
        assert!(stored < 10_000, "the device never filled");
    }
    assert!(!store.journal.stalled(), "settling goes on");
    for key in 0..stored {
        store.now = store.now + Nanos::SECOND;
        store.remove(key);
    }
    assert!(store.values.contents().is_empty());
    store.now = store.now + Nanos::SECOND;
    store.settle();
    assert!(store.put(7, b"again"), "puts work once space is back");
    assert_eq!(reopened(&store).values.contents(), store.values.contents());
}

/// The rest of a segment is copied into the reserve only if all of it fits there, also if the copy
/// was begun before the device was full.
#[test]
fn full_device_drains_at_any_moment() {
    // Written when segments were larger: the rest of one is more than the reserve has.
    let large = JournalOptions { segment_bytes: 1024 * 1024, ..always() };
    let (reserve_bytes, frame_payload_bytes_max) = (48 * 1024, 24 * 1024);
    let small = JournalOptions { reserve_bytes, frame_payload_bytes_max, ..always() };
    let mut store = Store::open(&MemoryDisk::default(), large).unwrap();
    for key in 0..1200 {
        assert!(store.put(key, &value(key, 3900)));
    }
    (0..760).filter(|key| key % 5 < 3).for_each(|key| store.remove(key));
    assert!(store.put(1200, b"so that something lives in each segment"));
    let image = store.disk.image();
    for chores in 0..150 {
        let mut store = Store::open(&image.image(), small.clone()).unwrap();
        store.settle();
        (760..1200).filter(|key| key % 5 < 2).for_each(|key| store.append_remove(key));
        store.write_all();
        for _ in 0..chores {
            store.chore();
            store.write_all();
        }
        let quota = store.disk.bytes();
        store.disk.directory().quota = Some(quota);
        let mut keys: Vec<u64> = store.values.contents().into_keys().collect();
        keys.sort_by_key(|key| (key % 7, *key));
        for key in keys {
            store.now = store.now + Nanos::SECOND;
            store.settle();
            assert!(!store.journal.stalled(), "full after {chores} chores: {key} stays for ever");
            store.remove(key);
        }
        store.now = store.now + Nanos::SECOND;
        assert!(store.put(0, b"again"), "full after {chores} chores");
    }
}

#[test]
fn periodic_policy_confirms_writes_syncs_later() {
    let period = Nanos::from_millis(25);
    let options = tiny(StorePolicy::Periodic(period));
    let mut store = Store::open(&MemoryDisk::default(), options).unwrap();
    store.settle();
    store.now = Nanos::SECOND;
    store.append_put(1, b"one");
    let write = store.journal.poll_write(store.now).unwrap();
    assert!(!write.syncs());
    store.perform(write).unwrap();
    assert_eq!(store.journal.durable().written, Lsn(1));
    assert_eq!(store.journal.durable().synced, Lsn(0));
    assert!(store.journal.counters().unsynced_bytes > 0);
    assert!(store.journal.poll_write(store.now).is_none());
    assert_eq!(store.journal.poll_timeout(), Some(Nanos::SECOND + period));
    store.now = Nanos::SECOND + period;
    let sync = store.journal.poll_write(store.now).unwrap();
    assert!(sync.syncs() && sync.frames() == 0);
    store.perform(sync).unwrap();
    assert_eq!(store.journal.durable().synced, Lsn(1));
    assert_eq!(store.journal.counters().unsynced_bytes, 0);
    assert_eq!(store.journal.poll_timeout(), None);
}

#[test]
fn synced_frame_flushes_written_one_before() {
    let mut store = Store::open(&MemoryDisk::default(), always()).unwrap();
    store.settle();
    let syncs = store.disk.directory().syncs;
    store.level = Durability::Written;
    store.append_put(1, b"one");
    let written = store.journal.poll_write(store.now).unwrap();
    assert!(!written.syncs());
    store.level = Durability::Synced;
    store.append_put(2, b"two");
    assert!(store.journal.poll_write(store.now).is_none(), "it waits for what it must flush");
    store.perform(written).unwrap();
    let barrier = store.journal.poll_write(store.now).unwrap();
    store.append_put(3, b"three");
    assert!(store.journal.poll_write(store.now).is_none(), "a barrier is alone in flight");
    store.perform(barrier).unwrap();
    assert_eq!(store.journal.durable().synced, Lsn(2));
    assert_eq!(store.disk.directory().syncs, syncs + 1);
}

#[test]
fn failed_sync_ends_confirming_for_good() {
    let mut store =
        Store::open(&MemoryDisk::default(), tiny(StorePolicy::Periodic(Nanos(1)))).unwrap();
    store.settle();
    store.append_put(1, b"one");
    let write = store.journal.poll_write(store.now).unwrap();
    store.perform(write).unwrap();
    store.now = Nanos::SECOND;
    store.append_put(2, b"two");
    let sync = store.journal.poll_write(store.now).unwrap();
    store.disk.directory().fail_sync = true;
    let failed = store.perform(sync).unwrap_err();
    assert!(failed.to_string().contains("input/output error"), "{failed}");
    assert_eq!(store.journal.durable().synced, Lsn(0));
    assert!(store.journal.poll_write(store.now).is_none());
    assert!(store.journal.poll_chore(store.now).is_none());
}

#[test]
fn shutdown_leaves_nothing_to_replay() {
    let mut store = Store::open(&MemoryDisk::default(), always()).unwrap();
    for key in 0..100 {
        store.put(key, &value(key, 200));
    }
    store.journal.begin_shutdown();
    store.settle();
    assert!(store.journal.is_settled() && store.journal.is_tidy());
    let (again, recovered) = Store::recover(&store.disk.image(), always()).unwrap();
    assert_eq!(recovered.frames, 0);
    assert_eq!(recovered.snapshot, store.journal.counters().snapshots);
    assert_eq!(again.values.contents(), store.values.contents());
}

/// No client needs the room any more, and on a slow disk the end would wait for it.
#[test]
fn stop_prepares_no_room() {
    let disk = MemoryDisk::default();
    let mut store = Store::open(&disk, always()).unwrap();
    while !store.journal.stalled() {
        store.append_put(1, &value(1, 4000));
        store.write_all();
    }
    let lengths = || {
        let length = |name: String| (disk.file(&name).borrow().len(), name);
        disk.segments().into_iter().map(length).collect::<Vec<_>>()
    };
    let before = lengths();
    store.journal.begin_shutdown();
    store.settle();
    assert!(store.journal.is_settled() && store.journal.is_tidy());
    assert_eq!(lengths(), before);
    let mut again = reopened(&store);
    assert_eq!(again.values.contents(), store.values.contents());
    again.settle();
    assert!(!again.journal.stalled(), "the next one prepares it");
}

#[test]
fn flipped_bit_is_detected_or_harmless() {
    let mut store = Store::open(&MemoryDisk::default(), always()).unwrap();
    for key in 0..12 {
        store.put(key, &value(key, 40));
    }
    // The last batch may be taken for torn; everything before is known durable.
    let sure = store.values.contents();
    store.put(99, b"last");
    let [segment, ..] = &store.disk.segments()[..] else { panic!("no segment") };
    for byte in 0..14 * 4096 {
        if byte % 4096 > 160 {
            continue;
        }
        let image = store.disk.image();
        image.file(segment).borrow_mut()[byte] ^= 1 << (byte % 8);
        match Store::open(&image, always()) {
            Err(
                OpenError::Corrupt { .. } | OpenError::Missing { .. } | OpenError::Version { .. },
            ) => {}
            Err(other) => panic!("byte {byte}: {other}"),
            Ok(again) => {
                let found = again.values.contents();
                assert!(sure.iter().all(|(key, value)| found.get(key) == Some(value)), "{byte}");
            }
        }
    }
}

#[test]
fn rot_in_first_batch_is_refused() {
    let mut store = Store::open(&MemoryDisk::default(), always()).unwrap();
    for key in 0..60 {
        assert!(store.put(key, &value(key, 100)));
    }
    // Nothing says that the last batch was durable.
    let sure = store.values.contents().len() - 1;
    for name in store.disk.segments() {
        for byte in [4096, 4100, 4126, 4156] {
            let image = store.disk.image();
            image.file(&name).borrow_mut()[byte] ^= 1;
            let opened = Store::open(&image, always());
            let kept = opened.map_or(usize::MAX, |again| again.values.contents().len());
            assert!(kept >= sure, "{name} at {byte}: opened with {kept} values");
        }
    }
}

/// The bytes behind tell if the log ends, also if each segment's first mark is gone.
#[test]
fn mark_inside_later_segment_shows_loss() {
    let mut store = Store::open(&MemoryDisk::default(), always()).unwrap();
    for key in 0..60 {
        assert!(store.put(key, &value(key, 100)));
    }
    let image = store.disk.image();
    let mut later = image.segments().split_off(1);
    later.retain(|name| image.file(name).borrow()[2 * 4096..].iter().any(|byte| *byte != 0));
    assert!(later.len() > 1, "the log rolled twice");
    for name in &later {
        image.file(name).borrow_mut()[4096..2 * 4096].fill(0);
    }
    let opened = Store::open(&image, always());
    assert!(matches!(opened, Err(OpenError::Corrupt { .. })), "what is lost was confirmed");
}

/// The end of the batches of a segment, by its watermark; `None`: there is none. See
/// docs/reference/file-format.md.
fn reach(disk: &MemoryDisk, segment: &str) -> Option<u64> {
    let file = disk.file(segment);
    let bytes = file.borrow();
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    (number(512 + 24) > 0).then(|| number(512 + 48))
}

#[test]
fn start_without_snapshot_reads_segments_once() {
    let mut store = Store::open(&MemoryDisk::default(), always()).unwrap();
    for key in 0..60 {
        assert!(store.put(key, &value(key, 100)));
        let image = store.disk.image();
        let (again, recovered) = Store::recover(&image, always()).expect("the journal opens");
        assert_eq!(again.values.contents(), store.values.contents());
        if recovered.snapshot == 0 {
            let files = store.disk.segments();
            let reaches = files.iter().map(|name| reach(&store.disk, name).unwrap_or(4096));
            assert_eq!(recovered.bytes, reaches.map(|reach| reach - 4096).sum::<u64>());
        }
    }
}

#[test]
fn segment_recycled_only_after_log_continues() {
    for rounds in 0..260 {
        for chores in 1..8 {
            recycle_around_a_roll(rounds, chores);
        }
    }
}

/// Many rounds of put and remove, then some chores, then a frame that is never written, then all
/// chores. In some of these a snapshot is sealed right when that frame has rolled the log.
fn recycle_around_a_roll(rounds: u64, chores: u64) {
    let mut store = Store::open(&MemoryDisk::default(), always()).unwrap();
    assert!(store.put(1_000_000, b"lives for ever in the first segment"));
    for key in 0..rounds {
        store.append_put(key, &value(key, 100));
        store.write_all();
        store.append_remove(key);
        store.settle();
    }
    if store.journal.stalled() {
        return;
    }
    store.append_put(rounds, &value(rounds, 100));
    store.write_all();
    store.append_remove(rounds);
    store.write_all();
    for _ in 0..chores {
        store.chore();
    }
    if store.journal.stalled() {
        return;
    }
    let sure = store.values.contents();
    store.append_put(9999, b"not yet written");
    while store.chore() {}
    let again = Store::open(&store.disk.image(), always()).expect("nothing is damaged");
    assert_eq!(again.values.contents(), sure, "{rounds} rounds, {chores} chores");
}

#[test]
fn written_batch_overtaking_is_synced_later() {
    let options = tiny(StorePolicy::Periodic(Nanos::from_millis(25)));
    let mut store = Store::open(&MemoryDisk::default(), options).unwrap();
    store.settle();
    store.level = Durability::Synced;
    store.append_put(1, b"one");
    let synced = store.journal.poll_write(store.now).unwrap();
    store.level = Durability::Written;
    store.append_put(2, b"two");
    let written = store.journal.poll_write(store.now).unwrap();
    store.perform(written).unwrap();
    store.now = Nanos::from_millis(30);
    assert!(store.journal.poll_write(store.now).is_none(), "nothing is written in order yet");
    store.perform(synced).unwrap();
    assert_eq!(store.journal.durable().written, Lsn(2));
    assert_eq!(store.journal.durable().synced, Lsn(1));
    store.now = Nanos::from_millis(60);
    store.settle();
    assert_eq!(store.journal.durable().synced, Lsn(2));
    store.level = Durability::Synced;
    store.append_put(3, b"three");
    store.settle();
    assert_eq!(store.journal.durable().synced, Lsn(3));
}

#[test]
fn full_device_is_forgotten_when_idle() {
    let disk = MemoryDisk::default();
    let mut store = Store::open(&disk, always()).unwrap();
    store.settle();
    disk.directory().quota = Some(disk.bytes());
    store.journal.need_for_snapshot(1_000_000);
    let chore = store.journal.poll_chore(store.now).expect("the snapshot's files are to grow");
    let done = chore.perform(&disk);
    store.journal.handle_chore(store.now, done).unwrap();
    for _ in 0..10 {
        store.now = store.now + Nanos::SECOND;
        store.settle();
    }
    assert_eq!(store.journal.poll_timeout(), None, "there is nothing to be woken for");
}

#[test]
fn oversized_value_does_not_stop_compaction() {
    let once = JournalOptions {
        segment_bytes: 512 * 1024,
        frame_payload_bytes_max: 110_000,
        batch_bytes: 120_000,
        ..always()
    };
    let disk = MemoryDisk::default();
    let mut store = Store::open(&disk, once).unwrap();
    assert!(store.put(1, &value(1, 100_000)));
    for key in 10..20 {
        assert!(store.put(key, &value(key, 50_000)));
        store.remove(key);
    }
    drop(store);
    let mut store = Store::open(&disk, always()).unwrap();
    for key in 100..2000 {
        assert!(store.put(key, &value(key, 1000)));
        if key % 4 != 0 {
            store.remove(key);
        }
        let counters = store.journal.counters();
        let bound = counters.live_bytes * 2 + 12 * always().segment_bytes + 512 * 1024;
        assert!(counters.disk_bytes <= bound, "{counters:?} at {key}");
    }
    let counters = store.journal.counters();
    assert!(counters.compactions > 0, "{counters:?}");
    assert_eq!(counters.segments_too_large, 1, "{counters:?}");
    assert_eq!(reopened(&store).values.contents(), store.values.contents());
    store.remove(1);
    for key in 2000..2200 {
        assert!(store.put(key, &value(key, 1000)));
        store.remove(key);
    }
    assert_eq!(store.journal.counters().segments_too_large, 0, "it is gone");
}

/// A stop comes while a snapshot waits for a part of the log to be synced. The log behind that part
/// is synced too, although the device has no room for another snapshot.
#[test]
fn shutdown_syncs_beyond_the_snapshot() {
    let disk = MemoryDisk::default();
    let mut store = Store::open(&disk, tiny(StorePolicy::Never)).unwrap();
    store.settle();
    for key in 0.. {
        // There are so few keys that whole segments die: nothing is copied.
        store.append_put(key % 10, &value(key, 200));
        store.write_all();
        if store.journal.wants_snapshot() {
            break;
        }
        while let Some(chore) = store.journal.poll_chore(store.now) {
            let done = chore.perform(&disk);
            store.journal.handle_chore(store.now, done).unwrap();
        }
    }
    while store.journal.wants_snapshot() || store.journal.takes_snapshot_chunk() {
        assert!(store.chore());
    }
    store.append_put(1_000, b"behind the snapshot");
    let write = store.journal.poll_write(store.now).expect("it is to be written");
    store.append_put(1_001, b"behind that");
    store.journal.begin_shutdown();
    while store.chore() {}
    if let Some(sync) = store.journal.poll_write(store.now) {
        store.perform(sync).unwrap();
    }
    store.perform(write).unwrap();
    disk.directory().quota = Some(0);
    loop {
        while let Some(write) = store.journal.poll_write(store.now) {
            store.perform(write).unwrap();
        }
        if !store.chore() {
            break;
        }
    }
    assert_eq!(store.journal.durable().synced, store.journal.last());
    assert!(store.journal.is_settled() && store.journal.is_tidy());
}

#[test]
fn unwritten_bytes_are_bounded_by_option() {
    const CHOSEN: usize = 100_000;
    const FRAME: usize = 200;
    let options =
        JournalOptions { waiting_bytes_max: CHOSEN, ..JournalOptions::new(StorePolicy::Always) };
    let mut store = Store::open(&MemoryDisk::default(), options).unwrap();
    store.settle();
    let mut key = 0;
    while !store.journal.holds_back(0) {
        store.append_put(key, &value(key, 50));
        key += 1;
    }
    let adding = store.journal.unwritten().bytes;
    assert!((CHOSEN / 5 * 4..CHOSEN / 5 * 4 + FRAME).contains(&adding), "{adding}");
    while !store.journal.stalled() {
        key -= 1;
        store.append_remove(key);
    }
    let all = store.journal.unwritten().bytes;
    assert!((CHOSEN..CHOSEN + FRAME).contains(&all), "the rest is for what settles: {all}");
    store.write_all();
    assert!(!store.journal.holds_back(0));
}
