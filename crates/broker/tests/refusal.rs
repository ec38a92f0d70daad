//! The room of the log, and the waits for it. If the log does not stall, it takes the next put.
//! While it stalls nothing is appended, even if it is due.

use broker::{Broker, BrokerOptions};
use disk::{File, RealDisk};
use engine::{EngineOptions, QueueBounds, QueuePolicy};
use journal::JournalOptions;
use model::{
    Command, ConsumerMode, Destination, End, LinkId, ListCommand, Nanos, NewMessage, QueueName,
    Reply, SessionId, StorePolicy,
};
use testkit::Directory;

use crate::support::{open_disk, small_log, work_once};

const SESSION: SessionId = SessionId(1);
const LINK: LinkId = LinkId(0);
const NOW: Nanos = Nanos::from_secs(2_000_000_000);

fn open(disk: &RealDisk) -> Broker<File> {
    let policy = StorePolicy::Never;
    let journal = JournalOptions { reserve_bytes: 16 * 1024, ..small_log(policy) };
    let mut engine = EngineOptions::new(policy);
    let bounds = QueueBounds { messages_max: Some(1), ..QueueBounds::default() };
    let narrow = QueuePolicy { bounds, ..QueuePolicy::default() };
    engine.queue_policies.named.insert(name("narrow"), narrow);
    let (mut broker, _) = Broker::open(disk, BrokerOptions { engine, journal }).unwrap();
    broker.open_session(SESSION);
    broker
}

/// A directory of its own, with a broker in it.
fn store(name: &str) -> (Directory, RealDisk, Broker<File>) {
    let directory = Directory::new(name);
    let disk = open_disk(&directory.0);
    let broker = open(&disk);
    (directory, disk, broker)
}

/// Expired messages, and those held by a client that is gone, are journalled without a command.
/// They were appended without room made for them, which ended the process right after a start.
#[test]
fn expiries_and_releases_await_stalled_log() {
    let (_directory, disk, mut broker) = store("stalled");
    let mut outputs = Vec::new();
    let queue = QueueName::new("q").unwrap();
    while broker.stalled() {
        assert!(work_once(&mut broker, &disk, NOW), "it waits for something");
    }
    let consumer = SessionId(2);
    broker.open_session(consumer);
    let open = Command::OpenConsumer {
        link: LINK,
        queue: queue.clone(),
        selector: None,
        mode: ConsumerMode::Take,
    };
    broker.handle(NOW, consumer, open, &mut outputs);
    let credit = Command::Credit { link: LINK, limit: 1, bytes: u64::MAX, drain: false };
    broker.handle(NOW, consumer, credit, &mut outputs);
    let soon = NOW + Nanos(1);
    while !broker.stalled() {
        let message = NewMessage { expires: Some(soon), ..NewMessage::new([0; 3000].into()) };
        let to = Destination::Queue(queue.clone());
        let put = Command::PutTo { to, message, transaction: None };
        broker.handle(NOW, SESSION, put, &mut outputs);
    }
    let (frames, later) = (broker.counters().frames, soon + Nanos::from_secs(1));
    broker.close_session(later, consumer, &mut outputs);
    broker.handle_timeout(later, &mut outputs);
    assert_eq!(broker.counters().frames, frames, "nothing is appended while it stalls");
    assert!(broker.poll_timeout().is_none_or(|due| due > later), "nor is anything due");

    while broker.stalled() {
        assert!(work_once(&mut broker, &disk, NOW), "it waits for something");
    }
    while broker.poll_timeout().is_some_and(|due| due <= later) {
        broker.handle_timeout(later, &mut outputs);
        while work_once(&mut broker, &disk, NOW) {}
    }
    let statistics = |broker: &mut Broker<File>, name: &str| {
        let queue = QueueName::new(name).unwrap();
        let mut outputs = Vec::new();
        broker.handle(later, SESSION, Command::QueueStatistics { queue }, &mut outputs);
        outputs.pop().map(|output| output.reply)
    };
    assert_eq!(statistics(&mut broker, "q"), Some(Reply::NotFound), "the queue went when empty");
    let Some(Reply::QueueStatistics(dead)) = statistics(&mut broker, "DLQ") else {
        panic!("there are dead letters");
    };
    assert_eq!(dead.ready, broker.statistics().messages_total, "all of them, none is held");
}

/// A send that goes on after a wait for a place adds to the log like a new one. While the log is
/// behind its rest is for settling, and no waiting send is forgotten when it has caught up.
#[test]
fn blocked_send_waits_while_log_lags() {
    let (_directory, disk, mut broker) = store("behind");
    let mut outputs = Vec::new();
    while broker.holds_back() {
        assert!(work_once(&mut broker, &disk, NOW), "it waits for something");
    }
    broker.handle(NOW, SESSION, put_into("narrow", 10), &mut outputs);
    broker.handle(NOW, SESSION, put_into("narrow", 3000), &mut outputs);
    let replies: Vec<_> = outputs.drain(..).map(|output| output.reply).collect();
    assert!(matches!(replies[..], [Reply::Stored { .. }, Reply::Waits { .. }]), "{replies:?}");
    while !broker.holds_back() {
        broker.handle(NOW, SESSION, put_into("wide", 3000), &mut outputs);
    }
    assert!(!broker.stalled(), "there is something left for settling");
    outputs.clear();
    let pop = ListCommand::Pop { queue: name("narrow"), end: End::Head, max: 1 };
    broker.handle(NOW, SESSION, Command::List(pop), &mut outputs);
    let frames = broker.counters().frames;
    while broker.poll_timeout().is_some_and(|due| due <= NOW) {
        broker.handle_timeout(NOW, &mut outputs);
    }
    assert_eq!(broker.counters().frames, frames, "nothing is added");
    assert_eq!(outputs.len(), 1, "only the pop was answered");

    while broker.holds_back() {
        assert!(work_once(&mut broker, &disk, NOW), "it waits for something");
    }
    assert!(broker.poll_timeout().is_some_and(|due| due <= NOW), "it goes on at once");
    broker.handle_timeout(NOW, &mut outputs);
    let late = outputs.pop().map(|output| output.reply);
    assert!(matches!(late, Some(Reply::Late { .. })), "{late:?}");
}

fn put_into(queue: &str, bytes: usize) -> Command {
    let to = Destination::Queue(name(queue));
    Command::PutTo { to, message: NewMessage::new(vec![7; bytes].into()), transaction: None }
}

fn name(queue: &str) -> QueueName {
    QueueName::new(queue).unwrap()
}

/// The room that a snapshot needs grows with each message. If it were asked for after the check for
/// room and before the put, the put at which another slot is needed would be refused.
#[test]
fn put_without_stall_is_never_refused() {
    let (_directory, disk, mut broker) = store("refusal");
    let mut outputs = Vec::new();
    let to = Destination::Queue(QueueName::new("q").unwrap());
    broker.handle(NOW, SESSION, Command::OpenProducer { link: LINK, to }, &mut outputs);
    let mut waits = 0;
    for put in 0..20_000 {
        while broker.stalled() {
            waits += 1;
            assert!(work_once(&mut broker, &disk, NOW), "it waits for something, at put {put}");
        }
        let message = NewMessage::new((*b"x").into());
        outputs.clear();
        let put_it = Command::Put { link: LINK, message, transaction: None };
        broker.handle(NOW, SESSION, put_it, &mut outputs);
        let reply = outputs.first().map(|output| &output.reply);
        assert!(matches!(reply, Some(Reply::Stored { .. })), "put {put}: {reply:?}");
    }
    assert!(waits > 100, "{waits} waits");
}
