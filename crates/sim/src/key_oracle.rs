//! The oracle of keys: lists, values and collections, clients that wait for them, and which of them
//! a crash may take.
//!
//! It takes each command of a client of Redis with the reply that the client will read, in the
//! engine's order. It panics at the first reply that a naive [`Keyspace`] would not give. A batch
//! is one step of its [`Chronicle`], so no recovery may show half of it.

mod chronicle;
mod places;
mod turns;
mod waiting;
mod watching;

use std::collections::BTreeMap;
use std::rc::Rc;

use model::{Nanos, StorePolicy};

use crate::Fall;
use crate::keyspace::{Ages, Asking, Keyspace, Picture, text, too_large};
use crate::redis_client::{Asked, Meant, Value, Words, summary};
use chronicle::Chronicle;
use places::Places;
use turns::Turns;
use waiting::Waiting;
use watching::{Seen, Versions};

/// The model of one broker's keys over all its crashes.
#[derive(Clone, Debug)]
pub struct KeyOracle {
    keyspace: Keyspace,
    /// Milliseconds by which the machine's clock is ahead of the broker's.
    ahead: i64,
    chronicle: Chronicle,
    /// Clients that wait for an element or a member, the longest first.
    waiting: Vec<Waiting>,
    turns: Turns,
    versions: Versions,
    /// Keys that clients observe, by client.
    watches: BTreeMap<u64, Vec<Seen>>,
    /// Steps that the next reply to a client depends on: its command took its popped elements for
    /// good.
    settled: BTreeMap<u64, usize>,
    /// How many steps there were when elements came to be, by their numbers.
    births: Vec<usize>,
    places: Places,
}

impl KeyOracle {
    /// An empty store of that policy; a periodic sync may be late by `lag`.
    #[must_use]
    pub fn new(policy: StorePolicy, lag: Nanos) -> Self {
        Self {
            keyspace: Keyspace::default(),
            ahead: 0,
            chronicle: Chronicle::new(policy, lag),
            waiting: Vec::new(),
            turns: Turns::default(),
            versions: Versions::default(),
            watches: BTreeMap::new(),
            settled: BTreeMap::new(),
            births: Vec::new(),
            places: Places::default(),
        }
    }

    /// The same, where no answer shows more than that.
    #[must_use]
    pub fn answering(mut self, bytes_max: usize) -> Self {
        self.keyspace.answers_with(bytes_max);
        self
    }

    /// The session of a client asked the engine for something, by any command.
    pub fn commanded(&mut self, now: Nanos, client: u64) {
        self.pass(now);
        self.turns = Turns::default();
        self.serves_later();
        self.keyspace.settle(client);
        if self.record() {
            self.settled.insert(client, self.chronicle.len());
        }
    }

    /// A client's command was answered at once. Returns how many steps a crash must spare once it
    /// has read that.
    ///
    /// # Panics
    /// When Redis would not answer that.
    pub fn answered(&mut self, now: Nanos, client: u64, asked: &Asked, value: &Value) -> usize {
        self.pass(now);
        let settled = self.settled.remove(&client).unwrap_or(0);
        if self.judge_place(now, client, asked, value) {
            return self.chronicle.last_change(&named(&asked.words)).max(settled);
        }
        let needs = match &asked.meant {
            Meant::Queued => {
                assert_eq!(*value, Value::Simple("QUEUED".into()), "{}", summary(&asked.words));
                0
            }
            Meant::Batch(all) => self.batch(Asking { now, ahead: self.ahead, client }, all, value),
            Meant::Command => {
                self.command(Asking { now, ahead: self.ahead, client }, &asked.words, value)
            }
        };
        needs.max(settled)
    }

    /// A client's command was not answered: it has to wait.
    ///
    /// # Panics
    /// When there is something for it.
    pub fn waits(&mut self, now: Nanos, client: u64, words: &Words) {
        self.pass(now);
        let value = self.keyspace.clone().execute(Asking { now, ahead: self.ahead, client }, words);
        assert_eq!(value, None, "{client} waits with {}", summary(words));
        self.waiting.push(Waiting::new(now, client, words));
    }

    /// The command of a client that waited was answered. Returns how many steps a crash must spare
    /// once it has read that.
    ///
    /// # Panics
    /// When it was not its turn, or its time was not over.
    pub fn served(&mut self, now: Nanos, client: u64, value: &Value) -> usize {
        self.pass(now);
        let settled = self.settled.remove(&client).unwrap_or(0);
        let place = self.waiting.iter().position(|waiting| waiting.client == client);
        let place = place.unwrap_or_else(|| panic!("{client} does not wait and reads {value:?}"));
        let waiting = self.waiting.get(place).expect("invariant: it was just found").clone();
        let too_large = (*value == too_large()).then(|| self.unshown(&waiting)).flatten();
        let Some(key) = too_large.as_ref().or_else(|| waiting.key_of(value, &self.keyspace)) else {
            let could = waiting.keys().iter().any(|key| waiting.finds(key, &self.keyspace));
            assert!(!could || self.turns.are_in_any_order(), "{client} reads what is not so");
            waiting.assert_over(now, value);
            self.waiting.remove(place);
            return self.chronicle.last_change(waiting.keys()).max(settled);
        };
        assert!(waiting.finds(key, &self.keyspace), "{client} waits for more than {key:?}");
        let mut longer = self.waiting.iter().take(place);
        let first = longer.find(|other| other.finds(key, &self.keyspace));
        assert!(first.is_none(), "{first:?} waited longer than {client}");
        if !waiting.wants_member() {
            self.take_turn(key);
        }
        self.waiting.remove(place);
        let words = waiting.from(key);
        let needs = self.run(Asking { now, ahead: self.ahead, client }, &words, value);
        needs.max(settled)
    }

    /// A list serves a waiting client, and it is its turn. Sorted sets have no turns: clients that
    /// wait for several that one command fills are served from any of them.
    fn take_turn(&mut self, list: &Rc<[u8]>) {
        let Self { turns, waiting, keyspace, .. } = self;
        turns.take(list, |list| {
            keyspace.is_list(list) && waiting.iter().any(|waiting| waiting.finds(list, keyspace))
        });
    }

    /// The key with the first turn among those that a client waits for and with an end too large
    /// to show in an answer.
    fn unshown(&self, waiting: &Waiting) -> Option<Rc<[u8]>> {
        let all = waiting.keys().iter();
        let all = all.filter(|key| !self.keyspace.shows_end(key, &waiting.words));
        all.min_by_key(|key| self.turns.place_of(key)).cloned()
    }

    /// Asserts that no client waits for an element that is there.
    ///
    /// # Panics When a client does.
    pub fn assert_served(&self) {
        assert_eq!(self.unserved(), None, "somebody waits while there is something");
    }

    /// The log has no room now, or something is due. A client that waits for an element that is
    /// there may be served later, and from any of several lists first.
    pub fn serves_later(&mut self) {
        if self.unserved().is_some() {
            self.turns.lose_order();
        }
    }

    /// A client that waits for a key that is there.
    fn unserved(&self) -> Option<(u64, &Rc<[u8]>)> {
        self.waiting.iter().find_map(|waiting| {
            let key = waiting.keys().iter().find(|key| waiting.finds(key, &self.keyspace))?;
            Some((waiting.client, key))
        })
    }

    /// A client's connection is gone: elements that it popped and did not settle are back in their
    /// places. They go if there is no place.
    pub fn closed(&mut self, now: Nanos, client: u64) {
        self.pass(now);
        self.waiting.retain(|waiting| waiting.client != client);
        self.watches.remove(&client);
        self.settled.remove(&client);
        self.places.forget(client);
        self.turns.lose_order();
        self.change(|keyspace| keyspace.give_back(client));
        self.shed();
    }

    /// A client has read a reply that depends on so many steps.
    pub fn told(&mut self, now: Nanos, needs: usize) {
        self.chronicle.told(now, needs);
    }

    /// The machine's clock shows so many milliseconds more than the broker's.
    pub const fn set_clock(&mut self, ahead: i64) {
        self.ahead = ahead;
    }

    /// From here on nothing that happened so far may be lost.
    pub fn all_told(&mut self) {
        self.chronicle.told(Nanos::ZERO, self.chronicle.len());
    }

    /// The process fell at `fell`; a new one shows this.
    ///
    /// # Panics
    /// When that fall cannot leave it.
    pub fn recovered(&mut self, fall: Fall, fell: Nanos, now: Nanos, found: &Picture, ages: &Ages) {
        // Due things may have happened, though no client heard of them.
        self.pass(fell);
        let picture = self.chronicle.recover(fall, fell, now, found);
        self.keyspace = self.keyspace.restored(&picture);
        while self.keyspace.pass(now) {}
        self.keyspace.set_ages(ages);
        self.spare_what_is_there();
        self.places.clear();
        self.waiting.clear();
        self.turns = Turns::default();
        self.watches.clear();
        self.settled.clear();
        self.births.clear();
        self.record();
    }

    /// All keys that there are.
    #[must_use]
    pub fn names(&self) -> Vec<Rc<str>> {
        self.keyspace.picture().0.into_keys().collect()
    }

    /// Things that are due by now happen, each for itself.
    fn pass(&mut self, now: Nanos) {
        let mut goes_on = true;
        while goes_on {
            self.change(|keyspace| goes_on = keyspace.pass(now));
            self.record();
        }
    }

    fn command(&mut self, asking: Asking, words: &Words, value: &Value) -> usize {
        let (name, keys) = words.split_first().expect("invariant: a command has a name");
        match &**name {
            b"WATCH" => {
                let seen = keys.iter().map(|key| self.versions.see(text(key)));
                self.watches.entry(asking.client).or_default().extend(seen);
            }
            b"UNWATCH" | b"DISCARD" => _ = self.watches.remove(&asking.client),
            b"MULTI" => {}
            _ => return self.run(asking, words, value),
        }
        assert_eq!(*value, Value::ok(), "{}", summary(words));
        0
    }

    /// All commands of the batch, or none if the keys that the client observes have changed.
    fn batch(&mut self, asking: Asking, all: &[Words], value: &Value) -> usize {
        let seen = self.watches.remove(&asking.client).unwrap_or_default();
        if *value == Value::Nil {
            assert!(self.versions.may_be_stale(&seen), "{seen:?} is as it was");
            let names: Vec<Rc<[u8]>> =
                seen.iter().map(|seen| seen.name.as_bytes().into()).collect();
            return self.chronicle.last_change(&names);
        }
        // A batch without a possible answer is refused before its keys are compared: nothing was
        // done.
        if is_refusal(value) {
            return 0;
        }
        assert!(!self.versions.must_be_stale(&seen), "{seen:?} is not as it was");
        let values = all.iter().map(|words| self.apply(asking, words).unwrap_or(Value::Nil));
        let expected = Value::Array(values.collect());
        self.keyspace.answer_anew();
        let shown: Vec<String> = all.iter().map(summary).collect();
        assert_is(value, &expected, &shown.join("; "));
        self.shed();
        if self.record() {
            return self.chronicle.len();
        }
        let needs = all.iter().map(|words| self.reflected(asking.client, words));
        needs.max().unwrap_or(0)
    }

    fn run(&mut self, asking: Asking, words: &Words, value: &Value) -> usize {
        let may_refuse = self.keyspace.may_refuse_to_compare(words) || self.may_be_too_long(words);
        if is_refusal(value) || may_refuse && *value == too_large() {
            return 0;
        }
        let expected = self.apply(asking, words);
        self.keyspace.answer_anew();
        let expected = expected.unwrap_or_else(|| panic!("{} has to wait", summary(words)));
        assert_is(value, &expected, &summary(words));
        self.shed();
        self.record();
        self.reflected(asking.client, words)
    }

    /// True if a list is to be renamed for which a frame of these lives may be too short.
    fn may_be_too_long(&self, words: &Words) -> bool {
        let named = words.first().filter(|name| &***name == b"RENAME").and_then(|_| words.get(1));
        named.is_some_and(|from| self.keyspace.list_len(from) > RENAMED_MAX)
    }

    fn apply(&mut self, asking: Asking, words: &Words) -> Option<Value> {
        let mut value = None;
        self.spare_no_more(words);
        self.change(|keyspace| value = keyspace.execute(asking, words));
        if may_change(words) {
            self.versions.may_touch(&named(words));
        }
        value
    }

    /// Notes keys that change by this, and lists that get elements that others wait for.
    fn change(&mut self, change: impl FnOnce(&mut Keyspace)) {
        let before = self.keyspace.clone();
        change(&mut self.keyspace);
        let for_lists = self.waiting.iter().filter(|waiting| !waiting.wants_member());
        for key in for_lists.flat_map(Waiting::keys) {
            if !before.is_list(key) && self.keyspace.is_list(key) {
                self.turns.fill(key);
            }
        }
        self.versions.touch(&before, &self.keyspace);
        self.notice_moves();
    }

    /// Notes the keys that a recovery would show now, if they are new.
    fn record(&mut self) -> bool {
        let is_new = self.chronicle.push(self.keyspace.picture());
        let born = usize::try_from(self.keyspace.born()).expect("invariant: they are in memory");
        self.births.resize(born, self.chronicle.len());
        is_new
    }

    /// How many steps the reply to a command depends on.
    fn reflected(&self, client: u64, words: &Words) -> usize {
        let held = self.keyspace.held_by(client).map(|number| number as usize - 1);
        if let Some(birth) = held.filter_map(|index| self.births.get(index)).max()
            && is_pop(words)
        {
            // The element is still there: the client sees that it came, and no more.
            return *birth;
        }
        match &**words.first().expect("invariant: a command has a name") {
            b"DBSIZE" | b"KEYS" => self.chronicle.len(),
            b"PING" => 0,
            _ => self.chronicle.last_change(&named(words)),
        }
    }
}

/// True if it takes elements out of lists.
fn is_pop(words: &Words) -> bool {
    let name = words.first().map(|word| &**word).unwrap_or_default();
    ["LPOP", "RPOP", "BLPOP", "BRPOP"].iter().any(|pop| pop.as_bytes() == name)
}

/// The keys that a command names.
fn named(words: &Words) -> Vec<Rc<[u8]>> {
    let (name, arguments) = words.split_first().expect("invariant: a command has a name");
    let count = match &**name {
        b"PING" | b"KEYS" | b"DBSIZE" => 0,
        b"DEL" | b"EXISTS" | b"MGET" => arguments.len(),
        b"MSET" | b"MSETNX" => return arguments.iter().step_by(2).cloned().collect(),
        b"BLPOP" | b"BRPOP" | b"BZPOPMIN" => arguments.len() - 1,
        b"LMOVE" | b"BLMOVE" | b"RENAME" | b"SMOVE" | b"ZRANGESTORE" => 2,
        b"XGROUP" => return arguments.iter().skip(1).take(1).cloned().collect(),
        b"XREADGROUP" => return arguments.iter().skip(6).take(1).cloned().collect(),
        b"ZUNIONSTORE" => {
            return arguments.iter().take(1).chain(arguments.iter().skip(2)).cloned().collect();
        }
        _ => 1,
    };
    arguments.iter().take(count).cloned().collect()
}

/// True if a command may change the keys that it names.
fn may_change(words: &Words) -> bool {
    let name = words.first().map(|word| &**word).unwrap_or_default();
    !READING.iter().any(|reading| reading.as_bytes() == name)
}

/// Commands that change nothing.
const READING: [&str; 26] = [
    "PING",
    "LLEN",
    "LRANGE",
    "LINDEX",
    "LPOS",
    "GET",
    "EXISTS",
    "TYPE",
    "PTTL",
    "DBSIZE",
    "HGET",
    "HMGET",
    "HGETALL",
    "HLEN",
    "SISMEMBER",
    "SCARD",
    "SMEMBERS",
    "SRANDMEMBER",
    "ZSCORE",
    "ZCARD",
    "ZRANGE",
    "ZRANGEBYSCORE",
    "PEXPIRETIME",
    "XLEN",
    "XRANGE",
    "XPENDING",
];

/// Elements for which the shortest frame of any life has room, at 385 bytes each.
const RENAMED_MAX: usize = 30;

/// The store has no room: nothing happened.
pub(crate) fn is_refusal(value: &Value) -> bool {
    matches!(value, Value::Error(word) if matches!(&**word, "OOM" | "EXECABORT"))
}

fn assert_is(value: &Value, expected: &Value, asked: &str) {
    let (read, wanted) = (value.summary(), expected.summary());
    assert!(value.is(expected), "{asked}: {read}, not {wanted}");
}

#[cfg(test)]
#[path = "key_oracle_test.rs"]
mod tests;
