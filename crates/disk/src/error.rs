//! Why a directory cannot be opened, and how the system's errors become the journal's.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use journal::{DiskError, DiskErrorKind};
use rustix::io::Errno;

/// The reason why a data directory cannot be used. Each names the remedy.
#[derive(Debug)]
#[non_exhaustive]
pub enum DirectoryError {
    /// Another process holds it.
    InUse {
        /// The directory.
        path: PathBuf,
        /// The process that holds it, if its lock file tells.
        process: Option<u32>,
    },
    /// It is only to be looked into, and changes meanwhile: a process serves it.
    Served {
        /// The directory.
        path: PathBuf,
        /// The process that holds it, if its lock file tells.
        process: Option<u32>,
    },
    /// `--journal-io direct` was asked for, and the file system refuses direct I/O.
    DirectRefused {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// It has more files than the system lets be open.
    Files {
        /// The directory.
        path: PathBuf,
        /// How many.
        files: usize,
        /// Descriptors that each takes.
        each: usize,
        /// Descriptors that there are for files.
        descriptors: usize,
    },
    /// Every user of the machine may write to it.
    WritableByOthers {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
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

impl DirectoryError {
    pub(crate) fn io(operation: &'static str, path: &Path, cause: impl Into<io::Error>) -> Self {
        Self::Io { operation, path: path.to_owned(), cause: cause.into() }
    }
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse { path, process } => {
                write!(f, "{} is in use by {}", path.display(), Process(*process))?;
                f.write_str(", stop it or choose another --data")
            }
            Self::Served { path, process } => {
                write!(f, "{} is in use by {}", path.display(), Process(*process))?;
                f.write_str(" and changes while it is read: stop it, ")?;
                f.write_str("or look into a snapshot of its file system")
            }
            Self::DirectRefused { path, cause } => write!(
                f,
                "the file system of {} does no direct I/O ({cause}), use --journal-io auto",
                path.display()
            ),
            Self::Files { path, files, each, descriptors } => {
                let more = (files * each).saturating_sub(*descriptors);
                write!(
                    f,
                    "{} has {files} files, which take {each} open files each",
                    path.display()
                )?;
                write!(f, ", and the system leaves {descriptors} for them: ")?;
                write!(f, "raise `ulimit -n` by {} or more", (2 * more).next_multiple_of(1024))
            }
            Self::WritableByOthers { path, mode } => write!(
                f,
                "every user may write to {} (mode {mode:04o}): forbid it by `chmod o-w`, or choose \
                 another --data",
                path.display()
            ),
            Self::Io { operation, path, cause } => {
                write!(f, "cannot {operation} {}: {cause}", path.display())?;
                if cause.kind() == io::ErrorKind::PermissionDenied {
                    f.write_str(", give this user access to it or choose another --data")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for DirectoryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::InUse { .. }
            | Self::Served { .. }
            | Self::Files { .. }
            | Self::WritableByOthers { .. } => None,
            Self::DirectRefused { cause, .. } | Self::Io { cause, .. } => Some(cause),
        }
    }
}

/// The process that holds a directory.
struct Process(Option<u32>);

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(id) => write!(f, "process {id}"),
            None => f.write_str("another process"),
        }
    }
}

/// A failed call as the journal is told of it.
pub(crate) fn failed(operation: &'static str, file: &Path, errno: Errno) -> DiskError {
    DiskError {
        kind: kind(operation, errno),
        operation,
        file: file.display().to_string(),
        cause: cause(errno),
    }
}

/// The system's error, and the remedy if that is not plain.
fn cause(errno: Errno) -> String {
    let cause = io::Error::from(errno);
    match errno {
        Errno::FBIG => format!("{cause}; a file may be no larger here, see `ulimit -f`"),
        _ => cause.to_string(),
    }
}

/// No room on the device, or none for this user.
pub(crate) const fn is_full(errno: Errno) -> bool {
    matches!(errno, Errno::NOSPC | Errno::DQUOT)
}

fn kind(operation: &str, errno: Errno) -> DiskErrorKind {
    match errno {
        _ if is_full(errno) => DiskErrorKind::Full,
        // Nothing is lost if a file could not even be made: that can be waited out.
        Errno::MFILE | Errno::NFILE | Errno::NOMEM if operation == "create" => DiskErrorKind::Full,
        _ => DiskErrorKind::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_room_or_quota_is_full() {
        assert_eq!(kind("write", Errno::NOSPC), DiskErrorKind::Full);
        assert_eq!(kind("write", Errno::DQUOT), DiskErrorKind::Full);
        assert_eq!(kind("write", Errno::IO), DiskErrorKind::Failed);
        assert_eq!(kind("create", Errno::MFILE), DiskErrorKind::Full);
        assert_eq!(kind("open", Errno::MFILE), DiskErrorKind::Failed);
    }

    #[test]
    fn errors_say_what_to_do() {
        let path = PathBuf::from("/srv/d");
        let in_use = DirectoryError::InUse { path: path.clone(), process: Some(7) };
        let expected = "/srv/d is in use by process 7, stop it or choose another --data";
        assert_eq!(in_use.to_string(), expected);
        let denied = DirectoryError::io("create", &path, Errno::ACCESS);
        assert!(denied.to_string().contains("choose another --data"), "{denied}");
        let too_large = failed("write", &path, Errno::FBIG);
        assert!(too_large.to_string().contains("`ulimit -f`"), "{too_large}");
    }
}
