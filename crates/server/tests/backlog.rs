//! An AMQP peer that allows much gets it all, in pieces that cost little memory.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod common;

use common::reader::{Reader, Wish};
use common::{Client, amqp_too, memory, start};
use server::{Config, Limits};

const JOBS: usize = 320;
const BODY_BYTES: usize = 64_000;

#[test]
fn a_peer_with_much_credit_gets_more_than_the_buffers_may_hold() {
    read_all(&Wish { queue: "default", topic: false, copies: false, credit: 1_000 });
}

/// Its copies count as its own, and it gets them as it reads.
#[test]
fn a_browser_gets_more_than_the_buffers_may_hold() {
    read_all(&Wish { queue: "default", topic: false, copies: true, credit: 1_000 });
}

fn read_all(wish: &Wish) {
    // A fifth of all that there is.
    let limits = Limits { buffered_bytes: JOBS * BODY_BYTES / 5, ..Limits::default() };
    let server = start(amqp_too(Config { limits, ..memory() }));
    let mut producer = Client::new(server.addresses()[0].address);
    for index in 1..=JOBS {
        assert_eq!(producer.put(&"x".repeat(BODY_BYTES)), format!("INSERTED {index}"));
    }
    let mut consumer = Reader::new(server.addresses()[1].address, wish);
    let mut got = 0;
    while got < JOBS * BODY_BYTES {
        got += consumer.piece().unwrap_or_else(|| panic!("closed after {got} bytes")).len();
    }
    server.shutdown().unwrap();
}
