//! The flag of a server that stores nothing more.

use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

/// The flag of a server that drains: it stores nothing more until its next start, and gives its
/// messages away. All clones are one flag, so that no protocol has an opinion of its own.
#[derive(Clone, Default)]
pub struct Draining(Arc<AtomicBool>);

impl Draining {
    /// Nothing more is stored. There is no way back.
    pub fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True if nothing more is stored.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        // It guards nothing else: all stores beside it happen under the broker's lock.
        self.0.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Draining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Draining").field(&self.has_begun()).finish()
    }
}
