//! How long a test waits for an expected event: then it fails with the name of the event, and does
//! not hang.

use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Far longer than anything takes that a test waits for, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks until `it` is so.
///
/// # Panics
/// When that takes too long.
pub fn until(what: &str, mut it: impl FnMut() -> bool) {
    until_some(what, || it().then_some(()));
}

/// Asks until there is something.
///
/// # Panics
/// When that takes too long.
pub fn until_some<T>(what: &str, mut it: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = it() {
            return found;
        }
        assert!(Instant::now() < end, "after {} s still not: {what}", PATIENCE.as_secs());
        std::thread::yield_now();
    }
}

/// The result of `work`, which something else might keep from its end.
///
/// # Panics
/// When that takes too long.
pub fn within<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    // A caller that gave up listens no more.
    std::thread::spawn(move || sender.send(work()).ok());
    receiver.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{error}: {what}"))
}
