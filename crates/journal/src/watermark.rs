//! The watermark of a segment: how many bytes its file was made with, and how far batches may be.
//!
//! ```text
//! sector 1 of block 0    0  8 magic "DUNLINWM"   8  8 segment number   16  8 the segment's salt
//!                       24  8 sequence          32  8 salt of the opening
//!                       40  8 made              48  8 reach            56  4 epoch
//!                       60  4 CRC of 0..60
//! ```
//! It is on the device before any batch that ends behind the *reach* of the one before, and before
//! the first batch of the segment. So a segment holds none if its watermark has the sequence 0, and
//! no batch ends behind *reach*: the bytes there need not be read. Another program has cut a file
//! that is shorter than *made*.

use crate::buffer::AlignedBuffer;
use crate::format::{
    DirectoryId, Epoch, Life, SECTOR_BYTES, SegmentNumber, copy_to, push_crc, u32_at, u64_at,
};
use crate::{BLOCK_BYTES, Disk, DiskError, WriteMode};

/// Its offset in a segment: in a sector of its own.
pub(crate) const WATERMARK_AT: usize = 512;

const MAGIC: &[u8; 8] = b"DUNLINWM";
const CRC_AT: usize = 60;

/// A device writes it whole or not at all, and never tears it from the segment's header.
const _: () = assert!(WATERMARK_AT.is_multiple_of(SECTOR_BYTES));
const _: () = assert!(CRC_AT + 4 <= SECTOR_BYTES);
const _: () = assert!(WATERMARK_AT + SECTOR_BYTES <= BLOCK_BYTES);

/// Tells one writing of a watermark from all others of a directory, and of its copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Ascends over the life of the directory; 0: of none.
    pub(crate) sequence: u64,
    /// Drawn by the process that wrote it.
    pub(crate) salt: u64,
}

/// The content of a watermark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Watermark {
    pub(crate) stamp: Stamp,
    /// The epoch of the opening that wrote it.
    pub(crate) epoch: Epoch,
    /// The file has so many bytes at least, all of them written once.
    pub(crate) made: u64,
    /// No batch ends behind it.
    pub(crate) reach: u64,
}

/// Behind it a number for the next note might be missing: no directory comes so far.
pub(crate) const SEQUENCE_MAX: u64 = u64::MAX / 2;

/// A watermark as found, with the life of a segment that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoundWatermark {
    pub(crate) number: SegmentNumber,
    salt: u64,
    pub(crate) watermark: Watermark,
}

impl Watermark {
    /// The watermark of a segment that holds no batch yet and begins its life.
    pub(crate) fn unused(life: Life, made: u64) -> Self {
        let (stamp, reach) = (Stamp::default(), BLOCK_BYTES as u64);
        Self { stamp, epoch: life.epoch(), made, reach }
    }

    /// True if its segment may hold batches.
    pub(crate) const fn is_begun(&self) -> bool {
        self.stamp.sequence > 0
    }

    fn encode(&self, life: Life, block: &mut [u8]) {
        assert!(life.has_watermark(), "segments of older versions are never written to");
        let mut bytes = Vec::with_capacity(CRC_AT + 4);
        bytes.extend_from_slice(MAGIC);
        for number in [
            life.number.0,
            life.salt(),
            self.stamp.sequence,
            self.stamp.salt,
            self.made,
            self.reach,
        ] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&self.epoch.0.to_le_bytes());
        push_crc(&mut bytes, CRC_AT);
        copy_to(block, WATERMARK_AT, &bytes);
    }

    /// The watermark in a segment's first block, `None` unless magic and checksum are right.
    pub(crate) fn decode(block: &[u8]) -> Option<FoundWatermark> {
        let bytes = block.get(WATERMARK_AT..)?;
        let crc_holds = u32_at(bytes, CRC_AT)? == crc32c::crc32c(bytes.get(..CRC_AT)?);
        if bytes.get(..8)? != MAGIC || !crc_holds {
            return None;
        }
        let stamp = Stamp { sequence: u64_at(bytes, 24)?, salt: u64_at(bytes, 32)? };
        let (made, reach) = (u64_at(bytes, 40)?, u64_at(bytes, 48)?);
        let epoch = Epoch(u32_at(bytes, 56)?);
        Some(FoundWatermark {
            number: SegmentNumber(u64_at(bytes, 8)?),
            salt: u64_at(bytes, 16)?,
            watermark: Self { stamp, epoch, made, reach },
        })
    }
}

impl FoundWatermark {
    /// Its content for that life of a segment, `None` if it is of another.
    pub(crate) fn of(&self, life: Life) -> Option<Watermark> {
        let is_own = self.number == life.number && self.salt == life.salt();
        is_own.then_some(self.watermark)
    }
}

/// Writes a segment's first block: its header and its watermark.
///
/// # Errors
/// Any of the disk.
pub(crate) fn write_first_block<D: Disk>(
    disk: &D,
    file: &D::File,
    (life, directory): (Life, DirectoryId),
    watermark: &Watermark,
) -> Result<(), DiskError> {
    let mut block = AlignedBuffer::with_capacity(BLOCK_BYTES);
    block.extend(&[0; BLOCK_BYTES]);
    life.header(directory).encode(block.bytes_mut());
    watermark.encode(life, block.bytes_mut());
    disk.write(file, 0, block.bytes(), WriteMode::Synced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Opening;

    fn life(salt: u64) -> Life {
        let opening = Opening { epoch: Epoch(7), salt, directory: DirectoryId(0xD1) };
        Life::new(SegmentNumber(9), opening)
    }

    #[test]
    fn watermark_decodes_only_for_its_life() {
        let stamp = Stamp { sequence: 5, salt: 0x5A18 };
        let watermark = Watermark { stamp, epoch: Epoch(8), made: 65_536, reach: 32_768 };
        let mut block = [0; BLOCK_BYTES];
        watermark.encode(life(1), &mut block);
        let found = Watermark::decode(&block).unwrap();
        assert_eq!((found.number, found.of(life(1))), (SegmentNumber(9), Some(watermark)));
        assert_eq!(found.of(life(2)), None, "of an earlier life of the file");
        assert!(watermark.is_begun() && !Watermark::unused(life(1), 8_192).is_begun());
        for bit in WATERMARK_AT * 8..(WATERMARK_AT + CRC_AT + 4) * 8 {
            let mut rotten = block;
            rotten[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Watermark::decode(&rotten), None, "bit {bit}");
        }
    }
}
