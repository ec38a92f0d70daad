//! Peers that begin and do not go on, or go on one byte at a time, or are gone without a word.

use std::io::Write as _;
use std::net::Shutdown;

use testkit::amqp_peer::{begin, encoded, opening};

use crate::broker::{Broker, Fountain, PROTOCOLS, rest};
use crate::common::patience::until;
use crate::login;
use crate::neighbours::{Lines, Neighbours};

/// Beginnings of commands that announce more than comes.
pub(crate) fn beginnings() -> Vec<(&'static str, Vec<u8>)> {
    let text = |protocol, text: &str| (protocol, text.as_bytes().to_vec());
    let mut frame_in_parts = opening();
    frame_in_parts.extend(encoded(&begin(), &[]));
    frame_in_parts.extend([0, 0, 0xff, 0xff, 2, 0, 0, 0, 0, 0x53]);
    vec![
        text("beanstalkd", "list-tu"),
        text("beanstalkd", "put 0 0 60 65535\r\nabc"),
        text("redis", "LPU"),
        text("redis", "*1048576\r\n$5\r\nLPUSH\r\n"),
        text("redis", "*3\r\n$5\r\nLPUSH\r\n$1\r\nl\r\n$16777216\r\nabc"),
        ("amqp", b"AMQ".to_vec()),
        ("amqp", frame_in_parts),
        text("http", "POST /queues"),
        text("http", "POST /queues/q/messages HTTP/1.1\r\nhost: localhost\r\n"),
        text(
            "http",
            "POST /queues/q/messages HTTP/1.1\r\nhost: localhost\r\n\
             content-length: 16000000\r\n\r\nabc",
        ),
        text("http", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\x3f"),
    ]
}

/// Announced bytes take no memory before they come.
#[test]
fn half_sent_commands_cost_received_bytes() {
    begin_all(&Broker::in_memory("half-sent", &[]), |_, bytes| bytes.to_vec());
}

#[test]
fn half_sent_commands_of_guest_cost_little() {
    begin_all(&Broker::with_users("half-sent-guest", &[]), login::of_guest);
}

fn begin_all(broker: &Broker, begin: impl Fn(&str, &[u8]) -> Vec<u8>) {
    const EACH: usize = 100;
    let mut neighbours = Neighbours::of(broker);
    neighbours.exchange();
    let before = broker.resident_bytes();
    let mut crowd = Vec::new();
    for (protocol, bytes) in beginnings() {
        let bytes = begin(protocol, &bytes);
        crowd.extend((0..EACH).map(|_| broker.told(protocol, &bytes)));
        neighbours.exchange();
    }
    let each = broker.resident_bytes().saturating_sub(before) / crowd.len();
    assert!(each <= 32 * 1024, "{each} bytes for a command of which half has come");
    drop(crowd);
    neighbours.exchange();
}

/// All peers together send five times the memory that there is, and none comes to the end.
#[test]
fn half_sent_bodies_over_limit_closed() {
    const PEERS: usize = 200;
    const EACH: usize = 1_900_000;
    const MEMORY_BYTES: usize = 64 << 20;
    /// Pages of the C++ library that scripts need.
    const LIBRARY_BYTES: usize = 2 << 20;
    let broker = Broker::in_memory("half-bodies", &["--memory-limit", "64M"]);
    let mut neighbours = Neighbours::of(&broker);
    neighbours.exchange();
    let begins = format!("*3\r\n$5\r\nLPUSH\r\n$1\r\nl\r\n${EACH}\r\n");
    let peer = || Fountain::new(broker.told("redis", begins.as_bytes()), b"x");
    let mut crowd: Vec<_> = (0..PEERS).map(|_| peer()).collect();
    for _ in 0..100 {
        // A piece may be longer than was asked for.
        crowd.retain_mut(|peer| peer.sent > EACH - 200_000 || peer.pour(100_000));
        neighbours.exchange();
    }
    assert!(crowd.len() < PEERS / 2, "{} are open", crowd.len());
    let most = broker.resident_bytes_most();
    assert!(most < MEMORY_BYTES + MEMORY_BYTES / 4 + LIBRARY_BYTES, "{most} bytes");
}

#[test]
fn half_closed_command_closes_connection() {
    let broker = Broker::in_memory("half-closed", &[]);
    let mut neighbours = Neighbours::of(&broker);
    for (protocol, bytes) in beginnings() {
        let socket = broker.told(protocol, &bytes);
        socket.shutdown(Shutdown::Write).unwrap();
        // Some are told why. The test checks that the connection ends.
        rest(socket);
        neighbours.exchange();
    }
}

#[test]
fn bytewise_commands_are_served() {
    let commands = [
        ("beanstalkd", "put 0 0 60 3\r\nabc\r\n", "INSERTED "),
        ("redis", "*3\r\n$5\r\nLPUSH\r\n$4\r\nslow\r\n$3\r\nabc\r\n", ":"),
        ("redis", "LLEN nothing\r\n", ":0"),
        (
            "http",
            "POST /queues/slow/messages HTTP/1.1\r\nhost: localhost\r\n\
             content-length: 3\r\n\r\nabc",
            "HTTP/1.1 201 Created",
        ),
        // Its answer is its own header.
        ("amqp", "AMQP\0\u{1}\0\0", "AMQP"),
    ];
    let broker = Broker::in_memory("byte-by-byte", &[]);
    let mut neighbours = Neighbours::of(&broker);
    let peers = commands.into_iter().flat_map(|command| std::iter::repeat_n(command, 10));
    let mut peers: Vec<_> = peers.map(|command| (command, broker.socket(command.0))).collect();
    let longest = commands.iter().map(|(_, command, _)| command.len()).max().unwrap();
    for at in 0..longest {
        for ((_, command, _), socket) in &mut peers {
            if let Some(byte) = command.as_bytes().get(at) {
                socket.write_all(&[*byte]).unwrap();
            }
        }
        neighbours.exchange();
    }
    for ((protocol, _, answer), socket) in peers {
        if protocol == "amqp" {
            socket.shutdown(Shutdown::Write).unwrap();
            assert!(rest(socket).starts_with(answer));
        } else {
            let line = Lines::new(socket).line();
            assert!(line.starts_with(answer), "{line} instead of {answer}");
        }
    }
}

/// A peer that lost its machine never closes. The system probes it, and thereby closes the
/// connection.
#[test]
fn keepalive_timer_watches_silent_peers() {
    let broker = Broker::in_memory("keepalive", &[]);
    let mut neighbours = Neighbours::of(&broker);
    neighbours.exchange();
    for protocol in PROTOCOLS {
        let local = format!("0100007F:{:04X}", broker.address(protocol).port());
        // Until the last bytes are acknowledged, there is another timer.
        until("all is acknowledged", || timer_of(&local) != RETRANSMISSION);
        assert_eq!(timer_of(&local), KEEPALIVE, "of the neighbour by {protocol}");
    }
}

/// The timer of the one connection that this address has.
fn timer_of(local: &str) -> String {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let mut fields = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line = fields.find(|fields| fields[1] == local && fields[3] == ESTABLISHED).unwrap();
    line[5].split(':').next().unwrap().to_owned()
}

/// How /proc/net/tcp calls a state and timers.
const ESTABLISHED: &str = "01";
const RETRANSMISSION: &str = "01";
const KEEPALIVE: &str = "02";
