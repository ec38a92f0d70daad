//! One connection: reads commands out of its input, asks the engine one thing at a time, and
//! words the answers.
//!
//! ```text
//!   Producer -> Consumer -> Line <-> Body         put
//!                           Line <-> Excess       put with a body too large
//!                           Line <-> RestOfLine   no line end in 224 bytes
//! ```
//! With users it reads only lines before it has opened these two, until the client has logged in.
//! Nothing is read while a reply of the engine is awaited. So answers leave in the order of their
//! commands, and a waiting `reserve` holds up everything behind it.

mod login;

use alloc::boxed::Box;
use alloc::vec::Vec;

use input::{InputBuffer, is_http_line};
use model::{
    Command, Delivery, Destination, LinkId, Nanos, NewMessage, Peek, QueueName, Refusal, Reply,
    Right, SessionId,
};

use crate::answer;
use crate::arguments::{Arguments, Malformed, is_tube_name};
use crate::body::Body;
use crate::request::{Put, Request};
use crate::shared::ListenerState;
use crate::verb::Verb;
use crate::watched::Watched;
use crate::yaml;

use self::login::Login;

/// A connection has one producer, pointed at the tube in use, and one consumer of those watched.
const LINK: LinkId = LinkId(0);

/// Bytes of a command line with its end.
const LINE_BYTES_MAX: usize = 224;

const LINE_END: &[u8; 2] = b"\r\n";

/// While nothing is ready, a consumer is warned this long before one of its leases ends.
const MARGIN: Nanos = Nanos::SECOND;

/// Bytes that one call may answer by itself before the server must get the chance to send them.
/// Twenty bytes can ask for a list of ten thousand watched tubes, again and again.
const ANSWERS_BYTES_MAX: usize = 64 * 1024;

/// Bytes of the longest list of tubes that is given: some 100,000 tubes.
const LIST_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One connection's side of the protocol; the crate's page says how to drive it.
#[derive(Debug)]
pub struct Session {
    id: SessionId,
    expect: Expect,
    awaited: Awaited,
    used: QueueName,
    watched: Watched,
    producer: bool,
    worker: bool,
    /// A put waits for a place in its tube.
    send_blocked: bool,
    half_closed: bool,
    half_sent: bool,
    has_more: bool,
    closing: bool,
    speaks_http: bool,
    has_spoken: bool,
    /// None: there are no users.
    login: Option<Box<Login>>,
}

/// The next input.
#[derive(Debug)]
enum Expect {
    /// Opening the producer; no bytes are read before that.
    Producer,
    /// Opening the consumer.
    Consumer,
    /// A command line.
    Line,
    /// The rest of a line that is too long.
    RestOfLine,
    /// The body of a put, and its line end.
    Body(Put, Body),
    /// The rest of a body that is too large, with its line end.
    Excess(u64),
    /// The rest of a `kick` that is larger than one command may be.
    Kick(Kicking),
}

/// How far a `kick` has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kicking {
    done: u64,
    max: u64,
}

/// The reply that the engine owes, as far as it does not speak for itself.
#[derive(Debug)]
enum Awaited {
    /// None.
    Nothing,
    /// To opening the producer or the consumer; the peer did not ask and hears nothing of it.
    Opening,
    /// This word says that it is done.
    Word(&'static str),
    Use(QueueName),
    Watch(QueueName),
    Ignore(QueueName),
    /// One that may come at any time, as may that to a put.
    Receive,
    Lease,
    Kick(Kicking),
    /// One that says it all.
    Plain,
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
    /// A new connection, counted in `shared`. The first two commands that it gives open its
    /// producer and its consumer on the tube `default`; their replies leave no bytes.
    #[must_use]
    pub fn new(id: SessionId, shared: &mut ListenerState) -> Self {
        shared.connections.open += 1;
        shared.connections.total += 1;
        let mut watched = Watched::default();
        watched.insert(default_tube());
        Self {
            id,
            expect: Expect::Producer,
            awaited: Awaited::Nothing,
            used: default_tube(),
            watched,
            producer: false,
            worker: false,
            send_blocked: false,
            half_closed: false,
            half_sent: false,
            has_more: false,
            closing: false,
            speaks_http: false,
            has_spoken: false,
            login: None,
        }
    }

    /// Takes the next command for the engine out of `input`. Commands that need no engine are
    /// answered into `out`. Gives nothing when `input` holds no whole command, while a reply or the
    /// answer to a login is awaited, after `quit`, and when it [`has_more`](Self::has_more).
    pub fn poll_command(
        &mut self,
        input: &mut InputBuffer,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) -> Option<Command> {
        let sent = out.len();
        self.has_more = false;
        if self.gives_up_put() {
            return self.give_up_put();
        }
        while self.may_read() && !self.has_more {
            let step = self.read(input, shared, out);
            let needs_more = matches!(step, Step::NeedMore);
            self.half_sent = needs_more && !(self.expects_line() && input.is_empty());
            match step {
                Step::Ask(command) => return Some(command),
                Step::GoOn => self.has_more = out.len() - sent >= ANSWERS_BYTES_MAX,
                Step::NeedMore => break,
            }
        }
        None
    }

    /// Words the engine's reply to the command given last, or to the waiting `Receive`.
    ///
    /// # Panics
    /// When no reply is awaited: the peer would take it for the answer to something else.
    pub fn handle_reply(&mut self, reply: Reply, shared: &mut ListenerState, out: &mut Vec<u8>) {
        let reply = match reply {
            // The connection waits with it.
            Reply::Waits { .. } => return self.send_blocked = true,
            Reply::Late { reply, .. } => *reply,
            reply => reply,
        };
        self.send_blocked = false;
        let awaited = core::mem::replace(&mut self.awaited, Awaited::Nothing);
        assert!(!matches!(awaited, Awaited::Nothing), "invariant: a reply answers a command");
        match (awaited, reply) {
            // A client that may not use the tube `default` names another.
            (Awaited::Opening, Reply::Refused(Refusal::NotPermitted(_))) => {}
            (Awaited::Opening, reply) => self.closing = matches!(reply, Reply::Refused(_)),
            // It may not use the tube `default`, and has named no other.
            (_, Reply::Refused(Refusal::NoSuchLink)) if self.login.is_some() => {
                answer::word(out, answer::DENIED);
            }
            (_, Reply::Refused(refusal)) => answer::word(out, answer::refusal(&refusal)),
            (_, Reply::NotFound) => answer::word(out, answer::NOT_FOUND),
            (awaited, Reply::Done) => self.finish(awaited, out),
            (_, Reply::Stored { message }) => answer::number(out, "INSERTED", message.0),
            (Awaited::Lease, Reply::Delivered(job)) => self.deliver_chosen(&job, shared, out),
            (_, Reply::Delivered(job)) => answer::job(out, "RESERVED", job.message, job.payload()),
            (_, Reply::TimedOut { .. }) => answer::word(out, answer::TIMED_OUT),
            (_, Reply::LeaseEnding) => answer::word(out, answer::DEADLINE_SOON),
            (_, Reply::Found { message, element }) => {
                answer::job(out, "FOUND", message, element.payload());
            }
            (Awaited::Kick(kick), Reply::Count(count)) => {
                answer::number(out, "KICKED", kick.done + count);
            }
            (Awaited::Kick(kick), Reply::CountSoFar(count)) => {
                self.expect = Expect::Kick(Kicking { done: kick.done + count, ..kick });
            }
            (_, Reply::Count(_) | Reply::CountSoFar(_)) => {
                unreachable!("only a kick is answered with a count")
            }
            (_, Reply::MessageStatistics(job)) => answer::document(out, &yaml::job(&job)),
            (_, Reply::QueueStatistics(tube)) => answer::document(out, &yaml::tube(&tube)),
            (_, Reply::BrokerStatistics(broker)) => {
                answer::document(out, &yaml::server(&broker, shared));
            }
            (_, Reply::Queues(tubes)) => list_tubes(&tubes, out),
            _ => unreachable!("what this protocol never asks for"),
        }
    }

    /// The peer will send no more. A waiting `reserve` or `put` ends, as does every later one at
    /// once, for the peer may be gone.
    pub fn handle_half_close(&mut self) -> Option<Command> {
        self.half_closed = true;
        match self.awaited {
            Awaited::Receive => Some(Command::CancelReceive { link: LINK }),
            _ => self.give_up_put(),
        }
    }

    /// A reply of the engine, or the answer to a login, is still to come. After a
    /// [half close](Self::handle_half_close) it does come: nothing waits any more for other
    /// clients.
    #[must_use]
    pub fn awaits_reply(&self) -> bool {
        !matches!(self.awaited, Awaited::Nothing) || self.is_logging_in()
    }

    /// Uncounts the connection.
    pub fn close(self, shared: &mut ListenerState) {
        shared.connections.open -= 1;
        shared.connections.producers -= u64::from(self.producer);
        shared.connections.workers -= u64::from(self.worker);
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

    /// The connection is to be closed once its answers have been sent: the peer has quit, speaks
    /// HTTP, or there are too many queues to give it its tube.
    #[must_use]
    pub const fn wants_close(&self) -> bool {
        self.closing
    }

    /// The last [`poll_command`](Self::poll_command) found a command that had begun and not
    /// ended, with nothing else left to do.
    #[must_use]
    pub const fn half_sent(&self) -> bool {
        self.half_sent
    }

    /// Bytes of a body that has not come as a whole, taken from the input already, and of more
    /// watched tubes than most have.
    #[must_use]
    pub const fn held_bytes(&self) -> usize {
        let collected = match &self.expect {
            Expect::Body(_, body) => body.len(),
            _ => 0,
        };
        collected + self.watched.bytes_beyond_usual()
    }

    /// The last [`poll_command`](Self::poll_command) gave nothing although there may be more to
    /// do, since it has answered a great deal without the engine: send that, then call again.
    #[must_use]
    pub const fn has_more(&self) -> bool {
        self.has_more || self.gives_up_put()
    }

    const fn gives_up_put(&self) -> bool {
        self.half_closed && self.send_blocked
    }

    fn give_up_put(&mut self) -> Option<Command> {
        core::mem::take(&mut self.send_blocked).then_some(Command::CancelSends)
    }

    fn may_read(&self) -> bool {
        matches!(self.awaited, Awaited::Nothing) && !self.closing && !self.is_logging_in()
    }

    fn expects_line(&self) -> bool {
        matches!(self.expect, Expect::Line) || self.needs_login()
    }

    fn read(
        &mut self,
        input: &mut InputBuffer,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) -> Step {
        match &self.expect {
            _ if self.needs_login() => self.read_line(input, shared, out),
            Expect::Producer => self.open_producer(),
            Expect::Consumer => self.open_consumer(),
            Expect::Line => self.read_line(input, shared, out),
            Expect::RestOfLine => self.skip_line(input, out),
            Expect::Body(..) => self.read_body(input, shared, out),
            Expect::Excess(_) => self.skip_excess(input, out),
            Expect::Kick(kick) => self.kick(*kick),
        }
    }

    /// Asks for the rest of it: other clients are served between two of its parts.
    fn kick(&mut self, kick: Kicking) -> Step {
        self.expect = Expect::Line;
        let max = kick.max - kick.done;
        self.ask(Awaited::Kick(kick), Command::Kick { link: LINK, max })
    }

    fn open_producer(&mut self) -> Step {
        self.expect = Expect::Consumer;
        let queue = default_tube();
        if !self.has_right(&queue, &[Right::Send, Right::Look, Right::Manage]) {
            return Step::GoOn;
        }
        self.ask(
            Awaited::Opening,
            Command::OpenProducer { link: LINK, to: Destination::Queue(queue) },
        )
    }

    fn open_consumer(&mut self) -> Step {
        self.expect = Expect::Line;
        let queue = default_tube();
        if !self.has_right(&queue, &[Right::Receive]) {
            return Step::GoOn;
        }
        self.ask(Awaited::Opening, Command::Watch { link: LINK, queue })
    }

    /// True if the client may have one of these rights on a tube: it is not to be denied, and told
    /// of in the audit log, for what it did not ask.
    fn has_right(&self, tube: &QueueName, uses: &[Right]) -> bool {
        let Some(login) = &self.login else { return true };
        let rights = login.rights_on(tube);
        uses.iter().any(|right| rights.contains(*right))
    }

    fn read_line(
        &mut self,
        input: &mut InputBuffer,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) -> Step {
        let (head, _) = input.unread().split_at(input.len().min(LINE_BYTES_MAX));
        let Some(length) = line_length(head) else {
            if input.len() < LINE_BYTES_MAX {
                return Step::NeedMore;
            }
            if is_http_line(head) {
                return self.close_for_http();
            }
            if self.needs_login() {
                return self.deny(out);
            }
            self.expect = Expect::RestOfLine;
            return Step::GoOn;
        };
        let (line, _) = head.split_at(length);
        if self.login.is_some()
            && let Some(step) = self.read_login(line, out)
        {
            input.consume(length + LINE_END.len());
            return step;
        }
        let request = parse(line, shared);
        if request.is_err() && is_http_line(line) {
            return self.close_for_http();
        }
        input.consume(length + LINE_END.len());
        match request {
            Ok(request) => {
                self.has_spoken = true;
                self.dispatch(request, shared, out)
            }
            Err(error) => say(out, error),
        }
    }

    /// A page in a user's browser speaks through it: not a word, and nothing of the rest.
    fn close_for_http(&mut self) -> Step {
        self.speaks_http = true;
        self.quit()
    }

    fn skip_line(&mut self, input: &mut InputBuffer, out: &mut Vec<u8>) -> Step {
        let unread = input.unread();
        let Some(length) = line_length(unread) else {
            // The first half of a line end may be all that has come of it.
            let kept = usize::from(unread.last() == Some(&b'\r'));
            input.consume(input.len() - kept);
            return Step::NeedMore;
        };
        input.consume(length + LINE_END.len());
        self.expect = Expect::Line;
        say(out, answer::BAD_FORMAT)
    }

    fn read_body(
        &mut self,
        input: &mut InputBuffer,
        shared: &ListenerState,
        out: &mut Vec<u8>,
    ) -> Step {
        let Expect::Body(put, body) = &mut self.expect else { return Step::GoOn };
        body.fill(input);
        let Some(end) = input.unread().first_chunk().copied().filter(|_| body.is_whole()) else {
            return Step::NeedMore;
        };
        input.consume(LINE_END.len());
        let message = NewMessage {
            priority: put.priority,
            delay: put.delay,
            lease: put.lease,
            ..NewMessage::new(body.take().into())
        };
        self.expect = Expect::Line;
        if end != *LINE_END {
            return say(out, answer::EXPECTED_CRLF);
        }
        if shared.draining.has_begun() {
            return say(out, answer::DRAINING);
        }
        self.ask(Awaited::Plain, Command::Put { link: LINK, message, transaction: None })
    }

    fn skip_excess(&mut self, input: &mut InputBuffer, out: &mut Vec<u8>) -> Step {
        let Expect::Excess(left) = &mut self.expect else { return Step::GoOn };
        let skipped = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
        input.consume(skipped);
        *left -= skipped as u64;
        if *left > 0 {
            return Step::NeedMore;
        }
        self.expect = Expect::Line;
        say(out, answer::JOB_TOO_BIG)
    }

    fn dispatch(
        &mut self,
        request: Request,
        shared: &mut ListenerState,
        out: &mut Vec<u8>,
    ) -> Step {
        use Awaited::{Plain, Word};
        match request {
            Request::Put(put) => self.begin_put(put, shared),
            Request::PutTooBig { bytes } => self.begin_excess(bytes),
            Request::Use(tube) => self.use_tube(tube),
            Request::Reserve(wait) => self.reserve(wait, shared),
            Request::ReserveJob(message) => self.ask(Awaited::Lease, Command::Lease { message }),
            Request::Delete(message) => {
                self.ask(Word(answer::DELETED), Command::Delete { message })
            }
            Request::Release { message, priority, delay } => self.ask(
                Word(answer::RELEASED),
                Command::Release { message, priority, delay: Some(delay) },
            ),
            Request::Bury { message, priority } => {
                self.ask(Word(answer::BURIED), Command::Bury { message, priority })
            }
            Request::Touch(message) => {
                self.ask(Word(answer::TOUCHED), Command::Renew { message, lease: None })
            }
            Request::Watch(tube) => self.watch(tube),
            Request::Ignore(tube) => self.ignore(tube, out),
            Request::Peek(message) => self.ask(Plain, Command::Peek(Peek::Message(message))),
            Request::PeekReady => self.ask(Plain, Command::Peek(Peek::Ready(LINK))),
            Request::PeekDelayed => self.ask(Plain, Command::Peek(Peek::Delayed(LINK))),
            Request::PeekBuried => self.ask(Plain, Command::Peek(Peek::Buried(LINK))),
            Request::Kick { max } => self.kick(Kicking { done: 0, max: max.into() }),
            Request::KickJob(message) => {
                self.ask(Word(answer::KICKED), Command::KickMessage { message })
            }
            Request::Stats => self.ask(Plain, Command::BrokerStatistics),
            Request::StatsJob(message) => self.ask(Plain, Command::MessageStatistics { message }),
            Request::StatsTube(tube) => self.ask(Plain, Command::QueueStatistics { queue: tube }),
            Request::ListTubes => self.ask(Plain, Command::ListQueues),
            Request::ListTubeUsed => self.say_used(out),
            Request::ListTubesWatched => self.list_watched(out),
            Request::PauseTube { tube, duration } => {
                self.ask(Word(answer::PAUSED), Command::Pause { queue: tube, duration })
            }
            Request::Quit => self.quit(),
        }
    }

    fn ask(&mut self, awaited: Awaited, command: Command) -> Step {
        self.awaited = awaited;
        Step::Ask(command)
    }

    fn begin_put(&mut self, put: Put, shared: &mut ListenerState) -> Step {
        shared.connections.producers += u64::from(!self.producer);
        self.producer = true;
        self.expect = Expect::Body(put, Body::new(put.body_bytes));
        Step::GoOn
    }

    fn begin_excess(&mut self, bytes: u64) -> Step {
        self.expect = Expect::Excess(bytes + LINE_END.len() as u64);
        Step::GoOn
    }

    fn use_tube(&mut self, tube: QueueName) -> Step {
        let command = Command::OpenProducer { link: LINK, to: Destination::Queue(tube.clone()) };
        self.ask(Awaited::Use(tube), command)
    }

    fn watch(&mut self, tube: QueueName) -> Step {
        let command = Command::Watch { link: LINK, queue: tube.clone() };
        self.ask(Awaited::Watch(tube), command)
    }

    fn ignore(&mut self, tube: QueueName, out: &mut Vec<u8>) -> Step {
        if !self.watched.contains(&tube) {
            self.say_watching(out);
            return Step::GoOn;
        }
        if self.watched.len() == 1 {
            return say(out, answer::NOT_IGNORED);
        }
        let command = Command::Unwatch { link: LINK, queue: tube.clone() };
        self.ask(Awaited::Ignore(tube), command)
    }

    fn reserve(&mut self, wait: Option<Nanos>, shared: &mut ListenerState) -> Step {
        self.become_worker(shared);
        let wait = if self.half_closed { Some(Nanos::ZERO) } else { wait };
        self.ask(
            Awaited::Receive,
            Command::Receive { link: LINK, wait, margin: MARGIN, lease: None },
        )
    }

    fn say_used(&self, out: &mut Vec<u8>) -> Step {
        answer::text(out, "USING", self.used.as_str());
        Step::GoOn
    }

    fn say_watching(&self, out: &mut Vec<u8>) {
        answer::number(out, "WATCHING", self.watched.len() as u64);
    }

    fn list_watched(&self, out: &mut Vec<u8>) -> Step {
        answer::document(out, &yaml::list(self.watched.tubes()));
        Step::GoOn
    }

    fn quit(&mut self) -> Step {
        self.closing = true;
        Step::GoOn
    }

    /// The engine has done the command.
    fn finish(&mut self, awaited: Awaited, out: &mut Vec<u8>) {
        match awaited {
            Awaited::Word(word) => answer::word(out, word),
            Awaited::Use(tube) => {
                self.used = tube;
                self.say_used(out);
            }
            Awaited::Watch(tube) => {
                self.watched.insert(tube);
                self.say_watching(out);
            }
            Awaited::Ignore(tube) => {
                self.watched.remove(&tube);
                self.say_watching(out);
            }
            // The protocol's word for a defect of the server.
            _ => answer::word(out, answer::INTERNAL_ERROR),
        }
    }

    /// `reserve-job` makes a worker only when it succeeds.
    fn deliver_chosen(&mut self, job: &Delivery, shared: &mut ListenerState, out: &mut Vec<u8>) {
        self.become_worker(shared);
        answer::job(out, "RESERVED", job.message, job.payload());
    }

    fn become_worker(&mut self, shared: &mut ListenerState) {
        shared.connections.workers += u64::from(!self.worker);
        self.worker = true;
    }
}

fn parse(line: &[u8], shared: &mut ListenerState) -> Result<Request, &'static str> {
    if line.contains(&0) {
        return Err(answer::BAD_FORMAT);
    }
    let (verb, arguments) = Verb::of(line).ok_or(answer::UNKNOWN_COMMAND)?;
    let request = Request::parse(verb, Arguments(arguments), shared.body_bytes_max)
        .map_err(|Malformed| answer::BAD_FORMAT)?;
    shared.counts.count(verb);
    Ok(request)
}

fn say(out: &mut Vec<u8>, word: &str) -> Step {
    answer::word(out, word);
    Step::GoOn
}

/// Bytes of the first line without its end, if it has ended.
fn line_length(bytes: &[u8]) -> Option<usize> {
    bytes.windows(LINE_END.len()).position(|window| window == LINE_END)
}

/// The queues that a client can name: consoles ask for the statistics of each, and end when one has
/// none. A list that no client could want is not made: thousands of clients that ask for it and do
/// not read would fill the memory.
fn list_tubes(queues: &[QueueName], out: &mut Vec<u8>) {
    let tubes = || queues.iter().filter(|queue| is_tube_name(queue.as_str().as_bytes()));
    let bytes: usize = tubes().map(|tube| tube.as_str().len() + 5).sum();
    if bytes > LIST_BYTES_MAX {
        return answer::word(out, answer::OUT_OF_MEMORY);
    }
    answer::document(out, &yaml::list(tubes()));
}

/// The tube that every connection begins with. The protocol has it exist for ever: the engine's
/// configuration keeps the queue of this name.
///
/// # Panics
/// Never: it is a name that is allowed.
#[must_use]
pub fn default_tube() -> QueueName {
    QueueName::new("default").expect("invariant: a short word is a queue's name")
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn tube_list_over_bound_is_refused() {
        let line = "- \n".len() + 200;
        let most = LIST_BYTES_MAX / (line + 2);
        let tubes = |count| -> Vec<_> {
            let names = (0..count).map(|index| format!("{index:0>200}"));
            names.map(|name| QueueName::new(&name).unwrap()).collect()
        };
        let mut out = Vec::new();
        list_tubes(&tubes(most), &mut out);
        assert!(out.len() > most * line, "{} bytes", out.len());
        out.clear();
        list_tubes(&tubes(most + 1), &mut out);
        assert_eq!(out, answer::OUT_OF_MEMORY.as_bytes());
    }
}
