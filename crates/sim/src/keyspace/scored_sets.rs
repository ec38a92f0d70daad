//! Sorted sets: members with scores.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;

use model::Score;

use super::collections::{Entries, in_order};
use super::lists::places;
use super::{Content, Keyspace, text, too_large};
use crate::redis_client::Value;

type Members = BTreeMap<Rc<[u8]>, Score>;

/// A member and its score.
type Scored = (Rc<[u8]>, Score);

impl Keyspace {
    /// ZADD with options, of which it knows NX, XX, CH and INCR.
    pub(super) fn set_scores(&mut self, key: &[u8], words: &[&[u8]]) -> Value {
        let is_option = |word: &&&[u8]| matches!(**word, b"NX" | b"XX" | b"CH" | b"INCR");
        let (options, pairs) = words.split_at(words.iter().take_while(is_option).count());
        let has = |name: &[u8]| options.contains(&name);
        let (mut new, mut changed, mut told) = (0, 0, Value::Nil);
        let value = self.change(key, |members: &mut Members| {
            for pair in pairs.chunks_exact(2) {
                let [score, member] = pair else { continue };
                let before = members.get(*member).map(|score| score.get());
                if before.is_some() && has(b"NX") || before.is_none() && has(b"XX") {
                    continue;
                }
                let added = before.filter(|_| has(b"INCR"));
                let Some(score) = Score::new(decimal(score) + added.unwrap_or(0.0)) else {
                    return Value::error("ERR");
                };
                new += usize::from(before.is_none());
                changed += usize::from(before.is_some_and(|before| before != score.get()));
                told = shown(score);
                members.insert((*member).into(), score);
            }
            Value::Nil
        });
        match value {
            Value::Nil if has(b"INCR") => told,
            Value::Nil => Value::count(if has(b"CH") { new + changed } else { new }),
            error => error,
        }
    }

    pub(super) fn remove_scored(&mut self, key: &[u8], gone: &[&[u8]]) -> Value {
        self.change(key, |members: &mut Members| {
            Value::count(gone.iter().filter(|member| members.remove(**member).is_some()).count())
        })
    }

    pub(super) fn score(&self, key: &[u8], member: &[u8]) -> Value {
        self.regard(key, |members| members.get(member).map_or(Value::Nil, |score| shown(*score)))
    }

    pub(super) fn scored_count(&self, key: &[u8]) -> Value {
        self.regard(key, |members| Value::count(members.len()))
    }

    pub(super) fn ranks(&self, key: &[u8], first: i64, last: i64) -> Value {
        self.regard(key, |members| {
            let all = in_order(members);
            self.show(all.get(places(all.len(), first, last)).unwrap_or_default())
        })
    }

    pub(super) fn scores(&self, key: &[u8], low: &[u8], high: &[u8]) -> Value {
        self.regard(key, |members| {
            let is_within = |(_, score): &Scored| is_between(*score, low, high);
            self.show(&in_order(members.into_iter().filter(is_within)))
        })
    }

    pub(super) fn remove_scores(&mut self, key: &[u8], low: &[u8], high: &[u8]) -> Value {
        self.change(key, |members: &mut Members| {
            let before = members.len();
            members.retain(|_, score| !is_between(*score, low, high));
            Value::count(before - members.len())
        })
    }

    pub(super) fn pop_least(&mut self, key: &[u8], max: i64) -> Value {
        let value = self.ranks(key, 0, max - 1);
        if let Value::Array(taken) = &value {
            let taken = taken.iter().step_by(2).filter_map(|member| match member {
                Value::Bulk(member) => Some(&**member),
                _ => None,
            });
            let taken: Vec<_> = taken.collect();
            self.remove_scored(key, &taken);
        }
        value
    }

    /// Takes the least member of the first of these. `None`: there is none.
    pub(super) fn pop_first_least(&mut self, keys: &[&[u8]]) -> Option<Value> {
        let key = keys.iter().find(|key| self.keys.contains_key(text(key)))?;
        Some(match self.pop_least(key, 1) {
            Value::Array(mut popped) => {
                popped.insert(0, Value::Bulk((*key).into()));
                Value::Array(popped)
            }
            error => error,
        })
    }

    /// True if an answer has room for the least member, if there is one.
    pub(super) fn may_show_least(&self, key: &[u8]) -> bool {
        self.ranks(key, 0, 0) != too_large()
    }

    /// Scores are added. Members of a set have the score 1.
    pub(super) fn store_union(&mut self, to: &[u8], keys: &[&[u8]]) -> Value {
        let mut union = Members::new();
        for key in keys {
            let members = match self.keys.get(text(key)).map(|key| &key.content) {
                Some(Content::Set(set)) => set.iter().map(|it| (it.clone(), Score::ONE)).collect(),
                _ => match self.entries::<Members>(key) {
                    Ok(members) => members,
                    Err(error) => return error,
                },
            };
            for (member, score) in members {
                let before = union.get(&member).map_or(0.0, |score| score.get());
                let sum = Score::new(before + score.get());
                union.insert(member, sum.unwrap_or(Score::new(0.0).expect("invariant: no NaN")));
            }
        }
        let count = union.len();
        self.store(to, union);
        Value::count(count)
    }

    pub(super) fn store_ranks(&mut self, to: &[u8], from: &[u8], first: i64, last: i64) -> Value {
        let all = match self.entries::<Members>(from) {
            Ok(members) => in_order(members),
            Err(error) => return error,
        };
        let part = all.get(places(all.len(), first, last)).unwrap_or_default();
        self.store(to, part.iter().cloned().collect::<Members>());
        Value::count(part.len())
    }

    fn show(&self, members: &[Scored]) -> Value {
        let bytes = members.iter().map(|(member, _)| member.len() + size_of::<Score>()).sum();
        if !self.answer.has_room_for_entries(members.len(), bytes) {
            return too_large();
        }
        let pairs = members.iter();
        let pairs = pairs.flat_map(|(member, score)| [Value::Bulk(member.clone()), shown(*score)]);
        Value::Array(pairs.collect())
    }

    fn regard(&self, key: &[u8], regard: impl FnOnce(Members) -> Value) -> Value {
        self.entries(key).map_or_else(|error| error, regard)
    }
}

impl Entries for Members {
    fn of(content: &Content) -> Option<&Self> {
        if let Content::SortedSet(members) = content { Some(members) } else { None }
    }

    fn of_mut(content: &mut Content) -> Option<&mut Self> {
        if let Content::SortedSet(members) = content { Some(members) } else { None }
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn into_content(self) -> Content {
        Content::SortedSet(self)
    }
}

/// As text: the workload has none that is written with an exponent.
fn shown(score: Score) -> Value {
    Value::Bulk(score.get().to_string().into_bytes().into())
}

fn decimal(word: &[u8]) -> f64 {
    text(word).parse().expect("invariant: a number")
}

fn is_between(score: Score, low: &[u8], high: &[u8]) -> bool {
    let bound = |word: &[u8]| match word.strip_prefix(b"(") {
        Some(word) => Bound::Excluded(decimal(word)),
        None => Bound::Included(decimal(word)),
    };
    use std::ops::RangeBounds as _;
    (bound(low), bound(high)).contains(&score.get())
}
