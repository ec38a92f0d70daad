//! A full disk below consumers that fail, reject and wait for too long. The process goes on,
//! nothing is lost, and all can be taken out.

use std::collections::BTreeSet;

use broker::{Broker, BrokerOptions};
use engine::EngineOptions;
use journal::JournalOptions;
use model::{
    Command, ConsumerMode, DeadReason, Destination, LinkId, MessageId, Nanos, NewMessage, Output,
    QueueName, Reply, SessionId, Settlement, StorePolicy, Subscription, SubscriptionName,
};
use sim::{FaultyDisk, FaultyFile};

const LINK: LinkId = LinkId(0);
const OTHER: LinkId = LinkId(1);
const PRODUCER: SessionId = SessionId(1);
const CONSUMER: SessionId = SessionId(2);

/// A broker; this world performs its writes and chores.
struct World {
    options: BrokerOptions,
    broker: Broker<FaultyFile>,
    disk: FaultyDisk,
    now: Nanos,
    outputs: Vec<Output>,
}

impl World {
    fn new(quota: u64, dead_letter_queue: &str) -> Self {
        let disk = FaultyDisk::new(1);
        disk.set_quota(Some(quota));
        let policy = StorePolicy::Always;
        let journal = JournalOptions {
            segment_bytes: 256 * 1024,
            extent_bytes: 32 * 1024,
            reserve_bytes: 64 * 1024,
            frame_payload_bytes_max: 16 * 1024,
            batch_bytes: 64 * 1024,
            ..JournalOptions::new(policy)
        };
        let dead_letter_queue = QueueName::new(dead_letter_queue).unwrap();
        let engine = EngineOptions { dead_letter_queue, ..EngineOptions::new(policy) };
        let options = BrokerOptions { engine, journal };
        let (broker, _) = Broker::open(&disk, options.clone()).unwrap();
        let now = Nanos::from_secs(1_000);
        let mut world = Self { options, broker, disk, now, outputs: Vec::new() };
        world.broker.open_session(PRODUCER);
        world
    }

    /// The process is gone, and another recovers the state that it has written.
    fn restart(&mut self) {
        self.disk.kill();
        (self.broker, _) = Broker::open(&self.disk, self.options.clone()).unwrap();
        self.broker.check();
    }

    /// The replies to one command, once the log takes one.
    fn ask(&mut self, session: SessionId, command: Command) -> Vec<Reply> {
        while self.broker.stalled() {
            self.work();
        }
        self.broker.handle(self.now, session, command, &mut self.outputs);
        self.outputs.drain(..).map(|output| output.reply).collect()
    }

    /// Performs due work of the log; if there is none, time passes.
    fn work(&mut self) {
        if let Some(write) = self.broker.poll_write(self.now) {
            let result = write.perform(&self.disk);
            self.broker.handle_write(self.now, write, result).unwrap();
        } else if let Some(chore) = self.broker.poll_chore(self.now) {
            let done = chore.perform(&self.disk);
            self.broker.handle_chore(self.now, done).unwrap();
        } else {
            let due = self.broker.poll_timeout();
            assert!(due.is_some(), "the log waits for nothing");
            self.now = self.now.max(due.unwrap());
        }
    }

    /// Lets so much time pass; due things happen, and the log is worked on all along.
    fn pass(&mut self, span: Nanos) {
        let end = self.now + span;
        loop {
            self.broker.handle_timeout(self.now, &mut self.outputs);
            self.outputs.clear();
            if let Some(write) = self.broker.poll_write(self.now) {
                let result = write.perform(&self.disk);
                self.broker.handle_write(self.now, write, result).unwrap();
            } else if let Some(chore) = self.broker.poll_chore(self.now) {
                let done = chore.perform(&self.disk);
                self.broker.handle_chore(self.now, done).unwrap();
            } else {
                match self.broker.poll_timeout().filter(|due| *due <= end) {
                    Some(due) => self.now = self.now.max(due),
                    None => break,
                }
            }
        }
        self.now = end;
        self.broker.check();
    }

    /// A durable subscription of a topic, for a consumer without credit.
    fn subscribe(&mut self, session: SessionId, topic: &str, name: &str) {
        self.broker.open_session(session);
        let client = Some(QueueName::new("c").unwrap());
        let name = QueueName::new(name).unwrap();
        let name = Some(SubscriptionName { user: None, client, name, durable: true });
        let topic = QueueName::new(topic).unwrap();
        let (selector, without) = (None, None);
        let subscription =
            Subscription { name, selector, shared: true, without, ..Subscription::new(topic) };
        let subscription = Box::new(subscription);
        let replies = self.ask(session, Command::Subscribe { link: OTHER, subscription });
        assert_eq!(replies, [Reply::Done]);
    }

    fn produce(&mut self, to: Destination) {
        let replies = self.ask(PRODUCER, Command::OpenProducer { link: LINK, to });
        assert_eq!(replies, [Reply::Done]);
    }

    /// Puts until the disk is full; gives how many were stored.
    fn fill(&mut self, message: &NewMessage) -> usize {
        for count in 0..200_000 {
            let put = Command::Put { link: LINK, message: message.clone(), transaction: None };
            match self.ask(PRODUCER, put)[..] {
                [Reply::Stored { .. }, ..] => {}
                [Reply::Refused(_)] => return count,
                ref other => panic!("{other:?}"),
            }
        }
        panic!("the disk never fills up");
    }

    fn consume(&mut self, session: SessionId, queue: &str, limit: u64) -> Vec<MessageId> {
        self.broker.open_session(session);
        let queue = QueueName::new(queue).unwrap();
        let mode = ConsumerMode::Take;
        self.ask(session, Command::OpenConsumer { link: OTHER, queue, selector: None, mode });
        self.credit(session, limit)
    }

    /// The messages that so much credit brings.
    fn credit(&mut self, session: SessionId, limit: u64) -> Vec<MessageId> {
        let mut replies = self
            .ask(session, Command::Credit { link: OTHER, limit, bytes: u64::MAX, drain: false });
        while self.broker.poll_timeout().is_some_and(|due| due <= self.now) {
            self.broker.handle_timeout(self.now, &mut self.outputs);
            replies.extend(self.outputs.drain(..).map(|output| output.reply));
            if self.broker.stalled() {
                self.work();
            }
        }
        let delivered = replies.into_iter().filter_map(|reply| match reply {
            Reply::Delivered(delivery) => Some(delivery.message),
            _ => None,
        });
        delivered.collect()
    }

    fn settle(&mut self, session: SessionId, message: MessageId, settlement: Settlement) {
        let settle = Command::Settle { message, settlement, transaction: None };
        let replies = self.ask(session, settle);
        assert_eq!(replies.first(), Some(&Reply::Done), "{settlement:?} of {message}");
    }
}

fn small() -> NewMessage {
    NewMessage::new((*b"x").into())
}

/// Stores many small messages for a durable subscription, on a disk that becomes full. Rejects
/// `rejected` of each 4,000 in a row and accepts the rest. A small record becomes twenty times as
/// large as a dead letter: it has to name its topic and its queue then. Returns the compactions.
fn reject_stretches(rejected: u64) -> u64 {
    const STORED: usize = 40_000;
    let (topic, dead) = ("t".repeat(255), "d".repeat(255));
    let mut world = World::new(64 << 20, &dead);
    world.subscribe(CONSUMER, &topic, "s");
    world.produce(Destination::Topic(QueueName::new(&topic).unwrap()));
    for _ in 0..STORED {
        let put = Command::Put { link: LINK, message: small(), transaction: None };
        assert!(matches!(world.ask(PRODUCER, put)[..], [Reply::Stored { .. }]));
    }
    let ids = world.credit(CONSUMER, STORED as u64);
    assert_eq!(ids.len(), STORED);
    let (rejected, accepted): (BTreeSet<_>, BTreeSet<_>) =
        ids.into_iter().partition(|id| id.0 % 4_000 < rejected);
    for id in &rejected {
        world.settle(CONSUMER, *id, Settlement::Park(DeadReason::Rejected));
    }
    world.disk.set_quota(Some(world.disk.used()));
    for id in &accepted {
        world.settle(CONSUMER, *id, Settlement::Accept);
    }
    world.pass(Nanos::from_secs(60));
    let found = world.consume(SessionId(3), &dead, STORED as u64);
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), rejected);
    world.broker.counters().compactions
}

#[test]
fn few_dead_letters_are_compacted() {
    assert!(reject_stretches(80) > 0);
}

/// They take more than there is to be gained.
#[test]
fn many_dead_letters_are_not_compacted() {
    assert_eq!(reject_stretches(600), 0);
}

/// Copies that are rejected grow their one record beyond the largest frame that is accepted. The
/// live rest of it is stated anew in one frame all the same.
#[test]
fn rejected_copies_of_message_are_compacted() {
    const COPIES: u64 = 40;
    let (topic, dead) = ("t".repeat(255), "d".repeat(255));
    let mut world = World::new(64 << 20, &dead);
    let subscribers: Vec<_> = (10..10 + COPIES).map(SessionId).collect();
    for session in &subscribers {
        world.subscribe(*session, &topic, &format!("s{}", session.0));
    }
    world.produce(Destination::Topic(QueueName::new(&topic).unwrap()));
    let mut rejected = BTreeSet::new();
    for round in 1..=300 {
        let message = NewMessage::new(vec![b'x'; 12_000].into());
        let put = Command::Put { link: LINK, message, transaction: None };
        assert!(matches!(world.ask(PRODUCER, put)[..], [Reply::Stored { .. }]));
        for session in &subscribers {
            let id = world.credit(*session, round)[0];
            if round % 12 > 0 {
                world.settle(*session, id, Settlement::Accept);
            } else {
                world.settle(*session, id, Settlement::Park(DeadReason::Rejected));
                rejected.insert(id);
            }
        }
    }
    world.pass(Nanos::from_secs(60));
    assert!(world.broker.counters().compactions > 0, "{:?}", world.broker.counters());
    world.restart();
    let found = world.consume(SessionId(3), &dead, 100_000);
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), rejected);
}

fn queue(name: &str) -> Destination {
    Destination::Queue(QueueName::new(name).unwrap())
}

/// Thousands of messages expire at once on a full disk. None can become a dead letter, since a dead
/// letter takes more room. Each is hidden until there is room.
#[test]
fn expired_messages_hide_on_full_disk() {
    let mut world = World::new(2 << 20, "dead");
    world.produce(queue(&"q".repeat(255)));
    let lasting = Command::Put { link: LINK, message: small(), transaction: None };
    assert!(matches!(world.ask(PRODUCER, lasting)[..], [Reply::Stored { .. }]));
    let end = world.now + Nanos::from_secs(10_000);
    let expires = Some(end);
    let stored = world.fill(&NewMessage { expires, ..small() });
    assert!(stored > 1_000, "only {stored} fit");
    world.now = end;
    world.pass(Nanos::SECOND);
    let others = world.consume(CONSUMER, &"q".repeat(255), 100_000);
    assert_eq!(others.len(), 1, "what does not expire can be had, and nothing else");
    world.settle(CONSUMER, others[0], Settlement::Accept);
    assert_eq!(world.consume(SessionId(3), "dead", 100_000), []);
    world.pass(Nanos::from_secs(600));
    world.restart();
    world.disk.set_quota(None);
    world.pass(Nanos::from_secs(60));
    assert_eq!(world.consume(SessionId(4), "dead", 100_000).len(), stored, "all are there");
}

/// Consumers that hold thousands of messages and are lost again and again use up no room.
#[test]
fn lost_consumers_use_no_disk_room() {
    let mut world = World::new(2 << 20, "dead");
    world.produce(queue("q"));
    let stored = world.fill(&small());
    assert!(stored > 1_000, "only {stored} fit");
    for session in (10..30).map(SessionId) {
        assert_eq!(world.consume(session, "q", 100_000).len(), stored);
        world.broker.close_session(world.now, session, &mut world.outputs);
        world.pass(Nanos::SECOND);
    }
    // Twice as often as a message is tried: they come back from where they are hidden.
    world.pass(Nanos::from_secs(60));
    let left = world.consume(CONSUMER, "q", 100_000);
    assert_eq!(left.len(), stored);
    left.into_iter().for_each(|id| world.settle(CONSUMER, id, Settlement::Accept));
    world.pass(Nanos::from_secs(60));
    world.produce(queue("q"));
    assert!(world.fill(&small()) > stored / 10, "there is room again, beside that for snapshots");
}

/// On a disk that has room but is too slow, due expiries wait for it.
#[test]
fn expiry_waits_for_a_slow_disk() {
    const STORED: usize = 20_000;
    let mut world = World::new(64 << 20, "dead");
    world.produce(queue(&"q".repeat(255)));
    let end = world.now + Nanos::from_secs(10_000);
    let expires = Some(end);
    let message = NewMessage { expires, ..small() };
    for _ in 0..STORED {
        let put = Command::Put { link: LINK, message: message.clone(), transaction: None };
        assert!(matches!(world.ask(PRODUCER, put)[..], [Reply::Stored { .. }]));
    }
    world.now = end;
    let mut calls = 0;
    while world.broker.poll_timeout().is_some_and(|due| due <= world.now) {
        world.broker.handle_timeout(world.now, &mut world.outputs);
        calls += 1;
    }
    assert!(world.broker.stalled(), "after {calls} calls nothing more is done");
    world.pass(Nanos::SECOND);
    assert_eq!(world.consume(CONSUMER, "dead", 100_000).len(), STORED);
}
