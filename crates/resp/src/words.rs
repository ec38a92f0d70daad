//! The words of one command: its name and its arguments, in one piece of memory that the next
//! command uses again.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The cost of a word beside its bytes when the size of a command is reckoned.
const WORD_COST: usize = 16;

/// Bytes that are kept of the memory of a large command.
const KEPT_BYTES_MAX: usize = 4 * 1024;
const KEPT_WORDS_MAX: usize = 256;

/// The words as they came; the first is the command's name. `Debug` does not show them: they may be
/// a password or a message.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Words {
    bytes: Vec<u8>,
    /// The end of each word.
    ends: Vec<usize>,
}

impl Words {
    pub(crate) const fn new() -> Self {
        Self { bytes: Vec::new(), ends: Vec::new() }
    }

    /// Begins anew.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES_MAX);
        self.ends.clear();
        self.ends.shrink_to(KEPT_WORDS_MAX);
    }

    /// Adds bytes to the word that has begun.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Ends the word that has begun.
    pub(crate) fn end_word(&mut self) {
        self.ends.push(self.bytes.len());
    }

    /// How many words have ended.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The cost of holding it.
    pub(crate) fn cost_bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * WORD_COST
    }

    /// One word; nothing if there is none.
    pub(crate) fn word(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before));
        let end = self.ends.get(index).copied().unwrap_or_default();
        self.bytes.get(start.copied().unwrap_or_default()..end).unwrap_or_default()
    }

    /// The words from one on.
    pub(crate) fn from(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        (index..self.len()).map(|index| self.word(index))
    }

    /// True if that word is this one, in letters of any size. `word` is in lower case.
    pub(crate) fn is(&self, index: usize, word: &str) -> bool {
        index < self.len() && self.word(index).eq_ignore_ascii_case(word.as_bytes())
    }

    /// A word in lower case, for a look-up; as text, for any bytes.
    pub(crate) fn lower(&self, index: usize) -> String {
        String::from_utf8_lossy(self.word(index)).to_ascii_lowercase()
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Words({}, of {} bytes)", self.len(), self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_unchanged() {
        let mut words = Words::new();
        for word in [&b"SET"[..], b"", b"a b"] {
            words.extend(word);
            words.end_word();
        }
        assert_eq!(words.len(), 3);
        assert_eq!(
            (words.word(0), words.word(1), words.word(2)),
            (&b"SET"[..], &b""[..], &b"a b"[..])
        );
        assert_eq!(words.word(3), b"");
        assert!(words.is(0, "set") && !words.is(1, "set") && !words.is(3, ""));
        assert_eq!(words.from(1).collect::<Vec<_>>(), [&b""[..], b"a b"]);
    }

    #[test]
    fn words_of_large_command_free_memory() {
        let mut words = Words::new();
        for _ in 0..10_000 {
            words.extend(&[b'x'; 1_000]);
            words.end_word();
        }
        words.clear();
        assert!(words.is_empty());
        assert!(words.bytes.capacity() <= KEPT_BYTES_MAX);
        assert!(words.ends.capacity() <= KEPT_WORDS_MAX);
    }
}
