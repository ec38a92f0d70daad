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

/// SELECT. There is one database.
pub(crate) fn select(context: &mut Context<'_>, words: &Words) -> Said {
    match parse_integer(words.word(1)) {
        Some(0) => context.answer().ok(),
        Some(_) => return Err(Fault::DB_INDEX),
        None => return Err(Fault::NOT_INTEGER),
    }
    Ok(())
}

/// SWAPDB. Nothing but the one database can be swapped with itself.
pub(crate) fn swap(context: &mut Context<'_>, words: &Words) -> Said {
    let first = parse_integer(words.word(1)).ok_or(Fault::of("ERR invalid first DB index"))?;
    let second = parse_integer(words.word(2)).ok_or(Fault::of("ERR invalid second DB index"))?;
    if (first, second) != (0, 0) {
        return Err(Fault::DB_INDEX);
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
