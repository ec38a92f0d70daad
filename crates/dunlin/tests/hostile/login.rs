//! How the clients of a broker with users log in.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// May do everything.
pub(crate) const NEIGHBOUR: &str = "neighbour";

/// May use three queues.
pub(crate) const GUEST: &str = "guest";

/// Of both.
pub(crate) const PASSWORD: &str = "correct-horse-battery";

/// The neighbour logs in by this socket; by HTTP each request does.
pub(crate) fn log_in(mut socket: TcpStream, protocol: &str) -> TcpStream {
    socket.write_all(&words(protocol, NEIGHBOUR)).unwrap();
    match protocol {
        "beanstalkd" => expect(&mut socket, b"OK\r\n"),
        "redis" => expect(&mut socket, b"+OK\r\n"),
        "amqp" => {
            expect(&mut socket, SASL);
            while sasl_code(&mut socket) != SASL_OUTCOME {}
        }
        _ => {}
    }
    socket
}

/// The bytes by which a user logs in, before all others.
fn words(protocol: &str, user: &str) -> Vec<u8> {
    match protocol {
        "beanstalkd" => format!("auth {user} {PASSWORD}\r\n").into_bytes(),
        "redis" => format!("AUTH {user} {PASSWORD}\r\n").into_bytes(),
        "amqp" => [SASL, &plain(user)[..]].concat(),
        _ => Vec::new(),
    }
}

/// The header of a request.
pub(crate) fn header(user: &str) -> String {
    format!("authorization: {}\r\n", basic(user))
}

/// The same without its name.
pub(crate) fn basic(user: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{PASSWORD}")))
}

/// These bytes of a peer, behind the login of the guest, or with it in each request.
pub(crate) fn of_guest(protocol: &str, bytes: &[u8]) -> Vec<u8> {
    const HOST: &[u8] = b"host: localhost\r\n";
    let Some(at) = bytes.windows(HOST.len()).position(|it| it == HOST) else {
        return [&words(protocol, GUEST)[..], bytes].concat();
    };
    let (head, rest) = bytes.split_at(at + HOST.len());
    [head, header(GUEST).as_bytes(), rest].concat()
}

fn expect(socket: &mut TcpStream, answer: &[u8]) {
    let mut said = vec![0; answer.len()];
    socket.read_exact(&mut said).unwrap();
    assert_eq!(said, answer, "{}", String::from_utf8_lossy(&said));
}

/// The header of SASL.
pub(crate) const SASL: &[u8] = b"AMQP\x03\x01\0\0";

/// The descriptor of an outcome.
const SASL_OUTCOME: u8 = 0x44;

/// A frame of SASL with this described list.
pub(crate) fn sasl_frame(code: u8, fields: &[&[u8]]) -> Vec<u8> {
    let listed = fields.concat();
    let (size, count) =
        (u8::try_from(listed.len() + 1).unwrap(), u8::try_from(fields.len()).unwrap());
    let body = [&[0, 0x53, code, 0xc0, size, count], &listed[..]].concat();
    let length = u32::try_from(body.len() + 8).unwrap();
    [&length.to_be_bytes()[..], &[2, 1, 0, 0], &body].concat()
}

/// Chooses PLAIN.
fn plain(user: &str) -> Vec<u8> {
    let response = format!("\0{user}\0{PASSWORD}");
    let length = u8::try_from(response.len()).unwrap();
    sasl_frame(0x41, &[b"\xa3\x05PLAIN", &[&[0xa0, length], response.as_bytes()].concat()])
}

/// The descriptor of the next frame.
fn sasl_code(socket: &mut TcpStream) -> u8 {
    let mut head = [0; 8];
    socket.read_exact(&mut head).unwrap();
    let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
    let mut body = vec![0; length as usize - 8];
    socket.read_exact(&mut body).unwrap();
    body[2]
}
