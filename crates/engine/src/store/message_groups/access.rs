//! Which consumers may take messages of which groups.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use model::MessageId;

use crate::ids::{ConsumerKey, QueueSlot};
use crate::sessions::Sessions;
use crate::store::MessageStore;
use crate::store::dispatch::{Access, Entry};
use crate::store::message::Message;
use crate::store::message_groups::{Group, Kind, MessageGroups, Owner};
use crate::store::queue::Queue;

impl Queue {
    /// A ready message of it, as its lists keep it.
    pub(crate) fn entry_of(&self, id: MessageId, message: &Message) -> Entry {
        MessageGroups::entry(self.delivery.groups.as_deref(), id, message)
    }

    /// Changes a group; says whether consumers that wait may take something by that.
    fn change_group(&mut self, number: u16, change: impl FnOnce(&mut Group)) -> bool {
        let groups = self.delivery.groups.get_or_insert_default();
        let mut group = groups.groups.get(&number).copied().unwrap_or_default();
        let from = group.access();
        change(&mut group);
        if group == Group::default() {
            groups.groups.remove(&number);
        } else {
            groups.groups.insert(number, group);
        }
        let to = group.access();
        if from == to {
            return false;
        }
        let mut may_serve = false;
        for list in self.dispatch_lists_mut() {
            let has_ready = list.change_access(Some(number), from, to);
            may_serve |= has_ready && to != Access::Nobody && !list.waiting().is_empty();
        }
        may_serve
    }

    /// The first message that belongs to a group is about to come.
    fn begin_groups(&mut self) {
        if self.delivery.groups.is_none() {
            self.delivery.groups = Some(MessageGroups::default().into());
            self.dispatch_lists_mut().for_each(|list| list.begin_groups());
        }
    }

    /// Forgets all about groups where there is nothing to know.
    fn end_groups_if_unused(&mut self) {
        let is_unused = |groups: &MessageGroups| groups.groups.is_empty();
        if self.delivery.dispatch.ready().first().is_none()
            && self.delivery.groups.as_ref().is_some_and(|groups| is_unused(groups))
        {
            self.delivery.groups = None;
            self.dispatch_lists_mut().for_each(|list| list.end_groups());
        }
    }

    /// The numbers of the groups of this owner.
    fn groups_of(&self, owner: Owner) -> Vec<u16> {
        let groups = self.delivery.groups.iter().flat_map(|groups| &groups.groups);
        groups.filter(|(_, group)| group.owner == owner).map(|(number, _)| *number).collect()
    }
}

impl Sessions {
    /// Panics unless the known groups follow from all messages and consumers.
    pub(crate) fn check_message_groups(&self, store: &MessageStore) {
        let mut expected = BTreeMap::<(QueueSlot, u16), Group>::new();
        for (_, message) in store.messages.iter_from(0) {
            if let (Some(number), Some(kind)) = (message.group_number(), Kind::of(message)) {
                expected.entry((message.queue(), number)).or_default().count(kind, 1);
            }
        }
        for (slot, queue) in store.queues.iter() {
            for list in queue.dispatch_lists() {
                list.check(|(_, order)| {
                    let id = store.message_of(order);
                    queue.entry_of(id, store.message(id))
                });
            }
            let groups = queue.delivery.groups.iter().flat_map(|groups| &groups.groups);
            for (number, group) in groups {
                let counted = expected.remove(&(slot, *number)).unwrap_or_default();
                let counts = |group: &Group| (group.held, group.hidden);
                assert_eq!(counts(group), counts(&counted), "group {number} of {}", queue.name);
                assert_ne!(*group, Group::default(), "a group is known for something");
                if let Owner::Consumer(key) = group.owner {
                    let credit_consumer = self
                        .credit_consumer(key)
                        .filter(|credit_consumer| credit_consumer.queue() == slot);
                    assert!(credit_consumer.is_some(), "a consumer owns groups of its queue");
                }
            }
        }
        assert!(expected.is_empty(), "each group is known that is held or hidden");
    }

    /// A consumer with a limit was given a message: it owns the group of that.
    pub(crate) fn own_group(&self, key: ConsumerKey, id: MessageId, store: &mut MessageStore) {
        let message = store.message(id);
        let Some(of_message) = message.message_group() else { return };
        let slot = message.queue();
        let session = self.at(key.session).id();
        let may_serve = store.queues.at_mut(slot).change_group(of_message.number(), |group| {
            group.owner = Owner::Consumer(key);
            if of_message.is_ending() {
                group.release(session);
            }
        });
        assert!(!may_serve || !of_message.is_ending(), "a message that is held keeps its group");
    }

    /// A consumer takes over the groups that its session still has of a consumer that went.
    pub(crate) fn inherit_groups(
        &self,
        key: ConsumerKey,
        slot: QueueSlot,
        store: &mut MessageStore,
    ) {
        let session = self.at(key.session).id();
        let queue = store.queues.at_mut(slot);
        for number in queue.groups_of(Owner::Session(session)) {
            queue.change_group(number, |group| group.owner = Owner::Consumer(key));
        }
    }

    /// A consumer goes: another one of its session takes its groups over; else they are free once
    /// all that the session holds of them is settled.
    pub(crate) fn release_groups(
        &self,
        key: ConsumerKey,
        slot: QueueSlot,
        store: &mut MessageStore,
    ) {
        let heir =
            self.at(key.session).credit_consumers().iter().find(|(link, credit_consumer)| {
                **link != key.link && credit_consumer.queue() == slot && credit_consumer.takes()
            });
        let heir = heir.map(|(link, _)| ConsumerKey { link: *link, ..key });
        let session = self.at(key.session).id();
        let queue = store.queues.at_mut(slot);
        let mut may_serve = false;
        for number in queue.groups_of(Owner::Consumer(key)) {
            may_serve |= queue.change_group(number, |group| match heir {
                Some(heir) if group.held > 0 => group.owner = Owner::Consumer(heir),
                _ => group.release(session),
            });
        }
        queue.end_groups_if_unused();
        if may_serve {
            store.resume_later(slot);
        }
    }
}

impl MessageStore {
    /// A message is about to enter the index of its state: it counts for its group.
    pub(crate) fn enter_group(&mut self, id: MessageId) {
        let message = self.message(id);
        let Some(group) = message.message_group() else { return };
        let (slot, kind) = (message.queue(), Kind::of(message));
        let queue = self.queues.at_mut(slot);
        queue.begin_groups();
        if let Some(kind) = kind {
            let may_serve = queue.change_group(group.number(), |group| group.count(kind, 1));
            assert!(!may_serve, "one more that is held or hidden frees no group");
        }
    }

    /// A message has left the index of its state, in which it counted for its group. Consumers that
    /// may take the messages behind it are served by a timer that is due at once.
    pub(crate) fn leave_group(&mut self, id: MessageId) {
        let message = self.message(id);
        let Some(group) = message.message_group() else { return };
        let (slot, kind) = (message.queue(), Kind::of(message));
        let queue = self.queues.at_mut(slot);
        let may_serve = kind
            .is_some_and(|kind| queue.change_group(group.number(), |group| group.count(kind, -1)));
        queue.end_groups_if_unused();
        self.message_mut(id).set_aside(false);
        if may_serve {
            self.resume_later(slot);
        }
    }
}
