//! How other protocols begin. The first bytes tell a client that connects to the wrong port; a line
//! of HTTP tells a web page that speaks through a user's browser.

/// A protocol that a peer speaks where another is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongProtocol {
    /// HTTP of any version.
    Http,
    /// TLS.
    Tls,
    /// AMQP 1.0.
    Amqp,
    /// AMQP 0-8 to 0-10, such as clients of RabbitMQ speak.
    OldAmqp,
    /// MQTT.
    Mqtt,
    /// STOMP.
    Stomp,
    /// Redis's, as clients send it.
    Redis,
    /// The header in which a proxy describes its client, before the client's bytes.
    Proxy,
}

impl WrongProtocol {
    /// Its usual name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::Tls => "TLS",
            Self::Amqp => "AMQP 1.0",
            Self::OldAmqp => "AMQP 0-9-1",
            Self::Mqtt => "MQTT",
            Self::Stomp => "STOMP",
            Self::Redis => "the Redis protocol",
            Self::Proxy => "the PROXY protocol",
        }
    }
}

/// The finding from the first bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// They are how this protocol begins.
    Of(WrongProtocol),
    /// More of them may tell.
    TooShort,
    /// They are none that is known here.
    Unknown,
}

/// Bytes of a connection after which more of them tell nothing.
pub const BEGINNING_BYTES_MAX: usize = 16;

/// Which protocol a connection speaks that begins so.
#[must_use]
pub fn beginning(bytes: &[u8]) -> Beginning {
    let mut may_tell = false;
    for (word, protocol) in WORDS {
        match begins(bytes, word) {
            Some(true) => return Beginning::Of(protocol),
            Some(false) => {}
            None => may_tell = true,
        }
    }
    if let [b'*', b'1'..=b'9', ..] = bytes {
        return Beginning::Of(WrongProtocol::Redis);
    }
    may_tell |= bytes == b"*";
    match mqtt(bytes) {
        Some(true) => Beginning::Of(WrongProtocol::Mqtt),
        None => Beginning::TooShort,
        Some(false) if may_tell => Beginning::TooShort,
        Some(false) => Beginning::Unknown,
    }
}

/// True if bytes begin with a word; `None`: so far they do, and end in it.
fn begins(bytes: &[u8], word: &[u8]) -> Option<bool> {
    if bytes.len() < word.len() && word.starts_with(bytes) {
        return None;
    }
    Some(bytes.starts_with(word))
}

/// A CONNECT: its kind, a length of one to four bytes, and the protocol's name with its length.
fn mqtt(bytes: &[u8]) -> Option<bool> {
    let (first, rest) = bytes.split_first()?;
    if *first != 0x10 {
        return Some(false);
    }
    let mut rest = rest;
    for _ in 0..4 {
        let (byte, behind) = rest.split_first()?;
        rest = behind;
        if byte & 0x80 == 0 {
            break;
        }
    }
    match (begins(rest, b"\0\x04MQTT"), begins(rest, b"\0\x06MQIsdp")) {
        (Some(false), Some(false)) => Some(false),
        (Some(true), _) | (_, Some(true)) => Some(true),
        _ => None,
    }
}

/// True if a line that no command of its protocol is belongs to an HTTP request: it begins with a
/// method or with `Host:`.
#[must_use]
pub fn is_http_line(line: &[u8]) -> bool {
    let mut words = line.split(|byte| *byte == b' ');
    let first = words.next().unwrap_or_default();
    names_host(first)
        || METHODS.iter().any(|method| method.as_bytes() == first)
        || is_method(first) && words.next().is_some_and(is_target)
        || words.next_back().is_some_and(|last| last.starts_with(b"HTTP/"))
}

/// True if a word is the name of the header field that every request has, in letters of any size.
#[must_use]
pub fn names_host(word: &[u8]) -> bool {
    word.get(..HOST.len()).is_some_and(|name| name.eq_ignore_ascii_case(HOST))
}

/// True if a word is a method, in letters of any size.
#[must_use]
pub fn is_method(word: &[u8]) -> bool {
    METHODS.iter().any(|method| method.as_bytes().eq_ignore_ascii_case(word))
}

/// Returns true if a word can be the target of a request.
#[must_use]
pub fn is_target(word: &[u8]) -> bool {
    matches!(word.first(), Some(b'/' | b'*')) || word.windows(3).any(|part| part == b"://")
}

const HOST: &[u8] = b"host:";

const METHODS: [&str; 10] =
    ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "CONNECT", "TRACE", "PRI"];

/// How the others begin. None is longer than [`BEGINNING_BYTES_MAX`].
const WORDS: [(&[u8], WrongProtocol); 26] = [
    (b"GET ", WrongProtocol::Http),
    (b"POST ", WrongProtocol::Http),
    (b"PUT ", WrongProtocol::Http),
    (b"DELETE ", WrongProtocol::Http),
    (b"HEAD ", WrongProtocol::Http),
    (b"OPTIONS ", WrongProtocol::Http),
    (b"PATCH ", WrongProtocol::Http),
    (b"CONNECT ", WrongProtocol::Http),
    (b"TRACE ", WrongProtocol::Http),
    (b"PRI * HTTP/", WrongProtocol::Http),
    (b"\x16\x03\x00", WrongProtocol::Tls),
    (b"\x16\x03\x01", WrongProtocol::Tls),
    (b"\x16\x03\x02", WrongProtocol::Tls),
    (b"\x16\x03\x03", WrongProtocol::Tls),
    (b"AMQP\x00\x00\x09", WrongProtocol::OldAmqp),
    (b"AMQP\x01\x01\x00", WrongProtocol::OldAmqp),
    (b"AMQP\x01\x01\x08", WrongProtocol::OldAmqp),
    (b"AMQP\x01\x01\x09", WrongProtocol::OldAmqp),
    (b"AMQP\x00\x01\x00\x00", WrongProtocol::Amqp),
    (b"AMQP\x02\x01\x00\x00", WrongProtocol::Amqp),
    (b"AMQP\x03\x01\x00\x00", WrongProtocol::Amqp),
    (b"STOMP\n", WrongProtocol::Stomp),
    (b"CONNECT\n", WrongProtocol::Stomp),
    (b"PROXY TCP", WrongProtocol::Proxy),
    (b"PROXY UNKNOWN", WrongProtocol::Proxy),
    (b"\r\n\r\n\x00\r\nQUIT\n", WrongProtocol::Proxy),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_tell_the_protocol() {
        let known: [(&[u8], WrongProtocol); 12] = [
            (b"*1\r\n$4\r\nPING\r\n", WrongProtocol::Redis),
            (b"GET / HTTP/1.1\r\n", WrongProtocol::Http),
            (b"PRI * HTTP/2.0\r\n", WrongProtocol::Http),
            (b"\x16\x03\x01\x02\x00\x01", WrongProtocol::Tls),
            (b"AMQP\x00\x00\x09\x01", WrongProtocol::OldAmqp),
            (b"AMQP\x03\x01\x00\x00", WrongProtocol::Amqp),
            (b"\x10\x10\x00\x04MQTT\x04", WrongProtocol::Mqtt),
            (b"\x10\x90\x80\x01\x00\x04MQTT", WrongProtocol::Mqtt),
            (b"\x10\x10\x00\x06MQIsdp\x03", WrongProtocol::Mqtt),
            (b"CONNECT\naccept-version:1.2\n", WrongProtocol::Stomp),
            (b"PROXY TCP4 10.0.0.1 10.0.0.2", WrongProtocol::Proxy),
            (b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c", WrongProtocol::Proxy),
        ];
        for (bytes, protocol) in known {
            assert_eq!(beginning(bytes), Beginning::Of(protocol), "{}", bytes.escape_ascii());
            let found = (0..=BEGINNING_BYTES_MAX).find_map(|count| {
                let head = bytes.get(..count).unwrap_or(bytes);
                (beginning(head) != Beginning::TooShort).then(|| beginning(head))
            });
            assert_eq!(found, Some(Beginning::Of(protocol)), "byte by byte");
        }
    }

    #[test]
    fn commands_are_no_beginning() {
        for bytes in [
            &b"put 0 0 1 1\r\nx\r\n"[..],
            b"reserve\r\n",
            b"PING\r\n",
            b"PUTTY\r\n",
            b"\x10\xff\xff\xff\xff\x01",
            b"\x16\x03\x07",
            b"AMQP\x07\x01\x00\x00",
        ] {
            assert_eq!(beginning(bytes), Beginning::Unknown, "{}", bytes.escape_ascii());
        }
        for bytes in [&b""[..], b"P", b"AMQP\x00", b"*", b"\x10", b"\x10\x80", b"\r\n"] {
            assert_eq!(beginning(bytes), Beginning::TooShort, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn lines_of_http_are_known() {
        for line in [
            "GET / HTTP/1.1",
            "GET",
            "GET /",
            "DELETE /queues/a HTTP/1.1",
            "PoSt / HTTP/1.1",
            "put / HTTP/1.1",
            "delete /",
            "purge /x HTTP/1.0",
            "CONNECT evil.example:80 HTTP/1.1",
            "PRI * HTTP/2.0",
            "Host: 127.0.0.1",
            "hOsT:127.0.0.1",
        ] {
            assert!(is_http_line(line.as_bytes()), "{line}");
        }
        for line in ["", "put 0 0 1", "delete x", "Get 5", "hostname", "HTTP/1.1", "use GET"] {
            assert!(!is_http_line(line.as_bytes()), "{line}");
        }
    }
}
