//! Headers of the PROXY protocol: `cargo +nightly fuzz run proxy_header`.
#![no_main]

#[path = "../../crates/input/tests/fuzz_body/mod.rs"]
#[allow(dead_code, reason = "each target runs one of the bodies")]
mod fuzz_body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_body::proxy_header(bytes));
