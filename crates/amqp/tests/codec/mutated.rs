//! The fuzzer's bodies over frames of Qpid JMS, damaged in ways that are the same each time.

use testkit::Rng;

use crate::{fuzz_body, golden};

const ROUNDS: usize = 40_000;

/// Octets that mean something: constructors, sizes, signs.
const PIECES: [u8; 24] = [
    0x00, 0x40, 0x43, 0x45, 0x50, 0x53, 0x56, 0x70, 0x80, 0x98, 0xa0, 0xa1, 0xa3, 0xb0, 0xb1, 0xc0,
    0xc1, 0xd0, 0xd1, 0xe0, 0xf0, 0x7f, 0x01, 0xff,
];

#[test]
fn damaged_frames_are_refused_or_read() {
    let frames = golden::frames();
    let mut numbers = Rng::new(0x5eed);
    for _ in 0..ROUNDS {
        let mut frame = frames[numbers.index(frames.len())].clone();
        for _ in 0..=numbers.index(4) {
            testkit::damage(&mut frame, &frames, &PIECES, &mut numbers);
        }
        fuzz_body::frames(&frame);
        // Without a head that is damaged as well, more of the body is reached.
        if let Some(body) = frame.get(8..) {
            fuzz_body::performative(body);
            fuzz_body::sasl(body);
            fuzz_body::value(body);
        }
    }
}

#[test]
fn damaged_messages_are_refused_or_read() {
    let messages: Vec<Vec<u8>> =
        golden::frames().iter().filter_map(|frame| payload(frame)).collect();
    assert!(messages.len() > 5);
    let mut numbers = Rng::new(0xface);
    for _ in 0..ROUNDS {
        let mut message = messages[numbers.index(messages.len())].clone();
        for _ in 0..=numbers.index(4) {
            testkit::damage(&mut message, &messages, &PIECES, &mut numbers);
        }
        fuzz_body::message(&message);
    }
}

fn payload(frame: &[u8]) -> Option<Vec<u8>> {
    let (_, payload) = amqp::performative::Performative::decode(frame.get(8..)?).ok()?;
    (!payload.is_empty()).then(|| payload.to_vec())
}

#[test]
fn short_values_are_refused_or_read() {
    for first in 0..=u8::MAX {
        for second in PIECES {
            for third in PIECES {
                fuzz_body::value(&[first, second, third]);
                fuzz_body::value(&[first, second, third, third, second, first]);
                fuzz_body::message(&[0x00, 0x53, 0x77, first, second, third]);
            }
        }
    }
}
