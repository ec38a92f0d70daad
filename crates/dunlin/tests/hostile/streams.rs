//! Peers by HTTP/2 that open as many streams as they may, or send frames that cost them little.

use crate::broker::{Broker, Fountain};
use crate::login;
use crate::neighbours::{Lines, Neighbours};

const BEGINS: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The head of a request; `method` is as HPACK names it.
fn head(method: u8, path: &str, stream: u32, flags: u8) -> Vec<u8> {
    frame(1, flags, stream, &fields(method, path))
}

fn fields(method: u8, path: &str) -> Vec<u8> {
    let mut fields = vec![method, 0x86, 0x04, u8::try_from(path.len()).unwrap()];
    fields.extend(path.as_bytes());
    fields.extend(b"\x01\x09localhost");
    fields
}

const GET: u8 = 0x82;
const POST: u8 = 0x83;

/// The frames of so many streams.
fn streams(count: u32, frames: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    BEGINS.iter().copied().chain((0..count).flat_map(|it| frames(1 + 2 * it))).collect()
}

/// Two hundred connections with a hundred streams each: 20,000 requests that wait, or with bodies
/// that stop early, take no more than the memory limit.
#[test]
fn open_requests_stay_within_memory_limit() {
    const PEERS: usize = 200;
    let begun = |stream| head(POST, "/queues/q/messages", stream, END_HEADERS);
    let half = |stream| [begun(stream), frame(0, 0, stream, &[b'x'; 600])].concat();
    let waiting =
        |stream| head(GET, "/queues/q/messages?wait=1h", stream, END_HEADERS | END_STREAM);
    for bytes in [streams(100, begun), streams(100, half), streams(100, waiting)] {
        let broker = Broker::in_memory("streams", &["--memory-limit", "64M"]);
        let mut neighbours = Neighbours::of(&broker);
        let mut peers = Vec::new();
        for _ in 0..PEERS {
            peers.push(broker.told("http", &bytes));
            neighbours.exchange();
        }
        let mut newcomer = Lines::new(broker.socket("http"));
        assert_eq!(newcomer.request("GET", "/queues", "").0, 200);
        let most = broker.resident_bytes_most();
        assert!(most < 72 << 20, "{most} bytes");
    }
}

/// Beginnings, and frames that follow them for ever; `login` is a field of each request.
pub(crate) fn floods(login: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (ping, settings) = (frame(6, 0, 0, b"pingpong"), frame(4, 0, 0, &[0, 4, 0, 0, 0, 1]));
    let asked = |method, path| [&fields(method, path)[..], login].concat();
    let get = |stream| frame(1, END_HEADERS | END_STREAM, stream, &asked(GET, "/queues"));
    let reset = |stream| [get(stream), frame(3, 0, stream, &[0, 0, 0, 8])].concat();
    let begun = frame(1, 0, 1, &asked(POST, "/queues/q/messages"));
    let endless = [begun, frame(9, 0, 1, b"\0\x01x\x01y")].concat();
    vec![
        (BEGINS.to_vec(), ping),
        (BEGINS.to_vec(), settings),
        (BEGINS.to_vec(), frame(8, 0, 0, &[0, 0, 0, 1])),
        (BEGINS.to_vec(), frame(2, 0, 1, &[0, 0, 0, 0, 1])),
        (BEGINS.to_vec(), streams(20_000, reset).split_off(BEGINS.len())),
        ([BEGINS, &endless[..]].concat(), frame(9, 0, 1, b"\0\x01x\x01y")),
        ([BEGINS, &endless[..]].concat(), frame(9, 0, 1, b"")),
    ]
}

#[test]
fn cheap_http2_frames_cost_little() {
    pour_all(&Broker::in_memory("frames", &["--memory-limit", "64M"]), &[]);
}

#[test]
fn cheap_http2_frames_of_guest_cost_little() {
    let login = login::basic(login::GUEST);
    // A literal that no table takes up: the name 23 is `authorization`.
    let field = [&[0x0f, 0x08, u8::try_from(login.len()).unwrap()], login.as_bytes()].concat();
    pour_all(&Broker::with_users("frames-guest", &["--memory-limit", "64M"]), &field);
}

fn pour_all(broker: &Broker, login: &[u8]) {
    let mut neighbours = Neighbours::of(broker);
    for (begins, goes_on) in floods(login) {
        let peer = || Fountain::new(broker.told("http", &begins), &goes_on);
        let mut peers: Vec<_> = (0..20).map(|_| peer()).collect();
        for _ in 0..10 {
            peers.retain_mut(|peer| peer.pour(400_000));
            neighbours.exchange();
        }
    }
    let most = broker.resident_bytes_most();
    assert!(most < 40 << 20, "{most} bytes");
}
