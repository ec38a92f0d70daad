//! The same attacks against a broker with users: by strangers, before they log in, and by a guest,
//! after it has.

use testkit::amqp_peer::{credit, encoded, opening, receiver};

use crate::broker::{Broker, Fountain, PROTOCOLS};
use crate::endless::{self, Flood};
use crate::neighbours::Neighbours;
use crate::{giant, half, login, streams};

/// Sent by each peer, if it is let.
const BYTES_EACH: usize = 8 << 20;
const ROUNDS: usize = 20;

/// Bytes that a peer sends, and others that follow for ever, if there are any.
struct Attack {
    protocol: &'static str,
    begins: Vec<u8>,
    goes_on: Vec<u8>,
}

/// All attacks that other tests send to an open broker.
fn attacks(http2_login: &[u8]) -> Vec<Attack> {
    let flood = |Flood { protocol, begins, goes_on, .. }| {
        let (begins, goes_on) = (begins.into_bytes(), goes_on.into_bytes());
        Attack { protocol, begins, goes_on }
    };
    let once = |protocol, begins| Attack { protocol, begins, goes_on: Vec::new() };
    let stream = |(begins, goes_on)| Attack { protocol: "http", begins, goes_on };
    let game = [opening(), encoded(&testkit::amqp_peer::begin(), &[])].concat();
    let game = [game, encoded(&receiver(0, "q"), &[])].concat();
    let echo = encoded(&credit(0, 0, 1), &[]);
    let floods = endless::floods().into_iter().map(flood);
    let claims = giant::claims().into_iter().map(|(protocol, begins, _)| once(protocol, begins));
    let halves = half::beginnings().into_iter().map(|(protocol, begins)| once(protocol, begins));
    let streams = streams::floods(http2_login).into_iter().map(stream);
    let game = Attack { protocol: "amqp", begins: game, goes_on: echo };
    floods.chain(claims).chain(halves).chain(streams).chain([game]).collect()
}

/// Attacks on the login itself.
fn attacks_on_logins() -> Vec<Attack> {
    let sasl = |rest: &[u8], goes_on: &[u8]| Attack {
        protocol: "amqp",
        begins: [login::SASL, rest].concat(),
        goes_on: goes_on.to_vec(),
    };
    let text = |protocol, begins: &str, goes_on: &str| Attack {
        protocol,
        begins: begins.as_bytes().to_vec(),
        goes_on: goes_on.as_bytes().to_vec(),
    };
    let long = [&[0xa0, 200][..], &[b'x'; 200]].concat();
    let chosen = login::sasl_frame(0x41, &[b"\xa3\x0dSCRAM-SHA-256", &long]);
    let response = login::sasl_frame(0x43, &[&long]);
    let basic = "GET /queues HTTP/1.1\r\nhost: localhost\r\nauthorization: Basic eDp5\r\n\r\n";
    vec![
        sasl(&[0xff, 0xff, 0xff, 0xff, 2, 1, 0, 0], b"x"),
        sasl(&[0, 0, 0, 8, 2, 1, 0, 0], &[0, 0, 0, 8, 2, 1, 0, 0]),
        sasl(&[], &chosen),
        sasl(&chosen, &response),
        sasl(&[], login::SASL),
        sasl(&[0, 0, 0, 40, 2, 1, 0, 0, 0, 0x53, 0x41, 0xd0, 0xff, 0xff, 0xff, 0xff], b"\x40"),
        text("amqp", "AMQP\0\x01\0\0", "AMQP\0\x01\0\0"),
        text("redis", "", "AUTH nobody wrong\r\n"),
        text("redis", "HELLO 3 AUTH guest ", "x"),
        text("redis", "", "HELLO 3\r\n"),
        text("beanstalkd", "", "auth nobody wrong\r\n"),
        text("beanstalkd", "auth guest ", "x"),
        text("http", "", basic),
    ]
}

/// Lets the peers of these attacks send, while neighbours are served; gives the last words of each.
fn run(
    broker: &Broker,
    neighbours: &mut Neighbours,
    attacks: Vec<Attack>,
) -> Vec<(Attack, String)> {
    let peer = |attack: Attack| {
        let socket = broker.told(attack.protocol, &attack.begins);
        let pattern = if attack.goes_on.is_empty() { &attack.begins } else { &attack.goes_on };
        (Fountain::new(socket, pattern), attack)
    };
    let mut peers: Vec<_> = attacks.into_iter().map(peer).collect();
    for _ in 0..ROUNDS {
        for (peer, attack) in &mut peers {
            if !attack.goes_on.is_empty() {
                peer.pour(BYTES_EACH / ROUNDS);
            }
        }
        neighbours.exchange();
    }
    let last_words = |(peer, attack): (Fountain, Attack)| {
        // Named if it is not closed.
        println!("{}: {}", attack.protocol, attack.begins.escape_ascii());
        let said = peer.rest();
        (attack, said)
    };
    peers.into_iter().map(last_words).collect()
}

/// Each is closed at the latest when its time to log in is over, at little cost, and has changed
/// nothing.
#[test]
fn strangers_attacks_are_cut_off() {
    let broker = Broker::with_users("strangers", &["--half-sent-timeout", "5s"]);
    let mut neighbours = Neighbours::of(&broker);
    neighbours.exchange();
    let before = broker.resident_bytes();
    let known = neighbours.queues();
    let attacks: Vec<_> = attacks(&[]).into_iter().chain(attacks_on_logins()).collect();
    assert!(PROTOCOLS.iter().all(|it| attacks.iter().any(|attack| attack.protocol == *it)));
    for (attack, said) in run(&broker, &mut neighbours, attacks) {
        let begins = attack.begins.escape_ascii();
        for granted in ["INSERTED", "USING", "+OK", "\n:1", " 200 ", " 201 ", "$0"] {
            assert!(!said.contains(granted), "{begins} is granted something: {said}");
        }
    }
    assert_eq!(neighbours.queues(), known, "they made queues");
    let grown = broker.resident_bytes_most().saturating_sub(before);
    assert!(grown < 16 << 20, "{grown} bytes for strangers");
}
