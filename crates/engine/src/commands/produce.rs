//! Commands of producers: opening, sending to queues and topics, deduplication.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::slice;

use model::{
    Destination, Durability, LinkId, MessageId, NewMessage, QueueName, Refusal, Reply,
    TransactionId, limits,
};
use records::{CopiesDraft, RecordView, StoredEnvelope};

use crate::Effects;
use crate::bodies::Stored;
use crate::dedup::remembering::send_id_bytes_max;
use crate::dedup::{Sent, SentBefore};
use crate::directory::Target;
use crate::directory::takers::Takers;
use crate::directory::topics::TopicSlot;
use crate::engine::Engine;
use crate::ids::{QueueSlot, SessionSlot};
use crate::log::NoRoom;
use crate::outcome::Outcome;
use crate::store::drafting::{Drafted, Placement};
use crate::store::message::Message;

impl Engine {
    pub(crate) fn put(
        &mut self,
        by: SessionSlot,
        link: LinkId,
        new: NewMessage,
        transaction: Option<TransactionId>,
        effects: &mut Effects,
    ) -> Outcome {
        let Some(target) = self.sessions.at(by).producers().get(&link).copied() else {
            return self.sessions.refuse_part(by, transaction, Refusal::NoSuchLink, &self.log);
        };
        self.put_at(by, target, new, transaction, effects)
    }

    pub(crate) fn put_to(
        &mut self,
        by: SessionSlot,
        to: Destination,
        new: NewMessage,
        transaction: Option<TransactionId>,
        effects: &mut Effects,
    ) -> Outcome {
        let target = match self.directory.target(to, &mut self.store) {
            Ok(target) => target,
            Err(refusal) => return self.sessions.refuse_part(by, transaction, refusal, &self.log),
        };
        let outcome = self.put_at(by, target, new, transaction, effects);
        self.directory.remove_target_if_idle(target, &mut self.sessions, &mut self.store);
        outcome
    }

    fn put_at(
        &mut self,
        by: SessionSlot,
        target: Target,
        new: NewMessage,
        transaction: Option<TransactionId>,
        effects: &mut Effects,
    ) -> Outcome {
        if self.directory.is_gone(target, &self.store) {
            return self.sessions.refuse_part(
                by,
                transaction,
                Refusal::NoSuchDestination,
                &self.log,
            );
        }
        if new.body.len() > limits::MESSAGE_BYTES_MAX {
            return self.sessions.refuse_part(by, transaction, Refusal::StoreFull, &self.log);
        }
        if new.send_id.as_ref().is_some_and(|id| id.len() > limits::SEND_ID_BYTES_MAX) {
            return self.sessions.refuse_part(by, transaction, Refusal::SendIdTooLong, &self.log);
        }
        if transaction.is_none()
            && let Some(before) = self.dedup.sent_before(
                self.dedup.send_key(target, &new, &self.directory, &self.store).as_ref(),
                &new,
                &self.bodies,
                &mut self.store,
            )
        {
            return match before {
                SentBefore::Same(first) => Outcome::reply(first.after(), first.reply()),
                SentBefore::Other(after) => Outcome::reused(after),
            };
        }
        match (transaction, target) {
            (Some(transaction), _) => self.put_in_transaction(by, transaction, target, new),
            (None, Target::Queue(slot)) => self.put_in_queue(slot, new, effects),
            (None, Target::Topic(slot)) => self.publish(by, slot, &new, effects),
        }
    }

    fn put_in_queue(&mut self, slot: QueueSlot, new: NewMessage, effects: &mut Effects) -> Outcome {
        let key = self.dedup.send_key(Target::Queue(slot), &new, &self.directory, &self.store);
        let beside_bytes = send_id_bytes_max(key.as_ref());
        let spot = Placement { order: None, beside_bytes };
        self.keyspace.state_if_stale(slot, &mut self.store, &mut self.log, effects);
        let Ok(drafted) = self.store.draft_alone(slot, &new, spot, &mut self.log, effects) else {
            return Outcome::refused(Refusal::StoreFull);
        };
        let sent = self.bodies.draft_send_id(
            key,
            &new,
            slice::from_ref(&drafted),
            &self.store,
            &mut self.log,
            effects,
        );
        let (id, message) = drafted;
        let after = message.after();
        self.keyspace.admit(id, message, &mut self.bodies, &mut self.store);
        self.dedup.remember_all(sent, after, &mut self.store);
        Outcome::reply(after, Reply::Stored { message: id }).waking(slot)
    }

    fn publish(
        &mut self,
        by: SessionSlot,
        topic: TopicSlot,
        new: &NewMessage,
        effects: &mut Effects,
    ) -> Outcome {
        let mut drafted = Vec::new();
        let name = self.directory.topics().at(topic).name().clone();
        let Ok(sent) = self.draft_copies(by, &name, new, &mut drafted, effects) else {
            return Outcome::refused(Refusal::StoreFull);
        };
        let reply = drafted.first().map(|(first, _)| Reply::Stored { message: *first });
        self.admit_all(drafted, sent, reply.unwrap_or(Reply::Done))
    }

    /// Answers, and lets the published messages take their places.
    pub(crate) fn admit_all(
        &mut self,
        drafted: Vec<Drafted>,
        sent: Option<Sent>,
        reply: Reply,
    ) -> Outcome {
        let after = self.log.after_open();
        self.dedup.remember_all(sent, after, &mut self.store);
        let mut outcome = Outcome::reply(after, reply);
        for (id, message) in drafted {
            outcome = outcome.waking(message.queue());
            self.keyspace.admit(id, message, &mut self.bodies, &mut self.store);
        }
        outcome
    }

    /// Drafts the messages that come of one message, and the record of its deduplication id.
    pub(crate) fn draft(
        &mut self,
        by: SessionSlot,
        target: Target,
        new: &NewMessage,
        drafted: &mut Vec<Drafted>,
        effects: &mut Effects,
    ) -> Result<Option<Sent>, NoRoom> {
        match target {
            Target::Queue(slot) => {
                let key = self.dedup.send_key(target, new, &self.directory, &self.store);
                let beside_bytes = send_id_bytes_max(key.as_ref());
                let spot = Placement { order: None, beside_bytes };
                let one = self.store.draft_alone(slot, new, spot, &mut self.log, effects)?;
                let sent = self.bodies.draft_send_id(
                    key,
                    new,
                    slice::from_ref(&one),
                    &self.store,
                    &mut self.log,
                    effects,
                );
                drafted.push(one);
                Ok(sent)
            }
            Target::Topic(slot) => {
                let name = self.directory.topics().at(slot).name().clone();
                self.draft_copies(by, &name, new, drafted, effects)
            }
        }
    }

    /// A message for each subscription of a topic that takes it, and its sender's name for it.
    pub(crate) fn draft_copies(
        &mut self,
        by: SessionSlot,
        topic: &QueueName,
        new: &NewMessage,
        drafted: &mut Vec<Drafted>,
        effects: &mut Effects,
    ) -> Result<Option<Sent>, NoRoom> {
        let first = drafted.len();
        let key = self.dedup.topic_send_key(topic, new);
        let beside_bytes = send_id_bytes_max(key.as_ref());
        let Self { bodies, store, directory, sessions, .. } = self;
        let takers = directory.takers(by, topic, new, bodies.formats(), sessions, store);
        let Takers { mut durable, mut others, of_patterns } = takers;
        let level = self.log.durability(new.persistence);
        if level == Durability::None {
            durable.append(&mut others);
            others = core::mem::take(&mut durable);
        }
        if let [slot] = durable[..] {
            let spot = Placement { order: None, beside_bytes };
            drafted.push(self.store.draft_alone(slot, new, spot, &mut self.log, effects)?);
        } else if !durable.is_empty() {
            self.draft_shared(&durable, level, new, beside_bytes, drafted, effects)?;
        }
        let told = of_patterns.into_iter().map(|slot| (slot, Some(topic)));
        let name = (others.len() + told.len() > 1).then_some(self.store.next_message());
        for (slot, told) in others.into_iter().map(|slot| (slot, None)).chain(told) {
            let id = self.store.next_message();
            let envelope = self.store.envelope_of_new(id, Durability::None, new);
            let mut message = Message::new(&envelope, slot, Stored::Here(Arc::clone(&new.body)));
            message.set_message_group(new.group);
            if let Some(name) = name {
                self.bodies.share_body(&mut message, name, &mut self.store);
            }
            if let Some(topic) = told {
                message.set_topic(topic.clone());
            }
            // A consumer sees it only once no crash can undo the message for queues that have a
            // record of it.
            message.set_changed(self.log.after_open().lsn);
            self.store.number_messages(1);
            drafted.push((id, Box::new(message)));
        }
        let drafted = drafted.get(first..).unwrap_or_default();
        Ok(self.bodies.draft_send_id(key, new, drafted, &self.store, &mut self.log, effects))
    }

    /// Copies for several durable subscriptions, as one record.
    fn draft_shared(
        &mut self,
        slots: &[QueueSlot],
        level: Durability,
        new: &NewMessage,
        beside_bytes: usize,
        drafted: &mut Vec<Drafted>,
        effects: &mut Effects,
    ) -> Result<(), NoRoom> {
        let MessageId(first) = self.store.next_message();
        let mut copies = CopiesDraft::default();
        for (&slot, number) in slots.iter().zip(first..) {
            let place = self.store.queues.at(slot).place();
            let id = MessageId(number);
            let envelope = self.store.envelope_of_new(id, level, new);
            copies.push(&StoredEnvelope { place, sender: 0, ..envelope });
        }
        let record = RecordView::Shared { copies: copies.copies(), body: &new.body };
        let placed = self.log.store_beside(&record, beside_bytes, level, effects)?;
        for (&slot, number) in slots.iter().zip(first..) {
            let id = MessageId(number);
            let envelope = self.store.envelope_of_new(id, level, new);
            let mut message = Message::new(&envelope, slot, Stored::Here(Arc::clone(&new.body)));
            message.set_message_group(new.group);
            message.set_stored(first, placed);
            self.bodies.join_group(first, placed);
            self.bodies.share_body(&mut message, MessageId(first), &mut self.store);
            drafted.push((id, Box::new(message)));
        }
        self.store.number_messages(slots.len() as u64);
        Ok(())
    }
}
