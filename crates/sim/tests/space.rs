//! The room that the log takes, over long lives of random puts and deletes. Segments that hold
//! frames stay within twice the live bytes and two segments. Copies by compaction stay within the
//! bytes that clients wrote.

use broker::{Broker, BrokerOptions};
use engine::EngineOptions;
use journal::{BLOCK_BYTES, FRAME_HEADER_BYTES, JournalOptions, KeptFor};
use model::{
    Command, Destination, MessageId, Nanos, NewMessage, Output, QueueName, Reply, SessionId,
    StorePolicy,
};
use sim::{FaultyDisk, FaultyFile, Rng};

const SESSION: SessionId = SessionId(1);
const NOW: Nanos = Nanos::from_secs(1_000);
const SEGMENT_BYTES: u64 = 64 * 1024;

/// A broker; this life performs its writes and chores.
struct Life {
    disk: FaultyDisk,
    broker: Broker<FaultyFile>,
    rng: Rng,
    stored: Vec<MessageId>,
    outputs: Vec<Output>,
    /// Bytes of the batches that clients asked for, at least.
    own_bytes: u64,
}

impl Life {
    fn new(seed: u64) -> Self {
        let disk = FaultyDisk::new(seed);
        let policy = StorePolicy::Never;
        let journal = JournalOptions {
            segment_bytes: SEGMENT_BYTES,
            extent_bytes: 32 * 1024,
            reserve_bytes: 32 * 1024,
            frame_payload_bytes_max: 12 * 1024,
            batch_bytes: 16 * 1024,
            ..JournalOptions::new(policy)
        };
        let options = BrokerOptions { engine: EngineOptions::new(policy), journal };
        let (mut broker, _) = Broker::open(&disk, options).unwrap();
        broker.open_session(SESSION);
        let (rng, stored, outputs) = (Rng::new(seed), Vec::new(), Vec::new());
        Self { disk, broker, rng, stored, outputs, own_bytes: 0 }
    }

    fn run(&mut self, command: Command) -> Reply {
        while self.broker.stalled() {
            assert!(self.work(), "it stalls for ever");
        }
        self.broker.handle(NOW, SESSION, command, &mut self.outputs);
        self.outputs.remove(0).reply
    }

    fn put(&mut self, bytes: usize) {
        let to = Destination::Queue(QueueName::new("q").unwrap());
        let message = NewMessage::new(vec![b'x'; bytes].into());
        self.own_bytes += bytes as u64 + PUT_BYTES;
        match self.run(Command::PutTo { to, message, transaction: None }) {
            Reply::Stored { message } => self.stored.push(message),
            reply => panic!("{reply:?}"),
        }
    }

    fn delete(&mut self) {
        let index = self.rng.index(self.stored.len());
        let message = self.stored.swap_remove(index);
        self.own_bytes += DELETE_BYTES;
        assert_eq!(self.run(Command::Delete { message }), Reply::Done);
    }

    /// Does one thing for the log, if there is any.
    fn work(&mut self) -> bool {
        if self.write() {
            return true;
        }
        let Some(chore) = self.broker.poll_chore(NOW) else {
            // A snapshot that waits for the log to be synced has asked for it just now.
            return self.write();
        };
        let done = chore.perform(&self.disk);
        self.broker.handle_chore(NOW, done).unwrap();
        true
    }

    fn write(&mut self) -> bool {
        let Some(write) = self.broker.poll_write(NOW) else { return false };
        let result = write.perform(&self.disk);
        self.broker.handle_write(NOW, write, result).unwrap();
        true
    }

    /// Until there is nothing to be done.
    fn rest(&mut self) {
        for _ in 0..WORK_MAX {
            if !self.work() {
                self.broker.check();
                return;
            }
        }
        panic!("housekeeping never ends: {:?}", self.broker.counters());
    }

    /// Bytes of segments that hold frames.
    fn held_bytes(&self) -> u64 {
        let mut explaining = self.broker.explain();
        while self.broker.go_on_explaining(&mut explaining) {}
        let explained = explaining.end();
        let holds = |kept_for| !matches!(kept_for, KeptFor::Spare | KeptFor::Nothing);
        let segments = explained.iter().map(|explained| explained.segment);
        segments.filter(|segment| holds(segment.kept_for)).map(|segment| segment.bytes).sum()
    }

    /// How many segments they are beyond twice the live bytes, with the headers of live frames.
    fn segments_beyond(&self) -> u64 {
        let headers = self.stored.len() * FRAME_HEADER_BYTES;
        let live = self.broker.counters().live_bytes + headers as u64;
        self.held_bytes().saturating_sub(2 * live).div_ceil(SEGMENT_BYTES)
    }
}

/// A long life in which some `target` messages live, of up to so many bytes.
fn live(seed: u64, target: usize, bytes_max: u64) {
    let mut life = Life::new(seed);
    let mut worst = 0;
    for _ in 0..STEPS {
        for _ in 0..life.rng.between(1, 10) {
            let stored = life.stored.len();
            if stored < target / 2 || (stored < target * 2 && life.rng.coin()) {
                let bytes = life.rng.below(bytes_max + 1);
                life.put(bytes as usize);
            } else {
                life.delete();
            }
        }
        life.own_bytes += BLOCK_BYTES as u64;
        life.rest();
        worst = worst.max(life.segments_beyond());
    }
    let counters = life.broker.counters();
    let what = format!("seed {seed}, {target} of {bytes_max} bytes, {worst}: {counters:?}");
    println!("{what}, own {}", life.own_bytes);
    let snapshot_bytes = target as u64 * 2 * SNAPSHOT_BYTES;
    let most = SEGMENTS_BEYOND_MAX + snapshot_bytes.div_ceil(SEGMENT_BYTES);
    assert!(worst <= most, "{what}");
    assert!(counters.compactions > 20, "{what}");
    assert!(counters.restated_records > 0, "{what}");
    // Copies and snapshots take less than twice the bytes that clients wrote.
    let written = counters.batch_bytes + counters.snapshot_bytes;
    assert!(written < 3 * life.own_bytes, "{what}, own {}", life.own_bytes);
}

#[test]
fn segments_stay_within_twice_live_bytes() {
    for (seed, target) in [(1, 400), (2, 30), (3, 100)] {
        live(seed, target, 4_000);
        live(seed, target, 40);
    }
}

#[test]
fn tiny_messages_are_not_recopied() {
    let mut life = Life::new(1);
    for number in 0..30_000 {
        life.put(0);
        if number % 500 == 0 {
            life.rest();
        }
    }
    life.rest();
    let counters = life.broker.counters();
    let copied = (counters.compactions, counters.restated_records);
    assert_eq!(copied, (0, 0), "all of it lives, and it is dense");
}

/// The most bytes of a snapshot for a message of that queue.
const SNAPSHOT_BYTES: u64 = 110;

/// Besides the bytes of a snapshot: a snapshot is not begun for less. Of the two segments one is
/// written to.
const SEGMENTS_BEYOND_MAX: u64 = 2;

const STEPS: u64 = 2_000;

/// Calls after which housekeeping that goes on never ends.
const WORK_MAX: usize = 20_000;

/// The record of a put into that queue without its body.
const PUT_BYTES: u64 = 24;

/// The record of a delete.
const DELETE_BYTES: u64 = 3;

/// Others have their turn between the portions. A message that came meanwhile is not told, nor one
/// that went before it was looked at.
#[test]
fn explain_goes_on_in_portions() {
    let mut life = Life::new(1);
    (0..9_000).for_each(|_| life.put(1));
    life.rest();
    let mut explaining = life.broker.explain();
    assert!(life.broker.go_on_explaining(&mut explaining), "there are more");
    let last = life.stored.pop().unwrap();
    assert_eq!(life.run(Command::Delete { message: last }), Reply::Done);
    life.put(1);
    life.rest();
    assert!(life.broker.go_on_explaining(&mut explaining), "there are more");
    while life.broker.go_on_explaining(&mut explaining) {}
    let explained = explaining.end();
    assert!(explained.iter().filter(|file| !file.queues.is_empty()).count() > 1);
    let messages = explained.iter().flat_map(|file| &file.queues).map(|share| share.messages);
    assert_eq!(messages.sum::<u64>(), 8_999);
}
