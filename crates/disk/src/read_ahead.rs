//! Reading and checking files while those before are being digested: recovery reads on one core and
//! replays on another. Two buffers go back and forth, so no more than two files are in memory; and
//! one where there is no memory for two, in which files are read one after the other.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, scope};

use journal::{CheckFile, DiskError, DiskErrorKind, ReadBuffers, TakeFile, read_whole};

use crate::{File, RealDisk};

/// Hands files to `take` in their order; a thread reads and checks the next one meanwhile, where
/// two of them take no more than `memory_bytes`.
///
/// # Errors
/// As [`journal::Disk::read_files`], and when there can be no thread.
pub(crate) fn read_ahead(
    disk: &RealDisk,
    files: &[(File, u64)],
    buffers: &mut ReadBuffers,
    memory_bytes: u64,
    (check, take): (&CheckFile<'_>, &mut TakeFile<'_>),
) -> Result<(), DiskError> {
    let largest = files.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
    let count = if largest > memory_bytes / 2 { 1 } else { 2 };
    let (filled, arriving) = sync_channel(0);
    let (used, empty) = channel();
    for _ in 0..count {
        // The other end is here.
        let _ = used.send(buffers.pop().unwrap_or_default());
    }
    let (result, empty) = scope(move |scope| {
        let reader = Builder::new().name("read ahead".into());
        let started = reader.spawn_scoped(scope, move || fill(disk, files, check, empty, &filled));
        let reader = started.map_err(|error| no_thread(&error))?;
        // When this ends early `arriving` and `used` go, and with them the reader.
        let result = hand_over(arriving, &used, take);
        drop(used);
        Ok((result, reader.join()))
    })?;
    buffers.extend(empty.iter().flat_map(Receiver::try_iter));
    result
}

/// Gives what arrives to `take`, and its buffers back.
fn hand_over(
    arriving: Receiver<Result<Checked, DiskError>>,
    used: &Sender<Vec<u8>>,
    take: &mut TakeFile<'_>,
) -> Result<(), DiskError> {
    for (index, file) in arriving.into_iter().enumerate() {
        let (bytes, checked) = file?;
        let broke_off = take(index, &bytes, checked).is_break();
        // Refused where the reader is gone.
        let _ = used.send(bytes);
        if broke_off {
            break;
        }
    }
    Ok(())
}

/// Reads all files in their order, until one fails or nobody wants the next. Gives back where
/// buffers are that nobody uses any more.
fn fill(
    disk: &RealDisk,
    files: &[(File, u64)],
    check: &CheckFile<'_>,
    empty: Receiver<Vec<u8>>,
    filled: &SyncSender<Result<Checked, DiskError>>,
) -> Receiver<Vec<u8>> {
    for (index, (file, bytes)) in files.iter().enumerate() {
        // No buffer comes back any more: nobody wants the next file.
        let Ok(mut buffer) = empty.recv() else { break };
        let read = read_whole(disk, file, *bytes, &mut buffer);
        let failed = read.is_err();
        let checked = if failed { 0 } else { check(index, &buffer) };
        if filled.send(read.map(|()| (buffer, checked))).is_err() || failed {
            break;
        }
    }
    empty
}

/// A file's bytes, and what was said of them.
type Checked = (Vec<u8>, usize);

fn no_thread(error: &std::io::Error) -> DiskError {
    DiskError {
        kind: DiskErrorKind::Failed,
        operation: "start a thread to read",
        file: "the journal".into(),
        cause: error.to_string(),
    }
}
