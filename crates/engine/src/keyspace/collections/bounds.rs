//! The bounds of a reply that shows entries of a collection.

use alloc::boxed::Box;

use model::{CollectionKind, Entries, Refusal, Reply, Score, limits};

use super::{Collection, Work, score_of, value_of};
use crate::collections::packed_tree::{Cell, KeyParts};

/// The entries that a reply shows, as far as it may.
#[derive(Debug)]
pub(crate) struct Shown {
    kind: CollectionKind,
    entries: Entries,
    bytes: usize,
    bytes_max: usize,
    too_much: Refusal,
}

impl Shown {
    /// So many entries of a collection at most are to be shown, or looked at.
    ///
    /// # Errors
    /// They are too many.
    pub(super) fn of(
        collection: &Collection,
        count: u64,
        work: &mut Work<'_>,
    ) -> Result<Self, Refusal> {
        look_at(count.min(collection.count), work)?;
        let (bytes_max, too_much) = (work.shown_max, work.too_much.clone());
        let kind = collection.kind;
        Ok(Self { kind, entries: Entries::default(), bytes: 0, bytes_max, too_much })
    }

    /// One more, with its value or score.
    pub(super) fn add(&mut self, field: KeyParts<'_>, cell: &Cell<'_>) -> Result<(), Refusal> {
        match self.kind {
            CollectionKind::Hash | CollectionKind::Stream => {
                let value = value_of(cell);
                self.entries.values.push(value);
                self.add_field(field, value.len())
            }
            CollectionKind::Set => self.add_field(field, 0),
            CollectionKind::SortedSet => self.add_scored(field, score_of(*cell)),
        }
    }

    /// One more member with a score.
    pub(super) fn add_scored(&mut self, member: KeyParts<'_>, score: Score) -> Result<(), Refusal> {
        self.entries.scores.push(score);
        self.add_field(member, size_of::<Score>())
    }

    fn add_field(&mut self, field: KeyParts<'_>, beside: usize) -> Result<(), Refusal> {
        let parts = field.parts();
        self.bytes += parts[0].len() + parts[1].len() + beside + limits::BESIDE_ELEMENT_BYTES;
        self.entries.fields.push_parts(&parts);
        if self.bytes > self.bytes_max { Err(self.too_much.clone()) } else { Ok(()) }
    }

    pub(super) fn fields(&self) -> impl Iterator<Item = &[u8]> {
        self.entries.fields.iter()
    }

    pub(super) const fn count(&self) -> usize {
        self.entries.len()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn into_entries(self) -> Entries {
        self.entries
    }

    pub(super) fn into_reply(self) -> Reply {
        Reply::Entries(Box::new(self.entries))
    }
}

/// The command looks at so many entries.
///
/// # Errors
/// They are too many for one command.
pub(super) fn look_at(count: u64, work: &mut Work<'_>) -> Result<(), Refusal> {
    if count > limits::LIST_SCAN_MAX as u64 {
        return Err(Refusal::ListTooLong);
    }
    work.store.took_steps(usize::try_from(count).unwrap_or(usize::MAX));
    Ok(())
}
