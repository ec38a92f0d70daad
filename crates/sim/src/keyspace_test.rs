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
