//! Transactions as large as a frame may be: they go through journal, compaction and recovery whole,
//! and a larger one is refused and rolled back.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::PathBuf;

use broker::{Broker, BrokerOptions};
use disk::{Choice, File, Method, RealDisk};
use engine::EngineOptions;
use journal::JournalOptions;
use model::{
    Command, Destination, LinkId, Nanos, NewMessage, Persistence, QueueName, Refusal, Reply,
    SessionId, Settlement, StorePolicy, TransactionId,
};

const SESSION: SessionId = SessionId(1);
const LINK: LinkId = LinkId(0);
const NOW: Nanos = Nanos::from_secs(2_000_000_000);
const TRANSACTION: TransactionId = TransactionId(1);

/// A directory that is removed when the test ends.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Store {
    disk: RealDisk,
    broker: Broker<File>,
}

impl Store {
    fn open(directory: &Directory) -> Self {
        let disk = RealDisk::open(&directory.0, Choice::Force(Method::Buffered)).unwrap();
        let (broker, _) = Broker::open(&disk, options()).unwrap();
        let mut store = Self { disk, broker };
        store.broker.open_session(SESSION);
        store.settle();
        let to = Destination::Queue(QueueName::new("mail").unwrap());
        assert_eq!(store.run(Command::OpenProducer { link: LINK, to }), Reply::Done);
        let queue = QueueName::new("mail").unwrap();
        assert_eq!(store.run(Command::Watch { link: LINK, queue }), Reply::Done);
        store
    }

    fn run(&mut self, command: Command) -> Reply {
        let mut outputs = Vec::new();
        self.broker.handle(NOW, SESSION, command, &mut outputs);
        self.settle();
        outputs.remove(0).reply
    }

    fn settle(&mut self) {
        loop {
            if let Some(write) = self.broker.poll_write(NOW) {
                let result = write.perform(&self.disk);
                self.broker.handle_write(NOW, write, result).unwrap();
            } else if let Some(chore) = self.broker.poll_chore(NOW) {
                self.broker.handle_chore(NOW, chore.perform(&self.disk)).unwrap();
            } else {
                break;
            }
        }
        self.broker.check();
    }

    fn put(&mut self, body: Vec<u8>, persistence: Persistence) -> Reply {
        let message = NewMessage { persistence, ..NewMessage::new(body.into()) };
        self.run(Command::Put { link: LINK, message, transaction: Some(TRANSACTION) })
    }

    fn receive(&mut self) -> Option<model::Delivery> {
        let wait = Some(Nanos::ZERO);
        match self.run(Command::Receive { link: LINK, wait, margin: Nanos::ZERO }) {
            Reply::Delivered(delivery) => Some(*delivery),
            Reply::TimedOut => None,
            other => panic!("{other:?}"),
        }
    }
}

fn options() -> BrokerOptions {
    let policy = StorePolicy::Always;
    let journal = JournalOptions {
        segment_bytes: 64 * 1024,
        extent_bytes: 16 * 1024,
        reserve_bytes: 64 * 1024,
        frame_payload_bytes_max: 4096,
        ..JournalOptions::new(policy)
    };
    BrokerOptions { engine: EngineOptions::new(policy), journal: journal.with_transactions() }
}

/// How many messages of so many bytes one transaction takes.
fn messages_max(store: &mut Store, bytes: usize) -> u64 {
    assert_eq!(store.run(Command::Begin { transaction: TRANSACTION }), Reply::Done);
    let mut count = 0;
    loop {
        match store.put(vec![b'x'; bytes], Persistence::Persistent) {
            Reply::Done => count += 1,
            other => {
                assert_eq!(other, Reply::Refused(Refusal::TransactionTooLarge));
                break;
            }
        }
    }
    let commit = store.run(Command::Commit { transaction: TRANSACTION });
    assert_eq!(commit, Reply::Refused(Refusal::TransactionFailed));
    count
}

#[test]
fn the_largest_transaction_goes_through_the_log_whole() {
    let name = format!("dunlin-broker-transactions-{}", std::process::id());
    let directory = Directory(std::env::temp_dir().join(name));
    let mut store = Store::open(&directory);
    for bytes in [20, 200, 2_000] {
        let count = messages_max(&mut store, bytes);
        assert!(count >= 10, "{count} messages of {bytes} bytes");
        assert_eq!(store.broker.statistics().ready, 0, "nothing of it happened");
        for round in 0..8 {
            assert_eq!(store.run(Command::Begin { transaction: TRANSACTION }), Reply::Done);
            for _ in 0..count {
                let reply = store.put(vec![b'x'; bytes], Persistence::Persistent);
                assert_eq!(reply, Reply::Done);
            }
            let frames = store.broker.counters().frames;
            assert_eq!(store.run(Command::Commit { transaction: TRANSACTION }), Reply::Done);
            assert_eq!(store.broker.counters().frames, frames + 1, "one frame");
            store = consume(store, &directory, count, round);
        }
    }
}

/// All but a few, in one transaction; what is left makes compaction worth while.
fn consume(mut store: Store, directory: &Directory, count: u64, round: u64) -> Store {
    if round % 2 == 1 {
        drop(store);
        store = Store::open(directory);
    }
    assert_eq!(store.broker.statistics().ready, count, "all of it or nothing");
    let mut last = Vec::new();
    assert_eq!(store.run(Command::Begin { transaction: TRANSACTION }), Reply::Done);
    while let Some(delivery) = store.receive() {
        let settle = |transaction| Command::Settle {
            message: delivery.message,
            settlement: Settlement::Accept,
            transaction,
        };
        if store.run(settle(Some(TRANSACTION))) != Reply::Done {
            last.push(delivery.message);
        }
    }
    assert!(last.is_empty(), "what fits into a transaction is settled by one");
    assert_eq!(store.run(Command::Commit { transaction: TRANSACTION }), Reply::Done);
    assert_eq!(store.broker.statistics().ready, 0);
    store
}

#[test]
fn what_is_in_memory_makes_no_frame() {
    let name = format!("dunlin-broker-unwritten-{}", std::process::id());
    let directory = Directory(std::env::temp_dir().join(name));
    let mut store = Store::open(&directory);
    let before = store.broker.counters();
    for _ in 0..100 {
        assert_eq!(store.run(Command::Begin { transaction: TRANSACTION }), Reply::Done);
        assert_eq!(store.put(vec![b'x'; 100], Persistence::NonPersistent), Reply::Done);
        assert_eq!(store.run(Command::Commit { transaction: TRANSACTION }), Reply::Done);
    }
    let after = store.broker.counters();
    assert_eq!((after.frames, after.syncs), (before.frames, before.syncs));
    assert_eq!(store.broker.statistics().ready, 100);
}
