//! The files of a directory, and the check that they belong together. Each is as long as it was
//! made, of this directory, by its own name. None is missing or older than the others, as far as
//! that can be told without reading the log.

use std::collections::BTreeMap;

use model::Lsn;

use crate::control::{CONTROL_NAME, Control, FoundControl, read_control};
use crate::error::FileFault;
use crate::format::{
    DirectoryId, Epoch, FORMAT_VERSION, FORMAT_VERSION_OLDEST, Life, Mark, SEGMENT_NUMBER_MAX,
    SegmentHeader, SegmentNumber,
};
use crate::frame_index::FrameIndex;
use crate::snapshot::Snapshot;
use crate::watermark::{SEQUENCE_MAX, Stamp, WATERMARK_AT, Watermark};
use crate::{BLOCK_BYTES, Disk, FilePart, OpenError};

/// The files of a directory.
#[derive(Debug)]
pub(crate) struct Survey<F> {
    pub(crate) names: Vec<String>,
    /// All segment files in the order of their numbers.
    pub(crate) files: Vec<SegmentFile<F>>,
    /// Snapshots with a header, the newest last.
    pub(crate) snapshots: Vec<Snapshot<F>>,
    control: FoundControl,
    pub(crate) control_file: Option<F>,
}

/// A segment's file as found.
#[derive(Debug)]
pub(crate) struct SegmentFile<F> {
    pub(crate) life: Life,
    pub(crate) file: F,
    pub(crate) bytes: u64,
    /// The mark of its first batch, whole or not; `None`: it holds nothing of this life.
    pub(crate) first: Option<Mark>,
    /// The directory that it belongs to; `None` in older versions.
    directory: Option<DirectoryId>,
    /// `None` in older versions.
    pub(crate) watermark: Option<Watermark>,
    /// Another life of the file was about to begin when the process ended, by that number: nothing
    /// in it matters.
    pub(crate) recycling: Option<SegmentNumber>,
}

impl<F> SegmentFile<F> {
    /// One of its frames that knows none yet.
    pub(crate) fn index(&self) -> FrameIndex {
        FrameIndex::new(self.first.map_or(Lsn::ZERO, |mark| mark.lsn))
    }

    /// True if it may hold batches.
    pub(crate) fn is_begun(&self) -> bool {
        self.recycling.is_none() && self.watermark.is_none_or(|watermark| watermark.is_begun())
    }

    /// No batch ends behind it.
    pub(crate) fn reach(&self) -> u64 {
        match self.watermark {
            _ if !self.is_begun() => BLOCK_BYTES as u64,
            Some(watermark) => watermark.reach.min(self.bytes),
            None => self.bytes,
        }
    }

    /// How many of its bytes were written before, with any content.
    pub(crate) fn made(&self) -> Option<u64> {
        self.watermark.filter(|_| self.recycling.is_none()).map(|watermark| watermark.made)
    }

    fn sequence(&self) -> u64 {
        self.watermark.filter(|_| self.is_begun()).map_or(0, |it| it.stamp.sequence)
    }

    fn name(&self) -> String {
        self.life.number.file_name()
    }
}

impl<F: Clone> SegmentFile<F> {
    /// The part of it that is read: all that may be batches.
    pub(crate) fn batches(&self) -> FilePart<F> {
        FilePart { file: self.file.clone(), from: BLOCK_BYTES as u64, to: self.reach() }
    }
}

impl<F> Survey<F> {
    /// Looks at all files; reads their headers, and marks of first batches.
    ///
    /// # Errors
    /// The disk failed, a newer program was here, or a header is not one.
    pub(crate) fn of<D: Disk<File = F>>(disk: &D) -> Result<Self, OpenError> {
        let names = disk.names()?;
        let (control, control_file) = read_control(disk, &names)?;
        let mut numbers: Vec<_> =
            names.iter().filter_map(|name| SegmentNumber::from_file_name(name)).collect();
        numbers.sort_unstable();
        let files: Result<_, OpenError> =
            numbers.into_iter().map(|number| survey_one(disk, number)).collect();
        let snapshots = Snapshot::find_all(disk, &names)?;
        Ok(Self { files: files?, snapshots, control, control_file, names })
    }

    /// The content of the control file, or a substitute: an older version's knows no more than an
    /// epoch.
    pub(crate) fn control_or_none(&self) -> Control {
        let directory = self.directory().unwrap_or_default();
        self.control.whole().unwrap_or(Control {
            epoch: self.control.epoch(),
            directory,
            segment: SegmentNumber::default(),
            stamp: Stamp::default(),
            synced: Lsn::ZERO,
        })
    }

    /// That content counts as the control file's.
    pub(crate) fn replace_control(&mut self, control: Control) {
        self.control = FoundControl::Whole(control);
    }

    /// The directory that its files are of, the control file's if that is there.
    pub(crate) fn directory(&self) -> Option<DirectoryId> {
        let of_control = self.control.whole().map(|control| control.directory);
        of_control.or_else(|| self.directory_of_others())
    }

    /// The directory that the files but the control file are of.
    pub(crate) fn directory_of_others(&self) -> Option<DirectoryId> {
        let of_snapshots = || self.snapshots.iter().find_map(|it| it.header.directory);
        self.files.iter().find_map(|file| file.directory).or_else(of_snapshots)
    }

    /// The highest epoch that any file tells of, marks but the first of segments left out.
    pub(crate) fn epoch(&self) -> Epoch {
        let of_files = self.files.iter().flat_map(|file| {
            let written = file.watermark.map(|watermark| watermark.epoch);
            [Some(file.life.epoch()), written, file.first.map(|mark| mark.epoch)]
        });
        let of_snapshots = self.snapshots.iter().map(|snapshot| Some(snapshot.header.epoch));
        let all = of_files.chain(of_snapshots).flatten();
        all.fold(self.control.epoch(), Epoch::max)
    }

    /// The last note that any file tells of.
    pub(crate) fn stamp(&self) -> Stamp {
        let of_files = self.files.iter().filter_map(|file| file.watermark);
        let stamps = of_files.map(|watermark| watermark.stamp);
        stamps
            .fold(self.control_or_none().stamp, |a, b| if b.sequence > a.sequence { b } else { a })
    }

    /// Checks that the files belong together.
    ///
    /// # Errors
    /// The first fault that is found.
    pub(crate) fn judge(&self) -> Result<(), OpenError> {
        self.judge_control()?;
        let control = self.control_or_none();
        self.judge_directory(control.directory)?;
        self.files.iter().try_for_each(|file| judge_length(file))?;
        self.judge_recycling(control.segment)?;
        self.judge_last(&control)?;
        let Some(snapshot) = self.snapshots.last() else { return Ok(()) };
        if self.files.is_empty() {
            let cause = format!("there is no segment, and {} is of a log", snapshot.slot.name());
            return Err(fault("the log", FileFault::Gone { cause }));
        }
        judge_snapshot(snapshot)
    }

    /// The control file is on the device before any segment of this version has its name, and
    /// before any frame of an older one is written.
    fn judge_control(&self) -> Result<(), OpenError> {
        let is_used = self.files.iter().any(|it| it.first.is_some() || it.directory.is_some());
        let is_used = is_used || !self.snapshots.is_empty();
        let cause = match self.control {
            FoundControl::Missing if is_used => "the log is not empty",
            FoundControl::Empty if is_used => {
                return Err(corrupt_control("it is empty and the log is not"));
            }
            FoundControl::Whole(Control { stamp, .. }) if stamp.sequence > SEQUENCE_MAX => {
                return Err(corrupt_control("no number is left for a note that comes after it"));
            }
            FoundControl::Corrupt => return Err(corrupt_control("it is not what was written")),
            _ => return Ok(()),
        };
        Err(fault(CONTROL_NAME, FileFault::Gone { cause: cause.into() }))
    }

    fn judge_directory(&self, directory: DirectoryId) -> Result<(), OpenError> {
        let of_files = self.files.iter().map(|file| (file.name(), file.directory));
        let of_snapshots = self.snapshots.iter();
        let of_snapshots = of_snapshots.map(|it| (it.slot.name().to_owned(), it.header.directory));
        let all: Vec<_> = of_files.chain(of_snapshots).collect();
        let is_foreign = |of: &Option<DirectoryId>| of.is_some_and(|of| of != directory);
        let Some((name, _)) = all.iter().find(|(_, of)| is_foreign(of)) else { return Ok(()) };
        // If none of the others is its own the control file is the one that was brought.
        let is_control = !all.iter().any(|(_, of)| *of == Some(directory));
        let name = if is_control && self.control.whole().is_some() { CONTROL_NAME } else { name };
        Err(fault(name, FileFault::Foreign))
    }

    /// A file with another number in its header than in its name was being recycled when the
    /// process ended. Then no batch has been in the segment of the header's number.
    fn judge_recycling(&self, begun: SegmentNumber) -> Result<(), OpenError> {
        let begun_files = self.files.iter().filter(|file| file.sequence() > 0);
        let begun = begun_files.map(|file| file.life.number).fold(begun, SegmentNumber::max);
        self.files.iter().try_for_each(|file| match file.recycling {
            Some(holds) if holds <= begun.max(file.life.number) => {
                Err(fault(&file.name(), FileFault::Renamed { holds }))
            }
            _ => Ok(()),
        })
    }

    /// The control file names the segment in which the log goes on, and the last note to it. Each
    /// segment's watermark is written before it. So only a control file that is older than the
    /// others finds a later note; then its content is over.
    fn judge_last(&self, control: &Control) -> Result<(), OpenError> {
        let last = self.files.iter().map(SegmentFile::sequence).max().unwrap_or_default();
        let Control { segment, stamp, .. } = *control;
        if segment == SegmentNumber::default() || last > stamp.sequence {
            return Ok(());
        }
        let by_number: BTreeMap<_, _> =
            self.files.iter().map(|file| (file.life.number, file)).collect();
        let name = segment.file_name();
        let Some(file) = by_number.get(&segment).filter(|file| file.recycling.is_none()) else {
            let cause = format!("the log goes on in it, says the file {CONTROL_NAME}");
            return Err(fault(&name, FileFault::Gone { cause }));
        };
        match file.watermark.map(|watermark| watermark.stamp) {
            Some(found) if found == stamp => Ok(()),
            Some(found) if found.sequence == stamp.sequence => {
                let cause = "both were written to since one was copied from the other";
                Err(fault(&name, FileFault::Stale { cause: cause.into() }))
            }
            found => {
                let found = found.unwrap_or_default().sequence;
                let cause = format!(
                    "its watermark is number {found}, and {CONTROL_NAME} tells of number {}",
                    stamp.sequence
                );
                Err(fault(&name, FileFault::Stale { cause }))
            }
        }
    }
}

fn judge_length<F>(file: &SegmentFile<F>) -> Result<(), OpenError> {
    let (bytes, made) = (file.bytes, file.made().unwrap_or_default());
    if bytes < made { Err(fault(&file.name(), FileFault::Short { bytes, made })) } else { Ok(()) }
}

fn judge_snapshot<F>(snapshot: &Snapshot<F>) -> Result<(), OpenError> {
    let Snapshot { slot, header, bytes, .. } = snapshot;
    let made = header.body_bytes.saturating_add(BLOCK_BYTES as u64);
    if *bytes < made {
        return Err(fault(slot.name(), FileFault::Short { bytes: *bytes, made }));
    }
    if header.begin > header.end {
        let cause = "it ends before it begins".into();
        return Err(OpenError::Corrupt { file: slot.name().into(), offset: 24, cause });
    }
    if header.begin.max(header.end).0.max(header.number) == u64::MAX {
        let cause = "no frame or snapshot could come after it".into();
        return Err(OpenError::Corrupt { file: slot.name().into(), offset: 0, cause });
    }
    Ok(())
}

const BLOCK: u64 = BLOCK_BYTES as u64;

fn survey_one<D: Disk>(disk: &D, number: SegmentNumber) -> Result<SegmentFile<D::File>, OpenError> {
    let name = number.file_name();
    let file = disk.open(&name)?;
    let bytes = disk.length(&file)?;
    let mut blocks = vec![0; 2 * BLOCK_BYTES];
    let read = disk.read(&file, 0, &mut blocks)?;
    blocks.truncate(read);
    let corrupt = |offset: usize, cause: &str| match bytes {
        0..BLOCK => fault(&name, FileFault::Short { bytes, made: BLOCK }),
        _ => OpenError::Corrupt { file: name.clone(), offset: offset as u64, cause: cause.into() },
    };
    let Some(header) = SegmentHeader::decode(&blocks) else {
        return Err(corrupt(0, "the segment's header is not one"));
    };
    if !(FORMAT_VERSION_OLDEST..=FORMAT_VERSION).contains(&header.version) {
        return Err(OpenError::Version { file: name, found: header.version });
    }
    if number.0 > SEGMENT_NUMBER_MAX {
        return Err(corrupt(16, "no number is left for segments that come after it"));
    }
    let life = Life::of(number, &header);
    let directory = header.directory;
    let (first, watermark, recycling) = (None, None, None);
    let found = SegmentFile { life, file, bytes, first, directory, watermark, recycling };
    if header.number != number {
        return Ok(SegmentFile { recycling: Some(header.number), ..found });
    }
    let found = match Watermark::decode(&blocks) {
        _ if !life.has_watermark() => found,
        // One sector of the first block was written and another was not.
        Some(other) if other.number > number => {
            return Ok(SegmentFile { recycling: Some(other.number), ..found });
        }
        Some(own) => match own.of(life) {
            Some(watermark) if watermark.stamp.sequence > SEQUENCE_MAX => {
                let cause = "no number is left for a note that comes after it";
                return Err(corrupt(WATERMARK_AT, cause));
            }
            Some(watermark) => SegmentFile { watermark: Some(watermark), ..found },
            None => return Err(corrupt(WATERMARK_AT, "the watermark is of another segment")),
        },
        None => return Err(corrupt(WATERMARK_AT, "the segment's watermark is not one")),
    };
    let left = found.reach().saturating_sub(BLOCK_BYTES as u64);
    let left = usize::try_from(left).unwrap_or(usize::MAX);
    let batch = blocks.get(BLOCK_BYTES..).filter(|_| found.is_begun());
    let first = batch.and_then(|batch| Mark::decode(batch, life, left));
    Ok(SegmentFile { first, ..found })
}

fn fault(file: &str, fault: FileFault) -> OpenError {
    OpenError::File { file: file.into(), fault }
}

fn corrupt_control(cause: &str) -> OpenError {
    OpenError::Corrupt { file: CONTROL_NAME.into(), offset: 0, cause: cause.into() }
}
