//! A server with the test in place of its threads: the test writes and runs chores when it likes.

use std::path::PathBuf;

use crate::hub::Hub;
use crate::{Config, Logger};

/// A hub with a journal that only the test writes and keeps, and its directory.
pub(crate) fn journal_hub(test: &str) -> (PathBuf, Hub) {
    journal_hub_with(test, None)
}

/// The same with this much memory, and a little that it takes at least.
pub(crate) fn journal_hub_with(test: &str, memory_limit: Option<u64>) -> (PathBuf, Hub) {
    let (data, hub) = fresh_hub(test, memory_limit);
    run_chores(&hub);
    (data, hub)
}

/// The same as it is before its threads begin.
pub(crate) fn fresh_hub(test: &str, memory_limit: Option<u64>) -> (PathBuf, Hub) {
    let config = config(test, memory_limit);
    let disk = crate::server::open_disk(&config, usize::MAX).unwrap();
    let hub = crate::server::build(&config, disk).unwrap();
    (config.data, hub)
}

/// The configuration of a server with a directory of this test's own.
pub(crate) fn config(test: &str, memory_limit: Option<u64>) -> Config {
    let data = std::env::temp_dir().join(format!("dunlin-{}-{test}", std::process::id()));
    let (threads, log, listen) = (1, Logger::Quiet, Vec::new());
    Config { data, threads, log, listen, memory_limit, ..Config::default() }
}

/// Does the housekeeper's work.
pub(crate) fn run_chores(hub: &Hub) {
    let disk = hub.disk.as_ref().unwrap();
    let mut core = hub.lock();
    core.poll_chore(hub.clock.now());
    while let Some(chore) = core.take_chore() {
        hub.complete_chore(&mut core, chore.perform(disk)).unwrap();
        core.poll_chore(hub.clock.now());
    }
}

/// Does the committers' work, and the housekeeper's if a write waits for a chore.
pub(crate) fn write_all(hub: &Hub) {
    if hub.lock().broker.unwritten().waits_for_chore {
        run_chores(hub);
    }
    hub.hand_over(&mut hub.lock());
    while write_handed(hub) > 0 {
        hub.hand_over(&mut hub.lock());
    }
}

/// Writes the batches left to the committers; returns the number of writes.
pub(crate) fn write_handed(hub: &Hub) -> usize {
    let mut writes = 0;
    let mut core = hub.lock();
    while let Some(transfer) = core.take_handed() {
        writes += 1;
        let result = transfer.write.perform(hub.disk.as_ref().unwrap());
        hub.complete(&mut core, transfer, result).unwrap();
    }
    writes
}
