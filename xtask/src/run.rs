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

/// Lines before these that tell of failures, and so many behind each, are shown as well.
const TOLD_LINES: usize = 4;

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

    /// The last lines, and before them what failed: a runner of many programs goes on after one of
    /// them.
    pub(crate) fn tail(&self) -> String {
        let lines: Vec<&str> = self.output.lines().collect();
        let hidden = lines.len().saturating_sub(TAIL_LINES);
        let (before, last) = lines.split_at(hidden);
        let told = before.iter().enumerate().filter(|(_, line)| tells_of_failure(line));
        let mut shown: Vec<&str> = Vec::new();
        let mut next = 0;
        for (at, _) in told {
            let end = before.len().min(at + 1 + TOLD_LINES);
            shown.extend(before.get(next.max(at)..end).unwrap_or_default());
            next = end;
        }
        shown.extend(last);
        shown.join("\n")
    }
}

fn tells_of_failure(line: &str) -> bool {
    let words =
        [" panicked at ", "... FAILED", "--- FAIL", "not ok ", "<<< FAILURE!", "<<< ERROR!"];
    words.iter().any(|word| line.contains(word)) || line.starts_with("FAIL: ")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_long_before_the_end_is_shown() {
        let mut lines = vec!["test one ... ok".to_owned(), "test two ... FAILED".to_owned()];
        lines.push("thread 'two' panicked at two.rs:1:".to_owned());
        lines.extend((0..1_000).map(|number| format!("line {number}")));
        let tail = Outcome { ended_well: false, output: lines.join("\n") }.tail();
        let shown: Vec<&str> = tail.lines().collect();
        assert_eq!(
            shown.get(..7),
            Some(
                &[
                    "test two ... FAILED",
                    "thread 'two' panicked at two.rs:1:",
                    "line 0",
                    "line 1",
                    "line 2",
                    "line 3",
                    "line 880",
                ][..]
            )
        );
        assert_eq!(shown.len(), 6 + TAIL_LINES);
    }
}
