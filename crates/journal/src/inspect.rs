//! Shows a journal's files without judging them: the output of `dunlin journal dump`.

use model::{Lsn, Nanos};

use crate::control::CONTROL_NAME;
use crate::format::{Epoch, Life, SegmentHeader, SegmentNumber};
use crate::reader::SegmentReader;
use crate::snapshot::{SLOT_NAMES, Snapshot};
use crate::{BLOCK_BYTES, Disk, OpenError};

/// An entry of the dump, in the order of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DumpEntry<'a> {
    /// The newest whole snapshot.
    Snapshot {
        /// Its file.
        file: &'a str,
        /// How many were taken before, plus one.
        number: u64,
        /// It holds the effect of every frame up to here.
        begin: Lsn,
        /// It holds the effect of no frame after this one.
        end: Lsn,
        /// When it began.
        time: Nanos,
    },
    /// A piece of that snapshot.
    Chunk {
        /// The engine's bytes.
        payload: &'a [u8],
    },
    /// A segment.
    Segment {
        /// Its file.
        file: &'a str,
        /// Bytes of the file.
        bytes: u64,
        /// True if its header is whole.
        whole: bool,
    },
    /// A whole batch.
    Batch {
        /// The segment's file.
        file: &'a str,
        /// Its offset in the file.
        offset: u64,
        /// The first frame in it.
        lsn: Lsn,
        /// How many frames.
        frames: u32,
        /// Bytes with padding.
        bytes: u32,
        /// The opening of the journal that wrote it.
        epoch: u32,
        /// The position known to be synced then.
        synced: Lsn,
        /// When.
        time: Nanos,
    },
    /// A frame of that batch.
    Frame {
        /// Its position.
        lsn: Lsn,
        /// The engine's bytes.
        payload: &'a [u8],
    },
    /// No whole batch follows in that segment.
    End {
        /// The segment's file.
        file: &'a str,
        /// The offset at which one would be.
        offset: u64,
        /// The highest position that anything behind claims to have been synced; zero: nothing is.
        claimed: Lsn,
    },
}

/// Shows everything that can be read, even beside damage.
///
/// # Errors
/// When the disk fails, or the newest snapshot cannot be read at all.
pub fn inspect<D: Disk>(disk: &D, show: &mut impl FnMut(DumpEntry<'_>)) -> Result<(), OpenError> {
    let names = disk.names()?;
    if let Some(snapshot) = Snapshot::find_all(disk, &names)?.last() {
        show_snapshot(disk, snapshot, show)?;
    }
    let mut numbers: Vec<_> =
        names.iter().filter_map(|name| SegmentNumber::from_file_name(name)).collect();
    numbers.sort_unstable();
    numbers.into_iter().try_for_each(|number| show_segment(disk, number, show))
}

/// Returns true if a file of that name is a journal's, so that a directory that has one was a
/// broker's. Files beside it, the lock and the spill, tell nothing of messages that should be
/// there.
#[must_use]
pub fn is_journal_name(name: &str) -> bool {
    name == CONTROL_NAME
        || SLOT_NAMES.contains(&name)
        || SegmentNumber::from_file_name(name).is_some()
}

fn show_snapshot<D: Disk>(
    disk: &D,
    snapshot: &Snapshot<D::File>,
    show: &mut impl FnMut(DumpEntry<'_>),
) -> Result<(), OpenError> {
    let header = snapshot.header;
    show(DumpEntry::Snapshot {
        file: snapshot.slot.name(),
        number: header.number,
        begin: header.begin,
        end: header.end,
        time: header.time,
    });
    snapshot.each_chunk(disk, |payload| {
        show(DumpEntry::Chunk { payload });
        Ok(())
    })
}

fn show_segment<D: Disk>(
    disk: &D,
    number: SegmentNumber,
    show: &mut impl FnMut(DumpEntry<'_>),
) -> Result<(), OpenError> {
    let name = number.file_name();
    let file = disk.open(&name)?;
    let length = disk.length(&file)?;
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    let read = disk.read(&file, 0, &mut bytes)?;
    bytes.truncate(read);
    let header = SegmentHeader::decode(&bytes);
    let header = header.filter(|header| header.number == number);
    show(DumpEntry::Segment { file: &name, bytes: length, whole: header.is_some() });
    let life = match header {
        Some(header) => Life::of(number, &header),
        None => Life::of_first_mark(number, bytes.get(BLOCK_BYTES..).unwrap_or_default()),
    };
    show_batches(&name, &bytes, life, show);
    Ok(())
}

fn show_batches(name: &str, bytes: &[u8], life: Life, show: &mut impl FnMut(DumpEntry<'_>)) {
    let batches = bytes.get(BLOCK_BYTES..).unwrap_or_default();
    let mut reader = SegmentReader::new(batches, life, None, Epoch::default());
    let place = |reader: &SegmentReader<'_>| (BLOCK_BYTES + reader.offset()) as u64;
    loop {
        let offset = place(&reader);
        let Some(batch) = reader.next_batch() else { break };
        show(DumpEntry::Batch {
            file: name,
            offset,
            lsn: batch.mark.lsn,
            frames: batch.mark.frames,
            bytes: batch.mark.batch_bytes,
            epoch: batch.mark.epoch.0,
            synced: batch.mark.synced,
            time: batch.mark.time,
        });
        for frame in batch.frames() {
            show(DumpEntry::Frame { lsn: frame.lsn, payload: frame.payload });
        }
    }
    let (offset, claimed) = (place(&reader), reader.claims(batches.len() as u64).synced);
    show(DumpEntry::End { file: name, offset, claimed });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_is_known_by_file_names() {
        for name in ["epoch", "snapshot-a", "snapshot-b", "0000000000000042.segment"] {
            assert!(is_journal_name(name), "{name}");
        }
        for name in ["lock", "0000000000000042.spill", "42.segment", "snapshot-c", "notes.txt"] {
            assert!(!is_journal_name(name), "{name}");
        }
    }
}
