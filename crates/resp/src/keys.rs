//! Commands on keys of any kind, and on the small values.

use alloc::vec::Vec;

use model::{
    Database, Deadline, DeadlineRule, KeyCommand, KeyKind, Nanos, QueueName, Reply, SetRule,
    StorePolicy, ValueDeadline, glob, parse_integer,
};

use crate::arguments::Arguments;
use crate::fault::Fault;
use crate::key_names::key_of;
use crate::query::Query;
use crate::reply_format::{Listing, ReplyFormat, Scan};

pub(crate) type QueryResult = Result<Query, Fault>;

/// The unit of a time, and the moment from which it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    SecondsFromNow,
    MillisFromNow,
    UnixSeconds,
    UnixMillis,
}

impl Clock {
    const fn millis(self) -> i64 {
        match self {
            Self::SecondsFromNow | Self::UnixSeconds => 1_000,
            Self::MillisFromNow | Self::UnixMillis => 1,
        }
    }

    const fn is_from_now(self) -> bool {
        matches!(self, Self::SecondsFromNow | Self::MillisFromNow)
    }

    /// When that is; nothing if Redis could not reckon with it.
    fn deadline(self, time: i64) -> Option<Deadline> {
        let millis = time.checked_mul(self.millis())?;
        if !self.is_from_now() {
            // Before 1970 is past as well.
            return Some(Deadline::At(Nanos::from_millis(u64::try_from(millis).unwrap_or(0))));
        }
        match u64::try_from(millis) {
            Ok(millis) if millis < FAR_MILLIS => Some(Deadline::After(Nanos::from_millis(millis))),
            Ok(_) => None,
            Err(_) => Some(Deadline::At(Nanos::ZERO)),
        }
    }
}

/// A span that would overflow when the time of today is added to it, and some more: 292 million
/// years.
const FAR_MILLIS: u64 = i64::MAX as u64 - (1 << 43);

/// Names that one step of KEYS or SCAN looks at, or that one of DEL and EXISTS is about.
const NAMES_PER_STEP: usize = 1_000;

/// A pattern that is longer costs more, so that a step looks at fewer names.
const PATTERN_BYTES_USUAL: usize = 64;

/// DEL, UNLINK
pub(crate) fn delete(arguments: Arguments<'_>) -> QueryResult {
    Ok(Names::new(arguments.keys(1)?, true).into_query())
}

/// EXISTS, TOUCH
pub(crate) fn count(arguments: Arguments<'_>) -> QueryResult {
    Ok(Names::new(arguments.keys(1)?, false).into_query())
}

/// Names that are deleted or counted: in a transaction all at once, else a part at a time, so that
/// no client waits for a million.
#[derive(Debug)]
pub(crate) struct Names {
    /// The rest of them.
    names: Vec<QueueName>,
    /// How many of them at a time.
    part: usize,
    /// How many keys it came to so far.
    done: u64,
    delete: bool,
}

impl Names {
    const fn new(names: Vec<QueueName>, delete: bool) -> Self {
        Self { names, part: usize::MAX, done: 0, delete }
    }

    /// More than one step is about.
    pub(crate) const fn are_many(&self) -> bool {
        self.names.len() > NAMES_PER_STEP
    }

    /// The same in parts.
    pub(crate) fn in_parts(self) -> Query {
        Self { part: NAMES_PER_STEP, ..self }.into_query()
    }

    /// The next part.
    fn into_query(self) -> Query {
        let names = self.names.iter().take(self.part).cloned().collect();
        let command =
            if self.delete { KeyCommand::Delete { names } } else { KeyCommand::CountOf { names } };
        Query::key(command, ReplyFormat::Names(self))
    }

    /// The next question, or the count in all.
    pub(crate) fn go_on(mut self, reply: &Reply) -> Result<Result<Query, u64>, Fault> {
        match reply {
            Reply::Count(count) => {
                self.done += count;
                let part = self.names.len().min(self.part);
                self.names.drain(..part);
                Ok(if self.names.is_empty() { Err(self.done) } else { Ok(self.into_query()) })
            }
            // There is more behind the same names.
            Reply::CountSoFar(count) => {
                self.done += count;
                Ok(Ok(self.into_query()))
            }
            _ => Err(Fault::INTERNAL),
        }
    }

    /// Bytes that the names hold in memory.
    pub(crate) fn held_bytes(&self) -> usize {
        self.names.len() * NAME_BYTES
    }
}

/// Bytes that a name is reckoned to hold.
const NAME_BYTES: usize = size_of::<QueueName>() + 48;

/// TYPE
pub(crate) fn kind(arguments: Arguments<'_>) -> QueryResult {
    Ok(Query::key(KeyCommand::Kind { name: arguments.key(1)? }, ReplyFormat::Kind))
}

/// OBJECT ENCODING
pub(crate) fn encoding(arguments: Arguments<'_>) -> QueryResult {
    let name = arguments.key(2)?;
    Ok(Query::key(KeyCommand::Kind { name: name.clone() }, ReplyFormat::Encoding(name)))
}

/// The second step of it, once the key is known to be a value.
pub(crate) fn encoding_of_value(name: QueueName) -> Query {
    Query::key(KeyCommand::Value { name, take: false }, ReplyFormat::EncodingOfValue)
}

/// KEYS
pub(crate) fn keys(arguments: Arguments<'_>) -> QueryResult {
    let pattern = arguments.pattern(1)?;
    let database = arguments.database();
    let listing = Listing::new(database, pattern);
    Ok(Query::key(next_names(database, None, pattern), ReplyFormat::Keys(listing)))
}

/// The next step of KEYS.
pub(crate) fn next_names(
    database: Database,
    after: Option<QueueName>,
    pattern: &[u8],
) -> KeyCommand {
    names(database, after, names_per_step(pattern), None)
}

/// How many names or fields one step looks at that holds each against a pattern.
pub(crate) fn names_per_step(pattern: &[u8]) -> usize {
    NAMES_PER_STEP * PATTERN_BYTES_USUAL / pattern.len().max(PATTERN_BYTES_USUAL)
}

const fn names(
    database: Database,
    after: Option<QueueName>,
    max: usize,
    kind: Option<KeyKind>,
) -> KeyCommand {
    KeyCommand::Names { database: Some(database), after, max, kind }
}

/// SCAN
pub(crate) fn scan(arguments: Arguments<'_>) -> QueryResult {
    let after = arguments.cursor(1)?;
    let mut scan = Scan { pattern: None, none: false };
    let (mut max, mut kind) = (10, None);
    for at in (2..arguments.len()).step_by(2) {
        if at + 1 == arguments.len() {
            return Err(Fault::SYNTAX);
        }
        match () {
            () if arguments.is(at, "match") => {
                scan.pattern = Some(arguments.pattern(at + 1)?.into());
            }
            () if arguments.is(at, "count") => {
                max = scan_count(arguments, at + 1)?;
            }
            () if arguments.is(at, "type") => {
                kind = kind_named(arguments, at + 1);
                scan.none = kind.is_none();
            }
            () => return Err(Fault::SYNTAX),
        }
    }
    let max = max.min(names_per_step(scan.pattern.as_deref().unwrap_or_default()));
    let names = names(arguments.database(), after, max, kind);
    Ok(Query::key(names, ReplyFormat::Scan(scan)))
}

/// The number behind COUNT.
pub(crate) fn scan_count(arguments: Arguments<'_>, at: usize) -> Result<usize, Fault> {
    let count = usize::try_from(arguments.integer(at)?).ok();
    count.filter(|count| *count > 0).ok_or(Fault::SYNTAX)
}

fn kind_named(arguments: Arguments<'_>, at: usize) -> Option<KeyKind> {
    match () {
        () if arguments.is(at, "list") => Some(KeyKind::List),
        () if arguments.is(at, "string") => Some(KeyKind::Value),
        () if arguments.is(at, "hash") => Some(KeyKind::Hash),
        () if arguments.is(at, "set") => Some(KeyKind::Set),
        () if arguments.is(at, "zset") => Some(KeyKind::SortedSet),
        () if arguments.is(at, "stream") => Some(KeyKind::Stream),
        () => None,
    }
}

/// RENAME, RENAMENX
pub(crate) fn rename(arguments: Arguments<'_>, only_new: bool) -> QueryResult {
    let (from, to) = (arguments.key(1)?, arguments.key(2)?);
    let format = if only_new { ReplyFormat::WhetherDone } else { ReplyFormat::Okay };
    Ok(Query::key(KeyCommand::Rename { from, to, only_new }, format))
}

/// MOVE
pub(crate) fn shift(arguments: Arguments<'_>) -> QueryResult {
    let database = arguments.database_at(2)?;
    if database == arguments.database() {
        return Err(Fault::of("ERR source and destination objects are the same"));
    }
    let (from, to) = (arguments.key(1)?, arguments.key_in(database, 1)?);
    Ok(Query::key(KeyCommand::Rename { from, to, only_new: true }, ReplyFormat::WhetherMoved))
}

/// RANDOMKEY
pub(crate) fn any_key(arguments: Arguments<'_>) -> QueryResult {
    let (database, seed) = (arguments.database(), arguments.chance());
    Ok(Query::key(KeyCommand::AnyName { database, seed }, ReplyFormat::AnyKey))
}

/// OBJECT REFCOUNT, FREQ, IDLETIME: of a key that is there one, or this error.
pub(crate) fn object_fact(arguments: Arguments<'_>, error: Option<&'static str>) -> QueryResult {
    let kind = KeyCommand::Kind { name: arguments.key(2)? };
    Ok(Query::key(kind, ReplyFormat::OfObject(error)))
}

/// OBJECT FREQ
pub(crate) const NO_FREQUENCY: &str = "ERR An LFU maxmemory policy is not selected, access \
    frequency not tracked. Please note that when switching between policies at runtime LRU and \
    LFU data will take some time to adjust.";

/// OBJECT IDLETIME
pub(crate) const NO_IDLE_TIME: &str =
    "ERR the time of the last access to a key is not tracked here";

/// MEMORY USAGE
pub(crate) fn memory(arguments: Arguments<'_>) -> QueryResult {
    for at in (3..arguments.len()).step_by(2) {
        if !arguments.is(at, "samples") || at + 1 == arguments.len() {
            return Err(Fault::SYNTAX);
        }
        if arguments.integer(at + 1)? < 0 {
            return Err(Fault::SYNTAX);
        }
    }
    Ok(Query::key(KeyCommand::MemoryOf { name: arguments.key(2)? }, ReplyFormat::CountOrNull))
}

/// WAITAOF: the answers before have waited as long as `--sync` says, and by a period the device is
/// waited for.
pub(crate) fn wait_synced(arguments: Arguments<'_>) -> QueryResult {
    let local = arguments.integer(1)?;
    if !matches!(local, 0 | 1) {
        return Err(Fault::of("ERR value is out of range, value must between 0 and 1"));
    }
    arguments.count(2)?;
    let timeout = parse_integer(arguments.word(3));
    let timeout = timeout.ok_or(Fault::of("ERR timeout is not an integer or out of range"))?;
    if timeout < 0 {
        return Err(Fault::of("ERR timeout is negative"));
    }
    let policy = arguments.shared().options.policy;
    if local == 1 && policy == StorePolicy::Memory {
        return Err(Fault::of(
            "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
        ));
    }
    let is_synced = matches!(policy, StorePolicy::Always | StorePolicy::Periodic(_));
    Ok(Query::key(KeyCommand::Synced, ReplyFormat::Synced(is_synced)))
}

/// EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT
pub(crate) fn expire(arguments: Arguments<'_>, clock: Clock, name: &str) -> QueryResult {
    let rule = rule(arguments)?;
    let deadline = clock.deadline(arguments.integer(2)?).ok_or(Fault::expire_time(name))?;
    let command = KeyCommand::SetDeadline { name: arguments.key(1)?, deadline, rule };
    Ok(Query::key(command, ReplyFormat::Count))
}

fn rule(arguments: Arguments<'_>) -> Result<DeadlineRule, Fault> {
    let (mut none, mut some, mut later, mut earlier) = (false, false, false, false);
    for at in 3..arguments.len() {
        match () {
            () if arguments.is(at, "nx") => none = true,
            () if arguments.is(at, "xx") => some = true,
            () if arguments.is(at, "gt") => later = true,
            () if arguments.is(at, "lt") => earlier = true,
            () => return Err(Fault::about("ERR Unsupported option ", arguments.word(at), "")),
        }
    }
    if none && (some || later || earlier) {
        return Err(Fault::of(
            "ERR NX and XX, GT or LT options at the same time are not compatible",
        ));
    }
    match (later, earlier) {
        (true, true) => Err(Fault::of("ERR GT and LT options at the same time are not compatible")),
        // No deadline is later than any, so that GT is never met by none.
        (true, false) => Ok(DeadlineRule::IfLater),
        (false, true) if some => Ok(DeadlineRule::IfSomeEarlier),
        (false, true) => Ok(DeadlineRule::IfEarlier),
        (false, false) if none => Ok(DeadlineRule::IfNone),
        (false, false) if some => Ok(DeadlineRule::IfSome),
        (false, false) => Ok(DeadlineRule::Always),
    }
}

/// TTL, PTTL, EXPIRETIME, PEXPIRETIME
pub(crate) fn lifetime(arguments: Arguments<'_>, clock: Clock) -> QueryResult {
    let name = arguments.key(1)?;
    Ok(Query::key(KeyCommand::Lifetime { name }, ReplyFormat::Lifetime(clock)))
}

/// PERSIST
pub(crate) fn persist(arguments: Arguments<'_>) -> QueryResult {
    Ok(Query::key(KeyCommand::ClearDeadline { name: arguments.key(1)? }, ReplyFormat::Count))
}

/// FLUSHALL, or FLUSHDB: of this database alone.
pub(crate) fn delete_all(arguments: Arguments<'_>, database: Option<Database>) -> QueryResult {
    let known = arguments.is(1, "sync") || arguments.is(1, "async");
    match arguments.len() {
        1 => {}
        2 if known => {}
        _ => return Err(Fault::SYNTAX),
    }
    Ok(Query::key(KeyCommand::DeleteAll { database }, ReplyFormat::AllDeleted(database)))
}

/// DBSIZE
pub(crate) fn size(arguments: Arguments<'_>) -> QueryResult {
    let database = Some(arguments.database());
    Ok(Query::key(KeyCommand::CountAll { database }, ReplyFormat::Count))
}

/// GET, GETDEL
pub(crate) fn value(arguments: Arguments<'_>, take: bool) -> QueryResult {
    Ok(Query::key(KeyCommand::Value { name: arguments.key(1)?, take }, ReplyFormat::Value))
}

/// GETSET
pub(crate) fn replace(arguments: Arguments<'_>) -> QueryResult {
    let set = Set { want_old: true, ..Set::default() };
    set.into_query(arguments, arguments.word(2), ReplyFormat::Old)
}

/// SETNX
pub(crate) fn set_new(arguments: Arguments<'_>) -> QueryResult {
    let set = Set { rule: SetRule::IfNone, ..Set::default() };
    set.into_query(arguments, arguments.word(2), ReplyFormat::WhetherSet)
}

/// SETEX, PSETEX
pub(crate) fn set_for(arguments: Arguments<'_>, clock: Clock, name: &str) -> QueryResult {
    let deadline = ValueDeadline::New(value_deadline(arguments, 2, clock, name)?);
    let set = Set { deadline, ..Set::default() };
    set.into_query(arguments, arguments.word(3), ReplyFormat::Set)
}

/// SET
pub(crate) fn set(arguments: Arguments<'_>) -> QueryResult {
    let set = Set::parse(arguments)?;
    let format = if set.want_old { ReplyFormat::Old } else { ReplyFormat::Set };
    set.into_query(arguments, arguments.word(2), format)
}

/// The options of SET beside key and value.
struct Set {
    rule: SetRule,
    deadline: ValueDeadline,
    want_old: bool,
}

impl Default for Set {
    fn default() -> Self {
        Self { rule: SetRule::Always, deadline: ValueDeadline::Never, want_old: false }
    }
}

impl Set {
    fn parse(arguments: Arguments<'_>) -> Result<Self, Fault> {
        let mut set = Self::default();
        let mut time = None;
        let mut at = 3;
        while at < arguments.len() {
            let clock = clock_named(arguments, at);
            match (set.rule, set.deadline, time) {
                (SetRule::Always | SetRule::IfNone, _, _) if arguments.is(at, "nx") => {
                    set.rule = SetRule::IfNone;
                }
                (SetRule::Always | SetRule::IfSome, _, _) if arguments.is(at, "xx") => {
                    set.rule = SetRule::IfSome;
                }
                (_, _, None) if arguments.is(at, "keepttl") => set.deadline = ValueDeadline::Kept,
                (_, ValueDeadline::Never, None) if clock.is_some() && at + 1 < arguments.len() => {
                    at += 1;
                    time = clock.map(|clock| (clock, at));
                }
                _ if arguments.is(at, "get") => set.want_old = true,
                _ => return Err(Fault::SYNTAX),
            }
            at += 1;
        }
        if let Some((clock, at)) = time {
            set.deadline = ValueDeadline::New(value_deadline(arguments, at, clock, "set")?);
        }
        Ok(set)
    }

    fn into_query(
        self,
        arguments: Arguments<'_>,
        value: &[u8],
        format: ReplyFormat,
    ) -> QueryResult {
        let Self { rule, deadline, want_old } = self;
        let name = arguments.key(1)?;
        let command = KeyCommand::SetValue { name, value: value.into(), deadline, rule, want_old };
        Ok(Query::key(command, format))
    }
}

pub(crate) fn clock_named(arguments: Arguments<'_>, at: usize) -> Option<Clock> {
    let clocks = [
        ("ex", Clock::SecondsFromNow),
        ("px", Clock::MillisFromNow),
        ("exat", Clock::UnixSeconds),
        ("pxat", Clock::UnixMillis),
    ];
    clocks.into_iter().find(|(name, _)| arguments.is(at, name)).map(|(_, clock)| clock)
}

/// Unlike that of EXPIRE, a value's time must be positive.
pub(crate) fn value_deadline(
    arguments: Arguments<'_>,
    at: usize,
    clock: Clock,
    name: &str,
) -> Result<Deadline, Fault> {
    let time = arguments.integer(at)?;
    let deadline = Some(time).filter(|time| *time > 0).and_then(|time| clock.deadline(time));
    deadline.ok_or(Fault::expire_time(name))
}

/// The form in which Redis would keep a value.
pub(crate) fn encoding_of(value: &[u8]) -> &'static str {
    match value.len() {
        0..=20 if parse_integer(value).is_some() => "int",
        0..=44 => "embstr",
        _ => "raw",
    }
}

/// The names that match a pattern.
pub(crate) fn matching(pattern: &[u8], names: Vec<QueueName>) -> Vec<QueueName> {
    let matches = |name: &QueueName| glob::matches(pattern, &key_of(name));
    names.into_iter().filter(matches).collect()
}
