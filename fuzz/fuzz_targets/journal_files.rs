//! The files of a journal, damaged: `cargo +nightly fuzz run journal_files`.
#![no_main]

#[path = "../../crates/journal/tests/damage/hostile.rs"]
mod hostile;
#[path = "../../crates/journal/tests/store/mod.rs"]
mod store;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hostile::files(bytes));
