//! Chains of frames in recovery: none of their records takes effect before the last frame is there.
//!
//! A chain without its last frame was cut off by a crash and never confirmed. The frame that
//! follows then was written later, and is no continuation: it names no chain, or one that begins
//! elsewhere.

use alloc::vec::Vec;

use model::Lsn;
use records::RecordError;

use crate::recovery::{HeldChain, Recovery};

impl HeldChain {
    pub(crate) fn frames(&self) -> &[(Lsn, Vec<u8>)] {
        &self.frames
    }

    fn last(&self) -> Lsn {
        self.frames.last().map_or(self.first, |(lsn, _)| *lsn)
    }
}

impl Recovery {
    /// Drops the chain that is held: its last frame is missing.
    pub(crate) fn drop_chain(&mut self) {
        self.chains_cut += u64::from(self.chain.take().is_some());
    }

    /// A chain goes on with this frame, and lacks its last one.
    pub(crate) fn hold_chain(&mut self, mut chain: HeldChain, lsn: Lsn, records: &[u8]) {
        assert!(self.chain.is_none(), "one chain is held at a time");
        assert!(chain.frames.last().is_none_or(|(last, _)| *last < lsn), "a chain ascends");
        chain.frames.push((lsn, records.to_vec()));
        self.chain = Some(chain);
    }

    /// The chain that begins at `first` and goes on with the frame `lsn`.
    pub(crate) fn chain_of(&mut self, lsn: Lsn, first: Lsn) -> Result<HeldChain, RecordError> {
        if first == lsn {
            self.drop_chain();
            return Ok(HeldChain { first, frames: Vec::new() });
        }
        let held = self.chain.take();
        let fits = held.filter(|held| held.first == first && held.last().next() == lsn);
        fits.ok_or(RecordError::Invalid("chain"))
    }
}
