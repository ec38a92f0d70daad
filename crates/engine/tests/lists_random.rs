//! Random commands on a few lists to the engine and to plain vectors, which must agree on every
//! answer. They agree on which of several waiting commands is served, on the work and view of
//! batches, and on leased elements that come back. All the while snapshots are taken in small
//! steps, and frames are stated anew. Now and then everything but the snapshot and the log, or the
//! first frames of it, is lost.

use std::collections::BTreeMap;

use engine::{Effects, Engine, EngineOptions, QueuePolicies, QueuePolicy};
use model::{
    Capacity, Command, Destination, End, KeyCommand, ListCommand, Lsn, Nanos, NewMessage, Output,
    Persistence, QueueName, Reply, SessionId, StorePolicy,
};
use testkit::{Rng, Seen, seeds};

use crate::support::lists::{Answer, Lists};
use crate::support::log::{Log, Snapshot};
use crate::support::paging;

const QUEUES: [&str; 4] = ["a", "b", "c", "d"];
const BODIES: [&[u8]; 4] = [b"w", b"x", b"y", b"z"];
const SESSIONS: u64 = 5;
const STEPS: usize = 400;
const SEEDS: u64 = 80;

struct World {
    rng: Rng,
    now: Nanos,
    options: EngineOptions,
    engine: Engine,
    lists: Lists,
    log: Log,
    snapshot: Option<Snapshot>,
    whole: Option<Snapshot>,
    effects: Effects,
    /// The durable state after these frames.
    durable: BTreeMap<Lsn, BTreeMap<String, Vec<Vec<u8>>>>,
    seen: Seen,
}

#[test]
fn lists_match_plain_vectors() {
    let mut seen = Seen::default();
    for seed in seeds(SEEDS) {
        let mut world = World::new(seed);
        (0..STEPS).for_each(|_| world.step());
        world.check_recovery();
        seen.merge(world.seen);
    }
    seen.expect_only(&EXPECTED, 100);
}

/// Events that must have happened often enough for the test to mean something.
const EXPECTED: [&str; 16] = [
    "came back",
    "batch",
    "count",
    "crash",
    "done",
    "elements",
    "fuzzy snapshot",
    "leased came back",
    "not found",
    "places",
    "popped at once",
    "popped later",
    "refused",
    "restated",
    "stale",
    "timed out",
];

impl World {
    /// In some worlds queues go when they are empty, or popped elements are leased. Then nothing is
    /// inserted in the middle, for a leased element may come back on either side of it.
    fn new(seed: u64) -> Self {
        let pop_lease = seed.is_multiple_of(3).then(|| Nanos::from_secs(2));
        let kept = seed % 4 < 3;
        let default = QueuePolicy { pop_lease, ..QueuePolicy::default() };
        let mut queue_policies = QueuePolicies { default, ..QueuePolicies::default() };
        if kept {
            QUEUES.iter().for_each(|queue| queue_policies.keep(name(queue)));
        }
        let log_bodies_max = if seed.is_multiple_of(2) { u64::MAX } else { 0 };
        let options = EngineOptions {
            queue_policies,
            log_bodies_max,
            ..EngineOptions::new(StorePolicy::Always)
        };
        let now = Nanos::SECOND;
        Self {
            rng: Rng::new(seed),
            now,
            engine: Engine::new(options.clone()),
            options,
            lists: Lists::new(now, pop_lease),
            log: Log::default(),
            snapshot: None,
            whole: None,
            effects: Effects::default(),
            durable: BTreeMap::from([(Lsn::ZERO, BTreeMap::new())]),
            seen: Seen::default(),
        }
    }

    fn step(&mut self) {
        self.pass_time();
        match self.rng.below(100) {
            0..6 => self.close(),
            6..10 => self.snapshot_step(),
            10..13 => self.restate(),
            13 if self.rng.one_in(2) => self.crash(),
            13 => self.check_recovery(),
            14..16 => self.pause(),
            16..20 => self.put(),
            20..24 => self.observe(),
            24..32 => self.batch(),
            _ => self.one_command(),
        }
        self.engine.check();
        self.log.check_live(&self.engine);
    }

    fn pass_time(&mut self) {
        self.now = self.now + Nanos(1 + self.rng.below(300_000_000));
        while self.engine.poll_timeout().is_some_and(|at| at <= self.now) {
            paging::before(&mut self.engine);
            self.engine.handle_timeout(self.now, Capacity::UNBOUNDED, &mut self.effects);
            self.after();
        }
        self.lists.pass_time(self.now);
        self.compare(None);
    }

    fn one_command(&mut self) {
        let (by, command) = (self.session(), self.list_command(true));
        if self.lists.waits(by) && !matches!(command, ListCommand::CancelPop) {
            return;
        }
        self.handle(by, Command::List(command.clone()));
        // Others may end a wait in a session's name: this says nothing of the elements that it has
        // popped.
        if !matches!(command, ListCommand::CancelPop) {
            self.lists.settle(by);
        }
        let answer = self.lists.handle(by, &command);
        self.answer(by, answer);
    }

    fn batch(&mut self) {
        let by = self.session();
        if self.lists.waits(by) {
            return;
        }
        let mut commands = Vec::new();
        for _ in 0..self.rng.below(5) {
            commands.push(match self.rng.below(8) {
                0 => Command::Key(KeyCommand::Delete { names: self.names() }),
                _ => Command::List(self.list_command(false)),
            });
        }
        self.handle(by, Command::Batch { commands: commands.clone() });
        self.lists.settle(by);
        if self.lists.stop_observing(by) {
            return self.answer(by, Some(Answer::Stale));
        }
        let answers = commands.into_iter().map(|command| match command {
            Command::List(mut command) => {
                command.set_wait(Nanos::ZERO);
                self.lists.handle(by, &command).unwrap()
            }
            Command::Key(command) => match command {
                KeyCommand::Delete { names } => {
                    Answer::Count(self.lists.delete_keys(&texts(&names)))
                }
                other => panic!("{other:?} is not of the workload"),
            },
            other => panic!("{other:?} is not of the workload"),
        });
        let answers = answers.collect();
        self.answer(by, Some(Answer::Batch(answers)));
    }

    fn observe(&mut self) {
        let (by, names) = (self.session(), self.names());
        if self.lists.waits(by) {
            return;
        }
        self.handle(by, Command::Observe { names: names.clone() });
        self.lists.settle(by);
        self.lists.observe(by, &texts(&names));
        self.answer(by, Some(Answer::Done));
    }

    /// Another protocol stores a message of any priority.
    fn put(&mut self) {
        let (by, queue) = (SessionId(100), self.rng.pick(&QUEUES));
        let (body, priority) = (self.body(), self.rng.pick(&[0, 1280, 1280, 5000]));
        let message = NewMessage { priority, ..NewMessage::new(body.into()) };
        let to = Destination::Queue(name(queue));
        self.handle(by, Command::PutTo { to, message, transaction: None });
        let first = self.effects.outputs.remove(0);
        assert!(matches!(first.reply, Reply::Stored { .. }));
        self.lists.put(queue, priority, body);
        self.compare(None);
    }

    fn pause(&mut self) {
        let (by, queue) = (SessionId(100), self.rng.pick(&QUEUES));
        let paused = self.rng.one_in(3);
        let duration = if paused { Nanos::from_secs(1_000_000) } else { Nanos::ZERO };
        self.handle(by, Command::Pause { queue: name(queue), duration });
        let first = self.effects.outputs.remove(0);
        if first.reply == Reply::NotFound {
            return self.compare(None);
        }
        if paused {
            self.lists.paused.insert(queue.to_owned());
        } else {
            self.lists.unpause(queue);
        }
        self.compare(None);
        self.lists.paused.retain(|queue| self.options.queue_policies.of(&name(queue)).kept);
        if !self.options.queue_policies.of(&name(queue)).kept && paused {
            // It would end with the queue, whenever that goes.
            let duration = Nanos::ZERO;
            self.handle(by, Command::Pause { queue: name(queue), duration });
            self.effects.outputs.remove(0);
            self.lists.unpause(queue);
            self.compare(None);
        }
    }

    fn close(&mut self) {
        let mut by = self.session();
        if let Some((holder, _)) = self.lists.leased.iter().find(|(_, leased)| !leased.is_empty()) {
            by = *holder;
            self.seen.saw("leased came back");
        }
        paging::before(&mut self.engine);
        self.engine.close_session(self.now, by, Capacity::UNBOUNDED, &mut self.effects);
        self.after();
        self.lists.close(by);
        self.compare(None);
    }

    fn handle(&mut self, by: SessionId, command: Command) {
        crate::support::users::open(&mut self.engine, by);
        // Effects that were not compared yet are not in the log.
        if self.effects.is_empty() {
            paging::before(&mut self.engine);
        }
        self.engine.handle(self.now, by, command, Capacity::UNBOUNDED, &mut self.effects);
        self.after();
    }

    /// Bodies come back if a command needs them.
    fn after(&mut self) {
        let Self { engine, log, now, effects, .. } = self;
        let came = paging::after(engine, &|lsn| log.payload(lsn), *now, effects);
        (0..came).for_each(|_| self.seen.saw("came back"));
    }

    /// The command is answered so, and then the commands that wait are.
    fn answer(&mut self, by: SessionId, answer: Option<Answer>) {
        let mut before = std::mem::take(&mut self.lists.answers);
        before.extend(answer.map(|answer| (by, answer)));
        self.lists.serve_all();
        before.append(&mut self.lists.answers);
        self.lists.answers = before;
        self.compare(Some(by));
    }

    /// Both say the same. The answer to a change of durable state waits for a frame with that
    /// change.
    fn compare(&mut self, by: Option<SessionId>) {
        let expected = std::mem::take(&mut self.lists.answers);
        let found = self.effects.outputs.iter().map(|it| (it.session, answer_of(&it.reply)));
        let found: Vec<_> = found.collect();
        assert_eq!(found, expected);
        for (session, answer) in &expected {
            self.saw_answer(answer, by == Some(*session));
        }
        let known = self.log.frames.last().map_or(Lsn::ZERO, |(frame, _)| frame.lsn);
        let is_changed = self.durable.get(&known) != Some(&self.lists.durable());
        assert!(!is_changed || self.engine.last_lsn() > known, "a frame says what has changed");
        let first = self.effects.outputs.first().filter(|it| Some(it.session) == by);
        if let Some(Output { after, reply, .. }) = first
            && is_changed
            && self.lists.lease.is_none()
            && changes(reply)
        {
            assert!(after.lsn > known, "{reply:?} waits for its frame");
        }
        self.log.absorb(&self.effects);
        self.effects.clear();
        self.durable.insert(self.engine.last_lsn(), self.lists.durable());
    }

    fn saw_answer(&mut self, answer: &Answer, at_once: bool) {
        self.seen.saw(match answer {
            Answer::Count(_) => "count",
            Answer::Elements(_) => "elements",
            Answer::Popped(..) if at_once => "popped at once",
            Answer::Popped(..) => "popped later",
            Answer::Places(_) => "places",
            Answer::Done => "done",
            Answer::NotFound => "not found",
            Answer::TimedOut => "timed out",
            Answer::Refused(_) => "refused",
            Answer::Batch(_) => "batch",
            Answer::Stale => "stale",
        });
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
        if !self.effects.frames.is_empty() {
            self.seen.saw("restated");
        }
        self.compare(None);
    }

    /// From all of the log, and from any beginning of it, the lists come back as they were then.
    fn check_recovery(&mut self) {
        let ends: Vec<Lsn> = self.durable.keys().copied().collect();
        let end = self.rng.pick(&ends);
        for (log, end) in [(self.log.clone(), self.engine.last_lsn()), (self.cut(end), end)] {
            let usable = self.whole.clone().filter(|whole| whole.end <= Some(end));
            for snapshot in [None, usable.as_ref()] {
                let mut recovered = log.recover(self.options.clone(), snapshot);
                recovered.check();
                let expected = &self.durable[&end];
                for queue in QUEUES {
                    let expected = expected.get(queue).cloned().unwrap_or_default();
                    let found = all_of(&mut recovered, &self.log, self.now, queue);
                    assert_eq!(found, expected, "{queue} after {end}");
                }
            }
        }
    }

    fn cut(&self, end: Lsn) -> Log {
        let count = self.log.frames.iter().take_while(|(frame, _)| frame.lsn <= end).count();
        self.log.cut(count)
    }

    fn crash(&mut self) {
        self.check_recovery();
        self.seen.saw("crash");
        self.engine = self.log.recover(self.options.clone(), self.whole.as_ref());
        self.log.relearn(&self.engine);
        self.snapshot = None;
        self.lists.crash();
    }

    fn list_command(&mut self, alone: bool) -> ListCommand {
        let queue = name(self.rng.pick(&QUEUES));
        let (origin, end, element) = (self.end(), self.end(), self.body().into());
        let (first, last) = (self.place(), self.place());
        let persistence = self.persistence();
        match self.rng.below(32) {
            0..9 => {
                let count = 1 + self.rng.below(3);
                let elements = (0..count).map(|_| self.body().into()).collect();
                let only_existing = self.rng.one_in(4);
                ListCommand::Push { queue, end, elements, only_existing, persistence }
            }
            9..12 => ListCommand::Pop { queue, end, max: self.rng.below(4) },
            12..16 => {
                let queues = self.names();
                let (max, wait) = (1 + self.rng.below(3), self.wait());
                ListCommand::PopFirst { queues, end, max, wait }
            }
            16..20 => {
                let (to, wait) = (name(self.rng.pick(&QUEUES)), self.wait());
                ListCommand::Move { from: queue, from_end: origin, to, to_end: end, wait }
            }
            20 if alone => ListCommand::CancelPop,
            20 | 21 => ListCommand::Length { queue },
            22 => ListCommand::Range { queue, origin, first, last },
            23 | 24 => ListCommand::Replace { queue, origin, at: first, element, persistence },
            25..28 if self.lists.lease.is_none() => ListCommand::Insert {
                queue,
                origin,
                pivot: self.body().into(),
                towards: end,
                element,
                persistence,
            },
            25..29 => ListCommand::Remove { queue, origin, element, max: 1 + self.rng.below(3) },
            29 if self.rng.one_in(3) => ListCommand::Keep { queue, origin, first, last },
            _ => ListCommand::Locate {
                queue,
                origin,
                from: end,
                element,
                skip: self.rng.below(2),
                max: 1 + self.rng.below(3),
                scan_max: self.rng.one_in(2).then_some(3),
            },
        }
    }

    fn wait(&mut self) -> Option<Nanos> {
        match self.rng.below(4) {
            0 => Some(Nanos::ZERO),
            1 => None,
            _ => Some(Nanos(self.rng.below(3_000_000_000))),
        }
    }

    fn persistence(&mut self) -> Persistence {
        if self.rng.one_in(5) { Persistence::NonPersistent } else { Persistence::Persistent }
    }

    fn names(&mut self) -> Vec<QueueName> {
        (0..=self.rng.below(2)).map(|_| name(self.rng.pick(&QUEUES))).collect()
    }

    fn place(&mut self) -> i64 {
        self.rng.below(14) as i64 - 7
    }

    fn end(&mut self) -> End {
        self.rng.pick(&[End::Head, End::Tail])
    }

    fn body(&mut self) -> &'static [u8] {
        self.rng.pick(&BODIES)
    }

    fn session(&mut self) -> SessionId {
        SessionId(self.rng.below(SESSIONS))
    }
}

fn all_of(engine: &mut Engine, log: &Log, now: Nanos, queue: &str) -> Vec<Vec<u8>> {
    let (reader, mut effects) = (SessionId(u64::MAX), Effects::default());
    let (queue, origin) = (name(queue), End::Head);
    let range = ListCommand::Range { queue, origin, first: 0, last: -1 };
    crate::support::users::open(engine, reader);
    engine.handle(now, reader, Command::List(range), Capacity::UNBOUNDED, &mut effects);
    paging::after(engine, &|lsn| log.payload(lsn), now, &mut effects);
    engine.close_session(now, reader, Capacity::UNBOUNDED, &mut effects);
    match answer_of(&effects.outputs[0].reply) {
        Answer::Elements(elements) => elements,
        other => panic!("{other:?} is no range"),
    }
}

fn answer_of(reply: &Reply) -> Answer {
    let bodies = |elements: &[model::Element]| {
        elements.iter().map(|element| element.payload().to_vec()).collect::<Vec<_>>()
    };
    match reply {
        Reply::Count(count) => Answer::Count(*count),
        Reply::Elements(elements) => Answer::Elements(bodies(elements)),
        Reply::Popped { queue, elements } => Answer::Popped(queue.to_string(), bodies(elements)),
        Reply::Places(places) => Answer::Places(places.clone()),
        Reply::Done => Answer::Done,
        Reply::NotFound => Answer::NotFound,
        Reply::TimedOut { link: None } => Answer::TimedOut,
        Reply::Refused(refusal) => Answer::Refused(refusal.clone()),
        Reply::Batch(replies) => Answer::Batch(replies.iter().map(answer_of).collect()),
        Reply::Stale => Answer::Stale,
        other => panic!("{other:?} answers nothing of the workload"),
    }
}

/// True if a command with this answer may have changed something.
fn changes(reply: &Reply) -> bool {
    !matches!(reply, Reply::NotFound | Reply::TimedOut { .. } | Reply::Refused(_) | Reply::Stale)
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

fn texts(names: &[QueueName]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}
