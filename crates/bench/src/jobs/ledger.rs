//! The jobs that the server has confirmed and handed out, so that a wrong job is noticed.

use std::collections::BTreeMap;

/// Which jobs were put, and which of them were seen again.
///
/// Ids come nearly dense and ascending, so they are bits in small pages; a page exists only where
/// an id was confirmed, which bounds the memory even if a server makes up ids.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pages: BTreeMap<u64, Page>,
    put: u64,
    seen: u64,
}

/// The history of a job that the server handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sighting {
    /// It was put and not seen since.
    First,
    /// It was seen before.
    Again,
    /// It was never put.
    Unknown,
}

#[derive(Clone, Copy, Debug, Default)]
struct Page {
    put: [u64; PAGE_WORDS],
    seen: [u64; PAGE_WORDS],
}

impl Ledger {
    /// Notes a confirmed job; false if that id was confirmed before.
    pub(crate) fn put(&mut self, id: u64) -> bool {
        let (page, word, bit) = place(id);
        let fresh = set(self.pages.entry(page).or_default().put.get_mut(word), bit);
        self.put += u64::from(fresh);
        fresh
    }

    /// Notes a job that was handed out.
    pub(crate) fn see(&mut self, id: u64) -> Sighting {
        let (page, word, bit) = place(id);
        let Some(page) = self.pages.get_mut(&page) else { return Sighting::Unknown };
        if page.put.get(word).is_none_or(|bits| bits & bit == 0) {
            return Sighting::Unknown;
        }
        if !set(page.seen.get_mut(word), bit) {
            return Sighting::Again;
        }
        self.seen += 1;
        Sighting::First
    }

    /// Starts a new round: every job counts as not seen.
    pub(crate) fn forget_seen(&mut self) {
        self.pages.values_mut().for_each(|page| page.seen = [0; PAGE_WORDS]);
        self.seen = 0;
    }

    /// How many different jobs were confirmed.
    pub(crate) fn put_count(&self) -> u64 {
        self.put
    }

    /// How many of them were seen in this round.
    pub(crate) fn seen_count(&self) -> u64 {
        self.seen
    }
}

/// Sets a bit; false if it was set before.
fn set(word: Option<&mut u64>, bit: u64) -> bool {
    let word = word.expect("invariant: place() stays inside a page");
    let fresh = *word & bit == 0;
    *word |= bit;
    fresh
}

/// Page, word in the page and bit in the word.
fn place(id: u64) -> (u64, usize, u64) {
    let word = (id / 64) % PAGE_WORDS as u64;
    (id / (64 * PAGE_WORDS as u64), word as usize, 1 << (id % 64))
}

/// 2048 ids a page: 512 bytes with both sets.
const PAGE_WORDS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledger_tells_repeated_and_unknown_ids() {
        let mut ledger = Ledger::default();
        for id in [0, 1, 63, 64, 4095, 4096, u64::MAX] {
            assert!(ledger.put(id), "{id}");
            assert!(!ledger.put(id), "{id}");
            assert_eq!(ledger.see(id), Sighting::First, "{id}");
            assert_eq!(ledger.see(id), Sighting::Again, "{id}");
        }
        assert_eq!(ledger.see(2), Sighting::Unknown);
        assert_eq!(ledger.see(1 << 40), Sighting::Unknown);
        assert_eq!((ledger.put_count(), ledger.seen_count()), (7, 7));
        ledger.forget_seen();
        assert_eq!(ledger.seen_count(), 0);
        assert_eq!(ledger.see(63), Sighting::First);
    }
}
