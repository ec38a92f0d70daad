//! A process and a machine that never change.

use model::Nanos;
use resp::{InfoFacts, ListenerState, Options};

/// The facts of INFO in tests.
pub(crate) struct FixedFacts;

impl InfoFacts for FixedFacts {
    fn pid(&self) -> u32 {
        123
    }

    fn version(&self) -> &str {
        "0.1.0"
    }

    fn user_time(&self) -> Nanos {
        Nanos(1_234_567_890)
    }

    fn system_time(&self) -> Nanos {
        Nanos(2_000_001_999)
    }

    fn uptime(&self) -> Nanos {
        Nanos::from_secs(90_000)
    }

    fn instance_id(&self) -> u64 {
        0xabcd
    }

    fn system(&self) -> &str {
        "Linux"
    }

    fn memory_bytes(&self) -> u64 {
        1_572_864
    }
}

/// The shared state of connections, with these facts.
pub(crate) fn shared(options: Options) -> ListenerState {
    ListenerState::new(options, Box::new(FixedFacts))
}
