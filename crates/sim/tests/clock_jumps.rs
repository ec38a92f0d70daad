//! The wall clock jumps by years between two processes, back and forward. No time that a reply told
//! comes again, delayed messages wait no longer than they should, and leases last as long as they
//! are.
//!
//! While a process runs its clock is monotonic (`server/clock.rs`). A start takes the wall's time,
//! but none before the latest in the log; these processes do the same.

use broker::{Broker, BrokerOptions};
use engine::EngineOptions;
use journal::JournalOptions;
use model::{
    Command, Destination, LinkId, MessageId, MessageState, Nanos, NewMessage, Output, QueueName,
    Reply, SessionId, StorePolicy,
};
use sim::{FaultyDisk, FaultyFile};

const SESSION: SessionId = SessionId(1);
const LINK: LinkId = LinkId(0);
const YEAR: Nanos = Nanos::from_secs(365 * 86_400);
/// Fifty years after 1970.
const START: Nanos = Nanos(50 * YEAR.0);
const MINUTE: Nanos = Nanos::from_secs(60);

struct Process {
    disk: FaultyDisk,
    broker: Broker<FaultyFile>,
    now: Nanos,
    outputs: Vec<Output>,
}

impl Process {
    /// A process that starts when the wall's clock shows this.
    fn start(disk: &FaultyDisk, wall: Nanos) -> Self {
        let policy = StorePolicy::Always;
        let journal = JournalOptions {
            segment_bytes: 64 * 1024,
            extent_bytes: 32 * 1024,
            reserve_bytes: 32 * 1024,
            frame_payload_bytes_max: 8 * 1024,
            ..JournalOptions::new(policy)
        };
        let options = BrokerOptions { engine: EngineOptions::new(policy), journal };
        let (mut broker, _) = Broker::open(disk, options).unwrap();
        let now = wall.max(broker.started_at());
        broker.open_session(SESSION);
        let disk = disk.clone();
        let mut process = Self { disk, broker, now, outputs: Vec::new() };
        process.pass(Nanos::ZERO);
        process
    }

    /// Killed; another starts then.
    fn restart(self, wall: Nanos) -> Self {
        self.disk.kill();
        let next = Self::start(&self.disk, wall);
        assert!(next.now >= wall && next.now >= next.broker.started_at());
        next
    }

    fn pass(&mut self, span: Nanos) {
        let end = self.now + span;
        loop {
            self.broker.handle_timeout(self.now, &mut self.outputs);
            self.work();
            match self.broker.poll_timeout().filter(|due| *due <= end) {
                Some(due) => self.now = self.now.max(due),
                None => break,
            }
        }
        self.now = end;
        self.broker.check();
    }

    fn work(&mut self) {
        loop {
            if let Some(write) = self.broker.poll_write(self.now) {
                let result = write.perform(&self.disk);
                self.broker.handle_write(self.now, write, result).unwrap();
            } else if let Some(chore) = self.broker.poll_chore(self.now) {
                let done = chore.perform(&self.disk);
                self.broker.handle_chore(self.now, done).unwrap();
            } else {
                return;
            }
        }
    }

    fn ask(&mut self, command: Command) -> Reply {
        self.outputs.clear();
        self.broker.handle(self.now, SESSION, command, &mut self.outputs);
        self.work();
        self.outputs.remove(0).reply
    }

    fn put(&mut self, change: impl FnOnce(&mut NewMessage, Nanos)) -> MessageId {
        let mut message = NewMessage::new((*b"body").into());
        change(&mut message, self.now);
        let to = Destination::Queue(name("mail"));
        match self.ask(Command::PutTo { to, message, transaction: None }) {
            Reply::Stored { message } => message,
            reply => panic!("{reply:?}"),
        }
    }

    fn state(&mut self, message: MessageId) -> Option<MessageState> {
        match self.ask(Command::MessageStatistics { message }) {
            Reply::MessageStatistics(statistics) => Some(statistics.state),
            _ => None,
        }
    }

    fn receive(&mut self) -> Option<MessageId> {
        self.ask(Command::Watch { link: LINK, queue: name("mail") });
        let wait = Some(Nanos::ZERO);
        let receive = Command::Receive { link: LINK, wait, margin: Nanos::ZERO, lease: None };
        match self.ask(receive) {
            Reply::Delivered(delivery) => Some(delivery.message),
            _ => None,
        }
    }
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

/// One that waits, one with a time to live, one that is ready.
fn filled() -> (Process, [MessageId; 3]) {
    let mut process = Process::start(&FaultyDisk::new(1), START);
    let delayed = process.put(|message, _| message.delay = MINUTE);
    let mortal = process.put(|message, now| message.expires = Some(now + MINUTE + MINUTE));
    let ready = process.put(|_, _| {});
    (process, [delayed, mortal, ready])
}

#[test]
fn clock_set_back_prolongs_no_wait() {
    let (process, [delayed, mortal, ready]) = filled();
    let mut process = process.restart(START.since(YEAR + YEAR));
    assert!(process.now >= START && process.now < START + MINUTE, "time goes on: {}", process.now);
    assert_eq!(process.state(delayed), Some(MessageState::Delayed));
    process.pass(MINUTE);
    assert_eq!(process.state(delayed), Some(MessageState::Ready), "a minute is a minute");
    assert_eq!(process.state(mortal), Some(MessageState::Ready));
    process.pass(MINUTE);
    assert_eq!(process.state(ready), Some(MessageState::Ready));
    assert!(process.receive().is_some_and(|message| message != mortal), "it is over");
}

#[test]
fn clock_set_forward_ends_due_deadlines() {
    let (process, [delayed, mortal, ready]) = filled();
    let mut process = process.restart(START + Nanos(10 * YEAR.0));
    assert_eq!(process.state(delayed), Some(MessageState::Ready));
    assert_eq!(process.state(ready), Some(MessageState::Ready));
    let mut received = [process.receive(), process.receive(), process.receive()];
    received.sort_unstable();
    assert_eq!(received, [None, Some(delayed), Some(ready)], "{mortal} is over");
}

#[test]
fn deadlines_keep_length_after_clock_excursion() {
    let (process, [_, _, ready]) = filled();
    let future = START + Nanos(30 * YEAR.0);
    let mut process = process.restart(future);
    process.put(|_, _| {});
    // The log remembers; the wall's clock is right again.
    let mut process = process.restart(START + MINUTE);
    assert!(process.now >= future, "no time comes twice");
    let first = process.receive().unwrap();
    process.pass(MINUTE.since(Nanos::SECOND));
    assert_eq!(process.state(first), Some(MessageState::Leased));
    process.pass(Nanos::SECOND);
    assert_eq!(process.state(first), Some(MessageState::Ready), "its lease was a minute");
    let delayed = process.put(|message, _| message.delay = MINUTE);
    let mortal = process.put(|message, now| message.expires = Some(now + MINUTE));
    process.pass(MINUTE.since(Nanos::SECOND));
    assert_eq!(process.state(delayed), Some(MessageState::Delayed));
    assert_eq!(process.state(mortal), Some(MessageState::Ready));
    process.pass(Nanos::SECOND);
    assert_eq!(process.state(delayed), Some(MessageState::Ready));
    assert_ne!(process.state(ready), None);
}
