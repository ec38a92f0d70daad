//! Ready messages and the consumers that wait for them: of a queue, or of one of its views.
//!
//! The consumer with the smallest ticket is served first, by the first message that it may take. As
//! long as no message belongs to a group, this is the first of all. Once one does, the list keeps
//! the messages of each group apart. So the next message and its consumer are found in logarithmic
//! time, however many messages of other groups stand before it.
//!
//! [`crate::store::message_groups`] decides which consumer may take the messages of a group
//! ([`Access`]), and tells the list whenever that changes.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};

use crate::collections::order_set::OrderSet;
use crate::ids::{ConsumerKey, LIST_LINK};

/// The place of a ready message: its priority and its order.
pub(crate) type ReadyPlace = (u32, i64);

/// The number of a group; `None`: of the messages that belong to none.
pub(crate) type GroupNumber = Option<u16>;

/// A ready message, as a list keeps it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) place: ReadyPlace,
    pub(crate) group: GroupNumber,
    /// The access to the messages of its group now.
    pub(crate) access: Access,
}

impl Entry {
    /// Of a message in a queue where none belongs to a group.
    pub(crate) const fn of_none(place: ReadyPlace) -> Self {
        Self { place, group: None, access: Access::Anybody }
    }
}

/// Ready messages and the consumers that wait for them.
#[derive(Debug, Default)]
pub(crate) struct DispatchList {
    ready: OrderSet,
    /// By ticket.
    waiting: BTreeMap<u64, ConsumerKey>,
    groups: Option<Box<GroupedList>>,
}

/// The same messages by group, and the state of consumers that depends on groups.
#[derive(Debug, Default)]
struct GroupedList {
    ready: BTreeMap<GroupNumber, OrderSet>,
    /// The first message of each group that any consumer may take.
    free: BTreeSet<(ReadyPlace, GroupNumber)>,
    /// The first message of each group that one consumer alone may take.
    owned: BTreeMap<ConsumerKey, BTreeSet<(ReadyPlace, GroupNumber)>>,
    /// The consumers that wait, to their tickets.
    tickets: BTreeMap<ConsumerKey, u64>,
    /// Those that could take a message that they alone may have.
    owners: BTreeMap<u64, ConsumerKey>,
    /// Commands on lists: they take the element at an end, of any group.
    poppers: BTreeMap<u64, ConsumerKey>,
}

impl DispatchList {
    pub(crate) const fn ready(&self) -> &OrderSet {
        &self.ready
    }

    pub(crate) const fn waiting(&self) -> &BTreeMap<u64, ConsumerKey> {
        &self.waiting
    }

    /// Adds a message; false when it was there.
    #[inline]
    pub(crate) fn insert(&mut self, entry: Entry) -> bool {
        let (priority, order) = entry.place;
        if let Some(groups) = &mut self.groups {
            groups.insert(entry);
        }
        self.ready.insert(priority, order)
    }

    /// Takes a message away; false when it was not there.
    #[inline]
    pub(crate) fn remove(&mut self, entry: Entry) -> bool {
        let (priority, order) = entry.place;
        if let Some(groups) = &mut self.groups {
            groups.remove(entry);
        }
        self.ready.remove(priority, order)
    }

    /// Takes all messages away.
    pub(crate) fn take_all(&mut self) -> OrderSet {
        if let Some(groups) = &mut self.groups {
            groups.ready.clear();
            groups.free.clear();
            groups.owned.clear();
            groups.owners.clear();
        }
        core::mem::take(&mut self.ready)
    }

    /// A consumer waits from now on.
    pub(crate) fn wait(&mut self, ticket: u64, key: ConsumerKey) {
        self.waiting.insert(ticket, key);
        if let Some(groups) = &mut self.groups {
            groups.wait(ticket, key);
        }
    }

    /// The consumer with this ticket waits no longer; false when none had it.
    pub(crate) fn stop_waiting(&mut self, ticket: u64) -> bool {
        let Some(key) = self.waiting.remove(&ticket) else { return false };
        if let Some(groups) = &mut self.groups {
            groups.tickets.remove(&key);
            groups.owners.remove(&ticket);
            groups.poppers.remove(&ticket);
        }
        true
    }

    /// The first message that a consumer may take which owns no group.
    pub(crate) fn first_free(&self) -> Option<ReadyPlace> {
        match &self.groups {
            None => self.ready.first(),
            Some(groups) => groups.free.first().map(|(place, _)| *place),
        }
    }

    /// The consumer to be served next, by its ticket, and with which message.
    #[inline]
    pub(crate) fn next(&self) -> Option<(u64, ConsumerKey, ReadyPlace)> {
        match &self.groups {
            None => {
                let (ticket, key) = first(&self.waiting)?;
                Some((ticket, key, self.ready.first()?))
            }
            Some(groups) => self.next_by_group(groups),
        }
    }

    fn next_by_group(&self, groups: &GroupedList) -> Option<(u64, ConsumerKey, ReadyPlace)> {
        let free = self.first_free();
        let any = free.and_then(|_| first(&self.waiting));
        let popper = self.ready.first().and_then(|_| first(&groups.poppers));
        let served = any.into_iter().chain(popper).chain(first(&groups.owners)).min();
        let (ticket, key) = served?;
        let place = if key.link == LIST_LINK {
            self.ready.first()
        } else {
            let owned = groups.owned.get(&key).and_then(|owned| owned.first());
            free.into_iter().chain(owned.map(|(place, _)| *place)).min()
        };
        Some((ticket, key, place?))
    }

    /// Keeps groups apart from now on: so far no message belongs to one.
    pub(crate) fn begin_groups(&mut self) {
        assert!(self.groups.is_none(), "groups begin once");
        let mut groups = GroupedList::default();
        groups.ready.insert(None, self.ready.clone());
        groups.free.extend(self.ready.first().map(|place| (place, None)));
        for (ticket, key) in &self.waiting {
            groups.wait(*ticket, *key);
        }
        self.groups = Some(Box::new(groups));
    }

    /// No message belongs to a group any more, and no consumer owns one.
    pub(crate) fn end_groups(&mut self) {
        self.groups = None;
    }

    /// Changes the access to the messages of a group. Gives whether there are any.
    pub(crate) fn change_access(&mut self, group: GroupNumber, from: Access, to: Access) -> bool {
        let Some(groups) = &mut self.groups else { return false };
        let first = groups.ready.get(&group).and_then(OrderSet::first);
        groups.move_first(group, from, first, None);
        groups.move_first(group, to, None, first);
        first.is_some()
    }

    /// Panics if its parts contradict each other; `entry` gives the entry of each ready place.
    pub(crate) fn check(&self, entry: impl Fn(ReadyPlace) -> Entry) {
        let Some(groups) = &self.groups else { return };
        let mut expected = GroupedList::default();
        for place in self.ready.iter() {
            let Entry { group, access, .. } = entry(place);
            expected.change(group, access, |ready| ready.insert(place.0, place.1));
        }
        for (ticket, key) in &self.waiting {
            expected.wait(*ticket, *key);
        }
        let places = |groups: &GroupedList| {
            let places = groups
                .ready
                .iter()
                .flat_map(|(group, ready)| ready.iter().map(move |place| (*group, place)));
            places.collect::<BTreeSet<_>>()
        };
        assert_eq!(places(groups), places(&expected), "the ready messages of each group");
        let firsts = |groups: &GroupedList| {
            (groups.free.clone(), groups.owned.clone(), groups.tickets.clone())
        };
        assert_eq!(firsts(groups), firsts(&expected), "the first of each group");
        let who = |groups: &GroupedList| (groups.owners.clone(), groups.poppers.clone());
        assert_eq!(who(groups), who(&expected), "consumers that groups concern");
    }
}

fn first(waiting: &BTreeMap<u64, ConsumerKey>) -> Option<(u64, ConsumerKey)> {
    waiting.first_key_value().map(|(ticket, key)| (*ticket, *key))
}

impl GroupedList {
    fn insert(&mut self, entry: Entry) {
        let Entry { place: (priority, order), group, access } = entry;
        self.change(group, access, |ready| ready.insert(priority, order));
    }

    fn remove(&mut self, entry: Entry) {
        let Entry { place: (priority, order), group, access } = entry;
        self.change(group, access, |ready| ready.remove(priority, order));
    }

    /// Changes which messages of a group are ready.
    fn change(
        &mut self,
        group: GroupNumber,
        access: Access,
        change: impl FnOnce(&mut OrderSet) -> bool,
    ) {
        let ready = self.ready.entry(group).or_default();
        let before = ready.first();
        change(ready);
        let now = ready.first();
        if now.is_none() {
            self.ready.remove(&group);
        }
        if before != now {
            self.move_first(group, access, before, now);
        }
    }

    /// The first message of a group is another one.
    fn move_first(
        &mut self,
        group: GroupNumber,
        access: Access,
        from: Option<ReadyPlace>,
        to: Option<ReadyPlace>,
    ) {
        let firsts = match access {
            Access::Nobody => return,
            Access::Anybody => &mut self.free,
            Access::Only(key) => self.owned.entry(key).or_default(),
        };
        if let Some(place) = from {
            firsts.remove(&(place, group));
        }
        firsts.extend(to.map(|place| (place, group)));
        if let Access::Only(key) = access {
            self.note_owner(key);
        }
    }

    /// A consumer may own a ready message now, or none any more.
    fn note_owner(&mut self, key: ConsumerKey) {
        let owns = self.owned.get(&key).is_some_and(|owned| !owned.is_empty());
        if !owns {
            self.owned.remove(&key);
        }
        match self.tickets.get(&key) {
            Some(ticket) if owns => drop(self.owners.insert(*ticket, key)),
            Some(ticket) => drop(self.owners.remove(ticket)),
            None => {}
        }
    }

    fn wait(&mut self, ticket: u64, key: ConsumerKey) {
        self.tickets.insert(key, ticket);
        if key.link == LIST_LINK {
            self.poppers.insert(ticket, key);
        }
        self.note_owner(key);
    }
}

/// The consumers that may take the messages of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Anybody,
    Only(ConsumerKey),
    Nobody,
}
