//! An open file: one descriptor through the page cache and, if the method is direct, a second one
//! past it.
//!
//! Both may be used on one file. The kernel writes back the cached pages of a range before it is
//! read or written past them, and drops them before it is written. So the two never disagree about
//! blocks that are written one way at a time. The journal writes so: a block belongs to one write.
//! Writes that need no sync take the cached way in either method: they cost microseconds there and
//! a device's round trip past the cache.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use journal::BLOCK_BYTES;
use rustix::fs::{AtFlags, Mode, OFlags, open, openat, unlinkat};
use rustix::io::{Errno, pread, pwrite, retry_on_intr};

use crate::Method;

/// An open file. Cloning gives another handle to the same file.
#[derive(Clone, Debug)]
pub struct File {
    handles: Arc<Handles>,
}

#[derive(Debug)]
struct Handles {
    /// As it was opened; a renaming does not change it. Only errors show it.
    path: PathBuf,
    cached: OwnedFd,
    /// Opened with `O_DIRECT | O_DSYNC`.
    direct: Option<OwnedFd>,
    /// The result of the last flush of `cached`.
    flushed: Mutex<Result<(), Errno>>,
}

/// The purpose for which a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// To be read.
    Look,
    /// To be read and written.
    Write,
    /// To be made, read and written.
    Create,
}

impl File {
    pub(crate) fn open(
        directory: &OwnedFd,
        path: PathBuf,
        name: &str,
        access: Access,
        method: Method,
    ) -> Result<Self, Errno> {
        let base = OFlags::RDWR | OFlags::CLOEXEC;
        let flags = match access {
            Access::Look => OFlags::RDONLY | OFlags::CLOEXEC,
            Access::Write => base,
            Access::Create => base | OFlags::CREATE | OFlags::EXCL,
        };
        let cached = openat(directory, name, flags, Mode::RUSR | Mode::WUSR)?;
        let direct = match method {
            _ if access == Access::Look => None,
            Method::Buffered => None,
            Method::Direct => {
                let flags = base | OFlags::DIRECT | OFlags::DSYNC;
                let opened = openat(directory, name, flags, Mode::empty());
                if opened.is_err() && access == Access::Create {
                    // The file was not made then, so that it can be when there are descriptors
                    // again. A file that stays made is an I/O error, not one of room, which might
                    // be waited out.
                    unlinkat(directory, name, AtFlags::empty()).map_err(|_| Errno::IO)?;
                }
                Some(opened?)
            }
        };
        let flushed = Mutex::new(Ok(()));
        Ok(Self { handles: Arc::new(Handles { path, cached, direct, flushed }) })
    }

    /// Flushes the bytes that went through the page cache, one flush after another, and none after
    /// one has failed. The kernel reports an error to one of the flushing threads, even for the
    /// bytes of another. With two at once, the other one would be told that its own are safe.
    pub(crate) fn flush(
        &self,
        flush: impl FnOnce(&OwnedFd) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let mut flushed = self.handles.flushed.lock().unwrap_or_else(PoisonError::into_inner);
        (*flushed)?;
        *flushed = flush(&self.handles.cached);
        *flushed
    }

    pub(crate) fn path(&self) -> &Path {
        &self.handles.path
    }

    /// The descriptor through the page cache.
    pub(crate) fn cached(&self) -> &OwnedFd {
        &self.handles.cached
    }

    /// The descriptor past the page cache, if this write may take it: direct I/O moves whole
    /// aligned blocks only.
    pub(crate) fn direct_for(&self, offset: u64, buffer: &[u8]) -> Option<&OwnedFd> {
        let block = BLOCK_BYTES as u64;
        let aligned = offset.is_multiple_of(block)
            && (buffer.len() as u64).is_multiple_of(block)
            && (buffer.as_ptr() as usize).is_multiple_of(BLOCK_BYTES);
        self.handles.direct.as_ref().filter(|_| aligned)
    }

    /// Another descriptor past the page cache, by which a write need not be on the device when it
    /// returns. There is one if these are whole blocks and the system opens it.
    pub(crate) fn direct_unsynced(&self, from: u64, to: u64) -> Option<OwnedFd> {
        let block = BLOCK_BYTES as u64;
        let has_direct = self.handles.direct.is_some();
        if !has_direct || !from.is_multiple_of(block) || !to.is_multiple_of(block) {
            return None;
        }
        // By its number, for the file may have another name by now.
        let name = format!("/proc/self/fd/{}", self.handles.cached.as_raw_fd());
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::DIRECT;
        open(name, flags, Mode::empty()).ok()
    }
}

/// Writes the whole buffer. A write that the system takes in part is continued; a refused one is
/// not tried again.
pub(crate) fn write_all(file: &OwnedFd, mut offset: u64, mut buffer: &[u8]) -> Result<(), Errno> {
    while !buffer.is_empty() {
        let count = retry_on_intr(|| pwrite(file, buffer, offset))?;
        // A write of nothing without an error would go on for ever.
        buffer = buffer.get(count..).filter(|_| count > 0).ok_or(Errno::IO)?;
        offset += count as u64;
    }
    Ok(())
}

/// Reads until the buffer is full or the file ends, past the page cache if it may; returns the
/// bytes read. The kernel first writes back bytes that were written through the cache.
pub(crate) fn read_blocks(file: &File, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
    let Some(direct) = file.direct_for(offset, buffer) else {
        return read_all(file.cached(), offset, buffer);
    };
    let filled = retry_on_intr(|| pread(direct, &mut *buffer, offset))?;
    // The rest may begin within a block.
    let rest = buffer.get_mut(filled..).unwrap_or_default();
    Ok(filled + read_all(file.cached(), offset + filled as u64, rest)?)
}

/// Reads until the buffer is full or the file ends; returns the bytes read.
fn read_all(file: &OwnedFd, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match retry_on_intr(|| pread(file, &mut *rest, offset + filled as u64))? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}
