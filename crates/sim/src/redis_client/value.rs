//! Replies as a client of Redis reads them (RESP2).

use std::rc::Rc;

/// One reply, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `+OK`
    Simple(Rc<str>),
    /// `-ERR …`: only its first word, by which clients tell errors apart.
    Error(Rc<str>),
    /// `:1`
    Integer(i64),
    /// A time left in milliseconds, which may be rounded either way. Never read.
    About(i64),
    /// `$…`
    Bulk(Rc<[u8]>),
    /// `*…`
    Array(Vec<Self>),
    /// No string or no array: which of them depends on the command alone.
    Nil,
}

impl Value {
    /// The answer of a command with nothing more to say.
    #[must_use]
    pub fn ok() -> Self {
        Self::Simple("OK".into())
    }

    /// The first word of an error.
    #[must_use]
    pub fn error(word: &str) -> Self {
        Self::Error(word.into())
    }

    /// A length or a count.
    ///
    /// # Panics When it is beyond an integer of the protocol.
    #[must_use]
    pub fn count(count: usize) -> Self {
        Self::Integer(i64::try_from(count).expect("invariant: few things are counted"))
    }

    /// True if this value, as a client read it, is the expected one.
    #[must_use]
    pub fn is(&self, expected: &Self) -> bool {
        match (self, expected) {
            (Self::Integer(read), Self::About(near)) => read.abs_diff(*near) <= 1,
            (Self::Array(read), Self::Array(all)) => {
                read.len() == all.len() && read.iter().zip(all).all(|(one, other)| one.is(other))
            }
            _ => self == expected,
        }
    }

    /// The first whole reply of the bytes, and how long it is.
    ///
    /// # Panics
    /// When the bytes are no reply.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<(Self, usize)> {
        let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
        let line = String::from_utf8_lossy(bytes.get(1..end)?).into_owned();
        let start = end + 2;
        let value = match bytes.first()? {
            b'+' => Self::Simple(line.into()),
            b'-' => Self::error(line.split(' ').next().unwrap_or_default()),
            b':' => Self::Integer(number(&line)),
            b'$' if number(&line) >= 0 => return bulk(bytes, start, number(&line)),
            b'*' if number(&line) >= 0 => return array(bytes, start, number(&line)),
            b'$' | b'*' => Self::Nil,
            other => panic!("no reply begins with {other}: {line}"),
        };
        Some((value, start))
    }

    /// For a trace: without the bytes of long values.
    #[must_use]
    pub fn summary(&self) -> String {
        match self {
            Self::Bulk(bytes) => brief(bytes),
            Self::Array(all) => {
                let all: Vec<String> = all.iter().map(Self::summary).collect();
                format!("[{}]", all.join(", "))
            }
            other => format!("{other:?}"),
        }
    }
}

/// Bytes for a trace.
pub(crate) fn brief(bytes: &[u8]) -> String {
    let begin = bytes.get(..SHOWN_BYTES_MAX).unwrap_or(bytes);
    let rest = if begin.len() < bytes.len() { "…" } else { "" };
    format!("{}{rest}", begin.escape_ascii())
}

fn number(line: &str) -> i64 {
    line.parse().unwrap_or_else(|error| panic!("{line:?} is no number: {error}"))
}

fn bulk(bytes: &[u8], start: usize, length: i64) -> Option<(Value, usize)> {
    let end = start + usize::try_from(length).ok()?;
    let content = bytes.get(start..end)?;
    assert_eq!(bytes.get(end..end + 2)?, b"\r\n", "a string ends with a line end");
    Some((Value::Bulk(content.into()), end + 2))
}

fn array(bytes: &[u8], mut at: usize, count: i64) -> Option<(Value, usize)> {
    let mut all = Vec::new();
    for _ in 0..count {
        let (value, length) = Value::parse(bytes.get(at..)?)?;
        all.push(value);
        at += length;
    }
    Some((Value::Array(all), at))
}

const SHOWN_BYTES_MAX: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_parse_only_when_whole() {
        let bytes = b"*3\r\n$4\r\na\r\nb\r\n:-7\r\n*-1\r\n+OK\r\n-WRONGTYPE no\r\n$-1\r\n";
        let first = b"*3\r\n$4\r\na\r\nb\r\n:-7\r\n*-1\r\n".len();
        for cut in 0..first {
            assert_eq!(Value::parse(&bytes[..cut]), None, "{cut} bytes");
        }
        let parts = vec![Value::Bulk(b"a\r\nb"[..].into()), Value::Integer(-7), Value::Nil];
        assert_eq!(Value::parse(bytes), Some((Value::Array(parts), first)));
        assert_eq!(Value::parse(&bytes[first..]), Some((Value::ok(), 5)));
        assert_eq!(Value::parse(&bytes[first + 5..]), Some((Value::error("WRONGTYPE"), 15)));
        assert_eq!(Value::parse(&bytes[first + 20..]), Some((Value::Nil, 5)));
    }

    #[test]
    fn value_comparison_rounds_only_times() {
        let expected = Value::Array(vec![Value::About(5), Value::Integer(5)]);
        let read = |time, count| Value::Array(vec![Value::Integer(time), Value::Integer(count)]);
        assert!([4, 5, 6].iter().all(|time| read(*time, 5).is(&expected)));
        assert!(!read(7, 5).is(&expected));
        assert!(!read(5, 6).is(&expected));
    }
}
