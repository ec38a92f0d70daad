//! Snapshots: two files that take turns, so that one is always whole.
//!
//! ```text
//! snapshot-a, snapshot-b
//!   block 0   0  8 magic "DUNLINSN"   8  4 version   12  4 epoch   16  8 snapshot number
//!            24  8 begin LSN         32  8 end LSN   40  8 body bytes   48  8 time
//!            56  4 CRC of 0..56      60  8 directory  68  4 CRC of 0..68
//!   from 4096 chunks   0  4 bytes   4  4 CRC of the snapshot number (8 bytes) and the bytes   8 …
//! ```
//! The header is written last, when the body is synced and the log is synced through `end`. So a
//! snapshot with a header is whole. The frames after `begin` that have effects in it are in the
//! log.

use model::{Lsn, Nanos};

use crate::format::{
    DirectoryId, Epoch, FORMAT_VERSION, FORMAT_VERSION_OLDEST, SECTOR_BYTES,
    VERSION_OF_DIRECTORIES, copy_to, crc_holds, u32_at, u64_at,
};
use crate::salvage::sums::Sums;
use crate::{BLOCK_BYTES, Disk, DiskError, OpenError};

/// The names of the two files.
pub(crate) const SLOT_NAMES: [&str; 2] = ["snapshot-a", "snapshot-b"];

const MAGIC: &[u8; 8] = b"DUNLINSN";
/// The offset in a header of the CRC that all versions have.
const CRC_AT: usize = 56;
/// Offset of the CRC of a whole header, the fields of version 3 included.
const CRC_WHOLE_AT: usize = 68;
const CHUNK_HEADER_BYTES: usize = 8;

/// A device writes the header whole or not at all.
const _: () = assert!(CRC_WHOLE_AT + 4 <= SECTOR_BYTES);

/// Bytes read of a snapshot at a time, unless a chunk is larger.
const PIECE_BYTES: usize = 1024 * 1024;

/// One of the two files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Slot {
    #[default]
    A,
    B,
}

impl Slot {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::B, Self::A];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::A => "snapshot-a",
            Self::B => "snapshot-b",
        }
    }

    pub(crate) fn index(self) -> usize {
        match self {
            Self::A => 0,
            Self::B => 1,
        }
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// The header of a whole snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SnapshotHeader {
    pub(crate) epoch: Epoch,
    pub(crate) number: u64,
    /// It holds the effect of every frame up to here.
    pub(crate) begin: Lsn,
    /// It holds the effect of no frame after this one.
    pub(crate) end: Lsn,
    pub(crate) body_bytes: u64,
    pub(crate) time: Nanos,
    /// `None` in older versions.
    pub(crate) directory: Option<DirectoryId>,
}

impl SnapshotHeader {
    /// Bytes of the file as far as it is written: the header's block and the body.
    pub(crate) const fn file_bytes(&self) -> u64 {
        BLOCK_BYTES as u64 + self.body_bytes
    }

    /// The first block of the file.
    pub(crate) fn encode(&self) -> [u8; BLOCK_BYTES] {
        assert!(self.directory.is_some(), "all files of this version tell of their directory");
        let mut block = [0; BLOCK_BYTES];
        copy_to(&mut block, 0, MAGIC);
        copy_to(&mut block, 8, &FORMAT_VERSION.to_le_bytes());
        copy_to(&mut block, 12, &self.epoch.0.to_le_bytes());
        copy_to(&mut block, 16, &self.number.to_le_bytes());
        copy_to(&mut block, 24, &self.begin.0.to_le_bytes());
        copy_to(&mut block, 32, &self.end.0.to_le_bytes());
        copy_to(&mut block, 40, &self.body_bytes.to_le_bytes());
        copy_to(&mut block, 48, &self.time.0.to_le_bytes());
        let DirectoryId(directory) = self.directory.unwrap_or_default();
        copy_to(&mut block, CRC_AT + 4, &directory.to_le_bytes());
        for at in [CRC_AT, CRC_WHOLE_AT] {
            let (checked, _) = block.split_at(at);
            let crc = crc32c::crc32c(checked);
            copy_to(&mut block, at, &crc.to_le_bytes());
        }
        block
    }

    /// `None` unless magic and checksums are right; of a newer version only the first is looked at.
    /// The version comes beside.
    pub(crate) fn decode(block: &[u8]) -> Option<(u32, Self)> {
        if block.get(..8)? != MAGIC || !crc_holds(block, CRC_AT)? {
            return None;
        }
        let version = u32_at(block, 8)?;
        let is_old = version < VERSION_OF_DIRECTORIES;
        if version == FORMAT_VERSION && !crc_holds(block, CRC_WHOLE_AT)? {
            return None;
        }
        let directory = DirectoryId(u64_at(block, CRC_AT + 4)?);
        let header = Self {
            epoch: Epoch(u32_at(block, 12)?),
            number: u64_at(block, 16)?,
            begin: Lsn(u64_at(block, 24)?),
            end: Lsn(u64_at(block, 32)?),
            body_bytes: u64_at(block, 40)?,
            time: Nanos(u64_at(block, 48)?),
            directory: (!is_old).then_some(directory),
        };
        Some((version, header))
    }
}

/// A chunk as it lies in the file of snapshot `number`.
pub(crate) fn encode_chunk(number: u64, bytes: &[u8]) -> Vec<u8> {
    assert!(number > 0, "snapshots are numbered from 1");
    let length = u32::try_from(bytes.len()).expect("invariant: a chunk is far below 4 GiB");
    let mut chunk = Vec::with_capacity(CHUNK_HEADER_BYTES + bytes.len());
    chunk.extend_from_slice(&length.to_le_bytes());
    chunk.extend_from_slice(&chunk_crc(number, bytes).to_le_bytes());
    chunk.extend_from_slice(bytes);
    chunk
}

/// A whole snapshot.
#[derive(Debug)]
pub(crate) struct Snapshot<F> {
    pub(crate) slot: Slot,
    pub(crate) header: SnapshotHeader,
    /// Bytes of the file.
    pub(crate) bytes: u64,
    file: F,
}

impl<F> Snapshot<F> {
    /// Those of the two that have a header, the newest last.
    ///
    /// # Errors
    /// When the disk fails, or a header is of a newer version.
    pub(crate) fn find_all<D: Disk<File = F>>(
        disk: &D,
        names: &[String],
    ) -> Result<Vec<Self>, OpenError> {
        let mut found = Vec::new();
        for slot in Slot::ALL {
            found.extend(Self::find(disk, slot, names)?);
        }
        found.sort_by_key(|snapshot| snapshot.header.number);
        Ok(found)
    }

    /// The one in that slot, if it has a header.
    ///
    /// # Errors
    /// As of [`Snapshot::find_all`].
    pub(crate) fn find<D: Disk<File = F>>(
        disk: &D,
        slot: Slot,
        names: &[String],
    ) -> Result<Option<Self>, OpenError> {
        let Some((header, file)) = read_header(disk, slot, names)? else { return Ok(None) };
        let bytes = disk.length(&file)?;
        Ok(Some(Self { slot, header, bytes, file }))
    }

    /// Hands over its chunks in their order.
    ///
    /// # Errors
    /// If the disk fails, at the first chunk that is not as it was written, and the errors of
    /// `take`.
    pub(crate) fn each_chunk<D: Disk<File = F>>(
        &self,
        disk: &D,
        mut take: impl FnMut(&[u8]) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        let SnapshotHeader { number, body_bytes, .. } = self.header;
        let mut body = Body::new(body_bytes, PIECE_BYTES, |offset, piece| {
            disk.read(&self.file, BLOCK_BYTES as u64 + offset, piece)
        });
        let mut offset = 0;
        while offset < body_bytes {
            let Some(chunk) = decode_chunk(number, body.chunk_at(offset)?) else {
                let at = BLOCK_BYTES as u64 + offset;
                return Err(corrupt(self.slot, at, "a chunk's checksum is wrong"));
            };
            take(chunk)?;
            offset += (CHUNK_HEADER_BYTES + chunk.len()) as u64;
        }
        Ok(())
    }
}

impl<F> Snapshot<F> {
    /// Its file.
    pub(crate) fn file(&self) -> &F {
        &self.file
    }

    /// Hands over the chunks that are as they were written, and `None` for each stretch between
    /// them. `file` holds the remains of the file.
    pub(crate) fn each_chunk_left(&self, file: &[u8], take: &mut dyn FnMut(Option<&[u8]>)) {
        let SnapshotHeader { number, body_bytes, .. } = self.header;
        let made = usize::try_from(body_bytes).unwrap_or(usize::MAX);
        let body = file.get(BLOCK_BYTES..).unwrap_or_default();
        let end = made.min(body.len());
        let (seed, sums) = (crc32c::crc32c(&number.to_le_bytes()), Sums::of(body));
        let (mut at, mut is_lost) = (0, false);
        while let Some(header) = body.get(at..end).and_then(|it| it.get(..CHUNK_HEADER_BYTES)) {
            let bytes = u32_at(header, 0).and_then(|bytes| usize::try_from(bytes).ok());
            let from = at + CHUNK_HEADER_BYTES;
            let to = bytes.and_then(|bytes| from.checked_add(bytes)).filter(|to| *to <= end);
            let sum = to.and_then(|to| sums.append(seed, from..to));
            match to.and_then(|to| body.get(from..to)).filter(|_| sum == u32_at(header, 4)) {
                Some(chunk) => {
                    if std::mem::take(&mut is_lost) {
                        take(None);
                    }
                    take(Some(chunk));
                    at = from + chunk.len();
                }
                None => {
                    is_lost = true;
                    at += 1;
                }
            }
        }
        if is_lost || end < made || at < end {
            take(None);
        }
    }
}

/// The body of a snapshot, of which a piece is in memory.
struct Body<Read> {
    /// Reads from a place in it until the buffer is full.
    read: Read,
    bytes: u64,
    piece_bytes: usize,
    /// The piece, and where it begins.
    piece: Vec<u8>,
    from: u64,
}

impl<Read: FnMut(u64, &mut [u8]) -> Result<usize, DiskError>> Body<Read> {
    fn new(bytes: u64, piece_bytes: usize, read: Read) -> Self {
        Self { read, bytes, piece_bytes, piece: Vec::new(), from: 0 }
    }

    /// The chunk at `offset` with its header, unless it claims to be longer than the rest.
    fn chunk_at(&mut self, offset: u64) -> Result<&[u8], DiskError> {
        let header = self.part(offset, CHUNK_HEADER_BYTES)?;
        let length = u32_at(header, 0).and_then(|length| usize::try_from(length).ok());
        let length = length.map_or(usize::MAX, |length| length.saturating_add(CHUNK_HEADER_BYTES));
        if length as u64 > self.bytes - offset {
            return Ok(&[]);
        }
        self.part(offset, length)
    }

    /// `bytes` bytes from `offset` on, fewer if the body ends.
    fn part(&mut self, offset: u64, bytes: usize) -> Result<&[u8], DiskError> {
        let left = usize::try_from(self.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let bytes = bytes.min(left);
        let here = offset.checked_sub(self.from).and_then(|at| usize::try_from(at).ok());
        let here = here.filter(|at| at.saturating_add(bytes) <= self.piece.len());
        let at = match here {
            Some(at) => at,
            None => {
                self.piece.resize(bytes.max(self.piece_bytes).min(left), 0);
                let read = (self.read)(offset, &mut self.piece)?;
                self.piece.truncate(read);
                self.from = offset;
                0
            }
        };
        Ok(self.piece.get(at..at.saturating_add(bytes)).unwrap_or_default())
    }
}

fn read_header<D: Disk>(
    disk: &D,
    slot: Slot,
    names: &[String],
) -> Result<Option<(SnapshotHeader, D::File)>, OpenError> {
    if !names.iter().any(|name| name == slot.name()) {
        return Ok(None);
    }
    let file = disk.open(slot.name())?;
    let mut block = [0; BLOCK_BYTES];
    let read = disk.read(&file, 0, &mut block)?;
    match SnapshotHeader::decode(block.get(..read).unwrap_or_default()) {
        Some((FORMAT_VERSION_OLDEST..=FORMAT_VERSION, header)) => Ok(Some((header, file))),
        Some((found, _)) => Err(OpenError::Version { file: slot.name().into(), found }),
        None => Ok(None),
    }
}

fn decode_chunk(number: u64, bytes: &[u8]) -> Option<&[u8]> {
    let length = usize::try_from(u32_at(bytes, 0)?).ok()?;
    let end = CHUNK_HEADER_BYTES.checked_add(length)?;
    let chunk = bytes.get(CHUNK_HEADER_BYTES..end)?;
    (u32_at(bytes, 4)? == chunk_crc(number, chunk)).then_some(chunk)
}

fn chunk_crc(number: u64, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), bytes)
}

fn corrupt(slot: Slot, offset: u64, cause: &str) -> OpenError {
    OpenError::Corrupt { file: slot.name().into(), offset, cause: cause.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshot_header_round_trips_detects_flips() {
        let header = SnapshotHeader {
            epoch: Epoch(2),
            number: 5,
            begin: Lsn(10),
            end: Lsn(12),
            body_bytes: 999,
            time: Nanos(7),
            directory: Some(DirectoryId(0xD1)),
        };
        let block = header.encode();
        assert_eq!(SnapshotHeader::decode(&block), Some((FORMAT_VERSION, header)));
        for bit in 0..(CRC_WHOLE_AT + 4) * 8 {
            let mut rotten = block;
            rotten[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SnapshotHeader::decode(&rotten), None, "bit {bit}");
        }
    }

    #[test]
    fn chunk_of_another_snapshot_is_none() {
        let chunk = encode_chunk(4, b"hello");
        assert_eq!(decode_chunk(4, &chunk), Some(&b"hello"[..]));
        assert_eq!(decode_chunk(5, &chunk), None);
        assert_eq!(decode_chunk(4, &chunk[..chunk.len() - 1]), None);
    }

    /// For any size of a piece, and any begin of chunks in it. A chunk that claims to be longer
    /// than the body allocates no memory for itself.
    #[test]
    fn chunks_come_piece_by_piece() {
        let chunks: Vec<_> = (0..9_u8).map(|of| vec![of; usize::from(of) * 7]).collect();
        let whole: Vec<u8> = chunks.iter().flat_map(|chunk| encode_chunk(3, chunk)).collect();
        for piece_bytes in 1..whole.len() + 2 {
            let mut body = Body::new(whole.len() as u64, piece_bytes, |offset, piece| {
                piece.copy_from_slice(&whole[offset as usize..][..piece.len()]);
                Ok(piece.len())
            });
            let mut offset = 0;
            for chunk in &chunks {
                let found = decode_chunk(3, body.chunk_at(offset).unwrap());
                assert_eq!(found, Some(&chunk[..]), "pieces of {piece_bytes}");
                offset += (CHUNK_HEADER_BYTES + chunk.len()) as u64;
            }
            assert_eq!(offset, whole.len() as u64);
            let inside = whole.len() as u64 - 20;
            assert_eq!(decode_chunk(3, body.chunk_at(inside).unwrap()), None);
            assert!(body.piece.capacity() <= 2 * whole.len(), "a claim makes no room");
        }
    }

    #[test]
    fn chunk_beyond_file_end_is_none() {
        let whole = encode_chunk(3, &[7; 100]);
        let mut body = Body::new(whole.len() as u64, 64, |offset, piece| {
            let there = whole[offset as usize..].len().min(piece.len()).min(50);
            piece[..there].copy_from_slice(&whole[offset as usize..][..there]);
            Ok(there)
        });
        assert_eq!(decode_chunk(3, body.chunk_at(0).unwrap()), None);
    }
}
