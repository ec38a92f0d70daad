//! The figures of a run, as values, as a table and as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::options::Mode;
use super::process::{ServerProcess, ServerUsage};
use crate::closing::Closing;
use crate::error::BenchError;
use crate::table::grouped;

/// The figures of one run.
///
/// They are worth nothing if [`Report::verdict`] is an error.
#[derive(Clone, Debug)]
pub struct Report {
    /// The server, as it was given.
    pub target: String,
    /// The version that the server states.
    pub version: String,
    /// The server's process, if it is on this machine and known.
    pub process: Option<ServerProcess>,
    /// The mode that was run.
    pub mode: Mode,
    /// The tube that was used.
    pub tube: String,
    /// How many jobs were to be put, by every mode.
    pub jobs: u64,
    /// How many connections shared the work.
    pub clients: usize,
    /// The length of each body in bytes.
    pub body_bytes: usize,
    /// How many commands each connection could have unanswered.
    pub pipeline: usize,
    /// One after another, in the order of time.
    pub phases: Vec<Phase>,
    /// How many jobs the run left in the tube, as the server counts; `None` if the run was called
    /// off while the server did not answer.
    pub jobs_left: Option<u64>,
    /// The cost of durability, if that was measured beside it.
    pub closing: Option<Closing>,
    /// True if the run was called off; the last phase is then a part.
    pub cancelled: bool,
    /// Faults and refusals of the server, a sentence each.
    pub problems: Vec<String>,
}

/// The figures of one phase.
#[derive(Clone, Debug)]
pub struct Phase {
    /// The mode to which it belongs; of interest with [`Mode::All`].
    pub mode: Mode,
    /// `put`, `reserve+delete`, `reserve+release`, or `clear` for the deletes at the end.
    pub name: &'static str,
    /// Jobs that went through all commands of the phase.
    pub jobs: u64,
    /// Wall time.
    pub elapsed: Duration,
    /// From sending a command to reading its reply, by command.
    pub latencies: Vec<Latency>,
    /// Refusals by the server's word.
    pub errors: BTreeMap<&'static str, u64>,
    /// Jobs a second in each tenth of the phase.
    pub rates: Vec<f64>,
    /// How many different jobs a release phase met.
    pub visited: Option<u64>,
    /// CPU time of the driver.
    pub client_cpu: Duration,
    /// Resources that the server used, if its process is known.
    pub server: Option<ServerUsage>,
}

/// How long the replies to one command took.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    /// The command.
    pub command: &'static str,
    /// How many were answered as they should be.
    pub count: u64,
    /// The median.
    pub p50: Duration,
    /// 99 of 100 were faster.
    pub p99: Duration,
    /// 999 of 1000 were faster.
    pub p999: Duration,
    /// The slowest.
    pub max: Duration,
}

impl Report {
    /// Checks that the figures can be trusted: the server did all that was asked, and did it right.
    ///
    /// # Errors
    /// [`BenchError::Wrong`] with everything that was not as it should be, and
    /// [`BenchError::Cancelled`] if only the end is missing.
    pub fn verdict(&self) -> Result<(), BenchError> {
        if !self.problems.is_empty() {
            return Err(BenchError::Wrong(self.problems.clone()));
        }
        if self.cancelled { Err(BenchError::Cancelled) } else { Ok(()) }
    }

    /// The whole report as one JSON object; times in seconds or, where named so, microseconds.
    #[must_use]
    pub fn to_json(&self) -> String {
        let process = self.process.as_ref();
        let report = json!({
            "target": self.target,
            "version": self.version,
            "server_pid": process.map(|process| process.pid),
            "server_name": process.map(|process| process.name.as_str()),
            "mode": self.mode.as_str(),
            "tube": self.tube,
            "jobs": self.jobs,
            "clients": self.clients,
            "body_bytes": self.body_bytes,
            "pipeline": self.pipeline,
            "phases": self.phases.iter().map(Phase::to_value).collect::<Vec<_>>(),
            "jobs_left": self.jobs_left,
            "closing": self.closing.as_ref().map(Closing::to_value),
            "cancelled": self.cancelled,
            "problems": self.problems,
            "ok": self.verdict().is_ok(),
        });
        format!("{report:#}")
    }
}

impl Phase {
    /// Finished jobs by wall time.
    #[must_use]
    pub fn jobs_per_second(&self) -> f64 {
        if self.jobs == 0 { 0.0 } else { self.jobs as f64 / self.elapsed.as_secs_f64() }
    }

    fn to_value(&self) -> Value {
        json!({
            "mode": self.mode.as_str(),
            "name": self.name,
            "jobs": self.jobs,
            "seconds": self.elapsed.as_secs_f64(),
            "jobs_per_second": self.jobs_per_second(),
            "latencies": self.latencies.iter().copied().map(Latency::to_value).collect::<Vec<_>>(),
            "errors": self.errors,
            "jobs_per_second_by_tenth": self.rates,
            "jobs_visited": self.visited,
            "client_cpu_seconds": self.client_cpu.as_secs_f64(),
            "server_cpu_seconds": self.server.map(|server| server.cpu.as_secs_f64()),
            "server_resident_bytes": self.server.map(|server| server.resident_bytes),
        })
    }
}

impl Latency {
    /// From nanoseconds.
    pub(crate) fn of(command: &'static str, histogram: &Histogram<u64>) -> Self {
        let at = |quantile| Duration::from_nanos(histogram.value_at_quantile(quantile));
        Self {
            command,
            count: histogram.len(),
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: Duration::from_nanos(histogram.max()),
        }
    }

    fn to_value(self) -> Value {
        let us = |time: Duration| time.as_nanos() as f64 / 1e3;
        json!({
            "command": self.command,
            "count": self.count,
            "p50_us": us(self.p50),
            "p99_us": us(self.p99),
            "p999_us": us(self.p999),
            "max_us": us(self.max),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_head(f)?;
        self.write_latencies(f)?;
        self.write_usage(f)?;
        self.write_visits(f)?;
        if let Some(closing) = &self.closing {
            writeln!(f, "{closing}")?;
        }
        self.write_result(f)
    }
}

impl Report {
    fn write_head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} version {}", self.target, self.version)?;
        if let Some(process) = &self.process {
            write!(f, ", process {} ({})", process.pid, process.name)?;
        }
        let (jobs, clients) = (grouped(self.jobs), grouped(self.clients as u64));
        let (bytes, pipeline) = (grouped(self.body_bytes as u64), self.pipeline);
        writeln!(f)?;
        writeln!(
            f,
            "{}: {jobs} jobs of {bytes} bytes, {clients} clients, {pipeline} outstanding each",
            self.mode
        )
    }

    fn write_latencies(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{:<16} {:>12} {:>9} {:>10}  {:<8} {:>9} {:>9} {:>9} {:>9}",
            "phase",
            "jobs",
            "seconds",
            "jobs/s",
            "reply to",
            "p50 us",
            "p99 us",
            "p99.9 us",
            "max us"
        )?;
        for phase in &self.phases {
            let (jobs, rate) = (grouped(phase.jobs), grouped(phase.jobs_per_second() as u64));
            let seconds = phase.elapsed.as_secs_f64();
            write!(f, "{:<16} {jobs:>12} {seconds:>9.3} {rate:>10}", phase.name)?;
            for (row, latency) in phase.latencies.iter().enumerate() {
                let indent = if row == 0 { 0 } else { LATENCY_COLUMN };
                writeln!(f, "{:indent$}  {latency}", "")?;
            }
            if phase.latencies.is_empty() {
                writeln!(f)?;
            }
        }
        Ok(())
    }

    fn write_usage(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{:<16} {:>12} {:>12} {:>10}  jobs/s by tenth",
            "phase", "client cpu s", "server cpu s", "server MiB"
        )?;
        for phase in &self.phases {
            let client = phase.client_cpu.as_secs_f64();
            let known = |show: fn(ServerUsage) -> String| phase.server.map_or("-".to_owned(), show);
            let cpu = known(|server| format!("{:.2}", server.cpu.as_secs_f64()));
            let memory = known(|server| format!("{:.1}", server.resident_bytes as f64 / MIB));
            write!(f, "{:<16} {client:>12.2} {cpu:>12} {memory:>10} ", phase.name)?;
            for rate in &phase.rates {
                write!(f, " {}", thousands(*rate))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }

    fn write_visits(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f)?;
        for phase in &self.phases {
            if let Some(visited) = phase.visited {
                let (releases, visited) = (grouped(phase.jobs), grouped(visited));
                writeln!(
                    f,
                    "{releases} releases met {visited} different jobs of {}",
                    grouped(self.jobs)
                )?;
            }
        }
        if let Some(left) = self.jobs_left.filter(|left| *left > 0) {
            writeln!(f, "{} jobs left in tube {}", grouped(left), self.tube)?;
        }
        Ok(())
    }

    fn write_result(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(f, "WRONG  {problem}")?;
        }
        match (self.problems.is_empty(), self.cancelled) {
            (true, false) => write!(f, "ok: no errors, every confirmed job was where it should be"),
            (true, true) => {
                write!(f, "cancelled: the last phase is a part, nothing was wrong so far")
            }
            (false, false) => write!(f, "not ok: do not trust these figures"),
            (false, true) => write!(f, "not ok, and cancelled: do not trust these figures"),
        }
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<8}", self.command)?;
        for time in [self.p50, self.p99, self.p999, self.max] {
            let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
            write!(f, " {:>9}", grouped(us))?;
        }
        Ok(())
    }
}

/// A rate in three or more digits: `61.2k`, `940`.
fn thousands(rate: f64) -> String {
    if rate < 1000.0 { format!("{rate:.0}") } else { format!("{:.1}k", rate / 1000.0) }
}

/// The column of the second command of a phase: under the first.
const LATENCY_COLUMN: usize = 16 + 13 + 10 + 11;
const MIB: f64 = 1024.0 * 1024.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::closing::Rate;

    fn report() -> Report {
        let time = Duration::from_micros;
        let latency = |command| Latency {
            command,
            count: 1_000_000,
            p50: time(812),
            p99: time(1_203),
            p999: time(2_000),
            max: time(1_066_000),
        };
        Report {
            target: "beanstalkd://127.0.0.1:11300".to_owned(),
            version: "1.12".to_owned(),
            process: Some(ServerProcess { pid: 42, name: "beanstalkd".to_owned() }),
            mode: Mode::Release,
            tube: "t".to_owned(),
            jobs: 1_000_000,
            clients: 100,
            body_bytes: 100,
            pipeline: 1,
            phases: vec![Phase {
                mode: Mode::Release,
                name: "reserve+release",
                jobs: 2_000_000,
                elapsed: Duration::from_secs(4),
                latencies: vec![latency("reserve"), latency("release")],
                errors: BTreeMap::from([("NOT_FOUND", 3)]),
                rates: vec![500_000.0, 940.0],
                visited: Some(1_234),
                client_cpu: Duration::from_millis(1_500),
                server: Some(ServerUsage { cpu: Duration::from_secs(2), resident_bytes: 3 << 20 }),
            }],
            jobs_left: Some(7),
            closing: None,
            cancelled: false,
            problems: vec!["release: refused with NOT_FOUND: 3".to_owned()],
        }
    }

    #[test]
    fn table_reads_well() {
        let shown = "\
beanstalkd://127.0.0.1:11300 version 1.12, process 42 (beanstalkd)
release: 1,000,000 jobs of 100 bytes, 100 clients, 1 outstanding each

phase                    jobs   seconds     jobs/s  reply to    p50 us    p99 us  p99.9 us    max us
reserve+release     2,000,000     4.000    500,000  reserve        812     1,203     2,000 1,066,000
                                                    release        812     1,203     2,000 1,066,000

phase            client cpu s server cpu s server MiB  jobs/s by tenth
reserve+release          1.50         2.00        3.0  500.0k 940

2,000,000 releases met 1,234 different jobs of 1,000,000
7 jobs left in tube t
WRONG  release: refused with NOT_FOUND: 3
not ok: do not trust these figures";
        assert_eq!(report().to_string(), shown);
    }

    #[test]
    fn report_shows_durability_cost_before_result() {
        let rate = |messages| Rate { messages, elapsed: Duration::from_secs(1) };
        let closing = Some(Closing::default().of("puts", rate(10), rate(20), None));
        let report = Report { closing, ..report() };
        let shown = report.to_string();
        let cost = "10 messages/s persistent, 20 not: it cost a factor of 2.00 (puts)";
        assert!(shown.find(cost).unwrap() < shown.find("WRONG").unwrap(), "{shown}");
        let value: Value = serde_json::from_str(&report.to_json()).unwrap();
        assert_eq!(value["closing"]["durability_cost"], 2.0);
    }

    #[test]
    fn json_says_the_same() {
        let value: Value = serde_json::from_str(&report().to_json()).unwrap();
        assert_eq!(value["ok"], false);
        assert_eq!(value["server_pid"], 42);
        let phase = &value["phases"][0];
        assert_eq!(phase["jobs_per_second"], 500_000.0);
        assert_eq!(phase["latencies"][1]["p99_us"], 1_203.0);
        assert_eq!(phase["errors"]["NOT_FOUND"], 3);
        assert_eq!(phase["jobs_visited"], 1_234);
        assert_eq!(phase["server_resident_bytes"], 3 << 20);
    }

    #[test]
    fn verdict_puts_wrong_before_cancelled() {
        let mut report = report();
        report.cancelled = true;
        assert!(matches!(report.verdict(), Err(BenchError::Wrong(_))));
        report.problems.clear();
        assert!(matches!(report.verdict(), Err(BenchError::Cancelled)));
        report.cancelled = false;
        report.verdict().unwrap();
    }
}
