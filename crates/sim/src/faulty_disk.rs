//! A [`Disk`] in memory that breaks its promises exactly as far as the trait's contract lets it.
//!
//! Every call has a number, counted from 1; a [`Fault`] can be set for any of them, or strike at
//! random. A call touches [`Image`]s (file contents) and names. Names, like sectors, each reach the
//! device on their own until the directory is synced. After [`Fault::Crash`] every call fails until
//! the simulation names the kind of crash: [`FaultyDisk::kill`] (the process died) or
//! [`FaultyDisk::cut_power`]. Handles die with either.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use journal::{BLOCK_BYTES, Disk, DiskError, DiskErrorKind, WriteMode};
use model::Nanos;

use crate::{Extent, Image, Rng};

/// A directory of files in memory. Cloning gives another handle to the same one.
#[derive(Clone, Debug)]
pub struct FaultyDisk(Rc<RefCell<State>>);

/// An open file. Dies at a crash.
#[derive(Clone, Debug)]
pub struct FaultyFile {
    inode: u64,
    epoch: u64,
}

/// A fault of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// EIO; any part may have happened. A failed sync forgets the bytes that it did not write.
    Io,
    /// ENOSPC, even within the quota; a prefix may have been written.
    Full,
    /// A write that stops early.
    Short,
    /// Nothing fails, but the caller hears of it [`FaultyDisk::STALL`] later.
    Slow,
    /// The process or the machine stops; the caller never hears of it.
    Crash(Moment),
}

/// When, as seen from the call, a crash comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nothing of it happened.
    Before,
    /// Any part of it happened.
    During,
    /// All of it happened.
    After,
}

impl FaultyDisk {
    /// The time that a slow call takes.
    pub const STALL: Nanos = Nanos::from_secs(5);

    /// An empty directory without faults; the seed decides the bytes that crashes and faults leave.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Rc::new(RefCell::new(State {
            inodes: BTreeMap::new(),
            next_inode: 1,
            next_change: 1,
            epoch: 0,
            calls: 0,
            stopped: false,
            faults: BTreeMap::new(),
            random: None,
            struck: Vec::new(),
            is_slow: false,
            quota: None,
            trace: false,
            rng: Rng::new(seed),
        })))
    }

    /// A directory with the same state that goes its own way from now on.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self(Rc::new(RefCell::new(self.0.borrow().clone())))
    }

    /// The calls so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.0.borrow().calls
    }

    /// Lets the call of that number fail.
    pub fn inject(&self, call: u64, fault: Fault) {
        self.0.borrow_mut().faults.insert(call, fault);
    }

    /// Lets each call fail with one of the faults, `per_million` of them.
    pub fn inject_at_random(&self, per_million: u64, faults: &[Fault]) {
        self.0.borrow_mut().random = Some((per_million, faults.to_vec()));
    }

    /// Takes an injected fault back, if it has not struck.
    pub fn withdraw(&self, call: u64) {
        self.0.borrow_mut().faults.remove(&call);
    }

    /// The faults that struck since this was last called, each with its call.
    #[must_use]
    pub fn take_struck(&self) -> Vec<(u64, Fault)> {
        std::mem::take(&mut self.0.borrow_mut().struck)
    }

    /// True if a fault struck since [`FaultyDisk::take_struck`].
    #[must_use]
    pub fn has_struck(&self) -> bool {
        !self.0.borrow().struck.is_empty()
    }

    /// True if a call since the last question takes [`FaultyDisk::STALL`]. The disk has no clock:
    /// the simulation lets the time pass.
    #[must_use]
    pub fn take_slow(&self) -> bool {
        std::mem::take(&mut self.0.borrow_mut().is_slow)
    }

    /// The room for all files together; `None`: endless.
    pub fn set_quota(&self, bytes: Option<u64>) {
        self.0.borrow_mut().quota = bytes;
    }

    /// The bytes that all files hold.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.0.borrow().used()
    }

    /// How many segments there are.
    #[must_use]
    pub fn segments(&self) -> usize {
        let state = self.0.borrow();
        let names = state.inodes.values().filter_map(|inode| inode.name.as_deref());
        names.filter(|name| name.ends_with(".segment")).count()
    }

    /// Prints each call to standard error.
    pub fn set_trace(&self, on: bool) {
        self.0.borrow_mut().trace = on;
    }

    /// True if a [`Fault::Crash`] struck and was not yet followed by a crash.
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.0.borrow().stopped
    }

    /// Performs calls that were in flight when the crash came: they stop at any point.
    pub fn in_flight(&self, calls: impl FnOnce()) {
        let random = {
            let mut state = self.0.borrow_mut();
            state.stopped = false;
            state.random.replace((600_000, vec![Fault::Crash(Moment::During)]))
        };
        calls();
        let mut state = self.0.borrow_mut();
        state.random = random;
        state.stopped = true;
    }

    /// Lets a test read beside the simulation: no fault strikes, and nothing is counted.
    pub fn unnoticed<T>(&self, read: impl FnOnce() -> T) -> T {
        let noticed = |state: &mut State| {
            let faults = (std::mem::take(&mut state.faults), state.random.take());
            (faults, std::mem::take(&mut state.stopped), std::mem::take(&mut state.trace))
        };
        let (calls, before) = {
            let mut state = self.0.borrow_mut();
            (state.calls, noticed(&mut state))
        };
        let read = read();
        let mut state = self.0.borrow_mut();
        state.calls = calls;
        ((state.faults, state.random), state.stopped, state.trace) = before;
        read
    }

    /// Lets a test look beside the simulation: no fault strikes, and nothing is counted or drawn.
    ///
    /// # Panics
    /// When it changed anything.
    pub fn undisturbed<T>(&self, look: impl FnOnce() -> T) -> T {
        let before = {
            let mut state = self.0.borrow_mut();
            let before = state.clone();
            state.faults.clear();
            (state.random, state.stopped, state.trace) = (None, false, false);
            before
        };
        let seen = look();
        let after = self.0.replace(before);
        assert!(after.holds_the_same_as(&self.0.borrow()), "who only looks changes nothing");
        seen
    }

    /// The process died: all that it wrote is still there, and still unsynced.
    pub fn kill(&self) {
        self.0.borrow_mut().restart();
    }

    /// The machine lost power: unsynced bytes are kept, lost, or mixed with those before them.
    pub fn cut_power(&self) {
        let mut state = self.0.borrow_mut();
        state.lose_unsynced();
        state.restart();
    }

    /// The names and lengths of all files.
    #[must_use]
    pub fn files(&self) -> Vec<(String, u64)> {
        let state = self.0.borrow();
        let named = |inode: &Inode| Some((inode.name.clone()?, inode.image.cache().len() as u64));
        let mut files: Vec<_> = state.inodes.values().filter_map(named).collect();
        files.sort();
        files
    }

    /// The bytes that a reader of the file would see.
    ///
    /// # Panics
    /// When there is no such file.
    #[must_use]
    pub fn content(&self, name: &str) -> Vec<u8> {
        let state = self.0.borrow();
        let inode = state.find(name).expect("the file exists");
        state.inodes.get(&inode).expect("invariant: found").image.cache().to_vec()
    }

    /// Turns bits of one byte of a file over, at rest.
    ///
    /// # Panics
    /// When there is no such file or byte.
    pub fn rot(&self, name: &str, offset: u64, mask: u8) {
        let mut state = self.0.borrow_mut();
        let inode = state.find(name).expect("the file exists");
        let inode = state.inodes.get_mut(&inode).expect("invariant: found");
        inode.image.rot(offset as usize, mask);
    }

    /// One call: counts it, decides its fault, lets as much happen as the fault allows.
    fn call<T>(
        &self,
        operation: &'static str,
        file: &str,
        act: impl FnOnce(&mut State, Option<Fault>) -> Result<T, Refusal>,
    ) -> Result<T, DiskError> {
        let mut state = self.0.borrow_mut();
        let error = |(kind, cause): Refusal| DiskError {
            kind,
            operation,
            file: file.to_owned(),
            cause: cause.to_owned(),
        };
        if state.stopped {
            return Err(error(STOPPED));
        }
        let fault = state.next_fault();
        let outcome = act(&mut state, fault);
        let outcome = match fault {
            None => outcome,
            Some(Fault::Io) => Err((DiskErrorKind::Failed, "injected: EIO")),
            Some(Fault::Full) => Err((DiskErrorKind::Full, "injected: ENOSPC")),
            Some(Fault::Short) => Err((DiskErrorKind::Failed, "injected: short write")),
            Some(Fault::Slow) => unreachable!("it is no failure"),
            Some(Fault::Crash(_)) => {
                state.stopped = true;
                Err(STOPPED)
            }
        };
        if state.trace {
            let calls = state.calls;
            let said = outcome.as_ref().err().map_or("", |(_, cause)| cause);
            eprintln!("    disk {calls}: {operation} {file} {said}");
        }
        outcome.map_err(error)
    }

    fn label(&self, file: &FaultyFile) -> String {
        let state = self.0.borrow();
        let inode = state.inodes.get(&file.inode).filter(|_| file.epoch == state.epoch);
        inode.and_then(|inode| inode.name.clone()).unwrap_or_else(|| "(no name)".to_owned())
    }
}

impl Disk for FaultyDisk {
    type File = FaultyFile;

    /// Another one for each process, and the same for the same seed.
    fn salt(&self) -> u64 {
        self.0.borrow().epoch + 0x5A17
    }

    /// Small, so that a read of a segment comes in many pieces.
    fn piece_bytes(&self) -> usize {
        2 * BLOCK_BYTES
    }

    fn names(&self) -> Result<Vec<String>, DiskError> {
        self.call("list", ".", |state, _| {
            // In no particular order: code that relies on an order fails here.
            let mut names: Vec<String> =
                state.inodes.values().filter_map(|inode| inode.name.clone()).collect();
            for last in (1..names.len()).rev() {
                names.swap(last, state.rng.index(last + 1));
            }
            Ok(names)
        })
    }

    fn create(&self, name: &str) -> Result<FaultyFile, DiskError> {
        self.call("create", name, |state, fault| {
            if state.find(name).is_some() {
                return Err((DiskErrorKind::Failed, "file exists"));
            }
            let inode = state.next_inode;
            // For want of room nothing is made, as the trait says.
            if fault != Some(Fault::Full) && state.happens(fault) {
                state.next_inode += 1;
                state.inodes.insert(inode, Inode::default());
                state.rename(inode, Some(name));
            }
            Ok(FaultyFile { inode, epoch: state.epoch })
        })
    }

    fn open(&self, name: &str) -> Result<FaultyFile, DiskError> {
        self.call("open", name, |state, _| {
            let inode = state.find(name).ok_or(NO_FILE)?;
            Ok(FaultyFile { inode, epoch: state.epoch })
        })
    }

    fn length(&self, file: &FaultyFile) -> Result<u64, DiskError> {
        self.call("measure", &self.label(file), |state, _| {
            Ok(state.image(file)?.cache().len() as u64)
        })
    }

    fn read(&self, file: &FaultyFile, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        self.call("read", &self.label(file), |state, _| {
            let content = state.image(file)?.cache();
            let available = content.get(offset as usize..).unwrap_or_default();
            let bytes = available.len().min(buffer.len());
            for (byte, source) in buffer.iter_mut().zip(available) {
                *byte = *source;
            }
            Ok(bytes)
        })
    }

    fn write(
        &self,
        file: &FaultyFile,
        offset: u64,
        buffer: &[u8],
        mode: WriteMode,
    ) -> Result<(), DiskError> {
        let operation = match mode {
            WriteMode::Written => "write",
            WriteMode::Synced => "write synced",
        };
        self.call(operation, &self.label(file), |state, fault| {
            state.write(file, offset as usize, buffer, mode, fault)
        })
    }

    fn shorten(&self, file: &FaultyFile, to: u64) -> Result<(), DiskError> {
        self.call("shorten", &self.label(file), |state, fault| {
            if state.happens(fault) {
                state.image(file)?.shorten(to as usize);
            }
            Ok(())
        })
    }

    fn sync(&self, file: &FaultyFile) -> Result<(), DiskError> {
        self.call("sync", &self.label(file), |state, fault| {
            let mut rng = state.rng.fork();
            let image = state.image(file)?;
            match fault {
                None | Some(Fault::Slow | Fault::Crash(Moment::After)) => image.sync(),
                // Each state that it may leave is one of the outcomes of a crash without it.
                Some(Fault::Crash(_)) => {}
                Some(Fault::Io | Fault::Full | Fault::Short) => image.fail_sync(&mut rng),
            }
            Ok(())
        })
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        self.call("sync", ".", |state, fault| {
            if state.happens(fault) {
                state.sync_names();
            }
            Ok(())
        })
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.call("rename", from, |state, fault| {
            let inode = state.find(from).ok_or(NO_FILE)?;
            if state.find(to).is_some() {
                return Err((DiskErrorKind::Failed, "a file has the new name"));
            }
            if state.happens(fault) {
                state.rename(inode, Some(to));
            }
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.call("remove", name, |state, fault| {
            let inode = state.find(name).ok_or(NO_FILE)?;
            if state.happens(fault) {
                state.rename(inode, None);
            }
            Ok(())
        })
    }
}

#[derive(Clone, Debug)]
struct State {
    inodes: BTreeMap<u64, Inode>,
    next_inode: u64,
    /// Numbers the changes of names, so that of two files with one name the later has it.
    next_change: u64,
    /// Counts crashes; a handle of an earlier epoch is dead.
    epoch: u64,
    calls: u64,
    stopped: bool,
    faults: BTreeMap<u64, Fault>,
    random: Option<(u64, Vec<Fault>)>,
    struck: Vec<(u64, Fault)>,
    /// A call was slow, and no caller of [`FaultyDisk::take_slow`] has heard of it yet.
    is_slow: bool,
    quota: Option<u64>,
    trace: bool,
    rng: Rng,
}

#[derive(Clone, Debug, Default)]
struct Inode {
    image: Image,
    /// The name that it has now; `None`: removed.
    name: Option<String>,
    /// The name that it has for certain after a power cut, and the change that gave it.
    durable: Name,
    /// Names that it had since then, oldest first.
    pending: Vec<Name>,
}

#[derive(Clone, Debug, Default)]
struct Name {
    name: Option<String>,
    change: u64,
}

type Refusal = (DiskErrorKind, &'static str);

impl State {
    fn next_fault(&mut self) -> Option<Fault> {
        self.calls += 1;
        let mut fault = self.faults.remove(&self.calls);
        // A call that can have no fault draws none: the number of reads of a file does not change
        // the outcome of a power cut.
        if let (None, Some((per_million @ 1.., faults))) = (fault, &self.random)
            && self.rng.chance(*per_million, 1_000_000)
        {
            fault = Some(self.rng.pick(faults));
        }
        if fault == Some(Fault::Slow) {
            self.is_slow = true;
            return None;
        }
        self.struck.extend(fault.map(|fault| (self.calls, fault)));
        fault
    }

    fn find(&self, name: &str) -> Option<u64> {
        let called = |(_, inode): &(&u64, &Inode)| inode.name.as_deref() == Some(name);
        self.inodes.iter().find(called).map(|(number, _)| *number)
    }

    fn image(&mut self, file: &FaultyFile) -> Result<&mut Image, Refusal> {
        if file.epoch != self.epoch {
            return Err((DiskErrorKind::Failed, "the handle died in a crash"));
        }
        self.inodes.get_mut(&file.inode).map(|inode| &mut inode.image).ok_or(NO_FILE)
    }

    fn write(
        &mut self,
        file: &FaultyFile,
        offset: usize,
        buffer: &[u8],
        mode: WriteMode,
        fault: Option<Fault>,
    ) -> Result<(), Refusal> {
        let mut rng = self.rng.fork();
        let used = self.used();
        let quota = self.quota;
        let image = self.image(file)?;
        let growth = (offset + buffer.len()).saturating_sub(image.cache().len()) as u64;
        if quota.is_some_and(|quota| growth > 0 && used + growth > quota) {
            return Err((DiskErrorKind::Full, "no space left on device"));
        }
        match (extent(fault), mode) {
            (Extent::Whole, WriteMode::Written) => image.write(offset, buffer),
            (Extent::Whole, WriteMode::Synced) => image.write_synced(offset, buffer),
            (Extent::Scattered, WriteMode::Synced) if fault == Some(Fault::Io) => {
                image.fail_write_synced(offset, buffer, &mut rng);
            }
            (extent, _) => image.write_part(offset, buffer, extent, &mut rng),
        }
        Ok(())
    }

    /// True if a call that cannot be partial happens at all.
    fn happens(&mut self, fault: Option<Fault>) -> bool {
        match extent(fault) {
            Extent::Whole => true,
            Extent::Nothing => false,
            Extent::Prefix | Extent::Scattered => self.rng.coin(),
        }
    }

    fn rename(&mut self, inode: u64, name: Option<&str>) {
        let change = self.next_change;
        self.next_change += 1;
        let inode = self.inodes.get_mut(&inode).expect("invariant: the caller found it");
        inode.name = name.map(str::to_owned);
        inode.pending.push(Name { name: inode.name.clone(), change });
    }

    fn sync_names(&mut self) {
        for inode in self.inodes.values_mut() {
            if let Some(newest) = inode.pending.pop() {
                inode.durable = newest;
                inode.pending.clear();
            }
        }
        self.inodes.retain(|_, inode| inode.name.is_some());
    }

    fn lose_unsynced(&mut self) {
        let mut owners: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (number, inode) in &mut self.inodes {
            inode.image.power_cut(&mut self.rng);
            let chosen = self.rng.index(inode.pending.len() + 1);
            if let Some(name) = chosen.checked_sub(1).and_then(|i| inode.pending.get(i)) {
                inode.durable = name.clone();
            }
            inode.pending.clear();
            inode.name.clone_from(&inode.durable.name);
            if let Some(name) = &inode.name {
                let owner = owners.entry(name.clone()).or_insert((0, 0));
                *owner = (*owner).max((inode.durable.change, *number));
            }
        }
        let owned = |number: &u64, inode: &Inode| {
            let owner = inode.name.as_ref().and_then(|name| owners.get(name));
            owner.is_some_and(|(_, owner)| owner == number)
        };
        self.inodes.retain(|number, inode| owned(number, inode));
    }

    fn holds_the_same_as(&self, other: &Self) -> bool {
        let same = |(a, b): (&Inode, &Inode)| {
            a.name == b.name && a.pending.len() == b.pending.len() && a.image == b.image
        };
        self.inodes.keys().eq(other.inodes.keys())
            && self.inodes.values().zip(other.inodes.values()).all(same)
    }

    fn restart(&mut self) {
        self.inodes.values_mut().for_each(|inode| inode.image.end_process());
        self.epoch += 1;
        self.stopped = false;
    }

    fn used(&self) -> u64 {
        let named = self.inodes.values().filter(|inode| inode.name.is_some());
        named.map(|inode| inode.image.cache().len() as u64).sum()
    }
}

fn extent(fault: Option<Fault>) -> Extent {
    match fault {
        None | Some(Fault::Slow | Fault::Crash(Moment::After)) => Extent::Whole,
        Some(Fault::Crash(Moment::Before)) => Extent::Nothing,
        Some(Fault::Full | Fault::Short) => Extent::Prefix,
        Some(Fault::Io | Fault::Crash(Moment::During)) => Extent::Scattered,
    }
}

const STOPPED: Refusal = (DiskErrorKind::Failed, "the machine has stopped");
const NO_FILE: Refusal = (DiskErrorKind::Failed, "no such file");

#[cfg(test)]
#[path = "faulty_disk_test.rs"]
mod tests;
