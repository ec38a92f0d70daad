//! A command line, parsed.

use model::{MessageId, Nanos, QueueName};

use crate::arguments::{Arguments, Malformed};
use crate::verb::Verb;

/// A peer's request, all arguments well-formed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Put(Put),
    /// A put with too large a body; `bytes` of it follow, and a line end.
    PutTooBig {
        bytes: u64,
    },
    Use(QueueName),
    /// `None` waits for ever.
    Reserve(Option<Nanos>),
    ReserveJob(MessageId),
    Delete(MessageId),
    Release {
        message: MessageId,
        priority: u32,
        delay: Nanos,
    },
    Bury {
        message: MessageId,
        priority: u32,
    },
    Touch(MessageId),
    Watch(QueueName),
    Ignore(QueueName),
    Peek(MessageId),
    PeekReady,
    PeekDelayed,
    PeekBuried,
    Kick {
        max: u32,
    },
    KickJob(MessageId),
    Stats,
    StatsJob(MessageId),
    StatsTube(QueueName),
    ListTubes,
    ListTubeUsed,
    ListTubesWatched,
    PauseTube {
        tube: QueueName,
        duration: Nanos,
    },
    Quit,
}

/// The line of a put; its body follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Put {
    pub(crate) priority: u32,
    pub(crate) delay: Nanos,
    pub(crate) lease: Nanos,
    pub(crate) body_bytes: usize,
}

impl Request {
    /// Reads the arguments of one command; `body_bytes_max` is the largest body of a put.
    pub(crate) fn parse(
        verb: Verb,
        mut arguments: Arguments<'_>,
        body_bytes_max: usize,
    ) -> Result<Self, Malformed> {
        let request = match verb {
            Verb::Put => return put(arguments, body_bytes_max),
            Verb::Use => return arguments.tube().map(Self::Use),
            Verb::Watch => return arguments.tube().map(Self::Watch),
            Verb::Ignore => return arguments.tube().map(Self::Ignore),
            Verb::StatsTube => return arguments.tube().map(Self::StatsTube),
            // These ignore all further arguments.
            Verb::ReserveWithTimeout => return timeout(arguments).map(Self::Reserve),
            Verb::Kick => return Ok(Self::Kick { max: arguments.lenient_u32()? }),
            Verb::Quit => return Ok(Self::Quit),
            Verb::Reserve => Self::Reserve(None),
            Verb::ReserveJob => Self::ReserveJob(arguments.message()?),
            Verb::Delete => Self::Delete(arguments.message()?),
            Verb::Release => release(&mut arguments)?,
            Verb::Bury => bury(&mut arguments)?,
            Verb::Touch => Self::Touch(arguments.message()?),
            Verb::Peek => Self::Peek(arguments.message()?),
            Verb::PeekReady => Self::PeekReady,
            Verb::PeekDelayed => Self::PeekDelayed,
            Verb::PeekBuried => Self::PeekBuried,
            Verb::KickJob => Self::KickJob(arguments.message()?),
            Verb::Stats => Self::Stats,
            Verb::StatsJob => Self::StatsJob(arguments.message()?),
            Verb::ListTubes => Self::ListTubes,
            Verb::ListTubeUsed => Self::ListTubeUsed,
            Verb::ListTubesWatched => Self::ListTubesWatched,
            Verb::PauseTube => pause(&mut arguments)?,
        };
        arguments.end().map(|()| request)
    }
}

fn put(mut arguments: Arguments<'_>, body_bytes_max: usize) -> Result<Request, Malformed> {
    let priority = arguments.u32()?;
    let delay = arguments.seconds()?;
    // A lease of no time would end before its consumer heard of it.
    let lease = arguments.seconds()?.max(Nanos::SECOND);
    let bytes = u64::from(arguments.u32()?);
    let Some(body_bytes) = usize::try_from(bytes).ok().filter(|bytes| *bytes <= body_bytes_max)
    else {
        // Even with garbage after it, as beanstalkd does: the body is passed over either way.
        return Ok(Request::PutTooBig { bytes });
    };
    arguments.end()?;
    Ok(Request::Put(Put { priority, delay, lease, body_bytes }))
}

fn timeout(mut arguments: Arguments<'_>) -> Result<Option<Nanos>, Malformed> {
    let seconds = i32::try_from(arguments.u32()?).map_err(|_| Malformed)?;
    Ok(Some(Nanos::from_secs(u64::from(seconds.unsigned_abs()))))
}

fn release(arguments: &mut Arguments<'_>) -> Result<Request, Malformed> {
    let message = arguments.message()?;
    let priority = arguments.u32()?;
    Ok(Request::Release { message, priority, delay: arguments.seconds()? })
}

fn bury(arguments: &mut Arguments<'_>) -> Result<Request, Malformed> {
    let message = arguments.message()?;
    Ok(Request::Bury { message, priority: arguments.u32()? })
}

fn pause(arguments: &mut Arguments<'_>) -> Result<Request, Malformed> {
    let tube = arguments.leading_tube()?;
    Ok(Request::PauseTube { tube, duration: arguments.seconds()? })
}
