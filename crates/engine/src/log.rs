//! Frames in the making: positions, levels, and the room that is left.

use model::{After, Durability, Lsn, StorePolicy, limits};

use crate::codec::encode;
use crate::record::RecordView;
use crate::{Effects, FrameEnd};

#[derive(Debug)]
pub(crate) struct Log {
    /// The last whole frame.
    pub(crate) last: Lsn,
    /// Bytes that puts may still use.
    pub(crate) room: u64,
    /// What waits for all frames that were appended here.
    after_last: After,
    open: OpenFrame,
}

/// The frame whose records are being appended.
#[derive(Debug, Default)]
struct OpenFrame {
    records: usize,
    level: Durability,
    live_bytes: u64,
}

/// Where a record went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub(crate) lsn: Lsn,
    pub(crate) bytes: u32,
}

impl Log {
    pub(crate) fn new(policy: StorePolicy) -> Self {
        Self {
            last: Lsn::ZERO,
            room: u64::MAX,
            after_last: After::new(Lsn::ZERO, policy.durability(model::Persistence::Persistent)),
            open: OpenFrame::default(),
        }
    }

    /// Appends a new message's record if there is room for it.
    pub(crate) fn store(
        &mut self,
        record: &RecordView<'_>,
        level: Durability,
        effects: &mut Effects,
    ) -> Option<Placed> {
        let start = effects.records.len();
        encode(record, &mut effects.records);
        let bytes = effects.records.len() - start;
        if bytes as u64 > self.room {
            effects.records.truncate(start);
            return None;
        }
        self.room -= bytes as u64;
        Some(self.place(bytes, bytes, level))
    }

    /// Appends a record of what is stored already; puts leave room for these.
    pub(crate) fn append(
        &mut self,
        record: &RecordView<'_>,
        level: Durability,
        effects: &mut Effects,
    ) -> Placed {
        let start = effects.records.len();
        encode(record, &mut effects.records);
        let bytes = effects.records.len() - start;
        let live_bytes = if matches!(record, RecordView::Message { .. }) { bytes } else { 0 };
        self.place(bytes, live_bytes, level)
    }

    /// Ends the frame, if one has begun.
    pub(crate) fn seal(&mut self, effects: &mut Effects) {
        if self.open.records == 0 {
            return;
        }
        let OpenFrame { level, live_bytes, .. } = core::mem::take(&mut self.open);
        self.last = self.last.next();
        self.after_last = After::new(self.last, level);
        let end = effects.records.len();
        effects.frames.push(FrameEnd { end, lsn: self.last, level, live_bytes });
    }

    /// What an answer waits for that may reflect any change so far: the last frame, as durable as
    /// that frame itself asks. The log grows durable in order, and a frame counts as written only
    /// when it is as durable as it asks; so every frame before is by then what it has to be.
    pub(crate) fn after_all(&self) -> After {
        if self.is_sealed() {
            return self.after_last;
        }
        After::new(self.last.next(), self.open.level)
    }

    /// True between commands.
    pub(crate) fn is_sealed(&self) -> bool {
        self.open.records == 0
    }

    fn place(&mut self, bytes: usize, live_bytes: usize, level: Durability) -> Placed {
        assert!(level != Durability::None, "what memory keeps has no record");
        let lsn = self.last.next();
        let bytes = u32::try_from(bytes).expect("invariant: bodies are far below 4 GiB");
        self.open.records += 1;
        self.open.level = self.open.level.max(level);
        self.open.live_bytes += live_bytes as u64;
        assert!(self.open.records <= limits::FRAME_RECORDS_MAX, "a command fits into one frame");
        Placed { lsn, bytes }
    }
}
