//! The body of an AMQP frame: `cargo +nightly fuzz run amqp_performative`.
#![no_main]

#[path = "../../crates/amqp/tests/codec/fuzz_body.rs"]
#[allow(dead_code, reason = "each target runs one of the bodies")]
mod fuzz_body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_body::performative(bytes));
