//! The part of a turn that holds the lock: commands in, frames and replies out.

use model::{Command, DependsOn, Nanos, Output, Principal, Refusal, Reply, SessionId, limits};

use crate::address::scheme;
use crate::audit::{AuditLog, Deeds};
use crate::connection::{CloseReason, Connection};
use crate::connections::reactor_of;
use crate::core::Core;
use crate::hub::{Commit, Hub};
use crate::logins::Standing;
use crate::mailbox::Arrival;
use crate::peer::Peer;
use crate::reactor::{Reactor, RunLists};
use crate::tls::Transport;

impl Reactor<'_> {
    /// Steps the broker with all input, and decides which thread writes the resulting frames. Takes
    /// the lock once, and not at all when there is nothing to do.
    pub(crate) fn step(&mut self) -> Commit {
        // Takes the flag before its content: later content raises the flag again.
        let mail = self.hub.mailbox(self.index).take_mail();
        if mail {
            self.lists.arrivals.append(&mut self.hub.mailbox(self.index).arrivals());
            self.lists.logins.append(&mut self.hub.mailbox(self.index).logins());
        }
        let timers = self.hub.deadline() <= self.now;
        let users = self.hub.users_generation();
        if !mail && !timers && users == self.users_seen && self.lists.need_no_step() {
            return Commit::Elsewhere;
        }
        let core = &mut *self.hub.lock_in_turn();
        self.lists.active.clear();
        self.mailed = 0;
        if users != self.users_seen {
            self.users_seen = users;
            self.review_users(core);
        }
        self.open_arrivals(core);
        self.answer_logins(core);
        self.close_finished(core);
        self.fire_timers(core);
        self.take_mail(core);
        self.run(core);
        if !self.take_mail(core) {
            self.hub.mailbox(self.index).notify_mail();
        }
        self.hub.commit(core, &self.lists.active, self.now)
    }

    fn open_arrivals(&mut self, core: &mut Core) {
        for Arrival { client, protocol, tls, offer, permit, since } in
            std::mem::take(&mut self.lists.arrivals)
        {
            let Ok(transport) = Transport::new(tls) else { continue };
            let session = self.connections.next_id();
            if self.is_stopping() || self.event_set.watch_socket(client.socket(), session).is_err()
            {
                // Too late, or no memory for it: as if there were too many.
                continue;
            }
            core.broker.open_session(session);
            let scheme = scheme(protocol, transport.is_tls());
            core.broker.name_session(session, client.name(scheme));
            let peer = Peer::new(protocol, session, &client, &mut core.commons, self.now);
            let connection = Connection::new(session, client, transport, peer, permit, self.now)
                .with_offer(offer, since);
            let connection = self.connections.insert(session, connection);
            self.lists.attend(session, connection.marks());
        }
    }

    /// Hands connections the answers to their logins. One that has closed meanwhile gets none.
    fn answer_logins(&mut self, core: &mut Core) {
        for (session, answer) in std::mem::take(&mut self.lists.logins) {
            let Some(connection) = self.connections.get_mut(session) else { continue };
            let seat = connection.take_seat();
            let (answer, seat) = self.hub.seated(self.hub.reviewed(answer), seat);
            connection.set_seat(seat);
            let (actor, trial) = (connection.audit_actor(None), connection.login_trial());
            if let Some(trial) = trial {
                self.hub.note_login(actor.from, actor.protocol, trial, &answer);
            }
            connection.handle_login(answer, &mut core.commons);
            self.lists.touch(session, connection.marks());
            self.lists.attend(session, connection.marks());
        }
    }

    /// The users have changed: ends the connections of those that may no longer do what they could.
    fn review_users(&mut self, core: &mut Core) {
        for session in self.connections.ids() {
            let Some(connection) = self.connections.get_mut(session) else { continue };
            let Principal::User(rights) = connection.principal() else { continue };
            match self.hub.standing(&rights) {
                Standing::Same => {}
                Standing::Changed(rights) => connection.set_rights(rights, &mut core.commons),
                Standing::Ended => {
                    self.lists.finish(session, CloseReason::Dismissed, connection.marks());
                }
            }
        }
    }

    /// Closes the connections that the last turn found to be over.
    fn close_finished(&mut self, core: &mut Core) {
        self.lists.closing_steps = CLOSING_STEPS_PER_TURN;
        self.stop_serving_finished(core);
        self.close_parting(core);
    }

    /// Stops deliveries to all ended connections before closing any of them: else each would be
    /// given the messages that the one before it had.
    fn stop_serving_finished(&mut self, core: &mut Core) {
        for (session, parting) in self.lists.finished.drain(..) {
            core.broker.stop_serving(session);
            self.lists.parting.push_back((session, parting));
        }
    }

    /// Closes connections until [`CLOSING_STEPS_PER_TURN`] are spent; the rest in the next turn.
    fn close_parting(&mut self, core: &mut Core) {
        while self.lists.closing_steps > 0
            && let Some((session, parting)) = self.lists.parting.pop_front()
        {
            let Some(mut connection) = self.connections.remove(session) else { continue };
            self.deadlines.forget(session, connection.marks().watched);
            if let Some(begun) = connection.begun() {
                core.broker.note_begun(session, begun);
            }
            if connection.has_asked_doorkeeper() {
                self.hub.close_login(session);
            }
            connection.close(&mut core.commons, &self.hub.buffered);
            let before = core.broker.steps();
            match parting {
                CloseReason::Lost => {
                    core.broker.close_session(self.now, session, &mut core.outputs);
                }
                CloseReason::Dismissed => {
                    core.broker.dismiss_session(self.now, session, &mut core.outputs);
                }
            }
            let spent = core.broker.steps() - before;
            self.lists.closing_steps = self.lists.closing_steps.saturating_sub(spent);
            core.mail_outputs(self.index, self.hub.mailboxes());
        }
    }

    /// The broker's own timers, so many as one call takes; the rest follow in the next turn.
    fn fire_timers(&mut self, core: &mut Core) {
        if core.broker.poll_timeout().is_some_and(|deadline| deadline <= self.now) {
            core.broker.handle_timeout(self.now, &mut core.outputs);
            core.mail_outputs(self.index, self.hub.mailboxes());
        }
    }

    /// Replies for connections of this reactor that others caused: a put that a waiting consumer
    /// here receives. It takes as many as a turn may fill buffers with; false: the rest is for the
    /// next turn.
    fn take_mail(&mut self, core: &mut Core) -> bool {
        let durable = core.broker.durable();
        while self.mailed < MAIL_BYTES_PER_TURN {
            let Some(output) = core.next_mail(self.index) else { return true };
            let Some(connection) = self.connections.get_mut(output.session) else { continue };
            self.lists.touch(output.session, connection.marks());
            let before = connection.unsent();
            let awaited = connection.reply(output, &mut core.commons, durable);
            self.mailed += connection.unsent().saturating_sub(before);
            core.scheduler.note_awaited(awaited);
            end_waits(core, self.hub, self.now, self.index);
        }
        !core.has_mail(self.index)
    }

    /// The log has gone on: postponed connections may be served now, and come before those that
    /// asked later.
    fn resume_postponed(&mut self, completions: u64) {
        if self.postponed_at == completions {
            return;
        }
        self.postponed_at = completions;
        let resumed = std::mem::take(&mut self.lists.postponed);
        if resumed.is_empty() {
            return;
        }
        let later = std::mem::replace(&mut self.lists.attention, resumed);
        let connections = &mut self.connections;
        let is_postponed = |session: &SessionId| {
            connections.get_mut(*session).is_some_and(|it| it.marks().postponed)
        };
        let (_, later): (Vec<_>, Vec<_>) = later.into_iter().partition(is_postponed);
        for session in &self.lists.attention {
            let Some(connection) = self.connections.get_mut(*session) else { continue };
            connection.marks().postponed = false;
            connection.marks().attention = true;
        }
        self.lists.attention.extend(later);
    }

    /// Serves the connections in the list until the turn is spent. The first one not reached is
    /// first in the next turn.
    fn run(&mut self, core: &mut Core) {
        let completions = self.hub.completions();
        self.resume_postponed(completions);
        let stalled = core.broker.stalled() && !self.lists.attention.is_empty();
        self.stalled_at = stalled.then_some(completions);
        let mut left = self.serve_hung_up(core, STEPS_PER_TURN);
        let mut served = 0;
        let mut attention = std::mem::take(&mut self.lists.attention);
        for session in &attention {
            // Work that others caused comes before work that it causes itself now.
            if left == 0 || core.broker.stalled() || !self.take_mail(core) {
                break;
            }
            served += 1;
            let Some(connection) = self.connections.get_mut(*session) else { continue };
            connection.marks().attention = false;
            left = left.saturating_sub(self.serve_one(core, *session, left));
            self.close_parting(core);
        }
        attention.drain(..served);
        // Those that ended meanwhile, and are sent to for the last time, come behind them.
        attention.append(&mut self.lists.attention);
        self.lists.attention = attention;
    }

    /// Connections end before any command of this turn if their peers are gone, all of them
    /// together. So the others do not find them there, and none is given a message that another one
    /// had. Returns how many of so many steps are left.
    fn serve_hung_up(&mut self, core: &mut Core, steps: u64) -> u64 {
        let mut left = steps;
        for session in std::mem::take(&mut self.lists.hung_up) {
            let connection = self.connections.get_mut(session);
            if connection.is_some_and(|connection| connection.has_hung_up()) {
                left = left.saturating_sub(self.serve_one(core, session, left));
            }
        }
        self.close_parting(core);
        left
    }

    /// Serves one connection, with so many steps of the turn left; returns the steps it took.
    fn serve_one(&mut self, core: &mut Core, session: SessionId, left: u64) -> u64 {
        let Some(connection) = self.connections.get_mut(session) else { return 0 };
        if connection.marks().finished {
            return 0;
        }
        self.lists.touch(session, connection.marks());
        let before = core.broker.steps();
        let share = Share { steps: left.min(STEPS_PER_CONNECTION), allowance: self.allowance };
        let spent = feed(connection, core, self.hub, self.now, share);
        if let Some((peer, step)) = connection.poll_login() {
            self.hub.ask_doorkeeper(session, peer, step);
        }
        if core.broker.steps() > before {
            self.lists.active.push(session);
        }
        if connection.is_postponed() {
            self.lists.postpone(session, connection.marks());
        }
        if connection.is_ending() {
            self.send(session);
            self.stop_serving_finished(core);
        }
        spent
    }
}

/// The share of a turn that one connection may use up.
#[derive(Clone, Copy, Debug)]
struct Share {
    steps: u64,
    /// Bytes of answers that it may leave unread.
    allowance: usize,
}

/// Feeds the broker with the commands of one connection until its share is used up; returns the
/// steps that they did cost. The last may cost more than was left.
fn feed(connection: &mut Connection, core: &mut Core, hub: &Hub, now: Nanos, share: Share) -> u64 {
    let mut spent = 0;
    while spent < share.steps && !core.broker.stalled() {
        let before = connection.unsent();
        let command = connection.next_command(now, &mut core.commons, share.allowance);
        let answered = connection.unsent();
        end_waits(core, hub, now, reactor_of(connection.id()));
        spent += (answered - before).div_ceil(ANSWER_BYTES_PER_STEP) as u64;
        spent += connection.take_steps();
        let Some(command) = command else { break };
        let own = connection.id();
        if let Some(principal) = connection.take_principal() {
            connection.keep_seat_of(&principal, hub.user_quotas());
            core.broker.act_for(own, principal);
        }
        if !core.broker.takes(own, &command) {
            connection.postpone(command);
            break;
        }
        connection.charge_commands(now, &command);
        let before = core.broker.steps();
        let deeds = hub.audit().map(|_| Deeds::of(&command)).unwrap_or_default();
        core.broker.handle(now, own, command, &mut core.outputs);
        if let Some(audit) = hub.audit() {
            note_command(audit, connection, core, hub.wall_clock.wall_time(now), &deeds);
        }
        let durable = core.broker.durable();
        // The connection's own reply at once, since its next command waits for it.
        let mut awaited = DependsOn::NOTHING;
        for output in core.outputs.extract_if(.., |output| output.session == own) {
            awaited = awaited.and(connection.reply(output, &mut core.commons, durable));
        }
        core.scheduler.note_awaited(awaited);
        end_waits(core, hub, now, reactor_of(own));
        let copied = (connection.unsent() - answered) / BODY_BYTES_PER_STEP;
        spent += core.broker.steps() - before + copied as u64;
        core.mail_outputs(reactor_of(own), hub.mailboxes());
    }
    spent
}

/// Tells the audit log what came of a command.
fn note_command(audit: &AuditLog, connection: &Connection, core: &Core, at: Nanos, deeds: &Deeds) {
    let own = |output: &&Output| output.session == connection.id();
    let reply = core.outputs.iter().find(own).map(|output| &output.reply);
    let is_denied = matches!(reply, Some(Reply::Refused(Refusal::NotPermitted(_))));
    // Most commands are neither, and cost nothing more.
    if !deeds.is_empty() || is_denied {
        let principal = connection.principal();
        let user = principal.user().map(|user| &**user);
        audit.note_command(at, &connection.audit_actor(user), deeds, reply);
    }
}

/// Ends the waits of sessions that another one has just asked to end. It adds nothing to the log,
/// so it may be done while the broker is stalled.
#[inline]
fn end_waits(core: &mut Core, hub: &Hub, now: Nanos, reactor: usize) {
    while let Some((session, command)) = core.commons.redis.poll_unblocked() {
        end_wait(core, hub, now, reactor, (session, command));
    }
}

/// Rare, and apart from the loop that finds nothing to end.
#[cold]
fn end_wait(
    core: &mut Core,
    hub: &Hub,
    now: Nanos,
    reactor: usize,
    (session, command): (SessionId, Command),
) {
    core.broker.handle(now, session, command, &mut core.outputs);
    core.mail_outputs(reactor, hub.mailboxes());
}

impl RunLists {
    fn need_no_step(&self) -> bool {
        self.arrivals.is_empty()
            && self.logins.is_empty()
            && self.attention.is_empty()
            && self.postponed.is_empty()
            && !self.have_leaving()
    }
}

/// Steps of all connections in a turn: bounds how long the lock is held, to a few milliseconds.
pub(crate) const STEPS_PER_TURN: u64 = limits::STEPS_PER_TURN_MAX as u64;

/// Bytes of answers that others caused in a turn, plus the last one. A publication goes to many at
/// once, and their peers may read or not.
const MAIL_BYTES_PER_TURN: usize = 8 * 1024 * 1024;

/// Steps of one connection in a turn, so that a pipelining one shares the broker with others: some
/// 256 puts.
const STEPS_PER_CONNECTION: u64 = 256 * limits::COMMAND_STEPS as u64;

/// Steps of connections that close in a turn: staying connections go before leaving ones.
const CLOSING_STEPS_PER_TURN: u64 = STEPS_PER_TURN / 4;

/// An answer that a session makes by itself costs a step for so many bytes.
const ANSWER_BYTES_PER_STEP: usize = 16;

/// An answer of the broker costs, beside its steps, one for so many copied bytes. So a turn fills
/// buffers by 8 MiB at most, plus the last answer.
const BODY_BYTES_PER_STEP: usize = 128;

#[cfg(test)]
#[path = "step_test.rs"]
mod tests;
