//! The disk work that the broker hands out: for the log, and for the spill beside it.

use journal::{
    Disk, SpillFetch, SpillFetchDone, SpillRemoval, SpillRemovalDone, SpillWrite, SpillWriteDone,
};

/// A piece of housekeeping.
#[derive(Debug)]
pub enum Chore<F> {
    /// The log's.
    Log(journal::LogChore<F>),
    /// Bodies leave memory.
    Spill(SpillWrite<F>),
    /// Bodies are read that are to lie elsewhere in the spill.
    SpillMove(Vec<SpillFetch<F>>),
    /// A file in which nothing is needed any more goes.
    Removal(SpillRemoval),
}

/// One that was performed.
#[derive(Debug)]
pub enum ChoreDone<F> {
    /// The log's.
    Log(journal::LogChoreDone<F>),
    /// Bodies left memory, or not.
    Spill(SpillWriteDone<F>),
    /// Bodies were read.
    SpillMove(Vec<SpillFetchDone>),
    /// A file went, or not.
    Removal(SpillRemovalDone),
}

impl<F: Clone> Chore<F> {
    /// Does it; blocks as long as the disk does.
    pub fn perform<D: Disk<File = F>>(self, disk: &D) -> ChoreDone<F> {
        match self {
            Self::Log(chore) => ChoreDone::Log(chore.perform(disk)),
            Self::Spill(write) => ChoreDone::Spill(write.perform(disk)),
            Self::SpillMove(fetches) => {
                ChoreDone::SpillMove(fetches.into_iter().map(|it| it.perform(disk)).collect())
            }
            Self::Removal(removal) => ChoreDone::Removal(removal.perform(disk)),
        }
    }
}

/// Something to be read back.
#[derive(Debug)]
pub enum Fetch<F> {
    /// A piece of the log.
    Log(journal::LogFetch<F>),
    /// Bodies from the spill.
    Spill(Vec<SpillFetch<F>>),
}

/// The result of reading back.
#[derive(Debug)]
pub enum FetchDone<F> {
    /// A piece of the log.
    Log(journal::LogFetchDone<F>),
    /// Bodies from the spill.
    Spill(Vec<SpillFetchDone>),
}

impl<F: Clone> Fetch<F> {
    /// Does it; blocks as long as the disk does.
    pub fn perform<D: Disk<File = F>>(self, disk: &D) -> FetchDone<F> {
        match self {
            Self::Log(fetch) => FetchDone::Log(fetch.perform(disk)),
            Self::Spill(fetches) => {
                FetchDone::Spill(fetches.into_iter().map(|fetch| fetch.perform(disk)).collect())
            }
        }
    }
}
