//! Commands on hashes, sets and sorted sets.
//!
//! Fields and members are of one small set, so that commands meet each other. All of a set is
//! picked, for the oracle knows nothing of chance.

use std::rc::Rc;

use super::{any, digits, element, name, patience, with};
use crate::redis_client::Words;
use crate::{Rng, words};

const HASHES: [&str; 2] = ["h1", "h2"];

const SETS: [&str; 2] = ["s1", "s2"];

const SORTED_SETS: [&str; 2] = ["z1", "z2"];

/// All names that mostly stand for collections.
pub(super) const COLLECTIONS: [&str; 8] = ["h1", "h2", "s1", "s2", "z1", "z2", "x1", "x2"];

const STREAMS: [&str; 2] = ["x1", "x2"];

/// All fields and members that there are: the last few are long.
pub(crate) fn fields() -> impl Iterator<Item = Rc<[u8]>> {
    (0..FIELDS).map(field_of)
}

/// One command on one of them.
pub(super) fn command(rng: &mut Rng, bytes_max: usize) -> Words {
    match rng.below(20) {
        14..=19 => stream(rng),
        0..=2 => change_hash(rng, bytes_max),
        3 => read_hash(rng),
        4 | 5 => change_set(rng),
        6 => read_set(rng),
        7..=9 => change_scores(rng),
        10 => take_scored(rng),
        11 => store_scored(rng),
        _ => read_scores(rng),
    }
}

/// Fields that count go up and down between hashes, as values that are numbers do.
fn change_hash(rng: &mut Rng, bytes_max: usize) -> Words {
    let command = rng.pick(&["HSET", "HSET", "HSET", "HSETNX", "HDEL", "HINCRBY", "HINCRBY"]);
    let mut words = with(words(&[command]), &[any(rng, &HASHES)]);
    match command {
        "HINCRBY" => with(words, &[counted(rng), digits(rng.pick(&[1, -1, 7, -7, i64::MAX]))]),
        "HSETNX" => with(words, &[field(rng), element(rng, bytes_max / 3)]),
        "HDEL" => with(words, &some(rng)),
        _ => {
            for _ in 0..rng.between(1, 3) {
                words.push(field(rng));
                words.push(element(rng, bytes_max / 4));
            }
            words
        }
    }
}

fn read_hash(rng: &mut Rng) -> Words {
    let command = rng.pick(&["HGET", "HMGET", "HGETALL", "HGETALL", "HLEN"]);
    let words = with(words(&[command]), &[any(rng, &HASHES)]);
    match command {
        "HGET" => with(words, &[counted(rng)]),
        "HMGET" => with(words, &[field(rng), counted(rng)]),
        _ => words,
    }
}

fn change_set(rng: &mut Rng) -> Words {
    let command = rng.pick(&["SADD", "SADD", "SADD", "SREM", "SMOVE", "SMOVE", "SPOP"]);
    let words = with(words(&[command]), &[any(rng, &SETS)]);
    match command {
        "SPOP" => with(words, &[digits(ALL)]),
        "SMOVE" => with(words, &[any(rng, &SETS), field(rng)]),
        _ => with(words, &some(rng)),
    }
}

fn read_set(rng: &mut Rng) -> Words {
    let command = rng.pick(&["SISMEMBER", "SCARD", "SMEMBERS", "SRANDMEMBER"]);
    let words = with(words(&[command]), &[any(rng, &SETS)]);
    match command {
        "SISMEMBER" => with(words, &[field(rng)]),
        "SRANDMEMBER" => with(words, &[digits(ALL)]),
        _ => words,
    }
}

fn change_scores(rng: &mut Rng) -> Words {
    let sorted_set = any(rng, &SORTED_SETS);
    if rng.chance(1, 4) {
        let more = score(rng);
        return with(words(&["ZINCRBY"]), &[sorted_set, more, field(rng)]);
    }
    let (options, most): (&[&str], _) = match rng.below(8) {
        0 => (&["NX"], 3),
        1 => (&["XX", "CH"], 3),
        2 => (&["INCR"], 1),
        3 => (&["XX", "INCR"], 1),
        4 => (&["CH"], 3),
        _ => (&[], 3),
    };
    let mut words = with(with(words(&["ZADD"]), &[sorted_set]), &words(options));
    for _ in 0..rng.between(1, most) {
        words.push(score(rng));
        words.push(field(rng));
    }
    words
}

fn take_scored(rng: &mut Rng) -> Words {
    let command = rng.pick(&["ZREM", "ZREMRANGEBYSCORE", "ZPOPMIN", "BZPOPMIN", "BZPOPMIN"]);
    let words = with(words(&[command]), &[any(rng, &SORTED_SETS)]);
    match command {
        "ZREM" => with(words, &some(rng)),
        "ZPOPMIN" => with(words, &[digits(rng.pick(&[1, 2, ALL]))]),
        "BZPOPMIN" if rng.coin() => with(words, &[name(rng, &SORTED_SETS), patience(rng)]),
        "BZPOPMIN" => with(words, &[patience(rng)]),
        _ => with(words, &range(rng)),
    }
}

fn store_scored(rng: &mut Rng) -> Words {
    let [to, from] = [(); 2].map(|()| any(rng, &SORTED_SETS));
    if rng.coin() {
        let last = digits(rng.pick(&[0, 3, -1, -2]));
        return with(words(&["ZRANGESTORE"]), &[to, from, digits(0), last]);
    }
    let also: &[&str] = if rng.chance(1, 4) { &SETS } else { &SORTED_SETS };
    let also = any(rng, also);
    with(words(&["ZUNIONSTORE"]), &[to, digits(2), from, also])
}

fn read_scores(rng: &mut Rng) -> Words {
    let command = rng.pick(&["ZSCORE", "ZCARD", "ZRANGE", "ZRANGEBYSCORE"]);
    let words = with(words(&[command]), &[any(rng, &SORTED_SETS)]);
    let with_scores = b"WITHSCORES"[..].into();
    match command {
        "ZSCORE" => with(words, &[field(rng)]),
        "ZRANGE" => with(words, &[digits(0), digits(-1), with_scores]),
        "ZRANGEBYSCORE" => with(with(words, &range(rng)), &[with_scores]),
        _ => words,
    }
}

/// Entries have small numbers, so that they meet each other; a group has two consumers.
fn stream(rng: &mut Rng) -> Words {
    let key = any(rng, &STREAMS);
    let group: Rc<[u8]> = b"g"[..].into();
    let consumer = name(rng, &["c", "d"]);
    let all = |list: &[&str]| words(list);
    let id = |rng: &mut Rng| -> Rc<[u8]> {
        format!("{}-{}", rng.below(MILLIS), rng.below(2)).into_bytes().into()
    };
    match rng.below(14) {
        0..=4 => {
            let millis: Rc<[u8]> = format!("{}-*", rng.below(MILLIS)).into_bytes().into();
            let mut words = with(all(&["XADD"]), &[key]);
            if rng.chance(1, 4) {
                words = with(words, &all(&["MAXLEN", "5"]));
            }
            with(words, &[millis, b"f"[..].into(), digits(rng.pick(&[1, 20, 300]))])
        }
        5 => with(with(all(&["XTRIM"]), &[key]), &all(&["MAXLEN", rng.pick(&["0", "2", "4"])])),
        6 | 7 if rng.chance(1, 6) => with(all(&["XGROUP", "DESTROY"]), &[key, group]),
        6 | 7 => with(with(all(&["XGROUP", "CREATE"]), &[key, group]), &all(&["0", "MKSTREAM"])),
        8..=10 => {
            let place = rng.pick(&[">", ">", ">", "0"]);
            let words = with(all(&["XREADGROUP", "GROUP"]), &[group, consumer]);
            let words = with(words, &all(&["COUNT", rng.pick(&["1", "3"]), "STREAMS"]));
            with(with(words, &[key]), &all(&[place]))
        }
        11 => {
            let ids = [id(rng), id(rng), id(rng)];
            with(with(all(&["XACK"]), &[key, group]), &ids)
        }
        12 => match rng.below(3) {
            0 => with(all(&["XLEN"]), &[key]),
            1 => with(all(&["XPENDING"]), &[key, group]),
            _ => with(with(all(&["XRANGE"]), &[key]), &all(&["-", "+"])),
        },
        _ => {
            let words = with(all(&["XAUTOCLAIM"]), &[key, group, consumer]);
            with(words, &all(&["0", "0", "COUNT", "1", "JUSTID"]))
        }
    }
}

/// The milliseconds of ids are below that.
const MILLIS: u64 = 30;

/// One to three fields or members.
fn some(rng: &mut Rng) -> Vec<Rc<[u8]>> {
    (0..rng.between(1, 3)).map(|_| field(rng)).collect()
}

fn field(rng: &mut Rng) -> Rc<[u8]> {
    field_of(rng.below(FIELDS))
}

/// One of the fields that are numbers, mostly.
fn counted(rng: &mut Rng) -> Rc<[u8]> {
    field_of(rng.below(2))
}

fn field_of(number: u64) -> Rc<[u8]> {
    let short = format!("m{number}");
    let padding = if number + LONG_FIELDS < FIELDS { 0 } else { LONG_FIELD_BYTES };
    (short + &"-".repeat(padding)).into_bytes().into()
}

fn score(rng: &mut Rng) -> Rc<[u8]> {
    let scores = ["0", "1", "1", "2", "-3", "1.5", "40", "inf", "-inf"];
    rng.pick(&scores).as_bytes().into()
}

fn range(rng: &mut Rng) -> [Rc<[u8]>; 2] {
    let low = rng.pick(&["-inf", "0", "(0", "1"]);
    let high = rng.pick(&["inf", "2", "(1.5", "(40"]);
    [low, high].map(|bound| bound.as_bytes().into())
}

/// No collection has more.
const ALL: i64 = 100;

const FIELDS: u64 = 16;

const LONG_FIELDS: u64 = 3;

const LONG_FIELD_BYTES: usize = 150;
