//! Neither sessions of one connection nor connections of one server keep each other waiting.

use std::sync::Arc;

use amqp::{Connection, InputBuffer, Options};
use model::{Nanos, SessionId};

use crate::pair::Pair;
use crate::peer::{self, Words};

/// Bytes of each message of the first session.
const LARGE: usize = 4_000;

/// More of them than the output takes at once.
const MANY: usize = 600;

#[test]
fn busy_session_leaves_others_their_turn() {
    let mut pair = Pair::new();
    let client = pair.connect();
    let opening = "header amqp/open a/begin 0/begin 1/attach 0 0 receiver many source=many/\
        attach 1 0 receiver few source=few/flow 0 handle=0 count=0 credit=10000/\
        flow 1 handle=0 count=0 credit=10";
    opening.split('/').for_each(|line| pair.say(client, line));
    for _ in 0..MANY {
        put(&mut pair, "many", &"x".repeat(LARGE));
    }
    put(&mut pair, "few", "one");
    let first = pair.ends[client].out.len();
    assert!((1 << 20..1 << 21).contains(&first), "{first} bytes: the output is full");
    assert!(!pair.hear(client, u32::MAX).contains("String(\"one\")"));
    // The first session gets more before the second's turn.
    put(&mut pair, "many", &"x".repeat(LARGE));
    put(&mut pair, "few", "two");
    for few in ["\"one\"", "\"two\""] {
        let heard = pair.hear(client, u32::MAX);
        let (few, many) = (heard.find(few), heard.find("xxx"));
        assert!(few.is_some() && few < many, "the second's come first: {few:?}, {many:?}");
        pair.turn();
    }
}

fn put(pair: &mut Pair, queue: &str, body: &str) {
    pair.stranger(&Words::new(&format!("put {queue} 5 {body}")));
    pair.sync();
}

/// A peer may send any number of frames that ask the engine for nothing: it stops between them, and
/// counts their cost.
#[test]
fn frames_without_commands_take_turns() {
    let mut connection =
        Connection::new(SessionId(1), Arc::new(Options::default()), Nanos::from_secs(1));
    let (mut input, mut out) = (InputBuffer::new(), Vec::new());
    let mut poll = |lines: &[&str]| {
        for line in lines {
            input.append(&peer::bytes(line).unwrap());
        }
        let command = connection.poll_command(Nanos::from_secs(1), &mut input, &mut out);
        let steps = connection.take_steps();
        (command.is_some(), connection.has_more(), connection.half_sent(), steps)
    };
    assert_eq!(poll(&["header amqp", "open a"]), (false, false, false, 3));
    // The peer does not hold this delivery: it costs only the work of reading.
    let begun = poll(&["begin 0"]);
    assert!(begun.0, "a begin is answered in its turn");
    assert_eq!(poll(&["disposition 0 7 settled accepted"; 64 + 63]), (false, true, false, 63 * 3));
    assert_eq!(poll(&[]), (false, false, false, 62 * 3));
    // A frame costs more if its bytes are looked at one by one.
    let long = format!("open {}", "a".repeat(4_000));
    assert_eq!(poll(&[&long]).3, (4_000 - 512) / 8 + 2);
}
