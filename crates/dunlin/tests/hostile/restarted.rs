//! The memory that a start takes and keeps, with a log that is larger than memory. Messages that
//! were stored under a larger memory limit are delivered after it.

use crate::broker::Broker;
use crate::common::{Directory, dunlin};
use crate::neighbours::{Lines, Neighbours};

/// The least that a server can be given, and a quarter more.
const LIMIT: [&str; 2] = ["--memory-limit", "64M"];
const MEMORY_BYTES: usize = 80 << 20;

/// Bytes that are stored before the kill: more than twice the memory limit.
const BYTES: usize = 128_000_000;
/// Sent before the answers are read.
const BATCH: usize = 20;

#[test]
fn start_stays_within_memory_limit() {
    let broker = restarted_with("restarted", 8_000);
    let most = broker.resident_bytes_most();
    assert!(most < MEMORY_BYTES, "{most} bytes");
    Neighbours::of(&broker).exchange();
    let mut receiver = Lines::new(broker.socket("redis"));
    assert_eq!(receiver.ask("LLEN q"), ":16000");
}

#[test]
fn bodies_loaded_at_start_make_room() {
    let body_bytes = 100_000;
    let broker = restarted_with("restarted-large", body_bytes);
    let mut client = Lines::new(broker.socket("redis"));
    for _ in 0..2 {
        for _ in 0..BYTES / body_bytes {
            assert_eq!(client.ask("RPOP q"), format!("${body_bytes}"));
            client.skip(body_bytes + 2);
        }
        assert_eq!(client.ask("LLEN q"), ":0");
        fill(&mut client, body_bytes);
    }
    let most = broker.resident_bytes_most();
    assert!(most < MEMORY_BYTES, "{most} bytes");
}

/// A start reads pieces of the log one after the other, however much the log once held.
#[test]
fn start_takes_memory_of_two_pieces() {
    let directory = Directory::new("restarted-small");
    let mut command = dunlin(&directory);
    command.args(["serve", "--memory-limit", "1G"]);
    let broker = Broker::start(directory, command);
    let empty = broker.resident_bytes_most();
    let mut client = Lines::new(broker.socket("redis"));
    let body = "x".repeat(8_000);
    let push = format!("*3\r\n$5\r\nLPUSH\r\n$1\r\nq\r\n$8000\r\n{body}\r\n");
    for _ in 0..40_000_000 / 8_000 / BATCH {
        client.send(push.repeat(BATCH));
        (0..BATCH).for_each(|_| assert!(client.line().starts_with(':')));
        client.send("DEL q\r\n");
        assert_eq!(client.line(), ":1");
    }
    assert_eq!(client.ask("LPUSH q one"), ":1");
    let broker = broker.killed_and_started(&["--memory-limit", "1G"]);
    let most = broker.resident_bytes_most().saturating_sub(empty);
    assert!(most < 12 << 20, "{most} bytes more than in an empty directory");
    assert_eq!(Lines::new(broker.socket("redis")).ask("LLEN q"), ":1");
}

/// One that was killed with so much in the list `q`, in elements of this size.
fn restarted_with(test: &str, body_bytes: usize) -> Broker {
    let directory = Directory::new(test);
    let mut command = dunlin(&directory);
    command.arg("serve").args(LIMIT);
    let broker = Broker::start(directory, command);
    fill(&mut Lines::new(broker.socket("redis")), body_bytes);
    broker.killed_and_started(&LIMIT)
}

fn fill(sender: &mut Lines, body_bytes: usize) {
    let body = "x".repeat(body_bytes);
    let push = format!("*3\r\n$5\r\nLPUSH\r\n$1\r\nq\r\n${body_bytes}\r\n{body}\r\n");
    for _ in 0..BYTES / body_bytes / BATCH {
        sender.send(push.repeat(BATCH));
        (0..BATCH).for_each(|_| assert!(sender.line().starts_with(':')));
    }
}

/// All buffers together hold 8 MiB of the least memory. A consumer of a larger message gets it, one
/// at a time: closing it would only bring the message to the next consumer.
#[test]
fn message_over_lowered_memory_limit_delivered() {
    const LARGE_BYTES: usize = 16 << 20;
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
    // The system would hold most of one message by itself.
    let socket = slow.socket.get_ref();
    rustix::net::sockopt::set_socket_recv_buffer_size(socket, 256 * 1024).unwrap();
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
