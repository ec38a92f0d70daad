//! Message groups: which consumer owns one, and which taker may have a message of one.

use std::collections::BTreeMap;
use std::rc::Rc;

use model::Nanos;

use super::{Message, Oracle, Place};
use crate::Content;
use crate::workload::group_of;

/// Facts about the groups of all queues.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    owners: BTreeMap<GroupKey, Owner>,
    /// When the takers that may have its messages last changed.
    changed: BTreeMap<GroupKey, Nanos>,
}

/// A queue, and the letter of a group.
type GroupKey = (Rc<str>, u8);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// By client and link.
    Consumer(u64, u32),
    /// A client that holds messages of it, after its consumer is gone.
    Client(u64),
}

/// A taker of a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Taker {
    /// To a consumer with credit, by client and link.
    Consumer(u64, u32),
    /// To a client that receives one message.
    Receiver,
}

impl Groups {
    /// All consumers are gone.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Oracle {
    /// True if a message may go there, as far as groups say.
    pub(super) fn may_take(&self, message: &Message, taker: Taker) -> bool {
        let Some(key) = group_key(&message.content) else { return true };
        let awaits = |other: &Message| other.awaits_redelivery() == Some(true);
        if self.of_group(&key).any(awaits) {
            return false;
        }
        match (self.groups.owners.get(&key), taker) {
            (None, _) => !self.is_held(&key),
            (Some(Owner::Consumer(client, link)), Taker::Consumer(by, at)) => {
                (*client, *link) == (by, at)
            }
            _ => false,
        }
    }

    /// The same, where nothing about it is in doubt, and it has been so since before this step.
    pub(super) fn surely_may_take(&self, message: &Message, taker: Taker, now: Nanos) -> bool {
        let Some(key) = group_key(&message.content) else { return true };
        let is_settled = self.groups.changed.get(&key).is_none_or(|changed| *changed < now);
        let is_known = self.of_group(&key).all(|other| other.awaits_redelivery().is_some());
        is_settled && is_known && self.may_take(message, taker)
    }

    /// A message went to a consumer with credit, which owns its group from now on.
    ///
    /// # Panics
    /// When it must not go there.
    pub(super) fn own_group(&mut self, now: Nanos, id: u64, client: u64, link: u32) {
        self.assert_may_take(id, Taker::Consumer(client, link));
        let Some(key) = group_key(&self.message(id).content) else { return };
        self.groups.owners.insert(key.clone(), Owner::Consumer(client, link));
        self.groups.changed.insert(key, now);
    }

    /// A message went to a client that receives one by one.
    ///
    /// # Panics
    /// When it must not go there.
    pub(super) fn assert_may_take(&self, id: u64, taker: Taker) {
        let message = self.messages.get(&id).expect("invariant: the caller found it");
        let owner = group_key(&message.content).and_then(|key| self.groups.owners.get(&key));
        assert!(self.may_take(message, taker), "{id} went to {taker:?}, its group is {owner:?}'s");
    }

    /// A consumer is there: it has the groups of which its client still holds messages.
    pub(super) fn inherit_groups(&mut self, client: u64, link: u32, queue: &Rc<str>) {
        let (owners, latest) = (&mut self.groups.owners, self.latest);
        for (key, owner) in owners.iter_mut().filter(|((of, _), _)| of == queue) {
            if *owner == Owner::Client(client) {
                *owner = Owner::Consumer(client, link);
                self.groups.changed.insert(key.clone(), latest);
            }
        }
    }

    /// A consumer has gone.
    pub(super) fn release_groups(&mut self, client: u64, link: u32, queue: &Rc<str>) {
        let beside = self.consumers.range((client, 0)..=(client, u32::MAX));
        let heir = beside.filter(|(_, consumer)| consumer.queue == *queue).map(|(key, _)| *key);
        let heir =
            heir.min().map_or(Owner::Client(client), |(_, link)| Owner::Consumer(client, link));
        let own = self.groups.owners.iter();
        let own = own.filter(|(_, owner)| **owner == Owner::Consumer(client, link));
        for key in own.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.groups.changed.insert(key.clone(), self.latest);
            if self.is_held(&key) {
                self.groups.owners.insert(key, heir);
            } else {
                self.groups.owners.remove(&key);
            }
        }
    }

    /// Another consumer may take the messages of this one's group now.
    pub(super) fn group_changed(&mut self, id: u64) {
        if let Some(key) = self.messages.get(&id).and_then(|message| group_key(&message.content)) {
            self.groups.changed.insert(key, self.latest);
        }
    }

    /// A group without held messages has no owner that is a client.
    pub(super) fn forget_owners(&mut self) {
        let lost = |(key, owner): &(&GroupKey, &Owner)| {
            matches!(owner, Owner::Client(_)) && !self.is_held(key)
        };
        let lost: Vec<_> =
            self.groups.owners.iter().filter(lost).map(|(key, _)| key.clone()).collect();
        for key in lost {
            self.groups.owners.remove(&key);
        }
    }

    fn is_held(&self, key: &GroupKey) -> bool {
        self.of_group(key).any(|message| message.holder().is_some())
    }

    fn of_group(&self, key: &GroupKey) -> impl Iterator<Item = &Message> {
        self.messages
            .values()
            .filter(move |message| group_key(&message.content).as_ref() == Some(key))
    }
}

impl Message {
    /// True if its group waits for its redelivery; `None`: no longer known.
    const fn awaits_redelivery(&self) -> Option<bool> {
        match self.place {
            Place::Delayed(_) if !self.is_hidden => self.was_taken,
            _ => Some(false),
        }
    }
}

fn group_key(content: &Content) -> Option<GroupKey> {
    Some((content.queue.clone(), group_of(&content.body)?))
}
