//! Snapshots in steps, and records that compaction states anew.

use alloc::vec::Vec;

use model::{LiveRecords, Lsn};
use records::{RecordError, RecordView, Records, encode};

use crate::Effects;
use crate::engine::Engine;
use crate::recovery::snapshot::SnapshotCursor;

impl Engine {
    /// Begins a snapshot: frames after [`Engine::last_lsn`] of now are to be replayed on it.
    #[must_use]
    pub fn snapshot_begin(&self) -> SnapshotCursor {
        let end_subscription = self.directory.subscriptions().next();
        SnapshotCursor::new(end_subscription, self.dedup.next(), self.store.next_message())
    }

    /// Bytes that a snapshot of now may take at most, with the cost of its chunks to the caller.
    #[must_use]
    pub fn snapshot_bytes_max(&self) -> u64 {
        self.store.snapshot_bytes() + self.keyspace.snapshot_bytes() + FIXED_BYTES
    }

    /// Appends the next chunk of records; true when more are to come. Commands may be handled
    /// between two chunks. Frames up to [`Engine::last_lsn`] of the last chunk's moment are to be
    /// durable before the snapshot counts, for it may show their changes.
    pub fn snapshot_chunk(&self, cursor: &mut SnapshotCursor, out: &mut Vec<u8>) -> bool {
        if cursor.begins() {
            encode(&self.store.sequence(), out);
            if self.directory.subscriptions().next() > 1 {
                encode(
                    &RecordView::Subscriptions { next: self.directory.subscriptions().next() },
                    out,
                );
            }
        }
        let Self { keyspace, directory, dedup, store, log, .. } = self;
        let mut left = cursor.chunk_messages_max.max(1);
        left -= keyspace.snapshot_keys(cursor.keys_mut(), left, out, store, log);
        left -= directory.snapshot_policies(cursor.policies_mut(), left, out, log);
        left -= directory.snapshot_subscriptions(cursor, left, out);
        left -= dedup.snapshot_send_ids(cursor, left, out, store);
        store.snapshot_messages(cursor, left, out);
        !cursor.is_done(directory, dedup, store)
    }
}

impl Engine {
    /// For each Message or Shared record of the frame at `lsn` of which something lives there:
    /// states that in a new frame as it stands now and frees the old place. One frame for all, or
    /// none; several where much that could change has been added to many.
    ///
    /// Nothing waits for the new frames: until they are durable the old one must stay.
    ///
    /// # Errors
    /// When the frame is damaged. The records before the damage are stated anew.
    pub fn restate(
        &mut self,
        lsn: Lsn,
        payload: &[u8],
        effects: &mut Effects,
    ) -> Result<(), RecordError> {
        let mut result = Ok(());
        for record in Records::new(payload) {
            match record {
                Ok((RecordView::Message { envelope, body }, _)) => {
                    self.bodies.restate_record(
                        &[envelope.message],
                        body,
                        lsn,
                        &mut self.store,
                        &mut self.log,
                        effects,
                    );
                }
                Ok((RecordView::Shared { copies, body }, _)) => {
                    let ids: Vec<_> = copies.iter().map(|copy| copy.message).collect();
                    self.bodies.restate_record(
                        &ids,
                        body,
                        lsn,
                        &mut self.store,
                        &mut self.log,
                        effects,
                    );
                }
                Ok(_) => {}
                Err(error) => result = Err(error),
            }
        }
        self.log.seal(effects);
        result
    }

    /// The records of the frame at `lsn` that would be stated anew, as [`FrameEnd::live`] counts
    /// them.
    ///
    /// # Errors
    /// When the frame is damaged.
    ///
    /// [`FrameEnd::live`]: crate::FrameEnd::live
    pub fn restated(&self, lsn: Lsn, payload: &[u8]) -> Result<LiveRecords, RecordError> {
        let mut live = LiveRecords::NONE;
        for record in Records::new(payload) {
            let one = match record?.0 {
                RecordView::Message { envelope, .. } => self.store.lives_at(envelope.message, lsn),
                RecordView::Shared { copies, .. } => {
                    copies.iter().find_map(|copy| self.store.lives_at(copy.message, lsn))
                }
                _ => None,
            };
            if let Some(message) = one {
                live += LiveRecords::one(self.bodies.live_bytes_of(message));
            }
        }
        Ok(live)
    }
}

/// Bytes that a snapshot begins with: its header and the records of numbers.
const FIXED_BYTES: u64 = 4096 + 64;
