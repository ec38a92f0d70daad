//! The replies of a beanstalkd server, parsed in place.

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

/// The reply that the first bytes of the input hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed<'a> {
    /// Not yet a whole reply.
    Incomplete,
    /// A reply, and how many bytes it took.
    Reply(Reply<'a>, usize),
    /// Nothing that a beanstalkd server says.
    Garbage,
}

/// Takes one reply off the front of `input`; a body of more than `body_bytes_max` is garbage.
pub(crate) fn parse(input: &[u8], body_bytes_max: usize) -> Parsed<'_> {
    let window = input.get(..LINE_BYTES_MAX).unwrap_or(input);
    let Some(end) = window.iter().position(|&byte| byte == b'\r') else {
        return if window.len() == LINE_BYTES_MAX { Parsed::Garbage } else { Parsed::Incomplete };
    };
    match input.get(end + 1) {
        None => return Parsed::Incomplete,
        Some(b'\n') => {}
        Some(_) => return Parsed::Garbage,
    }
    let (line, rest) = input.split_at(end);
    let rest = rest.get(2..).unwrap_or_default();
    match head(line) {
        Some(Head::Plain(reply)) => Parsed::Reply(reply, end + 2),
        Some(Head::Body(id, bytes)) if bytes <= body_bytes_max => body(id, bytes, rest, end + 2),
        _ => Parsed::Garbage,
    }
}

/// A reply line, before the body if it announces one.
enum Head {
    Plain(Reply<'static>),
    /// The id of the job, `None` with `OK`, and the length.
    Body(Option<u64>, usize),
}

fn head(line: &[u8]) -> Option<Head> {
    let mut words = line.split(|&byte| byte == b' ');
    let reply = match words.next()? {
        b"INSERTED" => Head::Plain(Reply::Inserted(number(words.next()?)?)),
        b"RESERVED" => {
            Head::Body(Some(number(words.next()?)?), number(words.next()?)?.try_into().ok()?)
        }
        b"DELETED" => Head::Plain(Reply::Deleted),
        b"RELEASED" => Head::Plain(Reply::Released),
        b"OK" => Head::Body(None, number(words.next()?)?.try_into().ok()?),
        b"USING" | b"WATCHING" => {
            words.next()?;
            Head::Plain(Reply::Tube)
        }
        // Refusals: `BURIED` is one here, because to put or release a job the benchmark wants it
        // ready, not buried for lack of memory; it may carry an id.
        b"BURIED" => return Some(Head::Plain(Reply::Refused("BURIED"))),
        word => Head::Plain(Reply::Refused(refusal(word)?)),
    };
    words.next().is_none().then_some(reply)
}

fn refusal(word: &[u8]) -> Option<&'static str> {
    REFUSALS.iter().copied().find(|refusal| refusal.as_bytes() == word)
}

fn number(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

fn body(id: Option<u64>, bytes: usize, rest: &[u8], before: usize) -> Parsed<'_> {
    let Some((body, after)) = rest.split_at_checked(bytes) else { return Parsed::Incomplete };
    match after {
        [b'\r', b'\n', ..] => {}
        [] | [b'\r'] => return Parsed::Incomplete,
        _ => return Parsed::Garbage,
    }
    let reply = id.map_or(Reply::Ok(body), |id| Reply::Reserved(id, body));
    Parsed::Reply(reply, before + bytes + 2)
}

/// No reply line is longer: a word and a tube name of 200 bytes.
const LINE_BYTES_MAX: usize = 224;

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
            assert_eq!(parse(whole.as_bytes(), 100), Parsed::Reply(reply, input.len()), "{input}");
            for end in 0..input.len() {
                assert_eq!(parse(&whole.as_bytes()[..end], 100), Parsed::Incomplete, "{input}");
            }
        }
    }

    #[test]
    fn garbage_is_recognised() {
        for input in [
            "HTTP/1.1 400 Bad Request\r\n",
            "INSERTED x\r\n",
            "INSERTED\r\n",
            "INSERTED 1 2\r\n",
            "DELETED\rX",
            "RESERVED 1 101\r\n",
            "RESERVED 1 18446744073709551615\r\n",
            "RESERVED 1 1\r\nabc",
            "\r\n",
            "deleted\r\n",
        ] {
            assert_eq!(parse(input.as_bytes(), 100), Parsed::Garbage, "{input}");
        }
        assert_eq!(parse(&[b'x'; 300], 100), Parsed::Garbage);
    }
}
