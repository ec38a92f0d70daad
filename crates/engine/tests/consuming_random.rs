//! Random consumers of every kind on a few queues, with failures, expiry, lost sessions and
//! operators that move messages and dead letters. A list of all messages beside them says which
//! consumer may get which message. No message is with two at once, none is delivered after its
//! time, selectors hold, and failures are counted to the letter. A consumer that is told that it
//! has had all has had all. In the end the log brings the same messages back, and any part of it is
//! sound.

use std::collections::{BTreeMap, BTreeSet};

use engine::{DeadLetters, Effects, Engine, EngineOptions, QueuePolicies, QueuePolicy};
use model::{
    AdminCommand, Capacity, Command, ConsumerMode, DeadReason, Delivery, Destination, Durability,
    Formats, Found, LinkId, MessageId, Nanos, NewMessage, Output, Persistence, PropertyValue,
    QueueName, Reply, SessionId, Settlement, StorePolicy, Subject,
};
use testkit::{Rng, Seen, seeds};

use crate::support::log::{Durable, Log, Snapshot, durable};
use crate::support::paging;

const QUEUES: [&str; 3] = ["q", "r", "DLQ"];
/// Its dead letters are dropped.
const DROPPING: &str = "r";
const SELECTORS: [Option<&str>; 3] = [None, Some("n > 3"), Some("n = 1")];
const SESSIONS: u64 = 3;
const LINKS: u64 = 5;
const MAX_DELIVERY_ATTEMPTS: u32 = 3;
const STEPS: usize = 800;
const SEEDS: u64 = 40;

#[derive(Clone, Debug)]
struct Message {
    queue: &'static str,
    number: u64,
    priority: u32,
    /// Its place among those of its priority.
    order: u64,
    expires: Option<Nanos>,
    is_persistent: bool,
    failed: u32,
    dead: Option<(DeadReason, &'static str)>,
    /// When it came from another queue.
    came: Option<Nanos>,
    holder: Option<(SessionId, Held)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// Until it is settled.
    ByFeed,
    /// As if by a lease.
    ByReceive,
}

#[derive(Clone, Debug)]
struct Consumer {
    queue: &'static str,
    selector: Option<&'static str>,
    kind: Kind,
    limit: u64,
    delivered: u64,
    draining: bool,
    last: Option<(u32, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Take,
    Browse,
    Watch,
}

struct World {
    rng: Rng,
    now: Nanos,
    options: EngineOptions,
    /// Messages that memory alone keeps become dead letters as well.
    parks_all: bool,
    engine: Engine,
    effects: Effects,
    log: Log,
    messages: BTreeMap<MessageId, Message>,
    consumers: BTreeMap<(SessionId, LinkId), Consumer>,
    seen: Seen,
}

#[test]
fn consumers_get_their_messages() {
    let mut seen = Seen::default();
    for seed in seeds(SEEDS) {
        let mut world = World::new(seed);
        (0..STEPS).for_each(|_| world.step());
        world.check_log();
        seen.merge(world.seen);
    }
    seen.expect(
        &[
            "came back",
            "taken",
            "browsed",
            "received",
            "drained",
            "died",
            "dropped",
            "closed",
            "moved",
            "purged",
        ],
        100,
    );
}

impl World {
    fn new(seed: u64) -> Self {
        let parks_all = seed.is_multiple_of(3);
        let dead_letters = if parks_all { DeadLetters::Park } else { DeadLetters::default() };
        let default = QueuePolicy {
            max_delivery_attempts: MAX_DELIVERY_ATTEMPTS,
            dead_letters,
            ..QueuePolicy::default()
        };
        let dropping = QueuePolicy { dead_letters: DeadLetters::Drop, ..default };
        let named = BTreeMap::from([(name(DROPPING), dropping)]);
        let queue_policies = QueuePolicies { default, named };
        let formats = Formats { property, ..Formats::RAW };
        let log_bodies_max = if seed.is_multiple_of(2) { u64::MAX } else { 0 };
        let options = EngineOptions {
            queue_policies,
            formats,
            log_bodies_max,
            ..EngineOptions::new(StorePolicy::Always)
        };
        let mut world = Self {
            rng: Rng::new(seed),
            now: Nanos::SECOND,
            engine: Engine::new(options.clone()),
            options,
            parks_all,
            effects: Effects::default(),
            log: Log::default(),
            messages: BTreeMap::new(),
            consumers: BTreeMap::new(),
            seen: Seen::default(),
        };
        (0..SESSIONS)
            .for_each(|session| crate::support::users::open(&mut world.engine, SessionId(session)));
        world
    }

    fn step(&mut self) {
        self.now = self.now + Nanos::from_millis(self.rng.below(30));
        if self.engine.bodies().has_paged_out() {
            // While bodies come back time passes as well.
            self.settle_time();
        }
        match self.rng.below(40) {
            0 => self.close_session(),
            1 if self.rng.one_in(2) => self.relocate(),
            1 if self.rng.one_in(8) => self.purge(),
            1..5 => self.open_consumer(),
            5 => self.close_consumer(),
            6..18 => self.put(),
            18..27 => self.ask(),
            _ => self.settle(),
        }
        self.engine.check();
        if self.rng.one_in(3) {
            self.settle_time();
        }
    }

    /// Everything that is due happens. Nothing is uncertain after it.
    fn settle_time(&mut self) {
        while self.engine.poll_timeout().is_some_and(|at| at <= self.now) {
            self.expire();
            paging::before(&mut self.engine);
            self.engine.handle_timeout(self.now, Capacity::UNBOUNDED, &mut self.effects);
            self.after();
            self.absorb();
            self.engine.check();
        }
    }

    fn run(&mut self, session: SessionId, command: Command) {
        paging::before(&mut self.engine);
        self.engine.handle(self.now, session, command, Capacity::UNBOUNDED, &mut self.effects);
        self.after();
    }

    /// Bodies come back if a command needs them.
    fn after(&mut self) {
        if self.engine.bodies().is_disturbed() || self.engine.bodies().wanted_frame().is_some() {
            self.expire();
        }
        let Self { engine, log, now, effects, .. } = self;
        let came = paging::after(engine, &|lsn| log.payload(lsn), *now, effects);
        (0..came).for_each(|_| self.seen.saw("came back"));
    }

    fn put(&mut self) {
        let (queue, number) = (self.rng.pick(&QUEUES), self.rng.below(6));
        let priority = self.rng.below(3) as u32;
        let expires =
            self.rng.one_in(3).then(|| self.now + Nanos::from_millis(self.rng.below(200)));
        let persistence = self.rng.pick(&[Persistence::Persistent, Persistence::NonPersistent]);
        let body = format!("n:{number}");
        let message = NewMessage {
            priority,
            expires,
            persistence,
            ..NewMessage::new(body.as_bytes().into())
        };
        let to = Destination::Queue(name(queue));
        let session = self.session();
        self.run(session, Command::PutTo { to, message, transaction: None });
        let Some(Output { reply: Reply::Stored { message: id }, .. }) =
            self.effects.outputs.first()
        else {
            panic!("{:?}", self.effects.outputs);
        };
        let (failed, dead, came, holder) = (0, None, None, None);
        let (order, is_persistent) = (id.0, persistence == Persistence::Persistent);
        let message = Message {
            queue,
            number,
            priority,
            order,
            expires,
            is_persistent,
            failed,
            dead,
            came,
            holder,
        };
        self.messages.insert(*id, message);
        self.absorb();
    }

    fn open_consumer(&mut self) {
        let (session, link, queue) = (self.session(), self.link(), self.rng.pick(&QUEUES));
        let selector = self.rng.pick(&SELECTORS);
        let kind = self.rng.pick(&[Kind::Take, Kind::Take, Kind::Browse, Kind::Watch]);
        if self.consumers.contains_key(&(session, link)) {
            return;
        }
        let mode = if kind == Kind::Browse { ConsumerMode::Browse } else { ConsumerMode::Take };
        let selector = selector.filter(|_| kind != Kind::Watch);
        let command = if kind == Kind::Watch {
            Command::Watch { link, queue: name(queue) }
        } else {
            let selector = selector.map(Into::into);
            Command::OpenConsumer { link, queue: name(queue), selector, mode }
        };
        let (limit, delivered, draining, last) = (0, 0, false, None);
        let consumer = Consumer { queue, selector, kind, limit, delivered, draining, last };
        self.consumers.insert((session, link), consumer);
        self.run(session, command);
        assert_eq!(self.effects.outputs[0].reply, Reply::Done);
        self.absorb();
    }

    fn close_consumer(&mut self) {
        let (session, link) = (self.session(), self.link());
        self.run(session, Command::CloseConsumer { link });
        self.absorb();
        self.consumers.remove(&(session, link));
    }

    fn ask(&mut self) {
        let Some((session, link)) = self.pick_consumer() else { return };
        let consumer = self.consumers.get_mut(&(session, link)).unwrap();
        let command = if consumer.kind == Kind::Watch {
            let wait = self.rng.one_in(2).then_some(Nanos::from_millis(10));
            Command::Receive { link, wait, margin: Nanos::ZERO, lease: None }
        } else {
            let limit = consumer.delivered + self.rng.below(5);
            let drain = self.rng.one_in(2);
            (consumer.limit, consumer.draining) = (limit, drain);
            Command::Credit { link, limit, bytes: u64::MAX, drain }
        };
        self.run(session, command);
        self.absorb();
    }

    fn settle(&mut self) {
        let held = self.messages.iter().filter_map(|(id, message)| Some((*id, message.holder?.0)));
        let held: Vec<_> = held.collect();
        if held.is_empty() {
            return;
        }
        let (id, session) = self.rng.pick(&held);
        let settlement = self.rng.pick(&[
            Settlement::Accept,
            Settlement::Release,
            Settlement::Fail,
            Settlement::Return,
            Settlement::GiveBack { failed: true, delay: Nanos::ZERO },
            Settlement::Park(DeadReason::Rejected),
        ]);
        self.settled(id, settlement);
        self.run(session, Command::Settle { message: id, settlement, transaction: None });
        assert_eq!(self.effects.outputs[0].reply, Reply::Done);
        self.absorb();
    }

    fn close_session(&mut self) {
        let session = self.session();
        let held = self.messages.iter().filter_map(|(id, message)| {
            let (holder, held) = message.holder?;
            (holder == session).then_some((*id, held))
        });
        let mut begun = BTreeSet::new();
        let knows_begun = self.rng.one_in(2);
        for (id, held) in held.collect::<Vec<_>>() {
            let is_begun = !knows_begun || self.rng.one_in(3);
            begun.extend(is_begun.then_some(id));
            let fails = held == Held::ByFeed && is_begun;
            self.settled(id, if fails { Settlement::Fail } else { Settlement::Release });
        }
        self.consumers.retain(|(owner, _), _| *owner != session);
        paging::before(&mut self.engine);
        if knows_begun {
            self.engine.note_begun(session, begun);
        }
        self.engine.close_session(self.now, session, Capacity::UNBOUNDED, &mut self.effects);
        self.after();
        self.absorb();
        crate::support::users::open(&mut self.engine, session);
        self.seen.saw("closed");
    }

    /// Moves messages that are not held and not beyond their time to the tail of another queue, or
    /// dead letters back.
    fn relocate(&mut self) {
        let (from, selector) = (self.rng.pick(&QUEUES), self.rng.pick(&SELECTORS));
        let to = self.rng.one_in(2).then(|| self.rng.pick(&QUEUES));
        let now = self.now;
        let mut chosen = self.unheld(from, selector);
        chosen.retain(|id| {
            let message = &self.messages[id];
            let has_place = to.is_some() || message.dead.is_some();
            has_place && message.expires.is_none_or(|at| at > now)
        });
        let next = self.next_message();
        for (id, order) in chosen.iter().zip(next..) {
            let message = self.messages.get_mut(id).unwrap();
            let origin = message.dead.map(|(_, from)| from);
            message.queue = to.or(origin).unwrap();
            (message.order, message.failed, message.dead) = (order, 0, None);
            message.came = Some(now);
        }
        let command = AdminCommand::MoveMessages {
            from: name(from),
            to: to.map(name),
            message: None,
            selector: selector.map(Into::into),
            before: MessageId(next),
            max: u64::MAX,
            after: None,
        };
        self.operate(command, chosen.len());
        chosen.iter().for_each(|_| self.seen.saw("moved"));
    }

    fn purge(&mut self) {
        let (queue, selector) = (self.rng.pick(&QUEUES), self.rng.pick(&SELECTORS));
        let chosen = self.unheld(queue, selector);
        for id in &chosen {
            self.messages.remove(id);
        }
        let (queue, selector) = (name(queue), selector.map(Into::into));
        let command = AdminCommand::Purge { queue, state: None, selector, after: None };
        self.operate(command, chosen.len());
        chosen.iter().for_each(|_| self.seen.saw("purged"));
    }

    /// Messages of a queue that are not held and that a selector takes, in its order.
    fn unheld(&self, queue: &str, selector: Option<&str>) -> Vec<MessageId> {
        let all = self.messages.iter().filter(|(_, message)| {
            message.queue == queue && message.holder.is_none() && matches(selector, message.number)
        });
        let mut chosen: Vec<_> = all.map(|(id, _)| *id).collect();
        chosen.sort_by_key(|id| (self.messages[id].priority, self.messages[id].order));
        chosen
    }

    /// So many messages are changed, if the queue is there.
    fn operate(&mut self, command: AdminCommand, count: usize) {
        let session = self.session();
        let (mut done, mut command) = (0, command);
        loop {
            self.run(session, Command::Admin(Box::new(command.clone())));
            // A command that waited for a body is answered behind the one for which the body was
            // brought.
            let is_reply = |it: &Output| {
                matches!(it.reply, Reply::Count(_) | Reply::CountUntil { .. } | Reply::NotFound)
            };
            let at = self.effects.outputs.iter().position(is_reply).unwrap();
            let reply = self.effects.outputs.remove(at).reply;
            self.absorb();
            match reply {
                Reply::Count(more) => {
                    assert_eq!(done + more, count as u64, "all are changed");
                    return;
                }
                Reply::CountUntil { count: more, next } => {
                    done += more;
                    go_on(&mut command, next);
                }
                reply => return assert_eq!((reply, count), (Reply::NotFound, 0)),
            }
        }
    }

    fn next_message(&mut self) -> u64 {
        self.run(SessionId(0), Command::Admin(Box::new(AdminCommand::NextMessage)));
        match self.effects.outputs.pop().unwrap().reply {
            Reply::Stored { message } => message.0,
            other => panic!("{other:?}"),
        }
    }

    /// Settles a message that a session holds.
    fn settled(&mut self, id: MessageId, settlement: Settlement) {
        let message = self.messages.get_mut(&id).unwrap();
        message.holder = None;
        match settlement {
            Settlement::Accept => {
                self.messages.remove(&id);
            }
            Settlement::Release
            | Settlement::Return
            | Settlement::GiveBack { failed: false, .. } => {}
            Settlement::Fail | Settlement::GiveBack { failed: true, .. } => {
                message.failed += 1;
                if message.failed >= MAX_DELIVERY_ATTEMPTS {
                    self.die(id, DeadReason::Attempts);
                }
            }
            Settlement::Park(reason) => self.die(id, reason),
        }
    }

    fn die(&mut self, id: MessageId, reason: DeadReason) {
        let message = self.messages.get_mut(&id).unwrap();
        if message.dead.is_some() {
            return;
        }
        let is_dropped = !self.parks_all && !message.is_persistent;
        if message.queue == DROPPING || is_dropped {
            self.messages.remove(&id);
            return self.seen.saw("dropped");
        }
        message.dead = Some((reason, message.queue));
        message.came = Some(self.now);
        (message.queue, message.failed, message.expires) = ("DLQ", 0, None);
        self.seen.saw("died");
    }

    /// Messages beyond their time that are not held become dead letters.
    fn expire(&mut self) {
        let now = self.now;
        let over = self.messages.iter().filter(|(_, message)| {
            message.holder.is_none() && message.expires.is_some_and(|at| at <= now)
        });
        for id in over.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.die(id, DeadReason::Expired);
        }
    }

    /// Checks the engine's replies, and its frames.
    fn absorb(&mut self) {
        self.log.absorb(&self.effects);
        self.log.check_live(&self.engine);
        let outputs = std::mem::take(&mut self.effects.outputs);
        for Output { session, reply, .. } in outputs {
            match reply {
                Reply::Delivered(delivery) => self.delivered(session, &delivery),
                Reply::Drained { link, delivered } => self.drained(session, link, delivered),
                Reply::Done | Reply::Stored { .. } | Reply::TimedOut { .. } => {}
                other => panic!("{other:?} answers nothing of this"),
            }
        }
        self.effects.clear();
    }

    fn delivered(&mut self, session: SessionId, delivery: &Delivery) {
        let link = delivery.link.unwrap();
        let consumer = self.consumers.get_mut(&(session, link)).expect("it was not closed");
        let message = self.messages.get_mut(&delivery.message).expect("it lives");
        assert_eq!(message.queue, consumer.queue);
        assert_eq!(message.failed, delivery.failed, "failures are counted");
        assert!(message.expires.is_none_or(|at| at > self.now), "nobody gets what is over");
        let letter = delivery.dead.as_ref().map(|dead| (dead.reason, dead.from.as_str()));
        assert_eq!(letter, message.dead, "dead letters say why");
        assert_eq!(message.holder, None, "nobody gets what another has");
        assert!(matches(consumer.selector, message.number), "{consumer:?} gets {message:?}");
        consumer.delivered += 1;
        let what = match consumer.kind {
            Kind::Watch => {
                message.holder = Some((session, Held::ByReceive));
                "received"
            }
            Kind::Take => {
                assert!(consumer.delivered <= consumer.limit, "nobody gets more than it may");
                message.holder = Some((session, Held::ByFeed));
                "taken"
            }
            Kind::Browse => {
                assert!(consumer.delivered <= consumer.limit, "nobody sees more than it may");
                let place = Some((message.priority, message.order));
                assert!(consumer.last < place, "from the first to the last");
                consumer.last = place;
                "browsed"
            }
        };
        self.seen.saw(what);
    }

    fn drained(&mut self, session: SessionId, link: LinkId, delivered: u64) {
        let now = self.now;
        let consumer = self.consumers.get_mut(&(session, link)).expect("it was not closed");
        assert!(consumer.draining, "it wanted to know");
        assert_eq!(consumer.delivered, delivered);
        // A browser has passed by the messages that were held then.
        let all_had = consumer.delivered == consumer.limit || consumer.kind == Kind::Browse;
        (consumer.draining, consumer.limit) = (false, delivered);
        let consumer = consumer.clone();
        let more = self.messages.iter().find(|(_, message)| {
            message.queue == consumer.queue
                && message.holder.is_none()
                // It may have come just after.
                && message.came != Some(now)
                && message.expires.is_none_or(|at| at > now)
                && matches(consumer.selector, message.number)
        });
        assert!(all_had || more.is_none(), "{consumer:?} is drained but for {more:?}");
        self.seen.saw("drained");
    }

    /// All that is journalled comes back; any part of the log is sound.
    fn check_log(&mut self) {
        self.settle_time();
        let bodies = |_| Vec::new();
        let expected = durable(&self.engine, bodies);
        for snapshot in [None, Some(Snapshot::whole(&self.engine))] {
            let recovered = self.log.recover(self.options.clone(), snapshot.as_ref());
            recovered.check();
            assert_eq!(undelivered(durable(&recovered, bodies)), undelivered(expected.clone()));
        }
        for frames in 0..self.log.frames.len() {
            if self.rng.one_in(10) {
                self.log.cut(frames).recover(self.options.clone(), None).check();
            }
        }
        let journalled = expected.values().all(|message| message.durability == Durability::Synced);
        assert!(journalled && expected.keys().all(|id| self.messages.contains_key(id)));
    }

    fn session(&mut self) -> SessionId {
        SessionId(self.rng.below(SESSIONS))
    }

    fn link(&mut self) -> LinkId {
        LinkId(self.rng.below(LINKS) as u32)
    }

    fn pick_consumer(&mut self) -> Option<(SessionId, LinkId)> {
        let keys: Vec<_> = self.consumers.keys().copied().collect();
        (!keys.is_empty()).then(|| self.rng.pick(&keys))
    }
}

/// Deliveries alone are not journalled.
fn undelivered(mut messages: BTreeMap<MessageId, Durable>) -> BTreeMap<MessageId, Durable> {
    messages.values_mut().for_each(|message| message.standing.counters.delivered = 0);
    messages
}

fn matches(selector: Option<&str>, number: u64) -> bool {
    match selector {
        None => true,
        Some("n > 3") => number > 3,
        Some("n = 1") => number == 1,
        Some(other) => panic!("{other}"),
    }
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

/// A body like `n:1` has a property.
fn property<'m>(seen: &Subject<'m>, _: Found<'_, 'm>, name: &str) -> PropertyValue<'m> {
    let body = seen.body;
    let text = std::str::from_utf8(body).unwrap_or_default();
    let value = text.split_once(':').filter(|(key, _)| *key == name).map(|(_, value)| value);
    value.and_then(|value| value.parse().ok()).map_or(PropertyValue::Null, PropertyValue::Integer)
}

/// The same from there on.
fn go_on(command: &mut AdminCommand, next: model::PageEnd) {
    match command {
        AdminCommand::Purge { after, .. } | AdminCommand::MoveMessages { after, .. } => {
            *after = Some(next);
        }
        other => panic!("{other:?} is done at once"),
    }
}
