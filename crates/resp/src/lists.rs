//! Commands on lists. Places count from the left; which end of the queue that is, is an option.

use alloc::boxed::Box;

use model::{End, ListCommand, Nanos, Persistence};

use crate::arguments::Arguments;
use crate::collections::{key_count, pop_count};
use crate::fault::Fault;
use crate::query::Query;
use crate::reply_format::ReplyFormat;
use crate::shared::Side;

type QueryResult = Result<Query, Fault>;

/// LPUSH, RPUSH, LPUSHX, RPUSHX
pub(crate) fn push(arguments: Arguments<'_>, side: Side, only_existing: bool) -> QueryResult {
    let command = ListCommand::Push {
        queue: arguments.key(1)?,
        end: arguments.side(side),
        elements: arguments.elements(2),
        only_existing,
        persistence: Persistence::Persistent,
    };
    Ok(Query::list(command, ReplyFormat::Count))
}

/// LPOP, RPOP
pub(crate) fn pop(arguments: Arguments<'_>, side: Side, name: &str) -> QueryResult {
    let (max, format) = match arguments.len() {
        2 => (1, ReplyFormat::One),
        3 => (arguments.count(2)?, ReplyFormat::Many),
        _ => return Err(Fault::arity(name)),
    };
    let (queue, end) = (arguments.key(1)?, arguments.side(side));
    Ok(Query::list(ListCommand::Pop { queue, end, max }, format))
}

/// BLPOP, BRPOP
pub(crate) fn pop_waiting(arguments: Arguments<'_>, side: Side) -> QueryResult {
    let last = arguments.len() - 1;
    let wait = arguments.timeout(last)?;
    let queues = (1..last).map(|at| arguments.key(at)).collect::<Result<_, _>>()?;
    let command = ListCommand::PopFirst { queues, end: arguments.side(side), max: 1, wait };
    Ok(Query::list(command, ReplyFormat::Pair))
}

/// LMPOP
pub(crate) fn pop_several(arguments: Arguments<'_>) -> QueryResult {
    pop_first(arguments, 1, Some(Nanos::ZERO))
}

/// BLMPOP
pub(crate) fn pop_several_waiting(arguments: Arguments<'_>) -> QueryResult {
    // The number of keys is looked at first.
    key_count(arguments, 2)?;
    pop_first(arguments, 2, arguments.timeout(1)?)
}

fn pop_first(arguments: Arguments<'_>, at: usize, wait: Option<Nanos>) -> QueryResult {
    let count = key_count(arguments, at)?;
    let end_at = count.checked_add(at + 1).filter(|end| *end < arguments.len());
    let end_at = end_at.ok_or(Fault::SYNTAX)?;
    let end = arguments.end(end_at)?;
    let max = pop_count(arguments, end_at + 1)?;
    let queues = (at + 1..end_at).map(|at| arguments.key(at)).collect::<Result<_, _>>()?;
    Ok(Query::list(ListCommand::PopFirst { queues, end, max, wait }, ReplyFormat::Several))
}

/// LMOVE, BLMOVE
pub(crate) fn shift(arguments: Arguments<'_>, waiting: bool) -> QueryResult {
    let ends = (arguments.end(3)?, arguments.end(4)?);
    transfer(arguments, ends, waiting.then_some(5))
}

/// RPOPLPUSH, BRPOPLPUSH
pub(crate) fn rotate(arguments: Arguments<'_>, waiting: bool) -> QueryResult {
    let ends = (arguments.side(Side::Right), arguments.side(Side::Left));
    transfer(arguments, ends, waiting.then_some(3))
}

fn transfer(arguments: Arguments<'_>, ends: (End, End), timeout_at: Option<usize>) -> QueryResult {
    let (wait, format) = match timeout_at {
        Some(at) => (arguments.timeout(at)?, ReplyFormat::OneAwaited),
        None => (Some(Nanos::ZERO), ReplyFormat::One),
    };
    let command = ListCommand::Move {
        from: arguments.key(1)?,
        from_end: ends.0,
        to: arguments.key(2)?,
        to_end: ends.1,
        wait,
    };
    Ok(Query::list(command, format))
}

/// LLEN
pub(crate) fn length(arguments: Arguments<'_>) -> QueryResult {
    Ok(Query::list(ListCommand::Length { queue: arguments.key(1)? }, ReplyFormat::Count))
}

/// LRANGE
pub(crate) fn range(arguments: Arguments<'_>) -> QueryResult {
    let (first, last) = (arguments.integer(2)?, arguments.integer(3)?);
    slice(arguments, first, last, ReplyFormat::Range)
}

/// LINDEX
pub(crate) fn index(arguments: Arguments<'_>) -> QueryResult {
    let at = arguments.integer(2)?;
    slice(arguments, at, at, ReplyFormat::One)
}

fn slice(arguments: Arguments<'_>, first: i64, last: i64, format: ReplyFormat) -> QueryResult {
    let (queue, origin) = (arguments.key(1)?, arguments.side(Side::Left));
    Ok(Query::list(ListCommand::Range { queue, origin, first, last }, format))
}

/// LSET
pub(crate) fn replace(arguments: Arguments<'_>) -> QueryResult {
    let command = ListCommand::Replace {
        at: arguments.integer(2)?,
        queue: arguments.key(1)?,
        origin: arguments.side(Side::Left),
        element: arguments.element(3),
        persistence: Persistence::Persistent,
    };
    Ok(Query::list(command, ReplyFormat::Okay))
}

/// LINSERT
pub(crate) fn insert(arguments: Arguments<'_>) -> QueryResult {
    let towards = match () {
        () if arguments.is(2, "before") => Side::Left,
        () if arguments.is(2, "after") => Side::Right,
        () => return Err(Fault::SYNTAX),
    };
    let command = ListCommand::Insert {
        queue: arguments.key(1)?,
        origin: arguments.side(Side::Left),
        pivot: arguments.element(3),
        towards: arguments.side(towards),
        element: arguments.element(4),
        persistence: Persistence::Persistent,
    };
    Ok(Query::list(command, ReplyFormat::Inserted))
}

/// LREM
pub(crate) fn remove(arguments: Arguments<'_>) -> QueryResult {
    let count = arguments.integer(2)?;
    let origin = if count < 0 { Side::Right } else { Side::Left };
    let command = ListCommand::Remove {
        queue: arguments.key(1)?,
        origin: arguments.side(origin),
        element: arguments.element(3),
        max: all_where_zero(count.unsigned_abs()),
    };
    Ok(Query::list(command, ReplyFormat::Count))
}

/// LTRIM
pub(crate) fn keep(arguments: Arguments<'_>) -> QueryResult {
    let (first, last) = (arguments.integer(2)?, arguments.integer(3)?);
    let (queue, origin) = (arguments.key(1)?, arguments.side(Side::Left));
    let command = ListCommand::Keep { queue, origin, first, last };
    Ok(Query::list(command.clone(), ReplyFormat::Trimmed(Box::new(command))))
}

/// LPOS
pub(crate) fn locate(arguments: Arguments<'_>) -> QueryResult {
    let Location { rank, count, scan_max } = location(arguments)?;
    let from = if rank < 0 { Side::Right } else { Side::Left };
    let command = ListCommand::Locate {
        queue: arguments.key(1)?,
        origin: arguments.side(Side::Left),
        from: arguments.side(from),
        element: arguments.element(2),
        skip: rank.unsigned_abs() - 1,
        max: count.map_or(1, all_where_zero),
        scan_max,
    };
    let format = if count.is_some() { ReplyFormat::Places } else { ReplyFormat::Place };
    Ok(Query::list(command, format))
}

/// The options of LPOS beside key and element.
struct Location {
    rank: i64,
    count: Option<u64>,
    scan_max: Option<u64>,
}

fn location(arguments: Arguments<'_>) -> Result<Location, Fault> {
    let mut location = Location { rank: 1, count: None, scan_max: None };
    for at in (3..arguments.len()).step_by(2) {
        if at + 1 == arguments.len() {
            return Err(Fault::SYNTAX);
        }
        let count = |negative| arguments.count(at + 1).map_err(|_| Fault::of(negative));
        match () {
            () if arguments.is(at, "rank") => location.rank = rank(arguments.integer(at + 1)?)?,
            () if arguments.is(at, "count") => {
                location.count = Some(count("ERR COUNT can't be negative")?);
            }
            () if arguments.is(at, "maxlen") => {
                let max = count("ERR MAXLEN can't be negative")?;
                location.scan_max = Some(max).filter(|max| *max > 0);
            }
            () => return Err(Fault::SYNTAX),
        }
    }
    Ok(location)
}

fn rank(rank: i64) -> Result<i64, Fault> {
    if rank == 0 {
        return Err(Fault::of(
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... \
             or use negative to start from the end of the list",
        ));
    }
    Ok(rank)
}

const fn all_where_zero(count: u64) -> u64 {
    if count == 0 { u64::MAX } else { count }
}
