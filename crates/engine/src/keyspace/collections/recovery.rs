//! Collections in recovery, and in snapshots.
//!
//! A snapshot shows names and entries as they are when their turn comes, and frames from after its
//! begin say again what has changed. So recovery may meet entries of numbers without a name, and
//! names whose entries come later. Counts, and the places of the second tree, are made when
//! all is read; entries without a name are dropped then.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{CollectionKind, QueueName, limits};
use records::{
    CollectionView, FieldsDraft, FieldsView, RecordError, RecordView, encode, queue_name,
};

use super::streams::{Recovered, recovered};
use super::{Collection, Collections, NUMBER_BYTES, cell_of, score_key, score_of, value_of};
use crate::collections::packed_tree::{Cell, KeyParts};
use crate::keyspace::{Keyspace, Value};
use crate::store::MessageStore;

/// How far a snapshot has come with the entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct EntryCursor {
    /// The key of the last one.
    after: Option<Vec<u8>>,
    begun: bool,
    done: bool,
}

impl EntryCursor {
    pub(crate) const fn is_done(&self) -> bool {
        self.done
    }
}

impl Collections {
    /// Shows the next entries, of one collection; says how many.
    pub(crate) fn snapshot_entries(
        &self,
        cursor: &mut EntryCursor,
        max: usize,
        bytes_max: usize,
        out: &mut Vec<u8>,
    ) -> usize {
        if !cursor.begun && self.last > 0 {
            encode(&RecordView::Collections { next: self.last + 1 }, out);
        }
        cursor.begun = true;
        let mut draft: Option<(u64, FieldsDraft)> = None;
        let (mut last, mut count, mut bytes) = (None, 0, 0);
        cursor.done = true;
        for (key, cell) in self.entries.iter_after(cursor.after.as_deref()) {
            let (number, field) = key.split().expect("invariant: a key begins with a number");
            let number = u64::from_be_bytes(number);
            let (of, draft) = draft.get_or_insert_with(|| (number, FieldsDraft::new(number)));
            if *of != number || count == max || bytes >= bytes_max {
                cursor.done = false;
                break;
            }
            let (value, [prefix, suffix]) = (value_of(&cell), field.parts());
            draft.push_with([prefix, suffix], value);
            bytes += prefix.len() + suffix.len() + value.len() + 2 * NUMBER_BYTES;
            last = Some(key);
            count += 1;
        }
        if let Some(last) = last {
            cursor.after = Some(last.to_vec());
        }
        if let Some((_, draft)) = draft {
            encode(&RecordView::FieldsSet(draft.set()), out);
        }
        count
    }
}

impl Keyspace {
    pub(crate) fn replay_next_collection(&mut self, next: u64) {
        let last = next.saturating_sub(1);
        self.collections.last = self.collections.last.max(last);
    }

    pub(crate) fn replay_collection(
        &mut self,
        view: &CollectionView<'_>,
        store: &mut MessageStore,
    ) -> Result<(), RecordError> {
        let name = queue_name(view.name)?;
        self.replay_next_collection(view.number + 1);
        let collection = Collection::new(view.kind, view.number);
        self.insert_value(&name, Value::of_collection(collection, view.at), store);
        Ok(())
    }

    /// Counts and order are made in the end: see [`Keyspace::recover_collections`].
    pub(crate) fn replay_fields_set(&mut self, fields: &FieldsView<'_>) -> Result<(), RecordError> {
        self.replay_next_collection(fields.number() + 1);
        // As a hash: no order of scores yet.
        let raw = Collection::new(CollectionKind::Hash, fields.number());
        for (field, value) in fields.iter() {
            if field.len() > limits::FIELD_BYTES_MAX {
                return Err(RecordError::Invalid("field"));
            }
            if value.len() <= crate::collections::packed_tree::INLINE_BYTES_MAX {
                self.collections.set(&raw, field, Cell::inline(value), None);
            } else {
                self.collections.set(&raw, field, cell_of(&Arc::from(value)), None);
            }
        }
        Ok(())
    }

    pub(crate) fn replay_fields_gone(
        &mut self,
        fields: &FieldsView<'_>,
    ) -> Result<(), RecordError> {
        let raw = Collection::new(CollectionKind::Hash, fields.number());
        let mut known = true;
        for (field, _) in fields.iter() {
            known &= self.collections.remove(&raw, field).is_some();
        }
        if known { Ok(()) } else { Err(RecordError::UnknownValue) }
    }

    /// Counts the entries of all collections, and orders those with scores.
    pub(crate) fn recover_collections(
        &mut self,
        store: &mut MessageStore,
    ) -> Result<(), RecordError> {
        let named = self.values.iter_after(None);
        let named = named.filter_map(|(name, value)| Some((value.collection()?, name)));
        let mut by_number = BTreeMap::new();
        for (collection, name) in named {
            if by_number.insert(collection.number, (name, collection)).is_some() {
                return Err(RecordError::Invalid("number"));
            }
        }
        let mut named = by_number;
        self.collections.recover(&mut named, store)?;
        for (name, collection) in named.into_values() {
            if collection.count == 0 {
                return Err(RecordError::UnknownValue);
            }
            self.values.recount(&name, collection, None);
        }
        Ok(())
    }
}

impl Collections {
    fn recover(
        &mut self,
        named: &mut BTreeMap<u64, (QueueName, Collection)>,
        store: &mut MessageStore,
    ) -> Result<(), RecordError> {
        let (mut places, mut groups) = (Vec::new(), BTreeSet::new());
        self.dead.clear();
        for (key, cell) in self.entries.iter_after(None) {
            let (number, field) = key.split().expect("invariant: a key begins with a number");
            let number = u64::from_be_bytes(number);
            // The fields of a stream name its groups, which have greater numbers.
            let collection = named.get_mut(&number).map(|(_, collection)| collection);
            if collection.is_none() && !groups.contains(&number) {
                if self.dead.back() != Some(&number) {
                    self.dead.push_back(number);
                }
                continue;
            }
            let kind = collection.as_ref().map_or(CollectionKind::Stream, |it| it.kind);
            let is_group = collection.is_none();
            if let Some(collection) = collection {
                let [prefix, suffix] = field.parts();
                collection.count += 1;
                collection.bytes += (prefix.len() + suffix.len() + value_of(&cell).len()) as u64;
            }
            match kind {
                CollectionKind::Hash | CollectionKind::Set => {}
                CollectionKind::SortedSet => places.push(place_by_score(number, field, cell)?),
                CollectionKind::Stream => match recovered(number, field, &cell, is_group)? {
                    Recovered::Group(group) => {
                        if named.contains_key(&group) || !groups.insert(group) {
                            return Err(RecordError::Invalid("number"));
                        }
                    }
                    Recovered::Pending(place) => places.push((place, &[])),
                    Recovered::Nothing => {}
                },
            }
        }
        // A group may have been made, and nothing of it.
        self.last = groups.last().map_or(self.last, |last| self.last.max(*last));
        for (key, inline) in places {
            self.places.insert(&key, Cell::inline(inline), |_| ());
        }
        self.set_timer(store);
        Ok(())
    }
}

/// The key of a member of a sorted set in the second tree, and its value there.
fn place_by_score(
    number: u64,
    member: KeyParts<'_>,
    cell: Cell<'_>,
) -> Result<(Vec<u8>, &'static [u8]), RecordError> {
    let is_score = cell.inline.len() == 8 && cell.body.is_none();
    let bits = cell.inline.first_chunk().map(|bits| f64::from_be_bytes(*bits));
    if !is_score || bits.is_none_or(f64::is_nan) {
        return Err(RecordError::Invalid("score"));
    }
    let score = score_of(cell);
    Ok((score_key(number, score, &member.to_vec()).to_vec(), super::sign_of(score)))
}
