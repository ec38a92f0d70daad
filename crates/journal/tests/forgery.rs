//! Clients choose the bytes of bodies, and bodies stay in files that are used again: any bytes in
//! them must never be taken for the journal's own.

use journal::{JournalOptions, OpenError};
use model::StorePolicy;

use crate::store::{MemoryDisk, Store, tiny};

const BLOCK: usize = 4096;
const MARK_BYTES: usize = 64;
/// Mark, frame header, and the key before the value.
const VALUE_AT: usize = MARK_BYTES + 24 + 9;

/// The salt that the journal drew, and one that a client might guess.
const SALT: u64 = 0x1234_5678_9ABC_DEF0;
const GUESS: u64 = 7;

fn options() -> JournalOptions {
    tiny(StorePolicy::Always)
}

fn salted_disk() -> MemoryDisk {
    let disk = MemoryDisk::default();
    disk.directory().salt = SALT;
    disk
}

/// A mark as a client could make one up.
#[derive(Clone, Copy)]
struct Forged {
    lsn: u64,
    epoch: u32,
    segment: u64,
    synced: u64,
    /// `None`: as in version 1, which has none.
    salt: Option<u64>,
}

impl Forged {
    fn bytes(self) -> [u8; MARK_BYTES] {
        let mut mark = [0; MARK_BYTES];
        let payload: u32 = if self.salt.is_some() { 40 } else { 32 };
        let end = 24 + payload as usize;
        mark[..4].copy_from_slice(&payload.to_le_bytes());
        mark[8..16].copy_from_slice(&self.lsn.to_le_bytes());
        mark[16..20].copy_from_slice(&self.epoch.to_le_bytes());
        mark[20] = 1;
        mark[24..32].copy_from_slice(&self.segment.to_le_bytes());
        mark[32..36].copy_from_slice(&(BLOCK as u32).to_le_bytes());
        mark[40..48].copy_from_slice(&self.synced.to_le_bytes());
        mark[56..].copy_from_slice(&self.salt.unwrap_or_default().to_le_bytes());
        let seed = self.salt.map_or(0, |salt| crc32c::crc32c(&salt.to_le_bytes()));
        let crc = crc32c::crc32c_append(seed, &mark[8..end]);
        mark[4..8].copy_from_slice(&crc.to_le_bytes());
        mark
    }
}

/// A value of which the batch has `mark` at the start of its second block.
fn value_with(mark: Forged) -> Vec<u8> {
    let mut value = vec![b'.'; BLOCK - VALUE_AT];
    value.extend_from_slice(&mark.bytes());
    value
}

#[test]
fn forged_mark_in_recycled_segment_ignored() {
    for (segment, salt) in (2..30).flat_map(|number| [(number, None), (number, Some(GUESS))]) {
        let mark = Forged { lsn: 1 << 40, epoch: 1, segment, synced: 1 << 40, salt };
        let mut store = Store::open(&salted_disk(), options()).unwrap();
        for key in 0..150 {
            assert!(store.put(key, &value_with(mark)));
            store.remove(key);
            let again = Store::open(&store.disk.image(), options());
            let again = again.unwrap_or_else(|error| panic!("segment {segment}: {error}"));
            assert_eq!(again.values.contents(), store.values.contents());
        }
        assert!(store.journal.counters().segments_recycled > 3, "files were used again");
    }
}

/// Opens a journal with `behind` at the place where the log would go on, as if an earlier life of
/// the file had left it.
fn opened_with(behind: Forged) -> Result<Store, OpenError> {
    let disk = salted_disk();
    let mut store = Store::open(&disk, options()).unwrap();
    assert!(store.put(1, b"one"));
    let [segment, ..] = &disk.segments()[..] else { panic!("no segment") };
    let end = 2 * BLOCK;
    disk.file(segment).borrow_mut()[end..end + MARK_BYTES].copy_from_slice(&behind.bytes());
    Store::open(&disk, options())
}

#[test]
fn forged_body_behind_end_is_ignored() {
    for salt in [None, Some(GUESS), Some(0)] {
        let forged = Forged { lsn: 2, epoch: u32::MAX, segment: 1, synced: 1, salt };
        let mut again = opened_with(forged).unwrap();
        assert!(again.put(2, b"two"));
        let third = Store::open(&again.disk.image(), options()).unwrap();
        assert_eq!(third.values.contents(), again.values.contents(), "{salt:?}");
    }
}

/// Proves that the tests above can fail: a mark with the salt is believed.
#[test]
fn mark_with_the_salt_counts() {
    let claim = Forged { lsn: 9, epoch: 1, segment: 1, synced: 9, salt: Some(SALT) };
    assert!(matches!(opened_with(claim), Err(OpenError::Corrupt { .. })));
    let batch = Forged { lsn: 2, epoch: u32::MAX, segment: 1, synced: 1, salt: Some(SALT) };
    let refused = opened_with(batch).err().expect("its epoch is the last there is");
    assert!(refused.to_string().contains("no number is left"), "{refused}");
}
