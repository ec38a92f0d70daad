//! Recovery: records of snapshots and frames over any state.

use alloc::boxed::Box;
use alloc::vec::Vec;

use model::{Lsn, MessageGroup, MessageId};
use records::{
    Copies, Link, Place, RecordError, RecordView, Records, Standing, StoredEnvelope, place_of,
};

use crate::bodies::Stored;
use crate::engine::Engine;
use crate::log::Placed;
use crate::recovery::placed;
use crate::store::message::Message;

impl Engine {
    /// Takes in a chunk of a snapshot.
    ///
    /// # Errors
    /// When the chunk is damaged or holds a message that is there already.
    pub fn load(&mut self, chunk: &[u8]) -> Result<(), RecordError> {
        self.bodies.begin_recovery();
        for record in Records::new(chunk) {
            let (record, size) = record?;
            match record {
                RecordView::Sequence { next_message, next_buried, latest } => {
                    self.store.recover_numbers(next_message, next_buried, latest);
                }
                RecordView::Subscriptions { next } => {
                    self.directory.subscriptions_mut().skip_to(next);
                }
                RecordView::Subscribed(view) => {
                    self.directory.replay_subscribed(&view, size, &mut self.store)?
                }
                RecordView::SendId(view) => {
                    self.dedup.replay_send_id(&view, size, &mut self.store)?
                }
                RecordView::OwnPolicy(view) => {
                    self.directory.replay_policy(&view, size, &mut self.store)?;
                }
                RecordView::ValueSet(view) => self.keyspace.replay_value(&view, &mut self.store)?,
                RecordView::Collection(view) => {
                    self.keyspace.replay_collection(&view, &mut self.store)?;
                }
                RecordView::FieldsSet(fields) => self.keyspace.replay_fields_set(&fields)?,
                RecordView::Collections { next } => self.keyspace.replay_next_collection(next),
                RecordView::KeyDeadline(view) if !view.of_value => {
                    self.keyspace.replay_deadline(&view, &mut self.store)?
                }
                RecordView::Located { envelope, location, record_bytes } => {
                    if self.store.messages.get(envelope.message.0).is_some() {
                        return Err(RecordError::DuplicateMessage(envelope.message));
                    }
                    let placed = Placed { lsn: location, bytes: record_bytes };
                    self.recover(&envelope, placed, None, None, false)?;
                }
                other => return Err(RecordError::Misplaced(other.kind())),
            }
        }
        Ok(())
    }

    /// Takes in the records of a frame.
    pub(crate) fn replay_records(
        &mut self,
        lsn: Lsn,
        payload: &[u8],
        fuzzy: bool,
    ) -> Result<(), RecordError> {
        for record in Records::new(payload) {
            let (mut record, size) = record?;
            let result = match record {
                RecordView::Message { ref mut envelope, body } => {
                    let group = (self.bodies.formats().group)(envelope.format, body);
                    let body = Some(self.recovered_body(body));
                    envelope.group = 0;
                    self.recover(envelope, placed(lsn, size)?, body, group, fuzzy)
                }
                RecordView::Shared { copies, body } => {
                    self.replay_copies(copies, placed(lsn, size)?, body, fuzzy)
                }
                RecordView::Subscribed(view) => {
                    self.directory.replay_subscribed(&view, size, &mut self.store)
                }
                RecordView::Unsubscribed { number } => self.replay_unsubscribed(number),
                RecordView::Changed { message, standing, moved } => {
                    self.replay_change(message, &standing, moved, placed(lsn, size)?.bytes, fuzzy)
                }
                RecordView::Deleted { message } => match self.store.messages.get(message.0) {
                    Some(_) => {
                        self.forget(message);
                        Ok(())
                    }
                    None => Err(RecordError::UnknownMessage(message)),
                },
                RecordView::SendId(view) => self.dedup.replay_send_id(&view, size, &mut self.store),
                RecordView::OwnPolicy(view) => {
                    self.directory.replay_policy(&view, size, &mut self.store)
                }
                RecordView::ValueSet(view) => self.keyspace.replay_value(&view, &mut self.store),
                RecordView::ValueDeleted { name } => {
                    self.keyspace.replay_value_deleted(name, &mut self.store)
                }
                RecordView::KeyDeadline(view) => {
                    self.keyspace.replay_deadline(&view, &mut self.store)
                }
                RecordView::Collection(view) => {
                    self.keyspace.replay_collection(&view, &mut self.store)
                }
                RecordView::FieldsSet(fields) => self.keyspace.replay_fields_set(&fields),
                RecordView::FieldsGone(fields) => self.keyspace.replay_fields_gone(&fields),
                other => Err(RecordError::Misplaced(other.kind())),
            };
            match result {
                Err(error) if fuzzy && error.is_unknown() => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Takes the bodies of a frame from before the snapshot, for the messages with this location.
    /// Everything else in it is ignored.
    ///
    /// # Errors
    /// When the frame is damaged, or such a record is not the one that the snapshot names.
    pub fn restore_body(&mut self, lsn: Lsn, payload: &[u8]) -> Result<(), RecordError> {
        for record in Records::new(payload) {
            match record? {
                (RecordView::Message { envelope, body }, size) => {
                    self.restore_one(envelope.message, 0, placed(lsn, size)?, body, &mut None)?;
                }
                (RecordView::Shared { copies, body }, size) => {
                    let (group, mut shared) = (copies.group(), None);
                    for copy in copies.iter() {
                        let placed = placed(lsn, size)?;
                        self.restore_one(copy.message, group, placed, body, &mut shared)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// `shared` is the body as other messages have got it.
    fn restore_one(
        &mut self,
        id: MessageId,
        group: u64,
        placed: Placed,
        body: &[u8],
        shared: &mut Option<Stored>,
    ) -> Result<(), RecordError> {
        let Some(message) = self.store.messages.get(id.0) else { return Ok(()) };
        if message.location() != placed.lsn || !message.body_missing() {
            return Ok(());
        }
        if (placed.bytes, group) != (message.record_bytes(), message.group()) {
            return Err(RecordError::WrongBody(id));
        }
        let (slot, before) = (message.queue(), message.body_bytes());
        let message_group = (self.bodies.formats().group)(message.format(), body);
        let body = shared.get_or_insert_with(|| self.recovered_body(body)).clone();
        let now = body.len() as u64;
        self.recovery.end_missing(true);
        let message = self.store.message_mut(id);
        // It is away as it was before: its size alone is news.
        message.find_body(body.len());
        let account = message.account();
        let (queue, accounts) = self.store.queues.at_with_accounts(slot);
        queue.change_body_bytes(before, now);
        accounts.resize(account, before, now);
        if body.here().is_some() {
            self.bodies.replace_body(id, body, &mut self.store);
            self.trim();
        }
        if message_group.is_some() {
            let state = self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
            self.store.message_mut(id).set_message_group(message_group);
            self.keyspace.index(id, state, &self.bodies, &mut self.store);
        }
        Ok(())
    }

    /// Ends recovery; `last` is the position of the last frame in the log.
    ///
    /// # Errors
    /// When a message has no body or no subscription, or a frame after `last` was replayed.
    pub fn finish_recovery(&mut self, last: Lsn) -> Result<(), RecordError> {
        if self.recovery.bodies_missing() > 0 {
            let missing =
                self.store.messages.iter_from(0).find(|(_, message)| message.body_missing());
            let (number, _) = missing.expect("invariant: missing bodies are counted");
            return Err(RecordError::MissingBody(MessageId(number)));
        }
        if last < self.recovery.replayed() {
            return Err(RecordError::OutOfOrder(last));
        }
        self.recovery.drop_chain();
        if !self.bodies.groups_are_whole(&self.store) {
            return Err(RecordError::Invalid("group"));
        }
        if let Some(number) = self.recovery.pending_unsubscribes().keys().next() {
            return Err(RecordError::UnknownSubscription(*number));
        }
        self.keyspace.recover_collections(&mut self.store)?;
        self.keyspace.recover_lifetimes(&mut self.store);
        self.directory.recover_expiries(&mut self.store);
        self.bodies.share_recovered(&mut self.store);
        let idle: Vec<_> = self.store.queues.iter().map(|(slot, _)| slot).collect();
        for slot in idle {
            self.store.queues.at_mut(slot).spare_what_is_there();
            self.directory.remove_if_idle(slot, &mut self.sessions, &mut self.store);
        }
        self.log.recover(last);
        self.bodies.end_recovery(last);
        self.recovery.finish();
        Ok(())
    }

    /// Location of each Message or Shared record of which something lives, and the bytes that are
    /// counted for it: see [`crate::FrameEnd::live`].
    pub fn live(&self) -> impl Iterator<Item = (Lsn, u64)> {
        let alone = self.store.messages.iter_from(0).map(|(_, message)| message);
        let alone = alone.filter(|message| message.is_journalled() && message.group() == 0);
        let alone = alone.map(|message| (message.location(), message.live_bytes()));
        alone.chain(self.bodies.live_groups())
    }

    /// Takes in a message, or anew one that is known: compaction states messages again.
    fn recover(
        &mut self,
        envelope: &StoredEnvelope<'_>,
        placed: Placed,
        body: Option<Stored>,
        message_group: Option<MessageGroup>,
        fuzzy: bool,
    ) -> Result<(), RecordError> {
        let id = envelope.message;
        if envelope.group > id.0 {
            return Err(RecordError::Invalid("group"));
        }
        if let Some(known) = self.store.messages.get(id.0) {
            // Of two bodies in one frame a snapshot, which names the frame, could not say which
            // counts.
            if body.is_some() && known.location() == placed.lsn && !known.body_missing() {
                return Err(RecordError::Invalid("message (stated twice in one frame)"));
            }
            self.forget(id);
        }
        let slot = self.recovery.recovered_place(
            envelope.place,
            fuzzy,
            &self.directory,
            &mut self.store,
        )?;
        self.store.check_places(id, slot, &envelope.standing)?;
        let body_missing = body.is_none();
        let body = body.unwrap_or(Stored::paged_out(placed.bytes));
        let mut message = Message::new(envelope, slot, body);
        message.set_account(self.store.queues.accounts_mut().open(envelope.sender));
        // Nothing tells who made a queue. The one of dead letters was made by no user.
        if self.store.queues.at(slot).name != *self.directory.dead_letters_name() {
            self.store.queues.set_owner(slot, envelope.sender);
        }
        message.set_placed(envelope.group, placed);
        message.set_message_group(message_group);
        if body_missing {
            message.miss_body();
        }
        self.recovery.add_message(body_missing);
        if envelope.group != 0 {
            self.bodies.join_group(envelope.group, placed);
        }
        self.store.latest = self.store.latest.max(envelope.created);
        self.store.snapshot_changed(&message, true);
        self.bodies.account(id, &message, &mut self.store);
        self.store.messages.insert(id.0, Box::new(message));
        self.keyspace.settle_recovered(id, &envelope.standing, &self.bodies, &mut self.store);
        if body_missing {
            self.bodies.grow_as_pictured(id, &mut self.store);
        }
        Ok(())
    }

    fn recovered_body(&self, body: &[u8]) -> Stored {
        self.bodies.recovered(body, self.resting_bytes())
    }

    fn replay_copies(
        &mut self,
        copies: Copies<'_>,
        placed: Placed,
        body: &[u8],
        fuzzy: bool,
    ) -> Result<(), RecordError> {
        let stored = self.recovered_body(body);
        for envelope in copies.iter() {
            let group = (self.bodies.formats().group)(envelope.format, body);
            self.recover(&envelope, placed, Some(stored.clone()), group, fuzzy)?;
        }
        Ok(())
    }

    fn replay_unsubscribed(&mut self, number: u64) -> Result<(), RecordError> {
        self.directory.subscriptions_mut().skip_to(number + 1);
        let slot = match self.directory.subscriptions().get(number) {
            Some(entry) => entry.queue(),
            None => {
                let phantom = self.recovery.end_pending(number);
                phantom.ok_or(RecordError::UnknownSubscription(number))?
            }
        };
        let mut ids = self.store.messages_of(slot);
        while let Some(id) = ids.pop() {
            self.forget(id);
        }
        if self.directory.subscriptions().get(number).is_some() {
            self.directory.withdraw(number, &mut self.sessions, &mut self.store);
        } else {
            self.directory.begin_leaving(slot, &mut self.sessions, &mut self.store);
        }
        Ok(())
    }

    fn replay_change(
        &mut self,
        id: MessageId,
        standing: &Standing<'_>,
        moved: Option<Place<'_>>,
        changed_bytes: u32,
        fuzzy: bool,
    ) -> Result<(), RecordError> {
        let Some(message) = self.store.messages.get(id.0) else {
            return Err(RecordError::UnknownMessage(id));
        };
        let before = message.queue();
        let slot = moved.map_or(Ok(before), |place| {
            self.recovery.recovered_place(place, fuzzy, &self.directory, &mut self.store)
        })?;
        self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
        self.store.reorder(id, place_of(id));
        self.store.check_places(id, slot, standing)?;
        self.bodies.change_queue(id, slot, &mut self.store);
        self.store.amend(id, |message| {
            message.assume(id, standing);
            if moved.is_some() {
                message.mark_moved();
            }
        });
        self.bodies.note_growth(id, changed_bytes, &mut self.store);
        self.keyspace.settle_recovered(id, standing, &self.bodies, &mut self.store);
        Ok(())
    }

    fn forget(&mut self, id: MessageId) {
        self.keyspace.unindex(id, &mut self.sessions, &mut self.store);
        let message = self.bodies.take(id, &mut self.store);
        self.bodies.part_from_group(&message);
        self.recovery.end_missing(message.body_missing());
    }
}

impl Engine {
    /// Takes in a frame from after the snapshot's begin. Between the begin and the end of the
    /// snapshot frames are `fuzzy`: changes of messages and subscriptions that the snapshot found
    /// gone are ignored. Everywhere else they are errors.
    ///
    /// # Errors
    /// When the frame is damaged, not after the one before it, part of a chain without its
    /// beginning, or about an unknown message or subscription.
    pub fn replay(&mut self, lsn: Lsn, payload: &[u8], fuzzy: bool) -> Result<(), RecordError> {
        if lsn <= self.recovery.replayed() {
            return Err(RecordError::OutOfOrder(lsn));
        }
        self.recovery.advance(lsn);
        self.bodies.begin_recovery();
        if lsn.0.is_multiple_of(FRAMES_PER_TRIM) {
            self.trim();
        }
        let Some(Link { first, more, records }) = Link::of(payload)? else {
            self.recovery.drop_chain();
            return self.replay_records(lsn, payload, fuzzy);
        };
        let chain = self.recovery.chain_of(lsn, first)?;
        if more {
            self.recovery.hold_chain(chain, lsn, records);
            return Ok(());
        }
        for (lsn, records) in chain.frames() {
            self.replay_records(*lsn, records, fuzzy)?;
        }
        self.replay_records(lsn, records, fuzzy)
    }

    /// Chains that the log ended or went on without: commits that were cut off.
    #[must_use]
    pub fn chains_cut(&self) -> u64 {
        self.recovery.chains_cut()
    }
}

/// Messages themselves take memory, for which bodies have to leave: a little for each frame.
const FRAMES_PER_TRIM: u64 = 64;

#[cfg(test)]
#[path = "recover_test.rs"]
mod tests;
