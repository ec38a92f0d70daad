//! Random transactions over queues, a topic and tables, most of them larger than a frame. Any
//! frames that a crash leaves bring back the state between two commands, so of each commit all or
//! nothing. Then the test goes on from there, behind the frames that were cut off. Snapshots are
//! taken all the while.

use std::collections::BTreeMap;

use engine::{Effects, Engine, EngineOptions, QueuePolicies, RecordView, describe};
use model::{
    Capacity, CollectionCommand, CollectionKind, Command, DeadReason, Destination, Format, LinkId,
    Lsn, MessageId, Nanos, NewMessage, Persistence, QueueName, Reply, SessionId, Settlement,
    StorePolicy, Subscription, SubscriptionName, TableAction, TableStep, TransactionId,
};
use testkit::{Rng, Seen, seeds};

use crate::support::log::{Durable, Log, Snapshot, durable};

const SESSION: SessionId = SessionId(1);
const SEEDS: u64 = 90;
const STEPS: usize = 50;

type Picture = (BTreeMap<MessageId, Durable>, Vec<Reply>);

struct World {
    rng: Rng,
    now: Nanos,
    engine: Engine,
    effects: Effects,
    log: Log,
    snapshot: Option<Snapshot>,
    whole: Option<Snapshot>,
    /// The state between two commands, by how many frames there were.
    pictures: BTreeMap<usize, Picture>,
    transactions: u64,
    held: Vec<MessageId>,
    seen: Seen,
}

#[test]
fn commit_chain_is_all_or_nothing() {
    let mut seen = Seen::default();
    for seed in seeds(SEEDS) {
        let mut world = World::new(seed);
        (0..STEPS).for_each(|_| world.step());
        world.check_prefixes();
        seen.merge(world.seen);
    }
    seen.expect(&["chain", "refused", "cut", "fuzzy", "restated", "table"], 20);
}

impl World {
    fn new(seed: u64) -> Self {
        let engine = Engine::new(options());
        let mut world = Self {
            rng: Rng::new(seed),
            now: Nanos::SECOND,
            engine,
            effects: Effects::default(),
            log: Log::default(),
            snapshot: None,
            whole: None,
            pictures: BTreeMap::from([(0, (BTreeMap::new(), tables(&mut Engine::new(options()))))]),
            transactions: 0,
            held: Vec::new(),
            seen: Seen::default(),
        };
        world.begin();
        world
    }

    /// A session with a producer and a consumer everywhere.
    fn begin(&mut self) {
        self.engine.open_session(SESSION);
        for (link, named) in [(0, Some("a")), (1, Some("b")), (2, None)] {
            let subscription = Box::new(Subscription {
                name: named.map(|word| SubscriptionName {
                    user: None,
                    client: None,
                    name: name(word),
                    durable: true,
                }),
                shared: true,
                ..Subscription::new(name("news"))
            });
            self.run(Command::Subscribe { link: LinkId(link), subscription });
        }
        self.run(Command::Watch { link: LinkId(9), queue: name("q") });
        self.run(Command::Watch { link: LinkId(9), queue: name("DLQ") });
    }

    fn step(&mut self) {
        self.now = self.now + Nanos(1);
        match self.rng.below(16) {
            0..8 => self.transaction(),
            8..10 => {
                let put = self.put(None);
                self.run(put);
            }
            10 => self.receive(),
            11..14 => self.snapshot_step(),
            14 => self.restate(),
            _ => self.crash(),
        }
    }

    fn run(&mut self, command: Command) {
        self.engine.handle(self.now, SESSION, command, Capacity::UNBOUNDED, &mut self.effects);
        self.absorb();
    }

    fn absorb(&mut self) {
        self.engine.check();
        self.log.absorb(&self.effects);
        self.log.check_live(&self.engine);
        for output in &self.effects.outputs {
            assert!(output.after.lsn <= self.engine.last_lsn(), "nothing waits for the future");
            if let Reply::Delivered(delivery) = &output.reply {
                self.held.push(delivery.message);
            }
        }
        self.effects.clear();
        if !self.pictures.contains_key(&self.log.frames.len()) {
            self.pictures.insert(self.log.frames.len(), picture(&mut self.engine));
        }
    }

    fn put(&mut self, transaction: Option<TransactionId>) -> Command {
        let queue = Destination::Queue(name("q"));
        let topic = Destination::Topic(name("news"));
        let to = self.rng.pick(&[queue.clone(), queue, topic]);
        let persistence = self.rng.pick(&[Persistence::Persistent, Persistence::NonPersistent]);
        let body = vec![b'x'; self.rng.below(1_500) as usize];
        let format = Format(self.rng.below(2) as u8);
        let message = NewMessage { persistence, format, ..NewMessage::new(body.into()) };
        Command::PutTo { to, message, transaction }
    }

    fn transaction(&mut self) {
        self.transactions += 1;
        let transaction = TransactionId(self.transactions);
        self.run(Command::Begin { transaction });
        let mut settles_left = 3;
        for _ in 0..self.rng.below(12) {
            // A rollback counts as many failures in one frame.
            let settles = !self.held.is_empty() && settles_left > 0 && self.rng.one_in(3);
            settles_left -= u32::from(settles);
            let command = if settles {
                let index = self.rng.below(self.held.len() as u64) as usize;
                let message = self.held.swap_remove(index);
                let settlement = self.rng.pick(&[
                    Settlement::Accept,
                    Settlement::Fail,
                    Settlement::Park(DeadReason::Rejected),
                    Settlement::Release,
                ]);
                Command::Settle { message, settlement, transaction: Some(transaction) }
            } else if self.rng.one_in(3) {
                self.table_step(transaction)
            } else {
                self.put(Some(transaction))
            };
            self.run(command);
        }
        let frames = self.log.frames.len();
        self.run(Command::Commit { transaction });
        if self.engine.awaited_room().is_some() {
            assert_eq!(self.log.frames.len(), frames, "nothing happens before there is room");
            self.end_wait(frames);
        }
    }

    fn table_step(&mut self, transaction: TransactionId) -> Command {
        let table = name(self.rng.pick(&["t", "u"]));
        let key = self.rng.pick(&[&b"a"[..], b"b", b"c"]).into();
        let action = match self.rng.below(4) {
            0..2 => TableAction::Put(vec![b'7'; 1 + self.rng.below(900) as usize].into()),
            2 => TableAction::Put((*b"1").into()),
            _ => TableAction::Delete,
        };
        self.seen.saw("table");
        Command::Table { step: Box::new(TableStep { table, key, action }), transaction }
    }

    fn end_wait(&mut self, frames: usize) {
        if self.rng.one_in(2) {
            let put = self.put(None);
            self.run(put);
        }
        let room = self.engine.awaited_room().unwrap();
        let before = self.log.frames.len();
        let has_room = !self.rng.one_in(8);
        self.engine.commit_awaiting(self.now, has_room, Capacity::UNBOUNDED, &mut self.effects);
        let mut start = 0;
        for frame in &self.effects.frames {
            assert!(frame.end - start <= room.frame_bytes, "{room:?}");
            start = frame.end;
        }
        if has_room {
            assert!(start as u64 <= room.bytes, "{room:?}");
            assert!(self.effects.frames.len() as u64 <= room.frames, "{room:?}");
        }
        self.absorb();
        assert!(self.engine.awaited_room().is_none() && before >= frames);
        let chain = self.log.frames.len() > before + 1 && has_room;
        self.seen.saw(if chain { "chain" } else { "refused" });
    }

    fn receive(&mut self) {
        let wait = Some(Nanos::ZERO);
        for _ in 0..self.rng.below(8) {
            self.run(Command::Receive { link: LinkId(9), wait, margin: Nanos::ZERO, lease: None });
        }
        for link in 0..3 {
            let limit = 1_000_000;
            self.run(Command::Credit { link: LinkId(link), limit, bytes: u64::MAX, drain: false });
        }
        while self.engine.poll_timeout().is_some_and(|at| at <= self.now) {
            self.engine.handle_timeout(self.now, Capacity::UNBOUNDED, &mut self.effects);
            self.absorb();
        }
    }

    fn snapshot_step(&mut self) {
        let snapshot = self.snapshot.get_or_insert_with(|| Snapshot::begin(&self.engine, 30));
        if !snapshot.step(&self.engine) {
            self.whole = self.snapshot.take();
            if self.whole.as_ref().is_some_and(|whole| whole.end > Some(whole.begin)) {
                self.seen.saw("fuzzy");
            }
        }
    }

    fn restate(&mut self) {
        if self.log.frames.is_empty() {
            return;
        }
        let frame = self.rng.pick(&self.log.frames);
        self.engine.restate(frame.0.lsn, &frame.1, &mut self.effects).unwrap();
        if !self.effects.frames.is_empty() {
            self.seen.saw("restated");
        }
        self.absorb();
    }

    /// The first frame that the newest snapshot does not need.
    fn earliest(&self) -> usize {
        let end = self.whole.as_ref().and_then(|whole| whole.end);
        end.map_or(0, |end| end.0 as usize)
    }

    fn check_prefixes(&self) {
        let all = self.log.frames.len();
        for frames in all.saturating_sub(8)..=all {
            let log = self.log.cut(frames);
            let expected = self.snapshot_at(frames);
            let mut recovered = log.recover(options(), None);
            assert!(&picture(&mut recovered) == expected, "{frames} frames");
            if frames >= self.earliest() {
                let mut recovered = log.recover(options(), self.whole.as_ref());
                recovered.check();
                assert!(&picture(&mut recovered) == expected, "{frames} frames and a snapshot");
            }
        }
    }

    fn snapshot_at(&self, frames: usize) -> &Picture {
        self.pictures.range(..=frames).next_back().unwrap().1
    }

    /// Some of the last frames are lost, and the next frames lie behind the others.
    fn crash(&mut self) {
        self.check_prefixes();
        let all = self.log.frames.len();
        let frames = self.earliest().max(all - (self.rng.below(6) as usize).min(all));
        let is_cut = self.log.frames[..frames].last().is_some_and(|(_, payload)| {
            let head = describe(payload).next();
            matches!(head, Some(Ok(RecordView::Chained { more: true, .. })))
        });
        let before = self.snapshot_at(frames).clone();
        self.log = self.log.cut(frames);
        self.engine = self.log.recover(options(), self.whole.as_ref());
        assert_eq!(self.engine.chains_cut() > 0, self.has_cut_chain(), "they are counted");
        self.log.adopt(&self.engine);
        self.pictures.retain(|count, _| *count <= frames);
        self.pictures.insert(frames, before);
        self.held.clear();
        self.snapshot = None;
        if is_cut {
            self.seen.saw("cut");
        }
        self.begin();
    }

    /// Among the frames that are replayed on the snapshot.
    fn has_cut_chain(&self) -> bool {
        let begin = self.whole.as_ref().map_or(0, |whole| whole.begin.0 as usize);
        let heads = self.log.frames[begin..]
            .iter()
            .map(|(frame, payload)| (frame.lsn, describe(payload).next().and_then(Result::ok)));
        let mut open = None;
        for (_, head) in heads {
            match head {
                Some(RecordView::Chained { first, more }) => {
                    if open.is_some_and(|open| open != first) {
                        return true;
                    }
                    open = more.then_some(first);
                }
                _ if open.is_some() => return true,
                _ => {}
            }
        }
        open.is_some()
    }
}

fn options() -> EngineOptions {
    EngineOptions {
        queue_policies: QueuePolicies::default(),
        frame_bytes_max: 3_000,
        ..EngineOptions::new(StorePolicy::Always)
    }
}

/// The state that a crash leaves: all that is journalled, but for the count of deliveries. The
/// place of a message may change from frame to frame when it is stated anew.
fn picture(engine: &mut Engine) -> Picture {
    let mut messages = durable(engine, |_| Vec::new());
    for message in messages.values_mut() {
        message.standing.counters.delivered = 0;
        (message.location, message.record_bytes) = (Lsn::ZERO, 0);
    }
    (messages, tables(engine))
}

/// All keys of both tables with their values.
fn tables(engine: &mut Engine) -> Vec<Reply> {
    let reader = SessionId(2);
    engine.open_session(reader);
    let shown = ["t", "u"].map(|table| {
        let kind = CollectionKind::Hash;
        let show = CollectionCommand::ShowFields { name: name(table), kind };
        let mut effects = Effects::default();
        engine.handle(Nanos::ZERO, reader, show.into(), Capacity::UNBOUNDED, &mut effects);
        let reply = effects.outputs.remove(0).reply;
        assert!(matches!(&reply, Reply::Entries(_)), "{reply:?}");
        reply
    });
    engine.close_session(Nanos::ZERO, reader, Capacity::UNBOUNDED, &mut Effects::default());
    shown.into()
}

fn name(word: &str) -> QueueName {
    QueueName::new(word).unwrap()
}
