//! Lists as vectors.

use std::rc::Rc;

use super::answering::too_large;
use super::{Asking, Content, Element, Held, Key, Keyspace, POP_LEASE, is_protected, number, text};
use crate::redis_client::Value;

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

impl Side {
    pub(super) fn of(word: &[u8]) -> Self {
        if word == b"LEFT" { Self::Left } else { Self::Right }
    }
}

impl Keyspace {
    pub(super) fn push(&mut self, key: &[u8], side: Side, all: &[&[u8]], only: bool) -> Value {
        if only && !self.keys.contains_key(text(key)) {
            return Value::Integer(0);
        }
        if self.is_no_list(key) {
            return wrong_kind();
        }
        all.iter().for_each(|bytes| self.add(key, side, &Rc::from(*bytes)));
        self.length(key)
    }

    pub(super) fn pop(&mut self, asking: Asking, key: &[u8], side: Side, max: &[&[u8]]) -> Value {
        if self.is_no_list(key) {
            return wrong_kind();
        }
        if !self.is_list(key) {
            return Value::Nil;
        }
        let max = max.first().map(|max| number(max));
        if max != Some(0) && !self.may_show_end(key, side) {
            return too_large();
        }
        let Some(max) = max else { return bulk(self.take(asking, key, side)) };
        let mut taken = Vec::new();
        while taken.len() < usize::try_from(max).unwrap_or(0)
            && let Some(next) = self.end_of(key, side)
            && self.answer.has_room_for(taken.iter().map(|it: &Rc<[u8]>| &**it).chain([next]))
        {
            taken.extend(self.take(asking, key, side));
        }
        Value::Array(taken.into_iter().map(Value::Bulk).collect())
    }

    pub(super) fn pop_first(
        &mut self,
        asking: Asking,
        keys: &[&[u8]],
        side: Side,
    ) -> Option<Value> {
        let key = keys.iter().find(|key| self.keys.contains_key(text(key)))?;
        if self.is_no_list(key) {
            return Some(wrong_kind());
        }
        if !self.may_show_end(key, side) {
            return Some(too_large());
        }
        let element = self.take(asking, key, side)?;
        Some(Value::Array(vec![Value::Bulk((*key).into()), Value::Bulk(element)]))
    }

    /// A moved element is not held.
    pub(super) fn relocate(&mut self, from: &[u8], to: &[u8], a: Side, b: Side) -> Option<Value> {
        if self.is_no_list(from) {
            return Some(wrong_kind());
        }
        if !self.is_list(from) {
            return None;
        }
        if self.is_no_list(to) {
            return Some(wrong_kind());
        }
        if !self.may_show_end(from, a) {
            return Some(too_large());
        }
        let element = self.remove_end(from, a)?;
        // The list that it is put back into keeps its deadline, though it was the last one.
        if from == to {
            self.add_moved(to, b, &element);
            self.forget_if_empty(from);
        } else {
            self.forget_if_empty(from);
            self.add_moved(to, b, &element);
        }
        Some(Value::Bulk(element.bytes))
    }

    pub(super) fn length(&self, key: &[u8]) -> Value {
        self.read(key, Value::Integer(0), |list| Value::count(list.len()))
    }

    pub(super) fn range(&self, key: &[u8], first: i64, last: i64) -> Value {
        self.read(key, Value::Array(Vec::new()), |list| {
            let shown = list.get(places(list.len(), first, last)).unwrap_or_default();
            if !self.answer.has_room_for(shown.iter().map(|element| &*element.bytes)) {
                return too_large();
            }
            Value::Array(shown.iter().map(|element| Value::Bulk(element.bytes.clone())).collect())
        })
    }

    pub(super) fn at(&self, key: &[u8], at: i64) -> Value {
        self.read(key, Value::Nil, |list| {
            let element = place(list.len(), at).and_then(|at| list.get(at));
            if !self.answer.has_room_for(element.iter().map(|element| &*element.bytes)) {
                return too_large();
            }
            bulk(element.map(|element| element.bytes.clone()))
        })
    }

    pub(super) fn locate(&self, key: &[u8], wanted: &[u8]) -> Value {
        self.read(key, Value::Array(Vec::new()), |list| {
            let found = list.iter().enumerate().filter(|(_, element)| *element.bytes == *wanted);
            Value::Array(found.map(|(at, _)| Value::count(at)).collect())
        })
    }

    pub(super) fn replace(&mut self, key: &[u8], at: i64, bytes: &[u8]) -> Value {
        if self.is_no_list(key) {
            return wrong_kind();
        }
        if !self.is_list(key) {
            return Value::error("ERR");
        }
        let list = self.list_mut(key).expect("invariant: it is there");
        let place = place(list.len(), at).and_then(|at| list.get_mut(at));
        let Some(element) = place else { return Value::error("ERR") };
        let number = element.number;
        element.bytes = bytes.into();
        self.aged += 1;
        let age = self.aged;
        let list = self.list_mut(key).expect("invariant: it is there");
        list.iter_mut().filter(|it| it.number == number).for_each(|it| it.age = age);
        Value::ok()
    }

    pub(super) fn insert(&mut self, key: &[u8], side: &[u8], pivot: &[u8], new: &[u8]) -> Value {
        if self.is_no_list(key) {
            return wrong_kind();
        }
        if !self.is_list(key) {
            return Value::Integer(0);
        }
        let list = self.list_mut(key).expect("invariant: it is there");
        let Some(at) = list.iter().position(|element| *element.bytes == *pivot) else {
            return Value::Integer(-1);
        };
        // The same place as a neighbour's: in lists where this is done nothing is ever put back.
        let place = list.get(at).map_or(0, |element| element.place);
        let at = if side == b"BEFORE" { at } else { at + 1 };
        let element = Element { place, ..self.element(&Rc::from(new)) };
        self.list_mut(key).expect("invariant: it is there").insert(at, element);
        self.length(key)
    }

    pub(super) fn remove(&mut self, key: &[u8], count: i64, wanted: &[u8]) -> Value {
        if self.is_no_list(key) {
            return wrong_kind();
        }
        if !self.is_list(key) {
            return Value::Integer(0);
        }
        let list = self.list_mut(key).expect("invariant: it is there");
        let is_wanted = |at: &usize| list.get(*at).is_some_and(|it| *it.bytes == *wanted);
        let mut found: Vec<usize> = (0..list.len()).filter(is_wanted).collect();
        if count < 0 {
            found.reverse();
        }
        if count != 0 {
            found.truncate(usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX));
        }
        found.sort_unstable();
        found.iter().rev().for_each(|at| drop(list.remove(*at)));
        self.forget_if_empty(key);
        Value::count(found.len())
    }

    pub(super) fn trim(&mut self, key: &[u8], first: i64, last: i64) -> Value {
        if self.is_no_list(key) {
            return wrong_kind();
        }
        if self.is_list(key) {
            let list = self.list_mut(key).expect("invariant: it is there");
            *list = list.get(places(list.len(), first, last)).unwrap_or_default().to_vec();
            self.forget_if_empty(key);
        }
        Value::ok()
    }

    /// The list of that name, made where there is nothing; `None`: it is of another kind.
    pub(super) fn list_mut(&mut self, key: &[u8]) -> Option<&mut Vec<Element>> {
        let new = || Key { content: Content::List(Vec::new()), deadline: None };
        let key = self.keys.entry(text(key).into()).or_insert_with(new);
        match &mut key.content {
            Content::List(list) => Some(list),
            _ => None,
        }
    }

    /// A new element, farther right than any was.
    pub(super) fn element(&mut self, bytes: &Rc<[u8]>) -> Element {
        self.outermost.1 += 1;
        self.born += 1;
        self.aged += 1;
        let (number, age, place) = (self.born, self.aged, self.outermost.1);
        Element { number, age, place, bytes: bytes.clone() }
    }

    /// True if it is there, and of another kind.
    pub(super) fn is_no_list(&self, key: &[u8]) -> bool {
        let key = self.keys.get(text(key));
        key.is_some_and(|key| !matches!(key.content, Content::List(_)))
    }

    fn add(&mut self, key: &[u8], side: Side, bytes: &Rc<[u8]>) {
        let element = self.element(bytes);
        self.add_element(key, side, element);
    }

    /// It is another element now, but as old as it was.
    fn add_moved(&mut self, key: &[u8], side: Side, moved: &Element) {
        let element = Element { age: moved.age, ..self.element(&moved.bytes) };
        self.add_element(key, side, element);
    }

    fn add_element(&mut self, key: &[u8], side: Side, mut element: Element) {
        if side == Side::Left {
            self.outermost.0 -= 1;
            element.place = self.outermost.0;
        }
        let list = self.list_mut(key).expect("invariant: the caller looked");
        let at = if side == Side::Left { 0 } else { list.len() };
        list.insert(at, element);
    }

    fn take(&mut self, asking: Asking, key: &[u8], side: Side) -> Option<Rc<[u8]>> {
        let element = self.remove_end(key, side)?;
        self.forget_if_empty(key);
        let bytes = element.bytes.clone();
        if is_protected(text(key)) {
            let Asking { now, client, .. } = asking;
            let name = text(key).into();
            self.held.push(Held { client, until: now + POP_LEASE, name, element });
        }
        Some(bytes)
    }

    /// The outermost element.
    fn end_of(&self, key: &[u8], side: Side) -> Option<&[u8]> {
        let Content::List(list) = &self.keys.get(text(key))?.content else { return None };
        let end = if side == Side::Left { list.first() } else { list.last() };
        end.map(|element| &*element.bytes)
    }

    /// True if an answer has room for all of a list.
    pub(super) fn may_show_all(&self, key: &[u8]) -> bool {
        let all = self.range(key, 0, -1);
        all != too_large()
    }

    /// True if an answer has room for it.
    pub(super) fn may_show_end(&self, key: &[u8], side: Side) -> bool {
        self.answer.has_room_for(self.end_of(key, side).into_iter())
    }

    fn remove_end(&mut self, key: &[u8], side: Side) -> Option<Element> {
        let list = self.keys.contains_key(text(key)).then(|| self.list_mut(key)).flatten()?;
        match side {
            Side::Left => (!list.is_empty()).then(|| list.remove(0)),
            Side::Right => list.pop(),
        }
    }

    /// An empty list is no key, and its deadline is forgotten.
    pub(super) fn forget_if_empty(&mut self, key: &[u8]) {
        if self.list_mut(key).is_some_and(|list| list.is_empty()) {
            self.keys.remove(text(key));
        }
    }

    fn read(&self, key: &[u8], none: Value, read: impl FnOnce(&[Element]) -> Value) -> Value {
        match self.keys.get(text(key)).map(|key| &key.content) {
            None => none,
            Some(Content::List(list)) => read(list),
            Some(_) => wrong_kind(),
        }
    }
}

pub(super) fn wrong_kind() -> Value {
    Value::error("WRONGTYPE")
}

fn bulk(bytes: Option<Rc<[u8]>>) -> Value {
    bytes.map_or(Value::Nil, Value::Bulk)
}

/// The index of a place, from the right where it is negative.
fn place(length: usize, at: i64) -> Option<usize> {
    let at = if at < 0 { at + length as i64 } else { at };
    usize::try_from(at).ok()
}

/// The indices from one place to another, both included.
pub(super) fn places(length: usize, first: i64, last: i64) -> std::ops::Range<usize> {
    let first = place(length, first).unwrap_or(0);
    let end = place(length, last).map_or(0, |last| last + 1).min(length);
    if first < end { first..end } else { 0..0 }
}
