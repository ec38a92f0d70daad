//! Fields and members by chance. The caller brings the chance: the same number finds the same.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use model::{CollectionKind, MIXED_STEP, QueueName, Refusal, Reply, mixed};

use super::Work;
use super::bounds::{Shown, look_at};
use crate::keyspace::Keyspace;

/// The rule by which fields or members are picked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Picks {
    pub(super) max: u64,
    pub(super) distinct: bool,
    pub(super) take: bool,
    pub(super) seed: u64,
}

impl Keyspace {
    pub(super) fn pick_fields(
        &mut self,
        name: &QueueName,
        kind: CollectionKind,
        picks: Picks,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let there = self.collection(name, kind, work.store)?;
        let Some(there) = there.filter(|_| picks.max > 0) else {
            return Ok(Reply::Entries(alloc::boxed::Box::default()));
        };
        let ranks = picks.ranks(there.count, work)?;
        let mut shown = Shown::of(&there, ranks.len() as u64, work)?;
        for rank in ranks {
            let entry = self.collections.entries(there.number, rank).next();
            let (field, cell) = entry.expect("invariant: it is among those that are there");
            shown.add(field, &cell)?;
        }
        if picks.take {
            let fields: Vec<_> = shown.fields().map(<[u8]>::to_vec).collect();
            self.take_entries(name, there, &fields, work)?;
        }
        Ok(shown.into_reply())
    }
}

impl Picks {
    /// The places of the picked among so many.
    fn ranks(self, count: u64, work: &mut Work<'_>) -> Result<Vec<u64>, Refusal> {
        let mut chance = Chance(self.seed);
        if !self.distinct {
            look_at(self.max, work)?;
            work.store.took_steps(STEPS_PER_PICK * self.max as usize);
            return Ok((0..self.max).map(|_| chance.below(count)).collect());
        }
        let max = self.max.min(count);
        look_at(max, work)?;
        work.store.took_steps(STEPS_PER_PICK * max as usize);
        // Each of the sets of so many is as likely as any other (Floyd).
        let mut picked = BTreeSet::new();
        for last in count - max..count {
            let rank = chance.below(last + 1);
            let is_new = picked.insert(rank);
            if !is_new {
                picked.insert(last);
            }
        }
        debug_assert_eq!(picked.len() as u64, max, "each at most once");
        Ok(picked.into_iter().collect())
    }
}

/// An entry is found by its place.
const STEPS_PER_PICK: usize = 8;

/// Numbers by chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(MIXED_STEP);
        ((u128::from(mixed(self.0)) * u128::from(end)) >> 64) as u64
    }
}
