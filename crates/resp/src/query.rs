//! The plan of a command that needs the engine: the question, and the wording of the reply.

use model::{CollectionCommand, Command, KeyCommand, ListCommand, StreamCommand};

use crate::reply_format::ReplyFormat;

/// A question and the meaning of its reply.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) command: Command,
    pub(crate) format: ReplyFormat,
}

impl Query {
    pub(crate) fn list(command: ListCommand, format: ReplyFormat) -> Self {
        Self { command: Command::List(command), format }
    }

    /// The same in steps that others need not wait for.
    pub(crate) fn in_parts(self) -> Self {
        match self.format {
            ReplyFormat::Names(names) if names.are_many() => names.in_parts(),
            format => Self { format, ..self },
        }
    }

    pub(crate) fn key(command: KeyCommand, format: ReplyFormat) -> Self {
        Self { command: Command::Key(command), format }
    }

    pub(crate) fn stream(command: StreamCommand, format: impl Into<ReplyFormat>) -> Self {
        Self { command: command.into(), format: format.into() }
    }

    pub(crate) fn collection(command: CollectionCommand, format: impl Into<ReplyFormat>) -> Self {
        Self { command: command.into(), format: format.into() }
    }
}
