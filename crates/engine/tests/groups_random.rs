//! Random consumers of a queue with messages of groups, beside a list of all messages. No two
//! sessions hold messages of one group at once. No message is delivered before an earlier one of
//! its group. No consumer waits for a message that it may take. A restart finds the groups again.

use std::collections::BTreeMap;

use engine::{Effects, Engine, EngineOptions, QueuePolicies, QueuePolicy};
use model::{
    Capacity, Command, ConsumerMode, Destination, Format, Formats, LinkId, MessageId, Nanos,
    NewMessage, Persistence, QueueName, Reply, SessionId, Settlement, StorePolicy,
};
use testkit::{Rng, Seen, seeds};

use crate::support::log::{Log, Snapshot};
use crate::support::script::group;

const GROUPS: [Option<&str>; 4] = [None, Some("a"), Some("b"), Some("c")];
const SENDER: SessionId = SessionId(1);
const SESSIONS: [SessionId; 3] = [SessionId(2), SessionId(3), SessionId(4)];
const LINKS: [LinkId; 3] = [LinkId(0), LinkId(1), LinkId(2)];
const STEPS: usize = 600;
const SEEDS: u64 = 60;

type Key = (SessionId, LinkId);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    /// By its sender.
    Delayed(Nanos),
    /// Until its redelivery.
    Hidden(Nanos),
    Held(SessionId),
}

#[derive(Clone, Copy, Debug)]
struct Message {
    group: Option<&'static str>,
    ends: bool,
    is_persistent: bool,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum Consumer {
    Feed { limit: u64, delivered: u64 },
    Watch { waits: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Consumer(Key),
    Session(SessionId),
}

struct Harness {
    rng: Rng,
    now: Nanos,
    options: EngineOptions,
    engine: Engine,
    effects: Effects,
    log: Log,
    sent: Option<Message>,
    messages: BTreeMap<MessageId, Message>,
    consumers: BTreeMap<Key, Consumer>,
    owners: BTreeMap<&'static str, Owner>,
    seen: Seen,
}

#[test]
fn groups_reach_one_consumer_in_order() {
    let mut seen = Seen::default();
    for seed in seeds(SEEDS) {
        let mut harness = Harness::new(seed);
        for _ in 0..STEPS {
            harness.step();
        }
        seen.merge(harness.seen);
    }
    seen.expect(
        &["to its owner", "to a new owner", "received", "ended", "hidden", "inherited"],
        50,
    );
}

impl Harness {
    fn new(seed: u64) -> Self {
        let default = QueuePolicy { max_delivery_attempts: 0, ..QueuePolicy::default() };
        let options = EngineOptions {
            queue_policies: QueuePolicies { default, named: BTreeMap::new() },
            formats: Formats { group, ..Formats::RAW },
            ..EngineOptions::new(StorePolicy::Always)
        };
        let mut harness = Self {
            rng: Rng::new(seed),
            now: Nanos::SECOND,
            engine: Engine::new(options.clone()),
            options,
            effects: Effects::default(),
            log: Log::default(),
            sent: None,
            messages: BTreeMap::new(),
            consumers: BTreeMap::new(),
            owners: BTreeMap::new(),
            seen: Seen::default(),
        };
        harness.open();
        harness
    }

    fn open(&mut self) {
        for session in SESSIONS.into_iter().chain([SENDER]) {
            crate::support::users::open(&mut self.engine, session);
        }
        let to = Destination::Queue(queue());
        self.ask(SENDER, Command::OpenProducer { link: LinkId(0), to });
    }

    fn step(&mut self) {
        let key = (self.rng.pick(&SESSIONS), self.rng.pick(&LINKS));
        match self.rng.below(32) {
            0..11 => self.put(),
            11..14 => self.open_consumer(key),
            14..16 => self.close_consumer(key),
            16..19 => self.credit(key),
            19..21 => self.receive(key),
            21..29 => self.settle(),
            29 if self.rng.one_in(2) => self.close_session(key.0),
            30 => self.now = self.now + Nanos::from_millis(self.rng.below(1_500)),
            31 if self.rng.one_in(4) => self.restart(),
            _ => {}
        }
        self.pass_time();
        self.check();
    }

    fn put(&mut self) {
        let name = self.rng.pick(&GROUPS);
        let ends = name.is_some() && self.rng.one_in(6);
        let text = match name {
            Some(name) if ends => format!("group:{name},end:1"),
            Some(name) => format!("group:{name}"),
            None => "free".to_owned(),
        };
        let delay = if self.rng.one_in(8) { Nanos::SECOND } else { Nanos::ZERO };
        let is_persistent = self.rng.one_in(2);
        let message = NewMessage {
            delay,
            group: group(Format::RAW, text.as_bytes()),
            persistence: match is_persistent {
                true => Persistence::Persistent,
                false => Persistence::NonPersistent,
            },
            ..NewMessage::new(text.into_bytes().into())
        };
        let state = match delay {
            Nanos::ZERO => State::Ready,
            delay => State::Delayed(self.now + delay),
        };
        self.sent = Some(Message { group: name, ends, is_persistent, state });
        self.ask(SENDER, Command::Put { link: LinkId(0), message, transaction: None });
    }

    fn open_consumer(&mut self, key: Key) {
        if self.consumers.contains_key(&key) {
            return;
        }
        let (session, link) = key;
        if self.rng.one_in(3) {
            self.consumers.insert(key, Consumer::Watch { waits: false });
            return self.ask(session, Command::Watch { link, queue: queue() });
        }
        self.consumers.insert(key, Consumer::Feed { limit: 0, delivered: 0 });
        for owner in self.owners.values_mut().filter(|owner| **owner == Owner::Session(session)) {
            *owner = Owner::Consumer(key);
            self.seen.saw("inherited");
        }
        let mode = ConsumerMode::Take;
        self.ask(session, Command::OpenConsumer { link, queue: queue(), selector: None, mode });
    }

    fn close_consumer(&mut self, key: Key) {
        if self.consumers.remove(&key).is_none() {
            return;
        }
        let heir = self.consumers.iter().find(|(other, consumer)| {
            other.0 == key.0 && matches!(consumer, Consumer::Feed { .. })
        });
        let heir = heir.map_or(Owner::Session(key.0), |(heir, _)| Owner::Consumer(*heir));
        let (messages, seen) = (&self.messages, &mut self.seen);
        self.owners.retain(|group, owner| {
            if *owner != Owner::Consumer(key) {
                return true;
            }
            *owner = heir;
            seen.saw("inherited");
            holders(messages, group).next().is_some()
        });
        self.ask(key.0, Command::CloseConsumer { link: key.1 });
    }

    fn credit(&mut self, key: Key) {
        let more = self.rng.below(4);
        let Some(Consumer::Feed { limit, delivered }) = self.consumers.get_mut(&key) else {
            return;
        };
        *limit = *delivered + more;
        let command = Command::Credit { link: key.1, limit: *limit, bytes: u64::MAX, drain: false };
        self.ask(key.0, command);
    }

    fn receive(&mut self, key: Key) {
        let Some(Consumer::Watch { waits }) = self.consumers.get_mut(&key) else { return };
        if *waits {
            return;
        }
        *waits = true;
        let (wait, margin, lease) = (None, Nanos::ZERO, Some(Nanos::from_secs(1 << 30)));
        self.ask(key.0, Command::Receive { link: key.1, wait, margin, lease });
    }

    fn settle(&mut self) {
        let held = self.messages.iter().filter_map(|(id, message)| match message.state {
            State::Held(holder) => Some((*id, holder)),
            _ => None,
        });
        let held: Vec<_> = held.collect();
        if held.is_empty() {
            return;
        }
        let (message, holder) = self.rng.pick(&held);
        let delay = Nanos::from_millis(500 + self.rng.below(1_000));
        let (settlement, state) = match self.rng.below(6) {
            0 => (Settlement::Release, Some(State::Ready)),
            1 => (Settlement::Fail, Some(State::Ready)),
            2 => {
                let hidden = State::Hidden(self.now + delay);
                self.seen.saw("hidden");
                (Settlement::GiveBack { failed: self.rng.one_in(2), delay }, Some(hidden))
            }
            _ => (Settlement::Accept, None),
        };
        match state {
            Some(state) => self.messages.get_mut(&message).unwrap().state = state,
            None => drop(self.messages.remove(&message)),
        }
        self.forget_owners();
        self.ask(holder, Command::Settle { message, settlement, transaction: None });
    }

    fn close_session(&mut self, session: SessionId) {
        self.consumers.retain(|(other, _), _| *other != session);
        self.owners.retain(|_, owner| match owner {
            Owner::Consumer((other, _)) | Owner::Session(other) => *other != session,
        });
        for message in self.messages.values_mut() {
            if message.state == State::Held(session) {
                message.state = State::Ready;
            }
        }
        self.engine.close_session(self.now, session, Capacity::UNBOUNDED, &mut self.effects);
        self.take_in();
        crate::support::users::open(&mut self.engine, session);
    }

    fn restart(&mut self) {
        let snapshot = self.rng.one_in(2).then(|| Snapshot::whole(&self.engine));
        self.engine = self.log.recover(self.options.clone(), snapshot.as_ref());
        self.log.relearn(&self.engine);
        self.messages.retain(|_, message| message.is_persistent);
        for message in self.messages.values_mut() {
            if matches!(message.state, State::Held(_)) {
                message.state = State::Ready;
            }
        }
        self.consumers.clear();
        self.owners.clear();
        self.open();
    }

    /// A session that holds nothing of a group any more, and has no consumer for it, owns nothing.
    fn forget_owners(&mut self) {
        let messages = &self.messages;
        self.owners.retain(|group, owner| {
            matches!(owner, Owner::Consumer(_)) || holders(messages, group).next().is_some()
        });
    }

    fn ask(&mut self, session: SessionId, command: Command) {
        self.engine.handle(self.now, session, command, Capacity::UNBOUNDED, &mut self.effects);
        self.take_in();
    }

    fn pass_time(&mut self) {
        for message in self.messages.values_mut() {
            if let State::Delayed(until) | State::Hidden(until) = message.state
                && until <= self.now
            {
                message.state = State::Ready;
            }
        }
        while self.engine.poll_timeout().is_some_and(|at| at <= self.now) {
            self.engine.handle_timeout(self.now, Capacity::UNBOUNDED, &mut self.effects);
            self.take_in();
        }
    }

    fn take_in(&mut self) {
        self.engine.check();
        self.log.absorb(&self.effects);
        for output in std::mem::take(&mut self.effects.outputs) {
            match output.reply {
                Reply::Stored { message } => {
                    self.messages.insert(message, self.sent.take().unwrap());
                }
                Reply::Delivered(delivery) => {
                    self.delivered((output.session, delivery.link.unwrap()), delivery.message);
                }
                Reply::Done => {}
                other => panic!("{other:?}"),
            }
        }
        self.effects.clear();
    }

    fn delivered(&mut self, key: Key, id: MessageId) {
        let message = self.messages[&id];
        assert_eq!(message.state, State::Ready, "{id} is delivered when it is ready");
        let is_credit_consumer = match self.consumers.get_mut(&key).unwrap() {
            Consumer::Feed { limit, delivered } => {
                *delivered += 1;
                assert!(delivered <= limit);
                true
            }
            Consumer::Watch { waits } => {
                assert!(std::mem::replace(waits, false));
                false
            }
        };
        if let Some(group) = message.group {
            self.check_group(key, id, group, is_credit_consumer);
            let owner = if message.ends { Owner::Session(key.0) } else { Owner::Consumer(key) };
            self.seen.saw(if message.ends { "ended" } else { "went on" });
            if is_credit_consumer {
                self.owners.insert(group, owner);
            }
        }
        self.messages.get_mut(&id).unwrap().state = State::Held(key.0);
    }

    fn check_group(
        &mut self,
        key: Key,
        id: MessageId,
        group: &'static str,
        is_credit_consumer: bool,
    ) {
        let of_group = |(_, other): &(&MessageId, &Message)| other.group == Some(group);
        for (other, message) in self.messages.iter().filter(of_group) {
            let is_hidden = matches!(message.state, State::Hidden(_));
            assert!(!is_hidden, "{id} overtakes {other}, which waits for its redelivery");
            let is_passed = *other < id && message.state == State::Ready;
            assert!(!is_passed, "{id} overtakes {other}");
        }
        let mut holders = holders(&self.messages, group);
        let seen = match self.owners.get(group) {
            Some(owner) => {
                assert_eq!(*owner, Owner::Consumer(key), "{id} goes to the owner of {group}");
                "to its owner"
            }
            None => {
                assert_eq!(holders.next(), None, "nobody holds a message of {group}");
                if is_credit_consumer { "to a new owner" } else { "received" }
            }
        };
        self.seen.saw(seen);
    }

    /// No consumer waits for a message that it may take.
    fn check(&self) {
        let waits = |consumer: &Consumer| match consumer {
            Consumer::Feed { limit, delivered } => delivered < limit,
            Consumer::Watch { waits } => *waits,
        };
        for (id, message) in self.messages.iter().filter(|(_, it)| it.state == State::Ready) {
            let mut waiting = self.consumers.iter().filter(|(_, consumer)| waits(consumer));
            let Some(group) = message.group else {
                assert!(waiting.next().is_none(), "{id} is for anybody who waits");
                continue;
            };
            let mut of_group = self.messages.values().filter(|it| it.group == Some(group));
            if of_group.any(|other| matches!(other.state, State::Hidden(_))) {
                continue;
            }
            let may_take = |key: &Key| match self.owners.get(group) {
                Some(owner) => *owner == Owner::Consumer(*key),
                None => holders(&self.messages, group).next().is_none(),
            };
            let waiting = waiting.find(|(key, _)| may_take(key));
            assert!(waiting.is_none(), "{id} is for {waiting:?}");
        }
    }
}

fn holders(
    messages: &BTreeMap<MessageId, Message>,
    group: &str,
) -> impl Iterator<Item = SessionId> {
    messages.values().filter(move |message| message.group == Some(group)).filter_map(|message| {
        match message.state {
            State::Held(holder) => Some(holder),
            _ => None,
        }
    })
}

fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}
