//! A put is refused only where room is lacking: whoever was told that the log does not stall finds
//! that it takes the next put.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::PathBuf;

use broker::{Broker, BrokerOptions};
use disk::{Choice, File, Method, RealDisk};
use engine::EngineOptions;
use journal::JournalOptions;
use model::{
    Command, Destination, LinkId, Nanos, NewMessage, QueueName, Reply, SessionId, StorePolicy,
};

const SESSION: SessionId = SessionId(1);
const LINK: LinkId = LinkId(0);
const NOW: Nanos = Nanos::from_secs(2_000_000_000);

/// A directory that is removed when the test ends.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open(disk: &RealDisk) -> Broker<File> {
    let policy = StorePolicy::Never;
    let journal = JournalOptions {
        segment_bytes: 64 * 1024,
        extent_bytes: 16 * 1024,
        reserve_bytes: 16 * 1024,
        frame_payload_bytes_max: 4096,
        ..JournalOptions::new(policy)
    };
    let engine = EngineOptions::new(policy);
    let (mut broker, _) = Broker::open(disk, BrokerOptions { engine, journal }).unwrap();
    broker.open_session(SESSION);
    broker
}

/// What a thread would do next for the log; false when there is nothing.
fn work_once(broker: &mut Broker<File>, disk: &RealDisk) -> bool {
    if let Some(write) = broker.poll_write(NOW) {
        let result = write.perform(disk);
        broker.handle_write(NOW, write, result).unwrap();
    } else if let Some(chore) = broker.poll_chore(NOW) {
        broker.handle_chore(NOW, chore.perform(disk)).unwrap();
    } else {
        return false;
    }
    true
}

/// The room that a snapshot needs grows with each message; were it asked for between the look
/// whether to wait and the put, the put at which another slot is needed would be refused.
#[test]
fn no_put_is_refused_that_was_not_told_to_wait() {
    let directory = Directory(
        std::env::temp_dir().join(format!("dunlin-broker-refusal-{}", std::process::id())),
    );
    let disk = RealDisk::open(&directory.0, Choice::Force(Method::Buffered)).unwrap();
    let mut broker = open(&disk);
    let mut outputs = Vec::new();
    let to = Destination::Queue(QueueName::new("q").unwrap());
    broker.handle(NOW, SESSION, Command::OpenProducer { link: LINK, to }, &mut outputs);
    let mut waits = 0;
    for put in 0..20_000 {
        while broker.stalled() {
            waits += 1;
            assert!(work_once(&mut broker, &disk), "it waits for something, at put {put}");
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
