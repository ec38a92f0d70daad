//! Random commands to our session and engine and to the real Redis: the same answers, byte for
//! byte, whichever side of a list is the queue's head.

use resp::{Options, Side};
use testkit::Rng;
use testkit::foreign_server::ForeignServer;

use crate::comparison::{Order, Pair};
use crate::real;
use crate::runs::burst;

const KEYS: [&str; 4] = ["a", "b", "c", "ä:1"];
const ELEMENTS: [&str; 6] = ["x", "y", "z", "1", "\"\"", "\"x y\\r\\n\""];
const PLACES: [&str; 12] =
    ["0", "0", "1", "2", "-1", "-1", "-2", "5", "-5", "100", "-100", "9223372036854775807"];

pub(crate) fn both_sides(check: impl Fn(&ForeignServer, Options)) {
    let Some(redis) = real::start() else { return };
    for list_head in [Side::Right, Side::Left] {
        check(&redis, Options { list_head, ..Options::default() });
    }
}

#[test]
fn lists_answer_as_in_redis() {
    both_sides(|redis, options| {
        for seed in 0..20 {
            let mut random = Rng::new(seed);
            let mut pair = Pair::new(redis, options, 1);
            if seed % 3 == 0 {
                pair.ask_apart(0, ["HELLO 3", "HELLO 3"]);
            }
            for _ in 0..200 {
                let command = if random.index(8) == 0 {
                    malformed(&mut random)
                } else {
                    command(&mut random)
                };
                pair.ask(0, &command);
            }
            take_stock(&mut pair);
        }
    });
}

#[test]
fn bursts_are_answered_as_in_redis() {
    const CONNECTIONS: usize = 4;
    both_sides(|redis, options| {
        for seed in 0..20 {
            let mut random = Rng::new(5_000 + seed);
            let mut pair = Pair::new(redis, options, CONNECTIONS);
            let mut waiting = [false; CONNECTIONS];
            for _ in 0..60 {
                let connection = random.index(CONNECTIONS);
                if connection > 0 && !waiting[connection] {
                    let command = waiting_command(&mut random);
                    waiting[connection] = pair.ask_waiting(connection, &command);
                } else {
                    pair.ask_all(0, &burst(&mut random));
                }
                for (connection, waits) in waiting.iter_mut().enumerate() {
                    *waits = *waits && !pair.is_answered(connection);
                }
            }
            take_stock(&mut pair);
        }
    });
}

#[test]
fn keys_and_values_match_redis() {
    both_sides(|redis, options| {
        for seed in 0..20 {
            let mut random = Rng::new(1_000 + seed);
            let mut pair = Pair::new(redis, options, 1);
            for _ in 0..200 {
                match random.index(4) {
                    0 => pair.ask(0, &command(&mut random)),
                    1 => pair.ask_in(0, &unordered(&mut random), Order::Sorted),
                    _ => pair.ask(0, &key_command(&mut random)),
                };
            }
            take_stock(&mut pair);
        }
    });
}

#[test]
fn transactions_answer_as_in_redis() {
    both_sides(|redis, options| {
        for seed in 0..20 {
            let mut random = Rng::new(2_000 + seed);
            let mut pair = Pair::new(redis, options, 2);
            for _ in 0..200 {
                let connection = random.index(2);
                let command = transaction_command(&mut random);
                if command.contains("LTRIM") {
                    // One that trims nothing counts as a change in Redis.
                    continue;
                }
                pair.ask(connection, &command);
            }
            pair.ask_apart(0, ["RESET", "RESET"]);
            take_stock(&mut pair);
        }
    });
}

#[test]
fn waiting_clients_served_as_in_redis() {
    const CONNECTIONS: usize = 5;
    both_sides(|redis, options| {
        for seed in 0..20 {
            let mut random = Rng::new(3_000 + seed);
            let mut pair = Pair::new(redis, options, CONNECTIONS);
            let ids: Vec<[String; 2]> = (0..CONNECTIONS)
                .map(|at| pair.ask_apart(at, ["CLIENT ID"; 2]).map(number))
                .collect();
            if seed % 3 == 0 {
                pair.ask_apart(0, ["HELLO 3", "HELLO 3"]);
            }
            let mut waiting = [false; CONNECTIONS];
            for _ in 0..150 {
                let connection = random.index(CONNECTIONS);
                if connection > 0 && !waiting[connection] {
                    let command = waiting_command(&mut random);
                    waiting[connection] = pair.ask_waiting(connection, &command);
                } else {
                    let command = if random.index(4) == 0 {
                        one_transaction(&mut pair, &mut random)
                    } else {
                        command(&mut random)
                    };
                    pair.ask(0, &command);
                }
                for (connection, waits) in waiting.iter_mut().enumerate() {
                    *waits = *waits && !pair.is_answered(connection);
                }
            }
            for (connection, waits) in waiting.into_iter().enumerate() {
                if waits {
                    let reason = random.pick(&["TIMEOUT", "ERROR"]);
                    let unblock = |id: &String| format!("CLIENT UNBLOCK {id} {reason}");
                    let [ours, real] = [0, 1].map(|side| unblock(&ids[connection][side]));
                    let answers = pair.ask_apart(0, [&ours, &real]);
                    assert_eq!(answers, [b":1\r\n"; 2]);
                    assert!(pair.is_answered(connection), "seed {seed}");
                }
            }
            take_stock(&mut pair);
        }
    });
}

/// One command brings a client several messages: their order is not promised.
#[test]
fn subscribers_hear_the_same_as_redis() {
    const CONNECTIONS: usize = 5;
    let Some(redis) = real::start() else { return };
    for seed in 0..20 {
        let mut random = Rng::new(4_000 + seed);
        let mut pair = Pair::new(&redis, Options::default(), CONNECTIONS);
        for connection in (1..CONNECTIONS).filter(|connection| connection % 2 == 0) {
            pair.ask_apart(connection, ["HELLO 3", "HELLO 3"]);
        }
        for _ in 0..150 {
            let connection = 1 + random.index(CONNECTIONS - 1);
            pair.tell(connection, &topic_command(&mut random));
        }
        for connection in 1..CONNECTIONS {
            pair.tell(connection, "RESET");
        }
    }
}

fn topic_command(random: &mut Rng) -> String {
    let (channel, other) = (random.pick(&CHANNELS), random.pick(&CHANNELS));
    let pattern = random.pick(&["a*", "?", "[ab]", "*1", "\\*", "[^a]*"]);
    match random.index(14) {
        0 => format!("SUBSCRIBE {channel}"),
        1 => format!("SUBSCRIBE {channel} {other} {channel}"),
        2 => format!("PSUBSCRIBE {pattern} a*"),
        3 => format!("UNSUBSCRIBE {channel} {other}"),
        4 => format!("PUNSUBSCRIBE {pattern}"),
        5 => format!("PUBSUB NUMSUB {channel} {other}"),
        6 => random.pick(&["PUBSUB NUMPAT", "PING", "PING x", "RESET", "GET nothing"]).into(),
        7 => random.pick(&["UNSUBSCRIBE nowhere", "SUBSCRIBE", "PUBLISH a"]).into(),
        8 | 9 => format!("CLIENT REPLY {}", random.pick(&["SKIP", "SKIP", "ON", "OFF"])),
        _ => format!("PUBLISH {channel} {}", random.pick(&ELEMENTS)),
    }
}

const CHANNELS: [&str; 5] = ["a", "b", "ab", "ä:1", "*"];

#[test]
fn malformed_commands_answered_as_in_redis() {
    let Some(redis) = real::start() else { return };
    let cases: [&[u8]; 11] = [
        b"*x\r\n",
        b"*99999999999\r\n",
        b"*1\r\nPING\r\n",
        b"*1\r\n$x\r\n",
        b"*1\r\n$-1\r\n",
        b"*1\r\n$99999999999999\r\n",
        b"PING\r\n\"a\r\n",
        b"*0\r\nPING\r\n*1\r\n:1\r\n",
        b"POST / HTTP/1.1\r\nPING\r\n",
        b"QUIT\r\nPING\r\n",
        b"*2\r\n$4\r\nQUIT\r\n$1\r\nx\r\n",
    ];
    for bytes in cases {
        let mut pair = Pair::new(&redis, Options::default(), 1);
        pair.compare_last_words(0, bytes);
    }
}

/// The digits of an integer.
pub(crate) fn number(answer: Vec<u8>) -> String {
    String::from_utf8(answer).unwrap().trim_matches([':', '\r', '\n']).into()
}

/// A transaction up to, but without, its EXEC.
fn one_transaction(pair: &mut Pair, random: &mut Rng) -> String {
    pair.ask(0, "MULTI");
    for _ in 0..random.index(4) {
        let waits = random.index(4) == 0;
        let command = if waits { waiting_command(random) } else { command(random) };
        pair.ask(0, &command);
    }
    random.pick(&["EXEC", "EXEC", "DISCARD"]).into()
}

pub(crate) fn command(random: &mut Rng) -> String {
    let (key, other) = (random.pick(&KEYS), random.pick(&KEYS));
    let (one, two) = (random.pick(&ELEMENTS), random.pick(&ELEMENTS));
    let (first, last) = (random.pick(&PLACES), random.pick(&PLACES));
    let (side, end) = (random.pick(&["LEFT", "right"]), random.pick(&["Left", "RIGHT"]));
    let letter = random.pick(&["L", "R"]);
    match random.index(26) {
        0 | 1 => format!("{letter}PUSH {key} {one}"),
        2..5 => format!("{letter}PUSH {key} {one} {two} z x y"),
        5 => format!("{letter}PUSHX {key} {one} {two}"),
        6 => format!("{letter}POP {key}"),
        7 => format!("{letter}POP {key} {}", random.index(4)),
        8 => format!("LLEN {key}"),
        9 => format!("LRANGE {key} {first} {last}"),
        10 => format!("LINDEX {key} {first}"),
        11 => format!("LSET {key} {first} {one}"),
        12 => format!("LINSERT {key} {} {one} {two}", random.pick(&["BEFORE", "after"])),
        13 => format!("LREM {key} {} {one}", random.pick(&["0", "1", "-1", "2", "-2"])),
        14 => format!("LTRIM {key} {first} {last}"),
        15 => format!("LPOS {key} {one}"),
        16 => locate(key, one, random),
        17 => format!("LMOVE {key} {other} {side} {end}"),
        18 => format!("RPOPLPUSH {key} {other}"),
        19 => format!("LMPOP 2 {key} {other} {side}"),
        20 => format!("LMPOP 1 {key} {side} COUNT {}", 1 + random.index(3)),
        21 => format!("DEL {key}"),
        22 => format!("LTRIM {key} 0 2"),
        23 => format!("LRANGE {key} 0 -1"),
        24 => format!("RENAME {key} {other}"),
        _ => format!("EXISTS {key} {other}"),
    }
}

fn locate(key: &str, element: &str, random: &mut Rng) -> String {
    let mut command = format!("LPOS {key} {element}");
    let ranks = ["1", "2", "-1", "-2", "7", "-100"];
    for (option, values) in
        [("RANK", &ranks[..]), ("COUNT", &["0", "1", "2"]), ("MAXLEN", &["0", "1", "3", "100"])]
    {
        if random.index(2) == 0 {
            command.push_str(&format!(" {option} {}", random.pick(values)));
        }
    }
    command
}

pub(crate) fn waiting_command(random: &mut Rng) -> String {
    let (key, other) = (random.pick(&KEYS), random.pick(&KEYS));
    let (side, end) = (random.pick(&["LEFT", "RIGHT"]), random.pick(&["LEFT", "RIGHT"]));
    let letter = random.pick(&["L", "R"]);
    let count = 1 + random.index(3);
    match random.index(6) {
        0 => format!("B{letter}POP {key} 0"),
        1 => format!("B{letter}POP {key} {other} 1000"),
        2 => format!("BLMPOP 0 2 {key} {other} {side} COUNT {count}"),
        3 => format!("BLMOVE {key} {other} {side} {end} 0"),
        4 => format!("BRPOPLPUSH {key} {other} 0"),
        _ => format!("BLMPOP 0 1 {key} {side} COUNT {count}"),
    }
}

pub(crate) fn key_command(random: &mut Rng) -> String {
    let (key, other) = (random.pick(&KEYS), random.pick(&KEYS));
    let element = random.pick(&ELEMENTS);
    match random.index(22) {
        0 => format!("DEL {key} {other} {key}"),
        1 => format!("UNLINK {key}"),
        2 => format!("EXISTS {key} {other} {key}"),
        3 => format!("TOUCH {key} {other}"),
        4 => format!("TYPE {key}"),
        5 => format!("RENAME {key} {other}"),
        6 => format!("RENAMENX {key} {other}"),
        7 => format!("SET {key} {element}"),
        8 => format!("SET {key} {element} {}", random.pick(&["NX", "XX", "GET", "KEEPTTL"])),
        9 => format!("SET {key} {element} {} GET", random.pick(&["NX", "XX"])),
        10 => format!("SETNX {key} {element}"),
        11 | 12 => format!("GET {key}"),
        13 => format!("GETDEL {key}"),
        14 => "DBSIZE".into(),
        15 => format!("TTL {key}"),
        16 => format!("PERSIST {key}"),
        17 => format!("OBJECT ENCODING {key}"),
        18 if random.index(8) == 0 => random.pick(&["FLUSHALL", "FLUSHDB ASYNC"]).into(),
        19 => format!("EXPIRE {key} {}", random.pick(&["-1", "0", "100000", "100000 XX"])),
        // No moment to come: what TTL says of one depends on each side's clock.
        20 => format!("EXPIREAT {key} {}", random.pick(&["0", "1", "-5", "1 NX"])),
        _ => format!("EXPIRETIME {key}x"),
    }
}

/// A command that answers with an array without a promised order.
fn unordered(random: &mut Rng) -> String {
    random.pick(&["KEYS *", "KEYS a", "KEYS [ab]", "KEYS [^a]*", "KEYS ?", "KEYS \\\\a"]).into()
}

fn transaction_command(random: &mut Rng) -> String {
    match random.index(14) {
        0 | 1 => "MULTI".into(),
        2 | 3 => "EXEC".into(),
        4 => random.pick(&["DISCARD", "UNWATCH"]).into(),
        5 | 6 => format!("WATCH {} {}", random.pick(&KEYS), random.pick(&KEYS)),
        7 => malformed(random),
        8 => random
            .pick(&["PING", "ECHO a", "CLIENT GETNAME", "SELECT 0", "SELECT 1", "SELECT 16"])
            .into(),
        9 => key_command(random),
        _ => command(random),
    }
}

/// A command that is wrong in one place, if any.
fn malformed(random: &mut Rng) -> String {
    let number = random.pick(&["x", "", "01", "+1", "-0", " 1", "1.0", "9223372036854775808"]);
    let number = format!("\"{number}\"");
    let words = [
        "NOSUCH",
        "nosuch a \"b c\"",
        "LPUSH",
        "LPUSH a",
        "LPOP",
        "LPOP a 1 2",
        "LLEN a b",
        "LRANGE a 0",
        "LINSERT a BESIDE x y",
        "LMOVE a b LEFT UP",
        "LMPOP 0 a LEFT",
        "LMPOP 3 a LEFT",
        "LMPOP 1 a LEFT COUNT 0",
        "LMPOP 1 a LEFT COUNT 1 COUNT 2",
        "LMPOP 1 a UP",
        "LPOS a x RANK 0",
        "LPOS a x COUNT -1",
        "LPOS a x MAXLEN -1",
        "LPOS a x RANK",
        "LPOS a x LIMIT 1",
        "BLPOP a -1",
        "BLPOP a x",
        "BLPOP a",
        "BLMPOP x 0 a LEFT",
        "BLMPOP x 1 a LEFT",
        "OBJECT FREE a",
        "OBJECT",
        "CLIENT",
        "CLIENT NOSUCH",
        "CONFIG GET",
        "AUTH a",
        "AUTH a b",
        "SELECT x",
        "SELECT -1",
        "SELECT 2147483648",
        "MOVE a x",
        "MOVE a 0",
        "MOVE a 16",
        "SWAPDB 0 16",
        "SWAPDB 99999999999 x",
        "SWAPDB 16 x",
        "SWAPDB x 0",
        "WAIT x 0",
        "SET a",
        "SET a b NX XX",
        "SET a b EX",
        "SET a b EX 0",
        "SET a b EX 1 PX 1",
        "SET a b KEEPTTL EX 1",
        "SETEX a 0 b",
        "EXPIRE a 1 NX XX",
        "EXPIRE a 1 GT LT",
        "EXPIRE a 1 SOON",
        "EXPIRE a 9223372036854775807",
        "PING a b",
        "ECHO",
        "DEBUG SLEEP 0",
        "FLUSHALL NOW",
        "SCAN x",
        "SCAN 0 COUNT 0",
        "HELLO 4",
        "HELLO x",
        "PUBSUB NOSUCH",
        "COMMAND NOSUCH",
    ];
    match random.index(9) {
        0 => format!("LPOP a {number}"),
        1 => format!("LRANGE a {number} 1"),
        2 => format!("LREM a {number} x"),
        3 => format!("LTRIM a 0 {number}"),
        4 => format!("SET a b EX {number}"),
        5 => format!("LPOS a x COUNT {number}"),
        _ => random.pick(&words).into(),
    }
}

/// Every list and value as both see it at the end.
pub(crate) fn take_stock(pair: &mut Pair) {
    pair.ask(0, "DBSIZE");
    for key in KEYS {
        pair.ask(0, &format!("TYPE {key}"));
        pair.ask(0, &format!("LRANGE {key} 0 -1"));
        pair.ask(0, &format!("GET {key}"));
    }
}
