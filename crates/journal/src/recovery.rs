//! Opening a journal: the newest snapshot, the frames after it, and where the log ends.
//!
//! The end of the log is the first batch that is not whole. If a later mark or the snapshot says
//! that this batch was durable, it is not the end but rot, and the journal refuses to open.
//! Everything is read and judged before anything is changed.

use std::collections::{BTreeMap, VecDeque};

use model::{LiveRecords, Lsn, Nanos};

use crate::buffer::AlignedBuffer;
use crate::chore::{UNFINISHED_NAME, begin_life, extend, finish, prepare};
use crate::control::CONTROL_NAME;
use crate::format::{DirectoryId, Epoch, Life, Mark, Opening, SegmentNumber};
use crate::frame_index::FrameIndex;
use crate::housekeeping::{Housekeeping, SlotFile};
use crate::reach::{Reach, first_window};
use crate::segments::{Segment, Segments, Spare};
use crate::snapshot::{SLOT_NAMES, Slot, Snapshot, SnapshotHeader};
use crate::spill::is_spill_name;
use crate::survey::{SegmentFile, Survey};
use crate::walk::{Ended, Extent, Tail, Walk};
use crate::watermark::Stamp;
use crate::{
    BLOCK_BYTES, Disk, DiskError, DiskErrorKind, Journal, JournalOptions, OpenError, WriteMode,
};

/// The state into which a journal is replayed.
pub trait Recover {
    /// A chunk of the snapshot. All chunks come first, in order.
    ///
    /// # Errors
    /// The fault of the chunk.
    fn load(&mut self, chunk: &[u8]) -> Result<(), String>;

    /// A frame after the snapshot's begin, in order. The snapshot may already hold the effect of a
    /// `fuzzy` one, wholly or in part.
    ///
    /// # Errors
    /// The fault of the frame.
    fn replay(&mut self, lsn: Lsn, payload: &[u8], fuzzy: bool) -> Result<(), String>;

    /// The frames of the records that the snapshot only refers to, in any order and with
    /// repetitions; those after the snapshot's begin may be among them.
    fn wanted(&self) -> Vec<Lsn>;

    /// One of the wanted frames.
    ///
    /// # Errors
    /// The fault of the frame.
    fn restore(&mut self, lsn: Lsn, payload: &[u8]) -> Result<(), String>;

    /// The log ended with `last`.
    ///
    /// # Errors
    /// The fault: missing messages or bodies.
    fn finish(&mut self, last: Lsn) -> Result<(), String>;

    /// Once it is finished: position and bytes of each live record. Fast if neighbours come one
    /// after the other.
    fn live(&self) -> impl Iterator<Item = (Lsn, u64)>;

    /// Once it is finished: the bytes that a snapshot may take.
    fn snapshot_bytes(&self) -> u64;
}

/// The findings, for the one line that a starting server logs.
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
    pub(crate) files: Vec<SegmentFile<F>>,
    snapshot: Option<(Slot, SnapshotHeader)>,
    pub(crate) tail: Option<Tail>,
    /// The places of the frames of each of `files`.
    indexes: Vec<FrameIndex>,
    /// Frames that were replayed and may be only in the page cache.
    unsure: VecDeque<Extent>,
    next: Lsn,
    /// The last opening before.
    epoch: Epoch,
    stamp: Stamp,
    directory: Option<DirectoryId>,
    control_file: Option<F>,
    names: Vec<String>,
    /// The live records of each of `files`.
    pub(crate) live: Vec<LiveRecords>,
    snapshot_bytes: u64,
    pub(crate) recovered: Recovered,
}

impl<F> Reading<F> {
    /// The last frame of the log.
    fn last(&self) -> Lsn {
        Lsn(self.next.0 - 1)
    }

    /// Returns true if that life of a segment holds no batch: the bytes read tell, or it just
    /// began.
    fn is_unused(&self, life: Life) -> bool {
        let found = self.files.iter().find(|file| file.life.number == life.number);
        found.is_none_or(|file| !file.is_begun())
    }
}

impl<F: Clone> Journal<F> {
    /// Opens the journal in a directory, an empty one being the empty journal, and replays it.
    ///
    /// # Errors
    /// [`OpenError`]: the disk failed, or the journal is not as it was written. Unless the disk
    /// failed, nothing was changed.
    pub fn open<D: Disk<File = F>>(
        disk: &D,
        options: JournalOptions,
        recover: &mut impl Recover,
    ) -> Result<(Self, Recovered), OpenError> {
        options.assert_valid();
        let reading = read(disk, recover)?;
        let recovered = reading.recovered;
        Ok((resume(disk, options, reading)?, recovered))
    }
}

/// Reads and judges a journal without changing anything.
///
/// # Errors
/// As [`Journal::open`].
pub fn verify<D: Disk>(disk: &D, recover: &mut impl Recover) -> Result<Recovered, OpenError> {
    read(disk, recover).map(|reading| reading.recovered)
}

pub(crate) fn read<D: Disk>(
    disk: &D,
    recover: &mut impl Recover,
) -> Result<Reading<D::File>, OpenError> {
    let survey = Survey::of(disk)?;
    survey.judge()?;
    read_surveyed(disk, survey, recover)
}

/// The same of files that were judged.
pub(crate) fn read_surveyed<D: Disk>(
    disk: &D,
    survey: Survey<D::File>,
    recover: &mut impl Recover,
) -> Result<Reading<D::File>, OpenError> {
    let (control, stamp) = (survey.control_or_none(), survey.stamp());
    let (directory, epoch) = (survey.directory(), survey.epoch());
    let Survey { names, files, mut snapshots, control_file, .. } = survey;
    let snapshot = snapshots.pop();
    let mut recovered = Recovered::default();
    if let Some(snapshot) = &snapshot {
        load(disk, snapshot, recover, &mut recovered)?;
    }
    let snapshot = snapshot.map(|snapshot| (snapshot.slot, snapshot.header));
    let mut walk = Walk {
        disk,
        files: &files,
        begin: snapshot.map_or(Lsn::ZERO, |(_, header)| header.begin),
        end: snapshot.map_or(Lsn::ZERO, |(_, header)| header.end),
        synced: control.synced,
        unsure: VecDeque::new(),
        indexes: files.iter().map(SegmentFile::index).collect(),
        recovered,
    };
    let start = walk.start()?;
    let Ended { tail, next, epoch: written } = walk.replay(start, recover)?;
    walk.restore(tail, recover)?;
    let epoch = epoch.max(written);
    if epoch.0 == u32::MAX {
        let cause = "no number is left for another opening".into();
        return Err(OpenError::Corrupt { file: CONTROL_NAME.into(), offset: 0, cause });
    }
    let (unsure, indexes, mut recovered) = (walk.unsure, walk.indexes, walk.recovered);
    recovered.last = Lsn(next.0 - 1);
    recover
        .finish(recovered.last)
        .map_err(|cause| OpenError::Missing { lsn: recovered.last, cause })?;
    let in_log = files.get(..tail.map_or(0, |tail| tail.index + 1)).unwrap_or_default();
    let live = live_of(in_log, recover.live());
    let snapshot_bytes = recover.snapshot_bytes();
    Ok(Reading {
        files,
        snapshot,
        tail,
        indexes,
        unsure,
        next,
        epoch,
        stamp,
        directory,
        control_file,
        names,
        live,
        snapshot_bytes,
        recovered,
    })
}

/// The live records of each of these files.
fn live_of<F>(
    files: &[SegmentFile<F>],
    records: impl Iterator<Item = (Lsn, u64)>,
) -> Vec<LiveRecords> {
    let first = |(index, file): (usize, &SegmentFile<F>)| Some((file.first?.lsn, index));
    let by_first: BTreeMap<Lsn, usize> = files.iter().enumerate().filter_map(first).collect();
    let mut live = vec![LiveRecords::NONE; files.len()];
    let (mut frames, mut holder) = (Lsn::ZERO..Lsn::ZERO, 0);
    for (lsn, bytes) in records {
        if !frames.contains(&lsn) {
            let holding = by_first.range(..=lsn).next_back();
            let (first, index) = holding.expect("invariant: what is live lies in a segment");
            let next = by_first.range(lsn.next()..).next();
            (frames, holder) = (*first..next.map_or(Lsn(u64::MAX), |(next, _)| *next), *index);
        }
        if let Some(live) = live.get_mut(holder) {
            *live += LiveRecords::one(bytes);
        }
    }
    live
}

fn load<D: Disk>(
    disk: &D,
    snapshot: &Snapshot<D::File>,
    recover: &mut impl Recover,
    recovered: &mut Recovered,
) -> Result<(), OpenError> {
    snapshot.each_chunk(disk, |chunk| {
        recovered.bytes += chunk.len() as u64;
        recover.load(chunk).map_err(|cause| OpenError::Corrupt {
            file: snapshot.slot.name().into(),
            offset: BLOCK_BYTES as u64,
            cause,
        })
    })?;
    recovered.snapshot = snapshot.header.number;
    recovered.latest = snapshot.header.time;
    Ok(())
}

/// Makes the disk fit to go on from the log that was read.
fn resume<D: Disk>(
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
    let directory = reading.directory.unwrap_or(DirectoryId(disk.salt()));
    let opening = Opening { epoch: Epoch(reading.epoch.0 + 1), salt: disk.salt(), directory };
    let mut reach = begin_notes(disk, &options, opening, &reading)?;
    let slots = open_slots(disk, &reading.names)?;
    if let Some((slot, header)) = &reading.snapshot {
        let header = SnapshotHeader { directory: Some(directory), ..*header };
        seal_again(disk, slots.get(slot.index()), &header)?;
    }
    // Files that were only ever another process'.
    reading
        .names
        .iter()
        .filter(|name| is_spill_name(name))
        .try_for_each(|name| disk.remove(name))?;
    end_recycling(disk, opening, &reading.files)?;
    let mut segments = arrange(disk, &options, opening, &reading)?;
    fill_reserve(disk, &options, &mut segments)?;
    // The names of the files just created.
    disk.sync_directory()?;
    if reach.number() != segments.active().life.number {
        let active = segments.active();
        note(disk, &mut reach, opening, active, (active.end, &options, reading.last()))?;
    }
    let (slot, header) = reading.snapshot.unwrap_or_default();
    let house = Housekeeping::new(slots, header, slot, reading.recovered.bytes);
    let mut journal = Journal::new(options, opening, reading.next, segments, (house, reach));
    journal.need_for_snapshot(reading.snapshot_bytes);
    let synced = journal.durable().synced;
    journal.segments.retire(header.begin, synced);
    Ok(journal)
}

/// Writes the control file of this opening, before any other write that could not be told from an
/// earlier opening's. Notes that the log goes on at its end, if that is in a segment that takes
/// batches.
fn begin_notes<D: Disk>(
    disk: &D,
    options: &JournalOptions,
    opening: Opening,
    reading: &Reading<D::File>,
) -> Result<Reach<D::File>, DiskError> {
    let file = match &reading.control_file {
        Some(file) => file.clone(),
        None => disk.create(CONTROL_NAME)?,
    };
    let mut reach = Reach::new(file, reading.stamp);
    let in_tail = |tail: Tail| reading.files.get(tail.index).map(|file| (file, tail.offset));
    match reading.tail.and_then(in_tail).filter(|(file, _)| file.life.takes_batches()) {
        Some((found, end)) => {
            let made = found.made().unwrap_or(end).max(end);
            let segment = segment(found.life, found.file.clone(), reading.next, end, made);
            note(disk, &mut reach, opening, &segment, (end, options, reading.last()))?;
        }
        None => reach.note_nothing(opening, reading.last()).write(disk, reach.control_file())?,
    }
    if reading.control_file.is_none() {
        // A start that finds a segment of this version looks for it.
        disk.sync_directory()?;
    }
    Ok(reach)
}

fn note<D: Disk>(
    disk: &D,
    reach: &mut Reach<D::File>,
    opening: Opening,
    segment: &Segment<D::File>,
    (end, options, synced): (u64, &JournalOptions, Lsn),
) -> Result<(), DiskError> {
    let bytes = (end + first_window(options.extent_bytes)).min(segment.initialised);
    let note = reach.note(opening, segment, (end, bytes), synced);
    note.perform(disk)?;
    reach.finish(&note);
    Ok(())
}

/// Files that were about to be used again hold nothing by their own names from now on: the numbers
/// that they tell will be others'.
fn end_recycling<D: Disk>(
    disk: &D,
    opening: Opening,
    files: &[SegmentFile<D::File>],
) -> Result<(), DiskError> {
    files.iter().filter(|file| file.recycling.is_some()).try_for_each(|file| {
        let life = Life::new(file.life.number, opening);
        let made = file.bytes.min(BLOCK_BYTES as u64);
        begin_life(disk, &file.file, (life, opening.directory), made)
    })
}

/// From here on all replayed frames count as synced. They may have been read from the page cache of
/// a process that was killed before it synced. If a sync has failed, the kernel may have marked
/// pages as clean that never reached the device, so another sync would do nothing. Writing the
/// frames again helps.
fn make_sure<D: Disk>(
    disk: &D,
    files: &[SegmentFile<D::File>],
    extent: &Extent,
) -> Result<(), DiskError> {
    assert!(extent.offset.is_multiple_of(BLOCK_BYTES as u64), "batches begin at blocks");
    assert!(extent.bytes.is_multiple_of(BLOCK_BYTES), "batches are whole blocks");
    let file = &files.get(extent.index).expect("invariant: indexes come from the same list").file;
    let mut bytes = vec![0; extent.bytes];
    disk.read(file, extent.offset, &mut bytes)?;
    let mut buffer = AlignedBuffer::with_capacity(extent.bytes);
    buffer.extend(&bytes);
    disk.write(file, extent.offset, buffer.bytes(), WriteMode::Synced)
}

/// The same for the snapshot: its body was synced before it got its header, the header perhaps not.
/// Without it the older snapshot would count again, and its log may be gone by then.
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

/// The segments of the log, those that are ready to continue it, and those with files that can be
/// used again.
fn arrange<D: Disk>(
    disk: &D,
    options: &JournalOptions,
    opening: Opening,
    reading: &Reading<D::File>,
) -> Result<Segments<D::File>, DiskError> {
    let mut table = BTreeMap::new();
    let mut idle = Vec::new();
    for (index, (found, frames)) in reading.files.iter().zip(&reading.indexes).enumerate() {
        let tail = reading.tail.filter(|tail| index <= tail.index);
        let SegmentFile { life, ref file, bytes, first, .. } = *found;
        // An older version's segment that no frame came to be in has no place in the log.
        let used = |mark: &Mark| life.takes_batches() || mark.lsn < reading.next;
        match (tail, first.filter(used)) {
            (Some(tail), Some(mark)) => {
                // Behind the end a crash may have left blocks that the length tells of and that
                // were never written: they are filled again.
                let is_last = index == tail.index;
                let end = if is_last { tail.offset } else { bytes };
                let made = found.made().filter(|_| is_last).map_or(end, |made| made.max(end));
                let first = mark.lsn;
                let found = segment(life, file.clone(), first, end, made);
                let live = reading.live.get(index).copied().unwrap_or_default();
                let index = frames.clone();
                table.insert(first, Segment { file_bytes: bytes, live, index, ..found });
            }
            _ => idle.push(idle_spare(found, options.reserve_bytes)),
        }
    }
    let highest = reading.files.last().map_or(0, |file| file.life.number.0);
    let mut next_number = SegmentNumber(highest).next();
    let place = |number| (Life::new(number, opening), opening.directory);
    if reading.names.iter().any(|name| name == UNFINISHED_NAME)
        && let Some(bytes) = finish(disk, place(next_number), options.reserve_bytes)?
    {
        let file = disk.open(&next_number.file_name())?;
        let (life, _) = place(next_number);
        idle.push(Spare { life, file, initialised: bytes, made: bytes, file_bytes: bytes });
        next_number = next_number.next();
    }
    if table.is_empty()
        && let Some(unused) = take_unused(&mut idle, options.segment_bytes)
    {
        let first = Segment::of_spare(unused, reading.next);
        table.insert(reading.next, first);
    }
    let newest = table.last_key_value().map(|(_, segment)| segment.life);
    if !newest.is_some_and(Life::takes_batches) {
        // A full device may have no room for a new file.
        let old = idle.pop();
        let bytes = if old.is_some() { options.segment_bytes } else { options.reserve_bytes };
        let file = prepare(disk, place(next_number), old.as_ref(), bytes)?;
        let (initialised, file_bytes) = old.map_or((bytes, bytes), |old| old.cut(bytes));
        let (life, _) = place(next_number);
        let spare = Spare { life, file, initialised, made: initialised, file_bytes };
        let before = table.insert(reading.next, Segment::of_spare(spare, reading.next));
        assert!(before.is_none(), "the log goes on behind all its segments");
        next_number = next_number.next();
    }
    let mut segments = Segments::new(table, idle, next_number);
    segments.keep_spares(options.segment_bytes, |life| reading.is_unused(life));
    Ok(segments)
}

/// A reserve in which the log goes on offers again as much as before. On a full device no other
/// work would fill it: neither now, nor once it is a spare again, on which settling relies.
fn fill_reserve<D: Disk>(
    disk: &D,
    options: &JournalOptions,
    segments: &mut Segments<D::File>,
) -> Result<(), DiskError> {
    let active = segments.active();
    let (number, from) = (active.life.number, active.initialised);
    let to = active.file_bytes.min(options.reserve_bytes) / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
    if from >= to {
        return Ok(());
    }
    match extend(disk, &active.file, from, to) {
        // Some of its blocks were never written, and now there are none.
        Err(error) if error.kind == DiskErrorKind::Full => Ok(()),
        filled => {
            filled?;
            segments.extended(number, to);
            Ok(())
        }
    }
}

/// A file of which nothing matters. An older version did not tell how much of it was written: it
/// counts as far as its whole blocks go. Its first block always counts, for the file gets a new
/// header when it is used.
fn idle_spare<F: Clone>(found: &SegmentFile<F>, reserve_bytes: u64) -> Spare<F> {
    let SegmentFile { life, ref file, bytes, .. } = *found;
    let block = BLOCK_BYTES as u64;
    let written = found.made().unwrap_or(bytes.min(reserve_bytes));
    let initialised = (written / block * block).max(block);
    let (made, file_bytes) = (found.made().unwrap_or_default(), bytes.max(block));
    Spare { life, file: file.clone(), initialised, made, file_bytes }
}

fn segment<F>(life: Life, file: F, first: Lsn, end: u64, initialised: u64) -> Segment<F> {
    let made = initialised;
    let spare = Spare { life, file, initialised, made, file_bytes: initialised };
    Segment { end, ..Segment::of_spare(spare, first) }
}

/// A segment of this version that holds nothing, in which a log without frames begins.
fn take_unused<F>(idle: &mut Vec<Spare<F>>, segment_bytes: u64) -> Option<Spare<F>> {
    let fits = |spare: &Spare<F>| spare.life.takes_batches() && spare.file_bytes <= segment_bytes;
    idle.iter().position(fits).map(|index| idle.remove(index))
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
