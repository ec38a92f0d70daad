//! Runs a program to its end with its output in a log.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;
use crate::children;
use crate::tally::{Runner, Tally};

/// Lines of a failed program's output that are shown.
const TAIL_LINES: usize = 120;

/// What came of a program.
pub(crate) struct Outcome {
    /// It succeeded, and in time.
    pub(crate) ended_well: bool,
    /// Everything that it printed.
    pub(crate) output: String,
}

/// Runs `command` for at most `limit`; its output goes to `log`.
///
/// # Errors
/// When it cannot be started.
pub(crate) fn run(command: &mut Command, log: &Path, limit: Duration) -> Result<Outcome> {
    let file = File::create(log)?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    // A group of its own, so that a program that hangs ends with its children.
    command.process_group(0);
    let mut child = children::spawn(command)
        .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    let ended_well = wait(&mut child, limit);
    children::end(&mut child);
    let ended_well = ended_well?;
    let output = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    Ok(Outcome { ended_well, output })
}

impl Outcome {
    /// Its counts; shows the end of the output when anything failed.
    pub(crate) fn tally(&self, runner: Runner) -> Tally {
        let tally = Tally::read(runner, &self.output, self.ended_well);
        if tally.failed > 0 {
            println!("{}", self.tail());
        }
        tally
    }

    /// The last lines.
    pub(crate) fn tail(&self) -> String {
        let lines: Vec<&str> = self.output.lines().collect();
        let hidden = lines.len().saturating_sub(TAIL_LINES);
        lines.get(hidden..).unwrap_or_default().join("\n")
    }
}

fn wait(child: &mut Child, limit: Duration) -> Result<bool> {
    let end = Instant::now() + limit;
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        thread::sleep(Duration::from_millis(20));
    }
    println!("still running after {} s, killed", limit.as_secs());
    children::end_group(child);
    Ok(false)
}
