//! Random publishing to queues, topics and temporary destinations, in and out of transactions, with
//! subscriptions that come and go, compaction and fuzzy snapshots. Then every place at which the
//! log may end is tried. Recovery must bring back the state between two commands, so a transaction
//! is there whole or not at all.

use std::collections::BTreeMap;

use engine::{
    Effects, Engine, EngineOptions, MessageCounters, Place, RecordView, StoredState, describe,
};
use model::{
    AdminCommand, Capacity, Command, DeadReason, Destination, Formats, Found, LinkId, MessageId,
    Nanos, NewMessage, Peek, Persistence, PropertyValue, QueueName, Reply, SessionId, Settlement,
    StorePolicy, Subject, Subscription, SubscriptionName, TransactionId,
};
use testkit::{Rng, Seen, seeds};

use crate::support::log::{Durable, Log, Snapshot, durable};

const SESSIONS: u64 = 2;
const OBSERVER: SessionId = SessionId(99);
const STEPS: usize = 600;
const SEEDS: u64 = 80;

/// All that must survive: messages, and subscriptions as records show them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Picture {
    messages: BTreeMap<MessageId, Durable>,
    subscriptions: Vec<String>,
}

struct World {
    rng: Rng,
    now: Nanos,
    options: EngineOptions,
    engine: Engine,
    effects: Effects,
    log: Log,
    /// By the position of the last frame.
    pictures: BTreeMap<u64, Picture>,
    taking: Option<Snapshot>,
    whole: Option<Snapshot>,
    bodies: u64,
    temporaries: Vec<Destination>,
    /// The messages that each session got.
    delivered: BTreeMap<SessionId, Vec<MessageId>>,
    seen: Seen,
}

#[test]
fn publish_is_atomic_at_log_ends() {
    let mut seen = Seen::default();
    for seed in seeds(SEEDS) {
        let mut world = World::new(seed);
        (0..STEPS).for_each(|_| world.step());
        world.check_every_end();
        seen.merge(world.seen);
    }
    seen.expect(&EXPECTED, 100);
}

/// Events that must have happened often enough for the test to mean something.
const EXPECTED: [&str; 9] = [
    "committed with frame",
    "committed without frame",
    "rolled back",
    "shared record",
    "shared record stated anew",
    "unsubscribed",
    "recovered from a fuzzy snapshot",
    "delivered",
    "back in a subscription",
];

impl World {
    fn new(seed: u64) -> Self {
        let formats = Formats { property, ..Formats::RAW };
        let options = EngineOptions { formats, ..EngineOptions::new(StorePolicy::Always) };
        let mut world = Self {
            rng: Rng::new(seed),
            now: Nanos::SECOND,
            engine: Engine::new(options.clone()),
            options,
            effects: Effects::default(),
            log: Log::default(),
            pictures: BTreeMap::new(),
            taking: None,
            whole: None,
            bodies: 0,
            temporaries: Vec::new(),
            delivered: BTreeMap::new(),
            seen: Seen::default(),
        };
        world.engine.open_session(OBSERVER);
        world
    }

    fn step(&mut self) {
        self.now = self.now + Nanos(1 + self.rng.below(1_000_000_000));
        match self.rng.below(40) {
            0..=1 => self.restate(),
            2..=3 => self.snapshot(),
            4 => {
                let session = self.session();
                self.engine.close_session(
                    self.now,
                    session,
                    Capacity::UNBOUNDED,
                    &mut self.effects,
                );
                self.absorb();
            }
            5..=6 => {
                self.engine.handle_timeout(self.now, Capacity::UNBOUNDED, &mut self.effects);
                self.absorb();
            }
            _ => {
                let session = self.session();
                let command = self.command(session);
                self.run(session, command);
            }
        }
    }

    fn run(&mut self, session: SessionId, command: Command) {
        self.engine.open_session(session);
        let frames = self.log.frames.len();
        self.engine.handle(
            self.now,
            session,
            command.clone(),
            Capacity::UNBOUNDED,
            &mut self.effects,
        );
        let waits = self.effects.outputs.first().map(|output| output.after);
        let done = self.effects.outputs.iter().any(|output| output.reply == Reply::Done);
        let framed = !self.effects.frames.is_empty();
        match command {
            Command::Commit { .. } if done && framed => self.seen.saw("committed with frame"),
            Command::Commit { .. } if done => {
                assert_eq!(waits, Some(model::DependsOn::NOTHING), "nothing was written");
                self.seen.saw("committed without frame");
            }
            Command::Rollback { .. } if done => self.seen.saw("rolled back"),
            Command::Unsubscribe { .. } if done => self.seen.saw("unsubscribed"),
            _ => {}
        }
        self.absorb();
        let after = self.log.frames.len();
        let in_one_frame = after <= frames + 1;
        assert!(in_one_frame, "{command:?} made {} frames", after - frames);
    }

    /// The frames that a step left go into the log.
    fn absorb(&mut self) {
        self.engine.check();
        let frames = self.log.frames.len();
        self.log.absorb(&self.effects);
        self.log.check_live(&self.engine);
        let shares = |record: &RecordView<'_>| matches!(record, RecordView::Shared { .. });
        let new = self.log.frames[frames..].iter().flat_map(|(_, payload)| describe(payload));
        let new: Vec<_> = new.into_iter().map(Result::unwrap).collect();
        let goes_back = |record: &RecordView<'_>| match record {
            RecordView::Changed { standing, moved: Some(Place::Subscription(_)), .. } => {
                standing.dead.is_none()
            }
            _ => false,
        };
        let (shares, goes_back) = (new.iter().any(shares), new.iter().any(goes_back));
        if shares {
            self.seen.saw("shared record");
        }
        if goes_back {
            self.seen.saw("back in a subscription");
        }
        for output in core::mem::take(&mut self.effects.outputs) {
            match output.reply {
                Reply::Delivered(delivery) => {
                    self.delivered.entry(output.session).or_default().push(delivery.message);
                    self.seen.saw("delivered");
                }
                Reply::Created(destination) => self.temporaries.push(destination),
                _ => {}
            }
        }
        self.effects.clear();
        if self.log.frames.len() > frames {
            let last = self.engine.last_lsn().0;
            let picture = picture(&mut self.engine);
            self.pictures.insert(last, picture);
        }
    }

    fn restate(&mut self) {
        if self.log.frames.is_empty() {
            return;
        }
        let (frame, payload) = self.rng.pick(&self.log.frames);
        self.engine.restate(frame.lsn, &payload, &mut self.effects).unwrap();
        let shares = |record: &RecordView<'_>| matches!(record, RecordView::Shared { .. });
        if describe(&self.effects.records).any(|record| shares(&record.unwrap())) {
            self.seen.saw("shared record stated anew");
        }
        self.absorb();
    }

    fn snapshot(&mut self) {
        let mut taking = match self.taking.take() {
            Some(taking) => taking,
            None => {
                let chunk = 1 + self.rng.below(4) as usize;
                Snapshot::begin(&self.engine, chunk)
            }
        };
        if taking.step(&self.engine) {
            self.taking = Some(taking);
        } else {
            self.whole = Some(taking);
        }
    }

    /// From all frames up to each position, and from the last snapshot where it is of use.
    fn check_every_end(&mut self) {
        for (&last, expected) in &self.pictures {
            let log = self.log.cut(last as usize);
            let mut engine = log.recover(self.options.clone(), None);
            engine.check();
            picture(&mut engine).check(expected, &format!("the log ends with frame {last}"));
            let Some(snapshot) = &self.whole else { continue };
            if snapshot.end.unwrap().0 <= last {
                let mut engine = log.recover(self.options.clone(), Some(snapshot));
                engine.check();
                picture(&mut engine).check(expected, &format!("snapshot, frames to {last}"));
                self.seen.saw("recovered from a fuzzy snapshot");
            }
        }
    }

    fn command(&mut self, session: SessionId) -> Command {
        let link = LinkId(self.rng.below(3) as u32);
        match self.rng.below(36) {
            0..=1 => Command::OpenProducer { link, to: self.destination() },
            2 => Command::CloseProducer { link },
            3..=5 => Command::Put { link, message: self.message(), transaction: None },
            6..=10 => Command::PutTo {
                to: self.destination(),
                message: self.message(),
                transaction: self.in_transaction(),
            },
            11..=13 => {
                let subscription = Box::new(self.subscription());
                Command::Subscribe { link, subscription }
            }
            14 => Command::Unsubscribe { name: self.name() },
            15 => Command::Watch { link, queue: self.queue() },
            16 => Command::CreateTemporary {
                topic: self.rng.one_in(2),
                secret: self.rng.below(u64::MAX).into(),
            },
            17 => Command::DeleteTemporary { destination: self.temporary() },
            18..=20 => {
                let limit = self.rng.below(100);
                Command::Credit { link, limit, bytes: u64::MAX, drain: self.rng.one_in(4) }
            }
            21 => {
                let wait = Some(Nanos(self.rng.below(3)));
                Command::Receive { link, wait, margin: Nanos::ZERO, lease: None }
            }
            22..=24 => match self.delivered.entry(session).or_default().pop() {
                Some(message) => Command::Settle {
                    message,
                    settlement: self.settlement(),
                    transaction: self.in_transaction(),
                },
                None => Command::BrokerStatistics,
            },
            25 => Command::Delete { message: self.message_id(session) },
            26..=29 => Command::Begin { transaction: self.transaction() },
            30..=32 => Command::Commit { transaction: self.transaction() },
            33 => Command::Rollback { transaction: self.transaction() },
            _ => self.replay(),
        }
    }

    /// Sends some dead letters back, mostly, or elsewhere.
    fn replay(&mut self) -> Command {
        let to = self.rng.one_in(4).then(|| self.queue());
        let max = 1 + self.rng.below(3);
        Command::Admin(Box::new(AdminCommand::MoveMessages {
            from: name("DLQ"),
            to,
            message: None,
            selector: None,
            before: MessageId(1 << 40),
            max,
            after: None,
        }))
    }

    fn session(&mut self) -> SessionId {
        SessionId(1 + self.rng.below(SESSIONS))
    }

    fn transaction(&mut self) -> TransactionId {
        TransactionId(u64::from(self.rng.one_in(4)))
    }

    fn in_transaction(&mut self) -> Option<TransactionId> {
        if self.rng.one_in(2) { Some(self.transaction()) } else { None }
    }

    fn settlement(&mut self) -> Settlement {
        let park = Settlement::Park(DeadReason::Rejected);
        let (accept, release) = (Settlement::Accept, Settlement::Release);
        self.rng.pick(&[accept, accept, release, Settlement::Fail, park])
    }

    /// The last that the session got, mostly.
    fn message_id(&mut self, session: SessionId) -> MessageId {
        let any = MessageId(1 + self.rng.below(200));
        let held = self.delivered.entry(session).or_default();
        if self.rng.one_in(4) { any } else { held.pop().unwrap_or(any) }
    }

    fn message(&mut self) -> NewMessage {
        self.bodies += 1;
        let body = format!("colour:{},body:{}", self.rng.pick(&["red", "blue"]), self.bodies);
        let none = Persistence::NonPersistent;
        NewMessage {
            persistence: if self.rng.one_in(4) { none } else { Persistence::Persistent },
            lease: Nanos::from_secs(1 + self.rng.below(200)),
            delay: Nanos(if self.rng.one_in(8) { 5_000_000_000 } else { 0 }),
            expires: self.rng.one_in(8).then(|| self.now + Nanos::from_secs(20)),
            ..NewMessage::new(body.as_bytes().into())
        }
    }

    fn destination(&mut self) -> Destination {
        if let Some(temporary) = self.temporaries.last()
            && self.rng.one_in(8)
        {
            return temporary.clone();
        }
        match self.rng.below(6) {
            0..=1 => Destination::Queue(self.queue()),
            _ => Destination::Topic(self.topic()),
        }
    }

    fn temporary(&mut self) -> Destination {
        let temporary = self.temporaries.pop();
        temporary.unwrap_or(Destination::Queue(name("temporary/queue/1")))
    }

    fn queue(&mut self) -> QueueName {
        name(self.rng.pick(&["mail", "jobs"]))
    }

    fn topic(&mut self) -> QueueName {
        name(self.rng.pick(&["news", "news", "prices"]))
    }

    fn name(&mut self) -> SubscriptionName {
        SubscriptionName {
            user: None,
            client: if self.rng.one_in(2) { Some(name("client")) } else { None },
            name: name(self.rng.pick(&["a", "b", "c"])),
            durable: !self.rng.one_in(5),
        }
    }

    fn subscription(&mut self) -> Subscription {
        Subscription {
            name: if self.rng.one_in(8) { None } else { Some(self.name()) },
            selector: self.rng.one_in(3).then(|| "colour = 'blue'".into()),
            shared: self.rng.one_in(2),
            ..Subscription::new(self.topic())
        }
    }
}

impl Picture {
    fn check(&self, expected: &Self, when: &str) {
        assert_eq!(self.subscriptions, expected.subscriptions, "{when}");
        for id in self.messages.keys().chain(expected.messages.keys()) {
            assert_eq!(self.messages.get(id), expected.messages.get(id), "{when}: message {id}");
        }
    }
}

/// The state of an engine that must survive.
fn picture(engine: &mut Engine) -> Picture {
    let mut messages = durable(engine, |_| Vec::new());
    engine.open_session(OBSERVER);
    for (id, message) in &mut messages {
        let mut effects = Effects::default();
        engine.handle(
            Nanos::ZERO,
            OBSERVER,
            Command::Peek(Peek::Message(*id)),
            Capacity::UNBOUNDED,
            &mut effects,
        );
        let Reply::Found { element, .. } = &effects.outputs[0].reply else {
            panic!("message {id} is there");
        };
        message.body = element.body.to_vec();
        // Deliveries, leases and the ends of delays are not journalled.
        let failed = message.standing.counters.failed;
        message.standing.counters = MessageCounters { failed, ..MessageCounters::default() };
        message.standing.state = StoredState::Ready;
    }
    let snapshot = Snapshot::whole(engine);
    let records = snapshot.chunks.iter().flat_map(|chunk| describe(chunk)).map(Result::unwrap);
    let subscriptions = records.filter(|record| matches!(record, RecordView::Subscribed(_)));
    Picture { messages, subscriptions: subscriptions.map(|record| record.to_string()).collect() }
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

/// Properties of a body like `colour:blue,body:3`.
fn property<'m>(seen: &Subject<'m>, _: Found<'_, 'm>, name: &str) -> PropertyValue<'m> {
    let body = seen.body;
    let text = std::str::from_utf8(body).unwrap_or_default();
    let mut pairs = text.split(',').filter_map(|pair| pair.split_once(':'));
    let value = pairs.find(|(key, _)| *key == name);
    value.map_or(PropertyValue::Null, |(_, value)| PropertyValue::String(value))
}
