//! Snapshots: two files that take turns, so that one is always whole.
//!
//! ```text
//! snapshot-a, snapshot-b
//!   block 0   0  8 magic "DUNLINSN"   8  4 version   12  4 epoch   16  8 snapshot number
//!            24  8 begin LSN         32  8 end LSN   40  8 body bytes   48  8 time
//!            56  4 CRC of 0..56
//!   from 4096 chunks   0  4 bytes   4  4 CRC of the snapshot number (8 bytes) and the bytes   8 …
//! ```
//! The header is written last, when the body is synced and the log is synced through `end`. So a
//! snapshot with a header is whole, and what it saw of frames after `begin` is in the log.

use model::{Lsn, Nanos};

use crate::format::{Epoch, FORMAT_VERSION, FORMAT_VERSION_OLDEST, copy_to, u32_at, u64_at};
use crate::{BLOCK_BYTES, Disk, OpenError};

/// The names of the two files.
pub(crate) const SLOT_NAMES: [&str; 2] = ["snapshot-a", "snapshot-b"];

const MAGIC: &[u8; 8] = b"DUNLINSN";
const HEADER_BYTES: usize = 60;
const CHUNK_HEADER_BYTES: usize = 8;

/// One of the two files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Slot {
    #[default]
    A,
    B,
}

impl Slot {
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

/// What a whole snapshot says of itself.
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
}

impl SnapshotHeader {
    /// The first block of the file.
    pub(crate) fn encode(&self) -> [u8; BLOCK_BYTES] {
        let mut block = [0; BLOCK_BYTES];
        copy_to(&mut block, 0, MAGIC);
        copy_to(&mut block, 8, &FORMAT_VERSION.to_le_bytes());
        copy_to(&mut block, 12, &self.epoch.0.to_le_bytes());
        copy_to(&mut block, 16, &self.number.to_le_bytes());
        copy_to(&mut block, 24, &self.begin.0.to_le_bytes());
        copy_to(&mut block, 32, &self.end.0.to_le_bytes());
        copy_to(&mut block, 40, &self.body_bytes.to_le_bytes());
        copy_to(&mut block, 48, &self.time.0.to_le_bytes());
        let (checked, _) = block.split_at(HEADER_BYTES - 4);
        let crc = crc32c::crc32c(checked);
        copy_to(&mut block, HEADER_BYTES - 4, &crc.to_le_bytes());
        block
    }

    /// `None` unless magic and checksum are right; the version comes beside.
    pub(crate) fn decode(block: &[u8]) -> Option<(u32, Self)> {
        let bytes = block.get(..HEADER_BYTES)?;
        let checked = bytes.get(..HEADER_BYTES - 4)?;
        let crc_holds = u32_at(bytes, HEADER_BYTES - 4)? == crc32c::crc32c(checked);
        if bytes.get(..8)? != MAGIC || !crc_holds {
            return None;
        }
        let header = Self {
            epoch: Epoch(u32_at(bytes, 12)?),
            number: u64_at(bytes, 16)?,
            begin: Lsn(u64_at(bytes, 24)?),
            end: Lsn(u64_at(bytes, 32)?),
            body_bytes: u64_at(bytes, 40)?,
            time: Nanos(u64_at(bytes, 48)?),
        };
        Some((u32_at(bytes, 8)?, header))
    }
}

/// A chunk as it lies in the file of snapshot `number`.
pub(crate) fn encode_chunk(number: u64, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("invariant: a chunk is far below 4 GiB");
    let mut chunk = Vec::with_capacity(CHUNK_HEADER_BYTES + bytes.len());
    chunk.extend_from_slice(&length.to_le_bytes());
    chunk.extend_from_slice(&chunk_crc(number, bytes).to_le_bytes());
    chunk.extend_from_slice(bytes);
    chunk
}

/// A whole snapshot read into memory.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) slot: Slot,
    pub(crate) header: SnapshotHeader,
    body: Vec<u8>,
}

impl Snapshot {
    /// The newest of the two that has a header.
    ///
    /// # Errors
    /// When the disk fails, a header is of a newer version, or the body is shorter than it says.
    pub(crate) fn read_newest<D: Disk>(
        disk: &D,
        names: &[String],
    ) -> Result<Option<Self>, OpenError> {
        let mut newest: Option<(Slot, SnapshotHeader, D::File)> = None;
        for slot in [Slot::A, Slot::B] {
            let Some((header, file)) = read_header(disk, slot, names)? else { continue };
            if newest.as_ref().is_none_or(|(_, other, _)| header.number > other.number) {
                newest = Some((slot, header, file));
            }
        }
        let Some((slot, header, file)) = newest else { return Ok(None) };
        let length = usize::try_from(header.body_bytes).unwrap_or(usize::MAX);
        let available = disk.length(&file)?.saturating_sub(BLOCK_BYTES as u64);
        if header.body_bytes > available {
            return Err(corrupt(slot, 0, "the file is shorter than its header says"));
        }
        let mut body = vec![0; length];
        disk.read(&file, BLOCK_BYTES as u64, &mut body)?;
        Ok(Some(Self { slot, header, body }))
    }

    /// Its chunks in order.
    ///
    /// # Errors
    /// At the first that is not what was written.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = Result<&[u8], OpenError>> {
        let mut offset = 0;
        std::iter::from_fn(move || {
            let rest = self.body.get(offset..).filter(|rest| !rest.is_empty())?;
            let at = BLOCK_BYTES + offset;
            let Some(chunk) = decode_chunk(self.header.number, rest) else {
                offset = self.body.len();
                return Some(Err(corrupt(self.slot, at as u64, "a chunk's checksum is wrong")));
            };
            offset += CHUNK_HEADER_BYTES + chunk.len();
            Some(Ok(chunk))
        })
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
    fn header_comes_back_and_every_flipped_bit_is_seen() {
        let header = SnapshotHeader {
            epoch: Epoch(2),
            number: 5,
            begin: Lsn(10),
            end: Lsn(12),
            body_bytes: 999,
            time: Nanos(7),
        };
        let block = header.encode();
        assert_eq!(SnapshotHeader::decode(&block), Some((FORMAT_VERSION, header)));
        for bit in 0..HEADER_BYTES * 8 {
            let mut rotten = block;
            rotten[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SnapshotHeader::decode(&rotten), None, "bit {bit}");
        }
    }

    #[test]
    fn a_chunk_of_another_snapshot_is_none() {
        let chunk = encode_chunk(4, b"hello");
        assert_eq!(decode_chunk(4, &chunk), Some(&b"hello"[..]));
        assert_eq!(decode_chunk(5, &chunk), None);
        assert_eq!(decode_chunk(4, &chunk[..chunk.len() - 1]), None);
    }
}
