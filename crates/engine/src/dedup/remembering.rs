//! Names that senders give their messages are remembered for a while, and forgotten in their order.

use alloc::sync::Arc;

use model::{DependsOn, Nanos};
use records::{RecordError, SendIdView};

use crate::dedup::{Age, DedupEntry, First, SendIds, SendKey, Sent};
use crate::recovery::snapshot::snapshot_bytes_of_record;
use crate::store::MessageStore;

impl SendIds {
    /// From now on these are not stored again.
    pub(crate) fn remember_all(
        &mut self,
        sent: impl IntoIterator<Item = Sent>,
        after: DependsOn,
        store: &mut MessageStore,
    ) {
        for Sent { key, message, copies, fingerprint, record_bytes } in sent {
            let first = First { message, copies, after, fingerprint: Some(fingerprint) };
            self.remember_first(store.latest, DedupEntry { key, first, record_bytes }, store);
        }
    }

    /// A name as the log or a snapshot has it, maybe both.
    pub(crate) fn replay_send_id(
        &mut self,
        view: &SendIdView<'_>,
        size: usize,
        store: &mut MessageStore,
    ) -> Result<(), RecordError> {
        store.latest = store.latest.max(view.at);
        let key = (view.destination()?, Arc::from(view.id));
        let SendIdView { message, copies, fingerprint, .. } = *view;
        let first =
            First { message: Some(message), copies, after: DependsOn::NOTHING, fingerprint };
        if self.is_on() {
            self.remember_first(
                view.at,
                DedupEntry { key, first, record_bytes: size as u64 },
                store,
            );
        }
        Ok(())
    }

    /// Remembers the latest message of a name, and forgets the oldest names.
    fn remember_first(&mut self, at: Nanos, seen: DedupEntry, store: &mut MessageStore) {
        let known = self.ages.get(&seen.key).copied();
        if known.is_some_and(|(known_at, _)| known_at >= at) {
            return;
        }
        if let Some(known) = known {
            self.forget_send_id(known, store);
        }
        store.change_snapshot_bytes(0, snapshot_bytes_of_record(seen.record_bytes));
        self.insert(at, seen);
        self.forget_send_ids(store);
    }

    /// Forgets the oldest names, while they are too many or too old.
    pub(crate) fn forget_send_ids(&mut self, store: &mut MessageStore) {
        for _ in 0..FORGOTTEN_MAX {
            let Some(age) = self.superfluous(store.latest) else { break };
            self.forget_send_id(age, store);
        }
    }

    fn forget_send_id(&mut self, age: Age, store: &mut MessageStore) {
        let Some(seen) = self.remove(age) else { return };
        store.change_snapshot_bytes(snapshot_bytes_of_record(seen.record_bytes), 0);
    }

    /// The most bytes that all names take in a snapshot.
    pub(crate) fn snapshot_bytes(&self) -> u64 {
        self.seen.values().map(|seen| snapshot_bytes_of_record(seen.record_bytes)).sum()
    }
}

/// Bytes that the record of a deduplication id may take beside the record of the message.
pub(crate) fn send_id_bytes_max(key: Option<&SendKey>) -> usize {
    let texts = key.map(|(to, id)| to.name().as_str().len() + id.len());
    texts.map_or(0, |bytes| bytes + SendIdView::FIXED_BYTES_MAX)
}

/// So many names are forgotten at once: more than one, so that old ones go though others come.
const FORGOTTEN_MAX: usize = 8;
