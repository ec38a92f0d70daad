//! Reading files while those before are being digested: recovery reads on one core and replays on
//! another. Two buffers go back and forth, so no more than two files are in memory.

use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{Builder, scope};

use journal::{DiskError, DiskErrorKind, TakeFile, read_whole};

use crate::{File, RealDisk};

/// Hands files to `take` in their order; a thread reads the next one meanwhile.
///
/// # Errors
/// As [`journal::Disk::read_files`], and when there can be no thread.
pub(crate) fn read_ahead(
    disk: &RealDisk,
    files: &[(File, u64)],
    take: &mut TakeFile<'_>,
) -> Result<(), DiskError> {
    let (filled, arriving) = sync_channel(0);
    let (used, empty) = channel();
    scope(|scope| {
        let reader = Builder::new().name("read ahead".into());
        let started = reader.spawn_scoped(scope, move || fill(disk, files, &empty, &filled));
        started.map_err(|error| no_thread(&error))?;
        // When this ends early `arriving` goes, and with it the reader.
        for (index, file) in arriving.into_iter().enumerate() {
            let bytes = file?;
            if take(index, &bytes).is_break() {
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
    empty: &Receiver<Vec<u8>>,
    filled: &SyncSender<Result<Vec<u8>, DiskError>>,
) {
    for (file, bytes) in files {
        let mut buffer = empty.try_recv().unwrap_or_default();
        let read = read_whole(disk, file, *bytes, &mut buffer);
        let failed = read.is_err();
        if filled.send(read.map(|()| buffer)).is_err() || failed {
            break;
        }
    }
}

fn no_thread(error: &std::io::Error) -> DiskError {
    DiskError {
        kind: DiskErrorKind::Failed,
        operation: "start a thread to read",
        file: "the journal".into(),
        cause: error.to_string(),
    }
}
