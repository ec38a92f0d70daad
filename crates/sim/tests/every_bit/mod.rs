//! Every bit of a small journal turned over, one at a time. The journal is refused by file and
//! offset, or read as if nothing had happened. Or it has lost its very last batch, which cannot be
//! told from a torn one. Never a wrong byte, never a panic.
//!
//! By default one bit of each third byte; all of them with `DUNLIN_EVERY_BIT=1`.

mod salvage;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::rc::Rc;

use broker::{Broker, BrokerOptions};
use engine::{Effects, Engine};
use journal::{
    BLOCK_BYTES, Disk, DiskError, DiskErrorKind, DumpEntry, OpenError, Recover, WriteMode, inspect,
};
use model::{
    AdminCommand, Capacity, Command, Deadline, DeadlineRule, Destination, End, KeyCommand,
    ListCommand, Lsn, MessageId, Nanos, NewMessage, Output, Persistence, QueueName, Reply,
    SessionId, SetRule, StorePolicy, ValueDeadline,
};
use sim::{
    AmqpWish, Character, Draft, Fall, FaultyDisk, FaultyFile, Scenario, Subscribing, Verdict, Wish,
    World,
};

/// Segments of three or four blocks, which roll, are compacted and used again all the time.
fn scenario() -> Scenario {
    let mut scenario = Scenario::new(1);
    scenario.policy = StorePolicy::Always;
    scenario.journal.policy = StorePolicy::Always;
    scenario.journal.frame_payload_bytes_max = 1024;
    scenario.journal.segment_bytes = 16 * 1024;
    scenario.journal.extent_bytes = 8 * 1024;
    scenario.journal.reserve_bytes = 8 * 1024;
    scenario.journal.batch_bytes = 8 * 1024;
    scenario.journal.disk_bytes_max = None;
    scenario.journal.segments_max = None;
    scenario.quota = None;
    scenario.faults_per_million = 0;
    scenario
}

/// A journal with messages of clients of all protocols, as a killed process leaves it.
fn store() -> FaultyDisk {
    let disk = FaultyDisk::new(1);
    let mut world = World::new(scenario(), disk.clone(), disk.clone());
    world.start();
    tell(&mut world).expect("nothing falls");
    world.fall(Fall::Process);
    assert_eq!(disk.take_struck(), []);
    let mut process = Process::start(&disk);
    process.fill_lists();
    process.send_with_names();
    process.send_last();
    disk.kill();
    disk
}

/// Jobs, and a topic with subscriptions; commits of one frame and of many.
fn tell(world: &mut World<FaultyDisk>) -> Option<()> {
    let jobs = world.connect(Character::Anyone);
    let amqp = world.connect_amqp("one");
    for name in ["first", "second"] {
        let (topic, name) = ("news".into(), Some(Rc::from(name)));
        let to = Subscribing { topic, name, durable: true, shared: false, global: false };
        world.ask_amqp(amqp, AmqpWish::Subscribe { to, credit: 0 })?;
    }
    for round in 0..12 {
        put(world, jobs, round)?;
        send(world, amqp, round)?;
        if round > 2 && round != 7 {
            delete(world, jobs)?;
        }
    }
    Some(())
}

fn put(world: &mut World<FaultyDisk>, client: u64, round: u8) -> Option<()> {
    let (queue, persistence) = ("default".into(), Persistence::Persistent);
    let body = Rc::from([round; 90]);
    world.ask(client, Wish::Put { queue, priority: 7, delay: 0, lease: 60, persistence, body })?;
    Some(())
}

fn delete(world: &mut World<FaultyDisk>, client: u64) -> Option<()> {
    let queue: Rc<str> = "default".into();
    let watched = Rc::new([queue].into());
    let reserved = world.ask(client, Wish::Reserve { watched, timeout: Some(0) })?.line;
    let id = reserved.split(' ').nth(1).and_then(|id| id.parse().ok()).expect("it has a job");
    world.ask(client, Wish::Delete { id })?;
    Some(())
}

/// A commit to a queue and a topic: one frame, or a chain of them.
fn send(world: &mut World<FaultyDisk>, client: u64, round: u8) -> Option<()> {
    world.ask_amqp(client, AmqpWish::Declare)?;
    let transaction = world.amqp(client).transactions().last().copied();
    let queue = Destination::Queue(name("a"));
    let topic = Destination::Topic(name("news"));
    let many = if round % 4 == 1 { 7 } else { 1 };
    for to in std::iter::once(topic).chain(std::iter::repeat_n(queue, many)) {
        let body = Rc::from([100 + round; 200]);
        let message =
            Draft { durable: true, priority: 4, ttl: None, delay: 0, send_id: None, body };
        world.ask_amqp(client, AmqpWish::Send { to, message, transaction, settled: false })?;
    }
    let transaction = transaction.expect("it was declared");
    world.ask_amqp(client, AmqpWish::Discharge { transaction, fail: false })?;
    if round == 4 {
        world.ask_amqp(client, AmqpWish::Consume { queue: "a".into(), credit: 100 })?;
    }
    for delivery in world.amqp(client).held() {
        let (verdict, transaction) = (Verdict::Accepted, None);
        let settle = AmqpWish::Settle { delivery, verdict, transaction, settled: false };
        world.ask_amqp(client, settle)?;
    }
    Some(())
}

/// Another process, which stores things that clients of other protocols send.
struct Process {
    disk: FaultyDisk,
    broker: Broker<FaultyFile>,
    now: Nanos,
}

impl Process {
    fn start(disk: &FaultyDisk) -> Self {
        let (mut broker, recovery) = Broker::open(disk, scenario().options()).unwrap();
        broker.open_session(SessionId(1));
        let mut process = Self { disk: disk.clone(), broker, now: recovery.latest };
        process.work();
        process
    }

    fn run(&mut self, command: Command) {
        let (now, mut outputs) = (self.now, Vec::new());
        self.broker.handle(now, SessionId(1), command, &mut outputs);
        let is_refused = |output: &Output| matches!(output.reply, Reply::Refused(_));
        assert!(!outputs.iter().any(is_refused), "{outputs:?}");
        self.work();
    }

    /// Until nothing is to be done for the log.
    fn work(&mut self) {
        let now = self.now;
        loop {
            if let Some(write) = self.broker.poll_write(now) {
                let result = write.perform(&self.disk);
                self.broker.handle_write(now, write, result).unwrap();
            } else if let Some(chore) = self.broker.poll_chore(now) {
                let done = chore.perform(&self.disk);
                self.broker.handle_chore(now, done).unwrap();
            } else {
                return;
            }
        }
    }

    /// Lists and values in batches, of which some goes again, and deadlines.
    fn fill_lists(&mut self) {
        for round in 0..6_u8 {
            let value = KeyCommand::SetValue {
                name: name("v1"),
                value: [round; 20].into(),
                deadline: ValueDeadline::Kept,
                rule: SetRule::Always,
                want_old: false,
            };
            let commands = vec![push("l1", round), key(value), push("l2", round)];
            self.run(Command::Batch { commands });
            if round % 2 == 1 {
                let pop = ListCommand::Pop { queue: name("l1"), end: End::Tail, max: 1 };
                self.run(Command::List(pop));
            }
        }
        for name in [name("l2"), name("v1")] {
            let deadline = Deadline::After(Nanos::from_secs(1_000_000));
            let rule = DeadlineRule::Always;
            self.run(key(KeyCommand::SetDeadline { name, deadline, rule }));
        }
    }

    /// Messages by their senders' names for them, each a frame and a batch.
    fn send_with_names(&mut self) {
        for number in 0..3_u8 {
            let message = NewMessage {
                send_id: Some(format!("order-{number}").into()),
                ..NewMessage::new([number; 50].into())
            };
            let (to, transaction) = (Destination::Queue(name("b")), None);
            self.run(Command::PutTo { to, message, transaction });
        }
    }

    /// One of which only the log knows, and nothing but itself says that it is there.
    fn send_last(&mut self) {
        let (to, transaction) = (Destination::Queue(name("b")), None);
        let message = NewMessage::new([9; 50].into());
        let put = Command::PutTo { to, message, transaction };
        self.broker.handle(self.now, SessionId(1), put, &mut Vec::new());
        while let Some(write) = self.broker.poll_write(self.now) {
            let result = write.perform(&self.disk);
            self.broker.handle_write(self.now, write, result).unwrap();
        }
    }
}

fn push(list: &str, round: u8) -> Command {
    let push = ListCommand::Push {
        queue: name(list),
        end: End::Head,
        elements: model::OneOrMany::Many(vec![[round; 30].into(), [round; 3].into()]),
        only_existing: false,
        persistence: Persistence::Persistent,
    };
    Command::List(push)
}

fn key(command: KeyCommand) -> Command {
    Command::Key(command)
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

/// The files as a reader finds them; it changes none.
struct Shelf {
    names: Vec<String>,
    contents: RefCell<Vec<Vec<u8>>>,
}

impl Shelf {
    fn of(disk: &FaultyDisk) -> Self {
        let names: Vec<String> = disk.files().into_iter().map(|(name, _)| name).collect();
        let contents = names.iter().map(|name| disk.content(name)).collect();
        Self { names, contents: RefCell::new(contents) }
    }

    fn flip(&self, file: usize, byte: usize, bit: u32) {
        self.contents.borrow_mut()[file][byte] ^= 1 << bit;
    }
}

impl Disk for Shelf {
    type File = usize;

    fn salt(&self) -> u64 {
        unreachable!("nothing is written")
    }

    fn names(&self) -> Result<Vec<String>, DiskError> {
        Ok(self.names.clone())
    }

    fn create(&self, name: &str) -> Result<usize, DiskError> {
        Err(refused(name))
    }

    fn open(&self, name: &str) -> Result<usize, DiskError> {
        self.names.iter().position(|other| other == name).ok_or_else(|| refused(name))
    }

    fn length(&self, file: &usize) -> Result<u64, DiskError> {
        Ok(self.contents.borrow()[*file].len() as u64)
    }

    fn read(&self, file: &usize, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        let contents = self.contents.borrow();
        let available = contents[*file].get(offset as usize..).unwrap_or_default();
        let bytes = available.len().min(buffer.len());
        buffer[..bytes].copy_from_slice(&available[..bytes]);
        Ok(bytes)
    }

    fn write(&self, _: &usize, _: u64, _: &[u8], _: WriteMode) -> Result<(), DiskError> {
        Err(refused("a file"))
    }

    fn shorten(&self, _: &usize, _: u64) -> Result<(), DiskError> {
        Err(refused("a file"))
    }

    fn sync(&self, _: &usize) -> Result<(), DiskError> {
        Err(refused("a file"))
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        Err(refused("."))
    }

    fn rename(&self, from: &str, _: &str) -> Result<(), DiskError> {
        Err(refused(from))
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        Err(refused(name))
    }
}

fn refused(file: &str) -> DiskError {
    let (kind, cause) = (DiskErrorKind::Failed, "who only looks changes nothing".into());
    DiskError { kind, operation: "change", file: file.into(), cause }
}

/// An engine that recovers, and a hash of its input: the same input gives the same state.
struct Replay {
    engine: Engine,
    given: DefaultHasher,
}

impl Recover for Replay {
    fn load(&mut self, chunk: &[u8]) -> Result<(), String> {
        ("load", chunk).hash(&mut self.given);
        self.engine.load(chunk).map_err(|error| error.to_string())
    }

    fn replay(&mut self, lsn: Lsn, payload: &[u8], fuzzy: bool) -> Result<(), String> {
        (lsn.0, payload, fuzzy).hash(&mut self.given);
        self.engine.replay(lsn, payload, fuzzy).map_err(|error| error.to_string())
    }

    fn wanted(&self) -> Vec<Lsn> {
        self.engine.live().map(|(lsn, _)| lsn).collect()
    }

    fn restore(&mut self, lsn: Lsn, payload: &[u8]) -> Result<(), String> {
        ("restore", lsn.0, payload).hash(&mut self.given);
        self.engine.restore_body(lsn, payload).map_err(|error| error.to_string())
    }

    fn finish(&mut self, last: Lsn) -> Result<(), String> {
        self.engine.finish_recovery(last).map_err(|error| error.to_string())
    }

    fn live(&self) -> impl Iterator<Item = (Lsn, u64)> {
        self.engine.live()
    }

    fn snapshot_bytes(&self) -> u64 {
        self.engine.snapshot_bytes_max()
    }
}

/// The recovered state.
struct Recovered {
    given: u64,
    engine: Engine,
}

impl Recovered {
    /// Everything: a snapshot has all but the bodies, and each message is shown with its own.
    fn everything(mut self) -> String {
        let mut cursor = self.engine.snapshot_begin();
        let (mut chunk, mut text) = (Vec::new(), String::new());
        while self.engine.snapshot_chunk(&mut cursor, &mut chunk) {}
        for record in engine::describe(&chunk) {
            // The location of a body is no part of its message.
            let record = record.unwrap().to_string();
            let shown = record.split(" location=").next().unwrap_or_default();
            text.push_str(&format!("{shown}\n"));
        }
        let (now, session) = (self.engine.latest_time(), SessionId(1));
        self.engine.open_session(session);
        let mut effects = Effects::default();
        for message in (1..MESSAGES_MAX).map(MessageId) {
            let show = Command::Admin(Box::new(AdminCommand::Show { message }));
            self.engine.handle(now, session, show, Capacity::UNBOUNDED, &mut effects);
        }
        let replies = effects.outputs.iter().map(|Output { reply, .. }| format!("{reply:?}\n"));
        text.extend(replies);
        text
    }
}

fn recover(shelf: &Shelf) -> Result<Recovered, OpenError> {
    let BrokerOptions { engine, .. } = scenario().options();
    let engine = Engine::new(engine);
    let mut replay = Replay { engine, given: DefaultHasher::new() };
    journal::verify(shelf, &mut replay)?;
    Ok(Recovered { given: replay.given.finish(), engine: replay.engine })
}

/// The beginning of the last batch of the log: file and offset.
fn last_batch(shelf: &Shelf) -> (usize, usize) {
    let mut batches = BTreeMap::new();
    let show = &mut |found: DumpEntry<'_>| {
        if let DumpEntry::Batch { file, offset, lsn, .. } = found {
            batches.insert(lsn, (shelf.open(file).unwrap(), offset as usize));
        }
    };
    inspect(shelf, show).unwrap();
    batches.into_values().next_back().unwrap()
}

/// The states that may be found: all of it, or all but the last batch.
struct Truth {
    given: u64,
    whole: String,
    shorter: String,
}

impl Truth {
    fn of(shelf: &Shelf) -> Self {
        let sound = recover(shelf).unwrap();
        let (given, whole) = (sound.given, sound.everything());
        let (file, offset) = last_batch(shelf);
        shelf.flip(file, offset, 0);
        let shorter = recover(shelf).unwrap().everything();
        shelf.flip(file, offset, 0);
        assert_ne!(whole, shorter, "the last batch says something");
        Self { given, whole, shorter }
    }
}

/// How often a turned bit had each outcome.
#[derive(Debug, Default)]
struct Tally {
    refused: u64,
    harmless: u64,
    tail_lost: u64,
}

fn judge(shelf: &Shelf, truth: &Truth, name: &str, byte: usize, tally: &mut Tally) {
    match recover(shelf) {
        Err(error) => {
            let text = error.to_string();
            assert!(names(&text, shelf, name, byte), "{name} at {byte}: {text} does not name it");
            assert!(text.chars().any(|c| c.is_ascii_digit()), "{text} names no offset");
            tally.refused += 1;
        }
        Ok(found) if found.given == truth.given => tally.harmless += 1,
        Ok(found) => {
            let found = found.everything();
            if found == truth.whole {
                tally.harmless += 1;
            } else {
                assert!(found == truth.shorter, "{name} at {byte}: something else is read");
                tally.tail_lost += 1;
            }
        }
    }
}

/// True if the error names the damaged file. A segment with an unreadable first mark does not show
/// that the log goes on in it. Then the error names the place where the log stops: the segment
/// before.
fn names(text: &str, shelf: &Shelf, name: &str, byte: usize) -> bool {
    let index = shelf.open(name).unwrap();
    let before = index.checked_sub(1).map(|before| shelf.names[before].as_str());
    let is_first_mark = (BLOCK_BYTES..BLOCK_BYTES + MARK_BYTES).contains(&byte);
    text.contains(name) || (is_first_mark && before.is_some_and(|before| text.contains(before)))
}

#[test]
fn flipped_bits_are_refused_or_harmless() {
    let disk = store();
    let every_bit = std::env::var_os("DUNLIN_EVERY_BIT").is_some();
    let contents: Vec<(String, usize)> =
        disk.files().into_iter().map(|(name, bytes)| (name, bytes as usize)).collect();
    let share = |half: usize, shelf: Shelf| {
        let truth = Truth::of(&shelf);
        let mut tally = Tally::default();
        for (file, (name, bytes)) in contents.iter().enumerate() {
            for byte in (half..*bytes).step_by(if every_bit { 2 } else { 6 }) {
                // Neighbours have another each.
                let one = (byte / 2 % 8) as u32;
                for bit in if every_bit { 0..8 } else { one..one + 1 } {
                    shelf.flip(file, byte, bit);
                    judge(&shelf, &truth, name, byte, &mut tally);
                    shelf.flip(file, byte, bit);
                }
            }
        }
        tally
    };
    let shelves = [Shelf::of(&disk), Shelf::of(&disk)];
    let share = &share;
    let tallies = std::thread::scope(|scope| {
        let halves = shelves.into_iter().enumerate();
        let halves: Vec<_> =
            halves.map(|(half, shelf)| scope.spawn(move || share(half, shelf))).collect();
        halves.into_iter().map(|half| half.join().expect("see above")).collect::<Vec<_>>()
    });
    println!("{tallies:?}");
    let sum = |count: fn(&Tally) -> u64| tallies.iter().map(count).sum::<u64>();
    assert!(sum(|tally| tally.refused) > 2_000, "{tallies:?}");
    assert!(sum(|tally| tally.harmless) > 5_000, "{tallies:?}");
    assert!(sum(|tally| tally.tail_lost) > 20, "{tallies:?}");
}

/// See docs/reference/file-format.md.
const MARK_BYTES: usize = 64;

/// More than there are.
const MESSAGES_MAX: u64 = 300;
