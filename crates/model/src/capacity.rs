use crate::{Lsn, limits};

/// The bytes that the log takes in one call of the engine, and its last frame that can be read
/// back. Each frame changes both, so each call is given its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Bytes of records that puts may use. A journalled put whose record is larger is refused. Less
    /// than [`u64::MAX`] only when the device is full, or about to be.
    pub room_bytes: u64,
    /// Bytes of records about messages that are stored already. With none, work that goes on by
    /// itself waits, and commands are not given. More than [`limits::SETTLED_BYTES_ALWAYS`] count
    /// as these.
    pub settling_bytes: usize,
    /// The log is behind: commands that add to it wait. The room that is left serves settlements.
    pub is_behind: bool,
    /// Frames up to this one can be read back, so that bodies may leave memory. An earlier frame
    /// than one seen before counts as that one. `None`: bodies stay, for there is no log.
    pub written: Option<Lsn>,
}

impl Capacity {
    /// Nothing is bounded, as where there is no log.
    pub const UNBOUNDED: Self = Self {
        room_bytes: u64::MAX,
        settling_bytes: limits::SETTLED_BYTES_ALWAYS,
        is_behind: false,
        written: None,
    };
}
