//! Room for chains of frames: all of it before the first, while others go on.

use journal::{ChainReadiness, JournalOptions};
use model::{ChainRoom, StorePolicy};

use crate::store::{MemoryDisk, Store, tiny, value};

const VALUE_BYTES: usize = 4_000;

fn always() -> JournalOptions {
    tiny(StorePolicy::Always)
}

/// The room of so many values, each a frame of its own.
fn room_of(frames: u64, value_bytes: usize) -> ChainRoom {
    let frame_bytes = value_bytes + 9;
    ChainRoom {
        bytes: frames * frame_bytes as u64,
        frames,
        frame_bytes,
        snapshot_bytes: 16 * frames,
    }
}

fn opened() -> Store {
    let mut store = Store::open(&MemoryDisk::default(), always()).unwrap();
    store.settle();
    store
}

#[test]
fn chain_waits_for_all_its_room() {
    // From less than a segment to ten of them.
    for frames in [2, 10, 20, 40, 150] {
        let mut store = Store::open(&MemoryDisk::default(), always()).unwrap();
        let room = room_of(frames, VALUE_BYTES);
        assert_eq!(store.journal.readiness(&room), ChainReadiness::Awaited, "nothing is there yet");
        store.journal.want_room(Some(room));
        let mut others = 0;
        while store.journal.readiness(&room) == ChainReadiness::Awaited {
            assert!(store.chore(), "there is always something to be done about it");
            if !store.journal.stalled() {
                others += 1;
                store.append_put(1_000_000 + others, b"a neighbour's");
                store.write_all();
            }
        }
        assert_eq!(store.journal.readiness(&room), ChainReadiness::Ready);
        for key in 0..frames {
            // Neither a write nor a chore in between.
            assert!(store.append_put(key, &value(key, VALUE_BYTES)));
        }
        store.journal.end_chain();
        store.journal.want_room(None);
        assert!(!store.journal.stalled(), "others go on at once");
        assert_eq!(store.journal.readiness(&room), ChainReadiness::Awaited, "until it is written");
        store.settle();
        let again = Store::open(&store.disk.image(), always()).unwrap();
        assert_eq!(again.values.contents(), store.values.contents());
    }
}

#[test]
fn chain_without_room_leaves_none_taken() {
    let mut store = opened();
    let before = store.disk.bytes();
    store.disk.directory().quota = Some(before + 300_000);
    let room = room_of(100, VALUE_BYTES);
    store.journal.want_room(Some(room));
    store.settle();
    assert_eq!(store.journal.readiness(&room), ChainReadiness::NoRoom);
    store.journal.want_room(None);
    store.settle();
    let kept = 4 * always().segment_bytes;
    assert!(store.disk.bytes() <= before + kept, "{} of {before}", store.disk.bytes());
    assert!(store.put(1, b"others go on"));
    let again = Store::open(&store.disk.image(), always()).unwrap();
    assert_eq!(again.values.contents(), store.values.contents());
}

#[test]
fn appends_beside_chain_wait_at_last() {
    let mut store = opened();
    let room = room_of(1_000, VALUE_BYTES);
    store.journal.want_room(Some(room));
    let mut key = 0;
    let mut waits = 0;
    while store.journal.readiness(&room) == ChainReadiness::Awaited && waits < 200 {
        assert!(store.chore());
        waits += 1;
        while !store.journal.stalled() {
            store.append_put(key, &value(key, VALUE_BYTES));
            store.write_all();
            (key, waits) = (key + 1, 0);
        }
    }
    // Seven fit into a segment.
    assert!(key > 7 * 20, "they could go on for long: {key}");
    assert!(key < 7 * 40, "but not for ever: {key}");
    while store.journal.readiness(&room) == ChainReadiness::Awaited {
        assert!(store.chore());
    }
    assert!(store.journal.stalled(), "they wait for the chain");
    store.journal.end_chain();
    store.journal.want_room(None);
    assert!(!store.journal.stalled());
}

#[test]
fn unwritten_chain_stalls_no_others() {
    const FRAMES: u64 = 44;
    const BYTES: usize = 1024 * 1024 - 100;
    let options = JournalOptions {
        frame_payload_bytes_max: BYTES + 9,
        ..JournalOptions::new(StorePolicy::Always)
    };
    let mut store = Store::open(&MemoryDisk::default(), options).unwrap();
    let room = room_of(FRAMES, BYTES);
    store.journal.want_room(Some(room));
    store.settle();
    for key in 0..FRAMES {
        store.append_put(key, &value(key, BYTES));
    }
    assert!(store.journal.stalled(), "so much would hold up everybody");
    store.journal.end_chain();
    assert!(!store.journal.stalled());
    store.journal.want_room(Some(room));
    while store.chore() {}
    assert!(!store.journal.holds_back(0));
    assert_eq!(store.journal.readiness(&room), ChainReadiness::Awaited, "one at a time");
    store.write_all();
    assert_eq!(store.journal.readiness(&room), ChainReadiness::Ready);
}
