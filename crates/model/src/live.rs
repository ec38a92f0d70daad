//! The part of the log that still matters.

use core::ops::{AddAssign, SubAssign};

/// Records that the log has to keep, and their bytes when they are stored anew. Counts in memory
/// alone may add [`crate::limits::UNRECORDED_BYTES_MAX`] to each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveRecords {
    /// How many.
    pub count: u64,
    /// The bytes of all.
    pub bytes: u64,
}

impl LiveRecords {
    /// None.
    pub const NONE: Self = Self { count: 0, bytes: 0 };

    /// One of so many bytes.
    #[must_use]
    pub const fn one(bytes: u64) -> Self {
        Self { count: 1, bytes }
    }
}

impl AddAssign for LiveRecords {
    fn add_assign(&mut self, more: Self) {
        self.count += more.count;
        self.bytes += more.bytes;
    }
}

impl SubAssign for LiveRecords {
    fn sub_assign(&mut self, less: Self) {
        self.count -= less.count;
        self.bytes -= less.bytes;
    }
}
