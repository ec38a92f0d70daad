//! What a command comes to where the engine is needed: what to ask, and how the reply is worded.

use alloc::boxed::Box;

use model::{Command, KeyCommand, ListCommand};

use crate::wording::Wording;

/// A question and what its reply will mean.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) command: Command,
    pub(crate) wording: Wording,
}

impl Plan {
    pub(crate) fn list(command: ListCommand, wording: Wording) -> Self {
        Self { command: Command::List(Box::new(command)), wording }
    }

    pub(crate) fn key(command: KeyCommand, wording: Wording) -> Self {
        Self { command: Command::Key(Box::new(command)), wording }
    }
}
