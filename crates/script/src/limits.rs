//! Limits of scripts.

use std::time::Duration;

/// The most that one run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time from its first instruction to its last.
    pub time: Duration,
    /// Memory of its values, with garbage that is not collected yet.
    pub memory_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { time: Duration::from_millis(100), memory_bytes: 64 << 20 }
    }
}

/// The longest text of a script.
pub const SOURCE_BYTES_MAX: usize = 256 << 10;

/// The longest text that a script may give to `loadstring` or `load`. The compiler looks at no
/// clock.
pub const LOADED_BYTES_MAX: usize = 64 << 10;

/// So deep may tables lie in each other in what a script returns.
pub const DEPTH_MAX: usize = 1000;
