//! Tokens of issuers and their files of keys: `cargo +nightly fuzz run access_jwt`.
#![no_main]

#[path = "../../crates/access/tests/fuzz_body/mod.rs"]
#[allow(dead_code, reason = "each target runs one of the bodies")]
mod fuzz_body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    fuzz_body::jwt(bytes);
});
