//! Which bodies that left memory a command looks into: it begins when they are here.
//!
//! A command that compares elements looks at them from one end of a list, and no further than it
//! may. Elements that a batch moves about may come from either end.

use alloc::collections::BTreeSet;

use model::{Command, End, ListCommand, MessageId, QueueName, limits};

use crate::admission::{Admission, WaitListId};
use crate::bodies::{Bodies, Looker};
use crate::delivery::matching::parse_selector;
use crate::delivery::paging::PageQuery;
use crate::demand::{Changes, Comparison, Demand, Looks, Page, Stores};
use crate::store::MessageStore;

/// The bodies that a command lacks.
#[derive(Debug, Default)]
pub(crate) struct Needed {
    /// The names of their bodies.
    pub(crate) ids: BTreeSet<MessageId>,
    /// How many messages were looked at to know.
    pub(crate) looked: usize,
}

impl Bodies {
    pub(crate) fn add_needed_by_list(
        &self,
        demand: &Demand<'_>,
        needed: &mut Needed,
        store: &MessageStore,
    ) {
        if let Some(Comparison { list, element, from, scan_max }) = demand.looks.comparison() {
            let scan_max = scan_max.and_then(|max| usize::try_from(max).ok());
            let scan_max =
                scan_max.map_or(limits::LIST_SCAN_MAX, |max| max.min(limits::LIST_SCAN_MAX));
            self.add_paged_out_elements(list, (from, scan_max), element.len(), needed, store);
        }
        if let Some((from, end)) = store.forsaken_by(demand) {
            self.add_paged_out_elements(from, (end, 1), 0, needed, store);
        }
    }

    pub(crate) fn add_both_ends(
        &self,
        list: &QueueName,
        count: usize,
        bytes: usize,
        needed: &mut Needed,
        store: &MessageStore,
    ) {
        for end in [End::Head, End::Tail] {
            self.add_paged_out_elements(list, (end, count), bytes, needed, store);
        }
    }

    /// Adds elements from an end on that are away and have at least so many bytes; looks at `count`
    /// elements.
    fn add_paged_out_elements(
        &self,
        list: &QueueName,
        (end, count): (End, usize),
        bytes: usize,
        needed: &mut Needed,
        store: &MessageStore,
    ) {
        let Some(slot) = store.queues.find(list.as_str()) else { return };
        for id in store.elements(slot, end).take(count) {
            needed.looked += 1;
            let message = store.message(id);
            if self.here(message).is_none() && message.body().len() >= bytes {
                needed.ids.insert(store.body_name(id));
            }
        }
    }

    pub(crate) fn add_needed_by_page(
        &self,
        page: Page<'_>,
        needed: &mut Needed,
        store: &MessageStore,
    ) {
        let Page { queue, state, held, selector, message, after } = page;
        let Ok(selector) = parse_selector(selector) else { return };
        let lacked = match message {
            Some(id) => store.find(id).filter(|it| self.here(it).is_none()).map(|_| id),
            None => store.queues.find(queue.as_str()).and_then(|queue| {
                let selector = Some(&selector);
                let sought = PageQuery { queue, state, held, selector, after, max: 1 };
                self.stopped_at_once(&sought, store)
            }),
        };
        needed.ids.extend(lacked.map(|id| store.body_name(id)));
    }

    pub(crate) fn add_needed_by_one(
        &self,
        demand: &Demand<'_>,
        needed: &mut Needed,
        store: &MessageStore,
    ) {
        self.add_needed_by_list(demand, needed, store);
        if let Looks::ForMatch(page) = demand.looks {
            self.add_needed_by_page(page, needed, store);
        }
    }

    /// A later command may look into a message that an earlier one moves into a list. A command may
    /// also find the message behind one that another takes away.
    pub(crate) fn add_needed_by_batch(
        &self,
        commands: &[Command],
        needed: &mut Needed,
        store: &MessageStore,
    ) {
        let demands = || commands.iter().map(Demand::of);
        demands().for_each(|demand| self.add_needed_by_one(&demand, needed, store));
        let compared = || demands().filter_map(|demand| demand.looks.comparison());
        let moved_from = demands().filter_map(|demand| demand.changes.moved_from());
        let moved_from: BTreeSet<_> = moved_from.collect();
        if let Some(shortest) = compared().map(|it| it.element.len()).min() {
            let all = compared().map(|it| it.list).chain(moved_from.iter().copied());
            for name in all.collect::<BTreeSet<_>>() {
                let most = limits::LIST_SCAN_MAX;
                self.add_both_ends(name, most, shortest, needed, store);
            }
        }
        if demands().any(|demand| store.forsaken_by(&demand).is_some()) {
            let taken =
                demands().map(|demand| demand.changes.taken()).fold(0, usize::saturating_add);
            for name in moved_from {
                let most = taken.min(limits::LIST_SCAN_MAX);
                self.add_both_ends(name, most, 0, needed, store);
            }
        }
    }

    /// The bodies that a command lacks to be done and answered at once, in a script.
    pub(crate) fn lacked_in_script(&self, command: &Command, store: &MessageStore) -> Needed {
        let mut needed = self.needed_by(command, store);
        let Command::List(command) = command else { return needed };
        let most = limits::LIST_SCAN_MAX;
        let count = |max: u64| usize::try_from(max).unwrap_or(most).min(most);
        let mut add = |list: &QueueName, end: (End, usize)| {
            self.add_paged_out_elements(list, end, 0, &mut needed, store);
        };
        match command {
            ListCommand::Pop { queue, end, max } => add(queue, (*end, count(*max))),
            ListCommand::PopFirst { queues, end, max, .. } => {
                queues.iter().for_each(|queue| add(queue, (*end, count(*max))));
            }
            ListCommand::Move { from, from_end, .. } => add(from, (*from_end, 1)),
            ListCommand::Range { queue, .. } => {
                [End::Head, End::Tail].into_iter().for_each(|end| add(queue, (end, most)));
            }
            _ => {}
        }
        needed
    }

    /// The bodies that a command lacks before it can be done.
    pub(crate) fn needed_by(&self, command: &Command, store: &MessageStore) -> Needed {
        let mut needed = Needed::default();
        if self.has_paged_out() {
            match Demand::of(command) {
                Demand { stores: Stores::Batch(commands), .. } => {
                    self.add_needed_by_batch(commands, &mut needed, store);
                }
                demand => self.add_needed_by_one(&demand, &mut needed, store),
            }
        }
        needed
    }
}

impl MessageStore {
    /// The end of a list from which the command moves an element to a queue that journals nothing.
    /// The log lets go of the body, so the body has to be in memory.
    pub(crate) fn forsaken_by<'c>(&self, demand: &Demand<'c>) -> Option<(&'c QueueName, End)> {
        let Changes::Moved { from, from_end, to, .. } = demand.changes else { return None };
        let to = self.queues.find(to.as_str())?;
        self.queues.at(to).is_memory_only().then_some((from, from_end))
    }
}

impl Admission {
    /// The bodies that the first send waiting for a place in a queue lacks.
    pub(crate) fn needed_by_line(
        &self,
        of: WaitListId,
        bodies: &Bodies,
        store: &MessageStore,
    ) -> Needed {
        let first = self.first_blocked(of, store);
        first.map_or_else(Needed::default, |first| bodies.needed_by(&first.command, store))
    }

    /// True if the first command of a line waits for bodies now.
    pub(crate) fn is_line_awaiting(
        &mut self,
        of: WaitListId,
        bodies: &mut Bodies,
        store: &mut MessageStore,
    ) -> bool {
        let Needed { ids, looked } = self.needed_by_line(of, bodies, store);
        store.took_steps(looked);
        let awaits = !ids.is_empty();
        if awaits {
            self.line_mut(of, store).set_looks(true);
            bodies.wait_for_turn(Looker::WaitList(of), ids, store);
        }
        awaits
    }
}
