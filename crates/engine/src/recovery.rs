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
    pub(crate) bodies_missing: u64,
    /// The last frame replayed.
    pub(crate) replayed: Lsn,
    /// The chain that still lacks its last frame.
    pub(crate) chain: Option<HeldChain>,
    /// Chains of which the log has no last frame.
    pub(crate) chains_cut: u64,
    /// Queues of subscriptions that the snapshot found gone, with an end that is still to be
    /// replayed.
    pub(crate) pending_unsubscribes: BTreeMap<u64, QueueSlot>,
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
    pub(crate) frames: Vec<(Lsn, Vec<u8>)>,
}
