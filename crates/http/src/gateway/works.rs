//! Works of tasks: each is steps one after the other, or a transaction.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use model::{
    Command, DependsOn, Destination, MessageId, NewMessage, Refusal, Reply, SessionId, Settlement,
    TableStep, TransactionId, limits,
};

use crate::gateway::answers::{Answer, Waits};
use crate::gateway::request_queue::{REQUESTS_MAX, Ticket, WorkReply};
use crate::gateway::state::{GatewayState, Turn};
use crate::{Actor, Asker, GatewayError, Settling, Step, Token, Work};

/// All works under way.
#[derive(Debug)]
pub(crate) struct Works {
    /// The work that the end of a turn interrupted.
    begun: Option<Working>,
    /// Commits and commands of operators that are answered later, by session. A session has one at
    /// most: nothing in such a reply names its command.
    late: BTreeMap<SessionId, Working>,
    /// Works that wait for a place in a queue or for memory, by the engine's ticket.
    blocked: BTreeMap<u64, Working>,
    /// The tickets of these, by the ticket of the request.
    blocked_by_asker: BTreeMap<Ticket, u64>,
    /// Works that waited for these or for the log, and can go on.
    admitted: VecDeque<Working>,
    /// Works that add to the log, and go on once the log is not behind.
    postponed: VecDeque<Working>,
    /// Works that go on once the late reply of their session has come.
    parked: BTreeMap<SessionId, VecDeque<Working>>,
    /// Sessions that have one transaction each.
    sessions: BTreeSet<SessionId>,
    /// How many of them may be open.
    sessions_max: usize,
    /// Those of these sessions that have ended their transaction.
    ended: Vec<SessionId>,
    transactions: u64,
}

#[derive(Debug)]
struct Working {
    ticket: Ticket,
    actor: Actor,
    asker: Asker,
    /// The session that gives its commands: see [`GatewayState::session_for`].
    session: SessionId,
    steps: VecDeque<Step>,
    transaction: Option<TransactionId>,
    replies: Vec<Reply>,
    waits: Waits,
    reply: WorkReply,
    /// Its leases were checked. No other command may come before they are settled.
    settles: bool,
    /// It has given its commit.
    commits: bool,
    /// It has waited for the log.
    was_postponed: bool,
    /// A part of it was refused after it had waited.
    refused: Option<Refusal>,
}

impl Working {
    /// True if its task is gone, or waits no longer.
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed() || self.asker.has_left()
    }

    /// True if this is the first of a transaction's settlements.
    fn begins_to_settle(&self, step: &Step) -> bool {
        self.transaction.is_some() && !self.settles && matches!(step, Step::Settle { .. })
    }
}

/// How a work goes on after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    GoOn,
    /// The step waits for a place in a queue or for memory.
    Wait {
        ticket: u64,
    },
    /// The reply to the step comes later.
    Late,
}

impl Works {
    /// At most `transactions_max` transactions without leases may be open.
    pub(crate) const fn new(transactions_max: usize) -> Self {
        Self {
            begun: None,
            late: BTreeMap::new(),
            blocked: BTreeMap::new(),
            blocked_by_asker: BTreeMap::new(),
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

    /// True if a late reply of this session is still to come.
    pub(crate) fn awaits(&self, session: SessionId) -> bool {
        self.late.contains_key(&session)
    }

    /// A session that can go on with parked work. Only two sessions ever have any.
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

    fn block(&mut self, ticket: u64, working: Working) {
        self.blocked_by_asker.insert(working.ticket, ticket);
        self.blocked.insert(ticket, working);
    }

    fn take_blocked(&mut self, ticket: u64) -> Option<Working> {
        let working = self.blocked.remove(&ticket)?;
        self.blocked_by_asker.remove(&working.ticket);
        Some(working)
    }

    /// Takes the sessions of transactions, to end them.
    pub(crate) fn take_sessions(&mut self) -> BTreeSet<SessionId> {
        self.ended.clear();
        std::mem::take(&mut self.sessions)
    }

    /// True if works wait until the log is not behind.
    pub(crate) fn is_postponed(&self) -> bool {
        !self.postponed.is_empty()
    }

    /// The log may take more: postponed works try again.
    pub(crate) fn resume_postponed(&mut self) {
        self.admitted.append(&mut self.postponed);
    }
}

impl GatewayState {
    pub(crate) fn begin_work(
        &mut self,
        turn: &mut Turn<'_>,
        ticket: Ticket,
        actor: Actor,
        work: Work,
        reply: WorkReply,
    ) {
        // A settlement is done even if its task is gone: it is the outcome of a message.
        let is_new = |step: &Step| matches!(step, Step::Put { .. } | Step::Table(_));
        if reply.is_closed() && work.steps.iter().any(is_new) {
            return;
        }
        let Some(session) = self.session_for(turn, &work) else {
            return self
                .answers
                .push(Waits::default(), Answer::Work(reply, Err(GatewayError::Busy)));
        };
        let mut working = Working {
            ticket,
            actor,
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
        if let Some(over) = self.over(&working) {
            return self.end_work(working, Err(GatewayError::LeaseOver(over)));
        }
        if work.atomic && stored_bytes(&working.steps) > turn.broker.uncommitted_max() {
            // Refused before any of it takes memory.
            let refusal = Refusal::TransactionTooLarge;
            return self.end_work(working, Err(GatewayError::Refused(refusal)));
        }
        if work.atomic {
            self.works.transactions += 1;
            let transaction = TransactionId(self.works.transactions);
            working.transaction = Some(transaction);
            let begun = self.call_as(turn, session, Command::Begin { transaction });
            if let Some((_, Reply::Refused(_))) = begun {
                // The session of all leases has as many open transactions as it may.
                return self.end_work(working, Err(GatewayError::Busy));
            }
        }
        self.work_on(turn, working);
    }

    /// The session that gives the commands of a work. The session of all leases settles leases.
    /// Commands of operators have another, so that their late replies delay no settlement. A
    /// transaction without leases has a session of its own, so that others go on however many of
    /// them wait for a place. `None`: too many of them are open.
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

    /// Goes on with one work that was interrupted or waited, or ends one session.
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

    /// Takes in the late reply of a session.
    pub(crate) fn note_late(&mut self, session: SessionId, after: DependsOn, reply: Reply) {
        let Some(mut working) = self.works.late.remove(&session) else { return };
        if working.transaction.is_some() {
            return self.committed(working, after, reply);
        }
        working.waits.add(after);
        working.replies.push(reply);
        self.works.admitted.push_back(working);
    }

    /// Takes in the reply to a step that waited. Its work may be gone: answered because the
    /// server stops.
    pub(crate) fn note_unblocked(&mut self, ticket: u64, after: DependsOn, reply: Reply) {
        let Some(mut working) = self.works.take_blocked(ticket) else { return };
        if working.commits {
            return self.committed(working, after, reply);
        }
        working.waits.add(after);
        match reply {
            Reply::Refused(refusal) if working.transaction.is_none() => {
                return self.end_work(working, Err(GatewayError::Refused(refusal)));
            }
            // `work_on` rolls its transaction back.
            Reply::Refused(refusal) => working.refused = Some(refusal),
            _ if working.transaction.is_some() => {}
            reply => working.replies.push(reply),
        }
        self.works.admitted.push_back(working);
    }

    /// Answers all blocked works: the server stops. The next start finds their stored messages.
    pub(crate) fn stop_blocked(&mut self) {
        self.works.blocked_by_asker.clear();
        for (_, working) in std::mem::take(&mut self.works.blocked) {
            self.end_work(working, Err(GatewayError::Stopping));
        }
    }

    /// The task of a work is gone: a step that waits for a place or for memory is not done.
    pub(crate) fn abandon_work(&mut self, turn: &mut Turn<'_>, asker: Ticket) {
        let Some(ticket) = self.works.blocked_by_asker.get(&asker).copied() else { return };
        let session = self.works.blocked.get(&ticket).map(|working| working.session);
        let session = session.expect("invariant: who asked is known while it waits");
        self.call_as(turn, session, Command::CancelSend { ticket });
    }

    /// The first lease of these steps that is over.
    fn over(&self, working: &Working) -> Option<Token> {
        let user = working.actor.principal.user();
        tokens(&working.steps).find(|token| self.leases.find(*token, user).is_none())
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
            if working.begins_to_settle(&step) {
                working.steps.push_front(step);
                if let Err(error) = self.keep_leases(turn, &mut working) {
                    return self.give_up(turn, working, error);
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
                Ok(Progress::GoOn) => {}
                Ok(Progress::Late) => {
                    self.works.late.insert(working.session, working);
                    return;
                }
                Ok(Progress::Wait { ticket }) => return self.wait(turn, ticket, working),
                Err(error) => return self.give_up(turn, working, error),
            }
        }
        if working.transaction.is_some() {
            return self.commit(turn, working);
        }
        let replies = std::mem::take(&mut working.replies);
        self.end_work(working, Ok(replies));
    }

    /// Checks that all leases last that a transaction is about to settle. Leases settled before one
    /// that is over would end with their transaction, each as a failed delivery. No other command
    /// comes until all are settled, and so held until the transaction ends. HTTP names at most
    /// 10,000.
    ///
    /// The engine may know that a lease is over before the gateway does. So the gateway asks it: it
    /// renews each lease for the time that it has left.
    fn keep_leases(
        &mut self,
        turn: &mut Turn<'_>,
        working: &mut Working,
    ) -> Result<(), GatewayError> {
        for token in tokens(&working.steps) {
            let lease = self.leases.find(token, working.actor.principal.user());
            let lease = lease.ok_or(GatewayError::LeaseOver(token))?;
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

    /// Blocks a work until there is a place or memory, unless the server stops or its task is gone.
    fn wait(&mut self, turn: &mut Turn<'_>, ticket: u64, working: Working) {
        if self.is_stopping() {
            return self.end_work(working, Err(GatewayError::Stopping));
        }
        let (asked, is_abandoned) = (working.ticket, working.is_abandoned());
        self.works.block(ticket, working);
        if is_abandoned {
            self.abandon_work(turn, asked);
        }
    }

    /// Postpones a work until the log takes it, unless as many works wait as requests may.
    fn postpone(&mut self, turn: &mut Turn<'_>, mut working: Working) {
        if self.works.postponed.len() >= REQUESTS_MAX {
            return self.give_up(turn, working, GatewayError::Busy);
        }
        working.was_postponed = true;
        self.works.postponed.push_back(working);
    }

    /// True if a step has to wait, for it adds to a log that is behind.
    fn has_to_wait(&self, turn: &Turn<'_>, working: &Working, step: &Step) -> bool {
        let broker = &*turn.broker;
        broker.holds_back()
            && match step {
                Step::Put { to, message, .. } => {
                    let (to, message) = (to.clone(), message.clone());
                    let transaction = working.transaction;
                    !broker.takes(working.session, &Command::PutTo { to, message, transaction })
                }
                Step::Settle { .. } | Step::Table(_) => false,
                Step::Command(command) => !broker.takes(working.session, command),
            }
    }

    fn do_step(
        &mut self,
        turn: &mut Turn<'_>,
        working: &mut Working,
        step: Step,
    ) -> Result<Progress, GatewayError> {
        match step {
            Step::Put { to, message, count } => {
                if count > 1 {
                    let (to, message) = (to.clone(), message.clone());
                    working.steps.push_front(Step::Put { to, message, count: count - 1 });
                }
                return self.put(turn, working, to, message);
            }
            Step::Table(step) => self.enlist(turn, working, step)?,
            Step::Settle { token, settling } => self.settle(turn, working, token, settling)?,
            Step::Command(command) if self.draining.has_begun() && command.sets_fields() => {
                return Err(GatewayError::Draining);
            }
            Step::Command(command) => {
                // The log may have to be read for the bodies that these show.
                let shows = matches!(command, Command::Admin(_) | Command::Peek(_));
                turn.broker.act_for(working.session, &working.actor);
                match self.call_as(turn, working.session, command) {
                    Some((after, reply)) => {
                        working.waits.add(after);
                        working.replies.push(reply);
                    }
                    None if shows => return Ok(Progress::Late),
                    None => {}
                }
            }
        }
        Ok(Progress::GoOn)
    }

    fn put(
        &mut self,
        turn: &mut Turn<'_>,
        working: &mut Working,
        to: Destination,
        message: NewMessage,
    ) -> Result<Progress, GatewayError> {
        if self.draining.has_begun() {
            return Err(GatewayError::Draining);
        }
        let transaction = working.transaction;
        let put = Command::PutTo { to, message, transaction };
        turn.broker.act_for(working.session, &working.actor);
        let Some((after, reply)) = self.call_as(turn, working.session, put) else {
            return Ok(Progress::GoOn);
        };
        working.waits.add(after);
        match reply {
            Reply::Refused(refusal) => Err(GatewayError::Refused(refusal)),
            Reply::Waits { ticket } => Ok(Progress::Wait { ticket }),
            reply => {
                if transaction.is_none() {
                    working.replies.push(reply);
                }
                Ok(Progress::GoOn)
            }
        }
    }

    /// A step on a table becomes a part of the transaction.
    fn enlist(
        &mut self,
        turn: &mut Turn<'_>,
        working: &mut Working,
        step: TableStep,
    ) -> Result<(), GatewayError> {
        if step.stores() && self.draining.has_begun() {
            return Err(GatewayError::Draining);
        }
        let transaction = working.transaction.expect("invariant: tables have atomic works");
        let command = Command::Table { step: Box::new(step), transaction };
        turn.broker.act_for(working.session, &working.actor);
        let Some((after, reply)) = self.call_as(turn, working.session, command) else {
            return Ok(());
        };
        working.waits.add(after);
        match reply {
            Reply::Refused(refusal) => Err(GatewayError::Refused(refusal)),
            _ => Ok(()),
        }
    }

    fn settle(
        &mut self,
        turn: &mut Turn<'_>,
        working: &mut Working,
        token: Token,
        settling: Settling,
    ) -> Result<(), GatewayError> {
        let lease = self.leases.find(token, working.actor.principal.user());
        let lease = lease.ok_or(GatewayError::LeaseOver(token))?;
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
            Reply::Committed { .. } => Ok(vec![reply]),
            _ => Ok(Vec::new()),
        };
        self.end_work(working, result);
    }

    fn give_up(&mut self, turn: &mut Turn<'_>, working: Working, error: GatewayError) {
        if let Some(transaction) = working.transaction {
            self.call_as(turn, working.session, Command::Rollback { transaction });
        }
        self.end_work(working, Err(error));
    }

    fn end_work(&mut self, working: Working, result: Result<Vec<Reply>, GatewayError>) {
        if self.works.sessions.contains(&working.session) {
            self.works.ended.push(working.session);
        }
        self.answers.push(working.waits, Answer::Work(working.reply, result));
    }
}

/// Transactions without leases that may be open at once; one more is refused. The sum of those that
/// may wait for places or for memory, and those that may wait for the log.
pub const TRANSACTIONS_MAX: usize = limits::BLOCKED_SENDS_MAX + REQUESTS_MAX;

/// Bytes of all bodies in these steps.
fn stored_bytes(steps: &VecDeque<Step>) -> usize {
    let bytes = steps.iter().map(|step| match step {
        Step::Put { message, count, .. } => {
            let count = usize::try_from(*count).unwrap_or(usize::MAX);
            message.body.len().saturating_mul(count)
        }
        Step::Table(step) => step.body_bytes(),
        _ => 0,
    });
    bytes.fold(0, usize::saturating_add)
}

/// The leases that these steps settle.
fn tokens(steps: &VecDeque<Step>) -> impl Iterator<Item = Token> {
    steps.iter().filter_map(|step| match step {
        Step::Settle { token, .. } => Some(*token),
        _ => None,
    })
}

/// The command of a settlement. In a transaction there are only settlements that the engine knows
/// there.
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
