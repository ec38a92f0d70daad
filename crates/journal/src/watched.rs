//! Which files a running journal counts on, for a look at whether they are still there.

use crate::Journal;
use crate::control::CONTROL_NAME;
use crate::segments::{Segment, Spare};
use crate::snapshot::Slot;

impl<F: Clone> Journal<F> {
    /// Names and handles of files that have to stay where they are: those that are written to next,
    /// and [`WATCHED_AT_ONCE`] of the others, which take turns.
    #[must_use]
    pub fn watched_files(&self, turn: usize) -> Vec<(String, F)> {
        let active = self.segments.active();
        let slots = [Slot::A, Slot::B];
        let slots = slots.map(|slot| (slot.name().to_owned(), self.house.slot(slot).file.clone()));
        let others = self.segments.iter().map(of_segment);
        let others = others.chain(self.segments.iter_spares().map(of_spare));
        let others = others.chain(self.segments.iter_retired().map(of_spare));
        let from = turn % self.segments.count().div_ceil(WATCHED_AT_ONCE) * WATCHED_AT_ONCE;
        let control = (CONTROL_NAME.to_owned(), self.reach.control_file().clone());
        let mut watched = vec![of_segment(active), control];
        watched.extend(slots);
        watched.extend(others.skip(from).take(WATCHED_AT_ONCE));
        watched
    }
}

fn of_segment<F: Clone>(segment: &Segment<F>) -> (String, F) {
    (segment.life.number.file_name(), segment.file.clone())
}

fn of_spare<F: Clone>(spare: &Spare<F>) -> (String, F) {
    (spare.life.number.file_name(), spare.file.clone())
}

/// The most segments that are looked at in one go: there may be thousands.
const WATCHED_AT_ONCE: usize = 64;
