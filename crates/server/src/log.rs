//! The log: one line an event on standard error, with the time in UTC. Events are starts, ends and
//! troubles, never single messages.
//!
//! Any thread may log, a reactor too, so nothing here waits: standard error is often a pipe, and
//! its reader may sleep. Lines without room are counted instead.

use std::fmt;
use std::os::fd::AsFd;
use std::sync::Mutex;

use model::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::write;

use crate::clock::Clock;

/// The sink of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Logger {
    /// To standard error.
    #[default]
    Stderr,
    /// Nowhere: for servers that live inside another program.
    Quiet,
}

impl Logger {
    /// Writes one line, or drops it if that would have to wait.
    pub fn line(self, text: fmt::Arguments<'_>) {
        if self == Self::Stderr {
            STDERR.line(std::io::stderr(), text);
        }
    }
}

/// A complaint that may come up often, and is logged once a second at most.
#[derive(Debug, Default)]
pub(crate) struct Complaint {
    logged_at: Option<Nanos>,
    /// How often it came up since without being logged.
    left_out: u64,
}

impl Complaint {
    pub(crate) fn line(&mut self, log: Logger, now: Nanos, text: fmt::Arguments<'_>) {
        if self.logged_at.is_some_and(|at| now.since(at) < Nanos::SECOND) {
            self.left_out += 1;
            return;
        }
        self.logged_at = Some(now);
        match std::mem::take(&mut self.left_out) {
            0 => log.line(text),
            count => log.line(format_args!("{text}, and {count} more since the last such line")),
        }
    }
}

/// Standard error, of all servers in this process.
static STDERR: Outlet = Outlet { lost: Mutex::new(0) };

/// The outlet by which lines leave the process, one writer at a time.
struct Outlet {
    /// Lines dropped since the last that was written.
    lost: Mutex<u64>,
}

impl Outlet {
    fn line(&self, out: impl AsFd, text: fmt::Arguments<'_>) {
        let mut lost = self.lost.lock().expect("invariant: nobody panics while writing a line");
        if *lost > 0
            && write_now(&out, format_args!("{lost} lines of this log were not read in time"))
        {
            *lost = 0;
        }
        if *lost > 0 || !write_now(&out, text) {
            *lost += 1;
        }
    }
}

/// Writes a line with the time before it; false if that would have to wait.
fn write_now(out: impl AsFd, text: fmt::Arguments<'_>) -> bool {
    let mut line = format!("{} {text}", Clock::wall().rfc3339());
    line.truncate(line.floor_char_boundary(LINE_BYTES_MAX - 1));
    line.push('\n');
    let mut polled = [PollFd::new(&out, PollFlags::OUT)];
    let room = poll(&mut polled, Some(&Timespec::default()));
    let [polled] = polled;
    if room.is_err() || !polled.revents().intersects(PollFlags::OUT | PollFlags::ERR) {
        return false;
    }
    // A failed write is ignored: the operator has closed standard error.
    let _ = write(&out, line.as_bytes());
    true
}

/// Bytes a pipe takes at once if it is ready for any: POSIX calls it `PIPE_BUF`.
const LINE_BYTES_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn log_drops_lines_of_unread_pipe() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let outlet = Outlet { lost: Mutex::new(0) };
        let mut written = 0;
        while *outlet.lost.lock().unwrap() == 0 {
            outlet.line(&writer, format_args!("{}", "x".repeat(2 * LINE_BYTES_MAX)));
            written += 1;
        }
        outlet.line(&writer, format_args!("lost"));
        let mut read = vec![0; (written - 1) * LINE_BYTES_MAX];
        reader.read_exact(&mut read).unwrap();
        assert!(read.ends_with(b"x\n"));

        outlet.line(&writer, format_args!("there again"));
        drop(writer);
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        let lines: Vec<_> = rest.lines().map(|line| line.split_once(' ').unwrap().1).collect();
        assert_eq!(lines, ["2 lines of this log were not read in time", "there again"]);
    }

    #[test]
    fn log_without_reader_loses_no_lines() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let outlet = Outlet { lost: Mutex::new(0) };
        outlet.line(&writer, format_args!("into the void"));
        assert_eq!(*outlet.lost.lock().unwrap(), 0);
    }
}
