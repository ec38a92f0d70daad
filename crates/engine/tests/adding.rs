//! Which commands have to wait while the log is behind: those that add something durable.

use engine::{Effects, Engine, EngineOptions};
use model::{
    Capacity, Command, Destination, Durability, End, LinkId, ListCommand, MessageId, Nanos,
    NewMessage, Persistence, QueueName, SessionId, Settlement, StorePolicy, TransactionId,
};

const SESSION: SessionId = SessionId(1);

fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}

fn put(persistence: Persistence, transaction: Option<u64>) -> Command {
    let message = NewMessage { persistence, ..NewMessage::new(b"x".as_slice().into()) };
    let transaction = transaction.map(TransactionId);
    Command::PutTo { to: Destination::Queue(queue()), message, transaction }
}

fn push(persistence: Persistence) -> Command {
    let (end, elements, only_existing) = (End::Tail, vec![b"x".as_slice().into()], false);
    let push = ListCommand::Push {
        queue: queue(),
        end,
        elements: model::OneOrMany::Many(elements),
        only_existing,
        persistence,
    };
    Command::List(push)
}

fn engine(policy: StorePolicy) -> Engine {
    let mut engine = Engine::new(EngineOptions::new(policy));
    engine.open_session(SESSION);
    engine
}

#[test]
fn durable_sends_add_to_log() {
    let always = engine(StorePolicy::Always);
    let memory = engine(StorePolicy::Memory);
    let written = Persistence::Exactly(Durability::Written);
    for (persistence, adds) in [
        (Persistence::Persistent, true),
        (written, true),
        (Persistence::NonPersistent, false),
        (Persistence::Exactly(Durability::None), false),
    ] {
        for command in [put(persistence, None), push(persistence)] {
            assert_eq!(always.adds_to_log(SESSION, &command).is_some(), adds, "{command:?}");
            assert_eq!(memory.adds_to_log(SESSION, &command), None, "{command:?}");
            let batch = Command::Batch { commands: vec![Command::ListQueues, command] };
            assert_eq!(always.adds_to_log(SESSION, &batch).is_some(), adds);
        }
    }
}

#[test]
fn settlements_and_reads_add_nothing() {
    let engine = engine(StorePolicy::Always);
    let message = MessageId(1);
    for command in [
        Command::Delete { message },
        Command::Settle { message, settlement: Settlement::Accept, transaction: None },
        Command::Receive { link: LinkId(0), wait: None, margin: Nanos::ZERO, lease: None },
        Command::List(ListCommand::Pop { queue: queue(), end: End::Head, max: 1 }),
        Command::BrokerStatistics,
    ] {
        assert_eq!(engine.adds_to_log(SESSION, &command), None, "{command:?}");
    }
}

#[test]
fn transaction_adds_to_log_on_commit() {
    let mut engine = engine(StorePolicy::Always);
    let mut effects = Effects::default();
    for (number, persistence) in [(1, Persistence::NonPersistent), (2, Persistence::Persistent)] {
        let transaction = TransactionId(number);
        engine.handle(
            Nanos::ZERO,
            SESSION,
            Command::Begin { transaction },
            Capacity::UNBOUNDED,
            &mut effects,
        );
        let part = put(persistence, Some(number));
        assert_eq!(engine.adds_to_log(SESSION, &part), None, "not yet");
        engine.handle(Nanos::ZERO, SESSION, part, Capacity::UNBOUNDED, &mut effects);
        let commit = Command::Commit { transaction };
        assert_eq!(engine.adds_to_log(SESSION, &commit).is_some(), number == 2);
    }
}
