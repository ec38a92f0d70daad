//! Message groups: one consumer at a time receives the messages of a group, in their order.
//!
//! A consumer with a limit that gets a message of a group owns the group in this queue. It does so
//! until it is closed, or the group ends with a message that says so. A consumer that receives one
//! by one owns nothing, but has the group for as long as it holds the message. A consumer may give
//! a group up while its session still holds messages of it. Until these are settled, the group goes
//! only to another consumer of that session. So no two sessions hold messages of one group at once,
//! unless one asked for a message by its number.
//!
//! A message that waits for its redelivery holds up its group, so that none overtakes it. One that
//! its sender delayed does not, nor does one that was buried, or that waits for room to become a
//! dead letter.
//!
//! Commands on lists know no groups: they take the element at an end.

mod access;

use alloc::collections::BTreeMap;

use model::{MessageId, SessionId};

use crate::ids::ConsumerKey;
use crate::store::dispatch::{Access, Entry};
use crate::store::message::{Message, State};

/// The groups of a queue of which there is something to know.
#[derive(Debug, Default)]
pub(crate) struct MessageGroups {
    groups: BTreeMap<u16, Group>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Group {
    owner: Owner,
    /// Messages of it that are leased or held.
    held: u32,
    /// Messages of it that wait for their redelivery.
    hidden: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Owner {
    #[default]
    Nobody,
    Consumer(ConsumerKey),
    /// A session that holds messages of the group after its consumer gave the group up. Not its
    /// slot: another session may get the slot while a message of the group is held elsewhere.
    Session(SessionId),
}

impl Group {
    const fn access(&self) -> Access {
        match self.owner {
            _ if self.hidden > 0 => Access::Nobody,
            Owner::Consumer(key) => Access::Only(key),
            Owner::Nobody if self.held == 0 => Access::Anybody,
            Owner::Nobody | Owner::Session(_) => Access::Nobody,
        }
    }

    /// Its owner gives it up.
    const fn release(&mut self, session: SessionId) {
        self.owner = if self.held > 0 { Owner::Session(session) } else { Owner::Nobody };
    }

    /// A message of it came into this state, or left it.
    fn count(&mut self, kind: Kind, by: i32) {
        let count = match kind {
            Kind::Held => &mut self.held,
            Kind::Hidden => &mut self.hidden,
        };
        *count = count.checked_add_signed(by).expect("invariant: a message counts once");
        if self.held == 0 && matches!(self.owner, Owner::Session(_)) {
            self.owner = Owner::Nobody;
        }
    }
}

/// How a message in a certain state counts for its group.
#[derive(Clone, Copy)]
enum Kind {
    Held,
    Hidden,
}

impl Kind {
    fn of(message: &Message) -> Option<Self> {
        match message.state() {
            State::Leased { .. } | State::Held { .. } => Some(Self::Held),
            State::Delayed { .. } if message.awaits_redelivery() => Some(Self::Hidden),
            State::Ready | State::Delayed { .. } | State::Buried { .. } => None,
        }
    }
}

impl MessageGroups {
    /// One group, of which one message is held.
    #[cfg(test)]
    pub(crate) fn held_once(number: u16) -> Self {
        let group = Group { held: 1, ..Group::default() };
        Self { groups: BTreeMap::from([(number, group)]) }
    }

    /// A ready message with the access to its group; `None`: no message belongs to a group.
    pub(crate) fn entry(groups: Option<&Self>, id: MessageId, message: &Message) -> Entry {
        let place = (message.priority(), message.order(id));
        let Some(groups) = groups else { return Entry::of_none(place) };
        let group = message.group_number();
        let known = group.and_then(|number| groups.groups.get(&number));
        Entry { place, group, access: known.map_or(Access::Anybody, Group::access) }
    }
}
