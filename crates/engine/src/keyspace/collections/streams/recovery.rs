//! Streams in recovery, and their invariants.

use alloc::vec::Vec;

use model::limits;
use records::RecordError;

use super::layout::{CONSUMER, ENTRY, GROUP, PENDING, STATE};
use super::{Consumer, Group, KIND, Pending, State, id_of, place_of, untagged};
use crate::collections::packed_tree::{Cell, KeyParts};
use crate::keyspace::collections::{Collection, Collections, value_of};

/// The meaning of a stream's or a group's field for recovery.
pub(crate) enum Recovered {
    /// A group with this number: its fields come behind those of the stream.
    Group(u64),
    /// A pending entry, which has this place in the second tree.
    Pending(Vec<u8>),
    /// Nothing more.
    Nothing,
}

/// Reads a field of a stream, or of a group of one.
pub(crate) fn recovered(
    number: u64,
    field: KeyParts<'_>,
    cell: &Cell<'_>,
    is_group: bool,
) -> Result<Recovered, RecordError> {
    let invalid = RecordError::Invalid("stream");
    let (tag, rest) = untagged(field).ok_or(invalid)?;
    let value = value_of(cell);
    let is_right = match (tag, is_group) {
        (STATE, false) => State::of(value).is_some(),
        (ENTRY, false) => id_of(rest).is_some(),
        (GROUP, false) => {
            let group = Group::of(value).filter(|group| group.number > number);
            return group.map(|group| Recovered::Group(group.number)).ok_or(invalid);
        }
        (CONSUMER, true) => Consumer::of(value).is_some(),
        (PENDING, true) if id_of(rest).is_some() && has_short_name(value) => {
            let place = place_of(number, &field.to_vec(), value);
            return place.map(Recovered::Pending).ok_or(invalid);
        }
        _ => false,
    };
    if is_right { Ok(Recovered::Nothing) } else { Err(invalid) }
}

/// True if something pending names a consumer that there may be.
fn has_short_name(value: &[u8]) -> bool {
    let pending = Pending::of(value);
    pending.is_some_and(|it| it.consumer.len() <= limits::STREAM_NAME_BYTES_MAX)
}

impl Collections {
    /// Verifies a stream. Gives how many fields its groups have.
    pub(crate) fn check_stream(&self, stream: &Collection) -> u64 {
        let state = self.state(stream);
        let last = self.last_entry(stream);
        assert!(last.is_none_or(|last| last <= state.last), "no entry is behind the last");
        assert!(state.added >= self.length(stream), "entries were added");
        let mut fields = 0;
        for (name, group) in self.groups(stream) {
            assert!(group.number <= self.last && group.number > stream.number, "{name:?}");
            let mut pending = 0;
            for (field, cell) in self.entries(group.number, 0) {
                fields += 1;
                if let Some(place) = place_of(group.number, &field.to_vec(), value_of(&cell)) {
                    assert!(self.places.get(&place).is_some(), "it is known by its consumer");
                    pending += 1;
                }
            }
            let places = self.places.rank(&(group.number + 1).to_be_bytes());
            let places = places - self.places.rank(&group.number.to_be_bytes());
            assert_eq!(places as u64, pending, "pending entries by their consumers");
        }
        debug_assert!(stream.kind == KIND, "a stream");
        fields
    }
}
