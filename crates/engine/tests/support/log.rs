//! A journal in memory: keeps the frames, checks the engine's promises about them, and brings an
//! engine back from them.

use std::collections::BTreeMap;

use engine::{
    Effects, Engine, EngineOptions, FrameEnd, RecordView, SnapshotCursor, Standing, describe,
};
use model::{Durability, LiveRecords, Lsn, MessageId, Nanos};

/// All frames so far, and their live records.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) frames: Vec<(FrameEnd, Vec<u8>)>,
    live: BTreeMap<Lsn, LiveRecords>,
}

/// A snapshot with the positions that a journal would keep beside it.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) cursor: SnapshotCursor,
    pub(crate) chunks: Vec<Vec<u8>>,
    pub(crate) begin: Lsn,
    /// Set when the last chunk is there.
    pub(crate) end: Option<Lsn>,
}

/// The state of a message that must survive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Durable {
    /// Its [`engine::Place`].
    pub(crate) place: String,
    pub(crate) durability: Durability,
    pub(crate) created: Nanos,
    pub(crate) lease: Nanos,
    pub(crate) sender: u64,
    /// All of it but `dead`, which follows.
    pub(crate) standing: Standing<'static>,
    pub(crate) dead: String,
    pub(crate) location: Lsn,
    pub(crate) record_bytes: u32,
    pub(crate) body: Vec<u8>,
}

impl Log {
    /// The payload of a frame.
    pub(crate) fn payload(&self, lsn: Lsn) -> Vec<u8> {
        let found = self.frames.binary_search_by_key(&lsn, |(frame, _)| frame.lsn);
        self.frames[found.unwrap_or_else(|_| panic!("frame {lsn} is there"))].1.clone()
    }

    /// Takes in the frames and freed places of a step.
    pub(crate) fn absorb(&mut self, effects: &Effects) {
        let mut start = 0;
        for frame in &effects.frames {
            let payload = effects.records[start..frame.end].to_vec();
            start = frame.end;
            let last = self.frames.last().map_or(Lsn::ZERO, |(frame, _)| frame.lsn);
            assert_eq!(frame.lsn, last.next(), "positions are dense");
            assert!(frame.level > Durability::None && !payload.is_empty());
            let mut live = 0;
            let records: Vec<_> = describe(&payload).map(|record| record.unwrap()).collect();
            assert!(records.len() <= model::limits::TRANSACTION_RECORDS_MAX);
            for record in &records {
                if let RecordView::Message { body, .. } = record {
                    assert!(records.len() > 1 || payload.len() < body.len() + 90, "compact");
                }
                let lives =
                    matches!(record, RecordView::Message { .. } | RecordView::Shared { .. });
                live += u64::from(lives);
            }
            assert_eq!(frame.live.count, live, "only messages live");
            if records.iter().any(|record| matches!(record, RecordView::Chained { .. })) {
                assert_eq!(frame.level, self.chain_level(&records[0]).unwrap_or(frame.level));
                assert!(matches!(records[0], RecordView::Chained { .. }), "it is the first");
                assert!(records.len() > 1, "no frame is there for nothing");
            }
            if live == records.len() as u64 {
                assert!(frame.live.bytes >= payload.len() as u64, "and all of them");
            }
            self.live.insert(frame.lsn, frame.live);
            self.frames.push((*frame, payload));
        }
        assert_eq!(start, effects.records.len(), "every record is in a frame");
        for grown in &effects.grown {
            let live = self.live.get_mut(&grown.lsn).expect("what grows lives");
            assert!(live.count > 0 && grown.bytes > 0, "only what lives grows");
            live.bytes += grown.bytes;
        }
        for freed in &effects.freed {
            let live = self.live.get_mut(&freed.lsn).expect("what is freed was live");
            assert!(live.count > 0 && live.bytes >= freed.bytes, "nothing is freed twice");
            *live -= LiveRecords::one(freed.bytes);
        }
    }

    /// How durable the frames before of the same chain are.
    fn chain_level(&self, head: &RecordView<'_>) -> Option<Durability> {
        let RecordView::Chained { first, .. } = head else { return None };
        let first = self.frames.iter().find(|(frame, _)| frame.lsn == *first)?;
        Some(first.0.level)
    }

    /// The engine's own account of live records must be the same as the sum of its reports.
    pub(crate) fn check_live(&self, engine: &Engine) {
        assert_eq!(self.living(), living(engine));
    }

    /// A recovered engine finds the same records alive. It may find another growth of them: a
    /// change of a message that was taken back is history.
    pub(crate) fn relearn(&mut self, engine: &Engine) {
        let found = living(engine);
        let counts = |all: &BTreeMap<Lsn, LiveRecords>| {
            all.iter().map(|(lsn, live)| (*lsn, live.count)).collect::<Vec<_>>()
        };
        assert_eq!(counts(&self.living()), counts(&found));
        self.live = found;
    }

    fn living(&self) -> BTreeMap<Lsn, LiveRecords> {
        let all = self.live.iter().filter(|(_, live)| **live != LiveRecords::NONE);
        all.map(|(lsn, live)| (*lsn, *live)).collect()
    }

    /// The same log when only so many frames of it are left.
    pub(crate) fn cut(&self, frames: usize) -> Self {
        Self { frames: self.frames[..frames].to_vec(), live: BTreeMap::new() }
    }

    /// Takes the live records from the engine that was made from this log.
    pub(crate) fn adopt(&mut self, engine: &Engine) {
        self.live = living(engine);
        for (frame, _) in &self.frames {
            self.live.entry(frame.lsn).or_insert(LiveRecords::NONE);
        }
    }

    /// An engine made from all frames, or from a snapshot and the frames that it needs.
    pub(crate) fn recover(&self, options: EngineOptions, snapshot: Option<&Snapshot>) -> Engine {
        let mut engine = Engine::new(options);
        let begin = snapshot.map_or(Lsn::ZERO, |snapshot| snapshot.begin);
        let end = snapshot.and_then(|snapshot| snapshot.end).unwrap_or(Lsn::ZERO);
        for chunk in snapshot.iter().flat_map(|snapshot| &snapshot.chunks) {
            engine.load(chunk).unwrap();
        }
        for (frame, payload) in self.frames.iter().filter(|(frame, _)| frame.lsn > begin) {
            engine.replay(frame.lsn, payload, frame.lsn <= end).unwrap();
        }
        for (frame, payload) in self.frames.iter().filter(|(frame, _)| frame.lsn <= begin) {
            engine.restore_body(frame.lsn, payload).unwrap();
        }
        let last = self.frames.last().map_or(Lsn::ZERO, |(frame, _)| frame.lsn);
        engine.finish_recovery(last).unwrap();
        engine
    }
}

impl Snapshot {
    pub(crate) fn begin(engine: &Engine, chunk_messages_max: usize) -> Self {
        let mut cursor = engine.snapshot_begin();
        cursor.chunk_messages_max = chunk_messages_max;
        Self { cursor, chunks: Vec::new(), begin: engine.last_lsn(), end: None }
    }

    /// Takes one more chunk; true when more are to come.
    pub(crate) fn step(&mut self, engine: &Engine) -> bool {
        let mut chunk = Vec::new();
        let more = engine.snapshot_chunk(&mut self.cursor, &mut chunk);
        self.chunks.push(chunk);
        if !more {
            self.end = Some(engine.last_lsn());
        }
        more
    }

    /// All at once.
    pub(crate) fn whole(engine: &Engine) -> Self {
        let mut snapshot = Self::begin(engine, usize::MAX);
        while snapshot.step(engine) {}
        snapshot
    }

    /// The numbers of its Sequence record: next message, next buried.
    pub(crate) fn sequence(&self) -> (u64, u64) {
        match describe(&self.chunks[0]).next() {
            Some(Ok(RecordView::Sequence { next_message, next_buried, .. })) => {
                (next_message, next_buried)
            }
            other => panic!("a snapshot begins with its sequence, not {other:?}"),
        }
    }
}

/// Live records by the engine's own account.
fn living(engine: &Engine) -> BTreeMap<Lsn, LiveRecords> {
    let mut all: BTreeMap<Lsn, LiveRecords> = BTreeMap::new();
    for (lsn, bytes) in engine.live() {
        *all.entry(lsn).or_default() += LiveRecords::one(bytes);
    }
    all
}

/// The state of the messages in an engine that a crash must leave. `body` looks one up.
pub(crate) fn durable(
    engine: &Engine,
    mut body: impl FnMut(MessageId) -> Vec<u8>,
) -> BTreeMap<MessageId, Durable> {
    let mut all = BTreeMap::new();
    let snapshot = Snapshot::whole(engine);
    for record in snapshot.chunks.iter().flat_map(|chunk| describe(chunk)) {
        let RecordView::Located { envelope, location, record_bytes } = record.unwrap() else {
            continue;
        };
        let message = Durable {
            place: format!("{:?}", envelope.place),
            durability: envelope.durability,
            created: envelope.created,
            lease: envelope.lease,
            sender: envelope.sender,
            standing: without_dead(&envelope.standing),
            dead: format!("{:?}", envelope.standing.dead),
            location,
            record_bytes,
            body: body(envelope.message),
        };
        assert!(all.insert(envelope.message, message).is_none());
    }
    all
}

fn without_dead(standing: &Standing<'_>) -> Standing<'static> {
    let &Standing { priority, delay, state, order, counters, expires, .. } = standing;
    Standing { priority, delay, state, order, counters, expires, dead: None }
}
