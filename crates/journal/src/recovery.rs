//! Opening a journal: the newest snapshot, the frames after it, and where the log ends.
//!
//! The end of the log is the first batch that is not whole. If anything else on the disk says that
//! this batch was durable — a later mark, or the snapshot — it is not the end but rot, and the
//! journal refuses to open. Everything is read and judged before anything is changed.

use std::collections::{BTreeMap, VecDeque};

use model::{Lsn, Nanos};

use crate::buffer::AlignedBuffer;
use crate::chore::{UNFINISHED_NAME, finish, prepare};
use crate::format::{
    Epoch, FORMAT_VERSION, FORMAT_VERSION_OLDEST, Life, Mark, Opening, SegmentHeader,
    SegmentNumber, copy_to, u32_at,
};
use crate::housekeeping::{Housekeeping, SlotFile};
use crate::reader::SegmentReader;
use crate::segments::{Segment, Segments, Spare};
use crate::snapshot::{SLOT_NAMES, Slot, Snapshot, SnapshotHeader};
use crate::{BLOCK_BYTES, Disk, DiskError, Journal, JournalOptions, OpenError, WriteMode};

/// What a journal is replayed into.
pub trait Recover {
    /// A chunk of the snapshot. All chunks come first, in order.
    ///
    /// # Errors
    /// What is wrong with it.
    fn load(&mut self, chunk: &[u8]) -> Result<(), String>;

    /// A frame after the snapshot's begin, in order. Of a `fuzzy` one the snapshot may hold the
    /// effect already, wholly or in part.
    ///
    /// # Errors
    /// What is wrong with it.
    fn replay(&mut self, lsn: Lsn, payload: &[u8], fuzzy: bool) -> Result<(), String>;

    /// The frames that hold what the snapshot only refers to, in any order and with repetitions;
    /// those after the snapshot's begin may be among them.
    fn wanted(&self) -> Vec<Lsn>;

    /// One of the wanted frames.
    ///
    /// # Errors
    /// What is wrong with it.
    fn restore(&mut self, lsn: Lsn, payload: &[u8]) -> Result<(), String>;

    /// The log ended with `last`. Returns position and bytes of each live record, and what a
    /// snapshot may take.
    ///
    /// # Errors
    /// What is missing.
    fn finish(&mut self, last: Lsn) -> Result<Live, String>;
}

/// What matters of a recovered log.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Position and bytes of each live record.
    pub records: Vec<(Lsn, u64)>,
    /// What a snapshot of them may take.
    pub snapshot_bytes: u64,
}

/// What was found, for the one line that a starting server logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The number of the snapshot it began with; 0: none.
    pub snapshot: u64,
    /// Frames after it.
    pub frames: u64,
    /// Bytes read.
    pub bytes: u64,
    /// The last frame of the log.
    pub last: Lsn,
    /// The latest time that a mark or the snapshot tells.
    pub latest: Nanos,
}

/// A journal that was read and found sound, and nothing changed yet.
#[derive(Debug)]
pub(crate) struct Reading<F> {
    files: Vec<SegmentFile<F>>,
    snapshot: Option<(Slot, SnapshotHeader)>,
    tail: Option<Tail>,
    /// What was replayed and may be only in the page cache.
    unsure: VecDeque<Extent>,
    next: Lsn,
    epoch: Epoch,
    epoch_file: Option<F>,
    names: Vec<String>,
    live: Live,
    pub(crate) recovered: Recovered,
}

/// A segment's file as found.
#[derive(Debug)]
struct SegmentFile<F> {
    life: Life,
    file: F,
    bytes: u64,
    /// The mark of its first batch, whole or not; `None`: it holds nothing of this life.
    first: Option<Mark>,
}

/// Where the log continues.
#[derive(Clone, Copy, Debug)]
struct Tail {
    /// Index in `files`.
    index: usize,
    offset: u64,
}

impl<F: Clone> Journal<F> {
    /// Opens the journal in a directory, an empty one being the empty journal, and replays it.
    ///
    /// # Errors
    /// [`OpenError`]: the disk failed, or the journal is not what was written. Unless the disk
    /// failed, nothing was changed.
    pub fn open<D: Disk<File = F>>(
        disk: &D,
        options: JournalOptions,
        recover: &mut impl Recover,
    ) -> Result<(Self, Recovered), OpenError> {
        options.assert_valid();
        let reading = read(disk, recover)?;
        let recovered = reading.recovered;
        Ok((settle(disk, options, reading)?, recovered))
    }
}

/// Reads and judges a journal without changing anything.
///
/// # Errors
/// As [`Journal::open`].
pub fn verify<D: Disk>(disk: &D, recover: &mut impl Recover) -> Result<Recovered, OpenError> {
    read(disk, recover).map(|reading| reading.recovered)
}

fn read<D: Disk>(disk: &D, recover: &mut impl Recover) -> Result<Reading<D::File>, OpenError> {
    let names = disk.names()?;
    let files = survey(disk, &names)?;
    let (epoch, epoch_file) = read_epoch(disk, &names, &files)?;
    let snapshot = Snapshot::read_newest(disk, &names)?;
    let mut recovered = Recovered::default();
    if let Some(snapshot) = &snapshot {
        load(snapshot, recover, &mut recovered)?;
    }
    let snapshot = snapshot.map(|snapshot| (snapshot.slot, snapshot.header));
    let mut walk = Walk {
        disk,
        files: &files,
        begin: snapshot.map_or(Lsn::ZERO, |(_, header)| header.begin),
        end: snapshot.map_or(Lsn::ZERO, |(_, header)| header.end),
        buffer: Vec::new(),
        unsure: VecDeque::new(),
        recovered,
    };
    let start = walk.start()?;
    let (tail, next) = walk.replay(start, recover)?;
    walk.restore(tail, recover)?;
    let (unsure, mut recovered) = (walk.unsure, walk.recovered);
    recovered.last = Lsn(next.0 - 1);
    let live = recover
        .finish(recovered.last)
        .map_err(|cause| OpenError::Missing { lsn: recovered.last, cause })?;
    Ok(Reading { files, snapshot, tail, unsure, next, epoch, epoch_file, names, live, recovered })
}

/// All segment files in the order of their numbers.
fn survey<D: Disk>(disk: &D, names: &[String]) -> Result<Vec<SegmentFile<D::File>>, OpenError> {
    let mut numbers: Vec<_> =
        names.iter().filter_map(|name| SegmentNumber::from_file_name(name)).collect();
    numbers.sort_unstable();
    numbers.into_iter().map(|number| survey_one(disk, number)).collect()
}

fn survey_one<D: Disk>(disk: &D, number: SegmentNumber) -> Result<SegmentFile<D::File>, OpenError> {
    let name = number.file_name();
    let file = disk.open(&name)?;
    disk.expect_read(&file);
    let bytes = disk.length(&file)?;
    let mut blocks = vec![0; 2 * BLOCK_BYTES];
    let read = disk.read(&file, 0, &mut blocks)?;
    blocks.truncate(read);
    let Some(header) = SegmentHeader::decode(&blocks) else {
        let cause = "the segment's header is not one".into();
        return Err(OpenError::Corrupt { file: name, offset: 0, cause });
    };
    if !(FORMAT_VERSION_OLDEST..=FORMAT_VERSION).contains(&header.version) {
        return Err(OpenError::Version { file: name, found: header.version });
    }
    let left = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_sub(BLOCK_BYTES);
    // A file whose header tells another number was being recycled: nothing in it matters.
    let own = header.number == number;
    let life = Life::of(number, &header);
    let batch = blocks.get(BLOCK_BYTES..).filter(|_| own);
    let first = batch.and_then(|batch| Mark::decode(batch, life, left));
    Ok(SegmentFile { life, file, bytes, first })
}

fn load(
    snapshot: &Snapshot,
    recover: &mut impl Recover,
    recovered: &mut Recovered,
) -> Result<(), OpenError> {
    for chunk in snapshot.chunks() {
        let chunk = chunk?;
        recovered.bytes += chunk.len() as u64;
        recover.load(chunk).map_err(|cause| OpenError::Corrupt {
            file: snapshot.slot.name().into(),
            offset: BLOCK_BYTES as u64,
            cause,
        })?;
    }
    recovered.snapshot = snapshot.header.number;
    recovered.latest = snapshot.header.time;
    Ok(())
}

/// The walk along the log.
struct Walk<'a, D: Disk> {
    disk: &'a D,
    files: &'a [SegmentFile<D::File>],
    /// The snapshot holds the effect of every frame up to here …
    begin: Lsn,
    /// … and of none after this one.
    end: Lsn,
    /// One segment's bytes.
    buffer: Vec<u8>,
    /// The batches that were replayed and that no later mark says were synced.
    unsure: VecDeque<Extent>,
    recovered: Recovered,
}

/// Replayed batches and where they lie.
#[derive(Clone, Copy, Debug)]
struct Extent {
    /// Index in `files`.
    index: usize,
    offset: u64,
    bytes: usize,
    last: Lsn,
}

impl Extent {
    /// Whether `next` lies right behind it, and both can be written with one call.
    fn joins(&self, next: &Self) -> bool {
        let adjacent = self.index == next.index && self.offset + self.bytes as u64 == next.offset;
        adjacent && self.bytes + next.bytes <= EXTENT_BYTES_MAX
    }
}

impl<D: Disk> Walk<'_, D> {
    /// The segment in which the first frame after the snapshot lies, or would.
    fn start(&self) -> Result<usize, OpenError> {
        let wanted = self.begin.next();
        let holds = |file: &SegmentFile<_>| file.first.is_some_and(|mark| mark.lsn <= wanted);
        if let Some(index) = self.files.iter().rposition(holds) {
            return Ok(index);
        }
        // Where an older segment is there and only its frames are not, they may never have been
        // durable: what later marks claim will tell.
        let frames_lost = self.files.first().is_some_and(|file| file.first.is_none());
        match self.files.iter().find_map(|file| file.first.map(|mark| (file.life.number, mark.lsn)))
        {
            Some((number, lsn)) if !frames_lost => Err(OpenError::Missing {
                lsn: wanted,
                cause: format!("the oldest segment, {}, begins with {lsn}", number.file_name()),
            }),
            _ => Ok(self.files.len()),
        }
    }

    /// Replays from there to the end of the log, and tells where it is and which frame is next.
    fn replay(
        &mut self,
        start: usize,
        recover: &mut impl Recover,
    ) -> Result<(Option<Tail>, Lsn), OpenError> {
        let mut index = start;
        let mut tail = None;
        let first = self.files.get(start).and_then(|file| file.first);
        let mut next = first.map_or(self.begin.next(), |mark| mark.lsn);
        let mut epoch = Epoch::default();
        while index < self.files.len() {
            let offset = self.replay_segment(index, &mut next, &mut epoch, recover)?;
            tail = Some(Tail { index, offset });
            match self.continuation(index, next, epoch) {
                Some(later) => index = later,
                None => break,
            }
        }
        self.judge_end(tail, next)?;
        Ok((tail, next))
    }

    /// Replays the batches of one segment; tells where the first that is not whole begins.
    fn replay_segment(
        &mut self,
        index: usize,
        next: &mut Lsn,
        epoch: &mut Epoch,
        recover: &mut impl Recover,
    ) -> Result<u64, OpenError> {
        let bytes = self.read_segment(index)?;
        let life = self.file(index).life;
        let mut reader = SegmentReader::new(&bytes, life, BLOCK_BYTES, Some(*next), *epoch);
        loop {
            let offset = reader.offset() as u64;
            let Some(batch) = reader.next_batch() else { break };
            self.recovered.latest = self.recovered.latest.max(batch.time());
            let extent = Extent { index, offset, bytes: batch.bytes(), last: batch.last() };
            self.note_unsure(extent, batch.mark.synced.max(self.end));
            for frame in batch.frames().filter(|frame| frame.lsn > self.begin) {
                self.recovered.frames += 1;
                recover
                    .replay(frame.lsn, frame.payload, frame.lsn <= self.end)
                    .map_err(|cause| corrupt(life, offset, cause))?;
            }
        }
        *next = reader.expected().unwrap_or(*next);
        *epoch = reader.epoch();
        let offset = reader.offset() as u64;
        self.buffer = bytes;
        Ok(offset)
    }

    /// A batch was replayed whose mark, or the snapshot, says that all up to `synced` was synced.
    fn note_unsure(&mut self, extent: Extent, synced: Lsn) {
        while self.unsure.pop_front_if(|earlier| earlier.last <= synced).is_some() {}
        match self.unsure.back_mut() {
            Some(before) if before.joins(&extent) => {
                before.bytes += extent.bytes;
                before.last = extent.last;
            }
            _ => self.unsure.push_back(extent),
        }
    }

    /// The segment after `index` that begins with frame `next`.
    fn continuation(&self, index: usize, next: Lsn, epoch: Epoch) -> Option<usize> {
        let continues = |mark: Mark| mark.lsn == next && mark.epoch >= epoch;
        (index + 1..self.files.len()).find(|later| self.file(*later).first.is_some_and(continues))
    }

    /// The log may end before `next` unless something says that `next` was durable.
    fn judge_end(&mut self, tail: Option<Tail>, next: Lsn) -> Result<(), OpenError> {
        let mut claimed = self.end;
        let mut by = "the snapshot";
        let first = tail.map_or(0, |tail| tail.index);
        for index in first..self.files.len() {
            let from =
                tail.filter(|tail| tail.index == index).map_or(BLOCK_BYTES as u64, |t| t.offset);
            let bytes = self.read_segment(index)?;
            let from = usize::try_from(from).unwrap_or(usize::MAX);
            let life = self.file(index).life;
            let rest = SegmentReader::new(&bytes, life, from, None, Epoch::default());
            if rest.synced_claimed() > claimed {
                claimed = rest.synced_claimed();
                by = "a later batch";
            }
            self.buffer = bytes;
        }
        if claimed < next {
            return Ok(());
        }
        let cause = format!("frame {next} should be here; {by} says that {claimed} was synced");
        match tail {
            Some(tail) => Err(corrupt(self.file(tail.index).life, tail.offset, cause)),
            None => Err(OpenError::Missing { lsn: next, cause }),
        }
    }

    /// Reads what the snapshot left in older frames.
    fn restore(&mut self, tail: Option<Tail>, recover: &mut impl Recover) -> Result<(), OpenError> {
        if self.begin == Lsn::ZERO {
            return Ok(());
        }
        let mut wanted = recover.wanted();
        wanted.retain(|lsn| *lsn <= self.begin);
        wanted.sort_unstable();
        wanted.dedup();
        let in_log = tail.map_or(0, |tail| tail.index + 1);
        let mut later = Lsn(u64::MAX);
        for index in (0..in_log).rev() {
            let Some(mark) = self.file(index).first else { continue };
            let from = wanted.partition_point(|lsn| *lsn < mark.lsn);
            let to = wanted.partition_point(|lsn| *lsn < later);
            let here = wanted.get(from..to).unwrap_or_default();
            if !here.is_empty() {
                self.restore_segment(index, here, recover)?;
            }
            later = mark.lsn;
        }
        Ok(())
    }

    fn restore_segment(
        &mut self,
        index: usize,
        wanted: &[Lsn],
        recover: &mut impl Recover,
    ) -> Result<(), OpenError> {
        let bytes = self.read_segment(index)?;
        let life = self.file(index).life;
        let mut reader = SegmentReader::new(&bytes, life, BLOCK_BYTES, None, Epoch::default());
        let mut wanted = wanted.iter().peekable();
        while let Some(batch) = reader.next_batch() {
            for frame in batch.frames() {
                if wanted.next_if(|lsn| **lsn == frame.lsn).is_some() {
                    recover
                        .restore(frame.lsn, frame.payload)
                        .map_err(|cause| corrupt(life, reader.offset() as u64, cause))?;
                }
            }
            if wanted.peek().is_none() {
                break;
            }
        }
        let offset = reader.offset() as u64;
        self.buffer = bytes;
        match wanted.next() {
            None => Ok(()),
            Some(lsn) => {
                Err(corrupt(life, offset, format!("frame {lsn} should be here or behind")))
            }
        }
    }

    fn read_segment(&mut self, index: usize) -> Result<Vec<u8>, OpenError> {
        let mut bytes = std::mem::take(&mut self.buffer);
        let file = self.file(index);
        bytes.resize(usize::try_from(file.bytes).unwrap_or(usize::MAX), 0);
        let read = self.disk.read(&file.file, 0, &mut bytes)?;
        bytes.truncate(read);
        self.recovered.bytes += read as u64;
        Ok(bytes)
    }

    fn file(&self, index: usize) -> &SegmentFile<D::File> {
        self.files.get(index).expect("invariant: indexes come from the same list")
    }
}

/// Makes the disk fit to go on from what was read.
fn settle<D: Disk>(
    disk: &D,
    options: JournalOptions,
    reading: Reading<D::File>,
) -> Result<Journal<D::File>, DiskError> {
    let in_log = reading.tail.map_or(0, |tail| tail.index + 1);
    for file in reading.files.iter().skip(in_log).filter(|file| file.first.is_some()) {
        make_unreadable(disk, &file.file)?;
    }
    for extent in &reading.unsure {
        make_sure(disk, &reading.files, extent)?;
    }
    let opening = Opening { epoch: Epoch(reading.epoch.0 + 1), salt: disk.salt() };
    write_epoch(disk, opening.epoch, reading.epoch_file.as_ref())?;
    let slots = open_slots(disk, &reading.names)?;
    if let Some((slot, header)) = &reading.snapshot {
        seal_again(disk, slots.get(slot.index()), header)?;
    }
    let segments = arrange(disk, &options, opening, &reading)?;
    // The names of what was just created.
    disk.sync_directory()?;
    let (slot, header) = reading.snapshot.unwrap_or_default();
    let house = Housekeeping::new(slots, header, slot, reading.recovered.bytes);
    let mut journal = Journal::new(options, opening, reading.next, segments, house);
    journal.need_for_snapshot(reading.live.snapshot_bytes);
    for (lsn, bytes) in &reading.live.records {
        journal.segments.keep(*lsn, *bytes);
    }
    let synced = journal.durable().synced;
    journal.segments.retire(header.begin, synced);
    Ok(journal)
}

/// From here on what was replayed counts as synced. It may have been read from the page cache of a
/// process that was killed before it synced; and where a sync has failed, the kernel may have
/// marked pages as clean that never reached the device, so that another sync would do nothing. To
/// write it again is what helps.
fn make_sure<D: Disk>(
    disk: &D,
    files: &[SegmentFile<D::File>],
    extent: &Extent,
) -> Result<(), DiskError> {
    let file = &files.get(extent.index).expect("invariant: indexes come from the same list").file;
    let mut bytes = vec![0; extent.bytes];
    disk.read(file, extent.offset, &mut bytes)?;
    let mut buffer = AlignedBuffer::with_capacity(extent.bytes);
    buffer.extend(&bytes);
    disk.write(file, extent.offset, buffer.bytes(), WriteMode::Synced)
}

/// The same for the snapshot: its body was synced before it got its header, the header perhaps not.
/// Without it the older snapshot would count again, whose log may be gone by then.
fn seal_again<D: Disk>(
    disk: &D,
    slot: Option<&SlotFile<D::File>>,
    header: &SnapshotHeader,
) -> Result<(), DiskError> {
    let file = &slot.expect("invariant: there are two slots").file;
    disk.write(file, 0, &header.encode(), WriteMode::Synced)
}

/// A segment behind the end of the log holds batches that were cut off. They must not continue the
/// log once it has grown up to them.
fn make_unreadable<D: Disk>(disk: &D, file: &D::File) -> Result<(), DiskError> {
    let mut zeros = AlignedBuffer::with_capacity(BLOCK_BYTES);
    zeros.extend(&[0; BLOCK_BYTES]);
    disk.write(file, BLOCK_BYTES as u64, zeros.bytes(), WriteMode::Synced)
}

/// The segments of the log, and those whose files can be used again.
fn arrange<D: Disk>(
    disk: &D,
    options: &JournalOptions,
    opening: Opening,
    reading: &Reading<D::File>,
) -> Result<Segments<D::File>, DiskError> {
    let mut table = BTreeMap::new();
    let mut idle = Vec::new();
    for (index, found) in reading.files.iter().enumerate() {
        let tail = reading.tail.filter(|tail| index <= tail.index);
        let SegmentFile { life, ref file, bytes: initialised, first } = *found;
        // An older version's segment that no frame came to be in has no place in the log.
        let used = |mark: &Mark| life.takes_batches() || mark.lsn < reading.next;
        match (tail, first.filter(used)) {
            (Some(tail), Some(mark)) => {
                // Behind the end a crash may have left blocks that the length tells of and that
                // were never written: they are filled again.
                let end = if index == tail.index { tail.offset } else { initialised };
                let first = mark.lsn;
                table.insert(first, segment(life, file.clone(), first, end, end));
            }
            _ => {
                let initialised = initialised.min(options.reserve_bytes);
                idle.push(Spare { life, file: file.clone(), initialised });
            }
        }
    }
    let highest = reading.files.last().map_or(0, |file| file.life.number.0);
    let header = |number| SegmentHeader::new(number, opening);
    let mut next_number = SegmentNumber(highest + 1);
    if reading.names.iter().any(|name| name == UNFINISHED_NAME)
        && let Some(bytes) = finish(disk, &header(next_number), options.reserve_bytes)?
    {
        let file = disk.open(&next_number.file_name())?;
        let life = Life::new(next_number, opening.salt);
        idle.push(Spare { life, file, initialised: bytes });
        next_number = SegmentNumber(next_number.0 + 1);
    }
    let newest = table.last_key_value().map(|(_, segment)| segment.life);
    if !newest.is_some_and(Life::takes_batches) {
        // A full device may have no room for a new file.
        let old = idle.pop();
        let bytes = old.as_ref().map_or(options.reserve_bytes, |old| old.initialised);
        let file = prepare(disk, &header(next_number), old.as_ref(), bytes)?;
        let life = Life::new(next_number, opening.salt);
        let first = segment(life, file, reading.next, BLOCK_BYTES as u64, bytes);
        let before = table.insert(reading.next, first);
        assert!(before.is_none(), "the log goes on behind all its segments");
        next_number = SegmentNumber(next_number.0 + 1);
    }
    Ok(Segments::new(table, idle, next_number))
}

fn segment<F>(life: Life, file: F, first: Lsn, end: u64, initialised: u64) -> Segment<F> {
    Segment { life, file, first, end, initialised, live_bytes: 0, died_at: Lsn::ZERO }
}

fn open_slots<D: Disk>(disk: &D, names: &[String]) -> Result<[SlotFile<D::File>; 2], DiskError> {
    let open = |name: &str| {
        let exists = names.iter().any(|other| other == name);
        let file = if exists { disk.open(name)? } else { disk.create(name)? };
        let bytes = disk.length(&file)?;
        Ok(SlotFile { file, bytes })
    };
    let [a, b] = SLOT_NAMES;
    Ok([open(a)?, open(b)?])
}

/// The number of the last opening, from a file of its own: `0 4 epoch, 4 4 CRC of 0..4`.
fn read_epoch<D: Disk>(
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
        Some(epoch) if crc_holds => Ok((Epoch(epoch), Some(file))),
        _ => corrupt("the number of openings is not what was written"),
    }
}

fn write_epoch<D: Disk>(disk: &D, epoch: Epoch, file: Option<&D::File>) -> Result<(), DiskError> {
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

fn corrupt(life: Life, offset: u64, cause: String) -> OpenError {
    OpenError::Corrupt { file: life.number.file_name(), offset, cause }
}

/// Bytes that are written again with one call.
const EXTENT_BYTES_MAX: usize = 1024 * 1024;

/// The file that counts the openings.
const EPOCH_NAME: &str = "epoch";
