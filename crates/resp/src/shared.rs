//! The state that all connections of a listener share.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use core::cell::Cell;
use core::fmt;

use model::{
    Command, Database, Draining, ListCommand, Nanos, QueueName, SessionId, StorePolicy, WallClock,
    limits, parse_integer,
};

use crate::arguments::key;
use crate::chance::Chance;
use crate::clients::Clients;
use crate::cursors::Cursors;
use crate::fault::Fault;
use crate::interpreter::Interpreter;
use crate::reader::COMMAND_BYTES_MAX;
use crate::scripts::Scripts;

/// One of the two ends of a list, as Redis calls them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// The end at which LPUSH stores.
    Left,
    /// The end at which RPUSH stores.
    #[default]
    Right,
}

/// An operator's choices, as far as clients ask for them or feel them.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Which side of a list is the queue's head, where other protocols receive.
    pub list_head: Side,
    /// Larger words of commands are refused.
    pub message_bytes_max: usize,
    /// Larger commands are refused, and more of them between MULTI and EXEC: each word counts with
    /// its overhead.
    pub command_bytes_max: usize,
    /// Bytes of the names that KEYS lists, and of EXEC's answers that the server gives by itself.
    pub reply_bytes_max: usize,
    /// The meaning of "persistent".
    pub policy: StorePolicy,
    /// The port for clients.
    pub port: u16,
    /// Connections that may be open.
    pub connections_max: usize,
    /// How long a client may be silent; `None`: for ever.
    pub idle: Option<Nanos>,
    /// How many databases a client may select.
    pub databases: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            list_head: Side::Right,
            message_bytes_max: limits::MESSAGE_BYTES_MAX,
            command_bytes_max: COMMAND_BYTES_MAX,
            reply_bytes_max: limits::REPLY_BYTES_MAX,
            policy: StorePolicy::Always,
            port: 6_379,
            connections_max: 10_000,
            idle: None,
            databases: DATABASES_DEFAULT,
        }
    }
}

impl Options {
    /// The database that a client names by its number. Redis words the error of a word that is no
    /// number in several ways.
    pub(crate) fn database(&self, word: &[u8], error: Option<Fault>) -> Result<Database, Fault> {
        let not_a_number = || error.clone().unwrap_or(Fault::NOT_INTEGER);
        let number = parse_integer(word).ok_or_else(not_a_number)?;
        if i32::try_from(number).is_err() {
            return Err(error.unwrap_or(Fault::NOT_INT));
        }
        let number = usize::try_from(number).ok().filter(|number| *number < self.databases);
        number.and_then(Database::new).ok_or(Fault::DB_INDEX)
    }
}

/// Databases of a server that is not told otherwise, as in Redis.
const DATABASES_DEFAULT: usize = 16;

/// Clients, counters and settings of one listener; lives under the broker's lock.
pub struct ListenerState {
    /// Refuses commands that store something while it is set.
    pub draining: Draining,
    /// The machine's clock, by which clients tell absolute times.
    pub wall_clock: WallClock,
    pub(crate) options: Options,
    pub(crate) clients: Clients,
    pub(crate) cursors: Cursors,
    pub(crate) familiar: Familiar,
    pub(crate) scripts: Scripts,
    pub(crate) chance: Chance,
    /// How many clients are subscribed to each pattern.
    pub(crate) patterns: BTreeMap<QueueName, u64>,
    pub(crate) commands_total: u64,
    pub(crate) unblocked: VecDeque<SessionId>,
    pub(crate) facts: Box<dyn InfoFacts + Send>,
}

impl ListenerState {
    /// No client yet.
    #[must_use]
    pub fn new(options: Options, facts: Box<dyn InfoFacts + Send>) -> Self {
        Self {
            draining: Draining::default(),
            wall_clock: WallClock::default(),
            options,
            clients: Clients::default(),
            cursors: Cursors::default(),
            familiar: Familiar::default(),
            scripts: Scripts::default(),
            chance: Chance::new(facts.instance_id()),
            patterns: BTreeMap::new(),
            commands_total: 0,
            unblocked: VecDeque::new(),
            facts,
        }
    }

    /// Clients may run scripts, by this interpreter.
    pub fn set_interpreter(&mut self, interpreter: Arc<dyn Interpreter>) {
        self.scripts.interpreter = Some(interpreter);
    }

    /// From now on a client may be silent for so long; `None`: for ever. Clients are told so.
    pub const fn set_idle(&mut self, idle: Option<Nanos>) {
        self.options.idle = idle;
    }

    /// The command for the engine in the name of a session that waited until another client ended
    /// the wait. Ask after each call of a session's `poll_command` and `handle_reply`, until there
    /// is none: later that session may wait for something else.
    pub fn poll_unblocked(&mut self) -> Option<(SessionId, Command)> {
        Some((self.unblocked.pop_front()?, cancel_wait()))
    }

    /// One more client is subscribed to a pattern.
    pub(crate) fn count_pattern(&mut self, pattern: &QueueName) {
        *self.patterns.entry(pattern.clone()).or_default() += 1;
    }

    /// One client less is.
    pub(crate) fn uncount_pattern(&mut self, pattern: &QueueName) {
        if let Some(count) = self.patterns.get_mut(pattern) {
            *count -= 1;
            if *count == 0 {
                self.patterns.remove(pattern);
            }
        }
    }
}

/// The key that was named last, by whichever client: the next command mostly has the same, and need
/// not check and store it anew.
#[derive(Default)]
pub(crate) struct Familiar {
    last: Cell<Option<QueueName>>,
    /// Its database.
    database: Cell<Database>,
}

impl Familiar {
    /// The name of this key of a database.
    #[inline]
    pub(crate) fn key(&self, database: Database, word: &[u8]) -> Result<QueueName, Fault> {
        match self.last.take() {
            Some(last) if self.database.get() == database && is_itself(&last, database, word) => {
                self.last.set(Some(last.clone()));
                Ok(last)
            }
            _ => self.read(database, word),
        }
    }

    /// The same of another key than the last.
    fn read(&self, database: Database, word: &[u8]) -> Result<QueueName, Fault> {
        let name = key(database, word)?;
        // A name that stands for other bytes is not known again by its own.
        if is_itself(&name, database, word) {
            self.last.set(Some(name.clone()));
            self.database.set(database);
        }
        Ok(name)
    }
}

/// True if the name of a key in this database is the key itself, but for the mark.
fn is_itself(name: &QueueName, database: Database, word: &[u8]) -> bool {
    let name = name.as_str().as_bytes();
    if database == Database::FIRST { name == word } else { name.get(MARK_BYTES..) == Some(word) }
}

/// Bytes of the mark of a database.
const MARK_BYTES: usize = 3;

/// Ends a command that waits.
pub(crate) fn cancel_wait() -> Command {
    Command::List(ListCommand::CancelPop)
}

impl fmt::Debug for ListenerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListenerState")
            .field("draining", &self.draining)
            .field("options", &self.options)
            .field("clients", &self.clients)
            .finish_non_exhaustive()
    }
}

/// INFO's facts about the process and its machine. The listener's chance begins with one of them.
pub trait InfoFacts {
    /// The process id.
    fn pid(&self) -> u32;
    /// The server's version, such as `0.1.0`.
    fn version(&self) -> &str;
    /// Processor time spent outside the kernel.
    fn user_time(&self) -> Nanos;
    /// Processor time spent in the kernel.
    fn system_time(&self) -> Nanos;
    /// Since the process started.
    fn uptime(&self) -> Nanos;
    /// A random number that tells this run of the process from every other.
    fn instance_id(&self) -> u64;
    /// Name, release and architecture of the operating system.
    fn system(&self) -> &str;
    /// Bytes of memory that the process uses.
    fn memory_bytes(&self) -> u64;
}

/// The facts where there is no process of its own, as for a script.
impl InfoFacts for () {
    fn pid(&self) -> u32 {
        0
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn user_time(&self) -> Nanos {
        Nanos::ZERO
    }

    fn system_time(&self) -> Nanos {
        Nanos::ZERO
    }

    fn uptime(&self) -> Nanos {
        Nanos::ZERO
    }

    fn instance_id(&self) -> u64 {
        0
    }

    fn system(&self) -> &str {
        ""
    }

    fn memory_bytes(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::key_names::name_of;

    #[test]
    fn familiar_key_is_only_the_last() {
        let familiar = Familiar::default();
        for word in ["a", "a", "b", "ab", "a"] {
            let key = familiar.key(Database::FIRST, word.as_bytes());
            assert_eq!(key.unwrap().as_str(), word);
        }
        assert!(familiar.key(Database::FIRST, &[0xff; 86]).is_err());
        assert_eq!(familiar.key(Database::FIRST, b"a").unwrap().as_str(), "a");
    }

    #[test]
    fn familiar_key_is_of_one_database() {
        let familiar = Familiar::default();
        let words = ["a", "", "\u{f101}a", "\u{f101}", "\u{f102}a", "\u{f101}\u{f101}a", "\u{6}"];
        let all = words.into_iter().flat_map(|word| [0, 1, 2].map(|number| (number, word)));
        let all: Vec<_> = all.collect();
        for (before, word) in &all {
            for (number, next) in &all {
                let database = |number: usize| Database::new(number).unwrap();
                familiar.key(database(*before), word.as_bytes()).unwrap();
                let name = familiar.key(database(*number), next.as_bytes()).unwrap();
                assert_eq!(Some(name), name_of(database(*number), next.as_bytes()));
            }
        }
    }
}
