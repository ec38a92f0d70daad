//! Any bytes to a session of beanstalkd, with an engine behind it: `cargo +nightly fuzz run
//! beanstalkd`.
#![no_main]
#![allow(dead_code, reason = "the modules belong to a test that uses more of them")]

#[path = "../../crates/beanstalk/tests/protocol/answers.rs"]
mod answers;
#[path = "../../crates/beanstalk/tests/protocol/connection.rs"]
mod connection;
#[path = "../../crates/beanstalk/tests/protocol/facts.rs"]
mod facts;
#[path = "../../crates/beanstalk/tests/protocol/hostile.rs"]
mod hostile;
#[path = "../../crates/beanstalk/tests/protocol/ours.rs"]
mod ours;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    hostile::bytes(bytes);
    hostile::stranger(bytes);
});
