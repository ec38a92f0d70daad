//! The finding about a directory's writes, kept in it, so that a start measures nothing.
//!
//! It holds for one file system of one machine since its last boot; elsewhere, with any other
//! content, the file counts as missing. It is a hint: no call syncs it.

use std::fmt::Write as _;
use std::fs::read_to_string;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, fstat, fstatfs, fstatvfs, openat, renameat, unlinkat};
use rustix::io::{Errno, pread, retry_on_intr};

use crate::error::is_full;
use crate::file::write_all;
use crate::probe::Basis;
use crate::{DirectoryError, Method, Probe};

/// The file.
pub(crate) const REMEMBERED_NAME: &str = "probe";

/// The same while it is being written.
pub(crate) const UNFINISHED_NAME: &str = "probe.new";

/// A choice, and the times it was made by.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Remembered {
    method: Method,
    direct_micros: Option<u64>,
    buffered_micros: Option<u64>,
}

impl Remembered {
    /// The finding that holds for this directory.
    pub(crate) fn read(directory: &OwnedFd) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = openat(directory, REMEMBERED_NAME, flags, Mode::empty()).ok()?;
        let mut bytes = [0; TEXT_BYTES_MAX];
        let count = retry_on_intr(|| pread(&file, &mut bytes, 0)).ok()?;
        let text = std::str::from_utf8(bytes.get(..count)?).ok()?;
        Self::parse(text, &place(directory)?)
    }

    /// Keeps the measurements. Without room it keeps none.
    ///
    /// # Errors
    /// [`DirectoryError::Io`]: a call failed.
    pub(crate) fn write(
        directory: &OwnedFd,
        path: &Path,
        probe: &Probe,
    ) -> Result<(), DirectoryError> {
        let Some(place) = place(directory) else { return Ok(()) };
        match replace(directory, &Self::text(probe, &place)) {
            Err(errno) if !is_full(errno) => {
                Err(DirectoryError::io("write", &path.join(REMEMBERED_NAME), errno))
            }
            _ => Ok(()),
        }
    }

    /// The same as if it had been measured now.
    pub(crate) fn probe(&self) -> Probe {
        let Self { method, direct_micros, buffered_micros } = *self;
        let reason = "as measured before";
        Probe { method, reason, direct_micros, buffered_micros, basis: Basis::Times }
    }

    fn text(probe: &Probe, place: &str) -> String {
        let micros = |time: Option<u64>| time.map_or("-".into(), |time| time.to_string());
        let Probe { method, direct_micros, buffered_micros, .. } = probe;
        let (direct, buffered) = (micros(*direct_micros), micros(*buffered_micros));
        format!("{method} direct-us {direct} buffered-us {buffered} at {place}\n")
    }

    fn parse(text: &str, place: &str) -> Option<Self> {
        let (found, at) = text.strip_suffix('\n')?.split_once(" at ")?;
        let mut words = found.split(' ');
        let method = match words.next()? {
            "direct" => Method::Direct,
            "buffered" => Method::Buffered,
            _ => return None,
        };
        let mut time = |name| {
            let is_named = words.next() == Some(name);
            let word = words.next().filter(|_| is_named)?;
            if word == "-" { Some(None) } else { word.parse().ok().map(Some) }
        };
        let (direct_micros, buffered_micros) = (time("direct-us")?, time("buffered-us")?);
        let is_whole = words.next().is_none() && at == place;
        is_whole.then_some(Self { method, direct_micros, buffered_micros })
    }
}

/// The file system and the boot of the machine; `None` if the system does not tell.
fn place(directory: &OwnedFd) -> Option<String> {
    let boot = read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let device = fstat(directory).ok()?.st_dev;
    let (kind, id) = (fstatfs(directory).ok()?.f_type, fstatvfs(directory).ok()?.f_fsid);
    let mut place = boot.trim().to_owned();
    write!(place, " {device:x} {kind:x} {id:x}").ok()?;
    Some(place)
}

/// Writes the file whole or not at all, as far as the running system goes.
fn replace(directory: &OwnedFd, text: &str) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = openat(directory, UNFINISHED_NAME, flags | OFlags::NOFOLLOW, mode)?;
    let written = write_all(&file, 0, text.as_bytes())
        .and_then(|()| renameat(directory, UNFINISHED_NAME, directory, REMEMBERED_NAME));
    if written.is_err() {
        // The first error is the one that is told.
        let _ = unlinkat(directory, UNFINISHED_NAME, AtFlags::empty());
    }
    written
}

/// More than it ever has.
const TEXT_BYTES_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembered_probe_comes_back_whole() {
        for (direct_micros, method) in [(Some(71), Method::Direct), (None, Method::Buffered)] {
            let remembered = Remembered { method, direct_micros, buffered_micros: Some(68) };
            let text = Remembered::text(&remembered.probe(), "boot 1 2 3");
            assert_eq!(Remembered::parse(&text, "boot 1 2 3"), Some(remembered), "{text}");
            assert_eq!(Remembered::parse(&text, "boot 1 2 4"), None, "of another place");
            for cut in 0..text.len() {
                assert_eq!(Remembered::parse(&text[..cut], "boot 1 2 3"), None, "{cut}");
            }
        }
    }

    #[test]
    fn strange_text_is_ignored() {
        for text in [
            "",
            "\n",
            "direct at boot\n",
            "sideways direct-us 1 buffered-us 1 at boot\n",
            "direct direct-us -1 buffered-us 1 at boot\n",
            "direct direct-us 99999999999999999999 buffered-us 1 at boot\n",
            "direct direct-us 1 buffered-us 1 more at boot\n",
        ] {
            assert_eq!(Remembered::parse(text, "boot"), None, "{text}");
        }
    }
}
