//! A message that is sent again under one name is not stored again. The test holds the engine
//! against a plain list of the messages sent. It has crashes that take everything behind some
//! frame, snapshots while traffic goes on, and transactions of one frame and of several.

use std::collections::{BTreeMap, BTreeSet};

use engine::{Effects, Engine, EngineOptions};
use model::{
    AdminCommand, Capacity, Command, DependsOn, Destination, LinkId, Lsn, MessageId, Nanos,
    NewMessage, Persistence, QueueName, Refusal, Reply, SessionId, StorePolicy, Subscription,
    SubscriptionName, TransactionId,
};
use testkit::{Rng, Seen, seeds};

use crate::support::log::{Log, Snapshot};

const SEEDS: u64 = 60;
const STEPS: usize = 600;
const SESSIONS: u64 = 2;
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const WINDOW: Nanos = Nanos::from_secs(10);

/// The text of most messages.
const BODY: &str = "some text that takes some room";

const REUSED: Reply = Reply::Refused(Refusal::SendIdReused);

/// A message on its way, and its name.
#[derive(Clone, Debug)]
struct Send {
    to: Destination,
    name: Option<&'static str>,
    body: &'static str,
    persistence: Persistence,
}

/// One that was stored under a name.
#[derive(Clone, Debug)]
struct Known {
    key: (Destination, &'static str),
    body: &'static str,
    at: Nanos,
    reply: Reply,
    after: DependsOn,
    /// The frame that makes its name last; zero where it is in memory only.
    lsn: Lsn,
    /// It was there before a crash.
    survived: bool,
}

struct World {
    rng: Rng,
    now: Nanos,
    options: EngineOptions,
    engine: Engine,
    log: Log,
    snapshot: Option<Snapshot>,
    whole: Option<Snapshot>,
    effects: Effects,
    /// All that was stored under names, by when.
    history: Vec<Known>,
    /// The part of it that is to be remembered.
    known: Vec<Known>,
    /// Names of messages that were stored and lost.
    lost: BTreeSet<(Destination, &'static str)>,
    subscriptions: BTreeSet<&'static str>,
    /// The transaction of each session that has one.
    open: BTreeMap<SessionId, (TransactionId, Vec<Send>)>,
    next_transaction: u64,
    seen: Seen,
}

#[test]
fn repeated_send_id_is_stored_once() {
    let mut seen = Seen::default();
    for seed in seeds(SEEDS) {
        let mut world = World::new(seed);
        (0..STEPS).for_each(|_| world.step());
        seen.merge(world.seen);
    }
    seen.expect(&EXPECTED, 100);
}

const EXPECTED: [&str; 11] = [
    "stored",
    "sent again",
    "sent again after a crash",
    "sent again in a transaction",
    "refused under a name of another",
    "refused so in a transaction",
    "stored anew after its window",
    "stored anew after its loss",
    "a chain",
    "fuzzy snapshot",
    "crash",
];

impl World {
    fn new(seed: u64) -> Self {
        let policy = [StorePolicy::Always, StorePolicy::Never][(seed % 2) as usize];
        let defaults = EngineOptions::new(policy);
        let options = EngineOptions {
            dedup_window: WINDOW,
            dedup_max_ids: if seed % 4 < 2 { 1_000 } else { 4 },
            frame_bytes_max: if seed % 8 < 4 { 150 } else { defaults.frame_bytes_max },
            ..defaults
        };
        let mut world = Self {
            rng: Rng::new(seed),
            now: Nanos::SECOND,
            engine: Engine::new(options.clone()),
            options,
            log: Log::default(),
            snapshot: None,
            whole: None,
            effects: Effects::default(),
            history: Vec::new(),
            known: Vec::new(),
            lost: BTreeSet::new(),
            subscriptions: BTreeSet::new(),
            open: BTreeMap::new(),
            next_transaction: 1,
            seen: Seen::default(),
        };
        world.open_sessions();
        world
    }

    fn open_sessions(&mut self) {
        for session in 0..SESSIONS {
            self.engine.open_session(SessionId(session));
        }
        self.open.clear();
    }

    fn step(&mut self) {
        self.now = self.now + Nanos(self.rng.below(WINDOW.0 / 20));
        match self.rng.below(100) {
            0..50 => self.send(),
            50..60 => self.send_in_transaction(),
            60..67 => self.commit(),
            67 => self.rollback(),
            68..72 => self.subscribe(),
            72..80 => self.delete(),
            80..96 => self.snapshot_step(),
            96 => self.restate(),
            _ => self.crash(),
        }
        self.engine.check();
        self.log.check_live(&self.engine);
    }

    /// The replies to one command, and to the commits that go on by themselves.
    fn ask(&mut self, session: SessionId, command: Command) -> Vec<(Reply, DependsOn)> {
        self.engine.handle(self.now, session, command, Capacity::UNBOUNDED, &mut self.effects);
        while self.engine.awaited_room().is_some() {
            self.seen.saw("a chain");
            self.engine.commit_awaiting(self.now, true, Capacity::UNBOUNDED, &mut self.effects);
        }
        self.log.absorb(&self.effects);
        let outputs = self.effects.outputs.iter();
        let replies = outputs.map(|output| (output.reply.clone(), output.after)).collect();
        self.effects.clear();
        replies
    }

    fn send(&mut self) {
        let (send, session) = (self.random_send(), self.session());
        let (frames, next) = (self.log.frames.len(), self.next_message());
        let total = self.engine.statistics().messages_total;
        let (to, message) = (send.to.clone(), message_of(&send));
        let replies = self.ask(session, Command::PutTo { to, message, transaction: None });
        let stored = self.engine.statistics().messages_total - total;
        let [(reply, after)] = &replies[..] else { panic!("{replies:?}") };
        if let Some(known) = self.find(&send) {
            let is_same = known.body == send.body;
            let expected = if is_same { &known.reply } else { &REUSED };
            assert_eq!((reply, *after), (expected, known.after), "{send:?}");
            assert_eq!((stored, self.log.frames.len()), (0, frames), "{send:?} again");
            if !is_same {
                return self.seen.saw("refused under a name of another");
            }
            self.seen.saw(if known.survived { "sent again after a crash" } else { "sent again" });
            return;
        }
        assert_eq!((reply, stored), (&self.reply_to(&send, next), self.copies(&send)), "{send:?}");
        self.note(&send, next, *after, frames);
    }

    fn send_in_transaction(&mut self) {
        let (send, session) = (self.random_send(), self.session());
        if !self.open.contains_key(&session) {
            let transaction = TransactionId(self.next_transaction);
            self.next_transaction += 1;
            self.ask(session, Command::Begin { transaction });
            self.open.insert(session, (transaction, Vec::new()));
        }
        let transaction = Some(self.open[&session].0);
        let (to, message) = (send.to.clone(), message_of(&send));
        let replies = self.ask(session, Command::PutTo { to, message, transaction });
        assert_eq!(replies, [(Reply::Done, DependsOn::NOTHING)]);
        self.open.get_mut(&session).unwrap().1.push(send);
    }

    fn commit(&mut self) {
        let session = self.session();
        let Some((transaction, sends)) = self.open.remove(&session) else { return };
        let (frames, mut next) = (self.log.frames.len(), self.next_message());
        let total = self.engine.statistics().messages_total;
        let replies = self.ask(session, Command::Commit { transaction });
        if let Some(after) = self.conflict(&sends) {
            assert_eq!(replies, [(REUSED, after)], "{sends:?}");
            assert_eq!(self.engine.statistics().messages_total, total);
            assert_eq!(self.log.frames.len(), frames);
            return self.seen.saw("refused so in a transaction");
        }
        let after = replies[0].1;
        assert_eq!(replies, [(Reply::Done, after)]);
        let whole = self.after_frames(frames);
        let (mut copies, mut expected) = (0, whole);
        let (mut names, mut stored) = (BTreeSet::new(), Vec::new());
        for send in &sends {
            if let Some(known) = self.find(send) {
                expected =
                    if whole == DependsOn::NOTHING { latest(expected, known.after) } else { whole };
                self.seen.saw("sent again in a transaction");
            } else if send.name.is_some_and(|name| !names.insert((send.to.clone(), name))) {
                self.seen.saw("sent again in a transaction");
            } else {
                stored.push(send);
            }
        }
        for send in stored {
            self.note(send, next, whole, frames);
            copies += self.copies(send);
            next += self.copies(send);
        }
        assert_eq!(after, expected, "{sends:?}");
        assert_eq!(self.engine.statistics().messages_total - total, copies, "{sends:?}");
    }

    /// The position for the refusal that one of these has the name of another message.
    fn conflict(&self, sends: &[Send]) -> Option<DependsOn> {
        let mut names: BTreeMap<_, &str> = BTreeMap::new();
        sends.iter().find_map(|send| {
            let known = self.find(send);
            if let Some(known) = known {
                return (known.body != send.body).then_some(known.after);
            }
            let first = names.entry((send.to.clone(), send.name?)).or_insert(send.body);
            (*first != send.body).then_some(DependsOn::NOTHING)
        })
    }

    fn rollback(&mut self) {
        let session = self.session();
        let Some((transaction, _)) = self.open.remove(&session) else { return };
        let replies = self.ask(session, Command::Rollback { transaction });
        assert_eq!(replies, [(Reply::Done, DependsOn::NOTHING)]);
    }

    /// Another durable subscription takes published messages.
    fn subscribe(&mut self) {
        let name = self.rng.pick(&NAMES[..3]);
        let asked = Subscription {
            name: Some(SubscriptionName {
                user: None,
                client: None,
                name: self::name(name),
                durable: true,
            }),
            shared: true,
            ..Subscription::new(self::name("topic"))
        };
        let (session, link) = (self.session(), LinkId(0));
        let subscription = Box::new(asked);
        let replies = self.ask(session, Command::Subscribe { link, subscription });
        self.ask(session, Command::CloseConsumer { link });
        assert!(matches!(replies[..], [(Reply::Done, _)]), "{replies:?}");
        self.subscriptions.insert(name);
    }

    fn delete(&mut self) {
        let next = self.next_message();
        let message = MessageId(1 + self.rng.below(next));
        self.ask(SessionId(0), Command::Delete { message });
    }

    fn snapshot_step(&mut self) {
        let chunk = 1 + self.rng.below(3) as usize;
        let snapshot = self.snapshot.get_or_insert_with(|| Snapshot::begin(&self.engine, chunk));
        if !snapshot.step(&self.engine) {
            self.whole = self.snapshot.take();
            if self.whole.as_ref().is_some_and(|whole| whole.end > Some(whole.begin)) {
                self.seen.saw("fuzzy snapshot");
            }
        }
    }

    fn restate(&mut self) {
        if self.log.frames.is_empty() {
            return;
        }
        let (frame, payload) = self.rng.pick(&self.log.frames);
        self.engine.restate(frame.lsn, &payload, &mut self.effects).unwrap();
        self.log.absorb(&self.effects);
        self.effects.clear();
    }

    /// All behind some frame is lost.
    fn crash(&mut self) {
        self.seen.saw("crash");
        let left = self.log.frames.len() as u64;
        let cut = left - self.rng.below(6).min(left);
        if self.whole.as_ref().is_some_and(|whole| whole.end > Some(Lsn(cut))) {
            self.whole = None;
        }
        self.log = self.log.cut(cut as usize);
        self.engine = self.log.recover(self.options.clone(), self.whole.as_ref());
        self.log.adopt(&self.engine);
        self.snapshot = None;
        let known = std::mem::take(&mut self.known);
        let is_left = |known: &Known| known.lsn != Lsn::ZERO && known.lsn <= Lsn(cut);
        self.history.retain(is_left);
        for known in known.into_iter().filter(|known| !is_left(known)) {
            self.lost.insert(known.key);
        }
        for known in self.history.clone() {
            self.remember(Known { after: DependsOn::NOTHING, survived: true, ..known });
        }
        self.open_sessions();
        self.count_subscriptions();
    }

    /// Keeps the subscriptions with a record that is left.
    fn count_subscriptions(&mut self) {
        let command = Command::Admin(Box::new(AdminCommand::ListSubscriptions));
        let replies = self.ask(SessionId(0), command);
        let [(Reply::Subscriptions(all), _)] = &replies[..] else { panic!("{replies:?}") };
        let names = all.iter().map(|it| it.subscription.name.as_ref().unwrap().name.as_str());
        let names: Vec<_> = names.collect();
        self.subscriptions.retain(|name| names.contains(name));
        assert_eq!(self.subscriptions.len(), names.len());
    }

    /// It was stored, by the frames from here on.
    fn note(&mut self, send: &Send, next: u64, after: DependsOn, frames: usize) {
        self.seen.saw("stored");
        let Some(name) = send.name else { return };
        let key = (send.to.clone(), name);
        if self.known.iter().any(|known| known.key == key) {
            self.seen.saw("stored anew after its window");
        }
        if self.lost.remove(&key) {
            self.seen.saw("stored anew after its loss");
        }
        let lasts = send.persistence == Persistence::Persistent && self.copies(send) > 0;
        let lsn = if lasts { self.after_frames(frames).lsn } else { Lsn::ZERO };
        let reply = self.reply_to(send, next);
        let (body, at) = (send.body, self.now);
        let known = Known { key, body, at, reply, after, lsn, survived: false };
        self.history.push(known.clone());
        self.remember(known);
    }

    fn remember(&mut self, known: Known) {
        self.known.retain(|other| other.key != known.key);
        self.known.push(known);
        if self.known.len() > self.options.dedup_max_ids {
            self.known.remove(0);
        }
    }

    fn find(&self, send: &Send) -> Option<Known> {
        let key = (send.to.clone(), send.name?);
        let known = self.known.iter().find(|known| known.key == key)?;
        (self.now < known.at + WINDOW).then(|| known.clone())
    }

    fn copies(&self, send: &Send) -> u64 {
        match send.to {
            Destination::Queue(_) => 1,
            Destination::Topic(_) => self.subscriptions.len() as u64,
        }
    }

    fn reply_to(&self, send: &Send, next: u64) -> Reply {
        let is_taken = self.copies(send) > 0;
        if is_taken { Reply::Stored { message: MessageId(next) } } else { Reply::Done }
    }

    /// The position of an answer that waits for the frames from here on.
    fn after_frames(&self, frames: usize) -> DependsOn {
        let last = self.log.frames[frames..].last();
        last.map_or(DependsOn::NOTHING, |(frame, _)| DependsOn::new(frame.lsn, frame.level))
    }

    fn next_message(&mut self) -> u64 {
        let replies = self.ask(SessionId(0), Command::Admin(Box::new(AdminCommand::NextMessage)));
        let [(Reply::Stored { message }, _)] = replies[..] else { panic!("{replies:?}") };
        message.0
    }

    fn random_send(&mut self) -> Send {
        let to = self.rng.pick(&["queue", "other", "topic"]);
        let to =
            if to == "topic" { Destination::Topic(name(to)) } else { Destination::Queue(name(to)) };
        let named = !self.rng.one_in(5);
        // If few names are remembered, one in memory only would push out a lasting one, and be gone
        // itself after a crash.
        let lasts = self.options.dedup_max_ids < NAMES.len() || !self.rng.one_in(4);
        Send {
            to,
            name: named.then(|| self.rng.pick(&NAMES)),
            body: if self.rng.one_in(8) { "another text" } else { BODY },
            persistence: if lasts { Persistence::Persistent } else { Persistence::NonPersistent },
        }
    }

    fn session(&mut self) -> SessionId {
        SessionId(self.rng.below(SESSIONS))
    }
}

fn message_of(send: &Send) -> NewMessage {
    let body = send.body.as_bytes().into();
    let send_id = send.name.map(Into::into);
    NewMessage { send_id, persistence: send.persistence, ..NewMessage::new(body) }
}

fn latest(one: DependsOn, other: DependsOn) -> DependsOn {
    if other.lsn > one.lsn { other } else { one }
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}
