//! A client of beanstalkd: bytes to replies.

use crate::Garbage;

/// A reply in the bytes that the server sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The line without its end.
    pub line: &'a str,
    /// The bytes behind the line, for `RESERVED`, `FOUND` and `OK`.
    pub body: Option<&'a [u8]>,
}

impl<'a> Reply<'a> {
    /// The first reply of the bytes, and how long it is; `None` while it is not whole. A body of
    /// more than `body_bytes_max` is garbage.
    ///
    /// # Errors
    /// When the bytes are no reply.
    pub fn parse(bytes: &'a [u8], body_bytes_max: usize) -> Result<Option<(Self, usize)>, Garbage> {
        let window = bytes.get(..LINE_BYTES_MAX).unwrap_or(bytes);
        let Some(end) = window.iter().position(|byte| *byte == b'\r') else {
            return if window.len() == LINE_BYTES_MAX { Err(Garbage) } else { Ok(None) };
        };
        let (line, rest) = bytes.split_at(end);
        let line = str::from_utf8(line).map_err(|_| Garbage)?;
        let Some(rest) = behind_line_end(rest)? else { return Ok(None) };
        let reply = Self { line, body: None };
        if !matches!(reply.word(), "RESERVED" | "FOUND" | "OK") {
            return Ok(Some((reply, end + 2)));
        }
        let length = line.rsplit(' ').next().and_then(|length| length.parse().ok());
        let length = length.filter(|length| *length <= body_bytes_max).ok_or(Garbage)?;
        let Some((body, rest)) = rest.split_at_checked(length) else { return Ok(None) };
        let whole = behind_line_end(rest)?.map(|_| Self { line, body: Some(body) });
        Ok(whole.map(|reply| (reply, end + length + 4)))
    }

    /// The first word.
    #[must_use]
    pub fn word(&self) -> &'a str {
        self.line.split(' ').next().unwrap_or_default()
    }

    /// The job's id, which is the first number of the replies that have one.
    #[must_use]
    pub fn id(&self) -> Option<u64> {
        self.line.split(' ').nth(1)?.parse().ok()
    }
}

/// The bytes after a line end; `None` while that is not whole.
fn behind_line_end(bytes: &[u8]) -> Result<Option<&[u8]>, Garbage> {
    match bytes {
        [b'\r', b'\n', rest @ ..] => Ok(Some(rest)),
        [] | [b'\r'] => Ok(None),
        _ => Err(Garbage),
    }
}

/// No line of a reply is longer: a word and a tube name of 200 bytes.
const LINE_BYTES_MAX: usize = 224;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_parse_only_when_whole() {
        let replies: [(&str, &str, Option<&[u8]>); 6] = [
            ("INSERTED 7\r\n", "INSERTED 7", None),
            ("RESERVED 7 3\r\na\r\n\r\n", "RESERVED 7 3", Some(b"a\r\n")),
            ("FOUND 7 0\r\n\r\n", "FOUND 7 0", Some(b"")),
            ("OK 4\r\n---\n\r\n", "OK 4", Some(b"---\n")),
            ("DELETED\r\n", "DELETED", None),
            ("USING a\r\n", "USING a", None),
        ];
        for (bytes, line, body) in replies {
            let whole = format!("{bytes}DELETED\r\n");
            let reply = Reply { line, body };
            assert_eq!(Reply::parse(whole.as_bytes(), 100), Ok(Some((reply, bytes.len()))));
            for end in 0..bytes.len() {
                assert_eq!(Reply::parse(&whole.as_bytes()[..end], 100), Ok(None), "{line}");
            }
        }
    }

    #[test]
    fn garbage_is_no_reply() {
        for bytes in [
            "DELETED\rX",
            "RESERVED 1 101\r\n",
            "RESERVED 1 18446744073709551615\r\n",
            "RESERVED 1 1\r\nabc",
            "OK x\r\n",
        ] {
            assert_eq!(Reply::parse(bytes.as_bytes(), 100), Err(Garbage), "{bytes}");
        }
        assert_eq!(Reply::parse(&[b'x'; 300], 100), Err(Garbage));
    }
}
