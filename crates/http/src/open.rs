//! Requests that are open, of all connections: each takes memory until it is answered, and by
//! HTTP/2 one connection may have a hundred.
//!
//! The fuller it is the fewer may one connection have. One it always has, so that whoever opens
//! many keeps nobody out; and how many connections there may be is bounded elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::memory_gauge::REQUEST_BYTES;

/// So many of all.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    all: Arc<AtomicUsize>,
    most: usize,
}

/// What one connection has of them.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    open: Open,
    own: Arc<AtomicUsize>,
}

/// One that is open, until it is dropped.
#[derive(Debug)]
pub(crate) struct Admitted(Asking);

impl Open {
    /// As many as have room in so many bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { all: Arc::default(), most: (bytes_max / REQUEST_BYTES).min(REQUESTS_MAX) }
    }

    /// One more connection.
    pub(crate) fn connection(&self) -> Asking {
        Asking { open: self.clone(), own: Arc::default() }
    }
}

impl Asking {
    /// One more request; `None`: for now it has as many as it may.
    pub(crate) fn admit(&self) -> Option<Admitted> {
        let free = self.open.most.saturating_sub(self.open.all.load(Ordering::Relaxed));
        let allowed = (free / FREE_SHARE).max(1);
        (self.own.load(Ordering::Relaxed) < allowed).then(|| {
            self.open.all.fetch_add(1, Ordering::Relaxed);
            self.own.fetch_add(1, Ordering::Relaxed);
            Admitted(self.clone())
        })
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.0.open.all.fetch_sub(1, Ordering::Relaxed);
        self.0.own.fetch_sub(1, Ordering::Relaxed);
    }
}

/// More are open at once only where each is on a connection of its own.
const REQUESTS_MAX: usize = 10_000;

/// One connection may have one part in so many of what is free.
const FREE_SHARE: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_are_open_the_fewer_may_one_connection_have() {
        let open = Open::new(800 * REQUEST_BYTES);
        let all = || open.all.load(Ordering::Relaxed);
        let asking: Vec<_> = (0..1_000).map(|_| open.connection()).collect();
        let mut admitted: Vec<Vec<_>> = asking
            .iter()
            .map(|asking| std::iter::from_fn(|| asking.admit()).take(100).collect())
            .collect();
        assert_eq!(admitted[0].len(), 89, "an eighth of what the others leave");
        assert!(admitted.is_sorted_by(|one, next| one.len() >= next.len()));
        assert!(admitted.iter().all(|admitted| !admitted.is_empty()), "each has one");
        assert!(all() < 800 + 1_000);
        assert!(asking[0].admit().is_none());
        admitted.clear();
        assert_eq!(all(), 0);
        assert!(asking[0].admit().is_some());
    }
}
