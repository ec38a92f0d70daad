//! Bodies leave memory at once and come back late, in pieces of any size, while all clients go on.
//! There are consumers that select, browsers, commands that compare, and senders that wait for a
//! place. The log moves records about, and subscriptions and dead letters share bodies. The engine
//! checks at each step that no command waits for a body that will not come. In the end every
//! command has had an answer.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::sync::Arc;

use engine::{
    Effects, Engine, EngineOptions, QueueBounds, QueuePolicies, QueuePolicy, Spilled, StoredBody,
};
use model::{
    BodyPlace, Capacity, Command, ConsumerMode, DeadReason, Destination, End, Formats, Found,
    LinkId, ListCommand, Lsn, MessageId, Nanos, NewMessage, Output, Persistence, PropertyValue,
    QueueName, Reply, SessionId, Settlement, StorePolicy, Subject, Subscription, SubscriptionName,
};
use testkit::{Rng, Seen, seeds};

use crate::support::paging;

const QUEUES: [&str; 3] = ["a", "b", "narrow"];
const BODIES: [&[u8]; 3] = [b"x", b"y", b"zz"];
const SELECTORS: [&str; 3] = ["first = 120", "first = 121", "first = 122"];
const SESSIONS: u64 = 6;
const OBSERVER: SessionId = SessionId(99);
/// Links of this number are of subscriptions, others of queues.
const SUBSCRIBER: LinkId = LinkId(2);
const TOPIC: &str = "news";
const SUBSCRIPTIONS: [&str; 3] = ["one", "two", "three"];
const STEPS: usize = 1_500;
const SEEDS: u64 = 130;

/// The answer that a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    Answer,
    Place { ticket: u64 },
}

struct World {
    rng: Rng,
    now: Nanos,
    engine: Engine,
    effects: Effects,
    frames: BTreeMap<Lsn, Vec<u8>>,
    /// Bodies on their way to the spill, and bodies that lie in it.
    spilling: Vec<StoredBody>,
    spill: BTreeMap<NonZeroU64, StoredBody>,
    /// Of these, those that are being put elsewhere.
    moving: Vec<(NonZeroU64, StoredBody)>,
    places: u64,
    asked: BTreeMap<SessionId, Awaits>,
    /// The session of the command that is being handled.
    asking: Option<SessionId>,
    /// Consumers, with the count that they had; and those that are to be told that nothing is left.
    consumers: BTreeMap<(SessionId, LinkId), (ConsumerMode, u64)>,
    draining: BTreeSet<(SessionId, LinkId)>,
    held: BTreeMap<MessageId, SessionId>,
    /// By the first of the copies, and the body that is being published.
    published: BTreeMap<MessageId, &'static [u8]>,
    publishing: Option<&'static [u8]>,
    seen: Seen,
}

#[test]
fn body_waits_are_always_answered() {
    let mut seen = Seen::default();
    for seed in seeds(SEEDS) {
        let mut world = World::new(seed);
        (0..STEPS).for_each(|_| world.step());
        world.end();
        seen.merge(world.seen);
    }
    seen.expect(&EXPECTED, 101);
}

/// Events that must have happened often enough for the test to mean something.
const EXPECTED: [&str; 19] = [
    "answered",
    "answered after bodies",
    "late",
    "delivered",
    "drained",
    "restated while wanted",
    "left while waiting",
    "fetched",
    "fetched ahead",
    "spilled",
    "spilled in vain",
    "refused by the spill",
    "fetched from the spill",
    "shown from the spill",
    "moved in the spill",
    "moved in vain",
    "published",
    "delivered to a subscriber",
    "shared in the spill",
];

impl World {
    fn new(seed: u64) -> Self {
        let bounds = QueueBounds { messages_max: Some(4), ..QueueBounds::default() };
        let narrow = QueuePolicy { bounds, ..QueuePolicy::default() };
        let mut queue_policies = QueuePolicies::default();
        queue_policies.named.insert(name("narrow"), narrow);
        let mut rng = Rng::new(seed);
        let engine = Engine::new(EngineOptions {
            queue_policies,
            formats: Formats { property, ..Formats::RAW },
            log_bodies_max: rng.pick(&[0, 0, 100, 1_000]),
            block_timeout: Nanos::from_secs(5),
            spills: true,
            // So that copies of published messages are elements of a list as well.
            dead_letter_queue: name(QUEUES[0]),
            ..EngineOptions::new(StorePolicy::Always)
        });
        let mut world = Self {
            rng,
            now: Nanos::SECOND,
            engine,
            effects: Effects::default(),
            frames: BTreeMap::new(),
            spilling: Vec::new(),
            spill: BTreeMap::new(),
            moving: Vec::new(),
            places: 0,
            asked: BTreeMap::new(),
            asking: None,
            consumers: BTreeMap::new(),
            draining: BTreeSet::new(),
            held: BTreeMap::new(),
            published: BTreeMap::new(),
            publishing: None,
            seen: Seen::default(),
        };
        world.subscribe_all();
        world
    }

    /// Durable subscriptions, which take published messages whether a consumer is there or not.
    fn subscribe_all(&mut self) {
        crate::support::users::open(&mut self.engine, OBSERVER);
        for (link, name) in (0..).map(LinkId).zip(SUBSCRIPTIONS) {
            let subscription = Box::new(subscription(Some(name)));
            self.handle(OBSERVER, Command::Subscribe { link, subscription });
            self.handle(OBSERVER, Command::CloseConsumer { link });
        }
    }

    fn step(&mut self) {
        match self.rng.below(50) {
            0..8 => self.put(),
            8..14 => self.compare(),
            14..18 => self.credit(),
            18..21 => self.settle(),
            21..24 => self.pop(),
            24 if self.rng.one_in(3) => self.close(),
            25 if self.rng.one_in(3) => self.close_consumer(),
            26 | 27 => self.restate(),
            28..32 => paging::before(&mut self.engine),
            32..35 => drop(self.fetch()),
            40 | 41 => self.begin_to_spill(),
            42 => self.spill(),
            43 => drop(self.fetch_spilled()),
            44 => self.begin_to_move(),
            45 => self.move_on(),
            46..50 => self.publish(),
            _ => self.turn(),
        }
        self.engine.check();
    }

    /// All wanted bodies come back: from then on commands wait only for messages or a place.
    fn end(&mut self) {
        for _ in 0..20_000 {
            if self.engine.poll_timeout().is_some_and(|at| at <= self.now) {
                self.turn();
            } else if !self.fetch() && !self.fetch_spilled() {
                break;
            }
            self.engine.check();
        }
        assert_eq!(self.engine.bodies().wanted_frame(), None, "it comes to an end");
        assert_eq!(self.engine.bodies().wanted_spilled(), None, "it comes to an end");
        let lost = self.asked.values().filter(|awaits| **awaits == Awaits::Answer);
        assert_eq!(lost.count(), 0, "{:?}", self.asked);
        assert!(self.draining.is_empty(), "{:?} hear nothing", self.draining);
    }

    fn put(&mut self) {
        let Some(by) = self.idle() else { return };
        let (to, body) = (Destination::Queue(self.queue()), self.rng.pick(&BODIES));
        let persistence = self.rng.pick(&[Persistence::Persistent, Persistence::NonPersistent]);
        let message = NewMessage { persistence, ..NewMessage::new(body.into()) };
        self.ask(by, Command::PutTo { to, message, transaction: None });
    }

    fn publish(&mut self) {
        let Some(by) = self.idle() else { return };
        let (to, body) = (Destination::Topic(name(TOPIC)), self.rng.pick(&BODIES));
        let persistence = self.rng.pick(&[Persistence::Persistent, Persistence::NonPersistent]);
        let message = NewMessage { persistence, ..NewMessage::new(body.into()) };
        self.publishing = Some(body);
        self.ask(by, Command::PutTo { to, message, transaction: None });
        assert_eq!(self.publishing, None, "it is answered at once");
        self.seen.saw("published");
    }

    /// The spill takes the bodies that wait for it, unless it is busy.
    fn begin_to_spill(&mut self) {
        if self.rng.one_in(3) {
            self.engine.try_spill_again();
        }
        if self.spilling.is_empty() {
            self.spilling = self.engine.poll_spill(self.rng.below(8));
            assert!(self.spilling.len() <= 8, "no more than was asked for");
        }
    }

    /// It has written it, or is full.
    fn spill(&mut self) {
        let bodies = std::mem::take(&mut self.spilling);
        if bodies.is_empty() {
            return;
        }
        if self.rng.one_in(4) {
            self.engine.handle_unspilled(bodies.iter().map(|(id, _)| *id));
            return self.seen.saw("refused by the spill");
        }
        let mut placed = Vec::new();
        for (id, body) in bodies {
            self.places += 1;
            let place = NonZeroU64::new(self.places).unwrap();
            placed.push((id, Spilled { place, bytes: body.len() as u32 }));
            self.spill.insert(place, (id, body));
        }
        let count = self.engine.bodies().spilled() as usize + placed.len();
        self.engine.handle_spilled(placed.iter().copied());
        self.seen.saw("spilled");
        if (self.engine.bodies().spilled() as usize) < count {
            self.seen.saw("spilled in vain");
        }
        self.vacate();
    }

    /// Some bodies that lie there are put elsewhere.
    fn begin_to_move(&mut self) {
        let last = NonZeroU64::new(self.places + 1).unwrap();
        let first = NonZeroU64::new(1 + self.rng.below(last.get())).unwrap();
        if self.moving.is_empty() {
            let found = self.engine.spilled_within(first..=last).take(3);
            self.moving = found.map(|it| (it.place, self.spill[&it.place].clone())).collect();
        }
    }

    /// It lies there. Some may be gone meanwhile.
    fn move_on(&mut self) {
        let mut moved = Vec::new();
        for (from, (id, body)) in std::mem::take(&mut self.moving) {
            self.places += 1;
            let place = NonZeroU64::new(self.places).unwrap();
            moved.push((from, Spilled { place, bytes: body.len() as u32 }));
            self.spill.insert(place, (id, body));
            let is_gone = !self.spill.contains_key(&from);
            self.seen.saw(if is_gone { "moved in vain" } else { "moved in the spill" });
        }
        self.engine.handle_moved(moved);
        self.vacate();
    }

    /// Each vacated body was there, once.
    fn vacate(&mut self) {
        for Spilled { place, bytes } in self.engine.take_vacated() {
            let (_, body) = self.spill.remove(&place).expect("it is vacated once");
            assert_eq!(body.len(), bytes as usize);
        }
        assert_eq!(self.spill.len() as u64, self.engine.bodies().spilled(), "all else is needed");
    }

    /// A body comes back from the spill, with some behind it.
    fn fetch_spilled(&mut self) -> bool {
        let Some(place) = self.engine.bodies().wanted_spilled() else { return false };
        let most = 1 + self.rng.below(3) as usize;
        let places = self.engine.spilled_from(place).take(most);
        let places: Vec<_> = places.map(|spilled| spilled.place).collect();
        assert_eq!(places.first(), Some(&place), "what is wanted comes first");
        for place in places.into_iter().rev() {
            let (_, body) = self.spill[&place].clone();
            self.engine.restore_spilled(place, body);
        }
        self.vacate();
        self.seen.saw("fetched from the spill");
        true
    }

    fn compare(&mut self) {
        let Some(by) = self.idle() else { return };
        if self.rng.one_in(4) {
            let count = 1 + self.rng.below(4);
            let commands = (0..count).map(|_| Command::List(self.comparison()));
            let commands = commands.collect();
            return self.ask(by, Command::Batch { commands });
        }
        let command = self.comparison();
        self.ask(by, Command::List(command));
    }

    fn comparison(&mut self) -> ListCommand {
        let (queue, origin, from) = (self.queue(), self.end_of_list(), self.end_of_list());
        let element = self.rng.pick(&BODIES).into();
        match self.rng.below(5) {
            0 => ListCommand::Remove { queue, origin, element, max: 1 + self.rng.below(3) },
            1 | 2 => ListCommand::Insert {
                queue,
                origin,
                pivot: self.rng.pick(&BODIES).into(),
                towards: from,
                element,
                persistence: Persistence::Persistent,
            },
            3 => {
                let (to, wait) = (self.queue(), Some(Nanos::ZERO));
                ListCommand::Move { from: queue, from_end: origin, to, to_end: from, wait }
            }
            _ => ListCommand::Locate {
                queue,
                origin,
                from,
                element,
                skip: 0,
                max: 1 + self.rng.below(3),
                scan_max: self.rng.one_in(2).then_some(3),
            },
        }
    }

    fn pop(&mut self) {
        let Some(by) = self.idle() else { return };
        let (queue, end, max) = (self.queue(), self.end_of_list(), 1 + self.rng.below(3));
        self.ask(by, Command::List(ListCommand::Pop { queue, end, max }));
    }

    /// A consumer is opened, or gets more to take.
    fn credit(&mut self) {
        let (by, link) = (self.session(), LinkId(self.rng.below(3) as u32));
        crate::support::users::open(&mut self.engine, by);
        if let Some((_, delivered)) = self.consumers.get(&(by, link)) {
            let (limit, drain) = (delivered + self.rng.below(4), self.rng.one_in(2));
            if drain {
                self.draining.insert((by, link));
            } else {
                self.draining.remove(&(by, link));
            }
            return self.handle(by, Command::Credit { link, limit, bytes: u64::MAX, drain });
        }
        if link == SUBSCRIBER {
            let name = self.rng.pick(&SUBSCRIPTIONS);
            let subscription = Box::new(subscription((!self.rng.one_in(4)).then_some(name)));
            self.consumers.insert((by, link), (ConsumerMode::Take, 0));
            return self.handle(by, Command::Subscribe { link, subscription });
        }
        let (queue, selector) = (self.queue(), Some(self.rng.pick(&SELECTORS).into()));
        let mode = self.rng.pick(&[ConsumerMode::Take, ConsumerMode::Browse]);
        self.consumers.insert((by, link), (mode, 0));
        self.handle(by, Command::OpenConsumer { link, queue, selector, mode });
    }

    fn settle(&mut self) {
        let Some((message, by)) = self.held.pop_first() else { return };
        let park = Settlement::Park(DeadReason::Rejected);
        let settlement = self.rng.pick(&[Settlement::Accept, Settlement::Release, park]);
        self.handle(by, Command::Settle { message, settlement, transaction: None });
    }

    fn close_consumer(&mut self) {
        let Some(((by, link), _)) = self.consumers.pop_first() else { return };
        self.draining.remove(&(by, link));
        self.handle(by, Command::CloseConsumer { link });
    }

    fn close(&mut self) {
        let by = self.session();
        self.engine.close_session(self.now, by, Capacity::UNBOUNDED, &mut self.effects);
        if self.asked.remove(&by).is_some() {
            self.seen.saw("left while waiting");
        }
        self.consumers.retain(|(session, _), _| *session != by);
        self.draining.retain(|(session, _)| *session != by);
        self.held.retain(|_, holder| *holder != by);
        self.hear();
    }

    /// The log stores a frame anew, mostly one that a command waits for.
    fn restate(&mut self) {
        let wanted = self.engine.bodies().wanted_frame();
        let all: Vec<_> = self.frames.keys().copied().collect();
        if all.is_empty() {
            return;
        }
        let lsn = wanted.unwrap_or_else(|| self.rng.pick(&all));
        self.engine.restate(lsn, &self.frames[&lsn], &mut self.effects).unwrap();
        if wanted.is_some() {
            self.seen.saw("restated while wanted");
        }
        self.hear();
    }

    /// A piece of the log comes back; false where nothing is wanted.
    fn fetch(&mut self) -> bool {
        let Some(lsn) = self.engine.bodies().wanted_frame() else { return false };
        let ahead = self.rng.below(6) as usize;
        let piece: Vec<_> = self.frames.range(lsn..).take(1 + ahead).collect();
        let mut came_ahead = 0;
        for (lsn, payload) in piece.into_iter().rev() {
            came_ahead += u64::from(!self.engine.bodies().wants_frame(*lsn));
            self.engine.restore(*lsn, payload).unwrap();
        }
        self.seen.saw("fetched");
        self.seen.add("fetched ahead", came_ahead);
        true
    }

    /// Time passes, and all that is due happens.
    fn turn(&mut self) {
        self.now = self.now + Nanos::from_millis(self.rng.below(3) * 100);
        self.engine.handle_timeout(self.now, Capacity::UNBOUNDED, &mut self.effects);
        self.hear();
    }

    fn ask(&mut self, by: SessionId, command: Command) {
        crate::support::users::open(&mut self.engine, by);
        self.asked.insert(by, Awaits::Answer);
        self.asking = Some(by);
        self.handle(by, command);
        self.asking = None;
    }

    fn handle(&mut self, by: SessionId, command: Command) {
        self.engine.handle(self.now, by, command, Capacity::UNBOUNDED, &mut self.effects);
        self.hear();
    }

    fn hear(&mut self) {
        let mut start = 0;
        for frame in &self.effects.frames {
            self.frames.insert(frame.lsn, self.effects.records[start..frame.end].to_vec());
            start = frame.end;
        }
        let outputs = std::mem::take(&mut self.effects.outputs);
        self.effects.clear();
        for Output { session, mut reply, .. } in outputs {
            if let (Reply::Stored { message }, Some(body)) = (&reply, self.publishing) {
                self.published.insert(*message, body);
                self.publishing = None;
            }
            reply.each_shown(&mut |shows| {
                let Some(paged_out) = shows.body.paged_out() else { return };
                if let BodyPlace::Spill(place) = paged_out.place {
                    assert_eq!(self.spill[&place].0, paged_out.message, "it is there for replies");
                    self.seen.saw("shown from the spill");
                }
            });
            self.check_subscribers(&reply);
            self.heard(session, reply);
        }
        self.vacate();
    }

    /// A subscriber gets the published body, here or in the spill with the body that others get.
    fn check_subscribers(&mut self, reply: &Reply) {
        let Reply::Delivered(delivery) = reply else { return };
        if delivery.link != Some(SUBSCRIBER) {
            return;
        }
        let (_, expected) = self.published.range(..=delivery.message).last().unwrap();
        let lies = delivery.body.paged_out().and_then(|paged_out| match paged_out.place {
            BodyPlace::Spill(place) => Some(&self.spill[&place]),
            BodyPlace::Frame(_) => None,
        });
        if let Some((name, body)) = lies {
            assert_eq!(**body, **expected);
            let is_of_another = *name != delivery.message;
            self.seen.add("shared in the spill", u64::from(is_of_another));
        } else if delivery.body.paged_out().is_none() {
            assert_eq!(delivery.body.share(), Arc::from(*expected));
        }
        self.seen.saw("delivered to a subscriber");
    }

    fn heard(&mut self, session: SessionId, reply: Reply) {
        match reply {
            Reply::Delivered(delivery) => {
                self.seen.saw("delivered");
                let key = (session, delivery.link.unwrap());
                let (mode, delivered) = self.consumers.get_mut(&key).expect("it is open");
                *delivered += 1;
                if *mode == ConsumerMode::Take {
                    self.held.insert(delivery.message, session);
                }
            }
            Reply::Drained { link, .. } => {
                assert!(self.draining.remove(&(session, link)), "it drained");
                self.seen.saw("drained");
            }
            Reply::Waits { ticket } => {
                let before = self.asked.insert(session, Awaits::Place { ticket });
                assert_eq!(before, Some(Awaits::Answer));
            }
            Reply::Late { ticket, .. } => {
                let before = self.asked.remove(&session);
                assert_eq!(before, Some(Awaits::Place { ticket }));
                self.seen.saw("late");
            }
            Reply::Done => {}
            _ => {
                assert_eq!(self.asked.remove(&session), Some(Awaits::Answer), "{reply:?}");
                let at_once = self.asking == Some(session);
                self.seen.saw(if at_once { "answered" } else { "answered after bodies" });
            }
        }
    }

    /// A session that waits for no answer.
    fn idle(&mut self) -> Option<SessionId> {
        let by = self.session();
        (!self.asked.contains_key(&by)).then_some(by)
    }

    fn session(&mut self) -> SessionId {
        SessionId(1 + self.rng.below(SESSIONS))
    }

    fn queue(&mut self) -> QueueName {
        name(self.rng.pick(&QUEUES))
    }

    fn end_of_list(&mut self) -> End {
        self.rng.pick(&[End::Head, End::Tail])
    }
}

/// The first byte of a body is its property.
fn property<'m>(seen: &Subject<'m>, _: Found<'_, 'm>, _: &str) -> PropertyValue<'m> {
    let body = seen.body;
    body.first().map_or(PropertyValue::Null, |first| PropertyValue::Integer(i64::from(*first)))
}

/// Of that name and durable, or of its consumer alone.
fn subscription(named: Option<&str>) -> Subscription {
    let of = |text| SubscriptionName { user: None, client: None, name: name(text), durable: true };
    Subscription { name: named.map(of), shared: named.is_some(), ..Subscription::new(name(TOPIC)) }
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}
