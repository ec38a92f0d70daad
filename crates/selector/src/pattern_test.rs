//! LIKE against a matcher that tries everything, and the count of its steps.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::*;

/// The definition, word by word: exponential, and right.
fn naive(pattern: &[char], text: &[char], escape: Option<char>) -> bool {
    let Some((first, pattern_rest)) = pattern.split_first() else {
        return text.is_empty();
    };
    let one = |wanted: Option<char>, pattern: &[char]| {
        text.split_first().is_some_and(|(c, text)| {
            wanted.is_none_or(|wanted| wanted == *c) && naive(pattern, text, escape)
        })
    };
    match first {
        _ if Some(*first) == escape => one(Some(pattern_rest[0]), &pattern_rest[1..]),
        '%' => (0..=text.len()).any(|skipped| naive(pattern_rest, &text[skipped..], escape)),
        '_' => one(None, pattern_rest),
        _ => one(Some(*first), pattern_rest),
    }
}

/// The `index`-th word over an alphabet, the shorter ones first.
fn word(mut index: usize, alphabet: &[char]) -> Vec<char> {
    let mut word = Vec::new();
    while index > 0 {
        index -= 1;
        word.push(alphabet[index % alphabet.len()]);
        index /= alphabet.len();
    }
    word
}

#[test]
fn short_patterns_match_the_definition() {
    let mut matched = 0;
    for pattern in (0..3_000).map(|index| word(index, &['a', 'ß', '_', '%'])) {
        let compiled = Pattern::new(&pattern.iter().collect::<String>(), None).unwrap();
        for text in (0..120).map(|index| word(index, &['a', 'ß', 'c'])) {
            let expected = naive(&pattern, &text, None);
            matched += u32::from(expected);
            let text: String = text.iter().collect();
            assert_eq!(compiled.matches(&text), expected, "{text:?} LIKE {pattern:?}");
        }
    }
    assert!(matched > 10_000, "the comparison means something: {matched}");
}

#[test]
fn short_patterns_with_escapes_match_definition() {
    for pattern in (0..3_000).map(|index| word(index, &['%', '!', '_', 'a'])) {
        let text: String = pattern.iter().collect();
        let escapes_at_end = pattern.iter().rev().take_while(|c| **c == '!').count();
        let compiled = Pattern::new(&text, Some('!'));
        // Escapes at the end escape one another, in pairs.
        assert_eq!(compiled.is_err(), escapes_at_end % 2 == 1, "{text}");
        let Ok(compiled) = compiled else { continue };
        for text in (0..120).map(|index| word(index, &['%', '!', 'a'])) {
            let expected = naive(&pattern, &text, Some('!'));
            let text: String = text.iter().collect();
            assert_eq!(compiled.matches(&text), expected, "{text:?} LIKE {pattern:?}");
        }
    }
}

#[test]
fn wild_runs_over_limit_are_refused() {
    let most = limits::WILD_RUN_CHARS_MAX;
    let run = format!("{}_b", "a".repeat(most - 2));
    let pattern = Pattern::new(&format!("%{run}%"), None).unwrap();
    assert!(pattern.matches(&format!("{}xb", "a".repeat(1_000))));
    assert!(!pattern.matches(&format!("{}xxb", "a".repeat(1_000))));
    let longer = Pattern::new(&format!("%a{run}%"), None);
    assert_eq!(longer.unwrap_err(), Reason::WildRunTooLong);
    // Only runs that have to be searched for are limited.
    assert!(Pattern::new(&format!("a{run}%a{run}"), None).is_ok());
    assert!(Pattern::new(&format!("%{}%", "a".repeat(60_000)), None).is_ok());
}

/// A search that starts again at each place would take a million times sixty steps here, and one
/// that takes choices back would not end.
#[test]
fn characters_are_visited_once() {
    let text = "a".repeat(1_000_000);
    let run: Vec<Wanted> = "a".repeat(60).chars().map(Some).chain([None, Some('b')]).collect();
    let mut looked = 0;
    let found = WildNeedle::new(&run).first_end(text.char_indices().inspect(|_| looked += 1));
    assert_eq!((found, looked), (None, 1_000_000));

    let many = "%a_a".repeat(10_000) + "%";
    let pattern = Pattern::new(&many, None).unwrap();
    let mut rest: &str = &text;
    let mut looked = 0;
    for needle in &pattern.middle {
        let Needle::Wild(needle) = needle else { panic!("a_a is wild") };
        let end = needle.first_end(rest.char_indices().inspect(|_| looked += 1)).unwrap();
        rest = &rest[end..];
    }
    assert_eq!(looked, 30_000, "a run takes up where the one before it ended");
    assert!(pattern.matches(&text));
    assert!(!Pattern::new(&(many + "b"), None).unwrap().matches(&text));
}

#[test]
fn escape_may_be_any_character() {
    let escaped = |pattern: &str, escape: char, text: &str| {
        Pattern::new(pattern, Some(escape)).unwrap().matches(text)
    };
    assert!(escaped("%%%_", '%', "%_"));
    assert!(!escaped("%%%_", '%', "ab"));
    assert!(escaped("_%%", '_', "%x"));
    assert!(!escaped("_%%", '_', "ax"));
    assert!(escaped("a__b", '_', "a_b"));
    assert!(escaped("ßß%", 'ß', "ß..."));
}
