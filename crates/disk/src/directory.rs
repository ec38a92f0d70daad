//! The data directory: creating, locking, and the journal's calls on its files.

use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use journal::{
    CheckPiece, Disk, DiskError, DiskErrorKind, FilePart, TakePiece, WriteMode, is_journal_name,
};
use rustix::fs::{
    AtFlags, CWD, Dir, FallocateFlags, FileType, Mode, OFlags, Stat, fallocate, fdatasync, fstat,
    fsync, ftruncate, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::{Errno, retry_on_intr};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::failed;
use crate::file::{Access, read_blocks, write_all};
use crate::lock::{LOCK_NAME, Lock};
use crate::probe::{Basis, probe, probe_again};
use crate::read_ahead::read_ahead;
use crate::remembered::{REMEMBERED_NAME, UNFINISHED_NAME};
use crate::trials::SCRATCH_NAME;
use crate::{Choice, DirectoryError, DiskCounters, File, Probe};

/// One directory of the operating system, held exclusively while this value lives.
#[derive(Debug)]
pub struct RealDisk {
    path: PathBuf,
    directory: OwnedFd,
    /// The access for which existing files are opened.
    access: Access,
    probe: Probe,
    salt: u64,
    counts: Counts,
    /// The most memory that files read ahead may take.
    ahead_bytes_max: u64,
    /// Descriptors that there are for files.
    descriptors: usize,
    _lock: Option<Lock>,
}

#[derive(Debug, Default)]
struct Counts {
    writes: AtomicU64,
    written_bytes: AtomicU64,
    syncs: AtomicU64,
}

impl RealDisk {
    /// Takes the directory at `path`, creating it and those above it if they are missing. Finds out
    /// how it is best written to: as it was before, or by measuring a few milliseconds.
    ///
    /// # Errors
    /// [`DirectoryError`]: another process holds it, it cannot be created or opened, or `choice`
    /// demands direct I/O of a file system that has none.
    pub fn open(path: &Path, choice: Choice) -> Result<Self, DirectoryError> {
        create_with_parents(path)?;
        let directory = open_existing(path)?;
        check_mode(&directory, path)?;
        let lock = Lock::take(&directory, path)?;
        let probe = probe(&directory, path, choice)?;
        Self::new(path, directory, Some(lock), probe)
    }

    /// The same with so many descriptors for its files; two for each, which direct writes take,
    /// only if that leaves room for half as many files again.
    ///
    /// # Errors
    /// [`DirectoryError::Files`]: it has more files than could be open then.
    pub fn with_descriptors(self, descriptors: usize) -> Result<Self, DirectoryError> {
        let names =
            self.file_names().map_err(|errno| DirectoryError::io("list", &self.path, errno))?;
        let files = names.len();
        let probe = self.probe.clone().within(files, descriptors);
        let (each, path) = (probe.method.descriptors(), self.path.clone());
        if files.saturating_mul(each) > descriptors {
            return Err(DirectoryError::Files { path, files, each, descriptors });
        }
        Ok(Self { probe, descriptors, ..self })
    }

    /// Opens a directory that must exist, to look into it. Writes nothing, so a copy on a read-only
    /// file system will do, and keeps others from using it meanwhile.
    ///
    /// # Errors
    /// [`DirectoryError`]: another process uses it, or it cannot be opened.
    pub fn open_existing(path: &Path) -> Result<Self, DirectoryError> {
        let directory = open_existing(path)?;
        let lock = Lock::share(&directory, path)?;
        let disk = Self::new(path, directory, lock, Probe::unmeasured())?;
        Ok(Self { access: Access::Look, ..disk })
    }

    fn new(
        path: &Path,
        directory: OwnedFd,
        lock: Option<Lock>,
        probe: Probe,
    ) -> Result<Self, DirectoryError> {
        let salt =
            draw_salt().map_err(|errno| DirectoryError::io("draw a salt for", path, errno))?;
        Ok(Self {
            path: path.to_owned(),
            directory,
            access: Access::Write,
            probe,
            salt,
            counts: Counts::default(),
            ahead_bytes_max: u64::MAX,
            descriptors: usize::MAX,
            _lock: lock,
        })
    }

    /// If two pieces of files take more memory than this, none is read while one is digested.
    #[must_use]
    pub fn reading_ahead_within(self, bytes: u64) -> Self {
        Self { ahead_bytes_max: bytes, ..self }
    }

    /// Files that can be open with the descriptors there are for them.
    #[must_use]
    pub const fn files_max(&self) -> usize {
        self.descriptors / self.probe.method.descriptors()
    }

    /// How this directory is written to, and why.
    #[must_use]
    pub const fn probe(&self) -> &Probe {
        &self.probe
    }

    /// Checks that the directory is still at its path, and these files still in it by these names.
    /// Bytes written to a removed file are lost with this process.
    ///
    /// # Errors
    /// One is gone, or another is in its place, or the device does not tell.
    pub fn check_in_place(&self, files: &[(String, File)]) -> Result<(), DiskError> {
        let here = fstat(&self.directory).map_err(|errno| failed("look at", &self.path, errno))?;
        let found = statat(CWD, &self.path, AtFlags::empty());
        self.check_same(&self.path, &here, found)?;
        files.iter().try_for_each(|(name, file)| {
            let path = self.path.join(name);
            let held = fstat(file.cached()).map_err(|errno| failed("look at", &path, errno))?;
            let found = statat(&self.directory, name.as_str(), AtFlags::SYMLINK_NOFOLLOW);
            self.check_same(&path, &held, found)
        })
    }

    fn check_same(
        &self,
        path: &Path,
        held: &Stat,
        found: Result<Stat, Errno>,
    ) -> Result<(), DiskError> {
        let gone = |what: &str| DiskError {
            kind: DiskErrorKind::Failed,
            operation: "find",
            file: path.display().to_string(),
            cause: format!("{what} while the broker used it"),
        };
        match found {
            Ok(found) if (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino) => Ok(()),
            Ok(_) => Err(gone("another was put in its place")),
            Err(Errno::NOENT | Errno::NOTDIR) => Err(gone("it was removed or renamed")),
            // A part of the way to the directory may be shut for a while: that does no harm.
            Err(Errno::ACCESS | Errno::LOOP | Errno::NOMEM) if path == self.path => Ok(()),
            Err(errno) => Err(failed("look at", path, errno)),
        }
    }

    /// Measures anew the best way to write to the directory, while no client waits for it: for half
    /// a second at most. The next start goes by it; `Some` if that will write in another way.
    ///
    /// # Errors
    /// The device failed: it is not to be trusted with the journal either.
    pub fn probe_again(&self) -> Result<Option<Probe>, DiskError> {
        if self.access == Access::Look || self.probe.basis == Basis::Circumstances {
            return Ok(None);
        }
        probe_again(&self.directory, &self.path, &self.probe).map_err(|error| DiskError {
            kind: DiskErrorKind::Failed,
            operation: "measure writes to",
            file: self.path.display().to_string(),
            cause: error.to_string(),
        })
    }

    /// The operations since the directory was opened, the measuring not counted.
    #[must_use]
    pub fn counters(&self) -> DiskCounters {
        DiskCounters {
            writes: self.counts.writes.load(Ordering::Relaxed),
            written_bytes: self.counts.written_bytes.load(Ordering::Relaxed),
            syncs: self.counts.syncs.load(Ordering::Relaxed),
        }
    }

    fn open_file(&self, name: &str, access: Access) -> Result<File, DiskError> {
        let operation = if access == Access::Create { "create" } else { "open" };
        File::open(&self.directory, self.path.join(name), name, access, self.probe.method)
            .map_err(|errno| self.failed(operation, name, errno))
    }

    fn write_synced(&self, file: &File, offset: u64, buffer: &[u8]) -> Result<(), DiskError> {
        let Some(direct) = file.direct_for(offset, buffer) else {
            write_all(file.cached(), offset, buffer)
                .map_err(|errno| failed("write", file.path(), errno))?;
            return self.flush(file);
        };
        self.counts.syncs.fetch_add(1, Ordering::Relaxed);
        write_all(direct, offset, buffer).map_err(|errno| failed("write", file.path(), errno))
    }

    /// The one place where a file is flushed. Not repeated even after an interruption: after an
    /// error it is unknown which bytes reached the device.
    fn flush(&self, file: &File) -> Result<(), DiskError> {
        self.counts.syncs.fetch_add(1, Ordering::Relaxed);
        file.flush(|cached| fdatasync(cached)).map_err(|errno| failed("sync", file.path(), errno))
    }

    fn count_write(&self, buffer: &[u8]) {
        self.counts.writes.fetch_add(1, Ordering::Relaxed);
        self.counts.written_bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed);
    }

    fn expect_changes(&self) {
        assert!(self.access != Access::Look, "who only looks changes nothing");
    }

    fn failed(&self, operation: &'static str, name: &str, errno: Errno) -> DiskError {
        failed(operation, &self.path.join(name), errno)
    }

    fn file_names(&self) -> Result<Vec<String>, Errno> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.directory)? {
            let entry = entry?;
            // Names that are not UTF-8 are not the journal's.
            let Ok(name) = entry.file_name().to_str() else { continue };
            let is_wanted = is_journal_name(name) || self.is_file(&entry, name)?;
            // A folder in the place of a file is found out when that is read.
            if !OWN_NAMES.contains(&name) && is_wanted {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    fn is_file(&self, entry: &rustix::fs::DirEntry, name: &str) -> Result<bool, Errno> {
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let stat = statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(stat.st_mode)
            }
            known => known,
        };
        Ok(kind == FileType::RegularFile)
    }
}

impl Disk for RealDisk {
    type File = File;

    fn salt(&self) -> u64 {
        self.salt
    }

    fn names(&self) -> Result<Vec<String>, DiskError> {
        self.file_names().map_err(|errno| failed("list", &self.path, errno))
    }

    fn create(&self, name: &str) -> Result<File, DiskError> {
        self.expect_changes();
        self.open_file(name, Access::Create)
    }

    fn open(&self, name: &str) -> Result<File, DiskError> {
        self.open_file(name, self.access)
    }

    fn length(&self, file: &File) -> Result<u64, DiskError> {
        let stat = fstat(file.cached()).map_err(|errno| failed("measure", file.path(), errno))?;
        Ok(u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// Whole blocks past the page cache, if it can be: so the kernel keeps, and reads ahead,
    /// nothing of a segment that is being written past it.
    fn read(&self, file: &File, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        read_blocks(file, offset, buffer).map_err(|errno| failed("read", file.path(), errno))
    }

    /// Direct writes leave nothing in the page cache, so recovery would wait for each read.
    fn expect_read(&self, file: &File, offset: u64, bytes: u64) {
        let bytes = NonZeroU64::new(bytes);
        // Only a hint: without it reading is slower, not different.
        let _ = rustix::fs::fadvise(file.cached(), offset, bytes, rustix::fs::Advice::WillNeed);
    }

    fn read_pieces(
        &self,
        parts: &[FilePart<File>],
        check: &CheckPiece<'_>,
        take: &mut TakePiece<'_>,
    ) -> Result<(), DiskError> {
        read_ahead(self, parts, self.ahead_bytes_max, (check, take))
    }

    fn write(
        &self,
        file: &File,
        offset: u64,
        buffer: &[u8],
        mode: WriteMode,
    ) -> Result<(), DiskError> {
        self.expect_changes();
        self.count_write(buffer);
        match mode {
            WriteMode::Written => write_all(file.cached(), offset, buffer)
                .map_err(|errno| failed("write", file.path(), errno)),
            WriteMode::Synced => self.write_synced(file, offset, buffer),
        }
    }

    /// Without writing, if the file system can.
    fn reserve(&self, file: &File, from: u64, to: u64) -> Result<(), DiskError> {
        self.expect_changes();
        let bytes = to.saturating_sub(from);
        let none = FallocateFlags::empty();
        match retry_on_intr(|| fallocate(file.cached(), none, from, bytes)) {
            Err(Errno::OPNOTSUPP) => journal::fill(self, file, from, to),
            other => other.map_err(|errno| failed("make room in", file.path(), errno)),
        }
    }

    fn shorten(&self, file: &File, to: u64) -> Result<(), DiskError> {
        self.expect_changes();
        retry_on_intr(|| ftruncate(file.cached(), to))
            .map_err(|errno| failed("shorten", file.path(), errno))
    }

    /// Past the page cache if the journal is written so. In the cache, zeros would cost a copy,
    /// take the place of bytes that are read, and come to the device all at once with the flush.
    fn zero(&self, file: &File, from: u64, to: u64) -> Result<(), DiskError> {
        let Some(direct) = file.direct_unsynced(from, to) else {
            return journal::fill(self, file, from, to);
        };
        self.expect_changes();
        journal::in_zeros(from, to, |offset, zeros| {
            self.count_write(zeros);
            write_all(&direct, offset, zeros).map_err(|errno| failed("write", file.path(), errno))
        })
    }

    fn sync(&self, file: &File) -> Result<(), DiskError> {
        self.flush(file)
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        self.counts.syncs.fetch_add(1, Ordering::Relaxed);
        fsync(&self.directory).map_err(|errno| failed("sync", &self.path, errno))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.expect_changes();
        renameat(&self.directory, from, &self.directory, to)
            .map_err(|errno| self.failed("rename", from, errno))
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.expect_changes();
        unlinkat(&self.directory, name, AtFlags::empty())
            .map_err(|errno| self.failed("remove", name, errno))
    }
}

/// The bits of a file's mode beside its type.
const PERMISSION_BITS: u32 = 0o7777;

/// Files of this crate's own, of which the journal is not told.
const OWN_NAMES: [&str; 4] = [LOCK_NAME, SCRATCH_NAME, REMEMBERED_NAME, UNFINISHED_NAME];

fn draw_salt() -> Result<u64, Errno> {
    let mut salt = [0; 8];
    let filled = retry_on_intr(|| getrandom(&mut salt, GetRandomFlags::empty()))?;
    assert_eq!(filled, salt.len(), "so few bytes come whole");
    Ok(u64::from_le_bytes(salt))
}

fn open_existing(path: &Path) -> Result<OwnedFd, DirectoryError> {
    open_directory(path).map_err(|errno| DirectoryError::io("open", path, errno))
}

/// Refuses a directory that every user may write to: each of them could remove files of the log.
/// The group may write, since volumes of containers (`fsGroup`) give their user access by it.
fn check_mode(directory: &OwnedFd, path: &Path) -> Result<(), DirectoryError> {
    let stat = fstat(directory).map_err(|errno| DirectoryError::io("look at", path, errno))?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    if mode.contains(Mode::WOTH) {
        let (path, mode) = (path.to_owned(), mode.as_raw_mode() & PERMISSION_BITS);
        return Err(DirectoryError::WritableByOthers { path, mode });
    }
    Ok(())
}

fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty())
}

/// Creates a directory and those above it that are missing. Each one that is created is synced
/// into its parent, or a power cut could take the whole journal away with its directory's name.
fn create_with_parents(path: &Path) -> Result<(), DirectoryError> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        create_with_parents(parent)?;
    }
    match mkdirat(CWD, path, Mode::RWXU) {
        Ok(()) => {
            let parent = parent.unwrap_or_else(|| Path::new("."));
            open_directory(parent)
                .and_then(fsync)
                .map_err(|errno| DirectoryError::io("sync", parent, errno))
        }
        // Another process was faster, or a file is in the way, which opening will tell.
        Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(DirectoryError::io("create", path, errno)),
    }
}

/// Gives an unused directory a name that is free, or that of an empty directory. Survives a power
/// cut.
///
/// # Errors
/// [`DirectoryError::Io`]: it could not be renamed, or the renaming could not be synced.
pub fn rename_directory(from: &Path, to: &Path) -> Result<(), DirectoryError> {
    renameat(CWD, from, CWD, to).map_err(|errno| DirectoryError::io("rename", from, errno))?;
    let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or_else(|| Path::new("."));
    let synced = open_directory(parent).and_then(fsync);
    synced.map_err(|errno| DirectoryError::io("sync", parent, errno))
}

#[cfg(test)]
#[path = "directory_test.rs"]
mod tests;
