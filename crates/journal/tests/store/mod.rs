//! A disk in memory and a small keeper of values over the journal, for the journal's own tests.
//! Crashes and faults are the simulation's; this disk only counts, refuses and forgets on demand.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

pub mod faulty;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use journal::{
    Disk, DiskError, DiskErrorKind, Journal, JournalOptions, OpenError, PIECE_BYTES, Recover,
    Recovered, Write, WriteMode,
};
use model::{Durability, LiveRecords, Lsn, Nanos, StorePolicy};

/// Shared memory that stands for a directory.
#[derive(Clone, Default)]
pub struct MemoryDisk(Rc<RefCell<Directory>>);

#[derive(Default)]
pub struct Directory {
    pub files: BTreeMap<String, Rc<RefCell<Vec<u8>>>>,
    /// Bytes that all files together may have.
    pub quota: Option<u64>,
    pub writes_synced: u64,
    /// Calls that may have changed a file or a name.
    pub changes: u64,
    pub syncs: u64,
    pub salt: u64,
    /// `None`: as a disk has them that has no other wish.
    pub piece_bytes: Option<usize>,
    /// The next sync fails.
    pub fail_sync: bool,
}

#[derive(Clone)]
pub struct MemoryFile {
    name: String,
    bytes: Rc<RefCell<Vec<u8>>>,
}

impl MemoryDisk {
    pub fn directory(&self) -> std::cell::RefMut<'_, Directory> {
        self.0.borrow_mut()
    }

    pub fn file(&self, name: &str) -> Rc<RefCell<Vec<u8>>> {
        self.0.borrow().files[name].clone()
    }

    pub fn segments(&self) -> Vec<String> {
        let directory = self.0.borrow();
        directory.files.keys().filter(|name| name.ends_with(".segment")).cloned().collect()
    }

    pub fn bytes(&self) -> u64 {
        self.0.borrow().files.values().map(|file| file.borrow().len() as u64).sum()
    }

    /// An independent copy of all files.
    pub fn image(&self) -> Self {
        let copy = Self::default();
        copy.0.borrow_mut().piece_bytes = self.0.borrow().piece_bytes;
        for (name, bytes) in &self.0.borrow().files {
            let bytes = Rc::new(RefCell::new(bytes.borrow().clone()));
            copy.0.borrow_mut().files.insert(name.clone(), bytes);
        }
        copy
    }
}

fn error(kind: DiskErrorKind, operation: &'static str, file: &str, cause: &str) -> DiskError {
    DiskError { kind, operation, file: file.into(), cause: cause.into() }
}

impl Disk for MemoryDisk {
    type File = MemoryFile;

    fn salt(&self) -> u64 {
        self.0.borrow().salt
    }

    fn piece_bytes(&self) -> usize {
        self.0.borrow().piece_bytes.unwrap_or(PIECE_BYTES)
    }

    fn names(&self) -> Result<Vec<String>, DiskError> {
        Ok(self.0.borrow().files.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> Result<MemoryFile, DiskError> {
        let mut directory = self.0.borrow_mut();
        directory.changes += 1;
        assert!(!directory.files.contains_key(name), "{name} exists");
        let bytes = Rc::new(RefCell::new(Vec::new()));
        directory.files.insert(name.into(), bytes.clone());
        Ok(MemoryFile { name: name.into(), bytes })
    }

    fn open(&self, name: &str) -> Result<MemoryFile, DiskError> {
        let directory = self.0.borrow();
        let found = directory.files.get(name);
        let bytes = found.ok_or_else(|| error(DiskErrorKind::Failed, "open", name, "not found"))?;
        Ok(MemoryFile { name: name.into(), bytes: bytes.clone() })
    }

    fn length(&self, file: &MemoryFile) -> Result<u64, DiskError> {
        Ok(file.bytes.borrow().len() as u64)
    }

    fn read(&self, file: &MemoryFile, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        let bytes = file.bytes.borrow();
        let from = (offset as usize).min(bytes.len());
        let count = buffer.len().min(bytes.len() - from);
        buffer[..count].copy_from_slice(&bytes[from..from + count]);
        Ok(count)
    }

    fn shorten(&self, file: &MemoryFile, to: u64) -> Result<(), DiskError> {
        self.0.borrow_mut().changes += 1;
        file.bytes.borrow_mut().truncate(to as usize);
        Ok(())
    }

    fn write(
        &self,
        file: &MemoryFile,
        offset: u64,
        buffer: &[u8],
        mode: WriteMode,
    ) -> Result<(), DiskError> {
        let end = offset as usize + buffer.len();
        let grows = end.saturating_sub(file.bytes.borrow().len()) as u64;
        let quota = self.0.borrow().quota;
        if quota.is_some_and(|quota| grows > 0 && self.bytes() + grows > quota) {
            return Err(error(DiskErrorKind::Full, "write", &file.name, "no room"));
        }
        let mut bytes = file.bytes.borrow_mut();
        let length = bytes.len().max(end);
        bytes.resize(length, 0);
        bytes[offset as usize..end].copy_from_slice(buffer);
        let mut directory = self.0.borrow_mut();
        directory.changes += 1;
        directory.writes_synced += u64::from(mode == WriteMode::Synced);
        Ok(())
    }

    fn sync(&self, file: &MemoryFile) -> Result<(), DiskError> {
        let mut directory = self.0.borrow_mut();
        directory.syncs += 1;
        if std::mem::take(&mut directory.fail_sync) {
            return Err(error(DiskErrorKind::Failed, "sync", &file.name, "input/output error"));
        }
        Ok(())
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        let mut directory = self.0.borrow_mut();
        directory.changes += 1;
        assert!(!directory.files.contains_key(to), "{to} exists");
        let bytes = directory.files.remove(from).expect("the file to rename exists");
        directory.files.insert(to.into(), bytes);
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        let mut directory = self.0.borrow_mut();
        directory.changes += 1;
        directory.files.remove(name).expect("the file to remove exists");
        Ok(())
    }
}

/// Values by key: one operation a frame, `+ key value` or `- key`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values(pub BTreeMap<u64, (Lsn, Option<Vec<u8>>)>);

impl Values {
    pub fn contents(&self) -> BTreeMap<u64, Vec<u8>> {
        let present = self.0.iter();
        present.map(|(key, (_, value))| (*key, value.clone().expect("a value"))).collect()
    }
}

fn key_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().unwrap())
}

/// Fails if an operation is malformed.
fn check_operation(payload: &[u8]) -> Result<(), String> {
    let is_one = match payload {
        [b'+', rest @ ..] => rest.len() >= 8,
        [b'-', rest @ ..] => rest.len() == 8,
        _ => false,
    };
    if is_one { Ok(()) } else { Err("no operation".into()) }
}

impl Recover for Values {
    fn load(&mut self, chunk: &[u8]) -> Result<(), String> {
        if !chunk.len().is_multiple_of(16) {
            return Err("no entries".into());
        }
        for entry in chunk.chunks(16) {
            self.0.insert(key_of(entry), (Lsn(key_of(&entry[8..])), None));
        }
        Ok(())
    }

    fn replay(&mut self, lsn: Lsn, payload: &[u8], fuzzy: bool) -> Result<(), String> {
        check_operation(payload)?;
        let key = key_of(&payload[1..]);
        if payload[0] == b'+' {
            self.0.insert(key, (lsn, Some(payload[9..].to_vec())));
        } else if self.0.remove(&key).is_none() && !fuzzy {
            return Err(format!("frame {lsn} removes {key}, which is not there"));
        }
        Ok(())
    }

    fn wanted(&self) -> Vec<Lsn> {
        self.0.values().map(|(lsn, _)| *lsn).collect()
    }

    fn restore(&mut self, lsn: Lsn, payload: &[u8]) -> Result<(), String> {
        check_operation(payload)?;
        let (at, value) = self.0.get_mut(&key_of(&payload[1..])).ok_or("an unknown key")?;
        if *at == lsn {
            *value = Some(payload[9..].to_vec());
        }
        Ok(())
    }

    fn finish(&mut self, _last: Lsn) -> Result<(), String> {
        let missing = self.0.iter().find(|(_, (_, value))| value.is_none());
        missing.map_or(Ok(()), |(key, _)| Err(format!("{key} has no value")))
    }

    fn live(&self) -> impl Iterator<Item = (Lsn, u64)> {
        let live = self.0.values();
        live.map(|(lsn, value)| (*lsn, 9 + value.as_ref().unwrap().len() as u64))
    }

    fn snapshot_bytes(&self) -> u64 {
        16 * self.0.len() as u64
    }
}

/// A keeper of values: the smallest thing that uses every part of a journal.
pub struct Store {
    pub disk: MemoryDisk,
    pub journal: Journal<MemoryFile>,
    pub values: Values,
    pub level: Durability,
    pub now: Nanos,
    next: Lsn,
    snapshot_from: Option<u64>,
}

impl Store {
    pub fn open(disk: &MemoryDisk, options: JournalOptions) -> Result<Self, OpenError> {
        Self::recover(disk, options).map(|(store, _)| store)
    }

    pub fn recover(
        disk: &MemoryDisk,
        options: JournalOptions,
    ) -> Result<(Self, Recovered), OpenError> {
        let mut values = Values::default();
        let level = options.policy.durability(model::Persistence::Persistent);
        let (journal, recovered) = Journal::open(disk, options, &mut values)?;
        let next = recovered.last.next();
        let (disk, now) = (disk.clone(), Nanos::ZERO);
        let store = Self { disk, journal, values, level, now, next, snapshot_from: None };
        Ok((store, recovered))
    }

    /// Appends without writing. `false`: there is no room.
    pub fn append_put(&mut self, key: u64, value: &[u8]) -> bool {
        let mut payload = vec![b'+'];
        payload.extend_from_slice(&key.to_le_bytes());
        payload.extend_from_slice(value);
        if self.journal.room() < payload.len() as u64 {
            return false;
        }
        let before = self.values.0.insert(key, (self.next, Some(value.to_vec())));
        self.append(&payload, LiveRecords::one(payload.len() as u64));
        if let Some((lsn, Some(value))) = before {
            self.journal.free(lsn, 9 + value.len() as u64);
        }
        true
    }

    pub fn append_remove(&mut self, key: u64) {
        let (lsn, value) = self.values.0.remove(&key).expect("only what is there is removed");
        let mut payload = vec![b'-'];
        payload.extend_from_slice(&key.to_le_bytes());
        self.append(&payload, LiveRecords::NONE);
        self.journal.free(lsn, 9 + value.unwrap().len() as u64);
    }

    fn append(&mut self, payload: &[u8], live: LiveRecords) {
        self.journal.append(self.now, self.next, payload, self.level, live);
        self.next = self.next.next();
    }

    /// Puts and makes it durable.
    pub fn put(&mut self, key: u64, value: &[u8]) -> bool {
        self.settle();
        let stored = self.append_put(key, value);
        self.settle();
        stored
    }

    /// Removes and makes it durable.
    pub fn remove(&mut self, key: u64) {
        self.settle();
        self.append_remove(key);
        self.settle();
    }

    /// Performs all work until there is none.
    pub fn settle(&mut self) {
        loop {
            if let Some(write) = self.journal.poll_write(self.now) {
                self.perform(write).expect("the disk works");
            } else if !self.chore() {
                break;
            }
            self.journal.check();
        }
    }

    pub fn perform(&mut self, write: Write<MemoryFile>) -> Result<(), journal::JournalFailed> {
        let result = write.perform(&self.disk);
        self.journal.handle_write(self.now, write, result)
    }

    /// Performs all that is to be written, and no chore.
    pub fn write_all(&mut self) {
        while let Some(write) = self.journal.poll_write(self.now) {
            self.perform(write).expect("the disk works");
        }
    }

    /// Performs one chore; `false`: there was none.
    pub fn chore(&mut self) -> bool {
        self.journal.need_for_snapshot(16 * self.values.0.len() as u64 + 64);
        let Some(chore) = self.journal.poll_chore(self.now).or_else(|| self.snapshot()) else {
            return false;
        };
        let done = chore.perform(&self.disk);
        let old = self.journal.handle_chore(self.now, done).expect("the disk works");
        for (lsn, payload) in old.frames {
            if !self.restate(lsn, &payload) {
                break;
            }
        }
        true
    }

    /// `false`: there is no room now.
    fn restate(&mut self, lsn: Lsn, payload: &[u8]) -> bool {
        let key = key_of(&payload[1..]);
        let lives = self.values.0.get(&key).is_some_and(|(at, _)| *at == lsn);
        if payload[0] == b'+' && lives {
            if !self.journal.takes_restated(LiveRecords::one(payload.len() as u64)) {
                return false;
            }
            self.values.0.get_mut(&key).unwrap().0 = self.next;
            self.append(payload, LiveRecords::one(payload.len() as u64));
            self.journal.free(lsn, payload.len() as u64);
        }
        true
    }

    /// The next chunk: ten keys.
    fn snapshot(&mut self) -> Option<journal::LogChore<MemoryFile>> {
        if self.journal.wants_snapshot() {
            self.journal.begin_snapshot(self.now);
            self.snapshot_from = Some(0);
        }
        if !self.journal.takes_snapshot_chunk() {
            return None;
        }
        let from = self.snapshot_from.expect("a snapshot began");
        let mut chunk = Vec::new();
        let mut last_key = None;
        for (key, (lsn, _)) in self.values.0.range(from..).take(10) {
            chunk.extend_from_slice(&key.to_le_bytes());
            chunk.extend_from_slice(&lsn.0.to_le_bytes());
            last_key = Some(*key);
        }
        self.snapshot_from = last_key.map(|key| key + 1);
        Some(self.journal.snapshot_chunk(&chunk, last_key.is_none()))
    }
}

/// Tiny sizes, so that everything happens soon.
pub fn tiny(policy: StorePolicy) -> JournalOptions {
    JournalOptions {
        segment_bytes: 64 * 1024,
        extent_bytes: 16 * 1024,
        reserve_bytes: 16 * 1024,
        frame_payload_bytes_max: 4096,
        batch_bytes: 8192,
        ..JournalOptions::new(policy)
    }
}

/// A value that tells its key.
pub fn value(key: u64, bytes: usize) -> Vec<u8> {
    let mut value = format!("value of {key} ").into_bytes();
    value.resize(bytes, b'.');
    value
}
