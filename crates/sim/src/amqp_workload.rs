//! Wishes of clients of AMQP, drawn by weight.

use std::rc::Rc;

use model::{Destination, Persistence};

use crate::Rng;
use crate::amqp_client::{AmqpClient, AmqpWish, Draft, Subscribing, Verdict};
use crate::history::DEAD_LETTERS;
use crate::registration::{NAMES, SUBSCRIBED_TO, TOPICS, name};
use crate::workload::{self, GROUP_PREFIX, QUEUES};

/// The next wish of a client, with messages of these persistences; `None`: it has to read first.
pub(crate) fn wish(
    client: &AmqpClient,
    rng: &mut Rng,
    persistences: &[Persistence],
) -> Option<AmqpWish> {
    if !client.is_ready() {
        return None;
    }
    match rng.below(100) {
        0..=34 => send(client, rng, persistences),
        35..=64 => settle(client, rng),
        65..=74 => consume(client, rng),
        75..=84 => transact(client, rng),
        85..=94 => allow(client, rng),
        95..=98 => detach(client, rng),
        _ => rng.chance(1, 4).then_some(AmqpWish::Close),
    }
}

/// A message with a body that no other has.
pub(crate) fn draft(rng: &mut Rng, persistence: Persistence) -> Draft {
    Draft {
        durable: persistence == Persistence::Persistent,
        priority: rng.pick(&[0, 4, 4, 4, 5, 9]),
        ttl: rng.pick(&[None, None, None, None, None, None, Some(1), Some(300), Some(3000)]),
        delay: rng.pick(&[0, 0, 0, 0, 0, 0, 0, 0, 20, 900]),
        send_id: None,
        body: body(rng),
    }
}

/// Some belong to a group, as their body says.
fn body(rng: &mut Rng) -> Rc<[u8]> {
    let letter = rng.pick(&[None, None, None, None, Some(b'a'), Some(b'b')]);
    let group = letter.into_iter().flat_map(|letter| GROUP_PREFIX.into_iter().chain([letter]));
    let unique = rng.draw().to_le_bytes();
    group.chain(unique).chain(workload::body(rng)).collect()
}

fn destination(rng: &mut Rng) -> Destination {
    if rng.coin() {
        Destination::Queue(name(rng.pick(&QUEUES)))
    } else {
        Destination::Topic(name(rng.pick(&TOPICS)))
    }
}

fn send(client: &AmqpClient, rng: &mut Rng, persistences: &[Persistence]) -> Option<AmqpWish> {
    let to = destination(rng);
    if rng.chance(1, 12) {
        return Some(AmqpWish::Produce { to });
    }
    let persistence = rng.pick(persistences);
    let message = draft(rng, persistence);
    let transaction = any_transaction(client, rng, 2);
    let settled = rng.chance(1, 8);
    client.can_send(&to).then_some(AmqpWish::Send { to, message, transaction, settled })
}

fn settle(client: &AmqpClient, rng: &mut Rng) -> Option<AmqpWish> {
    let held = client.held();
    if held.is_empty() {
        return consume(client, rng);
    }
    let delivery = rng.pick(&held);
    let verdict = match rng.below(12) {
        0 => Verdict::Released,
        1 | 2 => Verdict::Failed,
        3 => Verdict::Rejected,
        _ => Verdict::Accepted,
    };
    let transaction = any_transaction(client, rng, 2);
    Some(AmqpWish::Settle { delivery, verdict, transaction, settled: rng.chance(1, 4) })
}

/// An open transaction, if there is one, so many times out of three.
fn any_transaction(client: &AmqpClient, rng: &mut Rng, times: u64) -> Option<u64> {
    let open = client.transactions();
    (!open.is_empty() && rng.chance(times, 3)).then(|| rng.pick(open))
}

fn consume(client: &AmqpClient, rng: &mut Rng) -> Option<AmqpWish> {
    let credit = rng.pick(&[0, 1, 1, 2, 10]);
    if client.consumers().len() >= CONSUMERS_MAX {
        return allow(client, rng);
    }
    if rng.chance(2, 5) {
        let queue = rng.pick(&[QUEUES[0], QUEUES[1], QUEUES[2], QUEUES[3], DEAD_LETTERS]).into();
        return Some(AmqpWish::Consume { queue, credit });
    }
    Some(AmqpWish::Subscribe { to: subscribing(rng), credit })
}

fn subscribing(rng: &mut Rng) -> Subscribing {
    let durable = rng.chance(3, 4);
    let shared = rng.chance(1, 3);
    Subscribing {
        topic: rng.pick(&SUBSCRIBED_TO).into(),
        name: (durable || shared).then(|| rng.pick(&NAMES).into()),
        durable,
        shared,
        global: shared && rng.chance(1, 2),
    }
}

fn transact(client: &AmqpClient, rng: &mut Rng) -> Option<AmqpWish> {
    if !client.can_transact() {
        return None;
    }
    match any_transaction(client, rng, 2) {
        Some(transaction) => Some(AmqpWish::Discharge { transaction, fail: rng.chance(1, 4) }),
        None => Some(AmqpWish::Declare),
    }
}

fn allow(client: &AmqpClient, rng: &mut Rng) -> Option<AmqpWish> {
    let draining = client.draining();
    if !draining.is_empty() && rng.coin() {
        // It changes its mind, as browsers of JMS do, and may ask for all there is once more.
        return Some(AmqpWish::Credit { handle: rng.pick(&draining), more: rng.pick(&[1, 2]) });
    }
    let consumers = client.consumers();
    if consumers.is_empty() {
        return None;
    }
    let handle = rng.pick(&consumers);
    if rng.chance(1, 6) {
        return Some(AmqpWish::Drain { handle });
    }
    Some(AmqpWish::Credit { handle, more: rng.pick(&[1, 1, 2, 5]) })
}

fn detach(client: &AmqpClient, rng: &mut Rng) -> Option<AmqpWish> {
    let links = client.detachable();
    if links.is_empty() || rng.chance(1, 4) {
        return Some(AmqpWish::Unsubscribe { name: rng.pick(&NAMES).into() });
    }
    Some(AmqpWish::Detach { handle: rng.pick(&links), closed: rng.chance(1, 4) })
}

/// Links of one client that receive.
const CONSUMERS_MAX: usize = 5;
