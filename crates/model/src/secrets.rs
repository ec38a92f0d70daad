//! Numbers that no client can guess, for crates that have no randomness of their own.

use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

/// A source of unguessable numbers. The default counts, for tests and simulations, where the
/// same has to happen again; a server gives one that is random.
#[derive(Clone)]
pub struct Secrets(Arc<dyn Fn() -> u128 + Send + Sync>);

impl Secrets {
    /// Numbers as this function gives them.
    #[must_use]
    pub fn new(next: impl Fn() -> u128 + Send + Sync + 'static) -> Self {
        Self(Arc::new(next))
    }

    /// The next one.
    #[must_use]
    pub fn next(&self) -> u128 {
        (self.0)()
    }
}

impl Default for Secrets {
    fn default() -> Self {
        let last = AtomicU64::new(0);
        Self::new(move || u128::from(last.fetch_add(1, Ordering::Relaxed)) + 1)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}
