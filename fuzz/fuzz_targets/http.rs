//! A client by HTTP with an engine behind it: `cargo +nightly fuzz run http`.
#![no_main]

#[path = "../../crates/http/tests/hostile/gateway.rs"]
mod gateway;
#[path = "../../crates/http/tests/hostile/requests.rs"]
mod requests;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| requests::connection(bytes));
