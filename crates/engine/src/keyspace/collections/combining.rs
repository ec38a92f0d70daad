//! Several sets or sorted sets made into one: unions, intersections, differences.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use model::{
    CollectionKind, Combination, CombinationTarget, Entries, QueueName, Refusal, Reply, Score,
    ScoreSum, SetOperation, limits,
};
use records::FieldsDraft;

use super::bounds::look_at;
use super::changing::Pair;
use super::{Collection, Collections, Work, score_of};
use crate::collections::packed_tree::Cell;
use crate::ids::QueueSlot;
use crate::keyspace::DEADLINE_BYTES_MAX;
use crate::keyspace::{Key, Keyspace};
use crate::log::DELETED_BYTES_MAX;

/// Members with their scores; of a set these are all 1.
pub(crate) type Members = BTreeMap<Vec<u8>, f64>;

/// One of the sets, and the factor for its scores. `None`: it is empty.
type Source = (Option<Collection>, f64);

impl Keyspace {
    /// The members that a combination comes to, in no more steps than one command may take.
    pub(super) fn combine(
        &mut self,
        combination: &Combination,
        work: &mut Work<'_>,
    ) -> Result<Members, Refusal> {
        let mut sources = Vec::with_capacity(combination.names.len());
        for (name, factor) in &combination.names {
            sources.push((self.source(name, combination.kind, work)?, factor.get()));
        }
        let most = if let CombinationTarget::Counted { max: max @ 1.. } = combination.target {
            usize::try_from(max).unwrap_or(usize::MAX)
        } else {
            usize::MAX
        };
        let counts = sources.iter().map(|(set, _)| set.map_or(0, |set| set.count));
        look_at(combination_steps(combination.how, counts), work)?;
        Ok(match combination.how {
            SetOperation::Union => self.collections.union(sources, combination.sum),
            SetOperation::Intersection => {
                self.collections.intersection(sources, combination.sum, most)
            }
            SetOperation::Difference => self.collections.difference(&sources),
        })
    }

    fn source(
        &mut self,
        name: &QueueName,
        kind: CollectionKind,
        work: &mut Work<'_>,
    ) -> Result<Option<Collection>, Refusal> {
        if kind == CollectionKind::SortedSet {
            let there = self.values().get(name, work.store.latest);
            let is_set = |it: Collection| it.kind == CollectionKind::Set;
            if let Some(set) = there.and_then(|there| there.collection()).filter(|it| is_set(*it)) {
                return Ok(Some(set));
            }
        }
        self.collection(name, kind, work.store)
    }

    /// The answer of a combination that is not stored.
    pub(super) fn tell_combined(
        combination: &Combination,
        members: Members,
        work: &Work<'_>,
    ) -> Result<Reply, Refusal> {
        if let CombinationTarget::Counted { .. } = combination.target {
            return Ok(Reply::Count(members.len() as u64));
        }
        let bytes = |member: &Vec<u8>| member.len() + limits::BESIDE_ELEMENT_BYTES;
        if members.keys().map(bytes).sum::<usize>() > work.shown_max {
            return Err(work.too_much.clone());
        }
        let mut entries = Entries::default();
        if combination.kind == CollectionKind::Set {
            members.keys().for_each(|member| entries.fields.push(member));
            return Ok(Reply::Entries(Box::new(entries)));
        }
        let mut scored: Vec<_> = members
            .iter()
            .filter_map(|(member, score)| Some((Score::new(*score)?, member)))
            .collect();
        scored.sort_by_key(|(score, member)| (score.order(), *member));
        for (score, member) in scored {
            entries.fields.push(member);
            entries.scores.push(score);
        }
        Ok(Reply::Entries(Box::new(entries)))
    }

    /// Stores members under a name in place of any key; none deletes that. A list of the name is
    /// given back: the caller deletes it.
    pub(crate) fn store_in_place(
        &mut self,
        to: &QueueName,
        kind: CollectionKind,
        members: &Members,
        work: &mut Work<'_>,
    ) -> Result<Option<QueueSlot>, Refusal> {
        let list = match self.find_key(to, work.store) {
            Some(Key::List(slot)) => Some(slot),
            Some(Key::Value(_)) | None => None,
        };
        self.takes_instead(to, list, 0, u64::MAX, work.store, work.log)?;
        let deleted = list.map_or(0, |slot| work.store.ready_count(slot)) * DELETED_BYTES_MAX;
        let bytes = members.keys().map(|member| member.len() + ENTRY_BYTES_MAX).sum::<usize>();
        let frame = deleted + bytes + RECORDS_BYTES_MAX;
        if !work.log.is_whole() && frame > work.log.frame_bytes_max() {
            return Err(Refusal::BatchTooLarge);
        }
        if members.is_empty() {
            self.delete_value(to, work.store, work.log, work.effects);
        } else {
            self.store_members(to, kind, members, work)?;
        }
        Ok(list)
    }

    fn store_members(
        &mut self,
        to: &QueueName,
        kind: CollectionKind,
        members: &Members,
        work: &mut Work<'_>,
    ) -> Result<(), Refusal> {
        let scores: Vec<_> = members.values().map(|score| score.to_be_bytes()).collect();
        let pairs = members.keys().zip(&scores).map(|(member, score)| {
            let inline = if kind == CollectionKind::SortedSet { &score[..] } else { &[] };
            Pair::new(member, Cell::inline(inline))
        });
        let pairs: Vec<_> = pairs.collect();
        let new = self.set_entries(to, kind, (None, None), &pairs, work)?;
        assert_eq!(new, members.len() as u64, "all are new");
        Ok(())
    }
}

/// How many members of sets of these sizes are looked at, at most.
pub(crate) fn combination_steps(
    how: SetOperation,
    mut counts: impl ExactSizeIterator<Item = u64>,
) -> u64 {
    let sets = counts.len() as u64;
    match how {
        SetOperation::Union => counts.fold(0, u64::saturating_add),
        SetOperation::Intersection => counts.min().unwrap_or(0).saturating_mul(sets),
        SetOperation::Difference => counts.next().unwrap_or(0).saturating_mul(sets),
    }
}

impl Collections {
    fn union(&self, mut sources: Vec<Source>, sum: ScoreSum) -> Members {
        sources.sort_by_key(|(set, _)| set.map_or(0, |set| set.count));
        let mut members = Members::new();
        for (set, factor) in &sources {
            for (member, score) in self.weighed(*set, *factor) {
                members
                    .entry(member)
                    .and_modify(|before| *before = together(*before, score, sum))
                    .or_insert(score);
            }
        }
        members
    }

    fn intersection(&self, mut sources: Vec<Source>, sum: ScoreSum, most: usize) -> Members {
        sources.sort_by_key(|(set, _)| set.map_or(0, |set| set.count));
        let Some(((first, factor), others)) = sources.split_first() else { return Members::new() };
        let in_all = |(member, score): (Vec<u8>, f64)| {
            let mut score = score;
            for (set, factor) in others {
                let its = self.weight(*set, &member)?;
                score = together(score, weighed(its, *factor), sum);
            }
            Some((member, score))
        };
        self.weighed(*first, *factor).filter_map(in_all).take(most).collect()
    }

    fn difference(&self, sources: &[Source]) -> Members {
        let Some(((first, _), others)) = sources.split_first() else { return Members::new() };
        let is_alone =
            |member: &Vec<u8>| others.iter().all(|(set, _)| self.weight(*set, member).is_none());
        self.weighed(*first, 1.0).filter(|(member, _)| is_alone(member)).collect()
    }

    /// Members of a set with their scores times a factor.
    fn weighed(
        &self,
        set: Option<Collection>,
        factor: f64,
    ) -> impl Iterator<Item = (Vec<u8>, f64)> {
        let all = set.map(|set| (set.kind, self.entries(set.number, 0)));
        all.into_iter().flat_map(move |(kind, entries)| {
            entries.map(move |(member, cell)| {
                (member.to_vec(), weighed(weight_of(kind, cell), factor))
            })
        })
    }

    /// The score of a member of a set.
    fn weight(&self, set: Option<Collection>, member: &[u8]) -> Option<f64> {
        let set = set?;
        self.get(set.number, member).map(|cell| weight_of(set.kind, cell))
    }
}

fn weight_of(kind: CollectionKind, cell: Cell<'_>) -> f64 {
    if kind == CollectionKind::SortedSet { score_of(cell).get() } else { 1.0 }
}

/// Bytes of a member in a record beside its own, with its score.
const ENTRY_BYTES_MAX: usize = FieldsDraft::ENTRY_BYTES_MAX + size_of::<f64>();

/// Bytes of the records of a new key and of a list that goes for it, beside members and elements.
const RECORDS_BYTES_MAX: usize = 3 * DEADLINE_BYTES_MAX;

/// As in Redis, zero times infinity is zero.
fn weighed(score: f64, factor: f64) -> f64 {
    let product = score * factor;
    if product.is_nan() { 0.0 } else { product }
}

/// As in Redis, infinity less infinity is zero.
fn together(one: f64, other: f64, sum: ScoreSum) -> f64 {
    match sum {
        ScoreSum::Sum => {
            let sum = one + other;
            if sum.is_nan() { 0.0 } else { sum }
        }
        ScoreSum::Least => {
            if other < one {
                other
            } else {
                one
            }
        }
        ScoreSum::Greatest => {
            if other > one {
                other
            } else {
                one
            }
        }
    }
}
