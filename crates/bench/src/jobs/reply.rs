//! The replies of a beanstalkd server, parsed in place.

use client::{Garbage, beanstalkd};

/// One reply, borrowed from the bytes that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply<'a> {
    /// `INSERTED <id>`.
    Inserted(u64),
    /// `RESERVED <id> <bytes>` and the body.
    Reserved(u64, &'a [u8]),
    /// `DELETED`.
    Deleted,
    /// `RELEASED`.
    Released,
    /// `OK <bytes>` and the body behind it.
    Ok(&'a [u8]),
    /// `USING <tube>` or `WATCHING <count>`.
    Tube,
    /// Any reply by which a server says no; the word itself.
    Refused(&'static str),
}

/// Takes one reply off the front of `input`, and says how many bytes it took; `None` while it is
/// not whole. A body of more than `body_bytes_max` is garbage.
pub(crate) fn parse(
    input: &[u8],
    body_bytes_max: usize,
) -> Result<Option<(Reply<'_>, usize)>, Garbage> {
    let parsed = beanstalkd::Reply::parse(input, body_bytes_max)?;
    let recognise = |(reply, bytes)| Ok((recognise(reply).ok_or(Garbage)?, bytes));
    parsed.map(recognise).transpose()
}

fn recognise(reply: beanstalkd::Reply<'_>) -> Option<Reply<'_>> {
    let mut words = reply.line.split(' ');
    let recognised = match words.next()? {
        "INSERTED" => Reply::Inserted(words.next()?.parse().ok()?),
        "RESERVED" => {
            let id = words.next()?.parse().ok()?;
            words.next()?;
            Reply::Reserved(id, reply.body?)
        }
        "DELETED" => Reply::Deleted,
        "RELEASED" => Reply::Released,
        "OK" => {
            words.next()?;
            Reply::Ok(reply.body?)
        }
        "USING" | "WATCHING" => {
            words.next()?;
            Reply::Tube
        }
        // Refusals: `BURIED` is one here, because to put or release a job the benchmark wants it
        // ready, not buried for lack of memory; it may carry an id.
        "BURIED" => return Some(Reply::Refused("BURIED")),
        word => Reply::Refused(REFUSALS.iter().find(|refusal| **refusal == word)?),
    };
    words.next().is_none().then_some(recognised)
}

const REFUSALS: [&str; 11] = [
    "TIMED_OUT",
    "DEADLINE_SOON",
    "NOT_FOUND",
    "OUT_OF_MEMORY",
    "DRAINING",
    "JOB_TOO_BIG",
    "INTERNAL_ERROR",
    "EXPECTED_CRLF",
    "BAD_FORMAT",
    "UNKNOWN_COMMAND",
    "NOT_IGNORED",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_recognised() {
        for (input, reply) in [
            ("INSERTED 7\r\n", Reply::Inserted(7)),
            ("RESERVED 7 3\r\na\r\n\r\n", Reply::Reserved(7, b"a\r\n")),
            ("RESERVED 7 0\r\n\r\n", Reply::Reserved(7, b"")),
            ("DELETED\r\n", Reply::Deleted),
            ("RELEASED\r\n", Reply::Released),
            ("OK 4\r\n---\n\r\n", Reply::Ok(b"---\n")),
            ("USING a\r\n", Reply::Tube),
            ("WATCHING 2\r\n", Reply::Tube),
            ("BURIED\r\n", Reply::Refused("BURIED")),
            ("BURIED 7\r\n", Reply::Refused("BURIED")),
            ("OUT_OF_MEMORY\r\n", Reply::Refused("OUT_OF_MEMORY")),
        ] {
            let whole = format!("{input}DELETED\r\n");
            let parsed = parse(whole.as_bytes(), 100);
            assert_eq!(parsed, Ok(Some((reply, input.len()))), "{input}");
        }
    }

    #[test]
    fn garbage_is_recognised() {
        for input in [
            "HTTP/1.1 400 Bad Request\r\n",
            "INSERTED x\r\n",
            "INSERTED\r\n",
            "INSERTED 1 2\r\n",
            "\r\n",
            "deleted\r\n",
        ] {
            assert_eq!(parse(input.as_bytes(), 100), Err(Garbage), "{input}");
        }
    }
}
