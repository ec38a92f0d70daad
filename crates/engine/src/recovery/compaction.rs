//! Storing anew the live messages of an old frame, so that its place in the log can be used again.

use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{Durability, Lsn, MessageId};
use records::{CopiesDraft, RecordView, StoredEnvelope};

use crate::bodies::{Bodies, Stored};
use crate::log::{FrameWriter, Placed, unrecorded_bytes_max};
use crate::store::MessageStore;
use crate::store::message::Message;
use crate::{Effects, Grown};

impl Bodies {
    /// Notes a record of so many bytes about the state of a message: the message's own record may
    /// take so much more when it is stored anew. The own record already has the message's number,
    /// its times, its format and its body. The other has all else, the name of another queue too.
    pub(crate) fn note_growth(
        &mut self,
        id: MessageId,
        changed_bytes: u32,
        store: &mut MessageStore,
    ) -> Option<Grown> {
        let message = store.message_mut(id);
        let bytes = message.grow(changed_bytes);
        let (lsn, group) = (message.location(), message.group());
        if group != 0 {
            self.grow_group(group, bytes);
        }
        (bytes > 0).then_some(Grown { lsn, bytes })
    }

    /// The new record cannot be read back yet: its body is here until then.
    pub(crate) fn bring_restated(&mut self, id: MessageId, body: &[u8], store: &mut MessageStore) {
        if self.here(store.message(id)).is_none() {
            self.bring(store.body_name(id), Arc::from(body), store);
        }
    }

    pub(crate) fn restate_message(
        &mut self,
        id: MessageId,
        body: &[u8],
        store: &mut MessageStore,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) -> Placed {
        // Not `message`: the log is borrowed beside it.
        let message = store.messages.get(id.0).expect("invariant: what is restated lives");
        let envelope = StoredEnvelope { group: 0, ..store.queues.envelope_of(id, message) };
        let record = RecordView::Message { envelope, body };
        let placed = log.append(&record, message.durability(), effects);
        self.move_records(&[id], 0, placed, store, effects);
        placed
    }

    /// Again with one body, and as a group that is named by the first that lives.
    pub(crate) fn restate_copies(
        &mut self,
        first: MessageId,
        message: &[MessageId],
        body: &[u8],
        store: &mut MessageStore,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) -> Placed {
        let mut draft = CopiesDraft::default();
        let mut level = Durability::None;
        for &id in message {
            let message = store.message(id);
            draft.push(&store.queues.envelope_of(id, message));
            level = level.max(message.durability());
        }
        let record = RecordView::Shared { copies: draft.copies(), body };
        let placed = log.append(&record, level, effects);
        self.move_records(message, first.0, placed, store, effects);
        placed
    }

    /// These messages are in another record now, which stores them as this group; their body is
    /// here.
    fn move_records(
        &mut self,
        ids: &[MessageId],
        group: u64,
        to: Placed,
        store: &mut MessageStore,
        effects: &mut Effects,
    ) {
        let first = ids.first().map(|id| store.message(*id));
        let body = first.and_then(|first| self.here(first)).map(Arc::clone);
        let body = body.expect("invariant: what is stored anew is here");
        for id in ids {
            let Some(message) = store.messages.get(id.0) else { continue };
            self.release_record(message, effects);
            if let Some(name) = message.shared() {
                self.part_from_body(name, store);
            }
        }
        for id in ids {
            let Some(mut message) = store.messages.remove(id.0) else { continue };
            let shared = message.shared().is_some();
            message.set_placed(group, to);
            if shared {
                message.set_body(Stored::Here(Arc::clone(&body)));
            }
            if group != 0 {
                self.join_group(group, to);
                self.share_body(&mut message, MessageId(group), store);
            } else if shared {
                self.account(*id, &message, store);
            }
            store.messages.insert(id.0, message);
        }
    }
}

impl Bodies {
    /// A message that is about to be forgotten lets go of its place in the log.
    pub(crate) fn forget_record(
        &mut self,
        id: MessageId,
        store: &mut MessageStore,
        effects: &mut Effects,
    ) {
        let bytes = store.snapshot_bytes_of(store.message(id));
        store.change_snapshot_bytes(bytes, 0);
        let Some(mut message) = store.messages.remove(id.0) else { return };
        assert!(
            store.queues.at(message.queue()).is_leaving(),
            "a message that stays keeps its record"
        );
        self.release_record(&message, effects);
        self.unaccount(id, &message, store);
        let (shared, before) = (message.shared(), message.body_bytes());
        message.drop_record();
        let gone = before - message.body_bytes();
        let (queue, accounts) = store.queues.at_with_accounts(message.queue());
        queue.change_body_bytes(gone, 0);
        accounts.resize(message.account(), gone, 0);
        match shared {
            Some(name) => self.separate(name, &mut message, Arc::default(), store),
            None => self.account(id, &message, store),
        }
        store.messages.insert(id.0, message);
    }

    /// True if the frame is where the message's record is. One that is about to be forgotten lets
    /// go of it instead.
    pub(crate) fn must_restate(
        &mut self,
        id: MessageId,
        lsn: Lsn,
        store: &mut MessageStore,
        effects: &mut Effects,
    ) -> bool {
        let Some(message) = store.lives_at(id, lsn) else { return false };
        if store.queues.at(message.queue()).is_leaving() {
            self.forget_record(id, store, effects);
            return false;
        }
        true
    }

    /// States anew the living messages of a record that stored these messages.
    pub(crate) fn restate_record(
        &mut self,
        ids: &[MessageId],
        body: &[u8],
        lsn: Lsn,
        store: &mut MessageStore,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) {
        let stays = |id: &&MessageId| self.must_restate(**id, lsn, store, effects);
        let message: Vec<_> = ids.iter().filter(stays).copied().collect();
        let Some(first) = message.first() else { return };
        let bytes = self.live_bytes_of(store.message(*first));
        let growth = unrecorded_bytes_max(2);
        // Before the messages move to a frame that no command or browser waits for.
        self.bring_restated(*first, body, store);
        log.make_way(usize::try_from(bytes + growth).unwrap_or(usize::MAX), effects);
        let placed = match message[..] {
            [id] => self.restate_message(id, body, store, log, effects),
            _ => self.restate_copies(*first, &message, body, store, log, effects),
        };
        assert!(u64::from(placed.bytes) <= bytes + growth, "its room was known");
    }
}

impl MessageStore {
    pub(crate) fn lives_at(&self, id: MessageId, lsn: Lsn) -> Option<&Message> {
        let message = self.messages.get(id.0)?;
        (message.is_journalled() && message.location() == lsn).then_some(message)
    }
}
