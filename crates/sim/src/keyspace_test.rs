//! Answers of Redis 7.

use super::*;
use crate::redis_client::words;

fn run(script: &[(&str, &str)]) {
    let mut keyspace = Keyspace::default();
    for (number, (command, expected)) in (1u64..).zip(script) {
        let now = Nanos::from_secs(number);
        while keyspace.pass(now) {}
        let command: Vec<&str> = command.split(' ').collect();
        let value = keyspace.execute(Asking { now, ahead: 0, client: 1 }, &words(&command));
        let shown = value.as_ref().map_or("waits".to_owned(), Value::summary);
        assert_eq!(shown, *expected, "{number}: {command:?}");
    }
}

#[test]
fn lists_are_as_in_redis() {
    run(&[
        ("RPUSH l a b c", "Integer(3)"),
        ("LPUSH l y z", "Integer(5)"),
        ("LRANGE l 0 -1", "[z, y, a, b, c]"),
        ("LRANGE l -100 1", "[z, y]"),
        ("LRANGE l 3 100", "[b, c]"),
        ("LRANGE l 4 2", "[]"),
        ("LRANGE l 0 -6", "[]"),
        ("LINDEX l -1", "c"),
        ("LINDEX l 5", "Nil"),
        ("LINSERT l BEFORE a b", "Integer(6)"),
        ("LPOS l b COUNT 0", "[Integer(2), Integer(4)]"),
        ("LREM l -1 b", "Integer(1)"),
        ("LRANGE l 0 -1", "[z, y, b, a, c]"),
        ("LSET l -2 m", "Simple(\"OK\")"),
        ("LSET l 5 m", "Error(\"ERR\")"),
        ("LTRIM l 1 -2", "Simple(\"OK\")"),
        ("LRANGE l 0 -1", "[y, b, m]"),
        ("LMOVE l l LEFT RIGHT", "y"),
        ("BLMOVE l k RIGHT LEFT 0", "y"),
        ("LPOP l 5", "[b, m]"),
        ("LPOP l 5", "Nil"),
        ("EXISTS l k k", "Integer(2)"),
        ("BLPOP l k 0", "[k, y]"),
        ("BLPOP l k 0", "waits"),
        ("LPUSHX l a", "Integer(0)"),
    ]);
}

#[test]
fn values_and_deadlines_match_redis() {
    run(&[
        ("SET v a PX 2500", "Simple(\"OK\")"),
        ("PTTL v", "About(1500)"),
        ("SET v b XX KEEPTTL GET", "a"),
        ("GET v", "Nil"),
        ("SET v c NX", "Simple(\"OK\")"),
        ("SET v d NX", "Nil"),
        ("LPUSH v a", "Error(\"WRONGTYPE\")"),
        ("RENAME v w", "Simple(\"OK\")"),
        ("GETDEL w", "c"),
        ("RENAME v w", "Error(\"ERR\")"),
        ("LPUSH l a", "Integer(1)"),
        ("PEXPIRE l 1500", "Integer(1)"),
        ("LMOVE l l LEFT LEFT", "a"),
        ("LLEN l", "Integer(0)"),
        ("LPUSH l a", "Integer(1)"),
        ("PEXPIRE l 0", "Integer(1)"),
        ("TYPE l", "Simple(\"none\")"),
    ]);
}

#[test]
fn hashes_match_redis() {
    run(&[
        ("HSET h b 2 a 1 b 3", "Integer(2)"),
        ("HSET h a 4 c x", "Integer(1)"),
        ("HGETALL h", "[a, 4, b, 3, c, x]"),
        ("HSETNX h a 5", "Integer(0)"),
        ("HINCRBY h a -5", "Integer(-1)"),
        ("HINCRBY h c 1", "Error(\"ERR\")"),
        ("HINCRBY h a -9223372036854775808", "Error(\"ERR\")"),
        ("HINCRBY g n 1", "Integer(1)"),
        ("HMGET h a x", "[-1, Nil]"),
        ("HGET h x", "Nil"),
        ("HLEN h", "Integer(3)"),
        ("TYPE h", "Simple(\"hash\")"),
        ("PEXPIRE h 9500", "Integer(1)"),
        ("HDEL h a a x", "Integer(1)"),
        ("RENAME h i", "Simple(\"OK\")"),
        ("PTTL i", "About(6500)"),
        ("GET i", "Error(\"WRONGTYPE\")"),
        ("LPUSH i a", "Error(\"WRONGTYPE\")"),
        ("SADD i a", "Error(\"WRONGTYPE\")"),
        ("HDEL i b c", "Integer(2)"),
        ("EXISTS h i", "Integer(0)"),
        ("HSET v a 1", "Integer(1)"),
        ("SET v a", "Simple(\"OK\")"),
        ("HGET v a", "Error(\"WRONGTYPE\")"),
    ]);
}

#[test]
fn sets_match_redis() {
    run(&[
        ("SADD s c a b a", "Integer(3)"),
        ("SMEMBERS s", "[a, b, c]"),
        ("SISMEMBER s b", "Integer(1)"),
        ("SMOVE s t b", "Integer(1)"),
        ("SMOVE s t b", "Integer(0)"),
        ("SMOVE s s a", "Integer(1)"),
        ("SCARD s", "Integer(2)"),
        ("SET v x", "Simple(\"OK\")"),
        ("SMOVE s v x", "Error(\"WRONGTYPE\")"),
        ("SMOVE x v x", "Integer(0)"),
        ("SRANDMEMBER t 9", "[b]"),
        ("SPOP s 9", "[a, c]"),
        ("SPOP s 9", "[]"),
        ("SREM t b x", "Integer(1)"),
        ("EXISTS s t", "Integer(0)"),
    ]);
}

#[test]
fn sorted_sets_match_redis() {
    run(&[
        ("ZADD z 2 b 1 c 1 a", "Integer(3)"),
        ("ZRANGE z 0 -1 WITHSCORES", "[a, 1, c, 1, b, 2]"),
        ("ZADD z NX CH 9 a 9 d", "Integer(1)"),
        ("ZADD z XX CH 1.5 a 9 x 2 b", "Integer(1)"),
        ("ZADD z XX INCR 1 x", "Nil"),
        ("ZADD z NX INCR 1 a", "Nil"),
        ("ZINCRBY z inf d", "inf"),
        ("ZINCRBY z -inf d", "Error(\"ERR\")"),
        ("ZRANGEBYSCORE z (1 2 WITHSCORES", "[a, 1.5, b, 2]"),
        ("SADD s a q", "Integer(2)"),
        ("ZUNIONSTORE y 2 z s", "Integer(5)"),
        ("ZRANGE y 0 -1 WITHSCORES", "[c, 1, q, 1, b, 2, a, 2.5, d, inf]"),
        ("ZRANGESTORE y y 1 2", "Integer(2)"),
        ("ZPOPMIN y 1", "[q, 1]"),
        ("ZREMRANGEBYSCORE y -inf inf", "Integer(1)"),
        ("TYPE y", "Simple(\"none\")"),
        ("BZPOPMIN y z 0", "[z, c, 1]"),
        ("BZPOPMIN y 0", "waits"),
        ("BZPOPMIN s z 0", "Error(\"WRONGTYPE\")"),
        ("ZREM z a b d", "Integer(3)"),
        ("ZUNIONSTORE s 2 y z", "Integer(0)"),
        ("EXISTS s z", "Integer(0)"),
    ]);
}

#[test]
fn protected_pop_settles_with_next_command() {
    let asking = Asking { now: Nanos::from_secs(1), ahead: 0, client: 1 };
    let mut keyspace = Keyspace::default();
    keyspace.execute(asking, &words(&["RPUSH", "p", "a", "b"]));
    keyspace.execute(asking, &words(&["LPOP", "p"]));
    keyspace.execute(asking, &words(&["LPUSH", "p", "z"]));
    let all = |keyspace: &Keyspace| keyspace.picture().0.get("p").cloned().unwrap().content;
    let list = |all: &[&str]| Shape::List(all.iter().map(|it| it.as_bytes().into()).collect());
    assert_eq!(all(&keyspace), list(&["z", "a", "b"]));
    let mut back = keyspace.clone();
    back.give_back(1);
    assert_eq!(back.execute(asking, &words(&["LINDEX", "p", "1"])).unwrap().summary(), "a");
    let mut taken = keyspace.clone();
    taken.settle(1);
    assert_eq!(all(&taken), list(&["z", "b"]));
    assert!(keyspace.pass(asking.now + POP_LEASE));
    assert_eq!(all(&keyspace), list(&["z", "b"]));
}
