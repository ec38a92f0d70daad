//! All that answering one client needs: its identity, the shared state, and where the bytes go.

use alloc::vec::Vec;

use model::Nanos;

use crate::answer::Answer;
use crate::clients::{Client, Slot};
use crate::cursors::Place;
use crate::fault::Fault;
use crate::shared::ListenerState;

/// One client being answered.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) slot: Slot,
    pub(crate) shared: &'a mut ListenerState,
    pub(crate) now: Nanos,
    pub(crate) out: &'a mut Vec<u8>,
}

impl Context<'_> {
    pub(crate) fn client(&mut self) -> &mut Client {
        self.shared.clients.at_mut(self.slot)
    }

    pub(crate) fn answer(&mut self) -> Answer<'_> {
        let version = self.shared.clients.at_mut(self.slot).version;
        Answer::new(self.out, version)
    }

    pub(crate) fn refuse(&mut self, fault: &Fault) {
        self.answer().error_bytes(&fault.0);
    }

    /// A cursor for SCAN or its kin to go on from this place.
    pub(crate) fn remember(&mut self, place: Place) -> u64 {
        self.shared.cursors.remember(place)
    }
}
