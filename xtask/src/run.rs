//! Runs a program to its end with its output in a log.

use std::collections::BTreeSet;
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

/// The outcome of a program.
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
    run_while_it_talks(command, log, limit, limit)
}

/// The same, and no longer than while it prints something at least every `silence`.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_while_it_talks(
    command: &mut Command,
    log: &Path,
    limit: Duration,
    silence: Duration,
) -> Result<Outcome> {
    let file = File::create(log)?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    // A group of its own, so that a program that hangs ends with its children.
    command.process_group(0);
    let mut child = children::spawn(command)
        .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    let ended_well = wait(&mut child, log, limit, silence);
    children::end(&mut child);
    let ended_well = ended_well?;
    let output = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    if !ended_well {
        unended(&output).iter().for_each(|test| println!("has not ended: {test}"));
    }
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

    /// The last lines, and before them the lines of failures: a runner of many programs goes on
    /// after one of them.
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

/// The tests that libtest told to take long and not to have ended.
fn unended(output: &str) -> Vec<&str> {
    let named = |end| {
        let tests = output.lines().filter_map(|line| line.strip_prefix("test "));
        tests.filter_map(move |line| line.split_once(end)).map(|(name, _)| name)
    };
    let ended: BTreeSet<_> = named(" ... ").collect();
    named(" has been running for over ").filter(|name| !ended.contains(name)).collect()
}

fn wait(child: &mut Child, log: &Path, limit: Duration, silence: Duration) -> Result<bool> {
    let begun = Instant::now();
    let (mut printed, mut heard) = (0, begun);
    while begun.elapsed() < limit && heard.elapsed() < silence {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        let bytes = fs::metadata(log)?.len();
        if bytes != printed {
            (printed, heard) = (bytes, Instant::now());
        }
        thread::sleep(Duration::from_millis(20));
    }
    let (all, silent) = (begun.elapsed().as_secs(), heard.elapsed().as_secs());
    println!("still running after {all} s, the last {silent} without a word: killed");
    children::end_group(child);
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_command_is_killed() {
        let log = std::env::temp_dir().join(format!("dunlin-xtask-{}-silent", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000"]);
        let (limit, silence) = (Duration::from_secs(900), Duration::from_secs(1));
        let outcome = run_while_it_talks(&mut command, &log, limit, silence).unwrap();
        fs::remove_file(&log).unwrap();
        assert!(!outcome.ended_well);
    }

    #[test]
    fn unended_tests_are_named() {
        let output = "running 3 tests\ntest quick ... ok\n\
            test slow has been running for over 60 seconds\n\
            test hangs has been running for over 60 seconds\n\
            test slow ... ok\n";
        assert_eq!(unended(output), ["hangs"]);
    }

    #[test]
    fn tail_shows_early_failures() {
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
