//! Work of the gateway's tasks: commands one after the other, or a transaction.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use model::{
    Command, DependsOn, Destination, MessageId, NewMessage, Refusal, Reply, SessionId, Settlement,
    TransactionId, limits,
};

use crate::gateway::answers::{Answer, Waits};
use crate::gateway::request_queue::{REQUESTS_MAX, Ticket, WorkReply};
use crate::gateway::state::{GatewayState, Turn};
use crate::{Asker, GatewayError, Settling, Step, Token, Work};

/// What is under way.
#[derive(Debug)]
pub(crate) struct Works {
    /// Cut off where a turn ended.
    begun: Option<Working>,
    /// Commits, and commands of operators, whose answers come later, by session. There is one at
    /// most of each: nothing in such an answer says what it is for.
    late: BTreeMap<SessionId, Working>,
    /// What waits for a place in a queue or for memory, by the engine's ticket.
    paced: BTreeMap<u64, Working>,
    /// The same tickets by who asked.
    paced_by_asker: BTreeMap<Ticket, u64>,
    /// What waited for one, or for the log, and can go on.
    admitted: VecDeque<Working>,
    /// What adds to the log and goes on once that is not behind.
    postponed: VecDeque<Working>,
    /// What goes on when the late answer of its session has come.
    parked: BTreeMap<SessionId, VecDeque<Working>>,
    /// Sessions of one transaction each.
    sessions: BTreeSet<SessionId>,
    /// How many of them there may be.
    sessions_max: usize,
    /// Those whose transaction has ended.
    ended: Vec<SessionId>,
    transactions: u64,
}

#[derive(Debug)]
struct Working {
    ticket: Ticket,
    asker: Asker,
    /// Whose commands these are: see [`GatewayState::session_for`].
    session: SessionId,
    steps: VecDeque<Step>,
    transaction: Option<TransactionId>,
    replies: Vec<Reply>,
    waits: Waits,
    reply: WorkReply,
    /// Its leases have been looked at, and nothing may come between until they are settled.
    settles: bool,
    /// It has asked for its commit.
    commits: bool,
    /// It has waited for the log.
    was_postponed: bool,
    /// A part of it was refused after it had waited.
    refused: Option<Refusal>,
}

impl Working {
    /// Whether nobody waits for it any longer.
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed() || self.asker.has_left()
    }

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
    /// At most so many transactions without leases.
    pub(crate) const fn new(transactions_max: usize) -> Self {
        Self {
            begun: None,
            late: BTreeMap::new(),
            paced: BTreeMap::new(),
            paced_by_asker: BTreeMap::new(),
            admitted: VecDeque::new(),
            postponed: VecDeque::new(),
            parked: BTreeMap::new(),
            sessions: BTreeSet::new(),
            sessions_max: transactions_max,
            ended: Vec::new(),
            transactions: 0,
        }
    }

    pub(crate) fn is_going_on(&self) -> bool {
        self.begun.is_some()
            || !self.admitted.is_empty()
            || !self.ended.is_empty()
            || self.unparked().is_some()
    }

    /// Whether a session is to be told something later.
    pub(crate) fn awaits(&self, session: SessionId) -> bool {
        self.late.contains_key(&session)
    }

    /// A session whose parked work can go on. Two have any.
    fn unparked(&self) -> Option<SessionId> {
        self.parked.keys().copied().find(|session| !self.awaits(*session))
    }

    fn park(&mut self, working: Working) {
        self.parked.entry(working.session).or_default().push_back(working);
    }

    fn take_parked(&mut self) -> Option<Working> {
        let session = self.unparked()?;
        let line = self.parked.get_mut(&session)?;
        let first = line.pop_front();
        if line.is_empty() {
            self.parked.remove(&session);
        }
        first
    }

    fn pace(&mut self, ticket: u64, working: Working) {
        self.paced_by_asker.insert(working.ticket, ticket);
        self.paced.insert(ticket, working);
    }

    fn take_paced(&mut self, ticket: u64) -> Option<Working> {
        let working = self.paced.remove(&ticket)?;
        self.paced_by_asker.remove(&working.ticket);
        Some(working)
    }

    /// The sessions of transactions, where all is to end.
    pub(crate) fn take_sessions(&mut self) -> BTreeSet<SessionId> {
        self.ended.clear();
        std::mem::take(&mut self.sessions)
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

impl GatewayState {
    pub(crate) fn begin_work(
        &mut self,
        turn: &mut Turn<'_>,
        ticket: Ticket,
        work: Work,
        reply: WorkReply,
    ) {
        // What settles is done also for who is gone: it tells what became of a message.
        if reply.is_closed() && work.steps.iter().any(|step| matches!(step, Step::Put { .. })) {
            return;
        }
        let Some(session) = self.session_for(turn, &work) else {
            return self
                .answers
                .push(Waits::default(), Answer::Work(reply, Err(GatewayError::Busy)));
        };
        let mut working = Working {
            ticket,
            asker: work.asker,
            session,
            steps: work.steps.into(),
            transaction: None,
            replies: Vec::new(),
            waits: Waits::default(),
            reply,
            settles: false,
            commits: false,
            was_postponed: false,
            refused: None,
        };
        if let Some(over) = self.over(&working.steps) {
            return self.end_work(working, Err(GatewayError::LeaseOver(over)));
        }
        if work.atomic && stored_bytes(&working.steps) > turn.broker.uncommitted_max() {
            // At once: none of it takes memory before.
            let refusal = Refusal::TransactionTooLarge;
            return self.end_work(working, Err(GatewayError::Refused(refusal)));
        }
        if work.atomic {
            self.works.transactions += 1;
            let transaction = TransactionId(self.works.transactions);
            working.transaction = Some(transaction);
            let begun = self.call_as(turn, session, Command::Begin { transaction });
            if let Some((_, Reply::Refused(_))) = begun {
                // As many that settle leases as there may be wait for their commits.
                return self.end_work(working, Err(GatewayError::Busy));
            }
        }
        self.work_on(turn, working);
    }

    /// Leases are settled by the session that has them. What operators ask is another's, so that
    /// an answer that comes late keeps no settlement waiting; and a transaction without leases has
    /// one to itself, so that however many wait for a place, others go on. `None`: too many do.
    fn session_for(&mut self, turn: &mut Turn<'_>, work: &Work) -> Option<SessionId> {
        if work.steps.iter().any(|step| matches!(step, Step::Command(_))) {
            return Some(self.asking());
        }
        if !work.atomic || work.steps.iter().any(|step| matches!(step, Step::Settle { .. })) {
            return Some(self.session());
        }
        if self.works.sessions.len() >= self.works.sessions_max {
            return None;
        }
        let session = self.open_session(turn);
        self.works.sessions.insert(session);
        Some(session)
    }

    /// Goes on with what was cut off, or waited for another's answer.
    pub(crate) fn go_on_working(&mut self, turn: &mut Turn<'_>) {
        if let Some(working) = self.works.begun.take() {
            return self.work_on(turn, working);
        }
        if let Some(working) = self.works.admitted.pop_front() {
            return self.work_on(turn, working);
        }
        if let Some(working) = self.works.take_parked() {
            return self.work_on(turn, working);
        }
        if let Some(session) = self.works.ended.pop() {
            self.works.sessions.remove(&session);
            self.dismiss(turn, session);
        }
    }

    /// The answer that comes later.
    pub(crate) fn note_late(&mut self, session: SessionId, after: DependsOn, reply: Reply) {
        let Some(mut working) = self.works.late.remove(&session) else { return };
        if working.transaction.is_some() {
            return self.committed(working, after, reply);
        }
        working.waits.add(after);
        working.replies.push(reply);
        self.works.admitted.push_back(working);
    }

    /// The answer to what was said to wait. Whom it is for may have been told that the server
    /// stops.
    pub(crate) fn note_admitted(&mut self, ticket: u64, after: DependsOn, reply: Reply) {
        let Some(mut working) = self.works.take_paced(ticket) else { return };
        if working.commits {
            return self.committed(working, after, reply);
        }
        working.waits.add(after);
        match reply {
            Reply::Refused(refusal) if working.transaction.is_none() => {
                return self.end_work(working, Err(GatewayError::Refused(refusal)));
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
        self.works.paced_by_asker.clear();
        for (_, working) in std::mem::take(&mut self.works.paced) {
            self.end_work(working, Err(GatewayError::Stopping));
        }
    }

    /// Who waited is gone: what waits for a place or for memory is not done.
    pub(crate) fn abandon_work(&mut self, turn: &mut Turn<'_>, asker: Ticket) {
        let Some(ticket) = self.works.paced_by_asker.get(&asker).copied() else { return };
        let session = self.works.paced.get(&ticket).map(|working| working.session);
        let session = session.expect("invariant: who asked is known while it waits");
        self.call_as(turn, session, Command::CancelSend { ticket });
    }

    /// A lease among these that is over, before anything is done.
    fn over(&self, steps: &VecDeque<Step>) -> Option<Token> {
        tokens(steps).find(|token| self.leases.find(*token).is_none())
    }

    fn work_on(&mut self, turn: &mut Turn<'_>, mut working: Working) {
        if let Some(refusal) = working.refused.take() {
            return self.give_up(turn, working, GatewayError::Refused(refusal));
        }
        if std::mem::take(&mut working.was_postponed) && working.is_abandoned() {
            return self.give_up(turn, working, GatewayError::Left);
        }
        while let Some(step) = working.steps.pop_front() {
            if !turn.goes_on() && !working.settles {
                working.steps.push_front(step);
                self.works.begun = Some(working);
                return;
            }
            if working.is_to_settle(&step) {
                working.steps.push_front(step);
                if let Err(trouble) = self.keep_leases(turn, &mut working) {
                    return self.give_up(turn, working, trouble);
                }
                continue;
            }
            if matches!(step, Step::Command(_)) && self.works.awaits(working.session) {
                working.steps.push_front(step);
                return self.works.park(working);
            }
            if self.has_to_wait(turn, &working, &step) {
                working.steps.push_front(step);
                return self.postpone(turn, working);
            }
            match self.do_step(turn, &mut working, step) {
                Ok(Pace::GoOn) => {}
                Ok(Pace::Late) => {
                    self.works.late.insert(working.session, working);
                    return;
                }
                Ok(Pace::Wait { ticket }) => return self.wait(turn, ticket, working),
                Err(trouble) => return self.give_up(turn, working, trouble),
            }
        }
        if working.transaction.is_some() {
            return self.commit(turn, working);
        }
        let replies = std::mem::take(&mut working.replies);
        self.end_work(working, Ok(replies));
    }

    /// Looks whether all leases go on that are about to be settled: those settled before one that
    /// is over would end with their transaction, each a failed attempt. Until all are settled, and
    /// so held until it ends, nothing comes between: HTTP names 10,000 at most.
    ///
    /// The engine is asked, for it may know of an end before the gateway does. It is by giving each
    /// lease the time that it has.
    fn keep_leases(
        &mut self,
        turn: &mut Turn<'_>,
        working: &mut Working,
    ) -> Result<(), GatewayError> {
        for token in tokens(&working.steps) {
            let lease = self.leases.find(token).ok_or(GatewayError::LeaseOver(token))?;
            let lease = Some(lease.ends.since(turn.now));
            let renew = Command::Renew { message: token.message, lease };
            let Some((after, reply)) = self.call(turn, renew) else { continue };
            working.waits.add(after);
            if reply == Reply::NotFound {
                self.leases.remove(token.message);
                return Err(GatewayError::LeaseOver(token));
            }
        }
        working.settles = true;
        Ok(())
    }

    /// It goes on when there is a place or memory, unless the server stops or who asked is gone.
    fn wait(&mut self, turn: &mut Turn<'_>, ticket: u64, working: Working) {
        if self.is_stopping() {
            return self.end_work(working, Err(GatewayError::Stopping));
        }
        let (asked, is_abandoned) = (working.ticket, working.is_abandoned());
        self.works.pace(ticket, working);
        if is_abandoned {
            self.abandon_work(turn, asked);
        }
    }

    /// It goes on when the log has, unless as many wait for that as requests may.
    fn postpone(&mut self, turn: &mut Turn<'_>, mut working: Working) {
        if self.works.postponed.len() >= REQUESTS_MAX {
            return self.give_up(turn, working, GatewayError::Busy);
        }
        working.was_postponed = true;
        self.works.postponed.push_back(working);
    }

    /// Whether a step adds to the log while that is behind.
    fn has_to_wait(&self, turn: &Turn<'_>, working: &Working, step: &Step) -> bool {
        let broker = &*turn.broker;
        broker.holds_back()
            && match step {
                Step::Put { to, message, .. } => {
                    let (to, message) = (to.clone(), message.clone());
                    let transaction = working.transaction;
                    !broker.takes(working.session, &Command::PutTo { to, message, transaction })
                }
                Step::Settle { .. } => false,
                Step::Command(command) => !broker.takes(working.session, command),
            }
    }

    fn do_step(
        &mut self,
        turn: &mut Turn<'_>,
        working: &mut Working,
        step: Step,
    ) -> Result<Pace, GatewayError> {
        match step {
            Step::Put { to, message, count } => {
                if count > 1 {
                    let (to, message) = (to.clone(), message.clone());
                    working.steps.push_front(Step::Put { to, message, count: count - 1 });
                }
                return self.put(turn, working, to, message);
            }
            Step::Settle { token, settling } => self.settle(turn, working, token, settling)?,
            Step::Command(command) => {
                // Bodies that are shown may have to come back from the log.
                let shows = matches!(command, Command::Admin(_) | Command::Peek(_));
                match self.call_as(turn, working.session, command) {
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
        turn: &mut Turn<'_>,
        working: &mut Working,
        to: Destination,
        message: NewMessage,
    ) -> Result<Pace, GatewayError> {
        if self.draining.has_begun() {
            return Err(GatewayError::Draining);
        }
        let transaction = working.transaction;
        let put = Command::PutTo { to, message, transaction };
        let Some((after, reply)) = self.call_as(turn, working.session, put) else {
            return Ok(Pace::GoOn);
        };
        working.waits.add(after);
        match reply {
            Reply::Refused(refusal) => Err(GatewayError::Refused(refusal)),
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
        turn: &mut Turn<'_>,
        working: &mut Working,
        token: Token,
        settling: Settling,
    ) -> Result<(), GatewayError> {
        let lease = self.leases.find(token).ok_or(GatewayError::LeaseOver(token))?;
        let command = command(token.message, settling, lease.priority, working.transaction);
        let Some((after, reply)) = self.call(turn, command) else { return Ok(()) };
        working.waits.add(after);
        match (reply, settling) {
            (Reply::Refused(refusal), _) => Err(GatewayError::Refused(refusal)),
            (Reply::NotFound, _) => {
                self.leases.remove(token.message);
                Err(GatewayError::LeaseOver(token))
            }
            (reply, Settling::Extend { lease }) => {
                self.leases.extend(token.message, turn.now + lease);
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

    fn commit(&mut self, turn: &mut Turn<'_>, mut working: Working) {
        let Some(transaction) = working.transaction else { return };
        if self.works.awaits(working.session) {
            return self.works.park(working);
        }
        let commit = Command::Commit { transaction };
        working.commits = true;
        if !turn.broker.takes(working.session, &commit) {
            return self.postpone(turn, working);
        }
        match self.call_as(turn, working.session, commit) {
            Some((_, Reply::Waits { ticket })) => self.wait(turn, ticket, working),
            Some((after, reply)) => self.committed(working, after, reply),
            None => drop(self.works.late.insert(working.session, working)),
        }
    }

    fn committed(&mut self, mut working: Working, after: DependsOn, reply: Reply) {
        working.waits.add(after);
        let result = match reply {
            Reply::Refused(refusal) => Err(GatewayError::Refused(refusal)),
            _ => Ok(Vec::new()),
        };
        self.end_work(working, result);
    }

    fn give_up(&mut self, turn: &mut Turn<'_>, working: Working, trouble: GatewayError) {
        if let Some(transaction) = working.transaction {
            self.call_as(turn, working.session, Command::Rollback { transaction });
        }
        self.end_work(working, Err(trouble));
    }

    fn end_work(&mut self, working: Working, result: Result<Vec<Reply>, GatewayError>) {
        if self.works.sessions.contains(&working.session) {
            self.works.ended.push(working.session);
        }
        self.answers.push(working.waits, Answer::Work(working.reply, result));
    }
}

/// Transactions without leases that may be open at once; one more is refused. As many as may wait
/// for places in queues or for memory, and as may wait for the log.
pub const TRANSACTIONS_MAX: usize = limits::PACED_SENDS_MAX + REQUESTS_MAX;

/// Bytes of all bodies that a transaction is to store.
fn stored_bytes(steps: &VecDeque<Step>) -> usize {
    let bytes = steps.iter().map(|step| match step {
        Step::Put { message, count, .. } => {
            let count = usize::try_from(*count).unwrap_or(usize::MAX);
            message.body.len().saturating_mul(count)
        }
        _ => 0,
    });
    bytes.fold(0, usize::saturating_add)
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
