//! The codec's way out: the form of answers on the wire.

use alloc::vec::Vec;

use crate::number::{double_text, write_line};

/// Which form of the protocol a client asked for by HELLO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Version {
    #[default]
    Resp2,
    Resp3,
}

impl Version {
    pub(crate) const fn number(self) -> i64 {
        match self {
            Self::Resp2 => 2,
            Self::Resp3 => 3,
        }
    }
}

/// Writes answers in the form that the client asked for.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    out: &'a mut Vec<u8>,
    version: Version,
}

impl<'a> Answer<'a> {
    pub(crate) const fn new(out: &'a mut Vec<u8>, version: Version) -> Self {
        Self { out, version }
    }

    /// `+OK`
    pub(crate) fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// The same of bytes. Line ends in it become spaces.
    pub(crate) fn status(&mut self, text: &[u8]) {
        self.marked(b'+', text);
    }

    /// True or false: one or zero in the older form.
    pub(crate) fn boolean(&mut self, is: bool) {
        let (old, new): (&[u8], &[u8]) =
            if is { (b":1\r\n", b"#t\r\n") } else { (b":0\r\n", b"#f\r\n") };
        self.by_version(old, new);
    }

    /// A word or two without a line end.
    pub(crate) fn simple(&mut self, text: &str) {
        self.line(b'+', text);
    }

    /// An error with its code. Line ends in it become spaces: it may repeat bytes of the peer.
    pub(crate) fn error(&mut self, text: &str) {
        self.error_bytes(text.as_bytes());
    }

    /// The same of bytes that need not be text.
    pub(crate) fn error_bytes(&mut self, text: &[u8]) {
        self.marked(b'-', text);
    }

    fn marked(&mut self, mark: u8, text: &[u8]) {
        self.out.push(mark);
        let is_line_end = |byte: u8| byte == b'\r' || byte == b'\n';
        let bytes = text.iter().map(|byte| if is_line_end(*byte) { b' ' } else { *byte });
        self.out.extend(bytes);
        self.end_line();
    }

    pub(crate) fn integer(&mut self, number: i64) {
        self.header(b':', number);
    }

    /// How many; none is too large to be told.
    pub(crate) fn count(&mut self, count: u64) {
        self.integer(i64::try_from(count).unwrap_or(i64::MAX));
    }

    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        // At once: else the line end behind a large one might double its memory.
        self.out.reserve(bulk_bytes(bytes.len()));
        self.length(b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.end_line();
    }

    /// A number with a fraction: a bulk string in the older form.
    pub(crate) fn double(&mut self, number: f64) {
        let text = double_text(number);
        match self.version {
            Version::Resp2 => self.bulk(text.as_bytes()),
            Version::Resp3 => self.line(b',', &text),
        }
    }

    /// Text for people.
    pub(crate) fn verbatim(&mut self, text: &str) {
        if self.version == Version::Resp2 {
            return self.bulk(text.as_bytes());
        }
        self.length(b'=', text.len() + 4);
        self.out.extend_from_slice(b"txt:");
        self.out.extend_from_slice(text.as_bytes());
        self.end_line();
    }

    /// Nothing where a bulk string might be.
    pub(crate) fn null(&mut self) {
        self.by_version(b"$-1\r\n", b"_\r\n");
    }

    /// Nothing where an array might be.
    pub(crate) fn null_array(&mut self) {
        self.by_version(b"*-1\r\n", b"_\r\n");
    }

    /// Makes room for `bytes` bytes.
    pub(crate) fn make_room(&mut self, bytes: usize) {
        self.out.reserve(bytes);
    }

    pub(crate) fn array(&mut self, length: usize) {
        self.length(b'*', length);
    }

    /// Begins a map of `pairs` pairs.
    pub(crate) fn map(&mut self, pairs: usize) {
        match self.version {
            Version::Resp2 => self.length(b'*', pairs * 2),
            Version::Resp3 => self.length(b'%', pairs),
        }
    }

    /// Begins two things that belong together; in the older form they stand among the others.
    pub(crate) fn pair(&mut self) {
        if self.version == Version::Resp3 {
            self.array(2);
        }
    }

    /// Begins an array of `pairs` [pairs](Self::pair).
    pub(crate) fn pairs(&mut self, pairs: usize) {
        match self.version {
            Version::Resp2 => self.array(pairs * 2),
            Version::Resp3 => self.array(pairs),
        }
    }

    /// Begins a map of so many pairs; in the older form it is an array of [such pairs].
    ///
    /// [such pairs]: Self::paired
    pub(crate) fn map_or_array(&mut self, pairs: usize) {
        match self.version {
            Version::Resp2 => self.array(pairs),
            Version::Resp3 => self.map(pairs),
        }
    }

    /// Begins a pair of it.
    pub(crate) fn paired(&mut self) {
        if self.version == Version::Resp2 {
            self.array(2);
        }
    }

    pub(crate) fn set(&mut self, length: usize) {
        self.kind(b'~', length);
    }

    /// A push, which answers no command.
    pub(crate) fn push(&mut self, length: usize) {
        self.kind(b'>', length);
    }

    fn kind(&mut self, mark: u8, length: usize) {
        self.length(if self.version == Version::Resp2 { b'*' } else { mark }, length);
    }

    fn by_version(&mut self, resp2: &[u8], resp3: &[u8]) {
        let bytes = if self.version == Version::Resp2 { resp2 } else { resp3 };
        self.out.extend_from_slice(bytes);
    }

    fn length(&mut self, mark: u8, length: usize) {
        self.header(mark, i64::try_from(length).unwrap_or(i64::MAX));
    }

    fn header(&mut self, mark: u8, number: i64) {
        write_line(self.out, mark, number);
    }

    fn line(&mut self, mark: u8, text: &str) {
        self.out.push(mark);
        self.out.extend_from_slice(text.as_bytes());
        self.end_line();
    }

    fn end_line(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }
}

/// Bytes of a bulk string of so many bytes.
pub(crate) const fn bulk_bytes(length: usize) -> usize {
    header_bytes(length) + length + b"\r\n".len()
}

/// Bytes of a number behind a mark.
pub(crate) const fn header_bytes(number: usize) -> usize {
    let digits = match number.checked_ilog10() {
        Some(log) => log as usize + 1,
        None => 1,
    };
    1 + digits + b"\r\n".len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(version: Version, say: impl FnOnce(&mut Answer<'_>)) -> Vec<u8> {
        let mut out = Vec::new();
        say(&mut Answer::new(&mut out, version));
        out
    }

    #[test]
    fn answers_have_forms_of_both_versions() {
        type Say = fn(&mut Answer<'_>);
        let cases: [(Say, &[u8], &[u8]); 12] = [
            (|it| it.null(), b"$-1\r\n", b"_\r\n"),
            (|it| it.null_array(), b"*-1\r\n", b"_\r\n"),
            (|it| it.map(2), b"*4\r\n", b"%2\r\n"),
            (|it| it.set(2), b"*2\r\n", b"~2\r\n"),
            (|it| it.pairs(2), b"*4\r\n", b"*2\r\n"),
            (|it| it.pair(), b"", b"*2\r\n"),
            (|it| it.double(1.5), b"$3\r\n1.5\r\n", b",1.5\r\n"),
            (|it| it.push(3), b"*3\r\n", b">3\r\n"),
            (|it| it.verbatim("ab"), b"$2\r\nab\r\n", b"=6\r\ntxt:ab\r\n"),
            (|it| it.bulk(b""), b"$0\r\n\r\n", b"$0\r\n\r\n"),
            (|it| it.integer(-7), b":-7\r\n", b":-7\r\n"),
            (|it| it.error("ERR a\r\nb"), b"-ERR a  b\r\n", b"-ERR a  b\r\n"),
        ];
        for (say, resp2, resp3) in cases {
            assert_eq!(said(Version::Resp2, say), resp2);
            assert_eq!(said(Version::Resp3, say), resp3);
        }
    }
}
