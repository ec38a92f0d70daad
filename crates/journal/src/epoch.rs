//! How often the directory was opened, in a file of its own.

use crate::format::{Epoch, copy_to, u32_at};
use crate::walk::SegmentFile;
use crate::{Disk, DiskError, OpenError, WriteMode};

/// The number of the last opening, from a file of its own: `0 4 epoch, 4 4 CRC of 0..4`.
pub(crate) fn read_epoch<D: Disk>(
    disk: &D,
    names: &[String],
    files: &[SegmentFile<D::File>],
) -> Result<(Epoch, Option<D::File>), OpenError> {
    let corrupt = |cause: &str| {
        let cause = cause.into();
        Err(OpenError::Corrupt { file: EPOCH_NAME.into(), offset: 0, cause })
    };
    // It is on the device before the first frame is.
    let any_frame = files.iter().any(|file| file.first.is_some());
    if !names.iter().any(|name| name == EPOCH_NAME) {
        return match any_frame {
            true => corrupt("it is missing and the log is not empty"),
            false => Ok((Epoch::default(), None)),
        };
    }
    let file = disk.open(EPOCH_NAME)?;
    let mut bytes = [0; 8];
    disk.read(&file, 0, &mut bytes)?;
    let crc_holds = u32_at(&bytes, 4) == Some(crc32c::crc32c(&bytes[..4]));
    match u32_at(&bytes, 0) {
        // The process that created it ended before it wrote to it, and so to anything else.
        _ if bytes == [0; 8] && !any_frame => Ok((Epoch::default(), Some(file))),
        Some(u32::MAX) if crc_holds => corrupt("no number is left for another opening"),
        Some(epoch) if crc_holds => Ok((Epoch(epoch), Some(file))),
        _ => corrupt("the number of openings is not what was written"),
    }
}

pub(crate) fn write_epoch<D: Disk>(
    disk: &D,
    epoch: Epoch,
    file: Option<&D::File>,
) -> Result<(), DiskError> {
    let mut bytes = [0; 8];
    copy_to(&mut bytes, 0, &epoch.0.to_le_bytes());
    let crc = crc32c::crc32c(&epoch.0.to_le_bytes());
    copy_to(&mut bytes, 4, &crc.to_le_bytes());
    let file = match file {
        Some(file) => file.clone(),
        None => disk.create(EPOCH_NAME)?,
    };
    disk.write(&file, 0, &bytes, WriteMode::Synced)
}

/// The file that counts the openings.
pub(crate) const EPOCH_NAME: &str = "epoch";
