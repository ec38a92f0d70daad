//! Commands of producers: opening, sending to queues and topics, deduplication.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::slice;

use model::{
    DependsOn, Destination, Durability, LinkId, Matching, MessageId, Nanos, NewMessage, QueueName,
    Refusal, Reply, TransactionId, limits,
};
use records::{CopiesDraft, RecordError, RecordView, SendIdView, StoredEnvelope, place_of};

use crate::Effects;
use crate::bodies::Stored;
use crate::dedup::{Age, DedupEntry, First, SendKey, Sent, SentBefore};
use crate::delivery::matching::{Seen, steps_of};
use crate::directory::Target;
use crate::directory::topics::TopicSlot;
use crate::engine::Engine;
use crate::ids::{QueueSlot, SessionSlot};
use crate::log::NoRoom;
use crate::outcome::Outcome;
use crate::recovery::snapshot::snapshot_bytes_of_record;
use crate::store::drafting::{Drafted, Placement};
use crate::store::message::Message;

impl Engine {
    pub(crate) fn open_producer(
        &mut self,
        by: SessionSlot,
        link: LinkId,
        to: Destination,
    ) -> Outcome {
        let target = match self.directory.target(to, &mut self.store) {
            Ok(target) => target,
            Err(refusal) => return Outcome::refused(refusal),
        };
        self.directory.begin_producer(target, &mut self.store);
        if let Some(before) = self.sessions.at_mut(by).open_producer(link, target) {
            self.end_producer(before);
        }
        Outcome::reply(DependsOn::NOTHING, Reply::Done)
    }

    pub(crate) fn close_producer(&mut self, by: SessionSlot, link: LinkId) -> Outcome {
        if let Some(target) = self.sessions.at_mut(by).close_producer(link) {
            self.end_producer(target);
        }
        Outcome::reply(DependsOn::NOTHING, Reply::Done)
    }

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
        self.remove_target_if_idle(target);
        outcome
    }

    /// A producer points there no more.
    pub(crate) fn end_producer(&mut self, target: Target) {
        self.directory.end_producer(target, &mut self.store);
        self.remove_target_if_idle(target);
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
                &mut self.store,
                &self.context,
            )
        {
            return match before {
                SentBefore::Same(first) => Outcome::reply(first.after, first.reply()),
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
        let beside_bytes = Self::send_id_bytes_max(key.as_ref());
        let spot = Placement { order: None, beside_bytes };
        self.state_if_stale(slot, effects);
        let Ok(drafted) =
            self.store.draft_alone(slot, &new, spot, &mut self.log, &self.context, effects)
        else {
            return Outcome::refused(Refusal::StoreFull);
        };
        let sent = self.store.draft_send_id(
            key,
            &new,
            slice::from_ref(&drafted),
            &mut self.log,
            &self.context,
            effects,
        );
        let (id, message) = drafted;
        let after = message.after();
        self.admit(id, message);
        self.remember_all(sent, after);
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
        self.remember_all(sent, after);
        let mut outcome = Outcome::reply(after, reply);
        for (id, message) in drafted {
            outcome = outcome.waking(message.queue);
            self.admit(id, message);
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
                let beside_bytes = Self::send_id_bytes_max(key.as_ref());
                let spot = Placement { order: None, beside_bytes };
                let one = self.store.draft_alone(
                    slot,
                    new,
                    spot,
                    &mut self.log,
                    &self.context,
                    effects,
                )?;
                let sent = self.store.draft_send_id(
                    key,
                    new,
                    slice::from_ref(&one),
                    &mut self.log,
                    &self.context,
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

    /// A message takes its place in its queue.
    pub(crate) fn admit(&mut self, id: MessageId, message: Box<Message>) {
        let (state, slot) = (message.state(), message.queue);
        let order = message.order(id);
        self.store.snapshot_changed(&message, true);
        self.bodies.account(id, &message, &mut self.store);
        self.store.messages.insert(id.0, message);
        if order != place_of(id) {
            self.store.reordered.insert(order as u64, id);
        }
        self.enter(id, state);
        self.store.queues.at_mut(slot).came_one();
        self.store.totals.messages += 1;
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
        let beside_bytes = Self::send_id_bytes_max(key.as_ref());
        let Takers { mut durable, mut others, of_patterns } = self.takers(by, topic, new);
        let level = self.context.policy.durability(new.persistence);
        if level == Durability::None {
            durable.append(&mut others);
            others = core::mem::take(&mut durable);
        }
        if let [slot] = durable[..] {
            let spot = Placement { order: None, beside_bytes };
            drafted.push(self.store.draft_alone(
                slot,
                new,
                spot,
                &mut self.log,
                &self.context,
                effects,
            )?);
        } else if !durable.is_empty() {
            self.draft_shared(&durable, level, new, beside_bytes, drafted, effects)?;
        }
        let told = of_patterns.into_iter().map(|slot| (slot, Some(topic)));
        let name = (others.len() + told.len() > 1).then_some(MessageId(self.store.next.message));
        for (slot, told) in others.into_iter().map(|slot| (slot, None)).chain(told) {
            let id = MessageId(self.store.next.message);
            let envelope = self.store.envelope_of_new(id, Durability::None, new);
            let mut message = Message::new(&envelope, slot, Stored::Here(Arc::clone(&new.body)));
            message.set_message_group(new.group);
            if let Some(name) = name {
                self.bodies.share_body(&mut message, name, &mut self.store);
            }
            if let Some(topic) = told {
                message.history_mut().topic = Some(topic.clone());
            }
            // A consumer sees it only once no crash can undo the message for queues that have a
            // record of it.
            message.changed = self.log.after_open().lsn;
            self.store.next.message += 1;
            drafted.push((id, Box::new(message)));
        }
        let drafted = drafted.get(first..).unwrap_or_default();
        Ok(self.store.draft_send_id(key, new, drafted, &mut self.log, &self.context, effects))
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
        let first = self.store.next.message;
        let mut copies = CopiesDraft::default();
        for (&slot, number) in slots.iter().zip(first..) {
            let place = self.store.queues.at(slot).place();
            let id = MessageId(number);
            copies.push(&StoredEnvelope { place, ..self.store.envelope_of_new(id, level, new) });
        }
        let record = RecordView::Shared { copies: copies.copies(), body: &new.body };
        let placed = self.log.store_beside(&record, beside_bytes, level, effects)?;
        for (&slot, number) in slots.iter().zip(first..) {
            let id = MessageId(number);
            let envelope = self.store.envelope_of_new(id, level, new);
            let mut message = Message::new(&envelope, slot, Stored::Here(Arc::clone(&new.body)));
            message.set_message_group(new.group);
            message.set_stored(first, placed);
            self.bodies.groups.join(first, placed);
            self.bodies.share_body(&mut message, MessageId(first), &mut self.store);
            drafted.push((id, Box::new(message)));
        }
        self.store.next.message += slots.len() as u64;
        Ok(())
    }

    /// Queues that take a message published to that name, whether or not there is such a topic.
    fn takers(&mut self, by: SessionSlot, name: &QueueName, new: &NewMessage) -> Takers {
        let (mut takers, steps) = self.find_takers(by, name, new);
        let (of_globs, looked) = self.directory.matching_globs(name);
        takers.of_patterns.extend(of_globs);
        self.store.took_steps(steps + looked);
        takers
    }

    /// The queues of all subscriptions of a topic that take a message, and the steps that it took
    /// to find them.
    pub(crate) fn takers_of_topic(
        &self,
        by: SessionSlot,
        name: &QueueName,
        new: &NewMessage,
    ) -> (impl Iterator<Item = QueueSlot> + use<>, usize) {
        let (Takers { durable, others, of_patterns }, steps) = self.find_takers(by, name, new);
        (durable.into_iter().chain(others).chain(of_patterns), steps)
    }

    /// The subscriptions that take it but for those of globs, and the steps it took to find them.
    fn find_takers(&self, by: SessionSlot, name: &QueueName, new: &NewMessage) -> (Takers, usize) {
        let topic = self
            .directory
            .topics()
            .find(name.as_str())
            .map(|slot| self.directory.topics().at(slot));
        let client = self.sessions.at(by).client();
        let mut takers = Takers::default();
        let seen = Seen::of_new(new, self.store.latest, &self.context.formats);
        let mut steps = 0;
        let words = self.directory.matching_words(name);
        steps += words.steps;
        let of_topic = topic.iter().flat_map(|topic| topic.subscriptions());
        for number in of_topic.chain(&words.subscriptions) {
            let entry = self.directory.subscriptions().at(*number);
            steps += 1;
            if entry.asks().without.is_some() && entry.asks().without.as_ref() == client {
                continue;
            }
            if let Some(selector) = entry.selector() {
                steps += steps_of(selector);
                if !seen.matches(selector) {
                    continue;
                }
            }
            let of_its_kind = match (entry.asks().is_durable(), entry.asks().matching) {
                (true, _) => &mut takers.durable,
                (false, Matching::Name) => &mut takers.others,
                (false, Matching::Words | Matching::Glob) => &mut takers.of_patterns,
            };
            of_its_kind.push(entry.queue());
        }
        (takers, steps)
    }
}

impl Engine {
    /// Bytes that the record of a deduplication id may take beside the record of the message.
    pub(crate) fn send_id_bytes_max(key: Option<&SendKey>) -> usize {
        let texts = key.map(|(to, id)| to.name().as_str().len() + id.len());
        texts.map_or(0, |bytes| bytes + SendIdView::FIXED_BYTES_MAX)
    }

    /// From now on these are not stored again.
    pub(crate) fn remember_all(&mut self, sent: impl IntoIterator<Item = Sent>, after: DependsOn) {
        for Sent { key, message, copies, fingerprint, record_bytes } in sent {
            let first = First { message, copies, after, fingerprint: Some(fingerprint) };
            self.remember_first(self.store.latest, DedupEntry { key, first, record_bytes });
        }
    }

    /// A name as the log or a snapshot has it, maybe both.
    pub(crate) fn replay_send_id(
        &mut self,
        view: &SendIdView<'_>,
        size: usize,
    ) -> Result<(), RecordError> {
        self.store.latest = self.store.latest.max(view.at);
        let key = (view.destination()?, Arc::from(view.id));
        let SendIdView { message, copies, fingerprint, .. } = *view;
        let first =
            First { message: Some(message), copies, after: DependsOn::NOTHING, fingerprint };
        if self.dedup.is_on() {
            self.remember_first(view.at, DedupEntry { key, first, record_bytes: size as u64 });
        }
        Ok(())
    }

    /// Remembers the latest message of a name, and forgets the oldest names.
    fn remember_first(&mut self, at: Nanos, seen: DedupEntry) {
        let known = self.dedup.ages.get(&seen.key).copied();
        if known.is_some_and(|(known_at, _)| known_at >= at) {
            return;
        }
        if let Some(known) = known {
            self.forget_send_id(known);
        }
        self.store.totals.snapshot_bytes += snapshot_bytes_of_record(seen.record_bytes);
        self.dedup.insert(at, seen);
        self.forget_send_ids();
    }

    /// Forgets the oldest names, while they are too many or too old.
    pub(crate) fn forget_send_ids(&mut self) {
        for _ in 0..FORGOTTEN_MAX {
            let Some(age) = self.dedup.superfluous(self.store.latest) else { break };
            self.forget_send_id(age);
        }
    }

    fn forget_send_id(&mut self, age: Age) {
        let Some(seen) = self.dedup.remove(age) else { return };
        self.store.totals.snapshot_bytes -= snapshot_bytes_of_record(seen.record_bytes);
    }
}

impl Engine {
    /// Forgets it when nothing points to it any more.
    pub(crate) fn remove_target_if_idle(&mut self, target: Target) {
        match target {
            Target::Queue(slot) => self.remove_if_idle(slot),
            Target::Topic(slot) => self.directory.topics_mut().remove_if_idle(slot),
        }
    }
}

/// The subscriptions that take a message: first those that are durable.
#[derive(Debug, Default)]
struct Takers {
    durable: Vec<QueueSlot>,
    others: Vec<QueueSlot>,
    /// Those of patterns that are not durable, which are told which topic it was.
    of_patterns: Vec<QueueSlot>,
}

/// So many names are forgotten at once: more than one, so that old ones go though others come.
const FORGOTTEN_MAX: usize = 8;
