//! A disk with one defect of a careless journal, or of a careless server around it.
//!
//! The oracle must catch each of them; else its silence about the real journal proves nothing.
//! The defects live here, around the real code, so that the real code needs no switch for them.

use std::cell::RefCell;

use journal::{BLOCK_BYTES, Disk, DiskError, WriteMode};

use crate::{FaultyDisk, FaultyFile};

/// A defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// The directory is never synced: a new segment is used before its name is durable.
    SkipsDirectorySync,
    /// Files are never synced.
    SkipsSync,
    /// A write that should be synced is only written.
    WritesWithoutSync,
    /// A write is kept in the process for a while: it is lost with it.
    BuffersWrites,
    /// A failed sync is tried again until it succeeds.
    RetriesSync,
    /// A failed write or sync is taken for a success.
    HidesErrors,
    /// Frames are read without a look at their checksums, so that a torn one counts as whole.
    IgnoresTornTail,
}

/// A faulty disk as a careless caller uses it.
#[derive(Debug)]
pub struct LyingDisk {
    disk: FaultyDisk,
    defect: Defect,
    /// Writes that the process keeps: file, offset, bytes.
    buffered: RefCell<Vec<(FaultyFile, u64, Vec<u8>)>>,
}

impl LyingDisk {
    /// The disk seen through that defect.
    #[must_use]
    pub const fn new(disk: FaultyDisk, defect: Defect) -> Self {
        Self { disk, defect, buffered: RefCell::new(Vec::new()) }
    }

    fn flush(&self) -> Result<(), DiskError> {
        let mut buffered = self.buffered.take().into_iter();
        buffered.try_for_each(|(file, offset, bytes)| {
            self.disk.write(&file, offset, &bytes, WriteMode::Written)
        })
    }

    fn hide(&self, result: Result<(), DiskError>) -> Result<(), DiskError> {
        // A crash is not hidden: the process is gone.
        if self.defect == Defect::HidesErrors && !self.disk.stopped() { Ok(()) } else { result }
    }
}

impl Disk for LyingDisk {
    type File = FaultyFile;

    fn salt(&self) -> u64 {
        self.disk.salt()
    }

    fn piece_bytes(&self) -> usize {
        self.disk.piece_bytes()
    }

    fn names(&self) -> Result<Vec<String>, DiskError> {
        // A process begins, without the writes that the last one kept.
        self.buffered.borrow_mut().clear();
        self.disk.names()
    }

    fn create(&self, name: &str) -> Result<FaultyFile, DiskError> {
        self.disk.create(name)
    }

    fn open(&self, name: &str) -> Result<FaultyFile, DiskError> {
        self.disk.open(name)
    }

    fn length(&self, file: &FaultyFile) -> Result<u64, DiskError> {
        self.disk.length(file)
    }

    fn read(&self, file: &FaultyFile, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        self.flush()?;
        let read = self.disk.read(file, offset, buffer)?;
        if self.defect == Defect::IgnoresTornTail {
            // The first block of a segment holds no batch.
            forge_checksums(buffer, if offset == 0 { BLOCK_BYTES } else { 0 });
        }
        Ok(read)
    }

    fn write(
        &self,
        file: &FaultyFile,
        offset: u64,
        buffer: &[u8],
        mode: WriteMode,
    ) -> Result<(), DiskError> {
        if self.defect == Defect::BuffersWrites && mode == WriteMode::Written {
            self.buffered.borrow_mut().push((file.clone(), offset, buffer.to_vec()));
            let full = self.buffered.borrow().len() > BUFFERED_MAX;
            return if full { self.flush() } else { Ok(()) };
        }
        let lazy = self.defect == Defect::WritesWithoutSync;
        let mode = if lazy { WriteMode::Written } else { mode };
        self.hide(self.disk.write(file, offset, buffer, mode))
    }

    fn shorten(&self, file: &FaultyFile, to: u64) -> Result<(), DiskError> {
        self.flush()?;
        self.disk.shorten(file, to)
    }

    fn sync(&self, file: &FaultyFile) -> Result<(), DiskError> {
        self.flush()?;
        match self.defect {
            Defect::SkipsSync => Ok(()),
            Defect::RetriesSync => self.disk.sync(file).or_else(|_| self.disk.sync(file)),
            _ => self.hide(self.disk.sync(file)),
        }
    }

    fn sync_directory(&self) -> Result<(), DiskError> {
        if self.defect == Defect::SkipsDirectorySync { Ok(()) } else { self.disk.sync_directory() }
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.disk.remove(name)
    }
}

/// Writes that a process keeps which should hand over each.
const BUFFERED_MAX: usize = 2;

/// Gives every frame of a segment, from the batch at `batch` on, the checksum that its bytes have;
/// see docs/reference/file-format.md.
fn forge_checksums(segment: &mut [u8], mut batch: usize) {
    while batch + MARK_BYTES <= segment.len() {
        let is_mark = segment.get(batch + 20) == Some(&1);
        let salt = segment.get(batch + 56..batch + MARK_BYTES).unwrap_or_default().to_vec();
        let frames = if is_mark { number(segment, batch + FRAME_HEADER_BYTES + 12) } else { 0 };
        let mut frame = batch + MARK_BYTES;
        for _ in 0..frames {
            let end = frame + FRAME_HEADER_BYTES + number(segment, frame);
            let Some(checked) = segment.get(frame + 8..end) else { break };
            let crc = crc32c(&[&salt, checked].concat()).to_le_bytes();
            if let Some(place) = segment.get_mut(frame + 4..frame + 8) {
                place.copy_from_slice(&crc);
            }
            frame = end;
        }
        let bytes = if is_mark { number(segment, batch + FRAME_HEADER_BYTES + 8) } else { 0 };
        batch += bytes.next_multiple_of(BLOCK_BYTES).max(BLOCK_BYTES);
    }
}

/// Four bytes, little endian; zero where there are none.
fn number(bytes: &[u8], at: usize) -> usize {
    let four = bytes.get(at..at + 4).unwrap_or_default();
    four.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// CRC-32C bit by bit: slow, short, and not the journal's own.
fn crc32c(bytes: &[u8]) -> u32 {
    let shift = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), shift))
}

const FRAME_HEADER_BYTES: usize = 24;
const MARK_BYTES: usize = FRAME_HEADER_BYTES + 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_is_castagnolis() {
        // The check value of the catalogue of CRCs for "123456789".
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
    }
}
