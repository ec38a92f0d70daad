//! Replies and recoveries that the oracle accepts, and those that it does not.

use std::panic::{AssertUnwindSafe, catch_unwind};

use model::{Delivery, MessageId, Persistence};

use super::*;
use crate::Found;

fn at(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

fn put(priority: u32, delay: u32) -> Wish {
    let persistence = Persistence::Persistent;
    let body = b"body".to_vec().into();
    Wish::Put { queue: "q".into(), priority, delay, lease: 2, persistence, body }
}

fn stored(id: u64) -> Reply {
    Reply::Stored { message: MessageId(id) }
}

fn reserve() -> Wish {
    Wish::Reserve { watched: Rc::new([Rc::from("q")].into()), timeout: Some(0) }
}

fn delivered(id: u64) -> Reply {
    let body = b"body".to_vec().into();
    Reply::Delivered(Box::new(Delivery::new(MessageId(id), body)))
}

fn oracle(puts: &[Wish]) -> Oracle {
    let mut oracle = Oracle::new(StorePolicy::Always, Nanos::ZERO);
    for (number, put) in (1..).zip(puts) {
        oracle.answered(at(number), 1, put, &stored(number));
    }
    oracle
}

/// True if the oracle accepts one more reply.
fn accepts(oracle: &Oracle, now: u64, client: u64, wish: &Wish, reply: &Reply) -> bool {
    let mut oracle = oracle.clone();
    catch_unwind(AssertUnwindSafe(|| oracle.answered(at(now), client, wish, reply))).is_ok()
}

#[test]
fn order_within_priority_is_checked() {
    let oracle = oracle(&[put(5, 0), put(1, 0), put(1, 0), put(0, 1)]);
    assert!(accepts(&oracle, 10, 2, &reserve(), &delivered(2)));
    for wrong in [1, 3, 4, 9] {
        assert!(!accepts(&oracle, 10, 2, &reserve(), &delivered(wrong)), "{wrong}");
    }
    assert!(!accepts(&oracle, 10, 2, &reserve(), &Reply::TimedOut { link: None }));
    assert!(accepts(&oracle, 2000, 2, &reserve(), &delivered(4)), "its delay has ended");
}

#[test]
fn leased_message_waits_for_lease_end() {
    let mut oracle = oracle(&[put(0, 0)]);
    oracle.answered(at(10), 2, &reserve(), &delivered(1));
    assert!(!accepts(&oracle, 100, 3, &reserve(), &delivered(1)));
    assert!(accepts(&oracle, 100, 3, &reserve(), &Reply::TimedOut { link: None }));
    assert!(accepts(&oracle, 2010, 3, &reserve(), &delivered(1)), "expired");
    oracle.closed(at(100), 2, &BTreeSet::new());
    assert!(accepts(&oracle, 101, 3, &reserve(), &delivered(1)), "connection closed");
}

#[test]
fn settling_needs_the_holder() {
    let mut oracle = oracle(&[put(0, 0)]);
    oracle.answered(at(10), 2, &reserve(), &delivered(1));
    for wish in [
        Wish::Delete { id: 1 },
        Wish::Release { id: 1, priority: 0, delay: 0 },
        Wish::Bury { id: 1, priority: 0 },
        Wish::Touch { id: 1 },
    ] {
        assert!(accepts(&oracle, 20, 2, &wish, &Reply::Done), "{wish:?}");
        assert!(!accepts(&oracle, 20, 2, &wish, &Reply::NotFound), "{wish:?}");
        assert!(!accepts(&oracle, 20, 3, &wish, &Reply::Done), "{wish:?}");
        assert!(accepts(&oracle, 20, 3, &wish, &Reply::NotFound), "{wish:?}");
    }
}

#[test]
fn ids_and_bodies_are_checked() {
    let mut oracle = oracle(&[put(0, 0)]);
    assert!(!accepts(&oracle, 10, 1, &put(0, 0), &stored(1)));
    oracle.answered(at(10), 1, &Wish::Delete { id: 1 }, &Reply::Done);
    assert!(!accepts(&oracle, 11, 1, &put(0, 0), &stored(1)), "never reused");
    assert!(accepts(&oracle, 11, 1, &put(0, 0), &stored(2)));
    oracle.answered(at(11), 1, &put(0, 0), &stored(2));
    let body = b"bodY".to_vec().into();
    let other = Delivery::new(MessageId(2), body);
    assert!(!accepts(&oracle, 12, 1, &reserve(), &Reply::Delivered(Box::new(other))));
}

#[test]
fn paused_queue_delivers_nothing() {
    let mut oracle = oracle(&[put(0, 0)]);
    let pause = Wish::Pause { queue: "q".into(), seconds: 1 };
    oracle.answered(at(10), 1, &pause, &Reply::Done);
    assert!(!accepts(&oracle, 20, 2, &reserve(), &delivered(1)));
    assert!(accepts(&oracle, 20, 2, &reserve(), &Reply::TimedOut { link: None }));
    assert!(accepts(&oracle, 1010, 2, &reserve(), &delivered(1)));
}

#[test]
fn kicks_take_buried_in_burial_order() {
    let mut oracle = oracle(&[put(0, 0), put(1, 0), put(2, 9)]);
    for id in [1, 2] {
        oracle.answered(at(10 + id), 2, &reserve(), &delivered(id));
    }
    for id in [2, 1] {
        oracle.answered(at(20), 2, &Wish::Bury { id, priority: 0 }, &Reply::Done);
    }
    let kick = |max| Wish::Kick { queue: "q".into(), max };
    assert!(!accepts(&oracle, 30, 2, &kick(9), &Reply::Count(3)), "the delayed one stays");
    oracle.answered(at(30), 2, &kick(1), &Reply::Count(1));
    assert!(accepts(&oracle, 40, 2, &reserve(), &delivered(2)));
    oracle.answered(at(40), 2, &kick(9), &Reply::Count(1));
    oracle.answered(at(41), 2, &kick(9), &Reply::Count(1));
    assert!(accepts(&oracle, 50, 2, &kick(9), &Reply::Count(0)));
}

#[test]
fn recovery_ends_leases_and_pauses() {
    let mut oracle = oracle(&[put(0, 0)]);
    oracle.answered(at(10), 2, &reserve(), &delivered(1));
    let pause = Wish::Pause { queue: "q".into(), seconds: 9 };
    oracle.answered(at(11), 1, &pause, &Reply::Done);
    let content = Content::plain("q".into(), 0, 2, b"body".to_vec().into());
    let found = [(1, Found::from((content, Standing::Ready)))].into();
    let found = Inspection { found, next_id: 2, ..Inspection::default() };
    oracle.recovered(Fall::Process, at(12), at(13), &found);
    assert!(accepts(&oracle, 14, 3, &reserve(), &delivered(1)));
    assert_eq!(oracle.ids().collect::<Vec<_>>(), [1]);
}
