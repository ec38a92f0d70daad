//! Peers that announce more than there is room for.

use testkit::amqp_peer::opening;

use crate::broker::{Broker, rest};
use crate::login;
use crate::neighbours::{Lines, Neighbours};

/// Each ends its connection, or would have it end, with this in its last words.
pub(crate) fn claims() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let text = |protocol, text: &str, answer| (protocol, text.as_bytes().to_vec(), answer);
    let framed = |head: [u8; 8]| [opening(), head.to_vec()].concat();
    let post = "POST /queues/q/messages HTTP/1.1\r\nhost: localhost\r\n";
    let long_head = format!("{post}x-long: {}\r\n\r\n", "x".repeat(100_000));
    let huge_body = format!("{post}content-length: 99999999999\r\n\r\n");
    let ndjson = "content-type: application/x-ndjson\r\ncontent-length: 99999999999\r\n\r\n";
    let huge_batch = format!("{post}{ndjson}");
    let put = "PUT /queues/q/policy HTTP/1.1\r\nhost: localhost\r\n";
    let huge_policy = format!("{put}content-length: 99999999999\r\n\r\n");
    let settings = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let huge_frame = [settings.as_bytes(), &[0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]].concat();
    vec![
        text("redis", "*2147483647\r\n", "invalid multibulk length"),
        text("redis", "*2\r\n$4\r\nECHO\r\n$536870912\r\n", "invalid bulk length"),
        text("redis", "*-1000000000000\r\n*1\r\n$9999999999999999999\r\n", "invalid bulk length"),
        ("amqp", framed([0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0]), "amqp:connection:framing-error"),
        ("amqp", framed([0, 1, 0, 1, 2, 0, 0, 0]), "amqp:connection:framing-error"),
        ("http", huge_body.into_bytes(), "--max-message-bytes"),
        ("http", huge_batch.into_bytes(), "send it in parts"),
        ("http", huge_policy.into_bytes(), "send only the rules"),
        ("http", long_head.into_bytes(), "431"),
        ("http", huge_frame, ""),
    ]
}

#[test]
fn oversized_claims_refused_by_their_head() {
    claim_all(&Broker::in_memory("giant", &[]), |_, bytes| bytes.to_vec());
}

#[test]
fn oversized_claims_of_guest_refused() {
    claim_all(&Broker::with_users("giant-guest", &[]), login::of_guest);
}

fn claim_all(broker: &Broker, begin: impl Fn(&str, &[u8]) -> Vec<u8>) {
    const EACH: usize = 50;
    let mut neighbours = Neighbours::of(broker);
    neighbours.exchange();
    let before = broker.resident_bytes();
    for (protocol, bytes, answer) in claims() {
        let bytes = begin(protocol, &bytes);
        let crowd: Vec<_> = (0..EACH).map(|_| broker.told(protocol, &bytes)).collect();
        neighbours.exchange();
        for socket in crowd {
            // Some are closed already.
            _ = socket.shutdown(std::net::Shutdown::Write);
            let said = rest(socket);
            assert!(said.contains(answer), "{said:?} does not say {answer}");
        }
    }
    let grown = broker.resident_bytes().saturating_sub(before);
    assert!(grown < 16 << 20, "{grown} bytes for what never came");
}

/// beanstalkd has a word for each, and its connections go on.
#[test]
fn numbers_beyond_bounds_are_answered() {
    let broker = Broker::in_memory("numbers", &[]);
    let mut neighbours = Neighbours::of(&broker);
    let mut peer = Lines::new(broker.socket("beanstalkd"));
    let huge = "9".repeat(40);
    for (command, answer) in [
        (format!("put 0 0 60 {huge}"), "BAD_FORMAT"),
        (format!("put 0 {huge} 60 1"), "BAD_FORMAT"),
        (format!("reserve-with-timeout {huge}"), "BAD_FORMAT"),
        (format!("kick {huge}"), "BAD_FORMAT"),
        (format!("use {}", "x".repeat(201)), "BAD_FORMAT"),
        ("reserve-job 18446744073709551615".into(), "NOT_FOUND"),
    ] {
        assert_eq!(peer.ask(&command), answer, "{command}");
        neighbours.exchange();
    }
}
