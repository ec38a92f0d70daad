//! A client of Redis: commands to bytes, and bytes to replies, of RESP2 and RESP3.

use crate::Garbage;

/// A reply, or a part of one, in the bytes that the server sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// `+OK`, and of RESP3 also `,1.5` and `#t`.
    Simple(&'a [u8]),
    /// `-ERR …`
    Error(&'a [u8]),
    /// `:1`
    Integer(i64),
    /// `$…`, and of RESP3 also `=…`.
    Bulk(&'a [u8]),
    /// `*…`, and of RESP3 also `~…`, `>…` and `%…`, of which each entry is two.
    Array(Vec<Self>),
    /// No string or no array: which of them depends on the command alone.
    Nil,
}

/// The bytes of a command.
#[must_use]
pub fn command<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words.iter().map(AsRef::as_ref) {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

impl<'a> Reply<'a> {
    /// The first reply of the bytes, and how long it is; `None` while it is not whole.
    ///
    /// # Errors
    /// When the bytes are no reply.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, Garbage> {
        let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else {
            return Ok(None);
        };
        let (kind, line) = bytes.get(..end).and_then(<[u8]>::split_first).ok_or(Garbage)?;
        let number = || str::from_utf8(line).ok()?.parse::<i64>().ok();
        let number = || number().ok_or(Garbage);
        let start = end + 2;
        let reply = match kind {
            b'+' | b',' | b'#' => Self::Simple(line),
            b'-' => Self::Error(line),
            b':' => Self::Integer(number()?),
            b'_' => Self::Nil,
            b'$' | b'*' if number()? == -1 => Self::Nil,
            b'$' | b'=' => return Self::bulk(bytes, start, number()?),
            b'*' | b'~' | b'>' => return Self::array(bytes, start, number()?),
            b'%' => return Self::array(bytes, start, 2 * number()?),
            _ => return Err(Garbage),
        };
        Ok(Some((reply, start)))
    }

    fn bulk(bytes: &'a [u8], start: usize, length: i64) -> Result<Option<(Self, usize)>, Garbage> {
        let end = start + usize::try_from(length).map_err(|_| Garbage)?;
        let (Some(content), Some(tail)) = (bytes.get(start..end), bytes.get(end..end + 2)) else {
            return Ok(None);
        };
        if tail == b"\r\n" { Ok(Some((Self::Bulk(content), end + 2))) } else { Err(Garbage) }
    }

    fn array(bytes: &'a [u8], mut at: usize, count: i64) -> Result<Option<(Self, usize)>, Garbage> {
        let mut all = Vec::new();
        for _ in 0..count {
            let Some((part, length)) = Self::parse(bytes.get(at..).unwrap_or_default())? else {
                return Ok(None);
            };
            all.push(part);
            at += length;
        }
        Ok(Some((Self::Array(all), at)))
    }
}

/// How many bytes of these are whole replies, one behind the other.
///
/// # Errors
/// When the bytes behind those are no reply.
pub fn whole(bytes: &[u8]) -> Result<usize, Garbage> {
    let mut at = 0;
    while let Some((_, length)) = Reply::parse(bytes.get(at..).unwrap_or_default())? {
        at += length;
    }
    Ok(at)
}

/// Takes the first whole reply from the front of the bytes, as it came.
///
/// # Errors
/// When they are no reply.
pub fn take(bytes: &mut Vec<u8>) -> Result<Option<Vec<u8>>, Garbage> {
    let Some((_, length)) = Reply::parse(bytes)? else { return Ok(None) };
    let rest = bytes.split_off(length);
    Ok(Some(std::mem::replace(bytes, rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_encodes_as_array() {
        assert_eq!(command(&["LPUSH", "l1", ""]), b"*3\r\n$5\r\nLPUSH\r\n$2\r\nl1\r\n$0\r\n\r\n");
    }

    #[test]
    fn replies_parse_only_when_whole() {
        let numbers = vec![Reply::Integer(1), Reply::Array(vec![Reply::Bulk(b"")])];
        let replies: [(&[u8], Reply<'_>); 9] = [
            (b"+OK\r\n", Reply::Simple(b"OK")),
            (b"$-1\r\n", Reply::Nil),
            (b"$4\r\na\r\nb\r\n", Reply::Bulk(b"a\r\nb")),
            (b"*-1\r\n", Reply::Nil),
            (b"*2\r\n:1\r\n*1\r\n$0\r\n\r\n", Reply::Array(numbers)),
            (b"%1\r\n+a\r\n_\r\n", Reply::Array(vec![Reply::Simple(b"a"), Reply::Nil])),
            (b">1\r\n~0\r\n", Reply::Array(vec![Reply::Array(vec![])])),
            (b"-ERR x\r\n", Reply::Error(b"ERR x")),
            (b":-7\r\n", Reply::Integer(-7)),
        ];
        for (bytes, reply) in &replies {
            for cut in 0..bytes.len() {
                assert_eq!(Reply::parse(&bytes[..cut]), Ok(None), "{reply:?}: {cut} bytes");
            }
            let more = [*bytes, b"+"].concat();
            assert_eq!(Reply::parse(&more), Ok(Some((reply.clone(), bytes.len()))));
        }
        let all = replies.each_ref().map(|(bytes, _)| *bytes).concat();
        let mut bytes = [&all[..], b"*2\r\n:1\r\n$3\r\nab"].concat();
        assert_eq!(whole(&bytes), Ok(all.len()));
        for (reply, _) in replies {
            assert_eq!(take(&mut bytes), Ok(Some(reply.to_vec())));
        }
        assert_eq!(take(&mut bytes), Ok(None));
    }

    #[test]
    fn garbage_is_no_reply() {
        for bytes in ["\r\n", "x\r\n", ":x\r\n", "$-2\r\n", "$1\r\nabc", "*1\r\n:\r\n"] {
            assert_eq!(Reply::parse(bytes.as_bytes()), Err(Garbage), "{bytes:?}");
        }
    }
}
