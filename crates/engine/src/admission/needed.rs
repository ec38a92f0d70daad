//! Which bodies that left memory a command looks into: it begins when they are here.
//!
//! A command that compares elements looks at them from one end of a list, and no further than it
//! may. Elements that a batch moves about may come from either end.

use alloc::collections::BTreeSet;

use model::{End, MessageId, QueueName, limits};

use crate::bodies::Bodies;
use crate::demand::{Changes, Comparison, Demand};
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
