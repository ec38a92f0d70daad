//! Which bodies that left memory a command looks into: it begins when they are here.
//!
//! A command that compares elements looks at them from one end of a list, and no further than it
//! may. Elements that a batch moves about may come from either end.

use alloc::collections::BTreeSet;

use model::{End, ListCommand, MessageId, QueueName, limits};

use crate::bodies::Bodies;
use crate::store::MessageStore;

/// The bodies that a command lacks.
#[derive(Debug, Default)]
pub(crate) struct Needed {
    /// The names of their bodies.
    pub(crate) ids: BTreeSet<MessageId>,
    /// How many messages were looked at to know.
    pub(crate) looked: usize,
}

/// Elements of a list that a command holds against one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison<'c> {
    pub(crate) list: &'c QueueName,
    pub(crate) element: &'c [u8],
    from: End,
    scan_max: usize,
}

impl<'c> Comparison<'c> {
    pub(crate) fn of(command: &'c ListCommand) -> Option<Self> {
        let (list, element, from, scan_max) = match command {
            ListCommand::Insert { queue, pivot: element, origin: from, .. }
            | ListCommand::Remove { queue, element, origin: from, .. } => {
                (queue, element, *from, None)
            }
            ListCommand::Locate { queue, element, from, scan_max, .. } => {
                (queue, element, *from, *scan_max)
            }
            _ => return None,
        };
        let scan_max = scan_max.and_then(|max| usize::try_from(max).ok());
        let scan_max = scan_max.unwrap_or(usize::MAX).min(limits::LIST_SCAN_MAX);
        Some(Self { list, element, from, scan_max })
    }
}

impl Bodies {
    pub(crate) fn add_needed_by_list(
        &self,
        command: &ListCommand,
        needed: &mut Needed,
        store: &MessageStore,
    ) {
        if let Some(compared) = Comparison::of(command) {
            let Comparison { list, element, from, scan_max } = compared;
            self.add_paged_out_elements(list, (from, scan_max), element.len(), needed, store);
        }
        if let Some((from, end)) = store.forsaken_by(command) {
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
            if self.sharing.here(message).is_none() && message.body.len() >= bytes {
                needed.ids.insert(store.body_name(id));
            }
        }
    }
}

impl MessageStore {
    /// The end of a list from which the command moves an element to a queue that journals nothing.
    /// The log lets go of the body, so the body has to be in memory.
    pub(crate) fn forsaken_by<'c>(&self, command: &'c ListCommand) -> Option<(&'c QueueName, End)> {
        let ListCommand::Move { from, from_end, to, .. } = command else { return None };
        let to = self.queues.find(to.as_str())?;
        self.queues.at(to).is_memory_only().then_some((from, *from_end))
    }
}
