//! Compiled scripts, of which the least recently used go first.

use std::collections::{BTreeMap, HashMap};

use crate::limits::{CACHED_BYTES_MAX, CACHED_SCRIPTS_MAX};

/// Things by the digests of their texts.
#[derive(Debug)]
pub(crate) struct Cache<T> {
    entries: HashMap<[u8; 20], Entry<T>>,
    /// The digests in the order of their last use.
    order: BTreeMap<u64, [u8; 20]>,
    bytes: usize,
    uses: u64,
}

#[derive(Debug)]
struct Entry<T> {
    thing: T,
    bytes: usize,
    used: u64,
}

impl<T: Clone> Cache<T> {
    pub(crate) fn new() -> Self {
        Self { entries: HashMap::new(), order: BTreeMap::new(), bytes: 0, uses: 0 }
    }

    /// Finds a thing, and notes that it is used.
    pub(crate) fn find(&mut self, digest: &[u8; 20]) -> Option<T> {
        let entry = self.entries.get_mut(digest)?;
        self.uses += 1;
        self.order.remove(&entry.used);
        self.order.insert(self.uses, *digest);
        entry.used = self.uses;
        Some(entry.thing.clone())
    }

    /// Keeps a thing with so many bytes of text.
    pub(crate) fn keep(&mut self, digest: [u8; 20], bytes: usize, thing: T) {
        self.remove(&digest);
        self.uses += 1;
        self.order.insert(self.uses, digest);
        self.entries.insert(digest, Entry { thing, bytes, used: self.uses });
        self.bytes += bytes;
        while self.entries.len() > CACHED_SCRIPTS_MAX || self.bytes > CACHED_BYTES_MAX {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, digest: &[u8; 20]) {
        if let Some(entry) = self.entries.remove(digest) {
            self.order.remove(&entry.used);
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_recently_used_scripts_go() {
        let mut cache = Cache::new();
        for number in 0..CACHED_SCRIPTS_MAX {
            cache.keep(digest(number), 1, number);
        }
        assert_eq!(cache.find(&digest(0)), Some(0));
        cache.keep(digest(5000), 1, 5000);
        assert_eq!(cache.find(&digest(0)), Some(0));
        assert_eq!(cache.find(&digest(1)), None);
    }

    #[test]
    fn cached_bytes_are_bounded() {
        let mut cache = Cache::new();
        for number in 0..5 {
            cache.keep(digest(number), 1 << 20, number);
        }
        assert_eq!(cache.find(&digest(0)), None);
        assert_eq!(cache.find(&digest(4)), Some(4));
        assert_eq!(cache.bytes, CACHED_BYTES_MAX);
    }

    fn digest(number: usize) -> [u8; 20] {
        let mut digest = [0; 20];
        digest[..8].copy_from_slice(&number.to_le_bytes());
        digest
    }
}
