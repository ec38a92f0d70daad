//! Commands that are several of the engine's, beside the real Redis: COPY, SORT, BITOP, LCS. And
//! their limits.

use std::sync::Arc;

use client::resp::command as encoded;
use resp::Options;
use testkit::Rng;

use crate::comparison::{Order, Pair};
use crate::databases::Lines;
use crate::differential::both_sides;
use crate::ours::Ours;
use crate::real;

const KEYS: [&str; 8] = ["l", "m", "s", "z", "h", "v", "w", "x"];

/// Stores something at a key of its kind, mostly.
fn store(random: &mut Rng) -> String {
    let number = random.pick(&["1", "2", "10", "-3", "2.5", "7", "1e2", "x", "\"\"", "0x10"]);
    let other = random.pick(&["1", "3", "20", "abc", "b", "b1", "\"\\x01\\xff\""]);
    match random.index(14) {
        0..3 => format!("RPUSH {} {number} {other}", random.pick(&["l", "m"])),
        3 => format!("SADD s {number} {other}"),
        4 => format!("ZADD z {} {number} {} {other}", random.index(5), random.index(5)),
        5 => format!("HSET h {number} {other}"),
        6..8 => format!("SET {} \"{}\"", random.pick(&["v", "w"]), text(random)),
        8 => format!("SET w_{number} {}", random.index(100)),
        9 => format!("HSET h_{number} f {} g \"{}\"", random.index(100), text(random)),
        10 => format!("DEL {}", random.pick(&KEYS)),
        11 => format!("EXPIREAT {} {}", random.pick(&KEYS), random.pick(&["1", "17000000000"])),
        12 => format!("PERSIST {}", random.pick(&KEYS)),
        _ => format!("SET {} {other}", random.pick(&KEYS)),
    }
}

fn text(random: &mut Rng) -> String {
    (0..random.index(12))
        .map(|_| random.pick(&["a", "b", "c", "\\x00", "\\xff", "\\x0f"]))
        .collect()
}

fn sort(random: &mut Rng) -> String {
    let key = random.pick(&["l", "l", "m", "s", "z", "v", "none"]);
    let mut command = format!("{} {key}", random.pick(&["SORT", "SORT", "SORT_RO"]));
    let by =
        random.pick(&["", "", " BY w_*", " BY h_*->f", " BY nosort", " BY *->", " BY x*->f->"]);
    let alpha = random.pick(&["", " ALPHA"]);
    // Equal texts of other keys may be in any order.
    if !(alpha == " ALPHA" && by.contains('*')) {
        command.push_str(by);
    }
    // It may be a set, which has no order.
    let is_unordered = by == " BY nosort";
    command.push_str(alpha);
    command.push_str(random.pick(&["", "", " DESC", " ASC"]));
    if random.index(3) == 0 && !is_unordered {
        let place = random.pick(&["0", "1", "2", "-1", "100"]);
        command.push_str(&format!(" LIMIT {place} {}", random.pick(&["0", "1", "3", "-1", "-5"])));
    }
    for _ in 0..random.index(3) {
        command.push_str(random.pick(&[" GET #", " GET w_*", " GET h_*->g", " GET none"]));
    }
    if random.index(4) == 0 {
        command.push_str(&format!(" STORE {}", random.pick(&["m", "x", "v", "l"])));
    }
    command
}

fn program(random: &mut Rng) -> String {
    let (key, other) = (random.pick(&KEYS), random.pick(&KEYS));
    match random.index(10) {
        0..3 => sort(random),
        3 => format!("COPY {key} {other}"),
        4 => format!("COPY {key} {other} REPLACE"),
        5 => format!("COPY {key} {key} DB 1 {}", random.pick(&["", "REPLACE"])),
        6 => {
            let operation = random.pick(&["AND", "or", "XOR", "NOT"]);
            format!("BITOP {operation} {key} v {}", random.pick(&["w", "", "w none v", "l"]))
        }
        7 => format!("LCS v {} {}", random.pick(&["w", "none", "l"]), random.pick(&["", "LEN"])),
        8 => {
            let least = random.pick(&["", "MINMATCHLEN 2", "MINMATCHLEN -1"]);
            format!("LCS v w IDX {least} {}", random.pick(&["", "WITHMATCHLEN"]))
        }
        _ => format!("OBJECT {} {key}", random.pick(&["FREQ", "ENCODINGS"])),
    }
}

fn take_stock(pair: &mut Pair) {
    for database in [1, 0] {
        pair.ask(0, &format!("SELECT {database}"));
        pair.ask(0, "DBSIZE");
        for key in KEYS {
            pair.ask(0, &format!("TYPE {key}"));
            pair.ask(0, &format!("PEXPIRETIME {key}"));
            pair.ask(0, &format!("LRANGE {key} 0 -1"));
            pair.ask_in(0, &format!("HGETALL {key}"), Order::Pairs);
            pair.ask_in(0, &format!("SMEMBERS {key}"), Order::Sorted);
            pair.ask(0, &format!("ZRANGE {key} 0 -1 WITHSCORES"));
            pair.ask(0, &format!("GET {key}"));
        }
    }
}

#[test]
fn programs_answer_as_in_redis() {
    both_sides(|redis, options| {
        for seed in 0..30 {
            let mut random = Rng::new(30_000 + seed);
            let mut pair = Pair::new(redis, options, 1);
            if seed % 3 == 0 {
                pair.ask_apart(0, ["HELLO 3", "HELLO 3"]);
            }
            for _ in 0..150 {
                let command =
                    if random.index(2) == 0 { store(&mut random) } else { program(&mut random) };
                let is_unordered = command.contains("nosort");
                let order = if is_unordered { Order::Sorted } else { Order::Exact };
                pair.ask_in(0, &command, order);
            }
            take_stock(&mut pair);
        }
    });
}

#[test]
fn programs_in_transactions_answer_as_in_redis() {
    both_sides(|redis, options| {
        for seed in 0..10 {
            let mut random = Rng::new(31_000 + seed);
            let mut pair = Pair::new(redis, options, 1);
            for _ in 0..30 {
                pair.ask(0, "MULTI");
                for _ in 0..random.index(6) {
                    let command = if random.index(2) == 0 {
                        store(&mut random)
                    } else {
                        program(&mut random)
                    };
                    if !command.contains("nosort") {
                        pair.ask(0, &command);
                    }
                }
                pair.ask(0, "EXEC");
            }
            take_stock(&mut pair);
        }
    });
}

#[test]
fn unsorted_elements_have_the_order_of_redis() {
    let Some(redis) = real::start() else { return };
    let mut pair = Pair::new(&redis, Options::default(), 1);
    pair.ask(0, "RPUSH l c a b x 1");
    pair.ask(0, "ZADD z 3 c 1 a 2 b 2 x 9 1");
    pair.ask(0, "SADD s 2 10 3");
    for key in ["l", "z", "none"] {
        for options in ["", "DESC", "ALPHA", "LIMIT 1 2", "DESC LIMIT 1 2", "LIMIT 4 9"] {
            pair.ask(0, &format!("SORT {key} BY nosort {options}"));
            pair.ask(0, &format!("SORT {key} BY nosort {options} GET # GET w_*"));
        }
    }
    // What is stored of a set is in the order of its texts.
    for options in ["", "DESC", "LIMIT 1 1"] {
        pair.ask(0, &format!("SORT s BY nosort {options} STORE m"));
        pair.ask(0, "LRANGE m 0 -1");
    }
}

#[test]
fn mistakes_are_told_as_in_redis() {
    let Some(redis) = real::start() else { return };
    let mut pair = Pair::new(&redis, Options::default(), 1);
    pair.ask(0, "RPUSH l a b");
    let lines = [
        "SORT l",
        "SORT l LIMIT 1",
        "SORT l LIMIT x 1",
        "SORT l BY",
        "SORT_RO l STORE m",
        "SORT",
        "COPY l",
        "COPY l l",
        "COPY l m DB",
        "COPY l m DB x",
        "COPY l m DB 16",
        "COPY l m NOW",
        "COPY l l DB 0",
        "COPY none m",
        "BITOP NAND m l",
        "BITOP NOT m a b",
        "BITOP AND m",
        "BITOP AND m l",
        "LCS l none",
        "LCS a b LEN IDX",
        "LCS a b MINMATCHLEN",
        "LCS a b SOON",
        "OBJECT REFCOUNT none",
        "OBJECT IDLETIME none",
        "OBJECT FREQ l",
        "OBJECT REFCOUNT l",
        "OBJECT ENCODING",
        "RANDOMKEY x",
        "MEMORY USAGE none",
        "MEMORY USAGE l SAMPLES",
        "MEMORY USAGE l SAMPLES -1",
        "MEMORY USAGE l SAMPLES x",
        "MEMORY",
        "MEMORY NOSUCH",
    ];
    for line in lines {
        pair.ask(0, line);
    }
}

#[test]
fn streams_are_copied_whole() {
    let Some(redis) = real::start() else { return };
    let mut pair = Pair::new(&redis, Options::default(), 1);
    let lines = [
        "XADD a 1-1 f v g w",
        "XADD a 2-1 f x",
        "XADD a 3-1 f y",
        "XADD a 9-1 f z",
        "XDEL a 9-1",
        "XGROUP CREATE a g 0",
        "XGROUP CREATE a other $",
        "XGROUP CREATECONSUMER a g idle",
        "XREADGROUP GROUP g c COUNT 2 STREAMS a >",
        "XREADGROUP GROUP g d COUNT 1 STREAMS a >",
        "XACK a g 1-1",
        "COPY a b",
        "XLEN b",
        "XRANGE b - +",
        "XINFO STREAM b",
        "XINFO GROUPS b",
        "XADD b 9-1 f v",
        "XREADGROUP GROUP g c STREAMS b 0",
        "COPY a b",
        "COPY a b REPLACE DB 3",
        "XGROUP CREATE e g 0 MKSTREAM",
        "COPY e f",
        "XINFO GROUPS f",
        "XGROUP DESTROY e g",
        "COPY e f REPLACE",
        "TYPE f",
        "XLEN f",
        "XINFO GROUPS f",
        "SELECT 3",
        "XRANGE b - +",
    ];
    for line in lines {
        let order = if line.starts_with("XINFO STREAM") { Order::Described } else { Order::Exact };
        pair.ask_in(0, line, order);
    }
    pair.ask_in(0, "XPENDING b g - + 10", Order::Pending);
}

#[test]
fn random_key_is_one_of_the_database() {
    let mut ours = Ours::new(Options::default());
    let client = ours.connect();
    let mut ask = |line: &str| {
        ours.send(client, format!("{line}\r\n").as_bytes());
        String::from_utf8(ours.output(client)).unwrap()
    };
    assert_eq!(ask("RANDOMKEY"), "$-1\r\n");
    for line in ["SET a x", "RPUSH b x", "SADD c x", "RPUSH gone x", "LPOP gone", "SET due x PX 1"]
    {
        ask(line);
    }
    ask("SELECT 1");
    assert_eq!(ask("RANDOMKEY"), "$-1\r\n");
    ask("RPUSH d x");
    assert_eq!(ask("RANDOMKEY"), "$1\r\nd\r\n");
    ask("SELECT 0");
    let mut found: Vec<_> = (0..200).map(|_| ask("RANDOMKEY")).collect();
    found.sort_unstable();
    found.dedup();
    let keys = ["$1\r\na\r\n", "$1\r\nb\r\n", "$1\r\nc\r\n", "$3\r\ndue\r\n"];
    assert_eq!(found, keys);
}

#[test]
fn large_work_is_refused() {
    let mut ours = Ours::new(Options::default());
    let client = ours.connect();
    let mut ask = |words: &[&str]| {
        ours.send(client, &encoded(words));
        String::from_utf8(ours.output(client)).unwrap()
    };
    let long = "x".repeat(2_000);
    ask(&["SET", "long", &long]);
    assert!(ask(&["LCS", "long", "long"]).starts_with("-ERR the strings are too long for LCS"));
    ask(&["SETRANGE", "long", "0", &long[..1_990]]);
    ask(&["SET", "less", &long[..1_990]]);
    assert_eq!(ask(&["LCS", "long", "less", "LEN"]), ":1990\r\n");
    let members: Vec<String> = (0..20_001).map(|number| number.to_string()).collect();
    let push = |key, count: usize| {
        let words = ["RPUSH", key].into_iter().chain(members[..count].iter().map(String::as_str));
        words.map(str::to_owned).collect::<Vec<_>>()
    };
    for (key, count) in [("l", 20_001), ("m", 5_001), ("n", 5_000), ("o", 10_001)] {
        let words = push(key, count);
        ask(&words.iter().map(String::as_str).collect::<Vec<_>>());
    }
    assert_eq!(ask(&["SORT", "l"]), "-ERR SORT sorts 20000 elements at most here\r\n");
    let twice = ["SORT", "o", "BY", "w_*", "GET", "v_*"];
    assert_eq!(ask(&twice), "-ERR SORT looks at 20000 values of other keys at most here\r\n");
    assert!(ask(&[&twice[..], &["LIMIT", "0", "1"]].concat()).starts_with("*1\r\n"));
    // The text of no key is made five thousand times out of a mebibyte, nor looked for.
    let long = "x".repeat(1 << 20);
    assert!(ask(&["SORT", "n", "BY", &format!("{long}*")]).starts_with("*5000\r\n"));
    let field = format!("h*->{long}");
    let by_field = ["SORT", "n", "BY", &*field];
    assert_eq!(ask(&by_field), "-ERR SORT looks at 20000 values of other keys at most here\r\n");
    let many: Vec<&str> = std::iter::repeat_n("none", 10_001).collect();
    let refusal = "-ERR BITOP combines 10000 values at most here\r\n";
    assert_eq!(ask(&[&["BITOP", "OR", "v"], &many[..]].concat()), refusal);
    assert_eq!(ask(&[&["BITOP", "OR", "v"], &many[1..]].concat()), ":0\r\n");
    let refusal = "-ERR COPY copies 5000 elements, fields or entries at most here\r\n";
    assert_eq!(ask(&["COPY", "m", "x"]), refusal);
    assert_eq!([ask(&["EXISTS", "x"]), ask(&["COPY", "n", "x"])], [":0\r\n", ":1\r\n"]);
    // Deleting so many at once is too much for a frame: nothing of it is done.
    assert!(ask(&["COPY", "n", "l", "REPLACE"]).starts_with("-ERR "));
    assert_eq!(ask(&["LLEN", "l"]), ":20001\r\n");
    let big = "x".repeat(9 << 20);
    ask(&["SET", "big", &big]);
    let bits = ask(&["BITOP", "OR", "v", "big", "big"]);
    assert_eq!(bits, "-ERR BITOP reads 16777216 bytes at most here\r\n");
    assert_eq!(ask(&["BITOP", "NOT", "big", "big"]), format!(":{}\r\n", 9 << 20));
}

#[test]
fn programs_run_in_scripts() {
    let mut ours = Ours::new(Options::default());
    ours.set_interpreter(Arc::new(Lines));
    let client = ours.connect();
    let mut ask = |script: &str| {
        ours.send(client, format!("EVAL \"{script}\" 0\r\n").as_bytes());
        String::from_utf8(ours.output(client)).unwrap()
    };
    assert_eq!(ask("rpush l b a;sort l alpha"), "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    assert_eq!(ask("copy l m;sort l by nosort store l;llen m"), ":2\r\n");
    assert_eq!(ask("copy l m db 1;copy l m db 1"), ":0\r\n");
    assert_eq!(
        ask("bitop not v l"),
        "-WRONGTYPE Operation against a key holding the wrong \
                                      kind of value\r\n"
    );
    assert!(ask("waitaof 1 0 0").starts_with("-ERR This Redis command is not allowed"));
}

#[test]
fn sorted_elements_fit_one_answer() {
    let mut ours = Ours::new(Options { reply_bytes_max: 10_000, ..Options::default() });
    let client = ours.connect();
    ours.send(client, &encoded(&["RPUSH", "l", &"x".repeat(1_000)]));
    ours.output(client);
    let mut ask = |gets: usize| {
        let words = [["SORT", "l"], ["BY", "nosort"]].concat();
        ours.send(client, &encoded(&[words, ["GET", "#"].repeat(gets)].concat()));
        String::from_utf8(ours.output(client)).unwrap()
    };
    assert!(ask(10).starts_with("*10\r\n$1000\r\n"));
    assert!(ask(11).starts_with("-ERR too large for one reply"));
}

#[test]
fn facts_of_keys_are_told() {
    let mut ours = Ours::new(Options::default());
    let client = ours.connect();
    let mut ask = |line: &str| {
        ours.send(client, format!("{line}\r\n").as_bytes());
        String::from_utf8(ours.output(client)).unwrap()
    };
    let number = |answer: String| answer[1..].trim_end().parse::<u64>().unwrap();
    ask("SET v 0123456789");
    let one = number(ask("MEMORY USAGE v"));
    ask("APPEND v 0123456789");
    assert_eq!(number(ask("MEMORY USAGE v SAMPLES 5")), one + 10);
    ask("RPUSH l a");
    let one = number(ask("MEMORY USAGE l"));
    ask("RPUSH l b c");
    assert!(number(ask("MEMORY USAGE l")) > one);
    ask("HSET h f v");
    let one = number(ask("MEMORY USAGE h"));
    ask("HSET h g w");
    assert!(number(ask("MEMORY USAGE h")) > one);
    assert!(ask("MEMORY STATS").starts_with("-ERR MEMORY has USAGE alone here"));
    assert!(ask("OBJECT IDLETIME v").starts_with("-ERR the time of the last access"));
    assert_eq!(ask("WAITAOF 1 0 100"), "*2\r\n:1\r\n:0\r\n");
    assert!(ask("WAITAOF 2 0 0").starts_with("-ERR value is out of range, value must between"));
    assert!(ask("WAITAOF 1 0 -1").starts_with("-ERR timeout is negative"));
}
