//! One connection: reads commands out of its input, asks the engine one thing at a time, and words
//! the answers.
//!
//! ```text
//!   read -> answered by itself -> read
//!        -> ask -> (reply: ask again)* -> reply: answered -> read
//!        -> follow-ups, of which each asks or answers -> read
//! ```
//! Nothing is read while a reply of the engine is awaited. So answers leave in the order of their
//! commands, and a command that waits holds up everything behind it. Messages of subscriptions come
//! at any time, and are settled also while a command waits.

mod login;
mod topics;
mod transactions;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use input::{InputBuffer, is_method, is_target, names_host};
use model::{
    CollectionCommand, Command, KeyCommand, LinkId, ListCommand, Nanos, QueueName, Reply,
    SessionId, StreamCommand, limits,
};

use crate::arguments::Arguments;
use crate::clients::{Ends, Slot};
use crate::context::Context;
use crate::fault::Fault;
use crate::moments::by_engine_clock;
use crate::pipelined;
use crate::query::Query;
use crate::reader::{Progress, ProtocolError, Reader};
use crate::reply_format::{Next, ReplyFormat};
use crate::room;
use crate::shared::{ListenerState, cancel_wait};
use crate::subscriptions::{Subscriptions, Target, confirm_none};
use crate::table::{Handler, Repeated, Spec, Verb};
use crate::transaction::{Parts, Transaction};
use crate::words::Words;

use self::login::{Login, is_login};

/// Bytes that one call may answer by itself before the server must get the chance to send them.
const ANSWERS_BYTES_MAX: usize = 64 * 1024;

/// Bytes that a follow-up is reckoned to hold, the name of a channel most of all.
const FOLLOW_UP_BYTES: usize = size_of::<FollowUp>() + 32;

/// Bytes for the name of a value that is still to be looked at, beside its own.
const LOOKED_AT_NAME_BYTES: usize = 48;

/// Bytes of memory that a key which is watched, or that a pop waits for, takes in the engine, but
/// for its name. Measured.
const WAITED_NAME_BYTES: usize = 256;

/// Bytes of all keys that one session may watch.
const WATCHED_BYTES_MAX: usize =
    limits::SESSION_OBSERVED_MAX * (WAITED_NAME_BYTES + limits::QUEUE_NAME_BYTES_MAX);

/// Bytes of these that every connection may have: some sixty names.
const WAITED_BYTES_FREE: usize = 16 * 1_024;

/// One connection's side of the protocol; the crate's page says how to drive it.
#[derive(Debug)]
pub struct Session {
    id: SessionId,
    slot: Slot,
    reader: Reader,
    awaited: Awaited,
    follow_ups: VecDeque<FollowUp>,
    subscriptions: Subscriptions,
    transaction: Option<Transaction>,
    /// The engine observes keys for it; their names take so many bytes at most.
    watching: Option<usize>,
    /// It took elements, and has given the engine no command since.
    popped: bool,
    /// A command that is to be executed once the engine knows that there is a next one.
    postponed: Option<Words>,
    /// Replies that the engine owes of which the peer hears nothing.
    quiet: usize,
    half_closed: bool,
    /// A command has blocked in vain until its peer hung up: no client waits for the commands
    /// behind.
    drops_input: bool,
    half_sent: bool,
    has_more: bool,
    closing: bool,
    speaks_http: bool,
    has_spoken: bool,
    is_cut_off: bool,
    /// The command that it gave last.
    last: Option<Repeated>,
    /// The time of the last call.
    now: Nanos,
    /// None: there are no users.
    login: Option<Box<Login>>,
}

/// The reply that the engine owes.
#[derive(Debug)]
enum Awaited {
    /// None but quiet ones.
    Nothing,
    Query(ReplyFormat),
    /// The same, and it may come later: there is no place yet.
    Waiting(ReplyFormat),
    /// The same, and it may come later: the client asked to wait, for keys with names of so many
    /// bytes.
    Blocked(ReplyFormat, usize),
    Exec(Parts),
    /// The same, and it comes later.
    WaitingExec(Parts),
    /// To observing keys with names of so many bytes.
    Watch(usize),
    Subscribe(LinkId, Target),
    Unsubscribe(Target),
}

/// Work that is still to be done before the next command is read.
#[derive(Debug)]
enum FollowUp {
    /// Ask the engine again.
    Ask(Query),
    /// Ask the engine a command that is answered by `Done` or nothing found, and tell no client.
    Quiet(Command),
    /// Give credit, or end a wait, which has no reply of its own.
    Unanswered(Command),
    Subscribe(Target),
    Unsubscribe(Target),
    /// Say that there is no subscription to channels, or to patterns, that could end.
    ConfirmNone {
        pattern: bool,
    },
}

impl FollowUp {
    fn held_bytes(&self) -> usize {
        let brought = match self {
            Self::Ask(Query { command: Command::List(list), .. }) => list.body_bytes(),
            Self::Ask(Query { command: Command::Key(KeyCommand::ValueEach { names }), .. }) => {
                names.iter().map(|name| LOOKED_AT_NAME_BYTES + name.as_str().len()).sum()
            }
            _ => 0,
        };
        FOLLOW_UP_BYTES + brought
    }
}

/// The result of reading a little.
enum Step {
    /// A command for the engine.
    Ask(Command),
    /// Nothing that needs the engine.
    GoOn,
    /// There are too few bytes yet.
    NeedMore,
}

impl Session {
    /// A new connection, which `shared` knows until it is closed.
    #[must_use]
    pub fn new(id: SessionId, ends: Option<Ends>, now: Nanos, shared: &mut ListenerState) -> Self {
        let options = &shared.options;
        let reader = Reader::new(options.message_bytes_max, options.command_bytes_max);
        Self {
            id,
            slot: shared.clients.enter(id, ends, now),
            reader,
            awaited: Awaited::Nothing,
            follow_ups: VecDeque::new(),
            subscriptions: Subscriptions::default(),
            transaction: None,
            watching: None,
            popped: false,
            postponed: None,
            quiet: 0,
            half_closed: false,
            drops_input: false,
            half_sent: false,
            has_more: false,
            closing: false,
            speaks_http: false,
            has_spoken: false,
            is_cut_off: false,
            last: None,
            now,
            login: None,
        }
    }

    /// Takes the next command for the engine out of `input`. Commands that need no engine are
    /// answered into `out`. Gives nothing when `input` holds no whole command, while a reply or the
    /// answer to a login is awaited, after QUIT, and when it [`has_more`](Self::has_more).
    pub fn poll_command(
        &mut self,
        now: Nanos,
        input: &mut InputBuffer,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) -> Option<Command> {
        self.now = now;
        let sent = out.len();
        self.has_more = false;
        while !self.has_more {
            let step = match self.next_follow_up() {
                Some(follow_up) => self.run(follow_up, shared, out),
                None if self.may_read() => self.read(input, shared, out),
                None => break,
            };
            match step {
                Step::Ask(mut command) => {
                    by_engine_clock(&mut command, &shared.wall_clock);
                    return Some(command);
                }
                Step::GoOn => self.has_more = out.len() - sent >= ANSWERS_BYTES_MAX,
                Step::NeedMore => break,
            }
        }
        None
    }

    /// Words one of the engine's replies.
    ///
    /// # Panics
    /// When no reply is awaited: the peer would take it for the answer to something else.
    pub fn handle_reply(
        &mut self,
        mut reply: Reply,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) {
        reply.tell_by(&shared.wall_clock);
        match reply {
            Reply::Delivered(delivery) => self.deliver(&delivery, shared, out),
            Reply::ConsumerClosed { link } => self.forget(link, shared),
            Reply::ConsumerCutOff { link, .. } => self.cut_off(link, shared),
            Reply::Waits { .. } => self.wait_for_place(shared),
            Reply::Late { reply, .. } => self.answer(*reply, shared, out),
            // A command that waits is answered by neither of these.
            Reply::Done | Reply::NotFound if self.quiet > 0 => self.quiet -= 1,
            reply => self.answer(reply, shared, out),
        }
    }

    /// The peer will send no more. A command that waits ends, as does every later one at once.
    /// Commands behind one that blocked in vain are not carried out, as with Redis: the client is
    /// most likely gone, and popped elements would reach no client.
    pub fn handle_half_close(&mut self) -> Option<Command> {
        self.half_closed = true;
        self.is_waiting().then(cancel_wait)
    }

    /// A reply of the engine, or the answer to a login, is still to come. After a
    /// [half close](Self::handle_half_close) it does come: nothing waits any more for other
    /// clients.
    #[must_use]
    pub fn awaits_reply(&self) -> bool {
        !matches!(self.awaited, Awaited::Nothing) || self.is_logging_in()
    }

    /// It has subscriptions.
    #[must_use]
    pub fn is_subscriber(&self) -> bool {
        self.subscriptions.subscribed().count() > 0
    }

    /// Forgets the connection.
    pub fn close(self, shared: &mut ListenerState) {
        for target in self.subscriptions.targets(true) {
            shared.uncount_pattern(&target.name);
        }
        shared.clients.leave(self.slot);
    }

    /// Which session of the engine it is.
    #[must_use]
    pub const fn id(&self) -> SessionId {
        self.id
    }

    /// The peer sent a command that is one.
    #[must_use]
    pub const fn has_spoken(&self) -> bool {
        self.has_spoken
    }

    /// The peer sent a line of an HTTP request: the connection is to be closed.
    #[must_use]
    pub const fn speaks_http(&self) -> bool {
        self.speaks_http
    }

    /// The connection is to be closed once its answers have been sent: the peer has quit, or sent
    /// bytes that are no command.
    #[must_use]
    pub const fn wants_close(&self) -> bool {
        self.closing
    }

    /// The connection is to be closed at once, even if the peer has not read all: it left too much
    /// unread.
    #[must_use]
    pub const fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// The last [`poll_command`](Self::poll_command) found a command that had begun and not
    /// ended, with nothing else left to do.
    #[must_use]
    pub const fn half_sent(&self) -> bool {
        self.half_sent
    }

    /// Bytes of commands that have not come as a whole or wait for EXEC, and of answers that are
    /// being collected. Keys that are watched or waited for count beyond the usual size.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let queued = self.transaction.as_ref().map_or(0, Transaction::bytes);
        let awaited = match &self.awaited {
            Awaited::Query(format) | Awaited::Waiting(format) => format.held_bytes(),
            Awaited::Blocked(format, names) => format.held_bytes() + beyond_usual(*names),
            _ => 0,
        };
        let watched = self.watching.map_or(0, beyond_usual);
        let postponed = self.postponed.as_ref().map_or(0, Words::cost_bytes);
        let follow_ups = self.follow_ups.iter().map(FollowUp::held_bytes).sum::<usize>();
        self.reader.held_bytes() + queued + awaited + watched + postponed + follow_ups
    }

    /// There is more to do without more bytes.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.has_more
            || self.postponed.is_some() && self.may_read()
            || self.follow_ups.front().is_some_and(|follow_up| self.may_run(follow_up))
    }

    fn may_read(&self) -> bool {
        let is_free = matches!(self.awaited, Awaited::Nothing) && self.quiet == 0;
        is_free && !self.closing && !self.is_logging_in()
    }

    fn is_logging_in(&self) -> bool {
        self.login.as_ref().is_some_and(|login| login.is_pending())
    }

    const fn is_waiting(&self) -> bool {
        let awaited = &self.awaited;
        matches!(awaited, Awaited::Waiting(_) | Awaited::Blocked(..) | Awaited::WaitingExec(_))
    }

    fn may_run(&self, follow_up: &FollowUp) -> bool {
        match follow_up {
            FollowUp::Quiet(_) | FollowUp::Unanswered(_) => {
                self.is_waiting() || matches!(self.awaited, Awaited::Nothing)
            }
            _ => self.may_read(),
        }
    }

    fn next_follow_up(&mut self) -> Option<FollowUp> {
        let follow_up = self.follow_ups.front()?;
        if self.may_run(follow_up) { self.follow_ups.pop_front() } else { None }
    }

    fn run(&mut self, follow_up: FollowUp, shared: &mut ListenerState, out: &mut Vec<u8>) -> Step {
        match follow_up {
            FollowUp::Ask(query) => self.ask(query, shared),
            FollowUp::Quiet(command) => {
                self.quiet += 1;
                Step::Ask(command)
            }
            FollowUp::Unanswered(command) => Step::Ask(command),
            FollowUp::Subscribe(target) => self.subscribe(target, shared, out),
            FollowUp::Unsubscribe(target) => self.unsubscribe(target, shared, out),
            FollowUp::ConfirmNone { pattern } => {
                let left = self.subscriptions.subscribed();
                confirm_none(pattern, left, &mut self.context(shared, out).answer());
                Step::GoOn
            }
        }
    }

    fn read(
        &mut self,
        input: &mut InputBuffer,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) -> Step {
        if self.drops_input {
            self.closing = true;
            return Step::GoOn;
        }
        if let Some(words) = self.postponed.take() {
            let found = Repeated::find(&mut self.last, &words);
            return self.execute(&words, found, shared, out);
        }
        let progress = self.reader.read(input);
        self.half_sent =
            progress == Ok(Progress::NeedMore) && (self.reader.is_within() || !input.is_empty());
        match progress {
            Ok(Progress::Whole) => {
                let words = self.reader.take_words();
                if words.is_empty() {
                    // An empty line is no command: a client confirms no arrival by it.
                    self.reader.give_back(words);
                    return Step::GoOn;
                }
                let found = Repeated::find(&mut self.last, &words);
                if self.popped && !found.as_ref().is_ok_and(|spec| spec.asks_engine()) {
                    return self.postpone(words);
                }
                let step = match self.execute(&words, found, shared, out) {
                    Step::Ask(command) => Step::Ask(self.gather(command, &words, input, shared)),
                    step => step,
                };
                self.reader.give_back(words);
                if self.popped && !matches!(step, Step::Ask(_)) {
                    // It is refused before the engine hears of it, and a command all the same.
                    self.popped = false;
                    self.follow_ups.push_back(FollowUp::Quiet(ARRIVED));
                }
                step
            }
            Ok(_) => Step::NeedMore,
            Err(error) => self.give_up(error, shared, out),
        }
    }

    /// A pop from a queue that protects it is final with the next command of any kind. The engine
    /// hears of it by a command that does nothing else.
    fn postpone(&mut self, words: Words) -> Step {
        self.postponed = Some(words);
        self.popped = false;
        self.quiet += 1;
        Step::Ask(ARRIVED)
    }

    /// The bytes behind cannot be understood.
    fn give_up(
        &mut self,
        error: ProtocolError,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) -> Step {
        self.closing = true;
        let text = alloc::format!("ERR {error}");
        self.context(shared, out).answer().error(&text);
        Step::GoOn
    }

    fn execute(
        &mut self,
        words: &Words,
        found: Result<&'static Spec, Fault>,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) -> Step {
        if found.is_err() && is_http(words, self.reader.was_inline()) {
            // A page in a user's browser speaks through it: not a word, and nothing of the rest.
            self.closing = true;
            self.speaks_http = true;
            return Step::GoOn;
        }
        let before = out.len();
        let step = match self.admit(found, shared) {
            Ok(spec) => self.perform(spec, words, shared, out),
            Err(fault) => self.reject(&fault, words, shared, out),
        };
        self.keep_silent(before, shared, out);
        step
    }

    /// Takes back the answer that the client does not want.
    fn keep_silent(&self, before: usize, shared: &mut ListenerState, out: &mut Vec<u8>) {
        if shared.clients.at_mut(self.slot).is_silent() {
            out.truncate(before);
        }
    }

    /// The command, if it may be performed now or wait for EXEC.
    fn admit(
        &mut self,
        found: Result<&'static Spec, Fault>,
        shared: &mut ListenerState,
    ) -> Result<&'static Spec, Fault> {
        let client = shared.clients.at_mut(self.slot);
        client.begin(found.as_ref().map_or("NULL", |spec| spec.name), self.now);
        let spec = found?;
        if self.login.is_some() && self.user().is_none() && !spec.flags.contains(&"no_auth") {
            self.has_spoken = true;
            return Err(Fault::NO_AUTH);
        }
        let is_limited = self.login.is_some() && spec.flags.contains(&"admin");
        if is_limited && !self.principal().may_operate() {
            let user = self.user().map_or("", |user| user);
            let before = alloc::format!("NOPERM User {user} has no permissions to run the '");
            return Err(Fault::about(&before, spec.name.as_bytes(), "' command"));
        }
        let client = shared.clients.at_mut(self.slot);
        if client.is_only_subscriber() && !is_for_subscribers(spec) {
            return Err(Fault::about(
                "ERR Can't execute '",
                spec.name.as_bytes(),
                "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in \
                 this context",
            ));
        }
        if let Handler::Never(why) = spec.handler {
            return Err(Fault::of(why));
        }
        if shared.draining.has_begun() && spec.may_store() {
            return Err(Fault::DRAINING);
        }
        shared.commands_total += 1;
        self.has_spoken = true;
        Ok(spec)
    }

    /// A command that is not performed spoils the transaction that it was to be part of.
    fn reject(
        &mut self,
        fault: &Fault,
        words: &Words,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) -> Step {
        if let Some(transaction) = &mut self.transaction {
            transaction.is_faulty = true;
        }
        if !words.is(0, "exec") {
            return self.refuse(fault, shared, out);
        }
        let reason = fault.0.strip_prefix(b"ERR ").unwrap_or(&fault.0);
        let fault = Fault::about("EXECABORT Transaction discarded because of: ", reason, "");
        self.end_transaction(shared);
        self.refuse(&fault, shared, out)
    }

    fn perform(
        &mut self,
        spec: &'static Spec,
        words: &Words,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) -> Step {
        if self.login.is_some() && is_login(spec) {
            if self.transaction.is_some() {
                return self.reject(&Fault::IN_TRANSACTION, words, shared, out);
            }
            let done = self.log_in(spec, words, shared, out);
            return done.unwrap_or_else(|fault| self.refuse(&fault, shared, out));
        }
        if self.transaction.is_some() && waits_for_exec(spec) {
            return self.enqueue(spec, words, shared, out);
        }
        match spec.handler {
            Handler::Ask(query) => match query(self.arguments(words, shared)) {
                Ok(query) => self.ask(query.in_parts(), shared),
                Err(fault) => self.refuse(&fault, shared, out),
            },
            Handler::Say(say) | Handler::Subcommands(Some(say)) => {
                match say(&mut self.context(shared, out), words) {
                    Ok(()) => Step::GoOn,
                    Err(fault) => self.refuse(&fault, shared, out),
                }
            }
            Handler::Verb(verb) => match self.obey(verb, words, shared, out) {
                Ok(step) => step,
                Err(fault) => self.refuse(&fault, shared, out),
            },
            Handler::Subcommands(None) | Handler::Never(_) => {
                self.refuse(&Fault::arity(spec.name), shared, out)
            }
        }
    }

    fn obey(
        &mut self,
        verb: Verb,
        words: &Words,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) -> Result<Step, Fault> {
        match verb {
            Verb::Multi => self.multi(shared, out),
            Verb::Exec => self.exec(shared, out),
            Verb::Discard => self.discard(shared, out),
            Verb::Watch => self.watch(words, shared),
            Verb::Unwatch => Ok(self.unwatch(shared, out)),
            Verb::Subscribe { pattern } => self.begin_subscribing(pattern, words),
            Verb::Unsubscribe { pattern } => self.begin_unsubscribing(pattern, words),
            Verb::Quit => {
                self.closing = true;
                Ok(self.okay(shared, out))
            }
            Verb::Reset => Ok(self.reset(shared, out)),
        }
    }

    /// The arguments of a command that is about the database which the client has selected.
    fn arguments<'a>(&self, words: &'a Words, shared: &'a ListenerState) -> Arguments<'a> {
        Arguments::new(words, shared, shared.clients.at(self.slot).database)
    }

    /// Asks the engine.
    fn ask(&mut self, query: Query, shared: &mut ListenerState) -> Step {
        let Query { mut command, format } = query;
        self.popped = false;
        if command.may_wait() {
            shared.clients.at_mut(self.slot).set_blocked(true);
            self.awaited = Awaited::Blocked(format, waited_for_bytes(&command));
            if self.half_closed {
                command.wait_no_longer();
            }
        } else {
            self.awaited = Awaited::Query(format);
        }
        Step::Ask(command)
    }

    /// There is no place yet for a push, or no memory for its elements.
    fn wait_for_place(&mut self, shared: &mut ListenerState) {
        self.awaited = match core::mem::replace(&mut self.awaited, Awaited::Nothing) {
            Awaited::Query(format) | Awaited::Waiting(format) => Awaited::Waiting(format),
            Awaited::Blocked(format, names) => Awaited::Blocked(format, names),
            Awaited::Exec(parts) => Awaited::WaitingExec(parts),
            _ => unreachable!("only what stores something waits for a place"),
        };
        shared.clients.at_mut(self.slot).set_blocked(true);
        if self.half_closed {
            self.follow_ups.push_front(FollowUp::Unanswered(cancel_wait()));
        }
    }

    fn answer(&mut self, reply: Reply, shared: &mut ListenerState, out: &mut Vec<u8>) {
        let awaited = core::mem::replace(&mut self.awaited, Awaited::Nothing);
        self.popped |= may_have_popped(&reply);
        let is_in_vain = matches!(reply, Reply::TimedOut { .. });
        self.drops_input |=
            self.half_closed && is_in_vain && matches!(awaited, Awaited::Blocked(..));
        // It is told as messages are, also to a client that CLIENT REPLY spares the answers, as
        // with Redis.
        let is_confirmation = matches!(
            (&awaited, &reply),
            (Awaited::Subscribe(..), Reply::Done) | (Awaited::Unsubscribe(_), _)
        );
        out.reserve(room::of_reply(&reply));
        let before = out.len();
        match awaited {
            Awaited::Nothing => unreachable!("invariant: a reply answers a command"),
            Awaited::Query(format) => self.word(format, reply, shared, out),
            Awaited::Waiting(format) | Awaited::Blocked(format, _) => {
                self.word(format, reply, shared, out);
                shared.clients.at_mut(self.slot).set_blocked(false);
            }
            Awaited::Exec(parts) => self.finish_exec(parts, reply, shared, out),
            Awaited::WaitingExec(parts) => {
                // First: its own commands may ask which clients wait.
                shared.clients.at_mut(self.slot).set_blocked(false);
                self.finish_exec(parts, reply, shared, out);
            }
            Awaited::Watch(bytes) => self.finish_watch(bytes, &reply, shared, out),
            Awaited::Subscribe(link, target) => {
                self.finish_subscribing(link, target, &reply, shared, out);
            }
            Awaited::Unsubscribe(target) => {
                target.confirm(
                    false,
                    self.subscriptions.subscribed(),
                    &mut self.context(shared, out).answer(),
                );
            }
        }
        if !is_confirmation {
            self.keep_silent(before, shared, out);
        }
    }

    fn word(
        &mut self,
        format: ReplyFormat,
        reply: Reply,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) {
        match format.word(reply, &mut self.context(shared, out)) {
            Next::Said => {}
            Next::Ask(query) => self.follow_ups.push_front(FollowUp::Ask(query)),
            Next::AskEach(queries) => {
                queries
                    .into_iter()
                    .rev()
                    .for_each(|query| self.follow_ups.push_front(FollowUp::Ask(query)));
            }
        }
    }

    /// Asks the engine at once for a command and the like ones that the client has sent behind it.
    fn gather(
        &mut self,
        command: Command,
        words: &Words,
        input: &mut InputBuffer,
        shared: &mut ListenerState,
    ) -> Command {
        let Awaited::Query(format) = &mut self.awaited else { return command };
        if !self.reader.sees_alike() || shared.clients.at_mut(self.slot).is_silent() {
            return command;
        }
        let database = shared.clients.at(self.slot).database;
        let (command, more) =
            pipelined::gather(command, format, database, words, &self.reader, input);
        shared.commands_total += more;
        command
    }

    fn okay(&self, shared: &mut ListenerState, out: &mut Vec<u8>) -> Step {
        self.context(shared, out).answer().ok();
        Step::GoOn
    }

    fn refuse(&self, fault: &Fault, shared: &mut ListenerState, out: &mut Vec<u8>) -> Step {
        self.context(shared, out).refuse(fault);
        Step::GoOn
    }

    const fn context<'a>(
        &self,
        shared: &'a mut ListenerState,
        out: &'a mut Vec<u8>,
    ) -> Context<'a> {
        Context { slot: self.slot, shared, now: self.now, out }
    }
}

/// Does nothing else than to say that a popped element has arrived.
const ARRIVED: Command = Command::CloseProducer { link: LinkId(0) };

/// True if a queue may protect elements that this brings.
const fn may_have_popped(reply: &Reply) -> bool {
    matches!(reply, Reply::Elements(_) | Reply::Popped { .. } | Reply::Batch(_))
}

/// Bytes of the names that it waits for.
fn waited_for_bytes(command: &Command) -> usize {
    match command {
        Command::List(ListCommand::PopFirst { queues, .. }) => waited_bytes(queues),
        Command::Key(KeyCommand::Collection(command)) => match &**command {
            CollectionCommand::PopScored { names, .. } => waited_bytes(names),
            _ => 0,
        },
        Command::Key(KeyCommand::Stream(command)) => match &**command {
            StreamCommand::Read(read) => waited_bytes(read.places.iter().map(|(name, _)| name)),
            _ => 0,
        },
        _ => 0,
    }
}

/// Bytes of names that are watched, or that a pop waits for.
fn waited_bytes<'n>(names: impl IntoIterator<Item = &'n QueueName>) -> usize {
    names.into_iter().map(|name| WAITED_NAME_BYTES + name.as_str().len()).sum()
}

const fn beyond_usual(bytes: usize) -> usize {
    bytes.saturating_sub(WAITED_BYTES_FREE)
}

/// True if it is put behind the others after MULTI.
const fn waits_for_exec(spec: &Spec) -> bool {
    !matches!(
        spec.handler,
        Handler::Verb(
            Verb::Multi | Verb::Exec | Verb::Discard | Verb::Watch | Verb::Quit | Verb::Reset
        )
    )
}

/// True if a client may ask it that hears messages in the older form of the protocol.
fn is_for_subscribers(spec: &Spec) -> bool {
    let verb = matches!(
        spec.handler,
        Handler::Verb(Verb::Subscribe { .. } | Verb::Unsubscribe { .. } | Verb::Quit | Verb::Reset)
    );
    verb || spec.name == "ping"
}

/// True if a refused command is a line of an HTTP request. By a method other than POST only a line
/// is known: `DELETE` without a target, typed for `DEL`, is an unknown command.
fn is_http(words: &Words, is_inline: bool) -> bool {
    let (first, second) = (words.word(0), words.word(1));
    let is_request = is_inline && is_method(first) && is_target(second);
    words.is(0, "post") || names_host(first) || is_request
}
