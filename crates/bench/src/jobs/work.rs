//! The common work of the connections of one phase: the next command, the meaning of its reply and
//! whether it is right. It knows bytes and counts, no sockets.

use std::io::Write;
use std::time::Instant;

use super::ledger::{Ledger, Sighting};
use super::reply::Reply;
use super::tally::Tally;

/// A phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Put every job.
    Put,
    /// Reserve and delete every job.
    Take,
    /// Reserve and release over and over.
    Release,
    /// As `Take`, to leave the server as it was.
    Clear,
}

impl Step {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Step::Put => "put",
            Step::Take => "reserve+delete",
            Step::Release => "reserve+release",
            Step::Clear => "clear",
        }
    }
}

/// A command that waits for its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Put,
    Reserve,
    Delete,
    Release,
}

impl Verb {
    pub(crate) const EVERY: [Verb; 4] = [Verb::Put, Verb::Reserve, Verb::Delete, Verb::Release];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Verb::Put => "put",
            Verb::Reserve => "reserve",
            Verb::Delete => "delete",
            Verb::Release => "release",
        }
    }
}

/// The job that is put again and again.
#[derive(Debug)]
pub(crate) struct Job {
    command: Vec<u8>,
    body_start: usize,
}

impl Job {
    pub(crate) fn new(body_bytes: usize) -> Self {
        let mut command = format!("put {PRIORITY} 0 {TTR_SECONDS} {body_bytes}\r\n").into_bytes();
        let body_start = command.len();
        command.extend((b'a'..=b'z').cycle().take(body_bytes));
        command.extend(b"\r\n");
        Self { command, body_start }
    }

    fn body(&self) -> &[u8] {
        self.command.get(self.body_start..self.command.len() - 2).unwrap_or_default()
    }
}

/// One phase under way, shared by all connections: each takes its next job from the common rest,
/// so that none is idle while another has a backlog.
#[derive(Debug)]
pub(crate) struct Work<'a> {
    step: Step,
    job: &'a Job,
    ledger: &'a mut Ledger,
    to_start: u64,
    unanswered: u64,
    tally: Tally,
}

/// A reply that does not belong to the command.
#[derive(Debug)]
pub(crate) struct Misfit;

impl<'a> Work<'a> {
    pub(crate) fn new(step: Step, total: u64, job: &'a Job, ledger: &'a mut Ledger) -> Self {
        Self { step, job, ledger, to_start: total, unanswered: 0, tally: Tally::new(total) }
    }

    /// Appends the first command of the next job to `out`; `None` when all are under way.
    pub(crate) fn start(&mut self, out: &mut Vec<u8>) -> Option<Verb> {
        self.to_start = self.to_start.checked_sub(1)?;
        self.unanswered += 1;
        if self.step == Step::Put {
            out.extend_from_slice(&self.job.command);
            return Some(Verb::Put);
        }
        out.extend_from_slice(b"reserve-with-timeout 0\r\n");
        Some(Verb::Reserve)
    }

    /// Takes the reply to a command, with the times of both, and appends to `out` the command that
    /// follows from it, if any.
    pub(crate) fn answer(
        &mut self,
        verb: Verb,
        reply: Reply<'_>,
        (sent, now): (Instant, Instant),
        out: &mut Vec<u8>,
    ) -> Result<Option<Verb>, Misfit> {
        let latency = now.saturating_duration_since(sent);
        self.unanswered -= 1;
        match (verb, reply) {
            (Verb::Put, Reply::Inserted(id)) => self.inserted(id),
            (Verb::Reserve, Reply::Reserved(id, body)) => {
                self.reserved(id, body);
                self.tally.answered(verb, latency);
                return Ok(Some(self.follow(id, out)));
            }
            (Verb::Delete, Reply::Deleted) | (Verb::Release, Reply::Released) => {}
            (_, Reply::Refused(word)) => {
                self.tally.refused(word);
                return Ok(None);
            }
            _ => return Err(Misfit),
        }
        self.tally.answered(verb, latency);
        self.tally.job_done(now);
        Ok(None)
    }

    /// True if every job was started and every command answered.
    pub(crate) fn is_finished(&self) -> bool {
        self.to_start == 0 && self.unanswered == 0
    }

    pub(crate) fn step(&self) -> Step {
        self.step
    }

    /// The longest body that may come back; a longer one is no reply to this work.
    pub(crate) fn body_bytes_max(&self) -> usize {
        self.job.body().len()
    }

    /// The figures so far.
    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The figures of the phase.
    pub(crate) fn into_tally(self) -> Tally {
        self.tally
    }

    fn inserted(&mut self, id: u64) {
        if !self.ledger.put(id) {
            self.tally.wrong.same_id += 1;
        }
    }

    fn reserved(&mut self, id: u64, body: &[u8]) {
        match self.ledger.see(id) {
            Sighting::First => {}
            // Workers that release meet the same jobs again, as that mode intends.
            Sighting::Again => self.tally.wrong.again += u64::from(self.step != Step::Release),
            Sighting::Unknown => self.tally.wrong.unknown += 1,
        }
        if body != self.job.body() {
            self.tally.wrong.body += 1;
        }
    }

    fn follow(&mut self, id: u64, out: &mut Vec<u8>) -> Verb {
        self.unanswered += 1;
        let (verb, written) = match self.step {
            Step::Release => (Verb::Release, write!(out, "release {id} {PRIORITY} 0\r\n")),
            _ => (Verb::Delete, write!(out, "delete {id}\r\n")),
        };
        written.expect("invariant: memory takes every write");
        verb
    }
}

/// Of every job, when put and when released: not urgent, and always the same.
const PRIORITY: u32 = 1024;
/// Longer than any run, so that no lease ends in one.
const TTR_SECONDS: u32 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> (Instant, Instant) {
        (Instant::now(), Instant::now())
    }

    fn reserve(work: &mut Work<'_>, id: u64, body: &[u8]) {
        let out = &mut Vec::new();
        work.start(out).unwrap();
        let reply = Reply::Reserved(id, body);
        let next = work.answer(Verb::Reserve, reply, at(), out).unwrap().unwrap();
        let reply = if next == Verb::Delete { Reply::Deleted } else { Reply::Released };
        assert_eq!(work.answer(next, reply, at(), out).unwrap(), None);
    }

    #[test]
    fn job_goes_from_put_to_delete() {
        let job = Job::new(3);
        let mut ledger = Ledger::default();
        let mut out = Vec::new();
        let mut work = Work::new(Step::Put, 1, &job, &mut ledger);
        assert_eq!(work.start(&mut out), Some(Verb::Put));
        assert_eq!(work.start(&mut out), None);
        assert!(!work.is_finished());
        work.answer(Verb::Put, Reply::Inserted(9), at(), &mut out).unwrap();
        assert!(work.is_finished());

        let mut work = Work::new(Step::Take, 1, &job, &mut ledger);
        work.start(&mut out).unwrap();
        let reply = Reply::Reserved(9, b"abc");
        let next = work.answer(Verb::Reserve, reply, at(), &mut out).unwrap();
        assert_eq!(next, Some(Verb::Delete));
        assert!(!work.is_finished());
        work.answer(Verb::Delete, Reply::Deleted, at(), &mut out).unwrap();
        assert!(work.is_finished());
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "put 1024 0 86400 3\r\nabc\r\nreserve-with-timeout 0\r\ndelete 9\r\n"
        );
        assert!(work.tally().problems("take").is_empty());
    }

    #[test]
    fn wrong_jobs_are_noticed() {
        let job = Job::new(3);
        let mut ledger = Ledger::default();
        ledger.put(1);
        let mut work = Work::new(Step::Take, 4, &job, &mut ledger);
        for (id, body) in [(1, b"abc"), (1, b"abc"), (2, b"abc"), (1, b"xyz")] {
            reserve(&mut work, id, body);
        }
        assert_eq!(
            work.tally().problems("take"),
            [
                "take: jobs handed out again: 2",
                "take: jobs handed out that nobody put: 1",
                "take: bodies that came back changed: 1",
            ]
        );
    }

    #[test]
    fn released_jobs_may_come_again() {
        let job = Job::new(0);
        let mut ledger = Ledger::default();
        ledger.put(1);
        let mut work = Work::new(Step::Release, 2, &job, &mut ledger);
        reserve(&mut work, 1, b"");
        reserve(&mut work, 1, b"");
        assert!(work.tally().problems("release").is_empty());
        assert_eq!(ledger.seen_count(), 1);
    }

    #[test]
    fn refusal_ends_job_misfit_ends_run() {
        let job = Job::new(0);
        let mut ledger = Ledger::default();
        let mut work = Work::new(Step::Put, 2, &job, &mut ledger);
        let out = &mut Vec::new();
        work.start(out).unwrap();
        work.start(out).unwrap();
        let refused = Reply::Refused("DRAINING");
        assert_eq!(work.answer(Verb::Put, refused, at(), out).unwrap(), None);
        assert!(work.answer(Verb::Put, Reply::Deleted, at(), out).is_err());
        assert_eq!(work.tally().problems("put"), ["put: refused with DRAINING: 1"]);
    }
}
