//! Options of a run, and its server.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::error::BenchError;
use crate::rounds::within;

/// Options of [`super::run`]. [`Options::new`] has the defaults; the fields are free to change.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server.
    pub target: Target,
    /// How many jobs to put. Default 100,000.
    pub jobs: u64,
    /// How many connections share the work. Default 100.
    pub clients: usize,
    /// The length of each body in bytes. Default 100.
    pub body_bytes: usize,
    /// How many commands each connection may have unanswered. Default 1.
    pub pipeline: usize,
    /// The commands for the jobs. Default [`Mode::PutDelete`].
    pub mode: Mode,
    /// After how many releases [`Mode::Release`] stops. Default, with `None`: twice the jobs.
    pub releases: Option<u64>,
    /// The tube to use, which must hold no job. Default, with `None`: one of its own for the run.
    pub tube: Option<String>,
    /// The server's process on this machine, to read its CPU time and memory. Default, with
    /// `None`: the one that a server on a loopback address gives in its `stats`.
    pub server_pid: Option<u32>,
    /// How long no reply may come before the run is given up. Default 120 s: a beanstalkd with
    /// 100,000 expired leases was seen to answer no client for 66 s.
    pub reply_timeout: Duration,
}

impl Options {
    /// The defaults against a server.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self {
            target,
            jobs: 100_000,
            clients: 100,
            body_bytes: 100,
            pipeline: 1,
            mode: Mode::PutDelete,
            releases: None,
            tube: None,
            server_pid: None,
            reply_timeout: Duration::from_secs(120),
        }
    }

    /// How many commands may be unanswered over all connections.
    pub(crate) fn outstanding_max(&self) -> u64 {
        self.clients as u64 * self.pipeline as u64
    }

    pub(crate) fn check(&self) -> Result<(), BenchError> {
        within("clients", self.clients as u64, 1, CLIENTS_MAX)?;
        within("pipeline", self.pipeline as u64, 1, PIPELINE_MAX)?;
        within("jobs", self.jobs, 1, JOBS_MAX)?;
        within("body", self.body_bytes as u64, 0, BODY_BYTES_MAX)?;
        if let Some(tube) = &self.tube {
            check_tube(tube)?;
        }
        let releases = matches!(self.mode, Mode::Release | Mode::All);
        if releases && self.jobs < self.outstanding_max() {
            // Each unanswered command may hold a job; with fewer jobs a worker finds none and
            // that would look like a fault of the server.
            return Err(BenchError::Options(format!(
                "mode {} needs at least clients x pipeline = {} jobs",
                self.mode,
                self.outstanding_max()
            )));
        }
        Ok(())
    }
}

/// The commands for the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Put them and leave them there.
    Put,
    /// Put them all, then reserve and delete each.
    PutDelete,
    /// Put them all, then reserve and release them with the same priority over and over; at the
    /// end reserve and delete each.
    Release,
    /// The three, one after another; the jobs of the first are deleted too.
    All,
}

impl Mode {
    /// Every mode, in the order of the help text.
    pub const EVERY: [Mode; 4] = [Mode::Put, Mode::PutDelete, Mode::Release, Mode::All];

    /// Its word on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Put => "put",
            Mode::PutDelete => "put-delete",
            Mode::Release => "release",
            Mode::All => "all",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = BenchError;

    fn from_str(text: &str) -> Result<Self, BenchError> {
        let mode = Self::EVERY.into_iter().find(|mode| mode.as_str() == text);
        mode.ok_or_else(|| {
            BenchError::Options(format!("no mode {text}: use put, put-delete, release or all"))
        })
    }
}

/// A server: `beanstalkd://HOST[:PORT]`, an IPv6 address in brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    host: String,
    port: u16,
}

impl Target {
    /// A server at an address that is known already.
    #[must_use]
    pub fn beanstalkd(address: std::net::SocketAddr) -> Self {
        Self { host: address.ip().to_string(), port: address.port() }
    }

    /// As the operating system resolves it.
    pub(crate) fn host_and_port(&self) -> (&str, u16) {
        (&self.host, self.port)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            return write!(f, "beanstalkd://[{}]:{}", self.host, self.port);
        }
        write!(f, "beanstalkd://{}:{}", self.host, self.port)
    }
}

impl FromStr for Target {
    type Err = BenchError;

    fn from_str(text: &str) -> Result<Self, BenchError> {
        parse_target(text).ok_or_else(|| {
            BenchError::Options(format!("{text} is no target: use beanstalkd://HOST[:PORT]"))
        })
    }
}

fn parse_target(text: &str) -> Option<Target> {
    let address = text.strip_prefix("beanstalkd://")?;
    let address = address.strip_suffix('/').unwrap_or(address);
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => address.split_at(address.find(':').unwrap_or(address.len())),
    };
    let port = match port.strip_prefix(':') {
        Some(port) => port.parse().ok()?,
        None if port.is_empty() => STANDARD_PORT,
        None => return None,
    };
    (!host.is_empty()).then(|| Target { host: host.to_owned(), port })
}

fn check_tube(tube: &str) -> Result<(), BenchError> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-+/;.$_()".contains(&byte);
    let good = (1..=200).contains(&tube.len()) && !tube.starts_with('-') && tube.bytes().all(legal);
    good.then_some(()).ok_or_else(|| BenchError::Options(format!("{tube:?} is no tube name")))
}

const STANDARD_PORT: u16 = 11300;
const CLIENTS_MAX: u64 = 20_000;
const PIPELINE_MAX: u64 = 10_000;
const JOBS_MAX: u64 = 10_000_000_000;
/// 64 MiB: a thousand times the default limit of a beanstalkd, and the read buffer holds one.
const BODY_BYTES_MAX: u64 = 1 << 26;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_read_as_written() {
        for (text, shown) in [
            ("beanstalkd://127.0.0.1:11301", "beanstalkd://127.0.0.1:11301"),
            ("beanstalkd://queue.example", "beanstalkd://queue.example:11300"),
            ("beanstalkd://[::1]:9/", "beanstalkd://[::1]:9"),
            ("beanstalkd://[::1]", "beanstalkd://[::1]:11300"),
        ] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), shown);
        }
        let bad = ["", "127.0.0.1:1", "beanstalkd://", "beanstalkd://a:x", "beanstalkd://[::1]x"];
        for text in bad.into_iter().chain(["redis://a:1", "beanstalkd://a:70000"]) {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }

    #[test]
    fn modes_read_as_written() {
        for mode in Mode::EVERY {
            assert_eq!(mode.to_string().parse::<Mode>().unwrap(), mode);
        }
        let error = "putt".parse::<Mode>().unwrap_err().to_string();
        assert!(error.contains("put-delete"), "{error}");
    }

    #[test]
    fn senseless_options_are_refused() {
        let options = Options::new("beanstalkd://127.0.0.1".parse().unwrap());
        options.check().unwrap();
        let refused = |change: fn(&mut Options)| {
            let mut options = options.clone();
            change(&mut options);
            options.check().unwrap_err().to_string()
        };
        assert_eq!(refused(|o| o.clients = 0), "clients must be from 1 to 20000, not 0");
        assert_eq!(refused(|o| o.tube = Some("-a".into())), "\"-a\" is no tube name");
        assert!(refused(|o| (o.mode, o.jobs) = (Mode::Release, 99)).contains("pipeline = 100"));
        for change in [
            (|o| o.jobs = 0) as fn(&mut Options),
            |o| o.pipeline = 0,
            |o| o.body_bytes = usize::MAX,
            |o| o.tube = Some(String::new()),
        ] {
            refused(change);
        }
    }
}
