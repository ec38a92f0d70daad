//! HELLO and AUTH. Without users any password for the existing user is accepted, as in Redis
//! without one; with users the session logs the client in.

use alloc::boxed::Box;
use alloc::vec::Vec;

use model::{LoginStep, Principal, Secret, parse_integer};

use crate::answer::Version;
use crate::client_commands::check_name;
use crate::context::Context;
use crate::fault::Fault;
use crate::words::Words;

type Said = Result<(), Fault>;

/// The version of Redis that these commands and words are of; clients choose their commands by it.
pub(crate) const REDIS_VERSION: &str = "7.0.15";

/// The user of AUTH with a password alone, and every client without users.
pub(crate) const DEFAULT_USER: &str = "default";

pub(crate) const WRONG_PASSWORD: Fault =
    Fault::of("WRONGPASS invalid username-password pair or user is disabled.");

pub(crate) const BUSY: Fault = Fault::of(
    "ERR a login has failed of late, or too many clients log in at once: check the password, and \
     try again later",
);

pub(crate) const NOT_IN_CLEAR: Fault =
    Fault::of("ERR this listener takes no password in the clear: connect by TLS");

/// The error of a client that sends a password to a listener with a user of its own.
pub(crate) const LISTENER_HAS_USER: Fault =
    Fault::of("ERR this listener has a user of its own and takes no login: leave AUTH out");

/// The error of a client whose listener has a user that may not log in.
pub(crate) const LISTENER_USER_GONE: Fault =
    Fault::of("NOAUTH the user of this listener may not log in: ask the server's operator");

/// The step of a name and its password; nothing if there can be no such user.
type Credentials = Result<LoginStep, ()>;

/// HELLO, parsed.
#[derive(Debug)]
pub(crate) struct Hello {
    version: Version,
    name: Option<Vec<u8>>,
    credentials: Option<Credentials>,
}

/// AUTH without users.
pub(crate) fn auth(context: &mut Context<'_>, words: &Words) -> Said {
    match words.len() {
        2 => {
            return Err(Fault::of(
                "ERR AUTH <password> called without any password configured for the default user. \
                 Are you sure your configuration is correct?",
            ));
        }
        3 if words.word(1) == DEFAULT_USER.as_bytes() => context.answer().ok(),
        3 => return Err(WRONG_PASSWORD),
        _ => return Err(Fault::SYNTAX),
    }
    Ok(())
}

/// AUTH with users.
pub(crate) fn credentials(words: &Words) -> Result<Credentials, Fault> {
    match words.len() {
        2 => Ok(password_step(DEFAULT_USER.as_bytes(), words.word(1))),
        3 => Ok(password_step(words.word(1), words.word(2))),
        _ => Err(Fault::SYNTAX),
    }
}

fn password_step(user: &[u8], password: &[u8]) -> Credentials {
    let user: Box<str> = core::str::from_utf8(user).map_err(|_| ())?.into();
    Ok(LoginStep::Password { user, password: Secret::from(password) })
}

/// HELLO without users.
pub(crate) fn hello(context: &mut Context<'_>, words: &Words) -> Said {
    Hello::parse(context, words)?.greet(context);
    Ok(())
}

impl Hello {
    /// Without users the name is judged here, as part of the words.
    pub(crate) fn parse(context: &mut Context<'_>, words: &Words) -> Result<Self, Fault> {
        let has_users = context.client().principal != Principal::Everyone;
        let version = version(context, words)?;
        let mut hello = Self { version, name: None, credentials: None };
        let mut at = 2;
        while at < words.len() {
            let left = words.len() - at - 1;
            if left >= 2 && words.is(at, "auth") {
                if !has_users && words.word(at + 1) != DEFAULT_USER.as_bytes() {
                    return Err(WRONG_PASSWORD);
                }
                hello.credentials = Some(password_step(words.word(at + 1), words.word(at + 2)));
                at += 3;
            } else if left >= 1 && words.is(at, "setname") {
                hello.name = Some(check_name(words.word(at + 1))?.into());
                at += 2;
            } else {
                return Err(Fault::about(
                    "ERR Syntax error in HELLO option '",
                    words.word(at),
                    "'",
                ));
            }
        }
        Ok(hello)
    }

    /// Its AUTH, the last one counts.
    pub(crate) fn take_credentials(&mut self) -> Option<Credentials> {
        self.credentials.take()
    }

    /// Does the rest, and answers.
    pub(crate) fn greet(self, context: &mut Context<'_>) {
        let client = context.client();
        client.version = self.version;
        if let Some(name) = self.name {
            client.name = name;
        }
        greet(context);
    }
}

fn version(context: &mut Context<'_>, words: &Words) -> Result<Version, Fault> {
    if words.len() == 1 {
        return Ok(context.client().version);
    }
    match parse_integer(words.word(1)) {
        Some(2) => Ok(Version::Resp2),
        Some(3) => Ok(Version::Resp3),
        Some(_) => Err(Fault::of("NOPROTO unsupported protocol version")),
        None => Err(Fault::of("ERR Protocol version is not an integer or out of range")),
    }
}

fn greet(context: &mut Context<'_>) {
    let client = context.client();
    let (id, proto) = (client.id, client.version.number());
    let mut answer = context.answer();
    answer.map(7);
    let texts = [("server", "redis"), ("version", REDIS_VERSION)];
    for (key, value) in texts {
        answer.bulk(key.as_bytes());
        answer.bulk(value.as_bytes());
    }
    answer.bulk(b"proto");
    answer.integer(proto);
    answer.bulk(b"id");
    answer.count(id);
    for (key, value) in [("mode", "standalone"), ("role", "master")] {
        answer.bulk(key.as_bytes());
        answer.bulk(value.as_bytes());
    }
    answer.bulk(b"modules");
    answer.array(0);
}
