//! The plan of a command that needs the engine: the question, and the wording of the reply.

use model::{Command, KeyCommand, ListCommand};

use crate::reply_format::ReplyFormat;

/// A question and the meaning of its reply.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) command: Command,
    pub(crate) wording: ReplyFormat,
}

impl Plan {
    pub(crate) fn list(command: ListCommand, wording: ReplyFormat) -> Self {
        Self { command: Command::List(command), wording }
    }

    /// The same in steps that others need not wait for.
    pub(crate) fn in_parts(self) -> Self {
        match self.wording {
            ReplyFormat::Names(names) if names.are_many() => names.in_parts(),
            wording => Self { wording, ..self },
        }
    }

    pub(crate) fn key(command: KeyCommand, wording: ReplyFormat) -> Self {
        Self { command: Command::Key(command), wording }
    }
}
