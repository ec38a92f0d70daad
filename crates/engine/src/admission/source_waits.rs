//! Waiting sends with a need that depends on the elements of a list. A move takes the element at an
//! end of its source; a push to an existing list needs that list.
//!
//! When that list changes, such a send may need less than it did, or nothing. So the change is
//! noted, and a timer looks again at the lines in which such a send is first. Each step looks at
//! some, however many there are.

use alloc::collections::{BTreeMap, BTreeSet};

use model::{Command, QueueName, limits};

use crate::admission::{Admission, Look, SourceWaits, WaitListId};
use crate::demand::{Changes, Demand, ElementRule, Stores};
use crate::ids::QueueSlot;
use crate::store::MessageStore;
use crate::store::timers::Timer;

impl SourceWaits {
    pub(crate) const EMPTY: Self =
        Self { tickets: BTreeMap::new(), changed: BTreeMap::new(), due: None };

    /// True if a send that waits depends on any list.
    pub(crate) fn is_empty(&self) -> bool {
        self.tickets.is_empty()
    }

    pub(crate) fn insert(&mut self, command: &Command, ticket: u64) {
        if let Some(name) = source_of(command) {
            self.tickets.entry(name.clone()).or_default().insert(ticket);
        }
    }

    pub(crate) fn remove(&mut self, command: &Command, ticket: u64) {
        let Some(name) = source_of(command) else { return };
        let Some(tickets) = self.tickets.get_mut(name) else { return };
        tickets.remove(&ticket);
        if tickets.is_empty() {
            self.tickets.remove(name);
            self.changed.remove(name);
        }
    }

    /// True if the sends of some list are still to be looked at.
    pub(crate) fn is_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// The next sends to look at.
    fn take_next(&mut self) -> BTreeSet<u64> {
        let Some(mut entry) = self.changed.first_entry() else { return BTreeSet::new() };
        let all = self.tickets.get(entry.key());
        let Look { next, again } = *entry.get();
        let mut rest = all.into_iter().flat_map(|all| all.range(next..));
        let taken = rest.by_ref().take(limits::SCAN_MESSAGES_MAX).copied().collect();
        match rest.next() {
            Some(next) => *entry.get_mut() = Look { next: *next, again },
            None if again => *entry.get_mut() = Look::default(),
            None => drop(entry.remove()),
        }
        taken
    }
}

impl MessageStore {
    /// True if a send that waits depends on the elements of a list.
    #[inline]
    pub(crate) fn depends_on_lists(&self) -> bool {
        !self.admission.sources.is_empty()
    }

    /// The ready messages of a queue have changed, and waiting sends may depend on them.
    pub(crate) fn source_changed(&mut self, slot: QueueSlot) {
        let queue = self.queues.at(slot);
        let waits = &mut self.admission.sources;
        if !queue.is_named() || !waits.tickets.contains_key(&queue.name) {
            return;
        }
        match waits.changed.get_mut(&queue.name) {
            Some(look) => look.again = true,
            None => drop(waits.changed.insert(queue.name.clone(), Look::default())),
        }
        self.set_sources_due();
    }

    /// Keeps the timer set as long as something is to be looked at.
    pub(crate) fn set_sources_due(&mut self) {
        let now = self.latest;
        let waits = &mut self.admission.sources;
        let due = waits.is_changed().then(|| waits.due.unwrap_or(now));
        let before = core::mem::replace(&mut waits.due, due);
        self.timers.change(Timer::Sources, before, due);
    }
}

impl Admission {
    /// By timer, looks again at the lines in which the first send depends on the first changed
    /// list.
    pub(crate) fn look_at_sources(&mut self, store: &mut MessageStore) {
        let tickets = store.admission.sources.take_next();
        store.took_steps(tickets.len());
        for ticket in tickets {
            let at = self.blocked_sends.sends.get(&ticket).map(|blocked| blocked.at);
            let is_first = |at: &WaitListId| self.line(*at, store).tickets.first() == Some(&ticket);
            if let Some(at) = at.filter(is_first) {
                self.may_go_on(at, store);
            }
        }
        store.set_sources_due();
    }
}

/// The list that decides which messages a command stores.
fn source_of(command: &Command) -> Option<&QueueName> {
    let Demand { stores, changes, .. } = Demand::of(command);
    match (stores, changes) {
        (_, Changes::Moved { from, .. }) => Some(from),
        (Stores::Elements { queue, rule: ElementRule::OnlyExisting, .. }, _) => Some(queue),
        _ => None,
    }
}
