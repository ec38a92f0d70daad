//! A connection with an engine behind it: `cargo +nightly fuzz run amqp_connection`. How to begin
//! with what the scripts send is told in `crates/amqp/tests/connection/seeds.rs`.
#![no_main]

#[path = "../../crates/amqp/tests/connection/hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hostile::peer(bytes));
