//! Patterns over names made of words with dots between them: `news.*.sport`, `news.#`, `news.>`.

use alloc::vec::Vec;

use crate::limits;

/// A part of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part<'p> {
    /// This very word.
    Word(&'p str),
    /// Any word: `*`.
    One,
    /// Any number of words, none included: `#`.
    Any,
}

/// True if a name says that it is a pattern: one of its words is `*`, `#` or `>`.
#[must_use]
pub fn is_pattern(name: &str) -> bool {
    words(name).any(|word| matches!(word, "*" | "#" | ">"))
}

/// The words of a name.
pub fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split('.')
}

/// The parts of a pattern; `None`: `>` stands elsewhere than at its end. There `>` is one word and
/// any number more. Neighbouring `#` count as one.
#[must_use]
pub fn parts(pattern: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut words = words(pattern).peekable();
    while let Some(word) = words.next() {
        match word {
            ">" if words.peek().is_some() => return None,
            ">" => parts.extend([Part::One, Part::Any]),
            "#" if parts.last() == Some(&Part::Any) => {}
            "#" => parts.push(Part::Any),
            "*" => parts.push(Part::One),
            word => parts.push(Part::Word(word)),
        }
    }
    Some(parts)
}

/// How many places in a pattern a name may be at while it is matched, added up over its words: more
/// if `#` is followed by something.
#[must_use]
pub fn weight(parts: &[Part<'_>]) -> usize {
    let last = parts.len().saturating_sub(1);
    let is_open = parts.iter().take(last).any(|part| *part == Part::Any);
    if is_open { parts.len() * WORDS_MAX } else { parts.len() }
}

/// Words of the longest name.
const WORDS_MAX: usize = limits::QUEUE_NAME_BYTES_MAX / 2 + 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_known_by_their_words() {
        for name in ["*", "#", ">", "news.*", "*.news", "news.#", "news.>", "a.*.b", "a.>.b"] {
            assert!(is_pattern(name), "{name}");
        }
        for name in ["news", "c#", "a>b", "news*", "news.*x", "", ".", "a..b", "**", "a/*"] {
            assert!(!is_pattern(name), "{name}");
        }
    }

    #[test]
    fn patterns_have_parts() {
        use Part::{Any, One, Word};
        assert_eq!(parts("news.*.eu"), Some([Word("news"), One, Word("eu")].to_vec()));
        assert_eq!(parts("news.>"), Some([Word("news"), One, Any].to_vec()));
        assert_eq!(parts("#.#.a"), Some([Any, Word("a")].to_vec()));
        assert_eq!(parts(">"), Some([One, Any].to_vec()));
        assert_eq!(parts("a.>.b"), None);
        assert_eq!(weight(&parts("news.*.eu").unwrap()), 3);
        assert_eq!(weight(&parts("news.#").unwrap()), 2);
        assert_eq!(weight(&parts("#.news").unwrap()), 2 * 128);
    }
}
