//! Sessions and connections that have as much as they may: deliveries to settle, copies, links.

use amqp::Options;

use crate::pair::Pair;
use crate::peer::Words;

/// A client that holds all that it may by one link, and has credit on another.
fn full() -> (Pair, usize) {
    let mut pair = Pair::new();
    let client = pair.connect_with(Options { unsettled_max: 4, ..Options::default() });
    (0..4).for_each(|n| put(&mut pair, "held", n));
    (4..8).for_each(|n| put(&mut pair, "wanted", n));
    let lines = "header amqp/open a/begin 0/attach 0 0 receiver holds source=held/\
        flow 0 handle=0 count=0 credit=4/attach 0 1 receiver wants source=wanted";
    lines.split('/').for_each(|line| pair.say(client, line));
    assert_eq!(transfers(&mut pair, client), 4);
    (pair, client)
}

fn put(pair: &mut Pair, queue: &str, number: u32) {
    pair.stranger(&Words::new(&format!("put {queue} 5 {number}")));
    pair.sync();
}

fn transfers(pair: &mut Pair, client: usize) -> usize {
    pair.hear(client, u32::MAX).matches("transfer ").count()
}

#[test]
fn held_back_link_resumes_after_settlement() {
    let (mut pair, client) = full();
    pair.say(client, "flow 0 handle=1 count=0 credit=10");
    assert_eq!(transfers(&mut pair, client), 0);
    pair.say(client, "disposition 0 0 settled accepted");
    pair.sync();
    assert_eq!(transfers(&mut pair, client), 4);
}

#[test]
fn held_back_link_resumes_after_detach() {
    let (mut pair, client) = full();
    pair.say(client, "flow 0 handle=1 count=0 credit=10");
    assert_eq!(transfers(&mut pair, client), 0);
    pair.say(client, "detach 0 0 closed");
    pair.sync();
    assert_eq!(transfers(&mut pair, client), 4);
}

#[test]
fn drain_beyond_engine_credit_is_answered() {
    let (mut pair, client) = full();
    pair.say(client, "flow 0 handle=1 count=0 credit=5000 drain");
    let heard = pair.hear(client, u32::MAX);
    assert!(heard.contains("flow ") && heard.contains("drain"), "{heard}");
    assert!(!heard.contains("transfer "), "{heard}");
}

/// Nothing else bounds how many there are: a thousand browsers get a copy each of one message.
#[test]
fn unsettled_copies_count_as_connection_memory() {
    let mut pair = Pair::new();
    (0..4).for_each(|n| put(&mut pair, "seen", n));
    let client = pair.connect();
    pair.say(client, "header amqp");
    pair.say(client, "open a");
    let ends = ["disposition 0 0 last=2 settled accepted", "detach 1 0 closed", "end 2", "close"];
    for (channel, end) in ends.iter().enumerate() {
        pair.say(client, &format!("begin {channel}"));
        pair.say(client, &format!("attach {channel} 0 receiver r{channel} source=seen copy"));
        pair.say(client, &format!("flow {channel} handle=0 count=0 credit=3"));
        assert_eq!(transfers(&mut pair, client), 3, "before {end}");
        assert!(pair.held_bytes(client) >= 3 * 64, "before {end}");
        pair.say(client, end);
        pair.sync();
        assert_eq!(pair.held_bytes(client), 0, "after {end}");
    }
}

/// A name has up to a thousand bytes, and a connection eight thousand links.
#[test]
fn links_count_as_connection_memory() {
    let mut pair = Pair::new();
    let client = pair.connect();
    let attach = |pair: &mut Pair, handle: u32| {
        let name = format!("{handle}-{}", "n".repeat(990));
        pair.say(client, &format!("attach 0 {handle} sender {name} target=q"));
    };
    "header amqp/open a/begin 0".split('/').for_each(|line| pair.say(client, line));
    (0..8).for_each(|handle| attach(&mut pair, handle));
    assert_eq!(pair.held_bytes(client), 0, "as few as most have");
    (8..100).for_each(|handle| attach(&mut pair, handle));
    assert!(pair.held_bytes(client) > 200_000, "{}", pair.held_bytes(client));
    (8..100).for_each(|handle| pair.say(client, &format!("detach 0 {handle} closed")));
    pair.sync();
    assert_eq!(pair.held_bytes(client), 0, "they are gone");
    (8..100).for_each(|handle| attach(&mut pair, handle));
    assert!(pair.held_bytes(client) > 200_000);
    pair.say(client, "end 0");
    pair.sync();
    assert_eq!(pair.held_bytes(client), 0, "they are gone with their session");
}

#[test]
fn sessions_count_as_connection_memory() {
    let mut pair = Pair::new();
    let client = pair.connect();
    "header amqp/open a".split('/').for_each(|line| pair.say(client, line));
    (0..50).for_each(|channel| pair.say(client, &format!("begin {channel}")));
    assert_eq!(pair.held_bytes(client), 0, "as few as most have");
    (50..1_000).for_each(|channel| pair.say(client, &format!("begin {channel}")));
    assert!(pair.held_bytes(client) > 400_000, "{}", pair.held_bytes(client));
    (0..1_000).for_each(|channel| pair.say(client, &format!("end {channel}")));
    assert_eq!(pair.held_bytes(client), 0, "they are gone");
}

#[test]
fn selectors_count_as_connection_memory() {
    let mut pair = Pair::new();
    let client = pair.connect();
    let attach = |pair: &mut Pair, handle: u32, length: usize| {
        let selector = format!("a='{}'", "x".repeat(length));
        pair.say(
            client,
            &format!("attach 0 {handle} receiver r{handle} source=q selector={selector}"),
        );
    };
    "header amqp/open a/begin 0".split('/').for_each(|line| pair.say(client, line));
    (0..8).for_each(|handle| attach(&mut pair, handle, 100));
    assert_eq!(pair.held_bytes(client), 0, "as few and short as most have");
    // The engine makes several times as much of a text.
    attach(&mut pair, 8, 50_000);
    assert!(pair.held_bytes(client) > 450_000, "{}", pair.held_bytes(client));
    pair.say(client, "detach 0 8 closed");
    pair.sync();
    assert_eq!(pair.held_bytes(client), 0, "it is gone");
}

#[test]
fn open_transactions_count_as_connection_memory() {
    let mut pair = Pair::new();
    let client = pair.connect();
    let lines = "header amqp/open a/begin 0/attach 0 0 sender t coordinator";
    lines.split('/').for_each(|line| pair.say(client, line));
    let declare = |pair: &mut Pair, number: u32| {
        pair.say(client, &format!("transfer 0 0 {number} declare"));
    };
    (0..40).for_each(|number| declare(&mut pair, number));
    assert_eq!(pair.held_bytes(client), 0, "as few as most have");
    (40..1_000).for_each(|number| declare(&mut pair, number));
    assert!(pair.held_bytes(client) > 500_000, "{}", pair.held_bytes(client));
    pair.say(client, "detach 0 0 closed");
    pair.sync();
    assert_eq!(pair.held_bytes(client), 0, "they are rolled back");
}
