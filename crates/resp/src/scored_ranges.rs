//! The ranges of sorted sets, as clients name them: by places, scores or members.

use core::ops::Bound;

use model::{MemberBound, Score, ScoredPart, ScoredRange};

use crate::arguments::Arguments;
use crate::fault::Fault;
use crate::number::parse_bound;

/// The measure of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Rank,
    Score,
    Member,
}

impl By {
    /// The range between two ends, of which these are the places.
    pub(crate) fn range(
        self,
        arguments: Arguments<'_>,
        low: usize,
        high: usize,
    ) -> Result<ScoredRange, Fault> {
        let (low_word, high_word) = (arguments.word(low), arguments.word(high));
        match self {
            Self::Rank => {
                let (first, last) = (arguments.integer(low)?, arguments.integer(high)?);
                Ok(ScoredRange::Ranks { first, last })
            }
            Self::Score => {
                let bounds = score_bound(low_word).zip(score_bound(high_word));
                let (low, high) = bounds.ok_or(Fault::of("ERR min or max is not a float"))?;
                Ok(ScoredRange::Scores { low, high })
            }
            Self::Member => {
                let bounds = member_bound(low_word).zip(member_bound(high_word));
                let (low, high) =
                    bounds.ok_or(Fault::of("ERR min or max not valid string range item"))?;
                Ok(ScoredRange::Members { low, high })
            }
        }
    }
}

fn score_bound(word: &[u8]) -> Option<Bound<Score>> {
    match word.strip_prefix(b"(") {
        Some(word) => parse_bound(word).and_then(Score::new).map(Bound::Excluded),
        None => parse_bound(word).and_then(Score::new).map(Bound::Included),
    }
}

fn member_bound(word: &[u8]) -> Option<MemberBound> {
    match word {
        b"-" => Some(MemberBound::Least),
        b"+" => Some(MemberBound::Greatest),
        [b'[', member @ ..] => Some(MemberBound::Included(member.into())),
        [b'(', member @ ..] => Some(MemberBound::Excluded(member.into())),
        _ => None,
    }
}

/// The form of a command that names a part of a sorted set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// The place of the sorted set's name; the ends of the range stand behind it.
    at: usize,
    /// `None`: options say it.
    by: Option<By>,
    /// `None`: an option says it.
    reverse: Option<bool>,
    /// It may ask for scores.
    shows: bool,
}

impl Form {
    /// ZRANGE
    pub(crate) const OPEN: Self = Self { at: 1, by: None, reverse: None, shows: true };
    /// ZRANGESTORE
    pub(crate) const STORE: Self = Self { at: 2, shows: false, ..Self::OPEN };

    /// That of a command whose name says all.
    pub(crate) const fn of(by: By, reverse: bool) -> Self {
        Self { by: Some(by), reverse: Some(reverse), ..Self::OPEN }
    }
}

/// A part of a sorted set that a client names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) part: ScoredPart,
    pub(crate) with_scores: bool,
}

impl Wanted {
    pub(crate) fn parse(arguments: Arguments<'_>, form: Form) -> Result<Self, Fault> {
        let Options { by, reverse, with_scores, limit } = Options::parse(arguments, form)?;
        if by == By::Rank && limit.is_some_and(|(_, count)| count != -1) {
            return Err(Fault::of(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or \
                 BYLEX",
            ));
        }
        if by == By::Member && with_scores {
            return Err(Fault::of(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        // The upper end is the first word of a reversed range; of places it is none.
        let (first, second) = (form.at + 1, form.at + 2);
        let swapped = reverse && by != By::Rank;
        let (low, high) = if swapped { (second, first) } else { (first, second) };
        let range = by.range(arguments, low, high)?;
        let (skip, max) = if by == By::Rank { (0, None) } else { bounds(limit) };
        Ok(Self { part: ScoredPart { range, reverse, skip, max }, with_scores })
    }
}

/// How many members are passed over, and how many there are at most.
fn bounds(limit: Option<(i64, i64)>) -> (u64, Option<u64>) {
    let Some((offset, count)) = limit else { return (0, None) };
    match u64::try_from(offset) {
        Ok(skip) => (skip, u64::try_from(count).ok()),
        // No member stands before the first.
        Err(_) => (0, Some(0)),
    }
}

/// The words behind the range.
struct Options {
    by: By,
    reverse: bool,
    with_scores: bool,
    limit: Option<(i64, i64)>,
}

impl Options {
    fn parse(arguments: Arguments<'_>, form: Form) -> Result<Self, Fault> {
        let Form { mut by, mut reverse, .. } = form;
        let (mut with_scores, mut limit) = (false, None);
        let mut at = form.at + 3;
        while at < arguments.len() {
            match () {
                () if form.shows && arguments.is(at, "withscores") => with_scores = true,
                () if arguments.is(at, "limit") && at + 2 < arguments.len() => {
                    limit = Some((arguments.integer(at + 1)?, arguments.integer(at + 2)?));
                    at += 2;
                }
                () if reverse.is_none() && arguments.is(at, "rev") => reverse = Some(true),
                () if by.is_none() && arguments.is(at, "bylex") => by = Some(By::Member),
                () if by.is_none() && arguments.is(at, "byscore") => by = Some(By::Score),
                () => return Err(Fault::SYNTAX),
            }
            at += 1;
        }
        let (by, reverse) = (by.unwrap_or(By::Rank), reverse.unwrap_or(false));
        Ok(Self { by, reverse, with_scores, limit })
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;

    use super::*;

    #[test]
    fn score_bounds_are_open_or_closed() {
        let score = |number| Score::new(number).unwrap();
        assert_eq!(score_bound(b"1.5"), Some(Bound::Included(score(1.5))));
        assert_eq!(score_bound(b"(1"), Some(Bound::Excluded(score(1.0))));
        assert_eq!(score_bound(b"-inf"), Some(Bound::Included(score(f64::NEG_INFINITY))));
        assert_eq!(score_bound(b"(+inf"), Some(Bound::Excluded(score(f64::INFINITY))));
        assert_eq!(score_bound(b"("), Some(Bound::Excluded(score(0.0))));
        for wrong in ["x", "[1", "((1", "nan", "(nan", "1 "] {
            assert_eq!(score_bound(wrong.as_bytes()), None, "{wrong:?}");
        }
    }

    #[test]
    fn member_bounds_begin_with_bracket() {
        let a: Arc<[u8]> = Arc::from(&b"a"[..]);
        assert_eq!(member_bound(b"-"), Some(MemberBound::Least));
        assert_eq!(member_bound(b"+"), Some(MemberBound::Greatest));
        assert_eq!(member_bound(b"[a"), Some(MemberBound::Included(Arc::clone(&a))));
        assert_eq!(member_bound(b"(a"), Some(MemberBound::Excluded(a)));
        assert_eq!(member_bound(b"["), Some(MemberBound::Included(Arc::from(&b""[..]))));
        for wrong in ["", "a", "-1", "+x", "1"] {
            assert_eq!(member_bound(wrong.as_bytes()), None, "{wrong:?}");
        }
    }

    #[test]
    fn limits_bound_a_part() {
        assert_eq!(bounds(None), (0, None));
        assert_eq!(bounds(Some((2, 3))), (2, Some(3)));
        assert_eq!(bounds(Some((2, -1))), (2, None));
        assert_eq!(bounds(Some((2, 0))), (2, Some(0)));
        assert_eq!(bounds(Some((-1, 3))), (0, Some(0)));
    }
}
