//! Glob patterns over names: `*`, `?`, `[a-z]`, `[^a]`, and `\` before any of these. They match
//! bytes, as in Redis: `?` is a byte, not a character.

/// True if all of the text matches all of the pattern.
///
/// Takes time in the order of both lengths multiplied, never more. Only the last of several stars
/// is tried again: an earlier one could give it no more to choose from.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    matches_counting(pattern, text).0
}

/// The same, with how many comparisons it took.
#[must_use]
pub fn matches_counting(pattern: &[u8], text: &[u8]) -> (bool, usize) {
    let (mut pattern, mut text) = (pattern, text);
    let mut star: Option<(&[u8], &[u8])> = None;
    let mut count = 0;
    loop {
        count += 1;
        if let [b'*', behind @ ..] = pattern {
            if behind.is_empty() {
                return (true, count);
            }
            pattern = behind;
            star = Some((behind, text));
            continue;
        }
        if pattern.is_empty() && text.is_empty() {
            return (true, count);
        }
        if let Some((byte, rest)) = text.split_first()
            && let Some(behind) = match_one(pattern, *byte)
        {
            (pattern, text) = (behind, rest);
            continue;
        }
        let Some((behind, from)) = star else { return (false, count) };
        let Some((_, from)) = from.split_first() else { return (false, count) };
        star = Some((behind, from));
        (pattern, text) = (behind, from);
    }
}

/// Comparisons that it takes at most to match a text of so many bytes: behind a star that is not
/// the last part all may be compared from each byte on.
#[must_use]
pub fn comparisons_max(pattern: &[u8], text_bytes: usize) -> usize {
    let (ends, head) = match pattern {
        [head @ .., b'*'] => (true, head),
        pattern => (false, pattern),
    };
    let is_searched = head.contains(&b'*');
    if is_searched { head.len() * text_bytes } else { head.len() + usize::from(ends) }
}

/// The rest of the pattern if its first part, which is no star, matches this byte.
fn match_one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [b'?', behind @ ..] => Some(behind),
        [b'[', behind @ ..] => {
            let (contained, behind) = in_class(behind, byte);
            contained.then_some(behind)
        }
        [b'\\', escaped, behind @ ..] => (*escaped == byte).then_some(behind),
        [literal, behind @ ..] => (*literal == byte).then_some(behind),
        [] => None,
    }
}

/// True if a class holds a byte, and the rest behind the class. Its bracket was read. A class
/// without an end ends with the pattern.
fn in_class(class: &[u8], byte: u8) -> (bool, &[u8]) {
    let (negated, mut rest) = match class {
        [b'^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut found = false;
    loop {
        rest = match rest {
            [] => return (found != negated, rest),
            [b']', behind @ ..] => return (found != negated, behind),
            [b'\\', escaped, behind @ ..] => {
                found |= *escaped == byte;
                behind
            }
            [low, b'-', high, behind @ ..] => {
                let (low, high) = if low <= high { (low, high) } else { (high, low) };
                found |= (low..=high).contains(&&byte);
                behind
            }
            [literal, behind @ ..] => {
                found |= *literal == byte;
                behind
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        let cases = [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "anything", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeello", true),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("h[a-c]llo", "hdllo", false),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("[\\]]", "]", true),
            ("[a", "a", true),
            ("a[", "a", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("*a*", "bab", true),
            ("**x", "yyx", true),
            ("a\\", "a\\", true),
        ];
        for (pattern, text, expected) in cases {
            let found = matches(pattern.as_bytes(), text.as_bytes());
            assert_eq!(found, expected, "{pattern:?} {text:?}");
        }
    }

    #[test]
    fn comparisons_are_bounded() {
        let pieces = ["a", "b", "*", "?", "[ab]", "\\*"];
        let mut patterns = alloc::vec![alloc::string::String::new()];
        for _ in 0..5 {
            let longer = patterns.iter().flat_map(|pattern| {
                pieces.iter().map(move |piece| alloc::format!("{pattern}{piece}"))
            });
            patterns = longer.collect();
            for pattern in &patterns {
                for text in ["", "a", "aaaaaaaa", "abababab", "aaaaaaab", "********"] {
                    let (_, count) = matches_counting(pattern.as_bytes(), text.as_bytes());
                    let most = comparisons_max(pattern.as_bytes(), text.len());
                    assert!(
                        count <= 2 * (most + pattern.len() + text.len() + 1),
                        "{pattern} {text}"
                    );
                }
            }
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = b"a*".repeat(30);
        let (found, count) = matches_counting(&[&pattern[..], b"b"].concat(), &[b'a'; 10_000]);
        assert!(!found && count < 60 * 10_000, "{count}");
    }
}
