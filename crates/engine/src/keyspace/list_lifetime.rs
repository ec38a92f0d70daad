//! The end of a list: at its deadline, all at once for every client, and in steps for the log.
//!
//! When the time of a list is over, its ready messages are *expired members*. They leave the ready
//! set all at once, so that no client finds them. They are deleted one by one, by a timer that is
//! due at once. Messages that are stored from then on are a new list. The log knows the deadline.
//! From the moment of the deadline until the last message is deleted it also knows which messages
//! are over. So a crash in between neither brings back an old message nor takes a new one.
//!
//! The lifetime of a list changes in many ways, as when its last message is leased. Each change
//! leaves the name among those to be stated, and the log is told before the frame ends.

use alloc::vec::Vec;

use model::{DependsOn, Durability, MessageId, Nanos, QueueName};
use records::{DeadlineView, ExpiredList, RecordView};

use crate::Effects;
use crate::ids::QueueSlot;
use crate::keyspace::Keyspace;
use crate::log::FrameWriter;
use crate::store::MessageStore;
use crate::store::queue::{ListLifetime, Role};

impl Keyspace {
    /// The last expired member of a queue is gone.
    pub(crate) fn expiry_is_done(&mut self, slot: QueueSlot, store: &mut MessageStore) {
        let at = store.queues.at(slot).lifetime().at;
        assert!(store.queues.at(slot).first_expired_member().is_none(), "all of it is gone");
        self.change_lifetime(slot, ListLifetime { at, over: None }, store);
    }

    /// A list that was empty only while one element took another's place keeps its deadline.
    pub(crate) fn keep_deadline(
        &mut self,
        slot: QueueSlot,
        at: Option<Nanos>,
        store: &mut MessageStore,
    ) {
        let queue = store.queues.at(slot);
        if queue.lifetime().at != at && queue.is_list() {
            let over = queue.lifetime().over;
            self.change_lifetime(slot, ListLifetime { at, over }, store);
        }
    }

    /// Sets the lifetime of a list; the log is told before the frame ends.
    pub(crate) fn change_lifetime(
        &mut self,
        slot: QueueSlot,
        lifetime: ListLifetime,
        store: &mut MessageStore,
    ) {
        let before = store.set_lifetime(slot, lifetime);
        let name = store.queues.at(slot).name.clone();
        let bytes = |lifetime| snapshot_bytes(&name, lifetime);
        store.change_snapshot_bytes(bytes(before), bytes(lifetime));
        match (before.at, lifetime.at) {
            (None, Some(_)) => self.limited_lists.add_one(&name),
            (Some(_), None) => self.limited_lists.take_one(&name),
            _ => {}
        }
        if lifetime == ListLifetime::default() {
            self.limited.remove(&name);
        } else {
            self.limited.insert(name.clone());
        }
        self.unstated.insert(name);
    }

    /// The log was just told the lifetime of the list of that name.
    pub(crate) fn lifetime_is_stated(&mut self, name: &QueueName) {
        self.unstated.remove(name);
        self.stale.remove(name);
    }

    /// True if the log knows another lifetime of the list of this queue than it has.
    pub(crate) fn is_stale(&self, slot: QueueSlot, store: &MessageStore) -> bool {
        self.stale.contains(&store.queues.at(slot).name)
    }

    /// Makes those ready messages of a queue that are over expired members, as the log has it.
    pub(crate) fn expire_again(
        &mut self,
        slot: QueueSlot,
        over: ExpiredList,
        store: &mut MessageStore,
    ) {
        let queue = store.queues.at(slot);
        let is_over = |place: &(u32, i64)| {
            over.has(place.1, store.message(store.message_of(place.1)).created())
        };
        let expired: Vec<_> = queue.delivery.dispatch.ready().iter().filter(is_over).collect();
        for place in expired {
            store.expire_member(slot, place);
            if store.queues.at(slot).counts().ready() == 0 {
                self.list_ended(slot, store);
            }
        }
    }

    /// The time of a list is over: its ready messages become expired members.
    pub(crate) fn end_list(&mut self, slot: QueueSlot, store: &mut MessageStore) {
        let (above, below) = store.places_given_out();
        let queue = store.queues.at(slot);
        let ListLifetime { at, over } = queue.lifetime();
        let at = at.expect("invariant: a list ends that has a deadline");
        assert!(queue.is_list(), "a deadline is that of a list");
        store.expire_ready(slot);
        let before = over.map_or(at, |over| over.at);
        let over = ExpiredList { at: at.max(before), above, below };
        self.list_ended(slot, store);
        self.change_lifetime(slot, ListLifetime { at: None, over: Some(over) }, store);
        self.touched_list(slot, store);
    }

    /// Notices that the time of a list is over, if it is.
    #[inline]
    pub(crate) fn end_list_if_over(&mut self, slot: QueueSlot, store: &mut MessageStore) {
        if store.queues.at(slot).is_ended(store.latest) {
            self.end_list(slot, store);
            store.end_drains_later(slot);
        }
    }

    /// A message that is held, or in no index, comes back to its queue.
    ///
    /// While a list is still being deleted there, the message would lie among the deleted ones, as
    /// far as the log knows. A restart would delete it too. So it gets a place in front of all, and
    /// the log is to be told. Returns whether it got one.
    pub(crate) fn spare(&mut self, id: MessageId, store: &mut MessageStore) -> bool {
        let slot = store.message(id).queue();
        self.end_list_if_over(slot, store);
        let Some(over) = store.queues.at(slot).lifetime().over else { return false };
        let message = store.message(id);
        if !message.is_journalled() || !over.has(message.order(id), message.created()) {
            return false;
        }
        let order = store.first_place();
        store.reorder(id, order);
        true
    }

    /// Tells the log the lifetime of the list of that name, as it is.
    pub(crate) fn state_lifetime(
        &mut self,
        name: &QueueName,
        store: &mut MessageStore,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) -> DependsOn {
        self.lifetime_is_stated(name);
        let level = log.key_level();
        if level == Durability::None {
            return DependsOn::NOTHING;
        }
        let record = RecordView::KeyDeadline(store.lifetime_view(name));
        let placed = log.append(&record, level, effects);
        DependsOn::new(placed.lsn, level)
    }

    /// The log is about to hear of a message for this queue: if it knows a lifetime of its list
    /// that is over, it is told first. Later might be a frame later, and a crash in between would
    /// give the new list the deadline of the old one.
    pub(crate) fn state_if_stale(
        &mut self,
        slot: QueueSlot,
        store: &mut MessageStore,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) {
        if !self.is_stale(slot, store) {
            return;
        }
        let name = store.queues.at(slot).name.clone();
        self.state_lifetime(&name, store, log, effects);
        // A batch has room for it beside all else; other frames may have none.
        if !log.is_whole() {
            log.seal(effects);
        }
    }

    /// A dead letter keeps its place. But while an expired list is still being deleted there, that
    /// place may be among the deleted ones, as far as the log knows.
    pub(crate) fn place_among_dead(
        &mut self,
        to: QueueSlot,
        id: MessageId,
        store: &mut MessageStore,
    ) -> i64 {
        self.end_list_if_over(to, store);
        let is_being_deleted = store.queues.at(to).lifetime().over.is_some();
        if is_being_deleted { store.last_place() } else { store.message(id).order(id) }
    }
}

impl MessageStore {
    /// The record of the lifetime of the list of that name.
    pub(crate) fn lifetime_view<'a>(&self, name: &'a QueueName) -> DeadlineView<'a> {
        let slot = self.queues.find(name.as_str());
        let queue = slot.map(|slot| self.queues.at(slot)).filter(|queue| queue.role == Role::Named);
        let ListLifetime { at, over } = queue.map(|queue| queue.lifetime()).unwrap_or_default();
        DeadlineView { name: name.as_str(), of_value: false, at, over }
    }
}

impl FrameWriter {
    /// True if the log has room for the place of a spared message. Room that is kept for deletions
    /// does not count.
    pub(crate) fn may_say_where(&self) -> bool {
        self.takes_change() && !self.is_scarce()
    }
}

/// The most bytes that the lifetime of a list takes in a snapshot.
pub(crate) fn snapshot_bytes(name: &QueueName, lifetime: ListLifetime) -> u64 {
    let is_default = lifetime == ListLifetime::default();
    if is_default { 0 } else { (name.as_str().len() + LIFETIME_BYTES_MAX) as u64 }
}

/// Bytes of a KeyDeadline record beside the name, and its share of the cost of a chunk.
const LIFETIME_BYTES_MAX: usize = 2 + 2 + 8 + 8 + 9 + 9 + 8;
