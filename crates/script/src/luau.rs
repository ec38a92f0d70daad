//! The interpreter as the protocol sees it.

use std::sync::{Mutex, PoisonError};

use model::ScriptValue;
use resp::{Interpreter, ScriptHost, ScriptRun};
use sha1::{Digest, Sha1};

use crate::budget::Overrun;
use crate::limits::{Limits, SOURCE_BYTES_MAX};
use crate::machine::{End, Machine};
use crate::shebang;

/// Runs scripts with Luau, one at a time.
#[derive(Debug)]
pub struct Luau {
    limits: Limits,
    /// `None` until the first script, and after one that met a limit.
    machine: Mutex<Option<Machine>>,
}

impl Luau {
    /// An interpreter with these limits for each run.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, machine: Mutex::new(None) }
    }

    /// Acts with the machine, which is a new one if the last run broke it.
    fn with_machine<R>(
        &self,
        act: impl FnOnce(&mut Option<Machine>) -> Result<R, String>,
    ) -> Result<R, String> {
        let mut machine = self.machine.lock().unwrap_or_else(|poisoned| {
            self.machine.clear_poison();
            let mut machine = PoisonError::into_inner(poisoned);
            *machine = None;
            machine
        });
        if machine.is_none() {
            let new = Machine::new().map_err(|error| format!("ERR no interpreter: {error}"))?;
            *machine = Some(new);
        }
        act(&mut machine)
    }

    fn overrun(&self, overrun: Overrun) -> String {
        match overrun {
            Overrun::Time => {
                let time = self.limits.time.as_millis();
                format!("ERR script has run for {time} ms: the limit is --script-time")
            }
            Overrun::Memory => {
                let mebibytes = self.limits.memory_bytes >> 20;
                format!("ERR script took more than {mebibytes} MiB of memory")
            }
        }
    }
}

impl Default for Luau {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Interpreter for Luau {
    fn digest(&self, source: &[u8]) -> [u8; 20] {
        Sha1::digest(source).into()
    }

    fn check(&self, source: &[u8]) -> Result<(), String> {
        let body = body(source)?;
        self.with_machine(|machine| match machine {
            Some(machine) => machine.prepare(self.digest(source), body).map(drop),
            None => Ok(()),
        })
    }

    fn run(&self, run: ScriptRun<'_>, host: &mut dyn ScriptHost) -> ScriptValue {
        let result = body(run.source).and_then(|body| {
            let digest = self.digest(run.source);
            self.with_machine(|slot| {
                let Some(mut machine) = slot.take() else { return Ok(ScriptValue::Null) };
                let script = machine.prepare(digest, body);
                let end =
                    script.map(|script| machine.run(&script, &digest, run, self.limits, host));
                if let Ok(End::Overrun(overrun)) = end {
                    return Err(self.overrun(overrun));
                }
                *slot = Some(machine);
                match end? {
                    End::Value(value) => Ok(value),
                    End::Overrun(overrun) => Err(self.overrun(overrun)),
                }
            })
        });
        result.unwrap_or_else(|text| ScriptValue::Error(text.into_bytes()))
    }
}

/// The text to compile.
fn body(source: &[u8]) -> Result<&[u8], String> {
    if source.len() > SOURCE_BYTES_MAX {
        return Err(format!("ERR script has more than {SOURCE_BYTES_MAX} bytes"));
    }
    shebang::body(source)
}
