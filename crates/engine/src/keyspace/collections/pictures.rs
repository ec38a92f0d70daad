//! Pictures: collections as they were at some moment, for clients that read them page by page.
//!
//! A picture is a clone of the tree of all entries, which shares its nodes: it costs nothing until
//! something is changed, and then the nodes on the way to that are copied. So pictures are bounded
//! by their number, by the time since a page was asked for, and by the bytes that were copied since
//! the oldest was taken.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::ops::Bound;

use model::{CollectionKind, Nanos, QueueName, Refusal, Reply, limits};

use super::{Collection, Collections, Work};
use crate::collections::packed_tree::PackedTree;
use crate::keyspace::Keyspace;
use crate::store::MessageStore;
use crate::store::timers::Timer;

/// All pictures, the one that was asked for longest ago first.
#[derive(Debug, Default)]
pub(super) struct Pictures {
    kept: VecDeque<Picture>,
    /// The number of the last one.
    last: u64,
    /// So many bytes may be copied for them.
    copied_max: u64,
    /// The moment of the timer that ends the first.
    ends_at: Option<Nanos>,
}

#[derive(Debug)]
struct Picture {
    number: u64,
    name: QueueName,
    collection: Collection,
    entries: PackedTree,
    /// Bytes that had been copied before it was taken.
    copied: u64,
    /// When a page was last asked for.
    used: Nanos,
}

impl Pictures {
    pub(super) fn timers(&self) -> usize {
        usize::from(self.ends_at.is_some())
    }

    fn set_timer(&mut self, store: &mut MessageStore) {
        let at = self.kept.front().map(|first| first.used + limits::PICTURE_TIME_MAX);
        store.timers.change(Timer::Pictures, self.ends_at, at);
        self.ends_at = at;
    }
}

impl Collections {
    /// Ends the oldest pictures until few enough bytes were copied for the others.
    pub(super) fn trim_pictures(&mut self) {
        let copied = self.entries.copied();
        let Pictures { kept, copied_max, .. } = &mut self.pictures;
        while let Some(oldest) = kept.iter().map(|picture| picture.copied).min()
            && copied - oldest > *copied_max
        {
            kept.retain(|picture| picture.copied > oldest);
        }
    }

    /// Verifies that the timer is set while there are pictures.
    pub(super) fn check_pictures(&self, store: &MessageStore) {
        let Pictures { kept, ends_at, .. } = &self.pictures;
        assert!(kept.len() <= limits::PICTURES_MAX, "pictures have a limit");
        assert!(kept.is_empty() || ends_at.is_some(), "pictures end by time");
        if let Some(at) = ends_at {
            assert!(store.timers.contains(*at, Timer::Pictures), "pictures end by time");
        }
    }
}

impl Keyspace {
    /// Takes a picture of a collection, which may be empty.
    pub(super) fn take_picture(
        &mut self,
        name: &QueueName,
        kind: CollectionKind,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let there = self.collection(name, kind, work.store)?;
        let collection = there.unwrap_or(Collection::new(kind, 0));
        let (entries, now) = (self.collections.entries.clone(), work.store.latest);
        let copied = entries.copied();
        let pictures = &mut self.collections.pictures;
        if pictures.kept.len() == limits::PICTURES_MAX {
            pictures.kept.pop_front();
        }
        // Not one of before a restart: its pages would go on in this.
        pictures.last = now.0.max(pictures.last + 1);
        pictures.copied_max = work.memory_max / COPIED_SHARE;
        let (number, name) = (pictures.last, name.clone());
        pictures.kept.push_back(Picture { number, name, collection, entries, copied, used: now });
        pictures.set_timer(work.store);
        Ok(Reply::Picture(number))
    }

    /// Shows some entries of a picture.
    pub(super) fn show_picture(
        &mut self,
        (number, name): (u64, &QueueName),
        from: Bound<&[u8]>,
        max: usize,
        work: &mut Work<'_>,
    ) -> Result<Reply, Refusal> {
        let pictures = &mut self.collections.pictures;
        let is_it = |picture: &Picture| picture.number == number && picture.name == *name;
        let Some(at) = pictures.kept.iter().position(is_it) else { return Ok(Reply::NotFound) };
        let picture = pictures.kept.remove(at);
        let picture = picture.expect("invariant: it was just found");
        let shown = super::fields::scan(&picture.entries, &picture.collection, from, max, work);
        pictures.kept.push_back(Picture { used: work.store.latest, ..picture });
        pictures.set_timer(work.store);
        Ok(Reply::Entries(Box::new(shown?)))
    }

    /// A picture is not needed any more.
    pub(super) fn end_picture(
        &mut self,
        (number, name): (u64, &QueueName),
        work: &mut Work<'_>,
    ) -> Reply {
        let pictures = &mut self.collections.pictures;
        pictures.kept.retain(|picture| picture.number != number || picture.name != *name);
        pictures.set_timer(work.store);
        Reply::Done
    }

    /// The time of some pictures is over.
    pub(crate) fn end_pictures(&mut self, store: &mut MessageStore) {
        let pictures = &mut self.collections.pictures;
        let now = store.latest;
        pictures.kept.retain(|picture| picture.used + limits::PICTURE_TIME_MAX > now);
        pictures.set_timer(store);
    }
}

/// Copies for pictures may take this share of the memory for values and collections.
const COPIED_SHARE: u64 = 2;
