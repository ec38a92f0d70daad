//! Peers that ask for much and read none of it.

use testkit::amqp_peer::{AmqpPeer, MANY, credit, receiver};

use crate::broker::{Broker, Fountain};
use crate::neighbours::{Lines, Neighbours};

/// Bytes that all buffers may hold.
const BUFFERED: &str = "16777216";
/// Bytes by which the process may grow for that: "memory may be twice as much".
const GROWN_MAX: usize = 64 << 20;
const PEERS: usize = 40;
const BODY_BYTES: usize = 60_000;

/// The message that all of them want, as job 1 and the element of a list.
fn stored(test: &str) -> (Broker, Neighbours) {
    let broker = Broker::in_memory(test, &["--max-buffered-bytes", BUFFERED]);
    let body = "x".repeat(BODY_BYTES);
    let mut owner = Lines::new(broker.socket("beanstalkd"));
    assert_eq!(owner.ask(&format!("put 0 0 60 {BODY_BYTES}\r\n{body}")), "INSERTED 1");
    let mut owner = Lines::new(broker.socket("redis"));
    owner.send(format!("*3\r\n$5\r\nLPUSH\r\n$4\r\nlist\r\n${BODY_BYTES}\r\n"));
    assert_eq!(owner.ask(&body), ":1");
    let mut neighbours = Neighbours::of(&broker);
    neighbours.exchange();
    (broker, neighbours)
}

#[test]
fn unread_answers_pause_their_client() {
    let get = b"GET /queues/list/messages?browse HTTP/1.1\r\nhost: localhost\r\n\r\n";
    for (protocol, question) in [
        ("beanstalkd", &b"peek 1\r\n"[..]),
        ("beanstalkd", b"stats\r\n"),
        ("redis", b"LRANGE list 0 -1\r\n"),
        ("redis", b"INFO\r\n"),
        ("http", get),
        ("http", b"GET /queues HTTP/1.1\r\nhost: localhost\r\n\r\n"),
    ] {
        let (broker, mut neighbours) = stored("unread");
        let before = broker.resident_bytes();
        let peer = || Fountain::new(broker.socket(protocol), question);
        let mut peers: Vec<_> = (0..PEERS).map(|_| peer()).collect();
        for _ in 0..30 {
            // Some may be closed: the one that holds the most is.
            peers.iter_mut().for_each(|peer| _ = peer.pour(200_000));
            neighbours.exchange();
        }
        let asked: usize = peers.iter().map(|peer| peer.sent / question.len()).sum();
        let question = String::from_utf8_lossy(question).into_owned();
        assert!(asked > PEERS * 100, "{question} was asked {asked} times");
        let grown = broker.resident_bytes().saturating_sub(before);
        assert!(grown < GROWN_MAX, "{question}: {grown} bytes for answers that nobody reads");
    }
}

#[test]
fn unread_subscriptions_are_bounded() {
    let (broker, mut neighbours) = stored("unread-topics");
    let before = broker.resident_bytes();
    let subscriber = |_| {
        let mut peer = Lines::new(broker.socket("redis"));
        assert_eq!(peer.ask("SUBSCRIBE news"), "*3");
        peer
    };
    let follower = |_| {
        let mut peer = Lines::new(broker.socket("http"));
        peer.send("GET /topics/news/events HTTP/1.1\r\nhost: localhost\r\n\r\n");
        assert_eq!(peer.line(), "HTTP/1.1 200 OK");
        peer
    };
    let silent: Vec<_> = (0..PEERS).map(subscriber).chain((0..PEERS).map(follower)).collect();
    let mut publisher = Lines::new(broker.socket("redis"));
    let body = "x".repeat(BODY_BYTES);
    for _ in 0..200 {
        publisher.send(format!("*3\r\n$7\r\nPUBLISH\r\n$4\r\nnews\r\n${BODY_BYTES}\r\n"));
        let told = publisher.ask(&body);
        assert!(told.starts_with(':'), "{told}");
        neighbours.exchange();
    }
    let grown = broker.resident_bytes().saturating_sub(before);
    assert!(grown < GROWN_MAX, "{grown} bytes for 12 MB that nobody reads");
    drop(silent);
    neighbours.exchange();
}

/// Each peer waits with a message of its own.
#[test]
fn unread_topic_followers_cost_little() {
    const TOPICS: usize = 40;
    let broker = Broker::in_memory("own-topics", &["--memory-limit", "64M"]);
    let follower = |topic| {
        let mut peer = Lines::new(broker.socket("http"));
        peer.send(format!("GET /topics/t{topic}/events HTTP/1.1\r\nhost: localhost\r\n\r\n"));
        assert_eq!(peer.line(), "HTTP/1.1 200 OK");
        peer
    };
    let silent: Vec<_> = (0..TOPICS).map(follower).collect();
    let mut publisher = Lines::new(broker.socket("http"));
    let body = "x".repeat(900_000);
    // More than the system's buffers hold.
    for _ in 0..12 {
        for topic in 0..TOPICS {
            let path = format!("/topics/t{topic}/messages");
            assert_eq!(publisher.request("POST", &path, &body).0, 201);
        }
    }
    drop(silent);
    let most = broker.resident_bytes_most();
    assert!(most < 88 << 20, "{most} bytes");
}

/// Bytes sent ahead to a peer are bounded for each subscription, and their sum by all buffers.
#[test]
fn unread_subscriptions_of_one_client_bounded() {
    const TOPICS: usize = 100;
    let broker = Broker::in_memory("many-topics", &["--memory-limit", "64M"]);
    let mut neighbours = Neighbours::of(&broker);
    let mut silent = Lines::new(broker.socket("redis"));
    for topic in 0..TOPICS {
        assert_eq!(silent.ask(&format!("SUBSCRIBE t{topic}")), "*3");
        (0..5).for_each(|_| _ = silent.line());
    }
    let mut publisher = Lines::new(broker.socket("redis"));
    let body = "x".repeat(1_000_000);
    for topic in 0..TOPICS {
        let name = format!("t{topic}");
        publisher.send(format!("*3\r\n$7\r\nPUBLISH\r\n${}\r\n{name}\r\n", name.len()));
        publisher.send("$1000000\r\n");
        assert!(publisher.ask(&body).starts_with(':'));
    }
    neighbours.exchange();
    let most = broker.resident_bytes_most();
    assert!(most < 80 << 20, "{most} bytes for one who does not read");
}

/// Credit for a million messages, of which none is read.
#[test]
fn unread_deliveries_by_credit_cost_little() {
    let (broker, mut neighbours) = stored("unread-amqp");
    let mut owner = Lines::new(broker.socket("beanstalkd"));
    assert_eq!(owner.ask("use wanted"), "USING wanted");
    let body = "x".repeat(BODY_BYTES);
    for _ in 0..400 {
        assert!(owner.ask(&format!("put 0 0 60 {BODY_BYTES}\r\n{body}")).starts_with("INSERTED"));
    }
    let before = broker.resident_bytes();
    let consumer = |_| {
        let mut peer = AmqpPeer::with_session(broker.socket("amqp"));
        peer.say(&receiver(0, "wanted"), &[]);
        peer.say(&credit(0, 0, MANY), &[]);
        peer
    };
    // Fewer than the deliveries in vain that make a dead letter of a message.
    let peers: Vec<_> = (0..8).map(consumer).collect();
    for _ in 0..30 {
        neighbours.exchange();
    }
    let grown = broker.resident_bytes().saturating_sub(before);
    assert!(grown < GROWN_MAX, "{grown} bytes beside the messages");
    drop(peers);
    assert_eq!(owner.ask("watch wanted"), "WATCHING 2");
    for _ in 0..400 {
        let reserved = owner.ask("reserve");
        let id = reserved.split(' ').nth(1).unwrap().to_owned();
        owner.skip(BODY_BYTES + 2);
        assert_eq!(owner.ask(&format!("delete {id}")), "DELETED");
    }
}
