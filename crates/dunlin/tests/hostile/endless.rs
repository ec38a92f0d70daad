//! Commands that do not end, and peers that never stop.

use amqp::performative::{Flow, Performative};
use testkit::amqp_peer::{AmqpPeer, MANY, credit, encoded, receiver, sender};

use crate::broker::{Broker, Fountain};
use crate::login;
use crate::neighbours::{Lines, Neighbours};

/// Sent by each peer, if it is let.
const BYTES_EACH: usize = 80 << 20;
const PEERS: usize = 3;

/// Bytes that follow for ever, behind a beginning.
pub(crate) struct Flood {
    pub(crate) protocol: &'static str,
    pub(crate) begins: String,
    pub(crate) goes_on: String,
    /// The answer with which the connection is closed; none if the peer may go on.
    pub(crate) closed: Option<&'static str>,
}

pub(crate) fn floods() -> Vec<Flood> {
    let post = "POST /queues/q/messages HTTP/1.1\r\nhost: localhost\r\n";
    let chunked = format!("{post}transfer-encoding: chunked\r\n\r\n");
    let (word, chunk) = ("x".repeat(100), "x".repeat(0x1000));
    let (bulk, chunk) = (format!("$100\r\n{word}\r\n"), format!("1000\r\n{chunk}\r\n"));
    let flood = |protocol, begins: &str, goes_on: &str, closed| {
        let (begins, goes_on) = (begins.to_owned(), goes_on.to_owned());
        Flood { protocol, begins, goes_on, closed }
    };
    vec![
        // Skipped: a line that is too long to its end, a body as long as it was said to be.
        flood("beanstalkd", "", "x", None),
        flood("beanstalkd", "put 0 0 60 4294967295\r\n", "x", None),
        flood("beanstalkd", "", "\r\n", None),
        flood("redis", "", "x", Some("too big inline request")),
        flood("redis", "*", "1", Some("too big mbulk count")),
        flood("redis", "", "*1048576\r\n", Some("expected '$'")),
        flood("redis", "*1048576\r\n", &bulk, Some("too big command")),
        flood("redis", "MULTI\r\n", "LPUSH l x\r\n", None),
        flood("http", post, "x-more: and more\r\n", Some("431")),
        // The first refusal may be for the bytes that all peers hold together.
        flood("http", &chunked, &chunk, Some(" Service Unavailable|Too Large")),
        flood("http", "", "GET /health\r\n", Some("400")),
    ]
}

#[test]
fn endless_commands_cost_little() {
    pour_all(|options| Broker::in_memory("endless", options), |_, begins| begins.to_vec());
}

#[test]
fn endless_commands_of_guest_cost_little() {
    pour_all(|options| Broker::with_users("endless-guest", options), login::of_guest);
}

/// Each flood meets a broker of its own, whose peers begin like this.
fn pour_all(start: impl Fn(&[&str]) -> Broker, begin: impl Fn(&str, &[u8]) -> Vec<u8>) {
    for flood in floods() {
        let broker = start(&["--max-buffered-bytes", "33554432"]);
        let mut neighbours = Neighbours::of(&broker);
        neighbours.exchange();
        let before = broker.resident_bytes();
        let Flood { protocol, begins, goes_on, closed } = flood;
        let beginning = begin(protocol, begins.as_bytes());
        let peer = || Fountain::new(broker.told(protocol, &beginning), goes_on.as_bytes());
        let mut peers: Vec<_> = (0..PEERS).map(|_| peer()).collect();
        let what = format!("{begins}{}…", &goes_on[..goes_on.len().min(20)]);
        let mut open = PEERS;
        // Some are closed. Each other peer reads nothing and is held up, or its bytes are taken for
        // ever.
        for _ in 0..200 {
            open =
                peers.iter_mut().map(|peer| peer.pour(BYTES_EACH / 200)).filter(|it| *it).count();
            neighbours.exchange();
        }
        let grown = broker.resident_bytes().saturating_sub(before);
        assert!(grown < 128 << 20, "{what} by {protocol} takes {grown} bytes");
        let Some(words) = closed else {
            assert_eq!(open, PEERS, "{what} may go on");
            continue;
        };
        assert_eq!(open, 0, "{what} is refused");
        // A reset may have swept the words away for some.
        let said: Vec<_> = peers.into_iter().map(Fountain::rest).collect();
        let is_told = |it: &String| words.split('|').any(|words| it.contains(words));
        let is_swept = |it: &String| it.is_empty() || it == "+OK\r\n";
        assert!(said.iter().all(|it| is_swept(it) || is_told(it)), "{said:?}");
    }
}

/// A message in pieces of which each says that more follow.
#[test]
fn endless_amqp_message_ends_its_link() {
    let broker = Broker::in_memory("endless-amqp", &["--max-message-bytes", "1048576"]);
    let mut neighbours = Neighbours::of(&broker);
    let mut peer = AmqpPeer::with_session(broker.socket("amqp"));
    peer.say(&sender(0, "q"), &[]);
    peer.hear(|heard| matches!(heard, Performative::Flow(_)).then_some(()));
    for _ in 0..(1 << 20) / 250 {
        peer.transfer(&[b'x'; 250], true);
    }
    peer.transfer(&[b'x'; 250], true);
    neighbours.exchange();
    let condition = peer.hear(|heard| match heard {
        Performative::Detach(detach) => detach.error.map(|error| error.condition.to_string()),
        _ => None,
    });
    assert_eq!(condition, "amqp:link:message-size-exceeded");
    neighbours.exchange();
}

/// Credit that comes and goes, is drained, echoed and taken back, by a peer that reads nothing.
#[test]
fn credit_games_take_no_message() {
    const MESSAGES: usize = 1_000;
    let broker = Broker::in_memory("credit", &[]);
    let mut neighbours = Neighbours::of(&broker);
    let mut owner = Lines::new(broker.socket("beanstalkd"));
    assert_eq!(owner.ask("use wanted"), "USING wanted");
    for _ in 0..MESSAGES {
        assert!(owner.ask(&format!("put 0 0 60 1000\r\n{}", "x".repeat(1000))).starts_with("INS"));
    }
    let before = broker.resident_bytes();
    let games = || {
        let mut peer = AmqpPeer::with_session(broker.socket("amqp"));
        peer.say(&receiver(0, "wanted"), &[]);
        Fountain::new(peer.socket, &moves())
    };
    // Fewer than the deliveries in vain that make a dead letter of a message.
    let mut peers: Vec<_> = (0..8).map(|_| games()).collect();
    for _ in 0..100 {
        peers.iter_mut().for_each(|peer| assert!(peer.pour(100_000)));
        neighbours.exchange();
    }
    assert!(peers.iter().all(|peer| peer.sent >= 100_000), "they were heard");
    let grown = broker.resident_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes");
    drop(peers);
    // All of them are there again: messages that were on their way to the players came back.
    assert_eq!(owner.ask("watch wanted"), "WATCHING 2");
    for _ in 0..MESSAGES {
        let reserved = owner.ask("reserve");
        let id = reserved.split(' ').nth(1).unwrap_or_else(|| panic!("{reserved}"));
        owner.skip(1002);
        assert_eq!(owner.ask(&format!("delete {id}")), "DELETED");
    }
    neighbours.exchange();
}

/// A player's round.
fn moves() -> Vec<u8> {
    let flow = |drain, echo, link_credit, delivery_count| {
        Performative::Flow(Flow {
            next_incoming_id: Some(0),
            incoming_window: MANY,
            handle: Some(0),
            delivery_count: Some(delivery_count),
            link_credit: Some(link_credit),
            drain,
            echo,
            ..Flow::default()
        })
    };
    let moves = [
        credit(0, 0, u32::MAX),
        credit(0, 0, 0),
        flow(true, true, 1, 0),
        flow(false, true, 0, u32::MAX),
        flow(true, false, u32::MAX, 1 << 31),
        flow(false, true, 0, 0),
    ];
    moves.iter().flat_map(|performative| encoded(performative, &[])).collect()
}
