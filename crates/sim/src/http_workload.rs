//! Wishes of clients of HTTP, drawn by weight.

use http_api::{Settling, Token};
use model::{Destination, Nanos, Persistence};

use crate::Rng;
use crate::history::DEAD_LETTERS;
use crate::http_client::{HttpClient, HttpWish, Post};
use crate::registration::{TOPICS, name};
use crate::workload::{self, QUEUES};

/// The next wish of a client, with messages of these persistences and leases that any client knows.
pub(crate) fn wish(
    client: &HttpClient,
    rng: &mut Rng,
    persistences: &[Persistence],
    leases: &[Token],
) -> HttpWish {
    match rng.below(100) {
        0..=34 => send(rng, persistences),
        35..=59 => settle(rng, leases).unwrap_or_else(|| receive(rng)),
        60..=79 => receive(rng),
        80..=92 => follow(client, rng),
        _ => HttpWish::Browse { queue: rng.pick(&places()).into() },
    }
}

fn send(rng: &mut Rng, persistences: &[Persistence]) -> HttpWish {
    let to = if rng.coin() {
        Destination::Queue(name(rng.pick(&QUEUES)))
    } else {
        Destination::Topic(name(rng.pick(&TOPICS)))
    };
    let ttl = rng.pick(&[None, None, None, None, None, None, Some(1), Some(300), Some(3000)]);
    let post = Post {
        persistence: rng.pick(persistences),
        priority: rng.pick(&[0, 4, 4, 4, 5, 9]) * 256,
        ttl: ttl.map(Nanos::from_millis),
        delay: Nanos::from_millis(rng.pick(&[0, 0, 0, 0, 0, 0, 0, 0, 20, 900])),
        send_id: None,
        body: rng.draw().to_le_bytes().into_iter().chain(workload::body(rng)).collect(),
    };
    HttpWish::Send { to, post }
}

fn receive(rng: &mut Rng) -> HttpWish {
    HttpWish::Receive {
        queue: rng.pick(&places()).into(),
        max: rng.pick(&[1, 1, 2, 5]),
        wait: Nanos::from_millis(rng.pick(&[0, 0, 10, 1000, 60_000])),
        lease: Nanos::from_millis(rng.pick(&[5, 1000, 30_000, 30_000])),
    }
}

fn settle(rng: &mut Rng, leases: &[Token]) -> Option<HttpWish> {
    let token = (!leases.is_empty()).then(|| rng.pick(leases))?;
    let how = match rng.below(12) {
        0 | 1 => Settling::Fail,
        // Another than it had: that it goes to the end of its line, no recovery shows otherwise.
        2 => {
            let priority = Some(rng.draw() as u32);
            let delay = Some(Nanos::from_secs(rng.pick(&[0, 0, 1])));
            Settling::Release { delay, priority }
        }
        3 => Settling::Bury { priority: None },
        4 => Settling::Extend { lease: Nanos::from_millis(rng.pick(&[20, 5000])) },
        _ => Settling::Accept,
    };
    Some(HttpWish::Settle { token, how })
}

fn follow(client: &HttpClient, rng: &mut Rng) -> HttpWish {
    if client.follows() {
        HttpWish::Leave
    } else {
        HttpWish::Follow { topic: rng.pick(&TOPICS).into() }
    }
}

/// Queues from which something may be had.
fn places() -> [&'static str; 5] {
    let [first, second, third, fourth] = QUEUES;
    [first, second, third, fourth, DEAD_LETTERS]
}
