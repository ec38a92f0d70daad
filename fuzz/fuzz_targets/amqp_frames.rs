//! A stream of frames, and what they say: `cargo +nightly fuzz run amqp_frames`.
#![no_main]

#[path = "../../crates/amqp/tests/codec/fuzz_body.rs"]
#[allow(dead_code, reason = "each target runs one of the bodies")]
mod fuzz_body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_body::frames(bytes));
