//! The log: format, group commit, recovery and reclaiming, pure over a [`Disk`].
//!
//! A [`Journal`] never touches a disk while it runs. It takes frames to append and hands out the
//! work ([`Write`], [`LogChore`]), which the caller performs on any thread and hands back:
//!
//! ```text
//! append(frame) … -> poll_write -> Write::perform(disk) -> handle_write -> durable()
//!                    poll_chore -> LogChore::perform(disk) -> handle_chore
//!                         fetch -> LogFetch::perform(disk) -> handle_fetch -> frames read back
//! ```
//! Only recovery ([`Journal::open`]) blocks: nothing else runs then.
//!
//! It knows frames of opaque bytes and how many of them still matter, nothing of their meaning.

mod batch;
mod buffer;
mod chain;
mod chore;
mod compaction;
mod control;
mod counters;
mod disk;
mod error;
mod explain;
mod fetch;
mod format;
mod frame_index;
mod gate;
mod housekeeping;
mod inspect;
mod journal;
mod limit;
mod options;
mod pieces;
mod reach;
mod reader;
mod recovery;
mod repair;
mod room;
mod salvage;
mod segment_slice;
mod segments;
mod snapshot;
mod spill;
mod survey;
mod unsynced;
mod walk;
mod watched;
mod watermark;

pub use chain::ChainReadiness;
pub use chore::{LogChore, LogChoreDone};
pub use compaction::OldFrames;
pub use counters::JournalCounters;
pub use disk::{Disk, DiskError, DiskErrorKind, WriteMode, fill, in_zeros};
pub use error::{FileFault, JournalFailed, OpenError};
pub use explain::{KeptFor, SegmentUse, explain};
pub use fetch::{Fetched, LogFetch, LogFetchDone};
pub use format::{FORMAT_VERSION, FRAME_HEADER_BYTES, SegmentNumber};
pub use gate::Gate;
pub use inspect::{DumpEntry, inspect, is_journal_name};
pub use journal::{Journal, Unwritten, Write};
pub use model::Durable;
pub use options::{JournalOptions, SEGMENTS_MIN};
pub use pieces::{CheckPiece, Cut, FilePart, PIECE_BYTES, Piece, PieceAt, PieceReader, TakePiece};
pub use recovery::{Recover, Recovered, verify};
pub use repair::{Repair, repair};
pub use salvage::{Damage, Gap, Remains, TakeFrame};
pub use spill::{
    Spill, SpillCounters, SpillFetch, SpillFetchDone, SpillPlace, SpillRemoval, SpillRemovalDone,
    SpillWrite, SpillWriteDone,
};

/// The unit of writing: batches begin at multiples of it and are padded to it.
pub const BLOCK_BYTES: usize = 4096;
