//! A gateway to an engine in memory, which checks the works that it gets.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use engine::{Effects, Engine, EngineOptions};
use http_api::{
    Actor, Events, Figures, Gateway, GatewayError, Leased, LoginClient, NewConnection, Readiness,
    SegmentFigures, Settling, Step, Token, Wanted, Work,
};
use model::{
    AdminCommand, Capacity, CollectionCommand, CollectionKind, Command, Delivery, Introduction,
    LoginAnswer, LoginOffer, LoginStep, MessageId, Nanos, OneOrMany, QueueName, Reply, SessionId,
    Settlement, StorePolicy, TableAction, TableStep, ValueEdit, limits,
};

/// Its clones are one.
#[derive(Clone)]
pub(crate) struct Ours(Arc<Mutex<Broker>>, Arc<AtomicBool>, Option<LoginOffer>);

struct Broker {
    engine: Engine,
    effects: Effects,
    now: Nanos,
}

/// A topic to which nothing is published.
pub(crate) struct Silence;

impl Events for Silence {
    async fn next(&mut self) -> Option<Delivery> {
        None
    }
}

const SESSION: SessionId = SessionId(1);

/// The nonce of a message's lease, since there is one lease at most.
pub(crate) const NONCE: u64 = 1;

impl Ours {
    pub(crate) fn new() -> Self {
        let mut engine = Engine::new(EngineOptions::new(StorePolicy::Memory));
        engine.open_session(SESSION);
        let now = Nanos::from_secs(1_000_000);
        let broker = Broker { engine, effects: Effects::default(), now };
        Self(Arc::new(Mutex::new(broker)), Arc::default(), None)
    }

    /// The same with clients that log in by this offer.
    pub(crate) fn offering(&self, offer: Option<LoginOffer>) -> Self {
        Self(Arc::clone(&self.0), Arc::clone(&self.1), offer)
    }

    /// From now on the log answers nothing.
    pub(crate) fn hang(&self) {
        self.1.store(true, Ordering::Relaxed);
    }

    pub(crate) fn check(&self) {
        self.0.lock().unwrap().engine.check();
    }

    fn perform(&self, command: Command) -> Option<Reply> {
        let broker = &mut *self.0.lock().unwrap();
        broker.now = broker.now + Nanos(1_000);
        broker.engine.handle(
            broker.now,
            SESSION,
            command,
            Capacity::UNBOUNDED,
            &mut broker.effects,
        );
        let reply = broker.effects.outputs.pop().map(|output| output.reply);
        broker.effects.clear();
        reply
    }

    fn step(&self, step: Step) -> Result<Reply, GatewayError> {
        let command = match step {
            // Each by itself: what it changes a transaction would change, and there is none to
            // expect anything of.
            Step::Table(step) => table_command(step),
            Step::Put { to, message, count } => {
                assert!((1..=limits::TRANSACTION_RECORDS_MAX as u64).contains(&count));
                assert!(message.expires.is_none_or(|at| at > Nanos::ZERO));
                Command::PutTo { to, message, transaction: None }
            }
            Step::Settle { token, .. } if token.nonce != NONCE => {
                return Err(GatewayError::LeaseOver(token));
            }
            Step::Settle { token: Token { message, .. }, settling } => settle(message, settling),
            Step::Command(command) => bounded(command),
        };
        match self.perform(command) {
            Some(Reply::Refused(refusal)) => Err(GatewayError::Refused(refusal)),
            Some(reply) => Ok(reply),
            None => panic!("a command that waits"),
        }
    }
}

/// One that looks at a page of queues, not at all of them.
fn bounded(command: Command) -> Command {
    assert!(command != Command::ListQueues, "nobody asks for all names");
    if let Command::Admin(admin) = &command
        && let AdminCommand::ListQueues { max, .. } = **admin
    {
        assert!(max <= limits::PAGE_MESSAGES_MAX + 1, "a page, and one to know of more");
    }
    command
}

fn table_command(step: TableStep) -> Command {
    let (name, field) = (step.table, step.key);
    match step.action {
        TableAction::Put(value) => {
            let fields = vec![(field, value)];
            CollectionCommand::SetFields { name, fields, only_new: false }
        }
        TableAction::Add(more) => {
            CollectionCommand::EditField { name, field, edit: ValueEdit::Add(more) }
        }
        TableAction::Delete => {
            let (kind, fields) = (CollectionKind::Hash, OneOrMany::One(field));
            CollectionCommand::RemoveFields { name, kind, fields }
        }
        TableAction::Expect(_) => {
            let (kind, fields) = (CollectionKind::Hash, OneOrMany::One(field));
            CollectionCommand::FindFields { name, kind, fields }
        }
    }
    .into()
}

fn settle(message: MessageId, settling: Settling) -> Command {
    let settled = |settlement| Command::Settle { message, settlement, transaction: None };
    match settling {
        Settling::Accept => Command::Delete { message },
        Settling::Release { delay, priority } => {
            Command::Release { message, priority: priority.unwrap_or(0), delay }
        }
        Settling::Fail => settled(Settlement::Fail),
        Settling::Extend { lease } => Command::Renew { message, lease: Some(lease) },
        Settling::Bury { priority } => Command::Bury { message, priority: priority.unwrap_or(0) },
    }
}

impl Gateway for Ours {
    type Events = Silence;
    type ConnectionPermit = ();

    fn wall_time(&self, time: Nanos) -> Nanos {
        time
    }

    fn now(&self) -> Nanos {
        self.0.lock().unwrap().now
    }

    fn admit(&self, _: NewConnection) -> Option<()> {
        Some(())
    }

    fn offer(&self, is_private: bool, _client: &Introduction) -> Option<LoginOffer> {
        self.2.map(|offer| LoginOffer { password: offer.password && is_private, ..offer })
    }

    async fn login(&self, step: LoginStep, _: LoginClient) -> LoginAnswer {
        let granted = |user: &str| LoginAnswer::Granted {
            rights: model::Rights::everything(user).into(),
            proof: Vec::new(),
        };
        match step {
            LoginStep::Password { user, .. } if &*user == "busy" => LoginAnswer::Busy,
            LoginStep::Password { user, password } if password.expose() == b"secret" => {
                granted(&user)
            }
            LoginStep::Token { token, .. } if token.expose() == b"good" => granted("ci"),
            LoginStep::Certificate { .. } | LoginStep::Anonymous => granted("guest"),
            _ => LoginAnswer::Refused,
        }
    }

    async fn ask(&self, _actor: Actor, work: Work) -> Result<Vec<Reply>, GatewayError> {
        if self.1.load(Ordering::Relaxed) {
            return pending().await;
        }
        if work.atomic {
            let fits = work.steps.iter().all(|step| match step {
                Step::Put { .. } | Step::Table(_) => true,
                Step::Settle { settling, .. } => match settling {
                    Settling::Accept | Settling::Fail => true,
                    Settling::Release { delay, priority } => delay.is_none() && priority.is_none(),
                    _ => false,
                },
                Step::Command(_) => false,
            });
            assert!(fits, "{work:?}");
            for step in work.steps {
                self.step(step)?;
            }
            return Ok(Vec::new());
        }
        work.steps.into_iter().map(|step| self.step(step)).collect()
    }

    async fn receive(&self, _actor: Actor, wanted: Wanted) -> Result<Vec<Leased>, GatewayError> {
        assert!((1..=limits::PAGE_MESSAGES_MAX).contains(&wanted.max));
        assert!(wanted.lease > Nanos::ZERO);
        let leased = (1..8).filter_map(|number| {
            let message = MessageId(number);
            match self.perform(Command::Lease { message }) {
                Some(Reply::Delivered(delivery)) => {
                    Some(Leased { token: Token { message, nonce: NONCE }, delivery: *delivery })
                }
                _ => None,
            }
        });
        Ok(leased.take(wanted.max).collect())
    }

    fn give_back(&self, tokens: Vec<Token>) {
        for token in tokens {
            self.perform(settle(token.message, Settling::Fail));
        }
    }

    async fn follow(&self, _actor: Actor, _topic: QueueName) -> Result<Silence, GatewayError> {
        Ok(Silence)
    }

    fn readiness(&self) -> Readiness {
        Readiness::Ready
    }

    fn figures(&self) -> Figures {
        Figures::default()
    }

    async fn segments(&self) -> Vec<SegmentFigures> {
        Vec::new()
    }
}
