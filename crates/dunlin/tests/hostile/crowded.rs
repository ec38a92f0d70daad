//! Peers that want many small things: names, subscriptions, queues.

use crate::broker::Broker;
use crate::neighbours::{Lines, Neighbours};

/// The least that a server can be given.
const MEMORY_LIMIT: &str = "64M";
const MEMORY_BYTES: usize = 64 << 20;
/// Bytes that the binary has beside it: threads, code, free memory of the allocator.
const BESIDE_BYTES: usize = 32 << 20;

fn small(test: &str) -> (Broker, Neighbours) {
    let broker = Broker::in_memory(test, &["--memory-limit", MEMORY_LIMIT]);
    let mut neighbours = Neighbours::of(&broker);
    neighbours.exchange();
    (broker, neighbours)
}

/// Sends commands in batches; gives how many were answered with this.
fn count(peer: &mut Lines, commands: impl Iterator<Item = String>, answer: &str) -> usize {
    let commands: Vec<_> = commands.collect();
    let mut found = 0;
    for batch in commands.chunks(200) {
        peer.send(batch.concat());
        found += batch.iter().filter(|_| peer.line().starts_with(answer)).count();
    }
    found
}

/// 200,000 queues would take four times the memory that there is. No send waits for memory: such a
/// wait ends after 1 us.
#[test]
fn queue_per_message_refused_by_memory() {
    const WANTED: usize = 200_000;
    let options = ["--memory-limit", MEMORY_LIMIT, "--block-timeout", "1us"];
    let broker = Broker::in_memory("queue-a-message", &options);
    let mut neighbours = Neighbours::of(&broker);
    neighbours.exchange();
    let mut peer = Lines::new(broker.socket("beanstalkd"));
    let (mut stored, mut next) = (0, 0);
    while next < WANTED {
        let batch = next..next + 10_000;
        next = batch.end;
        // If the queue is refused, the put goes to the one before.
        let puts = batch.flat_map(|name| [format!("use n-{name}\r\n"), put(name)]);
        stored += count(&mut peer, puts, "INSERTED");
        assert!(broker.resident_bytes() < MEMORY_BYTES + BESIDE_BYTES, "{stored} are stored");
    }
    assert!((10_000..WANTED).contains(&stored), "{stored} are stored");
    let names = peer.ask("stats-tube n-0");
    assert!(names.starts_with("OK "), "{names}");
    drop(peer);
    // Other clients can still take messages, and the room that these leave can be used again.
    let mut worker = Lines::new(broker.socket("redis"));
    assert_eq!(worker.ask("LPOP n-0"), "$1");
    assert_eq!(worker.line(), "x");
    let deleted = (1..9_000).map(|name| format!("DEL n-{name}\r\n"));
    assert_eq!(count(&mut worker, deleted, ":1"), 8_999);
    assert_eq!(worker.ask("LPUSH n-new x"), ":1");
    neighbours.exchange();
}

fn put(_: usize) -> String {
    "put 0 0 60 1\r\nx\r\n".into()
}

/// A queue without users is gone, with its name.
#[test]
fn queue_names_come_and_go_freely() {
    let (broker, mut neighbours) = small("names");
    let mut peer = Lines::new(broker.socket("beanstalkd"));
    let churn = |peer: &mut Lines, from: usize| {
        let uses = (from..from + 50_000).map(|name| format!("use {name:0200}\r\n"));
        assert_eq!(count(peer, uses, "USING"), 50_000);
    };
    churn(&mut peer, 0);
    let before = broker.resident_bytes();
    for round in 1..4 {
        churn(&mut peer, round * 50_000);
        neighbours.exchange();
    }
    let grown = broker.resident_bytes().saturating_sub(before);
    assert!(grown < 4 << 20, "{grown} bytes for 150,000 names that are gone");
}

#[test]
fn watched_tubes_over_limit_refused() {
    let (broker, mut neighbours) = small("watching");
    let mut peer = Lines::new(broker.socket("beanstalkd"));
    let watches = (0..12_000).map(|name| format!("watch w-{name}\r\n"));
    assert_eq!(count(&mut peer, watches, "WATCHING"), 9_999, "the default tube is the first");
    neighbours.exchange();
    assert_eq!(peer.ask("ignore w-0"), "WATCHING 9999");
    drop(peer);
    neighbours.exchange();
}

/// A hundred thousand subscriptions are a limit of the broker; a small one has room for fewer.
#[test]
fn floods_of_subscriptions_are_refused() {
    let (broker, mut neighbours) = small("subscriptions");
    for word in ["SUBSCRIBE", "PSUBSCRIBE"] {
        let mut peers = Vec::new();
        let mut subscribed = 0;
        for number in 0..10 {
            let mut peer = Lines::new(broker.socket("redis"));
            // RESP3 answers with one line a word, RESP2 as well: the last is the count.
            let wishes = (0..5_000).map(|name| format!("{word} s-{number}-{name}\r\n"));
            for batch in wishes.collect::<Vec<_>>().chunks(200) {
                peer.send(batch.concat());
                subscribed += batch.iter().filter(|_| is_confirmed(&mut peer)).count();
            }
            peers.push(peer);
            neighbours.exchange();
        }
        assert!((4_000..50_000).contains(&subscribed), "{subscribed} by {word}");
        let resident = broker.resident_bytes();
        assert!(resident < MEMORY_BYTES + BESIDE_BYTES, "{resident} for {subscribed} by {word}");
        drop(peers);
        neighbours.exchange();
    }
}

/// Reads one answer to a subscription: an array of three, or an error.
fn is_confirmed(peer: &mut Lines) -> bool {
    let line = peer.line();
    if line.starts_with('-') {
        return false;
    }
    assert_eq!(line, "*3");
    (0..5).for_each(|_| drop(peer.line()));
    true
}
