//! Collections: hashes, sets and sorted sets as ordered maps.
//!
//! A collection is there while it holds something, as a list is.

use std::rc::Rc;

use model::Score;

use super::lists::wrong_kind;
use super::{Content, Key, Keyspace, Shape, number, text};
use crate::redis_client::{Value, brief};

/// Maps and sets that a collection is made of.
pub(super) trait Entries: Default {
    fn of(content: &Content) -> Option<&Self>;
    fn of_mut(content: &mut Content) -> Option<&mut Self>;
    fn is_empty(&self) -> bool;
    fn into_content(self) -> Content;
}

impl Keyspace {
    /// Performs a command on collections. `None`: it has to wait.
    ///
    /// # Panics
    /// When it is none that the model knows.
    pub(super) fn execute_on_collection(
        &mut self,
        name: &str,
        arguments: &[&[u8]],
    ) -> Option<Value> {
        Some(match (name, arguments) {
            ("HSET", [key, pairs @ ..]) => self.set_fields(key, pairs),
            ("HSETNX", [key, field, value]) => self.set_new_field(key, field, value),
            ("HDEL", [key, fields @ ..]) => self.remove_fields(key, fields),
            ("HINCRBY", [key, field, more]) => self.increase_field(key, field, number(more)),
            ("HGET", [key, field]) => self.field(key, field),
            ("HMGET", [key, fields @ ..]) => self.fields(key, fields),
            ("HGETALL", [key]) => self.all_fields(key),
            ("HLEN", [key]) => self.fields_count(key),
            ("SADD", [key, members @ ..]) => self.add_members(key, members),
            ("SREM", [key, members @ ..]) => self.remove_members(key, members),
            ("SISMEMBER", [key, member]) => self.has_member(key, member),
            ("SCARD", [key]) => self.members_count(key),
            ("SMEMBERS", [key]) => self.members(key),
            ("SRANDMEMBER" | "SPOP", [key, max]) => self.pick(key, number(max), name == "SPOP"),
            ("SMOVE", [from, to, member]) => self.move_member(from, to, member),
            ("ZADD", [key, words @ ..]) => self.set_scores(key, words),
            ("ZINCRBY", [key, more, member]) => self.set_scores(key, &[b"INCR", more, member]),
            ("ZREM", [key, members @ ..]) => self.remove_scored(key, members),
            ("ZSCORE", [key, member]) => self.score(key, member),
            ("ZCARD", [key]) => self.scored_count(key),
            ("ZRANGE", [key, first, last, b"WITHSCORES"]) => {
                self.ranks(key, number(first), number(last))
            }
            ("ZRANGEBYSCORE", [key, low, high, b"WITHSCORES"]) => self.scores(key, low, high),
            ("ZREMRANGEBYSCORE", [key, low, high]) => self.remove_scores(key, low, high),
            ("ZPOPMIN", [key, max]) => self.pop_least(key, number(max)),
            ("BZPOPMIN", [keys @ .., _]) => return self.pop_first_least(keys),
            ("ZUNIONSTORE", [to, _, keys @ ..]) => self.store_union(to, keys),
            ("ZRANGESTORE", [to, from, first, last]) => {
                self.store_ranks(to, from, number(first), number(last))
            }
            _ => panic!("the model does not know {name} {arguments:?}"),
        })
    }

    /// The collection of this name, empty if there is no key; an error if it is of another kind.
    pub(super) fn entries<E: Entries + Clone>(&self, key: &[u8]) -> Result<E, Value> {
        match self.keys.get(text(key)) {
            None => Ok(E::default()),
            Some(key) => E::of(&key.content).cloned().ok_or_else(wrong_kind),
        }
    }

    /// Changes the collection of this name, which is empty if there is no key, and keeps its
    /// deadline. It goes when it is empty then.
    pub(super) fn change<E: Entries>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut E) -> Value,
    ) -> Value {
        let new = || Key { content: E::default().into_content(), deadline: None };
        let there = self.keys.entry(text(key).into()).or_insert_with(new);
        let Some(entries) = E::of_mut(&mut there.content) else { return wrong_kind() };
        let value = change(entries);
        if entries.is_empty() {
            self.keys.remove(text(key));
        }
        value
    }

    /// Puts a collection in the place of any key; an empty one deletes that.
    pub(super) fn store(&mut self, key: &[u8], entries: impl Entries) {
        self.keys.remove(text(key));
        if !entries.is_empty() {
            let stored = Key { content: entries.into_content(), deadline: None };
            self.keys.insert(text(key).into(), stored);
        }
    }
}

impl Content {
    pub(super) fn shape(self) -> Shape {
        match self {
            Self::Value(value) => Shape::Value(value),
            Self::List(list) => {
                Shape::List(list.into_iter().map(|element| element.bytes).collect())
            }
            Self::Hash(fields) => Shape::Hash(fields.into_iter().collect()),
            Self::Set(members) => Shape::Set(members.into_iter().collect()),
            Self::SortedSet(members) => Shape::SortedSet(in_order(members)),
            Self::Stream(stream) => Shape::Stream(stream),
        }
    }
}

impl Shape {
    /// For a complaint: without the bytes of long elements.
    pub(super) fn summary(&self) -> String {
        let listed = |all: Vec<String>| format!("[{}]", all.join(", "));
        match self {
            Self::Value(value) => brief(value),
            Self::List(all) => listed(all.iter().map(|element| brief(element)).collect()),
            Self::Stream(stream) => format!("{stream:?}"),
            Self::Set(all) => format!("set {}", listed(all.iter().map(|it| brief(it)).collect())),
            Self::Hash(all) => {
                let pair = |(field, value): &(Rc<[u8]>, Rc<[u8]>)| {
                    format!("{}: {}", brief(field), brief(value))
                };
                listed(all.iter().map(pair).collect())
            }
            Self::SortedSet(all) => {
                let pair =
                    |(member, score): &(Rc<[u8]>, Score)| format!("{}: {score:?}", brief(member));
                listed(all.iter().map(pair).collect())
            }
        }
    }
}

/// Members in the order of score and member.
pub(crate) fn in_order(
    members: impl IntoIterator<Item = (Rc<[u8]>, Score)>,
) -> Vec<(Rc<[u8]>, Score)> {
    let mut all: Vec<_> = members.into_iter().collect();
    all.sort_by(|(one, score), (other, its)| {
        let scores = score.get().partial_cmp(&its.get()).expect("invariant: scores are numbers");
        scores.then_with(|| one.cmp(other))
    });
    all
}
