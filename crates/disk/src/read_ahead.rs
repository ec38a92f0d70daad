//! Reading and checking files while those before are being digested: recovery reads on one core and
//! replays on another. Two buffers go back and forth, so no more than two files are in memory.

use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{Builder, scope};

use journal::{CheckFile, DiskError, DiskErrorKind, TakeFile, read_whole};

use crate::{File, RealDisk};

/// Hands files to `take` in their order; a thread reads and checks the next one meanwhile.
///
/// # Errors
/// As [`journal::Disk::read_files`], and when there can be no thread.
pub(crate) fn read_ahead(
    disk: &RealDisk,
    files: &[(File, u64)],
    check: &CheckFile<'_>,
    take: &mut TakeFile<'_>,
) -> Result<(), DiskError> {
    let (filled, arriving) = sync_channel(0);
    let (used, empty) = channel();
    scope(|scope| {
        let reader = Builder::new().name("read ahead".into());
        let started = reader.spawn_scoped(scope, move || fill(disk, files, check, &empty, &filled));
        started.map_err(|error| no_thread(&error))?;
        // When this ends early `arriving` goes, and with it the reader.
        for (index, file) in arriving.into_iter().enumerate() {
            let (bytes, checked) = file?;
            if take(index, &bytes, checked).is_break() {
                break;
            }
            // Refused where the reader has read all: then nobody needs the buffer.
            let _ = used.send(bytes);
        }
        Ok(())
    })
}

/// Reads all files in their order, until one fails or nobody wants the next.
fn fill(
    disk: &RealDisk,
    files: &[(File, u64)],
    check: &CheckFile<'_>,
    empty: &Receiver<Vec<u8>>,
    filled: &SyncSender<Result<Checked, DiskError>>,
) {
    for (index, (file, bytes)) in files.iter().enumerate() {
        let mut buffer = empty.try_recv().unwrap_or_default();
        let read = read_whole(disk, file, *bytes, &mut buffer);
        let failed = read.is_err();
        let checked = if failed { 0 } else { check(index, &buffer) };
        if filled.send(read.map(|()| (buffer, checked))).is_err() || failed {
            break;
        }
    }
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
