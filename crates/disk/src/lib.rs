//! The only code that opens, writes, preallocates and syncs files: [`RealDisk`] is the journal's
//! [`journal::Disk`] over one directory of the operating system, which it holds exclusively.
//!
//! It decides nothing about durability. The journal says for each write how far it must have come,
//! and this crate does exactly that, in one of two [`Method`]s. When the directory is opened, it
//! measures which of them the file system does well ([`Probe`]). Nothing here is ever repeated
//! after an error, a failed sync least of all. The kernel may have dropped the pages that it could
//! not write, and a second call would say that all is well.

mod directory;
mod error;
mod file;
mod lock;
mod private_file;
mod probe;
mod read_ahead;
mod remembered;
mod trials;

pub use directory::{RealDisk, rename_directory};
pub use error::DirectoryError;
pub use file::File;
pub use private_file::{PrivateFile, PrivateFileError, read_private, read_protected};
pub use probe::{Choice, Method, Probe};

/// The operations of a disk since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Writes, synced ones among them.
    pub writes: u64,
    /// Bytes that these wrote.
    pub written_bytes: u64,
    /// Flushes that the device was asked for: synced writes, syncs of files and of the directory.
    pub syncs: u64,
}
