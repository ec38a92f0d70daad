//! Replies and recoveries that the oracle of keys accepts, and those that it does not.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::redis_client::words;
use crate::{KeySnapshot, Shape};

const PERIOD: Nanos = Nanos::from_millis(25);

fn at(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

fn asked(command: &str) -> Asked {
    let command: Vec<&str> = command.split(' ').collect();
    Asked { words: words(&command), meant: Meant::Command }
}

fn batch(commands: &[&str]) -> Asked {
    let commands = commands.iter().map(|command| asked(command).words);
    Asked { words: words(&["EXEC"]), meant: Meant::Batch(commands.collect()) }
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().into())
}

fn popped(name: &str, element: &str) -> Value {
    Value::Array(vec![bulk(name), bulk(element)])
}

/// The list `l` is a, b, c; each command was at the moment of its number.
fn oracle(policy: StorePolicy) -> Oracle {
    let mut oracle = KeyOracle::new(policy, Nanos::ZERO);
    for (number, element) in (1..).zip(["a", "b", "c"]) {
        let push = asked(&format!("RPUSH l {element}"));
        let needs = oracle.answered(at(number), 1, &push, &Value::Integer(number as i64));
        assert_eq!(needs, number as usize);
    }
    oracle
}

type Oracle = KeyOracle;

fn passes(oracle: &Oracle, act: impl FnOnce(&mut Oracle)) -> bool {
    let mut oracle = oracle.clone();
    catch_unwind(AssertUnwindSafe(|| act(&mut oracle))).is_ok()
}

fn accepts(oracle: &Oracle, command: &str, value: &Value) -> bool {
    passes(oracle, |oracle| _ = oracle.answered(at(10), 2, &asked(command), value))
}

fn lists(all: &[(&str, &[&str])]) -> Picture {
    let shown = |(name, list): &(&str, &[&str])| {
        let content = Shape::List(list.iter().map(|it| it.as_bytes().into()).collect());
        (Rc::from(*name), KeySnapshot { content, deadline: None })
    };
    Picture(all.iter().map(shown).collect())
}

fn recovers(oracle: &Oracle, fall: Fall, fell: Nanos, found: &Picture) -> bool {
    passes(oracle, |oracle| oracle.recovered(fall, fell, fell, found, &Ages::new()))
}

#[test]
fn element_comes_once_from_right_end() {
    let mut oracle = oracle(StorePolicy::Always);
    assert!(accepts(&oracle, "LPOP l", &bulk("a")));
    for wrong in [bulk("b"), bulk("c"), bulk("x"), Value::Nil] {
        assert!(!accepts(&oracle, "LPOP l", &wrong), "{wrong:?}");
    }
    oracle.answered(at(5), 1, &asked("LPOP l"), &bulk("a"));
    assert!(!accepts(&oracle, "LPOP l", &bulk("a")), "twice");
    assert!(!accepts(&oracle, "LLEN l", &Value::Integer(3)));
}

#[test]
fn longest_wait_is_served_first() {
    let mut oracle = KeyOracle::new(StorePolicy::Always, Nanos::ZERO);
    oracle.waits(at(1), 1, &asked("BLPOP k l 0").words);
    oracle.waits(at(2), 2, &asked("BRPOP l 1").words);
    oracle.assert_served();
    oracle.answered(at(3), 3, &asked("RPUSH l a b"), &Value::Integer(2));
    assert!(!passes(&oracle, |oracle| oracle.assert_served()));
    assert!(!passes(&oracle, |oracle| _ = oracle.served(at(4), 2, &popped("l", "b"))));
    assert!(!passes(&oracle, |oracle| _ = oracle.served(at(4), 1, &popped("l", "b"))));
    oracle.served(at(4), 1, &popped("l", "a"));
    assert!(!passes(&oracle, |oracle| _ = oracle.served(at(2000), 2, &Value::Nil)));
    oracle.served(at(4), 2, &popped("l", "b"));
    oracle.assert_served();
}

#[test]
fn first_filled_list_serves_first() {
    let mut oracle = KeyOracle::new(StorePolicy::Always, Nanos::ZERO);
    oracle.waits(at(1), 1, &asked("BLPOP k l 0").words);
    oracle.waits(at(2), 2, &asked("BLPOP k 0").words);
    oracle.commanded(at(3), 3);
    let all = batch(&["RPUSH l a", "RPUSH k b"]);
    let done = Value::Array(vec![Value::Integer(1), Value::Integer(1)]);
    oracle.answered(at(3), 3, &all, &done);
    assert!(!passes(&oracle, |oracle| _ = oracle.served(at(3), 1, &popped("k", "b"))));
    assert!(!passes(&oracle, |oracle| _ = oracle.served(at(3), 2, &popped("k", "b"))));
    oracle.served(at(3), 1, &popped("l", "a"));
    oracle.served(at(3), 2, &popped("k", "b"));
    oracle.assert_served();
}

#[test]
fn moved_element_serves_behind_earlier_ones() {
    let mut oracle = KeyOracle::new(StorePolicy::Always, Nanos::ZERO);
    oracle.waits(at(1), 1, &asked("BLMOVE k m LEFT LEFT 0").words);
    oracle.waits(at(2), 2, &asked("BLPOP m l 0").words);
    oracle.commanded(at(3), 3);
    let all = batch(&["RPUSH k a", "RPUSH l b"]);
    let done = Value::Array(vec![Value::Integer(1), Value::Integer(1)]);
    oracle.answered(at(3), 3, &all, &done);
    assert!(!passes(&oracle, |oracle| _ = oracle.served(at(3), 2, &popped("l", "b"))));
    oracle.served(at(3), 1, &bulk("a"));
    assert!(!passes(&oracle, |oracle| _ = oracle.served(at(3), 2, &popped("m", "a"))));
    oracle.served(at(3), 2, &popped("l", "b"));
}

#[test]
fn wait_ignores_key_become_value() {
    let mut oracle = KeyOracle::new(StorePolicy::Always, Nanos::ZERO);
    oracle.waits(at(1), 1, &asked("BLPOP k l 0").words);
    oracle.answered(at(2), 2, &asked("SET k v"), &Value::ok());
    oracle.answered(at(3), 2, &asked("RPUSH l a"), &Value::Integer(1));
    let wrong = Value::error("WRONGTYPE");
    assert!(!passes(&oracle, |oracle| _ = oracle.served(at(4), 1, &wrong)));
    oracle.served(at(4), 1, &popped("l", "a"));
}

#[test]
fn wait_ends_exactly_at_timeout() {
    let mut oracle = oracle(StorePolicy::Always);
    assert!(!passes(&oracle, |oracle| oracle.waits(at(9), 2, &asked("BLPOP l 0").words)));
    oracle.waits(at(10), 2, &asked("BLPOP k 0.5").words);
    assert!(!passes(&oracle, |oracle| _ = oracle.served(at(509), 2, &Value::Nil)));
    assert!(passes(&oracle, |oracle| _ = oracle.served(at(510), 2, &Value::Nil)));
    assert!(!accepts(&oracle, "BLPOP k 0.5", &Value::Nil), "at once");
}

#[test]
fn batch_runs_if_watched_unchanged() {
    let mut oracle = oracle(StorePolicy::Always);
    let all = batch(&["LPOP l", "RPUSH k x"]);
    let done = Value::Array(vec![bulk("a"), Value::Integer(1)]);
    let exec = |oracle: &Oracle, value: &Value| {
        passes(oracle, |oracle| _ = oracle.answered(at(20), 2, &all, value))
    };
    oracle.answered(at(10), 2, &asked("WATCH l"), &Value::ok());
    assert!(exec(&oracle, &done));
    assert!(!exec(&oracle, &Value::Nil));
    oracle.answered(at(11), 1, &asked("LSET l 0 a"), &Value::ok());
    assert!(exec(&oracle, &done) && exec(&oracle, &Value::Nil), "either is right");
    oracle.answered(at(12), 1, &asked("LSET l 0 z"), &Value::ok());
    assert!(!exec(&oracle, &done));
    assert!(exec(&oracle, &Value::Nil));
}

#[test]
fn replies_survive_and_rest_is_prefix() {
    let mut oracle = oracle(StorePolicy::Always);
    for left in [&["a", "b", "c"][..], &["a", "b"], &["a"]] {
        assert!(recovers(&oracle, Fall::Power, at(10), &lists(&[("l", left)])), "{left:?}");
    }
    for left in [&["b", "c"][..], &["a", "c"], &["a", "b", "b"], &["b", "a"]] {
        assert!(!recovers(&oracle, Fall::Power, at(10), &lists(&[("l", left)])), "{left:?}");
    }
    oracle.told(at(5), 2);
    assert!(recovers(&oracle, Fall::Power, at(10), &lists(&[("l", &["a", "b"])])));
    assert!(!recovers(&oracle, Fall::Power, at(10), &lists(&[("l", &["a"])])));
}

#[test]
fn policies_keep_their_own_promise() {
    let one = lists(&[("l", &["a"])]);
    for (policy, fall, fell, spared) in [
        (StorePolicy::Periodic(PERIOD), Fall::Process, at(6), true),
        (StorePolicy::Periodic(PERIOD), Fall::Power, at(30), false),
        (StorePolicy::Periodic(PERIOD), Fall::Power, at(31), true),
        (StorePolicy::Never, Fall::Power, at(1000), false),
        (StorePolicy::Never, Fall::Process, at(6), true),
    ] {
        let mut oracle = oracle(policy);
        oracle.told(at(5), 3);
        assert_ne!(recovers(&oracle, fall, fell, &one), spared, "{policy:?} {fall:?} {fell}");
    }
    let memory = oracle(StorePolicy::Memory);
    assert!(recovers(&memory, Fall::Process, at(10), &Picture::default()));
    assert!(!recovers(&memory, Fall::Process, at(10), &one), "memory is forgotten");
}

#[test]
fn half_batch_is_never_found() {
    let mut oracle = oracle(StorePolicy::Always);
    let done = Value::Array(vec![bulk("a"), Value::Integer(1), Value::Integer(2)]);
    oracle.answered(at(5), 2, &batch(&["LPOP l", "RPUSH k x", "RPUSH k y"]), &done);
    let fits = |l: &[&str], k: &[&str]| {
        let found = if k.is_empty() { lists(&[("l", l)]) } else { lists(&[("l", l), ("k", k)]) };
        recovers(&oracle, Fall::Power, at(10), &found)
    };
    assert!(fits(&["a", "b", "c"], &[]));
    assert!(fits(&["b", "c"], &["x", "y"]));
    assert!(!fits(&["b", "c"], &[]));
    assert!(!fits(&["b", "c"], &["x"]));
    assert!(!fits(&["a", "b", "c"], &["x", "y"]));
}

#[test]
fn leased_pop_is_final_after_next_reply() {
    let mut oracle = KeyOracle::new(StorePolicy::Always, Nanos::ZERO);
    let needs = oracle.answered(at(1), 1, &asked("RPUSH p a"), &Value::Integer(1));
    oracle.told(at(1), needs);
    oracle.commanded(at(2), 2);
    let needs = oracle.answered(at(2), 2, &asked("LPOP p"), &bulk("a"));
    oracle.told(at(2), needs);
    let held = oracle.clone();
    let (gone, back) = (Picture::default(), lists(&[("p", &["a"])]));
    assert!(recovers(&held, Fall::Power, at(10), &back));
    assert!(!recovers(&held, Fall::Power, at(10), &gone));
    oracle.commanded(at(3), 2);
    let needs = oracle.answered(at(3), 2, &asked("LLEN l"), &Value::Integer(0));
    assert!(recovers(&oracle, Fall::Power, at(10), &back), "nobody knows yet");
    oracle.told(at(3), needs);
    assert!(!recovers(&oracle, Fall::Power, at(10), &back));
    assert!(recovers(&oracle, Fall::Power, at(10), &gone));
    let mut broken = held;
    broken.closed(at(4), 2);
    assert!(accepts(&broken, "LPOP p", &bulk("a")), "it is back in its place");
}

#[test]
fn expired_key_is_not_there() {
    let mut oracle = oracle(StorePolicy::Always);
    oracle.answered(at(4), 1, &asked("PEXPIRE l 100"), &Value::Integer(1));
    oracle.told(at(5), 4);
    let mut found = lists(&[("l", &["a", "b", "c"])]);
    found.0.get_mut("l").unwrap().deadline = Some(at(104));
    assert!(recovers(&oracle, Fall::Process, at(50), &found));
    assert!(recovers(&oracle, Fall::Process, at(104), &Picture::default()));
    assert!(!recovers(&oracle, Fall::Process, at(103), &Picture::default()));
    found.0.get_mut("l").unwrap().deadline = None;
    assert!(!recovers(&oracle, Fall::Process, at(50), &found), "its deadline is kept");
}

#[test]
fn wait_for_member_is_served_by_order() {
    let mut oracle = KeyOracle::new(StorePolicy::Always, Nanos::ZERO);
    oracle.waits(at(1), 1, &asked("BZPOPMIN y z 0").words);
    oracle.waits(at(2), 2, &asked("BZPOPMIN z 1").words);
    oracle.answered(at(3), 3, &asked("RPUSH y a"), &Value::Integer(1));
    oracle.assert_served();
    oracle.answered(at(4), 3, &asked("ZADD z 2 b 1 c"), &Value::Integer(2));
    let popped = |member, score| Value::Array(vec![bulk("z"), bulk(member), bulk(score)]);
    assert!(!passes(&oracle, |oracle| oracle.assert_served()));
    assert!(!passes(&oracle, |oracle| _ = oracle.served(at(4), 2, &popped("c", "1"))));
    assert!(!passes(&oracle, |oracle| _ = oracle.served(at(4), 1, &popped("b", "2"))));
    oracle.served(at(4), 1, &popped("c", "1"));
    oracle.served(at(4), 2, &popped("b", "2"));
    oracle.assert_served();
}

#[test]
fn collection_survives_as_clients_saw_it() {
    let mut oracle = KeyOracle::new(StorePolicy::Always, Nanos::ZERO);
    oracle.answered(at(1), 1, &asked("HSET h a 1 b 2"), &Value::Integer(2));
    let needs = oracle.answered(at(2), 1, &asked("HDEL h b"), &Value::Integer(1));
    let hash = |all: &[(&str, &str)]| {
        let all = all.iter().map(|(field, value)| [field, value].map(|it| it.as_bytes().into()));
        let content = Shape::Hash(all.map(|[field, value]| (field, value)).collect());
        Picture([(Rc::from("h"), KeySnapshot { content, deadline: None })].into())
    };
    let (both, one) = (hash(&[("a", "1"), ("b", "2")]), hash(&[("a", "1")]));
    assert!(recovers(&oracle, Fall::Power, at(10), &both));
    oracle.told(at(3), needs);
    assert!(!recovers(&oracle, Fall::Power, at(10), &both), "the field is back");
    assert!(recovers(&oracle, Fall::Power, at(10), &one));
    assert!(!recovers(&oracle, Fall::Power, at(10), &hash(&[("a", "2")])));
    assert!(!recovers(&oracle, Fall::Power, at(10), &Picture::default()));
}
