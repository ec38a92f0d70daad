//! The shapes of a peer's bytes that cost most: 16 KiB of one, each time.

use std::hint::black_box;

use amqp::message::Message;
use model::StorePolicy;

use crate::client;
use crate::harness::Harness;

const BYTES: usize = 16 * 1024;

/// Takes 16 KiB of a shape so many times.
pub(crate) fn run(shape: &str, count: u32) {
    match shape {
        "nulls" => scan(&list(&[0x40]), count),
        "texts" => scan(&list(b"\xa1\x01x"), count),
        "umlauts" => scan(&list(b"\xa1\x02\xc3\xa4"), count),
        "lists" => scan(&list(&nested(30)), count),
        "described" => scan(&list(&[0, 0x53, 1, 0x40]), count),
        "booleans" => scan(&list(&[0xe0, 6, 4, 0x56, 1, 0, 1, 0]), count),
        "maps" => scan(&list(&[0xc1, 7, 4, 0x50, 1, 0x40, 0x50, 2, 0x40]), count),
        "numbers as keys" => scan(&map(|key| [&[0x80], &key.to_be_bytes()[..]].concat()), count),
        "texts as keys" => scan(&map(|key| [b"\xa3\x04", &hex(key)[..]].concat()), count),
        "sections" => scan(&[0, 0x53, 0x75, 0xa0, 0].repeat(1_024), count),
        "heartbeats" => send(&[0, 0, 0, 8, 2, 0, 0, 0], count),
        "flows" => send(&client::credit(0, 0, 0), count),
        "dispositions" => send(&client::accept(false), count),
        "links" => send(&client::link_and_its_end(1), count),
        _ => panic!("{shape}?"),
    }
}

/// Finds the sections of a message that holds the value in its annotations.
fn scan(message: &[u8], count: u32) {
    for _ in 0..count {
        let found = Message::scan(black_box(message));
        assert!(black_box(found).is_ok(), "it is a message");
    }
}

/// Annotations with a list of as many elements as there is room for.
fn list(element: &[u8]) -> Vec<u8> {
    let elements = BYTES / element.len();
    let list = compound(0xd0, elements, &element.repeat(elements));
    annotations(2, &[b"\xa3\x01x", &list[..]].concat())
}

/// Annotations with as many pairs as there is room for.
fn map(key: impl Fn(u64) -> Vec<u8>) -> Vec<u8> {
    let pairs = BYTES / (key(0).len() + 1);
    let pair = |number| [key(number), vec![0x40]].concat();
    let bytes: Vec<u8> = (0..pairs as u64).flat_map(pair).collect();
    annotations(2 * pairs, &bytes)
}

fn annotations(elements: usize, bytes: &[u8]) -> Vec<u8> {
    [&[0, 0x53, 0x72], &compound(0xd1, elements, bytes)[..]].concat()
}

/// A list or map.
fn compound(code: u8, elements: usize, bytes: &[u8]) -> Vec<u8> {
    let size = u32::try_from(bytes.len() + 4).unwrap().to_be_bytes();
    let count = u32::try_from(elements).unwrap().to_be_bytes();
    [&[code], &size[..], &count[..], bytes].concat()
}

/// A list in a list, and so on.
fn nested(depth: u32) -> Vec<u8> {
    (0..depth).fold(vec![0x45], |inner, _| {
        let size = u8::try_from(inner.len() + 1).unwrap();
        [&[0xc0, size, 1], &inner[..]].concat()
    })
}

fn hex(number: u64) -> [u8; 4] {
    format!("{number:04x}").into_bytes().try_into().unwrap()
}

/// Sends frames over a connection with a session and a link.
fn send(frame: &[u8], count: u32) {
    let harness = &mut Harness::new(StorePolicy::Memory, 1);
    harness.send(0, &client::hello("somebody"));
    harness.send(0, &client::consumer(0, None));
    let frames = frame.repeat(BYTES / frame.len());
    for _ in 0..count {
        harness.send(0, &frames);
    }
    assert!(harness.is_open(0), "nothing was wrong with the frames");
}
