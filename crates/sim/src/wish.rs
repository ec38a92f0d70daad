//! Wishes of a simulated client in the bytes of the beanstalkd protocol, and the answers as it
//! understands them. Written from the protocol's specification, not from our session.

use std::collections::BTreeSet;
use std::fmt::{Display, Write as _};
use std::rc::Rc;

use model::{Command, Nanos, Peek, Persistence, Reply};

/// One request, with the client's knowledge of its own state at that point of its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// `use`
    Use {
        /// Which.
        queue: Rc<str>,
    },
    /// `watch`
    Watch {
        /// Which.
        queue: Rc<str>,
    },
    /// `ignore`
    Ignore {
        /// Which.
        queue: Rc<str>,
    },
    /// `put` into the queue in use.
    Put {
        /// Which.
        queue: Rc<str>,
        /// Smaller is more urgent.
        priority: u32,
        /// In seconds.
        delay: u32,
        /// In seconds.
        lease: u32,
        /// The persistence that it would ask for if the protocol could express it.
        persistence: Persistence,
        /// Its bytes.
        body: Rc<[u8]>,
    },
    /// `reserve` or `reserve-with-timeout`
    Reserve {
        /// From these.
        watched: Rc<BTreeSet<Rc<str>>>,
        /// In seconds; `None`: for ever.
        timeout: Option<u32>,
    },
    /// `reserve-job`
    ReserveJob {
        /// Which.
        id: u64,
    },
    /// `delete`
    Delete {
        /// Which.
        id: u64,
    },
    /// `release`
    Release {
        /// Which.
        id: u64,
        /// Smaller is more urgent.
        priority: u32,
        /// In seconds.
        delay: u32,
    },
    /// `bury`
    Bury {
        /// Which.
        id: u64,
        /// Smaller is more urgent.
        priority: u32,
    },
    /// `touch`
    Touch {
        /// Which.
        id: u64,
    },
    /// `kick` in the queue in use.
    Kick {
        /// Which.
        queue: Rc<str>,
        /// The most.
        max: u64,
    },
    /// `kick-job`
    KickJob {
        /// Which.
        id: u64,
    },
    /// `pause-tube`
    Pause {
        /// Which.
        queue: Rc<str>,
        /// For so long.
        seconds: u32,
    },
    /// `peek`
    Peek {
        /// Which.
        id: u64,
    },
    /// `peek-ready`, `peek-delayed` or `peek-buried` of the queue in use.
    PeekQueue {
        /// Which.
        queue: Rc<str>,
        /// The first of those.
        which: Which,
    },
    /// `stats`
    Stats,
    /// `stats-tube`
    StatsQueue {
        /// Which.
        queue: Rc<str>,
    },
    /// `stats-job`
    StatsMessage {
        /// Which.
        id: u64,
    },
    /// `list-tubes`
    ListQueues,
    /// `list-tube-used`
    ListUsed,
    /// `list-tubes-watched`
    ListWatched,
}

/// Which message of a queue to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The most urgent one.
    Ready,
    /// The job with the delay that ends first.
    Delayed,
    /// The one buried first.
    Buried,
}

/// One reply as the client reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The line without its end.
    pub line: String,
    /// The bytes after the line, for `RESERVED`, `FOUND` and `OK`.
    pub body: Option<Vec<u8>>,
}

impl Wish {
    /// The bytes on the wire.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let line = match self {
            Self::Use { queue } => format!("use {queue}"),
            Self::Watch { queue } => format!("watch {queue}"),
            Self::Ignore { queue } => format!("ignore {queue}"),
            Self::Put { priority, delay, lease, body, .. } => {
                format!("put {priority} {delay} {lease} {}", body.len())
            }
            Self::Reserve { timeout: None, .. } => "reserve".to_owned(),
            Self::Reserve { timeout: Some(seconds), .. } => {
                format!("reserve-with-timeout {seconds}")
            }
            Self::ReserveJob { id } => format!("reserve-job {id}"),
            Self::Delete { id } => format!("delete {id}"),
            Self::Release { id, priority, delay } => format!("release {id} {priority} {delay}"),
            Self::Bury { id, priority } => format!("bury {id} {priority}"),
            Self::Touch { id } => format!("touch {id}"),
            Self::Kick { max, .. } => format!("kick {max}"),
            Self::KickJob { id } => format!("kick-job {id}"),
            Self::Pause { queue, seconds } => format!("pause-tube {queue} {seconds}"),
            Self::Peek { id } => format!("peek {id}"),
            Self::PeekQueue { which, .. } => format!("peek-{which:?}").to_lowercase(),
            Self::Stats => "stats".to_owned(),
            Self::StatsQueue { queue } => format!("stats-tube {queue}"),
            Self::StatsMessage { id } => format!("stats-job {id}"),
            Self::ListQueues => "list-tubes".to_owned(),
            Self::ListUsed => "list-tube-used".to_owned(),
            Self::ListWatched => "list-tubes-watched".to_owned(),
        };
        let mut bytes = line.into_bytes();
        bytes.extend_from_slice(b"\r\n");
        if let Self::Put { body, .. } = self {
            bytes.extend_from_slice(body);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes
    }

    /// For a trace: the line without a body.
    #[must_use]
    pub fn summary(&self) -> String {
        let bytes = self.encode();
        let line = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
        String::from_utf8_lossy(line).into_owned()
    }

    /// The message it names.
    #[must_use]
    pub const fn message(&self) -> Option<u64> {
        match self {
            Self::ReserveJob { id }
            | Self::Delete { id }
            | Self::Release { id, .. }
            | Self::Bury { id, .. }
            | Self::Touch { id }
            | Self::KickJob { id }
            | Self::Peek { id }
            | Self::StatsMessage { id } => Some(*id),
            _ => None,
        }
    }

    /// True if it concerns messages, so that the oracle must hear of it; the rest are settings.
    #[must_use]
    pub const fn concerns_messages(&self) -> bool {
        !matches!(
            self,
            Self::Use { .. }
                | Self::Watch { .. }
                | Self::Ignore { .. }
                | Self::ListUsed
                | Self::ListWatched
        )
    }

    /// True if a session that read this wish may ask the engine for that.
    #[must_use]
    pub fn is_meant_by(&self, command: &Command) -> bool {
        match (self, command) {
            (Self::Put { priority, delay, lease, body, .. }, Command::Put { message, .. }) => {
                message.priority == *priority
                    && message.delay == seconds(*delay)
                    && message.lease == seconds((*lease).max(1))
                    && message.body[..] == body[..]
            }
            (Self::Reserve { timeout, .. }, Command::Receive { wait, .. }) => {
                *wait == timeout.map(seconds)
            }
            (Self::ReserveJob { id }, Command::Lease { message })
            | (Self::Delete { id }, Command::Delete { message })
            | (Self::Touch { id }, Command::Renew { message, .. })
            | (Self::KickJob { id }, Command::KickMessage { message })
            | (Self::StatsMessage { id }, Command::MessageStatistics { message })
            | (Self::Peek { id }, Command::Peek(Peek::Message(message))) => message.0 == *id,
            (Self::StatsQueue { queue }, Command::QueueStatistics { queue: name }) => {
                name.as_str() == &**queue
            }
            (Self::Stats, Command::BrokerStatistics) | (Self::ListQueues, Command::ListQueues) => {
                true
            }
            (
                Self::Release { id, priority, delay },
                Command::Release { message, priority: new, delay: Some(wait) },
            ) => message.0 == *id && new == priority && *wait == seconds(*delay),
            (Self::Bury { id, priority }, Command::Bury { message, priority: new }) => {
                message.0 == *id && new == priority
            }
            (Self::Kick { max, .. }, Command::Kick { max: most, .. }) => max == most,
            (Self::Pause { queue, seconds: span }, Command::Pause { queue: name, duration }) => {
                name.as_str() == &**queue && *duration == seconds(*span)
            }
            (Self::PeekQueue { which, .. }, Command::Peek(peek)) => match which {
                Which::Ready => matches!(peek, Peek::Ready(_)),
                Which::Delayed => matches!(peek, Peek::Delayed(_)),
                Which::Buried => matches!(peek, Peek::Buried(_)),
            },
            _ => false,
        }
    }

    /// The answer that a client with this wish must read after this reply of the engine.
    #[must_use]
    pub fn expects(&self, reply: &Reply) -> Answer {
        let word = |word: &str| Answer { line: word.to_owned(), body: None };
        let job = |name: &str, id: u64, body: &[u8]| Answer {
            line: format!("{name} {id} {}", body.len()),
            body: Some(body.to_vec()),
        };
        match (self, reply) {
            (_, Reply::NotFound) => word("NOT_FOUND"),
            (_, Reply::TimedOut { .. }) => word("TIMED_OUT"),
            (_, Reply::LeaseEnding) => word("DEADLINE_SOON"),
            (_, Reply::Refused(_)) => word("OUT_OF_MEMORY"),
            (_, Reply::Stored { message }) => word(&format!("INSERTED {message}")),
            (_, Reply::Count(count)) => word(&format!("KICKED {count}")),
            (_, Reply::Delivered(delivery)) => {
                job("RESERVED", delivery.message.0, delivery.payload())
            }
            (_, Reply::Found { message, element }) => job("FOUND", message.0, element.payload()),
            (Self::Delete { .. }, Reply::Done) => word("DELETED"),
            (Self::Release { .. }, Reply::Done) => word("RELEASED"),
            (Self::Bury { .. }, Reply::Done) => word("BURIED"),
            (Self::Touch { .. }, Reply::Done) => word("TOUCHED"),
            (Self::KickJob { .. }, Reply::Done) => word("KICKED"),
            (Self::Pause { .. }, Reply::Done) => word("PAUSED"),
            (Self::Stats, Reply::BrokerStatistics(all)) => Answer::document(&[
                format!("current-jobs-urgent: {}", all.urgent),
                format!("current-jobs-ready: {}", all.ready),
                format!("current-jobs-reserved: {}", all.leased),
                format!("current-jobs-delayed: {}", all.delayed),
                format!("current-jobs-buried: {}", all.buried),
            ]),
            (Self::StatsQueue { queue }, Reply::QueueStatistics(all)) => Answer::document(&[
                format!("name: \"{queue}\""),
                format!("current-jobs-urgent: {}", all.urgent),
                format!("current-jobs-ready: {}", all.ready),
                format!("current-jobs-reserved: {}", all.leased),
                format!("current-jobs-delayed: {}", all.delayed),
                format!("current-jobs-buried: {}", all.buried),
            ]),
            (Self::StatsMessage { id }, Reply::MessageStatistics(one)) => Answer::document(&[
                format!("id: {id}"),
                format!("tube: \"{}\"", one.queue),
                format!("pri: {}", one.priority),
                format!("ttr: {}", one.lease.as_secs()),
            ]),
            (Self::ListQueues, Reply::Queues(names)) => Answer::list(names),
            _ => panic!("{reply:?} is no reply to {self:?}"),
        }
    }
}

impl Answer {
    /// A document that says this, among other things.
    fn document(says: &[String]) -> Self {
        Self { line: "OK".to_owned(), body: Some(says.join("\n").into_bytes()) }
    }

    /// A document that lists exactly these.
    pub fn list(names: impl IntoIterator<Item = impl Display>) -> Self {
        let items: Vec<_> = names.into_iter().map(|name| format!("- {name}")).collect();
        Self::document(&items)
    }

    /// True if this, as a client read it, is the answer that it expects: the same, or a document
    /// that says the same. A list has no items but those expected.
    #[must_use]
    pub fn is(&self, expected: &Self) -> bool {
        let (Some(body), Some(says)) = (&self.body, &expected.body) else {
            return self == expected;
        };
        if !self.line.starts_with("OK ") || expected.line != "OK" {
            return self == expected;
        }
        let lines = |text: &[u8]| -> BTreeSet<Vec<u8>> {
            text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
        };
        let items =
            |lines: &BTreeSet<Vec<u8>>| lines.iter().filter(|l| l.starts_with(b"- ")).count();
        let (read, says) = (lines(body), lines(says));
        body.starts_with(b"---\n") && says.is_subset(&read) && items(&says) == items(&read)
    }

    /// The first whole reply of the bytes, and how long it is.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<(Self, usize)> {
        let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
        let line = String::from_utf8_lossy(bytes.get(..end)?).into_owned();
        let start = end + 2;
        if !["RESERVED ", "FOUND ", "OK "].iter().any(|name| line.starts_with(name)) {
            return Some((Self { line, body: None }, start));
        }
        let length: usize = line.rsplit(' ').next()?.parse().ok()?;
        let body = bytes.get(start..start + length)?.to_vec();
        let tail = bytes.get(start + length..start + length + 2)?;
        assert_eq!(tail, b"\r\n", "a body ends with a line end: {line}");
        Some((Self { line, body: Some(body) }, start + length + 2))
    }

    /// For a trace: the line, and the length of the body after it.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut text = self.line.clone();
        if let Some(body) = &self.body {
            // Writing to a string cannot fail.
            let _ = write!(text, " (+{} bytes)", body.len());
        }
        text
    }
}

fn seconds(seconds: u32) -> Nanos {
    Nanos::from_secs(u64::from(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_parse_only_when_whole() {
        let bytes = b"RESERVED 5 4\r\na\r\nb\r\nDELETED\r\nWATCH";
        for cut in 0..20 {
            assert_eq!(Answer::parse(&bytes[..cut]), None, "{cut} bytes");
        }
        let (first, length) = Answer::parse(bytes).unwrap();
        assert_eq!(first.line, "RESERVED 5 4");
        assert_eq!(first.body.as_deref(), Some(&b"a\r\nb"[..]));
        let (second, more) = Answer::parse(&bytes[length..]).unwrap();
        assert_eq!(second, Answer { line: "DELETED".to_owned(), body: None });
        assert_eq!(Answer::parse(&bytes[length + more..]), None);
    }

    #[test]
    fn wishes_encode_as_beanstalkd_commands() {
        let put = Wish::Put {
            queue: "q".into(),
            priority: 1,
            delay: 2,
            lease: 3,
            persistence: Persistence::Persistent,
            body: b"hi".to_vec().into(),
        };
        assert_eq!(put.encode(), b"put 1 2 3 2\r\nhi\r\n");
        let peek = Wish::PeekQueue { queue: "q".into(), which: Which::Buried };
        assert_eq!(peek.encode(), b"peek-buried\r\n");
        assert_eq!(Wish::Release { id: 9, priority: 8, delay: 7 }.encode(), b"release 9 8 7\r\n");
    }
}
