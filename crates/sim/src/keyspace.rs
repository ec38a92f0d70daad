//! A naive model of the effects of Redis' commands on keys: a vector for each list, linear
//! searches.
//!
//! Lists lie as Redis shows them, the left end first. The model takes a command and returns the
//! answer that it must get. It also holds popped elements of a protected list until they are
//! settled. It knows nothing of waiting clients, nor of the losses of a crash.

mod ages;
mod answering;
mod collections;
mod hashes;
mod lists;
mod scored_sets;
mod sets;
mod streams;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use model::{Nanos, Score};

use crate::redis_client::{Value, Words};
pub(crate) use ages::{Ages, dead_letter};
use answering::Answer;
pub(crate) use answering::too_large;
pub(crate) use collections::in_order;
use lists::Side;
pub use streams::{EntryId, GroupShape, StreamShape};

/// Everything that is found by a name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keyspace {
    keys: BTreeMap<Rc<str>, Key>,
    held: Vec<Held>,
    /// How many elements there ever were.
    born: u64,
    /// How many ages were given.
    aged: u64,
    /// The outermost places that elements were given: they lie in the order of these.
    outermost: (i64, i64),
    answer: Answer,
}

/// The value, list or collection of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    content: Content,
    deadline: Option<Nanos>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    List(Vec<Element>),
    Value(Rc<[u8]>),
    Hash(BTreeMap<Rc<[u8]>, Rc<[u8]>>),
    Set(BTreeSet<Rc<[u8]>>),
    SortedSet(BTreeMap<Rc<[u8]>, Score>),
    Stream(StreamShape),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Element {
    /// Its number among all that there ever were.
    number: u64,
    /// Which came first: it keeps that wherever it is moved.
    age: u64,
    place: i64,
    bytes: Rc<[u8]>,
}

/// An element that was popped from a protected list.
#[derive(Clone, Debug)]
struct Held {
    client: u64,
    until: Nanos,
    name: Rc<str>,
    element: Element,
}

/// The keys that a recovered broker shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture(pub BTreeMap<Rc<str>, KeySnapshot>);

/// One key that it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySnapshot {
    /// A list, a value or a collection.
    pub content: Shape,
    /// When it goes.
    pub deadline: Option<Nanos>,
}

/// A field and its value.
pub type Pair = (Rc<[u8]>, Rc<[u8]>);

/// The content of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The left end first.
    List(Vec<Rc<[u8]>>),
    /// A small value.
    Value(Rc<[u8]>),
    /// Fields with values, in the order of their bytes.
    Hash(Vec<Pair>),
    /// Members, in the order of their bytes.
    Set(Vec<Rc<[u8]>>),
    /// Members with scores, in the order of score and member.
    SortedSet(Vec<(Rc<[u8]>, Score)>),
    /// Entries and groups.
    Stream(StreamShape),
}

/// The client that gives a command, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking {
    pub(crate) now: Nanos,
    /// Milliseconds by which the machine's clock is ahead of that.
    pub(crate) ahead: i64,
    pub(crate) client: u64,
}

impl Asking {
    /// So many milliseconds since 1970 by the machine's clock, by the broker's.
    pub(crate) fn moment(self, millis: i64) -> Nanos {
        Nanos::from_millis(u64::try_from(millis - self.ahead).unwrap_or(0))
    }
}

impl Keyspace {
    /// Performs a command. `None`: it has to wait.
    ///
    /// # Panics
    /// When it is none that the model knows.
    pub(crate) fn execute(&mut self, asking: Asking, words: &Words) -> Option<Value> {
        let words: Vec<&[u8]> = words.iter().map(|word| &**word).collect();
        let (name, arguments) = words.split_first().expect("invariant: a command has a name");
        let (name, now) = (std::str::from_utf8(name).unwrap_or_default(), asking.now);
        if self.answer.is_too_late_for(name, arguments) {
            return Some(too_large());
        }
        let value = match (name, arguments) {
            ("LPUSH", [key, all @ ..]) => self.push(key, Side::Left, all, false),
            ("RPUSH", [key, all @ ..]) => self.push(key, Side::Right, all, false),
            ("LPUSHX", [key, all @ ..]) => self.push(key, Side::Left, all, true),
            ("RPUSHX", [key, all @ ..]) => self.push(key, Side::Right, all, true),
            ("LPOP", [key, max @ ..]) => self.pop(asking, key, Side::Left, max),
            ("RPOP", [key, max @ ..]) => self.pop(asking, key, Side::Right, max),
            ("BLPOP", [keys @ .., _]) => self.pop_first(asking, keys, Side::Left)?,
            ("BRPOP", [keys @ .., _]) => self.pop_first(asking, keys, Side::Right)?,
            ("LMOVE", [from, to, a, b]) => {
                self.relocate(from, to, Side::of(a), Side::of(b)).unwrap_or(Value::Nil)
            }
            ("BLMOVE", [from, to, a, b, _]) => self.relocate(from, to, Side::of(a), Side::of(b))?,
            ("LLEN", [key]) => self.length(key),
            ("LRANGE", [key, first, last]) => self.range(key, number(first), number(last)),
            ("LINDEX", [key, at]) => self.at(key, number(at)),
            ("LSET", [key, at, element]) => self.replace(key, number(at), element),
            ("LINSERT", [key, side, pivot, element]) => self.insert(key, side, pivot, element),
            ("LREM", [key, count, element]) => self.remove(key, number(count), element),
            ("LTRIM", [key, first, last]) => self.trim(key, number(first), number(last)),
            ("LPOS", [key, element, b"COUNT", b"0"]) => self.locate(key, element),
            ("SET", [key, value, options @ ..]) => self.set(asking, key, value, options),
            ("GET", [key]) => self.value(key, false),
            ("GETDEL", [key]) => self.value(key, true),
            ("GETEX", [key, options @ ..]) => self.value_until(asking, key, options),
            ("INCRBY", [key, more]) => self.increase(key, number(more)),
            ("APPEND", [key, more]) => self.append(key, more),
            ("SETBIT", [key, place, bit]) => self.set_bit(key, number(place), number(bit)),
            ("MSET", pairs) => self.set_values(pairs),
            ("MSETNX", pairs) => self.set_new_values(pairs),
            ("MGET", keys) => self.values(keys),
            ("DEL", keys) => self.delete(keys),
            ("EXISTS", keys) => self.count(keys),
            ("TYPE", [key]) => self.kind(key),
            ("RENAME", [from, to]) => self.rename(from, to),
            ("PEXPIRE", [key, millis]) => self.set_deadline(now, key, number(millis)),
            ("PEXPIREAT", [key, millis]) => {
                self.set_deadline_at(now, key, asking.moment(number(millis)))
            }
            ("PEXPIRETIME", [key]) => self.deadline(key, asking.ahead),
            ("PERSIST", [key]) => self.persist(key),
            ("PTTL", [key]) => self.time_left(now, key),
            ("DBSIZE", []) => Value::count(self.keys.len()),
            ("KEYS", [b"*"]) => self.names(),
            ("PING", []) => Value::Simple("PONG".into()),
            _ => match self.execute_on_stream(name, arguments) {
                Some(value) => value,
                None => self.execute_on_collection(name, arguments)?,
            },
        };
        self.answer.add(name, arguments, &value);
        Some(value)
    }

    /// The next command is answered for itself, and not together with those before.
    pub(crate) fn answer_anew(&mut self) {
        self.answer.start_anew();
    }

    /// True if a command may be refused, for it compares more elements than may be brought back
    /// into memory at once.
    pub(crate) fn may_refuse_to_compare(&self, words: &Words) -> bool {
        let [name, key, ..] = &**words else { return false };
        let compares = matches!(&**name, b"LREM" | b"LPOS" | b"LINSERT");
        compares && !self.may_show_all(key)
    }

    /// True if an answer has room for the element or member that a command takes from this key.
    pub(crate) fn shows_end(&self, key: &[u8], words: &Words) -> bool {
        let side = match words.iter().map(|word| &**word).collect::<Vec<_>>()[..] {
            [b"BZPOPMIN", ..] => return self.may_show_least(key),
            [b"BRPOP", ..] => Side::Right,
            [b"BLMOVE", _, _, from, ..] => Side::of(from),
            _ => Side::Left,
        };
        self.may_show_end(key, side)
    }

    /// No answer shows more than that.
    pub(crate) fn answers_with(&mut self, bytes_max: usize) {
        self.answer = Answer::of(bytes_max);
    }

    /// The next thing that is due by now happens: a key goes, or an element is taken for good that
    /// was popped so long ago. False: nothing is due.
    pub(crate) fn pass(&mut self, now: Nanos) -> bool {
        let over = |(name, key): (&Rc<str>, &Key)| Some((key.deadline?, name.clone()));
        let over = self.keys.iter().filter_map(over).min().filter(|(at, _)| *at <= now);
        let taken = self.held.iter().map(|held| (held.until, held.element.number)).min();
        let taken = taken.filter(|(until, _)| *until <= now);
        if let Some((until, number)) = taken
            && over.as_ref().is_none_or(|(at, _)| until <= *at)
        {
            self.held.retain(|held| held.element.number != number);
            return true;
        }
        over.is_some_and(|(_, name)| self.keys.remove(&name).is_some())
    }

    /// Elements that this client popped are taken for good.
    pub(crate) fn settle(&mut self, client: u64) {
        self.held.retain(|held| held.client != client);
    }

    /// Elements that this client popped and that are not taken for good are back in their places.
    pub(crate) fn give_back(&mut self, client: u64) {
        let (back, held) = self.held.drain(..).partition(|held| held.client == client);
        self.held = held;
        for Held { name, element, .. } in back {
            self.put_back(&name, element);
        }
    }

    /// How many elements there ever were.
    pub(crate) const fn born(&self) -> u64 {
        self.born
    }

    /// The numbers of the elements that this client popped and that are held for it.
    pub(crate) fn held_by(&self, client: u64) -> impl Iterator<Item = u64> {
        let held = self.held.iter().filter(move |held| held.client == client);
        held.map(|held| held.element.number)
    }

    /// The keys that a broker shows that recovers now: no client holds anything then.
    pub(crate) fn picture(&self) -> Picture {
        let mut all = self.clone();
        for Held { name, element, .. } in std::mem::take(&mut all.held) {
            all.put_back(&name, element);
        }
        let shown = |(name, key): (Rc<str>, Key)| {
            (name, KeySnapshot { content: key.content.shape(), deadline: key.deadline })
        };
        Picture(all.keys.into_iter().map(shown).collect())
    }

    /// The keys as clients see them, without their deadlines.
    pub(crate) fn visible(&self) -> Picture {
        let mut all = self.clone();
        all.held.clear();
        all.keys.values_mut().for_each(|key| key.deadline = None);
        all.picture()
    }

    /// The keys after a recovery.
    pub(crate) fn restored(&self, picture: &Picture) -> Self {
        let mut keyspace = Self { answer: self.answer.clone(), ..Self::default() };
        for (name, KeySnapshot { content, deadline }) in &picture.0 {
            let content = match content {
                Shape::List(list) => {
                    Content::List(list.iter().map(|bytes| keyspace.element(bytes)).collect())
                }
                Shape::Value(value) => Content::Value(value.clone()),
                Shape::Hash(fields) => Content::Hash(fields.iter().cloned().collect()),
                Shape::Set(members) => Content::Set(members.iter().cloned().collect()),
                Shape::SortedSet(all) => Content::SortedSet(all.iter().cloned().collect()),
                Shape::Stream(stream) => Content::Stream(stream.clone()),
            };
            keyspace.keys.insert(name.clone(), Key { content, deadline: *deadline });
        }
        keyspace
    }

    /// True if a sorted set of this name has members.
    pub(crate) fn is_sorted_set(&self, name: &[u8]) -> bool {
        let key = self.keys.get(text(name));
        key.is_some_and(|key| matches!(key.content, Content::SortedSet(_)))
    }

    /// True if a list of this name has elements.
    pub(crate) fn is_list(&self, name: &[u8]) -> bool {
        let key = self.keys.get(text(name));
        key.is_some_and(|key| matches!(key.content, Content::List(_)))
    }

    /// How many elements the list of this name has.
    pub(crate) fn list_len(&self, name: &[u8]) -> usize {
        match self.keys.get(text(name)).map(|key| &key.content) {
            Some(Content::List(list)) => list.len(),
            _ => 0,
        }
    }

    fn put_back(&mut self, name: &str, element: Element) {
        let list = self.list_mut(name.as_bytes()).expect("invariant: no value is protected");
        let at = list.partition_point(|other| other.place < element.place);
        list.insert(at, element);
    }
}

impl Picture {
    /// Without keys past their deadline.
    pub(crate) fn at(&self, now: Nanos) -> Self {
        let lives =
            |(_, shown): &(&Rc<str>, &KeySnapshot)| shown.deadline.is_none_or(|at| at > now);
        let all = self.0.iter().filter(lives);
        Self(all.map(|(name, shown)| (name.clone(), shown.clone())).collect())
    }

    /// The names under which two differ.
    pub(crate) fn differences(&self, other: &Self) -> Vec<Rc<str>> {
        let names = self.0.keys().chain(other.0.keys());
        let mut all: Vec<_> =
            names.filter(|name| self.0.get(*name) != other.0.get(*name)).cloned().collect();
        all.sort();
        all.dedup();
        all
    }
}

impl KeySnapshot {
    /// For a complaint: without the bytes of long elements.
    pub(crate) fn summary(&self) -> String {
        let until = self.deadline.map(|at| format!(" until {at}"));
        self.content.summary() + &until.unwrap_or_default()
    }
}

/// A name.
pub(crate) fn text(word: &[u8]) -> &str {
    std::str::from_utf8(word).expect("invariant: names are text")
}

pub(crate) fn number(word: &[u8]) -> i64 {
    text(word).parse().expect("invariant: a number")
}

/// How long an element popped from a protected list is held.
pub(crate) const POP_LEASE: Nanos = Nanos::from_secs(2);

/// True if an element popped from this list is held until the next command.
pub(crate) fn is_protected(name: &str) -> bool {
    name.starts_with('p')
}

#[cfg(test)]
#[path = "keyspace_test.rs"]
mod tests;
