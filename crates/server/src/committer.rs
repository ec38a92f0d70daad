//! The threads that write the journal when no reactor does, and the one that performs its chores.
//!
//! Two committers, because two durable writes in flight pass nearly twice the data of one. Each
//! write is a batch of the frames that accumulated while the earlier writes were in flight.

use crate::Failure;
use crate::hub::Hub;
use crate::rounds::Rounds;

/// Committers of a server; the broker hands out no more writes at once.
pub(crate) const COMMITTERS: usize = 2;

/// Writes until the server ends: take a batch, write and sync it, publish how durable the log is.
pub(crate) fn commit(hub: &Hub) {
    let Some(disk) = &hub.disk else { return };
    let mut core = hub.lock();
    while let Some((locked, transfer)) = hub.wait_for_write(core) {
        drop(locked);
        let result = transfer.write.perform(disk);
        core = hub.lock();
        if let Err(failed) = hub.complete(&mut core, transfer, result) {
            drop(core);
            return hub.fail(Failure::Journal(failed.to_string()));
        }
    }
}

/// Reads paged-out bodies back until the server ends.
pub(crate) fn read_back(hub: &Hub) {
    let Some(disk) = &hub.disk else { return };
    let mut core = hub.lock();
    while let Some((locked, fetch)) = hub.wait_for_fetch(core) {
        drop(locked);
        let done = fetch.perform(disk);
        core = hub.lock();
        if let Err(failed) = hub.complete_fetch(&mut core, done) {
            drop(core);
            return hub.fail(Failure::Journal(failed.to_string()));
        }
    }
}

/// Does the journal's chores one after the other until the server ends: filling segments ahead,
/// snapshots, compaction. Between them it makes its rounds.
pub(crate) fn run_chores(hub: &Hub) {
    let Some(disk) = &hub.disk else { return };
    let mut rounds = Rounds::default();
    let mut core = hub.lock();
    while let Some((locked, chore)) = hub.wait_for_chore(core, rounds.next()) {
        drop(locked);
        let done = chore.map(|chore| chore.perform(disk));
        let round = rounds.make(hub, disk);
        core = hub.lock();
        let kept = done.map_or(Ok(()), |done| hub.complete_chore(&mut core, done));
        let round = round.map_err(|cause| core.broker.fail_beside(cause));
        if let Err(failed) = kept.and(round) {
            drop(core);
            return hub.fail(Failure::Journal(failed.to_string()));
        }
    }
}
