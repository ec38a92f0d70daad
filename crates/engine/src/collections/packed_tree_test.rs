//! A packed tree against a sorted map.

use alloc::collections::BTreeMap;
use alloc::format;
use core::ops::Bound;

use testkit::{Rng, seeds};

use super::*;

type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<Arc<[u8]>>)>;

fn key(rng: &mut Rng, kind: u64) -> Vec<u8> {
    let number = rng.below(400);
    match kind {
        0 => format!("{number}").into_bytes(),
        1 => format!("a/rather/long/prefix/of/all/{number:08}").into_bytes(),
        2 => vec_of((number % 251) as u8, 1 + (number % 7) as usize),
        // Most share so much that hundreds fit into a leaf, some nothing.
        4 if rng.one_in(30) => vec_of((number % 5) as u8, 1),
        4 => [vec_of(b'z', 250), format!("{number:03}").into_bytes()].concat(),
        // Longer than a leaf.
        3 if rng.one_in(20) => vec_of((number % 5) as u8, 4_000),
        // The longest.
        5 if rng.one_in(20) => vec_of((number % 5) as u8, 24 * 1024 + 16),
        _ => number.to_be_bytes().to_vec(),
    }
}

/// Leaves whose keys begin with the same 250 bytes hold hundreds of them, and stand beside leaves
/// that share nothing: joined they would lose that.
#[test]
fn leaves_without_common_bytes_stay_apart() {
    let nothing = Cell { inline: &[], body: None };
    let mut tree = PackedTree::default();
    let long = |number: usize| format!("{}{number:04}", "z".repeat(250)).into_bytes();
    tree.insert(b"a", nothing, |_| ());
    for number in 0..300 {
        tree.insert(&long(number), nothing, |_| ());
    }
    for number in 0..300 {
        assert!(tree.remove(&long(number), |_| ()));
        tree.check();
    }
    assert_eq!(tree.len(), 1);
}

fn vec_of(byte: u8, count: usize) -> Vec<u8> {
    core::iter::repeat_n(byte, count).collect()
}

fn random_cell(rng: &mut Rng, kind: u64) -> (Vec<u8>, Option<Arc<[u8]>>) {
    if kind == 4 {
        return (Vec::new(), None);
    }
    let count = rng.pick(&[0, 1, 8, 8, 8, 200, INLINE_BYTES_MAX]);
    let body = rng.one_in(6).then(|| Arc::from(vec_of(7, rng.below(3_000) as usize)));
    (vec_of(rng.below(256) as u8, count), body)
}

fn assert_same(tree: &PackedTree, model: &Model) {
    tree.check();
    assert_eq!(tree.len(), model.len());
    let found = tree
        .iter_after(None)
        .map(|(key, cell)| (key.to_vec(), (cell.inline.to_vec(), cell.body.cloned())));
    assert!(found.eq(model.iter().map(|(key, value)| (key.clone(), value.clone()))));
}

#[test]
fn tree_behaves_as_a_sorted_map() {
    for seed in seeds(40) {
        let mut rng = Rng::new(seed);
        let (mut tree, mut model) = (PackedTree::default(), Model::new());
        let (kind, grows) = (rng.below(6), rng.coin());
        let mut picture: Option<(PackedTree, Model)> = None;
        for step in 0..4_000 {
            let key = key(&mut rng, kind);
            // It grows first, and shrinks then.
            let puts = if (step < 2_000) == grows { 4 } else { 1 };
            if rng.below(5) < puts {
                let (inline, body) = random_cell(&mut rng, kind);
                let (place, before) = tree.find(&key);
                let before = before.map(|cell| (cell.inline.to_vec(), cell.body.cloned()));
                assert_eq!(before.as_ref(), model.get(&key), "seed {seed}");
                if rng.one_in(4) {
                    // The place of the key may be another one by then.
                    let other = self::key(&mut rng, kind);
                    let was_there = tree.remove(&other, |_| ());
                    assert_eq!(was_there, model.remove(&other).is_some(), "seed {seed}");
                }
                let (one, other) = inline.split_at(rng.below(inline.len() as u64 + 1) as usize);
                let cell = NewCell { inline: [one, other], body: body.as_ref() };
                tree.insert_at(&place, &key, cell);
                model.insert(key, (inline, body));
            } else {
                let before = model.remove(&key);
                let found = tree.remove(&key, |cell| {
                    let seen = (cell.inline.to_vec(), cell.body.cloned());
                    assert_eq!(Some(seen), before, "seed {seed}");
                });
                assert_eq!(found, before.is_some(), "seed {seed}");
            }
            let other = self::key(&mut rng, kind);
            let got = tree.get(&other).map(|cell| (cell.inline.to_vec(), cell.body.cloned()));
            assert_eq!(got, model.get(&other).cloned(), "seed {seed}");
            let next = tree.iter_after(Some(&other)).next().map(|(key, _)| key.to_vec());
            let range = (Bound::Excluded(&other), Bound::Unbounded);
            assert_eq!(next.as_ref(), model.range::<Vec<u8>, _>(range).next().map(|(key, _)| key));
            let before = model.range::<Vec<u8>, _>(..&other).count();
            assert_eq!(tree.rank(&other), before, "seed {seed}");
            let at = tree.iter_at(before).next().map(|(key, _)| key.to_vec());
            assert_eq!(at.as_ref(), model.range(other..).next().map(|(key, _)| key));
            if step % 500 == 0 {
                assert_same(&tree, &model);
                if let Some((tree, model)) = picture.replace((tree.clone(), model.clone())) {
                    assert_same(&tree, &model);
                }
            }
        }
        for key in model.keys() {
            assert!(tree.remove(key, |_| ()), "seed {seed}");
        }
        assert_same(&tree, &Model::new());
        assert_eq!(tree.bytes(), PackedTree::EMPTY_BYTES, "an empty tree takes nothing");
    }
}

#[test]
fn keys_split_anywhere() {
    let nothing = Cell { inline: &[], body: None };
    let mut tree = PackedTree::default();
    for key in [&b"abcdef"[..], b"abcdxy", b"abcd"] {
        tree.insert(key, nothing, |_| ());
    }
    let split = |key: KeyParts<'_>| {
        let (first, rest) = key.split::<4>()?;
        Some((first, rest.to_vec()))
    };
    let all: Vec<_> = tree.iter_at(0).map(|(key, _)| split(key)).collect();
    let rests = [&b""[..], b"ef", b"xy"].map(|rest| Some((*b"abcd", rest.to_vec())));
    assert_eq!(all, rests);
    assert!(tree.iter_at(0).next().is_some_and(|(key, _)| key.split::<5>().is_none()));
}

#[test]
fn entries_take_little_beside_their_bytes() {
    let mut rng = Rng::new(1);
    let cell = Cell { inline: &[0; 9], body: None };
    let mut tree = PackedTree::default();
    for _ in 0..20_000 {
        tree.insert(format!("{:016x}", rng.draw()).as_bytes(), cell, |_| ());
    }
    assert!(tree.bytes() / tree.len() <= 36, "{} bytes an entry", tree.bytes() / tree.len());
    let mut tree = PackedTree::default();
    for number in 0..20_000 {
        tree.insert(format!("{number:016}").as_bytes(), cell, |_| ());
    }
    assert!(tree.bytes() / tree.len() <= 20, "{} bytes an entry", tree.bytes() / tree.len());
}
