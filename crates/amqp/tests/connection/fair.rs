//! Who shares a connection is not kept waiting by who always has more to send.

use crate::pair::Pair;
use crate::peer::Words;

/// Bytes of each message of the first session.
const LARGE: usize = 4_000;

/// More of them than the output takes at once.
const MANY: usize = 600;

#[test]
fn a_session_that_never_runs_dry_does_not_keep_others_waiting() {
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
    // Of the first session more comes before the second's turn.
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
