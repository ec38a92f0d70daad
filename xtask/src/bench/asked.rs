//! A client process that is asked by lines and answers each with a line of JSON.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::Result;
use crate::children;

/// A line of JSON.
pub(super) type Answer = Map<String, Value>;

/// The process. Dropping it kills it.
pub(super) struct Asked {
    child: Child,
    questions: ChildStdin,
    answers: Receiver<String>,
}

impl Asked {
    /// Starts it; its standard error goes to `log`.
    pub(super) fn start(mut command: Command, log: &Path) -> Result<Asked> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(log)?);
        let mut child = children::spawn(&mut command)
            .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let questions = child.stdin.take().ok_or("no standard input")?;
        let stdout = child.stdout.take().ok_or("no standard output")?;
        let (sender, answers) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(|line| line.ok()) {
                // The receiver is gone when the process was killed meanwhile.
                if line.starts_with('{') && sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Asked { child, questions, answers })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// # Errors
    /// When it ended, has not answered within `limit`, or answers that it failed.
    pub(super) fn ask(&mut self, question: &str, limit: Duration) -> Result<Answer> {
        writeln!(self.questions, "{question}")?;
        let line = self
            .answers
            .recv_timeout(limit)
            .map_err(|_| format!("no answer within {} s, or ended", limit.as_secs()))?;
        let answer: Answer = serde_json::from_str(&line)?;
        match answer.get("error").and_then(Value::as_str) {
            Some(error) => Err(error.into()),
            None => Ok(answer),
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        children::end(&mut self.child);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn client(script: &str) -> Asked {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let log = std::env::temp_dir().join(format!("asked-{}.log", std::process::id()));
        let asked = Asked::start(command, &log).unwrap();
        std::fs::remove_file(log).ok();
        asked
    }

    #[test]
    fn answers_differ_from_lines_and_failures() {
        let mut asked = client(
            "read one; echo warning; echo \"{\\\"heard\\\":\\\"$one\\\"}\"
             read two; echo '{\"error\":\"closed\"}'; read three",
        );
        assert_eq!(asked.ask("hello", LIMIT).unwrap().get("heard"), Some(&"hello".into()));
        assert_eq!(asked.ask("again", LIMIT).unwrap_err().to_string(), "closed");
        assert!(asked.ask("last", LIMIT).is_err());
    }
}
