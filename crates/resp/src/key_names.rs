//! Keys are any bytes, names of queues and topics are text. In the name of a key that is no text, a
//! character of the private use area, U+F000 and the byte, stands for each byte that no name can
//! hold. So kombu's `mail\x06\x163` is the queue `mail\u{f006}\u{f016}3`, which other protocols can
//! name. Cygwin names files so. No two keys have one name.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use model::QueueName;

/// The character that stands for byte 0.
const FIRST: u32 = 0xf000;

/// The first byte of UTF-8 of all characters that stand for bytes.
const LEAD: u8 = 0xef;

/// The name of the queue or topic that has this key, if its length allows one.
pub(crate) fn name_of(key: &[u8]) -> Option<QueueName> {
    let name = match core::str::from_utf8(key) {
        Ok(text) if stands_for_itself(text) => Cow::Borrowed(text),
        _ => Cow::Owned(escaped(key)),
    };
    QueueName::new(&name).ok()
}

/// The key of a queue or topic with this name.
pub(crate) fn key_of(name: &QueueName) -> Cow<'_, [u8]> {
    let name = name.as_str();
    match unescaped(name) {
        Some(key) if escaped(&key) == name => Cow::Owned(key),
        _ => Cow::Borrowed(name.as_bytes()),
    }
}

/// True if a key is a name as it stands, and no other key has that name.
fn stands_for_itself(text: &str) -> bool {
    !text.chars().any(char::is_control)
        && unescaped(text).is_none_or(|other| escaped(&other) != text)
}

fn escaped(key: &[u8]) -> String {
    let mut name = String::with_capacity(key.len());
    for chunk in key.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() || byte_of(character).is_some() {
                let mut bytes = [0; 4];
                name.extend(character.encode_utf8(&mut bytes).bytes().filter_map(character_of));
            } else {
                name.push(character);
            }
        }
        name.extend(chunk.invalid().iter().copied().filter_map(character_of));
    }
    name
}

/// The bytes that a name stands for, if it has any character that stands for one.
fn unescaped(name: &str) -> Option<Vec<u8>> {
    if !name.as_bytes().contains(&LEAD) || !name.chars().any(|each| byte_of(each).is_some()) {
        return None;
    }
    let mut key = Vec::with_capacity(name.len());
    for character in name.chars() {
        match byte_of(character) {
            Some(byte) => key.push(byte),
            None => key.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Some(key)
}

fn character_of(byte: u8) -> Option<char> {
    char::from_u32(FIRST + u32::from(byte))
}

fn byte_of(character: char) -> Option<u8> {
    u8::try_from(u32::from(character).checked_sub(FIRST)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_no_text_have_characters() {
        let name = name_of(b"mail\x06\x163").unwrap();
        assert_eq!(name.as_str(), "mail\u{f006}\u{f016}3");
        assert_eq!(&*key_of(&name), b"mail\x06\x163");
        assert_eq!(name_of(b"\xff").unwrap().as_str(), "\u{f0ff}");
        assert_eq!(name_of("m\u{e4}rz".as_bytes()).unwrap().as_str(), "m\u{e4}rz");
        assert_eq!(name_of("\u{85}".as_bytes()).unwrap().as_str(), "\u{f0c2}\u{f085}");
        assert_eq!(name_of(b""), None);
        assert!(name_of(&[0; 85]).is_some() && name_of(&[0; 86]).is_none());
    }

    /// Every key of up to four of these parts.
    fn keys() -> impl Iterator<Item = Vec<u8>> {
        const PARTS: [&[u8]; 10] = [
            b"a",
            b"\x06",
            b"\xff",
            b"\xef",
            b"\x80",
            b"\x86",
            "\u{e4}".as_bytes(),
            "\u{85}".as_bytes(),
            "\u{f006}".as_bytes(),
            "\u{f0ef}".as_bytes(),
        ];
        (1..=4).flat_map(|parts| {
            (0..10_usize.pow(parts)).map(move |number| {
                let digits = (0..parts).map(|place| number / 10_usize.pow(place) % 10);
                digits.flat_map(|digit| PARTS[digit]).copied().collect()
            })
        })
    }

    #[test]
    fn keys_come_back_from_names() {
        for key in keys() {
            let name = name_of(&key).unwrap();
            assert_eq!(*key_of(&name), *key, "{name}");
        }
    }

    #[test]
    fn names_come_back_from_keys() {
        let mut count = 0;
        for name in keys().filter_map(|key| QueueName::new(core::str::from_utf8(&key).ok()?).ok()) {
            assert_eq!(name_of(&key_of(&name)), Some(name));
            count += 1;
        }
        assert!(count > 100, "{count}");
    }
}
