//! The audit log: logins and refusals, and each change of users, rules and whole queues. One JSON
//! object a line, never a body nor a secret.
//!
//! Any thread may record, a reactor too, so none waits here: lines are gathered for a thread of
//! their own. Lines that find no room are counted, and the next line tells how many there were.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard};

use model::{
    AdminCommand, Command, Introduction, KeyCommand, LoginStep, Nanos, NotPermitted, QueueName,
    Refusal, Reply,
};
use serde::Serialize;

use crate::Logger;

/// Where the lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditTarget {
    /// To the end of a file, which is made if it is missing, readable by its owner only.
    File(PathBuf),
    /// To standard error, which systemd's journal keeps.
    Stderr,
}

/// The lines that wait to be written.
#[derive(Debug)]
pub(crate) struct AuditLog {
    target: AuditTarget,
    state: Mutex<State>,
    changed: Condvar,
    log: Logger,
}

#[derive(Debug, Default)]
struct State {
    /// The file, until the thread takes it.
    file: Option<File>,
    lines: Vec<u8>,
    /// Lines that found no room since the last that did.
    lost: u64,
    /// Failed logins of late, by address.
    failures: BTreeMap<Option<IpAddr>, Failures>,
    /// The file is to be opened again: another program has renamed it.
    reopens: bool,
    ended: bool,
}

/// Failed logins from one address: one line a second.
#[derive(Clone, Copy, Debug)]
struct Failures {
    told_at: Nanos,
    left_out: u64,
}

/// The one that did or tried something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuditActor<'a> {
    pub(crate) user: Option<&'a str>,
    /// `None`: by a Unix socket.
    pub(crate) from: Option<SocketAddr>,
    pub(crate) protocol: &'static str,
}

/// A change that is worth a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deed {
    verb: &'static str,
    name: Option<QueueName>,
    to: Option<QueueName>,
}

/// How a login went.
#[derive(Clone, Debug)]
pub(crate) struct LoginTrial {
    /// The name that the client said, before anything was proved.
    user: Option<Box<str>>,
    how: &'static str,
}

#[derive(Debug, Default, Serialize)]
struct Line<'a> {
    time: String,
    event: &'a str,
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    how: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    right: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<u64>,
}

impl AuditLog {
    /// Opens the file.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn open(target: AuditTarget, log: Logger) -> io::Result<Self> {
        let file = match &target {
            AuditTarget::File(path) => Some(open(path)?),
            AuditTarget::Stderr => None,
        };
        let state = Mutex::new(State { file, ..State::default() });
        Ok(Self { target, state, changed: Condvar::new(), log })
    }

    /// The broker begins or ceases to serve, or reads its files again.
    pub(crate) fn note_server(&self, at: Nanos, event: &str, count: Option<u64>) {
        self.record(Line { event, outcome: "done", count, ..Line::at(at) });
    }

    /// A user is another one than before, by a changed file: added, removed or changed.
    pub(crate) fn note_user(&self, at: Nanos, user: &str, outcome: &str) {
        self.record(Line { event: "user", outcome, user: Some(user), ..Line::at(at) });
    }

    /// A login has succeeded or failed.
    pub(crate) fn note_login(
        &self,
        at: Nanos,
        actor: &AuditActor<'_>,
        trial: &LoginTrial,
        outcome: &str,
    ) {
        let mut left_out = None;
        if outcome != GRANTED {
            let Some(count) = self.lock().tells_failure(at, actor.from.map(|it| it.ip())) else {
                return;
            };
            left_out = (count > 0).then_some(count);
        }
        let user = actor.user.or(trial.user.as_deref());
        let how = Some(trial.how);
        self.record(Line { event: "login", outcome, user, how, left_out, ..Line::by(at, actor) });
    }

    /// A command was answered: a change is told, and so is a denial.
    pub(crate) fn note_command(
        &self,
        at: Nanos,
        actor: &AuditActor<'_>,
        deeds: &Deeds,
        reply: Option<&Reply>,
    ) {
        if let Some(Reply::Refused(Refusal::NotPermitted(lack))) = reply {
            return self.note_denial(at, actor, lack);
        }
        for (index, deed) in &deeds.0 {
            let reply = match reply {
                Some(Reply::Batch(replies)) => replies.get(*index),
                reply => reply,
            };
            self.note_deed(at, actor, deed, reply);
        }
    }

    fn note_deed(&self, at: Nanos, actor: &AuditActor<'_>, deed: &Deed, reply: Option<&Reply>) {
        let Deed { verb, name, to } = deed;
        let (outcome, count) = match reply {
            None => ("begun", None),
            // A key that a batch observes has changed: nothing of it was done.
            Some(Reply::Refused(_) | Reply::Stale) => ("refused", None),
            Some(Reply::NotFound) => ("not-found", None),
            Some(Reply::Count(count) | Reply::CountSoFar(count)) => ("done", Some(*count)),
            Some(Reply::CountUntil { count, .. }) => ("done", Some(*count)),
            Some(_) => ("done", None),
        };
        let why = match reply {
            Some(Reply::Refused(refusal)) => Some(refusal.to_string()),
            _ => None,
        };
        let name = name.as_ref().map(QueueName::as_str);
        let to = to.as_ref().map(QueueName::as_str);
        self.record(Line { event: verb, outcome, count, name, to, why, ..Line::by(at, actor) });
    }

    fn note_denial(&self, at: Nanos, actor: &AuditActor<'_>, lack: &NotPermitted) {
        let user = lack.user.as_deref();
        let (right, name) = (Some(lack.right.word()), lack.name.as_ref().map(QueueName::as_str));
        self.record(Line {
            event: "denied",
            outcome: "denied",
            user,
            right,
            name,
            ..Line::by(at, actor)
        });
    }

    fn record(&self, mut line: Line<'_>) {
        let mut state = self.lock();
        line.lost = (state.lost > 0).then_some(state.lost);
        // A line has a few short texts: they always have a form.
        let Ok(text) = serde_json::to_vec(&line) else { return };
        if state.ended || state.lines.len() + text.len() >= WAITING_BYTES_MAX {
            state.lost += 1;
            return;
        }
        state.lost = 0;
        state.lines.extend_from_slice(&text);
        state.lines.push(b'\n');
        self.changed.notify_one();
    }

    /// Opens the file again, so that another program can rename it before.
    pub(crate) fn reopen(&self) {
        self.lock().reopens = true;
        self.changed.notify_one();
    }

    /// The thread ends once all lines are written.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_one();
    }

    /// The thread: writes lines until the end.
    pub(crate) fn run(&self) {
        let mut file = self.lock().file.take();
        let mut lines = Vec::new();
        loop {
            let is_idle =
                |state: &mut State| state.lines.is_empty() && !state.reopens && !state.ended;
            let mut state = self.changed.wait_while(self.lock(), is_idle).expect(POISONED);
            std::mem::swap(&mut state.lines, &mut lines);
            let (reopens, ended) = (std::mem::take(&mut state.reopens), state.ended);
            drop(state);
            self.write(file.as_mut(), &lines);
            lines.clear();
            if reopens && let AuditTarget::File(path) = &self.target {
                match open(path) {
                    Ok(new) => file = Some(new),
                    Err(error) => self.complain(&error),
                }
            }
            if ended && self.lock().lines.is_empty() {
                return;
            }
        }
    }

    fn write(&self, file: Option<&mut File>, lines: &[u8]) {
        let written = match file {
            Some(file) => file.write_all(lines),
            None => io::stderr().write_all(lines),
        };
        if let Err(error) = written {
            let count = lines.iter().filter(|byte| **byte == b'\n').count();
            self.lock().lost += count as u64;
            self.complain(&error);
        }
    }

    fn complain(&self, error: &io::Error) {
        let target = match &self.target {
            AuditTarget::File(path) => path.display().to_string(),
            AuditTarget::Stderr => "standard error".into(),
        };
        self.log.line(format_args!("the audit log {target} cannot be written: {error}"));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect(POISONED)
    }
}

impl State {
    /// `None`: this failure is left out. Else how many were left out before.
    fn tells_failure(&mut self, now: Nanos, from: Option<IpAddr>) -> Option<u64> {
        if self.failures.len() >= ADDRESSES_MAX && !self.failures.contains_key(&from) {
            self.failures.retain(|_, it| now.since(it.told_at) < Nanos::SECOND);
            if self.failures.len() >= ADDRESSES_MAX {
                self.lost += 1;
                return None;
            }
        }
        let first = Failures { told_at: Nanos::ZERO, left_out: 0 };
        let failures = self.failures.entry(from).or_insert(first);
        if failures.told_at != Nanos::ZERO && now.since(failures.told_at) < Nanos::SECOND {
            failures.left_out += 1;
            return None;
        }
        failures.told_at = now;
        Some(std::mem::take(&mut failures.left_out))
    }
}

/// The changes that a command would make, each with its place in a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deeds(Vec<(usize, Deed)>);

impl Deeds {
    /// Those that are worth a line.
    pub(crate) fn of(command: &Command) -> Self {
        let commands = match command {
            Command::Batch { commands } => commands,
            command => std::slice::from_ref(command),
        };
        let deeds = commands.iter().enumerate();
        Self(deeds.filter_map(|(index, command)| Some((index, Deed::of(command)?))).collect())
    }

    /// True if there is none.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Deed {
    /// The change that a command would make, if that is worth a line: one of a whole queue or key,
    /// of its rules, or of buried messages. The work of producers and consumers is not.
    fn of(command: &Command) -> Option<Self> {
        let deed = |verb, name: Option<&QueueName>, to: Option<&QueueName>| {
            Some(Self { verb, name: name.cloned(), to: to.cloned() })
        };
        match command {
            Command::Admin(command) => match &**command {
                AdminCommand::Purge { queue, .. } => deed("purge", Some(queue), None),
                AdminCommand::Delete { queue } => deed("delete", Some(queue), None),
                AdminCommand::MoveMessages { from, to, .. } => {
                    let verb = if to.is_some() { "move" } else { "replay" };
                    deed(verb, Some(from), to.as_ref())
                }
                AdminCommand::ChangePolicy { queue, .. } => deed("rules", Some(queue), None),
                _ => None,
            },
            Command::Key(KeyCommand::DeleteAll { .. }) => deed("flush", None, None),
            Command::Key(KeyCommand::Delete { names }) => deed("delete", names.first(), None),
            Command::Kick { .. } | Command::KickMessage { .. } => deed("kick", None, None),
            Command::Key(KeyCommand::Rename { from, to, .. }) => {
                deed("rename", Some(from), Some(to))
            }
            Command::Unsubscribe { name } => deed("unsubscribe", Some(&name.name), None),
            Command::Pause { queue, .. } => deed("pause", Some(queue), None),
            _ => None,
        }
    }
}

impl LoginTrial {
    /// The trial that a step is.
    pub(crate) fn of(step: &LoginStep, client: &Introduction) -> Self {
        let shown = |name: &str| (!name.is_empty()).then(|| Box::<str>::from(name));
        let (user, how) = match step {
            LoginStep::Password { user, .. } => (shown(user), "password"),
            LoginStep::ScramFirst { .. } | LoginStep::ScramFinal { .. } => (None, "scram"),
            LoginStep::Certificate { user } => (shown(user), "certificate"),
            LoginStep::UnixUser { user } => (shown(user), "unix-user"),
            LoginStep::Anonymous => (None, "anonymous"),
            LoginStep::Token { user, .. } => (shown(user), "token"),
            LoginStep::ListenerUser => match client {
                Introduction::ListenerUser(user) => (shown(user), LISTENER),
                _ => (None, LISTENER),
            },
        };
        // A password that was typed in its place stays short.
        let user = user.map(|user: Box<str>| user.chars().take(NAME_CHARS_MAX).collect());
        Self { user, how }
    }

    /// The user of the listener, if the connection is to act as that.
    pub(crate) fn listener_user(&self) -> Option<&str> {
        self.user.as_deref().filter(|_| self.how == LISTENER)
    }
}

impl Line<'_> {
    fn at(at: Nanos) -> Self {
        Self { time: at.rfc3339().to_string(), ..Self::default() }
    }
}

impl<'a> Line<'a> {
    fn by(at: Nanos, actor: &AuditActor<'a>) -> Self {
        let from = actor.from.map_or_else(|| "unix".to_owned(), |from| from.to_string());
        let time = at.rfc3339().to_string();
        let (user, protocol) = (actor.user, Some(actor.protocol));
        Self { time, user, from: Some(from), protocol, ..Self::default() }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// The way of a connection whose listener has a user.
const LISTENER: &str = "listener";

/// The outcome of a login that succeeded; all others are failures.
pub(crate) const GRANTED: &str = "granted";

/// Bytes of lines that wait to be written.
const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Addresses whose failed logins are counted.
const ADDRESSES_MAX: usize = 4_096;

/// Characters of a name that nobody has proved.
const NAME_CHARS_MAX: usize = 128;

const POISONED: &str = "invariant: no thread panics with the audit log";

#[cfg(test)]
mod tests {
    use std::thread;

    use model::{Right, TransactionId};

    use super::*;

    const FROM: Option<SocketAddr> =
        Some(SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)), 5));

    fn actor(user: Option<&str>) -> AuditActor<'_> {
        AuditActor { user, from: FROM, protocol: "redis" }
    }

    fn log() -> AuditLog {
        AuditLog::open(AuditTarget::Stderr, Logger::Quiet).unwrap()
    }

    fn lines(log: &AuditLog) -> Vec<serde_json::Value> {
        let state = log.lock();
        let text = std::str::from_utf8(&state.lines).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn name(text: &str) -> QueueName {
        QueueName::new(text).unwrap()
    }

    #[test]
    fn batch_tells_each_change() {
        let log = log();
        let key = |command| Command::Key(command);
        let delete = |text| key(KeyCommand::Delete { names: vec![name(text)] });
        let commands = vec![delete("a"), key(KeyCommand::CountAll { database: None }), delete("b")];
        let batch = Command::Batch { commands };
        let replies = Reply::Batch(vec![Reply::Count(1), Reply::Count(5), Reply::NotFound]);
        log.note_command(Nanos::SECOND, &actor(None), &Deeds::of(&batch), Some(&replies));
        log.note_command(Nanos::SECOND, &actor(None), &Deeds::of(&batch), Some(&Reply::Stale));
        let told: Vec<_> = lines(&log)
            .iter()
            .map(|line| (line["name"].clone(), line["outcome"].clone(), line["count"].as_u64()))
            .collect();
        let told: Vec<_> = told
            .iter()
            .map(|(name, outcome, count)| (name.as_str(), outcome.as_str(), *count))
            .collect();
        let expected = [
            (Some("a"), Some("done"), Some(1)),
            (Some("b"), Some("not-found"), None),
            (Some("a"), Some("refused"), None),
            (Some("b"), Some("refused"), None),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn changes_and_denials_are_told() {
        let log = log();
        let ann = actor(Some("ann"));
        let purge = AdminCommand::Purge {
            queue: name("jobs\"\n".trim()),
            state: None,
            selector: None,
            after: None,
        };
        let deeds = Deeds::of(&Command::Admin(Box::new(purge)));
        log.note_command(Nanos::SECOND, &ann, &deeds, Some(&Reply::Count(7)));
        let (user, right) = (Some("ann".into()), Right::Send);
        let lack = NotPermitted { user, right, name: Some(name("secret")) };
        let denied = Reply::Refused(Refusal::NotPermitted(Box::new(lack)));
        log.note_command(Nanos::SECOND, &ann, &Deeds::default(), Some(&denied));
        // The work of clients is none of its business.
        let begin = Command::Begin { transaction: TransactionId(1) };
        log.note_command(Nanos::SECOND, &ann, &Deeds::of(&begin), Some(&Reply::Done));
        let told = lines(&log);
        assert_eq!(told.len(), 2);
        assert_eq!(told[0]["time"], "1970-01-01T00:00:01.000Z");
        let fields = ["event", "outcome", "user", "from", "protocol", "name"];
        let of = |line: &serde_json::Value| fields.map(|it| line[it].as_str().unwrap().to_owned());
        assert_eq!(of(&told[0]), ["purge", "done", "ann", "10.0.0.1:5", "redis", "jobs\""]);
        assert_eq!(told[0]["count"], 7);
        assert_eq!(of(&told[1]), ["denied", "denied", "ann", "10.0.0.1:5", "redis", "secret"]);
        assert_eq!(told[1]["right"], "send");
    }

    #[test]
    fn failures_are_one_line_a_second() {
        let log = log();
        let step = LoginStep::Password { user: "bob".into(), password: (&b"canary"[..]).into() };
        let trial = LoginTrial::of(&step, &Introduction::Unknown);
        for millis in 0..2_500 {
            let at = Nanos::SECOND + Nanos::from_millis(millis);
            log.note_login(at, &actor(None), &trial, "refused");
        }
        let told = lines(&log);
        assert_eq!(told.len(), 3);
        assert_eq!((&told[1]["left_out"], &told[1]["user"]), (&999.into(), &"bob".into()));
        assert!(!told.iter().any(|line| line.to_string().contains("canary")));
        log.note_login(Nanos::SECOND, &actor(Some("bob")), &trial, GRANTED);
        assert_eq!(lines(&log).len(), 4);
    }

    #[test]
    fn lines_without_room_are_counted() {
        let log = log();
        let most = WAITING_BYTES_MAX / 40;
        (0..most).for_each(|_| log.note_user(Nanos::SECOND, "ann", "changed"));
        let lost = log.lock().lost;
        assert!(lost > 0 && log.lock().lines.len() < WAITING_BYTES_MAX);
        log.lock().lines.clear();
        log.note_user(Nanos::SECOND, "bob", "added");
        assert_eq!(lines(&log)[0]["lost"], lost);
    }

    #[test]
    fn file_is_private_and_opened_again() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = testkit::Directory::new("audit-file");
        let path = directory.0.join("audit.jsonl");
        let log = AuditLog::open(AuditTarget::File(path.clone()), Logger::Quiet).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| log.run());
            log.note_user(Nanos::SECOND, "ann", "added");
            while std::fs::read_to_string(&path).unwrap().is_empty() {
                thread::yield_now();
            }
            let old = directory.0.join("audit.1");
            std::fs::rename(&path, &old).unwrap();
            log.reopen();
            while !path.exists() {
                thread::yield_now();
            }
            log.note_user(Nanos::SECOND, "bob", "added");
            log.end();
        });
        assert!(std::fs::read_to_string(&path).unwrap().contains("bob"));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
