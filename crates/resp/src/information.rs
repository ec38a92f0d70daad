//! INFO: the usual sections, each with the fields that are true here and that clients look for.

use alloc::format;
use alloc::string::String;

use model::{DatabaseStatistics, KeyCommand, Nanos, Reply, StorePolicy};

use crate::arguments::Arguments;
use crate::context::Context;
use crate::fault::Fault;
use crate::greeting::REDIS_VERSION;
use crate::query::Query;
use crate::reply_format::ReplyFormat;
use crate::shared::ListenerState;

/// Which sections are wanted, by their place in [`SECTIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sections(u16);

/// The keys of each database that has any.
type Keys<'k> = &'k [DatabaseStatistics];

type Section = (&'static str, fn(&ListenerState, Nanos, Keys<'_>) -> String);

/// In the order in which they are told.
const SECTIONS: [Section; 9] = [
    ("Server", server),
    ("Clients", clients),
    ("Memory", memory),
    ("Persistence", persistence),
    ("Stats", statistics),
    ("Replication", replication),
    ("CPU", processor),
    ("Cluster", |_, _, _| "cluster_enabled:0\r\n".into()),
    ("Keyspace", keyspace),
];

/// INFO
pub(crate) fn ask(arguments: Arguments<'_>) -> Result<Query, Fault> {
    let all = Sections((1 << SECTIONS.len()) - 1);
    let mut wanted = if arguments.len() == 1 { all.0 } else { 0 };
    for at in 1..arguments.len() {
        if ["all", "everything", "default"].iter().any(|word| arguments.is(at, word)) {
            wanted = all.0;
        }
        for (place, (name, _)) in SECTIONS.iter().enumerate() {
            wanted |= u16::from(arguments.word(at).eq_ignore_ascii_case(name.as_bytes())) << place;
        }
    }
    Ok(Query::key(KeyCommand::CountEach, ReplyFormat::Information(Sections(wanted))))
}

/// Tells the sections that are wanted.
pub(crate) fn word(
    sections: Sections,
    reply: &Reply,
    context: &mut Context<'_>,
) -> Result<(), Fault> {
    let Reply::Databases(keys) = reply else { return Err(Fault::INTERNAL) };
    let mut text = String::new();
    for (place, (name, tell)) in SECTIONS.iter().enumerate() {
        if sections.0 >> place & 1 == 0 {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        text.push_str(&format!("# {name}\r\n"));
        text.push_str(&tell(context.shared, context.now, keys));
    }
    context.answer().verbatim(&text);
    Ok(())
}

fn server(shared: &ListenerState, now: Nanos, _keys: Keys<'_>) -> String {
    let facts = &shared.facts;
    let uptime = facts.uptime().as_secs();
    lines(&[
        ("redis_version", &REDIS_VERSION),
        ("dunlin_version", &facts.version()),
        ("redis_mode", &"standalone"),
        ("os", &facts.system()),
        ("arch_bits", &usize::BITS),
        ("process_id", &facts.pid()),
        ("run_id", &run_id(shared)),
        ("tcp_port", &shared.options.port),
        ("server_time_usec", &(now.0 / 1_000)),
        ("uptime_in_seconds", &uptime),
        ("uptime_in_days", &(uptime / 86_400)),
    ])
}

/// As long as clients expect it to be.
fn run_id(shared: &ListenerState) -> String {
    format!("{:040x}", shared.facts.instance_id())
}

fn clients(shared: &ListenerState, _now: Nanos, _keys: Keys<'_>) -> String {
    let blocked = shared.clients.iter().filter(|client| client.blocked).count();
    lines(&[
        ("connected_clients", &shared.clients.count()),
        ("maxclients", &shared.options.connections_max),
        ("blocked_clients", &blocked),
        ("tracking_clients", &0),
    ])
}

fn memory(shared: &ListenerState, _now: Nanos, _keys: Keys<'_>) -> String {
    let used = shared.facts.memory_bytes();
    let human = format!("{:.2}M", used as f64 / (1024.0 * 1024.0));
    lines(&[
        ("used_memory", &used),
        ("used_memory_human", &human),
        ("used_memory_rss", &used),
        ("used_memory_rss_human", &human),
        ("maxmemory", &0),
        ("maxmemory_human", &"0B"),
        ("maxmemory_policy", &"noeviction"),
    ])
}

fn persistence(shared: &ListenerState, _now: Nanos, _keys: Keys<'_>) -> String {
    let keeps = shared.options.policy != StorePolicy::Memory;
    lines(&[
        ("loading", &0),
        ("rdb_bgsave_in_progress", &0),
        ("rdb_last_bgsave_status", &"ok"),
        ("aof_enabled", &u8::from(keeps)),
        ("aof_rewrite_in_progress", &0),
        ("aof_rewrite_scheduled", &0),
        ("aof_last_bgrewrite_status", &"ok"),
        // After an error of the disk no server is left to ask.
        ("aof_last_write_status", &"ok"),
    ])
}

fn statistics(shared: &ListenerState, _now: Nanos, _keys: Keys<'_>) -> String {
    lines(&[
        ("total_connections_received", &shared.clients.total_since_reset),
        ("total_commands_processed", &shared.commands_total),
        ("evicted_keys", &0),
        ("pubsub_patterns", &shared.patterns.len()),
    ])
}

fn replication(_shared: &ListenerState, _now: Nanos, _keys: Keys<'_>) -> String {
    lines(&[
        ("role", &"master"),
        ("connected_slaves", &0),
        ("master_failover_state", &"no-failover"),
        ("master_repl_offset", &0),
    ])
}

fn processor(shared: &ListenerState, _now: Nanos, _keys: Keys<'_>) -> String {
    let seconds = |time: Nanos| format!("{}.{:06}", time.as_secs(), time.0 / 1_000 % 1_000_000);
    lines(&[
        ("used_cpu_sys", &seconds(shared.facts.system_time())),
        ("used_cpu_user", &seconds(shared.facts.user_time())),
    ])
}

fn keyspace(_shared: &ListenerState, _now: Nanos, keys: Keys<'_>) -> String {
    let line = |it: &DatabaseStatistics| {
        let DatabaseStatistics { database, keys, limited } = it;
        format!("db{}:keys={keys},expires={limited},avg_ttl=0\r\n", database.number())
    };
    keys.iter().map(line).collect()
}

fn lines(lines: &[(&str, &dyn core::fmt::Display)]) -> String {
    lines.iter().map(|(name, value)| format!("{name}:{value}\r\n")).collect()
}
