//! The time of a large commit, and the waits of a neighbour. One session commits many messages
//! while another puts one after the other; then the log is read again.
//!
//! `cargo run --release -p dunlin-broker --example large_commit -- DIRECTORY [MESSAGES [BYTES]]`
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "an example may panic")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use broker::{Broker, BrokerOptions};
use disk::{Choice, File, Method, RealDisk};
use engine::EngineOptions;
use journal::JournalOptions;
use model::{
    Command, Destination, Nanos, NewMessage, Output, Persistence, QueueName, Reply, SessionId,
    StorePolicy, TransactionId,
};

const COMMITTER: SessionId = SessionId(1);
const TRANSACTION: TransactionId = TransactionId(1);

struct World {
    disk: RealDisk,
    broker: Mutex<Broker<File>>,
    /// The answer to the commit.
    answer: Mutex<Option<Output>>,
    /// The neighbour is to stop, then all threads.
    committed: AtomicBool,
    ended: AtomicBool,
    since: Instant,
}

/// How long the puts of the neighbour took.
#[derive(Default)]
struct Neighbour {
    puts: u64,
    longest: Duration,
    /// The longest while it was alone.
    alone: Duration,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().expect("a directory that may be filled"));
    let messages = arguments.next().map_or(100_000, |count| count.parse().unwrap());
    let bytes = arguments.next().map_or(1024, |bytes| bytes.parse().unwrap());
    for persistence in [Persistence::NonPersistent, Persistence::Persistent] {
        let path = directory.join(format!("{persistence:?}"));
        println!("beside a neighbour who puts {persistence:?}:");
        commit(&path, messages, bytes, persistence);
        recover(&path);
    }
}

fn open(path: &Path) -> (RealDisk, Broker<File>) {
    let policy = StorePolicy::Always;
    let journal = JournalOptions::new(policy).with_message_bytes_max(65_535).with_transactions();
    let disk = RealDisk::open(path, Choice::Force(Method::Buffered)).unwrap();
    let options = BrokerOptions { engine: EngineOptions::new(policy), journal };
    let (broker, _) = Broker::open(&disk, options).unwrap();
    (disk, broker)
}

fn commit(path: &Path, messages: u64, bytes: usize, persistence: Persistence) {
    let (disk, broker) = open(path);
    let world = World {
        disk,
        broker: Mutex::new(broker),
        answer: Mutex::new(None),
        committed: AtomicBool::new(false),
        ended: AtomicBool::new(false),
        since: Instant::now(),
    };
    thread::scope(|scope| {
        scope.spawn(|| world.write());
        scope.spawn(|| world.write());
        scope.spawn(|| world.run_chores());
        let neighbour = scope.spawn(|| world.put_all_the_time(persistence));
        let committed = world.commit(messages, bytes);
        thread::sleep(Duration::from_millis(100));
        world.committed.store(true, Ordering::SeqCst);
        let Neighbour { puts, longest, alone } = neighbour.join().unwrap();
        world.ended.store(true, Ordering::SeqCst);
        println!("  committed after {committed:?}");
        println!("  the neighbour waited {longest:?} at most, {alone:?} alone, in {puts} puts");
    });
    let counters = world.lock().counters();
    let (frames, bytes) = (counters.frames, counters.batch_bytes);
    println!("  {frames} frames, {bytes} bytes in {} batches", counters.batches);
}

fn recover(path: &Path) {
    let since = Instant::now();
    let (_, broker) = open(path);
    let ready = broker.statistics().ready;
    println!("  {ready} messages recovered in {:?}", since.elapsed());
}

impl World {
    fn lock(&self) -> MutexGuard<'_, Broker<File>> {
        self.broker.lock().unwrap()
    }

    fn now(&self) -> Nanos {
        Nanos(self.since.elapsed().as_nanos() as u64 + 1)
    }

    fn goes_on(&self) -> bool {
        !self.ended.load(Ordering::SeqCst)
    }

    fn write(&self) {
        while self.goes_on() {
            let write = self.lock().poll_write(self.now());
            let Some(write) = write else {
                thread::sleep(Duration::from_micros(50));
                continue;
            };
            let result = write.perform(&self.disk);
            self.lock().handle_write(self.now(), write, result).unwrap();
        }
    }

    fn run_chores(&self) {
        while self.goes_on() {
            let chore = self.lock().poll_chore(self.now());
            let Some(chore) = chore else {
                thread::sleep(Duration::from_micros(50));
                continue;
            };
            let done = chore.perform(&self.disk);
            let mut broker = self.lock();
            broker.handle_chore(self.now(), done).unwrap();
            if broker.poll_timeout().is_some_and(|due| due <= self.now()) {
                let mut outputs = Vec::new();
                let since = Instant::now();
                broker.handle_timeout(self.now(), &mut outputs);
                println!("  the append took {:?}", since.elapsed());
                *self.answer.lock().unwrap() = outputs.pop();
            }
        }
    }

    fn put_all_the_time(&self, persistence: Persistence) -> Neighbour {
        let session = SessionId(2);
        self.lock().open_session(session);
        let mut neighbour = Neighbour::default();
        while !self.committed.load(Ordering::SeqCst) {
            let since = Instant::now();
            let answer = self.handle(session, put(100, persistence, None)).unwrap();
            self.await_durable(&answer);
            neighbour.longest = neighbour.longest.max(since.elapsed());
            if self.since.elapsed() < ALONE {
                neighbour.alone = neighbour.longest;
            }
            neighbour.puts += 1;
            thread::sleep(Duration::from_micros(200));
        }
        neighbour
    }

    fn commit(&self, messages: u64, bytes: usize) -> Duration {
        thread::sleep(ALONE);
        self.lock().open_session(COMMITTER);
        self.handle(COMMITTER, Command::Begin { transaction: TRANSACTION });
        for _ in 0..messages {
            let put = put(bytes, Persistence::Persistent, Some(TRANSACTION));
            assert_eq!(self.handle(COMMITTER, put).unwrap().reply, Reply::Done);
        }
        let since = Instant::now();
        let mut answer = self.handle(COMMITTER, Command::Commit { transaction: TRANSACTION });
        while answer.is_none() {
            thread::sleep(Duration::from_micros(50));
            answer = self.answer.lock().unwrap().take();
        }
        println!("  room was there, and all appended, after {:?}", since.elapsed());
        let answer = answer.unwrap();
        assert_eq!(answer.reply, Reply::Done);
        self.await_durable(&answer);
        since.elapsed()
    }

    fn handle(&self, session: SessionId, command: Command) -> Option<Output> {
        while self.lock().stalled() {
            thread::sleep(Duration::from_micros(20));
        }
        let mut outputs = Vec::new();
        self.lock().handle(self.now(), session, command, &mut outputs);
        outputs.pop()
    }

    fn await_durable(&self, answer: &Output) {
        while !self.lock().durable().covers(answer.after) {
            thread::sleep(Duration::from_micros(20));
        }
    }
}

fn put(bytes: usize, persistence: Persistence, transaction: Option<TransactionId>) -> Command {
    let to = Destination::Queue(QueueName::new("mail").unwrap());
    let message = NewMessage { persistence, ..NewMessage::new(vec![b'x'; bytes].into()) };
    Command::PutTo { to, message, transaction }
}

const ALONE: Duration = Duration::from_millis(250);
