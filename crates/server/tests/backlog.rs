//! An AMQP peer that allows much gets it all, in pieces that cost little memory.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod common;

use std::io::Read as _;

use amqp::frame::{self, Frame, FrameKind, Split};
use amqp::performative::{Attach, Begin, Flow, Open, Performative, Role};
use amqp::protocol_header::ProtocolHeader;
use amqp::terminus::Source;
use common::{Client, memory, start};
use server::{Config, Limits, Listen, Protocol};

const JOBS: usize = 320;
const BODY_BYTES: usize = 64_000;

#[test]
fn a_peer_with_much_credit_gets_more_than_the_buffers_may_hold() {
    let mut config = memory();
    let listen = Listen { protocol: Protocol::Amqp, ..config.listen[0] };
    config.listen.push(listen);
    // A fifth of all that there is.
    let limits = Limits { buffered_bytes: JOBS * BODY_BYTES / 5, ..Limits::default() };
    let server = start(Config { limits, ..config });
    let mut producer = Client::new(server.addresses()[0].address);
    for index in 1..=JOBS {
        assert_eq!(producer.put(&"x".repeat(BODY_BYTES)), format!("INSERTED {index}"));
    }
    let mut consumer = Client::new(server.addresses()[1].address);
    consumer.send(greeting());
    let mut got = 0;
    let (mut bytes, mut scratch) = (Vec::new(), vec![0; 64 * 1024]);
    bytes.resize(8, 0);
    consumer.socket.read_exact(&mut bytes).unwrap();
    bytes.clear();
    while got < JOBS * BODY_BYTES {
        let count = consumer.socket.read(&mut scratch).unwrap();
        assert!(count > 0, "closed after {got} bytes");
        bytes.extend_from_slice(&scratch[..count]);
        got += take_transfers(&mut bytes);
    }
    server.shutdown().unwrap();
}

/// All that a consumer of the default queue says.
fn greeting() -> Vec<u8> {
    let mut out = ProtocolHeader::AMQP.encode().to_vec();
    let mut put = |performative: Performative<'_>| {
        frame::write(&mut out, FrameKind::Amqp, 0, |out| performative.encode(out));
    };
    put(Performative::Open(Box::new(Open::new("reader"))));
    put(Performative::Begin(Box::new(Begin { incoming_window: 100_000, ..Begin::default() })));
    let source = Source { address: Some("default".into()), ..Source::default() };
    let attach = Attach { source: Some(source), ..Attach::new("r", 0, Role::Receiver) };
    put(Performative::Attach(Box::new(attach)));
    put(Performative::Flow(Flow {
        next_incoming_id: Some(0),
        incoming_window: 100_000,
        handle: Some(0),
        delivery_count: Some(0),
        link_credit: Some(1_000),
        ..Flow::default()
    }));
    out
}

/// Takes whole frames out of the bytes; gives how many bytes of messages were in them.
fn take_transfers(bytes: &mut Vec<u8>) -> usize {
    let mut payloads = 0;
    while let Ok(Split::Frame { frame: Frame { body, .. }, length }) = Frame::split(bytes, u32::MAX)
    {
        match Performative::decode(body).unwrap() {
            (Performative::Transfer(_), payload) => payloads += payload.len(),
            (Performative::Close(close), _) => panic!("{close:?}"),
            _ => {}
        }
        bytes.drain(..length);
    }
    payloads
}
