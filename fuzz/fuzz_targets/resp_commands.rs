//! Any commands of three Redis clients with an engine behind them:
//! `cargo +nightly fuzz run resp_commands`.
#![no_main]
#![allow(dead_code, unused_imports, reason = "the modules belong to a test that uses more of them")]

#[path = "../../crates/resp/tests/protocol/connection.rs"]
mod connection;
#[path = "../../crates/resp/tests/protocol/facts.rs"]
mod facts;
#[path = "../../crates/resp/tests/protocol/hostile.rs"]
mod hostile;
#[path = "../../crates/resp/tests/protocol/ours.rs"]
mod ours;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    hostile::commands(bytes);
    hostile::strangers(bytes);
});
