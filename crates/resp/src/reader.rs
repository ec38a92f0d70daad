//! The codec's way in: commands as arrays of bulk strings, or in a line as a person types them.
//!
//! Arrived bytes are taken out of the input at once, so a large command does not wait in a buffer
//! that is bounded. Nothing is allocated by a length that the peer claims. Lenient rules of Redis
//! are so here: the end of a line or a bulk string need only be two bytes long there.

use alloc::vec::Vec;
use core::fmt;

use input::InputBuffer;
use model::parse_integer;

use crate::inline;
use crate::words::Words;

/// Bytes of a line: of an inline command, or of a length.
pub(crate) const LINE_BYTES_MAX: usize = 64 * 1024;

/// Words of one command.
const WORDS_MAX: i64 = 1024 * 1024;

/// Words of one command of a client that has to log in first.
const STRANGER_WORDS_MAX: i64 = 10;

/// Bytes of each of them.
const STRANGER_WORD_BYTES_MAX: usize = 16 * 1024;

/// Bytes of one command, each word with its overhead, if there is memory enough.
pub(crate) const COMMAND_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes behind the first digit of a line that are looked at to find if it is a short one.
const SHORT_LINE_BYTES: usize = 8;

/// The most bytes of a command, without its last word, that can be recognised again.
const HEAD_BYTES_MAX: usize = 512;

const LINE_END: &[u8; 2] = b"\r\n";

/// Takes commands out of the input.
pub(crate) struct Reader {
    words: Words,
    expect: Expect,
    bulk_bytes_max: usize,
    command_bytes_max: usize,
    /// The bytes of the last command without its last word, if the next begins with the same.
    head: Vec<u8>,
    /// The last command came in a line.
    was_inline: bool,
    /// The client has not logged in, and has to: its commands are small.
    is_stranger: bool,
}

/// ```text
///   Command -> Length -> Bulk -> BulkEnd -> Length ... -> Command
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    /// The first byte of a command.
    Command,
    /// The length of the next of `missing` bulk strings.
    Length { missing: usize },
    /// The next `bytes` bytes of the first of `missing` bulk strings.
    Bulk { missing: usize, bytes: usize },
    /// Its line end.
    BulkEnd { missing: usize },
}

/// The result of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// There are too few bytes yet.
    NeedMore,
    /// A command is whole; it may have no words.
    Whole,
    /// Something was read, and there may be more.
    GoOn,
}

/// Bytes that are no command. The connection cannot be understood from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProtocolError {
    LongInline,
    LongCount,
    LongLength,
    InvalidCount,
    InvalidLength,
    StrangerCount,
    StrangerLength,
    UnbalancedQuotes,
    ExpectedBulk { found: u8 },
    LargeCommand,
}

impl Reader {
    /// Larger words than the former are refused, and larger commands than the latter.
    pub(crate) const fn new(bulk_bytes_max: usize, command_bytes_max: usize) -> Self {
        let head = Vec::new();
        let expect = Expect::Command;
        let words = Words::new();
        Self {
            words,
            expect,
            bulk_bytes_max,
            command_bytes_max,
            head,
            was_inline: false,
            is_stranger: false,
        }
    }

    /// The client has to log in, or need not any more.
    pub(crate) const fn set_stranger(&mut self, is_stranger: bool) {
        self.is_stranger = is_stranger;
    }

    /// Reads on, until a command is whole.
    pub(crate) fn read(&mut self, input: &mut InputBuffer) -> Result<Progress, ProtocolError> {
        self.head.clear();
        loop {
            let progress = self.step(input)?;
            if self.words.cost_bytes() > self.command_bytes_max {
                return Err(ProtocolError::LargeCommand);
            }
            if progress != Progress::GoOn {
                return Ok(progress);
            }
        }
    }

    /// The words of the command that is whole; to be given back.
    pub(crate) fn take_words(&mut self) -> Words {
        core::mem::take(&mut self.words)
    }

    /// Memory for the words of the next command.
    pub(crate) fn give_back(&mut self, words: Words) {
        self.words = words;
        self.words.clear();
    }

    /// Bytes of a command that has not come as a whole.
    pub(crate) fn held_bytes(&self) -> usize {
        self.words.cost_bytes()
    }

    /// A command has begun, and bytes of it were taken.
    pub(crate) fn is_within(&self) -> bool {
        self.expect != Expect::Command
    }

    /// True if the command that was read last came in a line, as a person types it.
    pub(crate) const fn was_inline(&self) -> bool {
        self.was_inline
    }

    /// True if the bytes after the last command begin as that did.
    pub(crate) fn sees_alike(&self) -> bool {
        !self.head.is_empty()
    }

    /// Takes the next command if it is there as a whole, has the same words as the last one except
    /// the last word, and `see` makes something of that word.
    pub(crate) fn take_alike<T>(
        &self,
        input: &mut InputBuffer,
        see: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Option<T> {
        let rest = input.unread().strip_prefix(&self.head[..]).filter(|_| self.sees_alike())?;
        let (word, taken) = self.whole_word(rest)?;
        let seen = see(word)?;
        input.consume(self.head.len() + taken);
        Some(seen)
    }

    fn step(&mut self, input: &mut InputBuffer) -> Result<Progress, ProtocolError> {
        match self.expect {
            Expect::Command => self.begin(input),
            Expect::Length { missing } => self.length(input, missing),
            Expect::Bulk { missing, bytes } => Ok(self.bulk(input, missing, bytes)),
            Expect::BulkEnd { missing } => Ok(self.bulk_end(input, missing)),
        }
    }

    fn begin(&mut self, input: &mut InputBuffer) -> Result<Progress, ProtocolError> {
        self.was_inline = false;
        match input.unread().first().copied() {
            None => Ok(Progress::NeedMore),
            Some(b'*') if !self.is_stranger && self.take_whole(input) => Ok(Progress::Whole),
            Some(b'*') => self.count(input),
            Some(_) => self.inline(input),
        }
    }

    /// Takes a command that is there as a whole and like most others, with one look at each byte
    /// and without a step for each piece. Any other it leaves untouched.
    fn take_whole(&mut self, input: &mut InputBuffer) -> bool {
        let Some(taken) = self.copy_whole(input.unread()) else {
            self.words.clear();
            return false;
        };
        input.consume(taken);
        true
    }

    /// Copies the words of a whole command; tells how many bytes it has.
    fn copy_whole(&mut self, unread: &[u8]) -> Option<usize> {
        let (count, mut at) = short_line(unread, b'*')?;
        let mut last = at;
        for _ in 0..count {
            let (word, taken) = self.whole_word(unread.get(at..)?)?;
            self.words.extend(word);
            self.words.end_word();
            last = at;
            at += taken;
        }
        if self.words.cost_bytes() > self.command_bytes_max {
            return None;
        }
        let (head, rest) = (unread.get(..last)?, unread.get(at..)?);
        if head.len() <= HEAD_BYTES_MAX && rest.starts_with(head) {
            self.head.extend_from_slice(head);
        }
        Some(at)
    }

    /// The first bulk string, if it is there as a whole, and the bytes that it takes.
    fn whole_word<'a>(&self, unread: &'a [u8]) -> Option<(&'a [u8], usize)> {
        let (bytes, start) = short_line(unread, b'$')?;
        let word = unread.get(start..)?.get(..bytes + LINE_END.len())?;
        let is_allowed = bytes <= self.bulk_bytes_max;
        is_allowed.then_some((word.get(..bytes)?, start + word.len()))
    }

    fn count(&mut self, input: &mut InputBuffer) -> Result<Progress, ProtocolError> {
        let Some(line) = line(input, ProtocolError::LongCount)? else {
            return Ok(Progress::NeedMore);
        };
        let count = parse_integer(line.get(1..).unwrap_or_default());
        let count = count.filter(|count| *count <= WORDS_MAX).ok_or(ProtocolError::InvalidCount)?;
        if self.is_stranger && count > STRANGER_WORDS_MAX {
            return Err(ProtocolError::StrangerCount);
        }
        let taken = line.len() + LINE_END.len();
        input.consume(taken);
        match usize::try_from(count) {
            Ok(missing @ 1..) => {
                self.expect = Expect::Length { missing };
                Ok(Progress::GoOn)
            }
            _ => Ok(Progress::Whole),
        }
    }

    fn length(
        &mut self,
        input: &mut InputBuffer,
        missing: usize,
    ) -> Result<Progress, ProtocolError> {
        let Some(line) = line(input, ProtocolError::LongLength)? else {
            return Ok(Progress::NeedMore);
        };
        match line.split_first() {
            Some((b'$', digits)) => {
                let bytes = parse_integer(digits)
                    .and_then(|bytes| usize::try_from(bytes).ok())
                    .filter(|bytes| *bytes <= self.bulk_bytes_max)
                    .ok_or(ProtocolError::InvalidLength)?;
                if self.is_stranger && bytes > STRANGER_WORD_BYTES_MAX {
                    return Err(ProtocolError::StrangerLength);
                }
                let taken = line.len() + LINE_END.len();
                input.consume(taken);
                self.expect = Expect::Bulk { missing, bytes };
                Ok(Progress::GoOn)
            }
            other => {
                let found = other.map_or(b'\r', |(first, _)| *first);
                Err(ProtocolError::ExpectedBulk { found })
            }
        }
    }

    fn bulk(&mut self, input: &mut InputBuffer, missing: usize, bytes: usize) -> Progress {
        let taken = bytes.min(input.len());
        self.words.extend(input.unread().get(..taken).unwrap_or_default());
        input.consume(taken);
        if taken < bytes {
            self.expect = Expect::Bulk { missing, bytes: bytes - taken };
            return Progress::NeedMore;
        }
        self.expect = Expect::BulkEnd { missing };
        Progress::GoOn
    }

    fn bulk_end(&mut self, input: &mut InputBuffer, missing: usize) -> Progress {
        if input.len() < LINE_END.len() {
            return Progress::NeedMore;
        }
        input.consume(LINE_END.len());
        self.words.end_word();
        if missing == 1 {
            self.expect = Expect::Command;
            return Progress::Whole;
        }
        self.expect = Expect::Length { missing: missing - 1 };
        Progress::GoOn
    }

    fn inline(&mut self, input: &mut InputBuffer) -> Result<Progress, ProtocolError> {
        self.was_inline = true;
        let unread = input.unread();
        let Some(end) = unread.iter().position(|byte| *byte == b'\n') else {
            return too_long(unread, ProtocolError::LongInline).map(|()| Progress::NeedMore);
        };
        let line = unread.get(..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        inline::split(line, &mut self.words).map_err(|_| ProtocolError::UnbalancedQuotes)?;
        if self.words.from(0).any(|word| word.len() > self.bulk_bytes_max) {
            return Err(ProtocolError::InvalidLength);
        }
        input.consume(end + 1);
        Ok(Progress::Whole)
    }
}

/// The number of a line that begins with `mark`, and the bytes of that line. Nothing if it is
/// longer than most, is no such line, or has not come as a whole.
fn short_line(unread: &[u8], mark: u8) -> Option<(usize, usize)> {
    let [found, first @ b'1'..=b'9', rest @ ..] = unread else { return None };
    let mut number = usize::from(first - b'0');
    for (index, byte) in rest.iter().take(SHORT_LINE_BYTES).enumerate() {
        match byte {
            b'0'..=b'9' => number = number * 10 + usize::from(byte - b'0'),
            b'\r' if *found == mark && rest.len() > index + 1 => {
                return Some((number, 2 + index + LINE_END.len()));
            }
            _ => return None,
        }
    }
    None
}

/// The first line without its end, if both bytes of that have come.
fn line(input: &InputBuffer, error: ProtocolError) -> Result<Option<&[u8]>, ProtocolError> {
    let unread = input.unread();
    let Some(end) = unread.iter().position(|byte| *byte == b'\r') else {
        return too_long(unread, error).map(|()| None);
    };
    Ok(unread.split_at_checked(end).filter(|(_, rest)| rest.len() > 1).map(|(line, _)| line))
}

fn too_long(unread: &[u8], error: ProtocolError) -> Result<(), ProtocolError> {
    if unread.len() > LINE_BYTES_MAX { Err(error) } else { Ok(()) }
}

/// Without the words, which may be a password.
impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("words", &self.words)
            .field("expect", &self.expect)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protocol error: ")?;
        match self {
            Self::LongInline => f.write_str("too big inline request"),
            Self::LongCount => f.write_str("too big mbulk count string"),
            Self::LongLength => f.write_str("too big bulk count string"),
            Self::InvalidCount => f.write_str("invalid multibulk length"),
            Self::InvalidLength => f.write_str("invalid bulk length"),
            Self::StrangerCount => f.write_str("unauthenticated multibulk length"),
            Self::StrangerLength => f.write_str("unauthenticated bulk length"),
            Self::UnbalancedQuotes => f.write_str("unbalanced quotes in request"),
            Self::ExpectedBulk { found } => {
                write!(f, "expected '$', got '{}'", char::from(*found))
            }
            Self::LargeCommand => f.write_str("too big command"),
        }
    }
}

#[cfg(test)]
#[path = "reader_test.rs"]
mod tests;
