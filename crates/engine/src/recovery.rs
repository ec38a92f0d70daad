//! Making an engine again from a snapshot and the frames of the log.
//!
//! The order is: [`Engine::load`] each chunk of the snapshot, [`Engine::replay`] each frame after
//! the snapshot's begin, ascending, [`Engine::restore_body`] the frames from before it, in any
//! order, then [`Engine::finish_recovery`]. All four are in `commands/recover.rs`. Nothing else may
//! be called in between. Every error means that the log and the snapshot do not fit together or are
//! damaged: the engine is then good for nothing.

pub(crate) mod chain;
pub(crate) mod compaction;
mod places;
pub(crate) mod salvage;
pub(crate) mod snapshot;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use model::Lsn;
use records::RecordError;

use crate::ids::QueueSlot;
use crate::log::Placed;

/// How far recovery has come.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    /// Messages with a body that was not seen in the log yet.
    bodies_missing: u64,
    /// The last frame replayed.
    replayed: Lsn,
    /// The chain that still lacks its last frame.
    chain: Option<HeldChain>,
    /// Chains of which the log has no last frame.
    chains_cut: u64,
    /// Queues of subscriptions that the snapshot found gone, with an end that is still to be
    /// replayed.
    pending_unsubscribes: BTreeMap<u64, QueueSlot>,
}

impl Recovery {
    pub(crate) const fn bodies_missing(&self) -> u64 {
        self.bodies_missing
    }

    pub(crate) const fn replayed(&self) -> Lsn {
        self.replayed
    }

    pub(crate) const fn chains_cut(&self) -> u64 {
        self.chains_cut
    }

    pub(crate) const fn pending_unsubscribes(&self) -> &BTreeMap<u64, QueueSlot> {
        &self.pending_unsubscribes
    }

    /// A message came, maybe without its body.
    pub(crate) fn add_message(&mut self, is_body_missing: bool) {
        self.bodies_missing += u64::from(is_body_missing);
    }

    /// A message whose body was missing got it, or went.
    pub(crate) fn end_missing(&mut self, was_missing: bool) {
        assert!(!was_missing || self.bodies_missing > 0, "missing bodies are counted");
        self.bodies_missing -= u64::from(was_missing);
    }

    /// A frame behind all others is replayed.
    pub(crate) fn advance(&mut self, lsn: Lsn) {
        assert!(lsn > self.replayed, "frames are replayed in their order");
        self.replayed = lsn;
    }

    /// The end of a subscription is replayed that the snapshot found gone.
    pub(crate) fn end_pending(&mut self, number: u64) -> Option<QueueSlot> {
        self.pending_unsubscribes.remove(&number)
    }

    /// Recovery is over; only the count of cut chains stays.
    pub(crate) fn finish(&mut self) {
        assert_eq!(self.bodies_missing, 0, "each message has its body");
        assert!(self.chain.is_none(), "no chain is held");
        assert!(self.pending_unsubscribes.is_empty(), "each subscription has ended");
        *self = Self { chains_cut: self.chains_cut, ..Self::default() };
    }
}

pub(crate) fn placed(lsn: Lsn, size: usize) -> Result<Placed, RecordError> {
    let bytes = u32::try_from(size).map_err(|_| RecordError::Invalid("body"))?;
    Ok(Placed { lsn, bytes })
}

/// The frames of a chain so far.
#[derive(Debug)]
pub(crate) struct HeldChain {
    first: Lsn,
    /// Each with its other records.
    frames: Vec<(Lsn, Vec<u8>)>,
}
