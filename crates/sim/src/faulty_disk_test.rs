//! Promises of the faulty disk, and how far it breaks those that it does not make.

use std::collections::BTreeSet;

use super::*;

const DISK: &str = "invariant: no fault was set";

fn disk_with(name: &str, bytes: &[u8]) -> (FaultyDisk, FaultyFile) {
    let disk = FaultyDisk::new(1);
    let file = disk.create(name).expect(DISK);
    disk.write(&file, 0, bytes, WriteMode::Written).expect(DISK);
    (disk, file)
}

/// The sets of names that power cuts of this disk leave.
fn names_left(disk: &FaultyDisk) -> BTreeSet<Vec<String>> {
    (0..200)
        .map(|seed| {
            let crashed = disk.fork();
            crashed.0.borrow_mut().rng = Rng::new(seed);
            crashed.cut_power();
            crashed.files().into_iter().map(|(name, _)| name).collect()
        })
        .collect()
}

fn sets(sets: &[&[&str]]) -> BTreeSet<Vec<String>> {
    sets.iter().map(|set| set.iter().map(|name| (*name).to_owned()).collect()).collect()
}

#[test]
fn reads_see_writes_at_once() {
    let (disk, file) = disk_with("a", b"hello");
    disk.write(&file, 3, b"p!", WriteMode::Synced).expect(DISK);
    let mut buffer = [0; 9];
    assert_eq!(disk.read(&file, 1, &mut buffer), Ok(4));
    assert_eq!(&buffer[..4], b"elp!");
    assert_eq!(disk.read(&file, 70, &mut buffer), Ok(0));
    assert_eq!(disk.length(&file), Ok(5));
}

#[test]
fn kill_keeps_unsynced_writes() {
    let (disk, file) = disk_with("a", b"hello");
    disk.sync_directory().expect(DISK);
    disk.kill();
    assert!(disk.length(&file).is_err(), "handles die with their process");
    assert_eq!(disk.content("a"), b"hello");
    let lost = (0..50).any(|_| {
        let crashed = disk.fork();
        crashed.0.borrow_mut().rng = disk.0.borrow_mut().rng.fork();
        crashed.cut_power();
        crashed.content("a") != b"hello"
    });
    assert!(lost, "it was never synced");
}

#[test]
fn name_without_directory_sync_may_vanish() {
    let (disk, file) = disk_with("a", b"hello");
    disk.sync(&file).expect(DISK);
    assert_eq!(names_left(&disk), sets(&[&[], &["a"]]));
    disk.sync_directory().expect(DISK);
    disk.rename("a", "b").expect(DISK);
    assert_eq!(names_left(&disk), sets(&[&["a"], &["b"]]));
    disk.sync_directory().expect(DISK);
    disk.remove("b").expect(DISK);
    assert_eq!(names_left(&disk), sets(&[&[], &["b"]]));
    disk.sync_directory().expect(DISK);
    assert_eq!(names_left(&disk), sets(&[&[]]));
}

#[test]
fn changes_of_names_are_lost_independently() {
    let disk = FaultyDisk::new(1);
    disk.create("a").expect(DISK);
    disk.create("b").expect(DISK);
    assert_eq!(names_left(&disk), sets(&[&[], &["a"], &["b"], &["a", "b"]]));
}

#[test]
fn names_are_unique_and_must_exist() {
    let (disk, _) = disk_with("a", b"");
    disk.create("b").expect(DISK);
    assert!(disk.create("a").is_err());
    assert!(disk.rename("a", "b").is_err());
    assert!(disk.rename("c", "d").is_err());
    assert!(disk.remove("c").is_err());
    assert!(disk.open("c").is_err());
}

#[test]
fn disk_calls_fail_by_number() {
    let (disk, file) = disk_with("a", b"hello");
    assert_eq!(disk.calls(), 2);
    disk.inject(3, Fault::Io);
    disk.inject(5, Fault::Full);
    assert_eq!(disk.sync(&file).unwrap_err().kind, DiskErrorKind::Failed);
    assert_eq!(disk.sync(&file), Ok(()));
    assert_eq!(
        disk.write(&file, 0, b"x", WriteMode::Written).unwrap_err().kind,
        DiskErrorKind::Full
    );
    assert_eq!(disk.take_struck(), [(3, Fault::Io), (5, Fault::Full)]);
    assert_eq!(disk.take_struck(), []);
}

#[test]
fn crash_fails_calls_until_restart() {
    for (moment, lengths) in
        [(Moment::Before, vec![5]), (Moment::During, vec![5, 9]), (Moment::After, vec![9])]
    {
        let mut seen = BTreeSet::new();
        for seed in 0..50 {
            let (disk, file) = disk_with("a", b"hello");
            disk.0.borrow_mut().rng = Rng::new(seed);
            disk.inject(3, Fault::Crash(moment));
            assert!(disk.write(&file, 5, b"four", WriteMode::Written).is_err());
            assert!(disk.stopped());
            assert!(disk.names().is_err());
            disk.kill();
            assert!(disk.names().is_ok());
            seen.insert(disk.content("a").len());
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), lengths, "{moment:?}");
    }
}

#[test]
fn quota_refuses_only_growth() {
    let (disk, file) = disk_with("a", b"hello");
    disk.set_quota(Some(6));
    assert_eq!(
        disk.write(&file, 5, b"xy", WriteMode::Written).unwrap_err().kind,
        DiskErrorKind::Full
    );
    disk.write(&file, 0, b"HELLO!", WriteMode::Synced).expect(DISK);
    let other = disk.create("b").expect(DISK);
    assert!(disk.write(&other, 0, b"x", WriteMode::Written).is_err());
    disk.remove("a").expect(DISK);
    disk.write(&other, 0, b"x", WriteMode::Written).expect(DISK);
    assert_eq!(disk.used(), 1);
}

#[test]
fn rot_survives_a_power_cut() {
    let (disk, file) = disk_with("a", b"hello");
    disk.sync(&file).expect(DISK);
    disk.sync_directory().expect(DISK);
    disk.rot("a", 1, 0x04);
    assert_eq!(disk.content("a"), b"hallo");
    disk.cut_power();
    assert_eq!(disk.content("a"), b"hallo");
}

#[test]
fn calls_in_flight_stop_anywhere() {
    let mut seen = BTreeSet::new();
    for seed in 0..100 {
        let (disk, file) = disk_with("a", b"");
        disk.sync_directory().expect(DISK);
        disk.0.borrow_mut().rng = Rng::new(seed);
        disk.in_flight(|| {
            let written = disk.write(&file, 0, &[1; 1024], WriteMode::Written);
            assert!(written.is_ok() || disk.stopped());
            assert!(disk.sync(&file).is_ok() || disk.stopped());
        });
        assert!(disk.stopped());
        disk.cut_power();
        seen.insert(disk.content("a"));
    }
    assert!(seen.contains(&vec![]));
    assert!(seen.contains(&vec![1; 1024]));
    assert!(seen.contains(&[vec![0; 512], vec![1; 512]].concat()), "torn, out of order");
}
