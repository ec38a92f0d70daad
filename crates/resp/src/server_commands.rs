//! Commands that the server answers by itself.

use alloc::string::ToString as _;

use model::parse_integer;

use crate::context::Context;
use crate::fault::Fault;
use crate::words::Words;

type Said = Result<(), Fault>;

/// PING
pub(crate) fn ping(context: &mut Context<'_>, words: &Words) -> Said {
    if words.len() > 2 {
        return Err(Fault::arity("ping"));
    }
    let subscriber = context.client().is_only_subscriber();
    let mut answer = context.answer();
    match words.len() {
        _ if subscriber => {
            answer.array(2);
            answer.bulk(b"pong");
            answer.bulk(words.word(1));
        }
        1 => answer.simple("PONG"),
        _ => answer.bulk(words.word(1)),
    }
    Ok(())
}

/// ECHO
pub(crate) fn echo(context: &mut Context<'_>, words: &Words) -> Said {
    context.answer().bulk(words.word(1));
    Ok(())
}

/// TIME
pub(crate) fn time(context: &mut Context<'_>, _words: &Words) -> Said {
    let micros = context.shared.wall_clock.wall_time(context.now).0 / 1_000;
    let mut answer = context.answer();
    answer.array(2);
    answer.bulk((micros / 1_000_000).to_string().as_bytes());
    answer.bulk((micros % 1_000_000).to_string().as_bytes());
    Ok(())
}

/// SELECT
pub(crate) fn select(context: &mut Context<'_>, words: &Words) -> Said {
    let database = context.shared.options.database(words.word(1), None)?;
    context.client().database = database;
    context.answer().ok();
    Ok(())
}

/// SWAPDB. The names of all keys would change, so a database is swapped with itself alone.
pub(crate) fn swap(context: &mut Context<'_>, words: &Words) -> Said {
    let options = &context.shared.options;
    let read = |at, error| options.database(words.word(at), Some(Fault::of(error)));
    let first = read(1, "ERR invalid first DB index");
    let second = read(2, "ERR invalid second DB index");
    // Redis reads both numbers before it looks for the databases.
    for fault in [&first, &second].into_iter().filter_map(|read| read.as_ref().err()) {
        if *fault != Fault::DB_INDEX {
            return Err(fault.clone());
        }
    }
    if first? != second? {
        return Err(Fault::of(
            "ERR SWAPDB of two databases is not supported here: MOVE moves a key",
        ));
    }
    context.answer().ok();
    Ok(())
}

/// WAIT. There is no replica.
pub(crate) fn wait(context: &mut Context<'_>, words: &Words) -> Said {
    parse_integer(words.word(1)).ok_or(Fault::NOT_INTEGER)?;
    let timeout = parse_integer(words.word(2));
    let timeout = timeout.ok_or(Fault::of("ERR timeout is not an integer or out of range"))?;
    if timeout < 0 {
        return Err(Fault::of("ERR timeout is negative"));
    }
    context.answer().integer(0);
    Ok(())
}

/// DEBUG is refused by Redis as well unless it is told otherwise.
pub(crate) const DEBUG: &str = "ERR DEBUG command not allowed. If the enable-debug-command option \
    is set to \"local\", you can run it from a local connection, otherwise you need to set this \
    option in the configuration file, and then restart the server.";

/// MEMORY, but for USAGE.
pub(crate) const MEMORY: &str = "ERR MEMORY has USAGE alone here: /metrics tells the memory of \
    the server";

/// FUNCTION FLUSH. There are no functions.
pub(crate) fn function_flush(context: &mut Context<'_>, words: &Words) -> Said {
    if words.len() > 3 || !(words.len() == 2 || words.is(2, "sync") || words.is(2, "async")) {
        return Err(Fault::of("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
    }
    context.answer().ok();
    Ok(())
}

/// PUBSUB NUMPAT
pub(crate) fn pattern_count(context: &mut Context<'_>, _words: &Words) -> Said {
    let count = context.shared.patterns.len() as u64;
    context.answer().count(count);
    Ok(())
}
