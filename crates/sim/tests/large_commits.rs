//! A commit that is more than one frame, of messages and of keys of a table, and the power cut at
//! every call of the disk that it makes, or a failure of that call. The recovered state holds all
//! of it or nothing, and all if it was confirmed. Then the log goes on behind the part that was cut
//! off, with another such commit, and is recovered again.

use broker::{Broker, BrokerOptions, Write};
use engine::EngineOptions;
use journal::JournalOptions;
use model::{
    CollectionCommand, CollectionKind, Command, Destination, LinkId, MessageId, Nanos, NewMessage,
    OneOrMany, Output, QueueName, Refusal, Reply, SessionId, Settlement, StorePolicy, TableAction,
    TableStep, TransactionId,
};
use sim::{Fault, FaultyDisk, FaultyFile, Moment};

const SESSION: SessionId = SessionId(1);
const LINK: LinkId = LinkId(0);
const NOW: Nanos = Nanos::from_secs(2_000_000_000);
const TRANSACTION: TransactionId = TransactionId(1);

/// Messages before, of which the commit settles one.
const BEFORE: u64 = 3;
/// Messages of the commit: three frames, in two segments.
const COMMITTED: u64 = 40;
const BODY_BYTES: usize = 1_000;
/// Keys that it puts, beside one to which it adds so often.
const STEPS: u64 = COMMITTED / 8;

struct Process {
    disk: FaultyDisk,
    broker: Broker<FaultyFile>,
    /// The log has failed: the process ends.
    failed: bool,
    /// The one that was begun last is performed first.
    backwards: bool,
    writes: Vec<Write<FaultyFile>>,
    outputs: Vec<Output>,
}

/// The outcome of a run.
struct Run {
    /// The calls of the disk that the commit made.
    calls: std::ops::Range<u64>,
    confirmed: bool,
}

impl Process {
    fn open(disk: &FaultyDisk, backwards: bool) -> Option<Self> {
        let opened = Broker::open(disk, options());
        let broker = match opened {
            Ok((broker, _)) => broker,
            Err(_) if disk.stopped() => return None,
            Err(error) => panic!("{error}"),
        };
        let (disk, writes, outputs) = (disk.clone(), Vec::new(), Vec::new());
        let mut process = Self { disk, broker, failed: false, backwards, writes, outputs };
        process.broker.check();
        process.broker.open_session(SESSION);
        process.settle();
        let queue = QueueName::new("mail").unwrap();
        process.run(Command::Watch { link: LINK, queue });
        Some(process)
    }

    /// Everything that a server would do, until nothing is left or the power is gone.
    fn settle(&mut self) {
        while !self.is_over() && self.turn() {}
        if !self.is_over() {
            self.broker.check();
        }
    }

    fn is_over(&self) -> bool {
        self.failed || self.disk.stopped()
    }

    fn turn(&mut self) -> bool {
        while let Some(write) = self.broker.poll_write(NOW) {
            self.writes.push(write);
        }
        if !self.writes.is_empty() {
            let write =
                if self.backwards { self.writes.pop() } else { Some(self.writes.remove(0)) };
            let write = write.unwrap();
            let result = write.perform(&self.disk);
            self.failed = self.broker.handle_write(NOW, write, result).is_err();
            assert!(!self.failed || self.disk.has_struck());
        } else if let Some(chore) = self.broker.poll_chore(NOW) {
            self.failed = self.broker.handle_chore(NOW, chore.perform(&self.disk)).is_err();
            assert!(!self.failed || self.disk.has_struck());
        } else if self.broker.poll_timeout().is_some_and(|due| due <= NOW) {
            self.broker.handle_timeout(NOW, &mut self.outputs);
        } else {
            return false;
        }
        true
    }

    fn run(&mut self, command: Command) -> Option<Output> {
        self.broker.handle(NOW, SESSION, command, &mut self.outputs);
        self.settle();
        self.outputs.pop()
    }

    fn put(&mut self, number: u64, transaction: Option<TransactionId>) {
        let to = Destination::Queue(QueueName::new("mail").unwrap());
        let message = NewMessage::new(vec![number as u8; BODY_BYTES].into());
        self.run(Command::PutTo { to, message, transaction });
    }

    /// Receives a message, and settles it in a transaction that puts many.
    fn commit(&mut self) -> Run {
        let wait = Some(Nanos::ZERO);
        let received =
            self.run(Command::Receive { link: LINK, wait, margin: Nanos::ZERO, lease: None });
        let Reply::Delivered(delivery) = received.unwrap().reply else { panic!("there is one") };
        self.run(Command::Begin { transaction: TRANSACTION });
        for number in 0..COMMITTED {
            self.put(number, Some(TRANSACTION));
            if number % 8 == 0 {
                let value = vec![number as u8; BODY_BYTES].into();
                self.step(&format!("key {number}"), TableAction::Put(value));
                self.step("count", TableAction::Add(1));
            }
        }
        let (message, settlement) = (delivery.message, Settlement::Accept);
        self.run(Command::Settle { message, settlement, transaction: Some(TRANSACTION) });
        let (calls, frames) = (self.disk.calls(), self.broker.counters().frames);
        let answer = self.run(Command::Commit { transaction: TRANSACTION });
        let confirmed = answer.is_some_and(|Output { after, reply, .. }| {
            // A device without room for new files refuses it.
            let is_refused = reply == Reply::Refused(Refusal::StoreFull);
            assert!(
                matches!(reply, Reply::Committed { .. }) || (is_refused && self.disk.has_struck()),
                "{reply:?}"
            );
            !is_refused && self.broker.durable().covers(after)
        });
        if confirmed {
            assert!(self.broker.counters().frames >= frames + 3, "it is a chain of three frames");
        }
        Run { calls: calls + 1..self.disk.calls() + 1, confirmed }
    }

    /// A step of the commit on a table.
    fn step(&mut self, key: &str, action: TableAction) {
        let (table, key) = (QueueName::new("table").unwrap(), key.as_bytes().into());
        let step = Box::new(TableStep { table, key, action });
        self.run(Command::Table { step, transaction: TRANSACTION });
    }

    /// How many steps have counted themselves, and how many keys they have put.
    fn counted(&mut self) -> (u64, u64) {
        let (name, kind) = (QueueName::new("table").unwrap(), CollectionKind::Hash);
        let fields = OneOrMany::One((*b"count").into());
        let find = CollectionCommand::FindFields { name: name.clone(), kind, fields };
        let count = match self.run(find.into()).unwrap().reply {
            Reply::Value(None) => 0,
            Reply::Value(Some(text)) => str::from_utf8(&text).unwrap().parse().unwrap(),
            other => panic!("{other:?}"),
        };
        match self.run(CollectionCommand::CountFields { name, kind }.into()).unwrap().reply {
            Reply::Count(keys) => (count, keys.saturating_sub(1)),
            other => panic!("{other:?}"),
        }
    }

    fn ready(&self) -> u64 {
        self.broker.statistics().ready
    }
}

fn options() -> BrokerOptions {
    let policy = StorePolicy::Always;
    let journal = JournalOptions {
        segment_bytes: 48 * 1024,
        extent_bytes: 16 * 1024,
        reserve_bytes: 16 * 1024,
        frame_payload_bytes_max: 16 * 1024,
        batch_bytes: 16 * 1024,
        ..JournalOptions::new(policy)
    };
    BrokerOptions { engine: EngineOptions::new(policy), journal }
}

/// A directory with some messages, and the commit.
fn run(seed: u64, fault: Option<(u64, Fault)>) -> (FaultyDisk, Run) {
    let disk = FaultyDisk::new(seed);
    let mut process = Process::open(&disk, seed % 2 == 1).unwrap();
    for number in 0..BEFORE {
        process.put(number, None);
    }
    if let Some((call, fault)) = fault {
        disk.inject(call, fault);
    }
    let run = process.commit();
    (disk, run)
}

#[test]
fn power_cut_keeps_commit_whole() {
    let (mut all, mut nothing, mut cut) = (0, 0, 0);
    for seed in 0..4 {
        let (_, Run { calls, confirmed }) = run(seed, None);
        assert!(confirmed && calls.end - calls.start > 10, "{calls:?}");
        for call in calls {
            for moment in [Moment::Before, Moment::During, Moment::After] {
                let (disk, run) = run(seed, Some((call, Fault::Crash(moment))));
                assert!(disk.stopped());
                if call % 2 == 0 {
                    disk.cut_power()
                } else {
                    disk.kill()
                }
                let left = recover(&disk, seed);
                assert!(!run.confirmed || left.all, "what was confirmed is there: {call}");
                (all, nothing) = (all + u64::from(left.all), nothing + u64::from(!left.all));
                cut += u64::from(left.commits_cut > 0);
            }
        }
    }
    assert!(all > 10 && nothing > 100 && cut > 10, "{all} all, {nothing} nothing, {cut} cut");
}

#[test]
fn fault_keeps_commit_whole() {
    let (mut all, mut nothing) = (0, 0);
    for seed in 0..4 {
        let (_, Run { calls, .. }) = run(seed, None);
        for (call, fault) in calls.flat_map(|call| FAULTS.map(|fault| (call, fault))) {
            let (disk, run) = run(seed, Some((call, fault)));
            assert_eq!(disk.take_struck(), [(call, fault)]);
            if call % 2 == 0 {
                disk.cut_power()
            } else {
                disk.kill()
            }
            let left = recover(&disk, seed);
            assert!(!run.confirmed || left.all, "what was confirmed is there: {fault:?} in {call}");
            (all, nothing) = (all + u64::from(left.all), nothing + u64::from(!left.all));
        }
    }
    assert!(all > 10 && nothing > 50, "{all} all, {nothing} nothing");
}

const FAULTS: [Fault; 3] = [Fault::Io, Fault::Full, Fault::Short];

struct Left {
    all: bool,
    commits_cut: u64,
}

/// Asserts that all of the commit is there or nothing; returns the state, with another commit
/// behind it.
fn recover(disk: &FaultyDisk, seed: u64) -> Left {
    let commits_cut = broker::verify(disk, options(), &mut |_| {}).unwrap().commits_cut;
    let mut process = Process::open(disk, seed % 4 > 1).unwrap();
    let found = process.ready();
    let all = found == BEFORE - 1 + COMMITTED;
    assert!(all || found == BEFORE, "{found} messages are no state that ever was");
    let first = Command::MessageStatistics { message: MessageId(1) };
    let is_there = matches!(process.run(first).unwrap().reply, Reply::MessageStatistics(_));
    assert_eq!(is_there, !all, "what was settled goes with the rest of it");
    let steps = if all { STEPS } else { 0 };
    assert_eq!(process.counted(), (steps, steps), "keys come with the rest of it");
    let again = process.commit();
    assert!(again.confirmed);
    disk.cut_power();
    let mut process = Process::open(disk, false).unwrap();
    assert_eq!(process.ready(), found - 1 + COMMITTED);
    assert_eq!(process.counted(), (steps + STEPS, STEPS));
    Left { all, commits_cut }
}

/// Recovery makes a directory fit to go on from: a crash in the middle of that changes nothing.
#[test]
fn power_cut_during_recovery_drops_commit() {
    let (_, Run { calls, .. }) = run(3, None);
    let mut recoveries = 0;
    for call in calls {
        let (disk, _) = run(3, Some((call, Fault::Crash(Moment::During))));
        disk.cut_power();
        if broker::verify(&disk.fork(), options(), &mut |_| {}).unwrap().commits_cut == 0 {
            continue;
        }
        let from = disk.calls() + 1;
        for call in from.. {
            let disk = disk.fork();
            disk.inject(call, Fault::Crash(Moment::During));
            if Process::open(&disk, false).is_some() && !disk.stopped() {
                break;
            }
            disk.cut_power();
            assert!(!recover(&disk, 0).all);
            recoveries += 1;
        }
    }
    assert!(recoveries > 50, "{recoveries} recoveries");
}
