//! A text file that only its owner may read, such as that of the users and their verifiers.
//!
//! It is replaced as a whole: a new file beside it is written, synced and renamed over it, and then
//! the directory is synced. A crash leaves the old text or the new one. Two processes that change
//! it go one after the other, by a lock on the file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::{fmt, process};

use rustix::fs::OFlags;
use rustix::process::geteuid;

/// Reads such a file.
///
/// # Errors
/// [`PrivateFileError`]: others may read it, too, or it cannot be read.
pub fn read_private(path: &Path, bytes_max: usize) -> Result<String, PrivateFileError> {
    read(&mut open(path)?, path, bytes_max)
}

/// Reads a text file that others may read, too, but not change, such as public keys.
///
/// # Errors
/// [`PrivateFileError`]: its group or everyone may write to it, or it cannot be read.
pub fn read_protected(path: &Path, bytes_max: usize) -> Result<String, PrivateFileError> {
    let (mut file, metadata) = open_regular(path)?;
    let mode = metadata.mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(PrivateFileError::Writable { path: path.to_owned(), mode });
    }
    read(&mut file, path, bytes_max)
}

/// Such a file that is being changed: no other process changes it while this value lives.
#[derive(Debug)]
pub struct PrivateFile {
    /// The file itself, where the path is a link.
    path: PathBuf,
    /// The locked file; none if there was no file.
    file: Option<File>,
    text: String,
}

impl PrivateFile {
    /// Waits until no other process changes it, and reads it. A missing file is an empty one.
    ///
    /// # Errors
    /// [`PrivateFileError`]: others may read it, too, or it cannot be read.
    pub fn lock(path: &Path, bytes_max: usize) -> Result<Self, PrivateFileError> {
        let path = match fs::canonicalize(path) {
            Ok(path) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { path: path.to_owned(), file: None, text: String::new() });
            }
            Err(error) => return Err(failed("find", path, error)),
        };
        loop {
            let mut file = open(&path)?;
            file.lock().map_err(|error| failed("lock", &path, error))?;
            // Another process may have put a new file in its place, and then unlocked this one.
            let is_same = |at: fs::Metadata, held: fs::Metadata| {
                (at.dev(), at.ino()) == (held.dev(), held.ino())
            };
            let at = fs::metadata(&path).map_err(|error| failed("look at", &path, error))?;
            let held = file.metadata().map_err(|error| failed("look at", &path, error))?;
            if is_same(at, held) {
                let text = read(&mut file, &path, bytes_max)?;
                return Ok(Self { path, file: Some(file), text });
            }
        }
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Replaces the file: the new one has the same owner and mode; without an old one it has this
    /// process's user and mode 0600.
    ///
    /// # Errors
    /// [`PrivateFileError`]: the old text is still there, unless only syncing the directory failed.
    pub fn replace(self, text: &str) -> Result<(), PrivateFileError> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let directory = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let new = directory.join(format!(".{name}.{}.new", process::id()));
        let written = self.write_new(&new, text).and_then(|()| self.put_in_place(&new));
        if written.is_err() || self.file.is_none() {
            // It was renamed away, or its name is not needed: a failure leaves a file, no fault.
            let _ = fs::remove_file(&new);
        }
        written?;
        let opened = File::open(directory).and_then(|directory| directory.sync_all());
        opened.map_err(|error| failed("sync", directory, error))
    }

    fn write_new(&self, new: &Path, text: &str) -> Result<(), PrivateFileError> {
        // One of a process with the same number that was killed.
        let _ = fs::remove_file(new);
        let mut options = OpenOptions::new();
        let opened = options.write(true).create_new(true).mode(0o600).open(new);
        let mut file = opened.map_err(|error| failed("create", new, error))?;
        if let Some(old) = &self.file {
            let old = old.metadata().map_err(|error| failed("look at", &self.path, error))?;
            let made = file.metadata().map_err(|error| failed("look at", new, error))?;
            if (old.uid(), old.gid()) != (made.uid(), made.gid()) {
                fchown(&file, Some(old.uid()), Some(old.gid()))
                    .map_err(|error| failed("keep the owner of", &self.path, error))?;
            }
            file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o777))
                .map_err(|error| failed("keep the mode of", &self.path, error))?;
        }
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        written.map_err(|error| failed("write", new, error))
    }

    fn put_in_place(&self, new: &Path) -> Result<(), PrivateFileError> {
        if self.file.is_some() {
            return fs::rename(new, &self.path)
                .map_err(|error| failed("replace", &self.path, error));
        }
        // A link never replaces a file that another process has made meanwhile.
        fs::hard_link(new, &self.path).map_err(|error| failed("create", &self.path, error))
    }
}

fn open_regular(path: &Path) -> Result<(File, fs::Metadata), PrivateFileError> {
    // A pipe without a writer would wait for one.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = file.map_err(|error| failed("open", path, error))?;
    let metadata = file.metadata().map_err(|error| failed("look at", path, error))?;
    if !metadata.is_file() {
        return Err(PrivateFileError::NoFile { path: path.to_owned() });
    }
    Ok((file, metadata))
}

fn open(path: &Path) -> Result<File, PrivateFileError> {
    let (file, metadata) = open_regular(path)?;
    // As ssh has it of keys: a group may read a file of another owner. So a service reads a file of
    // root, as Kubernetes mounts its secrets.
    let is_mine = metadata.uid() == geteuid().as_raw();
    let mode = metadata.mode() & 0o777;
    if mode & 0o007 != 0 || mode & 0o020 != 0 || (is_mine && mode & 0o077 != 0) {
        return Err(PrivateFileError::Exposed { path: path.to_owned(), mode });
    }
    Ok(file)
}

fn read(file: &mut File, path: &Path, bytes_max: usize) -> Result<String, PrivateFileError> {
    let mut bytes = Vec::new();
    let most = (bytes_max as u64).saturating_add(1);
    file.take(most).read_to_end(&mut bytes).map_err(|error| failed("read", path, error))?;
    if bytes.len() > bytes_max {
        return Err(PrivateFileError::TooLarge { path: path.to_owned(), bytes_max });
    }
    String::from_utf8(bytes).map_err(|_| PrivateFileError::NoText { path: path.to_owned() })
}

/// The reason why a private file cannot be used. Each names the remedy.
#[derive(Debug)]
#[non_exhaustive]
pub enum PrivateFileError {
    /// Others than the owner may read or write it.
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Others than the owner may write it.
    Writable {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It is a directory, a pipe or a device.
    NoFile {
        /// The file.
        path: PathBuf,
    },
    /// It is not in UTF-8.
    NoText {
        /// The file.
        path: PathBuf,
    },
    /// It is too large.
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The most that it may have.
        bytes_max: usize,
    },
    /// A call failed.
    Io {
        /// The operation that failed: `create`, `open` …
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
}

impl PrivateFileError {
    /// True if there is no such file.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { cause, .. } if cause.kind() == io::ErrorKind::NotFound)
    }
}

impl fmt::Display for PrivateFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exposed { path, mode } => {
                let path = path.display();
                write!(
                    f,
                    "{path} has mode {mode:04o}, so others than its owner can read or change it: \
                     run `chmod 600 {path}`"
                )
            }
            Self::Writable { path, mode } => {
                let path = path.display();
                write!(
                    f,
                    "{path} has mode {mode:04o}, so others than its owner can change it: run \
                     `chmod go-w {path}`"
                )
            }
            Self::NoFile { path } => write!(f, "{} is no regular file", path.display()),
            Self::NoText { path } => write!(f, "{} is not in UTF-8", path.display()),
            Self::TooLarge { path, bytes_max } => {
                write!(f, "{} has more than {bytes_max} bytes", path.display())
            }
            Self::Io { operation, path, cause } => {
                write!(f, "cannot {operation} {}: {cause}", path.display())
            }
        }
    }
}

impl std::error::Error for PrivateFileError {}

fn failed(operation: &'static str, path: &Path, cause: io::Error) -> PrivateFileError {
    PrivateFileError::Io { operation, path: path.to_owned(), cause }
}

#[cfg(test)]
mod tests {
    use testkit::Directory;

    use super::*;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn names(directory: &Directory) -> Vec<String> {
        let entries = fs::read_dir(&directory.0).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn new_file_is_private() {
        let directory = Directory::new("private-new");
        let path = directory.0.join("users.toml");
        let file = PrivateFile::lock(&path, 100).unwrap();
        assert_eq!(file.text(), "");
        assert!(read_private(&path, 100).unwrap_err().is_missing());
        file.replace("one").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(read_private(&path, 100).unwrap(), "one");
        assert_eq!(names(&directory), ["users.toml"]);
    }

    #[test]
    fn replaced_file_keeps_mode_and_link() {
        let directory = Directory::new("private-link");
        let path = directory.file("real.toml", "one");
        let link = directory.0.join("users.toml");
        std::os::unix::fs::symlink("real.toml", &link).unwrap();
        mode(&path, 0o400);
        PrivateFile::lock(&link, 100).unwrap().replace("two").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o400);
        assert_eq!(read_private(&link, 100).unwrap(), "two");
        assert_eq!(names(&directory).len(), 2);
    }

    #[test]
    fn exposed_file_is_refused() {
        let directory = Directory::new("private-exposed");
        let path = directory.file("users.toml", "one");
        for exposed in [0o644, 0o640, 0o604, 0o602, 0o620, 0o777] {
            mode(&path, exposed);
            let error = read_private(&path, 100).unwrap_err().to_string();
            assert!(error.contains("chmod 600") && error.contains("has mode 0"), "{error}");
            assert!(PrivateFile::lock(&path, 100).is_err());
        }
        mode(&path, 0o600);
        assert_eq!(read_private(&path, 3).unwrap(), "one");
        let error = read_private(&path, 2).unwrap_err().to_string();
        assert!(error.contains("more than 2 bytes"), "{error}");
        fs::write(&path, b"\xff").unwrap();
        assert!(read_private(&path, 100).unwrap_err().to_string().contains("UTF-8"));
        assert!(read_private(&directory.0, 100).unwrap_err().to_string().contains("no regular"));
    }

    #[test]
    fn protected_file_may_be_read_by_all() {
        let directory = Directory::new("protected");
        let path = directory.file("keys.jwks", "one");
        for good in [0o400, 0o600, 0o644, 0o444] {
            mode(&path, good);
            assert_eq!(read_protected(&path, 3).unwrap(), "one");
        }
        for writable in [0o664, 0o646, 0o620, 0o777] {
            mode(&path, writable);
            let error = read_protected(&path, 3).unwrap_err().to_string();
            assert!(error.contains("chmod go-w"), "{error}");
        }
        mode(&path, 0o644);
        assert!(read_protected(&path, 2).unwrap_err().to_string().contains("more than 2 bytes"));
        assert!(read_protected(&directory.0, 3).is_err());
    }

    #[test]
    fn file_made_meanwhile_is_kept() {
        let directory = Directory::new("private-raced");
        let path = directory.0.join("users.toml");
        let file = PrivateFile::lock(&path, 100).unwrap();
        directory.file("users.toml", "of another");
        let error = file.replace("mine").unwrap_err().to_string();
        assert!(error.contains("cannot create"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "of another");
        assert_eq!(names(&directory), ["users.toml"]);
    }

    #[test]
    fn changes_go_one_after_the_other() {
        let directory = Directory::new("private-many");
        let path = directory.file("users.toml", "");
        mode(&path, 0o600);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        let file = PrivateFile::lock(&path, 100).unwrap();
                        let text = format!("{}x", file.text());
                        file.replace(&text).unwrap();
                    }
                });
            }
        });
        assert_eq!(read_private(&path, 100).unwrap(), "x".repeat(40));
    }
}
