//! The bytes of the log. `docs/reference/file-format.md` is the same in prose, with the argument
//! why it is safe.
//!
//! All numbers are little endian. CRC is CRC-32C (Castagnoli).
//!
//! ```text
//! segment file  NNNNNNNNNNNNNNNN.segment (16 decimal digits: its number)
//!   block 0     segment header       0  8 magic "DUNLINSG"    8  4 version    12  4 epoch
//!                                   16  8 segment number     24  8 salt       32  4 CRC of 0..32
//!                                   36  8 directory          44  4 CRC of 0..44
//!               from 512: watermark  see watermark.rs
//!   block 1…    batches, each at a multiple of 4096 and padded with zeros to one
//! batch         a mark frame, then as many change frames as it says
//! frame          0  4 payload bytes  4  4 CRC of the salt and 8..24+payload  8  8 LSN  16  4 epoch
//!               20  1 kind (1 mark, 2 changes)  21  3 zero  24  … payload
//! mark payload   0  8 segment number  8  4 batch bytes  12  4 change frames
//!               16  8 synced LSN     24  8 time (ns since 1970)     32  8 salt
//! ```
//! A mark's LSN is that of the first change frame of its batch (or of the next one to come).
//! Version 2 has no directory and no watermark: the header ends at 36. Version 1 has no salt
//! either: zero in the header, nothing in the CRC, and marks end before it. The header's first 36
//! bytes are the same in all versions, so each tells a newer one from damage.

use model::{Lsn, Nanos};

use crate::BLOCK_BYTES;

/// The version of the format that this code writes and reads.
///
/// To change the format, raise it and describe the new one in docs/reference/file-format.md. Say in
/// an ADR how old journals are read. Add a golden file of the new one and keep those of the old
/// ones.
pub const FORMAT_VERSION: u32 = 3;

/// The oldest version that this code reads. Segments of older ones are read and never written to.
pub(crate) const FORMAT_VERSION_OLDEST: u32 = 1;

/// Bytes before a frame's payload.
pub const FRAME_HEADER_BYTES: usize = 24;

/// Bytes of a mark frame, header and payload.
pub(crate) const MARK_BYTES: usize = FRAME_HEADER_BYTES + MARK_PAYLOAD_BYTES;

pub(crate) const KIND_MARK: u8 = 1;
pub(crate) const KIND_CHANGES: u8 = 2;

const MARK_PAYLOAD_BYTES: usize = 40;
const SALT_BYTES: usize = 8;
/// The offset of the salt in a mark: at its end.
const MARK_SALT_AT: usize = MARK_BYTES - SALT_BYTES;
const SEGMENT_MAGIC: &[u8; 8] = b"DUNLINSG";
/// The offset in a segment's header of the CRC that all versions have.
const SEGMENT_CRC_AT: usize = 32;
/// The offset of the CRC of the whole header.
const SEGMENT_CRC_WHOLE_AT: usize = 44;
/// The first version in which files tell of their directory, and segments have watermarks.
pub(crate) const VERSION_OF_DIRECTORIES: u32 = 3;
const SEGMENT_SUFFIX: &str = ".segment";

/// A device writes so many bytes whole.
pub(crate) const SECTOR_BYTES: usize = 512;

/// The header of every frame must lie in one sector with the mark, or a mark could be torn apart
/// from the batch it announces.
const _: () = assert!(MARK_BYTES <= SECTOR_BYTES);
const _: () = assert!(SEGMENT_CRC_WHOLE_AT + 4 <= SECTOR_BYTES);
const _: () = assert!(BLOCK_BYTES.is_multiple_of(SECTOR_BYTES), "a block is whole sectors");
const _: () = assert!(FORMAT_VERSION_OLDEST <= FORMAT_VERSION);
const _: () = assert!(VERSION_OF_DIRECTORIES <= FORMAT_VERSION);

/// The opening of one process on a journal, counted: frames that a recovery cut off can never be
/// taken for the ones that were written over them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Epoch(pub(crate) u32);

/// The common properties of the segments that one process makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    pub(crate) epoch: Epoch,
    pub(crate) salt: u64,
    pub(crate) directory: DirectoryId,
}

/// Drawn when a directory is made, and in all its files since: it tells them from files that were
/// brought from another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DirectoryId(pub(crate) u64);

/// A segment's number: ascending, never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentNumber(pub u64);

impl SegmentNumber {
    /// The name of its file.
    #[must_use]
    pub fn file_name(self) -> String {
        format!("{:016}{SEGMENT_SUFFIX}", self.0)
    }

    /// The number that a file's name tells, if it is a segment's.
    pub(crate) fn from_file_name(name: &str) -> Option<Self> {
        let digits = name.strip_suffix(SEGMENT_SUFFIX)?;
        if digits.len() != 16 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        digits.parse().ok().map(Self)
    }

    /// The one after it.
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Behind it names would soon have too few digits: no log comes so far.
pub(crate) const SEGMENT_NUMBER_MAX: u64 = 9_000_000_000_000_000;

/// One life of a segment's file, from one header to the next. Its number tells it from the file's
/// other lives, its salt from bytes that clients wrote. Clients choose the bytes of bodies, and
/// bodies stay in a file that is used again, but clients never learn the salt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) number: SegmentNumber,
    version: u32,
    /// The epoch in which it began.
    epoch: Epoch,
    /// `None` in version 1.
    salt: Option<u64>,
    /// The initial CRC of a frame.
    seed: u32,
}

impl Life {
    /// A life that begins now.
    pub(crate) fn new(number: SegmentNumber, opening: Opening) -> Self {
        Self::of(number, &SegmentHeader::new(number, opening))
    }

    /// The life of a file named `number` under a header that may tell of another.
    pub(crate) fn of(number: SegmentNumber, header: &SegmentHeader) -> Self {
        let SegmentHeader { version, epoch, salt, .. } = *header;
        match version {
            FORMAT_VERSION_OLDEST => Self { epoch, ..Self::of_version_1(number) },
            _ => Self { version, epoch, ..Self::salted(number, salt) },
        }
    }

    /// The header of its segment in that directory.
    pub(crate) fn header(self, directory: DirectoryId) -> SegmentHeader {
        let Self { number, version, epoch, salt, .. } = self;
        let salt = salt.unwrap_or_default();
        SegmentHeader { version, epoch, number, salt, directory: Some(directory) }
    }

    /// The life by the mark in the first block, if there is no header: only for people to look at.
    pub(crate) fn of_first_mark(number: SegmentNumber, mark: &[u8]) -> Self {
        let salt = u64_at(mark, MARK_SALT_AT);
        let salted = salt.map(|salt| Self::salted(number, salt));
        let fits = |life: &Self| Mark::decode(mark, *life, usize::MAX).is_some();
        salted.filter(fits).unwrap_or_else(|| Self::of_version_1(number))
    }

    /// True if batches can be added: only in the version that this code writes.
    pub(crate) fn takes_batches(self) -> bool {
        self.version == FORMAT_VERSION
    }

    /// True if its segment has a watermark.
    pub(crate) fn has_watermark(self) -> bool {
        self.version >= VERSION_OF_DIRECTORIES
    }

    /// The epoch in which it began.
    pub(crate) fn epoch(self) -> Epoch {
        self.epoch
    }

    /// The salt that tells its bytes from those of clients; zero in version 1.
    pub(crate) fn salt(self) -> u64 {
        self.salt.unwrap_or_default()
    }

    /// The initial CRC of each of its frames.
    pub(crate) fn seed(self) -> u32 {
        self.seed
    }

    /// Bytes of a mark frame.
    pub(crate) fn mark_bytes(self) -> usize {
        if self.salt.is_some() { MARK_BYTES } else { MARK_SALT_AT }
    }

    fn of_version_1(number: SegmentNumber) -> Self {
        let (version, epoch) = (FORMAT_VERSION_OLDEST, Epoch::default());
        Self { number, version, epoch, salt: None, seed: 0 }
    }

    fn salted(number: SegmentNumber, salt: u64) -> Self {
        let (version, epoch) = (FORMAT_VERSION, Epoch::default());
        let seed = crc32c::crc32c(&salt.to_le_bytes());
        Self { number, version, epoch, salt: Some(salt), seed }
    }
}

/// The first block of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) version: u32,
    pub(crate) epoch: Epoch,
    pub(crate) number: SegmentNumber,
    pub(crate) salt: u64,
    /// `None` in older versions.
    pub(crate) directory: Option<DirectoryId>,
}

impl SegmentHeader {
    /// The header of a life that begins now.
    pub(crate) fn new(number: SegmentNumber, opening: Opening) -> Self {
        let Opening { epoch, salt, directory } = opening;
        Self { version: FORMAT_VERSION, epoch, number, salt, directory: Some(directory) }
    }

    pub(crate) fn encode(self, block: &mut [u8]) {
        assert_eq!(self.version, FORMAT_VERSION, "older segments are never written to");
        assert!(self.directory.is_some(), "all files of this version tell of their directory");
        let mut bytes = Vec::with_capacity(SEGMENT_CRC_WHOLE_AT + 4);
        bytes.extend_from_slice(SEGMENT_MAGIC);
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&self.epoch.0.to_le_bytes());
        bytes.extend_from_slice(&self.number.0.to_le_bytes());
        bytes.extend_from_slice(&self.salt.to_le_bytes());
        push_crc(&mut bytes, SEGMENT_CRC_AT);
        let DirectoryId(directory) = self.directory.unwrap_or_default();
        bytes.extend_from_slice(&directory.to_le_bytes());
        push_crc(&mut bytes, SEGMENT_CRC_WHOLE_AT);
        copy_to(block, 0, &bytes);
    }

    /// `None` unless magic and checksums are right; of a newer version only the first is looked at.
    pub(crate) fn decode(block: &[u8]) -> Option<Self> {
        if block.get(..8)? != SEGMENT_MAGIC || !crc_holds(block, SEGMENT_CRC_AT)? {
            return None;
        }
        let version = u32_at(block, 8)?;
        let is_old = version < VERSION_OF_DIRECTORIES;
        if version == FORMAT_VERSION && !crc_holds(block, SEGMENT_CRC_WHOLE_AT)? {
            return None;
        }
        let directory = DirectoryId(u64_at(block, SEGMENT_CRC_AT + 4)?);
        Some(Self {
            version,
            epoch: Epoch(u32_at(block, 12)?),
            number: SegmentNumber(u64_at(block, 16)?),
            salt: u64_at(block, 24)?,
            directory: (!is_old).then_some(directory),
        })
    }
}

/// One frame as it lies in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) lsn: Lsn,
    pub(crate) epoch: Epoch,
    pub(crate) kind: u8,
    pub(crate) payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame's header in that life, to be followed by the payload.
    pub(crate) fn header(&self, life: Life) -> [u8; FRAME_HEADER_BYTES] {
        let mut header = self.unsealed_header();
        let (_, checked) = header.split_at(8);
        let crc = crc32c::crc32c_append(crc32c::crc32c_append(life.seed, checked), self.payload);
        copy_to(&mut header, 4, &crc.to_le_bytes());
        header
    }

    /// The same without its checksum, which is to be filled in by [`seal`].
    pub(crate) fn unsealed_header(&self) -> [u8; FRAME_HEADER_BYTES] {
        debug_assert!(self.lsn > Lsn::ZERO, "positions begin with 1");
        debug_assert!(matches!(self.kind, KIND_MARK | KIND_CHANGES));
        let mut header = [0; FRAME_HEADER_BYTES];
        let length = u32::try_from(self.payload.len())
            .expect("invariant: a frame fits into a segment, which is smaller than 4 GiB");
        copy_to(&mut header, 0, &length.to_le_bytes());
        copy_to(&mut header, 8, &self.lsn.0.to_le_bytes());
        copy_to(&mut header, 16, &self.epoch.0.to_le_bytes());
        copy_to(&mut header, 20, &[self.kind]);
        header
    }

    /// The frame at the start of `bytes`, `None` unless it is whole and its checksum is that of a
    /// frame of this life.
    pub(crate) fn decode(bytes: &'a [u8], life: Life) -> Option<Self> {
        let frame = Self::decode_unchecked(bytes)?;
        let checked = bytes.get(8..frame.bytes())?;
        (u32_at(bytes, 4)? == crc32c::crc32c_append(life.seed, checked)).then_some(frame)
    }

    /// Decodes bytes after their checksum was verified.
    pub(crate) fn decode_unchecked(bytes: &'a [u8]) -> Option<Self> {
        let length = usize::try_from(u32_at(bytes, 0)?).ok()?;
        let end = FRAME_HEADER_BYTES.checked_add(length)?;
        let payload = bytes.get(FRAME_HEADER_BYTES..end)?;
        Some(Self {
            lsn: Lsn(u64_at(bytes, 8)?),
            epoch: Epoch(u32_at(bytes, 16)?),
            kind: *bytes.get(20)?,
            payload,
        })
    }

    /// Bytes that it takes in the log.
    pub(crate) fn bytes(&self) -> usize {
        FRAME_HEADER_BYTES + self.payload.len()
    }
}

/// Fills in the checksum of a frame of that life, which is there as a whole.
pub(crate) fn seal(frame: &mut [u8], life: Life) {
    debug_assert_eq!(
        u32_at(frame, 0).map(|bytes| bytes as usize + FRAME_HEADER_BYTES),
        Some(frame.len()),
        "a frame tells its length before its checksum"
    );
    let crc = crc32c::crc32c_append(life.seed, frame.get(8..).unwrap_or_default());
    copy_to(frame, 4, &crc.to_le_bytes());
}

/// The opening of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) lsn: Lsn,
    pub(crate) epoch: Epoch,
    pub(crate) batch_bytes: u32,
    pub(crate) frames: u32,
    /// Everything up to here was synced when the batch was written.
    pub(crate) synced: Lsn,
    pub(crate) time: Nanos,
}

impl Mark {
    /// Writes it to the start of `batch`.
    pub(crate) fn encode(&self, life: Life, batch: &mut [u8]) {
        let salt = life.salt.expect("invariant: only lives of this version are written to");
        assert!(self.synced < self.lsn, "what is being written is not synced yet");
        assert!(self.frames > 0, "a batch holds a frame");
        assert!(batch.len().is_multiple_of(BLOCK_BYTES), "a batch is padded to whole blocks");
        assert_eq!(batch.len(), self.batch_bytes as usize, "a mark tells of its own batch");
        let mut payload = [0; MARK_PAYLOAD_BYTES];
        copy_to(&mut payload, 0, &life.number.0.to_le_bytes());
        copy_to(&mut payload, 8, &self.batch_bytes.to_le_bytes());
        copy_to(&mut payload, 12, &self.frames.to_le_bytes());
        copy_to(&mut payload, 16, &self.synced.0.to_le_bytes());
        copy_to(&mut payload, 24, &self.time.0.to_le_bytes());
        copy_to(&mut payload, 32, &salt.to_le_bytes());
        let frame = Frame { lsn: self.lsn, epoch: self.epoch, kind: KIND_MARK, payload: &payload };
        copy_to(batch, 0, &frame.header(life));
        copy_to(batch, FRAME_HEADER_BYTES, &payload);
    }

    /// The mark at the start of `batch`, `None` unless it is one of that life and its batch would
    /// lie within `bytes_left`.
    pub(crate) fn decode(batch: &[u8], life: Life, bytes_left: usize) -> Option<Self> {
        // Cut to a mark first: a body that looks like a frame may be long, and every block behind
        // the end is tested.
        let frame = Frame::decode(batch.get(..life.mark_bytes())?, life)?;
        if frame.kind != KIND_MARK || frame.bytes() != life.mark_bytes() {
            return None;
        }
        let salt = u64_at(frame.payload, MARK_SALT_AT - FRAME_HEADER_BYTES);
        let segment = SegmentNumber(u64_at(frame.payload, 0)?);
        let mark = Self {
            lsn: frame.lsn,
            epoch: frame.epoch,
            batch_bytes: u32_at(frame.payload, 8)?,
            frames: u32_at(frame.payload, 12)?,
            synced: Lsn(u64_at(frame.payload, 16)?),
            time: Nanos(u64_at(frame.payload, 24)?),
        };
        let bytes = usize::try_from(mark.batch_bytes).ok()?;
        let fits = bytes >= BLOCK_BYTES && bytes % BLOCK_BYTES == 0 && bytes <= bytes_left;
        // Behind its frames others have to find a position.
        let last = mark.lsn.0.saturating_add(u64::from(mark.frames));
        let own = segment == life.number && salt == life.salt;
        (own && fits && last < u64::MAX).then_some(mark)
    }
}

/// The little-endian number at `offset`, `None` if the bytes end before.
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let raw = bytes.get(offset..offset.checked_add(4)?)?;
    raw.try_into().ok().map(u32::from_le_bytes)
}

/// The little-endian number at `offset`, `None` if the bytes end before.
pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let raw = bytes.get(offset..offset.checked_add(8)?)?;
    raw.try_into().ok().map(u64::from_le_bytes)
}

/// True if the bytes before `at` have the CRC that is there; `None`: there are too few.
pub(crate) fn crc_holds(bytes: &[u8], at: usize) -> Option<bool> {
    Some(u32_at(bytes, at)? == crc32c::crc32c(bytes.get(..at)?))
}

/// Appends the CRC of the bytes so far, all of them before `at`.
pub(crate) fn push_crc(bytes: &mut Vec<u8>, at: usize) {
    assert_eq!(bytes.len(), at, "a checksum lies behind the fields that it covers");
    bytes.extend_from_slice(&crc32c::crc32c(bytes).to_le_bytes());
}

/// Copies `source` over `target` from `offset` on.
pub(crate) fn copy_to(target: &mut [u8], offset: usize, source: &[u8]) {
    target
        .get_mut(offset..offset + source.len())
        .expect("invariant: the caller's buffer holds the structure")
        .copy_from_slice(source);
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENING: Opening =
        Opening { epoch: Epoch(7), salt: 0x5A17, directory: DirectoryId(0xD1) };

    fn life() -> Life {
        Life::new(SegmentNumber(9), OPENING)
    }

    fn mark() -> Mark {
        Mark {
            lsn: Lsn(77),
            epoch: Epoch(3),
            batch_bytes: 8192,
            frames: 5,
            synced: Lsn(70),
            time: Nanos(123_456_789),
        }
    }

    #[test]
    fn names_tell_numbers() {
        let number = SegmentNumber(42);
        assert_eq!(number.file_name(), "0000000000000042.segment");
        assert_eq!(SegmentNumber::from_file_name("0000000000000042.segment"), Some(number));
        for name in ["42.segment", "000000000000004x.segment", "lock", "0000000000000042.segmen"] {
            assert_eq!(SegmentNumber::from_file_name(name), None, "{name}");
        }
    }

    #[test]
    fn segment_header_comes_back() {
        let header = SegmentHeader::new(SegmentNumber(12), OPENING);
        let mut block = [0; BLOCK_BYTES];
        header.encode(&mut block);
        assert_eq!(SegmentHeader::decode(&block), Some(header));
        let life = Life::of(SegmentNumber(12), &header);
        assert_eq!(life.header(OPENING.directory), header);
    }

    #[test]
    fn newer_header_tells_its_version() {
        let mut block = [0xAA; BLOCK_BYTES];
        SegmentHeader::new(SegmentNumber(12), OPENING).encode(&mut block);
        block[8] += 1;
        let crc = crc32c::crc32c(&block[..32]).to_le_bytes();
        block[32..36].copy_from_slice(&crc);
        let header = SegmentHeader::decode(&block).unwrap();
        assert_eq!(header.version, FORMAT_VERSION + 1);
    }

    #[test]
    fn segment_header_detects_every_flipped_bit() {
        let header = SegmentHeader::new(SegmentNumber(12), OPENING);
        let mut block = [0; SEGMENT_CRC_WHOLE_AT + 4];
        header.encode(&mut block);
        for bit in 0..block.len() * 8 {
            let mut rotten = block;
            rotten[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::decode(&rotten), None, "bit {bit}");
        }
    }

    #[test]
    fn mark_detects_every_flipped_bit() {
        let mut batch = [0; 8192];
        mark().encode(life(), &mut batch);
        assert_eq!(Mark::decode(&batch, life(), 8192), Some(mark()));
        for bit in 0..MARK_BYTES * 8 {
            let mut rotten = batch;
            rotten[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Mark::decode(&rotten, life(), 8192), None, "bit {bit}");
        }
    }

    #[test]
    fn mark_of_another_life_is_none() {
        let mut batch = [0; 8192];
        mark().encode(life(), &mut batch);
        let number = SegmentNumber(9);
        for other in [
            Life::new(SegmentNumber(8), OPENING),
            Life::new(number, Opening { salt: 0x5A18, ..OPENING }),
            Life::of_version_1(number),
        ] {
            assert_eq!(Mark::decode(&batch, other, 8192), None, "{other:?}");
        }
        assert_eq!(Mark::decode(&batch, life(), 8191), None);
        assert_eq!(Life::of_first_mark(number, &batch).salt, life().salt);
    }

    #[test]
    fn cut_frame_is_none() {
        let frame = Frame { lsn: Lsn(5), epoch: Epoch(1), kind: KIND_CHANGES, payload: b"abcdef" };
        let mut bytes = frame.header(life()).to_vec();
        bytes.extend_from_slice(frame.payload);
        assert_eq!(Frame::decode(&bytes, life()), Some(frame));
        let mut sealed = [&frame.unsealed_header(), frame.payload].concat();
        seal(&mut sealed, life());
        assert_eq!(sealed, bytes);
        for cut in 0..bytes.len() {
            assert_eq!(Frame::decode(&bytes[..cut], life()), None, "cut at {cut}");
        }
    }
}
