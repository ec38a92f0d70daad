//! Scripts by their digests, of which the least recently used go first.

use alloc::collections::BTreeMap;
use core::fmt;

/// Scripts that are kept.
pub const SCRIPTS_MAX: usize = 1_000;

/// Bytes of the sources of all scripts that are kept.
pub const SCRIPTS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The SHA-1 of a script's source.
pub(crate) type Digest = [u8; 20];

/// Scripts, each in some form: its source, or what an interpreter makes of it.
pub struct RecentScripts<T> {
    by_digest: BTreeMap<Digest, Entry<T>>,
    /// The digests in the order of their last use.
    by_use: BTreeMap<u64, Digest>,
    bytes: usize,
    uses: u64,
}

#[derive(Debug)]
struct Entry<T> {
    script: T,
    bytes: usize,
    /// The number of its last use.
    used: u64,
}

impl<T> Default for RecentScripts<T> {
    fn default() -> Self {
        Self { by_digest: BTreeMap::new(), by_use: BTreeMap::new(), bytes: 0, uses: 0 }
    }
}

impl<T> fmt::Debug for RecentScripts<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecentScripts({}, of {} bytes)", self.by_digest.len(), self.bytes)
    }
}

impl<T: Clone> RecentScripts<T> {
    /// The script of this digest, which is used by that.
    pub fn find(&mut self, digest: &Digest) -> Option<T> {
        let entry = self.by_digest.get_mut(digest)?;
        self.uses += 1;
        self.by_use.remove(&entry.used);
        self.by_use.insert(self.uses, *digest);
        entry.used = self.uses;
        Some(entry.script.clone())
    }

    /// True if there is such a script.
    #[must_use]
    pub fn knows(&self, digest: &Digest) -> bool {
        self.by_digest.contains_key(digest)
    }

    /// Keeps a script whose source has so many bytes, and forgets others if there are too many.
    pub fn keep(&mut self, digest: Digest, bytes: usize, script: T) {
        self.forget(&digest);
        self.uses += 1;
        self.by_use.insert(self.uses, digest);
        self.by_digest.insert(digest, Entry { script, bytes, used: self.uses });
        self.bytes += bytes;
        while self.by_digest.len() > SCRIPTS_MAX || self.bytes > SCRIPTS_BYTES_MAX {
            let Some((_, oldest)) = self.by_use.pop_first() else { return };
            self.forget(&oldest);
        }
    }

    fn forget(&mut self, digest: &Digest) {
        if let Some(entry) = self.by_digest.remove(digest) {
            self.by_use.remove(&entry.used);
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(number: usize) -> Digest {
        let mut digest = [0; 20];
        digest[..8].copy_from_slice(&number.to_be_bytes());
        digest
    }

    #[test]
    fn least_recently_used_scripts_go() {
        let mut scripts = RecentScripts::default();
        for number in 0..SCRIPTS_MAX {
            scripts.keep(digest(number), 1, number);
        }
        assert_eq!(scripts.find(&digest(0)), Some(0));
        scripts.keep(digest(2), 1, 2);
        scripts.keep(digest(SCRIPTS_MAX), 1, SCRIPTS_MAX);
        assert!(scripts.knows(&digest(0)) && scripts.knows(&digest(2)));
        assert!(!scripts.knows(&digest(1)));
        assert_eq!(scripts.find(&digest(1)), None);
    }

    #[test]
    fn bytes_of_scripts_are_bounded() {
        let mut scripts = RecentScripts::default();
        for number in 0..5 {
            scripts.keep(digest(number), SCRIPTS_BYTES_MAX / 4, number);
        }
        assert_eq!(scripts.find(&digest(0)), None);
        assert_eq!(scripts.find(&digest(4)), Some(4));
        assert_eq!(scripts.bytes, SCRIPTS_BYTES_MAX);
        scripts.keep(digest(5), SCRIPTS_BYTES_MAX + 1, 5);
        assert_eq!((scripts.bytes, scripts.by_digest.len(), scripts.by_use.len()), (0, 0, 0));
    }
}
