//! Every command there is: its name, how many words it has, and its function.

use crate::arguments::Arguments;
use crate::catalogue;
use crate::client_commands as client;
use crate::collection_specs;
use crate::context::Context;
use crate::copying;
use crate::fault::{Fault, printed};
use crate::greeting;
use crate::information;
use crate::keys::{self, Clock};
use crate::lists;
use crate::parameters;
use crate::query::Query;
use crate::script_specs;
use crate::server_commands as server;
use crate::shared::Side;
use crate::sorting;
use crate::stream_specs;
use crate::strings;
use crate::topics;
use crate::users;
use crate::value_programs;
use crate::words::Words;

/// One command.
#[derive(Debug)]
pub(crate) struct Spec {
    /// In lower case; of a subcommand with that of its command: `client|list`.
    pub(crate) name: &'static str,
    /// Words with the name; negative: at least so many.
    pub(crate) arity: i8,
    /// As COMMAND INFO shows them.
    pub(crate) flags: &'static [&'static str],
    /// The first key, the last (negative: from the end), the step between.
    pub(crate) keys: (i8, i8, i8),
    pub(crate) group: Group,
    pub(crate) handler: Handler,
}

/// The action of a command.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    /// Asks the engine.
    Ask(fn(Arguments<'_>) -> Result<Query, Fault>),
    /// Is answered by the server itself.
    Say(Say),
    /// Changes the session's behaviour.
    Verb(Verb),
    /// Its subcommands do it, and without one it does this, if anything.
    Subcommands(Option<Say>),
    /// Is not allowed, neither now nor in a transaction.
    Never(&'static str),
}

/// Answers from the server's own knowledge.
pub(crate) type Say = fn(&mut Context<'_>, &Words) -> Result<(), Fault>;

/// Commands that only the session can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Multi,
    Exec,
    Discard,
    Watch,
    Unwatch,
    Subscribe { pattern: bool },
    Unsubscribe { pattern: bool },
    Quit,
    Reset,
}

/// The subject of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Bitmap,
    Connection,
    Generic,
    Hash,
    List,
    PubSub,
    Scripting,
    Server,
    Set,
    SortedSet,
    Stream,
    String,
    Transactions,
}

impl Spec {
    /// Finds the command that these words begin with, and sees that they are as many as it takes.
    pub(crate) fn find(words: &Words) -> Result<&'static Self, Fault> {
        let spec = lookup_word(words.word(0)).ok_or_else(|| unknown(words))?;
        spec.check_arity(words)?;
        if !matches!(spec.handler, Handler::Subcommands(_)) || words.len() == 1 {
            return Ok(spec);
        }
        let name = [spec.name, "|", &words.lower(1)].concat();
        let subcommand = lookup(&name).ok_or_else(|| unknown_subcommand(spec, words))?;
        subcommand.check_arity(words)?;
        Ok(subcommand)
    }

    /// True if it may store something.
    pub(crate) fn may_store(&self) -> bool {
        self.flags.contains(&"denyoom")
    }

    /// True if it is asked of the engine as soon as it has come.
    pub(crate) const fn asks_engine(&self) -> bool {
        matches!(self.handler, Handler::Ask(_))
    }

    fn check_arity(&self, words: &Words) -> Result<(), Fault> {
        let least = usize::from(self.arity.unsigned_abs());
        let fits = if self.arity < 0 { words.len() >= least } else { words.len() == least };
        if fits { Ok(()) } else { Err(Fault::arity(self.name)) }
    }
}

/// The command that a client gave last, to be known again: most clients repeat themselves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeated {
    spec: &'static Spec,
    /// As the client spells it.
    word: [u8; NAME_BYTES_MAX],
    bytes: usize,
}

impl Repeated {
    /// The command at the beginning of these words; nothing if it takes more than one word to
    /// know that.
    fn of(spec: &'static Spec, words: &Words) -> Option<Self> {
        let (name, mut word) = (words.word(0), [0; NAME_BYTES_MAX]);
        if !words.is(0, spec.name) || matches!(spec.handler, Handler::Subcommands(_)) {
            return None;
        }
        word.get_mut(..name.len())?.copy_from_slice(name);
        Some(Self { spec, word, bytes: name.len() })
    }

    /// The command that these words ask, which is remembered.
    pub(crate) fn find(last: &mut Option<Self>, words: &Words) -> Result<&'static Spec, Fault> {
        if let Some(Self { spec, word, bytes }) = last
            && word.get(..*bytes) == Some(words.word(0))
        {
            spec.check_arity(words)?;
            return Ok(spec);
        }
        let spec = Spec::find(words)?;
        *last = Self::of(spec, words);
        Ok(spec)
    }
}

/// All commands with their subcommands: by name, those of the other tables behind these.
pub(crate) fn all() -> impl Iterator<Item = &'static Spec> {
    TABLES.into_iter().flatten()
}

/// The command or subcommand of this name, in lower case.
pub(crate) fn lookup(name: &str) -> Option<&'static Spec> {
    let search = |specs: &'static [Spec]| {
        let index = specs.binary_search_by(|spec| spec.name.cmp(name)).ok()?;
        specs.get(index)
    };
    TABLES.into_iter().find_map(search)
}

/// Each is in the order of its names, and no name is in two.
static TABLES: [&[Spec]; 4] =
    [&SPECS, &collection_specs::SPECS, &stream_specs::SPECS, &script_specs::SPECS];

/// The command of this name, in letters of any size.
fn lookup_word(word: &[u8]) -> Option<&'static Spec> {
    let mut name = [0; NAME_BYTES_MAX];
    let name = name.get_mut(..word.len())?;
    name.copy_from_slice(word);
    name.make_ascii_lowercase();
    lookup(core::str::from_utf8(name).ok()?)
}

/// No command's name is longer.
const NAME_BYTES_MAX: usize = 16;

fn unknown(words: &Words) -> Fault {
    const SHOWN_BYTES_MAX: usize = 128;
    let mut shown = alloc::vec::Vec::new();
    for word in words.from(1) {
        if shown.len() >= SHOWN_BYTES_MAX {
            break;
        }
        let most = SHOWN_BYTES_MAX - shown.len();
        shown.extend([b"'", printed(word, most), b"' "].concat());
    }
    let name = printed(words.word(0), SHOWN_BYTES_MAX);
    let named = [name, b"', with args beginning with: ", &shown].concat();
    Fault::about("ERR unknown command '", &named, "")
}

fn unknown_subcommand(spec: &Spec, words: &Words) -> Fault {
    let help = ["'. Try ", &spec.name.to_ascii_uppercase(), " HELP."].concat();
    Fault::about("ERR unknown subcommand '", printed(words.word(1), 128), &help)
}

impl core::fmt::Debug for Handler {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Ask(_) => "Ask",
            Self::Say(_) => "Say",
            Self::Verb(_) => "Verb",
            Self::Subcommands(_) => "Subcommands",
            Self::Never(_) => "Never",
        })
    }
}

pub(crate) const fn ask(
    name: &'static str,
    arity: i8,
    flags: &'static [&'static str],
    keys: (i8, i8, i8),
    group: Group,
    query: fn(Arguments<'_>) -> Result<Query, Fault>,
) -> Spec {
    Spec { name, arity, flags, keys, group, handler: Handler::Ask(query) }
}

pub(crate) const fn say(
    name: &'static str,
    arity: i8,
    flags: &'static [&'static str],
    group: Group,
    say: Say,
) -> Spec {
    Spec { name, arity, flags, keys: NO_KEYS, group, handler: Handler::Say(say) }
}

const fn verb(
    name: &'static str,
    arity: i8,
    flags: &'static [&'static str],
    group: Group,
    verb: Verb,
) -> Spec {
    Spec { name, arity, flags, keys: NO_KEYS, group, handler: Handler::Verb(verb) }
}

pub(crate) const fn container(name: &'static str, group: Group) -> Spec {
    Spec { name, arity: -2, flags: &[], keys: NO_KEYS, group, handler: Handler::Subcommands(None) }
}

const fn refused(name: &'static str, arity: i8, why: &'static str) -> Spec {
    let handler = Handler::Never(why);
    Spec { name, arity, flags: ADMIN, keys: NO_KEYS, group: Server, handler }
}

pub(crate) const NO_KEYS: (i8, i8, i8) = (0, 0, 0);
pub(crate) const ONE_KEY: (i8, i8, i8) = (1, 1, 1);
pub(crate) const TWO_KEYS: (i8, i8, i8) = (1, 2, 1);

use Group::{Bitmap, Connection, Generic, List, PubSub, Server, String, Transactions};

pub(crate) const WRITE: &[&str] = &["write"];
pub(crate) const WRITE_FAST: &[&str] = &["write", "fast"];
pub(crate) const STORE: &[&str] = &["write", "denyoom"];
pub(crate) const STORE_FAST: &[&str] = &["write", "denyoom", "fast"];
pub(crate) const READ: &[&str] = &["readonly"];
pub(crate) const READ_FAST: &[&str] = &["readonly", "fast"];
const WAIT: &[&str] = &["write", "noscript", "blocking"];
const WAIT_STORE: &[&str] = &["write", "denyoom", "noscript", "blocking"];
pub(crate) const WAIT_MOVABLE: &[&str] = &["write", "blocking", "movablekeys"];
const STORE_MOVABLE: &[&str] = &["write", "denyoom", "movablekeys"];
const READ_MOVABLE: &[&str] = &["readonly", "movablekeys"];
const OWN: &[&str] = &["noscript", "loading", "stale"];
const OWN_FAST: &[&str] = &["noscript", "loading", "stale", "fast"];
const ANY_FAST: &[&str] = &["loading", "stale", "fast"];
const ANY: &[&str] = &["loading", "stale"];
const ADMIN: &[&str] = &["admin", "noscript", "loading", "stale"];
const TOPIC: &[&str] = &["pubsub", "noscript", "loading", "stale"];
const TOPIC_FAST: &[&str] = &["pubsub", "loading", "stale", "fast"];
const GREET: &[&str] = &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"];

/// In the order of their names.
static SPECS: [Spec; 156] = [
    container("acl", Server),
    say("acl|cat", -2, OWN, Server, users::categories_of),
    refused("acl|deluser", -3, users::ELSEWHERE),
    say("acl|getuser", 3, OWN, Server, users::user),
    say("acl|help", 2, ANY, Server, catalogue::help),
    say("acl|list", 2, OWN, Server, users::list),
    refused("acl|load", 2, users::ELSEWHERE),
    refused("acl|save", 2, users::ELSEWHERE),
    refused("acl|setuser", -3, users::ELSEWHERE),
    say("acl|users", 2, OWN, Server, users::users),
    say("acl|whoami", 2, OWN, Server, users::who_am_i),
    ask("append", 3, STORE_FAST, ONE_KEY, String, strings::append),
    say("auth", -2, GREET, Connection, greeting::auth),
    ask("bitcount", -2, READ, ONE_KEY, Bitmap, strings::count_bits),
    ask("bitfield", -2, STORE, ONE_KEY, Bitmap, strings::fields),
    ask("bitfield_ro", -2, READ_FAST, ONE_KEY, Bitmap, strings::fields_read_only),
    ask("bitop", -4, STORE, (2, -1, 1), Bitmap, value_programs::combine_bits),
    ask("bitpos", -3, READ, ONE_KEY, Bitmap, strings::place_of_bit),
    ask("blmove", 6, WAIT_STORE, TWO_KEYS, List, |it| lists::shift(it, true)),
    ask("blmpop", -5, WAIT_MOVABLE, NO_KEYS, List, lists::pop_several_waiting),
    ask("blpop", -3, WAIT, (1, -2, 1), List, |it| lists::pop_waiting(it, Side::Left)),
    ask("brpop", -3, WAIT, (1, -2, 1), List, |it| lists::pop_waiting(it, Side::Right)),
    ask("brpoplpush", 4, WAIT_STORE, TWO_KEYS, List, |it| lists::rotate(it, true)),
    container("client", Connection),
    say("client|getname", 2, OWN, Connection, client::get_name),
    say("client|help", 2, OWN, Connection, catalogue::help),
    say("client|id", 2, OWN, Connection, client::id),
    say("client|info", 2, OWN, Connection, client::info),
    say("client|list", -2, ADMIN, Connection, client::list),
    say("client|no-evict", 3, ADMIN, Connection, client::switch),
    say("client|no-touch", 3, OWN, Connection, client::switch),
    say("client|reply", 3, OWN, Connection, client::reply),
    say("client|setinfo", 4, OWN, Connection, client::set_info),
    say("client|setname", 3, OWN, Connection, client::set_name),
    say("client|unblock", -3, ADMIN, Connection, client::unblock),
    Spec {
        arity: -1,
        flags: ANY,
        handler: Handler::Subcommands(Some(catalogue::command)),
        ..container("command", Server)
    },
    say("command|count", 2, ANY, Server, catalogue::count),
    say("command|docs", -2, ANY, Server, catalogue::docs),
    say("command|help", 2, ANY, Server, catalogue::help),
    say("command|info", -2, ANY, Server, catalogue::info),
    say("command|list", -2, ANY, Server, catalogue::list),
    container("config", Server),
    say("config|get", -3, ADMIN, Server, parameters::get),
    say("config|help", 2, ADMIN, Server, catalogue::help),
    say("config|resetstat", 2, ADMIN, Server, parameters::reset_statistics),
    say("config|rewrite", 2, ADMIN, Server, parameters::rewrite),
    say("config|set", -4, ADMIN, Server, parameters::set),
    ask("copy", -3, STORE, TWO_KEYS, Generic, copying::copy),
    ask("dbsize", 1, READ_FAST, NO_KEYS, Server, keys::size),
    Spec { handler: Handler::Never(server::DEBUG), flags: ADMIN, ..container("debug", Server) },
    ask("decr", 2, STORE_FAST, ONE_KEY, String, |it| strings::step(it, -1)),
    ask("decrby", 3, STORE_FAST, ONE_KEY, String, strings::decrease),
    ask("del", -2, WRITE, (1, -1, 1), Generic, keys::delete),
    verb("discard", 1, OWN_FAST, Transactions, Verb::Discard),
    say("echo", 2, ANY_FAST, Connection, server::echo),
    verb("exec", 1, OWN, Transactions, Verb::Exec),
    ask("exists", -2, READ_FAST, (1, -1, 1), Generic, keys::count),
    ask("expire", -3, WRITE_FAST, ONE_KEY, Generic, |it| {
        keys::expire(it, Clock::SecondsFromNow, "expire")
    }),
    ask("expireat", -3, WRITE_FAST, ONE_KEY, Generic, |it| {
        keys::expire(it, Clock::UnixSeconds, "expireat")
    }),
    ask("expiretime", 2, READ_FAST, ONE_KEY, Generic, |it| keys::lifetime(it, Clock::UnixSeconds)),
    ask("flushall", -1, WRITE, NO_KEYS, Server, |it| keys::delete_all(it, None)),
    ask("flushdb", -1, WRITE, NO_KEYS, Server, |it| keys::delete_all(it, Some(it.database()))),
    container("function", Server),
    say("function|flush", -2, WRITE, Server, server::function_flush),
    say("function|help", 2, ANY, Server, catalogue::help),
    ask("get", 2, READ_FAST, ONE_KEY, String, |it| keys::value(it, false)),
    ask("getbit", 3, READ_FAST, ONE_KEY, Bitmap, strings::bit),
    ask("getdel", 2, WRITE_FAST, ONE_KEY, String, |it| keys::value(it, true)),
    ask("getex", -2, WRITE_FAST, ONE_KEY, String, strings::value_until),
    ask("getrange", 4, READ, ONE_KEY, String, strings::range),
    ask("getset", 3, STORE_FAST, ONE_KEY, String, keys::replace),
    say("hello", -1, GREET, Connection, greeting::hello),
    ask("incr", 2, STORE_FAST, ONE_KEY, String, |it| strings::step(it, 1)),
    ask("incrby", 3, STORE_FAST, ONE_KEY, String, strings::increase),
    ask("incrbyfloat", 3, STORE_FAST, ONE_KEY, String, strings::increase_decimal),
    ask("info", -1, ANY, NO_KEYS, Server, information::ask),
    ask("keys", 2, READ, NO_KEYS, Generic, keys::keys),
    ask("lcs", -3, READ, TWO_KEYS, String, value_programs::common_subsequence),
    ask("lindex", 3, READ, ONE_KEY, List, lists::index),
    ask("linsert", 5, STORE, ONE_KEY, List, lists::insert),
    ask("llen", 2, READ_FAST, ONE_KEY, List, lists::length),
    ask("lmove", 5, STORE, TWO_KEYS, List, |it| lists::shift(it, false)),
    ask("lmpop", -4, &["write", "movablekeys"], NO_KEYS, List, lists::pop_several),
    ask("lpop", -2, WRITE_FAST, ONE_KEY, List, |it| lists::pop(it, Side::Left, "lpop")),
    ask("lpos", -3, READ, ONE_KEY, List, lists::locate),
    ask("lpush", -3, STORE_FAST, ONE_KEY, List, |it| lists::push(it, Side::Left, false)),
    ask("lpushx", -3, STORE_FAST, ONE_KEY, List, |it| lists::push(it, Side::Left, true)),
    ask("lrange", 4, READ, ONE_KEY, List, lists::range),
    ask("lrem", 4, WRITE, ONE_KEY, List, lists::remove),
    ask("lset", 4, STORE, ONE_KEY, List, lists::replace),
    ask("ltrim", 4, WRITE, ONE_KEY, List, lists::keep),
    container("memory", Server),
    refused("memory|doctor", 2, server::MEMORY),
    say("memory|help", 2, ANY, Server, catalogue::help),
    refused("memory|malloc-stats", 2, server::MEMORY),
    refused("memory|purge", 2, server::MEMORY),
    refused("memory|stats", 2, server::MEMORY),
    ask("memory|usage", -3, READ, (2, 2, 1), Server, keys::memory),
    ask("mget", -2, READ_FAST, (1, -1, 1), String, strings::values),
    ask("move", 3, WRITE_FAST, ONE_KEY, Generic, keys::shift),
    ask("mset", -3, STORE, (1, -1, 2), String, |it| strings::set_values(it, false)),
    ask("msetnx", -3, STORE, (1, -1, 2), String, |it| strings::set_values(it, true)),
    verb("multi", 1, OWN_FAST, Transactions, Verb::Multi),
    container("object", Generic),
    ask("object|encoding", 3, READ, (2, 2, 1), Generic, keys::encoding),
    ask("object|freq", 3, READ, (2, 2, 1), Generic, |it| {
        keys::object_fact(it, Some(keys::NO_FREQUENCY))
    }),
    say("object|help", 2, ANY, Generic, catalogue::help),
    ask("object|idletime", 3, READ, (2, 2, 1), Generic, |it| {
        keys::object_fact(it, Some(keys::NO_IDLE_TIME))
    }),
    ask("object|refcount", 3, READ, (2, 2, 1), Generic, |it| keys::object_fact(it, None)),
    ask("persist", 2, WRITE_FAST, ONE_KEY, Generic, keys::persist),
    ask("pexpire", -3, WRITE_FAST, ONE_KEY, Generic, |it| {
        keys::expire(it, Clock::MillisFromNow, "pexpire")
    }),
    ask("pexpireat", -3, WRITE_FAST, ONE_KEY, Generic, |it| {
        keys::expire(it, Clock::UnixMillis, "pexpireat")
    }),
    ask("pexpiretime", 2, READ_FAST, ONE_KEY, Generic, |it| keys::lifetime(it, Clock::UnixMillis)),
    say("ping", -1, &["fast"], Connection, server::ping),
    ask("psetex", 4, STORE, ONE_KEY, String, |it| {
        keys::set_for(it, Clock::MillisFromNow, "psetex")
    }),
    verb("psubscribe", -2, TOPIC, PubSub, Verb::Subscribe { pattern: true }),
    ask("pttl", 2, READ_FAST, ONE_KEY, Generic, |it| keys::lifetime(it, Clock::MillisFromNow)),
    ask("publish", 3, TOPIC_FAST, NO_KEYS, PubSub, topics::publish),
    container("pubsub", PubSub),
    ask("pubsub|channels", -2, TOPIC, NO_KEYS, PubSub, topics::channels),
    say("pubsub|help", 2, ANY, PubSub, catalogue::help),
    say("pubsub|numpat", 2, TOPIC, PubSub, server::pattern_count),
    ask("pubsub|numsub", -2, TOPIC, NO_KEYS, PubSub, topics::subscribers),
    verb("punsubscribe", -1, TOPIC, PubSub, Verb::Unsubscribe { pattern: true }),
    verb("quit", -1, GREET, Connection, Verb::Quit),
    ask("randomkey", 1, READ, NO_KEYS, Generic, keys::any_key),
    ask("rename", 3, WRITE, TWO_KEYS, Generic, |it| keys::rename(it, false)),
    ask("renamenx", 3, WRITE_FAST, TWO_KEYS, Generic, |it| keys::rename(it, true)),
    verb("reset", 1, GREET, Connection, Verb::Reset),
    ask("rpop", -2, WRITE_FAST, ONE_KEY, List, |it| lists::pop(it, Side::Right, "rpop")),
    ask("rpoplpush", 3, STORE, TWO_KEYS, List, |it| lists::rotate(it, false)),
    ask("rpush", -3, STORE_FAST, ONE_KEY, List, |it| lists::push(it, Side::Right, false)),
    ask("rpushx", -3, STORE_FAST, ONE_KEY, List, |it| lists::push(it, Side::Right, true)),
    ask("scan", -2, READ, NO_KEYS, Generic, keys::scan),
    say("select", 2, ANY_FAST, Connection, server::select),
    ask("set", -3, STORE, ONE_KEY, String, keys::set),
    ask("setbit", 4, STORE, ONE_KEY, Bitmap, strings::set_bit),
    ask("setex", 4, STORE, ONE_KEY, String, |it| keys::set_for(it, Clock::SecondsFromNow, "setex")),
    ask("setnx", 3, STORE_FAST, ONE_KEY, String, keys::set_new),
    ask("setrange", 4, STORE, ONE_KEY, String, strings::overwrite),
    ask("sort", -2, STORE_MOVABLE, ONE_KEY, Generic, |it| sorting::sort(it, true)),
    ask("sort_ro", -2, READ_MOVABLE, ONE_KEY, Generic, |it| sorting::sort(it, false)),
    ask("strlen", 2, READ_FAST, ONE_KEY, String, strings::length),
    verb("subscribe", -2, TOPIC, PubSub, Verb::Subscribe { pattern: false }),
    ask("substr", 4, READ, ONE_KEY, String, strings::range),
    say("swapdb", 3, WRITE_FAST, Server, server::swap),
    say("time", 1, ANY_FAST, Server, server::time),
    ask("touch", -2, READ_FAST, (1, -1, 1), Generic, keys::count),
    ask("ttl", 2, READ_FAST, ONE_KEY, Generic, |it| keys::lifetime(it, Clock::SecondsFromNow)),
    ask("type", 2, READ_FAST, ONE_KEY, Generic, keys::kind),
    ask("unlink", -2, WRITE_FAST, (1, -1, 1), Generic, keys::delete),
    verb("unsubscribe", -1, TOPIC, PubSub, Verb::Unsubscribe { pattern: false }),
    verb("unwatch", 1, OWN_FAST, Transactions, Verb::Unwatch),
    say("wait", 3, &["noscript"], Generic, server::wait),
    ask("waitaof", 4, &["noscript"], NO_KEYS, Generic, keys::wait_synced),
    Spec { keys: (1, -1, 1), ..verb("watch", -2, OWN_FAST, Transactions, Verb::Watch) },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Words {
        let mut words = Words::new();
        for word in line.split(' ') {
            words.extend(word.as_bytes());
            words.end_word();
        }
        words
    }

    #[test]
    fn repeated_command_finds_the_same_spec() {
        let lines = ["LPUSH l e", "LPUSH l f", "lpush l e", "LPUSH l", "LPUSHX l e", "client id"];
        let more = ["client list", "CLIENT", "command", "command count", "x", "LPUSH l e", "ping"];
        let mut last = None;
        for line in lines.into_iter().chain(more).flat_map(|line| [line; 2]) {
            let words = words(line);
            let name = |found: Result<&Spec, Fault>| found.map(|spec| spec.name).map_err(|it| it.0);
            assert_eq!(name(Repeated::find(&mut last, &words)), name(Spec::find(&words)), "{line}");
        }
    }

    #[test]
    fn command_table_is_in_order() {
        for specs in TABLES {
            assert!(specs.is_sorted_by(|one, next| one.name < next.name));
        }
        assert!(all().all(|spec| lookup(spec.name).is_some_and(|it| core::ptr::eq(it, spec))));
        assert!(all().all(|spec| spec.name.contains('|') || spec.name.len() <= NAME_BYTES_MAX));
    }
}
