//! Values, and commands on keys of any kind.

use std::rc::Rc;

use model::Nanos;

use super::lists::wrong_kind;
use super::{Asking, Content, Key, Keyspace, number, text, too_large};
use crate::redis_client::Value;

impl Keyspace {
    pub(super) fn set(
        &mut self,
        asking: Asking,
        key: &[u8],
        value: &[u8],
        options: &[&[u8]],
    ) -> Value {
        let has = |name: &[u8]| options.contains(&name);
        let old = has(b"GET").then(|| self.value(key, false));
        if old == Some(wrong_kind()) {
            return wrong_kind();
        }
        let is_there = self.keys.contains_key(text(key));
        if has(b"NX") && is_there || has(b"XX") && !is_there {
            return old.unwrap_or(Value::Nil);
        }
        let kept = self.keys.get(text(key)).and_then(|key| key.deadline);
        let option = |name: &[u8]| {
            let at = options.iter().position(|word| *word == name)?;
            options.get(at + 1).map(|word| number(word))
        };
        let span = option(b"PX").map(|it| asking.now + Nanos::from_millis(it.unsigned_abs()));
        let moment = option(b"PXAT").map(|millis| asking.moment(millis));
        let deadline = span.or(moment).or_else(|| kept.filter(|_| has(b"KEEPTTL")));
        let content = Content::Value(value.into());
        self.keys.insert(text(key).into(), Key { content, deadline });
        while moment.is_some() && self.pass(asking.now) {}
        old.unwrap_or_else(Value::ok)
    }

    pub(super) fn value(&mut self, key: &[u8], take: bool) -> Value {
        let value = match self.keys.get(text(key)).map(|key| &key.content) {
            None => return Value::Nil,
            Some(Content::Value(value)) => Value::Bulk(value.clone()),
            Some(_) => return wrong_kind(),
        };
        if take {
            self.keys.remove(text(key));
        }
        value
    }

    pub(super) fn value_until(&mut self, asking: Asking, key: &[u8], options: &[&[u8]]) -> Value {
        let value = self.value(key, false);
        if matches!(value, Value::Bulk(_)) {
            match options {
                [b"PERSIST"] => drop(self.persist(key)),
                [b"PX", millis] => drop(self.set_deadline(asking.now, key, number(millis))),
                [b"PXAT", millis] => {
                    drop(self.set_deadline_at(asking.now, key, asking.moment(number(millis))));
                }
                _ => {}
            }
        }
        value
    }

    /// The bytes of a value, empty if there is none; an error if it is of another kind.
    fn bytes(&self, key: &[u8]) -> Result<Option<Rc<[u8]>>, Value> {
        match self.keys.get(text(key)).map(|key| &key.content) {
            None => Ok(None),
            Some(Content::Value(value)) => Ok(Some(value.clone())),
            Some(_) => Err(wrong_kind()),
        }
    }

    /// The value is another one now, and keeps its deadline.
    fn edit(&mut self, key: &[u8], bytes: &[u8]) {
        let deadline = self.keys.get(text(key)).and_then(|key| key.deadline);
        let content = Content::Value(bytes.into());
        self.keys.insert(text(key).into(), Key { content, deadline });
    }

    pub(super) fn increase(&mut self, key: &[u8], more: i64) -> Value {
        let before = match self.bytes(key) {
            Err(error) => return error,
            Ok(bytes) => bytes.unwrap_or(b"0"[..].into()),
        };
        // In the one form that a number has.
        let number = std::str::from_utf8(&before).ok().and_then(|text| text.parse::<i64>().ok());
        let number = number.filter(|number| number.to_string().as_bytes() == &*before);
        match number.and_then(|number| number.checked_add(more)) {
            None => Value::error("ERR"),
            Some(sum) => {
                self.edit(key, sum.to_string().as_bytes());
                Value::Integer(sum)
            }
        }
    }

    pub(super) fn append(&mut self, key: &[u8], more: &[u8]) -> Value {
        let before = match self.bytes(key) {
            Err(error) => return error,
            Ok(bytes) => bytes.unwrap_or_default(),
        };
        let bytes = [&*before, more].concat();
        self.edit(key, &bytes);
        Value::count(bytes.len())
    }

    pub(super) fn set_bit(&mut self, key: &[u8], place: i64, bit: i64) -> Value {
        let mut bytes = match self.bytes(key) {
            Err(error) => return error,
            Ok(bytes) => bytes.unwrap_or_default().to_vec(),
        };
        let place = usize::try_from(place).expect("invariant: places are small");
        bytes.resize(bytes.len().max(place / 8 + 1), 0);
        let byte = bytes.get_mut(place / 8).expect("invariant: the value is long enough");
        let mask = 0x80 >> (place % 8);
        let before = *byte & mask != 0;
        *byte = if bit == 0 { *byte & !mask } else { *byte | mask };
        self.edit(key, &bytes);
        Value::Integer(i64::from(before))
    }

    pub(super) fn set_values(&mut self, pairs: &[&[u8]]) -> Value {
        for pair in pairs.chunks_exact(2) {
            let [key, value] = pair else { continue };
            let content = Content::Value((*value).into());
            self.keys.insert(text(key).into(), Key { content, deadline: None });
        }
        Value::ok()
    }

    pub(super) fn set_new_values(&mut self, pairs: &[&[u8]]) -> Value {
        if pairs.iter().step_by(2).any(|key| self.keys.contains_key(text(key))) {
            return Value::Integer(0);
        }
        self.set_values(pairs);
        Value::Integer(1)
    }

    pub(super) fn values(&self, keys: &[&[u8]]) -> Value {
        let value = |key: &&[u8]| match self.bytes(key) {
            Ok(Some(bytes)) => Value::Bulk(bytes),
            Ok(None) | Err(_) => Value::Nil,
        };
        let values: Vec<_> = keys.iter().map(value).collect();
        if self.answer.has_room_for_values(&values) { Value::Array(values) } else { too_large() }
    }

    pub(super) fn delete(&mut self, keys: &[&[u8]]) -> Value {
        let gone = keys.iter().filter(|key| self.keys.remove(text(key)).is_some());
        Value::count(gone.count())
    }

    pub(super) fn count(&self, keys: &[&[u8]]) -> Value {
        Value::count(keys.iter().filter(|key| self.keys.contains_key(text(key))).count())
    }

    pub(super) fn kind(&self, key: &[u8]) -> Value {
        let kind = match self.keys.get(text(key)).map(|key| &key.content) {
            None => "none",
            Some(Content::List(_)) => "list",
            Some(Content::Value(_)) => "string",
            Some(Content::Hash(_)) => "hash",
            Some(Content::Set(_)) => "set",
            Some(Content::SortedSet(_)) => "zset",
            Some(Content::Stream(_)) => "stream",
        };
        Value::Simple(kind.into())
    }

    pub(super) fn rename(&mut self, from: &[u8], to: &[u8]) -> Value {
        let Some(key) = self.keys.remove(text(from)) else { return Value::error("ERR") };
        self.keys.insert(text(to).into(), key);
        Value::ok()
    }

    pub(super) fn set_deadline(&mut self, now: Nanos, key: &[u8], millis: i64) -> Value {
        let at = now + Nanos::from_millis(u64::try_from(millis).unwrap_or(0));
        self.set_deadline_at(now, key, at)
    }

    /// When a key goes, in milliseconds since 1970 by a clock that is so many ahead.
    pub(super) fn deadline(&self, key: &[u8], ahead: i64) -> Value {
        match self.keys.get(text(key)).map(|key| key.deadline) {
            None => Value::Integer(-2),
            Some(None) => Value::Integer(-1),
            Some(Some(at)) => {
                let millis = i64::try_from(at.0 / 1_000_000).unwrap_or(i64::MAX);
                Value::Integer(millis + ahead)
            }
        }
    }

    pub(super) fn set_deadline_at(&mut self, now: Nanos, key: &[u8], at: Nanos) -> Value {
        let Some(key) = self.keys.get_mut(text(key)) else { return Value::Integer(0) };
        key.deadline = Some(at);
        while self.pass(now) {}
        Value::Integer(1)
    }

    pub(super) fn persist(&mut self, key: &[u8]) -> Value {
        let key = self.keys.get_mut(text(key));
        let had = key.is_some_and(|key| key.deadline.take().is_some());
        Value::Integer(i64::from(had))
    }

    pub(super) fn time_left(&self, now: Nanos, key: &[u8]) -> Value {
        match self.keys.get(text(key)).map(|key| key.deadline) {
            None => Value::Integer(-2),
            Some(None) => Value::Integer(-1),
            Some(Some(at)) => {
                let left = (at.0 - now.0) / 1_000_000;
                Value::About(i64::try_from(left).unwrap_or(i64::MAX))
            }
        }
    }

    pub(super) fn names(&self) -> Value {
        let names = self.keys.keys().map(|name| Value::Bulk(name.as_bytes().into()));
        Value::Array(names.collect())
    }
}
