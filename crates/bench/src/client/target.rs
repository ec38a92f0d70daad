//! The broker of AMQP 1.0, and the user.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use crate::error::BenchError;

/// A broker: `amqp://[USER:PASSWORD@]HOST[:PORT]`, an IPv6 address in brackets. Bytes of user and
/// password that mean something in a URL are written as `%40`. Neither `Display` nor `Debug` shows
/// the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    user: Option<User>,
    host: String,
    port: u16,
}

/// The user, by SASL's mechanism PLAIN.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) password: String,
}

impl Target {
    /// A broker that admits anonymous clients, at an address that is known already.
    #[must_use]
    pub fn at(address: SocketAddr) -> Self {
        Self { user: None, host: address.ip().to_string(), port: address.port() }
    }

    /// As the operating system resolves it.
    pub(crate) fn host_and_port(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// The user; `None` if the client is anonymous.
    pub(crate) fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("amqp://")?;
        if let Some(user) = &self.user {
            write!(f, "{}@", user.name)?;
        }
        if self.host.contains(':') {
            return write!(f, "[{}]:{}", self.host, self.port);
        }
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

impl FromStr for Target {
    type Err = BenchError;

    fn from_str(text: &str) -> Result<Self, BenchError> {
        // The text is not repeated: it may hold a password.
        let wrong = "the target is none: use amqp://[USER:PASSWORD@]HOST[:PORT]";
        parse(text).ok_or_else(|| BenchError::Options(wrong.to_owned()))
    }
}

fn parse(text: &str) -> Option<Target> {
    let authority = text.strip_prefix("amqp://")?;
    let authority = authority.strip_suffix('/').unwrap_or(authority);
    let (user, address) = match authority.rsplit_once('@') {
        Some((user, address)) => (Some(parse_user(user)?), address),
        None => (None, authority),
    };
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => address.split_at(address.find(':').unwrap_or(address.len())),
    };
    let port = match port.strip_prefix(':') {
        Some(port) => port.parse().ok()?,
        None if port.is_empty() => STANDARD_PORT,
        None => return None,
    };
    let is_host = !host.is_empty() && !host.contains(['/', '@']);
    is_host.then(|| Target { user, host: host.to_owned(), port })
}

fn parse_user(text: &str) -> Option<User> {
    let (name, password) = text.split_once(':').unwrap_or((text, ""));
    let user = User { name: unescaped(name)?, password: unescaped(password)? };
    // NUL stands between the words of PLAIN (RFC 4616).
    let is_sayable = |word: &str| !word.contains('\0');
    (!user.name.is_empty() && is_sayable(&user.name) && is_sayable(&user.password)).then_some(user)
}

/// `%40` as `@`.
fn unescaped(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = (part.get(..2)?, part.get(2..)?);
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

const STANDARD_PORT: u16 = 5672;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_hide_passwords() {
        for (text, shown) in [
            ("amqp://127.0.0.1:5673", "amqp://127.0.0.1:5673"),
            ("amqp://broker.example/", "amqp://broker.example:5672"),
            ("amqp://[::1]:9", "amqp://[::1]:9"),
            ("amqp://admin:secret@broker:1", "amqp://admin@broker:1"),
            ("amqp://a%40b:p%3aw%2f@h", "amqp://a@b@h:5672"),
        ] {
            let target: Target = text.parse().unwrap();
            assert_eq!(target.to_string(), shown);
            assert!(!format!("{target:?}").contains("secret"));
        }
        let target: Target = "amqp://a%40b:p%3aw%2f@h".parse().unwrap();
        let user = target.user().unwrap();
        assert_eq!((user.name.as_str(), user.password.as_str()), ("a@b", "p:w/"));
    }

    #[test]
    fn malformed_targets_refused_without_their_secrets() {
        let bad = ["", "127.0.0.1:1", "amqp://", "amqp://a:x", "amqp://[::1]x", "amqps://a:1"];
        let more = ["amqp://a:70000", "amqp://:secret@h", "amqp://a:%4@h", "amqp://a:%00@h"];
        for text in bad.into_iter().chain(more).chain(["amqp://a:secret@h/queue"]) {
            let error = text.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains("USER:PASSWORD") && !error.contains("secret"), "{text}");
        }
    }
}
