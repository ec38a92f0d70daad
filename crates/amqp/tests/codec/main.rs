//! The codec from outside: bytes of the specification and of a real client, hostile bytes, values
//! there and back, and a foreign codec as the oracle.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod fuzz_body;
mod golden;
mod hostile;
mod hostile_frames;
mod hostile_messages;
mod mutated;
mod oracle;
mod oracle_messages;
mod round_trip;
mod specification;
mod strategy;
mod transfers;

#[test]
fn fuzz_corpus_replays() {
    testkit::replay("amqp_frames", fuzz_body::frames);
    testkit::replay("amqp_message", fuzz_body::message);
    testkit::replay("amqp_performative", fuzz_body::performative);
    testkit::replay("amqp_sasl", fuzz_body::sasl);
}

/// Bytes from hexadecimal digits; spaces are for people.
fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(str(pair), 16).unwrap()).collect()
}

fn str(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
