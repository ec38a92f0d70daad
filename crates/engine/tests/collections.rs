//! Random commands on collections, to the engine and to sorted maps, which must agree on every
//! reply. Names are also texts and lists, are renamed, deleted, and go by time. All the while
//! snapshots are taken in small steps, and now and then the log ends somewhere and all else is
//! lost.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use model::{
    CollectionCommand, CollectionKind, Combination, CombinationTarget, Command, Deadline,
    DeadlineRule, End, Entries, KeyCommand, KeyKind, ListCommand, MemberBound, Nanos, OneOrMany,
    Persistence, Presence, QueueName, Refusal, Reply, Score, ScoreRule, ScoreSum, ScoredPart,
    ScoredRange, SetOperation, SetRule, StorePolicy, TableAction, TableStep, TransactionId,
    ValueDeadline, ValueEdit, parse_integer,
};
use testkit::{Rng, Seen, seeds};

use crate::support::crashing::Crashing;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const FIELDS: [&str; 8] = ["f", "g", "h", "field/a", "field/b", "field/c", "x", ""];
const SCORES: [f64; 7] = [0.0, 1.0, 1.5, -2.0, 3.0, f64::INFINITY, f64::NEG_INFINITY];
const STEPS: usize = 1_500;
const SEEDS: u64 = 60;

/// A key of the model.
#[derive(Clone, Debug, PartialEq)]
enum Thing {
    Text,
    List,
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
    Set(BTreeSet<Vec<u8>>),
    SortedSet(BTreeMap<Vec<u8>, f64>),
}

#[derive(Clone, Debug, Default)]
struct Naive {
    now: u64,
    things: BTreeMap<&'static str, (Thing, Option<u64>)>,
}

/// Fields with their values.
type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

struct World {
    rng: Rng,
    engine: Crashing<Naive>,
    naive: Naive,
    /// Pictures of hashes: the number, the name, and what it shows.
    pictures: Vec<(u64, &'static str, Pairs)>,
    seen: Seen,
}

#[test]
fn collections_match_sorted_maps() {
    let mut seen = Seen::default();
    for seed in seeds(SEEDS) {
        let policies = [StorePolicy::Always, StorePolicy::Never, StorePolicy::Memory];
        let mut world = World::new(seed, policies[(seed % 3) as usize]);
        (0..STEPS).for_each(|_| world.step());
        seen.merge(world.seen);
    }
    seen.expect_only(&EXPECTED, 15);
}

/// Events that must have happened often enough for the test to mean something.
const EXPECTED: [&str; 13] = [
    "a collection went with its last field",
    "a collection was over",
    "a collection took the place of another key",
    "a name of another kind was refused",
    "a renamed collection",
    "a batch",
    "a transaction",
    "a conflict",
    "a picture of what has changed",
    "a picture that is over",
    "a refused transaction",
    "crash",
    "fuzzy snapshot",
];

impl Naive {
    fn kind(&self, name: &str) -> Option<KeyKind> {
        self.things.get(name).map(|(thing, _)| match thing {
            Thing::Text => KeyKind::Value,
            Thing::List => KeyKind::List,
            Thing::Hash(_) => KeyKind::Hash,
            Thing::Set(_) => KeyKind::Set,
            Thing::SortedSet(_) => KeyKind::SortedSet,
        })
    }

    fn is_other(&self, name: &str, kind: CollectionKind) -> bool {
        self.kind(name).is_some_and(|found| found != kind.into())
    }

    fn hash(&mut self, name: &'static str) -> &mut BTreeMap<Vec<u8>, Vec<u8>> {
        let new = || (Thing::Hash(BTreeMap::new()), None);
        match &mut self.things.entry(name).or_insert_with(new).0 {
            Thing::Hash(hash) => hash,
            other => panic!("{other:?}"),
        }
    }

    fn set(&mut self, name: &'static str) -> &mut BTreeSet<Vec<u8>> {
        let new = || (Thing::Set(BTreeSet::new()), None);
        match &mut self.things.entry(name).or_insert_with(new).0 {
            Thing::Set(set) => set,
            other => panic!("{other:?}"),
        }
    }

    fn sorted(&mut self, name: &'static str) -> &mut BTreeMap<Vec<u8>, f64> {
        let new = || (Thing::SortedSet(BTreeMap::new()), None);
        match &mut self.things.entry(name).or_insert_with(new).0 {
            Thing::SortedSet(set) => set,
            other => panic!("{other:?}"),
        }
    }

    /// Collections go with their last field.
    fn tidy(&mut self) -> bool {
        let before = self.things.len();
        self.things.retain(|_, (thing, _)| match thing {
            Thing::Text | Thing::List => true,
            Thing::Hash(hash) => !hash.is_empty(),
            Thing::Set(set) => !set.is_empty(),
            Thing::SortedSet(set) => !set.is_empty(),
        });
        self.things.len() < before
    }

    fn advance(&mut self, now: u64) -> bool {
        self.now = now;
        let before = self.things.len();
        self.things.retain(|_, (_, at)| at.is_none_or(|at| at > now));
        self.things.len() < before
    }

    /// The state behind a transaction of these steps, and the sums of what it adds.
    fn after_steps(
        mut self,
        steps: &[(&'static str, TableStep)],
    ) -> Result<(Self, Vec<i64>), Refusal> {
        for (number, (table, step)) in steps.iter().enumerate() {
            let TableAction::Expect(expected) = &step.action else { continue };
            if self.is_other(table, CollectionKind::Hash) {
                return Err(Refusal::WrongKind);
            }
            let value = match self.things.get(table) {
                Some((Thing::Hash(hash), _)) => hash.get(&*step.key).map(|value| &value[..]),
                _ => None,
            };
            let holds = match expected {
                model::Expected::Absent => value.is_none(),
                model::Expected::Present => value.is_some(),
                model::Expected::Value(expected) => value == Some(&expected[..]),
            };
            if !holds {
                return Err(Refusal::TableConflict { step: number as u32 });
            }
        }
        let mut sums = Vec::new();
        for (table, step) in steps {
            if matches!(step.action, TableAction::Expect(_)) {
                continue;
            }
            if self.is_other(table, CollectionKind::Hash) {
                return Err(Refusal::WrongKind);
            }
            let hash = self.hash(table);
            match &step.action {
                TableAction::Put(value) => drop(hash.insert(step.key.to_vec(), value.to_vec())),
                TableAction::Add(more) => {
                    let before = hash.get(&*step.key).map_or(Some(0), |text| parse_integer(text));
                    let before = before.ok_or(Refusal::NotAnInteger)?;
                    let sum = before.checked_add(*more).ok_or(Refusal::Overflow)?;
                    hash.insert(step.key.to_vec(), sum.to_string().into_bytes());
                    sums.push(sum);
                }
                TableAction::Delete | TableAction::Expect(_) => drop(hash.remove(&*step.key)),
            }
        }
        // The deadline stays with a table that is not empty at the end, or goes with it.
        self.tidy();
        Ok((self, sums))
    }

    /// The members of a sorted set in their order.
    fn in_order(&mut self, name: &'static str) -> Vec<(Vec<u8>, f64)> {
        let mut all: Vec<_> = self.sorted(name).clone().into_iter().collect();
        all.sort_by(|(one, score), (other, its)| {
            score.partial_cmp(its).unwrap().then_with(|| one.cmp(other))
        });
        all
    }
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

fn bytes(text: &str) -> Arc<[u8]> {
    text.as_bytes().into()
}

fn score(number: f64) -> Score {
    Score::new(number).unwrap()
}

/// Fields, or members, with values or scores.
fn shown(entries: &Entries) -> Vec<(Vec<u8>, Vec<u8>)> {
    let scores = entries.scores.iter().map(|score| score.get().to_string().into_bytes());
    let values = entries.values.iter().map(<[u8]>::to_vec).chain(scores);
    let beside = values.chain(std::iter::repeat(Vec::new()));
    entries.fields.iter().map(<[u8]>::to_vec).zip(beside).collect()
}

fn scored(all: &[(Vec<u8>, f64)]) -> Vec<(Vec<u8>, Vec<u8>)> {
    all.iter().map(|(member, score)| (member.clone(), score.to_string().into_bytes())).collect()
}

impl World {
    fn new(seed: u64, policy: StorePolicy) -> Self {
        let naive = Naive { now: 1_000, ..Naive::default() };
        let engine = Crashing::new(policy, &naive);
        let pictures = Vec::new();
        Self { rng: Rng::new(seed), engine, naive, pictures, seen: Seen::default() }
    }

    fn step(&mut self) {
        match self.rng.below(40) {
            0 => self.engine.begin_snapshot(),
            1..6 => self.go_on_with_snapshot(),
            6 if self.rng.one_in(2) => self.crash(),
            6..9 => self.pass_time(),
            9..12 => self.be_something_else(),
            14 => self.compare_all(),
            15..17 => self.batch(),
            17..20 => self.transact(),
            20..22 => self.look_at_picture(),
            _ => self.ask_collection(),
        }
        self.naive.tidy();
        self.engine.end_step(&self.naive);
    }

    fn key(&mut self) -> &'static str {
        self.rng.pick(&NAMES)
    }

    /// A name that mostly stands for nothing else.
    fn key_of(&mut self, kind: CollectionKind) -> &'static str {
        let keys = [self.key(), self.key(), self.key(), self.key()];
        keys.into_iter().find(|key| !self.naive.is_other(key, kind)).unwrap_or(keys[0])
    }

    fn field(&mut self) -> Arc<[u8]> {
        bytes(self.rng.pick(&FIELDS))
    }

    fn some_fields(&mut self) -> Vec<Arc<[u8]>> {
        (0..1 + self.rng.below(3)).map(|_| self.field()).collect()
    }

    fn value(&mut self) -> Arc<[u8]> {
        // Some lie beside their entry.
        let count = self.rng.pick(&[1, 2, 2, 3, 2_000]);
        let digit = self.rng.pick(&["1", "2", "7"]);
        bytes(&digit.repeat(count))
    }

    fn pass_time(&mut self) {
        if self.naive.advance(self.naive.now + self.rng.below(30)) {
            self.seen.saw("a collection was over");
        }
        if self.rng.coin() {
            while self.engine.do_due(self.naive.now) {}
        }
    }

    /// Steps of a transaction on tables. Expectations are of what is there before it.
    fn transact(&mut self) {
        let transaction = TransactionId(1);
        assert_eq!(self.ask(Command::Begin { transaction }), Reply::Done);
        let steps: Vec<_> = (0..1 + self.rng.below(6)).map(|_| self.table_step()).collect();
        for (table, step) in &steps {
            assert_eq!(step.table, name(table));
            let step = Box::new(step.clone());
            assert_eq!(self.ask(Command::Table { step, transaction }), Reply::Done);
        }
        let after = self.naive.clone().after_steps(&steps);
        let reply = self.ask(Command::Commit { transaction });
        match after {
            Ok((naive, sums)) => {
                let done = if sums.is_empty() { Reply::Done } else { Reply::Committed { sums } };
                assert_eq!(reply, done, "{steps:?}");
                self.naive = naive;
                self.seen.saw("a transaction");
            }
            Err(refusal) => {
                let is_conflict = matches!(refusal, Refusal::TableConflict { .. });
                assert_eq!(reply, Reply::Refused(refusal), "{steps:?}");
                self.seen.saw(if is_conflict { "a conflict" } else { "a refused transaction" });
            }
        }
    }

    fn table_step(&mut self) -> (&'static str, TableStep) {
        let table = self.key_of(CollectionKind::Hash);
        let key = self.field();
        let there = match self.naive.things.get(table) {
            Some((Thing::Hash(hash), _)) => hash.get(&*key).cloned(),
            _ => None,
        };
        let action = match self.rng.below(12) {
            0 => TableAction::Expect(model::Expected::Absent),
            1 => TableAction::Expect(model::Expected::Present),
            2 => TableAction::Expect(model::Expected::Value(self.value())),
            3 | 4 => TableAction::Expect(
                there.map_or(model::Expected::Absent, |value| model::Expected::Value(value.into())),
            ),
            5..8 => TableAction::Put(self.value()),
            8..10 => TableAction::Add(self.rng.pick(&[1, -1, 40, i64::MAX])),
            _ => TableAction::Delete,
        };
        (table, TableStep { table: name(table), key, action })
    }

    /// Takes a picture of a hash, or compares a page of one with what was there.
    fn look_at_picture(&mut self) {
        let kind = CollectionKind::Hash;
        if self.pictures.len() < 4 && self.rng.coin() {
            let key = self.key_of(kind);
            let take = CollectionCommand::TakePicture { name: name(key), kind };
            let reply = self.ask(take.into());
            if self.naive.is_other(key, kind) {
                assert_eq!(reply, Reply::Refused(Refusal::WrongKind));
                return;
            }
            let Reply::Picture(number) = reply else { panic!("{reply:?}") };
            self.pictures.push((number, key, self.fields_of(key)));
            return;
        }
        let Some(at) = (self.pictures.len() as u64).checked_sub(1) else { return };
        let at = self.rng.below(at + 1) as usize;
        let (picture, key, expected) = self.pictures[at].clone();
        let from = match self.rng.below(3) {
            0 => Bound::Included(self.field()),
            1 => Bound::Excluded(self.field()),
            _ => Bound::Unbounded,
        };
        let wanted = |(field, _): &&(Vec<u8>, Vec<u8>)| match &from {
            Bound::Included(first) => field[..] >= first[..],
            Bound::Excluded(last) => field[..] > last[..],
            Bound::Unbounded => true,
        };
        let wanted: Vec<_> = expected.iter().filter(wanted).take(3).cloned().collect();
        let show = CollectionCommand::ShowPicture { picture, name: name(key), from, max: 3 };
        let Reply::Entries(entries) = self.ask(show.into()) else { panic!("it is kept") };
        assert_eq!(shown(&entries), wanted);
        if self.fields_of(key) != expected {
            self.seen.saw("a picture of what has changed");
        }
        if self.rng.one_in(4) {
            let end = CollectionCommand::EndPicture { picture, name: name(key) };
            assert_eq!(self.ask(end.into()), Reply::Done);
            self.assert_over(at);
        }
    }

    fn fields_of(&self, key: &str) -> Pairs {
        match self.naive.things.get(key) {
            Some((Thing::Hash(hash), _)) => hash.clone().into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// A picture is gone.
    fn assert_over(&mut self, at: usize) {
        let (picture, key, _) = self.pictures.swap_remove(at);
        let (name, from) = (name(key), Bound::Unbounded);
        let show = CollectionCommand::ShowPicture { picture, name, from, max: 3 };
        assert_eq!(self.ask(show.into()), Reply::NotFound);
        self.seen.saw("a picture that is over");
    }

    /// A name becomes a text or a list, is renamed or deleted, or gets a deadline.
    fn be_something_else(&mut self) {
        let (key, other) = (self.key(), self.key());
        match self.rng.below(7) {
            0 => {
                self.naive.things.insert(key, (Thing::Text, None));
                let set = KeyCommand::SetValue {
                    name: name(key),
                    value: bytes("text"),
                    deadline: ValueDeadline::Never,
                    rule: SetRule::Always,
                    want_old: false,
                };
                let reply = self.ask(Command::Key(set));
                assert_eq!(reply, Reply::Replaced { set: true, old: None });
            }
            1 => self.push(key),
            2 | 3 => {
                let was_there = self.naive.things.remove(key).is_some();
                let reply = self.ask(Command::Key(KeyCommand::Delete { names: vec![name(key)] }));
                assert_eq!(reply, Reply::Count(was_there.into()));
            }
            4 => {
                let after = 1 + self.rng.below(60);
                let at = self.naive.now + after;
                let there = self.naive.things.get_mut(key);
                let count = there.map_or(0, |(_, deadline)| {
                    *deadline = Some(at);
                    1
                });
                let deadline = Deadline::After(Nanos(after));
                let rule = DeadlineRule::Always;
                let command = KeyCommand::SetDeadline { name: name(key), deadline, rule };
                assert_eq!(self.ask(Command::Key(command)), Reply::Count(count));
            }
            _ => self.rename(key, other),
        }
    }

    fn push(&mut self, key: &'static str) {
        let push = Command::List(ListCommand::Push {
            queue: name(key),
            end: End::Tail,
            elements: OneOrMany::One(bytes("element")),
            only_existing: false,
            persistence: Persistence::Persistent,
        });
        let reply = self.ask(push);
        match self.naive.kind(key) {
            Some(KeyKind::List) => assert!(matches!(reply, Reply::Count(2..))),
            None => {
                assert_eq!(reply, Reply::Count(1));
                self.naive.things.insert(key, (Thing::List, None));
            }
            Some(_) => assert_eq!(reply, Reply::Refused(Refusal::WrongKind)),
        }
    }

    fn rename(&mut self, from: &'static str, to: &'static str) {
        let command = KeyCommand::Rename { from: name(from), to: name(to), only_new: false };
        let reply = self.ask(Command::Key(command));
        let Some(thing) = self.naive.things.get(from).cloned() else {
            assert_eq!(reply, Reply::NotFound);
            return;
        };
        assert_eq!(reply, Reply::Done);
        if !matches!(thing.0, Thing::Text | Thing::List) {
            self.seen.saw("a renamed collection");
        }
        self.naive.things.remove(from);
        self.naive.things.insert(to, thing);
    }

    fn ask_collection(&mut self) {
        let (command, expected) = self.command();
        self.naive.tidy();
        let reply = self.ask(command.clone().into());
        self.compare(&command, &reply, &expected);
    }

    /// Several as one frame.
    fn batch(&mut self) {
        let count = 1 + self.rng.below(5);
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(self.command());
            self.naive.tidy();
        }
        let commands = all.iter().map(|(it, _)| Command::from(it.clone()));
        let commands = commands.collect();
        let before = self.engine.last();
        let Reply::Batch(replies) = self.ask(Command::Batch { commands }) else { panic!() };
        assert!(self.engine.last() <= before + 1, "it is one frame");
        for ((command, expected), reply) in all.iter().zip(&replies) {
            self.compare(command, reply, expected);
        }
        self.seen.saw("a batch");
    }

    fn compare(&mut self, command: &CollectionCommand, reply: &Reply, expected: &Expected) {
        match (reply, expected) {
            (Reply::Refused(Refusal::WrongKind), Expected::Refused) => {
                self.seen.saw("a name of another kind was refused");
            }
            (Reply::Refused(_), Expected::NotANumber)
            | (Reply::NotFound | Reply::TimedOut { .. }, Expected::Nothing) => {}
            (Reply::Count(count), Expected::Count(expected)) => {
                assert_eq!(count, expected, "{command:?}");
            }
            (Reply::ScoredPopped(popped), Expected::Popped(key, expected)) => {
                assert_eq!(popped.name, name(key), "{command:?}");
                assert_eq!(shown(&popped.entries), *expected, "{command:?}");
            }
            (Reply::Entries(found), Expected::Entries(expected)) => {
                assert_eq!(shown(found), *expected, "{command:?}");
            }
            (found, Expected::Reply(expected)) => assert_eq!(found, expected, "{command:?}"),
            _ => panic!("{command:?}: {reply:?} instead of {expected:?}"),
        }
    }

    fn command(&mut self) -> (CollectionCommand, Expected) {
        match self.rng.below(12) {
            0..4 => self.command_on_hash(),
            4..7 => self.command_on_set(),
            7..11 => self.command_on_sorted_set(),
            _ => self.combination(),
        }
    }

    fn command_on_hash(&mut self) -> (CollectionCommand, Expected) {
        let kind = CollectionKind::Hash;
        let key = self.key_of(kind);
        let (text, is_other) = (name(key), self.naive.is_other(key, kind));
        let expected = |it: Expected| if is_other { Expected::Refused } else { it };
        if self.rng.below(3) > 0 {
            return self.look(key, kind);
        }
        match self.rng.below(5) {
            0..3 => {
                let fields: Vec<_> =
                    self.some_fields().into_iter().map(|it| (it, self.value())).collect();
                let only_new = self.rng.one_in(4);
                let fields = if only_new { fields[..1].to_vec() } else { fields };
                let mut new = 0;
                if !is_other {
                    let hash = self.naive.hash(key);
                    let is_there = hash.contains_key(&*fields[0].0);
                    for (field, value) in fields.iter().filter(|_| !(only_new && is_there)) {
                        new += u64::from(hash.insert(field.to_vec(), value.to_vec()).is_none());
                    }
                }
                let command = CollectionCommand::SetFields { name: text, fields, only_new };
                (command, expected(Expected::Count(new)))
            }
            3 => {
                let field = self.field();
                let edit = ValueEdit::Add(5);
                let mut sum = None;
                if !is_other {
                    let hash = self.naive.hash(key);
                    let old = hash.get(&*field).map_or(Some(0), |text| {
                        String::from_utf8(text.clone()).unwrap().parse::<i64>().ok()
                    });
                    sum = old.and_then(|old: i64| old.checked_add(5));
                    sum.map(|sum| hash.insert(field.to_vec(), sum.to_string().into_bytes()));
                }
                let command = CollectionCommand::EditField { name: text, field, edit };
                let sum = sum.map(|sum| Expected::Reply(Reply::Integer(sum)));
                (command, expected(sum.unwrap_or(Expected::NotANumber)))
            }
            _ => self.remove(key, kind),
        }
    }

    fn command_on_set(&mut self) -> (CollectionCommand, Expected) {
        let kind = CollectionKind::Set;
        let key = self.key_of(kind);
        let (text, is_other) = (name(key), self.naive.is_other(key, kind));
        let expected = |it: Expected| if is_other { Expected::Refused } else { it };
        match self.rng.below(7) {
            0..3 => {
                let members = self.some_fields();
                let mut new = 0;
                if !is_other {
                    let set = self.naive.set(key);
                    new = members.iter().filter(|it| set.insert(it.to_vec())).count() as u64;
                }
                let members = members.into_iter().collect();
                let command = CollectionCommand::AddMembers { name: text, members };
                (command, expected(Expected::Count(new)))
            }
            3 => {
                let (to, member) = (self.key(), self.field());
                let command = CollectionCommand::MoveMember {
                    from: text,
                    to: name(to),
                    member: Arc::clone(&member),
                };
                if is_other || self.naive.kind(key).is_none() {
                    return (command, expected(Expected::Count(0)));
                }
                if self.naive.is_other(to, kind) {
                    return (command, Expected::Refused);
                }
                let was_there = self.naive.set(key).remove(&*member);
                if was_there {
                    self.naive.set(to).insert(member.to_vec());
                }
                (command, Expected::Count(was_there.into()))
            }
            4 => self.remove(key, kind),
            _ => self.look(key, kind),
        }
    }

    fn remove(&mut self, key: &'static str, kind: CollectionKind) -> (CollectionCommand, Expected) {
        let fields = self.some_fields();
        let mut gone = 0;
        if !self.naive.is_other(key, kind) {
            for field in &fields {
                let was_there = match kind {
                    CollectionKind::Hash => self.naive.hash(key).remove(&**field).is_some(),
                    CollectionKind::Set => self.naive.set(key).remove(&**field),
                    CollectionKind::SortedSet => self.naive.sorted(key).remove(&**field).is_some(),
                    CollectionKind::Stream => unreachable!("streams have a test of their own"),
                };
                gone += u64::from(was_there);
            }
        }
        if gone > 0 && self.naive.tidy() {
            self.seen.saw("a collection went with its last field");
        }
        let fields = fields.into_iter().collect();
        let command = CollectionCommand::RemoveFields { name: name(key), kind, fields };
        let is_other = self.naive.is_other(key, kind);
        (command, if is_other { Expected::Refused } else { Expected::Count(gone) })
    }

    /// A command that changes nothing, or takes by chance what it shows.
    fn look(&mut self, key: &'static str, kind: CollectionKind) -> (CollectionCommand, Expected) {
        let text = name(key);
        let all: Vec<(Vec<u8>, Vec<u8>)> = if self.naive.is_other(key, kind) {
            Vec::new()
        } else {
            match kind {
                CollectionKind::Hash => self.naive.hash(key).clone().into_iter().collect(),
                CollectionKind::Set => {
                    self.naive.set(key).iter().map(|it| (it.clone(), Vec::new())).collect()
                }
                CollectionKind::SortedSet => scored(&self.naive.in_order(key)),
                CollectionKind::Stream => unreachable!("streams have a test of their own"),
            }
        };
        let is_other = self.naive.is_other(key, kind);
        let expected = |it: Expected| if is_other { Expected::Refused } else { it };
        match self.rng.below(4) {
            0 => {
                let command = CollectionCommand::CountFields { name: text, kind };
                (command, expected(Expected::Count(all.len() as u64)))
            }
            1 => {
                let command = CollectionCommand::ShowFields { name: text, kind };
                (command, expected(Expected::Entries(all)))
            }
            2 => {
                let from = match self.rng.below(4) {
                    0 => Bound::Included(self.field()),
                    1 => Bound::Excluded(self.field()),
                    _ => Bound::Unbounded,
                };
                let command = CollectionCommand::ScanFields {
                    name: text,
                    kind,
                    from: from.clone(),
                    max: 100,
                };
                let mut all = all;
                all.sort();
                all.retain(|(field, _)| match &from {
                    Bound::Included(first) => field[..] >= first[..],
                    Bound::Excluded(last) => field[..] > last[..],
                    Bound::Unbounded => true,
                });
                (command, expected(Expected::Entries(all)))
            }
            _ => {
                // All of them: no chance is left.
                let max = all.len() as u64 + 1;
                let take = self.rng.one_in(4);
                if take && !is_other {
                    self.naive.things.remove(key);
                }
                let (distinct, seed) = (true, self.rng.draw());
                let command =
                    CollectionCommand::PickFields { name: text, kind, max, distinct, take, seed };
                let mut all = all;
                all.sort();
                (command, expected(Expected::Entries(all)))
            }
        }
    }

    fn command_on_sorted_set(&mut self) -> (CollectionCommand, Expected) {
        let kind = CollectionKind::SortedSet;
        let key = self.key_of(kind);
        let (text, is_other) = (name(key), self.naive.is_other(key, kind));
        let expected = |it: Expected| if is_other { Expected::Refused } else { it };
        match self.rng.below(12) {
            0..4 => self.set_scores(key),
            4 => self.remove(key, kind),
            5 => self.look(key, kind),
            6 => {
                let (highest, max) = (self.rng.coin(), self.rng.below(3));
                let mut popped = Vec::new();
                let mut is_empty = true;
                if !is_other {
                    popped = self.naive.in_order(key);
                    is_empty = popped.is_empty();
                    if highest {
                        popped.reverse();
                    }
                    popped.truncate(max as usize);
                    for (member, _) in &popped {
                        self.naive.sorted(key).remove(member);
                    }
                }
                let command = CollectionCommand::PopScored {
                    names: vec![text],
                    highest,
                    max,
                    wait: Some(Nanos::ZERO),
                };
                let popped = Expected::Popped(key, scored(&popped));
                (command, expected(if is_empty { Expected::Nothing } else { popped }))
            }
            7 => {
                let (member, reverse) = (self.field(), self.rng.coin());
                let mut all = if is_other { Vec::new() } else { self.naive.in_order(key) };
                if reverse {
                    all.reverse();
                }
                let place = all.iter().position(|(it, _)| **it == *member);
                let command = CollectionCommand::Rank { name: text, member, reverse };
                let rank = place.map_or(Expected::Nothing, |before| {
                    let score = score(all[before].1);
                    Expected::Reply(Reply::Rank { before: before as u64, score })
                });
                (command, expected(rank))
            }
            _ => self.range(key),
        }
    }

    fn set_scores(&mut self, key: &'static str) -> (CollectionCommand, Expected) {
        let is_other = self.naive.is_other(key, CollectionKind::SortedSet);
        let adds = self.rng.one_in(4);
        let mut members: Vec<_> = self.some_fields();
        members.truncate(if adds { 1 } else { 3 });
        let members: Vec<_> =
            members.into_iter().map(|it| (score(self.rng.pick(&SCORES)), it)).collect();
        let presence = self.rng.pick(&[Presence::Any, Presence::New, Presence::There]);
        let counts_changed = self.rng.coin();
        let rule = ScoreRule { presence, direction: None, adds, counts_changed };
        let command =
            CollectionCommand::SetScores { name: name(key), members: members.clone(), rule };
        if is_other {
            return (command, Expected::Refused);
        }
        let set = self.naive.sorted(key);
        let (mut new, mut changed, mut told) = (0, 0, None);
        for (score, member) in members {
            let before = set.get(&*member).copied();
            match (before, presence) {
                (None, Presence::There) | (Some(_), Presence::New) => continue,
                _ => {}
            }
            let number = before.filter(|_| adds).unwrap_or(0.0) + score.get();
            if number.is_nan() {
                return (command, Expected::NotANumber);
            }
            told = Score::new(number);
            new += u64::from(before.is_none());
            changed += u64::from(before.is_some_and(|before| before != number));
            set.insert(member.to_vec(), number);
        }
        let count = new + if counts_changed { changed } else { 0 };
        let scores = Expected::Reply(Reply::Scores(vec![told]));
        (command, if adds { scores } else { Expected::Count(count) })
    }

    fn some_range(&mut self) -> ScoredRange {
        let place = |rng: &mut Rng| rng.below(8).cast_signed() - 4;
        match self.rng.below(3) {
            0 => ScoredRange::Ranks { first: place(&mut self.rng), last: place(&mut self.rng) },
            1 => {
                let bound = |rng: &mut Rng| match rng.below(3) {
                    0 => Bound::Unbounded,
                    1 => Bound::Included(score(rng.pick(&SCORES))),
                    _ => Bound::Excluded(score(rng.pick(&SCORES))),
                };
                ScoredRange::Scores { low: bound(&mut self.rng), high: bound(&mut self.rng) }
            }
            _ => ScoredRange::Members { low: MemberBound::Least, high: MemberBound::Greatest },
        }
    }

    fn range(&mut self, key: &'static str) -> (CollectionCommand, Expected) {
        let is_other = self.naive.is_other(key, CollectionKind::SortedSet);
        let mut all = if is_other { Vec::new() } else { self.naive.in_order(key) };
        let (range, text) = (self.some_range(), name(key));
        let does = self.rng.below(4);
        let reverse = does < 2 && self.rng.coin();
        if reverse {
            all.reverse();
        }
        let count = all.len().cast_signed();
        let from = |place: i64| if place < 0 { place as isize + count } else { place as isize };
        let indexed = all.iter().enumerate().filter(|(index, (_, score))| match &range {
            ScoredRange::Ranks { first, last } => {
                (from(*first).max(0)..=from(*last)).contains(&index.cast_signed())
            }
            ScoredRange::Scores { low, high } => {
                let above = match low {
                    Bound::Unbounded => true,
                    Bound::Included(low) => *score >= low.get(),
                    Bound::Excluded(low) => *score > low.get(),
                };
                let below = match high {
                    Bound::Unbounded => true,
                    Bound::Included(high) => *score <= high.get(),
                    Bound::Excluded(high) => *score < high.get(),
                };
                above && below
            }
            ScoredRange::Members { .. } => true,
        });
        let found: Vec<_> = indexed.map(|(_, it)| it.clone()).collect();
        let expected = |it: Expected| if is_other { Expected::Refused } else { it };
        match does {
            0 | 1 => {
                let (skip, max) = (self.rng.below(3), self.rng.coin().then(|| self.rng.below(3)));
                let found = found.into_iter().skip(skip as usize);
                let found: Vec<_> = found.take(max.unwrap_or(99) as usize).collect();
                let part = ScoredPart { range, reverse, skip, max };
                if does == 0 {
                    let command = CollectionCommand::ShowRange { name: text, part };
                    return (command, expected(Expected::Entries(scored(&found))));
                }
                let to = self.key();
                let command = CollectionCommand::StoreRange { from: text, to: name(to), part };
                if !is_other {
                    self.replace(to, Thing::SortedSet(found.iter().cloned().collect()));
                }
                (command, expected(Expected::Count(found.len() as u64)))
            }
            2 => {
                let command = CollectionCommand::CountRange { name: text, range };
                (command, expected(Expected::Count(found.len() as u64)))
            }
            _ => {
                for (member, _) in &found {
                    self.naive.sorted(key).remove(member);
                }
                let command = CollectionCommand::RemoveRange { name: text, range };
                (command, expected(Expected::Count(found.len() as u64)))
            }
        }
    }

    fn replace(&mut self, to: &'static str, thing: Thing) {
        if self.naive.things.contains_key(to) {
            self.seen.saw("a collection took the place of another key");
        }
        self.naive.things.insert(to, (thing, None));
    }

    /// Sets alone: they are enough to see which members it comes to.
    fn combination(&mut self) -> (CollectionCommand, Expected) {
        let names: Vec<_> =
            (0..1 + self.rng.below(3)).map(|_| self.key_of(CollectionKind::Set)).collect();
        let how = self.rng.pick(&[
            SetOperation::Union,
            SetOperation::Intersection,
            SetOperation::Difference,
        ]);
        let to = self.rng.coin().then(|| self.key());
        let target = to.map_or(CombinationTarget::Shown, |to| CombinationTarget::Stored(name(to)));
        let command = CollectionCommand::Combine(Combination {
            how,
            kind: CollectionKind::Set,
            names: names.iter().map(|it| (name(it), Score::ONE)).collect(),
            sum: ScoreSum::Sum,
            target,
        });
        if names.iter().any(|it| self.naive.is_other(it, CollectionKind::Set)) {
            return (command, Expected::Refused);
        }
        let mut sets: Vec<_> = names.iter().map(|it| self.naive.set(it).clone()).collect();
        let first = sets.remove(0);
        let members = sets.iter().fold(first, |all, set| match how {
            SetOperation::Union => all.union(set).cloned().collect(),
            SetOperation::Intersection => all.intersection(set).cloned().collect(),
            SetOperation::Difference => all.difference(set).cloned().collect(),
        });
        self.naive.tidy();
        let count = members.len() as u64;
        match to {
            Some(to) => {
                self.replace(to, Thing::Set(members));
                (command, Expected::Count(count))
            }
            None => {
                let all = members.into_iter().map(|member| (member, Vec::new())).collect();
                (command, Expected::Entries(all))
            }
        }
    }

    fn compare_all(&mut self) {
        for key in NAMES {
            let kind = self.naive.kind(key);
            let reply = self.ask(Command::Key(KeyCommand::Kind { name: name(key) }));
            assert_eq!(reply, Reply::Kind(kind), "{key}");
            for kind in [CollectionKind::Hash, CollectionKind::Set, CollectionKind::SortedSet] {
                let show = CollectionCommand::ShowFields { name: name(key), kind };
                let reply = self.ask(show.into());
                let Reply::Entries(entries) = reply else {
                    assert!(self.naive.is_other(key, kind), "{reply:?}");
                    continue;
                };
                let expected = match self.naive.things.get(key).map(|(thing, _)| thing) {
                    Some(Thing::Hash(hash)) => hash.clone().into_iter().collect(),
                    Some(Thing::Set(set)) => {
                        set.iter().map(|it| (it.clone(), Vec::new())).collect()
                    }
                    Some(Thing::SortedSet(_)) => scored(&self.naive.in_order(key)),
                    _ => Vec::new(),
                };
                assert_eq!(shown(&entries), expected, "{key}");
            }
        }
    }

    fn go_on_with_snapshot(&mut self) {
        if self.engine.go_on_with_snapshot() {
            self.seen.saw("fuzzy snapshot");
        }
    }

    fn crash(&mut self) {
        let now = self.naive.now;
        self.naive = self.engine.crash(&mut self.rng);
        self.naive.advance(now);
        self.engine.begin_anew(&self.naive);
        self.seen.saw("crash");
        while !self.pictures.is_empty() {
            self.assert_over(0);
        }
        self.compare_all();
    }

    fn ask(&mut self, command: Command) -> Reply {
        self.engine.ask(self.naive.now, command)
    }
}

/// The right answer.
#[derive(Debug)]
enum Expected {
    /// The name stands for something of another kind.
    Refused,
    NotANumber,
    Nothing,
    Count(u64),
    Popped(&'static str, Vec<(Vec<u8>, Vec<u8>)>),
    Entries(Vec<(Vec<u8>, Vec<u8>)>),
    Reply(Reply),
}
