//! Chains of frames in recovery: none of their records takes effect before the last frame is there.
//!
//! A chain whose last frame is missing was cut off by a crash and never confirmed. What follows
//! then was written later, and is no continuation: it names no chain, or one that begins elsewhere.

use alloc::vec::Vec;

use model::Lsn;
use records::{Link, RecordError};

use crate::engine::{Engine, Recovery};

/// The frames of a chain so far.
#[derive(Debug)]
pub(crate) struct HeldChain {
    first: Lsn,
    /// Each with its other records.
    frames: Vec<(Lsn, Vec<u8>)>,
}

impl HeldChain {
    fn last(&self) -> Lsn {
        self.frames.last().map_or(self.first, |(lsn, _)| *lsn)
    }
}

impl Engine {
    /// Takes in a frame from after the snapshot's begin. Between the begin and the end of the
    /// snapshot frames are `fuzzy`: changes of messages and subscriptions that the snapshot found
    /// gone are ignored. Everywhere else they are errors.
    ///
    /// # Errors
    /// When the frame is damaged, not after the one before it, part of a chain whose beginning is
    /// missing, or about an unknown message or subscription.
    pub fn replay(&mut self, lsn: Lsn, payload: &[u8], fuzzy: bool) -> Result<(), RecordError> {
        if lsn <= self.recovery.replayed {
            return Err(RecordError::OutOfOrder(lsn));
        }
        self.recovery.replayed = lsn;
        self.bodies.memory.written = Lsn(u64::MAX);
        if lsn.0.is_multiple_of(FRAMES_PER_TRIM) {
            self.trim();
        }
        let Some(Link { first, more, records }) = Link::of(payload)? else {
            self.recovery.drop_chain();
            return self.replay_records(lsn, payload, fuzzy);
        };
        let mut chain = self.recovery.chain_of(lsn, first)?;
        if more {
            chain.frames.push((lsn, records.to_vec()));
            self.recovery.chain = Some(chain);
            return Ok(());
        }
        for (lsn, records) in &chain.frames {
            self.replay_records(*lsn, records, fuzzy)?;
        }
        self.replay_records(lsn, records, fuzzy)
    }

    /// Chains that the log ended or went on without: commits that were cut off.
    #[must_use]
    pub fn chains_cut(&self) -> u64 {
        self.recovery.chains_cut
    }
}

impl Recovery {
    /// What is held was cut off.
    pub(crate) fn drop_chain(&mut self) {
        self.chains_cut += u64::from(self.chain.take().is_some());
    }

    /// The chain that begins at `first`, whose next frame is `lsn`.
    fn chain_of(&mut self, lsn: Lsn, first: Lsn) -> Result<HeldChain, RecordError> {
        if first == lsn {
            self.drop_chain();
            return Ok(HeldChain { first, frames: Vec::new() });
        }
        let held = self.chain.take();
        let fits = held.filter(|held| held.first == first && held.last().next() == lsn);
        fits.ok_or(RecordError::Invalid("chain"))
    }
}

/// Messages themselves take memory, for which bodies have to leave: a little for each frame.
const FRAMES_PER_TRIM: u64 = 64;
