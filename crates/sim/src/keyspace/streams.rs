//! Streams with groups of consumers, as ordered maps.
//!
//! A stream is there until it is deleted, with entries or without.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use model::limits::BESIDE_ELEMENT_BYTES;

use super::lists::wrong_kind;
use super::{Content, Key, Keyspace, number, text, too_large};
use crate::redis_client::Value;

/// The id of an entry.
pub type EntryId = (u64, u64);

/// A stream as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamShape {
    /// Fields and values in turns.
    pub entries: BTreeMap<EntryId, Vec<Rc<[u8]>>>,
    /// The greatest id that it has had.
    pub last: EntryId,
    /// Its groups.
    pub groups: BTreeMap<Rc<[u8]>, GroupShape>,
}

/// A group of a stream as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupShape {
    /// The last entry that it has read.
    pub last: EntryId,
    /// Its consumers.
    pub consumers: BTreeSet<Rc<[u8]>>,
    /// What is pending, with whom, and how many times it was delivered.
    pub pending: BTreeMap<EntryId, (Rc<[u8]>, u64)>,
}

impl Keyspace {
    /// Performs a command on streams; nothing if it is none.
    pub(super) fn execute_on_stream(&mut self, name: &str, arguments: &[&[u8]]) -> Option<Value> {
        Some(match (name, arguments) {
            ("XADD", [key, b"MAXLEN", max, id, fields @ ..]) => {
                self.add_entry(key, id, fields, Some(number(max)))
            }
            ("XADD", [key, id, fields @ ..]) => self.add_entry(key, id, fields, None),
            ("XTRIM", [key, b"MAXLEN", max]) => self.see_stream(key, |stream| {
                Value::count(stream.map_or(0, |stream| stream.keep_last(number(max))))
            }),
            ("XLEN", [key]) => self.see_stream(key, |stream| {
                Value::count(stream.map_or(0, |stream| stream.entries.len()))
            }),
            ("XRANGE", [key, b"-", b"+"]) => self.all_entries(key),
            ("XGROUP", [b"CREATE", key, group, b"0", b"MKSTREAM"]) => self.create_group(key, group),
            ("XGROUP", [b"DESTROY", key, group]) => self.see_stream(key, |stream| match stream {
                Some(stream) => Value::count(usize::from(stream.groups.remove(*group).is_some())),
                None => Value::error("ERR"),
            }),
            ("XREADGROUP", [_, group, consumer, _, max, _, key, place]) => {
                self.read_group(key, group, consumer, number(max) as usize, *place == b">")
            }
            ("XACK", [key, group, ids @ ..]) => self.see_stream(key, |stream| {
                let group = stream.and_then(|stream| stream.groups.get_mut(*group));
                let acknowledged = group.map_or(0, |group| {
                    ids.iter().filter(|id| group.pending.remove(&id_of(id)).is_some()).count()
                });
                Value::count(acknowledged)
            }),
            ("XPENDING", [key, group]) => self.count_pending(key, group),
            ("XAUTOCLAIM", [key, group, consumer, b"0", b"0", b"COUNT", b"1", b"JUSTID"]) => {
                self.claim_one(key, group, consumer)
            }
            _ => return None,
        })
    }

    fn see_stream(
        &mut self,
        key: &[u8],
        see: impl FnOnce(Option<&mut StreamShape>) -> Value,
    ) -> Value {
        match self.keys.get_mut(text(key)).map(|key| &mut key.content) {
            None => see(None),
            Some(Content::Stream(stream)) => see(Some(stream)),
            Some(_) => wrong_kind(),
        }
    }

    fn see_group(
        &mut self,
        key: &[u8],
        group: &[u8],
        see: impl FnOnce(&mut BTreeMap<EntryId, Vec<Rc<[u8]>>>, &mut GroupShape) -> Value,
    ) -> Value {
        self.see_stream(key, |stream| {
            let found = stream.and_then(|stream| {
                let group = stream.groups.get_mut(group)?;
                Some((&mut stream.entries, group))
            });
            found.map_or_else(|| Value::error("NOGROUP"), |(entries, group)| see(entries, group))
        })
    }

    fn new_stream(&mut self, key: &[u8], stream: StreamShape) {
        let new = Key { content: Content::Stream(stream), deadline: None };
        self.keys.insert(text(key).into(), new);
    }

    fn add_entry(&mut self, key: &[u8], id: &[u8], fields: &[&[u8]], max: Option<i64>) -> Value {
        let millis = id.strip_suffix(b"-*").map(|millis| number(millis) as u64);
        let millis = millis.expect("invariant: clients name the millisecond");
        let fields: Vec<Rc<[u8]>> = fields.iter().map(|field| (*field).into()).collect();
        let add = |stream: &mut StreamShape| {
            let next = if stream.last.0 == millis { stream.last.1 + 1 } else { 0 };
            let id = (millis, next);
            if id <= stream.last {
                return Value::error("ERR");
            }
            stream.last = id;
            stream.entries.insert(id, fields);
            if let Some(max) = max {
                stream.keep_last(max);
            }
            told(id)
        };
        let mut stream = StreamShape::default();
        if self.keys.contains_key(text(key)) {
            return self.see_stream(key, |stream| stream.map_or(Value::Nil, add));
        }
        let value = add(&mut stream);
        if matches!(value, Value::Bulk(_)) {
            self.new_stream(key, stream);
        }
        value
    }

    fn all_entries(&mut self, key: &[u8]) -> Value {
        let left = self.answer.left();
        self.see_stream(key, |stream| {
            let entries = stream.map(|stream| &stream.entries);
            let shown = entries.into_iter().flatten();
            let cost: usize = shown.clone().map(|(_, fields)| cost(fields)).sum();
            if cost > left {
                return too_large();
            }
            Value::Array(shown.map(|(id, fields)| shown_entry(*id, Some(fields))).collect())
        })
    }

    fn create_group(&mut self, key: &[u8], group: &[u8]) -> Value {
        if !self.keys.contains_key(text(key)) {
            self.new_stream(key, StreamShape::default());
        }
        self.see_stream(key, |stream| {
            let Some(stream) = stream else { return Value::Nil };
            if stream.groups.contains_key(group) {
                return Value::error("BUSYGROUP");
            }
            stream.groups.insert(group.into(), GroupShape::default());
            Value::ok()
        })
    }

    fn read_group(
        &mut self,
        key: &[u8],
        group: &[u8],
        consumer: &[u8],
        max: usize,
        is_new: bool,
    ) -> Value {
        let mut left = self.answer.left();
        let mut takes = |cost: usize| {
            let fits = cost <= left;
            left -= if fits { cost } else { 0 };
            fits
        };
        let name: Rc<[u8]> = key.into();
        self.see_group(key, group, |entries, group| {
            let consumer: Rc<[u8]> = consumer.into();
            let wanted: Vec<EntryId> = if is_new {
                entries.keys().filter(|id| **id > group.last).take(max).copied().collect()
            } else {
                let its = |(id, (with, _)): (&EntryId, &(Rc<[u8]>, u64))| {
                    (*with == consumer).then_some(*id)
                };
                group.pending.iter().filter_map(its).take(max).collect()
            };
            let fits = |id: &EntryId| takes(entries.get(id).map_or(GONE_COST, |it| cost(it)));
            let found: Vec<EntryId> = wanted.iter().copied().take_while(fits).collect();
            if found.is_empty() && !wanted.is_empty() {
                return too_large();
            }
            group.consumers.insert(consumer.clone());
            if is_new && found.is_empty() {
                return Value::Nil;
            }
            for id in &found {
                let count = group.pending.get(id).map_or(0, |(_, count)| *count);
                let is_there = entries.contains_key(id);
                let count = if is_new { 1 } else { count + u64::from(is_there) };
                group.pending.insert(*id, (consumer.clone(), count));
            }
            if is_new {
                group.last = found.last().copied().unwrap_or(group.last);
            }
            let shown = |id: &EntryId| shown_entry(*id, entries.get(id));
            let shown = Value::Array(found.iter().map(shown).collect());
            Value::Array(vec![Value::Array(vec![Value::Bulk(name), shown])])
        })
    }

    fn count_pending(&mut self, key: &[u8], group: &[u8]) -> Value {
        let left = self.answer.left();
        self.see_group(key, group, |_, group| {
            let pending = &group.pending;
            let ends = pending.keys().next().zip(pending.keys().next_back());
            let Some((first, last)) = ends else {
                return Value::Array(vec![Value::Integer(0), Value::Nil, Value::Nil, Value::Nil]);
            };
            let counted = group.consumers.iter().filter_map(|name| {
                let count = pending.values().filter(|(with, _)| with == name).count();
                let count = (count > 0).then(|| count.to_string().into_bytes().into())?;
                Some(Value::Array(vec![Value::Bulk(name.clone()), Value::Bulk(count)]))
            });
            let counted: Vec<Value> = counted.collect();
            let names = group
                .consumers
                .iter()
                .filter(|name| pending.values().any(|(with, _)| with == *name));
            let cost = names.map(|name| name.len() + 2 * BESIDE_ELEMENT_BYTES).sum::<usize>();
            if cost > left {
                return too_large();
            }
            let counts = [Value::count(pending.len()), told(*first), told(*last)];
            Value::Array(counts.into_iter().chain([Value::Array(counted)]).collect())
        })
    }

    /// The first pending entry goes to this consumer, or goes if it is no more in the stream.
    fn claim_one(&mut self, key: &[u8], group: &[u8], consumer: &[u8]) -> Value {
        let left = self.answer.left();
        self.see_group(key, group, |entries, group| {
            let mut ids = group.pending.keys().copied();
            let (first, next) = (ids.next(), ids.next());
            let taken = first.filter(|id| entries.contains_key(id));
            if taken.is_some() && left < GONE_COST {
                return too_large();
            }
            let consumer: Rc<[u8]> = consumer.into();
            group.consumers.insert(consumer.clone());
            let removed = first.filter(|_| taken.is_none());
            if let Some(id) = removed {
                group.pending.remove(&id);
            }
            if let Some(pending) = taken.and_then(|id| group.pending.get_mut(&id)) {
                pending.0 = consumer;
            }
            let all = |id: Option<EntryId>| Value::Array(id.map(told).into_iter().collect());
            Value::Array(vec![told(next.unwrap_or_default()), all(taken), all(removed)])
        })
    }
}

impl StreamShape {
    /// The first entries leave; says how many.
    fn keep_last(&mut self, max: i64) -> usize {
        let gone = self.entries.len().saturating_sub(usize::try_from(max).unwrap_or(0));
        (0..gone).for_each(|_| drop(self.entries.pop_first()));
        gone
    }
}

/// Bytes that an answer with streams shows.
pub(super) fn shown_bytes(name: &str, value: &Value) -> usize {
    let (Value::Array(all), name) = (value, name) else { return 0 };
    match name {
        "XRANGE" => all.iter().map(entry_bytes).sum(),
        "XREADGROUP" => {
            let entries = all.iter().flat_map(|stream| match stream {
                Value::Array(pair) => pair.get(1).map(array).unwrap_or_default(),
                _ => &[],
            });
            entries.map(entry_bytes).sum()
        }
        "XAUTOCLAIM" => all.get(1).map_or(0, |ids| array(ids).len() * GONE_COST),
        "XPENDING" => {
            let consumers = all.get(3).map(array).unwrap_or_default();
            let name = |pair: &Value| match array(pair).first() {
                Some(Value::Bulk(name)) => name.len() + 8 * BESIDE_ELEMENT_BYTES,
                _ => 0,
            };
            consumers.iter().map(name).sum()
        }
        _ => 0,
    }
}

fn array(value: &Value) -> &[Value] {
    if let Value::Array(all) = value { all } else { &[] }
}

fn entry_bytes(entry: &Value) -> usize {
    let texts = array(entry).get(1).map(array).unwrap_or_default();
    let bytes = texts.iter().map(|text| match text {
        Value::Bulk(text) => text.len(),
        _ => 0,
    });
    bytes.sum::<usize>() + (2 + texts.len()) * BESIDE_ELEMENT_BYTES
}

/// Bytes for which an entry counts before it is shown: each text is behind its length.
fn cost(fields: &[Rc<[u8]>]) -> usize {
    let length = |text: &Rc<[u8]>| text.len() + if text.len() < 128 { 1 } else { 2 };
    fields.iter().map(length).sum::<usize>() + (2 + fields.len()) * BESIDE_ELEMENT_BYTES
}

/// The same of one that is no more in the stream, or of an id alone.
const GONE_COST: usize = 2 * BESIDE_ELEMENT_BYTES;

fn shown_entry(id: EntryId, fields: Option<&Vec<Rc<[u8]>>>) -> Value {
    let fields = fields.map(|fields| fields.iter().cloned().map(Value::Bulk).collect());
    Value::Array(vec![told(id), fields.map_or(Value::Nil, Value::Array)])
}

fn told((millis, sequence): EntryId) -> Value {
    Value::Bulk(format!("{millis}-{sequence}").into_bytes().into())
}

fn id_of(word: &[u8]) -> EntryId {
    let (millis, sequence) = text(word).split_once('-').expect("invariant: an id is whole");
    (number(millis.as_bytes()) as u64, number(sequence.as_bytes()) as u64)
}
