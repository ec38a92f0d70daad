//! Reads the remains of a damaged directory.
//!
//! Recovery takes a log as it was written or not at all. [`Remains`] takes every frame and every
//! chunk of the snapshot if its checksum holds, and reports the missing frames. It changes nothing.
//! The caller judges the meaning of the frames without the missing ones.

mod scan;
pub(crate) mod sums;
mod window;

use std::cmp::Reverse;

use model::{Lsn, Nanos};

use crate::control::{FoundControl, read_control};
use crate::format::{
    DirectoryId, FORMAT_VERSION, FORMAT_VERSION_OLDEST, Frame, Life, SegmentNumber,
};
use crate::snapshot::{Slot, Snapshot};
use crate::survey::Survey;
use crate::watermark::Watermark;
use crate::{BLOCK_BYTES, Disk, FRAME_HEADER_BYTES, OpenError};

use scan::{Findings, LSN_END, Run, Scan, claimed_bytes, life_of};
use window::Window;

/// The readable part of a directory.
#[derive(Debug)]
pub struct Remains<F> {
    files: Vec<RemainsFile<F>>,
    runs: Vec<Run>,
    snapshot: Option<Snapshot<F>>,
    damage: Vec<Damage>,
    synced: Lsn,
    latest: Nanos,
    payload_bytes_max: usize,
}

#[derive(Debug)]
struct RemainsFile<F> {
    name: String,
    file: F,
    bytes: u64,
    life: Life,
    directory: Option<DirectoryId>,
}

/// Takes a frame, by its position and its payload.
pub type TakeFrame<'a, E> = dyn FnMut(Lsn, &[u8]) -> Result<(), E> + 'a;

/// Something that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: String,
    /// The fault.
    pub cause: String,
}

/// Frames that no file holds any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first of them.
    pub first: Lsn,
    /// The last of them.
    pub last: Lsn,
    /// The file that holds the frame before them, and where that one's batch or run begins.
    pub after: Option<(String, u64)>,
    /// Something says that they were on the device. If not, they may never have been confirmed.
    pub synced: bool,
}

impl<F: Clone> Remains<F> {
    /// Looks through all files of a directory. Tells `read` of bytes that were read.
    ///
    /// # Errors
    /// A newer program wrote one of the files, or the directory cannot be listed, or a file of it
    /// cannot be opened.
    pub fn of<D: Disk<File = F>>(disk: &D, read: &mut dyn FnMut(usize)) -> Result<Self, OpenError> {
        let mut damage = Vec::new();
        if let Err(error) = Survey::of(disk).and_then(|survey| survey.judge()) {
            match error {
                OpenError::Version { .. } => return Err(error),
                error => damage.push(Damage { file: "the directory".into(), cause: error.cause() }),
            }
        }
        let names = disk.names()?;
        let control = match read_control(disk, &names) {
            Ok((control, _)) => control,
            Err(OpenError::Disk(_)) => FoundControl::Corrupt,
            Err(error) => return Err(error),
        };
        let mut files = Vec::new();
        let numbers = names.iter().filter_map(|name| SegmentNumber::from_file_name(name));
        let mut numbers: Vec<_> = numbers.collect();
        numbers.sort_unstable();
        for number in numbers {
            files.extend(find_file(disk, number, &mut damage)?);
        }
        let mut snapshots = Vec::new();
        for slot in Slot::ALL {
            match Snapshot::find(disk, slot, &names) {
                Ok(found) => snapshots.extend(found),
                Err(OpenError::Disk(error)) => {
                    damage.push(Damage { file: slot.name().into(), cause: error.to_string() });
                }
                Err(error) => return Err(error),
            }
        }
        snapshots.sort_by_key(|snapshot| snapshot.header.number);
        let directory = main_directory(&control, &files, &snapshots);
        let is_own = |of: Option<DirectoryId>| of.is_none() || of == directory;
        files.retain(|file| {
            let own = is_own(file.directory);
            if !own {
                let cause = "it is from another data directory, so nothing of it is taken".into();
                damage.push(Damage { file: file.name.clone(), cause });
            }
            own
        });
        snapshots.retain(|snapshot| {
            let header = &snapshot.header;
            is_own(header.directory) && header.begin.max(header.end) < LSN_END
        });
        let snapshot = snapshots.pop();
        let mut found = Findings::default();
        for (index, file) in files.iter().enumerate() {
            let mut window = Window::new(disk, file.file.clone(), file.bytes);
            let life = file.life;
            Scan { window: &mut window, life, file: index, found: &mut found }.run();
            read(usize::try_from(file.bytes).unwrap_or(usize::MAX));
            note_unreadable(&mut damage, &file.name, window.unreadable());
        }
        let control = control.whole();
        let synced = found.synced.max(control.map_or(Lsn::ZERO, |control| control.synced));
        let of_snapshot = snapshot.as_ref().map(|it| (it.header.end, it.header.time));
        let (end, time) = of_snapshot.unwrap_or_default();
        let synced = synced.max(end);
        let runs = resolve(found.runs);
        let latest = found.latest.max(time);
        let payload_bytes_max = found.payload_bytes_max;
        Ok(Self { files, runs, snapshot, damage, synced, latest, payload_bytes_max })
    }

    /// Everything that was found to be damaged so far, gaps between frames aside.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// The snapshot holds the effect of every frame up to here; zero without a snapshot.
    #[must_use]
    pub fn begin(&self) -> Lsn {
        self.snapshot.as_ref().map_or(Lsn::ZERO, |snapshot| snapshot.header.begin)
    }

    /// The last frame that can be read, or that the snapshot covers.
    #[must_use]
    pub fn last(&self) -> Lsn {
        self.runs.last().map_or(Lsn::ZERO, |run| run.last).max(self.begin())
    }

    /// Nothing can be read: neither a frame nor a snapshot.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.snapshot.is_none()
    }

    /// The latest time that anything tells.
    #[must_use]
    pub fn latest(&self) -> Nanos {
        self.latest
    }

    /// The largest payload of a frame.
    #[must_use]
    pub fn payload_bytes_max(&self) -> usize {
        self.payload_bytes_max
    }

    /// The frames after the snapshot that no file holds.
    #[must_use]
    pub fn gaps(&self) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let (mut next, mut after) = (self.begin().next(), None);
        let mut note = |first: Lsn, last: Lsn, after: Option<(String, u64)>| {
            gaps.push(Gap { first, last, after, synced: first <= self.synced });
        };
        for run in &self.runs {
            if run.first > next {
                note(next, Lsn(run.first.0 - 1), after.take());
            }
            if let Some(file) = self.files.get(run.file) {
                after = Some((file.name.clone(), run.offset));
            }
            next = next.max(run.last.next());
        }
        if next <= self.synced {
            note(next, self.synced, after);
        }
        gaps
    }

    /// Hands over the chunks of the snapshot in their order, and `None` for each stretch between
    /// them that is not as it was written.
    pub fn each_chunk<D: Disk<File = F>>(&mut self, disk: &D, take: &mut dyn FnMut(Option<&[u8]>)) {
        let Some(snapshot) = &self.snapshot else { return };
        let mut window = Window::new(disk, snapshot.file().clone(), snapshot.bytes);
        let mut lost = 0;
        let bytes = usize::try_from(snapshot.bytes).unwrap_or(usize::MAX);
        snapshot.each_chunk_left(window.part(0, bytes), &mut |chunk| {
            lost += u64::from(chunk.is_none());
            take(chunk);
        });
        let name = snapshot.slot.name();
        note_unreadable(&mut self.damage, name, window.unreadable());
        if lost > 0 {
            let cause = format!("{lost} stretches of the snapshot are not what was written");
            self.damage.push(Damage { file: name.into(), cause });
        }
    }

    /// Hands over the frames of these positions, ascending. A frame that could be read before and
    /// cannot be read again is noted as damage.
    ///
    /// # Errors
    /// The first of `take`.
    pub fn each_frame<D: Disk<File = F>, E>(
        &mut self,
        disk: &D,
        (first, last): (Lsn, Lsn),
        take: &mut TakeFrame<'_, E>,
    ) -> Result<(), E> {
        let mut open: Option<(usize, Window<'_, D>)> = None;
        let mut vanished = Vec::new();
        for run in self.runs.iter().filter(|run| run.last >= first && run.first <= last) {
            let Some(file) = self.files.get(run.file) else { continue };
            if open.as_ref().is_none_or(|(index, _)| *index != run.file) {
                open = Some((run.file, Window::new(disk, file.file.clone(), file.bytes)));
            }
            let Some((_, window)) = &mut open else { continue };
            let (mut at, mut reached) = (run.offset, Lsn::ZERO);
            let end = run.last.min(last);
            while reached < end {
                let bytes = claimed_bytes(window.part(at, FRAME_HEADER_BYTES));
                // Checked once more: a device that loses bits may lose more of them.
                let frame = bytes.and_then(|it| Frame::decode(window.part(at, it), file.life));
                let Some(frame) = frame else {
                    let cause = format!("frames up to {end} cannot be read again at byte {at}");
                    vanished.push(Damage { file: file.name.clone(), cause });
                    break;
                };
                reached = frame.lsn;
                if reached >= run.first.max(first) {
                    take(reached, frame.payload)?;
                }
                at += frame.bytes() as u64;
            }
        }
        self.damage.extend(vanished);
        Ok(())
    }
}

fn find_file<D: Disk>(
    disk: &D,
    number: SegmentNumber,
    damage: &mut Vec<Damage>,
) -> Result<Option<RemainsFile<D::File>>, OpenError> {
    let name = number.file_name();
    let file = disk.open(&name)?;
    let bytes = disk.length(&file)?;
    let mut window = Window::new(disk, file.clone(), bytes);
    let mut note = |cause: String| damage.push(Damage { file: name.clone(), cause });
    let Some((life, header)) = life_of(&mut window) else {
        note("neither its header nor any batch can be read".into());
        return Ok(None);
    };
    match header {
        Some(header) if !(FORMAT_VERSION_OLDEST..=FORMAT_VERSION).contains(&header.version) => {
            return Err(OpenError::Version { file: name, found: header.version });
        }
        Some(_) => {}
        None => note("its header is damaged".into()),
    }
    let watermark = Watermark::decode(window.part(0, BLOCK_BYTES)).and_then(|it| it.of(life));
    if let Some(made) = watermark.map(|watermark| watermark.made).filter(|made| bytes < *made) {
        note(format!("it was cut: it has {bytes} bytes and was made with {made}"));
    }
    let directory = header.and_then(|header| header.directory);
    Ok(Some(RemainsFile { name, file, bytes, life, directory }))
}

/// The directory that most files are of; the control file's, if any other is of it too.
fn main_directory<F>(
    control: &FoundControl,
    files: &[RemainsFile<F>],
    snapshots: &[Snapshot<F>],
) -> Option<DirectoryId> {
    let of_files = files.iter().filter_map(|file| file.directory);
    let of_snapshots = snapshots.iter().filter_map(|snapshot| snapshot.header.directory);
    let all: Vec<_> = of_files.chain(of_snapshots).collect();
    let count = |of: DirectoryId| all.iter().filter(|other| **other == of).count();
    let of_control = control.whole().map(|control| control.directory);
    let of_control = of_control.filter(|of| count(*of) > 0);
    of_control.or_else(|| all.iter().copied().max_by_key(|of| count(*of)))
}

fn note_unreadable(damage: &mut Vec<Damage>, file: &str, blocks: u64) {
    if blocks > 0 {
        let cause = format!("the device cannot read {blocks} blocks of {BLOCK_BYTES} bytes");
        damage.push(Damage { file: file.into(), cause });
    }
}

/// Picks the runs that are the log. An opening writes over the bytes that an earlier one left
/// behind the end of the log, so its first frame ends all earlier openings. Each position is taken
/// once.
fn resolve(mut runs: Vec<Run>) -> Vec<Run> {
    runs.sort_by_key(|run| (Reverse(run.epoch), run.first, run.offset));
    let (mut end, mut epoch) = (Lsn(u64::MAX), None);
    let mut first_of_epoch = end;
    for run in &mut runs {
        if epoch.replace(run.epoch) != Some(run.epoch) {
            end = first_of_epoch;
        }
        first_of_epoch = first_of_epoch.min(run.first);
        if run.last >= end {
            run.last = Lsn(end.0 - 1);
        }
    }
    runs.retain(|run| run.first <= run.last);
    runs.sort_by_key(|run| (run.first, run.offset));
    let mut next = Lsn::ZERO;
    for run in &mut runs {
        run.first = run.first.max(next);
        next = next.max(run.last.next());
    }
    runs.retain(|run| run.first <= run.last);
    assert!(runs.is_sorted_by(|run, next| run.last < next.first), "each position is taken once");
    runs
}
