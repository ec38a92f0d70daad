//! Keys are any bytes, names of queues and topics are text. In the name of a key that is no text, a
//! character of the private use area, U+F000 and the byte, stands for each byte that no name can
//! hold. So kombu's `mail\x06\x163` is the queue `mail\u{f006}\u{f016}3`, which other protocols can
//! name. Cygwin names files so.
//!
//! A key of a database above 0 has the database's mark before its name: `jobs` of database 1 is the
//! queue `\u{f101}jobs`. In database 0 a key that begins with a mark is spelled out byte by byte.
//! The empty key has a mark alone, in database 0 U+F100. So each name is that of one key of one
//! database.
//!
//! Channels know no database: the mark has no meaning in their names.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use model::{Database, QueueName, limits};

/// The character that stands for byte 0.
const FIRST: u32 = 0xf000;

/// The first byte of UTF-8 of all characters that stand for bytes, and of all marks.
const LEAD: u8 = 0xef;

/// The thing that a name is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A key of the first database, which begins with no mark.
    First,
    /// The part of a name behind the mark of a database.
    BehindMark,
    /// A channel.
    Channel,
}

/// The name of the key of this database, if its length allows one.
pub(crate) fn name_of(database: Database, key: &[u8]) -> Option<QueueName> {
    if key.len() > limits::QUEUE_NAME_BYTES_MAX {
        return None;
    }
    if database == Database::FIRST && !key.is_empty() {
        return QueueName::new(&Place::First.text_of(key)).ok();
    }
    let mut name = String::from(database.own_character());
    name.push_str(&Place::BehindMark.text_of(key));
    QueueName::new(&name).ok()
}

/// The key that has this name in its database.
pub(crate) fn key_of(name: &QueueName) -> Cow<'_, [u8]> {
    let name = name.as_str();
    if !name.as_bytes().starts_with(&[LEAD]) {
        return Place::First.bytes_of(name);
    }
    let mut characters = name.chars();
    let first = characters.next();
    let rest = characters.as_str();
    let database = Database::of(name);
    match database.mark() {
        Some(_) => Place::BehindMark.bytes_of(rest),
        None if first == Some(database.own_character()) && rest.is_empty() => Cow::Borrowed(b""),
        None => Place::First.bytes_of(name),
    }
}

/// The name of the topic that is this channel, if its length allows one.
pub(crate) fn topic_of(channel: &[u8]) -> Option<QueueName> {
    if channel.len() > limits::QUEUE_NAME_BYTES_MAX {
        return None;
    }
    QueueName::new(&Place::Channel.text_of(channel)).ok()
}

/// The channel that is the topic of this name.
pub(crate) fn channel_of(topic: &QueueName) -> Cow<'_, [u8]> {
    Place::Channel.bytes_of(topic.as_str())
}

impl Place {
    /// The text of these bytes in a name.
    fn text_of(self, bytes: &[u8]) -> Cow<'_, str> {
        match core::str::from_utf8(bytes) {
            Ok(text) if self.stands_for_itself(text) => Cow::Borrowed(text),
            _ => Cow::Owned(self.escaped(bytes)),
        }
    }

    /// The bytes that have this text in a name.
    fn bytes_of(self, text: &str) -> Cow<'_, [u8]> {
        self.unescaped(text).map_or(Cow::Borrowed(text.as_bytes()), Cow::Owned)
    }

    /// True if bytes are a part of a name as they stand, and no others have that text.
    fn stands_for_itself(self, text: &str) -> bool {
        !text.chars().any(char::is_control)
            && (!text.as_bytes().contains(&LEAD)
                || !self.begins_with_mark(text.as_bytes()) && self.unescaped(text).is_none())
    }

    /// True if it has to be spelled out, or it would be the name of another key.
    fn begins_with_mark(self, bytes: &[u8]) -> bool {
        let first = bytes.first_chunk::<3>().filter(|_| self == Self::First);
        let Some(mark) = first.and_then(|first| core::str::from_utf8(first).ok()) else {
            return false;
        };
        let is_empty_key = mark.chars().eq([Database::FIRST.own_character()]) && bytes.len() == 3;
        Database::of(mark) != Database::FIRST || is_empty_key
    }

    fn escaped(self, bytes: &[u8]) -> String {
        let mut name = String::with_capacity(bytes.len());
        let mut is_mark = self.begins_with_mark(bytes);
        for chunk in bytes.utf8_chunks() {
            for character in chunk.valid().chars() {
                if character.is_control() || byte_of(character).is_some() || is_mark {
                    let mut bytes = [0; 4];
                    let bytes = character.encode_utf8(&mut bytes).bytes();
                    name.extend(bytes.filter_map(character_of));
                } else {
                    name.push(character);
                }
                is_mark = false;
            }
            name.extend(chunk.invalid().iter().copied().filter_map(character_of));
        }
        name
    }

    /// The bytes that are spelled out in a text, if it is that of others than its own.
    fn unescaped(self, text: &str) -> Option<Vec<u8>> {
        let bytes = with_bytes(text)?;
        let is_own = core::str::from_utf8(&bytes).is_ok_and(|own| self.stands_for_itself(own));
        (!is_own && self.escaped(&bytes) == text).then_some(bytes)
    }
}

/// A text with the bytes that its characters stand for, if any does.
fn with_bytes(text: &str) -> Option<Vec<u8>> {
    if !text.as_bytes().contains(&LEAD) || !text.chars().any(|each| byte_of(each).is_some()) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        match byte_of(character) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Some(bytes)
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

    fn first(key: &[u8]) -> Option<QueueName> {
        name_of(Database::FIRST, key)
    }

    #[test]
    fn bytes_of_no_text_have_characters() {
        let name = first(b"mail\x06\x163").unwrap();
        assert_eq!(name.as_str(), "mail\u{f006}\u{f016}3");
        assert_eq!(&*key_of(&name), b"mail\x06\x163");
        assert_eq!(first(b"\xff").unwrap().as_str(), "\u{f0ff}");
        assert_eq!(first("m\u{e4}rz".as_bytes()).unwrap().as_str(), "m\u{e4}rz");
        assert_eq!(first("\u{85}".as_bytes()).unwrap().as_str(), "\u{f0c2}\u{f085}");
        assert!(first(&[0; 85]).is_some() && first(&[0; 86]).is_none());
    }

    #[test]
    fn databases_mark_their_keys() {
        let name = |database, key: &str| {
            String::from(name_of(Database::new(database).unwrap(), key.as_bytes()).unwrap())
        };
        assert_eq!(name(1, "jobs"), "\u{f101}jobs");
        assert_eq!(name(15, "\u{6}"), "\u{f10f}\u{f006}");
        assert_eq!(name(0, "\u{f101}jobs"), "\u{f0ef}\u{f084}\u{f081}jobs");
        assert_eq!(name(2, "\u{f101}jobs"), "\u{f102}\u{f101}jobs");
        assert_eq!([name(0, ""), name(3, "")], ["\u{f100}", "\u{f103}"]);
        assert_eq!(name(0, "\u{f100}"), "\u{f0ef}\u{f084}\u{f080}");
        assert_eq!(name(0, "\u{f181}"), "\u{f181}");
        let second = Database::new(1).unwrap();
        assert!(name_of(second, &[b'a'; 252]).is_some() && name_of(second, &[b'a'; 253]).is_none());
    }

    #[test]
    fn channels_have_no_mark() {
        assert_eq!(topic_of("\u{f101}news".as_bytes()).unwrap().as_str(), "\u{f101}news");
        assert_eq!(topic_of(b""), None);
    }

    const DATABASES: [usize; 4] = [0, 1, 2, 128];

    /// Every key of up to four of these parts, and the empty one.
    fn keys() -> impl Iterator<Item = Vec<u8>> {
        const PARTS: [&[u8]; 16] = [
            b"A",
            b"\x06",
            b"\xff",
            b"\xef",
            b"\x84",
            b"\x81",
            "\u{e4}".as_bytes(),
            "\u{85}".as_bytes(),
            "\u{f006}".as_bytes(),
            "\u{f041}".as_bytes(),
            "\u{f0ef}".as_bytes(),
            "\u{f084}".as_bytes(),
            "\u{f081}".as_bytes(),
            "\u{f100}".as_bytes(),
            "\u{f101}".as_bytes(),
            "\u{f102}".as_bytes(),
        ];
        (0..=4).flat_map(|parts| {
            (0..PARTS.len().pow(parts)).map(move |number| {
                let digits = (0..parts).map(|place| number / PARTS.len().pow(place) % PARTS.len());
                digits.flat_map(|digit| PARTS[digit]).copied().collect()
            })
        })
    }

    #[test]
    fn keys_come_back_from_names() {
        for key in keys() {
            for database in DATABASES.into_iter().filter_map(Database::new) {
                let name = name_of(database, &key).unwrap();
                assert_eq!(*key_of(&name), *key, "{name}");
                assert_eq!(Database::of(name.as_str()), database, "{name}");
            }
            if let Some(topic) = topic_of(&key) {
                assert_eq!(*channel_of(&topic), *key, "{topic}");
            }
        }
    }

    #[test]
    fn names_come_back_from_keys() {
        let mut count = 0;
        for name in keys().filter_map(|key| QueueName::new(core::str::from_utf8(&key).ok()?).ok()) {
            assert_eq!(topic_of(&channel_of(&name)).as_ref(), Some(&name));
            let database = Database::of(name.as_str());
            assert_eq!(name_of(database, &key_of(&name)), Some(name));
            count += 1;
        }
        assert!(count > 1_000, "{count}");
    }
}
