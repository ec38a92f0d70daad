//! The order in which lists serve waiting clients: the order in which they got elements.

use std::rc::Rc;

/// The lists that got their first element since the last command, and the one that has its turn.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    /// Had no turn since, the first to get something first.
    filled: Vec<Rc<[u8]>>,
    serving: Option<Rc<[u8]>>,
    /// Elements came by more than one command, and the order of serving is not promised.
    in_any_order: bool,
}

impl Turns {
    /// A list has its first element. One that has not had its turn keeps it.
    pub(super) fn fill(&mut self, list: &Rc<[u8]>) {
        if !self.filled.contains(list) {
            self.filled.push(Rc::clone(list));
        }
    }

    /// Smaller for lists with an earlier turn.
    pub(super) fn place_of(&self, list: &Rc<[u8]>) -> usize {
        if self.serving.as_ref() == Some(list) {
            return 0;
        }
        let place = self.filled.iter().position(|other| other == list);
        place.map_or(usize::MAX, |place| 1 + place)
    }

    pub(super) const fn lose_order(&mut self) {
        self.in_any_order = true;
    }

    pub(super) const fn are_in_any_order(&self) -> bool {
        self.in_any_order
    }

    /// A list serves a waiting client; `wanted` tells which others could have.
    ///
    /// # Panics
    /// When it was another's turn.
    pub(super) fn take(&mut self, list: &Rc<[u8]>, wanted: impl Fn(&Rc<[u8]>) -> bool) {
        if self.in_any_order || self.serving.as_ref() == Some(list) {
            return;
        }
        let place = self.filled.iter().position(|other| other == list);
        let place = place.unwrap_or_else(|| panic!("{list:?} got nothing and serves"));
        let passed: Vec<_> = self.filled.drain(..=place).take(place).collect();
        let passed = self.serving.replace(Rc::clone(list)).into_iter().chain(passed);
        for other in passed {
            assert!(!wanted(&other), "{other:?} got something before {list:?} and serves first");
        }
    }
}
