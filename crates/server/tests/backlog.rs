//! An AMQP peer that allows much gets it all, in pieces that cost little memory.

use crate::common::reader::{Reader, Wish};
use crate::common::{Client, amqp_too, memory, start};
use amqp::performative::{Performative, Transfer};
use server::{Config, Limits};

const JOBS: usize = 320;
const BODY_BYTES: usize = 64_000;

#[test]
fn consumer_receives_more_than_buffers_hold() {
    read_all(&Wish { queue: "default", topic: false, copies: false, credit: 1_000 });
}

/// Its copies count as its own, and it gets them as it reads.
#[test]
fn browser_receives_more_than_buffers_hold() {
    read_all(&Wish { queue: "default", topic: false, copies: true, credit: 1_000 });
}

fn read_all(wish: &Wish) {
    // A fifth of all that there is.
    let limits = Limits { buffered_bytes: JOBS * BODY_BYTES / 5, ..Limits::default() };
    let server = start(amqp_too(Config { limits, ..memory() }));
    let mut producer = Client::new(server.addresses()[0].tcp().unwrap());
    for index in 1..=JOBS {
        assert_eq!(producer.put(&"x".repeat(BODY_BYTES)), format!("INSERTED {index}"));
    }
    let mut consumer = Reader::new(server.addresses()[1].tcp().unwrap(), wish);
    let mut got = 0;
    while got < JOBS * BODY_BYTES {
        got += consumer.piece().unwrap_or_else(|| panic!("closed after {got} bytes")).len();
    }
    server.shutdown().unwrap();
}

/// Each could be sent a megabyte before it has read a byte of it, and all together not.
#[test]
fn unread_subscribers_are_paused_not_closed() {
    const SUBSCRIBERS: usize = 12;
    const MESSAGES: u32 = 8;
    let limits = Limits { buffered_bytes: 4 << 20, ..Limits::default() };
    let server = start(amqp_too(Config { limits, ..memory() }));
    let address = server.addresses()[1].tcp().unwrap();
    let wish = Wish { queue: "t", topic: true, copies: false, credit: 2 * MESSAGES };
    let mut subscribers: Vec<_> = (0..SUBSCRIBERS).map(|_| Reader::new(address, &wish)).collect();
    let mut publisher =
        Reader::new(address, &Wish { queue: "q", topic: false, copies: false, credit: 1 });
    publisher.attach_sender(1, "topic://t");
    let body = vec![b'x'; 1_000_000];
    let message = [&[0, 0x53, 0x75, 0xb0][..], &(body.len() as u32).to_be_bytes(), &body].concat();
    for id in 0..MESSAGES {
        let pieces = message.chunks(30_000);
        let last = pieces.len() - 1;
        for (index, piece) in pieces.enumerate() {
            let transfer = Transfer {
                handle: 1,
                delivery_id: Some(id),
                delivery_tag: Some(&[1]),
                message_format: Some(0),
                more: index < last,
                ..Transfer::default()
            };
            publisher.say(&Performative::Transfer(transfer), piece);
        }
        publisher.outcome().unwrap();
    }
    for (index, subscriber) in subscribers.iter_mut().enumerate() {
        for count in 0..MESSAGES {
            let message = subscriber.message().unwrap_or_else(|| panic!("{index} after {count}"));
            assert!(message.len() > body.len(), "{} bytes", message.len());
        }
    }
    server.shutdown().unwrap();
}
