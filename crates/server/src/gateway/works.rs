//! Work of the gateway's tasks: commands one after the other, or a transaction.

use std::collections::{BTreeMap, VecDeque};

use http_api::{Settling, Step, Token, Trouble, Work};
use model::{
    After, Command, Destination, MessageId, NewMessage, Refusal, Reply, Settlement, TransactionId,
};

use crate::gateway::answer::{Answer, Waits};
use crate::gateway::desk::{Desk, Locked};
use crate::gateway::inbox::{WISHES_MAX, WorkReply};

/// What is under way.
#[derive(Debug, Default)]
pub(crate) struct Works {
    /// Cut off where a turn ended.
    begun: Option<Working>,
    /// A commit, or a command of an operator, whose answer comes later. There is one at most:
    /// nothing in such an answer says what it is for.
    late: Option<Working>,
    /// What waits for a place in a queue or for memory, by ticket.
    paced: BTreeMap<u64, Working>,
    /// What waited for one, or for the log, and can go on.
    admitted: VecDeque<Working>,
    /// What adds to the log and goes on once that is not behind.
    postponed: VecDeque<Working>,
    /// What goes on when that is answered: with a commit, or such a command, or behind one.
    parked: VecDeque<Working>,
    transactions: u64,
}

#[derive(Debug)]
struct Working {
    steps: VecDeque<Step>,
    transaction: Option<TransactionId>,
    replies: Vec<Reply>,
    waits: Waits,
    reply: WorkReply,
    /// Its leases have been looked at, and nothing may come between until its commit.
    settles: bool,
    /// It has asked for its commit.
    commits: bool,
    /// A part of it was refused after it had waited.
    refused: Option<Refusal>,
}

impl Working {
    /// Whether this is the first of a transaction's settlements.
    fn is_to_settle(&self, step: &Step) -> bool {
        self.transaction.is_some() && !self.settles && matches!(step, Step::Settle { .. })
    }
}

/// Whether work goes on after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    GoOn,
    /// The step waits for a place in a queue.
    Wait {
        ticket: u64,
    },
    /// The step's answer comes later.
    Late,
}

impl Works {
    pub(crate) fn is_going_on(&self) -> bool {
        self.begun.is_some()
            || !self.admitted.is_empty()
            || (self.late.is_none() && !self.parked.is_empty())
    }

    /// Whether something waits until the log is not behind.
    pub(crate) fn is_postponed(&self) -> bool {
        !self.postponed.is_empty()
    }

    /// The log has gone on.
    pub(crate) fn resume_postponed(&mut self) {
        self.admitted.append(&mut self.postponed);
    }
}

impl Desk {
    pub(crate) fn begin_work(&mut self, locked: &mut Locked<'_>, work: Work, reply: WorkReply) {
        let mut working = Working {
            steps: work.steps.into(),
            transaction: None,
            replies: Vec::new(),
            waits: Waits::default(),
            reply,
            settles: false,
            commits: false,
            refused: None,
        };
        if let Some(over) = self.over(&working.steps) {
            return self.end_work(working, Err(Trouble::LeaseOver(over)));
        }
        if work.atomic {
            self.works.transactions += 1;
            let transaction = TransactionId(self.works.transactions);
            working.transaction = Some(transaction);
            let begun = self.call(locked, Command::Begin { transaction });
            if let Some((_, Reply::Refused(_))) = begun {
                // As many as there may be wait for the commit before them.
                return self.end_work(working, Err(Trouble::Busy));
            }
        }
        self.work_on(locked, working);
    }

    /// Goes on with what was cut off, or waited for another's answer.
    pub(crate) fn go_on_working(&mut self, locked: &mut Locked<'_>) {
        if let Some(working) = self.works.begun.take() {
            return self.work_on(locked, working);
        }
        if let Some(working) = self.works.admitted.pop_front() {
            return self.work_on(locked, working);
        }
        if let Some(working) = self.works.parked.pop_front() {
            self.work_on(locked, working);
        }
    }

    /// The answer that comes later.
    pub(crate) fn note_late(&mut self, after: After, reply: Reply) {
        let Some(mut working) = self.works.late.take() else { return };
        if working.transaction.is_some() {
            return self.committed(working, after, reply);
        }
        working.waits.add(after);
        working.replies.push(reply);
        self.works.parked.push_front(working);
    }

    /// The answer to what was said to wait. Whom it is for may have been told that the server
    /// stops.
    pub(crate) fn note_admitted(&mut self, ticket: u64, after: After, reply: Reply) {
        let Some(mut working) = self.works.paced.remove(&ticket) else { return };
        if working.commits {
            return self.committed(working, after, reply);
        }
        working.waits.add(after);
        match reply {
            Reply::Refused(refusal) if working.transaction.is_none() => {
                return self.end_work(working, Err(Trouble::Refused(refusal)));
            }
            // Its transaction is still to be rolled back.
            Reply::Refused(refusal) => working.refused = Some(refusal),
            _ if working.transaction.is_some() => {}
            reply => working.replies.push(reply),
        }
        self.works.admitted.push_back(working);
    }

    /// Nobody waits any longer: what the next start finds of it is what was stored.
    pub(crate) fn stop_paced(&mut self) {
        for (_, working) in std::mem::take(&mut self.works.paced) {
            self.end_work(working, Err(Trouble::Stopping));
        }
    }

    /// A lease among these that is over, before anything is done.
    fn over(&self, steps: &VecDeque<Step>) -> Option<Token> {
        tokens(steps).find(|token| self.leases.find(*token).is_none())
    }

    fn work_on(&mut self, locked: &mut Locked<'_>, mut working: Working) {
        if let Some(refusal) = working.refused.take() {
            return self.give_up(locked, working, Trouble::Refused(refusal));
        }
        while let Some(step) = working.steps.pop_front() {
            if !locked.goes_on() && !working.settles {
                working.steps.push_front(step);
                self.works.begun = Some(working);
                return;
            }
            if working.is_to_settle(&step) {
                working.steps.push_front(step);
                if let Err(trouble) = self.keep_leases(locked, &mut working) {
                    return self.give_up(locked, working, trouble);
                }
                continue;
            }
            if matches!(step, Step::Command(_)) && self.works.late.is_some() {
                working.steps.push_front(step);
                return self.works.parked.push_back(working);
            }
            if self.has_to_wait(locked, &working, &step) {
                working.steps.push_front(step);
                return self.postpone(locked, working);
            }
            match self.do_step(locked, &mut working, step) {
                Ok(Pace::GoOn) => {}
                Ok(Pace::Late) => {
                    self.works.late = Some(working);
                    return;
                }
                Ok(Pace::Wait { ticket }) => {
                    self.works.paced.insert(ticket, working);
                    return;
                }
                Err(trouble) => return self.give_up(locked, working, trouble),
            }
        }
        if working.transaction.is_some() {
            return self.commit(locked, working);
        }
        let replies = std::mem::take(&mut working.replies);
        self.end_work(working, Ok(replies));
    }

    /// Looks whether all leases go on that are about to be settled: those settled before one that
    /// is over would end with their transaction, each a failed attempt. Until that is committed
    /// nothing comes between: HTTP names 10,000 at most.
    ///
    /// The engine is asked, for it may know of an end before the desk does. It is by giving each
    /// lease the time that it has.
    fn keep_leases(
        &mut self,
        locked: &mut Locked<'_>,
        working: &mut Working,
    ) -> Result<(), Trouble> {
        for token in tokens(&working.steps) {
            let lease = self.leases.find(token).ok_or(Trouble::LeaseOver(token))?;
            let lease = Some(lease.ends.since(locked.now));
            let renew = Command::Renew { message: token.message, lease };
            let Some((after, reply)) = self.call(locked, renew) else { continue };
            working.waits.add(after);
            if reply == Reply::NotFound {
                self.leases.remove(token.message);
                return Err(Trouble::LeaseOver(token));
            }
        }
        working.settles = true;
        Ok(())
    }

    /// It goes on when the log has, unless as many wait for that as wishes may.
    fn postpone(&mut self, locked: &mut Locked<'_>, working: Working) {
        if self.works.postponed.len() >= WISHES_MAX {
            return self.give_up(locked, working, Trouble::Busy);
        }
        self.works.postponed.push_back(working);
    }

    /// Whether a step adds to the log while that is behind.
    fn has_to_wait(&self, locked: &Locked<'_>, working: &Working, step: &Step) -> bool {
        let broker = &locked.core.broker;
        broker.holds_back()
            && match step {
                Step::Put { to, message, .. } => {
                    let (to, message) = (to.clone(), message.clone());
                    let transaction = working.transaction;
                    !broker.takes(self.session(), &Command::PutTo { to, message, transaction })
                }
                Step::Settle { .. } => false,
                Step::Command(command) => !broker.takes(self.session(), command),
            }
    }

    fn do_step(
        &mut self,
        locked: &mut Locked<'_>,
        working: &mut Working,
        step: Step,
    ) -> Result<Pace, Trouble> {
        match step {
            Step::Put { to, message, count } => {
                if count > 1 {
                    let (to, message) = (to.clone(), message.clone());
                    working.steps.push_front(Step::Put { to, message, count: count - 1 });
                }
                return self.put(locked, working, to, message);
            }
            Step::Settle { token, settling } => self.settle(locked, working, token, settling)?,
            Step::Command(command) => {
                // Bodies that are shown may have to come back from the log.
                let shows = matches!(command, Command::Admin(_) | Command::Peek(_));
                match self.call(locked, command) {
                    Some((after, reply)) => {
                        working.waits.add(after);
                        working.replies.push(reply);
                    }
                    None if shows => return Ok(Pace::Late),
                    None => {}
                }
            }
        }
        Ok(Pace::GoOn)
    }

    fn put(
        &mut self,
        locked: &mut Locked<'_>,
        working: &mut Working,
        to: Destination,
        message: NewMessage,
    ) -> Result<Pace, Trouble> {
        if locked.core.commons.draining.has_begun() {
            return Err(Trouble::Draining);
        }
        let transaction = working.transaction;
        let Some((after, reply)) = self.call(locked, Command::PutTo { to, message, transaction })
        else {
            return Ok(Pace::GoOn);
        };
        working.waits.add(after);
        match reply {
            Reply::Refused(refusal) => Err(Trouble::Refused(refusal)),
            Reply::Waits { ticket } => Ok(Pace::Wait { ticket }),
            reply => {
                if transaction.is_none() {
                    working.replies.push(reply);
                }
                Ok(Pace::GoOn)
            }
        }
    }

    fn settle(
        &mut self,
        locked: &mut Locked<'_>,
        working: &mut Working,
        token: Token,
        settling: Settling,
    ) -> Result<(), Trouble> {
        let lease = self.leases.find(token).ok_or(Trouble::LeaseOver(token))?;
        let command = command(token.message, settling, lease.priority, working.transaction);
        let Some((after, reply)) = self.call(locked, command) else { return Ok(()) };
        working.waits.add(after);
        match (reply, settling) {
            (Reply::Refused(refusal), _) => Err(Trouble::Refused(refusal)),
            (Reply::NotFound, _) => {
                self.leases.remove(token.message);
                Err(Trouble::LeaseOver(token))
            }
            (reply, Settling::Extend { lease }) => {
                self.leases.extend(token.message, locked.now + lease);
                working.replies.push(reply);
                Ok(())
            }
            (reply, _) => {
                self.leases.remove(token.message);
                if working.transaction.is_none() {
                    working.replies.push(reply);
                }
                Ok(())
            }
        }
    }

    fn commit(&mut self, locked: &mut Locked<'_>, mut working: Working) {
        let Some(transaction) = working.transaction else { return };
        if self.works.late.is_some() {
            return self.works.parked.push_back(working);
        }
        let commit = Command::Commit { transaction };
        working.commits = true;
        if !locked.core.broker.takes(self.session(), &commit) {
            return self.postpone(locked, working);
        }
        match self.call(locked, commit) {
            Some((_, Reply::Waits { ticket })) => {
                self.works.paced.insert(ticket, working);
            }
            Some((after, reply)) => self.committed(working, after, reply),
            None => self.works.late = Some(working),
        }
    }

    fn committed(&mut self, mut working: Working, after: After, reply: Reply) {
        working.waits.add(after);
        let result = match reply {
            Reply::Refused(refusal) => Err(Trouble::Refused(refusal)),
            _ => Ok(Vec::new()),
        };
        self.end_work(working, result);
    }

    fn give_up(&mut self, locked: &mut Locked<'_>, working: Working, trouble: Trouble) {
        if let Some(transaction) = working.transaction {
            self.call(locked, Command::Rollback { transaction });
        }
        self.end_work(working, Err(trouble));
    }

    fn end_work(&mut self, working: Working, result: Result<Vec<Reply>, Trouble>) {
        self.answers.push(working.waits, Answer::Work(working.reply, result));
    }
}

/// The leases that are to be settled.
fn tokens(steps: &VecDeque<Step>) -> impl Iterator<Item = Token> {
    steps.iter().filter_map(|step| match step {
        Step::Settle { token, .. } => Some(*token),
        _ => None,
    })
}

/// A settlement in the engine's words. In a transaction there are only those that it knows there.
fn command(
    message: MessageId,
    settling: Settling,
    old_priority: u32,
    transaction: Option<TransactionId>,
) -> Command {
    let settle = |settlement| Command::Settle { message, settlement, transaction };
    match settling {
        Settling::Accept => settle(Settlement::Accept),
        Settling::Fail => settle(Settlement::Fail),
        Settling::Release { .. } if transaction.is_some() => settle(Settlement::Release),
        Settling::Release { delay, priority } => {
            Command::Release { message, priority: priority.unwrap_or(old_priority), delay }
        }
        Settling::Extend { lease } => Command::Renew { message, lease: Some(lease) },
        Settling::Bury { priority } => {
            Command::Bury { message, priority: priority.unwrap_or(old_priority) }
        }
    }
}
