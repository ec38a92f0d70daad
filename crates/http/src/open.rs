//! Open requests of all connections. Each takes memory until it is answered, and one connection may
//! have a hundred by HTTP/2.
//!
//! The more are open, the fewer one connection may have. It may always have one, so that a client
//! that opens many keeps no other out. The number of connections has a limit of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::gateway::REQUESTS_MAX;
use crate::memory_gauge::REQUEST_BYTES;

/// The limit of open requests. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    all: Arc<AtomicUsize>,
    most: usize,
}

/// One admitted request, until it is dropped.
#[derive(Debug)]
pub(crate) struct Admitted(Open);

impl Open {
    /// As many requests as fit into so many bytes, and [`REQUESTS_MAX`] at most. More are open at
    /// once only if each is on a connection of its own.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { all: Arc::default(), most: (bytes_max / REQUEST_BYTES).min(REQUESTS_MAX) }
    }

    /// Admits one more request of a connection that has `own` open. `None`: it has as many as it
    /// may for now.
    pub(crate) fn admit(&self, own: usize) -> Option<Admitted> {
        let free = self.most.saturating_sub(self.all.load(Ordering::Relaxed));
        let allowed = (free / FREE_SHARE).max(1);
        (own < allowed).then(|| {
            self.all.fetch_add(1, Ordering::Relaxed);
            Admitted(self.clone())
        })
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.0.all.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One connection may have one part in so many of the free room.
const FREE_SHARE: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_server_shortens_share_of_connections() {
        let open = Open::new(800 * REQUEST_BYTES);
        let all = || open.all.load(Ordering::Relaxed);
        let mut admitted: Vec<Vec<_>> =
            (0..1_000).map(|_| (0..100).map_while(|own| open.admit(own)).collect()).collect();
        assert_eq!(admitted[0].len(), 89, "an eighth of what the others leave");
        assert!(admitted.is_sorted_by(|one, next| one.len() >= next.len()));
        assert!(admitted.iter().all(|admitted| !admitted.is_empty()), "each has one");
        assert!(all() < 800 + 1_000);
        assert!(open.admit(admitted[0].len()).is_none());
        admitted.clear();
        assert_eq!(all(), 0);
        assert!(open.admit(0).is_some());
    }
}
