//! The broker as the gateway sees it, while this thread holds the lock of the core.

use std::sync::Arc;

use http_api::{Actor, BrokerTurn};
use model::{Command, DependsOn, Nanos, Output, SessionId};

use crate::audit::{AuditActor, Deeds};
use crate::connections::{numbered_densely, reactor_of};
use crate::core::Core;
use crate::hub::Hub;
use crate::mailbox::Mailbox;

/// The locked core, for one turn of the gateway.
pub(crate) struct LockedBroker<'a> {
    core: &'a mut Core,
    mailboxes: &'a [Mailbox],
    /// The index of the gateway, behind those of the reactors.
    index: usize,
    now: Nanos,
    hub: &'a Hub,
    /// The one for whom the next command is given.
    actor: Actor,
}

impl<'a> LockedBroker<'a> {
    pub(crate) fn new(core: &'a mut Core, hub: &'a Hub, index: usize, now: Nanos) -> Self {
        Self { core, mailboxes: hub.mailboxes(), index, now, hub, actor: Actor::default() }
    }

    /// Takes the outputs for the gateway, and mails the rest to the reactors.
    fn sort_outputs(&mut self, outputs: &mut Vec<Output>) {
        let index = self.index;
        let ours = |output: &mut Output| reactor_of(output.session) == index;
        outputs.extend(self.core.outputs.extract_if(.., ours));
        self.core.mail_outputs(index, self.mailboxes);
    }
}

impl BrokerTurn for LockedBroker<'_> {
    fn now(&self) -> Nanos {
        self.now
    }

    fn steps(&self) -> u64 {
        self.core.broker.steps()
    }

    fn stalled(&self) -> bool {
        self.core.broker.stalled()
    }

    fn holds_back(&self) -> bool {
        self.core.broker.holds_back()
    }

    fn takes(&self, session: SessionId, command: &Command) -> bool {
        self.core.broker.takes(session, command)
    }

    fn uncommitted_max(&self) -> usize {
        self.core.broker.uncommitted_max()
    }

    fn session_id(&self, number: u64) -> SessionId {
        numbered_densely(self.index, number)
    }

    fn open_session(&mut self, session: SessionId) {
        self.core.broker.open_session(session);
    }

    fn name_session(&mut self, session: SessionId, name: Arc<str>) {
        self.core.broker.name_session(session, name);
    }

    fn act_for(&mut self, session: SessionId, actor: &Actor) {
        self.core.broker.act_for(session, actor.principal.clone());
        self.actor.clone_from(actor);
    }

    fn let_overtake(&mut self, session: SessionId) {
        self.core.broker.let_overtake(session);
    }

    fn dismiss_session(&mut self, session: SessionId, outputs: &mut Vec<Output>) {
        self.core.broker.dismiss_session(self.now, session, &mut self.core.outputs);
        self.sort_outputs(outputs);
    }

    fn handle(&mut self, session: SessionId, command: Command, outputs: &mut Vec<Output>) {
        let deeds = self.hub.audit().map(|_| Deeds::of(&command)).unwrap_or_default();
        self.core.broker.handle(self.now, session, command, &mut self.core.outputs);
        if let Some(audit) = self.hub.audit() {
            let user = self.actor.principal.user().map(|user| &**user);
            let actor = AuditActor { user, from: self.actor.from, protocol: "http" };
            let of_session = |output: &&Output| output.session == session;
            let reply = self.core.outputs.iter().find(of_session).map(|output| &output.reply);
            let at = self.hub.wall_clock.wall_time(self.now);
            audit.note_command(at, &actor, &deeds, reply);
        }
        self.sort_outputs(outputs);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.core.next_mail(self.index)
    }

    fn note_awaited(&mut self, after: DependsOn) {
        self.core.scheduler.note_awaited(after);
    }
}
