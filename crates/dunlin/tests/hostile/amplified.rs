//! Peers that ask for far more than they send, all at once.

use crate::broker::Broker;
use crate::neighbours::{Lines, Neighbours};
use amqp::performative::Performative;
use testkit::amqp_peer::{AmqpPeer, sender};

/// The least that a server can be given.
const MEMORY_LIMIT: &str = "64M";
const MEMORY_BYTES: usize = 64 << 20;

/// Of which a message may have, and a reply show.
const MESSAGE_BYTES: usize = MEMORY_BYTES / 32;

fn small(test: &str) -> (Broker, Neighbours, Lines) {
    let broker = Broker::in_memory(test, &["--memory-limit", MEMORY_LIMIT]);
    let mut neighbours = Neighbours::of(&broker);
    neighbours.exchange();
    let peer = Lines::new(broker.socket("redis"));
    (broker, neighbours, peer)
}

/// Answers of EXEC to so many equal commands: the bytes that were shown, and the number of
/// refusals.
fn transact(peer: &mut Lines, command: &str, count: usize) -> (usize, usize) {
    assert_eq!(peer.ask("MULTI"), "+OK");
    peer.send(format!("{command}\r\n").repeat(count));
    for _ in 0..count {
        assert_eq!(peer.line(), "+QUEUED");
    }
    assert_eq!(peer.ask("EXEC"), format!("*{count}"));
    let (mut shown, mut refused) = (0, 0);
    for _ in 0..count {
        let line = peer.line();
        if let Some(bytes) = line.strip_prefix('$') {
            let bytes: usize = bytes.parse().unwrap_or_else(|_| panic!("{line}"));
            peer.skip(bytes + 2);
            shown += bytes;
        } else {
            assert!(line.starts_with("-ERR too large for one reply"), "{line}");
            assert!(line.contains("--memory-limit"), "{line}");
            refused += 1;
        }
    }
    (shown, refused)
}

/// Each would be answered with more than half a gigabyte.
#[test]
fn transaction_replies_are_bounded_by_memory() {
    let (broker, mut neighbours, mut peer) = small("amplified");
    let value = "v".repeat(64 << 10);
    peer.send(format!("*3\r\n$3\r\nSET\r\n$1\r\nv\r\n${}\r\n{value}\r\n", value.len()));
    assert_eq!(peer.line(), "+OK");
    let element = "x".repeat(1 << 20);
    for list in ["l", "m"] {
        for length in 1..4 {
            peer.send(format!("*3\r\n$5\r\nRPUSH\r\n$1\r\n{list}\r\n$1048576\r\n{element}\r\n"));
            assert_eq!(peer.line(), format!(":{length}"));
        }
    }
    for (command, count) in [
        ("GET v", 9_000),
        ("RPOPLPUSH l l", 1_000),
        ("LINDEX l 0", 1_000),
        ("GETDEL v", 1),
        ("LPOP m", 100),
    ] {
        let (shown, refused) = transact(&mut peer, command, count);
        assert!(shown <= MESSAGE_BYTES, "{shown} bytes for {command}");
        assert!(shown > 0 && (refused > 0 || count == 1), "{command}: {refused} refused");
        neighbours.exchange();
    }
    // Elements that were not shown were not taken.
    assert_eq!((peer.ask("LLEN l"), peer.ask("LLEN m")), (":3".into(), ":2".into()));
    let most = broker.resident_bytes_most();
    assert!(most < MEMORY_BYTES + MEMORY_BYTES / 4, "{most} bytes");
}

/// Each peer may have one reply. The replies are there before it is known which peers read.
#[test]
fn unread_large_replies_close_their_clients() {
    const PEERS: usize = 60;
    let broker = Broker::in_memory("crowd", &["--memory-limit", "256M"]);
    let mut neighbours = Neighbours::of(&broker);
    neighbours.exchange();
    let mut peer = Lines::new(broker.socket("redis"));
    let element = "x".repeat(1_000_000);
    for length in 1..8 {
        peer.send(format!("*3\r\n$5\r\nRPUSH\r\n$1\r\nl\r\n$1000000\r\n{element}\r\n"));
        assert_eq!(peer.line(), format!(":{length}"));
    }
    let crowd: Vec<_> = (0..PEERS).map(|_| broker.told("redis", b"LRANGE l 0 -1\r\n")).collect();
    for _ in 0..50 {
        neighbours.exchange();
    }
    let most = broker.resident_bytes_most();
    assert!(most < 192 << 20, "{most} bytes for {} who read nothing", crowd.len());
    assert_eq!(peer.ask("LLEN l"), ":7");
}

/// Replies that the server makes by itself.
#[test]
fn transaction_of_server_commands_is_bounded() {
    let (broker, mut neighbours, mut peer) = small("amplified-words");
    assert_eq!(peer.ask("MULTI"), "+OK");
    for _ in 0..5_000 {
        assert_eq!(peer.ask("COMMAND"), "+QUEUED");
    }
    assert_eq!(peer.ask("LLEN q"), "+QUEUED");
    assert_eq!(peer.ask("EXEC"), "*5001");
    let (mut bytes, mut refused) = (0, 0);
    while refused == 0 {
        let line = peer.line();
        bytes += line.len() + 2;
        refused += usize::from(line.starts_with("-ERR too much for one transaction"));
        assert!(bytes < MESSAGE_BYTES + (1 << 20), "{bytes} bytes and none is refused");
    }
    // A command about a queue is answered all the same.
    while peer.line() != ":0" {
        refused += 1;
        assert!(refused < 5_000, "the length is not told");
    }
    assert!((4_000..5_000).contains(&refused), "{refused} refused");
    neighbours.exchange();
    assert!(broker.resident_bytes_most() < MEMORY_BYTES, "it is not kept");
}

/// By every protocol, and before its body is kept.
#[test]
fn message_over_buffers_is_refused() {
    let (broker, mut neighbours, mut peer) = small("large-messages");
    let beyond = MESSAGE_BYTES + 1;
    peer.send(format!("*3\r\n$5\r\nLPUSH\r\n$1\r\nq\r\n${beyond}\r\n"));
    let line = peer.line();
    assert!(line.contains("invalid bulk length"), "{line}");
    let mut peer = Lines::new(broker.socket("http"));
    peer.send(format!(
        "POST /queues/q/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: {beyond}\r\n\r\n"
    ));
    let line = peer.line();
    assert!(line.contains("413"), "{line}");
    let mut peer = AmqpPeer::with_session(broker.socket("amqp"));
    peer.say(&sender(0, "q"), &[]);
    let most = peer.hear(|heard| match heard {
        Performative::Attach(attach) => Some(attach.max_message_size),
        _ => None,
    });
    assert_eq!(most, Some(MESSAGE_BYTES as u64));
    let body = "x".repeat(MESSAGE_BYTES);
    let mut peer = Lines::new(broker.socket("redis"));
    peer.send(format!("*3\r\n$5\r\nLPUSH\r\n$1\r\nq\r\n${MESSAGE_BYTES}\r\n{body}\r\n"));
    assert_eq!(peer.line(), ":1", "the largest has room");
    neighbours.exchange();
}
