//! Sorted sets made of several: ZUNION, ZINTER, ZDIFF and their kin.

use alloc::vec::Vec;

use model::{
    CollectionCommand, CollectionKind, Combination, CombinationTarget, QueueName, Score, ScoreSum,
    SetOperation,
};

use crate::arguments::Arguments;
use crate::collections::limit;
use crate::fault::Fault;
use crate::keys::QueryResult;
use crate::query::Query;
use crate::reply_format::ReplyFormat;
use crate::sorted_sets::shown;

/// ZUNION, ZINTER, ZDIFF
pub(crate) fn show(arguments: Arguments<'_>, how: SetOperation) -> QueryResult {
    let options = Options::parse(arguments, how, Purpose::Show)?;
    let format = shown(options.with_scores);
    Ok(Query::collection(options.into_command(how, CombinationTarget::Shown), format))
}

/// ZUNIONSTORE, ZINTERSTORE, ZDIFFSTORE
pub(crate) fn store(arguments: Arguments<'_>, how: SetOperation) -> QueryResult {
    let options = Options::parse(arguments, how, Purpose::Store)?;
    let target = CombinationTarget::Stored(arguments.key(1)?);
    Ok(Query::collection(options.into_command(how, target), ReplyFormat::Count))
}

/// ZINTERCARD
pub(crate) fn count(arguments: Arguments<'_>) -> QueryResult {
    let how = SetOperation::Intersection;
    let options = Options::parse(arguments, how, Purpose::Count)?;
    let target = CombinationTarget::Counted { max: options.max };
    Ok(Query::collection(options.into_command(how, target), ReplyFormat::Count))
}

/// The use of the result, on which the options depend.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Show,
    Store,
    Count,
}

/// The words of such a command.
struct Options {
    names: Vec<QueueName>,
    weights: Vec<Score>,
    sum: ScoreSum,
    with_scores: bool,
    max: u64,
}

impl Options {
    fn parse(arguments: Arguments<'_>, how: SetOperation, purpose: Purpose) -> Result<Self, Fault> {
        let at = if purpose == Purpose::Store { 2 } else { 1 };
        let names = names(arguments, at)?;
        let weights = alloc::vec![Score::ONE; names.len()];
        let sum = ScoreSum::default();
        let mut options = Self { names, weights, sum, with_scores: false, max: 0 };
        let mut at = at + 1 + options.names.len();
        while at < arguments.len() {
            at = options.take(arguments, at, how, purpose)?;
        }
        Ok(options)
    }

    /// Reads one option; tells the place behind it.
    fn take(
        &mut self,
        arguments: Arguments<'_>,
        at: usize,
        how: SetOperation,
        purpose: Purpose,
    ) -> Result<usize, Fault> {
        let behind = arguments.len() - at - 1;
        let weighs = how != SetOperation::Difference && purpose != Purpose::Count;
        match () {
            () if weighs && behind >= self.weights.len() && arguments.is(at, "weights") => {
                self.weights = weights(arguments, at + 1, self.names.len())?;
                Ok(at + 1 + self.names.len())
            }
            () if weighs && behind > 0 && arguments.is(at, "aggregate") => {
                self.sum = sum_named(arguments, at + 1)?;
                Ok(at + 2)
            }
            () if purpose == Purpose::Show && arguments.is(at, "withscores") => {
                self.with_scores = true;
                Ok(at + 1)
            }
            () if purpose == Purpose::Count && behind > 0 && arguments.is(at, "limit") => {
                self.max = limit(arguments, at + 1)?;
                Ok(at + 2)
            }
            () => Err(Fault::SYNTAX),
        }
    }

    fn into_command(self, how: SetOperation, target: CombinationTarget) -> CollectionCommand {
        let Self { names, weights, sum, .. } = self;
        let (names, kind) = (names.into_iter().zip(weights).collect(), CollectionKind::SortedSet);
        CollectionCommand::Combine(Combination { how, kind, names, sum, target })
    }
}

/// As many names as the word at this place says.
fn names(arguments: Arguments<'_>, at: usize) -> Result<Vec<QueueName>, Fault> {
    let count = arguments.integer(at)?;
    if count < 1 {
        let name = arguments.word(0).to_ascii_lowercase();
        let before = "ERR at least 1 input key is needed for '";
        return Err(Fault::about(before, &name, "' command"));
    }
    let most = arguments.len() - (at + 1);
    let count = usize::try_from(count).ok().filter(|count| *count <= most);
    arguments.some_keys(at + 1, count.ok_or(Fault::SYNTAX)?)
}

fn weights(arguments: Arguments<'_>, from: usize, count: usize) -> Result<Vec<Score>, Fault> {
    let weight = |at| arguments.double(at).ok().and_then(Score::new);
    let weights = (from..from + count).map(weight).collect::<Option<_>>();
    weights.ok_or(Fault::of("ERR weight value is not a float"))
}

fn sum_named(arguments: Arguments<'_>, at: usize) -> Result<ScoreSum, Fault> {
    match () {
        () if arguments.is(at, "sum") => Ok(ScoreSum::Sum),
        () if arguments.is(at, "min") => Ok(ScoreSum::Least),
        () if arguments.is(at, "max") => Ok(ScoreSum::Greatest),
        () => Err(Fault::SYNTAX),
    }
}
