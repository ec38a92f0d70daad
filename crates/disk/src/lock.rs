//! One process per data directory: it locks the directory, and a file in it that holds the number
//! of the process.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, ftruncate, openat};
use rustix::io::{Errno, pread, pwrite, retry_on_intr};

use crate::DirectoryError;

/// The lock file. It stays behind when the process ends, the lock does not: the kernel drops it
/// with the process, however that ends.
pub(crate) const LOCK_NAME: &str = "lock";

/// Holds the directory, or keeps others from holding it, until it and the open directory are
/// dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: OwnedFd,
}

impl Lock {
    /// Takes the lock of an open directory, at once or not at all.
    pub(crate) fn take(directory: &OwnedFd, path: &Path) -> Result<Self, DirectoryError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let file = openat(directory, LOCK_NAME, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|errno| DirectoryError::io("open", &path.join(LOCK_NAME), errno))?;
        let operation = FlockOperation::NonBlockingLockExclusive;
        let locked = lock(&file, operation)
            .map_err(|errno| DirectoryError::io("lock", &path.join(LOCK_NAME), errno))?;
        if !locked || !lock_directory(directory, operation) {
            return Err(DirectoryError::InUse { path: path.to_owned(), process: holder(&file) });
        }
        name_holder(&file)
            .map_err(|errno| DirectoryError::io("write", &path.join(LOCK_NAME), errno))?;
        Ok(Self { _file: file })
    }

    /// Keeps every other process from taking the lock while its holder only looks, and writes
    /// nothing. A directory without a lock file was never used, or is an unused copy, or its lock
    /// file was removed.
    pub(crate) fn share(directory: &OwnedFd, path: &Path) -> Result<Option<Self>, DirectoryError> {
        let operation = FlockOperation::NonBlockingLockShared;
        let served = |process| DirectoryError::Served { path: path.to_owned(), process };
        let is_free = lock_directory(directory, operation);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = match openat(directory, LOCK_NAME, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return if is_free { Ok(None) } else { Err(served(None)) },
            Err(errno) => return Err(DirectoryError::io("open", &path.join(LOCK_NAME), errno)),
        };
        match lock(&file, operation) {
            Ok(locked) if locked && is_free => Ok(Some(Self { _file: file })),
            Ok(_) => Err(served(holder(&file))),
            Err(errno) => Err(DirectoryError::io("lock", &path.join(LOCK_NAME), errno)),
        }
    }
}

/// Returns true if it is locked now: no other process holds it.
fn lock(file: &OwnedFd, operation: FlockOperation) -> Result<bool, Errno> {
    match retry_on_intr(|| flock(file, operation)) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// The same of the directory itself, which cannot be removed and made anew meanwhile, as people do
/// with a lock file. If a file system locks no directories (NFS), the lock file has to do.
fn lock_directory(directory: &OwnedFd, operation: FlockOperation) -> bool {
    lock(directory, operation).unwrap_or(true)
}

fn name_holder(file: &OwnedFd) -> Result<(), Errno> {
    ftruncate(file, 0)?;
    let line = format!("{}\n", std::process::id());
    // The number only serves a message: the lock holds without it, on a full disk as well.
    match pwrite(file, line.as_bytes(), 0) {
        Ok(_) | Err(Errno::NOSPC | Errno::DQUOT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

fn holder(file: &OwnedFd) -> Option<u32> {
    let mut line = [0; 16];
    let count = pread(file.as_fd(), &mut line, 0).ok()?;
    let process: u32 = std::str::from_utf8(line.get(..count)?).ok()?.trim().parse().ok()?;
    // A process that only looks leaves no number: this may be that of a process long gone.
    Path::new(&format!("/proc/{process}")).exists().then_some(process)
}
