//! Bodies of messages: in memory, shared, in the log or in the spill, and the waits for them.

pub(crate) mod groups;
pub(crate) mod memory;
pub(crate) mod sharing;
pub(crate) mod spilling;
pub(crate) mod waits;

use crate::bodies::groups::Groups;
use crate::bodies::memory::Memory;
use crate::bodies::sharing::Sharing;
use crate::bodies::waits::Awaited;

/// Bodies of messages: in memory, shared, in the log or in the spill, and the waits for them.
#[derive(Debug)]
pub(crate) struct Bodies {
    pub(crate) memory: Memory,
    pub(crate) sharing: Sharing,
    pub(crate) groups: Groups,
    pub(crate) awaited: Awaited,
}
