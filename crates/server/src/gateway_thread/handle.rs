//! The server as HTTP sees it.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_api::{
    Actor, Adjustable, Events, Figures, Following, GatewayClient, GatewayError, Leased,
    LoginClient, NewConnection, Readiness, SegmentFigures, Token, WINDOW, Wanted, Work,
};
use input::ProxyFault;
use model::{
    Delivery, Introduction, LoginAnswer, LoginOffer, LoginStep, Nanos, QueueName, Refusal, Reply,
    limits,
};

use crate::address::scheme;
use crate::audit::LoginTrial;
use crate::config::Protocol;
use crate::connection_permits::{ConnectionPermit, Exit, Origin};
use crate::gateway_thread::figures;
use crate::hub::{Hub, Phase};
use crate::tls::names;
use crate::user_quotas::Seat;

/// A handle to the server for tasks of HTTP. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Gateway {
    hub: Arc<Hub>,
    client: GatewayClient,
}

impl Gateway {
    pub(crate) fn new(hub: Arc<Hub>) -> Self {
        let client = GatewayClient::new(Arc::clone(&hub.requests), WINDOW);
        Self { hub, client }
    }
}

impl Gateway {
    /// The place of a request among those of its user. A user that is ahead of its rate waits.
    async fn seat(
        &self,
        actor: &Actor,
        commands: u64,
        bytes: u64,
    ) -> Result<Option<Seat>, GatewayError> {
        let refused = |reached| GatewayError::Refused(Refusal::QuotaReached(Box::new(reached)));
        let Some(rights) = actor.principal.rights() else { return Ok(None) };
        let seat = self.hub.user_quotas().seat(rights).map_err(refused)?;
        let now = self.hub.clock.now();
        if let Some(until) = seat.charge_request(now, commands, bytes).map_err(refused)? {
            tokio::time::sleep(Duration::from_nanos(until.since(now).0)).await;
        }
        Ok(Some(seat))
    }
}

/// The events of a topic, and the place of their request.
pub(crate) struct SeatedEvents {
    events: Following,
    _seat: Option<Seat>,
}

impl Events for SeatedEvents {
    async fn next(&mut self) -> Option<Delivery> {
        self.events.next().await
    }

    fn end(&self) -> Option<String> {
        self.events.end()
    }
}

impl http_api::Gateway for Gateway {
    type Events = SeatedEvents;
    type ConnectionPermit = HttpPermit;

    fn now(&self) -> Nanos {
        self.hub.now()
    }

    fn wall_time(&self, time: Nanos) -> Nanos {
        self.hub.wall_clock.wall_time(time)
    }

    fn adjustable(&self) -> Option<Adjustable> {
        Some(self.hub.http_options())
    }

    fn admit(&self, connection: NewConnection) -> Option<HttpPermit> {
        let NewConnection { peer, is_proxy, is_local, hangup } = connection;
        let now = self.hub.clock.now();
        let origin = if is_proxy { Origin::Proxy } else { Origin::of(peer) };
        let exit = Exit::Task(hangup);
        let permit = self.hub.admit(now, origin, exit, is_local && !is_proxy)?;
        Some(HttpPermit { permit: Mutex::new(permit), hub: Arc::clone(&self.hub) })
    }

    fn turn_away(&self, by_tls: bool, client: Option<SocketAddr>) {
        let (hub, scheme) = (&self.hub, scheme(Protocol::Http, by_tls));
        hub.turned_away.note_stranger(hub.log, hub.clock.now(), scheme, client);
    }

    fn header_failed(&self, by_tls: bool, proxy: SocketAddr, fault: Option<ProxyFault>) {
        let (hub, scheme) = (&self.hub, scheme(Protocol::Http, by_tls));
        hub.turned_away.note_proxy(hub.log, hub.clock.now(), scheme, proxy, fault);
    }

    fn handshake_failed(&self, from: Option<SocketAddr>, error: &io::Error) {
        // Any other error says that the client has gone.
        let Some(error) = error.get_ref().and_then(|error| error.downcast_ref()) else { return };
        let endpoint = from.map_or_else(String::new, |from| format!(" {from}"));
        let name = format!("{}{endpoint}", Protocol::Http.name_by_tls());
        self.hub.tell_failed_handshake(self.hub.clock.now(), &name, error);
    }

    fn offer(&self, is_private: bool, client: &Introduction) -> Option<LoginOffer> {
        self.hub.logins().map(|logins| logins.offer(is_private, client))
    }

    async fn login(&self, step: LoginStep, client: LoginClient) -> LoginAnswer {
        let address = client.address.map(|from| from.ip().to_canonical());
        let names = client.certificate.map(|it| names(&it.as_ref().into())).unwrap_or_default();
        match self.hub.logins() {
            Some(logins) => {
                let trial = LoginTrial::of(&step, &client.introduction);
                let answer = logins.answer(step, address, names.into(), client.introduction).await;
                let answer = self.hub.reviewed(answer);
                // Each request logs in: only failures are told.
                if !matches!(answer, LoginAnswer::Granted { .. }) {
                    self.hub.note_login(client.address, "http", &trial, &answer);
                }
                answer
            }
            None => LoginAnswer::Refused,
        }
    }

    async fn ask(&self, actor: Actor, work: Work) -> Result<Vec<Reply>, GatewayError> {
        let _seat = self.seat(&actor, work.commands(), work.body_bytes()).await?;
        self.client.ask(actor, work).await
    }

    async fn receive(&self, actor: Actor, wanted: Wanted) -> Result<Vec<Leased>, GatewayError> {
        let _seat = self.seat(&actor, 1, 0).await?;
        self.client.receive(actor, wanted).await
    }

    fn give_back(&self, tokens: Vec<Token>) {
        self.client.give_back(tokens);
    }

    async fn follow(&self, actor: Actor, topic: QueueName) -> Result<SeatedEvents, GatewayError> {
        let seat = self.seat(&actor, 1, 0).await?;
        Ok(SeatedEvents { events: self.client.follow(actor, topic).await?, _seat: seat })
    }

    fn readiness(&self) -> Readiness {
        if self.hub.phase() > Phase::Serving {
            return Readiness::Stopping;
        }
        let core = self.hub.lock();
        if core.commons.draining.has_begun() {
            return Readiness::Draining;
        }
        let usual = self.hub.limits().message_bytes.unwrap_or(limits::MESSAGE_BYTES_DEFAULT);
        let is_full = core.broker.room() < usual as u64;
        if is_full { Readiness::Full } else { Readiness::Ready }
    }

    fn figures(&self) -> Figures {
        let broker = self.hub.lock().broker.statistics();
        figures::of(broker, &self.hub.counters())
    }

    async fn segments(&self) -> Vec<SegmentFigures> {
        let mut explaining = self.hub.lock().broker.explain();
        while self.hub.lock().broker.go_on_explaining(&mut explaining) {
            tokio::task::yield_now().await;
        }
        explaining.end().into_iter().map(figures::of_segment).collect()
    }
}

/// The permit of a connection of HTTP.
pub(crate) struct HttpPermit {
    permit: Mutex<ConnectionPermit>,
    hub: Arc<Hub>,
}

impl http_api::ConnectionPermit for HttpPermit {
    fn note_request(&self) {
        self.permit.lock().expect(POISONED).note_command();
    }

    fn count_for(&self, client: SocketAddr) -> bool {
        let mut permit = self.permit.lock().expect(POISONED);
        self.hub.count_for(self.hub.clock.now(), &mut permit, client)
    }
}

const POISONED: &str = "invariant: no thread panics with a permit";
