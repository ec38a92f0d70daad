//! HELLO and AUTH. There is no password: any password for the existing user is accepted, as in
//! Redis without one.

use crate::answer::Version;
use crate::client_commands::check_name;
use crate::context::Context;
use crate::fault::Fault;
use crate::number::parse_integer;
use crate::words::Words;

type Said = Result<(), Fault>;

/// The version of Redis that these commands and words are of; clients choose their commands by it.
pub(crate) const REDIS_VERSION: &str = "7.0.15";

const WRONG_PASSWORD: Fault =
    Fault::of("WRONGPASS invalid username-password pair or user is disabled.");

/// AUTH
pub(crate) fn auth(context: &mut Context<'_>, words: &Words) -> Said {
    match words.len() {
        2 => {
            return Err(Fault::of(
                "ERR AUTH <password> called without any password configured for the default user. \
                 Are you sure your configuration is correct?",
            ));
        }
        3 if words.word(1) == b"default" => context.answer().ok(),
        3 => return Err(WRONG_PASSWORD),
        _ => return Err(Fault::SYNTAX),
    }
    Ok(())
}

/// HELLO
pub(crate) fn hello(context: &mut Context<'_>, words: &Words) -> Said {
    let version = version(context, words)?;
    let mut name = None;
    let mut at = 2;
    while at < words.len() {
        let left = words.len() - at - 1;
        if left >= 2 && words.is(at, "auth") {
            if words.word(at + 1) != b"default" {
                return Err(WRONG_PASSWORD);
            }
            at += 3;
        } else if left >= 1 && words.is(at, "setname") {
            name = Some(check_name(words.word(at + 1))?);
            at += 2;
        } else {
            return Err(Fault::about("ERR Syntax error in HELLO option '", words.word(at), "'"));
        }
    }
    let client = context.client();
    client.version = version;
    if let Some(name) = name {
        client.name = name.into();
    }
    greet(context);
    Ok(())
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
