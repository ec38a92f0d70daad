//! An engine with the log of its frames, which takes snapshots in small steps, and falls back to
//! what the log had at some frame.

use std::collections::BTreeMap;

use engine::{Effects, Engine, EngineOptions};
use model::{
    Capacity, CollectionCommand, Command, KeyCommand, Nanos, Output, Reply, SessionId, StorePolicy,
    StreamCommand,
};
use testkit::Rng;

use super::log::{Log, Snapshot};

const SESSION: SessionId = SessionId(1);

/// Such an engine, and what a model of it was behind each frame.
pub(crate) struct Crashing<M> {
    options: EngineOptions,
    engine: Engine,
    log: Log,
    history: BTreeMap<u64, M>,
    /// The last frame before the engine was made.
    recovered: u64,
    taking: Option<Snapshot>,
    whole: Option<Snapshot>,
    effects: Effects,
}

impl<M: Clone> Crashing<M> {
    pub(crate) fn new(policy: StorePolicy, model: &M) -> Self {
        let options = EngineOptions::new(policy);
        let mut engine = Engine::new(options.clone());
        engine.open_session(SESSION);
        Self {
            options,
            engine,
            log: Log::default(),
            history: BTreeMap::from([(0, model.clone())]),
            recovered: 0,
            taking: None,
            whole: None,
            effects: Effects::default(),
        }
    }

    /// The number of the last frame.
    pub(crate) fn last(&self) -> u64 {
        self.engine.last_lsn().0
    }

    /// True if persistent messages outlive the engine.
    pub(crate) fn is_kept(&self) -> bool {
        self.options.policy != StorePolicy::Memory
    }

    /// A step has ended, and left the model as it is now.
    pub(crate) fn end_step(&mut self, model: &M) {
        self.history.entry(self.engine.last_lsn().0).or_insert_with(|| model.clone());
    }

    /// Gives a command, and checks that the answer waits for all that it reflects.
    pub(crate) fn ask(&mut self, now: u64, command: Command) -> Reply {
        let before = self.engine.last_lsn();
        let (is_key, has_changed) = (matches!(command, Command::Key(_)), change_of(&command));
        self.engine.handle(Nanos(now), SESSION, command, Capacity::UNBOUNDED, &mut self.effects);
        let [Output { after, reply, .. }] = &self.effects.outputs[..] else {
            panic!("{:?}", self.effects.outputs)
        };
        if is_key && !matches!(reply, Reply::Refused(_)) {
            let is_old = before.0 <= self.recovered;
            assert!(is_old || after.lsn >= before, "{reply:?} waits for what it reflects");
        }
        let last = self.engine.last_lsn();
        if last > before && has_changed(reply) {
            assert!(after.lsn == last, "{reply:?} waits for its own frame");
        }
        if let Reply::Replaced { set: true, .. } = reply {
            assert!(!self.is_kept() || last == before.next(), "what is set is one frame");
        }
        let reply = reply.clone();
        self.absorb();
        reply
    }

    /// Does something that is due by now; false if nothing is.
    pub(crate) fn do_due(&mut self, now: u64) -> bool {
        let now = Nanos(now);
        if self.engine.poll_timeout().is_none_or(|at| at > now) {
            return false;
        }
        self.engine.handle_timeout(now, Capacity::UNBOUNDED, &mut self.effects);
        self.absorb();
        true
    }

    fn absorb(&mut self) {
        self.engine.check();
        self.log.absorb(&self.effects);
        self.log.check_live(&self.engine);
        self.effects.clear();
    }

    pub(crate) fn begin_snapshot(&mut self) {
        self.taking = Some(Snapshot::begin(&self.engine, 2));
    }

    /// One more chunk; true if a snapshot is whole by that which is behind frames of its time.
    pub(crate) fn go_on_with_snapshot(&mut self) -> bool {
        let Some(taking) = &mut self.taking else { return false };
        if taking.step(&self.engine) {
            return false;
        }
        let is_fuzzy = taking.end.unwrap() > taking.begin;
        self.whole = self.taking.take();
        is_fuzzy
    }

    /// All is lost but the last snapshot and the log up to some frame. The model as it was there.
    pub(crate) fn crash(&mut self, rng: &mut Rng) -> M {
        let needed = self.whole.as_ref().map_or(0, |whole| whole.end.unwrap().0);
        let ends: Vec<_> = self.history.range(needed..).map(|(lsn, _)| *lsn).collect();
        let lsn = if rng.one_in(3) { *ends.last().unwrap() } else { rng.pick(&ends) };
        self.log = self.log.cut(lsn as usize);
        self.engine = self.log.recover(self.options.clone(), self.whole.as_ref());
        self.log.adopt(&self.engine);
        self.engine.check();
        self.engine.open_session(SESSION);
        (self.recovered, self.taking) = (lsn, None);
        self.history[&lsn].clone()
    }

    /// The engine that was made anew begins with this.
    pub(crate) fn begin_anew(&mut self, model: &M) {
        self.history = BTreeMap::from([(self.recovered, model.clone())]);
    }
}

/// The replies by which a command says that it has changed something.
fn change_of(command: &Command) -> fn(&Reply) -> bool {
    let command = match command {
        Command::Key(KeyCommand::Collection(command)) => command,
        Command::Key(KeyCommand::Stream(command)) => return change_of_stream(command),
        Command::Commit { .. } => return |reply| matches!(reply, Reply::Committed { .. }),
        _ => return |reply| matches!(reply, Reply::Replaced { set: true, .. }),
    };
    match **command {
        CollectionCommand::SetFields { .. }
        | CollectionCommand::AddMembers { .. }
        | CollectionCommand::RemoveFields { .. }
        | CollectionCommand::MoveMember { .. } => |reply| matches!(reply, Reply::Count(1..)),
        CollectionCommand::PopScored { .. } => |reply| matches!(reply, Reply::ScoredPopped(_)),
        _ => |_| false,
    }
}

fn change_of_stream(command: &StreamCommand) -> fn(&Reply) -> bool {
    match command {
        StreamCommand::Append { .. } => |reply| matches!(reply, Reply::Stream(_)),
        StreamCommand::Read(read) if read.reader.is_some() => {
            |reply| matches!(reply, Reply::Stream(_))
        }
        StreamCommand::Trim { .. }
        | StreamCommand::Remove { .. }
        | StreamCommand::Acknowledge { .. }
        | StreamCommand::RemoveGroup { .. } => |reply| matches!(reply, Reply::Count(1..)),
        StreamCommand::CreateGroup { .. } | StreamCommand::SetLast { .. } => {
            |reply| *reply == Reply::Done
        }
        _ => |_| false,
    }
}
