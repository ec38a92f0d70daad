//! Random commands about keys, to the engine and to a naive model, which must agree on every reply.
//! Other sessions meanwhile fill lists, lease from them and give back. All the while snapshots are
//! taken in small steps, and now and then the log ends somewhere and all else is lost.

use model::{
    AdminCommand, Command, Deadline, DeadlineRule, Destination, End, KeyCommand, KeyKind, Lifetime,
    ListCommand, MessageId, MessageState, Nanos, NewMessage, Persistence, QueueName, Reply,
    SetRule, StorePolicy, ValueDeadline,
};
use testkit::{Rng, Seen, seeds};

use crate::support::crashing::Crashing;
use crate::support::naive_keys::{NaiveKeys, NaiveValue};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const RULES: [DeadlineRule; 6] = [
    DeadlineRule::Always,
    DeadlineRule::IfNone,
    DeadlineRule::IfSome,
    DeadlineRule::IfLater,
    DeadlineRule::IfEarlier,
    DeadlineRule::IfSomeEarlier,
];
const STEPS: usize = 1_500;
const SEEDS: u64 = 60;

struct World {
    rng: Rng,
    engine: Crashing<NaiveKeys>,
    naive: NaiveKeys,
    seen: Seen,
}

#[test]
fn keys_match_the_naive_model() {
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
const EXPECTED: [&str; 12] = [
    "a list was over",
    "a list was over and another begun",
    "a deadline moved with its list",
    "a deadline went with the last message",
    "a message of a list that is over was leased",
    "some was held of a list that was over",
    "a value was over",
    "an old message came where a list was over",
    "a value hid a list",
    "crash",
    "crash with what is over",
    "fuzzy snapshot",
];

impl World {
    fn new(seed: u64, policy: StorePolicy) -> Self {
        let naive = NaiveKeys::new(1_000);
        let engine = Crashing::new(policy, &naive);
        Self { rng: Rng::new(seed), engine, naive, seen: Seen::default() }
    }

    fn step(&mut self) {
        self.act();
        if self.rng.one_in(10) {
            self.compare_all();
        }
        self.engine.end_step(&self.naive);
    }

    fn act(&mut self) {
        match self.rng.below(40) {
            0 => self.engine.begin_snapshot(),
            1..=6 => self.go_on_with_snapshot(),
            7 if self.rng.one_in(2) => self.crash(),
            7..=9 => self.wait(),
            10..=13 => self.late(),
            14..=17 => self.put(),
            18 => self.push(),
            19 => self.pass(),
            20..=22 => self.lease(),
            23..=24 => self.give_back(),
            25..=26 => self.set(),
            27 => self.delete(),
            28..=31 => self.rename(),
            32..=36 => self.set_deadline(),
            37 => self.clear_deadline(),
            38 => self.pass(),
            _ => self.look(),
        }
    }

    fn name(&mut self) -> &'static str {
        self.rng.pick(&NAMES)
    }

    /// Time goes on, and all that is due is done.
    fn wait(&mut self) {
        self.late();
        while self.engine.do_due(self.naive.now) {
            self.naive.settle();
        }
        self.naive.settle();
    }

    /// Time goes on, and nothing that is due is done yet.
    fn late(&mut self) {
        let (values, lists) = (self.naive.values.len(), self.naive.over.len());
        let now = self.naive.now + self.rng.below(30);
        self.naive.advance(now);
        if self.naive.values.len() < values {
            self.seen.saw("a value was over");
        }
        if self.naive.over.len() > lists {
            self.seen.saw("a list was over");
        }
        self.notice_where_some_is_held();
    }

    /// Held messages of a list are spared as soon as the end of the list is noticed.
    fn notice_where_some_is_held(&mut self) {
        let over = self.naive.over.keys().cloned();
        let is_held = |name: &String| self.naive.leased.values().any(|(of, _)| of == name);
        let held: Vec<_> = over.filter(is_held).collect();
        for name in held {
            self.seen.saw("some was held of a list that was over");
            self.notice(&name);
        }
    }

    fn notice(&mut self, name: &str) {
        self.ask_key(KeyCommand::Rename { from: queue(name), to: queue(name), only_new: true });
    }

    fn put(&mut self) {
        let name = self.name();
        let durable = !self.rng.one_in(3);
        let priority = self.rng.pick(&[1, 1, 1, 9]);
        if self.naive.over.contains_key(name) {
            self.seen.saw("a list was over and another begun");
        }
        let persistence =
            if durable { Persistence::Persistent } else { Persistence::NonPersistent };
        let message = NewMessage {
            priority,
            persistence,
            lease: Nanos::from_secs(1_000_000),
            ..NewMessage::new(name.as_bytes().into())
        };
        let to = Destination::Queue(queue(name));
        let is_kept = durable && self.engine.is_kept();
        let message_id = MessageId(self.naive.put(name, priority, is_kept));
        let reply = self.ask(Command::PutTo { to, message, transaction: None });
        assert_eq!(reply, Reply::Stored { message: message_id });
    }

    fn push(&mut self) {
        let (name, end) = (self.name(), self.end());
        let durable = !self.rng.one_in(3);
        let persistence =
            if durable { Persistence::Persistent } else { Persistence::NonPersistent };
        let elements = vec![name.as_bytes().into()];
        let reply = self.ask(Command::List(ListCommand::Push {
            queue: queue(name),
            end,
            elements: model::OneOrMany::Many(elements),
            only_existing: false,
            persistence,
        }));
        if self.naive.values.contains_key(name) {
            assert_eq!(reply, Reply::Refused(model::Refusal::WrongKind));
            return;
        }
        self.naive.push(name, end, durable && self.engine.is_kept());
        assert_eq!(reply, Reply::Count(self.naive.lists[name].len() as u64));
    }

    fn pass(&mut self) {
        let (from, to) = (self.name(), self.name());
        let (from_end, to_end) = (self.end(), self.end());
        let values = &self.naive.values;
        let wrong = values.contains_key(from) || values.contains_key(to);
        if wrong || !self.naive.lists.contains_key(from) {
            return;
        }
        if self.naive.over.contains_key(to) {
            self.seen.saw("an old message came where a list was over");
        }
        self.naive.pass(from, from_end, to, to_end);
        let reply = self.ask(Command::List(ListCommand::Move {
            from: queue(from),
            from_end,
            to: queue(to),
            to_end,
            wait: Some(Nanos::ZERO),
        }));
        assert!(matches!(reply, Reply::Elements(_)), "{reply:?}");
    }

    fn end(&mut self) -> End {
        self.rng.pick(&[End::Head, End::Tail])
    }

    fn lease(&mut self) {
        let name = self.name();
        let Some(list) = self.naive.lists.get(name) else { return };
        let places: Vec<_> = list.keys().copied().collect();
        let place = self.rng.pick(&places);
        let had_deadline = self.naive.deadlines.contains_key(name);
        let message = self.naive.leave(name, place);
        if had_deadline && !self.naive.deadlines.contains_key(name) {
            self.seen.saw("a deadline went with the last message");
        }
        let id = MessageId(message.id);
        self.naive.leased.insert(message.id, (name.to_owned(), message));
        let reply = self.ask(Command::Lease { message: id });
        assert!(matches!(reply, Reply::Delivered(_)), "{reply:?}");
    }

    fn give_back(&mut self) {
        let leased: Vec<_> = self.naive.leased.keys().copied().collect();
        if leased.is_empty() {
            return;
        }
        let number = self.rng.pick(&leased);
        let (name, message) = self.naive.leased.remove(&number).unwrap();
        if self.naive.over.contains_key(&name) {
            self.seen.saw("a message of a list that is over was leased");
        }
        let (id, priority) = (MessageId(number), message.priority);
        let command = if self.rng.one_in(2) {
            Command::Delete { message: id }
        } else {
            self.naive.enter(&name, message);
            Command::Release { message: id, priority, delay: Some(Nanos::ZERO) }
        };
        assert_eq!(self.ask(command), Reply::Done);
    }

    fn set(&mut self) {
        let name = self.name();
        let rule = self.rng.pick(&[SetRule::Always, SetRule::IfNone, SetRule::IfSome]);
        let want_old = self.rng.one_in(3);
        let bytes = self.rng.below(1000).to_string();
        let deadline = self.rng.pick(&[0, 1, 2]);
        let after = 1 + self.rng.below(60);
        let (deadline, at) = match deadline {
            0 => (ValueDeadline::Never, None),
            1 => (ValueDeadline::Kept, self.naive.deadline(name)),
            _ => (ValueDeadline::New(Deadline::After(Nanos(after))), Some(self.naive.now + after)),
        };
        let value = bytes.as_bytes().into();
        let reply = self.ask_key(KeyCommand::SetValue {
            name: queue(name),
            value,
            deadline,
            rule,
            want_old,
        });
        let kind = self.naive.kind(name);
        if want_old && kind == Some(KeyKind::List) {
            assert_eq!(reply, Reply::Refused(model::Refusal::WrongKind));
            return;
        }
        let old = self.naive.values.get(name).filter(|_| want_old);
        let old = old.map(|value| value.bytes.as_bytes().into());
        let set = match rule {
            SetRule::Always => true,
            SetRule::IfNone => kind.is_none(),
            SetRule::IfSome => kind.is_some(),
        };
        if set || want_old {
            assert_eq!(reply, Reply::Replaced { set, old });
        } else {
            assert_eq!(reply, Reply::NotFound);
        }
        if set {
            self.naive.set(name, NaiveValue { bytes, at });
        }
    }

    fn delete(&mut self) {
        if self.rng.one_in(10) {
            assert_eq!(self.ask_key(KeyCommand::DeleteAll { database: None }), Reply::Done);
            self.naive.values.clear();
            self.naive.lists.clear();
            self.naive.deadlines.clear();
        } else if self.rng.one_in(3) {
            let name = self.name();
            let reply = self.ask_key(KeyCommand::Value { name: queue(name), take: true });
            if self.naive.kind(name) == Some(KeyKind::List) {
                assert_eq!(reply, Reply::Refused(model::Refusal::WrongKind));
            } else {
                let value = self.naive.values.remove(name);
                assert_eq!(reply, Reply::Value(value.map(|value| value.bytes.as_bytes().into())));
            }
        } else {
            let names = [self.name(), self.name()];
            let reply = self.ask_key(KeyCommand::Delete { names: names.map(queue).to_vec() });
            let count = names.iter().filter(|name| self.naive.delete(name)).count();
            assert_eq!(reply, Reply::Count(count as u64));
        }
    }

    fn rename(&mut self) {
        let (from, to) = (self.name(), self.name());
        let only_new = self.rng.one_in(3);
        let command = KeyCommand::Rename { from: queue(from), to: queue(to), only_new };
        let reply = self.ask_key(command);
        let kind = self.naive.kind(from);
        if kind.is_none() {
            assert_eq!(reply, Reply::NotFound);
        } else if only_new && self.naive.kind(to).is_some() {
            assert_eq!(reply, Reply::Count(0));
        } else {
            assert_eq!(reply, Reply::Done);
            if kind == Some(KeyKind::List) && from != to && self.naive.deadline(from).is_some() {
                self.seen.saw("a deadline moved with its list");
            }
            if from != to {
                self.naive.rename(from, to);
            }
        }
    }

    fn set_deadline(&mut self) {
        let name = self.name();
        let rule = self.rng.pick(&RULES);
        let at = (self.naive.now + self.rng.below(60)).saturating_sub(2);
        let deadline = Deadline::At(Nanos(at));
        let reply = self.ask_key(KeyCommand::SetDeadline { name: queue(name), deadline, rule });
        assert_eq!(reply, Reply::Count(self.naive.set_deadline(name, at, rule).into()));
    }

    fn clear_deadline(&mut self) {
        let name = self.name();
        let reply = self.ask_key(KeyCommand::ClearDeadline { name: queue(name) });
        assert_eq!(reply, Reply::Count(self.naive.clear_deadline(name).into()));
    }

    fn look(&mut self) {
        let (first, second) = (self.name(), self.name());
        let names = vec![queue(first), queue(second)];
        let found = [first, second].iter().filter(|name| self.naive.kind(name).is_some()).count();
        assert_eq!(self.ask_key(KeyCommand::CountOf { names }), Reply::Count(found as u64));
        let max = 1 + self.rng.below(3) as usize;
        let mut all = Vec::new();
        let mut after = None;
        loop {
            let reply = self.ask_key(KeyCommand::Names { database: None, after, max, kind: None });
            let Reply::Names { names, next } = reply else { panic!("{reply:?}") };
            all.extend(names.iter().map(|name| name.as_str().to_owned()));
            after = next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(all, self.naive.names());
    }

    fn compare_all(&mut self) {
        assert_eq!(
            self.ask_key(KeyCommand::CountAll { database: None }),
            Reply::Count(self.naive.names().len() as u64)
        );
        for name in NAMES {
            let kind = self.naive.kind(name);
            assert_eq!(self.ask_key(KeyCommand::Kind { name: queue(name) }), Reply::Kind(kind));
            self.compare_lifetime(name);
            self.compare_list(name);
            let Some(value) = self.naive.values.get(name).cloned() else { continue };
            if self.naive.lists.contains_key(name) {
                self.seen.saw("a value hid a list");
            }
            let reply = self.ask_key(KeyCommand::Value { name: queue(name), take: false });
            assert_eq!(reply, Reply::Value(Some(value.bytes.as_bytes().into())));
        }
    }

    fn compare_lifetime(&mut self, name: &'static str) {
        let reply = self.ask_key(KeyCommand::Lifetime { name: queue(name) });
        if self.naive.kind(name).is_none() {
            assert_eq!(reply, Reply::NotFound);
            return;
        }
        let at = self.naive.deadline(name);
        let left = at.map(|at| Nanos(at - self.naive.now));
        assert_eq!(reply, Reply::Lifetime(Lifetime { at: at.map(Nanos), left }), "{name}");
    }

    fn compare_list(&mut self, name: &'static str) {
        // A command about the list notices that it is over; one that looks at the queue does not.
        self.ask_key(KeyCommand::Delete { names: Vec::new() });
        self.notice(name);
        let page = AdminCommand::Browse {
            queue: queue(name),
            state: Some(MessageState::Ready),
            selector: None,
            after: None,
            max: 1_000,
        };
        let found = match self.ask(Command::Admin(Box::new(page))) {
            Reply::Page(page) => page.messages.iter().map(|it| it.delivery.message.0).collect(),
            Reply::NotFound => Vec::new(),
            other => panic!("{other:?}"),
        };
        let list = self.naive.lists.get(name);
        let expected: Vec<_> = list.into_iter().flatten().map(|(_, it)| it.id).collect();
        if !self.naive.values.contains_key(name) {
            assert_eq!(found, expected, "ready in {name}");
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
        if !self.naive.over.is_empty() {
            self.seen.saw("crash with what is over");
        }
        self.naive.crash();
        self.naive.advance(now);
        let reply = self.ask(Command::Admin(Box::new(AdminCommand::NextMessage)));
        let Reply::Stored { message } = reply else { panic!("{reply:?}") };
        self.naive.next = message.0;
        self.engine.begin_anew(&self.naive);
        self.seen.saw("crash");
        self.compare_all();
    }

    fn ask_key(&mut self, command: KeyCommand) -> Reply {
        self.ask(Command::Key(command))
    }

    fn ask(&mut self, command: Command) -> Reply {
        self.engine.ask(self.naive.now, command)
    }
}

fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}
