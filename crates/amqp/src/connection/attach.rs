//! Sessions begin and links attach (2.5.1, 2.6.3).

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use model::{
    ClientName, Command, ConsumerMode, Destination, LinkId, QueueName, Quota, Right, Rights,
    Settlement,
};

use crate::Connection;
use crate::connection::disposition::settlement;
use crate::connection::event::Awaited;
use crate::connection::limits::LINK_NAME_BYTES_MAX;
use crate::connection::link::{Consumer, Kind, Link, Producer, Recipient, Standing};
use crate::connection::refusal;
use crate::connection::session::{Session, SessionKey};
use crate::connection::{Fault, actual, address, elsewhere, not_allowed, tables};
use crate::error::{Error, condition};
use crate::performative::{
    Attach, Begin, Detach, Performative, ReceiverSettleMode, Role, SenderSettleMode, Unsettled,
};
use crate::terminus::{AttachTarget, Coordinator, DistributionMode, Target};
use crate::types::Symbols;

/// The capabilities of a coordinator (4.5.7).
const TRANSACTIONS: [&str; 3] =
    ["amqp:local-transactions", "amqp:multi-txns-per-ssn", "amqp:multi-ssns-per-txn"];

/// The link that an attach opens, and how.
struct LinkDraft {
    kind: Kind,
    opening: Opening,
}

/// The engine's part in opening it.
enum Opening {
    Nothing,
    Destination(Destination),
    Temporary { topic: bool },
    Ask(Command, fn(LinkId) -> Awaited),
}

/// Sessions.
impl Connection {
    pub(super) fn begin(&mut self, channel: u16, begin: &Begin) -> Result<(), Fault> {
        // "If a session is locally initiated, the remote-channel MUST NOT be set" (2.7.2).
        if begin.remote_channel.is_some() || self.channels.contains_key(&channel) {
            return not_allowed("this session was not asked for, or is there");
        }
        // Our own channel is the peer's number, which it may not be able to read (2.7.1).
        if channel >= self.channels_max() || channel > self.peer.channel_max {
            return Err(Fault::Connection(self.no_channel(channel)));
        }
        let Some(next) = self.sessions_begun.checked_add(1) else {
            return not_allowed("too many sessions");
        };
        let key = SessionKey(self.sessions_begun);
        self.sessions_begun = next;
        self.channels.insert(channel, key);
        self.sessions.insert(key, Session::new(channel, begin, self.options.unsettled_max));
        self.ask_nothing(Awaited::Begun(key));
        Ok(())
    }

    /// How many sessions the peer may have: at least one, as its open says (2.7.1).
    pub(super) fn channels_max(&self) -> u16 {
        let most = self.options.channels_max;
        let rights = self.login.as_ref().and_then(|login| login.rights());
        let quota = rights.and_then(|rights| rights.quotas().of(Quota::Sessions));
        quota.map_or(most, |quota| u16::try_from(quota).unwrap_or(most).clamp(1, most))
    }

    fn no_channel(&self, channel: u16) -> Error {
        let rights = self.login.as_ref().and_then(|login| login.rights());
        let allowed = rights.map(|rights| rights.allow(Quota::Sessions, u64::from(channel) + 1));
        match allowed {
            Some(Err(reached)) => refusal::quota_reached(&reached),
            _ => Error::new(condition::CONNECTION_FRAMING_ERROR, "channel above the maximum"),
        }
    }

    pub(super) fn emit_begin(&mut self, key: SessionKey, out: &mut Vec<u8>) {
        let handle_max = self.options.links_max.saturating_sub(1);
        let Some(session) = self.sessions.get_mut(&key) else { return };
        session.begun = true;
        let (channel, begin) = (session.channel, session.begin(handle_max));
        self.write(channel, &Performative::Begin(Box::new(begin)), out);
    }
}

/// Links.
impl Connection {
    pub(super) fn attach(&mut self, key: SessionKey, attach: Attach) -> Result<(), Fault> {
        self.check_attach(key, &attach)?;
        let id = LinkId(self.links_attached);
        self.links_attached += 1;
        let mut answer = self.answer_to(&attach);
        let draft = self.claim_name(id, &attach).and_then(|()| self.draft(&attach, &mut answer));
        let (kind, opening) = match draft {
            Ok(LinkDraft { kind, opening }) => (kind, Ok(opening)),
            Err(error) => (refused_kind(&attach), Err(error)),
        };
        if let Some(session) = self.sessions.get_mut(&key) {
            session.handles.insert(attach.handle, id);
        }
        let name = attach.name.as_str().into();
        let selector = attach.source.as_ref().and_then(address::selector);
        let selector_bytes = selector.map_or(0, str::len);
        let link = Link { selector_bytes, ..Link::new(key, attach.handle, name, kind, answer) };
        self.link_bytes += link.bytes();
        self.links.insert(id, link);
        self.open(id, opening);
        Ok(())
    }

    /// A link of the same name and direction is stolen (2.6.1): "the link is moved to the new
    /// endpoint". A lookup of a subscription steals nothing.
    fn claim_name(&mut self, id: LinkId, attach: &Attach) -> Result<(), Error> {
        let key = (attach.role == Role::Sender, attach.name.as_str().into());
        let old = self.names.get(&key).copied();
        if is_lookup(attach) {
            let locked = || Error::new(condition::RESOURCE_LOCKED, "the subscription is in use");
            return if old.is_none() { Ok(()) } else { Err(locked()) };
        }
        if let Some(old) = old {
            self.detach_link(old, Error::new(condition::LINK_STOLEN, "attached anew"));
        }
        self.names.insert(key, id);
        Ok(())
    }

    fn check_attach(&self, key: SessionKey, attach: &Attach) -> Result<(), Fault> {
        let Some(session) = self.sessions.get(&key) else { return Ok(()) };
        if attach.handle >= self.options.links_max || attach.handle > session.handle_max {
            // "The peer MUST close the connection with the framing-error error-code" (2.7.2).
            let error = Error::new(condition::CONNECTION_FRAMING_ERROR, "handle above the maximum");
            return Err(Fault::Connection(error));
        }
        let fault = |condition, why: String| Err(Fault::Session(key, Error::new(condition, why)));
        if session.handles.contains_key(&attach.handle) {
            return fault(condition::SESSION_HANDLE_IN_USE, "the handle is in use".into());
        }
        if attach.name.len() > LINK_NAME_BYTES_MAX {
            let why = format!("a link's name has {LINK_NAME_BYTES_MAX} bytes at most");
            return fault(condition::INVALID_FIELD, why);
        }
        let max = self.options.links_max;
        if self.links.len() >= max as usize || self.links_attached == LAST_LINK {
            let why = format!(
                "a connection has {max} links at most: close some, or use several connections"
            );
            return fault(condition::RESOURCE_LIMIT_EXCEEDED, why);
        }
        Ok(())
    }

    /// Our attach, but for the fields that are known later: the modes as asked for (2.6.10,
    /// 2.6.12), no unsettled deliveries, since none outlives its link here (2.6.13).
    fn answer_to(&self, attach: &Attach) -> Attach {
        let is_sender = attach.role == Role::Receiver;
        Attach {
            role: if is_sender { Role::Sender } else { Role::Receiver },
            rcv_settle_mode: if is_sender {
                attach.rcv_settle_mode
            } else {
                ReceiverSettleMode::First
            },
            unsettled: Unsettled::default(),
            incomplete_unsettled: false,
            initial_delivery_count: is_sender.then_some(0),
            max_message_size: (!is_sender).then_some(self.options.max_message_bytes),
            offered_capabilities: attach.desired_capabilities.iter().filter(is_offered).collect(),
            desired_capabilities: Symbols::default(),
            properties: crate::types::Fields::default(),
            ..attach.clone()
        }
    }

    fn draft(&mut self, attach: &Attach, answer: &mut Attach) -> Result<LinkDraft, Error> {
        match attach.role {
            Role::Sender => {
                let draft = draft_producer(attach, answer)?;
                if let Kind::Producer(Producer { to: Recipient::Table(table), .. }) = &draft.kind {
                    self.check_sender(&Destination::Queue(table.clone()))?;
                }
                Ok(draft)
            }
            Role::Receiver => self.draft_consumer(attach),
        }
    }

    fn draft_consumer(&mut self, attach: &Attach) -> Result<LinkDraft, Error> {
        let Some(source) = &attach.source else { return self.draft_lookup(attach) };
        if address::is_without_local(source) && !self.peer.is_identified {
            self.recognise();
        }
        let message_bytes_max = attach.max_message_size.filter(|max| *max > 0);
        let kind = Kind::Consumer(Consumer::new(
            attach.snd_settle_mode == SenderSettleMode::Settled,
            source.default_outcome.as_ref().map_or(Settlement::Release, settlement),
            message_bytes_max.unwrap_or(u64::MAX),
        ));
        let opening = if source.dynamic {
            Opening::Temporary { topic: address::is_topic(&source.capabilities) }
        } else if source.address.as_deref().is_some_and(|it| tables::named(it).is_some()) {
            return Err(tables::unreadable());
        } else {
            Opening::Destination(node(source.address.as_deref(), &source.capabilities)?)
        };
        Ok(LinkDraft { kind, opening })
    }

    /// No source: the peer wants to know of a subscription, to end it.
    fn draft_lookup(&self, attach: &Attach) -> Result<LinkDraft, Error> {
        let client = self.peer.client.as_ref();
        let desired = &attach.desired_capabilities;
        let name = address::wanted_subscription(&attach.name, desired, client)?;
        let opening =
            Opening::Ask(Command::FindSubscription { name: name.clone() }, Awaited::Found);
        Ok(LinkDraft { kind: Kind::Lookup(Some(name)), opening })
    }

    /// Tells the engine which client this is, for a subscription that takes nothing from it. If
    /// another connection is that client's, that one's messages are left out.
    fn recognise(&mut self) {
        if let Some(client) = self.peer.client.clone() {
            self.ask(Command::Identify { client }, Awaited::Recognised);
        }
    }

    fn open(&mut self, id: LinkId, opening: Result<Opening, Error>) {
        let command = match opening {
            Ok(Opening::Nothing) => return self.ask_nothing(Awaited::Attached(id)),
            Ok(Opening::Ask(command, awaited)) => return self.ask(command, awaited(id)),
            Ok(Opening::Temporary { topic }) => {
                let secret = self.options.secrets.next();
                return self.ask(Command::CreateTemporary { topic, secret }, Awaited::Created(id));
            }
            Ok(Opening::Destination(destination)) => {
                let link = self.links.get_mut(&id);
                let is_consumer = link.is_some_and(|link| link.consumer().is_some());
                match elsewhere::meaning_of(&destination, is_consumer) {
                    Some(meaning) => return self.seek(id, destination, meaning),
                    None => self.opening(id, destination),
                }
            }
            Err(error) => Err(error),
        };
        match command {
            Ok(command) => self.ask(command, Awaited::Attached(id)),
            Err(error) => self.refuse_link(id, error),
        }
    }

    fn refuse_link(&mut self, id: LinkId, error: Error) {
        self.begin_ending(id);
        self.ask_nothing(Awaited::Refused(id, Box::new(error)));
    }

    /// Asks if there is a queue with a name that means something else elsewhere. Topics are there
    /// only for their subscribers.
    fn seek(&mut self, id: LinkId, destination: Destination, meaning: &'static str) {
        let Destination::Queue(queue) = &destination else {
            return self.refuse_link(id, elsewhere::refusal(meaning));
        };
        let command = Command::QueueStatistics { queue: queue.clone() };
        self.ask(command, Awaited::QueueSearched(id, destination, meaning));
    }

    /// The command that opens a link to a destination. Our attach tells from here on the actual
    /// state of its ends.
    pub(super) fn opening(
        &mut self,
        id: LinkId,
        destination: Destination,
    ) -> Result<Command, Error> {
        let client = self.peer.client.as_ref();
        let gone = || Error::new(condition::INTERNAL_ERROR, "the link is gone");
        let link = self.links.get_mut(&id).ok_or_else(gone)?;
        let attach = link.attach.as_mut().ok_or_else(gone)?;
        let Kind::Consumer(consumer) = &mut link.kind else {
            if let Some(AttachTarget::Node(target)) = &mut attach.target {
                actual::target(target, Some(&destination));
            }
            self.check_sender(&destination)?;
            return Ok(Command::OpenProducer { link: id, to: destination });
        };
        let source = attach.source.as_mut().ok_or_else(gone)?;
        match destination {
            Destination::Queue(queue) => {
                consumer.browses = source.distribution_mode == Some(DistributionMode::Copy);
                let mode = if consumer.browses { ConsumerMode::Browse } else { ConsumerMode::Take };
                let selector = address::selector(source).map(Into::into);
                actual::queue(source, consumer.browses);
                Ok(Command::OpenConsumer { link: id, queue, selector, mode })
            }
            Destination::Topic(topic) => {
                let subscription = address::subscription(source, &link.name, topic, client)?;
                consumer.durable =
                    subscription.name.clone().filter(|name| name.durable).map(Box::new);
                actual::subscription(source, &subscription);
                Ok(Command::Subscribe { link: id, subscription: Box::new(subscription) })
            }
        }
    }

    /// A producer of AMQP only sends, and its client is to hear at once if it may not.
    fn check_sender(&self, destination: &Destination) -> Result<(), Error> {
        let rights = self.login.as_ref().and_then(|login| login.rights());
        match rights {
            Some(rights) if !may_send(rights, destination, self.peer.client.as_ref()) => {
                Err(refusal::not_permitted(Some(rights.user()), Right::Send))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn emit_attach(&mut self, id: LinkId, out: &mut Vec<u8>) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let Some(attach) = link.attach.take() else { return };
        let (session, echo) = (link.session, link.echo);
        let Some(channel) = self.channel_of(session) else { return };
        self.write(channel, &Performative::Attach(attach), out);
        self.renew_credit(id, out);
        if echo {
            self.write_flow(id, out);
        }
    }

    /// An attach without the terminus that the peer asked for, and the reason in the detach behind
    /// it (2.6.3).
    pub(super) fn emit_refusal(&mut self, id: LinkId, error: Box<Error>, out: &mut Vec<u8>) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let Some(mut attach) = link.attach.take() else { return };
        let (session, handle) = (link.session, link.handle);
        link.detached = true;
        if link.peer_detached {
            self.forget_link(id);
        }
        let Some(channel) = self.channel_of(session) else { return };
        match attach.role {
            Role::Sender => attach.source = None,
            Role::Receiver => attach.target = None,
        }
        self.write(channel, &Performative::Attach(attach), out);
        let detach = Detach { handle, closed: true, error: Some(error) };
        self.write(channel, &Performative::Detach(detach), out);
    }

    /// The channel for frames of a session; `None` once our end was sent, since nothing may follow
    /// it (2.5.5).
    pub(super) fn channel_of(&self, session: SessionKey) -> Option<u16> {
        let session = self.sessions.get(&session).filter(|session| !session.ended);
        session.map(|session| session.channel)
    }
}

impl Link {
    fn new(session: SessionKey, handle: u32, name: Box<str>, kind: Kind, answer: Attach) -> Self {
        Self {
            session,
            handle,
            name,
            standing: Standing::Opening,
            after: model::DependsOn::NOTHING,
            kind,
            selector_bytes: 0,
            temporary: None,
            attach: Some(Box::new(answer)),
            echo: false,
            detached: false,
            peer_detached: false,
        }
    }
}

fn draft_producer(attach: &Attach, answer: &mut Attach) -> Result<LinkDraft, Error> {
    let counted = attach.initial_delivery_count.unwrap_or_default();
    let kind = |to| Kind::Producer(Producer::new(to, counted));
    let target = match &attach.target {
        Some(AttachTarget::Coordinator(_)) => {
            let capabilities = Symbols::from(TRANSACTIONS);
            answer.target = Some(AttachTarget::Coordinator(Coordinator { capabilities }));
            let kind = kind(Recipient::Coordinator(BTreeSet::new()));
            return Ok(LinkDraft { kind, opening: Opening::Nothing });
        }
        Some(AttachTarget::Node(target)) => target,
        None => return Err(Error::new(condition::INVALID_FIELD, "the attach has no target")),
    };
    let opening = match target {
        Target { dynamic: true, capabilities, .. } => {
            Opening::Temporary { topic: address::is_topic(capabilities) }
        }
        Target { address: None, .. } => {
            if let Some(AttachTarget::Node(target)) = &mut answer.target {
                actual::target(target, None);
            }
            return Ok(LinkDraft { kind: kind(Recipient::Relay), opening: Opening::Nothing });
        }
        Target { address: Some(address), .. } if tables::named(address).is_some() => {
            let table = tables::named(address).unwrap_or_else(|| address::name(address))?;
            if let Some(AttachTarget::Node(target)) = &mut answer.target {
                actual::target(target, Some(&Destination::Queue(table.clone())));
            }
            let kind = kind(Recipient::Table(table));
            return Ok(LinkDraft { kind, opening: Opening::Nothing });
        }
        Target { address, capabilities, .. } => {
            Opening::Destination(node(address.as_deref(), capabilities)?)
        }
    };
    Ok(LinkDraft { kind: kind(Recipient::Node), opening })
}

fn node(address: Option<&str>, capabilities: &Symbols) -> Result<Destination, Error> {
    let Some(address) = address else {
        return Err(Error::new(condition::INVALID_FIELD, "the terminus has no address"));
    };
    address::destination(address, capabilities)
}

/// An attach for a subscription of which the peer knows only the name.
fn is_lookup(attach: &Attach) -> bool {
    attach.role == Role::Receiver && attach.source.is_none()
}

/// The kind of a link that never opens.
fn refused_kind(attach: &Attach) -> Kind {
    match attach.role {
        Role::Sender => Kind::Producer(Producer::new(Recipient::Relay, 0)),
        Role::Receiver => Kind::Lookup(None),
    }
}

fn is_offered(capability: &&str) -> bool {
    ["DELAYED_DELIVERY", "SHARED-SUBS"].contains(capability)
}

/// The number that no link has: it stands for no link.
const LAST_LINK: u32 = u32::MAX;

/// True if a user may send to a destination. A temporary one is a secret that its sender was told.
fn may_send(rights: &Rights, to: &Destination, client: Option<&ClientName>) -> bool {
    let rights = rights.on(to.name().as_str(), client.map(QueueName::as_str));
    rights.contains(Right::Send) || to.name().is_temporary()
}
