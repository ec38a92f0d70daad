//! Bodies that several messages share: the copies, for all subscriptions, of one published message.
//! The copies for durable subscriptions are a group that one record stored, see
//! [`crate::bodies::groups`]. The copies that only memory keeps share one body as well.
//!
//! Such a body counts once, is in one line and leaves memory once. It goes with the last of its
//! copies. Its place in the spill stays as long, even while the body is in memory: readers at
//! different times bring it back, and it leaves again without a write. Its name is the number of
//! the first copy, or the number of its group.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use model::MessageId;

use crate::bodies::memory::paged_out_of;
use crate::bodies::{Bodies, BodyOwner, BodyRef, Push, SharedBody, Sharing, Stored};
use crate::store::MessageStore;
use crate::store::message::Message;

impl SharedBody {
    /// It, as memory keeps it.
    pub(crate) const fn kept(&self) -> BodyRef<'_> {
        let Self { stored, frame, spilled, .. } = self;
        BodyRef { stored, owner: BodyOwner::Sharing, frame: *frame, spilled: *spilled }
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
            None => message.body().here(),
        }
    }

    /// All by their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (MessageId, &SharedBody)> {
        self.bodies.iter().map(|(body, shared)| (*body, shared))
    }

    /// Bytes of memory that the table of shared bodies takes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.bodies.len() as u64 * SHARED_BYTES
    }
}

impl Bodies {
    /// A message is to have a body together with the others of that name.
    pub(crate) fn share_body(
        &mut self,
        message: &mut Message,
        name: MessageId,
        store: &mut MessageStore,
    ) {
        let own = message.share(name);
        if let Some(shared) = self.sharing.bodies.get_mut(&name) {
            debug_assert_eq!(
                shared.stored.len(),
                own.len(),
                "what shares body {name} has its bytes"
            );
            let frame = message.is_journalled().then_some(message.location());
            debug_assert_eq!(shared.frame, frame, "what shares body {name} is in its frame");
            shared.copies += 1;
            return;
        }
        let frame = message.is_journalled().then_some(message.location());
        let shared = SharedBody { stored: own, frame, spilled: None, copies: 1 };
        self.settle_body(name, &shared.kept(), VecDeque::push_back, store);
        self.sharing.bodies.insert(name, shared);
    }

    /// A message that shared that body is gone; with the last the body goes.
    pub(crate) fn part_from_body(&mut self, name: MessageId, store: &mut MessageStore) {
        let shared = self.sharing.bodies.get_mut(&name);
        let shared = shared.expect("invariant: a body stays with its copies");
        assert!(shared.copies > 0, "body {name} goes with the last of its copies");
        shared.copies -= 1;
        if shared.copies == 0
            && let Some(shared) = self.sharing.bodies.remove(&name)
        {
            self.move_body_out(name, &shared.kept(), store);
            self.memory.spilling.forget(name, shared.kept().lies());
        }
    }

    /// Gives a message its own body under a name that nothing else has. The message shared the body
    /// of name `from`, and its record is its own no longer. Its own number is no safe name: the
    /// other copies may go on sharing by it.
    pub(crate) fn separate(
        &mut self,
        from: MessageId,
        message: &mut Message,
        body: Arc<[u8]>,
        store: &mut MessageStore,
    ) {
        self.part_from_body(from, store);
        message.set_body(Stored::Here(body));
        let name = MessageId(APART + self.sharing.separated);
        self.sharing.separated += 1;
        self.share_body(message, name, store);
    }

    /// After recovery, in which the copies of a group may be of several frames for a time.
    pub(crate) fn share_recovered(&mut self, store: &mut MessageStore) {
        if self.groups.groups.is_empty() {
            return;
        }
        let all = store.messages.iter_from(0).filter(|(_, message)| message.group() != 0);
        let ids: Vec<_> = all.map(|(id, _)| MessageId(id)).collect();
        for id in ids {
            let Some(mut message) = store.messages.remove(id.0) else { continue };
            self.unaccount(id, &message, store);
            let group = MessageId(message.group());
            self.share_body(&mut message, group, store);
            store.messages.insert(id.0, message);
        }
    }

    /// A copy goes, or goes elsewhere: commands that wait there for the body look again.
    pub(crate) fn stop_sharing_wait(&mut self, message: &Message) {
        let name = message.shared().expect("invariant: a body that is no message's own is shared");
        let shared = self.sharing.get(name).expect("invariant: a body stays with its copies");
        if shared.stored.here().is_none() {
            self.awaited.may_have_left(paged_out_of(name, &shared.kept()));
        }
    }

    /// A shared body takes another form, and the spill has it there.
    pub(crate) fn with_shared(
        &mut self,
        name: MessageId,
        push: Push,
        stored: Stored,
        spilled: Option<NonZeroU64>,
        store: &mut MessageStore,
    ) {
        let Some(mut shared) = self.sharing.bodies.remove(&name) else { return };
        debug_assert_eq!(shared.stored.len(), stored.len(), "body {name} stays the same");
        self.move_body_out(name, &shared.kept(), store);
        (shared.stored, shared.spilled) = (stored, spilled);
        self.settle_body(name, &shared.kept(), push, store);
        self.sharing.bodies.insert(name, shared);
    }

    /// Each body has so many copies as say so.
    ///
    /// # Panics
    /// When it has not.
    pub(crate) fn check_sharing(&self, store: &MessageStore) {
        let mut copies = BTreeMap::<MessageId, u32>::new();
        for (id, message) in store.messages.iter_from(0) {
            let shares = message.shared();
            let group = Some(message.group()).filter(|group| *group != 0).map(MessageId);
            assert!(group.is_none() || group == shares, "message {id} shares with its group");
            let Some(name) = shares else { continue };
            let shared = self.sharing.get(name);
            let shared = shared.unwrap_or_else(|| panic!("message {id} has a body"));
            assert_eq!(shared.stored.len(), message.body().len(), "it knows how large that is");
            let frame = message.is_journalled().then_some(message.location());
            assert_eq!(shared.frame, frame, "it knows where else that is");
            *copies.entry(name).or_default() += 1;
        }
        for (name, shared) in self.sharing.iter() {
            let found = copies.remove(&name);
            assert_eq!(found, Some(shared.copies), "a body goes with the last of its copies");
        }
        assert!(copies.is_empty(), "bodies that are shared are known");
    }
}

impl MessageStore {
    /// The name of a message's body: its own number, unless it shares it.
    pub(crate) fn body_name(&self, id: MessageId) -> MessageId {
        self.message(id).shared().unwrap_or(id)
    }
}

/// A body that is shared, but for its bytes, in a tree.
const SHARED_BYTES: u64 = 64;

/// Names from here on are of no message: the numbers of these are below.
const APART: u64 = 1 << 62;
