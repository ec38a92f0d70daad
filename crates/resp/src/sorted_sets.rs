//! Commands on sorted sets: members in the order of their scores.

use alloc::vec::Vec;

use model::CollectionKind::SortedSet;
use model::{CollectionCommand, Direction, Nanos, Presence, Score, ScoreRule};

use crate::arguments::Arguments;
use crate::collection_format::CollectionFormat;
use crate::collections::{self, key_count};
use crate::fault::Fault;
use crate::keys::QueryResult;
use crate::query::Query;
use crate::reply_format::ReplyFormat;
use crate::scored_ranges::{By, Form, Wanted};

/// ZADD
pub(crate) fn add(arguments: Arguments<'_>) -> QueryResult {
    set_scores(arguments, ScoreRule::default())
}

/// ZINCRBY
pub(crate) fn increase(arguments: Arguments<'_>) -> QueryResult {
    set_scores(arguments, ScoreRule { adds: true, ..ScoreRule::default() })
}

fn set_scores(arguments: Arguments<'_>, rule: ScoreRule) -> QueryResult {
    let (rule, at) = score_rule(arguments, rule)?;
    let scores = (at..arguments.len()).step_by(2);
    let members = scores.map(|at| Ok((score(arguments, at)?, arguments.element(at + 1))));
    let members = members.collect::<Result<Vec<_>, Fault>>()?;
    let format = if rule.adds { CollectionFormat::Score.into() } else { ReplyFormat::Count };
    let command = CollectionCommand::SetScores { name: arguments.key(1)?, members, rule };
    Ok(Query::collection(command, format))
}

fn score(arguments: Arguments<'_>, at: usize) -> Result<Score, Fault> {
    Score::new(arguments.double(at)?).ok_or(Fault::NOT_FLOAT)
}

/// The options of ZADD, and the place of the first score behind them.
fn score_rule(arguments: Arguments<'_>, mut rule: ScoreRule) -> Result<(ScoreRule, usize), Fault> {
    let (mut new, mut there, mut up, mut down) = (false, false, false, false);
    let mut at = 2;
    loop {
        match () {
            () if arguments.is(at, "nx") => new = true,
            () if arguments.is(at, "xx") => there = true,
            () if arguments.is(at, "gt") => up = true,
            () if arguments.is(at, "lt") => down = true,
            () if arguments.is(at, "ch") => rule.counts_changed = true,
            () if arguments.is(at, "incr") => rule.adds = true,
            () => break,
        }
        at += 1;
    }
    let words = arguments.len() - at;
    if words == 0 || !words.is_multiple_of(2) {
        return Err(Fault::SYNTAX);
    }
    rule.presence = presence(new, there)?;
    rule.direction = direction(new, up, down)?;
    if rule.adds && words > 2 {
        return Err(Fault::of("ERR INCR option supports a single increment-element pair"));
    }
    Ok((rule, at))
}

const fn presence(new: bool, there: bool) -> Result<Presence, Fault> {
    match (new, there) {
        (true, true) => Err(Fault::of("ERR XX and NX options at the same time are not compatible")),
        (true, false) => Ok(Presence::New),
        (false, true) => Ok(Presence::There),
        (false, false) => Ok(Presence::Any),
    }
}

const fn direction(new: bool, up: bool, down: bool) -> Result<Option<Direction>, Fault> {
    match (up, down) {
        (false, false) => Ok(None),
        (true, false) if !new => Ok(Some(Direction::Up)),
        (false, true) if !new => Ok(Some(Direction::Down)),
        _ => Err(Fault::of("ERR GT, LT, and/or NX options at the same time are not compatible")),
    }
}

/// ZSCORE
pub(crate) fn score_of(arguments: Arguments<'_>) -> QueryResult {
    collections::find(arguments, SortedSet, CollectionFormat::Score)
}

/// ZMSCORE
pub(crate) fn scores_of(arguments: Arguments<'_>) -> QueryResult {
    collections::find(arguments, SortedSet, CollectionFormat::Scores)
}

/// ZRANK, ZREVRANK
pub(crate) fn rank(arguments: Arguments<'_>, reverse: bool, name: &str) -> QueryResult {
    let format = match arguments.len() {
        3 => CollectionFormat::Rank,
        4 if arguments.is(3, "withscore") => CollectionFormat::RankWithScore,
        4 => return Err(Fault::SYNTAX),
        _ => return Err(Fault::arity(name)),
    };
    let (name, member) = (arguments.key(1)?, arguments.element(2));
    Ok(Query::collection(CollectionCommand::Rank { name, member, reverse }, format))
}

/// ZCOUNT, ZLEXCOUNT
pub(crate) fn count_range(arguments: Arguments<'_>, by: By) -> QueryResult {
    let range = by.range(arguments, 2, 3)?;
    let command = CollectionCommand::CountRange { name: arguments.key(1)?, range };
    Ok(Query::collection(command, ReplyFormat::Count))
}

/// ZREMRANGEBYRANK, ZREMRANGEBYSCORE, ZREMRANGEBYLEX
pub(crate) fn remove_range(arguments: Arguments<'_>, by: By) -> QueryResult {
    let range = by.range(arguments, 2, 3)?;
    let name = arguments.key(1)?;
    let format = CollectionFormat::RangeRemoved { name: name.clone(), count: 0 };
    Ok(Query::collection(CollectionCommand::RemoveRange { name, range }, format))
}

/// ZRANGE, ZREVRANGE, ZRANGEBYSCORE, ZREVRANGEBYSCORE, ZRANGEBYLEX, ZREVRANGEBYLEX
pub(crate) fn range(arguments: Arguments<'_>, form: Form) -> QueryResult {
    let Wanted { part, with_scores } = Wanted::parse(arguments, form)?;
    let command = CollectionCommand::ShowRange { name: arguments.key(1)?, part };
    Ok(Query::collection(command, shown(with_scores)))
}

/// ZRANGESTORE
pub(crate) fn store_range(arguments: Arguments<'_>) -> QueryResult {
    let Wanted { part, .. } = Wanted::parse(arguments, Form::STORE)?;
    let (to, from) = (arguments.key(1)?, arguments.key(2)?);
    let command = CollectionCommand::StoreRange { from, to, part };
    Ok(Query::collection(command, ReplyFormat::Count))
}

pub(crate) const fn shown(with_scores: bool) -> CollectionFormat {
    if with_scores { CollectionFormat::Pairs } else { CollectionFormat::Fields }
}

/// ZPOPMIN, ZPOPMAX
pub(crate) fn pop(arguments: Arguments<'_>, highest: bool) -> QueryResult {
    let (max, format) = match arguments.len() {
        2 => (1, CollectionFormat::OnePair),
        3 => (arguments.count(2)?, CollectionFormat::Pairs),
        _ => return Err(Fault::SYNTAX),
    };
    let (names, wait) = ([arguments.key(1)?].into(), Some(Nanos::ZERO));
    Ok(Query::collection(CollectionCommand::PopScored { names, highest, max, wait }, format))
}

/// BZPOPMIN, BZPOPMAX
pub(crate) fn pop_waiting(arguments: Arguments<'_>, highest: bool) -> QueryResult {
    let last = arguments.len() - 1;
    let wait = arguments.timeout(last)?;
    let names = arguments.some_keys(1, last - 1)?;
    let command = CollectionCommand::PopScored { names, highest, max: 1, wait };
    Ok(Query::collection(command, CollectionFormat::PoppedOne))
}

/// ZMPOP
pub(crate) fn pop_several(arguments: Arguments<'_>) -> QueryResult {
    pop_first(arguments, 1, |_| Ok(Some(Nanos::ZERO)))
}

/// BZMPOP
pub(crate) fn pop_several_waiting(arguments: Arguments<'_>) -> QueryResult {
    pop_first(arguments, 2, |it| it.timeout(1))
}

/// `wait` is read last, as in Redis.
fn pop_first(
    arguments: Arguments<'_>,
    at: usize,
    wait: fn(Arguments<'_>) -> Result<Option<Nanos>, Fault>,
) -> QueryResult {
    let count = key_count(arguments, at)?;
    let end_at = count.checked_add(at + 1).filter(|end| *end < arguments.len());
    let end_at = end_at.ok_or(Fault::SYNTAX)?;
    let highest = match () {
        () if arguments.is(end_at, "min") => false,
        () if arguments.is(end_at, "max") => true,
        () => return Err(Fault::SYNTAX),
    };
    let max = collections::pop_count(arguments, end_at + 1)?;
    let wait = wait(arguments)?;
    let names = arguments.some_keys(at + 1, count)?;
    let command = CollectionCommand::PopScored { names, highest, max, wait };
    Ok(Query::collection(command, CollectionFormat::PoppedSeveral))
}
