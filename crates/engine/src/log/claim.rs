//! Room in a frame that commands claim before they are done.

/// Room that the commands of one frame have claimed: the totals of their loads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Claim {
    pub(crate) stored_bytes: usize,
    pub(crate) settled_bytes: usize,
    pub(crate) reserved: u64,
    pub(crate) records: usize,
    pub(crate) scanned: u64,
    pub(crate) leased: u64,
}

impl Claim {
    /// Both together.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            stored_bytes: self.stored_bytes.saturating_add(other.stored_bytes),
            settled_bytes: self.settled_bytes.saturating_add(other.settled_bytes),
            reserved: self.reserved.saturating_add(other.reserved),
            records: self.records.saturating_add(other.records),
            scanned: self.scanned.saturating_add(other.scanned),
            leased: self.leased.saturating_add(other.leased),
        }
    }
}
