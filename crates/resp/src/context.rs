//! All that answering one client needs: its identity, the shared state, and where the bytes go.

use alloc::vec::Vec;

use model::{Nanos, QueueName};

use crate::answer::Answer;
use crate::clients::{Client, Slot};
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

    /// A cursor for SCAN to go on behind this name.
    pub(crate) fn remember(&mut self, name: QueueName) -> u64 {
        self.shared.cursors.remember(name)
    }
}
