//! The result of `broker::salvage` on a damaged directory: a sound one, and a report. The sound one
//! holds everything but the parts that the damage hit. The report names each missing message.

use std::collections::{BTreeMap, BTreeSet};

use broker::{Salvaged, salvage};
use engine::RecordView;
use journal::{Disk as _, DumpEntry, FRAME_HEADER_BYTES, inspect};
use sim::FaultyDisk;

use super::{BLOCK_BYTES, Lsn, MARK_BYTES, Nanos, Shelf, recover, store};

/// A copy of the readable parts, as a reader finds it.
fn copy_of(shelf: &Shelf) -> (Salvaged, Shelf) {
    let target = FaultyDisk::new(2);
    let salvaged = salvage(shelf, &target, Nanos::SECOND, &mut |_| {}).expect("some is left");
    (salvaged, Shelf::of(&target))
}

/// The state of each message that recovery finds, with its body, and everything else.
fn state_of(shelf: &Shelf) -> (BTreeMap<u64, String>, BTreeSet<String>) {
    let everything = recover(shelf).expect("a copy is sound").everything();
    let stored = stored_in(shelf);
    let (mut messages, mut rest) = (BTreeMap::new(), BTreeSet::new());
    for line in everything.lines() {
        let number = line.split_once("message: MessageId(").and_then(|(_, it)| it.split_once(')'));
        let Some((number, _)) = number else {
            rest.insert(line.to_owned());
            continue;
        };
        let number = number.parse().expect("it is a number");
        // The location of a body is no part of its message.
        let (shown, _) = line.split_once("body: ").expect("it has a body");
        messages.insert(number, format!("{shown} {:?}", stored[&number].1));
    }
    (messages, rest)
}

/// The last frame with the record of each message, and the body in it.
fn stored_in(shelf: &Shelf) -> BTreeMap<u64, (Lsn, Vec<u8>)> {
    let mut stored = BTreeMap::new();
    inspect(shelf, &mut |found: DumpEntry<'_>| {
        let DumpEntry::Frame { lsn, payload } = found else { return };
        for record in engine::describe(payload).map_while(Result::ok) {
            match record {
                RecordView::Message { envelope, body } => {
                    stored.insert(envelope.message.0, (lsn, body.to_vec()));
                }
                RecordView::Shared { copies, body } => {
                    let copies = copies.iter().map(|copy| (copy.message.0, (lsn, body.to_vec())));
                    stored.extend(copies);
                }
                _ => {}
            }
        }
    })
    .expect("it is sound");
    stored
}

#[test]
fn salvage_of_sound_directory_loses_nothing() {
    let shelf = Shelf::of(&store());
    let (salvaged, copy) = copy_of(&shelf);
    assert!(salvaged.is_whole(), "{salvaged:?}");
    assert_eq!(state_of(&copy), state_of(&shelf));
}

/// Bytes to be damaged: samples of all files, and one in each batch with a message that lives.
fn places(shelf: &Shelf) -> Vec<(usize, usize)> {
    let every_bit = std::env::var_os("DUNLIN_EVERY_BIT").is_some();
    let mut places = Vec::new();
    for (file, name) in shelf.names.iter().enumerate() {
        let step = if every_bit { 31 } else { 2003 };
        let step = if name.ends_with(".segment") { step } else { step / 10 };
        let bytes = shelf.contents.borrow()[file].len();
        places.extend((0..bytes).step_by(step).map(|byte| (file, byte)));
    }
    let living: BTreeSet<Lsn> = stored_in(shelf).into_values().map(|(lsn, _)| lsn).collect();
    inspect(shelf, &mut |found: DumpEntry<'_>| {
        let DumpEntry::Batch { file, offset, lsn, frames, .. } = found else { return };
        let last = Lsn(lsn.0 + u64::from(frames));
        if living.range(lsn..last).next().is_some() {
            let file = shelf.open(file).expect("it is there");
            places.push((file, offset as usize + MARK_BYTES + FRAME_HEADER_BYTES + 5));
        }
    })
    .expect("it is sound");
    places
}

#[test]
fn salvage_loses_only_what_damage_hit() {
    let shelf = Shelf::of(&store());
    let (before, _) = state_of(&shelf);
    let stored = stored_in(&shelf);
    let last = before.keys().map(|number| stored[number].0).max();
    let (mut whole, mut lossy) = (0, 0);
    for (file, byte) in places(&shelf) {
        shelf.flip(file, byte, (byte % 8) as u32);
        let (salvaged, copy) = copy_of(&shelf);
        shelf.flip(file, byte, (byte % 8) as u32);
        let (after, _) = state_of(&copy);
        let case = format!("{} at {byte}: {salvaged:?}", shelf.names[file]);
        let named: BTreeSet<u64> =
            salvaged.report.messages_lost.iter().map(|lost| lost.message.0).collect();
        for (number, line) in &before {
            let frame = stored[number].0;
            let in_gap = salvaged.gaps.iter().any(|gap| (gap.first..=gap.last).contains(&frame));
            match after.get(number) {
                Some(found) if found == line => {}
                // Its last change is lost, or the snapshot that knew of it.
                Some(_) => assert!(!salvaged.is_whole(), "{number} differs: {case}"),
                // The end of the log, which nothing tells from a torn one.
                None if salvaged.is_whole() => assert_eq!(Some(frame), last, "{case}"),
                None => assert!(in_gap || named.contains(number), "{number} is lost: {case}"),
            }
        }
        let missing = before.keys().filter(|number| !after.contains_key(number)).count();
        // A commit in one frame has eight messages.
        assert!(missing <= 8, "{missing} are lost: {case}");
        whole += u64::from(salvaged.is_whole());
        lossy += u64::from(missing > 0);
    }
    assert!(whole > 100 && lossy > 5, "{whole} were whole, {lossy} lost something");
}

#[test]
fn salvage_of_cut_and_lost_files() {
    let disk = store();
    let shelf = Shelf::of(&disk);
    let (before, _) = state_of(&shelf);
    let segments: Vec<usize> =
        (0..shelf.names.len()).filter(|file| shelf.names[*file].ends_with(".segment")).collect();
    for file in segments {
        for bytes in [0, 100, BLOCK_BYTES, BLOCK_BYTES + 500] {
            let kept = shelf.contents.borrow()[file].clone();
            shelf.contents.borrow_mut()[file].truncate(bytes);
            let (salvaged, copy) = copy_of(&shelf);
            shelf.contents.borrow_mut()[file] = kept;
            let (after, _) = state_of(&copy);
            let case = format!("{} cut at {bytes}: {salvaged:?}", shelf.names[file]);
            assert!(!salvaged.is_whole(), "{case}");
            let unnamed =
                before.keys().filter(|number| !after.contains_key(number)).filter(|number| {
                    !salvaged.report.messages_lost.iter().any(|lost| lost.message.0 == **number)
                });
            let unnamed = unnamed.count();
            // Only its own frame tells of the very last message.
            assert!(unnamed <= 1 || !salvaged.gaps.is_empty(), "{unnamed} unnamed: {case}");
        }
    }
}
