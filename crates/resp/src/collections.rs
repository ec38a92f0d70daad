//! Commands that hashes, sets and sorted sets have in common.

use alloc::boxed::Box;
use core::ops::Bound;

use model::{CollectionCommand, CollectionKind};

use crate::arguments::Arguments;
use crate::collection_format::CollectionFormat;
use crate::fault::Fault;
use crate::keys::{self, QueryResult};
use crate::query::Query;
use crate::reply_format::ReplyFormat;

/// HLEN, SCARD, ZCARD
pub(crate) fn count(arguments: Arguments<'_>, kind: CollectionKind) -> QueryResult {
    let command = CollectionCommand::CountFields { name: arguments.key(1)?, kind };
    Ok(Query::collection(command, ReplyFormat::Count))
}

/// HDEL, SREM, ZREM
pub(crate) fn remove(arguments: Arguments<'_>, kind: CollectionKind) -> QueryResult {
    let (name, fields) = (arguments.key(1)?, arguments.elements(2));
    let command = CollectionCommand::RemoveFields { name, kind, fields };
    Ok(Query::collection(command, ReplyFormat::Count))
}

/// HGET, HMGET, HEXISTS, HSTRLEN, SISMEMBER, SMISMEMBER, ZSCORE, ZMSCORE
pub(crate) fn find(
    arguments: Arguments<'_>,
    kind: CollectionKind,
    format: impl Into<ReplyFormat>,
) -> QueryResult {
    let (name, fields) = (arguments.key(1)?, arguments.elements(2));
    let command = CollectionCommand::FindFields { name, kind, fields };
    Ok(Query::collection(command, format))
}

/// HGETALL, HKEYS, HVALS, SMEMBERS
pub(crate) fn show(
    arguments: Arguments<'_>,
    kind: CollectionKind,
    format: CollectionFormat,
) -> QueryResult {
    let command = CollectionCommand::ShowFields { name: arguments.key(1)?, kind };
    Ok(Query::collection(command, format))
}

/// HSCAN, SSCAN, ZSCAN
pub(crate) fn scan(arguments: Arguments<'_>, kind: CollectionKind) -> QueryResult {
    let from = arguments.field_cursor(2)?.map_or(Bound::Unbounded, Bound::Excluded);
    let (mut pattern, mut max): (Option<Box<[u8]>>, _) = (None, 10);
    for at in (3..arguments.len()).step_by(2) {
        match () {
            () if at + 1 == arguments.len() => return Err(Fault::SYNTAX),
            () if arguments.is(at, "match") => pattern = Some(arguments.pattern(at + 1)?.into()),
            () if arguments.is(at, "count") => max = keys::scan_count(arguments, at + 1)?,
            () => return Err(Fault::SYNTAX),
        }
    }
    let max = max.min(keys::names_per_step(pattern.as_deref().unwrap_or_default()));
    let command = CollectionCommand::ScanFields { name: arguments.key(1)?, kind, from, max };
    Ok(Query::collection(command, CollectionFormat::Scan(pattern)))
}

/// HRANDFIELD, ZRANDMEMBER. `with` is the word that asks for pairs.
pub(crate) fn pick(arguments: Arguments<'_>, kind: CollectionKind, with: &str) -> QueryResult {
    if arguments.len() == 2 {
        return pick_some(arguments, kind, 1, CollectionFormat::OneField);
    }
    let count = pick_count(arguments, 2)?;
    match arguments.len() {
        3 => pick_some(arguments, kind, count, CollectionFormat::Fields),
        4 if !arguments.is(3, with) => Err(Fault::SYNTAX),
        4 if count.unsigned_abs() > i64::MAX.unsigned_abs() / 2 => {
            Err(Fault::of("ERR value is out of range"))
        }
        4 => pick_some(arguments, kind, count, CollectionFormat::Pairs),
        _ => Err(Fault::SYNTAX),
    }
}

/// A negative number asks for exactly so many, of which some may be the same.
pub(crate) fn pick_some(
    arguments: Arguments<'_>,
    kind: CollectionKind,
    count: i64,
    format: CollectionFormat,
) -> QueryResult {
    let command = CollectionCommand::PickFields {
        name: arguments.key(1)?,
        kind,
        max: count.unsigned_abs(),
        distinct: count >= 0,
        take: false,
        seed: arguments.chance(),
    };
    Ok(Query::collection(command, format))
}

pub(crate) fn pick_count(arguments: Arguments<'_>, at: usize) -> Result<i64, Fault> {
    let count = arguments.integer(at)?;
    if count == i64::MIN {
        return Err(Fault::of(
            "ERR value is out of range, value must between -9223372036854775807 and \
             9223372036854775807",
        ));
    }
    Ok(count)
}

/// How many keys follow, with which several commands begin.
pub(crate) fn key_count(arguments: Arguments<'_>, at: usize) -> Result<usize, Fault> {
    let count = arguments.count(at).ok().filter(|count| *count > 0);
    let count = count.ok_or(Fault::of("ERR numkeys should be greater than 0"))?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// How many elements or members are popped: one, if nothing says another number.
pub(crate) fn pop_count(arguments: Arguments<'_>, at: usize) -> Result<u64, Fault> {
    match arguments.len() - at {
        0 => Ok(1),
        2 if arguments.is(at, "count") => {
            let count = arguments.count(at + 1).ok().filter(|count| *count > 0);
            count.ok_or(Fault::of("ERR count should be greater than 0"))
        }
        _ => Err(Fault::SYNTAX),
    }
}

/// The number behind LIMIT, where zero is no limit.
pub(crate) fn limit(arguments: Arguments<'_>, at: usize) -> Result<u64, Fault> {
    arguments.count(at).map_err(|_| Fault::of("ERR LIMIT can't be negative"))
}
