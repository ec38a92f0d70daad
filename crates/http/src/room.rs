//! Room for what requests and answers hold in memory, of all connections together.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::{Problem, Result};

/// So many bytes for all.
#[derive(Clone, Debug)]
pub(crate) struct Room(Arc<Semaphore>);

/// A part of it, until it is dropped.
#[derive(Debug)]
pub(crate) struct Taken(OwnedSemaphorePermit);

impl Room {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let permits = (bytes_max / PERMIT_BYTES).clamp(1, Semaphore::MAX_PERMITS);
        Self(Arc::new(Semaphore::new(permits)))
    }

    /// Room for so many bytes, at once or not at all: who waited with a part in its hands would
    /// keep it from all others.
    pub(crate) fn take(&self, bytes: usize) -> Result<Taken> {
        let permits = u32::try_from(bytes / PERMIT_BYTES + 1).unwrap_or(u32::MAX);
        let taken = Arc::clone(&self.0).try_acquire_many_owned(permits);
        taken.map(Taken).map_err(|_| Problem::busy())
    }

    /// The same bytes, which take room until the last who has them drops them. A few need none,
    /// so that small answers are given also where large ones are left unread.
    pub(crate) fn hold(&self, bytes: Bytes) -> Result<Bytes> {
        if bytes.len() < PERMIT_BYTES {
            return Ok(bytes);
        }
        let _taken = self.take(bytes.len())?;
        Ok(Bytes::from_owner(Held { bytes, _taken }))
    }
}

impl Taken {
    /// How many bytes it is for.
    pub(crate) fn bytes(&self) -> usize {
        self.0.num_permits() * PERMIT_BYTES
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.0.merge(other.0);
    }
}

struct Held {
    bytes: Bytes,
    _taken: Taken,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

const PERMIT_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_at_once_or_not_at_all() {
        let room = Room::new(10 * PERMIT_BYTES);
        let first = room.take(8 * PERMIT_BYTES).unwrap();
        assert_eq!(first.bytes(), 9 * PERMIT_BYTES);
        assert_eq!(room.take(PERMIT_BYTES).unwrap_err().kind, "busy");
        drop(first);
        assert!(room.take(PERMIT_BYTES).is_ok());
    }

    #[test]
    fn bytes_take_room_until_the_last_is_dropped() {
        let room = Room::new(2 * PERMIT_BYTES);
        let large = Bytes::from(vec![b'x'; PERMIT_BYTES]);
        let held = room.hold(large.clone()).unwrap();
        assert_eq!(held, large);
        let part = held.slice(1..2);
        drop(held);
        assert_eq!(room.hold(large.clone()).unwrap_err().kind, "busy");
        assert!(room.hold(Bytes::from_static(b"few")).is_ok());
        drop(part);
        assert!(room.hold(large).is_ok());
    }
}
