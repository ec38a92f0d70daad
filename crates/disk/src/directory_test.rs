//! The contract of [`Disk`] on a real directory, in both methods.

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::atomic::{AtomicUsize, Ordering};

use journal::{BLOCK_BYTES, Cut, DiskErrorKind, PIECE_BYTES};

use super::*;
use crate::Method;

/// A directory of this test's own, removed when it ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let name = format!("dunlin-disk-{}-{test}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn open(&self, method: Method) -> RealDisk {
        RealDisk::open(&self.0, Choice::Force(method)).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[repr(align(4096))]
struct Aligned([u8; 2 * BLOCK_BYTES]);

#[test]
fn directory_writable_by_others_is_refused() {
    let scratch = Scratch::new("others");
    for (mode, is_refused) in [(0o700, false), (0o775, false), (0o702, true), (0o1777, true)] {
        fs::create_dir_all(&scratch.0).unwrap();
        fs::set_permissions(&scratch.0, fs::Permissions::from_mode(mode)).unwrap();
        let opened = RealDisk::open(&scratch.0, Choice::Force(Method::Buffered));
        let refusal = opened.err().map(|error| error.to_string()).unwrap_or_default();
        let expected = format!("(mode {mode:04o}): forbid it by `chmod o-w`");
        assert_eq!(refusal.contains(&expected), is_refused, "{mode:o}: {refusal}");
    }
}

#[test]
fn writes_read_back_in_both_methods() {
    for method in [Method::Buffered, Method::Direct] {
        let scratch = Scratch::new("modes");
        let disk = scratch.open(method);
        let file = disk.create("a").unwrap();
        let blocks = Aligned([7; 2 * BLOCK_BYTES]);
        let end = blocks.0.len() as u64;
        disk.write(&file, 0, &blocks.0, WriteMode::Synced).unwrap();
        disk.write(&file, end, &blocks.0, WriteMode::Written).unwrap();
        disk.write(&file, 10, b"unaligned", WriteMode::Synced).unwrap();
        disk.sync(&file).unwrap();

        assert_eq!(disk.length(&file).unwrap(), 2 * end);
        let mut back = vec![0; 3 * BLOCK_BYTES * 2];
        assert_eq!(disk.read(&file, 0, &mut back).unwrap() as u64, 2 * end);
        assert_eq!(&back[..10], [7; 10]);
        assert_eq!(&back[10..19], b"unaligned");
        assert!(back[19..2 * blocks.0.len()].iter().all(|&byte| byte == 7));
        assert_eq!(disk.read(&file, 2 * end, &mut back).unwrap(), 0);
    }
}

#[test]
fn zeros_fill_range_in_both_methods() {
    const FILLED: u64 = 80 * BLOCK_BYTES as u64;
    for (method, past_cache) in [(Method::Buffered, false), (Method::Direct, true)] {
        let scratch = Scratch::new("zeros");
        let disk = scratch.open(method);
        let file = disk.create("a").unwrap();
        disk.write(&file, 0, &vec![7; 2 * BLOCK_BYTES], WriteMode::Written).unwrap();
        // Renamed meanwhile, as a segment is when it is whole; another has the name.
        disk.rename("a", "b").unwrap();
        disk.write(&disk.create("a").unwrap(), 0, b"another", WriteMode::Written).unwrap();
        let written = disk.counters().written_bytes;
        disk.zero(&file, BLOCK_BYTES as u64, FILLED).unwrap();
        disk.zero(&file, FILLED, FILLED + 3).unwrap();
        disk.sync(&file).unwrap();

        assert_eq!(disk.counters().written_bytes - written, FILLED - BLOCK_BYTES as u64 + 3);
        let bytes = fs::read(scratch.0.join("b")).unwrap();
        let (before, zeros) = bytes.split_at(BLOCK_BYTES);
        assert!(before.iter().all(|byte| *byte == 7) && zeros.iter().all(|byte| *byte == 0));
        assert_eq!(bytes.len() as u64, FILLED + 3);
        assert_eq!(fs::read(scratch.0.join("a")).unwrap(), b"another");
        assert_eq!(file.direct_unsynced(0, FILLED).is_some(), past_cache);
        assert!(file.direct_unsynced(0, FILLED + 3).is_none(), "that is no whole block");
    }
}

#[test]
fn cached_and_direct_writes_are_coherent() {
    let scratch = Scratch::new("coherent");
    let disk = scratch.open(Method::Direct);
    let file = disk.create("a").unwrap();
    let mut blocks = Aligned([0; 2 * BLOCK_BYTES]);
    for round in 0..20_u8 {
        blocks.0.fill(round);
        let mode = if round % 2 == 0 { WriteMode::Written } else { WriteMode::Synced };
        disk.write(&file, 0, &blocks.0, mode).unwrap();
        let mut back = [0; BLOCK_BYTES];
        disk.read(&file, 4096, &mut back).unwrap();
        assert_eq!(back, [round; BLOCK_BYTES]);
        let mut past_cache = Aligned([0; 2 * BLOCK_BYTES]);
        disk.read(&file, 0, &mut past_cache.0).unwrap();
        assert_eq!(past_cache.0, blocks.0);
    }
}

#[test]
fn direct_read_ends_at_file_end() {
    let scratch = Scratch::new("ends");
    let disk = scratch.open(Method::Direct);
    let file = disk.create("a").unwrap();
    disk.write(&file, 0, &[7; BLOCK_BYTES + 100], WriteMode::Written).unwrap();
    let mut blocks = Aligned([0; 2 * BLOCK_BYTES]);
    assert_eq!(disk.read(&file, 0, &mut blocks.0).unwrap(), BLOCK_BYTES + 100);
    assert_eq!(blocks.0[..BLOCK_BYTES + 100], [7; BLOCK_BYTES + 100]);
    assert_eq!(disk.read(&file, 2 * BLOCK_BYTES as u64, &mut blocks.0).unwrap(), 0);
}

/// The written part of a file is read again and again while the rest is being written.
#[test]
fn reads_beside_appends_return_written_bytes() {
    const BLOCKS: u64 = 200;
    let scratch = Scratch::new("behind");
    let disk = scratch.open(Method::Direct);
    let file = disk.create("a").unwrap();
    disk.write(&file, 0, &vec![0; BLOCKS as usize * BLOCK_BYTES], WriteMode::Written).unwrap();
    disk.sync(&file).unwrap();
    let written = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for block in (0..BLOCKS).step_by(2) {
                let bytes = Aligned([1 + block as u8; 2 * BLOCK_BYTES]);
                let mode = if block % 8 == 0 { WriteMode::Written } else { WriteMode::Synced };
                disk.write(&file, block * BLOCK_BYTES as u64, &bytes.0, mode).unwrap();
                written.store(block + 2, Ordering::Release);
            }
        });
        while written.load(Ordering::Acquire) < BLOCKS {
            let end = written.load(Ordering::Acquire);
            let mut blocks = Aligned([0; 2 * BLOCK_BYTES]);
            for block in (0..end).rev().step_by(2).take(4).map(|last| last - 1) {
                disk.read(&file, block * BLOCK_BYTES as u64, &mut blocks.0).unwrap();
                assert_eq!(blocks.0, [1 + block as u8; 2 * BLOCK_BYTES], "block {block}");
            }
        }
    });
}

#[test]
fn second_start_measures_nothing() {
    let scratch = Scratch::new("remembered");
    let open = || RealDisk::open(&scratch.0, Choice::Auto).unwrap();
    drop(open());
    let remembered = scratch.0.join("probe");
    // Beside much load no two tries may agree: then an idle moment decides.
    while !remembered.exists() {
        open().probe_again().unwrap();
    }
    let text = fs::read_to_string(&remembered).unwrap();
    assert!(open().probe().to_string().contains("as measured before"), "{text}");
    assert_eq!(open().names().unwrap(), [""; 0], "it is no file of the journal");

    // A probe of another file system or of another boot does not count; nor does nonsense.
    for other in [text.replace(" at ", " at x"), "direct".into(), String::new()] {
        fs::write(&remembered, other).unwrap();
        assert!(!open().probe().to_string().contains("as measured before"));
    }
    assert_eq!(scratch.open(Method::Buffered).probe_again().unwrap(), None, "it is forced");
}

#[test]
fn unusable_scratch_file_is_an_error() {
    let scratch = Scratch::new("scratch");
    fs::create_dir_all(scratch.0.join("probe.tmp")).unwrap();
    let error = RealDisk::open(&scratch.0, Choice::Auto).unwrap_err().to_string();
    assert!(error.contains("probe.tmp") && error.contains("measure writes"), "{error}");
}

#[test]
fn flushes_are_counted() {
    let scratch = Scratch::new("counts");
    let disk = scratch.open(Method::Direct);
    assert_eq!(disk.counters(), DiskCounters::default(), "the probe is not counted");
    let file = disk.create("a").unwrap();
    let blocks = Aligned([1; 2 * BLOCK_BYTES]);
    disk.write(&file, 0, &blocks.0, WriteMode::Written).unwrap();
    assert_eq!(disk.counters().syncs, 0);
    disk.write(&file, 0, &blocks.0, WriteMode::Synced).unwrap();
    disk.write(&file, 0, b"x", WriteMode::Synced).unwrap();
    disk.sync(&file).unwrap();
    disk.sync_directory().unwrap();
    let expected = DiskCounters { writes: 3, written_bytes: 16_385, syncs: 4 };
    assert_eq!(disk.counters(), expected);
}

#[test]
fn reserved_room_reads_as_zeros() {
    let scratch = Scratch::new("reserve");
    let disk = scratch.open(Method::Buffered);
    let file = disk.create("snapshot-a").unwrap();
    disk.write(&file, 0, b"kept", WriteMode::Written).unwrap();
    let before = disk.counters().written_bytes;
    disk.reserve(&file, 4, 1 << 20).unwrap();
    assert_eq!(disk.length(&file).unwrap(), 1 << 20);
    let mut read = vec![1; 1 << 20];
    assert_eq!(disk.read(&file, 0, &mut read).unwrap(), 1 << 20);
    assert_eq!(&read[..4], b"kept");
    assert!(read[4..].iter().all(|byte| *byte == 0));
    let taken = fs::metadata(scratch.0.join("snapshot-a")).unwrap().blocks() * 512;
    assert!(taken >= 1 << 20, "the room is there, not promised: {taken}");
    assert_eq!(disk.counters().written_bytes, before, "of this file system it is asked");
}

#[test]
fn shortened_file_returns_its_room() {
    let scratch = Scratch::new("shorten");
    let disk = scratch.open(Method::Buffered);
    let file = disk.create("segment").unwrap();
    disk.write(&file, 0, &[1; 1 << 20], WriteMode::Synced).unwrap();
    disk.shorten(&file, 8192).unwrap();
    disk.sync(&file).unwrap();
    assert_eq!(disk.length(&file).unwrap(), 8192);
    let taken = fs::metadata(scratch.0.join("segment")).unwrap().blocks() * 512;
    assert!(taken <= 64 * 1024, "{taken}");
    disk.write(&file, 12_288, &[2; 4096], WriteMode::Written).unwrap();
    let mut read = vec![9; 16_384];
    assert_eq!(disk.read(&file, 0, &mut read).unwrap(), 16_384);
    let expected = [[1; 8192].as_slice(), &[0; 4096], &[2; 4096]].concat();
    assert!(read == expected, "what was cut off does not come back");
}

#[test]
fn failed_flush_fails_every_later_sync() {
    let scratch = Scratch::new("flush");
    let disk = scratch.open(Method::Buffered);
    let file = disk.create("segment").unwrap();
    disk.write(&file, 0, b"x", WriteMode::Written).unwrap();
    disk.sync(&file).unwrap();
    // The kernel has told one of them, and has nothing to say to the next.
    assert_eq!(file.clone().flush(|_| Err(Errno::IO)), Err(Errno::IO));
    assert_eq!(disk.sync(&file).unwrap_err().kind, DiskErrorKind::Failed);
    let block = vec![0; BLOCK_BYTES];
    assert!(disk.write(&file, 0, &block, WriteMode::Synced).is_err());
}

#[test]
fn names_list_only_journal_files() {
    let scratch = Scratch::new("names");
    let disk = scratch.open(Method::Buffered);
    fs::create_dir(scratch.0.join("folder")).unwrap();
    disk.create("a").unwrap();
    disk.create("b").unwrap();
    disk.rename("b", "c").unwrap();
    disk.create("d").unwrap();
    disk.remove("d").unwrap();
    let mut names = disk.names().unwrap();
    names.sort();
    assert_eq!(names, ["a", "c"]);
    fs::create_dir(scratch.0.join("epoch")).unwrap();
    assert!(disk.names().unwrap().contains(&"epoch".to_owned()), "a folder in its place");
    let folder = disk.open("epoch").and_then(|folder| disk.read(&folder, 0, &mut [0; 8]));
    assert!(folder.unwrap_err().to_string().contains("epoch"));
    assert_eq!(disk.create("a").unwrap_err().operation, "create");
    assert_eq!(disk.open("b").unwrap_err().kind, DiskErrorKind::Failed);
}

#[test]
fn missing_room_is_told_apart() {
    let scratch = Scratch::new("full");
    let disk = scratch.open(Method::Buffered);
    // The kernel's device that is always full.
    symlink("/dev/full", scratch.0.join("segment")).unwrap();
    let file = disk.open("segment").unwrap();
    let error = disk.write(&file, 0, b"x", WriteMode::Written).unwrap_err();
    assert_eq!(error.kind, DiskErrorKind::Full);
    assert!(error.to_string().starts_with("cannot write "), "{error}");
    assert!(error.file.ends_with("/segment"));
}

#[test]
fn directory_has_one_holder() {
    let scratch = Scratch::new("lock");
    let disk = scratch.open(Method::Buffered);
    let refused = RealDisk::open(&scratch.0, Choice::Auto).unwrap_err();
    let DirectoryError::InUse { process, .. } = refused else { panic!("{refused}") };
    assert_eq!(process, Some(std::process::id()));
    assert!(RealDisk::open_existing(&scratch.0).is_err());
    drop(disk);
    RealDisk::open_existing(&scratch.0).unwrap();
}

#[test]
fn removed_lock_file_frees_no_directory() {
    let scratch = Scratch::new("unlocked");
    let disk = scratch.open(Method::Buffered);
    for _ in 0..2 {
        fs::remove_file(scratch.0.join("lock")).unwrap();
        let refused = RealDisk::open_existing(&scratch.0).unwrap_err();
        assert!(matches!(refused, DirectoryError::Served { process: None, .. }), "{refused}");
        let refused = RealDisk::open(&scratch.0, Choice::Auto).unwrap_err();
        assert!(matches!(refused, DirectoryError::InUse { process: None, .. }), "{refused}");
    }
    drop(disk);
    scratch.open(Method::Buffered);
}

#[test]
fn missing_directory_created_only_to_serve() {
    let scratch = Scratch::new("create");
    let deep = scratch.0.join("a/b");
    assert!(RealDisk::open_existing(&deep).is_err());
    RealDisk::open(&deep, Choice::Auto).unwrap();
    RealDisk::open_existing(&deep).unwrap();
}

#[test]
fn open_error_names_file_in_way() {
    let scratch = Scratch::new("way");
    fs::create_dir(&scratch.0).unwrap();
    let path = scratch.0.join("file");
    fs::write(&path, b"").unwrap();
    let error = RealDisk::open(&path, Choice::Auto).unwrap_err().to_string();
    assert!(error.contains("way/file"), "{error}");
}

#[test]
fn salt_differs_on_each_opening() {
    let scratch = Scratch::new("salt");
    let salts: Vec<u64> = (0..3).map(|_| scratch.open(Method::Buffered).salt()).collect();
    assert!(salts[0] != salts[1] && salts[1] != salts[2], "{salts:?}");
}

/// Files of more than one piece together, each full of its number, to be read a little less or more
/// far than they go.
fn parts(disk: &RealDisk) -> Vec<FilePart<File>> {
    let part = |number: u8| {
        let file = disk.create(&format!("file-{number}")).unwrap();
        let bytes = vec![number; PIECE_BYTES / 2 + usize::from(number)];
        disk.write(&file, 0, &bytes, WriteMode::Written).unwrap();
        FilePart { file, from: 1, to: PIECE_BYTES as u64 / 2 + 3 }
    };
    (0..9).map(part).collect()
}

const ALL_WHOLE: &CheckPiece<'_> = &|_, _, bytes| Cut { whole: bytes.len(), lacks: None };

#[test]
fn pieces_are_read_ahead_in_order() {
    for memory in [0, u64::MAX] {
        let scratch = Scratch::new("ahead");
        let disk = scratch.open(Method::Buffered).reading_ahead_within(memory);
        let parts = parts(&disk);
        for enough in [0, 4, 8, 100] {
            let mut taken = Vec::new();
            let check = |part: usize, offset: u64, _: &[u8]| {
                let whole = part + usize::try_from(offset).unwrap();
                Cut { whole, lacks: None }
            };
            disk.read_pieces(&parts, &check, &mut |piece| {
                assert_eq!((piece.whole, piece.offset), (piece.part + 1, 1), "as it was checked");
                assert!(piece.bytes.iter().all(|byte| usize::from(*byte) == piece.part));
                taken.push(piece.bytes.len());
                if piece.part == enough {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })
            .unwrap();
            let lengths = (0..9).map(|number| PIECE_BYTES / 2 + number.min(3) - 1);
            assert_eq!(taken, lengths.take(enough + 1).collect::<Vec<_>>());
        }
        disk.read_pieces(&[], ALL_WHOLE, &mut |_| panic!("there is none")).unwrap();
    }
}

#[test]
fn pieces_come_singly_in_little_memory() {
    let scratch = Scratch::new("one by one");
    let disk = scratch.open(Method::Buffered).reading_ahead_within(2 * PIECE_BYTES as u64 - 1);
    let parts = parts(&disk);
    let read = AtomicUsize::new(0);
    let check = |_: usize, _: u64, bytes: &[u8]| {
        read.fetch_add(1, Ordering::SeqCst);
        Cut { whole: bytes.len(), lacks: None }
    };
    let mut taken = 0;
    disk.read_pieces(&parts, &check, &mut |piece| {
        // A thread that reads ahead would have done so by then, or soon.
        for _ in 0..100 {
            assert_eq!(read.load(Ordering::SeqCst), piece.part + 1, "the next waits for this one");
            std::thread::yield_now();
        }
        taken += 1;
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(taken, 9);
}

#[test]
fn unreadable_piece_ends_reading_in_turn() {
    let scratch = Scratch::new("unreadable");
    let disk = scratch.open(Method::Buffered);
    let file = disk.create("good").unwrap();
    disk.write(&file, 0, &[1; 10], WriteMode::Written).unwrap();
    drop((disk, file));
    // A folder can be opened to be looked into, and not be read.
    fs::create_dir(scratch.0.join("folder")).unwrap();
    let disk = RealDisk::open_existing(&scratch.0).unwrap();
    let part = |name, to| FilePart { file: disk.open(name).unwrap(), from: 0, to };
    for long in [10, PIECE_BYTES as u64 + 10] {
        let parts = [part("good", 10), part("folder", 8), part("good", long)];
        let mut taken = 0;
        let result = disk.read_pieces(&parts, ALL_WHOLE, &mut |_| {
            taken += 1;
            ControlFlow::Continue(())
        });
        assert_eq!(result.unwrap_err().operation, "read");
        assert_eq!(taken, 1);
    }
}

#[test]
fn open_existing_writes_nothing_locks_writers() {
    let scratch = Scratch::new("look");
    scratch.open(Method::Buffered).create("a").unwrap();
    let lock = fs::read(scratch.0.join("lock")).unwrap();
    let looking = RealDisk::open_existing(&scratch.0).unwrap();
    RealDisk::open_existing(&scratch.0).expect("two may look");
    let refused = RealDisk::open(&scratch.0, Choice::Auto).unwrap_err();
    assert!(matches!(refused, DirectoryError::InUse { .. }), "{refused}");
    assert_eq!(looking.length(&looking.open("a").unwrap()).unwrap(), 0);
    assert_eq!(fs::read(scratch.0.join("lock")).unwrap(), lock);
    drop(looking);

    let serving = scratch.open(Method::Buffered);
    let refused = RealDisk::open_existing(&scratch.0).unwrap_err();
    assert!(matches!(refused, DirectoryError::Served { process: Some(_), .. }), "{refused}");
    drop(serving);
}

#[test]
fn open_existing_makes_no_lock_file() {
    let scratch = Scratch::new("copy");
    fs::create_dir(&scratch.0).unwrap();
    fs::write(scratch.0.join("epoch"), b"12345678").unwrap();
    let disk = RealDisk::open_existing(&scratch.0).unwrap();
    assert_eq!(disk.names().unwrap(), ["epoch"]);
    assert_eq!(fs::read_dir(&scratch.0).unwrap().count(), 1);
}
