//! The facts that `stats` reports about this process and its machine.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use beanstalk::JournalFacts;
use journal::JournalCounters;
use model::{Nanos, mixed};

use crate::clock::Clock;

/// The process and the machine as they are now.
#[derive(Debug)]
pub(crate) struct ProcessFacts {
    clock: Clock,
    instance: u64,
    version: String,
    hostname: String,
    os: String,
    /// Name, release and architecture of the operating system.
    system: String,
    platform: String,
    journal: Arc<JournalGauges>,
    processor: Lately,
    memory: Memory,
}

/// Processor time of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ProcessorTimes {
    user: Nanos,
    system: Nanos,
}

/// Processor time, at most one tick old. The reader holds the broker's lock, and reading `/proc`
/// takes tens of microseconds. The kernel counts in ticks, so the cache misses nothing.
#[derive(Debug, Default)]
struct Lately {
    read_at: Cell<Option<Nanos>>,
    times: Cell<ProcessorTimes>,
}

/// Bytes of memory in use, likewise as of a tick ago at most.
#[derive(Debug, Default)]
struct Memory {
    read_at: Cell<Option<Nanos>>,
    bytes: Cell<u64>,
}

/// The journal's figures as the last completed write left them.
#[derive(Debug, Default)]
pub(crate) struct JournalGauges {
    segments: AtomicU64,
    segments_recycled: AtomicU64,
    restated_records: AtomicU64,
    frames: AtomicU64,
    segment_bytes: AtomicU64,
}

impl JournalGauges {
    pub(crate) fn new(segment_bytes: u64) -> Self {
        Self { segment_bytes: AtomicU64::new(segment_bytes), ..Self::default() }
    }

    pub(crate) fn note(&self, counters: &JournalCounters) {
        self.segments.store(counters.segments, Ordering::Relaxed);
        self.segments_recycled.store(counters.segments_recycled, Ordering::Relaxed);
        self.restated_records.store(counters.restated_records, Ordering::Relaxed);
        self.frames.store(counters.frames, Ordering::Relaxed);
    }
}

impl ProcessFacts {
    pub(crate) fn new(clock: Clock, journal: Arc<JournalGauges>) -> Self {
        let uname = rustix::system::uname();
        let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        Self {
            clock,
            instance: instance(&clock),
            version: format!("dunlin {}", env!("CARGO_PKG_VERSION")),
            hostname: text(uname.nodename()),
            os: text(uname.version()),
            system: format!(
                "{} {} {}",
                text(uname.sysname()),
                text(uname.release()),
                text(uname.machine())
            ),
            platform: text(uname.machine()),
            journal,
            processor: Lately::default(),
            memory: Memory::default(),
        }
    }

    fn processor(&self) -> ProcessorTimes {
        self.processor.at(self.clock.uptime(), ProcessorTimes::read)
    }
}

impl Lately {
    /// The last reading, or a new one from `read` if the last is a tick old.
    fn at(&self, now: Nanos, read: impl FnOnce() -> Option<ProcessorTimes>) -> ProcessorTimes {
        let is_old = |at: Nanos| now.since(at) >= TICK;
        if self.read_at.get().is_none_or(is_old) {
            self.read_at.set(Some(now));
            // Without `/proc`, or a descriptor for it, the last known times stay.
            self.times.set(read().unwrap_or(self.times.get()));
        }
        self.times.get()
    }
}

impl Memory {
    fn at(&self, now: Nanos) -> u64 {
        if self.read_at.get().is_none_or(|at| now.since(at) >= TICK) {
            self.read_at.set(Some(now));
            self.bytes.set(Self::read().unwrap_or(self.bytes.get()));
        }
        self.bytes.get()
    }

    /// The second number is the resident pages.
    fn read() -> Option<u64> {
        let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
        let pages: u64 = pages.split(' ').nth(1)?.parse().ok()?;
        Some(pages * rustix::param::page_size() as u64)
    }
}

impl ProcessorTimes {
    fn read() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/self/stat").ok()?)
    }

    /// The process's name, in brackets, may hold anything: fields are counted from behind it.
    fn parse(stat: &str) -> Option<Self> {
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut ticks = fields.split(' ').skip(USER_TIME_FIELD - FIRST_FIELD);
        let mut next = || Some(Nanos(ticks.next()?.parse::<u64>().ok()?.checked_mul(TICK.0)?));
        Some(Self { user: next()?, system: next()? })
    }
}

impl resp::InfoFacts for ProcessFacts {
    fn pid(&self) -> u32 {
        std::process::id()
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn user_time(&self) -> Nanos {
        self.processor().user
    }

    fn system_time(&self) -> Nanos {
        self.processor().system
    }

    fn uptime(&self) -> Nanos {
        self.clock.uptime()
    }

    fn instance_id(&self) -> u64 {
        self.instance
    }

    fn system(&self) -> &str {
        &self.system
    }

    fn memory_bytes(&self) -> u64 {
        self.memory.at(self.clock.uptime())
    }
}

impl beanstalk::StatsFacts for ProcessFacts {
    fn pid(&self) -> u32 {
        std::process::id()
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn user_time(&self) -> Nanos {
        self.processor().user
    }

    fn system_time(&self) -> Nanos {
        self.processor().system
    }

    fn uptime(&self) -> Nanos {
        self.clock.uptime()
    }

    fn instance_id(&self) -> u64 {
        self.instance
    }

    fn hostname(&self) -> &str {
        &self.hostname
    }

    fn os(&self) -> &str {
        &self.os
    }

    fn platform(&self) -> &str {
        &self.platform
    }

    fn journal(&self) -> JournalFacts {
        let gauge = |gauge: &AtomicU64| gauge.load(Ordering::Relaxed);
        let recycled = gauge(&self.journal.segments_recycled);
        let oldest = recycled + u64::from(gauge(&self.journal.segments) > 0);
        JournalFacts {
            oldest_segment: oldest,
            current_segment: recycled + gauge(&self.journal.segments),
            records_migrated: gauge(&self.journal.restated_records),
            records_written: gauge(&self.journal.frames),
            segment_bytes: gauge(&self.journal.segment_bytes),
        }
    }
}

/// Tells this run from every other: the start's time and the process's number, mixed so that near
/// starts look apart.
fn instance(clock: &Clock) -> u64 {
    mixed(clock.now().0 ^ u64::from(std::process::id()).rotate_left(48))
}

/// The field of `/proc/self/stat`, counted from 1 as proc(5) does; the time in the kernel is the
/// next.
const USER_TIME_FIELD: usize = 14;
/// The first one behind the name.
const FIRST_FIELD: usize = 3;
/// The kernel reports hundredths of a second to its users, at any internal tick rate.
const TICK: Nanos = Nanos::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_parses_behind_any_name() {
        let stat = "12 (a ) b) S 1 12 12 0 -1 4194304 1 0 0 0 250 13 0 0 20 0 1 0 5";
        let times =
            ProcessorTimes { user: Nanos::from_millis(2_500), system: Nanos::from_millis(130) };
        assert_eq!(ProcessorTimes::parse(stat), Some(times));
        assert_eq!(ProcessorTimes::parse(""), None);
        assert_eq!(ProcessorTimes::parse("1 (a) S 1 2 3"), None);
    }

    #[test]
    fn processor_time_read_once_a_tick() {
        let lately = Lately::default();
        let reads = Cell::new(0);
        let user = |now| {
            let read = || {
                reads.set(reads.get() + 1);
                let user = Nanos(reads.get());
                (reads.get() != 2).then_some(ProcessorTimes { user, ..Default::default() })
            };
            lately.at(Nanos(now), read).user
        };
        assert_eq!((user(5), user(6), user(4 + TICK.0)), (Nanos(1), Nanos(1), Nanos(1)));
        assert_eq!(reads.get(), 1);
        assert_eq!(user(5 + TICK.0), Nanos(1), "what cannot be read anew stays");
        assert_eq!(user(5 + 2 * TICK.0), Nanos(3));
    }

    #[test]
    fn facts_describe_this_process() {
        let facts = ProcessFacts::new(Clock::new(), Arc::default());
        assert_eq!(beanstalk::StatsFacts::pid(&facts), std::process::id());
        assert!(beanstalk::StatsFacts::version(&facts).starts_with("dunlin "));
        assert!(!beanstalk::StatsFacts::hostname(&facts).is_empty());
        assert!(resp::InfoFacts::memory_bytes(&facts) > 100_000);
    }
}
