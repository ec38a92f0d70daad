//! The disk as the journal needs it: one flat directory of files. `dunlin-disk` implements it over
//! the operating system, the simulation over memory with faults.
//!
//! Every call blocks, and any thread that performs the journal's work may call it. The promises of
//! each about a crash are part of its contract: the simulation takes away everything that is not
//! promised.

use std::fmt;

use crate::BLOCK_BYTES;
use crate::buffer::AlignedBuffer;
use crate::pieces::{CheckPiece, FilePart, PIECE_BYTES, PieceReader, TakePiece};

/// How far a write must have come when the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// Handed to the operating system: survives a crash of the process. The process is free to
    /// keep it in the page cache.
    Written,
    /// These bytes are on the device, as with `O_DSYNC`. Says nothing of earlier writes in
    /// [`WriteMode::Written`].
    Synced,
}

/// One directory of files.
///
/// Offsets, lengths and buffers of [`Disk::write`] to a segment are multiples of
/// [`crate::BLOCK_BYTES`], and the buffer is aligned to it. So an implementation may use direct
/// I/O. Errors are final: the journal never repeats a failed write or sync.
pub trait Disk {
    /// An open file. Cloning gives another handle to the same file.
    type File: Clone;

    /// A number that no client can guess, the same as long as this value lives: drawn at
    /// random if clients may be hostile. By it recovery tells the journal's own bytes from those
    /// that clients chose.
    fn salt(&self) -> u64;

    /// The names of all files in the directory, in no particular order.
    ///
    /// # Errors
    /// Any the device reports.
    fn names(&self) -> Result<Vec<String>, DiskError>;

    /// Creates an empty file that must not exist. Its name survives a power cut only after
    /// [`Disk::sync_directory`].
    ///
    /// # Errors
    /// Any the device reports. A device that reports to be full has made nothing.
    fn create(&self, name: &str) -> Result<Self::File, DiskError>;

    /// Opens an existing file.
    ///
    /// # Errors
    /// Any the device reports.
    fn open(&self, name: &str) -> Result<Self::File, DiskError>;

    /// The length of a file in bytes.
    ///
    /// # Errors
    /// Any the device reports.
    fn length(&self, file: &Self::File) -> Result<u64, DiskError>;

    /// Reads from `offset` on until the buffer is full or the file ends; returns the bytes read.
    ///
    /// # Errors
    /// Any the device reports.
    fn read(&self, file: &Self::File, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError>;

    /// Says that so many bytes of a file will be read soon, from `offset` on: a hint that may be
    /// ignored.
    fn expect_read(&self, _file: &Self::File, _offset: u64, _bytes: u64) {}

    /// Bytes of a piece of [`Disk::read_pieces`], unless one batch has more.
    fn piece_bytes(&self) -> usize {
        PIECE_BYTES
    }

    /// Reads parts of files one after the other, by [`PieceReader`], and hands each piece to `take`
    /// until that breaks off. An implementation may read and check ahead of `take`, in another
    /// thread, but hold no more than a few pieces in memory.
    ///
    /// # Errors
    /// Any the device reports of a piece that `take` would have been given.
    fn read_pieces(
        &self,
        parts: &[FilePart<Self::File>],
        check: &CheckPiece<'_>,
        take: &mut TakePiece<'_>,
    ) -> Result<(), DiskError> {
        let mut buffer = Vec::new();
        let mut reader = PieceReader::new(parts, check);
        while let Some(at) = reader.read_next(self, &mut buffer)? {
            if take(at.of(&buffer)).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Writes the whole buffer at `offset`, extending the file if it ends before. After an
    /// error any part of it may have been written. A crash may tear it at any 512-byte sector.
    ///
    /// # Errors
    /// Any the device reports, a short write among them; [`DiskErrorKind::Full`] when there is no
    /// room.
    fn write(
        &self,
        file: &Self::File,
        offset: u64,
        buffer: &[u8],
        mode: WriteMode,
    ) -> Result<(), DiskError>;

    /// Makes a file longer, from `from`, where it ends, to `to`, and keeps that room for it: no
    /// later write there finds the device full. It reads as zeros until something is written; its
    /// length survives a power cut only after [`Disk::sync`]. An implementation writes the zeros if
    /// it has nothing better.
    ///
    /// # Errors
    /// Any the device reports; [`DiskErrorKind::Full`] when there is no room: the file may then be
    /// longer than before.
    fn reserve(&self, file: &Self::File, from: u64, to: u64) -> Result<(), DiskError> {
        fill(self, file, from, to)
    }

    /// Makes a file end at `to`, before its present end; the bytes behind go back to the device.
    /// Survives a power cut only after [`Disk::sync`].
    ///
    /// # Errors
    /// Any the device reports.
    fn shorten(&self, file: &Self::File, to: u64) -> Result<(), DiskError>;

    /// Writes zeros over a file from `from` to `to`, multiples of [`crate::BLOCK_BYTES`], which no
    /// read needs soon; as far as [`WriteMode::Written`] goes.
    ///
    /// # Errors
    /// Those of [`Disk::write`].
    fn zero(&self, file: &Self::File, from: u64, to: u64) -> Result<(), DiskError> {
        fill(self, file, from, to)
    }

    /// Flushes everything that was written to the file before the call, and its length, to the
    /// device.
    ///
    /// # Errors
    /// Any the device reports. Bytes unsynced before may then be lost, even if later calls succeed.
    fn sync(&self, file: &Self::File) -> Result<(), DiskError>;

    /// Makes all creations, renamings and removals before the call survive a power cut.
    ///
    /// # Errors
    /// Any the device reports.
    fn sync_directory(&self) -> Result<(), DiskError>;

    /// Gives a file another name that no file has; atomic. Survives a power cut only after
    /// [`Disk::sync_directory`].
    ///
    /// # Errors
    /// Any the device reports.
    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError>;

    /// Removes a file. Survives a power cut only after [`Disk::sync_directory`].
    ///
    /// # Errors
    /// Any the device reports.
    fn remove(&self, name: &str) -> Result<(), DiskError>;
}

/// Zeros written with one call: no more, so that an awaited write gets to the device between two.
const ZEROS_BYTES: usize = 256 * 1024;
const _: () = assert!(ZEROS_BYTES.is_multiple_of(BLOCK_BYTES), "each write is whole blocks");

/// Writes zeros over a file from `from` to `to`.
///
/// # Errors
/// Any of the disk.
pub fn fill<D: Disk + ?Sized>(
    disk: &D,
    file: &D::File,
    from: u64,
    to: u64,
) -> Result<(), DiskError> {
    in_zeros(from, to, |offset, zeros| disk.write(file, offset, zeros, WriteMode::Written))
}

/// Calls `write` with all places from `from` to `to` and zeros for them, in an aligned buffer, a
/// piece at a time.
///
/// # Errors
/// The first of `write`.
pub fn in_zeros<E>(
    from: u64,
    to: u64,
    mut write: impl FnMut(u64, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let bytes_to =
        |offset| usize::try_from(to - offset).map_or(ZEROS_BYTES, |it| it.min(ZEROS_BYTES));
    let zeros = AlignedBuffer::zeroed(bytes_to(from.min(to)));
    let mut offset = from;
    while offset < to {
        let bytes = bytes_to(offset);
        write(offset, zeros.bytes().get(..bytes).unwrap_or_default())?;
        offset += bytes as u64;
    }
    Ok(())
}

/// The kind of an error, as far as the journal decides by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskErrorKind {
    /// No room on the device or in the quota.
    Full,
    /// Everything else.
    Failed,
}

/// A failed call to a [`Disk`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskError {
    /// The kind.
    pub kind: DiskErrorKind,
    /// The operation that failed: `write`, `sync` …
    pub operation: &'static str,
    /// The file, or the directory.
    pub file: String,
    /// The device's error.
    pub cause: String,
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.operation, self.file, self.cause)
    }
}

impl std::error::Error for DiskError {}
