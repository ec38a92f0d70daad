//! A picture of all journalled messages, taken in small chunks while traffic goes on.

/// How far a snapshot has come.
#[derive(Clone, Debug)]
pub struct SnapshotCursor {
    /// The next message to visit.
    pub(crate) next: u64,
    /// Messages from here on were stored after the snapshot began.
    pub(crate) end: u64,
    /// The Sequence record is written.
    pub(crate) begun: bool,
}
