//! A small log in a real directory, and its work without threads.
#![allow(clippy::unwrap_used, dead_code, reason = "each test uses its part, and may panic")]

use std::path::Path;

use broker::Broker;
use disk::{Choice, File, Method, RealDisk};
use journal::JournalOptions;
use model::{Nanos, StorePolicy};

pub(crate) fn open_disk(path: &Path) -> RealDisk {
    RealDisk::open(path, Choice::Force(Method::Buffered)).unwrap()
}

/// Options of a log whose segments are soon full.
pub(crate) fn small_log(policy: StorePolicy) -> JournalOptions {
    JournalOptions {
        segment_bytes: 64 * 1024,
        extent_bytes: 16 * 1024,
        reserve_bytes: 64 * 1024,
        frame_payload_bytes_max: 4096,
        ..JournalOptions::new(policy)
    }
}

/// Performs the next write or chore; false when there is none.
pub(crate) fn work_once(broker: &mut Broker<File>, disk: &RealDisk, now: Nanos) -> bool {
    if let Some(write) = broker.poll_write(now) {
        let result = write.perform(disk);
        broker.handle_write(now, write, result).unwrap();
    } else if let Some(chore) = broker.poll_chore(now) {
        broker.handle_chore(now, chore.perform(disk)).unwrap();
    } else {
        return false;
    }
    true
}
