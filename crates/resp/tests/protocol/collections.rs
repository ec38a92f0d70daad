//! Random commands on hashes, sets and sorted sets to our session and engine and to the real Redis:
//! the same answers, byte for byte. Redis promises no order of fields and members; of answers
//! without one the parts are compared in their order.

use resp::Options;
use testkit::Rng;
use testkit::foreign_server::ForeignServer;

use crate::collection_commands::{
    FIELDS, HASH_MISTAKES, SCORES, SET_MISTAKES, SORTED_SET_MISTAKES, hash_command, hash_unordered,
    set_command, set_unordered, sorted_set_command, sorted_set_unordered,
};
use crate::comparison::{Order, Pair};
use crate::differential::number;
use crate::ours::Ours;
use crate::real;

pub(crate) const KEYS: [&str; 4] = ["a", "b", "c", "ä:1"];

#[test]
fn hashes_answer_as_in_redis() {
    answer_as_in_redis(10_000, hash_command, hash_unordered, &HASH_MISTAKES);
}

#[test]
fn sets_answer_as_in_redis() {
    answer_as_in_redis(11_000, set_command, set_unordered, &SET_MISTAKES);
}

#[test]
fn sorted_sets_answer_as_in_redis() {
    answer_as_in_redis(12_000, sorted_set_command, sorted_set_unordered, &SORTED_SET_MISTAKES);
}

/// One kind of collection beside keys of other kinds, also in transactions.
fn answer_as_in_redis(
    seeds: u64,
    command: fn(&mut Rng) -> String,
    unordered: fn(&mut Rng) -> (Order, String),
    mistakes: &[&'static str],
) {
    let Some(redis) = real::start() else { return };
    for seed in 0..40 {
        let mut random = Rng::new(seeds + seed);
        let mut pair = Pair::new(&redis, Options::default(), 1);
        if seed % 2 == 0 {
            pair.ask_apart(0, ["HELLO 3", "HELLO 3"]);
        }
        for _ in 0..150 {
            match random.index(20) {
                0 => transaction(&mut pair, &mut random, command, mistakes),
                1 => drop(pair.ask(0, random.pick(mistakes))),
                2..5 => drop(pair.ask(0, &key_command(&mut random))),
                5..9 => {
                    let (order, command) = unordered(&mut random);
                    pair.ask_in(0, &command, order);
                }
                _ => drop(pair.ask(0, &command(&mut random))),
            }
        }
        take_stock(&mut pair);
    }
}

fn transaction(
    pair: &mut Pair,
    random: &mut Rng,
    command: fn(&mut Rng) -> String,
    mistakes: &[&'static str],
) {
    pair.ask(0, "MULTI");
    for _ in 0..random.index(6) {
        let command = match random.index(8) {
            0 => key_command(random),
            1 => random.pick(mistakes).into(),
            2 => waiting_command(random),
            _ => command(random),
        };
        pair.ask(0, &command);
    }
    pair.ask(0, random.pick(&["EXEC", "EXEC", "EXEC", "DISCARD"]));
}

/// A command on keys of any kind. PERSIST tells of a deadline without a clock.
pub(crate) fn key_command(random: &mut Rng) -> String {
    let (key, other) = (random.pick(&KEYS), random.pick(&KEYS));
    match random.index(16) {
        0 => format!("TYPE {key}"),
        1 => format!("DEL {key}"),
        2 => format!("UNLINK {key} {other}"),
        3 => format!("EXISTS {key} {other}"),
        4 => format!("RENAME {key} {other}"),
        5 => format!("RENAMENX {key} {other}"),
        6 => format!("SET {key} x"),
        7 => format!("SET {key} x GET"),
        8 => format!("RPUSH {key} x"),
        9 | 10 => format!("PERSIST {key}"),
        11 => format!("EXPIRE {key} {}", random.pick(&["100000", "100000 NX", "200000 GT", "-1"])),
        12 => format!("GET {key}"),
        13 => format!("HSET {key} x 1"),
        14 => format!("SADD {key} x"),
        _ => format!("ZADD {key} 1 x"),
    }
}

/// Every key as both see it at the end.
fn take_stock(pair: &mut Pair) {
    pair.ask(0, "DBSIZE");
    for key in KEYS.into_iter().chain(["same"]) {
        pair.ask(0, &format!("TYPE {key}"));
        pair.ask_in(0, &format!("HGETALL {key}"), Order::Pairs);
        pair.ask_in(0, &format!("SMEMBERS {key}"), Order::Sorted);
        pair.ask(0, &format!("ZRANGE {key} 0 -1 WITHSCORES"));
        pair.ask(0, &format!("PERSIST {key}"));
    }
    for kind in ["hash", "set", "zset", "string"] {
        pair.ask_in(0, &format!("SCAN 0 TYPE {kind} COUNT 1000"), Order::Scanned);
    }
}

#[test]
fn waiting_pops_take_members_as_in_redis() {
    const CONNECTIONS: usize = 4;
    let Some(redis) = real::start() else { return };
    for seed in 0..20 {
        let mut random = Rng::new(13_000 + seed);
        let mut pair = Pair::new(&redis, Options::default(), CONNECTIONS);
        let ids: Vec<[String; 2]> =
            (0..CONNECTIONS).map(|at| pair.ask_apart(at, ["CLIENT ID"; 2]).map(number)).collect();
        pair.ask_apart(1, ["HELLO 3", "HELLO 3"]);
        let mut waiting = [false; CONNECTIONS];
        for _ in 0..100 {
            let connection = random.index(CONNECTIONS);
            if connection > 0 && !waiting[connection] {
                let command = waiting_command(&mut random);
                waiting[connection] = pair.ask_waiting(connection, &command);
            } else {
                pair.ask(0, &feeding_command(&mut random));
            }
            for (connection, waits) in waiting.iter_mut().enumerate() {
                *waits = *waits && !pair.is_answered(connection);
            }
        }
        if seed % 2 == 0 {
            end_waits(&mut pair, &mut waiting);
        } else {
            unblock(&mut pair, &ids, &waiting, random.pick(&["TIMEOUT", "ERROR"]));
        }
        take_stock(&mut pair);
    }
}

fn waiting_command(random: &mut Rng) -> String {
    let (key, other) = (random.pick(&KEYS), random.pick(&KEYS));
    let end = random.pick(&["MIN", "MAX"]);
    match random.index(4) {
        0 => format!("BZPOP{end} {key} 0"),
        1 => format!("BZPOP{end} {key} {other} 1000"),
        2 => format!("BZMPOP 0 1 {key} {end} COUNT 2"),
        _ => format!("BZMPOP 0 2 {key} {other} {end}"),
    }
}

/// No string: Redis serves no client that waits for a sorted set stored in place of one.
fn feeding_command(random: &mut Rng) -> String {
    let (key, other) = (random.pick(&KEYS), random.pick(&KEYS));
    let (member, score) = (random.pick(&FIELDS), random.pick(&SCORES));
    match random.index(11) {
        0..4 => format!("ZADD {key} {score} {member} 7 z"),
        4 => format!("ZADD {key} {score} {member}"),
        5 => format!("ZINCRBY {key} {score} {member}"),
        6 => format!("ZUNIONSTORE {key} 1 {other}"),
        7 => format!("RENAME {key} {other}"),
        8 => format!("DEL {key}"),
        9 => format!("ZREM {key} {member}"),
        _ => format!("ZPOPMIN {key}"),
    }
}

/// Gives every waiting client what it waits for.
fn end_waits(pair: &mut Pair, waiting: &mut [bool]) {
    for round in 0..waiting.len() * KEYS.len() {
        let key = KEYS[round % KEYS.len()];
        pair.ask(0, &format!("DEL {key}"));
        pair.ask(0, &format!("ZADD {key} 1 x"));
        for (connection, waits) in waiting.iter_mut().enumerate() {
            *waits = *waits && !pair.is_answered(connection);
        }
    }
    assert!(waiting.iter().all(|waits| !waits), "a client waits for good");
}

/// Ends all waits without anything.
fn unblock(pair: &mut Pair, ids: &[[String; 2]], waiting: &[bool], reason: &str) {
    for (connection, _) in waiting.iter().enumerate().filter(|(_, waits)| **waits) {
        let commands = ids[connection].each_ref().map(|id| format!("CLIENT UNBLOCK {id} {reason}"));
        let answers = pair.ask_apart(0, commands.each_ref().map(String::as_str));
        assert_eq!(answers, [b":1\r\n"; 2]);
        assert!(pair.is_answered(connection));
    }
}

#[test]
fn watched_collections_stop_exec_as_in_redis() {
    let Some(redis) = real::start() else { return };
    let changes = [
        "HSET h x 2",
        "HDEL h x",
        "HDEL h none",
        "HINCRBY h x 1",
        "SADD s y",
        "SADD s x",
        "SREM s x",
        "SREM s none",
        "SMOVE s t x",
        "SPOP s",
        "ZADD z 2 x",
        "ZADD z 1 x",
        "ZADD z XX 1 none",
        "ZREM z x",
        "ZPOPMIN z",
        "ZREMRANGEBYSCORE z 5 6",
        "SUNIONSTORE s none",
        "SUNIONSTORE none s",
        "ZUNIONSTORE z 1 z",
        "DEL h",
        "RENAME h z",
        "EXPIRE h -1",
        "HGETALL h",
        "SMEMBERS s",
        "ZRANGE z 0 -1",
    ];
    for change in changes {
        let mut pair = Pair::new(&redis, Options::default(), 2);
        for command in ["HSET h x 1", "SADD s x", "ZADD z 1 x", "WATCH h s z", "MULTI", "PING"] {
            pair.ask(0, command);
        }
        pair.ask(1, change);
        pair.ask(0, "EXEC");
    }
}

#[test]
fn picks_are_members_of_collection() {
    let Some(redis) = real::start() else { return };
    let mut pair = pair_with_members(&redis);
    for command in ["SRANDMEMBER s -20", "HRANDFIELD h -20", "ZRANDMEMBER z -20"] {
        let [ours, real] = pair.ask_apart(0, [command; 2]);
        for answer in [ours, real] {
            assert!(answer.starts_with(b"*20\r\n"));
            let lines: Vec<_> = answer.split(|byte| *byte == b'\n').skip(2).step_by(2).collect();
            let is_member = |line: &&[u8]| matches!(*line, b"x\r" | b"y\r" | b"z\r");
            assert_eq!(lines.iter().filter(|line| is_member(line)).count(), 20);
            assert!(lines.iter().any(|line| *line != lines[0]), "always the same");
        }
    }
    for pops in (0..3).rev() {
        pair.ask_apart(0, ["SPOP s"; 2]);
        assert_eq!(pair.ask(0, "SCARD s"), format!(":{pops}\r\n").as_bytes());
    }
    assert_eq!(pair.ask(0, "EXISTS s"), b":0\r\n");
}

fn pair_with_members(redis: &ForeignServer) -> Pair {
    let mut pair = Pair::new(redis, Options::default(), 1);
    for command in ["SADD s x y z", "HSET h x 1 y 2 z 3", "ZADD z 1 x 2 y 3 z"] {
        pair.ask(0, command);
    }
    pair
}

/// Our own cursors: Redis gives small collections whole.
#[test]
fn scans_go_on_behind_last_field() {
    let mut ours = Ours::new(Options::default());
    let id = ours.connect();
    let mut ask = |command: &str| {
        ours.send(id, format!("{command}\r\n").as_bytes());
        String::from_utf8(ours.answer(id).unwrap()).unwrap()
    };
    ask("HSET h a 1 b 2 c 3");
    let first = "*2\r\n$1\r\n1\r\n*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$1\r\n2\r\n";
    assert_eq!(ask("HSCAN h 0 COUNT 2"), first);
    assert_eq!(ask("HSCAN h 1 COUNT 2"), "*2\r\n$1\r\n0\r\n*2\r\n$1\r\nc\r\n$1\r\n3\r\n");
    assert_eq!(ask("SCAN 1"), "-ERR invalid cursor\r\n");
    assert_eq!(ask("HSCAN h 2"), "-ERR invalid cursor\r\n");
    ask("SADD s a");
    assert!(ask("SCAN 0 COUNT 1").starts_with("*2\r\n$1\r\n2\r\n"));
    assert_eq!(ask("HSCAN h 2"), "-ERR invalid cursor\r\n");
    assert_eq!(ask("OBJECT ENCODING h"), "$9\r\nhashtable\r\n");
    ask("MULTI");
    ask("OBJECT ENCODING h");
    ask("OBJECT ENCODING none");
    assert_eq!(ask("EXEC"), "*2\r\n$9\r\nhashtable\r\n$-1\r\n");
}

#[test]
fn hang_up_ends_wait_and_drops_commands() {
    let mut ours = Ours::new(Options::default());
    let (first, second) = (ours.connect(), ours.connect());
    ours.send(first, b"BZPOPMIN z y 0\r\nSADD s x\r\n");
    assert_eq!(ours.answer(first), None);
    ours.close(first);
    ours.send(second, b"ZADD z 1 x\r\nEXISTS s z\r\n");
    assert_eq!(ours.output(second), b":1\r\n:1\r\n");
}
