//! What a start takes of memory, with a log that is larger than all of that, and what becomes of
//! messages that were stored when there was more.

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

/// All buffers together hold 8 MiB of the least memory. Who asks for more than that gets it, one at
/// a time: to close it would only bring the message to the next.
#[test]
fn what_was_stored_when_there_was_more_memory_is_delivered() {
    const LARGE_BYTES: usize = 12 << 20;
    let directory = Directory::new("larger");
    let mut command = dunlin(&directory);
    command.args(["serve", "--memory-limit", "1G"]);
    let broker = Broker::start(directory, command);
    let mut sender = Lines::new(broker.socket("http"));
    let large = "x".repeat(LARGE_BYTES);
    for body in [&large, &large, "small"] {
        assert_eq!(sender.request("POST", "/queues/q/messages", body).0, 201);
    }
    let broker = broker.killed_and_started(&LIMIT);
    let mut neighbours = Neighbours::of(&broker);
    let worker = || {
        let mut worker = Lines::new(broker.socket("beanstalkd"));
        assert_eq!(worker.ask("watch q"), "WATCHING 2");
        worker
    };
    let mut slow = worker();
    assert_eq!(slow.ask("reserve"), format!("RESERVED 1 {LARGE_BYTES}"));
    neighbours.exchange();
    let mut other = worker();
    assert_eq!(other.ask("reserve"), format!("RESERVED 2 {LARGE_BYTES}"));
    assert!(other.line().len() < LARGE_BYTES, "closed: one at a time");
    slow.skip(LARGE_BYTES + 2);
    assert_eq!(slow.ask("delete 1"), "DELETED");
    let mut other = worker();
    assert_eq!(other.ask("reserve"), format!("RESERVED 2 {LARGE_BYTES}"));
    other.skip(LARGE_BYTES + 2);
    assert_eq!(other.ask("delete 2"), "DELETED");
    assert_eq!(other.ask("reserve"), "RESERVED 3 5");
    neighbours.exchange();
}
