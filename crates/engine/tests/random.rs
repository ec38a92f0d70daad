//! Random commands to the engine and to a naive model, which must agree on every word: replies, the
//! positions they wait for, timers, statistics. All the while snapshots are taken in small steps,
//! and frames are stated anew. Now and then everything but the log and the snapshot is lost.

use std::collections::BTreeMap;

use engine::{Effects, Engine, EngineOptions, QueuePolicies, QueuePolicy, ReleaseOrder};
use model::{
    AdminCommand, Capacity, Command, Destination, Durability, LinkId, MessageId, MessageState,
    Nanos, NewMessage, PageEnd, Peek, Persistence, Principal, QueueName, Refusal, Reply, SessionId,
    StorePolicy,
};
use testkit::{Rng, Seen, seeds};

use crate::support::log::{Durable, Log, Snapshot, durable};
use crate::support::naive::{Naive, State};
use crate::support::paging;

const SESSIONS: u64 = 4;
const LINKS: u64 = 2;
const QUEUES: [&str; 3] = ["default", "mail", "резерв"];
const STATES: [MessageState; 4] =
    [MessageState::Ready, MessageState::Leased, MessageState::Delayed, MessageState::Buried];
const STEPS: usize = 1_000;
const SEEDS: u64 = 80;

struct World {
    rng: Rng,
    now: Nanos,
    options: EngineOptions,
    engine: Engine,
    naive: Naive,
    log: Log,
    snapshot: Option<Snapshot>,
    whole: Option<Snapshot>,
    effects: Effects,
    /// The place at which the last page ended.
    page_end: Option<PageEnd>,
    /// Sessions act for users, whose messages records name.
    has_users: bool,
    seen: Seen,
}

#[test]
fn engine_matches_the_naive_model() {
    let mut seen = Seen::default();
    for seed in seeds(SEEDS) {
        let policies = [
            StorePolicy::Always,
            StorePolicy::Periodic(Nanos::from_millis(25)),
            StorePolicy::Never,
            StorePolicy::Memory,
        ];
        let policy = policies[(seed % 4) as usize];
        let order = if seed % 8 < 4 { ReleaseOrder::Front } else { ReleaseOrder::Back };
        eprintln!("seed {seed}: {policy:?}, {order:?}");
        let mut world = World::new(seed, policy, order);
        (0..STEPS).for_each(|_| world.step());
        world.check_recovery();
        seen.merge(world.seen);
    }
    seen.expect_only(&EXPECTED, 100);
}

/// Events that must have happened often enough for the test to mean something.
const EXPECTED: [&str; 20] = [
    "came back",
    "Done",
    "Stored",
    "NoSuchLink",
    "Delivered at once",
    "Delivered later",
    "TimedOut",
    "LeaseEnding",
    "NotFound",
    "Found",
    "Count",
    "MessageStatistics",
    "QueueStatistics",
    "BrokerStatistics",
    "Queues",
    "Page",
    "QueueInUse",
    "restated",
    "fuzzy snapshot",
    "crash",
];

impl World {
    fn new(seed: u64, policy: StorePolicy, release_order: ReleaseOrder) -> Self {
        let queue_policies = QueuePolicies {
            default: QueuePolicy { release_order, ..QueuePolicy::default() },
            ..QueuePolicies::default()
        };
        let log_bodies_max = if seed.is_multiple_of(2) { u64::MAX } else { 0 };
        let options =
            EngineOptions { queue_policies, log_bodies_max, ..EngineOptions::new(policy) };
        Self {
            rng: Rng::new(seed),
            now: Nanos::SECOND,
            engine: Engine::new(options.clone()),
            naive: Naive::new(policy, release_order),
            options,
            log: Log::default(),
            snapshot: None,
            whole: None,
            effects: Effects::default(),
            page_end: None,
            has_users: seed.is_multiple_of(3),
            seen: Seen::default(),
        }
    }

    fn step(&mut self) {
        self.now = self.now + Nanos(1 + self.rng.below(100_000_000));
        match self.rng.below(100) {
            0..8 => self.open_session(),
            8 => self.close_session(),
            9..16 => self.timeout(),
            16..22 => self.snapshot_step(),
            22..26 => self.restate(),
            26 if self.rng.one_in(4) => self.crash(),
            26 => self.check_recovery(),
            _ => self.command(),
        }
        self.engine.check();
        assert_eq!(self.engine.statistics(), self.naive.broker_statistics());
        assert_eq!(self.engine.poll_timeout(), self.naive.next_timeout());
        assert_eq!(self.engine.last_lsn(), self.naive.last);
    }

    fn open_session(&mut self) {
        let session = self.session();
        self.engine.open_session(session);
        if self.has_users {
            self.engine.act_for(session, Principal::almighty(&format!("user {}", session.0)));
        }
        self.naive.open_session(session);
        for link in (0..LINKS).map(|link| LinkId(link as u32)) {
            let queue = self.queue();
            self.run(
                session,
                Command::OpenProducer { link, to: Destination::Queue(queue.clone()) },
            );
            self.run(session, Command::Watch { link, queue });
        }
    }

    fn close_session(&mut self) {
        let session = self.session();
        self.before();
        self.engine.close_session(self.now, session, Capacity::UNBOUNDED, &mut self.effects);
        self.after();
        let expected = self.naive.close_session(self.now, session);
        self.absorb(&expected);
    }

    /// Bodies leave memory.
    fn before(&mut self) {
        paging::before(&mut self.engine);
    }

    /// Bodies come back if a command needs them.
    fn after(&mut self) {
        let Self { engine, log, now, effects, .. } = self;
        let came = paging::after(engine, &|lsn| log.payload(lsn), *now, effects);
        (0..came).for_each(|_| self.seen.saw("came back"));
    }

    fn timeout(&mut self) {
        self.before();
        self.engine.handle_timeout(self.now, Capacity::UNBOUNDED, &mut self.effects);
        self.after();
        let expected = self.naive.timeout(self.now);
        self.absorb(&expected);
    }

    fn command(&mut self) {
        let (session, command) = (self.session(), self.random_command());
        self.run(session, command);
    }

    fn run(&mut self, session: SessionId, command: Command) {
        self.before();
        self.engine.handle(
            self.now,
            session,
            command.clone(),
            Capacity::UNBOUNDED,
            &mut self.effects,
        );
        self.after();
        let expected = self.naive.handle(self.now, session, &command);
        assert_eq!(self.effects.outputs, expected, "{session:?} {command:?}");
        for output in &expected {
            if let Reply::Page(page) = &output.reply {
                self.page_end = page.next;
            }
            self.seen.saw(match &output.reply {
                Reply::Done => "Done",
                Reply::Stored { .. } => "Stored",
                Reply::Refused(Refusal::NoSuchLink) => "NoSuchLink",
                Reply::Delivered(_) if output.session == session => "Delivered at once",
                Reply::Delivered(_) => "Delivered later",
                Reply::TimedOut { .. } => "TimedOut",
                Reply::LeaseEnding => "LeaseEnding",
                Reply::NotFound => "NotFound",
                Reply::Found { .. } => "Found",
                Reply::Count(_) => "Count",
                Reply::CountSoFar(_) => "CountSoFar",
                Reply::MessageStatistics(_) => "MessageStatistics",
                Reply::QueueStatistics(_) => "QueueStatistics",
                Reply::BrokerStatistics(_) => "BrokerStatistics",
                Reply::Queues(_) => "Queues",
                Reply::Page(_) => "Page",
                Reply::Refused(Refusal::QueueInUse) => "QueueInUse",
                Reply::Refused(_) => "another refusal",
                other => panic!("{other:?} answers nothing of the workload"),
            });
        }
        self.absorb(&expected);
    }

    fn absorb(&mut self, expected: &[model::Output]) {
        assert_eq!(self.effects.outputs, expected);
        self.log.absorb(&self.effects);
        self.effects.clear();
    }

    fn snapshot_step(&mut self) {
        let chunk = 1 + self.rng.below(4) as usize;
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
        let frame = self.rng.pick(&self.log.frames);
        self.engine.restate(frame.0.lsn, &frame.1, &mut self.effects).unwrap();
        self.naive.restated(self.effects.frames.last().copied());
        if !self.effects.frames.is_empty() {
            self.seen.saw("restated");
        }
        self.absorb(&[]);
        self.log.check_live(&self.engine);
    }

    /// Rebuilds the engine from its log, with and without a snapshot: nothing durable differs.
    fn check_recovery(&mut self) {
        self.settle_time();
        let expected = contents(&mut self.engine, &self.log, self.now);
        let snapshot = self.whole.clone();
        for snapshot in [None, snapshot.as_ref()] {
            let mut recovered = self.log.recover(self.options.clone(), snapshot);
            recovered.check();
            assert!(recovered.latest_time() <= self.now);
            recovered.handle_timeout(self.now, Capacity::UNBOUNDED, &mut Effects::default());
            assert_eq!(contents(&mut recovered, &self.log, self.now), expected);
            self.log.clone().relearn(&recovered);
        }
    }

    /// All that is not in the log is lost.
    fn crash(&mut self) {
        self.check_recovery();
        self.seen.saw("crash");
        self.engine = self.log.recover(self.options.clone(), self.whole.as_ref());
        self.log.relearn(&self.engine);
        self.snapshot = None;
        self.naive.crash();
        self.engine.handle_timeout(self.now, Capacity::UNBOUNDED, &mut self.effects);
        self.absorb(&[]);
        let (next_message, next_buried) = Snapshot::whole(&self.engine).sequence();
        assert!(next_message <= self.naive.next_message, "no number is skipped for nothing");
        assert!(next_buried <= self.naive.next_buried);
        (self.naive.next_message, self.naive.next_buried) = (next_message, next_buried);
        self.adopt_counters();
    }

    /// Deliveries and expiries since a message's last record are forgotten by a crash.
    fn adopt_counters(&mut self) {
        for (id, found) in durable(&self.engine, |_| Vec::new()) {
            let counters = &mut self.naive.messages.get_mut(&id).unwrap().counters;
            let recovered = found.standing.counters;
            assert!(recovered.delivered <= counters.delivered);
            assert!(recovered.expired <= counters.expired);
            assert_eq!(recovered.released, counters.released);
            assert_eq!(recovered.buried, counters.buried);
            assert_eq!(recovered.kicked, counters.kicked);
            *counters = recovered;
        }
    }

    /// Fires the timers that are due, so that the end of a delay, which is not journalled, is the
    /// same in both.
    fn settle_time(&mut self) {
        self.timeout();
        while self.engine.poll_timeout().is_some_and(|at| at <= self.now) {
            self.timeout();
        }
    }

    fn random_command(&mut self) -> Command {
        let link = LinkId(self.rng.below(LINKS) as u32);
        let queue = self.queue();
        let message = self.message();
        let priority = self.rng.pick(&[0, 1, 1023, 1024, u32::MAX]);
        let delay = self.delay();
        match self.rng.below(70) {
            0..4 => Command::OpenProducer { link, to: Destination::Queue(queue) },
            4..13 => {
                Command::Put { link, message: self.new_message(priority, delay), transaction: None }
            }
            13..17 => Command::Watch { link, queue },
            17 => Command::Unwatch { link, queue },
            18..36 => self.receive(link),
            36 => Command::CancelReceive { link },
            37..39 => Command::Lease { message },
            39..43 => Command::Delete { message },
            43..47 => Command::Release { message, priority, delay: Some(delay) },
            47..51 => Command::Bury { message, priority },
            51..53 => Command::Renew { message, lease: self.lease() },
            53 => Command::Kick { link, max: self.rng.pick(&[0, 1, 2, u64::MAX]) },
            54 => Command::KickMessage { message },
            55..57 => Command::Pause { queue, duration: delay },
            57 => Command::Peek(Peek::Message(message)),
            58 => Command::Peek(Peek::Ready(link)),
            59 => Command::Peek(self.rng.pick(&[Peek::Delayed(link), Peek::Buried(link)])),
            60 => Command::MessageStatistics { message },
            61 => Command::QueueStatistics { queue },
            62 => Command::BrokerStatistics,
            63 => Command::ListQueues,
            _ => self.operate(),
        }
    }

    fn receive(&mut self, link: LinkId) -> Command {
        let wait = match self.rng.below(4) {
            0 => None,
            1 => Some(Nanos::ZERO),
            _ => Some(Nanos(self.rng.below(3_000_000_000))),
        };
        let margin = if self.rng.one_in(2) { Nanos::SECOND } else { Nanos::ZERO };
        Command::Receive { link, wait, margin, lease: self.lease() }
    }

    fn lease(&mut self) -> Option<Nanos> {
        self.rng.one_in(3).then(|| Nanos(1 + self.rng.below(9_000_000_000)))
    }

    fn operate(&mut self) -> Command {
        let (queue, message, before) = (self.queue(), self.message(), self.message());
        let state = self.rng.one_in(3).then(|| self.rng.pick(&STATES));
        let selector = None;
        // Mostly where a page of this or of another queue ended, some time ago.
        let after = if self.rng.one_in(4) { None } else { self.page_end };
        let max = 1 + self.rng.below(4);
        Command::Admin(Box::new(match self.rng.below(16) {
            0..7 => AdminCommand::Browse { queue, state, selector, after, max: max as usize },
            7 => AdminCommand::Show { message },
            8 => AdminCommand::Purge { queue, state, selector, after },
            9..14 => AdminCommand::MoveMessages {
                from: queue,
                to: (!self.rng.one_in(8)).then(|| self.queue()),
                message: self.rng.one_in(4).then_some(message),
                selector,
                before: if self.rng.one_in(4) { before } else { MessageId(u64::MAX) },
                max: self.rng.pick(&[0, max, u64::MAX]),
                after,
            },
            14 => AdminCommand::Delete { queue },
            _ => AdminCommand::NextMessage,
        }))
    }

    fn new_message(&mut self, priority: u32, delay: Nanos) -> NewMessage {
        let persistence = match self.rng.below(8) {
            0 => Persistence::NonPersistent,
            1 => Persistence::Exactly(Durability::Written),
            2 => Persistence::Exactly(Durability::Synced),
            _ => Persistence::Persistent,
        };
        let lease = Nanos(1 + self.rng.below(4_000_000_000));
        let body = (0..self.rng.below(12)).map(|byte| byte as u8).collect();
        NewMessage { priority, delay, lease, persistence, ..NewMessage::new(body) }
    }

    fn delay(&mut self) -> Nanos {
        let some = Nanos(1 + self.rng.below(3_000_000_000));
        if self.rng.one_in(2) { some } else { Nanos::ZERO }
    }

    /// Mostly one that lives; most of those are leased.
    fn message(&mut self) -> MessageId {
        let living: Vec<_> = self.naive.messages.keys().copied().collect();
        let is_leased = |id: &MessageId| matches!(self.naive.messages[id].state, State::Leased(..));
        let leased: Vec<_> = living.iter().copied().filter(is_leased).collect();
        match self.rng.below(8) {
            0 => MessageId(self.rng.draw() >> self.rng.below(64)),
            1..3 if !living.is_empty() => self.rng.pick(&living),
            _ if !leased.is_empty() => self.rng.pick(&leased),
            _ => MessageId(self.rng.below(self.naive.next_message + 1)),
        }
    }

    fn queue(&mut self) -> QueueName {
        QueueName::new(self.rng.pick(&QUEUES)).unwrap()
    }

    fn session(&mut self) -> SessionId {
        SessionId(self.rng.below(SESSIONS))
    }
}

/// The state that must be the same after a crash: all but the counters that only leases move.
fn contents(engine: &mut Engine, log: &Log, now: Nanos) -> Vec<(MessageId, Durable)> {
    let reader = SessionId(u64::MAX);
    let mut bodies = BTreeMap::new();
    for (id, _) in durable(engine, |_| Vec::new()) {
        let mut effects = Effects::default();
        engine.open_session(reader);
        engine.handle(
            now,
            reader,
            Command::Peek(Peek::Message(id)),
            Capacity::UNBOUNDED,
            &mut effects,
        );
        paging::after(engine, &|lsn| log.payload(lsn), now, &mut effects);
        engine.close_session(now, reader, Capacity::UNBOUNDED, &mut effects);
        let Reply::Found { element, .. } = &effects.outputs[0].reply else {
            panic!("message {id} is found");
        };
        bodies.insert(id, element.body.to_vec());
    }
    let mut all = durable(engine, |id| bodies.remove(&id).unwrap());
    for message in all.values_mut() {
        let counters = &mut message.standing.counters;
        (counters.delivered, counters.expired) = (0, 0);
    }
    all.into_iter().collect()
}
