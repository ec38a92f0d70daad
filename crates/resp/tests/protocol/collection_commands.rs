//! Random commands on hashes, sets and sorted sets, and commands that are wrong in one place.

use testkit::Rng;

use crate::collections::KEYS;
use crate::comparison::Order;

/// Fields and members. Redis keeps those that are no integers in another form.
pub(crate) const FIELDS: [&str; 8] =
    ["x", "y", "z", "1", "-7", "\"\"", "\"\\xff\\x00\"", "\"a b\\r\\n\""];

const VALUES: [&str; 10] =
    ["1", "-1", "10", "1.5", "0.1", "x", "\"\"", "\"\\xff\"", "9223372036854775807", "\" 1\""];

/// Redis 7.0 writes them with as few digits as we do.
pub(crate) const SCORES: [&str; 14] =
    ["0", "1", "1", "2", "-1", "1.5", "-2.25", "3e2", "100", "inf", "-inf", "+Inf", "0x10", ".5"];

const BOUNDS: [&str; 14] =
    ["-inf", "+inf", "0", "1", "(1", "2", "(2", "-1", "(-1", "1.5", "(1.5", "100", "(100", "(inf"];

const MEMBER_BOUNDS: [&str; 9] = ["-", "+", "[x", "(x", "[y", "(z", "[", "(", "[1"];

const PLACES: [&str; 9] = ["0", "1", "2", "-1", "-2", "-3", "5", "-100", "9223372036854775807"];

pub(crate) fn hash_command(random: &mut Rng) -> String {
    let key = random.pick(&KEYS);
    let (field, other) = (random.pick(&FIELDS), random.pick(&FIELDS));
    let (value, more) = (random.pick(&VALUES), random.pick(&VALUES));
    match random.index(20) {
        0..4 => format!("HSET {key} {field} {value}"),
        4 => format!("HSET {key} {field} {value} {other} {more} {field} {more}"),
        5 => format!("HMSET {key} {field} {value} {other} {more}"),
        6 => format!("HSETNX {key} {field} {value}"),
        7 => format!("HGET {key} {field}"),
        8 => format!("HMGET {key} {field} {other} {field}"),
        9 => format!("HMGET {key} {field}"),
        10 => format!("HLEN {key}"),
        11 => format!("HEXISTS {key} {field}"),
        12 => format!("HSTRLEN {key} {field}"),
        13 => format!("HDEL {key} {field}"),
        14 => format!("HDEL {key} {field} {other} {field}"),
        15 | 16 => format!("HINCRBY {key} {field} {}", random.pick(&["1", "-3", "0", "x", "1.5"])),
        17 | 18 => {
            let by = ["0.1", "-1.5", "3", "1e-17", "5.0e3", "x", "nan", "inf", "0x1p4", "1e300"];
            format!("HINCRBYFLOAT {key} {field} {}", random.pick(&by))
        }
        _ => format!("HINCRBY {key} {field} 9223372036854775807"),
    }
}

pub(crate) fn hash_unordered(random: &mut Rng) -> (Order, String) {
    let key = random.pick(&KEYS);
    match random.index(8) {
        0 | 1 => (Order::Pairs, format!("HGETALL {key}")),
        2 => (Order::Sorted, format!("HKEYS {key}")),
        3 => (Order::Sorted, format!("HVALS {key}")),
        4 => (Order::ScannedPairs, format!("HSCAN {key} 0 COUNT 1000")),
        5 => (Order::ScannedPairs, format!("HSCAN {key} 0 MATCH [xy]* COUNT 1000")),
        6 => (Order::Sorted, format!("HRANDFIELD {key} 1000")),
        _ => (Order::Pairs, format!("HRANDFIELD {key} 1000 WITHVALUES")),
    }
}

/// Each is wrong in one place, whatever its key holds, or picks nothing.
pub(crate) const HASH_MISTAKES: [&str; 20] = [
    "HSET a x",
    "HSET a x 1 y",
    "HMSET a x 1 y",
    "HMSET a x",
    "HGET a",
    "HMGET a",
    "HDEL a",
    "HINCRBY a x 9223372036854775808",
    "HINCRBY a x 1 2",
    "HINCRBYFLOAT a x \"\"",
    "HINCRBYFLOAT a x \" 1\"",
    "HINCRBYFLOAT a x -inf",
    "HSCAN a x",
    "HSCAN a 1x",
    "HRANDFIELD a x",
    "HRANDFIELD a 1 WITH",
    "HRANDFIELD a 1 WITHVALUES x",
    "HRANDFIELD a -9223372036854775808",
    "HRANDFIELD a 9223372036854775807 WITHVALUES",
    "HRANDFIELD none 3 WITHVALUES",
];

pub(crate) fn set_command(random: &mut Rng) -> String {
    let (key, other, third) = (random.pick(&KEYS), random.pick(&KEYS), random.pick(&KEYS));
    let (member, more) = (random.pick(&FIELDS), random.pick(&FIELDS));
    let how = random.pick(&["SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE"]);
    match random.index(20) {
        0..4 => format!("SADD {key} {member}"),
        4..7 => format!("SADD {key} {member} {more} {member} z"),
        7 => format!("SREM {key} {member}"),
        8 => format!("SREM {key} {member} {more} {member}"),
        9 => format!("SISMEMBER {key} {member}"),
        10 => format!("SMISMEMBER {key} {member} {more} none"),
        11 => format!("SCARD {key}"),
        12 | 13 => format!("SMOVE {key} {other} {member}"),
        14 | 15 => format!("{how} {key} {other} {third}"),
        16 => format!("{how} {key} {other}"),
        17 => format!("SINTERCARD 2 {key} {other}"),
        18 => format!("SINTERCARD 1 {key} LIMIT {}", random.index(4)),
        _ => format!("SPOP {key} 0"),
    }
}

pub(crate) fn set_unordered(random: &mut Rng) -> (Order, String) {
    let (key, other, third) = (random.pick(&KEYS), random.pick(&KEYS), random.pick(&KEYS));
    let how = random.pick(&["SINTER", "SUNION", "SDIFF"]);
    match random.index(10) {
        0 | 1 => (Order::Sorted, format!("SMEMBERS {key}")),
        2 | 3 => (Order::Sorted, format!("{how} {key} {other}")),
        4 => (Order::Sorted, format!("{how} {key} {other} {third}")),
        5 => (Order::Sorted, format!("{how} {key}")),
        6 => (Order::Scanned, format!("SSCAN {key} 0 COUNT 1000")),
        7 => (Order::Scanned, format!("SSCAN {key} 0 COUNT 1000 MATCH *x*")),
        8 => (Order::Sorted, format!("SRANDMEMBER {key} 1000")),
        _ => (Order::Sorted, format!("SPOP {key} 1000")),
    }
}

pub(crate) const SET_MISTAKES: [&str; 20] = [
    "SADD a",
    "SREM a",
    "SISMEMBER a",
    "SMISMEMBER a",
    "SMOVE a b",
    "SPOP a -1",
    "SPOP a x",
    "SPOP a 1 2",
    "SRANDMEMBER a x",
    "SRANDMEMBER a 1 2",
    "SRANDMEMBER a -9223372036854775808",
    "SRANDMEMBER none",
    "SRANDMEMBER none 3",
    "SPOP none",
    "SINTERCARD 0 a",
    "SINTERCARD x a",
    "SINTERCARD 3 a b",
    "SINTERCARD 1 a LIMIT -1",
    "SINTERCARD 1 a LIMIT",
    "SINTERCARD 1 a b",
];

pub(crate) fn sorted_set_command(random: &mut Rng) -> String {
    match random.index(10) {
        0..4 => score_command(random),
        4..7 => range_command(random),
        7 => member_range_command(random),
        8 => pop_command(random),
        _ => combination_command(random),
    }
}

fn score_command(random: &mut Rng) -> String {
    let key = random.pick(&KEYS);
    let (member, more) = (random.pick(&FIELDS), random.pick(&FIELDS));
    let (score, other) = (random.pick(&SCORES), random.pick(&SCORES));
    let rules = ["NX", "XX", "GT", "LT", "CH", "XX CH", "GT CH", "XX LT", "NX INCR", "gt incr"];
    let rule = random.pick(&rules);
    match random.index(16) {
        0..3 => format!("ZADD {key} {score} {member} {other} {more} 1 z"),
        3 | 4 => format!("ZADD {key} {score} {member}"),
        5 | 6 => format!("ZADD {key} {rule} {score} {member}"),
        7 => format!("ZADD {key} INCR {score} {member}"),
        8 | 9 => format!("ZINCRBY {key} {score} {member}"),
        10 => format!("ZREM {key} {member} {more}"),
        11 => format!("ZSCORE {key} {member}"),
        12 => format!("ZMSCORE {key} {member} {more} none"),
        13 => format!("ZCARD {key}"),
        14 => format!("ZRANK {key} {member}"),
        _ => format!("ZREVRANK {key} {member}"),
    }
}

fn range_command(random: &mut Rng) -> String {
    let (key, other) = (random.pick(&KEYS), random.pick(&KEYS));
    let (low, high) = (random.pick(&BOUNDS), random.pick(&BOUNDS));
    let (first, last) = (random.pick(&PLACES), random.pick(&PLACES));
    let scores = random.pick(&["", "WITHSCORES"]);
    let limit = random.pick(&["", "LIMIT 0 2", "LIMIT 1 -1", "LIMIT -1 2", "LIMIT 1 0"]);
    let reverse = random.pick(&["", "REV"]);
    match random.index(14) {
        0 | 1 => format!("ZRANGE {key} {first} {last} {reverse} {scores}"),
        2 => format!("ZREVRANGE {key} {first} {last} {scores}"),
        3 | 4 => format!("ZRANGE {key} {low} {high} BYSCORE {reverse} {limit} {scores}"),
        5 => format!("ZRANGEBYSCORE {key} {low} {high} {scores} {limit}"),
        6 => format!("ZREVRANGEBYSCORE {key} {low} {high} {limit} {scores}"),
        7 | 8 => format!("ZCOUNT {key} {low} {high}"),
        9 => format!("ZREMRANGEBYRANK {key} {first} {last}"),
        10 => format!("ZREMRANGEBYSCORE {key} {low} {high}"),
        11 => format!("ZRANGESTORE {key} {other} {first} {last} {reverse}"),
        12 => format!("ZRANGESTORE {key} {other} {low} {high} BYSCORE {reverse} {limit}"),
        _ => format!("ZRANGE {key} 0 -1 WITHSCORES"),
    }
}

/// On a sorted set whose members all have the same score: Redis promises nothing of others.
fn member_range_command(random: &mut Rng) -> String {
    let (low, high) = (random.pick(&MEMBER_BOUNDS), random.pick(&MEMBER_BOUNDS));
    let limit = random.pick(&["", "LIMIT 0 2", "LIMIT 1 -1", "LIMIT -1 2"]);
    let (member, other) = (random.pick(&FIELDS), random.pick(&FIELDS));
    match random.index(10) {
        0..3 => format!("ZADD same 0 {member} 0 {other} 0 xy"),
        3 => format!("ZRANGE same {low} {high} BYLEX {limit}"),
        4 => format!("ZRANGE same {low} {high} BYLEX REV {limit}"),
        5 => format!("ZRANGEBYLEX same {low} {high} {limit}"),
        6 => format!("ZREVRANGEBYLEX same {low} {high} {limit}"),
        7 => format!("ZLEXCOUNT same {low} {high}"),
        8 => format!("ZREMRANGEBYLEX same {low} {high}"),
        _ => format!("ZRANGESTORE {} same {low} {high} BYLEX {limit}", random.pick(&KEYS)),
    }
}

fn pop_command(random: &mut Rng) -> String {
    let (key, other) = (random.pick(&KEYS), random.pick(&KEYS));
    let end = random.pick(&["MIN", "MAX"]);
    match random.index(5) {
        0 => format!("ZPOP{end} {key}"),
        1 => format!("ZPOP{end} {key} {}", random.index(4)),
        2 => format!("ZMPOP 1 {key} {end}"),
        3 => format!("ZMPOP 2 {key} {other} {end} COUNT 2"),
        _ => format!("ZMPOP 1 {key} {end} COUNT {}", 1 + random.index(3)),
    }
}

fn combination_command(random: &mut Rng) -> String {
    let (key, other, target) = (random.pick(&KEYS), random.pick(&KEYS), random.pick(&KEYS));
    let how = random.pick(&["ZUNION", "ZINTER"]);
    let sum = random.pick(&["", "AGGREGATE SUM", "AGGREGATE MIN", "aggregate max"]);
    let weights = random.pick(&["", "WEIGHTS 1 2", "WEIGHTS 2 3"]);
    let scores = random.pick(&["", "WITHSCORES"]);
    match random.index(8) {
        0 | 1 => format!("{how} 2 {key} {other} {weights} {sum} {scores}"),
        2 => format!("{how} 1 {key} {scores}"),
        3 => format!("{how}STORE {target} 2 {key} {other} {weights} {sum}"),
        4 => format!("ZDIFF 2 {key} {other} {scores}"),
        5 => format!("ZDIFFSTORE {target} 2 {key} {other}"),
        6 => format!("ZINTERCARD 2 {key} {other} LIMIT {}", random.index(4)),
        _ => format!("ZINTERCARD 1 {key}"),
    }
}

pub(crate) fn sorted_set_unordered(random: &mut Rng) -> (Order, String) {
    let key = random.pick(&KEYS);
    match random.index(4) {
        0 => (Order::ScannedPairs, format!("ZSCAN {key} 0 COUNT 1000")),
        1 => (Order::ScannedPairs, format!("ZSCAN {key} 0 MATCH ?* COUNT 1000")),
        2 => (Order::Sorted, format!("ZRANDMEMBER {key} 1000")),
        _ => (Order::Pairs, format!("ZRANDMEMBER {key} 1000 WITHSCORES")),
    }
}

pub(crate) const SORTED_SET_MISTAKES: [&str; 50] = [
    "ZADD a 1",
    "ZADD a NX 1",
    "ZADD a 1 x 2",
    "ZADD a NX XX 1 x",
    "ZADD a NX GT 1 x",
    "ZADD a GT LT 1 x",
    "ZADD a INCR 1 x 2 y",
    "ZADD a nan x",
    "ZADD a \"\" x",
    "ZADD a \" 1\" x",
    "ZADD a 1e999 x",
    "ZINCRBY a x x",
    "ZINCRBY a NX x",
    "ZCOUNT a x 1",
    "ZCOUNT a nan 1",
    "ZCOUNT a [1 2",
    "ZLEXCOUNT a x [y",
    "ZRANGE a x 1",
    "ZRANGE a 0 1 LIMIT 0 1",
    "ZRANGE a 0 1 BYSCORE LIMIT 0",
    "ZRANGE a 0 1 BYSCORE LIMIT x 1",
    "ZRANGE a 0 x BYSCORE",
    "ZRANGE a [a b BYLEX",
    "ZRANGE a [a [b BYLEX WITHSCORES",
    "ZRANGE a 0 1 BYLEX BYSCORE",
    "ZRANGE a 0 1 REV REV",
    "ZREVRANGE a 0 1 REV",
    "ZREVRANGE a 0 1 LIMIT 0 1",
    "ZRANGEBYLEX a [a [b WITHSCORES",
    "ZRANGESTORE a b 0 1 WITHSCORES",
    "ZREMRANGEBYRANK a 0 x",
    "ZREMRANGEBYSCORE a x 0",
    "ZREMRANGEBYLEX a x y",
    "ZPOPMIN a 1 2",
    "ZPOPMAX a -1",
    "BZPOPMIN a x",
    "BZPOPMAX a -1",
    "ZMPOP 0 a MIN",
    "ZMPOP 1 a UP",
    "ZMPOP 2 a MIN",
    "ZMPOP 1 a MIN COUNT 0",
    "BZMPOP x 1 a MIN",
    "BZMPOP x 1 a UP",
    "ZUNION 0 none",
    "ZUNION x none",
    "ZINTER 1 none WEIGHTS x",
    "ZINTERSTORE none 1 none AGGREGATE NO",
    "ZDIFF 1 none WEIGHTS 1",
    "ZINTERCARD 1 none LIMIT -1",
    "ZRANDMEMBER a 1 WITH",
];
