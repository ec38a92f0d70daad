//! Disposition: the outcomes of deliveries (2.7.6).

use alloc::vec::Vec;

use crate::encode;
use crate::performative::Role;
use crate::state::DeliveryState;
use crate::types::descriptor;
use crate::types::list_reader::ListReader;
use crate::types::reader::Result;

/// Tells the state of the deliveries `first` to `last` of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disposition<'a> {
    /// The end that the peer is of those deliveries.
    pub role: Role,
    /// The first delivery.
    pub first: u32,
    /// The last delivery; absent: `first`. Both count modulo 2^32 (2.8.8).
    pub last: Option<u32>,
    /// True if the peer has forgotten the deliveries.
    pub settled: bool,
    /// Their state at the peer.
    pub state: Option<DeliveryState<'a>>,
    /// True if an answer may wait for others.
    pub batchable: bool,
}

impl<'a> Disposition<'a> {
    pub(super) fn read(list: &mut ListReader<'a>) -> Result<Disposition<'a>> {
        let role = Role::read(list)?;
        let first = list.uint()?;
        Ok(Disposition {
            role,
            first: list.need(first, "first")?,
            last: list.uint()?,
            settled: list.flag()?,
            state: list.described(DeliveryState::decode)?,
            batchable: list.flag()?,
        })
    }

    /// Appends the performative.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode::composite(out, descriptor::DISPOSITION, |list| {
            list.boolean(self.role.field());
            list.uint(Some(self.first));
            list.uint(self.last);
            list.flag(self.settled);
            list.field(self.state.as_ref(), |out, state| state.encode(out));
            list.flag(self.batchable);
        });
    }
}
