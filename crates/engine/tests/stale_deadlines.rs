//! A list with elements in memory only is gone after a crash, and the log still knows its deadline.
//! The next list of the name has none, whichever frames another crash leaves.

use engine::{Effects, Engine, EngineOptions};
use model::{
    Capacity, Command, Deadline, DeadlineRule, Destination, End, KeyCommand, Lifetime, ListCommand,
    Nanos, NewMessage, Persistence, QueueName, Reply, SessionId, StorePolicy, TransactionId,
};

use crate::support::log::Log;

const BY: SessionId = SessionId(1);
const NOW: Nanos = Nanos::SECOND;
const FRAME_BYTES: usize = 2_000;

struct World {
    engine: Engine,
    log: Log,
    effects: Effects,
}

impl World {
    /// The log knows a deadline of a list that is gone.
    fn new() -> Self {
        let engine = Engine::new(options());
        let mut world = Self { engine, log: Log::default(), effects: Effects::default() };
        world.engine.open_session(BY);
        world.push(1, Persistence::NonPersistent);
        let (name, deadline) = (name("l"), Deadline::At(Nanos::from_secs(100)));
        let set = KeyCommand::SetDeadline { name, deadline, rule: DeadlineRule::Always };
        assert_eq!(world.run(Command::Key(set)), [Reply::Count(1)]);
        world.engine = world.log.recover(options(), None);
        world.log.adopt(&world.engine);
        world.engine.open_session(BY);
        assert_eq!(lifetime(&mut world.engine), Reply::NotFound);
        world
    }

    fn run(&mut self, command: Command) -> Vec<Reply> {
        self.engine.handle(NOW, BY, command, Capacity::UNBOUNDED, &mut self.effects);
        self.absorb()
    }

    fn absorb(&mut self) -> Vec<Reply> {
        self.engine.check();
        self.log.absorb(&self.effects);
        let outputs = std::mem::take(&mut self.effects.outputs);
        self.effects.clear();
        outputs.into_iter().map(|output| output.reply).collect()
    }

    fn push(&mut self, bytes: usize, persistence: Persistence) -> Vec<Reply> {
        let (queue, end, elements) = (name("l"), End::Tail, vec![vec![0; bytes].into()]);
        let push = ListCommand::Push {
            queue,
            end,
            elements: model::OneOrMany::Many(elements),
            only_existing: false,
            persistence,
        };
        self.run(Command::List(push))
    }

    fn put(&mut self, bytes: usize, transaction: Option<TransactionId>) -> Vec<Reply> {
        let to = Destination::Queue(name("l"));
        let persistence = Persistence::Persistent;
        let message = NewMessage { persistence, ..NewMessage::new(vec![0; bytes].into()) };
        self.run(Command::PutTo { to, message, transaction })
    }

    /// With any part of the log left, a list that is there has no deadline.
    fn check_prefixes(&self) {
        let mut there = 0;
        for frames in 0..=self.log.frames.len() {
            let mut engine = self.log.cut(frames).recover(options(), None);
            engine.open_session(BY);
            match lifetime(&mut engine) {
                Reply::NotFound => {}
                Reply::Lifetime(Lifetime { at, .. }) => {
                    assert_eq!(at, None, "after {frames} of {}", self.log.frames.len());
                    there += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(there > 0, "it is there at last");
    }
}

fn options() -> EngineOptions {
    EngineOptions { frame_bytes_max: FRAME_BYTES, ..EngineOptions::new(StorePolicy::Always) }
}

fn lifetime(engine: &mut Engine) -> Reply {
    let mut effects = Effects::default();
    let command = Command::Key(KeyCommand::Lifetime { name: name("l") });
    engine.handle(NOW, BY, command, Capacity::UNBOUNDED, &mut effects);
    effects.outputs.remove(0).reply
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

/// As large as a frame takes, and a little smaller.
#[test]
fn push_frame_includes_the_deadline() {
    let mut stored = 0;
    for bytes in (FRAME_BYTES - 400)..FRAME_BYTES {
        let mut world = World::new();
        if world.push(bytes, Persistence::Persistent) == [Reply::Count(1)] {
            stored += 1;
            world.check_prefixes();
        }
    }
    assert!((1..400).contains(&stored), "{stored}");
}

#[test]
fn put_frame_includes_the_deadline() {
    let mut stored = 0;
    for bytes in (FRAME_BYTES - 400)..FRAME_BYTES {
        let mut world = World::new();
        if matches!(world.put(bytes, None)[..], [Reply::Stored { .. }]) {
            stored += 1;
            world.check_prefixes();
        }
    }
    assert!((1..400).contains(&stored), "{stored}");
}

/// Of any size: as one frame, or as a chain of them.
#[test]
fn commit_includes_the_deadline() {
    let mut chains = 0;
    for bytes in (1..FRAME_BYTES).step_by(50) {
        let mut world = World::new();
        let transaction = TransactionId(1);
        world.run(Command::Begin { transaction });
        for _ in 0..3 {
            world.put(bytes / 2, Some(transaction));
        }
        let mut heard = world.run(Command::Commit { transaction });
        if world.engine.awaited_room().is_some() {
            chains += 1;
            world.engine.commit_awaiting(NOW, true, Capacity::UNBOUNDED, &mut world.effects);
            heard = world.absorb();
        }
        assert_eq!(heard, [Reply::Done]);
        world.check_prefixes();
    }
    assert!((1..40).contains(&chains), "{chains}");
}
