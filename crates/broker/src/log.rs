//! The log of a broker, and how much it takes. That is asked several times for each command, and
//! is the same until the log is changed: so it is found out once in between.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use journal::{Allowance, Journal};

/// A journal that remembers what it takes. Whoever may change it makes it forget.
pub(crate) struct Log<F> {
    journal: Journal<F>,
    allowance: Cell<Option<Allowance>>,
}

impl<F: Clone> Log<F> {
    pub(crate) const fn new(journal: Journal<F>) -> Self {
        Self { journal, allowance: Cell::new(None) }
    }

    /// What it takes now.
    pub(crate) fn allowance(&self) -> Allowance {
        let known = self.allowance.get().unwrap_or_else(|| self.journal.allowance());
        self.allowance.set(Some(known));
        known
    }

    /// What is remembered holds.
    ///
    /// # Panics
    /// When it does not.
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
        self.allowance.set(None);
        &mut self.journal
    }
}
