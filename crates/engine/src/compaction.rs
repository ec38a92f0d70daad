//! Storing anew what lives of an old frame, so that its place in the log can be used again.

use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{Durability, LiveRecords, Lsn, MessageId};
use records::{CopiesDraft, Envelope, RecordError, RecordView, Records};

use crate::engine::{Bodies, Engine, MessageStore};
use crate::groups::Group;
use crate::log::{Log, Placed, unrecorded_bytes_max};
use crate::message::{Message, Stored};
use crate::{Effects, Grown};

impl Engine {
    /// For each Message or Shared record of the frame at `lsn` of which something lives there:
    /// states that in a new frame as it stands now and frees the old place. One frame for all, or
    /// none; several where much that could change has been added to many.
    ///
    /// Nothing waits for the new frames: until they are durable the old one must stay.
    ///
    /// # Errors
    /// When the frame is damaged; what came before the damage is stated anew.
    pub fn restate(
        &mut self,
        lsn: Lsn,
        payload: &[u8],
        effects: &mut Effects,
    ) -> Result<(), RecordError> {
        let mut result = Ok(());
        for record in Records::new(payload) {
            match record {
                Ok((RecordView::Message { envelope, body }, _)) => {
                    self.restate_record(&[envelope.message], body, lsn, effects);
                }
                Ok((RecordView::Shared { copies, body }, _)) => {
                    let ids: Vec<_> = copies.iter().map(|copy| copy.message).collect();
                    self.restate_record(&ids, body, lsn, effects);
                }
                Ok(_) => {}
                Err(error) => result = Err(error),
            }
        }
        self.log.seal(effects);
        result
    }

    /// What of the frame at `lsn` would be stated anew, as [`FrameEnd::live`] counts it.
    ///
    /// # Errors
    /// When the frame is damaged.
    ///
    /// [`FrameEnd::live`]: crate::FrameEnd::live
    pub fn restated(&self, lsn: Lsn, payload: &[u8]) -> Result<LiveRecords, RecordError> {
        let mut live = LiveRecords::NONE;
        for record in Records::new(payload) {
            let one = match record?.0 {
                RecordView::Message { envelope, .. } => self.store.lives_at(envelope.message, lsn),
                RecordView::Shared { copies, .. } => {
                    copies.iter().find_map(|copy| self.store.lives_at(copy.message, lsn))
                }
                _ => None,
            };
            if let Some(message) = one {
                live += LiveRecords::one(self.bodies.live_bytes_of(message));
            }
        }
        Ok(live)
    }

    /// States anew what lives of a record that stored these messages.
    fn restate_record(&mut self, ids: &[MessageId], body: &[u8], lsn: Lsn, effects: &mut Effects) {
        let stays = |id: &&MessageId| self.must_restate(**id, lsn, effects);
        let living: Vec<_> = ids.iter().filter(stays).copied().collect();
        let Some(first) = living.first() else { return };
        let bytes = self.bodies.live_bytes_of(self.store.living(*first));
        let growth = unrecorded_bytes_max(2);
        // Before they are where nobody waits for them.
        self.bodies.bring_restated(*first, body, &mut self.store);
        self.log.make_way(usize::try_from(bytes + growth).unwrap_or(usize::MAX), effects);
        let placed = match living[..] {
            [id] => self.bodies.restate_message(id, body, &mut self.store, &mut self.log, effects),
            _ => self.bodies.restate_copies(
                *first,
                &living,
                body,
                &mut self.store,
                &mut self.log,
                effects,
            ),
        };
        assert!(u64::from(placed.bytes) <= bytes + growth, "its room was known");
    }

    /// Whether the frame is where the message's record is. One that is about to be forgotten lets
    /// go of it instead.
    fn must_restate(&mut self, id: MessageId, lsn: Lsn, effects: &mut Effects) -> bool {
        let Some(message) = self.store.lives_at(id, lsn) else { return false };
        if self.store.queues.at(message.queue).is_leaving() {
            self.forget_record(id, effects);
            return false;
        }
        true
    }
}

impl Bodies {
    /// A record of so many bytes says how a message stands: so much more may its own record take
    /// when it is stored anew. That record has the message's number, its times, its format and its
    /// body already, and the other says all else, the name of another queue too.
    pub(crate) fn note_growth(
        &mut self,
        id: MessageId,
        changed_bytes: u32,
        store: &mut MessageStore,
    ) -> Option<Grown> {
        let message = store.living_mut(id);
        let bytes = message.grow(changed_bytes);
        let (lsn, group) = (message.location, message.group());
        if group != 0 {
            self.groups.grow(group, bytes);
        }
        (bytes > 0).then_some(Grown { lsn, bytes })
    }

    /// The new record cannot be read back yet: its body is here until then.
    fn bring_restated(&mut self, id: MessageId, body: &[u8], store: &mut MessageStore) {
        if self.sharing.here(store.living(id)).is_none() {
            self.bring(store.body_name(id), Arc::from(body), store);
        }
    }

    fn restate_message(
        &mut self,
        id: MessageId,
        body: &[u8],
        store: &mut MessageStore,
        log: &mut Log,
        effects: &mut Effects,
    ) -> Placed {
        // Not `living`: the log is borrowed beside it.
        let message = store.messages.get(id.0).expect("invariant: what is restated lives");
        let envelope = Envelope { group: 0, ..store.queues.envelope_of(id, message) };
        let record = RecordView::Message { envelope, body };
        let placed = log.append(&record, message.durability, effects);
        self.move_records(&[id], 0, placed, store, effects);
        placed
    }

    /// Again with one body, and as a group that is named by the first that lives.
    fn restate_copies(
        &mut self,
        first: MessageId,
        living: &[MessageId],
        body: &[u8],
        store: &mut MessageStore,
        log: &mut Log,
        effects: &mut Effects,
    ) -> Placed {
        let mut draft = CopiesDraft::default();
        let mut level = Durability::None;
        for &id in living {
            let message = store.living(id);
            draft.push(&store.queues.envelope_of(id, message));
            level = level.max(message.durability);
        }
        let record = RecordView::Shared { copies: draft.copies(), body };
        let placed = log.append(&record, level, effects);
        self.move_records(living, first.0, placed, store, effects);
        placed
    }

    /// What is counted for the record that has stored it.
    fn live_bytes_of(&self, message: &Message) -> u64 {
        let group = self.groups.get(message.group());
        group.map_or_else(|| message.live_bytes(), Group::live_bytes)
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
        let first = ids.first().map(|id| store.living(*id));
        let body = first.and_then(|first| self.sharing.here(first)).map(Arc::clone);
        let body = body.expect("invariant: what is stored anew is here");
        for id in ids {
            let Some(message) = store.messages.get(id.0) else { continue };
            self.groups.release(message, effects);
            if let Some(name) = message.shared() {
                self.part_from_body(name, store);
            }
        }
        for id in ids {
            let Some(mut message) = store.messages.remove(id.0) else { continue };
            let shared = message.shared().is_some();
            message.set_placed(group, to);
            if shared {
                message.body = Stored::Here(Arc::clone(&body));
            }
            if group != 0 {
                self.groups.join(group, to);
                self.share_body(&mut message, MessageId(group), store);
            } else if shared {
                self.account(*id, &message, store);
            }
            store.messages.insert(id.0, message);
        }
    }
}

impl MessageStore {
    fn lives_at(&self, id: MessageId, lsn: Lsn) -> Option<&Message> {
        let message = self.messages.get(id.0)?;
        (message.is_journalled() && message.location == lsn).then_some(message)
    }
}
