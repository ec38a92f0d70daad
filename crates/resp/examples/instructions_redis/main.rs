//! Commands of Redis through session, engine and log, to count their instructions:
//! `cargo xtask instructions` runs it under callgrind with two counts of commands and prints the
//! difference.
//!
//! `instructions_redis CASE STORE COUNT`, where STORE is `none` or `always`, and CASE one of
//!
//! * `push`: a client sends `LPUSH`, in bursts, with an element each, and is answered
//! * `pop`: the same; then it takes them with `RPOP`
//! * `set`: a client sends `SET`, of one key; `hset`: `HSET`, of one field; `xadd`: `XADD`
//! * `incr`, `hincrby`: a client counts, in one key and in one field
//! * `fields`, `sadd`, `zadd`: a client sends `HSET`, `SADD`, `ZADD`, each of something new
//! * `user`: as `push`, by a user with a hundred rules; `names`: each to another list of a hundred
//! * `anyone`: as `names`, without users
//! * `multi`: a client sends `MULTI`, 89 `LPUSH` and 11 `RPOP`, a pop after eight pushes each, and
//!   `EXEC`, all in one read; a hundred of these commands are counted for one transaction
//!
//! or a shape of a peer's bytes that costs most, of which each of COUNT is 16 KiB:
//!
//! * `lines`: empty ones; `inline`: commands in one line; `arrays`: commands as arrays
//! * `unknown`: a command that there is not
//! * `keys`: one command that looks for keys of no bytes, as many as there is room for
//! * `channels`: one that subscribes to as many, and one that ends it
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "it is a measurement")]

mod harness;
#[path = "../../../amqp/examples/instructions/memory.rs"]
mod memory;

use client::resp::command;
use harness::Harness;
use model::StorePolicy;

/// Commands that come in one read.
const BURST: u64 = 16;

/// Commands between a `MULTI` and its `EXEC`.
const TRANSACTION: u64 = 100;

/// Stands for a number that each command has another of.
const NUMBER: &[u8] = b"number";

/// Between a number and the next: it has no divisor in common with a million.
const SPREAD: u64 = 618_033;

/// Rules of a user.
const RULES: usize = 100;

/// Bytes of a shape.
const WORST_BYTES: usize = 16 * 1024;

const ELEMENT: [u8; 100] = [b'x'; 100];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [what, store, count] = words[..] else { panic!("instructions_redis WHAT STORE COUNT") };
    let policy = match store {
        "none" => StorePolicy::Memory,
        "always" => StorePolicy::Always,
        _ => panic!("the store is none or always"),
    };
    let count: u64 = count.parse().unwrap();
    let count = count.next_multiple_of(BURST);
    let harness = &mut Harness::new(policy);
    match what {
        "push" => push(harness, count),
        "pop" => pop(harness, count),
        "set" => repeat(harness, &[b"SET", b"session:1042", &ELEMENT], count),
        "hset" => repeat(harness, &[b"HSET", b"accounts", b"1042", &ELEMENT], count),
        "xadd" => repeat(harness, &[b"XADD", b"events", b"*", b"body", &ELEMENT], count),
        "incr" => repeat(harness, &[b"INCR", b"visits"], count),
        "hincrby" => repeat(harness, &[b"HINCRBY", b"visits", b"1042", b"1"], count),
        "fields" => each(harness, &[b"HSET", b"accounts", NUMBER, &ELEMENT], count),
        "sadd" => each(harness, &[b"SADD", b"members", NUMBER], count),
        "zadd" => each(harness, &[b"ZADD", b"scores", NUMBER, NUMBER], count),
        "multi" => multi(harness, count),
        "user" => {
            harness.limit(RULES);
            push(harness, count);
        }
        "names" => {
            harness.limit(RULES);
            push_to_many(harness, count);
        }
        "anyone" => push_to_many(harness, count),
        "lines" => worst(harness, &filled(b"\r\n"), count),
        "inline" => worst(harness, &filled(b"PING\r\n"), count),
        "arrays" => worst(harness, &filled(b"*1\r\n$4\r\nPING\r\n"), count),
        "unknown" => worst(harness, &filled(b"X\r\n"), count),
        "keys" => worst(harness, &many(&[b"EXISTS"], |_| String::new()), count),
        "channels" => {
            let ends = [many(&[b"SUBSCRIBE"], |n| format!("{n}")), command(&[b"UNSUBSCRIBE"])];
            worst(harness, &ends.concat(), count);
        }
        _ => panic!("{what}?"),
    }
}

fn worst(harness: &mut Harness, bytes: &[u8], count: u64) {
    for _ in 0..count {
        harness.send(bytes);
    }
    assert!(harness.send(b"PING\r\n") > 0, "nothing was wrong with them");
}

/// As many of it as 16 KiB hold.
fn filled(bytes: &[u8]) -> Vec<u8> {
    bytes.repeat(WORST_BYTES / bytes.len())
}

/// A command with as many words as 16 KiB hold.
fn many(first: &[&[u8]], word: impl Fn(usize) -> String) -> Vec<u8> {
    let words: Vec<String> = (0..WORST_BYTES / 10).map(word).collect();
    let words = words.iter().map(String::as_bytes);
    command(&first.iter().copied().chain(words).collect::<Vec<_>>())
}

fn push(harness: &mut Harness, count: u64) {
    repeat(harness, &[b"LPUSH", b"mylist", &ELEMENT], count);
    assert_eq!(harness.messages(), count, "all were stored");
}

/// Pushes, each to another list than the last.
fn push_to_many(harness: &mut Harness, count: u64) {
    for at in 0..count {
        let name = format!("list-{}", at % 100);
        harness.send(&command(&[b"LPUSH", name.as_bytes(), &ELEMENT]));
    }
    assert_eq!(harness.messages(), count, "all were stored");
}

fn pop(harness: &mut Harness, count: u64) {
    push(harness, count);
    repeat(harness, &[b"RPOP", b"mylist"], count);
    assert_eq!(harness.messages(), 0, "all are done with");
}

/// The same command so many times.
fn repeat(harness: &mut Harness, words: &[&[u8]], count: u64) {
    let burst = command(words).repeat(BURST as usize);
    for _ in 0..count / BURST {
        let sent = harness.send(&burst);
        assert!(sent > 0, "the broker answers");
    }
}

/// The same command so many times, each time with another number of six digits in the place of
/// [`NUMBER`], in no order.
fn each(harness: &mut Harness, words: &[&[u8]], count: u64) {
    let mut burst = command(words).repeat(BURST as usize);
    let places = burst.windows(NUMBER.len()).enumerate();
    let is_number = |(_, window): &(usize, &[u8])| *window == NUMBER;
    let places: Vec<_> = places.filter(is_number).map(|(at, _)| at).collect();
    let per_command = places.len() / BURST as usize;
    let mut number = 0;
    for _ in 0..count / BURST {
        for places in places.chunks(per_command) {
            number = (number + SPREAD) % 1_000_000;
            let digits = digits(number);
            places.iter().for_each(|at| burst[*at..][..NUMBER.len()].copy_from_slice(&digits));
        }
        let sent = harness.send(&burst);
        assert!(sent > 0, "the broker answers");
    }
}

fn digits(mut number: u64) -> [u8; NUMBER.len()] {
    let mut digits = [0; NUMBER.len()];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    digits
}

/// `count` commands in transactions of [`TRANSACTION`] each.
fn multi(harness: &mut Harness, count: u64) {
    let mut transaction = command(&[b"MULTI"]);
    for at in 1..=TRANSACTION {
        let is_pop = at % 9 == 0;
        let words: &[&[u8]] =
            if is_pop { &[b"RPOP", b"mylist"] } else { &[b"LPUSH", b"mylist", &ELEMENT[..8]] };
        transaction.extend(command(words));
    }
    transaction.extend(command(&[b"EXEC"]));
    for _ in 0..count.div_ceil(TRANSACTION) {
        assert!(harness.send(&transaction) > 0, "the broker answers");
    }
    let pops = TRANSACTION / 9;
    let left = count.div_ceil(TRANSACTION) * (TRANSACTION - 2 * pops);
    assert_eq!(harness.messages(), left, "all was done");
}
