//! `CLIENT UNBLOCK` in a transaction that itself had to wait: its answer comes when the transaction
//! is done, by a command of another client.

use engine::EngineOptions;
use model::{Nanos, StorePolicy};
use resp::Options;

use crate::ours::Ours;

const MEMORY_BYTES: u64 = 4 << 20;

const BODY_BYTES: usize = 100_000;

fn push(key: &str) -> String {
    format!("RPUSH {key} {}\r\n", "x".repeat(BODY_BYTES))
}

/// A broker with its memory full of a list `l`.
fn full() -> Ours {
    let engine = EngineOptions::new(StorePolicy::Memory);
    let engine = EngineOptions { memory_limit: MEMORY_BYTES, ..engine };
    let mut ours = Ours::with_engine(Options::default(), engine);
    let client = ours.connect();
    loop {
        ours.send(client, push("l").as_bytes());
        if ours.output(client).is_empty() {
            ours.close(client);
            return ours;
        }
    }
}

/// The answers to the sender of a transaction that waits for memory and unblocks a client, when
/// another makes room.
fn heard(ours: &mut Ours, sender: u64, unblocked: u64) -> Vec<u8> {
    let push = push("n");
    let transaction = format!("MULTI\r\n{push}CLIENT UNBLOCK {unblocked}\r\nEXEC\r\nPING\r\n");
    ours.send(sender, transaction.as_bytes());
    assert_eq!(ours.output(sender), b"+OK\r\n+QUEUED\r\n+QUEUED\r\n", "it waits");
    let other = ours.connect();
    ours.send(other, b"DEL l\r\n");
    assert_eq!(ours.output(other), b":1\r\n");
    ours.pass_time(Nanos::ZERO);
    ours.output(sender)
}

#[test]
fn unblock_misses_an_answered_client() {
    let mut ours = full();
    let sender = ours.connect();
    assert_eq!(heard(&mut ours, sender, sender), b"*2\r\n:1\r\n:0\r\n+PONG\r\n");
}

#[test]
fn unblocked_client_hears_at_once() {
    let mut ours = full();
    let (sender, waiting) = (ours.connect(), ours.connect());
    ours.send(waiting, b"BLPOP m 0\r\n");
    assert_eq!(heard(&mut ours, sender, waiting), b"*2\r\n:1\r\n:1\r\n+PONG\r\n");
    assert_eq!(ours.output(waiting), b"*-1\r\n");
}
