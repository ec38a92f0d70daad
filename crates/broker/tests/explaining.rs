//! Explaining why a log is kept takes bounded memory, as the operating system sees it. Alone in its
//! process, so that nothing else is measured.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod support;

use broker::{Broker, BrokerOptions, explain};
use disk::RealDisk;
use engine::EngineOptions;
use journal::JournalOptions;
use model::{
    Command, Destination, Nanos, NewMessage, Persistence, QueueName, SessionId, StorePolicy,
};
use support::open_disk;
use testkit::{Directory, resident_bytes};

const NOW: Nanos = Nanos::from_secs(2_000_000_000);
const MESSAGES: u64 = 4_000;
const BODY_BYTES: usize = 16 * 1024;

/// Bytes that may be taken, of which two files of the log are most: of the bodies there are 64 MB.
const TAKEN_BYTES_MAX: u64 = 48 << 20;

#[test]
fn log_is_explained_without_bodies() {
    let directory = Directory::new("explaining");
    fill(&open_disk(&directory.0));
    let disk = RealDisk::open_existing(&directory.0).unwrap();
    let (before, mut most, mut read) = (resident_bytes(), 0, 0);
    let explained = explain(&disk, EngineOptions::new(StorePolicy::Always), &mut |bytes| {
        read += bytes;
        most = most.max(resident_bytes());
    });
    let shares = explained.unwrap().into_iter().flat_map(|file| file.queues);
    assert_eq!(shares.map(|share| share.messages).sum::<u64>(), MESSAGES);
    assert!(read >= MESSAGES as usize * BODY_BYTES, "it tells how far it is: {read} bytes");
    let taken = most.saturating_sub(before);
    assert!(taken <= TAKEN_BYTES_MAX, "{taken} bytes");
}

/// Stores messages that are not kept in memory.
fn fill(disk: &RealDisk) {
    let policy = StorePolicy::Always;
    let engine = EngineOptions { log_bodies_max: 0, ..EngineOptions::new(policy) };
    let options = BrokerOptions { engine, journal: JournalOptions::new(policy) };
    let (mut broker, _) = Broker::open(disk, options).unwrap();
    let session = SessionId(1);
    broker.open_session(session);
    settle(&mut broker, disk);
    for _ in 0..MESSAGES {
        let to = Destination::Queue(QueueName::new("mail").unwrap());
        let persistence = Persistence::Persistent;
        let message = NewMessage { persistence, ..NewMessage::new([7; BODY_BYTES].into()) };
        let put = Command::PutTo { to, message, transaction: None };
        broker.handle(NOW, session, put, &mut Vec::new());
        settle(&mut broker, disk);
    }
}

fn settle(broker: &mut Broker<disk::File>, disk: &RealDisk) {
    loop {
        if let Some(write) = broker.poll_write(NOW) {
            let result = write.perform(disk);
            broker.handle_write(NOW, write, result).unwrap();
        } else if let Some(chore) = broker.poll_chore(NOW) {
            broker.handle_chore(NOW, chore.perform(disk)).unwrap();
        } else {
            break;
        }
    }
}
