//! Properties of a journal's reader that hold for any bytes in its files: run by the fuzzer in
//! `fuzz/`, and by a test.
//!
//! The files are those of a sound journal, and an input lists the changes in them. Checksums would
//! refuse nearly all of it, so they may be mended after the changes. Such files are like those that
//! a defect or an editor of the log might write.

use journal::{DumpEntry, JournalOptions, inspect, verify};
use model::{Lsn, StorePolicy};

use crate::store::{MemoryDisk, Store, Values, tiny, value};

const BLOCK: usize = 4096;

/// A bit of the first byte: checksums are right again after the changes.
pub(crate) const MENDED: u8 = 1;

/// A change: its kind, the file, the offset in it, and a number.
pub(crate) const CHANGE_BYTES: usize = 5;

/// The first byte and changes.
pub(crate) fn files(input: &[u8]) {
    let Some((first, changes)) = input.split_first() else { return };
    let disk = BASE.with(MemoryDisk::image);
    for change in changes.chunks_exact(CHANGE_BYTES) {
        apply(&disk, change);
    }
    if first & MENDED != 0 {
        mend(&disk);
    }
    // An order of segments that no journal wrote is not refused, but no journal goes on with it.
    if let Some(store) = read(&disk).filter(|_| first & MENDED == 0) {
        go_on(store);
    }
}

/// The same of a segment alone, with right checksums, which is looked at and checked and no more:
/// hundreds of times as many inputs in the same time. An input is only changes.
pub(crate) fn segment(input: &[u8]) {
    let disk = SEGMENT.with(MemoryDisk::image);
    for change in input.chunks_exact(CHANGE_BYTES) {
        apply(&disk, change);
    }
    mend(&disk);
    let mut looking = Looking::default();
    let looked = inspect(&disk, &mut |found: DumpEntry<'_>| looking.see(&found));
    assert!(looked.is_ok(), "nothing here fails but a disk: {looked:?}");
    looking.ended_batch();
    if let Ok(recovered) = verify(&disk, &mut Values::default()) {
        assert!(recovered.frames <= looking.frames, "{recovered:?} of {}", looking.frames);
    }
}

/// The findings in a segment, which must hang together.
#[derive(Default)]
struct Looking {
    /// The offset of the next batch, at least.
    offset: u64,
    /// Frames of the last batch that were not seen yet.
    missing: u32,
    /// The last frame.
    last: Lsn,
    /// All of them.
    frames: u64,
}

impl Looking {
    fn see(&mut self, found: &DumpEntry<'_>) {
        match found {
            DumpEntry::Batch { offset, lsn, frames, bytes, .. } => {
                self.ended_batch();
                assert!(*offset >= self.offset && offset.is_multiple_of(BLOCK as u64));
                assert!(self.last == Lsn::ZERO || lsn.0 == self.last.0.wrapping_add(1), "{lsn}");
                self.offset = offset + u64::from(*bytes);
                (self.missing, self.last) = (*frames, Lsn(lsn.0.wrapping_sub(1)));
            }
            DumpEntry::Frame { lsn, payload } => {
                assert!(self.missing > 0 && lsn.0 == self.last.0.wrapping_add(1));
                assert!(payload.len() < 16 * BLOCK);
                self.missing -= 1;
                self.frames += 1;
                self.last = *lsn;
            }
            _ => {}
        }
    }

    fn ended_batch(&self) {
        assert_eq!(self.missing, 0, "a batch has the frames that it says");
    }
}

/// How many files an input may change.
pub(crate) fn file_count() -> u8 {
    BASE.with(|disk| disk.directory().files.len() as u8)
}

/// All readers see the same, and reading changes nothing.
fn read(disk: &MemoryDisk) -> Option<Store> {
    let changes = || disk.directory().changes;
    let before = changes();
    let mut seen = 0;
    let looked = inspect(disk, &mut |found: DumpEntry<'_>| {
        seen += 1;
        // Payloads are but bytes.
        let is_payload = matches!(found, DumpEntry::Chunk { .. } | DumpEntry::Frame { .. });
        assert!(is_payload || !format!("{found:?}").is_empty());
    });
    assert!(looked.is_err() || seen <= 4 * (disk.bytes() + disk.directory().files.len() as u64));
    let mut values = Values::default();
    let verified = verify(disk, &mut values);
    assert_eq!(changes(), before, "looking changes nothing");
    match (Store::recover(disk, small()), verified) {
        (Ok((store, recovered)), Ok(verified)) => {
            assert_eq!(recovered, verified);
            assert_eq!(store.values, values);
            Some(store)
        }
        (Err(refused), Err(verified)) => {
            assert_eq!(refused.to_string(), verified.to_string());
            assert_eq!(changes(), before, "what was refused is as it was");
            None
        }
        (opened, verified) => {
            panic!("{:?}, but {verified:?}", opened.map(|(_, recovered)| recovered));
        }
    }
}

/// It is a journal like any other.
fn go_on(mut store: Store) {
    store.journal.check();
    let stored = store.append_put(1, b"one more");
    store.write_all();
    store.journal.check();
    let again = Store::open(&store.disk.image(), small()).expect("it was opened before");
    assert_eq!(again.values.contents(), store.values.contents(), "stored: {stored}");
}

/// As few blocks as there may be: it is copied and read several times for each input.
fn small() -> JournalOptions {
    JournalOptions {
        segment_bytes: 6 * BLOCK as u64,
        extent_bytes: BLOCK as u64,
        reserve_bytes: 2 * BLOCK as u64,
        frame_payload_bytes_max: 1_024,
        batch_bytes: 2 * BLOCK,
        ..JournalOptions::new(StorePolicy::Always)
    }
}

thread_local! {
    static BASE: MemoryDisk = base();
    static SEGMENT: MemoryDisk = lone_segment();
}

/// The first segment alone, as far as it was written.
fn lone_segment() -> MemoryDisk {
    let disk = MemoryDisk::default();
    (disk.directory().salt, disk.directory().piece_bytes) = (0x5a17, Some(2 * BLOCK));
    let mut store = Store::open(&disk, tiny(StorePolicy::Always)).expect("an empty journal");
    store.settle();
    for key in 0..3 {
        assert!(store.append_put(key, b"one") && store.append_put(key + 100, &value(key, 100)));
        store.settle();
    }
    let segments = disk.segments();
    let [first, ..] = &segments[..] else { panic!("no segment was written") };
    let written =
        disk.file(first).borrow().chunks(BLOCK).rposition(|it| it.iter().any(|it| *it > 0));
    disk.file(first).borrow_mut().truncate((written.expect("batches were") + 1) * BLOCK);
    disk.directory().files.retain(|name, _| name == first || name == "epoch");
    disk
}

/// Several segments and both snapshots, frames before and behind them.
fn base() -> MemoryDisk {
    let disk = MemoryDisk::default();
    (disk.directory().salt, disk.directory().piece_bytes) = (0x5a17, Some(2 * BLOCK));
    let mut store = Store::open(&disk, small()).expect("an empty journal");
    store.settle();
    for key in 0..10 {
        assert!(store.append_put(key, &value(key, 1_000)) && store.append_put(key + 100, b"two"));
        if key % 4 == 0 {
            // A batch of two blocks.
            (200..204).for_each(|more| assert!(store.append_put(key + more, &value(key, 900))));
        }
        store.settle();
        if key % 3 != 0 {
            store.remove(key);
        }
    }
    assert!(disk.segments().len() >= 2, "{:?}", disk.segments());
    disk
}

fn apply(disk: &MemoryDisk, change: &[u8]) {
    let &[what, file, low, high, number] = change else { return };
    let mut directory = disk.directory();
    let count = directory.files.len().max(1);
    let Some(name) = directory.files.keys().nth(usize::from(file) % count).cloned() else { return };
    if what % 9 == 8 {
        directory.files.remove(&name);
        return;
    }
    let mut bytes = directory.files[&name].borrow_mut();
    let at = usize::from(u16::from_le_bytes([low, high]));
    let blocks = bytes.len() / BLOCK;
    match what % 9 {
        0 if at < bytes.len() => bytes[at] = number,
        1 if at < bytes.len() => bytes[at] ^= number,
        2 if at < bytes.len() => bytes[at] = bytes[at].wrapping_add(number),
        3 if at + 8 <= bytes.len() => bytes[at..at + 8].fill(number),
        4 => bytes.truncate(at),
        5 => bytes.truncate(at / BLOCK * BLOCK),
        6 if blocks > 0 => {
            let (from, to) = (usize::from(number) % blocks * BLOCK, at / BLOCK % blocks * BLOCK);
            bytes.copy_within(from..from + BLOCK, to);
        }
        7 if blocks > 0 => {
            let to = at / BLOCK % blocks * BLOCK;
            bytes[to..to + BLOCK].fill(0);
        }
        _ => {}
    }
}

/// Makes all checksums right that can be found: docs/reference/file-format.md says where they are.
fn mend(disk: &MemoryDisk) {
    for (name, file) in &disk.directory().files {
        let bytes = &mut *file.borrow_mut();
        match name.as_str() {
            "epoch" => mend_one(bytes, 56, 0..56, 0),
            "snapshot-a" | "snapshot-b" => mend_snapshot(bytes),
            _ => mend_segment(bytes),
        }
    }
}

fn mend_segment(bytes: &mut [u8]) {
    mend_one(bytes, 32, 0..32, 0);
    mend_one(bytes, 44, 0..44, 0);
    mend_one(bytes, 572, 512..572, 0);
    let seed = bytes.get(24..32).map_or(0, crc32c::crc32c);
    let mut at = BLOCK;
    while at < bytes.len() {
        let (frames, batch) = (number(bytes, at + 36), number(bytes, at + 32));
        let mut next = mend_frame(bytes, at, seed);
        for _ in 0..frames.min(100) {
            let Some(frame) = next else { break };
            next = mend_frame(bytes, frame, seed);
        }
        at += (batch as usize / BLOCK).clamp(1, 8) * BLOCK;
    }
}

/// Gives where the next one begins.
fn mend_frame(bytes: &mut [u8], at: usize, seed: u32) -> Option<usize> {
    let length = number(bytes, at) as usize;
    let end = at.checked_add(24 + length).filter(|end| *end <= bytes.len())?;
    mend_one(bytes, at + 4, at + 8..end, seed);
    Some(end)
}

fn mend_snapshot(bytes: &mut [u8]) {
    mend_one(bytes, 56, 0..56, 0);
    mend_one(bytes, 68, 0..68, 0);
    let seed = bytes.get(16..24).map_or(0, crc32c::crc32c);
    let mut at = BLOCK;
    while at + 8 < bytes.len() {
        let end = (at + 8).saturating_add(number(bytes, at) as usize);
        if end > bytes.len() || end == at + 8 {
            break;
        }
        mend_one(bytes, at + 4, at + 8..end, seed);
        at = end;
    }
}

/// Writes the checksum of a range.
fn mend_one(bytes: &mut [u8], at: usize, range: std::ops::Range<usize>, seed: u32) {
    let Some(checked) = bytes.get(range) else { return };
    let crc = crc32c::crc32c_append(seed, checked);
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&crc.to_le_bytes());
    }
}

/// Zero if the bytes end before.
fn number(bytes: &[u8], at: usize) -> u32 {
    let raw = bytes.get(at..at + 4).and_then(|raw| raw.try_into().ok());
    raw.map_or(0, u32::from_le_bytes)
}
