//! Keys in recovery, and in snapshots.
//!
//! A snapshot shows each value, and the lifetime of each list that has one, as it is when its turn
//! comes. Frames from after the snapshot's begin say the whole of each again, so the last holds.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Bound;

use model::{Durability, QueueName};
use records::{DeadlineView, Over, RecordError, RecordView, ValueView, encode, queue_name};

use super::Value;
use crate::engine::{Engine, MessageStore};
use crate::keys::Keyspace;
use crate::queue::{ListLifetime, Role};

/// How far a snapshot has come with the keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyCursor {
    value: Option<QueueName>,
    list: Option<QueueName>,
    values_done: bool,
    done: bool,
}

impl KeyCursor {
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }
}

impl Engine {
    pub(crate) fn replay_value(&mut self, view: &ValueView<'_>) -> Result<(), RecordError> {
        let name = queue_name(view.name)?;
        self.insert_value(&name, Value { bytes: Arc::from(view.bytes), at: view.at });
        Ok(())
    }

    pub(crate) fn replay_value_deleted(&mut self, name: &str) -> Result<(), RecordError> {
        let name = queue_name(name)?;
        match self.remove_value(&name) {
            Some(_) => Ok(()),
            None => Err(RecordError::UnknownValue),
        }
    }

    pub(crate) fn replay_deadline(&mut self, view: &DeadlineView<'_>) -> Result<(), RecordError> {
        let name = queue_name(view.name)?;
        if view.of_value {
            let value =
                self.keyspace.values.stored(&name).cloned().ok_or(RecordError::UnknownValue)?;
            self.insert_value(&name, Value { at: view.at, ..value });
            return Ok(());
        }
        if let Some(over) = view.over {
            // What comes there from now on is told from what is over by its place.
            self.store.next.front = self.store.next.front.min(over.above);
            self.store.next.message = self.store.next.message.max(over.below);
        }
        let lifetime = ListLifetime { at: view.at, over: view.over };
        if lifetime == ListLifetime::default() {
            self.keyspace.recovered.remove(&name);
        } else {
            self.keyspace.recovered.insert(name, lifetime);
        }
        Ok(())
    }

    /// Shows the next keys; says how many were visited. Few large values fill a chunk.
    pub(crate) fn snapshot_keys(
        &self,
        cursor: &mut KeyCursor,
        chunk_max: usize,
        out: &mut Vec<u8>,
    ) -> usize {
        // What memory alone keeps is in no snapshot.
        cursor.done |= self.context.key_level() == Durability::None;
        let bytes_end = out.len() + CHUNK_BYTES_MAX;
        let mut count = 0;
        while !cursor.done && count < chunk_max && out.len() < bytes_end {
            self.snapshot_next_key(cursor, out);
            count += 1;
        }
        count
    }

    fn snapshot_next_key(&self, cursor: &mut KeyCursor, out: &mut Vec<u8>) {
        if !cursor.values_done {
            let next = self.keyspace.values.iter_after(cursor.value.as_ref()).next();
            cursor.values_done = next.is_none();
            if let Some((name, value)) = next {
                cursor.value = Some(name.clone());
                self.snapshot_value(name, value, out);
            }
            return;
        }
        let from = cursor.list.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.keyspace.limited.range::<QueueName, _>((from, Bound::Unbounded)).next();
        cursor.done = next.is_none();
        if let Some(name) = next {
            encode(&RecordView::KeyDeadline(self.store.lifetime_view(name)), out);
            cursor.list = Some(name.clone());
        }
    }

    fn snapshot_value(&self, name: &QueueName, value: &Value, out: &mut Vec<u8>) {
        let view = ValueView { name: name.as_str(), bytes: &value.bytes, at: value.at };
        encode(&RecordView::ValueSet(view), out);
    }
}

impl Keyspace {
    /// Gives the lists that recovery found their lifetimes.
    pub(crate) fn recover_lifetimes(&mut self, store: &mut MessageStore) {
        for (name, stated) in core::mem::take(&mut self.recovered) {
            if self.recover_lifetime(&name, stated, store) != stated {
                self.stale.insert(name);
            }
        }
        self.unstated.clear();
    }

    /// What of a lifetime that the log knows still is so.
    fn recover_lifetime(
        &mut self,
        name: &QueueName,
        stated: ListLifetime,
        store: &mut MessageStore,
    ) -> ListLifetime {
        let slot = store.queues.find(name.as_str());
        let Some(slot) = slot.filter(|slot| store.queues.at(*slot).role == Role::Named) else {
            return ListLifetime::default();
        };
        let reached = stated.at.filter(|at| *at <= store.latest);
        let (above, below) = (store.next.front, store.next.message);
        let reached = reached.map(|at| Over { at, above, below });
        for over in stated.over.into_iter().chain(reached) {
            self.doom_again(slot, over, store);
        }
        let over = stated.over.max(reached);
        let queue = store.queues.at(slot);
        let at = stated.at.filter(|_| reached.is_none() && queue.is_list());
        let over = over.filter(|_| queue.index.counts.doomed > 0);
        self.change_lifetime(slot, ListLifetime { at, over }, store);
        ListLifetime { at, over }
    }
}

/// Bytes after which a chunk of a snapshot takes no further key.
const CHUNK_BYTES_MAX: usize = 256 * 1024;
