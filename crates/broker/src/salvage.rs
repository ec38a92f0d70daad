//! Copies the remains of a damaged directory into a new one.

use engine::{Engine, EngineOptions, Salvage, SalvageReport};
use journal::{
    Damage, Disk, DiskErrorKind, Gap, Journal, JournalFailed, JournalOptions, OpenError, Remains,
};
use model::{Durability, LiveRecords, Lsn, Nanos, StorePolicy};

use crate::recovery::Replay;
use crate::{BrokerOptions, Recovery, verify};

/// Bytes at which a frame of the new log is closed.
const FRAME_BYTES: usize = 256 * 1024;

/// Bytes that the records of one old frame may grow by when they are stated anew.
const GROWTH_BYTES: usize = 4 * 1024 * 1024;

/// The finding of a [`salvage`].
#[derive(Clone, Debug)]
pub struct Salvaged {
    /// Damage to files.
    pub damage: Vec<Damage>,
    /// Frames that are gone.
    pub gaps: Vec<Gap>,
    /// The losses among messages and other things.
    pub report: SalvageReport,
    /// The state that a start of the new directory finds.
    pub recovery: Recovery,
}

impl Salvaged {
    /// Nothing is known to be lost or doubtful.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let files_are_whole = self.damage.is_empty() && self.gaps.is_empty();
        files_are_whole && self.report == SalvageReport::default()
    }
}

/// Why nothing was salvaged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SalvageError {
    /// No frame and no snapshot can be read: with the damage that was found.
    Nothing(Vec<Damage>),
    /// The damaged directory cannot be read at all, or a newer program wrote it.
    From(OpenError),
    /// The new directory cannot be opened, or its bytes are not as they were written.
    To(OpenError),
    /// The disk failed under the new directory.
    Failed(JournalFailed),
    /// The device of the new directory is full.
    Full,
}

impl std::fmt::Display for SalvageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing(damage) => {
                f.write_str("nothing can be read of it")?;
                damage.iter().try_for_each(|Damage { file, cause }| write!(f, "; {file}: {cause}"))
            }
            Self::From(error) => f.write_str(&error.cause()),
            Self::To(error) => write!(f, "the new directory: {}", error.cause()),
            Self::Failed(error) => write!(f, "the new directory: {error}"),
            Self::Full => f.write_str("the device of the new directory is full"),
        }
    }
}

impl std::error::Error for SalvageError {}

/// Copies everything but damaged records from `from` into `to`, which must be empty, and verifies
/// the copy. `from` is only read. `now` counts if nothing tells the time of the log. Tells
/// `progress` of bytes that were read.
///
/// # Errors
/// [`SalvageError`]: `to` is good for nothing then.
///
/// # Panics
/// When `to` holds a log.
pub fn salvage<D: Disk, E: Disk>(
    from: &D,
    to: &E,
    now: Nanos,
    progress: &mut dyn FnMut(usize),
) -> Result<Salvaged, SalvageError> {
    let mut remains = Remains::of(from, progress).map_err(SalvageError::From)?;
    if remains.is_empty() {
        return Err(SalvageError::Nothing(remains.damage().to_vec()));
    }
    let mut salvage = Salvage::default();
    remains.each_chunk(from, &mut |chunk| salvage.load(chunk));
    let (begin, last) = (remains.begin(), Lsn(u64::MAX));
    if salvage.wants_older() {
        let take = &mut |lsn, payload: &[u8]| {
            salvage.replay_older(lsn, payload);
            Ok::<_, SalvageError>(())
        };
        remains.each_frame(from, (Lsn::ZERO, begin), take)?;
        salvage.merge_older();
    }
    remains.each_frame(from, (begin.next(), last), &mut |lsn, payload| {
        progress(payload.len());
        salvage.replay(lsn, payload);
        Ok::<_, SalvageError>(())
    })?;
    let gaps = remains.gaps();
    salvage.finish(gaps.last().is_some_and(|gap| gap.last > remains.last()));
    let options = options_for(remains.payload_bytes_max());
    // The new log tells no later time than the old one, or a start could not see that the clock
    // was set far ahead.
    let now = if remains.latest() > Nanos::ZERO { remains.latest() } else { now };
    let mut copy = Copy::open(to, options.clone(), now)?;
    salvage.head(&mut |record| copy.push(record, LiveRecords::NONE));
    copy.close_frame()?;
    remains.each_frame(from, (Lsn::ZERO, last), &mut |lsn, payload| {
        progress(payload.len());
        salvage.restore(lsn, payload, &mut |record, live| copy.push(record, live));
        copy.error.take().map_or(Ok(()), Err)
    })?;
    salvage.tail(&mut |record| copy.push(record, LiveRecords::NONE));
    copy.close_frame()?;
    copy.finish()?;
    let recovery = verify(to, options, progress).map_err(SalvageError::To)?;
    let (damage, report) = (remains.damage().to_vec(), salvage.report().clone());
    Ok(Salvaged { damage, gaps, report, recovery })
}

fn options_for(payload_bytes_max: usize) -> BrokerOptions {
    let policy = StorePolicy::Always;
    let bytes = payload_bytes_max.saturating_add(GROWTH_BYTES);
    let journal = JournalOptions::new(policy).with_message_bytes_max(bytes);
    BrokerOptions { engine: EngineOptions::new(policy), journal }
}

/// The new log.
struct Copy<'d, D: Disk> {
    disk: &'d D,
    journal: Journal<D::File>,
    now: Nanos,
    /// Records of the frame that is being made, and how many of them are live.
    frame: Vec<u8>,
    live: LiveRecords,
    error: Option<SalvageError>,
    payload_bytes_max: usize,
}

impl<'d, D: Disk> Copy<'d, D> {
    fn open(disk: &'d D, options: BrokerOptions, now: Nanos) -> Result<Self, SalvageError> {
        let payload_bytes_max = options.journal.frame_payload_bytes_max;
        let read = &mut |_| {};
        let mut nothing = Replay::new(Engine::new(options.engine), read);
        let opened = Journal::open(disk, options.journal, &mut nothing);
        let (journal, found) = opened.map_err(SalvageError::To)?;
        assert!(found.last == Lsn::ZERO, "the new directory is empty");
        let (frame, live, error) = (Vec::new(), LiveRecords::NONE, None);
        let mut copy = Self { disk, journal, now, frame, live, error, payload_bytes_max };
        copy.work()?;
        Ok(copy)
    }

    /// Adds a record; closes the frame if it is large enough. An error is kept for the next
    /// [`Copy::close_frame`].
    fn push(&mut self, record: &[u8], live: LiveRecords) {
        if !self.frame.is_empty() && self.frame.len() + record.len() > FRAME_BYTES {
            let closed = self.close_frame();
            self.error = self.error.take().or(closed.err());
        }
        self.frame.extend_from_slice(record);
        self.live += live;
    }

    fn close_frame(&mut self) -> Result<(), SalvageError> {
        self.error.take().map_or(Ok(()), Err)?;
        let (frame, live) = (std::mem::take(&mut self.frame), std::mem::take(&mut self.live));
        if frame.is_empty() {
            return Ok(());
        }
        if self.journal.stalled() || self.journal.room() < frame.len() as u64 {
            self.work()?;
        }
        if self.journal.stalled() || self.journal.room() < frame.len() as u64 {
            return Err(SalvageError::Full);
        }
        assert!(frame.len() <= self.payload_bytes_max, "no record grows by so much");
        let lsn = self.journal.last().next();
        self.journal.append(self.now, lsn, &frame, Durability::Written, live);
        Ok(())
    }

    /// Performs all writes and chores that are to be done.
    fn work(&mut self) -> Result<(), SalvageError> {
        loop {
            if let Some(write) = self.journal.poll_write(self.now) {
                let result = write.perform(self.disk);
                let handled = self.journal.handle_write(self.now, write, result);
                handled.map_err(failed)?;
            } else if let Some(chore) = self.journal.poll_chore(self.now) {
                let done = chore.perform(self.disk);
                self.journal.handle_chore(self.now, done).map_err(failed)?;
            } else {
                return Ok(());
            }
        }
    }

    /// Everything is on the device.
    fn finish(mut self) -> Result<(), SalvageError> {
        self.journal.begin_shutdown();
        self.work()?;
        if self.journal.is_settled() {
            return Ok(());
        }
        Err(SalvageError::Full)
    }
}

fn failed(error: JournalFailed) -> SalvageError {
    match error.cause.kind {
        DiskErrorKind::Full => SalvageError::Full,
        DiskErrorKind::Failed => SalvageError::Failed(error),
    }
}
