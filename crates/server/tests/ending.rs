//! The fate of a peer's deliveries when its connection ends, by each cause of the end.

use crate::common::reader::{Reader, Wish};
use crate::common::{Directory, amqp_too, connect, journal, memory, start};
use amqp::message::Message;
use amqp::performative::{Performative, Transfer};
use model::StorePolicy;
use server::{Config, Limits, Running};

const WISH: Wish = Wish { queue: "default", topic: false, copies: false, credit: 10 };

fn reader(server: &Running) -> Reader {
    Reader::new(server.addresses()[1].tcp().unwrap(), &WISH)
}

/// How often the delivery of a message has failed, by its header.
fn failed(message: &[u8]) -> u32 {
    Message::scan(message).unwrap().header().delivery_count
}

/// Stops a server with a peer that takes its leave when it is told to.
fn stop(server: Running, mut peer: Reader) {
    let stopping = std::thread::spawn(move || server.shutdown().unwrap());
    while peer.message().is_some() {}
    drop(peer);
    stopping.join().unwrap();
}

#[test]
fn restarts_count_no_attempts() {
    let directory = Directory::new("restarts");
    let config = || amqp_too(journal(&directory, StorePolicy::Always));
    let server = start(config());
    assert_eq!(connect(&server).put("x"), "INSERTED 1");
    server.shutdown().unwrap();
    // More than a message is tried.
    for _ in 0..12 {
        let server = start(config());
        let mut peer = reader(&server);
        assert_eq!(failed(&peer.message().unwrap()), 0);
        stop(server, peer);
    }
}

#[test]
fn lost_peer_counts_one_failure() {
    let server = start(amqp_too(memory()));
    assert_eq!(connect(&server).put("x"), "INSERTED 1");
    for count in 0..3 {
        let mut peer = reader(&server);
        assert_eq!(failed(&peer.message().unwrap()), count);
    }
}

#[test]
fn closing_for_memory_counts_no_failure() {
    let limits = Limits { buffered_bytes: 32 * 1024, ..Limits::default() };
    let server = start(amqp_too(Config { limits, ..memory() }));
    assert_eq!(connect(&server).put("x"), "INSERTED 1");
    let mut peer = reader(&server);
    assert_eq!(failed(&peer.message().unwrap()), 0);
    // Each may be so large, and all together not.
    for link in 0..5 {
        peer.attach_sender(1 + link, "other");
        let half = Transfer {
            handle: 1 + link,
            delivery_id: Some(link),
            delivery_tag: Some(&[1]),
            message_format: Some(0),
            more: true,
            ..Transfer::default()
        };
        peer.say(&Performative::Transfer(half), &[0; 8 * 1024]);
    }
    assert!(peer.message().is_none(), "closed");
    assert_eq!(failed(&reader(&server).message().unwrap()), 0);
}
