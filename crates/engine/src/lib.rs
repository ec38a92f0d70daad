//! Queues, leases and timers as a pure state machine.
