//! The log: format, group commit, recovery and reclaiming, pure over a [`Disk`].

mod disk;

pub use disk::{Disk, DiskError, DiskErrorKind, WriteMode};

/// The unit of writing: batches begin at multiples of it and are padded to it.
pub const BLOCK_BYTES: usize = 4096;
