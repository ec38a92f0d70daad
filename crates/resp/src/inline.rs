//! A command as a person types it: words with spaces between, quoted if they hold some.

use crate::words::Words;

/// A quote that does not end, or something right behind its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unbalanced;

/// Cuts a line into words, as Redis's `sdssplitargs` does: `"a\n\x01"` knows escapes, `'a\'b'` only
/// that of its quote. A NUL ends the line.
pub(crate) fn split(line: &[u8], words: &mut Words) -> Result<(), Unbalanced> {
    let end = line.iter().position(|byte| *byte == 0).unwrap_or(line.len());
    let mut rest = line.get(..end).unwrap_or_default();
    loop {
        while let Some((first, behind)) = rest.split_first()
            && is_space(*first)
        {
            rest = behind;
        }
        if rest.is_empty() {
            return Ok(());
        }
        rest = word(rest, words)?;
    }
}

/// Takes a word from the front; gives the rest behind it.
fn word<'a>(mut rest: &'a [u8], words: &mut Words) -> Result<&'a [u8], Unbalanced> {
    while let Some((first, behind)) = rest.split_first() {
        rest = match first {
            b'"' => double_quoted(behind, words)?,
            b'\'' => single_quoted(behind, words)?,
            byte if is_space(*byte) => break,
            byte => {
                words.extend(&[*byte]);
                behind
            }
        };
    }
    words.end_word();
    Ok(rest)
}

fn double_quoted<'a>(mut rest: &'a [u8], words: &mut Words) -> Result<&'a [u8], Unbalanced> {
    loop {
        match rest {
            [b'\\', b'x', high, low, behind @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                words.extend(&[nibble(*high) << 4 | nibble(*low)]);
                rest = behind;
            }
            [b'\\', escaped, behind @ ..] => {
                words.extend(&[unescaped(*escaped)]);
                rest = behind;
            }
            [b'"', behind @ ..] => return closed(behind),
            [byte, behind @ ..] => {
                words.extend(&[*byte]);
                rest = behind;
            }
            [] => return Err(Unbalanced),
        }
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], words: &mut Words) -> Result<&'a [u8], Unbalanced> {
    loop {
        match rest {
            [b'\\', b'\'', behind @ ..] => {
                words.extend(b"'");
                rest = behind;
            }
            [b'\'', behind @ ..] => return closed(behind),
            [byte, behind @ ..] => {
                words.extend(&[*byte]);
                rest = behind;
            }
            [] => return Err(Unbalanced),
        }
    }
}

/// A quote ends a word.
fn closed(behind: &[u8]) -> Result<&[u8], Unbalanced> {
    match behind.first() {
        Some(byte) if !is_space(*byte) => Err(Unbalanced),
        _ => Ok(behind),
    }
}

/// As C's `isspace`.
fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b'\x0b'
}

fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => b'\x08',
        b'a' => b'\x07',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    fn split_words(line: &[u8]) -> Result<Vec<Vec<u8>>, Unbalanced> {
        let mut words = Words::new();
        split(line, &mut words)?;
        Ok(words.from(0).map(<[u8]>::to_vec).collect())
    }

    #[test]
    fn words_have_spaces_between() {
        assert_eq!(
            split_words(b"  set\ta  b "),
            Ok(vec![b"set".to_vec(), b"a".to_vec(), b"b".to_vec()])
        );
        assert_eq!(split_words(b""), Ok(vec![]));
        assert_eq!(split_words(b" \x0b"), Ok(vec![]));
        assert_eq!(split_words(b"a\0b"), Ok(vec![b"a".to_vec()]));
    }

    #[test]
    fn quotes_hold_spaces_and_escapes() {
        let cases: [(&[u8], &[u8]); 8] = [
            (br#""a b""#, b"a b"),
            (br#""\x41\n\r\t\b\a\"\\\q""#, b"A\n\r\t\x08\x07\"\\q"),
            (br#""\xzz""#, b"xzz"),
            (br#"'a\'b\n'"#, br"a'b\n"),
            (br#""""#, b""),
            (b"''", b""),
            (br#"a"b c""#, b"ab c"),
            (br#""a'b""#, b"a'b"),
        ];
        for (line, word) in cases {
            assert_eq!(split_words(line), Ok(vec![word.to_vec()]), "{}", line.escape_ascii());
        }
    }

    #[test]
    fn quote_ends_with_its_word() {
        for line in [&b"\"a"[..], b"'a", b"\"a\"b", b"'a'b", b"\"a\\\"", b"\""] {
            assert_eq!(split_words(line), Err(Unbalanced), "{}", line.escape_ascii());
        }
    }
}
