//! Commands of clients of Redis, drawn by weight.

mod collections;

use std::rc::Rc;

use crate::redis_client::Words;
use crate::{RedisClient, Rng, workload};
use collections::COLLECTIONS;
pub(crate) use collections::fields;

/// Lists; an element popped from the last is held until the next command.
pub(crate) const LISTS: [&str; 4] = ["l1", "l2", "l3", "p1"];

/// Lists that anything may be done to.
const PLAIN: [&str; 3] = ["l1", "l2", "l3"];

/// Small values.
const VALUES: [&str; 2] = ["v1", "v2"];

/// Small values that are numbers, mostly: clients move amounts from one to the other.
const COUNTERS: [&str; 2] = ["n1", "n2"];

/// All keys that such clients name.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    LISTS.into_iter().chain(VALUES).chain(COUNTERS).chain(COLLECTIONS)
}

/// True if a queue is a list, and no tube.
pub(crate) fn is_list(name: &str) -> bool {
    names().any(|ours| ours == name)
}

/// The next command of such a client.
pub(crate) fn wish(client: &RedisClient, rng: &mut Rng) -> Words {
    match client.collected() {
        Some(count) if count >= BATCH_COMMANDS_MAX || rng.chance(1, 4) => {
            let end = if rng.chance(1, 8) { "DISCARD" } else { "EXEC" };
            crate::words(&[end])
        }
        Some(_) => command(rng, ELEMENT_BYTES_MAX / BATCH_COMMANDS_MAX),
        None if rng.chance(1, 12) => crate::words(&["MULTI"]),
        None if rng.chance(1, 24) => {
            let other: &[&str] = if rng.coin() { &COLLECTIONS } else { &VALUES };
            let names = [name(rng, &LISTS), name(rng, other)];
            let [watch, unwatch] = ["WATCH", "UNWATCH"].map(|word| crate::words(&[word]));
            if rng.chance(1, 5) { unwatch } else { with(watch, &names) }
        }
        None => again(client, rng).unwrap_or_else(|| command(rng, ELEMENT_BYTES_MAX)),
    }
}

/// At times the same as it has just asked for, of another element or value; less often where lists
/// become longer by it.
fn again(client: &RedisClient, rng: &mut Rng) -> Option<Words> {
    let words = client.asked_last()?;
    let name = words.first().map(|name| &**name)?;
    match (name, words.len()) {
        (b"LPUSH" | b"RPUSH", 3) if rng.chance(1, 5) => {
            let list = words.iter().take(2).cloned().collect();
            Some(with(list, &[element(rng, ELEMENT_BYTES_MAX / 4)]))
        }
        (b"LPOP" | b"RPOP", 2) if rng.coin() => Some(words.clone()),
        (b"GET", 2) if rng.coin() => Some(with(crate::words(&["GET"]), &[any(rng, &VALUES)])),
        _ => None,
    }
}

fn command(rng: &mut Rng, bytes_max: usize) -> Words {
    match rng.below(43) {
        36.. => collections::command(rng, bytes_max),
        32..=35 => count(rng, bytes_max),
        0..=10 => push(rng, bytes_max),
        11..=15 => pop(rng),
        16..=19 => pop_first(rng),
        20..=22 => relocate(rng),
        23 | 24 => read(rng),
        25 | 26 => edit(rng, bytes_max),
        27 | 28 => value(rng, bytes_max),
        _ => key(rng),
    }
}

fn push(rng: &mut Rng, bytes_max: usize) -> Words {
    let command = rng.pick(&["LPUSH", "LPUSH", "RPUSH", "RPUSH", "LPUSHX", "RPUSHX"]);
    let mut words = with(crate::words(&[command]), &[name(rng, &LISTS)]);
    let count = rng.pick(&[1, 1, 1, 2, 5]);
    for _ in 0..count {
        words.push(element(rng, bytes_max / count));
    }
    words
}

fn pop(rng: &mut Rng) -> Words {
    let command = rng.pick(&["LPOP", "RPOP"]);
    let mut words = with(crate::words(&[command]), &[name(rng, &LISTS)]);
    words.extend(rng.coin().then(|| digits(rng.pick(&[0, 1, 2, 3, 100]))));
    words
}

fn pop_first(rng: &mut Rng) -> Words {
    let command = rng.pick(&["BLPOP", "BRPOP"]);
    let mut words = crate::words(&[command]);
    for _ in 0..rng.between(1, 3) {
        words.push(name(rng, &LISTS));
    }
    with(words, &[patience(rng)])
}

fn relocate(rng: &mut Rng) -> Words {
    let blocks = rng.coin();
    let words = crate::words(&[if blocks { "BLMOVE" } else { "LMOVE" }]);
    let lists = [name(rng, &LISTS), name(rng, &LISTS)];
    let sides = [rng.pick(&SIDES), rng.pick(&SIDES)].map(|side| Rc::from(side.as_bytes()));
    let mut words = with(with(words, &lists), &sides);
    words.extend(blocks.then(|| patience(rng)));
    words
}

fn read(rng: &mut Rng) -> Words {
    let command = rng.pick(&["LLEN", "LRANGE", "LINDEX", "LPOS"]);
    let words = with(crate::words(&[command]), &[name(rng, &LISTS)]);
    match command {
        "LRANGE" => with(words, &[place(rng), place(rng)]),
        "LINDEX" => with(words, &[place(rng)]),
        "LPOS" => with(with(words, &[letter(rng)]), &crate::words(&["COUNT", "0"])),
        _ => words,
    }
}

fn edit(rng: &mut Rng, bytes_max: usize) -> Words {
    let command = rng.pick(&["LSET", "LINSERT", "LREM", "LTRIM"]);
    let words = with(crate::words(&[command]), &[name(rng, &PLAIN)]);
    match command {
        "LSET" => with(words, &[place(rng), element(rng, bytes_max)]),
        "LINSERT" => {
            let side = rng.pick(&["BEFORE", "AFTER"]);
            // Its neighbours that move are to fit into the same frame.
            with(words, &[side.as_bytes().into(), letter(rng), element(rng, bytes_max / 4)])
        }
        "LREM" => with(words, &[digits(rng.pick(&[-2, -1, 0, 1, 2])), letter(rng)]),
        _ => with(words, &[place(rng), place(rng)]),
    }
}

fn value(rng: &mut Rng, bytes_max: usize) -> Words {
    let key = any(rng, &VALUES);
    if rng.coin() {
        return with(crate::words(&[rng.pick(&["GET", "GET", "GETDEL"])]), &[key]);
    }
    let words = with(crate::words(&["SET"]), &[key, element(rng, bytes_max)]);
    let options: &[&str] = match rng.below(6) {
        0 => &["NX"],
        1 => &["XX", "GET"],
        2 => &["PX", "700"],
        3 => &["KEEPTTL"],
        _ => &[],
    };
    with(words, &crate::words(options))
}

/// Commands that change values by what they were, and several at once.
fn count(rng: &mut Rng, bytes_max: usize) -> Words {
    let counter = any(rng, &COUNTERS);
    match rng.below(12) {
        0..=4 => {
            let more = rng.pick(&[1, -1, 7, -7, 1000, i64::MAX]);
            with(crate::words(&["INCRBY"]), &[counter, digits(more)])
        }
        5 => with(crate::words(&["APPEND"]), &[counter, digits(rng.pick(&[0, 7]))]),
        6 => {
            let options: &[&str] = match rng.below(3) {
                0 => &["PX", "700"],
                1 => &["PERSIST"],
                _ => &[],
            };
            with(with(crate::words(&["GETEX"]), &[counter]), &crate::words(options))
        }
        7 => {
            let (place, bit) = (rng.pick(&[0, 7, 9, 70]), rng.pick(&[0, 1]));
            let key = any(rng, &VALUES);
            with(crate::words(&["SETBIT"]), &[key, digits(place), digits(bit)])
        }
        8 | 9 => {
            let command = rng.pick(&["MSET", "MSET", "MSETNX"]);
            let pair = |rng: &mut Rng| [any(rng, &VALUES), element(rng, bytes_max / 4)];
            let (one, other) = (pair(rng), pair(rng));
            let number = [counter, digits(rng.pick(&[5, 500]))];
            with(with(with(crate::words(&[command]), &one), &number), &other)
        }
        _ => {
            let keys = [counter, any(rng, &COUNTERS), any(rng, &VALUES)];
            with(crate::words(&["MGET"]), &keys)
        }
    }
}

/// Commands on keys of any kind.
fn key(rng: &mut Rng) -> Words {
    let command = rng.pick(&[
        "DEL", "EXISTS", "TYPE", "RENAME", "PEXPIRE", "PEXPIRE", "PERSIST", "PTTL", "DBSIZE",
    ]);
    let words = crate::words(&[command]);
    let (one, other) = (any_key(rng), any_key(rng));
    match command {
        "DEL" | "EXISTS" | "RENAME" => with(words, &[one, other]),
        "PEXPIRE" => with(words, &[one, digits(rng.pick(&[0, 5, 300, 2000, 100_000]))]),
        "DBSIZE" => words,
        "PERSIST" | "PTTL" => with(words, &[if rng.coin() { one } else { name(rng, &COUNTERS) }]),
        _ => with(words, &[one]),
    }
}

/// The same where it says when a key goes, by the machine's clock, which shows so many
/// milliseconds.
pub(crate) fn by_clock(mut words: Words, wall: u64) -> Words {
    let found = words.iter().position(|word| matches!(&**word, b"PEXPIRE" | b"PX" | b"PTTL"));
    let Some(at) = found else { return words };
    let span = if at == 0 { 2 } else { at + 1 };
    let name: &[u8] = match words.get(at).map(|word| &**word) {
        Some(b"PEXPIRE") => b"PEXPIREAT",
        Some(b"PX") => b"PXAT",
        _ => b"PEXPIRETIME",
    };
    if let Some(word) = words.get_mut(at) {
        *word = name.into();
    }
    if let Some(word) = words.get_mut(span) {
        let millis = std::str::from_utf8(word).ok().and_then(|text| text.parse::<u64>().ok());
        let moment = millis.unwrap_or(0).saturating_add(wall);
        *word = digits(i64::try_from(moment).unwrap_or(i64::MAX));
    }
    words
}

fn with(mut words: Words, more: &[Rc<[u8]>]) -> Words {
    words.extend_from_slice(more);
    words
}

fn name(rng: &mut Rng, names: &[&str]) -> Rc<[u8]> {
    rng.pick(names).as_bytes().into()
}

/// Mostly one of these, at times one that may be of the other kind.
fn any(rng: &mut Rng, names: &[&str]) -> Rc<[u8]> {
    let other: &[&str] = match rng.below(5) {
        0 | 1 => &VALUES,
        2 | 3 => &PLAIN,
        _ => &COLLECTIONS,
    };
    if rng.chance(1, 10) { name(rng, other) } else { name(rng, names) }
}

/// A list or a value, or one key in three a collection.
fn any_key(rng: &mut Rng) -> Rc<[u8]> {
    if rng.chance(1, 3) { any(rng, &COLLECTIONS) } else { any(rng, &PLAIN) }
}

/// One of a few letters, that may be found again, or something that no other is like.
fn element(rng: &mut Rng, bytes_max: usize) -> Rc<[u8]> {
    if rng.chance(2, 3) {
        return letter(rng);
    }
    let mut body = workload::body(rng);
    body.truncate(bytes_max);
    body.into()
}

fn letter(rng: &mut Rng) -> Rc<[u8]> {
    rng.pick(&["a", "b", "c"]).as_bytes().into()
}

fn place(rng: &mut Rng) -> Rc<[u8]> {
    digits(rng.pick(&[0, 0, 1, 2, 5, -1, -1, -2, -6]))
}

fn patience(rng: &mut Rng) -> Rc<[u8]> {
    rng.pick(&["0", "0.01", "0.5", "2"]).as_bytes().into()
}

fn digits(number: i64) -> Rc<[u8]> {
    number.to_string().into_bytes().into()
}

const SIDES: [&str; 2] = ["LEFT", "RIGHT"];

/// Commands of a batch, which is to fit into one frame.
const BATCH_COMMANDS_MAX: usize = 5;

/// The bytes of elements that one frame takes in such a journal.
const ELEMENT_BYTES_MAX: usize = workload::BODY_BYTES_MAX - 1000;
