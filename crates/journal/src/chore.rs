//! Housekeeping that needs the disk: a few calls each, performed beside the traffic.

use model::Lsn;

use crate::format::{DirectoryId, Life, SegmentNumber};
use crate::reach::Note;
use crate::segments::Spare;
use crate::snapshot::{Slot, SnapshotHeader};
use crate::watermark::{Watermark, write_first_block};
use crate::{BLOCK_BYTES, Disk, DiskError, DiskErrorKind, WriteMode};

/// The name of a segment while it is being made: recovery removes it with any content.
pub(crate) const UNFINISHED_NAME: &str = "unfinished.segment";

/// One piece of housekeeping to be performed.
#[derive(Debug)]
pub struct LogChore<F> {
    pub(crate) work: Work<F>,
    /// It would take more room than the log may: it fails as on a full device, untouched.
    pub(crate) refused: bool,
}

/// A performed piece of housekeeping, to be handed back to the journal.
#[derive(Debug)]
pub struct LogChoreDone<F> {
    pub(crate) work: Work<F>,
    pub(crate) result: Result<Product<F>, DiskError>,
}

/// The work of a chore.
#[derive(Debug)]
pub(crate) enum Work<F> {
    /// Make a spare out of a file that is not needed any more, which keeps so many bytes at most,
    /// or out of nothing, with so many.
    Prepare { life: Life, directory: DirectoryId, old: Option<Spare<F>>, bytes: u64 },
    /// Fill more of a segment with zeros.
    Extend { number: SegmentNumber, file: F, from: u64, to: u64 },
    /// Make a snapshot's file longer.
    GrowSlot { slot: Slot, file: F, from: u64, to: u64 },
    /// Write a part of a snapshot.
    WriteChunk { file: F, offset: u64, bytes: Vec<u8>, last: bool },
    /// Sync a snapshot's body, then give it its header.
    Seal { slot: Slot, file: F, header: SnapshotHeader },
    /// Read a part of a segment that is to be compacted.
    Read { number: SegmentNumber, file: F, offset: u64, bytes: usize, expected: Option<Lsn> },
    /// Give the file of a segment that is not needed any more back to the device.
    Remove { spare: Spare<F> },
    /// Let batches be written further.
    Note(Note<F>),
    /// Tell in a spare's first block how many bytes it was made with.
    Label { life: Life, directory: DirectoryId, file: F, made: u64 },
}

/// The result of a chore.
#[derive(Debug)]
pub(crate) enum Product<F> {
    /// Nothing but the deed.
    Done,
    /// A file.
    File(F),
    /// The bytes that were read.
    Bytes(Vec<u8>),
}

impl<F: Clone> LogChore<F> {
    /// Does it; blocks as long as the disk does.
    pub fn perform<D: Disk<File = F>>(self, disk: &D) -> LogChoreDone<F> {
        if self.refused {
            return LogChoreDone { work: self.work, result: Err(over_limit()) };
        }
        let result = match &self.work {
            Work::Prepare { life, directory, old, bytes } => {
                prepare(disk, (*life, *directory), old.as_ref(), *bytes).map(Product::File)
            }
            Work::Extend { file, from, to, .. } => {
                extend(disk, file, *from, *to).map(|()| Product::Done)
            }
            Work::GrowSlot { file, from, to, .. } => {
                grow(disk, file, *from, *to).map(|()| Product::Done)
            }
            Work::WriteChunk { file, offset, bytes, .. } => {
                disk.write(file, *offset, bytes, WriteMode::Written).map(|()| Product::Done)
            }
            Work::Seal { file, header, .. } => seal(disk, file, header).map(|()| Product::Done),
            Work::Read { file, offset, bytes, .. } => {
                read(disk, file, *offset, *bytes).map(Product::Bytes)
            }
            Work::Remove { spare } => {
                disk.remove(&spare.life.number.file_name()).map(|()| Product::Done)
            }
            Work::Note(note) => note.perform(disk).map(|()| Product::Done),
            Work::Label { life, directory, file, made } => {
                let labelled = begin_life(disk, file, (*life, *directory), *made);
                labelled.map_err(never_full).map(|()| Product::Done)
            }
        };
        LogChoreDone { work: self.work, result }
    }
}

/// Makes a segment that may be written up to `bytes`, or as far as the old file was if that is
/// less: one of a time when segments were larger is cut. Its name appears only once it is whole.
///
/// # Errors
/// Any of the disk. A full device leaves no trace; it counts as full only while a file is made
/// anew, since all else writes over existing bytes.
pub(crate) fn prepare<D: Disk>(
    disk: &D,
    place: (Life, DirectoryId),
    old: Option<&Spare<D::File>>,
    bytes: u64,
) -> Result<D::File, DiskError> {
    let (life, _) = place;
    assert!(bytes.is_multiple_of(BLOCK_BYTES as u64), "segments are whole blocks");
    let file = match old {
        Some(old) => {
            assert!(old.life.number < life.number, "each life of a file has a higher number");
            disk.rename(&old.life.number.file_name(), UNFINISHED_NAME).map_err(never_full)?;
            if old.file_bytes > bytes {
                cut(disk, &old.file, bytes)?;
            }
            let (made, _) = old.cut(bytes);
            begin_life(disk, &old.file, place, made).map_err(never_full)?;
            old.file.clone()
        }
        None => make_segment(disk, place, bytes)?,
    };
    disk.rename(UNFINISHED_NAME, &life.number.file_name()).map_err(never_full)?;
    disk.sync_directory().map_err(never_full)?;
    Ok(file)
}

/// Some file systems need room for that too: then the file keeps its length, beside the counted
/// bytes.
fn cut<D: Disk>(disk: &D, file: &D::File, bytes: u64) -> Result<(), DiskError> {
    match disk.shorten(file, bytes) {
        Err(error) if error.kind == DiskErrorKind::Full => Ok(()),
        other => other,
    }
}

/// Finishes a file that a crash interrupted in [`prepare`], so that its room is not given back: on
/// a full device it might be gone for good. `None`: there was too little of it.
///
/// # Errors
/// Any of the disk.
pub(crate) fn finish<D: Disk>(
    disk: &D,
    place: (Life, DirectoryId),
    bytes_min: u64,
) -> Result<Option<u64>, DiskError> {
    // Else a power cut could bring its old name back, and with it a segment without a header.
    disk.sync_directory()?;
    let file = disk.open(UNFINISHED_NAME)?;
    let bytes = disk.length(&file)? / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
    // Its length may tell of blocks that were never written.
    let filled = extend(disk, &file, 0, bytes);
    let full = matches!(&filled, Err(error) if error.kind == DiskErrorKind::Full);
    if full || bytes < bytes_min {
        disk.remove(UNFINISHED_NAME)?;
        return Ok(None);
    }
    filled?;
    begin_life(disk, &file, place, bytes)?;
    disk.rename(UNFINISHED_NAME, &place.0.number.file_name())?;
    Ok(Some(bytes))
}

fn make_segment<D: Disk>(
    disk: &D,
    place: (Life, DirectoryId),
    bytes: u64,
) -> Result<D::File, DiskError> {
    let file = disk.create(UNFINISHED_NAME)?;
    let made = extend(disk, &file, 0, bytes).and_then(|()| begin_life(disk, &file, place, bytes));
    if let Err(error) = made {
        disk.remove(UNFINISHED_NAME).map_err(never_full)?;
        return Err(error);
    }
    Ok(file)
}

/// Gives a file of which so many bytes were written a header by which it holds nothing.
///
/// # Errors
/// Any of the disk.
pub(crate) fn begin_life<D: Disk>(
    disk: &D,
    file: &D::File,
    place: (Life, DirectoryId),
    made: u64,
) -> Result<(), DiskError> {
    write_first_block(disk, file, place, &Watermark::unused(place.0, made))
}

fn over_limit() -> DiskError {
    let (operation, file) = ("make room in", "the journal".into());
    DiskError { kind: DiskErrorKind::Full, operation, file, cause: "it may take no more".into() }
}

/// An error that cannot be waited out: the files are not as they were.
fn never_full(error: DiskError) -> DiskError {
    DiskError { kind: DiskErrorKind::Failed, ..error }
}

/// Fills a file with zeros from `from` to `to` and syncs its length and its blocks. All of them
/// were written then, so a later sync over them touches no metadata of the file system.
///
/// # Errors
/// Any of the disk; full only before anything was synced.
pub(crate) fn extend<D: Disk>(
    disk: &D,
    file: &D::File,
    from: u64,
    to: u64,
) -> Result<(), DiskError> {
    if from >= to {
        return Ok(());
    }
    disk.zero(file, from, to)?;
    // Even for want of room a failed sync is final: it may have lost bytes that others wrote.
    disk.sync(file).map_err(never_full)
}

/// Keeps room for a snapshot. No client waits for its sync, so its blocks need not be written
/// before.
fn grow<D: Disk>(disk: &D, file: &D::File, from: u64, to: u64) -> Result<(), DiskError> {
    assert!(from < to, "a snapshot's file only grows");
    disk.reserve(file, from, to)?;
    disk.sync(file).map_err(never_full)
}

/// The body must be on the device before the header says that it is. No error can be waited out:
/// another try would write other chunks under a header that may be there already.
fn seal<D: Disk>(disk: &D, file: &D::File, header: &SnapshotHeader) -> Result<(), DiskError> {
    disk.sync(file).map_err(never_full)?;
    disk.write(file, 0, &header.encode(), WriteMode::Synced).map_err(never_full)
}

fn read<D: Disk>(
    disk: &D,
    file: &D::File,
    offset: u64,
    bytes: usize,
) -> Result<Vec<u8>, DiskError> {
    assert!(bytes > 0, "a piece has bytes");
    let mut buffer = vec![0; bytes];
    let read = disk.read(file, offset, &mut buffer)?;
    buffer.truncate(read);
    Ok(buffer)
}
