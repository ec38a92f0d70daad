//! Elements that are popped from a queue that protects them. The next command of any kind is done
//! with them. A client that is gone before it has not taken them.

use engine::EngineOptions;
use model::{Nanos, StorePolicy};
use resp::Options;

use crate::ours::Ours;

/// The rest of a list of one element after it was popped, this was sent, and the connection went.
fn left_after(sent: &str) -> Vec<u8> {
    let mut engine = EngineOptions::new(StorePolicy::Memory);
    engine.queue_policies.default.pop_lease = Some(Nanos::from_secs(30));
    let mut ours = Ours::with_engine(Options::default(), engine);
    let (worker, other) = (ours.connect(), ours.connect());
    ours.send(worker, b"RPUSH l x\r\nBLPOP l 0\r\n");
    assert_eq!(ours.output(worker), b":1\r\n*2\r\n$1\r\nl\r\n$1\r\nx\r\n");
    ours.send(worker, sent.as_bytes());
    ours.close(worker);
    ours.send(other, b"LPOP l\r\n");
    ours.output(other)
}

#[test]
fn protected_pop_returns_after_hangup() {
    assert_eq!(left_after(""), b"$1\r\nx\r\n");
    assert_eq!(left_after("LLE"), b"$1\r\nx\r\n", "half a command is none");
    for nothing in ["\r\n", "  \r\n\r\n", "*0\r\n", "*-1\r\n"] {
        assert_eq!(left_after(nothing), b"$1\r\nx\r\n", "{nothing:?} is none");
    }
}

#[test]
fn protected_pop_ends_with_next_command() {
    for command in [
        "LLEN l",
        "PING",
        "QUIT",
        "RESET",
        "MULTI",
        "NOSUCH",
        "CLIENT ID",
        "SUBSCRIBE news",
        "HELLO 3",
        "LRANGE l a b",
        "SET k v EX no",
        "BLPOP l never",
    ] {
        assert_eq!(left_after(&format!("{command}\r\n")), b"$-1\r\n", "{command}");
    }
}

#[test]
fn command_after_pop_answers_in_turn() {
    let mut ours = Ours::new(Options::default());
    let client = ours.connect();
    ours.send(client, b"RPUSH l x\r\nLPOP l\r\nPING\r\nECHO a\r\nLLEN l\r\nPING b\r\n");
    assert_eq!(ours.output(client), b":1\r\n$1\r\nx\r\n+PONG\r\n$1\r\na\r\n:0\r\n$1\r\nb\r\n");
}
