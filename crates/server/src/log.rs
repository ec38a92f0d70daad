//! The log: one line an event on standard error, with the time in UTC. Events are starts, ends and
//! troubles, never single messages.
//!
//! Any thread may log, a reactor too, so that nothing here waits: standard error is often a pipe,
//! and whoever should read it may sleep. Lines for which there is no room are counted instead.

use std::fmt;
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::write;

/// Where lines go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Log {
    /// To standard error.
    #[default]
    Stderr,
    /// Nowhere: for servers that live inside another program.
    Quiet,
}

impl Log {
    /// Writes one line, or drops it where that would have to wait.
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
    pub(crate) fn line(&mut self, log: Log, now: Nanos, text: fmt::Arguments<'_>) {
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

/// Where lines leave the process, one writer at a time.
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

/// Writes a line with the time before it; false where that would have to wait.
fn write_now(out: impl AsFd, text: fmt::Arguments<'_>) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let mut line = format!("{} {text}", Timestamp(now));
    line.truncate(line.floor_char_boundary(LINE_BYTES_MAX - 1));
    line.push('\n');
    let mut polled = [PollFd::new(&out, PollFlags::OUT)];
    let room = poll(&mut polled, Some(&Timespec::default()));
    let [polled] = polled;
    if room.is_err() || !polled.revents().intersects(PollFlags::OUT | PollFlags::ERR) {
        return false;
    }
    // Whoever closed standard error does not want to know.
    let _ = write(&out, line.as_bytes());
    true
}

/// What a pipe takes at once when it says that it takes anything: POSIX calls it `PIPE_BUF`.
const LINE_BYTES_MAX: usize = 4096;

/// Time since the Unix epoch, shown as `2026-01-31T23:59:59.999Z`.
pub(crate) struct Timestamp(pub(crate) Duration);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secs = self.0.as_secs();
        let (year, month, day) = civil(secs / 86_400);
        let (hour, minute, second) = (secs / 3600 % 24, secs / 60 % 60, secs % 60);
        let millis = self.0.subsec_millis();
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

/// The date that is so many days after 1970-01-01. Counts from 1 March 0000, so that a leap day is
/// the last of its year; 400 years have 146,097 days.
const fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_pipe_that_nobody_reads_costs_lines_and_no_time() {
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
    fn a_log_that_nobody_can_read_is_not_missed() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let outlet = Outlet { lost: Mutex::new(0) };
        outlet.line(&writer, format_args!("into the void"));
        assert_eq!(*outlet.lost.lock().unwrap(), 0);
    }

    #[test]
    fn timestamps_are_utc_dates() {
        let at = |secs| Timestamp(Duration::from_secs(secs)).to_string();
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59.000Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(1_709_251_200), "2024-03-01T00:00:00.000Z");
        assert_eq!(at(4_102_444_799), "2099-12-31T23:59:59.000Z");
    }
}
