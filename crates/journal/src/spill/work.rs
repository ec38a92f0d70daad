//! The work on the disk for the spill, and the bytes of a record:
//!
//! ```text
//! 0 4 body bytes   4 4 CRC of the place (8 bytes) and the body   8 … body, padded to 64 bytes
//! ```

use std::sync::Arc;

use crate::format::u32_at;
use crate::spill::place::{FileNumber, UNIT_BYTES};
use crate::{BLOCK_BYTES, Disk, DiskError, DiskErrorKind, SpillPlace, WriteMode};

/// Bodies to be written.
#[derive(Debug)]
pub struct SpillWrite<F> {
    pub(crate) parts: Vec<Part<F>>,
    pub(crate) places: Vec<SpillPlace>,
}

/// Bodies that follow each other in one file.
#[derive(Debug)]
pub(crate) struct Part<F> {
    pub(crate) number: FileNumber,
    /// `None`: it is to be made.
    pub(crate) file: Option<F>,
    pub(crate) records: Vec<(SpillPlace, Arc<[u8]>)>,
}

/// Bodies that were written, or not, to be handed to [`crate::Spill::handle_write`].
#[derive(Debug)]
pub struct SpillWriteDone<F> {
    pub(crate) write: SpillWrite<F>,
    /// The files that were made for it.
    pub(crate) result: Result<Vec<(FileNumber, F)>, DiskError>,
}

impl<F: Clone> SpillWrite<F> {
    /// The places of the bodies, in the order in which they were put.
    #[must_use]
    pub fn places(&self) -> &[SpillPlace] {
        &self.places
    }

    /// Does it; blocks as long as the disk does. A failed write leaves no file that was made for
    /// it.
    pub fn perform<D: Disk<File = F>>(self, disk: &D) -> SpillWriteDone<F> {
        let mut made = Vec::new();
        let written = self.parts.iter().try_for_each(|part| part.write(disk, &mut made));
        let result = match written {
            Ok(()) => Ok(made),
            Err(error) => Err(unmake(disk, made).err().unwrap_or(error)),
        };
        SpillWriteDone { write: self, result }
    }
}

impl<F: Clone> Part<F> {
    fn write<D: Disk<File = F>>(
        &self,
        disk: &D,
        made: &mut Vec<(FileNumber, F)>,
    ) -> Result<(), DiskError> {
        let file = match &self.file {
            Some(file) => file.clone(),
            None => {
                let file = disk.create(&self.number.file_name())?;
                made.push((self.number, file.clone()));
                file
            }
        };
        let mut from = self.records.first().map_or(0, |(place, _)| place.offset());
        let mut bytes = Vec::new();
        for (place, body) in &self.records {
            assert_eq!(place.number(), self.number, "a part lies in one file");
            assert_eq!(place.offset(), from + bytes.len() as u64, "its records follow each other");
            encode(*place, body, &mut bytes);
            if bytes.len() >= WRITE_BYTES {
                disk.write(&file, from, &bytes, WriteMode::Written)?;
                from += bytes.len() as u64;
                bytes.clear();
            }
        }
        disk.write(&file, from, &bytes, WriteMode::Written)
    }
}

/// An error here is none of a full device.
fn unmake<D: Disk>(disk: &D, made: Vec<(FileNumber, D::File)>) -> Result<(), DiskError> {
    made.into_iter().try_for_each(|(number, _)| {
        let removed = disk.remove(&number.file_name());
        removed.map_err(|error| DiskError { kind: DiskErrorKind::Failed, ..error })
    })
}

/// A body to be read.
#[derive(Debug)]
pub struct SpillFetch<F> {
    pub(crate) place: SpillPlace,
    pub(crate) file: F,
}

/// A body that was read, to be handed to [`crate::Spill::handle_fetch`].
#[derive(Debug)]
pub struct SpillFetchDone {
    pub(crate) place: SpillPlace,
    pub(crate) result: Result<Arc<[u8]>, DiskError>,
}

impl<F: Clone> SpillFetch<F> {
    /// Does it; blocks as long as the disk does.
    pub fn perform<D: Disk<File = F>>(self, disk: &D) -> SpillFetchDone {
        SpillFetchDone { place: self.place, result: self.read(disk) }
    }

    /// With one call, unless the body is long.
    fn read<D: Disk<File = F>>(&self, disk: &D) -> Result<Arc<[u8]>, DiskError> {
        let mut begin = [0; FIRST_READ_BYTES];
        let read = disk.read(&self.file, self.place.offset(), &mut begin)?;
        let begin = begin.get(..read).unwrap_or_default();
        let head = Head::decode(begin).ok_or_else(|| self.rotten())?;
        let behind = begin.get(HEAD_BYTES..).unwrap_or_default();
        if let Some(body) = behind.get(..head.bytes) {
            return self.checked(head, body.into());
        }
        let mut body = vec![0; head.bytes];
        let (there, rest) = body.split_at_mut(behind.len());
        there.copy_from_slice(behind);
        let read = disk.read(&self.file, self.place.offset() + begin.len() as u64, rest)?;
        if read < rest.len() {
            return Err(self.rotten());
        }
        self.checked(head, body.into())
    }

    fn checked(&self, head: Head, body: Arc<[u8]>) -> Result<Arc<[u8]>, DiskError> {
        if crc(self.place, &body) == head.crc { Ok(body) } else { Err(self.rotten()) }
    }

    fn rotten(&self) -> DiskError {
        DiskError {
            kind: DiskErrorKind::Failed,
            operation: "read back",
            file: self.place.number().file_name(),
            cause: format!("byte {} is not what was written", self.place.offset()),
        }
    }
}

/// A file in which nothing is needed any more, to be removed.
#[derive(Debug)]
pub struct SpillRemoval {
    pub(crate) number: FileNumber,
    pub(crate) bytes: u64,
}

/// One that was removed, or not, to be handed to [`crate::Spill::handle_removal`].
#[derive(Debug)]
pub struct SpillRemovalDone {
    pub(crate) bytes: u64,
    pub(crate) result: Result<(), DiskError>,
}

impl SpillRemoval {
    /// Does it; blocks as long as the disk does.
    pub fn perform<D: Disk>(self, disk: &D) -> SpillRemovalDone {
        SpillRemovalDone { bytes: self.bytes, result: disk.remove(&self.number.file_name()) }
    }
}

/// The head before a body.
#[derive(Clone, Copy, Debug)]
struct Head {
    bytes: usize,
    crc: u32,
}

impl Head {
    /// `None` if there is none, or no body is so long.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let length = usize::try_from(u32_at(bytes, 0)?).ok()?;
        let crc = u32_at(bytes, 4)?;
        (length <= super::BODY_BYTES_MAX).then_some(Self { bytes: length, crc })
    }
}

fn encode(place: SpillPlace, body: &[u8], bytes: &mut Vec<u8>) {
    let length = u32::try_from(body.len()).expect("invariant: a body was checked when it was put");
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&crc(place, body).to_le_bytes());
    bytes.extend_from_slice(body);
    bytes.resize(bytes.len().next_multiple_of(UNIT), 0);
}

/// The place is in it, so that a body read at a wrong place is noticed.
fn crc(place: SpillPlace, body: &[u8]) -> u32 {
    let place = std::num::NonZeroU64::from(place).get();
    crc32c::crc32c_append(crc32c::crc32c(&place.to_le_bytes()), body)
}

/// Bytes of the record of a body of so many bytes.
pub(crate) const fn record_bytes(body_bytes: usize) -> u64 {
    ((HEAD_BYTES + body_bytes) as u64).next_multiple_of(UNIT_BYTES)
}

const HEAD_BYTES: usize = 8;
const _: () = assert!(HEAD_BYTES <= UNIT, "the first read has a whole head");
const _: () = assert!(super::BODY_BYTES_MAX <= u32::MAX as usize, "a head tells any length");

const UNIT: usize = UNIT_BYTES as usize;

/// Most bodies are shorter, and the kernel reads a page anyway. No whole block: that might be read
/// past the page cache, and the bodies are in the page cache.
const FIRST_READ_BYTES: usize = BLOCK_BYTES - UNIT;

/// Bodies are copied together up to about so much for one write: a write that relieves memory
/// should not need much itself.
const WRITE_BYTES: usize = 1024 * 1024;
