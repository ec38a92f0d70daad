//! Frames read back while the log goes on.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]

mod store;

use journal::JournalOptions;
use model::{Lsn, StorePolicy};
use store::{MemoryDisk, Store, tiny, value};

fn always() -> JournalOptions {
    tiny(StorePolicy::Always)
}

fn opened() -> Store {
    let mut store = Store::open(&MemoryDisk::default(), always()).unwrap();
    store.settle();
    store
}

/// The segment's name that holds frame 1, as long as it holds it.
fn oldest(store: &Store) -> String {
    store.disk.segments().first().expect("there are segments").clone()
}

/// Churns until segments were used again.
fn churn(store: &mut Store, rounds: u64) {
    let recycled = store.journal.counters().segments_recycled;
    for key in 1000..1000 + rounds {
        assert!(store.put(key, &value(key, 1000)));
        store.remove(key);
    }
    assert!(store.journal.counters().segments_recycled > recycled, "files were used again");
}

#[test]
fn a_pinned_segment_is_not_used_again_and_goes_once_it_is_let_go() {
    let mut store = opened();
    assert!(store.put(1, b"one"));
    let name = oldest(&store);
    store.journal.pin(Lsn(1));
    store.journal.pin(Lsn(1));
    let before = store.disk.file(&name).borrow().clone();
    store.remove(1);
    churn(&mut store, 200);
    store.journal.unpin(Lsn(1));
    churn(&mut store, 200);
    let kept = store.disk.file(&name).borrow()[..2 * 4096].to_vec();
    assert!(kept == before[..2 * 4096], "the frame is as it was");
    let held = store.journal.counters().segments;
    store.journal.unpin(Lsn(1));
    assert_eq!(store.journal.counters().segments, held - 1, "no further snapshot is needed");
    churn(&mut store, 20);
    assert_ne!(oldest(&store), name);
    store.journal.check();
}

#[test]
fn without_a_pin_it_would_have_gone() {
    let mut store = opened();
    assert!(store.put(1, b"one"));
    let name = oldest(&store);
    store.remove(1);
    churn(&mut store, 200);
    assert_ne!(oldest(&store), name);
}

#[test]
fn a_pin_on_what_still_lives_lets_go_without_harm() {
    let mut store = opened();
    assert!(store.put(1, b"one"));
    store.journal.pin(Lsn(1));
    store.journal.unpin(Lsn(1));
    churn(&mut store, 200);
    let again = Store::open(&store.disk.image(), always()).unwrap();
    assert_eq!(again.values.contents(), store.values.contents());
}
