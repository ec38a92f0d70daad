//! Remembers deduplication ids, and finds sends that repeat one.

use alloc::sync::Arc;

use model::{Destination, Durability, NewMessage, QueueName};
use records::RecordView;

use crate::Effects;
use crate::bodies::Bodies;
use crate::dedup::{SendIds, SendKey, Sent, SentBefore, view_of};
use crate::directory::{Directory, Target};
use crate::log::FrameWriter;
use crate::store::MessageStore;
use crate::store::drafting::Drafted;

impl SendIds {
    /// The name that the sender gives a message, if that is to be remembered.
    pub(crate) fn send_key(
        &self,
        target: Target,
        new: &NewMessage,
        directory: &Directory,
        store: &MessageStore,
    ) -> Option<SendKey> {
        match target {
            Target::Queue(slot) => {
                let id = new.send_id.as_ref().filter(|_| self.is_on())?;
                let name = store.queues.at(slot).name.clone();
                Some((Destination::Queue(name), Arc::clone(id)))
            }
            Target::Topic(slot) => self.topic_send_key(directory.topics().at(slot).name(), new),
        }
    }

    /// The same of a message that is published.
    pub(crate) fn topic_send_key(&self, topic: &QueueName, new: &NewMessage) -> Option<SendKey> {
        let id = new.send_id.as_ref().filter(|_| self.is_on())?;
        Some((Destination::Topic(topic.clone()), Arc::clone(id)))
    }

    /// The fate of the message when it was sent before.
    pub(crate) fn sent_before(
        &self,
        key: Option<&SendKey>,
        new: &NewMessage,
        bodies: &Bodies,
        store: &mut MessageStore,
    ) -> Option<SentBefore> {
        let key = key?;
        store.took_steps(1);
        let first = *self.find(key, store.latest)?;
        let is_same = first.fingerprint.is_none_or(|it| it == bodies.fingerprint(new));
        Some(if is_same { SentBefore::Same(first) } else { SentBefore::Other(first.after) })
    }

    /// True if the message was sent there before.
    pub(crate) fn was_sent(
        &self,
        target: Target,
        new: &NewMessage,
        directory: &Directory,
        store: &MessageStore,
    ) -> bool {
        self.remembers(self.send_key(target, new, directory, store), store)
    }

    /// True if the message was published before.
    pub(crate) fn was_published(
        &self,
        topic: &QueueName,
        new: &NewMessage,
        store: &MessageStore,
    ) -> bool {
        self.remembers(self.topic_send_key(topic, new), store)
    }

    fn remembers(&self, key: Option<SendKey>, store: &MessageStore) -> bool {
        key.is_some_and(|key| self.find(&key, store.latest).is_some())
    }
}

impl Bodies {
    /// Tells a message from another one under the same name.
    pub(crate) fn fingerprint(&self, new: &NewMessage) -> u64 {
        (self.formats().fingerprint)(new.format, &new.body)
    }

    /// Appends the record of a message's name behind the records of its copies, which have left
    /// room for it. It stays in memory only if all copies do.
    pub(crate) fn draft_send_id(
        &self,
        key: Option<SendKey>,
        new: &NewMessage,
        drafted: &[Drafted],
        store: &MessageStore,
        log: &mut FrameWriter,
        effects: &mut Effects,
    ) -> Option<Sent> {
        let key = key?;
        let message = drafted.first().map(|(id, _)| *id);
        let copies = u32::try_from(drafted.len()).unwrap_or(u32::MAX);
        let level = drafted.iter().map(|(_, message)| message.durability()).max();
        let level = level.unwrap_or(Durability::None);
        let fingerprint = self.fingerprint(new);
        let mut sent = Sent { key, message, copies, fingerprint, record_bytes: 0 };
        if let Some(message) = message.filter(|_| level != Durability::None) {
            let view = view_of(&sent.key, message, copies, store.latest, Some(fingerprint));
            let placed = log.store(&RecordView::SendId(view), level, effects);
            let placed = placed.expect("invariant: the message was stored with room beside it");
            sent.record_bytes = placed.bytes.into();
        }
        Some(sent)
    }
}
