//! The same commands to the real beanstalkd and to session and engine: the answers must be the
//! same, except for the differences in `docs/reference/protocols/beanstalkd.md`.

use std::time::Instant;

use testkit::foreign_server::{ByteClient, ForeignServer, PATIENCE};

use crate::answers::Answer;
use crate::ours::Ours;
use crate::real;

/// Fields that depend on the clock, the process or the machine; and two counters that beanstalkd
/// also raises for some malformed lines.
const VOLATILE: [&str; 19] = [
    "age",
    "time-left",
    "pause-time-left",
    "pid",
    "version",
    "rusage-utime",
    "rusage-stime",
    "uptime",
    "binlog-oldest-index",
    "binlog-current-index",
    "binlog-max-size",
    "binlog-records-migrated",
    "binlog-records-written",
    "hostname",
    "os",
    "platform",
    "cmd-put",
    "cmd-pause-tube",
    "id",
];

/// Both brokers, each with the same connections.
pub(crate) struct Pair {
    real: ForeignServer,
    ours: Ours,
    peers: Vec<Peer>,
    /// The ids of each job, in the order in which they were put; they differ since beanstalkd
    /// spends one on a job that it then refuses.
    jobs: Vec<Ids>,
    /// The order of lists counts.
    in_order: bool,
    transcript: Vec<String>,
}

/// One job's ids.
struct Ids {
    real: String,
    ours: String,
}

/// The id that one of both brokers gave.
type Side = fn(&Ids) -> &str;

struct Peer {
    real: ByteClient,
    ours: u64,
    open: bool,
}

impl Pair {
    /// `None` if the comparison is not wanted.
    pub(crate) fn start(peers: usize) -> Option<Self> {
        let skip = "DUNLIN_SKIP_BEANSTALKD";
        let real = ForeignServer::unless_skipped(skip, ForeignServer::beanstalkd)?;
        let mut ours = Ours::new();
        // beanstalkd was connected to once to see whether it listens.
        let probe = ours.connect();
        ours.half_close(probe);
        let mut pair = Self {
            real,
            ours,
            peers: Vec::new(),
            jobs: Vec::new(),
            in_order: false,
            transcript: vec![],
        };
        for _ in 0..peers {
            pair.connect();
        }
        Some(pair)
    }

    pub(crate) fn connect(&mut self) -> usize {
        let (real, ours) = (self.real.connect(), self.ours.connect());
        self.peers.push(Peer { real, ours, open: true });
        let peer = self.peers.len() - 1;
        // beanstalkd has accepted it once it answers.
        self.send(peer, "list-tube-used\r\n");
        peer
    }

    pub(crate) fn jobs(&self) -> usize {
        self.jobs.len()
    }

    pub(crate) fn peers(&self) -> usize {
        self.peers.len()
    }

    /// A reserve of this peer is not answered yet.
    pub(crate) fn is_waiting(&self, peer: usize) -> bool {
        self.peers[peer].open && self.ours.is_waiting(self.peers[peer].ours)
    }

    pub(crate) fn is_open(&self, peer: usize) -> bool {
        self.peers[peer].open
    }

    /// Sends commands, in which `{3}` is the id of the fourth job, and compares the answers so far,
    /// to this peer and to others.
    pub(crate) fn send(&mut self, peer: usize, commands: &str) {
        self.transcript.push(format!("{peer} sends {commands:?}"));
        let bytes = self.with_ids(commands, |ids| &ids.real);
        self.peers[peer].real.send(&bytes);
        let bytes = self.with_ids(commands, |ids| &ids.ours);
        let ours = self.peers[peer].ours;
        self.ours.send(ours, &bytes);
        self.compare();
    }

    /// From now on lists must have the same order; peers must not ask for all tubes.
    pub(crate) fn compare_order(&mut self) {
        self.in_order = true;
    }

    /// From now on puts are refused.
    pub(crate) fn drain(&mut self) {
        self.transcript.push("both drain".into());
        real::drain(&self.real);
        self.ours.drain();
    }

    /// Lets time pass until this peer is answered: beanstalkd's by the clock, ours at once.
    pub(crate) fn wait(&mut self, peer: usize) {
        self.nudge_until_answered(peer);
        let before = self.transcript.len();
        while self.transcript.len() == before {
            self.ours.pass_time();
            self.compare();
        }
        let heard = format!("{peer} hears");
        assert!(self.transcript[before].starts_with(&heard), "{}", self.transcript.join("\n"));
    }

    /// beanstalkd sometimes forgets the end of a lease, by its source when the timer fires within
    /// the microsecond of that end, until the connection that holds the lease sends something.
    fn nudge_until_answered(&mut self, peer: usize) {
        let deadline = Instant::now() + PATIENCE;
        while !real::is_answered(&mut self.peers[peer].real) {
            let transcript = || self.transcript.join("\n");
            assert!(Instant::now() < deadline, "{}\nbeanstalkd is silent", transcript());
            let others = (0..self.peers.len()).filter(|other| *other != peer);
            for other in others.filter(|other| self.peers[*other].open).collect::<Vec<_>>() {
                let nudged = &mut self.peers[other].real;
                nudged.send(b"\r\n");
                let said = real::answer(nudged).map(|answer| answer.line);
                assert_eq!(said, Ok("UNKNOWN_COMMAND".into()));
            }
        }
    }

    /// Ends a connection; beanstalkd must have nothing more to say.
    pub(crate) fn half_close(&mut self, peer: usize) {
        self.transcript.push(format!("{peer} sends no more"));
        self.peers[peer].real.half_close();
        let ours = self.peers[peer].ours;
        self.ours.half_close(ours);
        self.compare();
        self.peers[peer].open = false;
        let rest = self.peers[peer].real.rest();
        assert!(rest.is_empty(), "{}\nthen {}", self.transcript.join("\n"), rest.escape_ascii());
    }

    /// Waiting peers go first, and do not get the jobs that others return.
    pub(crate) fn half_close_all(&mut self) {
        let mut open: Vec<usize> =
            (0..self.peers.len()).filter(|peer| self.is_open(*peer)).collect();
        open.sort_by_key(|peer| !self.is_waiting(*peer));
        open.into_iter().for_each(|peer| self.half_close(peer));
    }

    /// Compares every answer that ours gave with the next of beanstalkd.
    fn compare(&mut self) {
        for peer in 0..self.peers.len() {
            while let Some(ours) = self.ours.answer(self.peers[peer].ours) {
                self.transcript.push(format!("{peer} hears {}", shown(&ours)));
                let real = real::answer(&mut self.peers[peer].real)
                    .unwrap_or_else(|error| panic!("{}\nbut {error}", self.transcript.join("\n")));
                self.learn_ids(&real, &ours);
                let real_normal = self.normal(&real, |ids| &ids.real);
                let ours_normal = self.normal(&ours, |ids| &ids.ours);
                assert!(
                    real_normal == ours_normal,
                    "{}\nbut of beanstalkd  {}\n{real_normal:?}\n{ours_normal:?}",
                    self.transcript.join("\n"),
                    shown(&real),
                );
            }
        }
    }

    fn learn_ids(&mut self, real: &Answer, ours: &Answer) {
        let inserted = |answer: &Answer| answer.line.strip_prefix("INSERTED ").map(String::from);
        if let (Some(real), Some(ours)) = (inserted(real), inserted(ours)) {
            self.jobs.push(Ids { real, ours });
        }
    }

    fn with_ids(&self, commands: &str, side: Side) -> Vec<u8> {
        let mut parts = commands.split('{');
        let mut text = String::from(parts.next().unwrap());
        for part in parts {
            let (number, rest) = part.split_once('}').expect("a closing brace");
            text.push_str(side(&self.jobs[number.parse::<usize>().unwrap()]));
            text.push_str(rest);
        }
        text.into_bytes()
    }

    /// The answer without the parts that may differ; ids become the job's number.
    fn normal(&self, answer: &Answer, side: Side) -> Vec<String> {
        let number = |id: &str| self.jobs.iter().position(|ids| side(ids) == id);
        let words: Vec<&str> = answer.line.split(' ').collect();
        match (words[0], &answer.body) {
            ("OK", Some(body)) => {
                let mut lines = document(&String::from_utf8_lossy(body), &number);
                if lines[1].starts_with("- ") && !self.in_order {
                    lines.sort();
                }
                lines
            }
            ("INSERTED", None) => vec![format!("INSERTED {:?}", number(words[1]))],
            (_, Some(body)) => {
                let body = body.escape_ascii().to_string();
                vec![format!("{} {:?} {}", words[0], number(words[1]), words[2]), body]
            }
            _ => vec![answer.line.clone()],
        }
    }
}

/// The lines of a YAML document, unquoted, as 1.12 leaves most.
fn document(text: &str, number: &dyn Fn(&str) -> Option<usize>) -> Vec<String> {
    let of_job = text.contains("\nttr: ");
    let line = |line: &str| match line.split_once(": ") {
        Some(("id", id)) if of_job => format!("id: {:?}", number(id)),
        Some((key, _)) if VOLATILE.contains(&key) => key.into(),
        _ => line.replace('"', ""),
    };
    text.lines().map(line).collect()
}

fn shown(answer: &Answer) -> String {
    let body = answer.body.as_deref().unwrap_or_default().escape_ascii();
    format!("{:?} {body}", answer.line)
}
