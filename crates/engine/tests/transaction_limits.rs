//! How much one transaction may hold, and all of them. Beyond it a part is refused, the transaction
//! can only be rolled back, and then its share is free again.

use std::sync::Arc;

use engine::{Effects, Engine, EngineOptions};
use model::{
    Capacity, Command, Destination, LinkId, Nanos, NewMessage, Persistence, QueueName, Refusal,
    Reply, SessionId, StorePolicy, Subscription, TransactionId, limits,
};

const SESSION: SessionId = SessionId(1);

struct Session {
    engine: Engine,
    /// Shared by all messages: it counts for each.
    body: Arc<[u8]>,
}

impl Session {
    fn new(body_bytes: usize) -> Self {
        let mut engine = Engine::new(EngineOptions {
            frame_bytes_max: 1_000,
            ..EngineOptions::new(StorePolicy::Always)
        });
        engine.open_session(SESSION);
        Self { engine, body: vec![b'x'; body_bytes].into() }
    }

    fn run(&mut self, command: Command) -> Reply {
        let mut effects = Effects::default();
        self.engine.handle(Nanos(1), SESSION, command, Capacity::UNBOUNDED, &mut effects);
        assert!(effects.frames.is_empty(), "none of this is in the log");
        effects.outputs.remove(0).reply
    }

    fn put(&mut self, to: Destination, transaction: u64, persistence: Persistence) -> Reply {
        let message = NewMessage { persistence, ..NewMessage::new(Arc::clone(&self.body)) };
        let transaction = Some(TransactionId(transaction));
        self.run(Command::PutTo { to, message, transaction })
    }

    fn begin(&mut self, transaction: u64) {
        let transaction = TransactionId(transaction);
        assert_eq!(self.run(Command::Begin { transaction }), Reply::Done);
    }

    fn commit(&mut self, transaction: u64) -> Reply {
        self.run(Command::Commit { transaction: TransactionId(transaction) })
    }

    /// So many messages, all of them taken.
    fn fill(&mut self, to: &Destination, transaction: u64, messages: usize) {
        self.begin(transaction);
        for _ in 0..messages {
            let reply = self.put(to.clone(), transaction, Persistence::NonPersistent);
            assert_eq!(reply, Reply::Done);
        }
    }
}

fn queue() -> Destination {
    Destination::Queue(QueueName::new("mail").unwrap())
}

const TOO_LARGE: Reply = Reply::Refused(Refusal::TransactionTooLarge);
const FAILED: Reply = Reply::Refused(Refusal::TransactionFailed);

#[test]
fn transaction_bytes_bounded_with_any_persistence() {
    for persistence in [Persistence::Persistent, Persistence::NonPersistent] {
        let mut session = Session::new(limits::MESSAGE_BYTES_MAX);
        let fits = limits::TRANSACTION_BYTES_MAX / limits::MESSAGE_BYTES_MAX - 1;
        session.begin(1);
        for _ in 0..fits {
            assert_eq!(session.put(queue(), 1, persistence), Reply::Done);
        }
        assert_eq!(session.put(queue(), 1, persistence), TOO_LARGE);
        assert_eq!(session.put(queue(), 1, persistence), FAILED);
        assert_eq!(session.commit(1), FAILED);
        session.engine.check();
        assert_eq!(session.engine.statistics().queues, 0, "nothing is left of it");
    }
}

#[test]
fn open_transactions_are_bounded_in_total() {
    let mut session = Session::new(limits::MESSAGE_BYTES_MAX);
    let each = limits::TRANSACTION_BYTES_MAX / limits::MESSAGE_BYTES_MAX - 1;
    let all = limits::UNCOMMITTED_BYTES_MAX / limits::MESSAGE_BYTES_MAX - 1;
    let whole = all / each;
    for transaction in 1..=whole {
        session.fill(&queue(), transaction as u64, each);
    }
    let last = whole as u64 + 1;
    session.fill(&queue(), last, all - whole * each);
    let waits = session.put(queue(), last, Persistence::NonPersistent);
    assert!(matches!(waits, Reply::Waits { .. }), "until another transaction ends: {waits:?}");
    let rollback = Command::Rollback { transaction: TransactionId(1) };
    assert_eq!(session.run(rollback), Reply::Done);
    let mut effects = Effects::default();
    session.engine.handle_timeout(Nanos(1), Capacity::UNBOUNDED, &mut effects);
    let late = effects.outputs.first().map(|output| output.reply.clone());
    assert_eq!(late, Some(Reply::Late { ticket: 1, reply: Box::new(Reply::Done) }));
    assert_eq!(session.commit(last), Reply::Done);
    session.fill(&queue(), last + 1, each);
    session.engine.check();
    session.engine.close_session(Nanos(1), SESSION, Capacity::UNBOUNDED, &mut Effects::default());
    session.engine.open_session(SESSION);
    for transaction in 1..=whole {
        session.fill(&queue(), transaction as u64, each);
    }
}

#[test]
fn transaction_messages_are_bounded() {
    let mut session = Session::new(10);
    session.fill(&queue(), 1, limits::TRANSACTION_RECORDS_MAX);
    assert_eq!(session.commit(1), Reply::Done);
    let ready = session.engine.statistics().ready;
    assert_eq!(ready, limits::TRANSACTION_RECORDS_MAX as u64);
    session.fill(&queue(), 2, limits::TRANSACTION_RECORDS_MAX);
    assert_eq!(session.put(queue(), 2, Persistence::NonPersistent), TOO_LARGE);
    assert_eq!(session.commit(2), FAILED);
    assert_eq!(session.engine.statistics().ready, ready);
}

/// A sender's name for a message is a record of its own.
#[test]
fn message_with_send_id_counts_twice() {
    let frame_bytes_max = limits::TRANSACTION_BYTES_MAX;
    let options = EngineOptions::new(StorePolicy::Always);
    let mut engine = Engine::new(EngineOptions { frame_bytes_max, ..options });
    engine.open_session(SESSION);
    let mut session = Session { engine, body: [].into() };
    for (transaction, messages) in [(1, limits::TRANSACTION_RECORDS_MAX / 2), (2, 1)] {
        session.begin(transaction);
        for number in 0..messages {
            let send_id = Some(number.to_string().into());
            let message = NewMessage { send_id, ..NewMessage::new(Arc::clone(&session.body)) };
            let transaction = Some(TransactionId(transaction));
            let reply = session.run(Command::PutTo { to: queue(), message, transaction });
            assert_eq!(reply, Reply::Done);
        }
    }
    assert_eq!(session.put(queue(), 1, Persistence::Persistent), TOO_LARGE);
    assert_eq!(session.put(queue(), 2, Persistence::Persistent), Reply::Done);
    assert_eq!(session.commit(1), FAILED);
}

#[test]
fn largest_transaction_of_send_ids_fits() {
    let frame_bytes_max = limits::TRANSACTION_BYTES_MAX;
    let options = EngineOptions::new(StorePolicy::Always);
    let mut engine = Engine::new(EngineOptions { frame_bytes_max, ..options });
    engine.open_session(SESSION);
    let mut effects = Effects::default();
    let transaction = TransactionId(1);
    engine.handle(
        Nanos(1),
        SESSION,
        Command::Begin { transaction },
        Capacity::UNBOUNDED,
        &mut effects,
    );
    for number in 0..limits::TRANSACTION_RECORDS_MAX / 2 {
        let send_id = Some(number.to_string().into());
        let message = NewMessage { send_id, ..NewMessage::new([].into()) };
        let put = Command::PutTo { to: queue(), message, transaction: Some(transaction) };
        engine.handle(Nanos(1), SESSION, put, Capacity::UNBOUNDED, &mut effects);
    }
    engine.handle(
        Nanos(1),
        SESSION,
        Command::Commit { transaction },
        Capacity::UNBOUNDED,
        &mut effects,
    );
    assert_eq!(effects.frames.len(), 1);
    assert_eq!(effects.outputs.last().map(|output| &output.reply), Some(&Reply::Done));
    assert_eq!(engine.statistics().ready, limits::TRANSACTION_RECORDS_MAX as u64 / 2);
}

#[test]
fn topic_copies_of_transaction_are_bounded() {
    let mut session = Session::new(10);
    let news = QueueName::new("news").unwrap();
    let copies = limits::TRANSACTION_COPIES_MAX / limits::TRANSACTION_RECORDS_MAX + 1;
    for link in 0..copies {
        let subscription = Box::new(Subscription::new(news.clone()));
        let link = LinkId(link as u32);
        assert_eq!(session.run(Command::Subscribe { link, subscription }), Reply::Done);
    }
    session.fill(&Destination::Topic(news), 1, limits::TRANSACTION_RECORDS_MAX);
    assert_eq!(session.commit(1), TOO_LARGE);
    assert_eq!(session.engine.statistics().ready, 0);
    session.engine.check();
}
