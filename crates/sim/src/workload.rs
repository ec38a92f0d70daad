//! Wishes of clients of beanstalkd's protocol, drawn by weight.

use std::collections::BTreeSet;
use std::rc::Rc;

use model::{Nanos, Persistence, Redelivery, Thousandths};

use crate::{Rng, Which, Wish};

/// The queues there are; the first is the one that every connection begins with.
pub(crate) const QUEUES: [&str; 4] = ["default", "a", "b", "a-rather-long-name.of_a/queue"];

/// True if a released message of this queue goes behind all ready ones.
pub(crate) fn releases_to_the_back(queue: &str) -> bool {
    queue == QUEUES[1]
}

/// True if a message in memory alone becomes a dead letter there as well.
pub(crate) fn parks_all(queue: &str) -> bool {
    queue == QUEUES[2]
}

/// How long a message that comes back to a queue is hidden.
pub(crate) fn redelivery(queue: &str) -> Redelivery {
    if queue != QUEUES[3] {
        return Redelivery::default();
    }
    let (factor, jitter) = (Thousandths(1_500), Thousandths(250));
    Redelivery { delay: Some(Nanos::from_millis(40)), factor, delay_max: None, jitter }
}

/// The commands that a client mostly sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Character {
    /// Puts.
    Producer,
    /// Reserves and settles.
    Worker,
    /// Reserves and releases, over and over.
    Returner,
    /// Kicks, pauses, peeks, deletes messages that it does not hold.
    Meddler,
    /// All of it.
    Anyone,
}

impl Character {
    /// Any of them.
    pub fn draw(rng: &mut Rng) -> Self {
        rng.pick(&[Self::Producer, Self::Worker, Self::Returner, Self::Meddler, Self::Anyone])
    }

    /// Weights of: put, reserve, settle, meddle, look, move to another queue.
    const fn weights(self) -> [u64; 6] {
        match self {
            Self::Producer => [20, 0, 0, 1, 1, 2],
            Self::Worker => [1, 10, 20, 1, 1, 2],
            Self::Returner => [2, 10, 20, 0, 0, 1],
            Self::Meddler => [3, 2, 2, 14, 10, 2],
            Self::Anyone => [6, 4, 6, 3, 1, 1],
        }
    }
}

/// The next wish of such a client.
pub(crate) fn wish(
    character: Character,
    rng: &mut Rng,
    used: &Rc<str>,
    watched: &Rc<BTreeSet<Rc<str>>>,
    held: &[u64],
    known: &[u64],
) -> Wish {
    let weights = character.weights();
    let mut draw = rng.below(weights.iter().sum());
    let kind = weights.iter().position(|weight| {
        let here = draw < *weight;
        draw = draw.saturating_sub(*weight);
        here
    });
    match kind {
        Some(0) => put(rng, used),
        Some(2) if !held.is_empty() => {
            let id = any(rng, held);
            settle(character, rng, id)
        }
        Some(1 | 2) => reserve(rng, watched),
        Some(3) => {
            let id = target(rng, held, known);
            meddle(rng, used, id)
        }
        Some(4) => {
            let id = target(rng, held, known);
            look(rng, used, id)
        }
        _ => turn(rng),
    }
}

/// A put with a body that no other has.
pub(crate) fn put(rng: &mut Rng, queue: &Rc<str>) -> Wish {
    Wish::Put {
        queue: queue.clone(),
        priority: priority(rng),
        delay: rng.pick(&[0, 0, 0, 0, 0, 0, 1, 3]),
        lease: rng.pick(&[0, 1, 2, 5, 60]),
        persistence: Persistence::Persistent,
        body: body(rng).into(),
    }
}

fn reserve(rng: &mut Rng, watched: &Rc<BTreeSet<Rc<str>>>) -> Wish {
    let timeout = rng.pick(&[None, Some(0), Some(0), Some(1), Some(3)]);
    Wish::Reserve { watched: watched.clone(), timeout }
}

fn settle(character: Character, rng: &mut Rng, id: u64) -> Wish {
    let release = Wish::Release { id, priority: priority(rng), delay: rng.pick(&[0, 0, 0, 1, 4]) };
    if character == Character::Returner && rng.chance(4, 5) {
        return release;
    }
    match rng.below(8) {
        0 => release,
        1 => Wish::Bury { id, priority: priority(rng) },
        2 => Wish::Touch { id },
        _ => Wish::Delete { id },
    }
}

fn meddle(rng: &mut Rng, queue: &Rc<str>, id: u64) -> Wish {
    match rng.below(7) {
        0 | 1 => Wish::Kick { queue: queue.clone(), max: rng.pick(&[0, 1, 2, 100]) },
        2 => Wish::KickJob { id },
        3 => Wish::Pause { queue: rng.pick(&QUEUES).into(), seconds: rng.pick(&[0, 1, 2]) },
        4 | 5 => Wish::ReserveJob { id },
        _ => Wish::Delete { id },
    }
}

/// Changes nothing.
fn look(rng: &mut Rng, queue: &Rc<str>, id: u64) -> Wish {
    let which = rng.pick(&[Which::Ready, Which::Delayed, Which::Buried]);
    match rng.below(9) {
        0 | 1 => Wish::Peek { id },
        2 | 3 => Wish::PeekQueue { queue: queue.clone(), which },
        4 => Wish::StatsMessage { id },
        5 => Wish::StatsQueue { queue: queue.clone() },
        6 => Wish::Stats,
        7 => Wish::ListQueues,
        _ => rng.pick(&[&Wish::ListUsed, &Wish::ListWatched]).clone(),
    }
}

fn turn(rng: &mut Rng) -> Wish {
    let queue = Rc::from(rng.pick(&QUEUES));
    match rng.below(4) {
        0 | 1 => Wish::Use { queue },
        2 => Wish::Watch { queue },
        _ => Wish::Ignore { queue },
    }
}

fn priority(rng: &mut Rng) -> u32 {
    rng.pick(&[0, 1, 1, 1, 1023, 1024, u32::MAX])
}

/// Mostly short; some span blocks. The first bytes make it unlike any other.
pub(crate) fn body(rng: &mut Rng) -> Vec<u8> {
    let length = match rng.below(20) {
        0 => 0,
        1 => rng.between(4000, 4200),
        2 => rng.between(5000, BODY_BYTES_MAX as u64),
        _ => rng.between(1, 200),
    };
    let mut body = Vec::new();
    while body.len() < length as usize {
        body.extend_from_slice(&rng.draw().to_le_bytes());
    }
    body.truncate(length as usize);
    // Line ends and zeros must pass like anything else.
    if rng.chance(1, 4) {
        body.iter_mut().skip(16).zip(b"\r\n\0\0\r\nquit\r\n").for_each(|(byte, new)| *byte = *new);
    }
    body
}

/// The beginning of the body of a message that belongs to a group.
pub(crate) const GROUP_PREFIX: [u8; 6] = *b"group ";

/// The letter of the group of a message with this body.
pub(crate) fn group_of(body: &[u8]) -> Option<u8> {
    body.strip_prefix(&GROUP_PREFIX)?.first().copied()
}

fn any(rng: &mut Rng, ids: &[u64]) -> u64 {
    if ids.is_empty() { 1 } else { rng.pick(ids) }
}

fn target(rng: &mut Rng, held: &[u64], known: &[u64]) -> u64 {
    match rng.below(8) {
        0 => any(rng, held),
        1 => rng.between(1, 50),
        _ => any(rng, known),
    }
}

/// The largest body that clients put.
pub(crate) const BODY_BYTES_MAX: usize = 12_000;
