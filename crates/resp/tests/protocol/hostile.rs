//! A peer's input, by mistake or malice, must neither stop the session nor throw it out of step nor
//! cost memory. It must mean the same however the network cuts it into pieces.
//!
//! The fuzz targets in `fuzz/` share [`bytes`], [`alone`] and [`commands`].

use client::resp::command;
use model::{Command, LoginOffer, Nanos, Refusal, Reply};
use resp::Options;
use testkit::Rng;

use crate::connection::Connection;
use crate::facts;
use crate::ours::Ours;

/// Any bytes, whole and in pieces: the same is heard.
pub(crate) fn bytes(input: &[u8]) {
    let size = piece_bytes(input);
    assert_eq!(replay(input, size), replay(input, usize::MAX), "in pieces of {size}");
}

/// Any bytes to a session without an engine, each command refused: the same commands and answers in
/// pieces.
pub(crate) fn alone(input: &[u8]) {
    let size = piece_bytes(input);
    assert_eq!(asked(input, size), asked(input, usize::MAX), "in pieces of {size}");
}

/// How large the pieces are is told by how many bytes there are, so that an input costs two
/// connections, and not one a size.
fn piece_bytes(input: &[u8]) -> usize {
    [1, 3, 64][input.len() % 3]
}

fn asked(input: &[u8], size: usize) -> (Vec<Command>, Vec<u8>) {
    let mut shared = facts::shared(Options { message_bytes_max: 1_000, ..Options::default() });
    let now = Nanos::from_secs(1_000_000_000);
    let mut connection = Connection::new(1, now, &mut shared);
    let mut commands = Vec::new();
    for piece in input.chunks(size) {
        connection.receive(piece);
        loop {
            match connection.poll(now, &mut shared) {
                Some(command) => {
                    if !matches!(command, Command::Credit { .. }) {
                        connection.reply(Reply::Refused(Refusal::StoreFull), &mut shared);
                    }
                    commands.push(command);
                }
                None if connection.session().has_more() => {}
                None => break,
            }
        }
    }
    let heard = connection.take_out();
    sound(&heard);
    connection.close(&mut shared);
    (commands, heard)
}

fn replay(input: &[u8], size: usize) -> Vec<u8> {
    let mut ours = Ours::new(Options { message_bytes_max: 1_000, ..Options::default() });
    let client = ours.connect();
    for piece in input.chunks(size) {
        ours.send(client, piece);
    }
    let heard = ours.output(client);
    sound(&heard);
    ours.close(client);
    heard
}

/// Any commands of three clients, as an array of words each: they get whole answers, and none that
/// reports a fault of ours. The first byte gives the client of a command and its number of words.
/// For each word, one byte says which of the known ones it is, or how many bytes follow.
pub(crate) fn commands(input: &[u8]) {
    play(Ours::new(Options::default()), input);
}

/// The same to a broker with users.
pub(crate) fn strangers(input: &[u8]) {
    let mut ours = Ours::new(Options::default());
    ours.offer(LoginOffer { password: true, ..LoginOffer::default() });
    play(ours, input);
}

fn play(mut ours: Ours, mut input: &[u8]) {
    let clients = [ours.connect(), ours.connect(), ours.connect()];
    while let Some((first, rest)) = input.split_first() {
        input = rest;
        let client = clients[usize::from(first >> 6) % clients.len()];
        let words: Vec<Vec<u8>> =
            (0..1 + first % 8).map_while(|place| word(place, &mut input)).collect();
        ours.send(client, &command(&words));
        if *first == 0xff {
            ours.pass_time(Nanos::from_secs(1));
        }
    }
    for client in clients {
        sound(&ours.output(client));
        ours.close(client);
    }
}

fn word(place: u8, input: &mut &[u8]) -> Option<Vec<u8>> {
    let (choice, rest) = input.split_first()?;
    *input = rest;
    let known = usize::from(*choice);
    if place == 0 {
        return Some(NAMES[known % NAMES.len()].into());
    }
    if let Some(word) = WORDS.get(known) {
        return Some((*word).into());
    }
    let (word, rest) = rest.split_at(rest.len().min(known % 16));
    *input = rest;
    Some(word.to_vec())
}

/// Answers are whole, and none is a defect.
fn sound(heard: &[u8]) {
    let defect = b"internal error";
    let found = heard.windows(defect.len()).any(|window| window == defect);
    assert!(!found, "{}", heard.escape_ascii());
    assert_eq!(client::resp::whole(heard), Ok(heard.len()), "{}", heard.escape_ascii());
}

const NAMES: [&str; 210] = [
    "bitop",
    "copy",
    "lcs",
    "memory",
    "move",
    "randomkey",
    "sort",
    "sort_ro",
    "waitaof",
    "auth",
    "blmove",
    "blmpop",
    "blpop",
    "brpop",
    "brpoplpush",
    "client",
    "command",
    "config",
    "dbsize",
    "debug",
    "del",
    "discard",
    "echo",
    "exec",
    "exists",
    "expire",
    "expireat",
    "expiretime",
    "flushall",
    "flushdb",
    "function",
    "get",
    "getdel",
    "hello",
    "info",
    "keys",
    "lindex",
    "linsert",
    "llen",
    "lmove",
    "lmpop",
    "lpop",
    "lpos",
    "lpush",
    "lpushx",
    "lrange",
    "lrem",
    "lset",
    "ltrim",
    "multi",
    "object",
    "persist",
    "pexpire",
    "pexpireat",
    "pexpiretime",
    "ping",
    "psetex",
    "psubscribe",
    "pttl",
    "publish",
    "pubsub",
    "punsubscribe",
    "rename",
    "renamenx",
    "reset",
    "rpop",
    "rpoplpush",
    "rpush",
    "rpushx",
    "scan",
    "select",
    "set",
    "setex",
    "setnx",
    "subscribe",
    "swapdb",
    "time",
    "touch",
    "ttl",
    "type",
    "unlink",
    "unsubscribe",
    "unwatch",
    "wait",
    "watch",
    "rpush",
    "lpush",
    "multi",
    "exec",
    "subscribe",
    "publish",
    "set",
    "get",
    "lrange",
    "expire",
    "blpop",
    "client",
    "config",
    "nosuch",
    "append",
    "bitcount",
    "bitfield",
    "bitfield_ro",
    "bitpos",
    "decr",
    "decrby",
    "getbit",
    "getex",
    "getrange",
    "getset",
    "incr",
    "incrby",
    "incrbyfloat",
    "mget",
    "mset",
    "msetnx",
    "setbit",
    "setrange",
    "strlen",
    "substr",
    "bzmpop",
    "bzpopmax",
    "bzpopmin",
    "hdel",
    "hexists",
    "hget",
    "hgetall",
    "hincrby",
    "hincrbyfloat",
    "hkeys",
    "hlen",
    "hmget",
    "hmset",
    "hrandfield",
    "hscan",
    "hset",
    "hsetnx",
    "hstrlen",
    "hvals",
    "sadd",
    "scard",
    "sdiff",
    "sdiffstore",
    "sinter",
    "sintercard",
    "sinterstore",
    "sismember",
    "smembers",
    "smismember",
    "smove",
    "spop",
    "srandmember",
    "srem",
    "sscan",
    "sunion",
    "sunionstore",
    "zadd",
    "zcard",
    "zcount",
    "zdiff",
    "zdiffstore",
    "zincrby",
    "zinter",
    "zintercard",
    "zinterstore",
    "zlexcount",
    "zmpop",
    "zmscore",
    "zpopmax",
    "zpopmin",
    "zrandmember",
    "zrange",
    "zrangebylex",
    "zrangebyscore",
    "zrangestore",
    "zrank",
    "zrem",
    "zremrangebylex",
    "zremrangebyrank",
    "zremrangebyscore",
    "zrevrange",
    "zrevrangebylex",
    "zrevrangebyscore",
    "zrevrank",
    "zscan",
    "zscore",
    "zunion",
    "zunionstore",
    "eval",
    "evalsha",
    "eval_ro",
    "script",
    "xack",
    "xadd",
    "xadd",
    "xautoclaim",
    "xclaim",
    "xdel",
    "xgroup",
    "xgroup",
    "xinfo",
    "xlen",
    "xpending",
    "xrange",
    "xread",
    "xreadgroup",
    "xreadgroup",
    "xrevrange",
    "xsetid",
    "xtrim",
];

const WORDS: [&str; 146] = [
    "a",
    "b",
    "c",
    "a*",
    "*",
    "x",
    "y",
    "",
    "0",
    "1",
    "2",
    "-1",
    "-2",
    "3",
    "100",
    "0.01",
    "1e3",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "1000000000000",
    "left",
    "right",
    "before",
    "after",
    "count",
    "rank",
    "maxlen",
    "match",
    "type",
    "list",
    "string",
    "nx",
    "xx",
    "gt",
    "lt",
    "ex",
    "px",
    "exat",
    "pxat",
    "keepttl",
    "get",
    "set",
    "id",
    "info",
    "setname",
    "getname",
    "setinfo",
    "lib-name",
    "unblock",
    "error",
    "timeout",
    "reply",
    "on",
    "off",
    "skip",
    "no-evict",
    "encoding",
    "flush",
    "async",
    "sync",
    "channels",
    "numsub",
    "numpat",
    "docs",
    "filterby",
    "aclcat",
    "pattern",
    "appendfsync",
    "resetstat",
    "keyspace",
    "everything",
    "default",
    "auth",
    "pubsub",
    "u8",
    "i5",
    "i64",
    "u63",
    "#1",
    "#9223372036854775807",
    "524287",
    "4294967295",
    "incrby",
    "overflow",
    "sat",
    "fail",
    "bit",
    "byte",
    "persist",
    "inf",
    "-0.1",
    "1e4931",
    "withscores",
    "withscore",
    "withvalues",
    "byscore",
    "bylex",
    "rev",
    "limit",
    "weights",
    "aggregate",
    "sum",
    "min",
    "max",
    "ch",
    "incr",
    "(1",
    "[a",
    "-",
    "+",
    "-inf",
    "nan",
    "0x1p4",
    "1.5",
    "load",
    "create",
    "destroy",
    "setid",
    "createconsumer",
    "delconsumer",
    "stream",
    "groups",
    "consumers",
    "full",
    "mkstream",
    "nomkstream",
    "minid",
    "~",
    "=",
    "$",
    ">",
    "block",
    "streams",
    "group",
    "noack",
    "idle",
    "force",
    "justid",
    "1-1",
    "5-*",
    "0-0",
    "18446744073709551615-18446744073709551615",
    "entriesread",
    "lastid",
    "retrycount",
];

#[test]
fn fuzz_corpus_does_no_harm() {
    testkit::replay("resp_codec", bytes);
    testkit::replay("resp_codec", alone);
    testkit::replay("resp_commands", commands);
    testkit::replay("resp_commands", strangers);
}

#[test]
fn random_bytes_do_no_harm() {
    for seed in 0..500 {
        let mut random = Rng::new(seed);
        let length = random.index(600);
        let alphabet = b"*$123\r\n\r\n\"'\\x PINGEChoset\0\xff";
        let input: Vec<u8> = (0..length).map(|_| random.pick(alphabet)).collect();
        bytes(&input);
    }
}

#[test]
fn random_commands_do_no_harm() {
    for seed in 0..1_000 {
        let mut random = Rng::new(seed);
        let length = random.index(600);
        let input: Vec<u8> = (0..length).map(|_| random.index(256) as u8).collect();
        commands(&input);
        strangers(&input);
    }
}

#[test]
fn claimed_unsent_bytes_cost_nothing() {
    let mut ours = Ours::new(Options::default());
    let client = ours.connect();
    ours.send(client, b"*1000000\r\n$16000000\r\nx");
    assert!(ours.collected_bytes(client) < 100);
    for _ in 0..100 {
        ours.send(client, &[b'x'; 10_000]);
    }
    let collected = ours.collected_bytes(client);
    assert!((1_000_000..1_100_000).contains(&collected), "{collected}");
}

#[test]
fn watched_keys_count_as_memory() {
    let mut ours = Ours::new(Options::default());
    let client = ours.connect();
    let watch = |from: u32, to: u32| {
        let keys = (from..to).map(|number| format!(" {number:0200}"));
        format!("WATCH{}\r\n", keys.collect::<String>())
    };
    ours.send(client, watch(0, 20).as_bytes());
    assert_eq!(ours.collected_bytes(client), 0, "as few as most have");
    for end in ["UNWATCH\r\n", "MULTI\r\nEXEC\r\n", "RESET\r\n"] {
        ours.send(client, watch(0, 300).as_bytes());
        ours.send(client, watch(300, 600).as_bytes());
        assert!(ours.collected_bytes(client) > 250_000);
        ours.send(client, end.as_bytes());
        assert_eq!(ours.collected_bytes(client), 0, "after {end}");
    }
    for _ in 0..100 {
        ours.send(client, watch(0, 300).as_bytes());
    }
    // The same keys are there once; their count has an end.
    assert!(ours.collected_bytes(client) < 1_024 * 512);
    assert!(ours.output(client).ends_with(b"+OK\r\n"));
}

#[test]
fn keys_waited_for_count_as_memory() {
    let mut ours = Ours::new(Options::default());
    let (client, other) = (ours.connect(), ours.connect());
    let keys = |count: u32| (0..count).map(|number| format!(" {number:0200}")).collect::<String>();
    ours.send(client, format!("BLPOP{} 0\r\n", keys(20)).as_bytes());
    assert_eq!(ours.collected_bytes(client), 0, "as few as most have");
    ours.send(other, format!("LPUSH{} x\r\n", keys(1)).as_bytes());
    ours.send(client, format!("BLPOP{} 0\r\n", keys(300)).as_bytes());
    assert!(ours.collected_bytes(client) > 100_000);
    ours.send(other, format!("LPUSH{} x\r\n", keys(1)).as_bytes());
    assert_eq!(ours.collected_bytes(client), 0);
}

#[test]
fn queued_commands_are_counted_and_bounded() {
    let mut ours = Ours::new(Options::default());
    let client = ours.connect();
    ours.send(client, b"MULTI\r\n");
    ours.send(client, &b"PING\r\n".repeat(10_001));
    assert!(ours.collected_bytes(client) > 100_000);
    let heard = ours.output(client);
    let queued = heard.windows(9).filter(|window| *window == b"+QUEUED\r\n").count();
    assert_eq!(queued, 10_000);
    let refused = "-ERR a transaction has 10000 commands and 67108864 bytes at most: send it in \
                   parts\r\n";
    assert!(heard.ends_with(refused.as_bytes()));
    ours.send(client, b"EXEC\r\n");
    assert!(ours.output(client).starts_with(b"-EXECABORT"));
}

#[test]
fn delete_of_many_names_in_parts() {
    let mut ours = Ours::new(Options::default());
    let client = ours.connect();
    let names: Vec<String> = (0..2_500).map(|number| format!("k{number}")).collect();
    let pushes: String = names.iter().map(|name| format!("RPUSH {name} x\r\n")).collect();
    ours.send(client, pushes.as_bytes());
    ours.output(client);
    let all = names.join(" ");
    for (command, answer) in [("EXISTS", 2_501), ("DEL", 2_500), ("EXISTS", 0)] {
        ours.send(client, format!("{command} {all} k7\r\n").as_bytes());
        assert_eq!(ours.output(client), format!(":{answer}\r\n").as_bytes());
    }
    // In a transaction it is one step.
    ours.send(client, pushes.as_bytes());
    ours.send(client, format!("MULTI\r\nDEL {all}\r\nEXISTS {all}\r\nEXEC\r\n").as_bytes());
    assert!(ours.output(client).ends_with(b"*2\r\n:2500\r\n:0\r\n"));
}
