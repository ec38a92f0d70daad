//! Keys in recovery, and in snapshots.
//!
//! A snapshot shows each value, and the lifetime of each list that has one, as it is when its turn
//! comes. Frames from after the snapshot's begin say the whole of each again, so the last holds.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Bound;

use model::{Durability, MessageId, Nanos, QueueName};
use records::{
    CollectionView, DeadlineView, ExpiredList, RecordError, RecordView, Standing, StoredState,
    ValueView, encode, queue_name,
};

use crate::bodies::Bodies;
use crate::keyspace::collections::{Collection, EntryCursor};
use crate::keyspace::values::StoredValue;
use crate::keyspace::{Keyspace, Value};
use crate::log::FrameWriter;
use crate::store::MessageStore;
use crate::store::message::State;
use crate::store::queue::{ListLifetime, Role};

/// How far a snapshot has come with the keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyCursor {
    value: Option<QueueName>,
    entries: EntryCursor,
    list: Option<QueueName>,
    values_done: bool,
    done: bool,
}

impl KeyCursor {
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }
}

impl Keyspace {
    /// The log states the lifetime of a list.
    pub(crate) fn recover_stated(&mut self, name: QueueName, lifetime: ListLifetime) {
        if lifetime == ListLifetime::default() {
            self.recovered.remove(&name);
        } else {
            self.recovered.insert(name, lifetime);
        }
    }

    /// Shows the next keys; says how many were visited. Few large values fill a chunk.
    pub(crate) fn snapshot_keys(
        &self,
        cursor: &mut KeyCursor,
        chunk_max: usize,
        out: &mut Vec<u8>,
        store: &MessageStore,
        log: &FrameWriter,
    ) -> usize {
        // Keys that memory alone keeps are in no snapshot.
        cursor.done |= log.key_level() == Durability::None;
        let bytes_end = out.len() + CHUNK_BYTES_MAX;
        let mut count = 0;
        // Entries come before the names of their collections: a name that is shown has them.
        while !cursor.done
            && !cursor.entries.is_done()
            && count < chunk_max
            && out.len() < bytes_end
        {
            let (most, bytes_max) = (chunk_max - count, bytes_end - out.len());
            let shown =
                self.collections.snapshot_entries(&mut cursor.entries, most, bytes_max, out);
            count += shown.max(1);
        }
        while cursor.entries.is_done() && !cursor.done && count < chunk_max && out.len() < bytes_end
        {
            self.snapshot_next_key(cursor, out, store);
            count += 1;
        }
        count
    }

    fn snapshot_next_key(&self, cursor: &mut KeyCursor, out: &mut Vec<u8>, store: &MessageStore) {
        if !cursor.values_done {
            let next = self.values.iter_after(cursor.value.as_ref()).next();
            cursor.values_done = next.is_none();
            if let Some((name, value)) = next {
                encode(&value.record(&name), out);
                cursor.value = Some(name);
            }
            return;
        }
        let from = cursor.list.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.limited.range::<QueueName, _>((from, Bound::Unbounded)).next();
        cursor.done = next.is_none();
        if let Some(name) = next {
            encode(&RecordView::KeyDeadline(store.lifetime_view(name)), out);
            cursor.list = Some(name.clone());
        }
    }

    /// Gives the lists that recovery found their lifetimes.
    pub(crate) fn recover_lifetimes(&mut self, store: &mut MessageStore) {
        for (name, stated) in core::mem::take(&mut self.recovered) {
            if self.recover_lifetime(&name, stated, store) != stated {
                self.stale.insert(name);
            }
        }
        self.unstated.clear();
    }

    /// The part of a lifetime in the log that still holds.
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
        let (above, below) = store.places_given_out();
        let reached = reached.map(|at| ExpiredList { at, above, below });
        for over in stated.over.into_iter().chain(reached) {
            self.expire_again(slot, over, store);
        }
        let over = stated.over.max(reached);
        let queue = store.queues.at(slot);
        let at = stated.at.filter(|_| reached.is_none() && queue.is_list());
        let over = over.filter(|_| queue.counts().expired_members() > 0);
        self.change_lifetime(slot, ListLifetime { at, over }, store);
        ListLifetime { at, over }
    }

    pub(crate) fn replay_value(
        &mut self,
        view: &ValueView<'_>,
        store: &mut MessageStore,
    ) -> Result<(), RecordError> {
        let name = queue_name(view.name)?;
        self.insert_value(&name, Value::of_text(Arc::from(view.bytes), view.at), store);
        Ok(())
    }

    pub(crate) fn replay_value_deleted(
        &mut self,
        name: &str,
        store: &mut MessageStore,
    ) -> Result<(), RecordError> {
        let name = queue_name(name)?;
        match self.remove_name(&name, store) {
            Some(_) => Ok(()),
            None => Err(RecordError::UnknownValue),
        }
    }

    pub(crate) fn replay_deadline(
        &mut self,
        view: &DeadlineView<'_>,
        store: &mut MessageStore,
    ) -> Result<(), RecordError> {
        let name = queue_name(view.name)?;
        if view.of_value {
            let value = self.values().stored(&name).ok_or(RecordError::UnknownValue)?.to_value();
            self.insert_value(&name, Value { at: view.at, ..value }, store);
            return Ok(());
        }
        if let Some(over) = view.over {
            // New elements there are told from the expired ones by their places.
            store.recover_places(over.above, over.below);
        }
        self.recover_stated(name, ListLifetime { at: view.at, over: view.over });
        Ok(())
    }

    /// Enters a message into its indexes and moves the numbers past those it uses.
    pub(crate) fn settle_recovered(
        &mut self,
        id: MessageId,
        standing: &Standing<'_>,
        bodies: &Bodies,
        store: &mut MessageStore,
    ) {
        let order = standing.order;
        store.enter_order(id, order);
        let largest = if order > 0 { id.0.max(order as u64) } else { id.0 };
        store.recover_places(order - 1, largest + 1);
        let state = match standing.state {
            StoredState::Ready => State::Ready,
            StoredState::Delayed { until } => State::Delayed { until },
            StoredState::Buried { order } => {
                store.recover_buried_place(order);
                State::Buried { order }
            }
        };
        self.index(id, state, bodies, store);
    }
}

impl Value {
    /// The record that states it.
    pub(crate) fn record<'v>(&'v self, name: &'v QueueName) -> RecordView<'v> {
        let text = self.text().map_or(&[][..], |text| text);
        record_of(name, text, self.collection(), self.at)
    }
}

impl<'v> StoredValue<'v> {
    /// The record that states it.
    fn record(&self, name: &'v QueueName) -> RecordView<'v> {
        record_of(name, self.bytes(), self.collection(), self.at)
    }
}

fn record_of<'v>(
    name: &'v QueueName,
    bytes: &'v [u8],
    collection: Option<Collection>,
    at: Option<Nanos>,
) -> RecordView<'v> {
    let name = name.as_str();
    match collection {
        None => RecordView::ValueSet(ValueView { name, bytes, at }),
        Some(Collection { kind, number, .. }) => {
            RecordView::Collection(CollectionView { name, kind, number, at })
        }
    }
}

/// Bytes after which a chunk of a snapshot takes no further key.
const CHUNK_BYTES_MAX: usize = 256 * 1024;
