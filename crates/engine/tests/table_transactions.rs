//! Tables in transactions, one case at a time: beside messages, in conflict, at their limits, and
//! for those who observe them.

use std::sync::Arc;

use engine::{Effects, Engine, EngineOptions};
use model::{
    Capacity, CollectionCommand, CollectionKind, Command, Destination, Expected, KeyCommand,
    LinkId, Lsn, Nanos, NewMessage, OneOrMany, Output, QueueName, Refusal, Reply, SessionId,
    Settlement, StorePolicy, TableAction, TableStep, TransactionId, limits,
};

const SESSION: SessionId = SessionId(1);
const OTHER: SessionId = SessionId(2);
const TRANSACTION: TransactionId = TransactionId(1);

struct World {
    engine: Engine,
    effects: Effects,
    /// The position that the answer to the last call waits for.
    after: Lsn,
    frames: usize,
}

impl World {
    fn new() -> Self {
        Self::with(EngineOptions::new(StorePolicy::Always))
    }

    fn with(options: EngineOptions) -> Self {
        let mut engine = Engine::new(options);
        engine.open_session(SESSION);
        engine.open_session(OTHER);
        Self { engine, effects: Effects::default(), after: Lsn::ZERO, frames: 0 }
    }

    fn give(&mut self, by: SessionId, command: impl Into<Command>, capacity: Capacity) -> Reply {
        self.engine.handle(Nanos::SECOND, by, command.into(), capacity, &mut self.effects);
        let Output { after, reply, .. } = self.effects.outputs.remove(0);
        (self.after, self.frames) = (after.lsn, self.effects.frames.len());
        self.effects.clear();
        self.engine.check();
        reply
    }

    fn ask(&mut self, command: impl Into<Command>) -> Reply {
        self.give(SESSION, command, Capacity::UNBOUNDED)
    }

    /// A transaction of these steps, which are all taken.
    fn begin(&mut self, steps: &[(&str, &str, TableAction)]) {
        assert_eq!(self.ask(Command::Begin { transaction: TRANSACTION }), Reply::Done);
        for (table, key, action) in steps {
            assert_eq!(self.step(table, key.as_bytes(), action.clone()), Reply::Done);
        }
    }

    fn step(&mut self, table: &str, key: &[u8], action: TableAction) -> Reply {
        let step = Box::new(TableStep { table: name(table), key: key.into(), action });
        self.ask(Command::Table { step, transaction: TRANSACTION })
    }

    fn commit(&mut self) -> Reply {
        self.ask(Command::Commit { transaction: TRANSACTION })
    }

    fn transact(&mut self, steps: &[(&str, &str, TableAction)]) -> Reply {
        self.begin(steps);
        self.commit()
    }

    fn find(&mut self, table: &str, key: &str) -> Option<Vec<u8>> {
        let (name, kind) = (name(table), CollectionKind::Hash);
        let fields = OneOrMany::One(key.as_bytes().into());
        match self.ask(CollectionCommand::FindFields { name, kind, fields }) {
            Reply::Value(value) => value.map(|value| value.to_vec()),
            other => panic!("{other:?}"),
        }
    }

    fn put_message(&mut self, queue: &str, transaction: Option<TransactionId>) -> Reply {
        let (to, message) = (Destination::Queue(name(queue)), NewMessage::new((*b"x").into()));
        self.ask(Command::PutTo { to, message, transaction })
    }
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

fn put(value: &str) -> TableAction {
    TableAction::Put(value.as_bytes().into())
}

fn expect_value(value: &str) -> TableAction {
    TableAction::Expect(Expected::Value(value.as_bytes().into()))
}

#[test]
fn receive_send_and_state_are_one_frame() {
    let mut world = World::new();
    world.put_message("requests", None);
    let link = LinkId(1);
    world.ask(Command::Watch { link, queue: name("requests") });
    let receive = Command::Receive { link, wait: None, margin: Nanos::ZERO, lease: None };
    let Reply::Delivered(delivery) = world.ask(receive) else { panic!("a request") };
    let steps = [
        ("accounts", "17", put("100")),
        ("accounts", "17", TableAction::Add(-30)),
        ("accounts", "18", TableAction::Add(30)),
        ("tellers", "1", TableAction::Add(0)),
    ];
    world.begin(&steps);
    let settle = Command::Settle {
        message: delivery.message,
        settlement: Settlement::Accept,
        transaction: Some(TRANSACTION),
    };
    assert_eq!(world.ask(settle), Reply::Done);
    assert_eq!(world.put_message("history", Some(TRANSACTION)), Reply::Done);
    assert_eq!(world.find("accounts", "17"), None, "nothing is there before the commit");
    assert_eq!(world.commit(), Reply::Committed { sums: vec![70, 30, 0] });
    assert_eq!(world.frames, 1);
    assert_eq!(world.after, world.engine.last_lsn(), "the answer waits for that frame");
    assert_eq!(world.find("accounts", "17").as_deref(), Some(&b"70"[..]));
    assert_eq!(world.find("tellers", "1").as_deref(), Some(&b"0"[..]));
    let statistics = world.engine.statistics();
    assert_eq!((statistics.ready, statistics.leased), (1, 0), "the request is gone");
}

#[test]
fn conflict_counts_no_attempt() {
    let mut world = World::new();
    assert_eq!(world.transact(&[("t", "a", put("1"))]), Reply::Done);
    world.put_message("requests", None);
    let link = LinkId(1);
    world.ask(Command::Watch { link, queue: name("requests") });
    let receive = Command::Receive { link, wait: None, margin: Nanos::ZERO, lease: None };
    let Reply::Delivered(delivery) = world.ask(receive) else { panic!("a request") };
    let message = delivery.message;
    let (settlement, transaction) = (Settlement::Accept, Some(TRANSACTION));
    world.begin(&[("t", "b", put("2")), ("t", "a", expect_value("0"))]);
    let settle = Command::Settle { message, settlement, transaction };
    assert_eq!(world.ask(settle.clone()), Reply::Done);
    let last = world.engine.last_lsn();
    let conflict = Reply::Refused(Refusal::TableConflict { step: 1 });
    assert_eq!(world.commit(), conflict);
    assert_eq!(world.after, last, "the refusal tells of what is there");
    assert_eq!(world.find("t", "b"), None);
    // A refusal for another reason is a failed attempt.
    let receive = Command::Receive { link, wait: None, margin: Nanos::ZERO, lease: None };
    let Reply::Delivered(delivery) = world.ask(receive.clone()) else { panic!("it is there") };
    assert_eq!((delivery.message, delivery.failed), (message, 0));
    assert_eq!(world.transact(&[("t", "a", put("x"))]), Reply::Done);
    world.begin(&[("t", "a", TableAction::Add(1))]);
    assert_eq!(world.ask(settle), Reply::Done);
    assert_eq!(world.commit(), Reply::Refused(Refusal::NotAnInteger));
    let Reply::Delivered(delivery) = world.ask(receive) else { panic!("it is there") };
    assert_eq!((delivery.message, delivery.failed), (message, 1));
}

#[test]
fn expectations_come_before_changes() {
    let mut world = World::new();
    let steps = [
        ("t", "a", put("1")),
        ("t", "a", TableAction::Expect(Expected::Absent)),
        ("t", "b", TableAction::Delete),
    ];
    assert_eq!(world.transact(&steps), Reply::Done);
    let steps = [
        ("t", "a", TableAction::Delete),
        ("t", "a", TableAction::Expect(Expected::Present)),
        ("t", "a", expect_value("1")),
    ];
    assert_eq!(world.transact(&steps), Reply::Done);
    let count = CollectionCommand::CountFields { name: name("t"), kind: CollectionKind::Hash };
    assert_eq!(world.ask(count), Reply::Count(0), "the table went with its last key");
    assert_eq!(world.ask(Command::Key(KeyCommand::CountAll { database: None })), Reply::Count(0));
}

#[test]
fn steps_that_only_look_write_nothing() {
    let mut world = World::new();
    world.transact(&[("t", "a", put("1"))]);
    let written = world.engine.last_lsn();
    let steps = [("t", "a", expect_value("1")), ("t", "z", TableAction::Delete)];
    assert_eq!(world.transact(&steps), Reply::Done);
    assert_eq!((world.engine.last_lsn(), world.frames), (written, 0));
    assert_eq!(world.after, written, "the answer waits for what it has found");
}

#[test]
fn refused_step_rolls_back() {
    let long = vec![b'k'; limits::FIELD_BYTES_MAX + 1];
    let large = TableAction::Put(vec![b'v'; limits::VALUE_BYTES_MAX + 1].into());
    for (key, action, refusal) in [
        (&long[..], put("1"), Refusal::FieldTooLong),
        (&long[..], TableAction::Expect(Expected::Absent), Refusal::FieldTooLong),
        (b"a", large, Refusal::TooManyValues),
    ] {
        let mut world = World::new();
        world.begin(&[("t", "b", put("1"))]);
        assert_eq!(world.step("t", key, action), Reply::Refused(refusal));
        assert_eq!(world.step("t", b"c", put("1")), Reply::Refused(Refusal::TransactionFailed));
        assert_eq!(world.commit(), Reply::Refused(Refusal::TransactionFailed));
        assert_eq!(world.find("t", "b"), None);
    }
    let mut world = World::new();
    let unknown = world.step("t", b"a", put("1"));
    assert_eq!(unknown, Reply::Refused(Refusal::NoSuchTransaction));
}

#[test]
fn commit_is_refused_whole() {
    let mut world = World::new();
    world.put_message("list", None);
    world.transact(&[("t", "a", put("x")), ("t", "max", put("9223372036854775807"))]);
    for (table, key, action, refusal) in [
        ("list", "a", put("1"), Refusal::WrongKind),
        ("list", "a", TableAction::Expect(Expected::Absent), Refusal::WrongKind),
        ("t", "a", TableAction::Add(1), Refusal::NotAnInteger),
        ("t", "max", TableAction::Add(1), Refusal::Overflow),
    ] {
        world.begin(&[("t", "new", put("1")), (table, key, action)]);
        world.put_message("sent", Some(TRANSACTION));
        assert_eq!(world.commit(), Reply::Refused(refusal));
        assert_eq!((world.find("t", "new"), world.frames), (None, 0));
        assert_eq!(world.engine.statistics().ready, 1, "nothing was sent");
    }
}

#[test]
fn full_memory_refuses_more_but_not_less() {
    let options = EngineOptions::new(StorePolicy::Always);
    let mut world = World::with(EngineOptions { memory_limit: 32 << 20, ..options });
    let value = "v".repeat(60 << 10);
    let mut keys = 0;
    let refusal = loop {
        match world.transact(&[("t", &format!("k{keys}"), put(&value))]) {
            Reply::Done => keys += 1,
            other => break other,
        }
    };
    assert_eq!(refusal, Reply::Refused(Refusal::TooManyValues));
    assert!(keys > 8, "{keys} keys");
    let instead = [("t", "k0", TableAction::Delete), ("t", "other", put(&value))];
    assert_eq!(world.transact(&instead), Reply::Done, "as much goes as comes");
    assert_eq!(world.transact(&[("t", "k1", put("1"))]), Reply::Done);
}

#[test]
fn full_store_refuses_and_undoes() {
    let mut world = World::new();
    world.transact(&[("t", "a", put("1"))]);
    world.begin(&[("t", "a", put("2")), ("t", "b", put("2")), ("u", "a", put("2"))]);
    world.put_message("sent", Some(TRANSACTION));
    let full = Capacity { room_bytes: 20, settling_bytes: 1 << 20, ..Capacity::UNBOUNDED };
    let commit = Command::Commit { transaction: TRANSACTION };
    assert_eq!(world.give(SESSION, commit, full), Reply::Refused(Refusal::StoreFull));
    assert_eq!(world.frames, 0);
    assert_eq!(world.find("t", "a").as_deref(), Some(&b"1"[..]));
    assert_eq!((world.find("t", "b"), world.find("u", "a")), (None, None));
    // The numbers of tables are given anew.
    let reply = world.transact(&[("u", "a", put("3")), ("w", "a", put("3"))]);
    assert_eq!(reply, Reply::Done);
    assert_eq!(world.find("w", "a").as_deref(), Some(&b"3"[..]));
}

#[test]
fn steps_are_bounded_as_messages_are() {
    let mut world = World::new();
    world.begin(&[]);
    let (mut count, action) = (0, TableAction::Delete);
    let refusal = loop {
        match world.engine_step(count, action.clone()) {
            Reply::Done => count += 1,
            other => break other,
        }
    };
    assert_eq!(refusal, Reply::Refused(Refusal::TransactionTooLarge));
    assert_eq!(count, limits::TRANSACTION_RECORDS_MAX as u64 / 2, "each has two records at most");
    assert_eq!(world.commit(), Reply::Refused(Refusal::TransactionFailed));
}

impl World {
    /// Without verifying the whole engine.
    fn engine_step(&mut self, key: u64, action: TableAction) -> Reply {
        let key: Arc<[u8]> = key.to_be_bytes().into();
        let step = Box::new(TableStep { table: name("t"), key, action });
        let command = Command::Table { step, transaction: TRANSACTION };
        let (now, capacity) = (Nanos::SECOND, Capacity::UNBOUNDED);
        self.engine.handle(now, SESSION, command, capacity, &mut self.effects);
        let reply = self.effects.outputs.remove(0).reply;
        self.effects.clear();
        reply
    }
}

#[test]
fn commit_is_seen_by_observers() {
    let mut world = World::new();
    for steps in [
        [("t", "a", put("1"))],
        [("t", "a", TableAction::Add(1))],
        [("t", "a", TableAction::Delete)],
    ] {
        let observe = Command::Observe { names: vec![name("t")] };
        assert_eq!(world.give(OTHER, observe, Capacity::UNBOUNDED), Reply::Done);
        assert!(matches!(world.transact(&steps), Reply::Done | Reply::Committed { .. }));
        let batch = Command::Batch {
            commands: vec![Command::Key(KeyCommand::CountAll { database: None })],
        };
        assert_eq!(world.give(OTHER, batch, Capacity::UNBOUNDED), Reply::Stale);
    }
}

#[test]
fn memory_alone_writes_nothing() {
    let mut world = World::with(EngineOptions::new(StorePolicy::Memory));
    world.begin(&[("t", "a", put("1")), ("t", "n", TableAction::Add(5))]);
    world.put_message("sent", Some(TRANSACTION));
    assert_eq!(world.commit(), Reply::Committed { sums: vec![5] });
    assert_eq!((world.frames, world.after), (0, Lsn::ZERO));
    assert_eq!(world.find("t", "n").as_deref(), Some(&b"5"[..]));
}

/// A commit that would be more than a frame waits for no room where there is no log.
#[test]
fn large_commit_to_memory_is_done_at_once() {
    let options = EngineOptions::new(StorePolicy::Memory);
    let mut world = World::with(EngineOptions { frame_bytes_max: 3_000, ..options });
    let value = "v".repeat(1_000);
    let keys: Vec<String> = (0..10).map(|number| number.to_string()).collect();
    let steps: Vec<_> = keys.iter().map(|key| ("t", &**key, put(&value))).collect();
    assert_eq!(world.transact(&steps), Reply::Done);
    assert_eq!(world.find("t", "9"), Some(value.into_bytes()));
}

#[test]
fn open_steps_go_with_their_session() {
    let mut world = World::new();
    world.begin(&[("t", "a", put("1"))]);
    let capacity = Capacity::UNBOUNDED;
    world.engine.close_session(Nanos::SECOND, SESSION, capacity, &mut world.effects);
    world.engine.check();
    world.engine.open_session(SESSION);
    assert_eq!(world.commit(), Reply::Refused(Refusal::NoSuchTransaction));
    assert_eq!(world.find("t", "a"), None);
}
