//! The end of a world: a shutdown in order loses nothing, and everything is taken out and deleted.

use std::collections::BTreeSet;
use std::rc::Rc;

use journal::Disk;
use model::{Nanos, StorePolicy, Subscription};

use super::{ALL, DELAYS_SECONDS_MAX, SETTLE_ROUNDS_MAX, World};
use crate::history::{DEAD_LETTERS, SCARCE_RETRY};
use crate::workload::{Character, QUEUES};
use crate::{AmqpWish, Client, Fall, Subscribing, Verdict, Wish};

impl<D: Disk + 'static> World<D> {
    /// The end, over as many falls as are still planned.
    pub(super) fn finish(&mut self) {
        self.trace(|| "no more random faults".to_owned());
        self.faulty.inject_at_random(0, &[]);
        while self.wind_up().is_none() {
            assert!(self.faulty.has_struck() || self.fallen.is_some(), "it fell without a fault");
        }
    }

    /// Everything is answered, a shutdown loses nothing, all is taken out. `None`: it fell.
    fn wind_up(&mut self) -> Option<()> {
        if self.server.is_none() {
            self.recover(false);
        }
        self.settle()?;
        self.faulty.set_quota(None);
        self.shut_down()?;
        self.recover(false);
        self.drain()?;
        self.shut_down()?;
        self.recover(false);
        assert_eq!(self.outside.oracle.ids().count(), 0, "everything was deleted");
        Some(())
    }

    /// Ends the process as a signal does. Not even a power cut behind it may take anything.
    fn shut_down(&mut self) -> Option<()> {
        self.trace(|| "shuts down".to_owned());
        for id in self.client_ids() {
            let server = self.server.as_mut().expect("invariant: it runs");
            server.disconnect(id, &mut self.outside);
        }
        while self.server().has_leaving() {
            self.turn();
            self.quiesce()?;
            // A slow call may hold up clients that are leaving.
            self.pass(Nanos::from_millis(50));
            self.server.as_ref()?;
        }
        let server = self.server.as_mut().expect("invariant: it runs");
        server.begin_shutdown(&mut self.outside);
        for _ in 0..SETTLE_ROUNDS_MAX {
            self.turn();
            self.quiesce()?;
            if self.server().broker.is_idle() {
                break;
            }
            self.pass(Nanos::from_millis(50));
            self.server.as_ref()?;
        }
        assert!(self.server().broker.is_idle(), "the shutdown never ends");
        if self.scenario.policy != StorePolicy::Memory {
            self.outside.oracle.all_told();
            self.outside.keys.all_told();
        }
        self.fall(Fall::Power);
        self.fallen = Some((Fall::Process, self.now));
        Some(())
    }

    /// Clients take out every message there is: first those of subscriptions, which end then.
    fn drain(&mut self) -> Option<()> {
        // Dead letters that were hidden for want of room come back.
        self.pass(SCARCE_RETRY + Nanos::SECOND);
        self.settle()?;
        self.drain_keys()?;
        self.drain_subscriptions()?;
        let id = self.connect(Character::Worker);
        let watched = QUEUES.iter().chain([&DEAD_LETTERS]);
        let watched: BTreeSet<Rc<str>> = watched.map(|queue| Rc::from(*queue)).collect();
        for queue in &watched {
            self.ask(id, Wish::Watch { queue: queue.clone() })?;
            self.ask(id, Wish::Use { queue: queue.clone() })?;
            self.ask(id, Wish::Kick { queue: queue.clone(), max: 1000 })?;
            self.ask(id, Wish::Kick { queue: queue.clone(), max: 1000 })?;
        }
        let watched = Rc::new(watched);
        let left: Vec<u64> = self.outside.oracle.ids().collect();
        for _ in left {
            self.ask(id, Wish::Reserve { watched: watched.clone(), timeout: Some(0) })?;
            let held = self.outside.clients.get(&id).and_then(Client::last_held);
            self.ask(id, Wish::Delete { id: held.expect("a message is ready") })?;
        }
        assert_eq!(self.outside.oracle.ids().count(), 0, "everything was delivered");
        Some(())
    }

    fn drain_keys(&mut self) -> Option<()> {
        let id = self.connect_redis();
        for name in self.outside.keys.names() {
            self.ask_redis(id, &[crate::words(&["DEL", &name])])?;
        }
        assert!(self.outside.keys.names().is_empty(), "all were deleted");
        Some(())
    }

    fn drain_subscriptions(&mut self) -> Option<()> {
        let all: Vec<Subscription> = self.outside.oracle.subscriptions().cloned().collect();
        for subscription in all {
            let name = subscription.name.expect("invariant: a durable one has a name");
            let container = name.client.as_ref().map_or("anybody", |client| client.as_str());
            let id = self.connect_amqp(container);
            self.settle()?;
            let to = Subscribing {
                topic: subscription.topic.as_str().into(),
                name: Some(name.name.as_str().into()),
                durable: true,
                shared: subscription.shared,
                global: name.client.is_none(),
            };
            self.ask_amqp(id, AmqpWish::Subscribe { to, credit: ALL })?;
            for _ in 0..DELAYS_SECONDS_MAX {
                self.accept_all(id)?;
                self.pass(Nanos::from_secs(1));
                self.settle()?;
            }
            self.accept_all(id)?;
            let link = self.amqp_client(id).consumers().pop().expect("it was attached");
            self.ask_amqp(id, AmqpWish::Detach { handle: link, closed: true })?;
        }
        assert_eq!(self.outside.oracle.subscriptions().count(), 0, "all were ended");
        Some(())
    }

    fn accept_all(&mut self, id: u64) -> Option<()> {
        for delivery in self.amqp_client(id).held() {
            let (verdict, transaction) = (Verdict::Accepted, None);
            let accept = AmqpWish::Settle { delivery, verdict, transaction, settled: false };
            self.amqp_client(id).send(accept);
        }
        self.settle()
    }
}
