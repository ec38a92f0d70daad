//! A server whose threads are the test: it writes and keeps house when it likes.

use std::path::PathBuf;

use crate::hub::Hub;
use crate::{Config, Log};

/// One with a journal that nobody writes or keeps but the test, and its directory.
pub(crate) fn journal_hub(test: &str) -> (PathBuf, Hub) {
    journal_hub_with(test, None)
}

/// The same with this much memory, and a little that it takes at least.
pub(crate) fn journal_hub_with(test: &str, memory_limit: Option<u64>) -> (PathBuf, Hub) {
    let (data, hub) = fresh_hub(test, memory_limit);
    keep_house(&hub);
    (data, hub)
}

/// The same as it is before its threads begin.
pub(crate) fn fresh_hub(test: &str, memory_limit: Option<u64>) -> (PathBuf, Hub) {
    let data = std::env::temp_dir().join(format!("dunlin-{}-{test}", std::process::id()));
    let (threads, log, listen) = (1, Log::Quiet, Vec::new());
    let config =
        Config { data: data.clone(), threads, log, listen, memory_limit, ..Config::default() };
    let disk = crate::server::open_disk(&config, usize::MAX).unwrap();
    (data, crate::server::build(&config, disk).unwrap())
}

/// What the housekeeper would do.
pub(crate) fn keep_house(hub: &Hub) {
    let disk = hub.disk.as_ref().unwrap();
    let mut core = hub.lock();
    core.poll_chore(hub.clock.now());
    while let Some(chore) = core.take_chore() {
        hub.complete_chore(&mut core, chore.perform(disk)).unwrap();
        core.poll_chore(hub.clock.now());
    }
}

/// What the committers would do.
pub(crate) fn write_all(hub: &Hub) {
    hub.hand_over(&mut hub.lock());
    while write_handed(hub) > 0 {
        hub.hand_over(&mut hub.lock());
    }
}

/// Writes what was left to the committers; gives the number of writes.
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
