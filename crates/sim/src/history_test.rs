//! Which recoveries a history accepts. The point is the recoveries that it must reject: an oracle
//! that accepts everything proves nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};

use model::Persistence;

use super::*;

const PERIOD: Nanos = Nanos::from_millis(25);
const LAG: Nanos = Nanos::from_millis(10);

fn kept(queue: &str, priority: u32) -> Kept {
    (Content::plain(queue.into(), priority, 1, [7].into()), Standing::Ready)
}

const fn nature(level: Durability) -> Nature {
    Nature::new(level, 1, 0)
}

const SYNCED: Nature = nature(Durability::Synced);

/// Message 1 put, message 2 put, message 1 released with priority 5, message 2 deleted.
fn history(policy: StorePolicy) -> History {
    let nature = nature(policy.durability(Persistence::Persistent));
    let mut history = History::new(policy, LAG);
    history.push(1, 1, nature, Some(kept("q", 0)));
    history.push(2, 2, nature, Some(kept("q", 0)));
    history.push(3, 1, nature, Some(kept("q", 5)));
    history.push(4, 2, nature, None);
    history
}

fn accepts(history: &History, fall: Fall, found: &[(u64, Kept)]) -> bool {
    let mut history = history.clone();
    let found = all(found);
    let fell = Nanos::from_millis(100);
    catch_unwind(AssertUnwindSafe(|| history.recover(fall, fell, fell, &found))).is_ok()
}

fn all(found: &[(u64, Kept)]) -> BTreeMap<u64, Found> {
    found.iter().map(|(id, kept)| (*id, Found::from(kept.clone()))).collect()
}

#[test]
fn history_accepts_prefixes_without_replies() {
    let history = history(StorePolicy::Always);
    for found in [
        vec![],
        vec![(1, kept("q", 0))],
        vec![(1, kept("q", 0)), (2, kept("q", 0))],
        vec![(1, kept("q", 5)), (2, kept("q", 0))],
        vec![(1, kept("q", 5))],
    ] {
        assert!(accepts(&history, Fall::Power, &found), "{found:?}");
    }
}

#[test]
fn history_rejects_other_than_prefixes() {
    let history = history(StorePolicy::Always);
    for found in [
        vec![(2, kept("q", 0))],
        vec![(1, kept("q", 5)), (2, kept("q", 1))],
        vec![(1, kept("r", 0))],
        vec![(1, kept("q", 0)), (3, kept("q", 0))],
    ] {
        assert!(!accepts(&history, Fall::Power, &found), "{found:?}");
    }
    let mut other_body = kept("q", 0);
    other_body.0.body = [8].into();
    assert!(!accepts(&history, Fall::Power, &[(1, other_body)]));
}

#[test]
fn history_keeps_replies_by_policy() {
    let late = Nanos::from_millis(90);
    let early = Nanos::from_millis(60);
    let shorter = [(1, kept("q", 0)), (2, kept("q", 0))];
    for (policy, fall, told, may_be_lost) in [
        (StorePolicy::Always, Fall::Power, late, false),
        (StorePolicy::Always, Fall::Process, late, false),
        (StorePolicy::Periodic(PERIOD), Fall::Process, late, false),
        (StorePolicy::Periodic(PERIOD), Fall::Power, late, true),
        (StorePolicy::Periodic(PERIOD), Fall::Power, early, false),
        (StorePolicy::Never, Fall::Process, late, false),
        (StorePolicy::Never, Fall::Power, early, true),
    ] {
        let mut history = history(policy);
        history.told(told, 2..3);
        let accepted = accepts(&history, fall, &shorter);
        assert_eq!(accepted, may_be_lost, "{policy:?} {fall:?} told at {told}");
        assert!(accepts(&history, fall, &[(1, kept("q", 5))]));
    }
}

#[test]
fn history_keeps_messages_by_own_level() {
    let found = [(1, kept("q", 0))];
    for (level, fall, may_be_lost) in [
        (Durability::None, Fall::Process, true),
        (Durability::Written, Fall::Process, false),
        (Durability::Written, Fall::Power, true),
        (Durability::Synced, Fall::Power, false),
    ] {
        for policy in [StorePolicy::Always, StorePolicy::Never] {
            let mut history = History::new(policy, LAG);
            history.push(1, 1, nature(level), Some(kept("q", 0)));
            history.told(Nanos::ZERO, 0..1);
            assert_eq!(accepts(&history, fall, &[]), may_be_lost, "{level:?} {fall:?}");
            let may_be_there = level > Durability::None;
            assert_eq!(accepts(&history, fall, &found), may_be_there, "{level:?} {fall:?}");
        }
    }
}

#[test]
fn history_excludes_messages_in_memory() {
    let mut history = history(StorePolicy::Always);
    history.push(5, 3, nature(Durability::None), Some(kept("q", 0)));
    history.push(6, 4, SYNCED, Some(kept("q", 0)));
    history.told(Nanos::ZERO, 0..6);
    let (one, three, four) = ((1, kept("q", 5)), (3, kept("q", 0)), (4, kept("q", 0)));
    assert!(accepts(&history, Fall::Power, &[one.clone(), four.clone()]));
    assert!(!accepts(&history, Fall::Process, &[one, three, four]));
}

#[test]
fn confirmed_delete_never_comes_back() {
    let mut history = history(StorePolicy::Always);
    history.told(Nanos::ZERO, 3..4);
    assert!(!accepts(&history, Fall::Power, &[(1, kept("q", 5)), (2, kept("q", 0))]));
}

#[test]
fn history_rejects_return_of_lost() {
    let mut history = history(StorePolicy::Always);
    let one = [(1, kept("q", 0))];
    history.recover(Fall::Power, Nanos::ZERO, Nanos::ZERO, &all(&one));
    assert_eq!((history.len(), history.last_id(), history.spent_id()), (1, 1, 1));
    assert!(accepts(&history, Fall::Power, &one));
    assert!(!accepts(&history, Fall::Power, &[(1, kept("q", 0)), (2, kept("q", 0))]));
}

#[test]
fn history_step_is_kept_whole() {
    let mut history = history(StorePolicy::Always);
    history.push(5, 3, SYNCED, Some(kept("q", 0)));
    history.push(5, 4, SYNCED, Some(kept("q", 0)));
    let base = (1, kept("q", 5));
    assert!(accepts(&history, Fall::Power, std::slice::from_ref(&base)));
    assert!(!accepts(&history, Fall::Power, &[base.clone(), (3, kept("q", 0))]));
    assert!(accepts(&history, Fall::Power, &[base, (3, kept("q", 0)), (4, kept("q", 0))]));
}

#[test]
fn history_delays_end_leases_vanish() {
    let hidden = |standing| Some((kept("q", 0).0, standing));
    let now = Nanos::from_millis(100);
    let mut history = History::new(StorePolicy::Always, LAG);
    history.push(1, 1, SYNCED, hidden(Standing::Delayed(now)));
    history.push(2, 2, SYNCED, hidden(Standing::Delayed(now + PERIOD)));
    history.push(3, 3, SYNCED, hidden(Standing::Buried));
    history.told(Nanos::ZERO, 0..3);
    let found = |two, three| {
        let place = |standing| (kept("q", 0).0, standing);
        [(1, kept("q", 0)), (2, place(two)), (3, place(three))]
    };
    let same = found(Standing::Delayed(now + PERIOD), Standing::Buried);
    assert!(accepts(&history, Fall::Power, &same));
    let bare = found(Standing::Ready, Standing::Ready);
    assert!(!accepts(&history, Fall::Power, &bare));
    history.leased(1);
    history.leased(2);
    assert!(accepts(&history, Fall::Power, &bare));
    assert!(accepts(&history, Fall::Power, &same));
}

#[test]
fn expired_message_may_be_dead_letter() {
    let (before, after) = (Nanos::from_millis(50), Nanos::from_millis(150));
    for (expires, may_be_dead) in [(before, true), (after, false)] {
        let mut history = History::new(StorePolicy::Always, LAG);
        let content = Content { expires: Some(expires), failed: 2, ..kept("q", 0).0 };
        history.push(1, 1, SYNCED, Some((content.clone(), Standing::Ready)));
        history.told(Nanos::ZERO, 0..1);
        let dead = content.dead(DeadReason::Expired);
        assert_eq!((dead.failed, dead.dead.as_ref().map(|dead| dead.attempts)), (0, Some(2)));
        let is_dead = accepts(&history, Fall::Power, &[(1, (dead, Standing::Ready))]);
        assert_eq!(is_dead, may_be_dead);
        assert!(accepts(&history, Fall::Power, &[(1, (content, Standing::Ready))]));
        assert!(!accepts(&history, Fall::Power, &[]), "it is not deleted");
    }
}

#[test]
fn hidden_message_may_change_subscription() {
    let mut history = History::new(StorePolicy::Always, LAG);
    let content = Content { failed: 1, ..kept("news|one/first/durable", 0).0 };
    history.push(1, 1, SYNCED, Some((content, Standing::Buried)));
    history.told(Nanos::ZERO, 0..1);
    let hidden = |queue| {
        let kept = (kept(queue, 0).0, Standing::Buried);
        let found = [(1, Found { kept, is_hidden: true, place: None })].into();
        let mut history = history.clone();
        let fell = Nanos::from_millis(100);
        catch_unwind(AssertUnwindSafe(|| history.recover(Fall::Power, fell, fell, &found))).is_ok()
    };
    assert!(hidden("news"));
    assert!(!hidden("prices"));
}
