//! Many clients that send much by HTTP at once, and others that take it, with the least memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::broker::Broker;
use crate::common::{Directory, dunlin};
use crate::neighbours::Lines;

/// The least that a server can be given, and an eighth more: without a bound on bytes that wait to
/// be written or sent the process took 78 MiB, else 65 at most.
const MEMORY_LIMIT: &str = "64M";
const MEMORY_BYTES: usize = 74 << 20;

const SENDERS: usize = 20;
const WORKERS: usize = 10;
/// Of each sender: so many by lines, and as many as copies of one.
const BATCHES: usize = 6;
const BATCH: usize = 1_000;
const MESSAGES: usize = SENDERS * 2 * BATCHES * BATCH;

/// The clients send far more at once than there is room for: they are slowed, and none is refused.
#[test]
fn concurrent_batches_stay_within_memory_limit() {
    let directory = Directory::new("busy");
    let mut command = dunlin(&directory);
    command.args(["serve", "--memory-limit", MEMORY_LIMIT]);
    let broker = Broker::start(directory, command);
    let (sending, taken) = (AtomicUsize::new(SENDERS), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..SENDERS {
            let sending = Sending(&sending);
            scope.spawn(|| send(Lines::new(broker.socket("http")), sending));
        }
        for _ in 0..WORKERS {
            scope.spawn(|| work(Lines::new(broker.socket("http")), &sending, &taken));
        }
    });
    assert_eq!(taken.load(Ordering::Relaxed), MESSAGES, "each is taken once");
    let most = broker.resident_bytes_most();
    assert!(most < MEMORY_BYTES, "{most} bytes");
}

/// A line of one byte is a message with all properties that the head names, and a piece of a body
/// holds thousands of them: each sender that waits for room would have 40 MB beyond it.
#[test]
fn lines_become_messages_within_memory_limit() {
    const SENDERS: usize = 20;
    let broker = Broker::in_memory("lines", &["--memory-limit", MEMORY_LIMIT]);
    let property = "x".repeat(8_000);
    let half = "1\n".repeat(5_000);
    let head = format!(
        "POST /queues/q/messages?lines HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\n\
         dunlin-property-p: {property}\r\ncontent-length: {}\r\n\r\n",
        2 * half.len()
    );
    let mut senders = Vec::new();
    for _ in 0..SENDERS {
        let mut sender = Lines::new(broker.socket("http"));
        assert_eq!(sender.send(&head).line(), "HTTP/1.1 100 Continue");
        senders.push(sender);
    }
    for sender in &mut senders {
        sender.send(&half);
    }
    let mut other = Lines::new(broker.socket("http"));
    for _ in 0..10 {
        assert_eq!(other.request("GET", "/health", "").0, 200);
    }
    drop(senders);
    let lines = "1\n".repeat(30_000);
    let head = head.replace("expect: 100-continue\r\n", "");
    other.send(head.replace("20000\r\n\r\n", &format!("{}\r\n\r\n", lines.len()))).send(lines);
    assert_eq!(other.line(), "HTTP/1.1 413 Payload Too Large", "all of them would take 240 MB");
    let most = broker.resident_bytes_most();
    assert!(most < MEMORY_BYTES, "{most} bytes");
}

/// One sender, however it ends.
struct Sending<'a>(&'a AtomicUsize);

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn send(mut http: Lines, _sending: Sending<'_>) {
    let body = "x".repeat(1024);
    let lines = format!("{body}\n").repeat(BATCH);
    for _ in 0..BATCHES {
        let (status, _, answer) = http.request("POST", "/queues/bulk/messages?lines", &lines);
        assert_eq!(status, 201, "{answer}");
        let copies = format!("/queues/bulk/messages?count={BATCH}");
        let (status, _, answer) = http.request("POST", &copies, &body);
        assert_eq!(status, 201, "{answer}");
    }
}

/// Takes messages by hundreds until all sent messages are taken.
fn work(mut http: Lines, sending: &AtomicUsize, taken: &AtomicUsize) {
    loop {
        let is_last = sending.load(Ordering::Relaxed) == 0;
        let (status, _, answer) = http.request("GET", "/queues/bulk/messages?max=100", "");
        assert_eq!(status, 200, "{answer}");
        let leases = answer.split("\"lease\":\"").skip(1);
        let leases: Vec<_> = leases.map(|rest| rest.split('"').next().unwrap()).collect();
        if leases.is_empty() && is_last {
            break;
        }
        let settle: Vec<_> = leases.iter().map(|it| format!("{{\"lease\":\"{it}\"}}")).collect();
        let settle = format!("{{\"settle\":[{}]}}", settle.join(","));
        let (status, _, answer) = http.request("POST", "/transactions", &settle);
        assert_eq!(status, 200, "{answer}");
        taken.fetch_add(leases.len(), Ordering::Relaxed);
    }
}
