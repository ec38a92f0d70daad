//! Databases, beside the real Redis: a key is of one of them, and a client names those of the one
//! that it has selected.

use std::sync::Arc;

use client::resp::command as encoded;
use model::ScriptValue;
use resp::{Interpreter, Options, ScriptHost, ScriptRun};
use testkit::Rng;

use crate::comparison::{Order, Pair};
use crate::differential::{both_sides, command, key_command, take_stock, waiting_command};
use crate::ours::Ours;
use crate::real;

const CONNECTIONS: usize = 3;

/// A command about databases.
fn database_command(random: &mut Rng) -> String {
    let key = random.pick(&["a", "b", "c", "\"\"", "x"]);
    let database = random.pick(&["0", "1", "2", "15", "16", "-1"]);
    match random.index(12) {
        0..4 => format!("SELECT {database}"),
        4..7 => format!("MOVE {key} {database}"),
        7 => format!("SWAPDB {database} {database}"),
        8 => format!("SET {key} {database}"),
        9 if random.index(6) == 0 => random.pick(&["FLUSHDB", "FLUSHALL"]).into(),
        10 => "DBSIZE".into(),
        _ => format!("GET {key}"),
    }
}

fn any_command(random: &mut Rng) -> String {
    match random.index(4) {
        0 => command(random),
        1 => key_command(random),
        _ => database_command(random),
    }
}

#[test]
fn databases_answer_as_in_redis() {
    both_sides(|redis, options| {
        for seed in 0..20 {
            let mut random = Rng::new(20_000 + seed);
            let mut pair = Pair::new(redis, options, CONNECTIONS);
            for _ in 0..200 {
                let connection = random.index(CONNECTIONS);
                if random.index(8) == 0 {
                    pair.ask_in(connection, "KEYS *", Order::Sorted);
                    pair.ask_in(connection, "SCAN 0 COUNT 1000", Order::Scanned);
                } else {
                    pair.ask(connection, &any_command(&mut random));
                }
            }
            for database in [0, 1, 2, 15] {
                pair.ask(0, &format!("SELECT {database}"));
                take_stock(&mut pair);
            }
        }
    });
}

#[test]
fn transactions_select_as_in_redis() {
    both_sides(|redis, options| {
        for seed in 0..20 {
            let mut random = Rng::new(21_000 + seed);
            let mut pair = Pair::new(redis, options, 2);
            for _ in 0..200 {
                let connection = random.index(2);
                let command = match random.index(8) {
                    0 => "MULTI".into(),
                    1 | 2 => random.pick(&["EXEC", "EXEC", "DISCARD"]).into(),
                    3 => format!("WATCH {}", random.pick(&["a", "b"])),
                    4 => random.pick(&["SELECT x", "SELECT", "NOSUCH", "RESET"]).into(),
                    _ => database_command(&mut random),
                };
                pair.ask(connection, &command);
            }
            pair.ask_apart(0, ["RESET", "RESET"]);
            for database in [0, 1, 2, 15] {
                pair.ask(0, &format!("SELECT {database}"));
                take_stock(&mut pair);
            }
        }
    });
}

#[test]
fn waits_are_of_one_database() {
    both_sides(|redis, options| {
        for seed in 0..10 {
            let mut random = Rng::new(22_000 + seed);
            let mut pair = Pair::new(redis, options, CONNECTIONS);
            let mut waiting = [false; CONNECTIONS];
            for _ in 0..100 {
                let connection = random.index(CONNECTIONS);
                if waiting[connection] {
                    continue;
                }
                let command = match random.index(4) {
                    0 if connection > 0 => waiting_command(&mut random),
                    1 => format!("SELECT {}", random.pick(&["0", "1"])),
                    2 => format!("MOVE {} {}", random.pick(&["a", "b"]), random.index(2)),
                    _ => format!("RPUSH {} x", random.pick(&["a", "b"])),
                };
                waiting[connection] = pair.ask_waiting(connection, &command);
                for (connection, waits) in waiting.iter_mut().enumerate() {
                    *waits = *waits && !pair.is_answered(connection);
                }
            }
        }
    });
}

#[test]
fn keyspace_is_told_as_in_redis() {
    let Some(redis) = real::start() else { return };
    let mut pair = Pair::new(&redis, Options::default(), 1);
    pair.ask(0, "INFO keyspace");
    for line in ["SET a 1", "SELECT 5", "RPUSH l x y", "SADD s x", "SELECT 12", "HSET h f v"] {
        pair.ask(0, line);
    }
    pair.ask(0, "INFO keyspace");
    pair.ask(0, "FLUSHDB");
    pair.ask(0, "INFO keyspace");
    pair.ask(0, "CONFIG GET databases");
}

#[test]
fn cursors_go_on_in_their_database() {
    let mut ours = Ours::new(Options::default());
    let client = ours.connect();
    let mut ask = |line: &str| {
        ours.send(client, format!("{line}\r\n").as_bytes());
        String::from_utf8(ours.output(client)).unwrap()
    };
    // One name behind all marks, and one before.
    for (database, key) in [(0, "a"), (0, "\u{fffd}"), (1, "b"), (2, "c"), (2, "d")] {
        ask(&format!("SELECT {database}"));
        ask(&format!("SET {key} x"));
    }
    let mut found = |database: usize| {
        ask(&format!("SELECT {database}"));
        let (mut cursor, mut keys) = ("0".to_owned(), Vec::new());
        loop {
            let answer = ask(&format!("SCAN {cursor} COUNT 1"));
            let mut lines = answer.lines().skip(2);
            cursor = lines.next().unwrap().to_owned();
            keys.extend(lines.skip(1).skip(1).step_by(2).map(str::to_owned));
            if cursor == "0" {
                return keys;
            }
        }
    };
    assert_eq!(found(0), ["a", "\u{fffd}"]);
    assert_eq!(found(1), ["b"]);
    assert_eq!(found(2), ["c", "d"]);
    assert_eq!(found(3), [""; 0]);
}

/// Runs scripts of commands in lines; the last answer is the result.
#[derive(Debug)]
pub(crate) struct Lines;

impl Interpreter for Lines {
    fn digest(&self, _: &[u8]) -> [u8; 20] {
        [0; 20]
    }

    fn check(&self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn run(&self, run: ScriptRun<'_>, host: &mut dyn ScriptHost) -> ScriptValue {
        let mut value = ScriptValue::Null;
        for line in run.source.split(|byte| *byte == b';') {
            let words: Vec<_> = line.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect();
            value = host.call(&words, false);
        }
        value
    }
}

#[test]
fn script_selects_for_itself() {
    let mut ours = Ours::new(Options::default());
    ours.set_interpreter(Arc::new(Lines));
    let client = ours.connect();
    let mut ask = |line: &str| {
        ours.send(client, format!("{line}\r\n").as_bytes());
        String::from_utf8(ours.output(client)).unwrap()
    };
    ask("SELECT 3");
    assert_eq!(ask("EVAL \"set a 3;select 1;set a 1;get a\" 0"), "$1\r\n1\r\n");
    assert_eq!(ask("GET a"), "$1\r\n3\r\n");
    assert_eq!(ask("EVAL \"get a\" 0"), "$1\r\n3\r\n");
    assert_eq!(ask("EVAL \"select 16\" 0"), "-ERR DB index is out of range\r\n");
    ask("MULTI");
    ask("SELECT 1");
    ask("EVAL \"get a\" 0");
    assert_eq!(ask("EXEC"), "*2\r\n+OK\r\n$1\r\n1\r\n");
    assert_eq!(ask("GET a"), "$1\r\n1\r\n");
}

#[test]
fn channels_know_no_database() {
    let mut ours = Ours::new(Options::default());
    let (hearing, telling) = (ours.connect(), ours.connect());
    ours.send(hearing, b"SELECT 1\r\nSUBSCRIBE news\r\n");
    ours.output(hearing);
    ours.send(telling, b"SELECT 2\r\nPUBLISH news x\r\nPUBSUB CHANNELS\r\n");
    let told = String::from_utf8(ours.output(telling)).unwrap();
    assert_eq!(told, "+OK\r\n:1\r\n*1\r\n$4\r\nnews\r\n");
    let heard = String::from_utf8(ours.output(hearing)).unwrap();
    assert_eq!(heard, "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n");
}

#[test]
fn databases_are_as_many_as_configured() {
    let mut ours = Ours::new(Options { databases: 2, ..Options::default() });
    let client = ours.connect();
    ours.send(client, b"SELECT 1\r\nSELECT 2\r\nCONFIG GET databases\r\nMOVE a 2\r\n");
    let wrong = "-ERR DB index is out of range\r\n";
    let told = String::from_utf8(ours.output(client)).unwrap();
    assert_eq!(told, format!("+OK\r\n{wrong}*2\r\n$9\r\ndatabases\r\n$1\r\n2\r\n{wrong}"));
}

#[test]
fn keys_with_marks_are_of_their_client() {
    let mut ours = Ours::new(Options::default());
    let (first, second) = (ours.connect(), ours.connect());
    ours.send(second, b"SELECT 1\r\n");
    ours.output(second);
    // What the name of one is, is the key of the other.
    ours.send(second, &encoded(&["SET", "jobs", "of 1"]));
    ours.send(first, &encoded(&["SET", "\u{f101}jobs", "of 0"]));
    ours.send(second, &encoded(&["GET", "jobs"]));
    ours.send(first, &encoded(&["GET", "\u{f101}jobs"]));
    ours.send(first, &encoded(&["KEYS", "*"]));
    let told = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    assert_eq!(told(ours.output(second)), "+OK\r\n$4\r\nof 1\r\n");
    let key = "$7\r\n\u{f101}jobs\r\n";
    assert_eq!(told(ours.output(first)), format!("+OK\r\n$4\r\nof 0\r\n*1\r\n{key}"));
}
