//! The part of a turn that holds the lock: commands in, frames and replies out.

use std::sync::atomic::Ordering;

use model::{Nanos, Reply};

use crate::connection::Connection;
use crate::connections::reactor_of;
use crate::core::Core;
use crate::hub::{Commit, Hub};
use crate::reactor::{Lists, Reactor};

impl Reactor<'_> {
    /// Steps the broker with everything that has come in, and decides who writes what became of
    /// it. Takes the lock once, and not at all when there is nothing to do.
    pub(crate) fn step(&mut self) -> Commit {
        self.expire();
        // The flag is taken before what it stands for: what comes later raises it again.
        let mail = self.hub.post(self.index).take_mail();
        if mail {
            self.lists.arrivals.append(&mut self.hub.post(self.index).arrivals());
        }
        let timers = self.hub.deadline() <= self.now;
        if !mail && !timers && self.lists.need_no_step() {
            return Commit::Elsewhere;
        }
        let core = &mut *self.hub.lock();
        self.lists.active.clear();
        self.open_arrivals(core);
        self.close_finished(core);
        self.fire_timers(core);
        self.take_mail(core);
        self.run(core);
        self.take_mail(core);
        self.hub.commit(core, &self.lists.active, self.now)
    }

    /// Gives up the connections whose deadline has passed.
    fn expire(&mut self) {
        while let Some(session) = self.deadlines.pop_due(self.now) {
            let Some(connection) = self.connections.get_mut(session) else { continue };
            connection.marks().watched = None;
            let deadline = connection.deadline(&self.hub.limits, self.now);
            if deadline.is_some_and(|deadline| deadline <= self.now) {
                self.lists.finish(session, connection.marks());
            } else {
                self.deadlines.watch(session, &mut connection.marks().watched, deadline);
            }
        }
    }

    fn open_arrivals(&mut self, core: &mut Core) {
        for socket in std::mem::take(&mut self.lists.arrivals) {
            let session = self.connections.next_id();
            if self.is_stopping() || self.event_set.watch_socket(&socket, session).is_err() {
                // Too late, or no memory for it: as if there were too many.
                self.hub.connections.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            core.broker.open_session(session);
            let connection = Connection::new(session, socket, &mut core.shared, self.now);
            let connection = self.connections.insert(session, connection);
            self.lists.attend(session, connection.marks());
        }
    }

    fn close_finished(&mut self, core: &mut Core) {
        for session in std::mem::take(&mut self.lists.finished) {
            let Some(mut connection) = self.connections.remove(session) else { continue };
            self.deadlines.forget(session, connection.marks().watched);
            connection.close(&mut core.shared);
            core.broker.close_session(self.now, session, &mut core.outputs);
            core.post_outputs(self.index, self.hub.posts());
            self.hub.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The broker's own timers, so many as one call takes; the rest follow in the next turn.
    fn fire_timers(&mut self, core: &mut Core) {
        if core.broker.poll_timeout().is_some_and(|deadline| deadline <= self.now) {
            core.broker.handle_timeout(self.now, &mut core.outputs);
            core.post_outputs(self.index, self.hub.posts());
        }
    }

    /// Replies for connections of this reactor that others caused: a put that a waiting consumer
    /// here receives.
    fn take_mail(&mut self, core: &mut Core) {
        for output in core.take_mail(self.index) {
            let Some(connection) = self.connections.get_mut(output.session) else { continue };
            self.lists.touch(output.session, connection.marks());
            connection.reply(output, &mut core.shared);
        }
    }

    fn run(&mut self, core: &mut Core) {
        let completions = self.hub.completions();
        let mut left = COMMANDS_PER_TURN;
        let stalled = core.broker.stalled() && !self.lists.attention.is_empty();
        self.stalled_at = stalled.then_some(completions);
        if stalled {
            return;
        }
        let mut attention = std::mem::take(&mut self.lists.attention);
        for session in attention.drain(..) {
            let Some(connection) = self.connections.get_mut(session) else { continue };
            connection.marks().attention = false;
            self.lists.touch(session, connection.marks());
            let share = left.min(COMMANDS_PER_CONNECTION);
            let count = feed(connection, core, self.hub, self.now, share);
            left -= count;
            if count > 0 {
                self.lists.active.push(session);
            }
        }
        self.lists.attention = attention;
    }
}

/// Feeds the broker with the commands of one connection, so many at most; returns how many.
fn feed(
    connection: &mut Connection,
    core: &mut Core,
    hub: &Hub,
    now: Nanos,
    commands_max: usize,
) -> usize {
    for count in 0..commands_max {
        if core.broker.stalled() {
            return count;
        }
        let Some(command) = connection.next_command(&mut core.shared, &hub.limits) else {
            return count;
        };
        let own = connection.id();
        core.broker.handle(now, own, command, &mut core.outputs);
        let large = core.outputs.iter().any(|output| matches!(output.reply, Reply::CountSoFar(_)));
        // The connection's own reply at once, since its next command waits for it.
        for output in core.outputs.extract_if(.., |output| output.session == own) {
            connection.reply(output, &mut core.shared);
        }
        core.post_outputs(reactor_of(own), hub.posts());
        if large {
            // Ten thousand messages were changed: others come before the rest.
            return commands_max;
        }
    }
    commands_max
}

impl Lists {
    fn need_no_step(&self) -> bool {
        self.arrivals.is_empty() && self.attention.is_empty() && self.finished.is_empty()
    }
}

/// Commands of one connection in a turn, so that a pipelining one shares the broker with others.
const COMMANDS_PER_CONNECTION: usize = 256;

/// Commands of all connections in a turn: bounds how long the lock is held, to a few milliseconds.
const COMMANDS_PER_TURN: usize = 4_096;
