//! Bodies that several messages have in common: of what was published once and that memory alone
//! keeps, the copies for all subscriptions.
//!
//! Such a body counts once, stands in one line and leaves memory once; it goes with the last of its
//! copies. In the spill it stays as long, also while it is here: those who read at different times
//! bring it back, and it leaves again for nothing. It is named by the number of the first copy.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use core::num::NonZeroU64;

use model::MessageId;

use crate::engine::Engine;
use crate::memory::{Keeper, Kept, Push, Residents, away_of};
use crate::message::{Message, Stored};

/// The bodies that are shared, and which of them are here.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    bodies: BTreeMap<MessageId, SharedBody>,
    pub(crate) residents: Residents,
}

/// A body with its copies.
#[derive(Debug)]
pub(crate) struct SharedBody {
    pub(crate) stored: Stored,
    /// Where it lies in the spill, be it here or not.
    pub(crate) spilled: Option<NonZeroU64>,
    copies: u32,
}

impl SharedBody {
    /// It, as memory keeps it.
    pub(crate) const fn kept(&self) -> Kept<'_> {
        Kept { stored: &self.stored, keeper: Keeper::Sharing, frame: None, spilled: self.spilled }
    }
}

impl Sharing {
    /// The body of that name.
    pub(crate) fn get(&self, body: MessageId) -> Option<&SharedBody> {
        self.bodies.get(&body)
    }

    /// The body of a message, if it is here.
    pub(crate) fn here<'m>(&'m self, message: &'m Message) -> Option<&'m Arc<[u8]>> {
        match message.shared() {
            Some(body) => self.bodies.get(&body)?.stored.here(),
            None => message.body.here(),
        }
    }

    /// All by their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (MessageId, &SharedBody)> {
        self.bodies.iter().map(|(body, shared)| (*body, shared))
    }

    /// What it takes in memory to know them.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.bodies.len() as u64 * SHARED_BYTES
    }
}

impl Engine {
    /// A message is to have a body together with the others of that name.
    pub(crate) fn share_body(&mut self, message: &mut Message, name: MessageId) {
        assert!(!message.is_journalled(), "copies in the log are a group");
        let own = message.share(name);
        if let Some(shared) = self.sharing.bodies.get_mut(&name) {
            shared.copies += 1;
            return;
        }
        let shared = SharedBody { stored: own, spilled: None, copies: 1 };
        self.settle_body(name, &shared.kept(), VecDeque::push_back);
        self.sharing.bodies.insert(name, shared);
    }

    /// A message that shared that body is gone; with the last the body goes.
    pub(crate) fn part_from_body(&mut self, name: MessageId) {
        let shared = self.sharing.bodies.get_mut(&name);
        let shared = shared.expect("invariant: a body stays with its copies");
        shared.copies -= 1;
        if shared.copies == 0
            && let Some(shared) = self.sharing.bodies.remove(&name)
        {
            self.move_body_out(name, &shared.kept());
            self.memory.spilling.forget(name, shared.kept().lies());
        }
    }

    /// One of the copies goes, or goes elsewhere: who waits there for the body looks again.
    pub(crate) fn stop_sharing_wait(&mut self, message: &Message) {
        let name = message.shared().expect("invariant: a body that is no message's own is shared");
        let shared = self.sharing.get(name).expect("invariant: a body stays with its copies");
        if shared.stored.here().is_none() {
            self.awaited.may_have_left(away_of(name, &shared.kept()));
        }
    }

    /// A shared body takes another form, and the spill has it there.
    pub(crate) fn with_shared(
        &mut self,
        name: MessageId,
        push: Push,
        stored: Stored,
        spilled: Option<NonZeroU64>,
    ) {
        let Some(mut shared) = self.sharing.bodies.remove(&name) else { return };
        self.move_body_out(name, &shared.kept());
        (shared.stored, shared.spilled) = (stored, spilled);
        self.settle_body(name, &shared.kept(), push);
        self.sharing.bodies.insert(name, shared);
    }

    /// The name of a message's body: its own number, unless it shares it.
    pub(crate) fn body_name(&self, id: MessageId) -> MessageId {
        self.living(id).shared().unwrap_or(id)
    }

    /// Each body has so many copies as say so.
    ///
    /// # Panics
    /// When it has not.
    pub(crate) fn check_sharing(&self) {
        let mut copies = BTreeMap::<MessageId, u32>::new();
        for (id, message) in self.messages.iter_from(0) {
            let Some(name) = message.shared() else { continue };
            let shared = self.sharing.get(name);
            let shared = shared.unwrap_or_else(|| panic!("message {id} has a body"));
            assert_eq!(shared.stored.len(), message.body.len(), "it knows how large that is");
            *copies.entry(name).or_default() += 1;
        }
        for (name, shared) in self.sharing.iter() {
            let found = copies.remove(&name);
            assert_eq!(found, Some(shared.copies), "a body goes with the last of its copies");
        }
        assert!(copies.is_empty(), "bodies that are shared are known");
    }
}

/// A body that is shared, but for its bytes, in a tree.
const SHARED_BYTES: u64 = 64;
