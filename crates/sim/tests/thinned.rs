//! A full log of randomly deleted messages stores again by itself, long before it is empty: with
//! any bound, any order of deletions, and over crashes.

use broker::{Broker, BrokerOptions};
use engine::EngineOptions;
use journal::JournalOptions;
use model::{
    Command, Destination, MessageId, Nanos, NewMessage, Output, QueueName, Reply, SessionId,
    StorePolicy,
};
use sim::{FaultyDisk, FaultyFile, Rng};

const SESSION: SessionId = SessionId(1);

/// How long a full device is left alone.
const PAUSE: Nanos = Nanos::from_millis(250);

/// The sizes of a log and its messages, and how they are deleted.
#[derive(Clone, Copy, Debug)]
struct Case {
    segment_kib: u64,
    reserve_kib: u64,
    /// The most that it may take.
    log_kib: u64,
    /// True if that is a limit of its own, or the device's.
    limited: bool,
    message_bytes: usize,
    /// Deletions that share a write.
    together: usize,
    /// True if the process is killed again and again meanwhile.
    killed: bool,
}

/// A broker; this life performs its writes and chores.
struct Life {
    disk: FaultyDisk,
    options: BrokerOptions,
    broker: Broker<FaultyFile>,
    now: Nanos,
    outputs: Vec<Output>,
}

impl Life {
    fn new(case: Case) -> Self {
        let disk = FaultyDisk::new(1);
        let segment_bytes = case.segment_kib * 1024;
        let mut journal = JournalOptions {
            segment_bytes,
            extent_bytes: segment_bytes / 8,
            reserve_bytes: case.reserve_kib * 1024,
            frame_payload_bytes_max: segment_bytes as usize / 4,
            batch_bytes: segment_bytes as usize / 32,
            ..JournalOptions::new(StorePolicy::Always)
        };
        let bytes = Some(case.log_kib * 1024);
        if case.limited {
            journal.disk_bytes_max = bytes;
        } else {
            disk.set_quota(bytes);
        }
        let options = BrokerOptions { engine: EngineOptions::new(StorePolicy::Always), journal };
        let (mut broker, _) = Broker::open(&disk, options.clone()).unwrap();
        broker.open_session(SESSION);
        Self { disk, options, broker, now: Nanos::from_secs(1_000), outputs: Vec::new() }
    }

    fn run(&mut self, command: Command) -> Reply {
        for _ in 0..STALLED_MAX {
            if !self.broker.stalled() {
                self.broker.handle(self.now, SESSION, command, &mut self.outputs);
                return self.outputs.remove(0).reply;
            }
            if !self.work() {
                self.now = self.now + PAUSE;
            }
        }
        panic!("it stalls for ever");
    }

    fn put(&mut self, bytes: usize) -> Option<MessageId> {
        let to = Destination::Queue(QueueName::new("q").unwrap());
        let message = NewMessage::new(vec![b'x'; bytes].into());
        match self.run(Command::PutTo { to, message, transaction: None }) {
            Reply::Stored { message } => Some(message),
            Reply::Refused(_) => None,
            reply => panic!("{reply:?}"),
        }
    }

    fn delete(&mut self, message: MessageId) {
        assert_eq!(self.run(Command::Delete { message }), Reply::Done, "it is there");
    }

    /// Does one thing for the log, if there is any.
    fn work(&mut self) -> bool {
        if let Some(write) = self.broker.poll_write(self.now) {
            let result = write.perform(&self.disk);
            self.broker.handle_write(self.now, write, result).unwrap();
        } else if let Some(chore) = self.broker.poll_chore(self.now) {
            let done = chore.perform(&self.disk);
            self.broker.handle_chore(self.now, done).unwrap();
        } else {
            return false;
        }
        true
    }

    /// For two seconds no client asks for anything.
    fn rest(&mut self) {
        for _ in 0..8 {
            while self.work() {}
            self.now = self.now + PAUSE;
        }
        self.broker.check();
    }

    /// Stores until it is full, also after all housekeeping.
    fn fill(&mut self, bytes: usize) -> Vec<MessageId> {
        let mut stored = Vec::new();
        while stored.len() < 10_000 {
            let put = self.put(bytes).or_else(|| {
                self.rest();
                self.put(bytes)
            });
            let Some(message) = put else { return stored };
            stored.push(message);
            (0..2).for_each(|_| _ = self.work());
        }
        panic!("it never fills up");
    }

    fn restart(&mut self) {
        (self.broker, _) = Broker::open(&self.disk, self.options.clone()).unwrap();
        self.broker.open_session(SESSION);
    }
}

/// Two thirds of the messages that fill it go, in any order; then a tenth as much is stored, and
/// all goes.
fn thin(case: Case) {
    let mut life = Life::new(case);
    let mut stored = life.fill(case.message_bytes);
    let count = stored.len();
    assert!(count > 100, "{case:?}: only {count} fit");
    let mut rng = Rng::new(7);
    (1..count).rev().for_each(|index| stored.swap(index, rng.index(index + 1)));
    let rest = stored.split_off(count * 2 / 3);
    for (number, some) in stored.chunks(case.together).enumerate() {
        some.iter().for_each(|message| life.delete(*message));
        while life.work() {}
        if case.killed && number % 7 == 0 {
            life.restart();
        }
    }
    life.rest();
    let again: Vec<_> = (0..count / 10).map_while(|_| life.put(case.message_bytes)).collect();
    assert_eq!(again.len(), count / 10, "{case:?}: of {count}, {} are left", rest.len());
    rest.into_iter().chain(again).for_each(|message| life.delete(message));
}

#[test]
fn full_log_thinned_randomly_stores_again() {
    let sizes = [(1024, 32, 8_000, 5_000), (512, 16, 14_000, 5_000), (256, 256, 5_000, 2_500)];
    for (segment_kib, reserve_kib, log_kib, message_bytes) in sizes {
        let sizes = Case { segment_kib, reserve_kib, log_kib, message_bytes, ..CASE };
        for (limited, together) in [(true, 1), (true, 50), (false, 1), (false, 50)] {
            thin(Case { limited, together, ..sizes });
            thin(Case { limited, together, killed: true, ..sizes });
        }
    }
}

const CASE: Case = Case {
    segment_kib: 0,
    reserve_kib: 0,
    log_kib: 0,
    limited: false,
    message_bytes: 0,
    together: 0,
    killed: false,
};

/// Writes and chores after which a command that waits for them waits for ever.
const STALLED_MAX: usize = 10_000;
