//! The journal, with its capacity remembered until the next access that may change it.
//!
//! A turn asks for the capacity several times a command: before it is read, before it is taken and
//! before it is handled. The journal changes at most once between.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use journal::Journal;
use model::{Capacity, ChainRoom};

/// A [`Journal`]. Every change of it goes through [`DerefMut`], which forgets the capacity.
pub(crate) struct Log<F> {
    journal: Journal<F>,
    capacity: Cell<Option<Capacity>>,
    /// See [`Log::need_for_snapshot`].
    snapshot_bytes: Option<u64>,
    /// A chain wants room.
    is_room_wanted: bool,
}

impl<F> Log<F> {
    pub(crate) const fn new(journal: Journal<F>) -> Self {
        Self { journal, capacity: Cell::new(None), snapshot_bytes: None, is_room_wanted: false }
    }
}

impl<F: Clone> Log<F> {
    /// See [`Journal::capacity`].
    pub(crate) fn capacity(&self) -> Capacity {
        self.capacity.get().unwrap_or_else(|| {
            let capacity = self.journal.capacity();
            self.capacity.set(Some(capacity));
            capacity
        })
    }

    /// See [`Journal::stalled`].
    pub(crate) fn stalled(&self) -> bool {
        self.capacity().is_behind && self.journal.stalled()
    }

    /// See [`Journal::need_for_snapshot`]. The same need again is no change.
    pub(crate) fn need_for_snapshot(&mut self, bytes: u64) {
        if self.snapshot_bytes != Some(bytes) {
            self.snapshot_bytes = Some(bytes);
            (**self).need_for_snapshot(bytes);
        }
    }

    /// See [`Journal::want_room`]. No want again is no change.
    pub(crate) fn want_room(&mut self, wanted: Option<ChainRoom>) {
        if self.is_room_wanted || wanted.is_some() {
            self.is_room_wanted = wanted.is_some();
            (**self).want_room(wanted);
        }
    }

    /// Every invariant of the journal, and that nothing changed it unseen.
    ///
    /// # Panics
    /// When one is broken.
    pub(crate) fn check(&self) {
        self.journal.check();
        let now = self.journal.capacity();
        assert_eq!(self.capacity(), now, "the capacity of a log changes with the log only");
    }
}

impl<F> Deref for Log<F> {
    type Target = Journal<F>;

    fn deref(&self) -> &Journal<F> {
        &self.journal
    }
}

impl<F> DerefMut for Log<F> {
    fn deref_mut(&mut self) -> &mut Journal<F> {
        self.capacity.set(None);
        &mut self.journal
    }
}
