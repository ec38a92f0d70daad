//! Random commands on streams and their groups to our session and engine and to the real Redis: the
//! same answers, byte for byte, but for times and for the nodes of a tree that we do not have.

use resp::Options;
use testkit::Rng;

use crate::collections::{KEYS, key_command};
use crate::comparison::{Order, Pair};
use crate::ours::Ours;
use crate::real;

const GROUPS: [&str; 3] = ["g", "h", "group two"];
const CONSUMERS: [&str; 3] = ["alice", "bob", ""];
const IDS: [&str; 10] = ["1-1", "1-2", "2", "3-0", "4-7", "7-1", "12", "20-3", "33-1", "50"];
const MISTAKES: [&str; 34] = [
    "XADD a",
    "XADD a * f",
    "XADD a 0-0 f v",
    "XADD a 0 f v",
    "XADD a x-1 f v",
    "XADD a + f v",
    "XADD a MAXLEN -1 * f v",
    "XADD a MAXLEN x * f v",
    "XADD a MAXLEN 1 MINID 1 9 f v",
    "XADD a MAXLEN 5 LIMIT 3 9-9 f v",
    "XADD a LIMIT 3 9-9 f v",
    "XADD a MAXLEN ~ 5 LIMIT -1 9 f v",
    "XADD a MINID x 9-9 f v",
    "XTRIM a MAXLEN",
    "XTRIM a LIMIT 3",
    "XTRIM a x 3",
    "XRANGE a x +",
    "XRANGE a - + COUNT",
    "XRANGE a - + COUNT x",
    "XRANGE a (18446744073709551615-18446744073709551615 +",
    "XRANGE a - (0-0",
    "XRANGE a (- +",
    "XREVRANGE a - x",
    "XREAD COUNT x STREAMS a 0",
    "XREAD a 0",
    "XREAD GROUP g c STREAMS a 0",
    "XREAD NOACK STREAMS a 0",
    "XSETID a x",
    "XSETID a 1-1 ENTRIESADDED -1",
    "XSETID a 1-1 MAXDELETEDID 2-1",
    "XGROUP CREATE a g 0 ENTRIESREAD -2",
    "XPENDING a g - +",
    "XPENDING a g - + x",
    "XAUTOCLAIM a g c 0 0 COUNT 0",
];

#[test]
fn streams_answer_as_in_redis() {
    let Some(redis) = real::start() else { return };
    for seed in 0..40 {
        let mut random = Rng::new(14_000 + seed);
        let mut pair = Pair::new(&redis, Options::default(), 1);
        if seed % 2 == 0 {
            pair.ask_apart(0, ["HELLO 3", "HELLO 3"]);
        }
        for _ in 0..150 {
            match random.index(24) {
                0 => transaction(&mut pair, &mut random),
                1 => drop(pair.ask(0, random.pick(&MISTAKES))),
                2 => drop(pair.ask(0, &key_command(&mut random))),
                3..10 => group_step(&mut pair, &mut random),
                _ => drop(pair.ask(0, &stream_command(&mut random))),
            }
        }
        take_stock(&mut pair);
    }
}

fn transaction(pair: &mut Pair, random: &mut Rng) {
    pair.ask(0, "MULTI");
    for _ in 0..random.index(6) {
        let command = match random.index(4) {
            0 => random.pick(&MISTAKES).into(),
            _ => stream_command(random),
        };
        pair.ask(0, &command);
    }
    pair.ask(0, random.pick(&["EXEC", "EXEC", "EXEC", "DISCARD"]));
}

/// A command on one stream, without groups.
fn stream_command(random: &mut Rng) -> String {
    let (key, other) = (random.pick(&KEYS), random.pick(&KEYS));
    let (id, next) = (random.pick(&IDS), random.pick(&IDS));
    let n = random.index(6);
    match random.index(22) {
        0..6 => format!("XADD {key} {}-* f {n} other value", random.index(60)),
        6 => format!("XADD {key} {id} f {n}"),
        7 => format!("XADD {key} NOMKSTREAM {id} f {n}"),
        8 => format!("XADD {key} MAXLEN {} {n} {}-* f {n}", random.pick(&["", "="]), 60 + n),
        9 => format!("XADD {key} MINID {id} NOMKSTREAM {}-* f {n}", 60 + n),
        10 => format!("XADD {key} MAXLEN ~ 1000 LIMIT 0 {}-* f {n}", 60 + n),
        11 => format!("XTRIM {key} MAXLEN {n}"),
        12 => format!("XTRIM {key} MINID = {id}"),
        13 => format!("XDEL {key} {id} {next} {id}"),
        14 => format!("XLEN {key}"),
        15 => format!("XRANGE {key} {id} {next}"),
        16 => format!("XRANGE {key} ({id} + COUNT {n}"),
        17 => format!("XREVRANGE {key} + ({id} COUNT {n}"),
        18 => format!("XREVRANGE {key} {next} -"),
        19 => format!("XREAD COUNT {n} STREAMS {key} {other} {id} {next}"),
        20 => format!("XREAD STREAMS {key} {id}"),
        _ => format!("XSETID {key} 99-{n}"),
    }
}

/// Commands on a group. Redis 7.0 makes a consumer when it gets something, 7.2 when it asks, as we
/// do: it is there before.
fn group_step(pair: &mut Pair, random: &mut Rng) {
    let (key, group) = (random.pick(&KEYS), random.pick(&GROUPS[..2]));
    let (consumer, other) = (random.pick(&CONSUMERS[..2]), random.pick(&CONSUMERS[..2]));
    let (id, next, n) = (random.pick(&IDS), random.pick(&IDS), random.index(5));
    let there = format!("XGROUP CREATECONSUMER {key} {group} {consumer}");
    let option = random.pick(&["", "JUSTID", "FORCE", "IDLE 10", "TIME 5", "RETRYCOUNT 7"]);
    let idle = random.pick(&["0", "-3", "100000000"]);
    let command = match random.index(19) {
        0 => format!("XGROUP CREATE {key} {group} {id} ENTRIESREAD 0"),
        1 => format!("XGROUP CREATE {key} {group} $ MKSTREAM"),
        2 => format!("XGROUP CREATE {key} {group} 0"),
        3 if n == 0 => format!("XGROUP DESTROY {key} {group}"),
        4 => format!("XGROUP SETID {key} {group} {id}"),
        5 => format!("XGROUP SETID {key} {group} $ ENTRIESREAD 0"),
        6 if n == 0 => format!("XGROUP DELCONSUMER {key} {group} {consumer}"),
        7 => format!("XREADGROUP GROUP {group} {consumer} NOACK STREAMS {key} >"),
        8..12 => format!("XREADGROUP GROUP {group} {consumer} COUNT {n} STREAMS {key} >"),
        12 => format!("XREADGROUP GROUP {group} {consumer} COUNT {n} STREAMS {key} {id}"),
        13 => format!("XACK {key} {group} {id} {next} {id}"),
        14 => format!("XCLAIM {key} {group} {consumer} {idle} {id} {next} {option}"),
        15 => format!("XCLAIM {key} {group} {consumer} 0 {id} LASTID {next} {option} FORCE"),
        16 => format!("XAUTOCLAIM {key} {group} {consumer} {idle} {id} COUNT {}", n + 1),
        17 => format!("XAUTOCLAIM {key} {group} {consumer} 0 - JUSTID"),
        _ => format!("XINFO GROUPS {key}"),
    };
    pair.ask(0, &there);
    pair.ask(0, &command);
    pair.ask(0, &format!("XPENDING {key} {group}"));
    pair.ask_in(0, &format!("XPENDING {key} {group} IDLE 0 {id} + 3 {other}"), Order::Pending);
    pair.ask_in(0, &format!("XPENDING {key} {group} - ({id} 3"), Order::Pending);
    let idle = format!("XPENDING {key} {group} IDLE 100000000 - + 9");
    pair.ask_in(0, &idle, Order::Pending);
}

/// Every stream as both see it at the end.
fn take_stock(pair: &mut Pair) {
    pair.ask(0, "DBSIZE");
    for key in KEYS {
        pair.ask(0, &format!("TYPE {key}"));
        pair.ask(0, &format!("XRANGE {key} - +"));
        pair.ask(0, &format!("XINFO GROUPS {key}"));
        pair.ask_in(0, &format!("XINFO STREAM {key}"), Order::Described);
        for group in GROUPS {
            pair.ask(0, &format!("XPENDING {key} \"{group}\""));
            pair.ask_in(0, &format!("XPENDING {key} \"{group}\" - + 99"), Order::Pending);
        }
    }
    pair.ask_in(0, "SCAN 0 TYPE stream COUNT 1000", Order::Scanned);
}

#[test]
fn waiting_reads_get_entries_as_in_redis() {
    const CONNECTIONS: usize = 5;
    let Some(redis) = real::start() else { return };
    for seed in 0..20 {
        let mut random = Rng::new(15_000 + seed);
        let mut pair = Pair::new(&redis, Options::default(), CONNECTIONS);
        pair.ask_apart(1, ["HELLO 3", "HELLO 3"]);
        for key in &KEYS[..3] {
            pair.ask(0, &format!("XGROUP CREATE {key} g $ MKSTREAM"));
        }
        let mut waiting = [false; CONNECTIONS];
        let mut last = 1;
        for _ in 0..100 {
            let connection = random.index(CONNECTIONS);
            if connection > 0 && !waiting[connection] {
                let command = waiting_command(&mut random, connection);
                waiting[connection] = pair.ask_waiting(connection, &command);
            } else {
                last += 1;
                pair.ask(0, &feeding_command(&mut random, last));
            }
            for (connection, waits) in waiting.iter_mut().enumerate() {
                *waits = *waits && !pair.is_answered(connection);
            }
        }
        for (round, key) in KEYS.iter().cycle().take(2 * KEYS.len() * CONNECTIONS).enumerate() {
            pair.ask(0, &format!("XADD {key} {}-1 last 1", 1_000 + round));
            for (connection, waits) in waiting.iter_mut().enumerate() {
                *waits = *waits && !pair.is_answered(connection);
            }
        }
        assert!(waiting.iter().all(|waits| !waits), "a client waits for good");
        take_stock(&mut pair);
    }
}

fn waiting_command(random: &mut Rng, connection: usize) -> String {
    let (key, other) = (random.pick(&KEYS[..3]), random.pick(&KEYS));
    match random.index(6) {
        0 => format!("XREAD BLOCK 0 STREAMS {key} $"),
        1 => format!("XREAD COUNT 1 BLOCK 1000000 STREAMS {key} {}", random.index(200)),
        2 if key != other => format!("XREAD BLOCK 0 STREAMS {key} {other} $ $"),
        3 => format!("XREADGROUP GROUP g c{connection} BLOCK 0 STREAMS {key} >"),
        4 => format!("XREADGROUP GROUP g c{connection} COUNT 2 BLOCK 0 NOACK STREAMS {key} >"),
        _ => format!("XREADGROUP GROUP g c{connection} COUNT 1 BLOCK 0 STREAMS {key} >"),
    }
}

fn feeding_command(random: &mut Rng, last: u64) -> String {
    let key = random.pick(&KEYS);
    match random.index(8) {
        0..5 => format!("XADD {key} {last}-1 f {last}"),
        5 => format!("XTRIM {key} MAXLEN 2"),
        6 => format!("XDEL {key} {}-1", random.below(last)),
        _ => format!("XLEN {key}"),
    }
}

#[test]
fn streams_are_told_as_redis_7_2_tells_them() {
    let mut ours = Ours::new(Options::default());
    let id = ours.connect();
    let mut ask = |command: &str| {
        ours.send(id, format!("{command}\r\n").as_bytes());
        String::from_utf8(ours.answer(id).unwrap()).unwrap().replace("\r\n", " ")
    };
    assert_eq!(ask("XINFO STREAM s"), "-ERR no such key ");
    assert!(ask("XADD s * f v").starts_with('$'));
    assert!(ask("XADD s * f w").starts_with('$'), "a second one of the same millisecond");
    assert_eq!(ask("XLEN s"), ":2 ");
    assert_eq!(ask("OBJECT ENCODING s"), "$6 stream ");
    assert_eq!(ask("DEL s"), ":1 ");
    assert_eq!(ask("XADD s 5-1 f v"), "$3 5-1 ");
    assert_eq!(ask("XGROUP CREATE s g 0"), "+OK ");
    assert_eq!(ask("XGROUP CREATE s g 0"), "-BUSYGROUP Consumer Group name already exists ");
    assert_eq!(ask("XREADGROUP GROUP g c STREAMS s >"), "*1 *2 $1 s *1 *2 $3 5-1 *2 $1 f $1 v ");
    assert_eq!(ask("XREADGROUP GROUP g d STREAMS s >"), "*-1 ");
    let consumers = ask("XINFO CONSUMERS s g");
    let [c, d] = ["c", "d"].map(|name| format!("*8 $4 name $1 {name} $7 pending"));
    assert!(consumers.starts_with(&format!("*2 {c} :1 $4 idle :")), "{consumers}");
    assert!(consumers.contains(&format!("{d} :0 $4 idle :")), "{consumers}");
    assert!(consumers.ends_with("$8 inactive :-1 "), "{consumers}");
    let whole = ask("XINFO STREAM s FULL");
    for part in [
        "$6 length :1 ",
        "$17 last-generated-id $3 5-1 ",
        "$13 entries-added :1 ",
        "$7 entries *1 *2 $3 5-1 *2 $1 f $1 v ",
        "$6 groups *1 *14 $4 name $1 g $17 last-delivered-id $3 5-1 $12 entries-read :1 $3 lag :0 ",
        "$9 pel-count :1 $7 pending *1 *4 $3 5-1 $1 c :",
        "$9 consumers *2 *10 $4 name $1 c $9 seen-time :",
        "$11 active-time :-1 ",
    ] {
        assert!(whole.contains(part), "{part} in {whole}");
    }
    assert_eq!(ask("XGROUP DESTROY s g"), ":1 ");
    let gone = "-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option ";
    assert_eq!(ask("XREADGROUP GROUP g c STREAMS s >"), gone);
    let unbalanced = "-ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' \
                      must be specified. ";
    assert_eq!(ask("XREAD STREAMS s t 0"), unbalanced);
    assert!(ask("XREADGROUP GROUP g c STREAMS s $").starts_with("-ERR The $ ID is meaningless"));
    assert!(ask("XREAD STREAMS s >").starts_with("-ERR The > ID can be specified only"));
    assert_eq!(ask("XDEL s x"), "-ERR Invalid stream ID specified as stream command argument ");
}

#[test]
fn readers_hear_when_their_group_goes() {
    for command in ["DEL s", "XGROUP DESTROY s g", "SET s x", "RENAME s t", "EXPIRE s -1"] {
        let mut ours = Ours::new(Options::default());
        let [one, two] = [(); 2].map(|()| ours.connect());
        ours.send(one, b"XGROUP CREATE s g $ MKSTREAM\r\n");
        ours.answer(one).unwrap();
        ours.send(two, b"XREADGROUP GROUP g c BLOCK 0 STREAMS s >\r\n");
        assert_eq!(ours.answer(two), None, "it waits");
        ours.send(one, format!("{command}\r\n").as_bytes());
        ours.answer(one).unwrap();
        let heard = String::from_utf8(ours.answer(two).unwrap()).unwrap();
        let expected = if command == "SET s x" { "-WRONGTYPE " } else { "-NOGROUP " };
        assert!(heard.starts_with(expected), "{command}: {heard}");
    }
}
