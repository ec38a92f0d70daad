//! What a start takes of memory, with a log that is larger than all of that.

use crate::broker::Broker;
use crate::common::{Directory, dunlin};
use crate::neighbours::{Lines, Neighbours};

/// The least that a server can be given, and a quarter more.
const LIMIT: [&str; 2] = ["--memory-limit", "64M"];
const MEMORY_BYTES: usize = 80 << 20;

const BODY_BYTES: usize = 8_000;
const MESSAGES: usize = 16_000;
/// Sent before the answers are read.
const BATCH: usize = 100;

#[test]
fn a_start_keeps_to_the_memory_that_it_was_given() {
    let directory = Directory::new("restarted");
    let mut command = dunlin(&directory);
    command.arg("serve").args(LIMIT);
    let broker = Broker::start(directory, command);
    let mut sender = Lines::new(broker.socket("redis"));
    let body = "x".repeat(BODY_BYTES);
    for _ in 0..MESSAGES / BATCH {
        sender.send(
            format!("*3\r\n$5\r\nLPUSH\r\n$1\r\nq\r\n${BODY_BYTES}\r\n{body}\r\n").repeat(BATCH),
        );
        (0..BATCH).for_each(|_| assert!(sender.line().starts_with(':')));
    }
    let broker = broker.killed_and_started(&LIMIT);
    let most = broker.resident_bytes_most();
    assert!(most < MEMORY_BYTES, "{most} bytes");
    Neighbours::of(&broker).exchange();
    let mut receiver = Lines::new(broker.socket("redis"));
    assert_eq!(receiver.ask("LLEN q"), format!(":{MESSAGES}"));
}
