//! Senders of far more than memory holds, of messages that no log has.

use crate::broker::Broker;
use crate::common::{Directory, dunlin};
use crate::neighbours::{Lines, Neighbours};

/// The least that a server can be given, and a quarter more.
const MEMORY_LIMIT: &str = "64M";
const MEMORY_BYTES: usize = 80 << 20;

const BODY_BYTES: usize = 64 * 1024;
const MESSAGES: usize = 3_200;
/// Sent before the answers are read.
const BATCH: usize = 16;

fn body(number: usize) -> String {
    format!("{number:08}").repeat(BODY_BYTES / 8)
}

fn send(peer: &mut Lines, number: usize) {
    let head = "POST /queues/bulk/messages HTTP/1.1\r\nhost: localhost\r\n\
                dunlin-persistence: none\r\n";
    peer.send(format!("{head}content-length: {BODY_BYTES}\r\n\r\n{}", body(number)));
}

/// The status of the next answer.
fn status(peer: &mut Lines) -> String {
    let status = peer.line();
    let mut bytes = 0;
    loop {
        let line = peer.line();
        if line.is_empty() {
            break;
        }
        if let Some(length) = line.strip_prefix("content-length: ") {
            bytes = length.parse().unwrap();
        }
    }
    peer.skip(bytes);
    status
}

#[test]
fn nonpersistent_bodies_spill_and_come_back() {
    let directory = Directory::new("spilled");
    let mut command = dunlin(&directory);
    command.args(["serve", "--memory-limit", MEMORY_LIMIT]);
    let broker = Broker::start(directory, command);
    let mut neighbours = Neighbours::of(&broker);
    let mut sender = Lines::new(broker.socket("http"));
    for first in (0..MESSAGES).step_by(BATCH) {
        (first..first + BATCH).for_each(|number| send(&mut sender, number));
        for _ in 0..BATCH {
            assert_eq!(status(&mut sender), "HTTP/1.1 201 Created", "after {first}");
        }
        if first.is_multiple_of(100 * BATCH) {
            neighbours.exchange();
        }
    }
    let mut receiver = Lines::new(broker.socket("redis"));
    for first in (0..MESSAGES).step_by(BATCH) {
        receiver.send("RPOP bulk\r\n".repeat(BATCH));
        for number in first..first + BATCH {
            assert_eq!(receiver.line(), format!("${BODY_BYTES}"), "{number}");
            assert!(receiver.line() == body(number), "{number} is what was sent, in its order");
        }
    }
    assert_eq!(receiver.ask("RPOP bulk"), "$-1");
    neighbours.exchange();
    let most = broker.resident_bytes_most();
    assert!(most < MEMORY_BYTES, "{most} bytes for {} of bodies", MESSAGES * BODY_BYTES);
}
