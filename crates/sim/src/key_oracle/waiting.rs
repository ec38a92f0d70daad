//! Clients that wait for an element of a list, or for a member of a sorted set.

use std::rc::Rc;

use model::Nanos;

use crate::keyspace::{Keyspace, text};
use crate::redis_client::{Value, Words};

/// A client with a command that waits.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) client: u64,
    pub(super) words: Words,
    keys: Vec<Rc<[u8]>>,
    /// `None`: for ever.
    until: Option<Nanos>,
}

impl Waiting {
    pub(super) fn new(now: Nanos, client: u64, words: &Words) -> Self {
        let name = words.first().map(|word| &**word);
        // A move waits for elements in the first of its lists alone.
        let count = if name == Some(b"BLMOVE") { 1 } else { words.len() - 2 };
        let keys = words.iter().skip(1).take(count).cloned().collect();
        let until = patience(words).map(|span| now + span);
        Self { client, words: words.clone(), keys, until }
    }

    /// The lists or sorted sets that it waits for.
    pub(super) fn keys(&self) -> &[Rc<[u8]>] {
        &self.keys
    }

    /// True if it waits for a member of a sorted set.
    pub(super) fn wants_member(&self) -> bool {
        self.words.first().is_some_and(|name| &**name == b"BZPOPMIN")
    }

    /// True if it waits for this key, and there is something for it.
    pub(super) fn finds(&self, key: &Rc<[u8]>, keyspace: &Keyspace) -> bool {
        let is_there =
            if self.wants_member() { keyspace.is_sorted_set(key) } else { keyspace.is_list(key) };
        is_there && self.keys.contains(key)
    }

    /// The key from which it got something, if it did, by the reply that it reads.
    pub(super) fn key_of(&self, value: &Value, keyspace: &Keyspace) -> Option<&Rc<[u8]>> {
        let named = match value {
            Value::Nil => return None,
            Value::Array(all) => all.first(),
            _ => None,
        };
        let named = self.keys.iter().find(|key| named == Some(&Value::Bulk(Rc::clone(key))));
        let found = || self.keys.iter().find(|key| self.finds(key, keyspace));
        named.or_else(found).or_else(|| self.keys.first())
    }

    /// The command as one of its lists serves it. Other lists may have become values meanwhile;
    /// that does not concern the waiting client (Redis 7.0).
    pub(super) fn from(&self, key: &Rc<[u8]>) -> Words {
        let moves = self.words.first().is_some_and(|name| &**name == b"BLMOVE");
        match (self.words.first(), self.words.last()) {
            (Some(name), Some(patience)) if !moves => {
                vec![name.clone(), key.clone(), patience.clone()]
            }
            _ => self.words.clone(),
        }
    }

    /// Its answer is that its time is over.
    pub(super) fn assert_over(&self, now: Nanos, value: &Value) {
        assert_eq!(*value, Value::Nil, "{self:?} reads what is not there");
        let over = self.until.is_some_and(|until| until <= now);
        assert!(over, "{self:?} would have waited on at {now}");
    }
}

/// How long a command waits; `None`: for ever.
fn patience(words: &Words) -> Option<Nanos> {
    let seconds = words.last().map(|word| text(word).parse::<f64>());
    let seconds = seconds.and_then(Result::ok).expect("invariant: it ends with a time");
    let millis = (seconds * 1000.0).round();
    (millis > 0.0).then(|| Nanos::from_millis(millis as u64))
}
