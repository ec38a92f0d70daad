//! A machine that never changes.

use beanstalk::{JournalFacts, ListenerState, StatsFacts};
use model::Nanos;

/// Every fact is fixed, and no two numbers are alike.
pub(crate) struct FixedFacts;

impl StatsFacts for FixedFacts {
    fn pid(&self) -> u32 {
        4242
    }

    fn version(&self) -> &str {
        "dunlin 1.2.3"
    }

    fn user_time(&self) -> Nanos {
        Nanos(12_000_034_999)
    }

    fn system_time(&self) -> Nanos {
        Nanos(5_678_000)
    }

    fn uptime(&self) -> Nanos {
        Nanos(77_999_999_999)
    }

    fn instance_id(&self) -> u64 {
        0x00ab_cdef_0123_4567
    }

    fn hostname(&self) -> &str {
        "a \"quoted\\\" host"
    }

    fn os(&self) -> &str {
        "#1 SMP"
    }

    fn platform(&self) -> &str {
        "x86_64"
    }

    fn journal(&self) -> JournalFacts {
        JournalFacts {
            oldest_segment: 81,
            current_segment: 82,
            records_migrated: 83,
            records_written: 84,
            segment_bytes: 85,
        }
    }
}

/// beanstalkd's own limit of a body.
pub(crate) fn shared() -> ListenerState {
    ListenerState::new(65_535, Box::new(FixedFacts))
}
