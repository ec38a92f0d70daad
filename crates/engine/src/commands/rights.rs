//! The door: each command passes [`Engine::turn_away`] before anything else sees it.

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;

use model::{
    Command, Matching, MessageId, NotPermitted, Principal, QueueName, Refusal, Right, Rights,
    SessionId, SubscriptionName, UserRights, limits,
};

use crate::delivery::move_messages::MoveTarget;
use crate::directory::{Directory, Target};
use crate::engine::Engine;
use crate::ids::SessionSlot;
use crate::outcome::Outcome;
use crate::rights::{Need, needs};
use crate::sessions::Session;
use crate::store::MessageStore;

/// Why a command is turned away.
enum Denial {
    /// The user lacks a right, on a name or on the broker as a whole.
    Lacks(Right, Option<QueueName>),
    /// As far as the user can know, there is no such thing.
    Hidden,
}

fn lacks_unless(has: bool, right: Right, name: Option<&QueueName>) -> Result<(), Denial> {
    if has { Ok(()) } else { Err(Denial::Lacks(right, name.cloned())) }
}

impl Engine {
    /// From now on a session acts for this one; it has acted for everyone. No effect on one that is
    /// not open.
    pub fn act_for(&mut self, session: SessionId, principal: Principal) {
        if let Some(slot) = self.sessions.slot(session) {
            self.sessions.act_for(slot, principal);
        }
    }

    /// The rights of all users, by which subscriptions of patterns take messages; `None`: there are
    /// no users.
    pub fn set_users(&mut self, users: Option<Arc<UserRights>>) {
        self.directory.set_users(users);
    }

    /// The answer to a command that its session's user may not give. A command that passes gets the
    /// user's own names in place of those that it chose: deduplication ids, subscriptions.
    pub(crate) fn turn_away(&mut self, by: SessionSlot, command: &mut Command) -> Option<Outcome> {
        if brings_names(command)
            && let Some(user) = self.sessions.at(by).user().cloned()
        {
            self.directory.scope(command, &user);
        }
        let mut judge = self.judge(by);
        let denial = needs(command, &mut |need| judge.decide(need)).err()?;
        self.store.took_steps(limits::COMMAND_STEPS);
        self.store.count_denied();
        if matches!(command, Command::Batch { .. }) {
            // As after a batch that was done.
            self.keyspace.stop_observing(by, &mut self.store);
        }
        let Denial::Lacks(right, name) = denial else { return Some(self.log.not_found()) };
        let user = self.sessions.at(by).user().cloned();
        let refusal = Refusal::NotPermitted(Box::new(NotPermitted { user, right, name }));
        let part_of = match command {
            Command::Put { transaction, .. } | Command::PutTo { transaction, .. } => *transaction,
            Command::Table { transaction, .. } => Some(*transaction),
            _ => None,
        };
        Some(self.sessions.refuse_part(by, part_of, refusal, &self.log))
    }

    pub(crate) fn judge(&mut self, by: SessionSlot) -> Judge<'_> {
        let Self { sessions, directory, store, .. } = self;
        Judge { by, session: sessions.at_mut(by), directory, store }
    }
}

/// Decides about the needs of a session, and changes nothing.
pub(crate) struct Judge<'e> {
    by: SessionSlot,
    /// It remembers the rights on names that it asks for again.
    session: &'e mut Session,
    directory: &'e Directory,
    store: &'e MessageStore,
}

impl Judge<'_> {
    fn decide(&mut self, need: Need<'_>) -> Result<(), Denial> {
        let Self { session, directory, store, .. } = self;
        match need {
            Need::Name(right, name) => {
                let has = session.rights_on(name).contains(right);
                lacks_unless(has, right, Some(name))
            }
            Need::Point(name) => {
                let rights = session.rights_on(name);
                let uses = [Right::Send, Right::Look, Right::Manage];
                let has = uses.into_iter().any(|right| rights.contains(right));
                lacks_unless(has, Right::Send, Some(name))
            }
            Need::Producer(right, link) => {
                // A producer that is not there is for the command itself to miss.
                let Some(target) = session.producers().get(&link).copied() else { return Ok(()) };
                let name = match target {
                    Target::Queue(slot) => &store.queues.at(slot).name,
                    Target::Topic(slot) => directory.topics().at(slot).name(),
                };
                let has = session.rights_on(name).contains(right);
                lacks_unless(has, right, Some(name))
            }
            Need::Message(right, id) => self.decide_message(right, id),
            Need::ReceiveSome => {
                let principal = session.principal();
                let some = |rights: &Rights| rights.allow_anywhere(Right::Receive);
                let has = principal.rights().is_some_and(|rights| some(rights));
                lacks_unless(has, Right::Receive, None)
            }
            Need::Subscription(name) => self.decide_subscription(name),
            Need::Temporary => {
                let client = session.client().map(QueueName::as_str);
                let has = session.principal().on(limits::TEMPORARY_PREFIX, client);
                let has = has.contains(Right::Receive);
                let name = QueueName::new(limits::TEMPORARY_PREFIX).ok();
                lacks_unless(has, Right::Receive, name.as_ref())
            }
            Need::Operate => lacks_unless(session.principal().may_operate(), Right::Operate, None),
        }
    }

    /// A message that the session holds is its own. A dead letter is allowed what the queue allows
    /// from which it came.
    fn decide_message(&mut self, right: Right, id: MessageId) -> Result<(), Denial> {
        let Some(message) = self.store.find(id) else { return Ok(()) };
        if message.state().holder() == Some(self.by) {
            return Ok(());
        }
        let here = self.directory.name_for_rights(message.queue(), self.store);
        let origin = self.directory.origin_of(id, self.store);
        let origin = origin.map(|target| self.name_of_target(&target));
        let mut has = |name: &QueueName| self.session.rights_on(name).contains(right);
        if has(&here) || origin.is_some_and(|name| has(&name)) {
            return Ok(());
        }
        Err(Denial::Hidden)
    }

    fn decide_subscription(&mut self, name: &SubscriptionName) -> Result<(), Denial> {
        let Some(number) = self.directory.subscriptions().find(name) else { return Ok(()) };
        let asks = self.directory.subscriptions().at(number).asks();
        let is_own = name.user.is_some() && name.user.as_ref() == self.session.user();
        // One from before there were users is of all who may receive from its topic.
        let lesser = if name.user.is_none() { Right::Receive } else { Right::Manage };
        let rights = self.session.rights_on(&asks.topic);
        let has = is_own || rights.contains(lesser) || rights.contains(Right::Manage);
        if has { Ok(()) } else { Err(Denial::Hidden) }
    }

    /// True if the session's user may send a dead letter back to where it came from.
    pub(crate) fn may_return_to(&mut self, target: &MoveTarget) -> bool {
        if !self.session.is_limited() {
            return true;
        }
        let name = self.name_of_target(target);
        self.session.rights_on(&name).contains(Right::Send)
    }

    /// The name whose rights say who may read and fill `target`.
    fn name_of_target(&self, target: &MoveTarget) -> QueueName {
        match target {
            MoveTarget::Queue(name) => name.clone(),
            MoveTarget::Subscription(slot) => self.directory.name_for_rights(*slot, self.store),
        }
    }
}

impl Directory {
    /// Names that a user chooses are the user's own.
    fn scope(&self, command: &mut Command, user: &Arc<str>) {
        match command {
            Command::Put { message, .. }
            | Command::PutTo { message, .. }
            | Command::Publish { message, .. } => {
                if let Some(id) = &mut message.send_id {
                    // No user's name has a line end.
                    *id = format!("{user}\n{id}").into();
                }
            }
            Command::Subscribe { subscription, .. } => {
                if let Some(name) = &mut subscription.name {
                    // Nobody subscribes as another.
                    name.user = None;
                    self.scope_subscription(name, user);
                }
            }
            Command::Unsubscribe { name } | Command::FindSubscription { name } => {
                self.scope_subscription(name, user);
            }
            Command::Batch { commands } => {
                commands.iter_mut().for_each(|command| self.scope(command, user));
            }
            _ => {}
        }
    }

    /// The user's own subscription, unless there is only one from before there were users. One of a
    /// pattern from then stays as it is: it holds messages of all topics.
    fn scope_subscription(&self, name: &mut SubscriptionName, user: &Arc<str>) {
        if name.user.is_some() {
            return;
        }
        let subscriptions = self.subscriptions();
        let of_user = SubscriptionName { user: Some(Arc::clone(user)), ..name.clone() };
        let old = subscriptions.find(name).map(|number| subscriptions.at(number).asks());
        let is_old = old.is_some_and(|asks| asks.matching == Matching::Name);
        if !is_old || subscriptions.find(&of_user).is_some() {
            *name = of_user;
        }
    }
}

/// True if the client chose a name that is to be its user's own.
fn brings_names(command: &Command) -> bool {
    match command {
        Command::Put { message, .. }
        | Command::PutTo { message, .. }
        | Command::Publish { message, .. } => message.send_id.is_some(),
        Command::Batch { commands } => commands.iter().any(brings_names),
        Command::Subscribe { .. }
        | Command::Unsubscribe { .. }
        | Command::FindSubscription { .. } => true,
        _ => false,
    }
}
