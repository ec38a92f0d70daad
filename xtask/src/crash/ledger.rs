//! The knowledge of the clients of a crash run: jobs that the server confirmed, and jobs that it
//! may have.
//!
//! A job is known by its body, which names it (`job <number> ...`). So a job without an `INSERTED`
//! is recognised all the same when it turns up. Three rules are checked:
//!
//! 1. A confirmed job is there, once, with its exact body. A delivery confirms too: no client may
//!    have seen a job that a crash undoes.
//! 2. A job with a confirmed deletion never comes back; nor does a job that a check found to be
//!    gone.
//! 3. A confirmed state (buried, delayed, ready) and priority are those found after the crash.

use std::collections::BTreeMap;

/// A state that a command confirmed, and its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The word of `stats-job` for it.
    pub(crate) state: &'static str,
    /// Smaller is more urgent; unknown where the command left it as it was.
    pub(crate) priority: Option<u32>,
}

/// A job as the clients know it.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// Known once a reply has named it.
    pub(crate) id: Option<u64>,
    body: Vec<u8>,
    presence: Presence,
    place: Option<Place>,
    moves: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// Put, not yet answered: there or not.
    PutUnanswered,
    /// Confirmed: has to be there.
    There,
    /// A delete is on its way: there or not.
    DeleteUnanswered,
    /// Confirmed, or found to be gone: must not be there.
    Gone,
}

impl Job {
    fn put_unanswered(body: Vec<u8>) -> Job {
        Job { id: None, body, presence: Presence::PutUnanswered, place: None, moves: 0 }
    }
}

/// All jobs of a run by number.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    jobs: BTreeMap<u64, Job>,
    by_id: BTreeMap<u64, u64>,
    next: u64,
    /// Broken rules, one sentence each.
    pub(crate) violations: Vec<String>,
}

impl Ledger {
    /// A new job's number and body, about to be put. `filler` makes the body as long as wanted.
    pub(crate) fn intend_put(&mut self, filler: &[u8]) -> (u64, Vec<u8>) {
        let number = self.next;
        self.next += 1;
        let mut body = format!("job {number} ").into_bytes();
        body.extend_from_slice(filler);
        self.jobs.insert(number, Job::put_unanswered(body.clone()));
        (number, body)
    }

    /// The server answered `INSERTED id`. `place` is where the put said it should go.
    pub(crate) fn inserted(&mut self, number: u64, id: u64, place: Place) {
        self.name(number, id);
        if let Some(job) = self.jobs.get_mut(&number)
            && job.presence == Presence::PutUnanswered
        {
            // A job delivered already is in its consumer's hands, and so is its state.
            job.presence = Presence::There;
            job.place = Some(place);
        }
    }

    /// A put was refused: the job must never be seen.
    pub(crate) fn refused(&mut self, number: u64) {
        self.set(number, Presence::Gone);
    }

    /// The server delivered a job. Gives its number, unless the delivery itself breaks a rule.
    pub(crate) fn delivered(&mut self, id: u64, body: &[u8]) -> Option<u64> {
        let number = self.recognise(id, body)?;
        self.set(number, Presence::There);
        self.unplace(number);
        Some(number)
    }

    /// A delete is about to be sent.
    pub(crate) fn intend_delete(&mut self, number: u64) {
        self.set(number, Presence::DeleteUnanswered);
    }

    /// The server answered `DELETED`.
    pub(crate) fn deleted(&mut self, number: u64) {
        self.set(number, Presence::Gone);
    }

    /// A command that moves the job is about to be sent: its state is open until it is answered.
    /// Gives the number of this move.
    pub(crate) fn unplace(&mut self, number: u64) -> u64 {
        let Some(job) = self.jobs.get_mut(&number) else { return 0 };
        job.place = None;
        job.moves += 1;
        job.moves
    }

    /// The server confirmed move `moves`, which counts unless another client has moved the job on.
    pub(crate) fn placed(&mut self, number: u64, moves: u64, place: Place) {
        if let Some(job) = self.jobs.get_mut(&number)
            && job.moves == moves
        {
            job.place = Some(place);
        }
    }

    /// The largest id that a reply has named.
    pub(crate) fn last_id(&self) -> u64 {
        self.by_id.keys().next_back().copied().unwrap_or(0)
    }

    /// The ids of the jobs that are or may be there.
    pub(crate) fn open_ids(&self) -> Vec<u64> {
        let open = self.jobs.values().filter(|job| job.presence != Presence::Gone);
        open.filter_map(|job| job.id).collect()
    }

    /// The ids of the jobs that must not be there.
    pub(crate) fn gone_ids(&self) -> Vec<u64> {
        let gone = self.jobs.values().filter(|job| job.presence == Presence::Gone);
        gone.filter_map(|job| job.id).collect()
    }

    /// How many jobs were ever put.
    pub(crate) fn count_put(&self) -> u64 {
        self.next
    }

    /// How many jobs have to be there.
    pub(crate) fn count_there(&self) -> usize {
        self.jobs.values().filter(|job| job.presence == Presence::There).count()
    }

    /// The jobs with a confirmed state: number, id and place.
    pub(crate) fn places(&self) -> Vec<(u64, u64, Place)> {
        let there = self.jobs.iter().filter(|(_, job)| job.presence == Presence::There);
        there.filter_map(|(&number, job)| Some((number, job.id?, job.place?))).collect()
    }

    /// Settles the open jobs by the result of a check: every job that is there, by id.
    ///
    /// Afterwards a job is there or gone, and nothing is in between.
    pub(crate) fn settle(&mut self, found: &BTreeMap<u64, Vec<u8>>) {
        let mut present = BTreeMap::new();
        for (&id, body) in found {
            let Some(number) = self.recognise(id, body) else { continue };
            if let Some(other) = present.insert(number, id) {
                self.violate(format!("job {number} is there twice, as {other} and {id}"));
            }
        }
        for (number, job) in &mut self.jobs {
            let is_there = present.contains_key(number);
            if job.presence == Presence::There && !is_there {
                self.violations.push(format!("job {number} (id {:?}) is lost", job.id));
            }
            job.presence = if is_there { Presence::There } else { Presence::Gone };
            if !is_there {
                job.body = Vec::new();
            }
        }
    }

    /// Notes a broken rule.
    pub(crate) fn violate(&mut self, what: String) {
        self.violations.push(what);
    }

    /// The number of the job that `body` names, if the body is exact and the job may be there.
    fn recognise(&mut self, id: u64, body: &[u8]) -> Option<u64> {
        let Some(number) = number_of(body) else {
            self.violate(format!("id {id} has a body that nobody sent"));
            return None;
        };
        let Some(job) = self.jobs.get(&number) else {
            self.violate(format!("job {number} (id {id}) was never put"));
            return None;
        };
        if job.presence == Presence::Gone {
            self.violate(format!("job {number} (id {id}) came back after it was gone"));
            return None;
        }
        if job.body != body {
            self.violate(format!("job {number} (id {id}) has a changed body"));
            return None;
        }
        self.name(number, id);
        Some(number)
    }

    /// Ties a job to its id, for good.
    fn name(&mut self, number: u64, id: u64) {
        if let Some(other) = self.by_id.insert(id, number)
            && other != number
            && self.jobs.get(&other).is_some_and(|job| job.id == Some(id))
        {
            self.violate(format!("id {id} names job {other} and job {number}"));
        }
        let before = self.jobs.get_mut(&number).and_then(|job| job.id.replace(id));
        if before.is_some_and(|before| before != id) {
            self.violate(format!("job {number} was {before:?} and is now {id}"));
        }
    }

    fn set(&mut self, number: u64, presence: Presence) {
        if let Some(job) = self.jobs.get_mut(&number) {
            job.presence = presence;
        }
    }
}

fn number_of(body: &[u8]) -> Option<u64> {
    let mut words = body.splitn(3, |&byte| byte == b' ');
    if words.next()? != b"job" {
        return None;
    }
    std::str::from_utf8(words.next()?).ok()?.parse().ok()
}

#[cfg(test)]
#[path = "ledger_test.rs"]
mod tests;
