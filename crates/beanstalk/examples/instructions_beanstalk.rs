//! The shapes of a peer's bytes that cost most by beanstalkd's protocol, to count their
//! instructions: `cargo xtask instructions` runs it under callgrind with two counts and prints the
//! difference.
//!
//! `instructions_beanstalk CASE STORE COUNT`, where CASE is one of the shapes in `main`, of which
//! each of COUNT is 16 KiB. STORE is not looked at: these bytes store nothing.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "it is a measurement")]
#![allow(dead_code, reason = "it uses a part of what tests have")]

#[path = "../tests/protocol/answers.rs"]
mod answers;
#[path = "../tests/protocol/connection.rs"]
mod connection;
#[path = "../tests/protocol/facts.rs"]
mod facts;
#[path = "../tests/protocol/ours.rs"]
mod ours;

use ours::Ours;

const BYTES: usize = 16 * 1024;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [what, _, count] = words[..] else { panic!("instructions_beanstalk WHAT STORE COUNT") };
    let shape: &[u8] = match what {
        "unknown" => b"x\r\n",
        "missing" => b"peek 9\r\n",
        "statistics" => b"stats\r\n",
        "tubes" => b"watch a\r\nignore a\r\n",
        "refused" => b"put 0 0 0 0\r\n\r\r",
        _ => panic!("{what}?"),
    };
    let bytes = shape.repeat(BYTES / shape.len());
    let (mut ours, count) = (Ours::new(), count.parse::<u32>().unwrap());
    let id = ours.connect();
    for _ in 0..count {
        ours.receive(id, &bytes);
        assert!(!ours.output(id).is_empty(), "each is answered");
    }
}
