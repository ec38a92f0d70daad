//! The log of a broker, and how much it takes. The amount is asked several times for each command,
//! and is the same until the log is changed: so it is found out once in between.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use journal::{Allowance, Ease, Journal};
use model::{ChainRoom, Durability, LiveRecords, Lsn, Nanos};

/// A journal that remembers its allowance. Mutable access makes it forget, except for the few
/// operations that come with each command and mostly do not change the allowance.
pub(crate) struct Log<F> {
    journal: Journal<F>,
    known: Cell<Option<Known>>,
}

/// The log's allowance, and how far it holds.
#[derive(Clone, Copy)]
struct Known {
    allowance: Allowance,
    ease: Option<Ease>,
}

impl<F: Clone> Log<F> {
    pub(crate) const fn new(journal: Journal<F>) -> Self {
        Self { journal, known: Cell::new(None) }
    }

    /// The log's present allowance.
    pub(crate) fn allowance(&self) -> Allowance {
        if let Some(known) = self.known.get() {
            return known.allowance;
        }
        let allowance = self.journal.allowance();
        self.known.set(Some(Known { allowance, ease: self.journal.ease(&allowance) }));
        allowance
    }

    /// See [`Journal::append`].
    pub(crate) fn append(
        &mut self,
        now: Nanos,
        lsn: Lsn,
        payload: &[u8],
        level: Durability,
        live: LiveRecords,
    ) {
        self.journal.append(now, lsn, payload, level, live);
        let appended = self.journal.appended_bytes();
        self.keep_if(|ease| appended <= ease.appended_bytes);
    }

    /// See [`Journal::grow`].
    pub(crate) fn grow(&mut self, lsn: Lsn, bytes: u64) {
        self.journal.grow(lsn, bytes);
        self.keep_if(|_| true);
    }

    /// See [`Journal::free`].
    pub(crate) fn free(&mut self, lsn: Lsn, bytes: u64) {
        self.journal.free(lsn, bytes);
        self.keep_if(|_| true);
    }

    /// See [`Journal::need_for_snapshot`].
    pub(crate) fn need_for_snapshot(&mut self, bytes: u64) {
        self.journal.need_for_snapshot(bytes);
        self.keep_if(|ease| bytes <= ease.snapshot_bytes);
    }

    /// See [`Journal::want_room`].
    pub(crate) fn want_room(&mut self, wanted: Option<ChainRoom>) {
        if wanted.is_some() || self.journal.is_room_wanted() {
            DerefMut::deref_mut(self).want_room(wanted);
        }
    }

    fn keep_if(&mut self, holds: impl FnOnce(&Ease) -> bool) {
        let known = self.known.get_mut();
        if known.is_some_and(|known| !known.ease.as_ref().is_some_and(holds)) {
            *known = None;
        }
    }

    /// The remembered allowance holds.
    ///
    /// # Panics
    /// If it does not.
    pub(crate) fn check(&self) {
        self.journal.check();
        assert_eq!(self.allowance(), self.journal.allowance(), "nothing was changed unnoticed");
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
        self.known.set(None);
        &mut self.journal
    }
}
