//! Consumers that take over entries which are pending with others.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use model::{
    ClaimTime, ClaimedAs, Nanos, Refusal, Reply, StreamClaim, StreamId, StreamReader, StreamReply,
    limits,
};

use super::change::{Room, StreamChange};
use super::entries::ShownEntries;
use super::layout::{Consumer, Pending, consumer_field, entry_field, group_field, pending_field};
use super::reading::delivered_at_once;
use super::{Found, check_name, told};
use crate::keyspace::Keyspace;
use crate::keyspace::collections::{Work, value_of};

/// A claim that is under way.
struct Claiming<'c> {
    claim: &'c StreamClaim,
    found: Found,
    change: StreamChange,
    shown: ShownEntries,
    /// Pending entries that are no more in the stream.
    removed: Vec<StreamId>,
    now: Nanos,
}

/// The outcome of a claim for one entry.
enum Claimed<'c> {
    /// The consumer has it, so.
    Taken(Pending<'c>),
    /// It is no more in the stream, and was pending.
    Removed,
    /// Nothing.
    Left,
    /// The reply cannot show it.
    TooLarge,
}

impl Keyspace {
    fn begin_claim<'c>(
        &mut self,
        claim: &'c StreamClaim,
        work: &mut Work<'_>,
    ) -> Result<Claiming<'c>, Refusal> {
        let found = self.group(&claim.of, work)?;
        check_name(&claim.consumer)?;
        let mut change = self.begin_change(found.stream);
        change.needs(Room::OnDevice);
        let (shown, now) = (ShownEntries::new(work.shown_max), work.store.latest);
        Ok(Claiming { claim, found, change, shown, removed: Vec::new(), now })
    }

    pub(super) fn claim(
        &mut self,
        claim: &StreamClaim,
        ids: &[StreamId],
        claimed: &ClaimedAs,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        if ids.len() > limits::COMMAND_ENTRIES_MAX {
            return Err(Refusal::BatchTooLarge);
        }
        let mut claiming = self.begin_claim(claim, work)?;
        work.store.took_steps(2 * ids.len());
        let Found { stream, mut group } = claiming.found;
        if claimed.last > group.last {
            group.last = claimed.last;
            let field = group_field(&claim.of.group);
            claiming.change.set(stream.number, field, group.to_value());
        }
        // One that is named twice is taken over twice, as in Redis.
        let mut seen = BTreeMap::new();
        for id in ids {
            let before = || self.collections.pending(&group, *id);
            let pending = seen.get(id).copied().unwrap_or_else(before);
            match self.claim_one(&mut claiming, *id, pending, claimed) {
                Claimed::Taken(pending) => drop(seen.insert(*id, Some(pending))),
                Claimed::Removed => drop(seen.insert(*id, None)),
                Claimed::Left => {}
                Claimed::TooLarge => return Err(work.too_much.clone()),
            }
        }
        let entries = self.end_claim(claiming, work)?.into_entries();
        Ok(told(StreamReply::Entries(entries)))
    }

    pub(super) fn claim_next(
        &mut self,
        claim: &StreamClaim,
        from: StreamId,
        max: u64,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let mut claiming = self.begin_claim(claim, work)?;
        let group = claiming.found.group;
        let mut left = max.min(most_claimed(claim));
        let mut looks = left.saturating_mul(LOOKS_PER_ENTRY);
        let (mut next, mut looked) = (None, 0);
        let pending = self.collections.pending_from(&group, from);
        for (id, pending) in pending {
            if left == 0 || looks == 0 {
                next = Some(id);
                break;
            }
            (looks, looked) = (looks - 1, looked + 1);
            let as_usual = ClaimedAs::default();
            match self.claim_one(&mut claiming, id, Some(pending), &as_usual) {
                Claimed::Taken(_) => left -= 1,
                Claimed::Removed => left -= 1,
                Claimed::Left => {}
                Claimed::TooLarge if claiming.shown.len() == 0 => {
                    return Err(work.too_much.clone());
                }
                Claimed::TooLarge => {
                    next = Some(id);
                    break;
                }
            }
        }
        work.store.took_steps(looked);
        let removed = claiming.removed.clone();
        let entries = self.end_claim(claiming, work)?.into_entries();
        Ok(told(StreamReply::Claimed { entries, next, removed }))
    }

    fn claim_one<'c>(
        &self,
        claiming: &mut Claiming<'c>,
        id: StreamId,
        pending: Option<Pending<'_>>,
        claimed: &ClaimedAs,
    ) -> Claimed<'c> {
        let Claiming { claim, found: Found { stream, group }, change, shown, removed, now } =
            claiming;
        let Some(entry) = self.collections.get(stream.number, &entry_field(id)) else {
            if pending.is_none() {
                return Claimed::Left;
            }
            removed.push(id);
            return Claimed::Removed;
        };
        let is_early = pending.is_some_and(|it| now.since(it.delivered) < claim.min_idle);
        if is_early || pending.is_none() && !claimed.also_free {
            return Claimed::Left;
        }
        let fits =
            if claim.only_ids { shown.takes_id(id) } else { shown.takes(id, value_of(&entry)) };
        if !fits {
            return Claimed::TooLarge;
        }
        // One that was free counts as delivered before, as in Redis.
        let before = pending.map_or(1, |pending| pending.count);
        let more = u64::from(!claim.only_ids);
        let count = claimed.count.unwrap_or_else(|| before.saturating_add(more));
        let delivered = match claimed.delivered {
            Some(ClaimTime::Ago(span)) => now.0.checked_sub(span.0).map_or(*now, Nanos),
            Some(ClaimTime::At(at)) => at.min(*now),
            None => *now,
        };
        let pending = Pending { delivered, count, consumer: &claim.consumer };
        change.set(group.number, pending_field(id), pending.to_value());
        Claimed::Taken(pending)
    }

    /// The consumer has asked, and maybe got something.
    fn end_claim(
        &mut self,
        claiming: Claiming<'_>,
        work: &mut Work<'_>,
    ) -> Result<ShownEntries, Refusal> {
        let Claiming { claim, found: Found { group, .. }, mut change, shown, removed, now } =
            claiming;
        // Behind the others, so that they are one record.
        removed.iter().for_each(|id| change.remove(group.number, pending_field(*id)));
        let there = self.collections.consumer(&group, &claim.consumer);
        let active = if shown.len() > 0 { Some(now) } else { there.and_then(|it| it.active) };
        if there.is_none() || shown.len() > 0 {
            let consumer = Consumer { seen: now, active };
            change.set(group.number, consumer_field(&claim.consumer), consumer.to_value());
        }
        self.make(&claim.of.stream, change, work)?;
        Ok(shown)
    }
}

/// How many pending entries one command takes over at most.
pub(crate) fn most_claimed(claim: &StreamClaim) -> u64 {
    let (group, consumer) = (claim.of.group.clone(), claim.consumer.clone());
    delivered_at_once(&StreamReader { group, consumer, acknowledges: true }) as u64
}

/// Pending entries that are looked at for each that may be taken over.
const LOOKS_PER_ENTRY: u64 = 10;
