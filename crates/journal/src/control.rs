//! The control file, named `epoch`: how often the directory was opened, and where its log goes on.
//!
//! ```text
//!  0  8 magic "DUNLINEP"    8  4 version    12  4 epoch    16  8 directory
//! 24  8 segment            32  8 sequence   40  8 salt     48  8 synced    56  4 CRC of 0..56
//! ```
//! *segment* is the one in which the log goes on: the highest begun, 0 if none is. Sequence and
//! salt are those of its watermark when this was written, right after the watermark. Before version
//! 3 the file was `0 4 epoch, 4 4 CRC of 0..4`.

use model::Lsn;

use crate::buffer::AlignedBuffer;
use crate::format::{
    DirectoryId, Epoch, FORMAT_VERSION, SECTOR_BYTES, SegmentNumber, copy_to, push_crc, u32_at,
    u64_at,
};
use crate::watermark::Stamp;
use crate::{BLOCK_BYTES, Disk, DiskError, OpenError, WriteMode};

/// Its name.
pub(crate) const CONTROL_NAME: &str = "epoch";

const MAGIC: &[u8; 8] = b"DUNLINEP";
const CRC_AT: usize = 56;
const OLD_BYTES: usize = 8;

/// A device writes it whole or not at all.
const _: () = assert!(CRC_AT + 4 <= SECTOR_BYTES);

/// The content of the control file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Control {
    pub(crate) epoch: Epoch,
    pub(crate) directory: DirectoryId,
    pub(crate) segment: SegmentNumber,
    pub(crate) stamp: Stamp,
    /// Every frame up to here was on the device when it was written.
    pub(crate) synced: Lsn,
}

/// The state in which a control file is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoundControl {
    /// There is no such file.
    Missing,
    /// Nothing was written to it yet.
    Empty,
    /// One of a version before 3.
    Old(Epoch),
    /// A whole one.
    Whole(Control),
    /// Something else.
    Corrupt,
}

impl FoundControl {
    /// The highest epoch that it knows.
    pub(crate) fn epoch(&self) -> Epoch {
        match self {
            Self::Missing | Self::Empty | Self::Corrupt => Epoch::default(),
            Self::Old(epoch) => *epoch,
            Self::Whole(control) => control.epoch,
        }
    }

    /// The content of a whole one.
    pub(crate) fn whole(&self) -> Option<Control> {
        if let Self::Whole(control) = self { Some(*control) } else { None }
    }
}

impl Control {
    fn encode(&self) -> AlignedBuffer {
        let mut bytes = Vec::with_capacity(CRC_AT + 4);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.epoch.0.to_le_bytes());
        for number in
            [self.directory.0, self.segment.0, self.stamp.sequence, self.stamp.salt, self.synced.0]
        {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        push_crc(&mut bytes, CRC_AT);
        let mut block = AlignedBuffer::with_capacity(BLOCK_BYTES);
        block.extend(&[0; BLOCK_BYTES]);
        copy_to(block.bytes_mut(), 0, &bytes);
        block
    }

    /// Version and content, `None` unless magic and checksum are right.
    fn decode(bytes: &[u8]) -> Option<(u32, Self)> {
        let crc_holds = u32_at(bytes, CRC_AT)? == crc32c::crc32c(bytes.get(..CRC_AT)?);
        if bytes.get(..8)? != MAGIC || !crc_holds {
            return None;
        }
        let control = Self {
            epoch: Epoch(u32_at(bytes, 12)?),
            directory: DirectoryId(u64_at(bytes, 16)?),
            segment: SegmentNumber(u64_at(bytes, 24)?),
            stamp: Stamp { sequence: u64_at(bytes, 32)?, salt: u64_at(bytes, 40)? },
            synced: Lsn(u64_at(bytes, 48)?),
        };
        Some((u32_at(bytes, 8)?, control))
    }

    /// Writes it to the device.
    ///
    /// # Errors
    /// Any of the disk.
    pub(crate) fn write<D: Disk>(&self, disk: &D, file: &D::File) -> Result<(), DiskError> {
        disk.write(file, 0, self.encode().bytes(), WriteMode::Synced)
    }
}

/// Reads the control file; gives the file too if there is one.
///
/// # Errors
/// The disk failed, or a newer program wrote it.
pub(crate) fn read_control<D: Disk>(
    disk: &D,
    names: &[String],
) -> Result<(FoundControl, Option<D::File>), OpenError> {
    if !names.iter().any(|name| name == CONTROL_NAME) {
        return Ok((FoundControl::Missing, None));
    }
    let file = disk.open(CONTROL_NAME)?;
    let mut bytes = [0; BLOCK_BYTES];
    let read = disk.read(&file, 0, &mut bytes)?;
    let bytes = bytes.get(..read).unwrap_or_default();
    let found = match Control::decode(bytes) {
        Some((FORMAT_VERSION, control)) => FoundControl::Whole(control),
        Some((found, _)) => return Err(OpenError::Version { file: CONTROL_NAME.into(), found }),
        None if bytes.iter().all(|byte| *byte == 0) => FoundControl::Empty,
        None => old_epoch(bytes).map_or(FoundControl::Corrupt, FoundControl::Old),
    };
    Ok((found, Some(file)))
}

fn old_epoch(bytes: &[u8]) -> Option<Epoch> {
    let epoch = u32_at(bytes, 0).filter(|_| bytes.len() == OLD_BYTES)?;
    (u32_at(bytes, 4)? == crc32c::crc32c(bytes.get(..4)?)).then_some(Epoch(epoch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_round_trips_and_detects_flips() {
        let control = Control {
            epoch: Epoch(3),
            directory: DirectoryId(0xD1),
            segment: SegmentNumber(12),
            stamp: Stamp { sequence: 9, salt: 0x5A17 },
            synced: Lsn(1_000),
        };
        let block = control.encode().bytes().to_vec();
        assert_eq!(Control::decode(&block), Some((FORMAT_VERSION, control)));
        for bit in 0..(CRC_AT + 4) * 8 {
            let mut rotten = block.clone();
            rotten[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Control::decode(&rotten), None, "bit {bit}");
            assert_eq!(old_epoch(&rotten), None, "bit {bit}");
        }
    }

    #[test]
    fn old_epoch_is_eight_bytes() {
        let mut bytes = 7_u32.to_le_bytes().to_vec();
        bytes.extend_from_slice(&crc32c::crc32c(&7_u32.to_le_bytes()).to_le_bytes());
        assert_eq!(old_epoch(&bytes), Some(Epoch(7)));
        assert_eq!(old_epoch(&bytes[..7]), None);
        bytes.push(0);
        assert_eq!(old_epoch(&bytes), None);
    }
}
