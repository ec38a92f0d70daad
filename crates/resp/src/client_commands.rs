//! CLIENT: clients tell of themselves and see each other.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use model::parse_integer;

use crate::clients::{Client, Silence};
use crate::context::Context;
use crate::fault::Fault;
use crate::words::Words;

type Said = Result<(), Fault>;

/// CLIENT ID
pub(crate) fn id(context: &mut Context<'_>, _words: &Words) -> Said {
    let id = context.client().id;
    context.answer().count(id);
    Ok(())
}

/// CLIENT GETNAME
pub(crate) fn get_name(context: &mut Context<'_>, _words: &Words) -> Said {
    let name = context.client().name.clone();
    if name.is_empty() {
        context.answer().null();
    } else {
        context.answer().bulk(&name);
    }
    Ok(())
}

/// CLIENT SETNAME
pub(crate) fn set_name(context: &mut Context<'_>, words: &Words) -> Said {
    context.client().name = check_name(words.word(2))?.into();
    context.answer().ok();
    Ok(())
}

/// A name that can stand in the list of clients.
pub(crate) fn check_name(name: &[u8]) -> Result<&[u8], Fault> {
    if name.len() > NAME_BYTES_MAX {
        return Err(Fault::of("ERR Client names have at most 1024 bytes here"));
    }
    if !is_printable(name) {
        return Err(Fault::of(
            "ERR Client names cannot contain spaces, newlines or special characters.",
        ));
    }
    Ok(name)
}

fn is_printable(name: &[u8]) -> bool {
    name.iter().all(u8::is_ascii_graphic)
}

/// Bytes of a client's name, and of its library's.
const NAME_BYTES_MAX: usize = 1_024;

/// CLIENT SETINFO
pub(crate) fn set_info(context: &mut Context<'_>, words: &Words) -> Said {
    let value = words.word(3);
    if value.len() > NAME_BYTES_MAX || !is_printable(value) {
        let name = words.lower(2);
        return Err(Fault::about(
            "ERR ",
            name.as_bytes(),
            " cannot contain spaces, newlines or special characters.",
        ));
    }
    let library = &mut context.client().library;
    match () {
        () if words.is(2, "lib-name") => library.name = value.into(),
        () if words.is(2, "lib-ver") => library.version = value.into(),
        () => return Err(Fault::about("ERR Unrecognized option '", words.word(2), "'")),
    }
    context.answer().ok();
    Ok(())
}

/// CLIENT NO-EVICT, CLIENT NO-TOUCH: no client is evicted for its memory's sake, and reads touch
/// nothing.
pub(crate) fn switch(context: &mut Context<'_>, words: &Words) -> Said {
    if !words.is(2, "on") && !words.is(2, "off") {
        return Err(Fault::SYNTAX);
    }
    context.answer().ok();
    Ok(())
}

/// CLIENT REPLY
pub(crate) fn reply(context: &mut Context<'_>, words: &Words) -> Said {
    let before = context.client().silence;
    let after = match () {
        () if words.is(2, "on") => Silence::None,
        () if words.is(2, "off") => Silence::All,
        () if words.is(2, "skip") && before == Silence::All => Silence::All,
        () if words.is(2, "skip") => Silence::Next,
        () => return Err(Fault::SYNTAX),
    };
    context.client().silence = after;
    if after == Silence::None {
        context.answer().ok();
    }
    Ok(())
}

/// CLIENT INFO
pub(crate) fn info(context: &mut Context<'_>, _words: &Words) -> Said {
    let mut text = String::new();
    let now = context.now;
    context.client().describe(now, &mut text);
    context.answer().verbatim(&text);
    Ok(())
}

/// CLIENT LIST
pub(crate) fn list(context: &mut Context<'_>, words: &Words) -> Said {
    let wanted = Wanted::parse(words)?;
    let mut text = String::new();
    let mut clients: Vec<_> =
        context.shared.clients.iter().filter(|client| wanted.is(client)).collect();
    clients.sort_by_key(|client| client.id);
    clients.into_iter().for_each(|client| client.describe(context.now, &mut text));
    context.answer().verbatim(&text);
    Ok(())
}

/// Which clients to list.
enum Wanted {
    All,
    Subscribers,
    Others,
    None,
    Ids(BTreeSet<u64>),
}

impl Wanted {
    fn parse(words: &Words) -> Result<Self, Fault> {
        match words.len() {
            2 => Ok(Self::All),
            4 if words.is(2, "type") => Self::of_type(words),
            4.. if words.is(2, "id") => {
                let id = |word| parse_integer(word).and_then(|id| u64::try_from(id).ok());
                let ids: Option<Vec<_>> = words.from(3).map(id).collect();
                let ids = ids.ok_or(Fault::of("ERR Invalid client ID"))?;
                Ok(Self::Ids(ids.into_iter().collect()))
            }
            _ => Err(Fault::SYNTAX),
        }
    }

    fn of_type(words: &Words) -> Result<Self, Fault> {
        match () {
            () if words.is(3, "normal") => Ok(Self::Others),
            () if words.is(3, "pubsub") => Ok(Self::Subscribers),
            () if words.is(3, "master") || words.is(3, "replica") || words.is(3, "slave") => {
                Ok(Self::None)
            }
            () => Err(Fault::about("ERR Unknown client type '", words.word(3), "'")),
        }
    }

    fn is(&self, client: &Client) -> bool {
        let subscribes = client.subscribed.count() > 0;
        match self {
            Self::All => true,
            Self::Subscribers => subscribes,
            Self::Others => !subscribes,
            Self::None => false,
            Self::Ids(ids) => ids.contains(&client.id),
        }
    }
}

/// CLIENT UNBLOCK
pub(crate) fn unblock(context: &mut Context<'_>, words: &Words) -> Said {
    let by_error = match words.len() {
        3 => false,
        4 if words.is(3, "timeout") => false,
        4 if words.is(3, "error") => true,
        4 => return Err(Fault::of("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
        _ => {
            return Err(Fault::of(
                "ERR unknown subcommand or wrong number of arguments for 'UNBLOCK'. Try CLIENT \
                 HELP.",
            ));
        }
    };
    let id = parse_integer(words.word(2)).ok_or(Fault::NOT_INTEGER)?;
    let shared = &mut *context.shared;
    let client = u64::try_from(id).ok().and_then(|id| shared.clients.find_mut(id));
    let session = client.and_then(|client| client.unblock(by_error).then_some(client.session));
    shared.unblocked.extend(session);
    context.answer().integer(i64::from(session.is_some()));
    Ok(())
}
