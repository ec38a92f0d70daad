//! Replaying a log into an engine.

use engine::{Engine, EngineOptions};
use journal::{Disk, Journal, OpenError, Recover, Recovered, Repair};
use model::{BrokerStatistics, Lsn, Nanos};

use crate::BrokerOptions;

/// The findings of recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The files and frames that were read.
    pub log: Recovered,
    /// The state that came of it.
    pub statistics: BrokerStatistics,
    /// Commits that a crash cut off: nothing of them took effect.
    pub commits_cut: u64,
    /// The latest time in the log: the engine's clock goes on from here at least.
    pub latest: Nanos,
}

/// Reads a log without changing anything and replays it into an engine that is thrown away. Reports
/// bytes that were read.
///
/// # Errors
/// [`OpenError`]: its bytes are not as they were written.
pub fn verify<D: Disk>(
    disk: &D,
    options: BrokerOptions,
    read: &mut dyn FnMut(usize),
) -> Result<Recovery, OpenError> {
    let mut replay = Replay::new(Engine::new(options.engine), read);
    let log = journal::verify(disk, &mut replay)?;
    Ok(replay.recovery(log))
}

/// The finding of a [`repair`].
#[derive(Clone, Debug)]
pub struct Repaired {
    /// The fault, and the frames that are gone.
    pub repair: Repair,
    /// The messages that are left.
    pub statistics: BrokerStatistics,
}

/// Reports the loss of going on without the missing files, and goes on if `accept_loss`; see
/// [`journal::repair`]. Reports bytes that were read.
///
/// # Errors
/// [`OpenError`]: more is wrong than can be repaired, and nothing was changed; or the disk failed.
pub fn repair<D: Disk>(
    disk: &D,
    options: BrokerOptions,
    accept_loss: bool,
    read: &mut dyn FnMut(usize),
) -> Result<Repaired, OpenError> {
    let mut replay = Replay::new(Engine::new(options.engine), read);
    let repair = journal::repair(disk, accept_loss, &mut replay)?;
    Ok(Repaired { statistics: replay.engine.statistics(), repair })
}

pub(crate) fn recover<D: Disk>(
    disk: &D,
    options: BrokerOptions,
) -> Result<(Engine, Journal<D::File>, Recovery), OpenError> {
    let frame_bytes_max = options.journal.frame_payload_bytes_max;
    let spills = options.journal.spill_bytes_max > 0;
    let engine = EngineOptions { frame_bytes_max, spills, ..options.engine };
    let read = &mut |_| {};
    let mut replay = Replay::new(Engine::new(engine), read);
    let (journal, log) = Journal::open(disk, options.journal, &mut replay)?;
    let recovery = replay.recovery(log);
    Ok((replay.engine, journal, recovery))
}

pub(crate) struct Replay<'r> {
    engine: Engine,
    /// Is told of bytes that were read.
    read: &'r mut dyn FnMut(usize),
}

impl<'r> Replay<'r> {
    pub(crate) const fn new(engine: Engine, read: &'r mut dyn FnMut(usize)) -> Self {
        Self { engine, read }
    }

    pub(crate) const fn engine(&self) -> &Engine {
        &self.engine
    }

    fn recovery(&self, log: Recovered) -> Recovery {
        let latest = self.engine.latest_time().max(log.latest);
        let commits_cut = self.engine.chains_cut();
        Recovery { log, statistics: self.engine.statistics(), commits_cut, latest }
    }
}

impl Recover for Replay<'_> {
    fn load(&mut self, chunk: &[u8]) -> Result<(), String> {
        (self.read)(chunk.len());
        self.engine.load(chunk).map_err(|error| error.to_string())
    }

    fn replay(&mut self, lsn: Lsn, payload: &[u8], fuzzy: bool) -> Result<(), String> {
        (self.read)(payload.len());
        self.engine.replay(lsn, payload, fuzzy).map_err(|error| error.to_string())
    }

    fn wanted(&self) -> Vec<Lsn> {
        // A frame may have many messages: one is enough to name it.
        let mut last = None;
        let frames = self.engine.live().map(|(lsn, _)| lsn);
        frames.filter(|lsn| last.replace(*lsn) != Some(*lsn)).collect()
    }

    fn restore(&mut self, lsn: Lsn, payload: &[u8]) -> Result<(), String> {
        (self.read)(payload.len());
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
