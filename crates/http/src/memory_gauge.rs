//! The memory of requests and answers, as metrics show it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A part of these bytes, until it is dropped.
#[derive(Debug)]
pub(crate) struct MemoryGauge {
    all: Arc<AtomicUsize>,
    bytes: usize,
}

impl MemoryGauge {
    pub(crate) fn new(all: &Arc<AtomicUsize>, bytes: usize) -> Self {
        all.fetch_add(bytes, Ordering::Relaxed);
        Self { all: Arc::clone(all), bytes }
    }

    /// Sets how many bytes the part has now.
    pub(crate) fn set(&mut self, bytes: usize) {
        self.all.fetch_add(bytes, Ordering::Relaxed);
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for MemoryGauge {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Bytes that a request takes besides its body while it is not answered; a follower of a topic as
/// well. By HTTP/2, where a hundred may wait on one connection, 20,000 receives took 7 KiB each.
pub(crate) const REQUEST_BYTES: usize = 7 * 1024;
