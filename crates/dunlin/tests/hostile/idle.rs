//! Connections that do nothing.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};
use testkit::amqp_peer::AmqpPeer;

use crate::broker::Broker;
use crate::neighbours::{Lines, Neighbours};

/// The bound that docs/reference/limits.md promises.
const BYTES_EACH_MAX: usize = 32 * 1024;

/// The process gives back freed memory once a second, on a fast, slow or busy machine. It has this
/// long to do so.
const GIVES_BACK_WITHIN: Duration = Duration::from_secs(60);

/// How a connection comes to be idle: the protocol, and the traffic before.
type Prelude = (&'static str, fn(TcpStream) -> TcpStream);

#[test]
fn idle_connections_cost_32_kib_each() {
    allow_descriptors();
    let silent: fn(TcpStream) -> TcpStream = |socket| socket;
    let preludes: [Prelude; 7] = [
        ("beanstalkd", silent),
        ("beanstalkd", |socket| answered(socket, "list-tube-used\r\n", "USING default")),
        ("redis", |socket| answered(socket, "PING\r\n", "+PONG")),
        ("amqp", |socket| AmqpPeer::open(socket).socket),
        ("http", silent),
        ("http", after_request),
        ("http", by_http2),
    ];
    for (index, (protocol, prelude)) in preludes.into_iter().enumerate() {
        let options = ["--max-connections", "10100"];
        let broker = Broker::in_memory(&format!("idle-{index}"), &options);
        crowd(&broker, protocol, prelude, 10_000);
    }
}

/// A connection does not keep buffers that it needed once.
#[test]
fn idle_connection_gives_back_its_buffers() {
    let preludes: [Prelude; 5] = [
        ("beanstalkd", |socket| after_beanstalkd(socket, 60_000)),
        ("redis", |socket| after_redis(socket, 60_000)),
        ("redis", |socket| after_redis(socket, 1_000_000)),
        ("http", |socket| after_http(socket, 60_000)),
        ("http", |socket| after_http(socket, 1_000_000)),
    ];
    for (index, (protocol, prelude)) in preludes.into_iter().enumerate() {
        let broker = Broker::in_memory(&format!("idle-after-{index}"), &[]);
        let first: Vec<_> = (0..20).map(|_| prelude(broker.socket(protocol))).collect();
        crowd(&broker, protocol, prelude, 300);
        drop(first);
    }
}

/// So many idle connections are bought by bounded memory, and the neighbours are served.
fn crowd(broker: &Broker, protocol: &str, prelude: fn(TcpStream) -> TcpStream, count: usize) {
    let mut neighbours = Neighbours::of(broker);
    neighbours.exchange();
    let before = broker.resident_bytes();
    let crowd: Vec<_> = (0..count).map(|_| prelude(broker.socket(protocol))).collect();
    let begun = Instant::now();
    let each = loop {
        neighbours.exchange();
        let each = broker.resident_bytes().saturating_sub(before) / count;
        if each <= BYTES_EACH_MAX || begun.elapsed() > GIVES_BACK_WITHIN {
            break each;
        }
    };
    assert!(each <= BYTES_EACH_MAX, "{each} bytes for an idle connection of {protocol}");
    drop(crowd);
    neighbours.exchange();
}

/// The customary limit is a soft one, and far below the tested number.
fn allow_descriptors() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    assert!(limit.maximum.is_none_or(|most| most >= 10_500), "raise `ulimit -Hn`: {limit:?}");
}

fn answered(socket: TcpStream, question: &str, answer: &str) -> TcpStream {
    let mut lines = Lines::new(socket);
    assert_eq!(lines.send(question).line(), answer);
    lines.socket.into_inner()
}

fn after_request(socket: TcpStream) -> TcpStream {
    let mut lines = Lines::new(socket);
    assert_eq!(lines.request("GET", "/health", "").0, 200);
    lines.socket.into_inner()
}

/// The preface, settings, and a request that is answered.
fn by_http2(mut socket: TcpStream) -> TcpStream {
    // Indexed fields (RFC 7541, appendix A): GET, http; then literals: path and authority.
    let head = b"\x82\x86\x04\x07/health\x01\x09localhost";
    let length = u8::try_from(head.len()).unwrap();
    let headers = [&[0, 0, length, 1, 5, 0, 0, 0, 1], &head[..]].concat();
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let acknowledged = [0, 0, 0, 4, 1, 0, 0, 0, 0];
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    socket.write_all(&[&preface[..], &settings, &acknowledged, &headers].concat()).unwrap();
    loop {
        let mut frame = [0; 9];
        socket.read_exact(&mut frame).unwrap();
        let length = usize::from(frame[2]) + usize::from(frame[1]) * 256;
        socket.read_exact(&mut vec![0; length]).unwrap();
        let (kind, flags, stream) = (frame[3], frame[4], frame[8]);
        assert_ne!(kind, 7, "it says farewell");
        if stream == 1 && flags & 1 == 1 {
            return socket;
        }
    }
}

fn after_beanstalkd(socket: TcpStream, bytes: usize) -> TcpStream {
    let mut lines = Lines::new(socket);
    let inserted = lines.ask(&format!("put 0 0 60 {bytes}\r\n{}", "x".repeat(bytes)));
    let id = inserted.strip_prefix("INSERTED ").unwrap().to_owned();
    assert_eq!(lines.ask("reserve"), format!("RESERVED {id} {bytes}"));
    lines.skip(bytes + 2);
    assert_eq!(lines.ask(&format!("delete {id}")), "DELETED");
    lines.socket.into_inner()
}

fn after_redis(socket: TcpStream, bytes: usize) -> TcpStream {
    let mut lines = Lines::new(socket);
    lines.send(format!("*3\r\n$5\r\nLPUSH\r\n$1\r\nl\r\n${bytes}\r\n"));
    assert_eq!(lines.ask(&"x".repeat(bytes)), ":1");
    assert_eq!(lines.ask("RPOP l"), format!("${bytes}"));
    lines.skip(bytes + 2);
    lines.socket.into_inner()
}

fn after_http(socket: TcpStream, bytes: usize) -> TcpStream {
    let mut lines = Lines::new(socket);
    assert_eq!(lines.request("POST", "/queues/q/messages", &"x".repeat(bytes)).0, 201);
    let (status, lease, body) = lines.request("GET", "/queues/q/messages", "");
    assert_eq!((status, body.len()), (200, bytes));
    assert_eq!(lines.request("DELETE", &format!("/leases/{lease}"), "").0, 204);
    lines.socket.into_inner()
}
