//! Bodies that no log has, in files beside it. They are there as long as a message or a reply needs
//! them, and damaged bytes reach no client.

use std::path::PathBuf;

use broker::{Broker, BrokerOptions};
use disk::{File, RealDisk};
use engine::EngineOptions;
use journal::JournalOptions;
use model::{
    Command, Destination, End, LinkId, ListCommand, Nanos, NewMessage, Output, Persistence,
    QueueName, Refusal, Reply, SessionId, Settlement, StorePolicy, Subscription, SubscriptionName,
};
use testkit::Directory;

use crate::support::{open_disk, work_once};

const ONE: SessionId = SessionId(1);
const OTHER: SessionId = SessionId(2);
const MESSAGES: u32 = 40;
/// One of so many messages stays.
const SPARSE: u32 = 8;
const SUBSCRIBERS: [LinkId; 5] = [LinkId(1), LinkId(2), LinkId(3), LinkId(4), LinkId(5)];

struct Store {
    directory: Directory,
    disk: RealDisk,
    broker: Broker<File>,
    now: Nanos,
}

/// The limits of memory and of the spill.
#[derive(Clone, Copy)]
struct Sizes {
    memory_limit: u64,
    spill_bytes_max: u64,
}

const ROOMY: Sizes = Sizes { memory_limit: u64::MAX, spill_bytes_max: 128 * 1024 };

impl Store {
    /// One that keeps no body in memory.
    fn empty(name: &str, sizes: Sizes) -> Self {
        let directory = Directory::new(name);
        let disk = open_disk(&directory.0);
        let broker = open(&disk, sizes);
        let mut store = Self { directory, disk, broker, now: Nanos::from_secs(2_000_000_000) };
        // The log prepares room.
        store.rest();
        store
    }

    /// The same with messages that its log has not.
    fn new(name: &str) -> Self {
        let mut store = Self::empty(name, ROOMY);
        (0..MESSAGES).for_each(|number| assert!(store.put(number)));
        // They leave when the engine is stepped next.
        store.ask(OTHER, Command::BrokerStatistics);
        store.rest();
        assert_eq!(store.live(), u64::from(MESSAGES));
        store
    }

    /// True if there was memory for it; it does not wait for some.
    fn put(&mut self, number: u32) -> bool {
        self.put_in("jobs", number)
    }

    fn put_in(&mut self, name: &str, number: u32) -> bool {
        let persistence = Persistence::NonPersistent;
        let message = NewMessage { persistence, ..NewMessage::new(body(number).into()) };
        let to = Destination::Queue(QueueName::new(name).unwrap());
        let outputs = self.ask(OTHER, Command::PutTo { to, message, transaction: None });
        match outputs.as_slice() {
            [Output { reply: Reply::Stored { .. }, .. }] => true,
            [Output { reply: Reply::Waits { .. }, .. }] => {
                let outputs = self.ask(OTHER, Command::CancelSends);
                let [Output { reply: Reply::Late { reply, .. }, .. }] = outputs.as_slice() else {
                    panic!("{outputs:?}");
                };
                assert_eq!(**reply, Reply::Refused(Refusal::MemoryFull));
                false
            }
            other => panic!("{other:?}"),
        }
    }

    /// A durable subscription, made or taken up again.
    fn subscribe(&mut self, session: SessionId, link: LinkId) {
        let name = QueueName::new(&format!("subscriber-{}", link.0)).unwrap();
        let subscription = Box::new(Subscription {
            name: Some(SubscriptionName { user: None, client: None, name, durable: true }),
            ..Subscription::new(queue())
        });
        self.ask(session, Command::Subscribe { link, subscription });
    }

    fn publish(&mut self, number: u32) {
        let persistence = Persistence::NonPersistent;
        let message = NewMessage { persistence, ..NewMessage::new(body(number).into()) };
        let to = Destination::Topic(queue());
        let outputs = self.ask(OTHER, Command::PutTo { to, message, transaction: None });
        assert!(matches!(outputs.as_slice(), [Output { reply: Reply::Stored { .. }, .. }]));
    }

    /// A subscriber gets all that was published, and is done with it.
    fn read(&mut self, link: LinkId) {
        let limit = u64::from(MESSAGES);
        let credit = Command::Credit { link, limit, bytes: u64::MAX, drain: false };
        let mut outputs = self.ask(ONE, credit);
        outputs.append(&mut self.fetch());
        assert_eq!(outputs.len(), MESSAGES as usize);
        for (number, output) in (0..).zip(outputs) {
            let Reply::Delivered(delivery) = output.reply else { panic!("{output:?}") };
            assert_eq!(*delivery.body, *body(number));
            let settlement = Settlement::Accept;
            let message = delivery.message;
            self.ask(ONE, Command::Settle { message, settlement, transaction: None });
        }
    }

    fn ask(&mut self, session: SessionId, command: Command) -> Vec<Output> {
        let mut outputs = Vec::new();
        if !self.broker.takes(session, &command) {
            self.rest();
            assert!(self.broker.takes(session, &command), "it ends with what is to be done");
        }
        self.broker.handle(self.now, session, command, &mut outputs);
        self.broker.check();
        outputs
    }

    /// Performs writes and chores until there is nothing to do; reads nothing back.
    fn rest(&mut self) {
        while work_once(&mut self.broker, &self.disk, self.now) {
            self.broker.check();
        }
    }

    fn fetch(&mut self) -> Vec<Output> {
        let mut outputs = Vec::new();
        while let Some(fetch) = self.broker.poll_fetch() {
            let done = fetch.perform(&self.disk);
            self.broker.handle_fetch(done, &mut outputs).unwrap();
            self.broker.check();
        }
        outputs
    }

    /// Bodies that are needed in the spill.
    fn live(&self) -> u64 {
        self.broker.spill_counters().live
    }

    fn spill_files(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(&self.directory.0).unwrap().map(|file| file.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|it| it == "spill")).collect()
    }
}

fn open(disk: &RealDisk, sizes: Sizes) -> Broker<File> {
    let Sizes { memory_limit, spill_bytes_max } = sizes;
    let policy = StorePolicy::Always;
    let journal = JournalOptions {
        segment_bytes: 64 * 1024,
        extent_bytes: 16 * 1024,
        reserve_bytes: 64 * 1024,
        frame_payload_bytes_max: 4096,
        spill_bytes_max,
        ..JournalOptions::new(policy)
    };
    let engine = EngineOptions { log_bodies_max: 0, memory_limit, ..EngineOptions::new(policy) };
    let (mut broker, _) = Broker::open(disk, BrokerOptions { engine, journal }).unwrap();
    broker.open_session(ONE);
    broker.open_session(OTHER);
    broker
}

fn queue() -> QueueName {
    QueueName::new("jobs").unwrap()
}

fn body(number: u32) -> Vec<u8> {
    format!("{number:04}").repeat(200).into_bytes()
}

fn pop(max: u64) -> Command {
    pop_of("jobs", max)
}

fn pop_of(name: &str, max: u64) -> Command {
    let queue = QueueName::new(name).unwrap();
    Command::List(ListCommand::Pop { queue, end: End::Head, max })
}

fn popped(output: &Output) -> Vec<Vec<u8>> {
    match &output.reply {
        Reply::Elements(elements) => elements.iter().map(|it| it.payload().to_vec()).collect(),
        other => panic!("{other:?} is no pop"),
    }
}

#[test]
fn spilled_body_outlives_its_popped_message() {
    let mut store = Store::new("lacks");
    assert_eq!(store.ask(ONE, pop(3)), []);
    store.rest();
    assert_eq!(store.live(), u64::from(MESSAGES), "the messages are gone, the bodies are not");
    let outputs = store.fetch();
    assert_eq!(popped(outputs.first().unwrap()), [body(0), body(1), body(2)]);
    assert_eq!(outputs.len(), 1);
    assert!(store.live() <= u64::from(MESSAGES) - 3);
}

/// They read one after the other, and a body that left memory again is not written again.
#[test]
fn shared_body_is_spilled_once() {
    let mut store = Store::empty("shared", ROOMY);
    for link in SUBSCRIBERS {
        store.subscribe(OTHER, link);
        store.ask(OTHER, Command::CloseConsumer { link });
    }
    (0..MESSAGES).for_each(|number| store.publish(number));
    store.ask(OTHER, Command::BrokerStatistics);
    store.rest();
    for link in SUBSCRIBERS {
        assert_eq!(store.live(), u64::from(MESSAGES), "before {link:?}");
        store.subscribe(ONE, link);
        store.read(link);
    }
    store.rest();
    assert_eq!((store.live(), store.spill_files()), (0, Vec::new()));
    let written = store.broker.spill_counters().bodies;
    assert_eq!(written, u64::from(MESSAGES));
}

/// One body of each file stays: the files do not.
#[test]
fn sparse_spill_files_are_compacted() {
    let mut store = Store::empty("stays", ROOMY);
    for number in 0..MESSAGES {
        let stays = number.is_multiple_of(SPARSE);
        assert!(store.put_in(if stays { "staying" } else { "jobs" }, number));
    }
    store.ask(OTHER, Command::BrokerStatistics);
    store.rest();
    let full = store.broker.spill_counters().disk_bytes;
    // Meanwhile a reply lacks the body that is to be moved.
    let stays = pop_of("staying", 1);
    assert_eq!(store.ask(OTHER, stays.clone()), []);
    assert_eq!(store.ask(ONE, pop(u64::from(MESSAGES))), []);
    store.rest();
    store.fetch();
    store.rest();
    let counters = store.broker.spill_counters();
    let files = 2 * (counters.live_bytes + ROOMY.spill_bytes_max / 16);
    assert!(counters.disk_bytes <= files && files < full, "{counters:?} of {full}");
    for number in (0..MESSAGES).step_by(SPARSE as usize).skip(1) {
        assert_eq!(store.ask(ONE, stays.clone()), []);
        assert_eq!(popped(store.fetch().first().unwrap()), [body(number)]);
    }
    store.rest();
    assert_eq!((store.live(), store.spill_files()), (0, Vec::new()));
}

#[test]
fn spilled_bodies_of_closed_session_dropped() {
    let mut store = Store::new("gone");
    assert_eq!(store.ask(ONE, pop(u64::from(MESSAGES))), []);
    let fetch = store.broker.poll_fetch().unwrap();
    let mut outputs = Vec::new();
    store.broker.close_session(store.now, ONE, &mut outputs);
    let done = fetch.perform(&store.disk);
    store.broker.handle_fetch(done, &mut outputs).unwrap();
    store.broker.check();
    assert_eq!(outputs, []);
    assert_eq!(store.live(), 0);
    store.rest();
    assert_eq!(store.spill_files(), [] as [PathBuf; 0], "files without use are removed");
}

#[test]
fn corrupt_spilled_body_ends_broker() {
    let mut store = Store::new("rot");
    for path in store.spill_files() {
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.iter_mut().skip(100).step_by(64).for_each(|byte| *byte ^= 1);
        std::fs::write(&path, bytes).unwrap();
    }
    assert_eq!(store.ask(ONE, pop(1)), []);
    let fetch = store.broker.poll_fetch().unwrap();
    let mut outputs = Vec::new();
    let failed = store.broker.handle_fetch(fetch.perform(&store.disk), &mut outputs).unwrap_err();
    assert!(failed.to_string().contains("is not what was written"), "{failed}");
    assert_eq!(outputs, []);
}

/// All commands that look into bodies bring paged-out ones back, even if no log has them.
#[test]
fn body_comparison_resumes_after_fetch() {
    let mut store = Store::new("looks");
    let remove = ListCommand::Remove {
        queue: queue(),
        origin: End::Head,
        element: body(MESSAGES - 1).into(),
        max: 1,
    };
    assert_eq!(store.ask(ONE, Command::List(remove)), []);
    let mut outputs = store.fetch();
    while store.broker.goes_on() {
        store.broker.handle_timeout(store.now, &mut outputs);
        outputs.append(&mut store.fetch());
    }
    assert!(matches!(outputs.as_slice(), [Output { reply: Reply::Count(1), .. }]), "{outputs:?}");
}

#[test]
fn fast_sender_waits_for_spilling() {
    let sizes = Sizes { memory_limit: 1024 * 1024, spill_bytes_max: 16 * 1024 * 1024 };
    let mut store = Store::empty("fast", sizes);
    let mut waited = 0;
    for number in 0..3_000 {
        waited += u32::from(store.broker.holds_back());
        assert!(store.broker.takes(OTHER, &pop(1)), "what takes away need not wait");
        assert!(store.put(number), "{number}");
        assert!(store.broker.memory_bytes() < 1024 * 1024, "{number}");
    }
    assert!(waited > 3, "it waited {waited} times");
}

#[test]
fn full_spill_refuses_puts_until_room() {
    let sizes = Sizes { memory_limit: 1024 * 1024, spill_bytes_max: 160 * 1024 };
    let mut store = Store::empty("full", sizes);
    let stored = (0..3_000).find(|number| !store.put(*number)).unwrap();
    assert!((300..1_200).contains(&stored), "{stored} are stored");
    assert!(!store.put(stored));
    assert_eq!(store.ask(ONE, pop(10)), []);
    assert_eq!(popped(store.fetch().first().unwrap()), (0..10).map(body).collect::<Vec<_>>());
    store.ask(ONE, pop(200));
    store.fetch();
    assert_eq!(store.broker.poll_timeout(), Some(store.now + Nanos::from_millis(250)));
    store.now = store.now + Nanos::from_millis(250);
    store.rest();
    assert!(store.put(stored), "there is room again");
}

#[test]
fn leftover_spill_files_removed_at_start() {
    let mut store = Store::new("left");
    assert!(!store.spill_files().is_empty());
    store.broker = open(&store.disk, ROOMY);
    assert_eq!(store.spill_files(), [] as [PathBuf; 0]);
}
