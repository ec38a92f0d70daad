//! Many who send much by HTTP at once, and others who take it, with the least memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::broker::Broker;
use crate::common::{Directory, dunlin};
use crate::neighbours::Lines;

/// The least that a server can be given, and an eighth more: with what waits to be written or sent
/// not bounded by it the process took 78 MiB, else 65 at most.
const MEMORY_LIMIT: &str = "64M";
const MEMORY_BYTES: usize = 72 << 20;

const SENDERS: usize = 20;
const WORKERS: usize = 10;
/// Of each sender: so many by lines, and as many as copies of one.
const BATCHES: usize = 6;
const BATCH: usize = 1_000;
const MESSAGES: usize = SENDERS * 2 * BATCHES * BATCH;

/// What they send at once is far more than there is room for: they are slowed, and nobody is
/// refused.
#[test]
fn many_batches_at_once_take_no_more_memory_than_there_is() {
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

/// Takes messages by hundreds until nothing is left of what all sent.
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
