//! The connected clients, as CLIENT LIST shows them.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;
use core::net::SocketAddr;

use model::{Database, Nanos, Principal, SessionId};

use crate::answer::Version;
use crate::greeting::DEFAULT_USER;

/// A client's place among those that are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(usize);

/// All clients that are connected.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    slots: Vec<Option<Client>>,
    free: Vec<usize>,
    /// Connected ever.
    total: u64,
    /// Connected since the statistics were reset.
    pub(crate) total_since_reset: u64,
}

/// The known facts of a client, and its settings.
#[derive(Debug)]
pub(crate) struct Client {
    /// Its number; none is used twice.
    pub(crate) id: u64,
    pub(crate) session: SessionId,
    pub(crate) ends: Option<Ends>,
    pub(crate) name: Vec<u8>,
    pub(crate) principal: Principal,
    pub(crate) library: Library,
    pub(crate) version: Version,
    /// The one whose keys its commands name.
    pub(crate) database: Database,
    pub(crate) silence: Silence,
    pub(crate) subscribed: Subscribed,
    /// Commands that wait for EXEC, after MULTI.
    pub(crate) queued: Option<usize>,
    /// It waits for an element.
    pub(crate) blocked: bool,
    /// The client that ended its waiting wants it to hear an error.
    unblock_by_error: bool,
    /// Its last command.
    pub(crate) command: &'static str,
    since: Nanos,
    active: Nanos,
}

/// The addresses of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The client's.
    pub peer: SocketAddr,
    /// The server's.
    pub local: SocketAddr,
}

/// The name of a client's user in lists; `default` before a login, as with Redis.
pub(crate) fn user_name(principal: &Principal) -> &str {
    principal.user().map_or(DEFAULT_USER, |user| user)
}

/// How a client's library calls itself.
#[derive(Debug, Default)]
pub(crate) struct Library {
    pub(crate) name: Vec<u8>,
    pub(crate) version: Vec<u8>,
}

/// To how many channels and patterns a client is subscribed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Subscribed {
    pub(crate) channels: usize,
    pub(crate) patterns: usize,
}

/// Which answers a client does not want (CLIENT REPLY).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Silence {
    #[default]
    None,
    /// To the next command.
    Next,
    /// To this command.
    This,
    /// To any.
    All,
}

impl Clients {
    /// A new one with the next number.
    pub(crate) fn enter(&mut self, session: SessionId, ends: Option<Ends>, now: Nanos) -> Slot {
        self.total += 1;
        self.total_since_reset += 1;
        let client = Some(Client::new(self.total, session, ends, now));
        if let Some(index) = self.free.pop()
            && let Some(slot) = self.slots.get_mut(index)
        {
            *slot = client;
            return Slot(index);
        }
        self.slots.push(client);
        Slot(self.slots.len() - 1)
    }

    pub(crate) fn leave(&mut self, slot: Slot) {
        let left = self.slots.get_mut(slot.0).and_then(Option::take);
        assert!(left.is_some(), "a client leaves once");
        self.free.push(slot.0);
    }

    pub(crate) fn at(&self, slot: Slot) -> &Client {
        let client = self.slots.get(slot.0).and_then(Option::as_ref);
        client.expect("invariant: a session's client is there until it closes")
    }

    pub(crate) fn at_mut(&mut self, slot: Slot) -> &mut Client {
        let client = self.slots.get_mut(slot.0).and_then(Option::as_mut);
        client.expect("invariant: a session's client is there until it closes")
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Client> {
        self.slots.iter().flatten()
    }

    pub(crate) fn find_mut(&mut self, id: u64) -> Option<&mut Client> {
        self.slots.iter_mut().flatten().find(|client| client.id == id)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

impl Client {
    fn new(id: u64, session: SessionId, ends: Option<Ends>, now: Nanos) -> Self {
        Self {
            id,
            session,
            ends,
            name: Vec::new(),
            principal: Principal::default(),
            library: Library::default(),
            version: Version::default(),
            database: Database::FIRST,
            silence: Silence::None,
            subscribed: Subscribed::default(),
            queued: None,
            blocked: false,
            unblock_by_error: false,
            command: "NULL",
            since: now,
            active: now,
        }
    }

    /// Its next command has come.
    pub(crate) fn begin(&mut self, command: &'static str, now: Nanos) {
        self.command = command;
        self.active = now;
        self.silence = match self.silence {
            Silence::Next => Silence::This,
            Silence::This | Silence::None => Silence::None,
            Silence::All => Silence::All,
        };
    }

    /// True if it does not want to hear the answer to this command.
    pub(crate) const fn is_silent(&self) -> bool {
        matches!(self.silence, Silence::This | Silence::All)
    }

    /// It hears nothing but messages, as the older protocol has it.
    pub(crate) fn is_only_subscriber(&self) -> bool {
        self.version == Version::Resp2 && self.subscribed.count() > 0
    }

    /// Ends its waiting; false if it does not wait.
    pub(crate) fn unblock(&mut self, by_error: bool) -> bool {
        self.unblock_by_error = self.blocked && by_error;
        self.blocked
    }

    /// It waits, or does so no longer.
    pub(crate) fn set_blocked(&mut self, blocked: bool) {
        self.blocked = blocked;
        self.unblock_by_error = false;
    }

    /// True if its waiting is to end with an error; asked once.
    pub(crate) const fn unblock_by_error(&mut self) -> bool {
        core::mem::replace(&mut self.unblock_by_error, false)
    }

    /// All as it was when it connected, but for its number. An answer that is skipped stays so,
    /// as in Redis: RESET behind CLIENT REPLY SKIP has none.
    pub(crate) fn reset(&mut self) {
        self.name.clear();
        self.version = Version::default();
        self.database = Database::FIRST;
        if self.silence != Silence::This {
            self.silence = Silence::None;
        }
        self.queued = None;
    }

    /// Its line of CLIENT LIST.
    pub(crate) fn describe(&self, now: Nanos, text: &mut String) {
        let ends = self.ends.map_or(UNKNOWN_ENDS, |ends| ends);
        let Subscribed { channels, patterns } = self.subscribed;
        let name = String::from_utf8_lossy(&self.name);
        let multi = self.queued.map_or(-1, |count| i64::try_from(count).unwrap_or(i64::MAX));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "id={} addr={} laddr={} fd=-1 name={name} age={} idle={} flags={} db={} \
             sub={channels} psub={patterns} ssub=0 multi={multi} {NOT_COUNTED} events=r cmd={} \
             user={} redir=-1 resp={} lib-name={} lib-ver={}",
            self.id,
            ends.peer,
            ends.local,
            now.since(self.since).as_secs(),
            now.since(self.active).as_secs(),
            self.flags(),
            self.database.number(),
            self.command,
            user_name(&self.principal),
            self.version.number(),
            String::from_utf8_lossy(&self.library.name),
            String::from_utf8_lossy(&self.library.version),
        );
    }

    fn flags(&self) -> &'static str {
        match () {
            () if self.blocked => "b",
            () if self.queued.is_some() => "x",
            () if self.subscribed.count() > 0 => "P",
            () => "N",
        }
    }
}

impl Subscribed {
    pub(crate) const fn count(self) -> usize {
        self.channels + self.patterns
    }
}

const UNKNOWN_ENDS: Ends = Ends { peer: NO_ADDRESS, local: NO_ADDRESS };

const NO_ADDRESS: SocketAddr =
    SocketAddr::V4(core::net::SocketAddrV4::new(core::net::Ipv4Addr::UNSPECIFIED, 0));

/// Figures of buffers, which belong to the server: libraries read them as numbers.
const NOT_COUNTED: &str = "qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 \
                           omem=0 tot-mem=0";
