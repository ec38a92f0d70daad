//! The time and the memory that the run of a script has left.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::native::Refusal;

/// The budget of the run that goes on. One run at a time uses it, and only its thread.
#[derive(Debug)]
pub(crate) struct Budget {
    origin: Instant,
    deadline_ns: AtomicU64,
    /// Memory that native functions may still take for what they build outside of the machine.
    bytes_left: AtomicUsize,
    ticks: AtomicU32,
    out_of_time: AtomicBool,
    out_of_memory: AtomicBool,
}

/// The limit that ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overrun {
    Time,
    Memory,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self {
            origin: Instant::now(),
            deadline_ns: AtomicU64::new(u64::MAX),
            bytes_left: AtomicUsize::new(usize::MAX),
            ticks: AtomicU32::new(0),
            out_of_time: AtomicBool::new(false),
            out_of_memory: AtomicBool::new(false),
        }
    }

    /// A run begins.
    pub(crate) fn begin(&self, time: Duration, bytes: usize) {
        let deadline = self.origin.elapsed().saturating_add(time);
        self.deadline_ns.store(nanoseconds(deadline), Relaxed);
        self.bytes_left.store(bytes, Relaxed);
        self.ticks.store(0, Relaxed);
        self.out_of_time.store(false, Relaxed);
        self.out_of_memory.store(false, Relaxed);
    }

    /// False once the run has taken too much time. It looks at the clock now and then.
    pub(crate) fn is_in_time(&self) -> bool {
        let ticks = self.ticks.load(Relaxed).wrapping_add(1);
        self.ticks.store(ticks, Relaxed);
        if !ticks.is_multiple_of(TICKS_PER_LOOK) {
            return !self.out_of_time.load(Relaxed);
        }
        let late = nanoseconds(self.origin.elapsed()) > self.deadline_ns.load(Relaxed);
        self.out_of_time.store(late, Relaxed);
        !late
    }

    /// Takes memory for values that a native function builds, and a step of time.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), Refusal> {
        if !self.is_in_time() {
            return Err(Refusal::Overrun);
        }
        let Some(left) = self.bytes_left.load(Relaxed).checked_sub(bytes) else {
            self.out_of_memory.store(true, Relaxed);
            return Err(Refusal::Overrun);
        };
        self.bytes_left.store(left, Relaxed);
        Ok(())
    }

    /// Notes that the machine had no memory left.
    pub(crate) fn note_out_of_memory(&self) {
        self.out_of_memory.store(true, Relaxed);
    }

    /// The limit that the run met.
    pub(crate) fn overrun(&self) -> Option<Overrun> {
        if self.out_of_time.load(Relaxed) {
            return Some(Overrun::Time);
        }
        self.out_of_memory.load(Relaxed).then_some(Overrun::Memory)
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Reading the clock takes 25 ns, a step of a script about as long.
const TICKS_PER_LOOK: u32 = 64;
