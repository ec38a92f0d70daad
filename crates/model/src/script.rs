//! Scripts: programs that give commands, all of which are one frame.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::{Command, Nanos, Refusal, Reply};

/// A value on its way between a script and its commands or its client, in the forms of RESP.
#[derive(Clone, Debug, PartialEq)]
pub enum ScriptValue {
    /// Nothing.
    Null,
    /// `+OK`
    Status(Vec<u8>),
    /// An error with its code, such as `ERR no such key`.
    Error(Vec<u8>),
    /// A number.
    Integer(i64),
    /// Bytes.
    Bulk(Vec<u8>),
    /// Values, one behind the other.
    Array(Vec<Self>),
    /// RESP3: true or false.
    Boolean(bool),
    /// RESP3: a number with a fraction.
    Double(f64),
    /// RESP3: keys with values.
    Map(Vec<(Self, Self)>),
    /// RESP3: values without an order.
    Set(Vec<Self>),
}

/// A number that is none is equal to nothing, not even to itself; no reply has one.
impl Eq for ScriptValue {}

/// The engine as a script sees it.
pub trait ScriptCommands {
    /// Does a command now: it waits for nothing.
    fn perform(&mut self, command: Command) -> Reply;

    /// Does all of these or none: they are counted before any is done. Else it gives the refusal of
    /// the first.
    ///
    /// # Errors
    /// None of them was done.
    fn perform_all(&mut self, commands: Vec<Command>) -> Result<Vec<Reply>, Refusal>;

    /// The moment at which it runs.
    fn now(&self) -> Nanos;
}

/// A script with all that it needs to run once.
pub trait ScriptProgram: Send + Sync + fmt::Debug {
    /// Runs it to its end, or until it has taken too much time or memory.
    fn run(&self, commands: &mut dyn ScriptCommands) -> ScriptValue;
}

/// A script in a command.
#[derive(Clone, Debug)]
pub struct Script(pub Arc<dyn ScriptProgram>);

/// True if it is the same run of a script.
impl PartialEq for Script {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Script {}
