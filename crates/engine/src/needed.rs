//! Which bodies that left memory a command looks into: it begins when they are here.
//!
//! What a command compares it looks at from one end of a list, and no further than it may. What a
//! batch moves about may come from either end.

use alloc::collections::BTreeSet;

use model::{AdminCommand, Command, End, KeyCommand, ListCommand, MessageId, QueueName, limits};

use crate::engine::{Bodies, Engine, MessageStore};
use crate::matching::parse_selector;
use crate::paging::PageQuery;
use crate::wait_lists::WaitListId;

/// What a command lacks.
#[derive(Debug, Default)]
pub(crate) struct Needed {
    /// The names of their bodies.
    pub(crate) ids: BTreeSet<MessageId>,
    /// How many messages were looked at to know.
    pub(crate) looked: usize,
}

/// Elements of a list that a command holds against one.
#[derive(Clone, Copy, Debug)]
struct Comparison<'c> {
    list: &'c QueueName,
    element: &'c [u8],
    from: End,
    scan_max: usize,
}

impl<'c> Comparison<'c> {
    fn of(command: &'c ListCommand) -> Option<Self> {
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

impl Engine {
    /// What a command lacks before it can be done.
    pub(crate) fn needed_by(&self, command: &Command) -> Needed {
        let mut needed = Needed::default();
        if self.bodies.memory.has_away() {
            match command {
                Command::List(command) => {
                    self.bodies.add_needed_by_list(command, &mut needed, &self.store)
                }
                Command::Admin(command) => self.add_needed_by_operator(command, &mut needed),
                Command::Batch { commands } => self.add_needed_by_batch(commands, &mut needed),
                _ => {}
            }
        }
        needed
    }

    /// What an earlier command moves into a list, a later one may look into; and what one takes
    /// away, another then finds behind it.
    fn add_needed_by_batch(&self, commands: &[Command], needed: &mut Needed) {
        for command in commands {
            match command {
                Command::List(command) => {
                    self.bodies.add_needed_by_list(command, needed, &self.store)
                }
                Command::Admin(command) => self.add_needed_by_operator(command, needed),
                _ => {}
            }
        }
        let lists = || commands.iter().filter_map(as_list);
        let compared = || lists().filter_map(Comparison::of);
        let moved_from = commands.iter().filter_map(moved_from);
        let moved_from: BTreeSet<_> = moved_from.collect();
        if let Some(shortest) = compared().map(|it| it.element.len()).min() {
            let all = compared().map(|it| it.list).chain(moved_from.iter().copied());
            for name in all.collect::<BTreeSet<_>>() {
                self.bodies.add_both_ends(
                    name,
                    limits::LIST_SCAN_MAX,
                    shortest,
                    needed,
                    &self.store,
                );
            }
        }
        if lists().any(|command| self.store.forsaken_by(command).is_some()) {
            let taken = lists().map(taken_by).fold(0, usize::saturating_add);
            for name in moved_from {
                self.bodies.add_both_ends(
                    name,
                    taken.min(limits::LIST_SCAN_MAX),
                    0,
                    needed,
                    &self.store,
                );
            }
        }
    }

    fn add_needed_by_operator(&self, command: &AdminCommand, needed: &mut Needed) {
        let (queue, state, held, selector, message, after) = match command {
            AdminCommand::Browse { queue, state, selector, after, .. } => {
                (queue, *state, true, selector, None, *after)
            }
            AdminCommand::Purge { queue, state, selector, after } => {
                (queue, *state, false, selector, None, *after)
            }
            AdminCommand::MoveMessages { from, selector, message, after, .. } => {
                (from, None, false, selector, *message, *after)
            }
            _ => return,
        };
        let Some(Ok(selector)) = selector.as_deref().map(parse_selector) else { return };
        let lacked = match message {
            Some(id) => {
                self.store.find(id).filter(|it| self.bodies.sharing.here(it).is_none()).map(|_| id)
            }
            None => self.store.queues.find(queue.as_str()).and_then(|queue| {
                let selector = Some(&selector);
                self.stopped_at_once(&PageQuery { queue, state, held, selector, after, max: 1 })
            }),
        };
        needed.ids.extend(lacked.map(|id| self.store.body_name(id)));
    }

    /// What the first of those lacks who wait for a place in a queue.
    pub(crate) fn needed_by_line(&self, of: WaitListId) -> Needed {
        let first = self.admission.find_line(of, &self.store).and_then(|line| line.tickets.first());
        let first = first.and_then(|ticket| self.admission.pacing.sends.get(ticket));
        first.map_or_else(Needed::default, |first| self.needed_by(&first.command))
    }
}

impl Bodies {
    fn add_needed_by_list(&self, command: &ListCommand, needed: &mut Needed, store: &MessageStore) {
        if let Some(compared) = Comparison::of(command) {
            let Comparison { list, element, from, scan_max } = compared;
            self.add_elements_away(list, (from, scan_max), element.len(), needed, store);
        }
        if let Some((from, end)) = store.forsaken_by(command) {
            self.add_elements_away(from, (end, 1), 0, needed, store);
        }
    }

    fn add_both_ends(
        &self,
        list: &QueueName,
        count: usize,
        bytes: usize,
        needed: &mut Needed,
        store: &MessageStore,
    ) {
        for end in [End::Head, End::Tail] {
            self.add_elements_away(list, (end, count), bytes, needed, store);
        }
    }

    /// Of so many elements from an end on those that are away and have so many bytes at least.
    fn add_elements_away(
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
            let message = store.living(id);
            if self.sharing.here(message).is_none() && message.body.len() >= bytes {
                needed.ids.insert(store.body_name(id));
            }
        }
    }
}

impl MessageStore {
    /// The end of a list whose element the command moves to where nothing is journalled: the log
    /// lets go of it, so it has to be here.
    fn forsaken_by<'c>(&self, command: &'c ListCommand) -> Option<(&'c QueueName, End)> {
        let ListCommand::Move { from, from_end, to, .. } = command else { return None };
        let to = self.queues.find(to.as_str())?;
        self.queues.at(to).is_memory_only().then_some((from, *from_end))
    }
}

fn as_list(command: &Command) -> Option<&ListCommand> {
    let Command::List(command) = command else { return None };
    Some(command)
}

/// The list whose elements a command gives to another.
fn moved_from(command: &Command) -> Option<&QueueName> {
    match command {
        Command::List(ListCommand::Move { from, .. })
        | Command::Key(KeyCommand::Rename { from, .. }) => Some(from),
        _ => None,
    }
}

/// How many elements a command takes from an end of a list at most.
fn taken_by(command: &ListCommand) -> usize {
    match command {
        ListCommand::Pop { max, .. } | ListCommand::PopFirst { max, .. } => {
            usize::try_from(*max).unwrap_or(usize::MAX).min(limits::FRAME_RECORDS_MAX)
        }
        ListCommand::Move { .. } => 1,
        _ => 0,
    }
}
