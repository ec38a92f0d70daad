//! Commands that are several commands of the engine: all of them are one frame, as those of a
//! script, and no other client comes between. A program changes something last, and then at once.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use model::{Command, Reply, Script, ScriptCommands, ScriptProgram, ScriptValue};

use crate::fault::Fault;
use crate::query::Query;
use crate::reply_format::ReplyFormat;

/// The commands of a program.
pub(crate) struct Commands<'c>(&'c mut dyn ScriptCommands);

/// A program that answers with a value.
struct Program<F>(F);

/// The question that a program is.
pub(crate) fn program<F>(run: F) -> Query
where
    F: Fn(&mut Commands<'_>) -> Result<ScriptValue, Fault> + Send + Sync + 'static,
{
    let command = Command::Script(Script(Arc::new(Program(run))));
    Query { command, format: ReplyFormat::Scripted }
}

impl<F> ScriptProgram for Program<F>
where
    F: Fn(&mut Commands<'_>) -> Result<ScriptValue, Fault> + Send + Sync,
{
    fn run(&self, commands: &mut dyn ScriptCommands) -> ScriptValue {
        (self.0)(&mut Commands(commands))
            .unwrap_or_else(|Fault(text)| ScriptValue::Error(text.into_owned()))
    }
}

impl<F> fmt::Debug for Program<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Program")
    }
}

impl Commands<'_> {
    /// Does one command.
    pub(crate) fn ask(&mut self, command: impl Into<Command>) -> Result<Reply, Fault> {
        match self.0.perform(command.into()) {
            Reply::Refused(refusal) => Err(Fault::refused(&refusal)),
            reply => Ok(reply),
        }
    }

    /// Does all of these, or none if they are refused.
    pub(crate) fn ask_all(&mut self, commands: Vec<Command>) -> Result<(), Fault> {
        let replies = self.0.perform_all(commands).map_err(|refusal| Fault::refused(&refusal))?;
        let refused = replies.iter().find_map(|reply| match reply {
            Reply::Refused(refusal) => Some(Fault::refused(refusal)),
            _ => None,
        });
        refused.map_or(Ok(()), Err)
    }

    /// How many there are.
    pub(crate) fn count(&mut self, command: impl Into<Command>) -> Result<u64, Fault> {
        match self.ask(command)? {
            Reply::Count(count) => Ok(count),
            _ => Err(Fault::INTERNAL),
        }
    }
}
