//! The room that an operator, and the system by its bound of open files, grant the log: at its end
//! it is as if the device was full.
//!
//! Puts are refused then, settling goes on in the room set aside, and both ask again for more room
//! a little later. No other part of the journal has to know why there is none.

use crate::Journal;
use crate::chore::Work;

impl<F: Clone> Journal<F> {
    /// True if all segments and snapshots would take more than they may with that done.
    pub(crate) fn exceeds_limit(&self, work: &Work<F>) -> bool {
        let grows = self.growth(work);
        let limit = self.options.disk_bytes_max;
        let is_new = matches!(work, Work::Prepare { old: None, .. });
        is_new && self.options.segments_max.is_some_and(|most| self.segments.count() >= most)
            || limit.is_some_and(|most| grows > 0 && self.disk_bytes() + grows > most)
    }

    /// True if they take more already: the limit is lower than it was.
    pub(crate) fn is_over_limit(&self) -> bool {
        let options = &self.options;
        options.disk_bytes_max.is_some_and(|most| self.disk_bytes() > most)
            || options.segments_max.is_some_and(|most| self.segments.count() > most)
    }

    /// Bytes of the files of all segments and snapshots.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.segments.file_bytes() + self.house.slot_bytes()
    }

    /// Bytes by which files become longer.
    fn growth(&self, work: &Work<F>) -> u64 {
        match work {
            Work::Prepare { old: None, bytes, .. } => *bytes,
            Work::Extend { number, from, to, .. } => {
                to.saturating_sub(self.segments.file_bytes_of(*number).unwrap_or(*from))
            }
            Work::GrowSlot { from, to, .. } => to - from,
            Work::WriteChunk { offset, bytes, .. } => {
                let file = self.house.slot(self.house.next_slot());
                (offset + bytes.len() as u64).saturating_sub(file.bytes)
            }
            Work::Prepare { .. }
            | Work::Seal { .. }
            | Work::Read { .. }
            | Work::Remove { .. }
            | Work::Note(_)
            | Work::Label { .. } => 0,
        }
    }
}
