//! The history of keys, and which part of it a crash may take away.
//!
//! Each step holds the keys that a recovery would show if the step were the last. After a crash it
//! must show one of them, whole. It must not show one before the last that a client was told of and
//! that the fall spares.

use std::collections::BTreeMap;
use std::rc::Rc;

use model::{Durability, Nanos, Persistence, StorePolicy};

use crate::Fall;
use crate::keyspace::{KeySnapshot, Picture, text};

#[derive(Clone, Debug)]
pub(super) struct Chronicle {
    policy: StorePolicy,
    lag: Nanos,
    steps: Vec<Rc<Picture>>,
    /// By key, the number of steps up to the last that changed it.
    changed: BTreeMap<Rc<str>, usize>,
    /// How many steps clients were told of, and when.
    told: Vec<(usize, Nanos)>,
}

impl Chronicle {
    pub(super) const fn new(policy: StorePolicy, lag: Nanos) -> Self {
        Self { policy, lag, steps: Vec::new(), changed: BTreeMap::new(), told: Vec::new() }
    }

    /// How many steps there are.
    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// A step left this. False: nothing changed.
    pub(super) fn push(&mut self, picture: Picture) -> bool {
        let names = self.after(self.len()).differences(&picture);
        if names.is_empty() {
            return false;
        }
        self.steps.push(Rc::new(picture));
        for name in names {
            self.changed.insert(name, self.steps.len());
        }
        true
    }

    /// How many steps there were when one of these keys changed for the last time.
    pub(super) fn last_change(&self, keys: &[Rc<[u8]>]) -> usize {
        let changed = keys.iter().filter_map(|key| self.changed.get(text(key)));
        changed.copied().max().unwrap_or(0)
    }

    pub(super) fn told(&mut self, now: Nanos, needs: usize) {
        if needs > 0 {
            self.told.push((needs, now));
        }
    }

    /// The process fell at `fell`, and a new one shows this: forgets the steps that are gone.
    ///
    /// # Panics
    /// When no step left that, or none that had to survive.
    pub(super) fn recover(
        &mut self,
        fall: Fall,
        fell: Nanos,
        now: Nanos,
        found: &Picture,
    ) -> Picture {
        let spared = self.told.iter().filter(|(_, told)| self.spares(fall, *told, fell));
        let floor = spared.map(|(needs, _)| *needs).max().unwrap_or(0);
        let is_found = |steps: &usize| self.after(*steps).at(now) == found.at(now);
        // Of several with the same outcome the first: steps behind it may be lost.
        let Some(left) = (floor..=self.last()).find(is_found) else {
            panic!("{}", self.complaint(floor, fall, now, found));
        };
        let picture = self.after(left);
        self.steps.truncate(left);
        self.changed.values_mut().for_each(|changed| *changed = left.min(*changed));
        self.told.iter_mut().for_each(|(needs, _)| *needs = left.min(*needs));
        picture
    }

    /// How many steps a recovery may show at most.
    fn last(&self) -> usize {
        if self.policy == StorePolicy::Memory { 0 } else { self.len() }
    }

    /// The keys after so many steps.
    fn after(&self, steps: usize) -> Picture {
        let last = steps.checked_sub(1).and_then(|last| self.steps.get(last));
        last.map(|picture| Picture::clone(picture)).unwrap_or_default()
    }

    /// True if a step that a client was told of at `told` survives.
    fn spares(&self, fall: Fall, told: Nanos, fell: Nanos) -> bool {
        match (self.policy.durability(Persistence::Persistent), fall, self.policy) {
            (Durability::None, ..) => false,
            (Durability::Synced, ..) | (Durability::Written, Fall::Process, _) => true,
            (Durability::Written, Fall::Power, StorePolicy::Periodic(period)) => {
                told + period + self.lag < fell
            }
            (Durability::Written, Fall::Power, _) => false,
        }
    }

    fn complaint(&self, floor: usize, fall: Fall, now: Nanos, found: &Picture) -> String {
        let found = found.at(now);
        let differences = |steps: usize| self.after(steps).at(now).differences(&found);
        let nearest = (floor..=self.last()).min_by_key(|steps| differences(*steps).len());
        let nearest = nearest.unwrap_or(floor);
        let shorter = (0..floor).rev().find(|steps| differences(*steps).is_empty());
        let mut text = format!(
            "after {fall:?} no prefix of {} steps fits that keeps the first {floor}; {}",
            self.len(),
            shorter.map_or("nor a shorter one".to_owned(), |steps| format!("{steps} would fit")),
        );
        for name in differences(nearest).iter().take(3) {
            let expected = self.after(nearest);
            let (expected, found) = (expected.0.get(name), found.0.get(name));
            let [expected, found] = [expected, found].map(|shown| shown.map(KeySnapshot::summary));
            text += &format!("\n  {name}: expected {expected:?}, found {found:?}");
        }
        text
    }
}
