//! The cursors of SCAN and its kin. A cursor is a number to clients, and the place behind a name or
//! a field to the engine.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use model::QueueName;

/// Cursors that are remembered: of SCANs under way, each needs one or two.
const CURSORS_MAX: usize = 4_096;

/// Bytes of their names and fields.
const CURSORS_BYTES_MAX: usize = 1024 * 1024;

/// The place from which a scan goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Behind this key.
    Key(QueueName),
    /// Behind this field or member.
    Field(Arc<[u8]>),
}

impl Place {
    fn bytes(&self) -> usize {
        match self {
            Self::Key(name) => name.as_str().len(),
            Self::Field(field) => field.len(),
        }
    }
}

/// The latest cursors of all connections; one that was forgotten is refused as invalid.
#[derive(Debug, Default)]
pub(crate) struct Cursors {
    places: VecDeque<Place>,
    /// Bytes of all places.
    bytes: usize,
    /// How many were forgotten.
    forgotten: u64,
}

impl Cursors {
    /// The number of a new one; never 0, which is the beginning.
    pub(crate) fn remember(&mut self, place: Place) -> u64 {
        self.bytes += place.bytes();
        self.places.push_back(place);
        while self.places.len() > CURSORS_MAX || self.bytes > CURSORS_BYTES_MAX {
            self.forget_oldest();
        }
        self.forgotten + self.places.len() as u64
    }

    /// The place from which it goes on.
    pub(crate) fn find(&self, cursor: u64) -> Option<&Place> {
        let index = cursor.checked_sub(self.forgotten + 1)?;
        self.places.get(usize::try_from(index).ok()?)
    }

    fn forget_oldest(&mut self) {
        let oldest = self.places.pop_front();
        self.bytes -= oldest.map_or(0, |oldest| oldest.bytes());
        self.forgotten += 1;
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn latest_cursors_are_known() {
        let mut cursors = Cursors::default();
        let key = |number: usize| Place::Key(QueueName::new(&format!("q{number}")).unwrap());
        for number in 1..=CURSORS_MAX + 10 {
            assert_eq!(cursors.remember(key(number)), number as u64);
            assert_eq!(cursors.find(number as u64), Some(&key(number)));
        }
        assert_eq!(cursors.find(10), None);
        assert_eq!(cursors.find(11), Some(&key(11)));
        assert_eq!(cursors.find(0), None);
        assert_eq!(cursors.find(u64::MAX), None);
        assert_eq!(cursors.places.len(), CURSORS_MAX);
    }

    #[test]
    fn cursors_hold_bytes_within_bound() {
        let mut cursors = Cursors::default();
        let field = |byte: u8| Place::Field(alloc::vec![byte; 24 * 1024].into());
        for byte in 0..100 {
            let cursor = cursors.remember(field(byte));
            assert_eq!(cursor, u64::from(byte) + 1);
            assert_eq!(cursors.find(cursor), Some(&field(byte)));
            assert_eq!(cursors.bytes, cursors.places.iter().map(Place::bytes).sum());
            assert!(cursors.bytes <= CURSORS_BYTES_MAX);
        }
        assert_eq!(cursors.places.len(), CURSORS_BYTES_MAX / (24 * 1024));
        assert_eq!(cursors.find(1), None);
        assert_eq!(cursors.remember(Place::Field((*b"").into())), 101);
    }
}
