//! The interpreter of scripts, as this protocol sees it. The server brings one; without one there
//! are no scripts.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use model::ScriptValue;

/// A script that is asked to run.
#[derive(Clone, Copy, Debug)]
pub struct ScriptRun<'s> {
    /// Its text.
    pub source: &'s [u8],
    /// `KEYS`
    pub keys: &'s [Vec<u8>],
    /// `ARGV`
    pub arguments: &'s [Vec<u8>],
    /// A number by which `math.random` begins.
    pub seed: u64,
}

/// The commands that a script gives, and their answers.
pub trait ScriptHost {
    /// Does a command: its words, and whether the answer may have the forms of RESP3
    /// (`redis.setresp(3)`).
    fn call(&mut self, words: &[Vec<u8>], resp3: bool) -> ScriptValue;
}

/// Runs scripts of all connections, one at a time.
pub trait Interpreter: Send + Sync + fmt::Debug {
    /// SHA-1 of a text, by which clients name a script.
    fn digest(&self, source: &[u8]) -> [u8; 20];

    /// Checks that a text is a script.
    ///
    /// # Errors
    /// The message for the client, with its code.
    fn check(&self, source: &[u8]) -> Result<(), String>;

    /// Runs a script to its end, or until it has taken too much time or memory. What it returns is
    /// in the forms of RESP2 unless it asked for RESP3.
    fn run(&self, run: ScriptRun<'_>, host: &mut dyn ScriptHost) -> ScriptValue;
}
