//! Commands on the members of sorted sets and their scores.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{
    CollectionKind, Direction, Entries, Presence, QueueName, Refusal, Reply, Score, ScoreRule,
    ScoredPopped,
};

use super::bounds::Shown;
use super::changing::Pair;
use super::{Collection, Pop, Work, score_of};
use crate::collections::packed_tree::Cell;
use crate::keyspace::{Keyspace, NamePlace};

const KIND: CollectionKind = CollectionKind::SortedSet;

/// The scores that a command sets, and what it says of them.
struct Scored<'m> {
    /// Members with their new scores, as bytes.
    set: Vec<(&'m [u8], [u8; 8])>,
    /// Members whose score becomes another.
    changed: u64,
    /// Of each member, its score now; nothing if that was not set.
    told: Vec<Option<Score>>,
}

impl Keyspace {
    pub(super) fn set_scores(
        &mut self,
        name: &QueueName,
        members: &[(Score, Arc<[u8]>)],
        rule: ScoreRule,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let (at, there) = self.find_collection(name, KIND, work.store)?;
        work.store.took_steps(members.len());
        let at = (Some(at), there);
        let (new, scored) = if let [(score, member)] = members {
            self.set_one_score(name, at, (*score, member), rule, work)?
        } else {
            let scored = self.scored_by(there, members, rule)?;
            let pairs = scored.set.iter().map(|(it, score)| Pair::new(it, Cell::inline(score)));
            let pairs: Vec<_> = pairs.collect();
            let is_nothing = pairs.is_empty();
            let new = if is_nothing { 0 } else { self.set_entries(name, KIND, at, &pairs, work)? };
            (new, scored)
        };
        Ok(match rule {
            ScoreRule { adds: true, .. } => Reply::Scores(scored.told),
            ScoreRule { counts_changed: true, .. } => Reply::Count(new + scored.changed),
            _ => Reply::Count(new),
        })
    }

    /// Sets the score of one member. The number of new ones, and what the command says.
    fn set_one_score<'m>(
        &mut self,
        name: &QueueName,
        (at, there): (Option<NamePlace>, Option<Collection>),
        (score, member): (Score, &'m [u8]),
        rule: ScoreRule,
        work: &mut Work<'_>,
    ) -> Result<(u64, Scored<'m>), Refusal> {
        let found = there.map(|there| self.collections.find(there.number, member));
        let (place, stored) = found.map_or((None, None), |(place, it)| (Some(place), it));
        let before = stored.map(score_of);
        let score = score_after(before, score, rule)?;
        let told = if rule.adds { [score].into() } else { Vec::new() };
        let mut scored = Scored { set: Vec::new(), changed: 0, told };
        let new_score = score.filter(|score| is_other(before, *score));
        let Some(score) = new_score else { return Ok((0, scored)) };
        scored.changed = u64::from(before.is_some());
        let score = score.get().to_be_bytes();
        let pair = Pair::new(member, Cell::inline(&score)).at(place);
        Ok((self.set_entries(name, KIND, (at, there), &[pair], work)?, scored))
    }

    /// The scores that the rule lets be set. Of a member that comes twice the second score meets
    /// the first.
    fn scored_by<'m>(
        &self,
        there: Option<Collection>,
        members: &'m [(Score, Arc<[u8]>)],
        rule: ScoreRule,
    ) -> Result<Scored<'m>, Refusal> {
        let mut scored = Scored { set: Vec::new(), changed: 0, told: Vec::new() };
        let mut set = BTreeMap::<&[u8], Score>::new();
        for (score, member) in members {
            let stored = || self.collections.score(there?.number, member);
            let before = set.get(&**member).copied().or_else(stored);
            let score = score_after(before, *score, rule)?;
            scored.told.push(score);
            let Some(score) = score.filter(|score| is_other(before, *score)) else {
                continue;
            };
            scored.changed += u64::from(before.is_some());
            set.insert(member, score);
        }
        let bytes = |score: Score| score.get().to_be_bytes();
        scored.set = set.into_iter().map(|(member, score)| (member, bytes(score))).collect();
        Ok(scored)
    }

    pub(super) fn rank_of(
        &mut self,
        name: &QueueName,
        member: &[u8],
        reverse: bool,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let Some(there) = self.collection(name, KIND, work.store)? else {
            return Ok(Reply::NotFound);
        };
        let Some(score) = self.collections.score(there.number, member) else {
            return Ok(Reply::NotFound);
        };
        let place = [&score.order()[..], member].concat();
        let rank = self.collections.scored_rank(there.number, &place);
        let before = if reverse { there.count - 1 - rank } else { rank };
        Ok(Reply::Rank { before, score })
    }

    /// Takes the outermost members of the first of these that has any; nothing if none has.
    pub(crate) fn pop_scored(
        &mut self,
        names: &[QueueName],
        pop: Pop,
        work: &mut Work<'_>,
    ) -> Result<Option<ScoredPopped>, Refusal> {
        Self::may_wait_for(names.len())?;
        work.store.took_steps(names.len());
        for name in names {
            let Some(there) = self.collection(name, KIND, work.store)? else { continue };
            let entries = self.take_outermost(name, there, pop, work)?;
            return Ok(Some(ScoredPopped { name: name.clone(), entries }));
        }
        Ok(None)
    }

    fn take_outermost(
        &mut self,
        name: &QueueName,
        there: Collection,
        Pop { highest, max }: Pop,
        work: &mut Work<'_>,
    ) -> Result<Entries, Refusal> {
        let count = max.min(there.count);
        let from = if highest { there.count - count } else { 0 };
        let mut shown = Shown::of(&there, count, work)?;
        let all: Vec<_> =
            self.collections.scored(there.number, from).take(count as usize).collect();
        let order: Box<dyn Iterator<Item = _>> =
            if highest { Box::new(all.into_iter().rev()) } else { Box::new(all.into_iter()) };
        for (member, score) in order {
            shown.add_scored(member, score)?;
        }
        let members: Vec<_> = shown.fields().map(<[u8]>::to_vec).collect();
        self.take_entries(name, there, &members, work)?;
        Ok(shown.into_entries())
    }

    /// Takes the outermost members for a command that does not wait.
    pub(super) fn pop_scored_now(
        &mut self,
        names: &[QueueName],
        pop: Pop,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let popped = self.pop_scored(names, pop, work)?;
        let popped = popped.map(|popped| Reply::ScoredPopped(Box::new(popped)));
        Ok(popped.unwrap_or(Reply::TimedOut { link: None }))
    }
}

/// True if a score is not the one before.
fn is_other(before: Option<Score>, score: Score) -> bool {
    before.is_none_or(|it| it.get() != score.get())
}

/// The score that a member has behind a command; nothing if the rule forbids to set it.
fn score_after(
    before: Option<Score>,
    score: Score,
    rule: ScoreRule,
) -> Result<Option<Score>, Refusal> {
    let Some(before) = before else {
        return Ok(Some(score).filter(|_| rule.presence != Presence::There));
    };
    if rule.presence == Presence::New {
        return Ok(None);
    }
    let score = if rule.adds {
        Score::new(before.get() + score.get()).ok_or(Refusal::ScoreNotANumber)?
    } else {
        score
    };
    let allowed = match rule.direction {
        None => true,
        Some(Direction::Up) => score.get() > before.get(),
        Some(Direction::Down) => score.get() < before.get(),
    };
    Ok(Some(score).filter(|_| allowed))
}
