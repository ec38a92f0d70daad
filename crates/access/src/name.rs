//! Names of users, and passwords, in the one form that all protocols compare.
//!
//! Both are profiles of RFC 8265: composed Unicode (NFC), no control characters. A name has also
//! none of the characters that mean something where names are used: `:` ends a name in HTTP's
//! Basic, `*` and brackets are parts of patterns, spaces divide the words of logs and lists.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use model::Secret;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::{is_nfc, is_nfkc};

use crate::limits::{NAME_BYTES_MAX, PASSWORD_BYTES_MAX, PASSWORD_CHARS_MIN};

/// Checks the name of a user.
///
/// # Errors
/// The fault, as the end of a sentence that begins with the name.
pub fn check_user_name(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("is empty");
    }
    if name.len() > NAME_BYTES_MAX {
        return Err("is longer than 128 bytes");
    }
    if name.starts_with('-') {
        return Err("begins with a hyphen, as options do");
    }
    if name.contains(|c: char| c.is_whitespace() || is_hidden(c) || SPECIAL.contains(&c)) {
        return Err("holds a space, an invisible character or one of \" * : ? [ \\ ] { }");
    }
    if !is_nfc(name) {
        return Err("is not in Unicode's composed form (NFC)");
    }
    Ok(())
}

/// The name that a client sent, composed. `None`: no user can have it.
pub(crate) fn sent_name(name: &str) -> Option<Cow<'_, str>> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let composed =
        if is_nfc(name) { Cow::Borrowed(name) } else { Cow::Owned(name.nfc().collect::<String>()) };
    check_user_name(&composed).is_ok().then_some(composed)
}

/// A password that is to be set. Clients prepare passwords by RFC 8265, by its ancestor SASLprep,
/// or not at all: one that these would change in different ways is refused.
///
/// # Errors
/// The fault, as the end of a sentence that begins with "the password".
pub fn new_password(password: &[u8]) -> Result<Secret, &'static str> {
    let Ok(text) = str::from_utf8(password) else { return Err("is not in UTF-8") };
    if text.len() > PASSWORD_BYTES_MAX {
        return Err("is longer than 1024 bytes");
    }
    if text.chars().count() < PASSWORD_CHARS_MIN {
        return Err("has fewer than 8 characters");
    }
    if text.contains(|c: char| is_hidden(c) || (c.is_whitespace() && c != ' ')) {
        return Err("holds a character that cannot be seen or typed");
    }
    if !is_nfkc(text) {
        return Err("holds a character that clients send in different forms");
    }
    Ok(Secret::from(password))
}

/// The password that a client sent, as the profile OpaqueString of RFC 8265 prepares it. `None`: no
/// user can have it.
pub(crate) fn sent_password(password: &Secret) -> Option<Secret> {
    let bytes = password.expose();
    let text = str::from_utf8(bytes).ok()?;
    if bytes.is_empty() || bytes.len() > PASSWORD_BYTES_MAX || text.contains(char::is_control) {
        return None;
    }
    if text.is_ascii() {
        return Some(password.clone());
    }
    let spaced = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c });
    // Composing makes a text of UTF-8 three times as long at most (UAX 15): the buffer never moves,
    // which would leave a copy behind.
    let mut prepared = Vec::with_capacity(3 * bytes.len());
    for c in spaced.nfc() {
        prepared.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Some(Secret::new(prepared))
}

/// True for control characters, and for those that nothing shows or that change how others are
/// shown. Two names that look alike could differ by them.
fn is_hidden(c: char) -> bool {
    let code = u32::from(c);
    let is_no_character = code & 0xFFFE == 0xFFFE;
    c.is_control()
        || is_no_character
        || HIDDEN.iter().any(|&(first, last)| (first..=last).contains(&code))
}

const SPECIAL: [char; 9] = ['"', '*', ':', '?', '[', '\\', ']', '{', '}'];

/// Default ignorable code points of Unicode, interlinear annotations, private use, and code points
/// that are no characters.
const HIDDEN: [(u32, u32); 20] = [
    (0xAD, 0xAD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xE000, 0xF8FF),
    (0xFDD0, 0xFDEF),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
    (0xF0000, 0x10_FFFF),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_composed_and_visible() {
        for name in ["orders", "größe", "a=b,c", "ci@example.org", "用户", "a.b/c", "CN=x"] {
            assert_eq!(check_user_name(name), Ok(()), "{name}");
        }
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        let bad = ["", " a", "a b", "a\u{a0}b", "a:b", "*", "a\nb", "-x", "{user}", "a\u{200b}"];
        for name in bad.into_iter().chain(["gro\u{308}ße", "\u{ffff}", "\u{fdd0}", &long]) {
            assert!(check_user_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn sent_names_are_composed() {
        assert_eq!(sent_name("gro\u{308}ße").as_deref(), Some("größe"));
        assert_eq!(sent_name("orders").as_deref(), Some("orders"));
        assert_eq!(sent_name("a\0b"), None);
        assert_eq!(sent_name(&"o\u{308}".repeat(NAME_BYTES_MAX)), None);
    }

    #[test]
    fn new_passwords_have_one_form() {
        for password in ["12345678", "pass word", "größer als", "  spaces  "] {
            assert!(new_password(password.as_bytes()).is_ok(), "{password}");
        }
        let long = "x".repeat(PASSWORD_BYTES_MAX + 1);
        let bad = ["", "1234567", "tab\tinside", "ﬁligature", "o\u{308}decomposed", "12345678\n"];
        for password in bad.into_iter().chain(["soft\u{ad}hyphen", "non\u{a0}break", &long]) {
            assert!(new_password(password.as_bytes()).is_err(), "{password:?}");
        }
        assert!(new_password(b"\xff1234567").is_err());
    }

    #[test]
    fn sent_passwords_are_prepared() {
        let prepared = |text: &str| {
            sent_password(&Secret::from(text.as_bytes())).map(|it| it.expose().to_vec())
        };
        assert_eq!(prepared("plain\u{a0}gro\u{308}ße"), Some("plain größe".into()));
        assert_eq!(prepared("as it is"), Some("as it is".into()));
        assert_eq!(prepared(""), None);
        assert_eq!(prepared("nul\0"), None);
        // The longest growth of composed UTF-8 (UAX 15): U+1D160, four bytes to twelve.
        assert_eq!(prepared("\u{1d160}").map(|it| it.len()), Some(12));
    }
}
