//! Processor time spent.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// By the calling thread.
pub(crate) fn of_thread() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// By all threads of this process.
pub(crate) fn of_process() -> Duration {
    read(ClockId::ProcessCPUTime)
}

fn read(clock: ClockId) -> Duration {
    // Such a clock cannot run backwards before zero.
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}
