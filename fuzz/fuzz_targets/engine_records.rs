//! Records of a snapshot and of frames, and what recovery makes of them: `cargo +nightly fuzz run
//! engine_records`.
#![no_main]

#[path = "../../crates/engine/tests/records/hostile.rs"]
#[allow(dead_code, reason = "what writes seeds uses the rest")]
mod hostile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    hostile::recovery(bytes);
});
