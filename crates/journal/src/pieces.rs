//! Reading long files in pieces, each of whole batches as far as they go: so much is in memory and
//! no more, however large the log is.

use std::ops::ControlFlow;

use crate::{BLOCK_BYTES, Disk, DiskError};

/// A part of a file that is to be read.
#[derive(Clone, Debug)]
pub struct FilePart<F> {
    /// The file.
    pub file: F,
    /// The first byte.
    pub from: u64,
    /// Its end; the file may end before.
    pub to: u64,
}

/// The bytes read of a part. The next piece of the part begins where this one ends.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// Index of the part.
    pub part: usize,
    /// Its offset in the file.
    pub offset: u64,
    /// Its bytes, at least one.
    pub bytes: &'a [u8],
    /// How many of these, from the first on, are as they should be: see [`Cut`].
    pub whole: usize,
}

/// The verdict on bytes that were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// How many of them, from the first on, are as they should be.
    pub whole: usize,
    /// The item behind these claims to have so many bytes, more than were read, and cannot be
    /// judged before they are there.
    pub lacks: Option<usize>,
}

/// Looks at bytes before they are taken: index of their part, offset in its file, and the bytes.
pub type CheckPiece<'a> = dyn Fn(usize, u64, &[u8]) -> Cut + Sync + 'a;

/// Takes pieces until it breaks off.
pub type TakePiece<'a> = dyn FnMut(Piece<'_>) -> ControlFlow<()> + 'a;

/// The place of a piece that has its bytes in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceAt {
    part: usize,
    offset: u64,
    whole: usize,
}

impl PieceAt {
    /// The piece.
    #[must_use]
    pub const fn of(self, bytes: &[u8]) -> Piece<'_> {
        let Self { part, offset, whole } = self;
        Piece { part, offset, bytes, whole }
    }
}

/// Cuts parts into pieces. Implementations of [`Disk::read_pieces`] read by it.
pub struct PieceReader<'a, F> {
    parts: &'a [FilePart<F>],
    check: &'a CheckPiece<'a>,
    /// The part that is being read, and where in its file the next piece begins, unless that is
    /// before the part.
    part: usize,
    offset: u64,
}

impl<'a, F> PieceReader<'a, F> {
    /// Begins with the first part.
    pub fn new(parts: &'a [FilePart<F>], check: &'a CheckPiece<'a>) -> Self {
        Self { parts, check, part: 0, offset: 0 }
    }

    /// Reads the next piece into the buffer; `None` behind the last one.
    ///
    /// # Errors
    /// Any of the disk.
    pub fn read_next<D: Disk<File = F> + ?Sized>(
        &mut self,
        disk: &D,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<PieceAt>, DiskError> {
        while let Some(part) = self.parts.get(self.part) {
            let offset = self.offset.max(part.from);
            if offset < part.to {
                let whole = self.read_piece(disk, part, offset, buffer)?;
                if !buffer.is_empty() {
                    let at = PieceAt { part: self.part, offset, whole };
                    self.offset = offset + buffer.len() as u64;
                    return Ok(Some(at));
                }
            }
            self.part += 1;
            self.offset = 0;
        }
        Ok(None)
    }

    /// Reads a piece that begins at `offset`; tells how much of it is whole.
    fn read_piece<D: Disk<File = F> + ?Sized>(
        &self,
        disk: &D,
        part: &FilePart<F>,
        offset: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<usize, DiskError> {
        let left = usize::try_from(part.to - offset).unwrap_or(usize::MAX);
        read_at(disk, &part.file, offset, left.min(disk.piece_bytes()), buffer)?;
        if buffer.is_empty() {
            return Ok(0);
        }
        let next = offset + buffer.len() as u64;
        let soon = part.to.saturating_sub(next).min(disk.piece_bytes() as u64);
        if soon > 0 {
            disk.expect_read(&part.file, next, soon);
        }
        let cut = (self.check)(self.part, offset, buffer);
        assert!(cut.whole <= buffer.len(), "no more is whole than was read");
        match cut {
            Cut { whole: 0, lacks: Some(bytes) } if bytes <= left && bytes > buffer.len() => {
                read_at(disk, &part.file, offset, bytes, buffer)?;
                Ok((self.check)(self.part, offset, buffer).whole)
            }
            // An item that lacks bytes begins the next piece.
            Cut { whole, lacks: Some(_) } if whole > 0 => {
                buffer.truncate(whole);
                Ok(whole)
            }
            Cut { whole, .. } => Ok(whole),
        }
    }
}

/// Replaces the buffer's content by so many bytes of a file, fewer if that ends before.
fn read_at<D: Disk + ?Sized>(
    disk: &D,
    file: &D::File,
    offset: u64,
    bytes: usize,
    buffer: &mut Vec<u8>,
) -> Result<(), DiskError> {
    let is_large = buffer.capacity() > 2 * PIECE_BYTES && bytes <= PIECE_BYTES;
    if bytes > buffer.capacity() || is_large {
        // Zeros from the system: growing a vector would clear bytes that the read overwrites at
        // once.
        *buffer = vec![0; bytes];
    }
    buffer.resize(bytes, 0);
    let read = disk.read(file, offset, buffer)?;
    assert!(read <= bytes, "a disk reads no more than it was asked for");
    buffer.truncate(read);
    Ok(())
}

/// Bytes of a piece if a disk has no other wish.
pub const PIECE_BYTES: usize = 2 * 1024 * 1024;
const _: () = assert!(PIECE_BYTES.is_multiple_of(BLOCK_BYTES), "batches begin at blocks");
