//! One segment of a journal, changed, under right checksums: `cargo +nightly fuzz run
//! journal_segment`.
#![no_main]
#![allow(dead_code, reason = "the modules belong to a test that uses more of them")]

#[path = "../../crates/journal/tests/damage/hostile.rs"]
mod hostile;
#[path = "../../crates/journal/tests/store/mod.rs"]
mod store;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hostile::segment(bytes));
