//! Places in a list, counted from one of its ends, and looks at the elements there.
//!
//! A place is found by counting whole words of the ready set from the nearer end. Elements are
//! counted one by one only while messages beyond their time have not gone yet. A command that would
//! look at too much is refused.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use model::{End, MessageId, Payload, Refusal, Reply, limits};

use crate::bodies::Bodies;
use crate::ids::QueueSlot;
use crate::log::FrameWriter;
use crate::outcome::Outcome;
use crate::store::MessageStore;

/// Which elements equal something, and how many of them.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    /// From where places count.
    pub(crate) origin: End,
    /// From where they are looked for.
    pub(crate) from: End,
    pub(crate) element: Arc<[u8]>,
    /// So many that are found first do not count.
    pub(crate) skip: u64,
    /// The most to find.
    pub(crate) max: u64,
    /// The most elements to look at.
    pub(crate) scan_max: Option<u64>,
}

impl Search {
    /// All that equal this, from there on.
    pub(crate) fn all(from: End, element: Arc<[u8]>) -> Self {
        Self { origin: from, from, element, skip: 0, max: u64::MAX, scan_max: None }
    }
}

/// Places from an end, negative ones from the other, as a client names them; both included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) origin: End,
    pub(crate) first: i64,
    pub(crate) last: i64,
}

impl Span {
    /// The same in a list of so many elements; empty where nothing is there.
    pub(crate) fn within(self, count: u64) -> Range<u64> {
        let first = place_within(self.first, count).unwrap_or(0);
        let end = place_within(self.last, count).map_or(0, |last| last + 1).min(count);
        first.min(end)..end
    }
}

/// The elements that go if only a part of a list is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parting {
    /// How many at the end from which places count.
    pub(crate) near: u64,
    /// How many at the other.
    pub(crate) far: u64,
    /// At which end some of so many may go before the rest: the same places then name the same
    /// elements as before.
    pub(crate) first: Option<(End, u64)>,
}

impl Span {
    /// The elements that go, of so many, if these places are kept.
    pub(crate) fn parting(self, count: u64) -> Parting {
        let kept = self.within(count);
        let (from_origin, to_origin) = (self.first >= 0, self.last >= 0);
        let (near, far) = match kept.is_empty() {
            true if from_origin => (0, count),
            true => (count, 0),
            false => (kept.start, count - kept.end),
        };
        let first = match (from_origin, to_origin) {
            (true, true) => Some((self.origin.opposite(), far)),
            (false, false) => Some((self.origin, near)),
            (true, false) if kept.is_empty() => Some((self.origin.opposite(), far)),
            _ => None,
        };
        Parting { near, far, first }
    }
}

/// Negative places count from the other end; `None` is before the first.
pub(crate) fn place_within(place: i64, count: u64) -> Option<u64> {
    if place < 0 { count.checked_sub(place.unsigned_abs()) } else { Some(place.unsigned_abs()) }
}

impl Bodies {
    /// The elements that are looked for, each with how many lie between it and the end from which
    /// it was.
    pub(crate) fn find_equal(
        &self,
        slot: QueueSlot,
        search: &Search,
        store: &mut MessageStore,
    ) -> Result<Vec<(u64, MessageId)>, Refusal> {
        let may_look = search.scan_max.unwrap_or(u64::MAX);
        let mut found = Vec::new();
        let (mut looked, mut skipped, mut is_too_long) = (0, 0, false);
        for id in store.elements(slot, search.from) {
            if looked >= may_look || found.len() as u64 >= search.max {
                break;
            }
            if looked >= limits::LIST_SCAN_MAX as u64 {
                is_too_long = true;
                break;
            }
            let Some(is_equal) = self.equals(id, &search.element, store) else {
                is_too_long = true;
                break;
            };
            if is_equal {
                if skipped < search.skip {
                    skipped += 1;
                } else {
                    found.push((looked, id));
                }
            }
            looked += 1;
        }
        store.took_steps(looked as usize);
        if is_too_long { Err(Refusal::ListTooLong) } else { Ok(found) }
    }

    /// `None`: its body is away. A batch may uncover more than was looked at before it began.
    fn equals(&self, id: MessageId, element: &[u8], store: &MessageStore) -> Option<bool> {
        let message = store.message(id);
        if message.body().len() < element.len() {
            return Some(false);
        }
        let body = self.here(message)?;
        let payload = Payload::by(self.formats()).range(message.format(), body);
        Some(body.get(payload) == Some(element))
    }
}

impl MessageStore {
    /// The (priority, order) of the element with so many between it and an end.
    pub(crate) fn place_of_element(
        &mut self,
        slot: QueueSlot,
        origin: End,
        place: u64,
    ) -> Result<Option<(u32, i64)>, Refusal> {
        let queue = self.queues.at(slot);
        let (found, looked) = if queue.is_expiring(self.latest) {
            let id = self.elements(slot, origin).nth(place as usize);
            (id.map(|id| self.rank(id)), place as usize)
        } else if place < queue.counts().ready() / 2 {
            queue.delivery.dispatch.ready().nth(origin, place)
        } else if let Some(other) = queue.counts().ready().checked_sub(place + 1) {
            queue.delivery.dispatch.ready().nth(origin.opposite(), other)
        } else {
            (None, 0)
        };
        self.took_steps(looked);
        if looked > limits::LIST_SCAN_MAX { Err(Refusal::ListTooLong) } else { Ok(found) }
    }

    /// The place of a ready message in its queue.
    pub(crate) fn rank(&self, id: MessageId) -> (u32, i64) {
        let message = self.message(id);
        (message.priority(), message.order(id))
    }
}

impl FrameWriter {
    pub(crate) fn listed(&self, elements: Vec<model::Element>) -> Outcome {
        Outcome::reply(self.after_all(), Reply::Elements(elements.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_cut_to_list_length() {
        let origin = End::Head;
        for ((first, last), count, expected) in [
            ((0, -1), 3, 0..3),
            ((0, 0), 3, 0..1),
            ((-2, -1), 3, 1..3),
            ((-100, 1), 3, 0..2),
            ((1, 100), 3, 1..3),
            ((2, 1), 3, 2..2),
            ((5, 9), 3, 3..3),
            ((0, -4), 3, 0..0),
            ((i64::MIN, i64::MAX), 3, 0..3),
            ((0, -1), 0, 0..0),
        ] {
            let within = Span { origin, first, last }.within(count);
            let is_same = within == expected || within.is_empty() && expected.is_empty();
            assert!(is_same, "{first}..={last} of {count}: {within:?}");
        }
    }
}
