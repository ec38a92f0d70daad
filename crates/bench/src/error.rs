//! Errors that can end a benchmark, in words for the user.

use std::fmt;
use std::io;
use std::time::Duration;

/// Why there are no figures, or why the figures are not to be trusted.
#[derive(Debug)]
#[non_exhaustive]
pub enum BenchError {
    /// An option that makes no sense, alone or with the others.
    Options(String),
    /// The server could not be reached.
    Connect {
        /// The address that was to be reached.
        address: String,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// The server closed or broke a connection in the middle.
    Lost {
        /// The action of the client at that time.
        doing: String,
        /// The error of the operating system; `None` if the server just closed the connection.
        cause: Option<io::Error>,
    },
    /// The server said something that the protocol does not allow there.
    Garbage {
        /// The action of the client at that time.
        doing: String,
        /// The bytes that came, shortened and made printable.
        reply: String,
    },
    /// The server refused something that the benchmark cannot do without.
    Refused {
        /// The action of the client at that time.
        doing: String,
        /// The server's word for it.
        reply: &'static str,
    },
    /// The server stopped answering.
    Silent {
        /// The action of the client at that time.
        doing: String,
        /// How long it waited.
        waited: Duration,
    },
    /// The server does not speak AMQP 1.0.
    NotAmqp {
        /// Its address.
        broker: String,
        /// The bytes that it sends instead.
        what: String,
    },
    /// The broker does not let this user in, or does not let an anonymous one in.
    Unauthenticated {
        /// Its address.
        broker: String,
        /// True if a user was named.
        named: bool,
        /// Its answer.
        what: String,
    },
    /// The broker ended a connection, a session or a link, or refused one.
    Ended {
        /// The action of the client at that time.
        doing: String,
        /// The condition, and its text.
        why: String,
    },
    /// The named queue holds foreign messages, which the benchmark would take.
    HoldsMessages {
        /// Its name.
        queue: String,
    },
    /// The broker of this process did not start.
    Broker(String),
    /// The queue to be used holds foreign jobs, which the benchmark would take.
    NotEmpty {
        /// Its name.
        tube: String,
        /// How many jobs it holds.
        jobs: u64,
    },
    /// The run went through, but the server did not keep its confirmations.
    Wrong(Vec<String>),
    /// The run was called off.
    Cancelled,
    /// This machine refused something that the benchmark itself needs.
    Io {
        /// The action that failed.
        doing: String,
        /// The error of the operating system.
        cause: io::Error,
    },
}

impl BenchError {
    /// For `map_err`: a failure of this machine while `doing` something.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |cause| Self::Io { doing, cause }
    }

    /// A reply that cannot be understood, of which the first 80 bytes are shown.
    pub(crate) fn garbage(doing: impl Into<String>, bytes: &[u8]) -> Self {
        let shown = bytes.get(..80).unwrap_or(bytes);
        Self::Garbage { doing: doing.into(), reply: shown.escape_ascii().to_string() }
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(what) => write!(f, "{what}"),
            Self::Connect { address, cause } => write!(f, "cannot connect to {address}: {cause}"),
            Self::Lost { doing, cause: None } => {
                write!(f, "the server closed the connection while {doing}")
            }
            Self::Lost { doing, cause: Some(cause) } => {
                write!(f, "the connection broke while {doing}: {cause}")
            }
            Self::Garbage { doing, reply } => {
                write!(f, "not a reply of a beanstalkd server while {doing}: \"{reply}\"")
            }
            Self::Refused { doing, reply } => write!(f, "the server said {reply} while {doing}"),
            Self::Silent { doing, waited } => {
                write!(f, "no reply for {} s while {doing}", waited.as_secs())
            }
            Self::NotAmqp { broker, what } => write!(
                f,
                "{broker} does not speak AMQP 1.0: {what}; give the port of its AMQP listener"
            ),
            Self::Unauthenticated { broker, named, what } => {
                let mend = match named {
                    true => "check the user and the password of --target",
                    false => "name a user: --target amqp://USER:PASSWORD@HOST:PORT",
                };
                write!(f, "{broker} does not let us in: {what}; {mend}")
            }
            Self::Ended { doing, why } => {
                write!(f, "the broker ended it in {doing}: {why}")?;
                // Not every broker makes queues on first use.
                let is_missing = why.starts_with("amqp:not-found");
                f.write_str(if is_missing { "; make the queue and name it by --queue" } else { "" })
            }
            Self::HoldsMessages { queue } => write!(
                f,
                "queue {queue} holds messages already, which the benchmark would take; name \
                 another with --queue, or empty it"
            ),
            Self::Broker(why) => f.write_str(why),
            Self::NotEmpty { tube, jobs } => {
                write!(f, "tube {tube} holds {jobs} jobs already; the benchmark would take them")
            }
            Self::Wrong(problems) => write!(f, "wrong results: {}", problems.join("; ")),
            Self::Cancelled => write!(f, "cancelled before the end"),
            Self::Io { doing, cause } => write!(f, "cannot {doing}: {cause}"),
        }
    }
}

impl std::error::Error for BenchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Connect { cause, .. }
            | Self::Lost { cause: Some(cause), .. }
            | Self::Io { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_queue_error_names_the_option() {
        let ended = |why: &str| {
            let (doing, why) = ("factors".to_owned(), why.to_owned());
            BenchError::Ended { doing, why }.to_string()
        };
        assert!(ended("amqp:not-found: no queue 'q'").ends_with("name it by --queue"));
        assert!(ended("amqp:internal-error").ends_with("in factors: amqp:internal-error"));
    }
}
