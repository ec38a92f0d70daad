//! Files that do not belong together: short, missing, older than the others, from elsewhere, twice.
//! Each is refused by name, or does no harm; and nothing is changed by refusing.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use journal::{FileFault, JournalOptions, OpenError};
use model::StorePolicy;

use crate::store::{MemoryDisk, Store, tiny, value};

type Contents = BTreeMap<u64, Vec<u8>>;

fn options() -> JournalOptions {
    tiny(StorePolicy::Always)
}

/// Lives of a directory, each begun by a start and ended by a kill. Gives the image before each
/// start and the one after the last life, with the values stored by then.
fn lives(salt: u64, lives: u64, puts: u64) -> Vec<(MemoryDisk, Contents)> {
    let disk = MemoryDisk::default();
    let mut images = vec![(disk.image(), Contents::new())];
    for life in 0..lives {
        disk.directory().salt = salt + life;
        let mut store = Store::open(&disk, options()).unwrap();
        store.settle();
        for put in 0..puts {
            let key = life * puts + put;
            assert!(store.put(key, &value(key, 700)));
            // The log rolls, snapshots are taken, and some old values stay.
            if !key.is_multiple_of(5) {
                store.remove(key);
            }
        }
        images.push((disk.image(), store.values.contents()));
    }
    images
}

/// A long log of many lives, and a short one that has not left its first segment.
fn histories() -> Vec<Vec<(MemoryDisk, Contents)>> {
    vec![lives(0x5A17, 5, 30), lives(0x5A17, 6, 2), lives(0x5A17, 1, 90), lives(0x5A17, 1, 1)]
}

fn names(disk: &MemoryDisk) -> Vec<String> {
    disk.directory().files.keys().cloned().collect()
}

fn set(disk: &MemoryDisk, name: &str, bytes: Vec<u8>) {
    disk.directory().files.insert(name.into(), Rc::new(RefCell::new(bytes)));
}

/// The error of the start. Without one, checks that all is there, and stays so.
fn refusal(disk: &MemoryDisk, truth: &Contents, what: &str) -> Option<OpenError> {
    let changes = disk.directory().changes;
    match Store::open(disk, options()) {
        Err(error) => {
            assert_eq!(disk.directory().changes, changes, "{what}: refusing changes nothing");
            Some(error)
        }
        Ok(mut store) => {
            assert!(store.values.contents() == *truth, "{what}: something else is read");
            store.settle();
            for key in 5_000..5_020 {
                assert!(store.put(key, &value(key, 700)), "{what}");
            }
            let again = Store::open(&disk.image(), options());
            let again = again.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(again.values.contents() == store.values.contents(), "{what}: it goes on");
            None
        }
    }
}

/// The file that an error names.
fn named(error: &OpenError) -> Option<&str> {
    match error {
        OpenError::File { file, .. } | OpenError::Corrupt { file, .. } => Some(file),
        _ => None,
    }
}

#[test]
fn whole_older_directory_starts() {
    for history in histories() {
        for (image, truth) in &history {
            assert_eq!(refusal(&image.image(), truth, "a whole copy"), None);
        }
    }
}

#[test]
fn missing_file_is_refused_or_harmless() {
    let (mut refused, mut harmless) = (0, 0);
    for history in histories() {
        let (last, truth) = history.last().unwrap();
        for name in names(last) {
            let image = last.image();
            image.directory().files.remove(&name);
            match refusal(&image, truth, &format!("without {name}")) {
                Some(_) => refused += 1,
                None => harmless += 1,
            }
        }
        let image = last.image();
        image.directory().files.retain(|name, _| !name.ends_with(".segment"));
        let error = refusal(&image, &Contents::new(), "without all segments").expect("refused");
        assert!(error.to_string().contains("missing"), "{error}");
    }
    assert!(refused > 8 && harmless > 8, "{refused} refused, {harmless} harmless");
}

#[test]
fn missing_active_segment_is_named() {
    for history in histories() {
        let (last, truth) = history.last().unwrap();
        let control = last.file("epoch").borrow().clone();
        let number = u64::from_le_bytes(control[24..32].try_into().unwrap());
        let name = format!("{number:016}.segment");
        let image = last.image();
        image.directory().files.remove(&name).expect("the control file tells it");
        let error = refusal(&image, truth, &name).expect("it is refused");
        let gone = matches!(&error, OpenError::File { fault: FileFault::Gone { .. }, .. });
        assert!(gone && named(&error) == Some(&name), "{error}");
    }
}

#[test]
fn control_file_missing_is_named() {
    for history in histories() {
        for (image, truth) in &history[1..] {
            for bytes in [None, Some(0), Some(8), Some(4096)] {
                let image = image.image();
                image.directory().files.remove("epoch");
                if let Some(bytes) = bytes {
                    set(&image, "epoch", vec![0; bytes]);
                }
                let error = refusal(&image, truth, "no control file").expect("it is refused");
                assert_eq!(named(&error), Some("epoch"), "{error}");
            }
        }
    }
}

#[test]
fn short_file_is_refused_by_length() {
    for history in histories() {
        let (last, truth) = history.last().unwrap();
        for name in names(last) {
            let whole = last.file(&name).borrow().len();
            for bytes in (0..whole).step_by(4_096).chain([whole.saturating_sub(1)]) {
                let image = last.image();
                image.file(&name).borrow_mut().truncate(bytes);
                let refused = refusal(&image, truth, &format!("{name} cut to {bytes}"));
                if name.ends_with(".segment") {
                    let error = refused.expect("a segment is as long as it was made");
                    let short =
                        matches!(error, OpenError::File { fault: FileFault::Short { .. }, .. });
                    assert!(short && named(&error) == Some(&name), "{error}");
                }
            }
        }
    }
}

#[test]
fn older_file_copy_refused_or_harmless() {
    let (mut refused, mut harmless) = (0, 0);
    for history in histories() {
        let (last, truth) = history.last().unwrap();
        for (older, _) in &history[..history.len() - 1] {
            for name in names(older) {
                let old = older.file(&name).borrow().clone();
                let image = last.image();
                set(&image, &name, old);
                match refusal(&image, truth, &format!("an older {name}")) {
                    Some(_) => refused += 1,
                    None => harmless += 1,
                }
            }
        }
    }
    assert!(refused > 5 && harmless > 5, "{refused} refused, {harmless} harmless");
}

/// Two copies of one directory that both went on.
#[test]
fn file_of_another_copy_is_refused() {
    let disk = lives(0x5A17, 1, 3).pop().unwrap().0;
    let go_on = |salt: u64, first: u64| {
        let copy = disk.image();
        copy.directory().salt = salt;
        let mut store = Store::open(&copy, options()).unwrap();
        (first..first + 2).for_each(|key| assert!(store.put(key, b"one more")));
        (copy, store.values.contents())
    };
    let ((one, truth), (other, _)) = (go_on(1, 50), go_on(2, 60));
    let mut refused = 0;
    for name in names(&one) {
        let image = one.image();
        set(&image, &name, other.file(&name).borrow().clone());
        let error = refusal(&image, &truth, &format!("{name} of the other copy"));
        refused += u64::from(error.is_some());
    }
    assert!(refused >= 2, "the active segment and the control file, at least: {refused}");
}

#[test]
fn file_of_another_directory_is_named() {
    let (here, truth) = lives(0x5A17, 2, 40).pop().unwrap();
    let (there, _) = lives(0xD00D, 2, 40).pop().unwrap();
    for name in names(&here).into_iter().filter(|name| there.directory().files.contains_key(name)) {
        let image = here.image();
        set(&image, &name, there.file(&name).borrow().clone());
        let error = refusal(&image, &truth, &format!("{name} from elsewhere"));
        let error = error.expect("all of these files tell their directory");
        let foreign = matches!(error, OpenError::File { fault: FileFault::Foreign, .. });
        assert!(foreign && named(&error) == Some(&name), "{name}: {error}");
    }
}

#[test]
fn renamed_segment_refused_or_harmless() {
    let mut refused = 0;
    for history in histories() {
        let (last, truth) = history.last().unwrap();
        for name in last.segments() {
            for number in 1..60 {
                let other = format!("{number:016}.segment");
                if other == name {
                    continue;
                }
                let (twice, renamed) = (last.image(), last.image());
                for image in [&twice, &renamed] {
                    set(image, &other, last.file(&name).borrow().clone());
                }
                renamed.directory().files.remove(&name);
                let error = refusal(&twice, truth, &format!("{name} as {other} too"));
                refused += u64::from(error.is_some());
                refusal(&renamed, truth, &format!("{name} renamed to {other}"));
            }
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn older_copy_over_newer_never_mixes() {
    for history in histories() {
        let (last, _) = history.last().unwrap();
        for (older, truth) in &history[1..history.len() - 1] {
            let image = last.image();
            for name in names(older) {
                set(&image, &name, older.file(&name).borrow().clone());
            }
            match Store::open(&image.image(), options()) {
                Err(_) => {}
                Ok(store) => {
                    let found = store.values.contents();
                    let all = history.iter().map(|(_, contents)| contents);
                    let is_one = all.into_iter().any(|contents| *contents == found);
                    assert!(is_one, "neither {truth:?} nor another life's");
                }
            }
        }
    }
}

/// The numbers of openings go on from the highest that any file tells: none is given twice.
#[test]
fn older_control_file_costs_nothing() {
    let history = lives(0x5A17, 4, 3);
    let (last, truth) = history.last().unwrap();
    for (older, _) in &history[1..4] {
        let image = last.image();
        set(&image, "epoch", older.file("epoch").borrow().clone());
        let mut truth = truth.clone();
        for life in 0..8 {
            let mut store = Store::open(&image, options()).unwrap();
            assert_eq!(store.values.contents(), truth, "life {life}");
            let key = 7_000 + life;
            assert!(store.put(key, b"confirmed"));
            truth.insert(key, b"confirmed".to_vec());
        }
    }
}

/// The control file knows the position of the log at the last start, though all batches behind are
/// gone with the marks that tell of them.
#[test]
fn control_file_tells_of_missing_frames() {
    let history = lives(0x5A17, 3, 4);
    let (last, truth) = history.last().unwrap();
    let name = "0000000000000001.segment";
    let image = last.image();
    let rest = history[1].0.file(name).borrow()[4096..].to_vec();
    image.file(name).borrow_mut()[4096..].fill(0);
    image.file(name).borrow_mut()[4096..][..rest.len()].copy_from_slice(&rest);
    let error = refusal(&image, truth, "older batches").expect("confirmed frames are missing");
    assert!(error.to_string().contains("epoch says that"), "{error}");
}

/// Writes a number, and the checksums that end at these offsets.
fn forge(disk: &MemoryDisk, name: &str, (at, number): (usize, u64), sums: &[(usize, usize)]) {
    let file = disk.file(name);
    let bytes = &mut *file.borrow_mut();
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
    for (from, to) in sums {
        let sum = crc32c::crc32c(&bytes[*from..*to]);
        bytes[*to..*to + 4].copy_from_slice(&sum.to_le_bytes());
    }
}

/// The start would take the frames after its end for older ones.
#[test]
fn snapshot_beginning_after_end_is_refused() {
    let mut refused = 0;
    for history in histories() {
        let (last, truth) = history.last().unwrap();
        let image = last.image();
        let is_whole = |name: &String| image.file(name).borrow().starts_with(b"DUNLINSN");
        let snapshots: Vec<_> =
            ["snapshot-a", "snapshot-b"].map(String::from).into_iter().filter(is_whole).collect();
        for name in &snapshots {
            let end = u64::from_le_bytes(image.file(name).borrow()[32..40].try_into().unwrap());
            forge(&image, name, (24, end + 1), &[(0, 56), (0, 68)]);
        }
        if snapshots.is_empty() {
            continue;
        }
        let error = refusal(&image, truth, "a snapshot that ends before it begins");
        let error = error.expect("it is refused");
        assert!(named(&error).is_some_and(|name| name.starts_with("snapshot")), "{error}");
        refused += 1;
    }
    assert!(refused >= 2, "{refused} had a snapshot");
}

/// The next note would have the number of none.
#[test]
fn last_sequence_of_notes_is_refused() {
    for history in histories() {
        let (last, truth) = history.last().unwrap();
        for name in names(last).into_iter().filter(|name| name.ends_with(".segment")) {
            let image = last.image();
            forge(&image, &name, (536, u64::MAX), &[(512, 572)]);
            let error = refusal(&image, truth, &name).expect("it is refused");
            assert_eq!(named(&error), Some(&name[..]), "{error}");
        }
        let image = last.image();
        forge(&image, "epoch", (32, u64::MAX), &[(0, 56)]);
        let error = refusal(&image, truth, "epoch").expect("it is refused");
        assert!(named(&error).is_some(), "{error}");
    }
}
