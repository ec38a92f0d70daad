//! Commands on sets.

use model::CollectionKind::Set;
use model::{CollectionCommand, Combination, CombinationTarget, Score, ScoreSum, SetOperation};

use crate::arguments::Arguments;
use crate::collection_format::CollectionFormat;
use crate::collections::{self, key_count, limit, pick_count, pick_some};
use crate::fault::Fault;
use crate::keys::QueryResult;
use crate::query::Query;
use crate::reply_format::ReplyFormat;

/// SADD
pub(crate) fn add(arguments: Arguments<'_>) -> QueryResult {
    let (name, members) = (arguments.key(1)?, arguments.elements(2));
    let command = CollectionCommand::AddMembers { name, members };
    Ok(Query::collection(command, ReplyFormat::Count))
}

/// SMEMBERS
pub(crate) fn members(arguments: Arguments<'_>) -> QueryResult {
    collections::show(arguments, Set, CollectionFormat::Members)
}

/// SISMEMBER
pub(crate) fn contains(arguments: Arguments<'_>) -> QueryResult {
    collections::find(arguments, Set, ReplyFormat::FirstNumber)
}

/// SMISMEMBER
pub(crate) fn contains_each(arguments: Arguments<'_>) -> QueryResult {
    collections::find(arguments, Set, ReplyFormat::Numbers)
}

/// SMOVE
pub(crate) fn shift(arguments: Arguments<'_>) -> QueryResult {
    let (from, to) = (arguments.key(1)?, arguments.key(2)?);
    let command = CollectionCommand::MoveMember { from, to, member: arguments.element(3) };
    Ok(Query::collection(command, ReplyFormat::Count))
}

/// SRANDMEMBER
pub(crate) fn pick(arguments: Arguments<'_>) -> QueryResult {
    match arguments.len() {
        2 => pick_some(arguments, Set, 1, CollectionFormat::OneField),
        3 => pick_some(arguments, Set, pick_count(arguments, 2)?, CollectionFormat::Fields),
        _ => Err(Fault::SYNTAX),
    }
}

/// SPOP
pub(crate) fn pop(arguments: Arguments<'_>) -> QueryResult {
    let (max, format) = match arguments.len() {
        2 => (1, CollectionFormat::OneField),
        3 => (arguments.count(2)?, CollectionFormat::Members),
        _ => return Err(Fault::SYNTAX),
    };
    let command = CollectionCommand::PickFields {
        name: arguments.key(1)?,
        kind: Set,
        max,
        distinct: true,
        take: true,
        seed: arguments.chance(),
    };
    Ok(Query::collection(command, format))
}

/// SINTER, SUNION, SDIFF
pub(crate) fn combine(arguments: Arguments<'_>, how: SetOperation) -> QueryResult {
    let count = arguments.len() - 1;
    let combination = combination(arguments, how, (1, count), CombinationTarget::Shown)?;
    Ok(Query::collection(combination, CollectionFormat::Members))
}

/// SINTERSTORE, SUNIONSTORE, SDIFFSTORE
pub(crate) fn combine_into(arguments: Arguments<'_>, how: SetOperation) -> QueryResult {
    let count = arguments.len() - 2;
    let target = CombinationTarget::Stored(arguments.key(1)?);
    let combination = combination(arguments, how, (2, count), target)?;
    Ok(Query::collection(combination, ReplyFormat::Count))
}

/// SINTERCARD
pub(crate) fn count_common(arguments: Arguments<'_>) -> QueryResult {
    let count = key_count(arguments, 1)?;
    if count > arguments.len() - 2 {
        return Err(Fault::of("ERR Number of keys can't be greater than number of args"));
    }
    let mut max = 0;
    for at in (2 + count..arguments.len()).step_by(2) {
        if !arguments.is(at, "limit") || at + 1 == arguments.len() {
            return Err(Fault::SYNTAX);
        }
        max = limit(arguments, at + 1)?;
    }
    let (how, target) = (SetOperation::Intersection, CombinationTarget::Counted { max });
    let combination = combination(arguments, how, (2, count), target)?;
    Ok(Query::collection(combination, ReplyFormat::Count))
}

/// Of so many sets, whose names begin at that place.
fn combination(
    arguments: Arguments<'_>,
    how: SetOperation,
    (from, count): (usize, usize),
    target: CombinationTarget,
) -> Result<CollectionCommand, Fault> {
    let names = arguments.some_keys(from, count)?;
    let names = names.into_iter().map(|name| (name, Score::ONE)).collect();
    let sum = ScoreSum::default();
    Ok(CollectionCommand::Combine(Combination { how, kind: Set, names, sum, target }))
}
