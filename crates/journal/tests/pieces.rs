//! How parts of files are cut into pieces.

use journal::{Cut, Disk as _, FilePart, PIECE_BYTES, PieceReader, WriteMode};

use crate::store::{MemoryDisk, MemoryFile};

const MIB: usize = 1024 * 1024;

/// A file of things that each begin with their length in eight bytes; zero: no thing.
fn file_of(disk: &MemoryDisk, name: &str, lengths: &[usize]) -> MemoryFile {
    let file = disk.create(name).unwrap();
    let mut bytes = vec![0; lengths.iter().map(|length| (*length).max(8)).sum()];
    let mut at = 0;
    for length in lengths {
        bytes[at..at + 8].copy_from_slice(&(*length as u64).to_le_bytes());
        at += (*length).max(8);
    }
    disk.write(&file, 0, &bytes, WriteMode::Written).unwrap();
    file
}

/// How many bytes are whole things.
fn cut(bytes: &[u8]) -> Cut {
    let mut whole = 0;
    while let Some(head) = bytes.get(whole..whole + 8) {
        let length = u64::from_le_bytes(head.try_into().unwrap()) as usize;
        match length {
            0 => break,
            _ if bytes.len() < whole + length => return Cut { whole, lacks: Some(length) },
            _ => whole += length,
        }
    }
    Cut { whole, lacks: None }
}

/// Part, offset, bytes and whole bytes of each piece.
fn pieces(disk: &MemoryDisk, parts: &[FilePart<MemoryFile>]) -> Vec<(usize, u64, usize, usize)> {
    let check = |_: usize, _: u64, bytes: &[u8]| cut(bytes);
    let mut reader = PieceReader::new(parts, &check);
    let (mut buffer, mut found) = (Vec::new(), Vec::new());
    while let Some(at) = reader.read_next(disk, &mut buffer).unwrap() {
        let piece = at.of(&buffer);
        found.push((piece.part, piece.offset, piece.bytes.len(), piece.whole));
        assert!(buffer.capacity() <= 2 * PIECE_BYTES || piece.bytes.len() > PIECE_BYTES);
    }
    found
}

#[test]
fn piece_ends_where_something_whole_does() {
    let disk = MemoryDisk::default();
    let file = file_of(&disk, "a", &[MIB; 5]);
    let parts = [FilePart { file, from: 0, to: 5 * MIB as u64 }];
    let two = 2 * MIB;
    let all = [(0, 0, two, two), (0, two as u64, two, two), (0, 2 * two as u64, MIB, MIB)];
    assert_eq!(pieces(&disk, &parts), all);

    let file = file_of(&disk, "b", &[MIB + 8; 3]);
    let parts = [FilePart { file, from: 0, to: 3 * (MIB as u64 + 8) }];
    let one = MIB + 8;
    let each = |number: usize| (0, (number * one) as u64, one, one);
    assert_eq!(pieces(&disk, &parts), [each(0), each(1), each(2)]);
}

#[test]
fn large_thing_is_one_piece() {
    let disk = MemoryDisk::default();
    let file = file_of(&disk, "a", &[MIB, 5 * MIB, MIB]);
    let parts = [FilePart { file, from: 0, to: 7 * MIB as u64 }];
    let (small, large) = (MIB, 5 * MIB);
    let expected = [
        (0, 0, small, small),
        (0, small as u64, large, large),
        (0, (small + large) as u64, small, small),
    ];
    assert_eq!(pieces(&disk, &parts), expected);
}

#[test]
fn claimed_length_takes_no_memory() {
    let disk = MemoryDisk::default();
    let file = file_of(&disk, "a", &[3 * MIB, 8]);
    disk.write(&file, 0, &(1_u64 << 60).to_le_bytes(), WriteMode::Written).unwrap();
    let parts = [FilePart { file: file.clone(), from: 0, to: 3 * MIB as u64 }];
    let rest = (0, PIECE_BYTES as u64, MIB, 0);
    assert_eq!(pieces(&disk, &parts), [(0, 0, PIECE_BYTES, 0), rest]);

    // The file ends before the part does, and before the end of the bytes that it claims to hold.
    disk.write(&file, 0, &(4 * MIB as u64).to_le_bytes(), WriteMode::Written).unwrap();
    let parts = [FilePart { file, from: 0, to: 5 * MIB as u64 }];
    assert_eq!(pieces(&disk, &parts), [(0, 0, 3 * MIB + 8, 0)]);
}

#[test]
fn incomplete_records_are_read_to_end() {
    let disk = MemoryDisk::default();
    let file = file_of(&disk, "a", &[MIB, 0]);
    disk.write(&file, 5 * MIB as u64 - 8, &[0; 8], WriteMode::Written).unwrap();
    let empty = file_of(&disk, "b", &[]);
    let parts = [
        FilePart { file: file.clone(), from: 0, to: 5 * MIB as u64 },
        FilePart { file: empty, from: 0, to: 100 },
        FilePart { file: file.clone(), from: 5 * MIB as u64, to: 9 * MIB as u64 },
        FilePart { file, from: 8, to: 16 },
    ];
    let expected = [
        (0, 0, PIECE_BYTES, MIB),
        (0, PIECE_BYTES as u64, PIECE_BYTES, 0),
        (0, 2 * PIECE_BYTES as u64, MIB, 0),
        (3, 8, 8, 0),
    ];
    assert_eq!(pieces(&disk, &parts), expected);
}
