//! The bytes that a start leaves on the device, and those that the next one reads: counted, without
//! a clock.

use std::path::Path;

use model::{Command, Destination, NewMessage, QueueName, SessionId};

use super::*;
use crate::test_harness::{config, fresh_hub, journal_hub_with, run_chores};

/// Enough for messages as large as by default on a large machine.
const MEMORY: Option<u64> = Some(4 << 30);

const MIB: u64 = 1024 * 1024;

fn bytes_of(data: &Path) -> u64 {
    let files = std::fs::read_dir(data).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn empty_directory_stays_small() {
    let (data, hub) = journal_hub_with("small", MEMORY);
    assert!(bytes_of(&data) <= 40 * MIB, "{} bytes", bytes_of(&data));
    drop(hub);
    for _ in 0..3 {
        let (_, hub) = fresh_hub("small", MEMORY);
        run_chores(&hub);
        assert!(bytes_of(&data) <= 40 * MIB, "{} bytes after a restart", bytes_of(&data));
    }
    std::fs::remove_dir_all(data).unwrap();
}

#[test]
fn start_reads_little_of_one_message() {
    let config = config("read", MEMORY);
    let open = || {
        let disk = open_disk(&config, usize::MAX).unwrap().unwrap();
        let (broker, recovery) = Broker::open(&disk, broker_options(&config)).unwrap();
        (disk, broker, recovery)
    };
    let (mut disk, mut broker, _) = open();
    work(&mut broker, &disk);
    let to = Destination::Queue(QueueName::new("q").unwrap());
    let put =
        Command::PutTo { to, message: NewMessage::new(b"one".to_vec().into()), transaction: None };
    broker.open_session(SessionId(1));
    broker.handle(NOW, SessionId(1), put, &mut Vec::new());
    work(&mut broker, &disk);
    for stops_in_order in [false, true, true] {
        drop(broker);
        drop(disk);
        let recovery;
        (disk, broker, recovery) = open();
        assert_eq!(recovery.statistics.ready, 1);
        let read = recovery.log.bytes;
        // The bytes that may hold the log are read once for later frames, and once for the body.
        assert!(read <= 3 * MIB, "{read} bytes read");
        work(&mut broker, &disk);
        if stops_in_order {
            broker.begin_shutdown();
            while !broker.is_idle() {
                work(&mut broker, &disk);
            }
        }
    }
    std::fs::remove_dir_all(config.data).unwrap();
}

const NOW: Nanos = Nanos::from_secs(1_000);

/// Performs writes and chores until there is nothing to be done.
fn work(broker: &mut Broker<File>, disk: &RealDisk) {
    loop {
        if let Some(write) = broker.poll_write(NOW) {
            let result = write.perform(disk);
            broker.handle_write(NOW, write, result).unwrap();
        } else if let Some(chore) = broker.poll_chore(NOW) {
            let done = chore.perform(disk);
            broker.handle_chore(NOW, done).unwrap();
        } else {
            return;
        }
    }
}
