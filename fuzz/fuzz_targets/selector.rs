//! Message selectors: `cargo +nightly fuzz run selector`.
#![no_main]

#[path = "../../crates/selector/tests/fuzz_body/mod.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::run(bytes));
