//! Ranges of sorted sets: by place, by score, by member.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::{Bound, Range};

use model::{
    CollectionKind, MemberBound, QueueName, Refusal, Reply, Score, ScoredPart, ScoredRange, limits,
};
use records::FieldsDraft;

use super::bounds::{Shown, look_at};
use super::{Collection, Collections, Members, Work};
use crate::collections::packed_tree::KeyParts;
use crate::keyspace::Keyspace;

const KIND: CollectionKind = CollectionKind::SortedSet;

impl Keyspace {
    pub(super) fn show_range(
        &mut self,
        name: &QueueName,
        part: &ScoredPart,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let Some(there) = self.collection(name, KIND, work.store)? else {
            return Ok(Reply::Entries(Box::default()));
        };
        let ranks = self.collections.ranks_of_part(&there, part);
        Ok(self.shown_ranks(&there, ranks, part.reverse, work)?.into_reply())
    }

    /// The members at these places.
    pub(super) fn shown_ranks(
        &self,
        there: &Collection,
        ranks: Range<u64>,
        reverse: bool,
        work: &mut Work<'_>,
    ) -> Result<Shown, Refusal> {
        let count = ranks.end - ranks.start;
        let mut shown = Shown::of(there, count, work)?;
        let all = self.collections.scored(there.number, ranks.start).take(count as usize);
        if reverse {
            let all: Vec<_> = all.collect();
            all.into_iter()
                .rev()
                .try_for_each(|(member, score)| shown.add_scored(member, score))?;
        } else {
            for (member, score) in all {
                shown.add_scored(member, score)?;
            }
        }
        Ok(shown)
    }

    /// The members of a part with their scores, to be stored.
    pub(super) fn members_of_part(
        &mut self,
        name: &QueueName,
        part: &ScoredPart,
        work: &mut Work<'_>,
    ) -> Result<Members, Refusal> {
        let Some(there) = self.collection(name, KIND, work.store)? else {
            return Ok(Members::new());
        };
        let ranks = self.collections.ranks_of_part(&there, part);
        let count = ranks.end - ranks.start;
        look_at(count, work)?;
        let all = self.collections.scored(there.number, ranks.start).take(count as usize);
        Ok(all.map(|(member, score)| (member.to_vec(), score.get())).collect())
    }

    pub(super) fn count_range(
        &mut self,
        name: &QueueName,
        range: &ScoredRange,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let there = self.collection(name, KIND, work.store)?;
        let ranks = there.map_or(0..0, |there| self.collections.ranks_of(&there, range, false));
        Ok(Reply::Count(ranks.end - ranks.start))
    }

    pub(super) fn remove_range(
        &mut self,
        name: &QueueName,
        range: &ScoredRange,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let Some(there) = self.collection(name, KIND, work.store)? else {
            return Ok(Reply::Count(0));
        };
        let ranks = self.collections.ranks_of(&there, range, false);
        let count = ranks.end - ranks.start;
        if count == there.count {
            self.take_whole(name, work)?;
            return Ok(Reply::Count(count));
        }
        // In a batch all at once; else from the end on, so that the rest has the same first place.
        let most = if work.log.is_whole() { limits::LIST_SCAN_MAX } else { REMOVED_AT_ONCE };
        let first = ranks.start.max(ranks.end.saturating_sub(most as u64));
        if work.log.is_whole() {
            look_at(count, work)?;
        }
        let members = self.last_members(&there, first..ranks.end, work);
        let gone = members.len() as u64;
        self.take_entries(name, there, &members, work)?;
        if gone == count {
            return Ok(Reply::Count(count));
        }
        Ok(Reply::RangeLeft { count: gone, rest: rest_of(range, ranks.start, ranks.end - gone) })
    }
}

impl Keyspace {
    /// The members at these places, or as many of the last as one frame takes.
    fn last_members(
        &self,
        there: &Collection,
        ranks: Range<u64>,
        work: &mut Work<'_>,
    ) -> Vec<Vec<u8>> {
        let count = (ranks.end - ranks.start) as usize;
        let all = self.collections.scored(there.number, ranks.start).take(count);
        let mut members: Vec<_> = all.map(|(member, _)| member.to_vec()).collect();
        let mut left = work.log.frame_bytes_max() / 2;
        let fits = |member: &&Vec<u8>| {
            let bytes = member.len() + FieldsDraft::ENTRY_BYTES_MAX;
            let has_room = bytes <= left;
            left = left.saturating_sub(bytes);
            has_room
        };
        if !work.log.is_whole() {
            let kept = members.iter().rev().take_while(fits).count();
            members.drain(..members.len() - kept);
        }
        members
    }
}

/// The part of a range that is left when the members from a place on are gone.
fn rest_of(range: &ScoredRange, start: u64, end: u64) -> ScoredRange {
    let place = |rank: u64| i64::try_from(rank).unwrap_or(i64::MAX);
    match range {
        ScoredRange::Ranks { .. } => {
            ScoredRange::Ranks { first: place(start), last: place(end.saturating_sub(1)) }
        }
        others => others.clone(),
    }
}

/// Members of a range that one step removes.
const REMOVED_AT_ONCE: usize = 20_000;

impl Collections {
    /// The places of the members of a part.
    pub(super) fn ranks_of_part(&self, there: &Collection, part: &ScoredPart) -> Range<u64> {
        let Range { start, end } = self.ranks_of(there, &part.range, part.reverse);
        let max = part.max.unwrap_or(u64::MAX);
        if part.reverse {
            let end = end.saturating_sub(part.skip).max(start);
            end.saturating_sub(max).max(start)..end
        } else {
            let start = start.saturating_add(part.skip).min(end);
            start..start.saturating_add(max).min(end)
        }
    }

    /// How many members are in a range, and how many bytes they may have: of many no more than all
    /// have.
    pub(crate) fn size_of_range(&self, there: &Collection, range: &ScoredRange) -> (u64, u64) {
        assert!(there.kind == KIND, "only members with scores are in a range");
        let ranks = self.ranks_of(there, range, false);
        let count = ranks.end - ranks.start;
        if count > COUNTED_MAX {
            let longest = limits::FIELD_BYTES_MAX as u64;
            return (count, there.bytes.min(count.saturating_mul(longest)));
        }
        let all = self.scored(there.number, ranks.start).take(count as usize);
        let bytes =
            all.map(|(member, _)| member.parts().iter().map(|part| part.len() as u64).sum::<u64>());
        (count, bytes.sum())
    }

    /// The places of the members of a range.
    fn ranks_of(&self, there: &Collection, range: &ScoredRange, reverse: bool) -> Range<u64> {
        let Collection { number, count, .. } = *there;
        let (start, end) = match range {
            ScoredRange::Ranks { first, last } => {
                let (start, end) = places(count, *first, *last);
                if reverse { (count - end, count - start) } else { (start, end) }
            }
            ScoredRange::Scores { low, high } => {
                let start = match low {
                    Bound::Unbounded => 0,
                    Bound::Included(score) => self.scored_rank(number, &score.order()),
                    Bound::Excluded(score) => self.scored_rank(number, &behind(*score)),
                };
                let end = match high {
                    Bound::Unbounded => count,
                    Bound::Included(score) => self.scored_rank(number, &behind(*score)),
                    Bound::Excluded(score) => self.scored_rank(number, &score.order()),
                };
                (start, end)
            }
            ScoredRange::Members { low, high } => {
                let start = match low {
                    MemberBound::Least => 0,
                    MemberBound::Greatest => count,
                    MemberBound::Included(member) => {
                        self.first_member(there, |it| it.is_lt(), member)
                    }
                    MemberBound::Excluded(member) => {
                        self.first_member(there, |it| it.is_le(), member)
                    }
                };
                let end = match high {
                    MemberBound::Least => 0,
                    MemberBound::Greatest => count,
                    MemberBound::Included(member) => {
                        self.first_member(there, |it| it.is_le(), member)
                    }
                    MemberBound::Excluded(member) => {
                        self.first_member(there, |it| it.is_lt(), member)
                    }
                };
                (start, end)
            }
        };
        start..end.max(start)
    }

    /// The place of the first member that is not before a bound. All have one score, so that they
    /// are in the order of their bytes; of others any place is as good.
    fn first_member(
        &self,
        there: &Collection,
        is_before: impl Fn(Ordering) -> bool,
        bound: &[u8],
    ) -> u64 {
        let (mut low, mut high) = (0, there.count);
        while low < high {
            let middle = low.midpoint(high);
            let Some((member, _)) = self.scored(there.number, middle).next() else { break };
            if is_before(compare(member, bound)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Members whose bytes are counted one by one before a batch.
const COUNTED_MAX: u64 = 1_024;

fn compare(member: KeyParts<'_>, bound: &[u8]) -> Ordering {
    let [prefix, suffix] = member.parts();
    prefix.iter().chain(suffix).cmp(bound)
}

/// The first place behind all members of this score.
fn behind(score: Score) -> [u8; 8] {
    // No score has the greatest of all bytes: they would be those of a NaN.
    (u64::from_be_bytes(score.order()) + 1).to_be_bytes()
}

/// The places from `first` to `last` among so many; negative ones count from the end.
fn places(count: u64, first: i64, last: i64) -> (u64, u64) {
    let from_start = |place: i64| match u64::try_from(place) {
        Ok(place) => Some(place),
        Err(_) => count.checked_sub(place.unsigned_abs()),
    };
    let first = from_start(first).unwrap_or(0);
    let end = from_start(last).map_or(0, |last| last.saturating_add(1)).min(count);
    if first >= end { (0, 0) } else { (first, end) }
}
