//! One simulated client: what it sends, what it still expects, what it holds.
//!
//! It speaks the protocol over two byte streams and checks that each reply is the one that the
//! engine gave to its request, byte for byte and in order.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use model::{Command, Reply};

use crate::{Answer, Rng, Wish, workload};

/// A client and its end of one connection.
#[derive(Debug)]
pub struct Client {
    /// Its number, never used twice.
    pub id: u64,
    /// Bytes that the server has not received yet.
    pub outbound: VecDeque<u8>,
    character: workload::Character,
    used: Rc<str>,
    watched: Rc<BTreeSet<Rc<str>>>,
    held: Vec<u64>,
    sent: VecDeque<Sent>,
    inbound: Vec<u8>,
    last: Option<Answer>,
}

/// A wish that is under way.
#[derive(Debug)]
struct Sent {
    wish: Wish,
    /// What it must read when the wish is a setting; else the engine decides.
    setting: Option<String>,
    heard: Heard,
}

/// How far the server has come with a wish.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    /// Not asked the engine yet.
    Nothing,
    /// Asked the engine.
    Command,
    /// The engine answered: what the client must read, and the change that this depends on.
    Reply(Answer, Option<usize>),
}

impl Client {
    /// A client that has just connected.
    #[must_use]
    pub fn new(id: u64, character: workload::Character) -> Self {
        let default: Rc<str> = Rc::from(workload::QUEUES[0]);
        Self {
            id,
            outbound: VecDeque::new(),
            character,
            watched: Rc::new(BTreeSet::from([default.clone()])),
            used: default,
            held: Vec::new(),
            sent: VecDeque::new(),
            inbound: Vec::new(),
            last: None,
        }
    }

    /// How many of its requests are unanswered.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.sent.len()
    }

    /// Whether nothing is unanswered but, at most, a wait for a message.
    #[must_use]
    pub fn is_content(&self) -> bool {
        self.sent.front().is_none_or(|sent| {
            let waits = matches!(sent.wish, Wish::Reserve { timeout: None, .. });
            waits && sent.heard == Heard::Command
        })
    }

    /// The message that it came to hold last.
    #[must_use]
    pub fn last_held(&self) -> Option<u64> {
        self.held.last().copied()
    }

    /// What it read last.
    #[must_use]
    pub fn last_answer(&self) -> Option<Answer> {
        self.last.clone()
    }

    /// Something that it may like; `known` are ids it may name.
    #[must_use]
    pub fn wish(&self, rng: &mut Rng, known: &[u64]) -> Wish {
        workload::wish(self.character, rng, &self.used, &self.watched, &self.held, known)
    }

    /// Sends this.
    pub fn send(&mut self, wish: Wish) {
        let setting = self.set(&wish);
        self.outbound.extend(wish.encode());
        self.sent.push_back(Sent { wish, setting, heard: Heard::Nothing });
    }

    /// The session asked the engine on behalf of the next wish.
    ///
    /// # Panics
    /// When that is not what the client meant.
    pub fn commanded(&mut self, command: &Command) {
        let next = self
            .sent
            .iter_mut()
            .find(|sent| sent.wish.concerns_messages() && sent.heard == Heard::Nothing);
        let next = next.unwrap_or_else(|| panic!("client {} never asked for {command:?}", self.id));
        assert!(next.wish.is_meant_by(command), "{:?} became {command:?}", next.wish);
        next.heard = Heard::Command;
    }

    /// The engine answered the wish that it was asked for.
    ///
    /// # Panics
    /// When it was asked for none.
    pub fn answered(&mut self, reply: &Reply, judge: impl FnOnce(&Wish) -> Option<usize>) {
        let asked = self.sent.iter_mut().find(|sent| sent.heard == Heard::Command);
        let asked = asked.unwrap_or_else(|| panic!("client {} awaits no {reply:?}", self.id));
        let change = judge(&asked.wish);
        asked.heard = Heard::Reply(asked.wish.expects(reply), change);
    }

    /// The client reads bytes; returns the replies that this completes, and the change that each
    /// depends on.
    pub fn read(&mut self, bytes: &[u8]) -> Vec<(Answer, Option<usize>)> {
        self.inbound.extend_from_slice(bytes);
        let mut answers = Vec::new();
        while let Some((answer, length)) = Answer::parse(&self.inbound) {
            self.inbound.drain(..length);
            let change = self.check(&answer);
            answers.push((answer, change));
        }
        answers
    }

    /// Keeps its own books of the queues it uses and watches.
    fn set(&mut self, wish: &Wish) -> Option<String> {
        match wish {
            Wish::Use { queue } => {
                self.used = queue.clone();
                return Some(format!("USING {queue}"));
            }
            Wish::Watch { queue } => {
                Rc::make_mut(&mut self.watched).insert(queue.clone());
            }
            Wish::Ignore { queue } => {
                if self.watched.len() == 1 && self.watched.contains(queue) {
                    return Some("NOT_IGNORED".to_owned());
                }
                Rc::make_mut(&mut self.watched).remove(queue);
            }
            _ => return None,
        }
        Some(format!("WATCHING {}", self.watched.len()))
    }

    fn check(&mut self, answer: &Answer) -> Option<usize> {
        let Some(sent) = self.sent.pop_front() else {
            panic!("client {} asked for nothing and got {answer:?}", self.id);
        };
        let change = match (&sent.wish, sent.heard) {
            (_, Heard::Reply(expected, change)) => {
                assert_eq!(*answer, expected, "client {} asked {:?}", self.id, sent.wish);
                change
            }
            (wish, _) => {
                assert_eq!(Some(&answer.line), sent.setting.as_ref(), "{wish:?}");
                None
            }
        };
        self.learn(&sent.wish, answer);
        self.last = Some(answer.clone());
        change
    }

    /// Keeps its own books of what it holds.
    fn learn(&mut self, wish: &Wish, answer: &Answer) {
        let mut words = answer.line.split(' ');
        let (word, id) = (words.next(), words.next().and_then(|id| id.parse().ok()));
        match (word, id) {
            (Some("RESERVED"), Some(id)) => self.held.push(id),
            (Some("DELETED" | "RELEASED" | "BURIED" | "NOT_FOUND"), _) => {
                self.held.retain(|id| Some(*id) != wish.message());
            }
            _ => {}
        }
    }
}
