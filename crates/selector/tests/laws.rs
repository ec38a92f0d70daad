//! Random selectors: against an evaluator of trees, and against the laws of three-valued logic.

#![allow(clippy::indexing_slicing, reason = "a broken test may panic")]

use testkit::Rng;

use crate::support::oracle::{self, Printer, Tree};
use crate::support::{Owned, truth};

#[test]
fn selectors_match_their_trees() {
    let mut seen = [0; 3];
    for seed in 0..4_000 {
        let mut rng = Rng::new(seed);
        let depth = rng.index(6);
        let tree = oracle::condition(&mut rng, depth);
        let bare = print(&tree, &mut rng, u64::MAX);
        let wrapped = print(&tree, &mut rng, 3);
        for _ in 0..5 {
            let message = oracle::message(&mut rng);
            let expected = match oracle::evaluate(&tree, &message) {
                Some(Owned::Boolean(truth)) => Some(truth),
                _ => None,
            };
            assert_eq!(truth(&bare, &message), expected, "seed {seed}: {bare} of {message:?}");
            assert_eq!(truth(&wrapped, &message), expected, "seed {seed}: {wrapped}: {message:?}");
            seen[expected.map_or(2, usize::from)] += 1;
        }
    }
    assert!(seen.iter().all(|count| *count > 2_000), "all truths come up: {seen:?}");
}

#[test]
fn three_valued_logic_laws_hold() {
    for seed in 0..1_000 {
        let mut rng = Rng::new(seed);
        let message = oracle::message(&mut rng);
        let [p, q, r] = [(); 3].map(|()| random(&mut rng));
        let is = |text: String| truth(&text, &message);
        let same = |left: String, right: String| {
            let (left_truth, right_truth) = (is(left.clone()), is(right.clone()));
            assert_eq!(left_truth, right_truth, "seed {seed}: {left}; {right}: {message:?}");
        };
        same(format!("NOT ({p} AND {q})"), format!("NOT {p} OR NOT {q}"));
        same(format!("NOT ({p} OR {q})"), format!("NOT {p} AND NOT {q}"));
        same(format!("{p} AND {q}"), format!("{q} AND {p}"));
        same(format!("{p} OR {q}"), format!("{q} OR {p}"));
        same(format!("{p} AND ({q} OR {r})"), format!("{p} AND {q} OR {p} AND {r}"));
        same(format!("{p} OR {q} AND {r}"), format!("({p} OR {q}) AND ({p} OR {r})"));
        same(format!("({p} AND {q}) AND {r}"), format!("{p} AND ({q} AND {r})"));
        same(format!("NOT NOT {p}"), p.clone());
        same(format!("{p} AND {p}"), p.clone());
        assert_ne!(is(format!("{p} AND NOT {p}")), Some(true), "seed {seed}: {p}");
        assert_ne!(is(format!("{p} OR NOT {p}")), Some(false), "seed {seed}: {p}");
        assert!(is(format!("{p} IS NULL")).is_some(), "seed {seed}: {p}");
    }
}

#[test]
fn abbreviations_equal_their_long_forms() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let message = oracle::message(&mut rng);
        for (short, long) in [
            ("a BETWEEN b AND größe", "a >= b AND a <= größe"),
            ("a NOT BETWEEN b AND größe", "a < b OR a > größe"),
            ("a NOT IN ('a', 'b')", "NOT a IN ('a', 'b')"),
            ("a NOT LIKE 'a%'", "NOT a LIKE 'a%'"),
            ("a IS NOT NULL", "NOT a IS NULL"),
            ("a - b = 3", "a + -b = 3"),
            ("a > b", "b < a"),
            ("a >= b", "b <= a"),
        ] {
            assert_eq!(truth(short, &message), truth(long, &message), "{short}: {message:?}");
        }
        // IN is for strings alone.
        let is_string = matches!(message.0.get("a"), Some(Owned::String(_)));
        let either = truth("a = 'a' OR a = 'b'", &message).filter(|_| is_string);
        assert_eq!(truth("a IN ('a', 'b')", &message), either, "{message:?}");
    }
}

fn random(rng: &mut Rng) -> String {
    let tree = oracle::condition(rng, 2);
    format!("({})", print(&tree, rng, 10))
}

fn print(tree: &Tree, rng: &mut Rng, parentheses: u64) -> String {
    Printer { rng, parentheses }.print(tree, 0)
}
