//! Keys as one would write them down: maps, and no thought of cost.

use std::collections::BTreeMap;

use model::{DeadlineRule, End, KeyKind, PRIORITY_DEFAULT};

/// All keys of an engine, and the state of their messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct NaiveKeys {
    pub(crate) now: u64,
    /// The next number of a message or an order.
    pub(crate) next: u64,
    /// The next order in front of all others.
    pub(crate) front: i64,
    pub(crate) values: BTreeMap<String, NaiveValue>,
    pub(crate) lists: BTreeMap<String, BTreeMap<(u32, i64), NaiveMessage>>,
    pub(crate) leased: BTreeMap<u64, (String, NaiveMessage)>,
    pub(crate) deadlines: BTreeMap<String, u64>,
    /// Lists that are over and of which messages may still be there: until when stored, and between
    /// which orders.
    pub(crate) over: BTreeMap<String, (u64, i64, i64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NaiveValue {
    pub(crate) bytes: String,
    pub(crate) at: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct NaiveMessage {
    pub(crate) id: u64,
    pub(crate) priority: u32,
    pub(crate) order: i64,
    pub(crate) created: u64,
    pub(crate) durable: bool,
}

impl NaiveKeys {
    pub(crate) fn new(now: u64) -> Self {
        Self { now, next: 1, front: -1, ..Self::default() }
    }

    /// Time goes on, and keys past their time go.
    pub(crate) fn advance(&mut self, now: u64) {
        self.now = now;
        self.values.retain(|_, value| value.at.is_none_or(|at| at > now));
        let ended: Vec<_> = self.deadlines.iter().filter(|(_, at)| **at <= now).collect();
        let ended: Vec<_> = ended.into_iter().map(|(name, at)| (name.clone(), *at)).collect();
        for (name, at) in ended {
            self.deadlines.remove(&name);
            self.lists.remove(&name);
            let before = self.over.get(&name).map_or(0, |(at, _, _)| *at);
            let over = (at.max(before), self.front, self.next as i64);
            self.spare(&name, over);
            self.over.insert(name, over);
        }
    }

    /// Held messages of a list that is over are not of it: they get places in front of all.
    fn spare(&mut self, name: &str, (at, above, below): (u64, i64, i64)) {
        let mut held: Vec<_> = self.leased.values_mut().collect();
        held.sort_by_key(|(_, message)| -message.order);
        for (of, message) in held {
            let is_among = above < message.order && message.order < below;
            if of == name && message.durable && message.created < at && is_among {
                message.order = self.front;
                self.front -= 1;
            }
        }
    }

    /// All that is over is deleted by now.
    pub(crate) fn settle(&mut self) {
        self.over.clear();
    }

    /// Performs a crash. Leased messages are ready; messages of a list that is over go with it, if
    /// they are still there.
    pub(crate) fn crash(&mut self) {
        for (_, (name, message)) in std::mem::take(&mut self.leased) {
            self.enter(&name, message);
        }
        let over = std::mem::take(&mut self.over);
        for (name, list) in &mut self.lists {
            let over = over.get(name);
            let gone = |message: &NaiveMessage| {
                over.is_some_and(|(at, above, below)| {
                    message.created < *at && *above < message.order && message.order < *below
                })
            };
            list.retain(|_, message| message.durable && !gone(message));
        }
        self.forget_empty();
    }

    pub(crate) fn kind(&self, name: &str) -> Option<KeyKind> {
        let list = || self.lists.contains_key(name).then_some(KeyKind::List);
        if self.values.contains_key(name) { Some(KeyKind::Value) } else { list() }
    }

    /// The names of keys, ascending.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.values.keys().chain(self.lists.keys()).cloned().collect();
        names.sort();
        names.dedup();
        names
    }

    /// A new message, or an old one, at a place that was never given out.
    pub(crate) fn put(&mut self, name: &str, priority: u32, durable: bool) -> u64 {
        let id = self.next;
        self.next += 1;
        let (order, created) = (id as i64, self.now);
        self.enter(name, NaiveMessage { id, priority, order, created, durable });
        id
    }

    /// The same at an end, which gives it its priority.
    pub(crate) fn push(&mut self, name: &str, end: End, durable: bool) {
        let id = self.next;
        self.next += 1;
        let created = self.now;
        let message = NaiveMessage { id, priority: 0, order: id as i64, created, durable };
        self.enter_at(name, end, message, true);
    }

    /// An element goes from one end to another.
    pub(crate) fn pass(&mut self, from: &str, from_end: End, to: &str, to_end: End) {
        let deadline = self.deadlines.get(from).copied();
        let mut places = self.lists[from].keys().copied();
        let place = if from_end == End::Head { places.next() } else { places.next_back() };
        let message = self.leave(from, place.unwrap());
        self.enter_at(to, to_end, message, false);
        if from == to {
            self.deadlines.extend(deadline.map(|at| (to.to_owned(), at)));
        }
    }

    fn enter_at(&mut self, name: &str, end: End, mut message: NaiveMessage, is_new: bool) {
        let places: Vec<_> = self.lists.get(name).into_iter().flat_map(BTreeMap::keys).collect();
        let outermost = if end == End::Head { places.first() } else { places.last() };
        let priority = outermost.map_or(PRIORITY_DEFAULT, |(priority, _)| *priority);
        if end == End::Head {
            message.priority = priority.min(PRIORITY_DEFAULT);
            message.order = self.front;
            self.front -= 1;
        } else {
            message.priority = priority.max(PRIORITY_DEFAULT);
            if !is_new {
                message.order = self.next as i64;
                self.next += 1;
            }
        }
        self.enter(name, message);
    }

    pub(crate) fn enter(&mut self, name: &str, message: NaiveMessage) {
        let list = self.lists.entry(name.to_owned()).or_default();
        list.insert((message.priority, message.order), message);
    }

    /// A ready message leaves its list.
    pub(crate) fn leave(&mut self, name: &str, place: (u32, i64)) -> NaiveMessage {
        let message = self.lists.get_mut(name).unwrap().remove(&place).unwrap();
        self.forget_empty();
        message
    }

    /// False where there is no such key.
    pub(crate) fn delete(&mut self, name: &str) -> bool {
        let deleted = match self.kind(name) {
            Some(KeyKind::List) => self.lists.remove(name).is_some(),
            Some(_) => self.values.remove(name).is_some(),
            None => false,
        };
        self.forget_empty();
        deleted
    }

    pub(crate) fn set(&mut self, name: &str, value: NaiveValue) {
        if self.kind(name) == Some(KeyKind::List) {
            self.delete(name);
        }
        self.values.insert(name.to_owned(), value);
        self.advance(self.now);
    }

    /// Gives a key that is there another name.
    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        if self.kind(from) == Some(KeyKind::Value) {
            let value = self.values[from].clone();
            self.set(to, value);
            self.values.remove(from);
            return;
        }
        self.values.remove(to);
        self.lists.remove(to);
        self.forget_empty();
        let deadline = self.deadlines.remove(from);
        for (_, mut message) in self.lists.remove(from).unwrap() {
            message.order = self.next as i64;
            self.next += 1;
            self.enter(to, message);
        }
        self.deadlines.extend(deadline.map(|at| (to.to_owned(), at)));
    }

    pub(crate) fn deadline(&self, name: &str) -> Option<u64> {
        match self.kind(name)? {
            KeyKind::List => self.deadlines.get(name).copied(),
            _ => self.values[name].at,
        }
    }

    /// False where there is no such key, or the rule forbids it.
    pub(crate) fn set_deadline(&mut self, name: &str, at: u64, rule: DeadlineRule) -> bool {
        let before = self.deadline(name);
        let allowed = match rule {
            DeadlineRule::Always => true,
            DeadlineRule::IfNone => before.is_none(),
            DeadlineRule::IfSome => before.is_some(),
            DeadlineRule::IfLater => before.is_some_and(|before| before < at),
            DeadlineRule::IfEarlier => before.is_none_or(|before| before > at),
            DeadlineRule::IfSomeEarlier => before.is_some_and(|before| before > at),
        };
        let Some(kind) = self.kind(name).filter(|_| allowed) else { return false };
        match kind {
            _ if at <= self.now => {
                self.delete(name);
            }
            KeyKind::List => {
                self.deadlines.insert(name.to_owned(), at);
            }
            _ => self.values.get_mut(name).unwrap().at = Some(at),
        }
        true
    }

    /// False where there was none.
    pub(crate) fn clear_deadline(&mut self, name: &str) -> bool {
        let had = self.deadline(name).is_some();
        match self.kind(name).filter(|_| had) {
            Some(KeyKind::List) => {
                self.deadlines.remove(name);
            }
            Some(_) => self.values.get_mut(name).unwrap().at = None,
            None => {}
        }
        had
    }

    /// The deadline of a list goes with its last message.
    fn forget_empty(&mut self) {
        self.lists.retain(|_, list| !list.is_empty());
        let lists = &self.lists;
        self.deadlines.retain(|name, _| lists.contains_key(name));
    }
}
