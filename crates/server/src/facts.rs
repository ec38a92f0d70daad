//! What `stats` says about this process and its machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use beanstalk::{Facts, JournalFacts};
use journal::Counters;
use model::Nanos;

use crate::clock::Clock;

/// The process and the machine as they are now.
#[derive(Debug)]
pub(crate) struct ProcessFacts {
    clock: Clock,
    instance: u64,
    version: String,
    hostname: String,
    os: String,
    platform: String,
    journal: Arc<JournalGauges>,
}

/// The journal's figures as the last completed write left them.
#[derive(Debug, Default)]
pub(crate) struct JournalGauges {
    segments: AtomicU64,
    segments_recycled: AtomicU64,
    frames: AtomicU64,
    segment_bytes: AtomicU64,
}

impl JournalGauges {
    pub(crate) fn new(segment_bytes: u64) -> Self {
        Self { segment_bytes: AtomicU64::new(segment_bytes), ..Self::default() }
    }

    pub(crate) fn note(&self, counters: &Counters) {
        self.segments.store(counters.segments, Ordering::Relaxed);
        self.segments_recycled.store(counters.segments_recycled, Ordering::Relaxed);
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
            platform: text(uname.machine()),
            journal,
        }
    }
}

impl Facts for ProcessFacts {
    fn pid(&self) -> u32 {
        std::process::id()
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn user_time(&self) -> Nanos {
        processor_time(USER_TIME_FIELD)
    }

    fn system_time(&self) -> Nanos {
        processor_time(SYSTEM_TIME_FIELD)
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
            records_migrated: 0,
            records_written: gauge(&self.journal.frames),
            segment_bytes: gauge(&self.journal.segment_bytes),
        }
    }
}

/// Tells this run from every other: the start's time and the process's number, mixed by one round
/// of splitmix64 so that near starts look apart.
fn instance(clock: &Clock) -> u64 {
    let seed = clock.now().0 ^ u64::from(std::process::id()).rotate_left(48);
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Processor time of this process, as `/proc` counts it; zero where there is no `/proc`.
fn processor_time(field: usize) -> Nanos {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    parse_processor_time(&stat, field).unwrap_or(Nanos::ZERO)
}

/// The process's name, in brackets, may hold anything: fields are counted from behind it.
fn parse_processor_time(stat: &str, field: usize) -> Option<Nanos> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks: u64 = fields.split(' ').nth(field - FIRST_FIELD)?.parse().ok()?;
    Some(Nanos::from_millis(ticks * TICK_MILLIS))
}

/// Of `/proc/self/stat`, counted from 1 as proc(5) does.
const USER_TIME_FIELD: usize = 14;
const SYSTEM_TIME_FIELD: usize = 15;
/// The first one behind the name.
const FIRST_FIELD: usize = 3;
/// The kernel counts for its users in hundredths of a second, whatever it does inside.
const TICK_MILLIS: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_found_behind_any_name() {
        let stat = "12 (a ) b) S 1 12 12 0 -1 4194304 1 0 0 0 250 13 0 0 20 0 1 0 5";
        assert_eq!(parse_processor_time(stat, USER_TIME_FIELD), Some(Nanos::from_millis(2_500)));
        assert_eq!(parse_processor_time(stat, SYSTEM_TIME_FIELD), Some(Nanos::from_millis(130)));
        assert_eq!(parse_processor_time("", USER_TIME_FIELD), None);
    }

    #[test]
    fn the_facts_are_those_of_this_process() {
        let facts = ProcessFacts::new(Clock::new(), Arc::default());
        assert_eq!(facts.pid(), std::process::id());
        assert!(facts.version().starts_with("dunlin "));
        assert!(!facts.hostname().is_empty());
    }
}
