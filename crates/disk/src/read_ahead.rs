//! Reading and checking pieces of files while those before are being digested: recovery reads on
//! one core and replays on another. Two buffers go back and forth, so no more than two pieces are
//! in memory. If there is little to read, or no memory for two, one thread does both.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, scope};

use journal::{
    CheckPiece, DiskError, DiskErrorKind, FilePart, PIECE_BYTES, PieceAt, PieceReader, TakePiece,
};

use crate::{File, RealDisk};

/// Hands pieces to `take` in their order; a thread reads and checks the next one meanwhile, if
/// there is more than one and two take no more than `memory_bytes`.
///
/// # Errors
/// As [`journal::Disk::read_pieces`], and when there can be no thread.
pub(crate) fn read_ahead(
    disk: &RealDisk,
    parts: &[FilePart<File>],
    memory_bytes: u64,
    (check, take): (&CheckPiece<'_>, &mut TakePiece<'_>),
) -> Result<(), DiskError> {
    let mut pieces = PieceReader::new(parts, check);
    let all_bytes = parts.iter().map(|part| part.to.saturating_sub(part.from)).sum::<u64>();
    if all_bytes <= PIECE_BYTES as u64 || 2 * PIECE_BYTES as u64 > memory_bytes {
        return read_alone(disk, pieces, take);
    }
    let (filled, arriving) = sync_channel(0);
    let (used, empty) = channel();
    for _ in 0..2 {
        // The other end is here.
        let _ = used.send(Vec::new());
    }
    scope(move |scope| {
        let reader = Builder::new().name("read ahead".into());
        let started = reader.spawn_scoped(scope, move || fill(disk, &mut pieces, &empty, &filled));
        started.map_err(|error| no_thread(&error))?;
        // When this ends early `arriving` and `used` go, and with them the reader.
        hand_over(arriving, &used, take)
    })
}

fn read_alone(
    disk: &RealDisk,
    mut pieces: PieceReader<'_, File>,
    take: &mut TakePiece<'_>,
) -> Result<(), DiskError> {
    let mut buffer = Vec::new();
    while let Some(at) = pieces.read_next(disk, &mut buffer)? {
        if take(at.of(&buffer)).is_break() {
            break;
        }
    }
    Ok(())
}

/// Hands arriving pieces to `take`, and returns their buffers.
fn hand_over(
    arriving: Receiver<Result<Read, DiskError>>,
    used: &Sender<Vec<u8>>,
    take: &mut TakePiece<'_>,
) -> Result<(), DiskError> {
    for read in arriving {
        let (at, bytes) = read?;
        let broke_off = take(at.of(&bytes)).is_break();
        // Refused if the reader is gone.
        let _ = used.send(bytes);
        if broke_off {
            break;
        }
    }
    Ok(())
}

/// Reads all pieces in their order, until one fails or the reader wants no more.
fn fill(
    disk: &RealDisk,
    pieces: &mut PieceReader<'_, File>,
    empty: &Receiver<Vec<u8>>,
    filled: &SyncSender<Result<Read, DiskError>>,
) {
    // If no buffer comes back any more, the reader wants no more pieces.
    while let Ok(mut buffer) = empty.recv() {
        let read = match pieces.read_next(disk, &mut buffer) {
            Ok(Some(at)) => Ok((at, buffer)),
            Ok(None) => break,
            Err(error) => Err(error),
        };
        let failed = read.is_err();
        if filled.send(read).is_err() || failed {
            break;
        }
    }
}

/// A piece and its bytes.
type Read = (PieceAt, Vec<u8>);

fn no_thread(error: &std::io::Error) -> DiskError {
    DiskError {
        kind: DiskErrorKind::Failed,
        operation: "start a thread to read",
        file: "the journal".into(),
        cause: error.to_string(),
    }
}
