//! CONFIG: the settings that clients may know, in Redis's words. Nothing can be set while the
//! server runs. A CONFIG SET of the present value passes.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use model::{StorePolicy, glob};

use crate::arguments::pattern;
use crate::context::Context;
use crate::fault::Fault;
use crate::shared::Options;
use crate::words::Words;

type Said = Result<(), Fault>;

/// Patterns of one CONFIG GET.
const PATTERNS_MAX: usize = 100;

/// CONFIG GET
pub(crate) fn get(context: &mut Context<'_>, words: &Words) -> Said {
    if words.len() - 2 > PATTERNS_MAX {
        return Err(Fault::of("ERR too many patterns: 100 at most at once"));
    }
    words.from(2).try_for_each(|word| pattern(word).map(drop))?;
    let patterns: Vec<String> = (2..words.len()).map(|at| words.lower(at)).collect();
    let wanted = |name: &str| {
        patterns.iter().any(|pattern| glob::matches(pattern.as_bytes(), name.as_bytes()))
    };
    let mut found = all(&context.shared.options);
    found.retain(|(name, _)| wanted(name));
    let mut answer = context.answer();
    answer.map(found.len());
    for (name, value) in found {
        answer.bulk(name.as_bytes());
        answer.bulk(value.as_bytes());
    }
    Ok(())
}

/// CONFIG SET
pub(crate) fn set(context: &mut Context<'_>, words: &Words) -> Said {
    if !words.len().is_multiple_of(2) {
        return Err(Fault::SYNTAX);
    }
    let known = all(&context.shared.options);
    for at in (2..words.len()).step_by(2) {
        let name = words.lower(at);
        let Some((_, value)) = known.iter().find(|(known, _)| *known == name) else {
            return Err(Fault::about(
                "ERR Unknown option or number of arguments for CONFIG SET - '",
                words.word(at),
                "'",
            ));
        };
        if value.as_bytes() != words.word(at + 1) {
            return Err(Fault::about(
                "ERR CONFIG SET failed (possibly related to argument '",
                name.as_bytes(),
                "') - can't set immutable config",
            ));
        }
    }
    context.answer().ok();
    Ok(())
}

/// CONFIG RESETSTAT
pub(crate) fn reset_statistics(context: &mut Context<'_>, _words: &Words) -> Said {
    context.shared.commands_total = 0;
    context.shared.clients.total_since_reset = 0;
    context.answer().ok();
    Ok(())
}

/// CONFIG REWRITE
pub(crate) fn rewrite(_context: &mut Context<'_>, _words: &Words) -> Said {
    Err(Fault::of("ERR The server is running without a config file"))
}

fn all(options: &Options) -> Vec<(&'static str, String)> {
    let idle = options.idle.map_or(0, |idle| idle.as_secs());
    let keeps = options.policy != StorePolicy::Memory;
    [
        ("appendfsync", append_sync(options.policy).into()),
        ("appendonly", if keeps { "yes" } else { "no" }.into()),
        ("client-query-buffer-limit", options.command_bytes_max.to_string()),
        ("databases", options.databases.to_string()),
        ("maxclients", options.connections_max.to_string()),
        ("maxmemory", "0".into()),
        ("maxmemory-policy", "noeviction".into()),
        ("notify-keyspace-events", String::new()),
        ("port", options.port.to_string()),
        ("proto-max-bulk-len", options.message_bytes_max.to_string()),
        ("requirepass", String::new()),
        ("save", String::new()),
        ("timeout", idle.to_string()),
    ]
    .into()
}

/// Redis's name for this policy. A period other than a second has no name there: a client that asks
/// learns that the last second may be at risk, or less of it.
pub(crate) const fn append_sync(policy: StorePolicy) -> &'static str {
    match policy {
        StorePolicy::Always => "always",
        StorePolicy::Periodic(period) if period.0 <= model::Nanos::SECOND.0 => "everysec",
        StorePolicy::Periodic(_) | StorePolicy::Never | StorePolicy::Memory => "no",
    }
}
