//! Commands on streams: entries in the order of their ids, and what describes them.

use alloc::vec::Vec;

use model::{
    ClockLead, NewStreamId, StreamCommand, StreamId, StreamKept, StreamRange, StreamTrim,
    parse_integer,
};

use crate::arguments::Arguments;
use crate::fault::Fault;
use crate::keys::QueryResult;
use crate::query::Query;
use crate::reply_format::ReplyFormat;
use crate::stream_format::{StreamFormat, Told};

/// XADD
pub(crate) fn add(arguments: Arguments<'_>) -> QueryResult {
    let Options { trim, id, at, only_existing } = Options::parse(arguments, true)?;
    let id = id.ok_or(Fault::arity("xadd"))?;
    let words = arguments.len() - at;
    if words < 2 || !words.is_multiple_of(2) {
        return Err(Fault::arity("xadd"));
    }
    if id == NewStreamId::Given(StreamId::ZERO) {
        return Err(Fault::of("ERR The ID specified in XADD must be greater than 0-0"));
    }
    let pairs = (at..arguments.len()).step_by(2);
    let fields = pairs.map(|at| (arguments.element(at), arguments.element(at + 1))).collect();
    let (name, lead) = (arguments.key(1)?, ClockLead::default());
    let command = StreamCommand::Append { name, id, fields, trim, only_existing, lead };
    Ok(Query::stream(command, Told::Id))
}

/// XTRIM
pub(crate) fn trim(arguments: Arguments<'_>) -> QueryResult {
    let Options { trim, .. } = Options::parse(arguments, false)?;
    let trim =
        trim.ok_or(Fault::of("ERR syntax error, XTRIM must be called with a trimming strategy"))?;
    let command = StreamCommand::Trim { name: arguments.key(1)?, trim };
    Ok(StreamFormat::counting(command, None))
}

/// The options of XADD and XTRIM.
struct Options {
    trim: Option<StreamTrim>,
    id: Option<NewStreamId>,
    /// The first field.
    at: usize,
    only_existing: bool,
}

impl Options {
    fn parse(arguments: Arguments<'_>, adds: bool) -> Result<Self, Fault> {
        let mut options = Self { trim: None, id: None, at: 2, only_existing: false };
        let (mut keep, mut limit, mut is_rough) = (None, None, false);
        while options.at < arguments.len() && options.id.is_none() {
            let (at, more) = (options.at, arguments.len() - options.at - 1);
            match () {
                () if adds && arguments.word(at) == b"*" => options.id = Some(NewStreamId::Next),
                () if arguments.is(at, "maxlen") && more > 0 => {
                    let wanted = options.bound(arguments, &keep, &mut is_rough)?;
                    let kept = arguments.integer(wanted)?;
                    let kept = u64::try_from(kept)
                        .map_err(|_| Fault::of("ERR The MAXLEN argument must be >= 0."))?;
                    keep = Some(StreamKept::Last(kept));
                }
                () if arguments.is(at, "minid") && more > 0 => {
                    let wanted = options.bound(arguments, &keep, &mut is_rough)?;
                    keep = Some(StreamKept::From(strict_id(arguments.word(wanted))?));
                }
                () if arguments.is(at, "limit") && more > 0 => {
                    let wanted = arguments.integer(at + 1)?;
                    limit = Some(
                        u64::try_from(wanted)
                            .map_err(|_| Fault::of("ERR The LIMIT argument must be >= 0."))?,
                    );
                    options.at += 1;
                }
                () if adds && arguments.is(at, "nomkstream") => options.only_existing = true,
                () if adds => options.id = Some(new_id(arguments.word(at))?),
                () => return Err(Fault::SYNTAX),
            }
            options.at += 1;
        }
        options.trim = trim_of(keep, limit, is_rough, adds)?;
        Ok(options)
    }

    /// The place of a bound behind `=` or `~`, where the options go on.
    fn bound(
        &mut self,
        arguments: Arguments<'_>,
        keep: &Option<StreamKept>,
        is_rough: &mut bool,
    ) -> Result<usize, Fault> {
        if keep.is_some() {
            return Err(Fault::of(
                "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
            ));
        }
        let sign = arguments.word(self.at + 1);
        let has_sign = self.at + 2 < arguments.len() && (sign == b"~" || sign == b"=");
        *is_rough = has_sign && sign == b"~";
        self.at += 1 + usize::from(has_sign);
        Ok(self.at)
    }
}

fn trim_of(
    keep: Option<StreamKept>,
    limit: Option<u64>,
    is_rough: bool,
    adds: bool,
) -> Result<Option<StreamTrim>, Fault> {
    let Some(keep) = keep else {
        return if limit.is_some_and(|limit| limit > 0) {
            Err(Fault::of(
                "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
            ))
        } else {
            Ok(None)
        };
    };
    let max = match limit {
        Some(_) if !is_rough => {
            return Err(Fault::of(
                "ERR syntax error, LIMIT cannot be used without the special ~ option",
            ));
        }
        // XTRIM goes on until all is done; an entry is added though more might leave.
        Some(0) => adds.then_some(u64::MAX),
        Some(limit) => Some(limit),
        None => is_rough.then_some(ROUGH_TRIM_MAX),
    };
    Ok(Some(StreamTrim { keep, max }))
}

/// Entries that leave at most where a client says `~`, as in Redis.
const ROUGH_TRIM_MAX: u64 = 10_000;

/// XDEL
pub(crate) fn remove(arguments: Arguments<'_>) -> QueryResult {
    let (name, ids) = (arguments.key(1)?, ids(arguments, 2)?);
    Ok(Query::stream(StreamCommand::Remove { name, ids }, ReplyFormat::Count))
}

/// XLEN
pub(crate) fn length(arguments: Arguments<'_>) -> QueryResult {
    let command = StreamCommand::Length { name: arguments.key(1)? };
    Ok(Query::stream(command, ReplyFormat::Count))
}

/// XRANGE, XREVRANGE
pub(crate) fn range(arguments: Arguments<'_>, reverse: bool) -> QueryResult {
    let (first, last) = if reverse { (3, 2) } else { (2, 3) };
    let (first, last) = bounds(arguments, first, last)?;
    let mut max = None;
    for at in (4..arguments.len()).step_by(2) {
        if !arguments.is(at, "count") || at + 1 == arguments.len() {
            return Err(Fault::SYNTAX);
        }
        max = Some(u64::try_from(arguments.integer(at + 1)?).unwrap_or(0));
    }
    let name = arguments.key(1)?;
    if max == Some(0) {
        let command = StreamCommand::Describe { name, whole: None };
        return Ok(Query::stream(command, Told::NothingOf));
    }
    let range = StreamRange { first, last, max };
    Ok(Query::stream(StreamCommand::Range { name, range, reverse }, Told::Entries))
}

/// The ends of a range: `(` in front of one leaves it out.
pub(crate) fn bounds(
    arguments: Arguments<'_>,
    first: usize,
    last: usize,
) -> Result<(StreamId, StreamId), Fault> {
    let first = match open(arguments.word(first)) {
        Some(id) => strict_id(id)?.next(),
        None => Some(id(arguments.word(first), 0)?),
    };
    let first = first.ok_or(Fault::of("ERR invalid start ID for the interval"))?;
    let last = match open(arguments.word(last)) {
        Some(id) => strict_id_with(id, u64::MAX)?.previous(),
        None => Some(id(arguments.word(last), u64::MAX)?),
    };
    let last = last.ok_or(Fault::of("ERR invalid end ID for the interval"))?;
    Ok((first, last))
}

/// The first id of a range, where it is the only end.
pub(crate) fn first_bound(arguments: Arguments<'_>, at: usize) -> Result<StreamId, Fault> {
    let first = match open(arguments.word(at)) {
        Some(id) => strict_id(id)?.next(),
        None => Some(id(arguments.word(at), 0)?),
    };
    first.ok_or(Fault::of("ERR invalid start ID for the interval"))
}

fn open(word: &[u8]) -> Option<&[u8]> {
    word.strip_prefix(b"(").filter(|id| !id.is_empty())
}

/// XSETID
pub(crate) fn set_last(arguments: Arguments<'_>) -> QueryResult {
    let last = strict_id(arguments.word(2))?;
    let (mut added, mut removed) = (None, None);
    for at in (3..arguments.len()).step_by(2) {
        match () {
            () if at + 1 == arguments.len() => return Err(Fault::SYNTAX),
            () if arguments.is(at, "entriesadded") => {
                let count = u64::try_from(arguments.integer(at + 1)?);
                added = Some(count.map_err(|_| Fault::of("ERR entries_added must be positive"))?);
            }
            () if arguments.is(at, "maxdeletedid") => {
                let id = strict_id(arguments.word(at + 1))?;
                if last < id {
                    return Err(Fault::of(
                        "ERR The ID specified in XSETID is smaller than the provided \
                         max_deleted_entry_id",
                    ));
                }
                removed = Some(id).filter(|id| *id != StreamId::ZERO);
            }
            () => return Err(Fault::SYNTAX),
        }
    }
    let command = StreamCommand::SetLast { name: arguments.key(1)?, last, added, removed };
    Ok(Query::stream(command, ReplyFormat::Okay))
}

/// XINFO STREAM
pub(crate) fn describe(arguments: Arguments<'_>) -> QueryResult {
    let whole = match arguments.len() {
        3 => None,
        4 if arguments.is(3, "full") => Some(USUAL_COUNT),
        6 if arguments.is(3, "full") && arguments.is(4, "count") => {
            Some(u64::try_from(arguments.integer(5)?).unwrap_or(USUAL_COUNT))
        }
        _ => return Err(Fault::subcommand(arguments, "XINFO")),
    };
    let command = StreamCommand::Describe { name: arguments.key(2)?, whole };
    Ok(Query::stream(command, Told::Stream))
}

/// Entries of each kind that XINFO STREAM FULL shows.
const USUAL_COUNT: u64 = 10;

/// The ids from one place on.
pub(crate) fn ids(arguments: Arguments<'_>, from: usize) -> Result<Vec<StreamId>, Fault> {
    arguments.from(from).map(strict_id).collect()
}

/// The id of a new entry: whole, or up to its sequence.
fn new_id(word: &[u8]) -> Result<NewStreamId, Fault> {
    match word.strip_suffix(b"-*") {
        Some(millis) => number(millis).map(NewStreamId::InMillisecond),
        None => strict_id(word).map(NewStreamId::Given),
    }
}

/// An id, in which `-` is the least and `+` the greatest.
pub(crate) fn id(word: &[u8], sequence: u64) -> Result<StreamId, Fault> {
    match word {
        b"-" => Ok(StreamId::ZERO),
        b"+" => Ok(StreamId::MAX),
        _ => strict_id_with(word, sequence),
    }
}

/// An id in numbers.
pub(crate) fn strict_id(word: &[u8]) -> Result<StreamId, Fault> {
    strict_id_with(word, 0)
}

fn strict_id_with(word: &[u8], sequence: u64) -> Result<StreamId, Fault> {
    let dash = word.iter().position(|byte| *byte == b'-');
    let (millis, rest) = word.split_at(dash.unwrap_or(word.len()));
    let sequence = match rest.split_first() {
        Some((_, digits)) => number(digits)?,
        None => sequence,
    };
    Ok(StreamId::new(number(millis)?, sequence))
}

fn number(digits: &[u8]) -> Result<u64, Fault> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let text = core::str::from_utf8(digits).ok().filter(|_| is_number);
    text.and_then(|text| text.parse().ok()).ok_or(INVALID_ID)
}

pub(crate) const INVALID_ID: Fault =
    Fault::of("ERR Invalid stream ID specified as stream command argument");

/// A number with words of its own for what is none.
pub(crate) fn integer_or(
    arguments: Arguments<'_>,
    at: usize,
    fault: &'static str,
) -> Result<i64, Fault> {
    parse_integer(arguments.word(at)).ok_or(Fault::of(fault))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_redis_reads_them() {
        assert_eq!(strict_id(b"5").ok(), Some(StreamId::new(5, 0)));
        assert_eq!(id(b"5", 9).ok(), Some(StreamId::new(5, 9)));
        assert_eq!(strict_id(b"5-007").ok(), Some(StreamId::new(5, 7)));
        assert_eq!(strict_id(b"18446744073709551615-1").ok(), Some(StreamId::new(u64::MAX, 1)));
        assert_eq!(id(b"+", 0).ok(), Some(StreamId::MAX));
        for bad in ["", "-", "+", "5-", "-5", "5-1-1", "x", "5-x", "18446744073709551616", "5 "] {
            assert!(strict_id(bad.as_bytes()).is_err(), "{bad}");
        }
        assert_eq!(new_id(b"7-*").ok(), Some(NewStreamId::InMillisecond(7)));
        assert!(new_id(b"-*").is_err() && new_id(b"*-1").is_err());
    }
}
