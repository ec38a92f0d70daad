//! Transactions of all sizes go through journal, compaction and recovery whole: those that fit into
//! a frame as one, larger ones as a chain of frames.

use broker::{Broker, BrokerOptions};
use disk::{File, RealDisk};
use engine::EngineOptions;
use journal::JournalOptions;
use model::{
    Command, Destination, LinkId, Nanos, NewMessage, Output, Persistence, QueueName, Reply,
    SessionId, Settlement, StorePolicy, TransactionId,
};
use testkit::Directory;

use crate::support::{open_disk, small_log, work_once};

const SESSION: SessionId = SessionId(1);
const LINK: LinkId = LinkId(0);
const NOW: Nanos = Nanos::from_secs(2_000_000_000);
const TRANSACTION: TransactionId = TransactionId(1);

struct Store {
    disk: RealDisk,
    broker: Broker<File>,
}

impl Store {
    fn open(directory: &Directory) -> Self {
        Self::open_with(directory, options())
    }

    fn open_with(directory: &Directory, options: BrokerOptions) -> Self {
        let disk = open_disk(&directory.0);
        let (broker, _) = Broker::open(&disk, options).unwrap();
        let mut store = Self { disk, broker };
        store.broker.open_session(SESSION);
        store.settle(&mut Vec::new());
        let to = Destination::Queue(QueueName::new("mail").unwrap());
        assert_eq!(store.run(Command::OpenProducer { link: LINK, to }), Reply::Done);
        let queue = QueueName::new("mail").unwrap();
        assert_eq!(store.run(Command::Watch { link: LINK, queue }), Reply::Done);
        store
    }

    fn run(&mut self, command: Command) -> Reply {
        let mut outputs = self.ask(command);
        self.settle(&mut outputs);
        self.broker.check();
        outputs.remove(0).reply
    }

    /// The same without looking at every invariant, which takes longer the more there is.
    fn run_unchecked(&mut self, command: Command) -> Reply {
        let mut outputs = self.ask(command);
        self.settle(&mut outputs);
        outputs.remove(0).reply
    }

    fn ask(&mut self, command: Command) -> Vec<Output> {
        let mut outputs = Vec::new();
        self.broker.handle(NOW, SESSION, command, &mut outputs);
        outputs
    }

    fn settle(&mut self, outputs: &mut Vec<Output>) {
        loop {
            if work_once(&mut self.broker, &self.disk, NOW) {
                continue;
            }
            if self.broker.poll_timeout().is_some_and(|due| due <= NOW) {
                self.broker.handle_timeout(NOW, outputs);
            } else {
                break;
            }
        }
    }

    fn put(&mut self, body: Vec<u8>, persistence: Persistence) -> Reply {
        let message = NewMessage { persistence, ..NewMessage::new(body.into()) };
        self.run_unchecked(Command::Put { link: LINK, message, transaction: Some(TRANSACTION) })
    }

    /// One transaction of so many messages; says how many frames it made.
    fn commit(&mut self, count: u64, bytes: usize, persistence: Persistence) -> u64 {
        assert_eq!(self.run(Command::Begin { transaction: TRANSACTION }), Reply::Done);
        for _ in 0..count {
            assert_eq!(self.put(vec![b'x'; bytes], persistence), Reply::Done);
        }
        let frames = self.broker.counters().frames;
        assert_eq!(self.run(Command::Commit { transaction: TRANSACTION }), Reply::Done);
        self.broker.counters().frames - frames
    }

    fn receive(&mut self) -> Option<model::Delivery> {
        let wait = Some(Nanos::ZERO);
        match self.run_unchecked(Command::Receive {
            link: LINK,
            wait,
            margin: Nanos::ZERO,
            lease: None,
        }) {
            Reply::Delivered(delivery) => Some(*delivery),
            Reply::TimedOut { .. } => None,
            other => panic!("{other:?}"),
        }
    }
}

fn options() -> BrokerOptions {
    let policy = StorePolicy::Always;
    let journal = small_log(policy);
    BrokerOptions { engine: EngineOptions::new(policy), journal: journal.with_transactions() }
}

/// Bytes of a record beside its body here, and its share of the budget's spare bytes.
const RECORD_BYTES: usize = 50;

#[test]
fn commit_that_fits_is_one_frame() {
    let directory = Directory::new("frame");
    let frame_bytes = options().journal.frame_payload_bytes_max;
    let mut store = Store::open(&directory);
    for bytes in [20, 200, 2_000] {
        let count = (frame_bytes / (bytes + RECORD_BYTES)) as u64;
        assert!(count >= 10, "{count} messages of {bytes} bytes");
        for round in 0..8 {
            assert_eq!(store.commit(count, bytes, Persistence::Persistent), 1, "one frame");
            store = consume(store, &directory, count, round);
        }
    }
}

#[test]
fn commit_over_a_frame_is_chained() {
    let directory = Directory::new("chain");
    let frame_bytes = options().journal.frame_payload_bytes_max;
    let mut store = Store::open(&directory);
    for (round, (bytes, frames)) in [(20, 2), (200, 2), (2_000, 40), (2_000, 3)].iter().enumerate()
    {
        let count = (frame_bytes * frames / bytes) as u64;
        let made = store.commit(count, *bytes, Persistence::Persistent);
        assert!(made >= *frames as u64, "{made} frames");
        store = consume(store, &directory, count, round as u64);
    }
    let names = std::fs::read_dir(&directory.0).unwrap().map(|entry| entry.unwrap().file_name());
    let segments = names.filter(|name| name.to_str().unwrap().ends_with(".segment")).count();
    assert!(segments <= 10, "what was made for chains is given back: {segments} segments");
}

/// All in one transaction, every second time by the next process.
fn consume(mut store: Store, directory: &Directory, count: u64, round: u64) -> Store {
    if round % 2 == 1 {
        drop(store);
        store = Store::open(directory);
    }
    assert_eq!(store.broker.statistics().ready, count, "all of it or nothing");
    assert_eq!(store.run(Command::Begin { transaction: TRANSACTION }), Reply::Done);
    while let Some(delivery) = store.receive() {
        let (message, settlement) = (delivery.message, Settlement::Accept);
        let settle = Command::Settle { message, settlement, transaction: Some(TRANSACTION) };
        assert_eq!(store.run_unchecked(settle), Reply::Done);
    }
    assert_eq!(store.run(Command::Commit { transaction: TRANSACTION }), Reply::Done);
    assert_eq!(store.broker.statistics().ready, 0);
    store
}

#[test]
fn nonpersistent_commit_makes_no_frame() {
    let directory = Directory::new("unwritten");
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

/// A frame has room for 30 messages of this size; memory for many more.
#[test]
fn nonpersistent_commit_may_exceed_a_frame() {
    let directory = Directory::new("memory");
    let mut store = Store::open(&directory);
    let before = store.broker.counters();
    assert_eq!(store.commit(1_000, 1_000, Persistence::NonPersistent), 0);
    let after = store.broker.counters();
    assert_eq!((after.syncs, after.disk_bytes), (before.syncs, before.disk_bytes));
    assert_eq!(store.broker.statistics().ready, 1_000);
}

/// Fills a queue in one transaction, as a Java team does, with the options of a server.
#[test]
fn commit_of_hundred_thousand_messages() {
    const COUNT: u64 = 100_000;
    let directory = Directory::new("hundred-thousand");
    let policy = StorePolicy::Always;
    let journal = JournalOptions::new(policy).with_message_bytes_max(65_535).with_transactions();
    let options = BrokerOptions { engine: EngineOptions::new(policy), journal };
    let mut store = Store::open_with(&directory, options.clone());
    let frames = store.commit(COUNT, 1_024, Persistence::Persistent);
    assert!(frames > 100, "{frames} frames");
    assert!(!store.broker.stalled(), "others go on");
    drop(store);
    let mut store = Store::open_with(&directory, options);
    assert_eq!(store.broker.statistics().ready, COUNT);
    store = consume(store, &directory, COUNT, 0);
    assert_eq!(store.broker.counters().live_bytes, 0);
}
