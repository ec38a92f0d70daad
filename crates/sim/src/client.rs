//! One simulated client: the wishes that it sends, the answers that it still expects, the jobs that
//! it holds.
//!
//! It speaks the protocol over two byte streams. It checks that each reply is the one that the
//! engine gave to its request, byte for byte and in order.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use model::{Command, Nanos, Reply};

use crate::history::Changes;
use crate::{Answer, Rng, Wish, workload};

/// A client and its end of one connection.
#[derive(Debug)]
pub struct Client {
    /// Its number, never used twice.
    pub id: u64,
    /// Bytes that the server has not received yet.
    pub outbound: VecDeque<u8>,
    /// It sends nothing more and reads on.
    half_closed: bool,
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
    /// The answer that the client must read if the wish is a setting; else the engine decides.
    setting: Option<Answer>,
    progress: Progress,
}

/// How far the server has come with a wish.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    /// Not asked the engine yet.
    Unasked,
    /// Asked the engine.
    Asked,
    /// The engine answered: the answer that the client must read, and the changes that it reflects.
    Answered(Answer, Changes),
}

impl Client {
    /// A client that has just connected.
    #[must_use]
    pub fn new(id: u64, character: workload::Character) -> Self {
        let default: Rc<str> = Rc::from(workload::QUEUES[0]);
        Self {
            id,
            outbound: VecDeque::new(),
            half_closed: false,
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

    /// It will send nothing more: the server hears of that behind everything it has sent.
    pub fn half_close(&mut self) {
        self.half_closed = true;
    }

    /// True if it sends nothing more.
    #[must_use]
    pub fn is_half_closed(&self) -> bool {
        self.half_closed
    }

    /// True if nothing is unanswered but, at most, a wait for a message. A client that sends
    /// nothing more waits for nothing: the server ends its wait.
    #[must_use]
    pub fn is_content(&self) -> bool {
        if self.half_closed {
            return self.sent.is_empty();
        }
        self.sent.front().is_none_or(|sent| {
            let waits = matches!(sent.wish, Wish::Reserve { timeout: None, .. });
            waits && sent.progress == Progress::Asked
        })
    }

    /// The message that it came to hold last.
    #[must_use]
    pub fn last_held(&self) -> Option<u64> {
        self.held.last().copied()
    }

    /// The answer that it read last.
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
        assert!(!self.half_closed, "who closed its half sends nothing");
        self.outbound.extend(wish.encode());
        self.sent.push_back(Sent { wish, setting, progress: Progress::Unasked });
    }

    /// The session asked the engine on behalf of the next wish. A wish that the protocol cannot
    /// express goes into the command here, as a session of another protocol would put it.
    ///
    /// # Panics When the command is not the one that the client meant.
    pub fn commanded(&mut self, command: &mut Command) {
        let next = self
            .sent
            .iter_mut()
            .find(|sent| sent.wish.concerns_messages() && sent.progress == Progress::Unasked);
        let next = next.unwrap_or_else(|| panic!("client {} never asked for {command:?}", self.id));
        if self.half_closed
            && let Command::Receive { wait: Some(Nanos::ZERO), .. } = command
            && let Wish::Reserve { timeout, .. } = &mut next.wish
        {
            *timeout = Some(0);
        }
        assert!(next.wish.is_meant_by(command), "{:?} became {command:?}", next.wish);
        next.progress = Progress::Asked;
        if let (Wish::Put { persistence, .. }, Command::Put { message, .. }) = (&next.wish, command)
        {
            message.persistence = *persistence;
        }
    }

    /// The engine answered the wish that it was asked for.
    ///
    /// # Panics
    /// When it was asked for none.
    pub fn answered(&mut self, reply: &Reply, judge: impl FnOnce(&Wish) -> Changes) {
        let asked = self.sent.iter_mut().find(|sent| sent.progress == Progress::Asked);
        let asked = asked.unwrap_or_else(|| panic!("client {} awaits no {reply:?}", self.id));
        let endless = matches!(asked.wish, Wish::Reserve { timeout: None, .. });
        let in_vain = endless && matches!(reply, Reply::TimedOut { .. });
        assert!(!in_vain || self.half_closed, "client {} would have waited on", self.id);
        let changes = judge(&asked.wish);
        asked.progress = Progress::Answered(asked.wish.expects(reply), changes);
    }

    /// The wish that the engine was asked for and has not answered.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn asking(&self) -> &Wish {
        let asked = self.sent.iter().find(|sent| sent.progress == Progress::Asked);
        let asked = asked.unwrap_or_else(|| panic!("client {} asks for nothing", self.id));
        &asked.wish
    }

    /// The client reads bytes; returns the replies that this completes, and the changes that each
    /// reflects.
    pub fn read(&mut self, bytes: &[u8]) -> Vec<(Answer, Changes)> {
        self.inbound.extend_from_slice(bytes);
        let mut answers = Vec::new();
        while let Some((answer, length)) = Answer::parse(&self.inbound) {
            self.inbound.drain(..length);
            let changes = self.check(&answer);
            answers.push((answer, changes));
        }
        answers
    }

    /// Keeps its own books of the queues it uses and watches.
    fn set(&mut self, wish: &Wish) -> Option<Answer> {
        let word = |line| Some(Answer { line, body: None });
        match wish {
            Wish::Use { queue } => {
                self.used = queue.clone();
                return word(format!("USING {queue}"));
            }
            Wish::ListUsed => return word(format!("USING {}", self.used)),
            Wish::ListWatched => return Some(Answer::list(&*self.watched)),
            Wish::Watch { queue } => {
                Rc::make_mut(&mut self.watched).insert(queue.clone());
            }
            Wish::Ignore { queue } => {
                if self.watched.len() == 1 && self.watched.contains(queue) {
                    return word("NOT_IGNORED".to_owned());
                }
                Rc::make_mut(&mut self.watched).remove(queue);
            }
            _ => return None,
        }
        word(format!("WATCHING {}", self.watched.len()))
    }

    fn check(&mut self, answer: &Answer) -> Changes {
        let Some(sent) = self.sent.pop_front() else {
            panic!("client {} asked for nothing and got {answer:?}", self.id);
        };
        let changes = match (&sent.wish, sent.progress) {
            (_, Progress::Answered(expected, changes)) => {
                let (id, wish) = (self.id, &sent.wish);
                assert!(answer.is(&expected), "{id} asked {wish:?}: {answer:?}, not {expected:?}");
                changes
            }
            (wish, _) => {
                let expected = sent.setting.as_ref();
                let fits = expected.is_some_and(|expected| answer.is(expected));
                assert!(fits, "{wish:?}: {answer:?}, not {expected:?}");
                0..0
            }
        };
        self.learn(&sent.wish, answer);
        self.last = Some(answer.clone());
        changes
    }

    /// Keeps its own books of the jobs that it holds.
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
