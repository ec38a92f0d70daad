//! Deliveries of a session that went back when their link ended: the peer's dispositions of them
//! come too late.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use model::LinkId;

use crate::connection::limits::TAKEN_BACK_MAX;

/// Runs of neighbours that went back, each with its last one by its first. Those of a link that we
/// ended stay until the peer knows that. Those of links that the peer has detached stay, since it
/// may still settle them (2.7.6).
#[derive(Debug, Default)]
pub(crate) struct ReleasedRanges {
    /// By the link, if we ended it. Runs of one neither meet nor overlap.
    links: BTreeMap<Option<LinkId>, BTreeMap<u64, u64>>,
    /// How many runs there are in all.
    runs: usize,
}

impl ReleasedRanges {
    /// Remembers a delivery that went back with a link. Beyond the limit the two oldest runs of
    /// that link become one. Deliveries between them then count as well if no link has them any
    /// more, so that a transaction is rather rolled back than done in part. The oldest runs, since
    /// deliveries between the latest are yet to be settled.
    pub(crate) fn note(&mut self, link: Option<LinkId>, delivery: u64) {
        let runs = self.links.entry(link).or_default();
        let before = runs.len();
        let run = runs.range(..=delivery).next_back().map(|(first, last)| (*first, *last));
        let (first, last) = run.filter(|run| delivery <= run.1 + 1).unwrap_or((delivery, delivery));
        let behind = runs.remove(&(delivery + 1)).unwrap_or(delivery);
        runs.insert(first, last.max(behind));
        let is_over = self.runs - before + runs.len() > TAKEN_BACK_MAX;
        if is_over
            && runs.len() > 1
            && let Some((first, _)) = runs.pop_first()
            && let Some((_, last)) = runs.pop_first()
        {
            runs.insert(first, last);
        }
        self.runs = self.runs - before + runs.len();
    }

    /// The peer knows that we ended this link: it does not speak of it any more.
    pub(crate) fn forget(&mut self, link: LinkId) {
        let runs = self.links.remove(&Some(link));
        self.runs -= runs.map_or(0, |runs| runs.len());
    }

    /// True if any delivery from `next` to `last` went back and is not in `has` any more.
    pub(crate) fn lost<T>(&self, next: u64, last: u64, has: &BTreeMap<u64, T>) -> bool {
        let mut from = next;
        for (first, last) in self.runs_within(next, last) {
            let first = first.max(from);
            if first > last {
                continue;
            }
            let alive = has.range(first..=last).map(|(delivery, _)| *delivery);
            if !alive.eq(first..=last) {
                return true;
            }
            from = last + 1;
        }
        false
    }

    /// The parts of runs within `next` to `last`, in the order of their beginnings.
    fn runs_within(&self, next: u64, last: u64) -> Vec<(u64, u64)> {
        let of_link = |runs: &BTreeMap<u64, u64>| {
            let begun = runs.range(..=last).rev();
            let within = begun.take_while(|(_, end)| **end >= next);
            within.map(|(first, end)| (*first.max(&next), *end.min(&last))).collect::<Vec<_>>()
        };
        let mut within: Vec<_> = self.links.values().flat_map(of_link).collect();
        within.sort_unstable();
        within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDED: Option<LinkId> = Some(LinkId(1));

    fn note(
        released_ranges: &mut ReleasedRanges,
        link: Option<LinkId>,
        all: impl IntoIterator<Item = u64>,
    ) {
        all.into_iter().for_each(|delivery| released_ranges.note(link, delivery));
        let runs: usize = released_ranges.links.values().map(BTreeMap::len).sum();
        assert_eq!(released_ranges.runs, runs);
    }

    fn runs(released_ranges: &ReleasedRanges, link: Option<LinkId>) -> Vec<(u64, u64)> {
        let runs = released_ranges.links.get(&link).into_iter().flatten();
        runs.map(|(first, last)| (*first, *last)).collect()
    }

    fn lost(released_ranges: &ReleasedRanges, next: u64, last: u64, has: &[u64]) -> bool {
        released_ranges.lost(next, last, &has.iter().map(|delivery| (*delivery, ())).collect())
    }

    #[test]
    fn released_neighbours_join_into_one_run() {
        let mut released_ranges = ReleasedRanges::default();
        note(&mut released_ranges, ENDED, [3, 4, 5, 7, 9, 10]);
        assert_eq!(runs(&released_ranges, ENDED), [(3, 5), (7, 7), (9, 10)]);
        // Another link's deliveries between them come later.
        note(&mut released_ranges, None, [12, 14, 11, 13, 8, 20]);
        assert_eq!(runs(&released_ranges, None), [(8, 8), (11, 14), (20, 20)]);
        released_ranges.forget(LinkId(1));
        assert_eq!((runs(&released_ranges, ENDED), released_ranges.runs), (Vec::new(), 3));
    }

    #[test]
    fn released_runs_over_limit_merge_oldest() {
        let mut released_ranges = ReleasedRanges::default();
        let many = |from: u64| (0..3_000).map(move |n| from + 2 * n);
        note(&mut released_ranges, ENDED, many(0));
        let own = runs(&released_ranges, ENDED);
        assert_eq!(own.len(), TAKEN_BACK_MAX);
        let joined = 2 * (3_000 - TAKEN_BACK_MAX as u64);
        assert_eq!(own[..2], [(0, joined), (joined + 2, joined + 2)]);
        // Other links have one run each, with all between.
        note(&mut released_ranges, Some(LinkId(2)), many(10_000));
        assert_eq!(runs(&released_ranges, Some(LinkId(2))), [(10_000, 15_998)]);
        note(&mut released_ranges, None, many(8_000));
        note(&mut released_ranges, None, many(5_000));
        assert_eq!(runs(&released_ranges, None), [(5_000, 13_998)]);
        assert_eq!(released_ranges.runs, TAKEN_BACK_MAX + 2);
    }

    #[test]
    fn released_ranges_know_lost_deliveries() {
        let mut released_ranges = ReleasedRanges::default();
        note(&mut released_ranges, ENDED, [3, 4]);
        note(&mut released_ranges, None, [6]);
        assert!(!lost(&released_ranges, 0, 2, &[]) && !lost(&released_ranges, 5, 5, &[]));
        assert!(lost(&released_ranges, 4, 4, &[]) && lost(&released_ranges, 5, 7, &[5, 7]));
        assert!(lost(&released_ranges, 0, 9, &[0, 1, 2, 5, 7, 8, 9]));
        // Two links, each with one run for all, of which some is there still.
        note(&mut released_ranges, ENDED, (0..3_000).map(|n| 10 + 2 * n));
        note(&mut released_ranges, Some(LinkId(2)), [100, 104, 111]);
        assert_eq!(runs(&released_ranges, Some(LinkId(2))), [(100, 111)]);
        let there: Vec<u64> = (101..=111).filter(|n| ![104, 106].contains(n)).collect();
        assert!(
            !lost(&released_ranges, 101, 103, &there) && !lost(&released_ranges, 107, 111, &there)
        );
        assert!(
            lost(&released_ranges, 101, 104, &there) && lost(&released_ranges, 105, 107, &there)
        );
    }
}
