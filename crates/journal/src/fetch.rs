//! Reading frames back while the log goes on.

use model::Lsn;

use crate::Journal;

impl<F: Clone> Journal<F> {
    /// Somebody is going to read frame `lsn`: whatever ceases to matter in its segment, it is
    /// neither retired nor used again until [`Journal::unpin`].
    ///
    /// # Panics
    /// When the log does not hold it.
    pub fn pin(&mut self, lsn: Lsn) {
        assert!(lsn <= self.last(), "what is pinned was appended");
        self.segments.pin(lsn);
    }

    /// It was read, or nobody wants it any more.
    ///
    /// # Panics
    /// When it was not pinned.
    pub fn unpin(&mut self, lsn: Lsn) {
        if self.segments.unpin(lsn) {
            // The last snapshot may have let go of it already.
            self.segments.retire(self.house.snapshot_begin(), self.durable().synced);
        }
    }
}
