//! Scripts: commands, `----`, their results, an empty line.
//!
//! A line is a frame of the peer (see `peer`), or one of
//! * `reply <what> [at=<lsn>]`: the engine's reply to the next command that has none; so many as
//!   there are commands. Without it the engine does as asked at once.
//! * `deliver <link> <message> …`, `drained <link> <delivered>`, `gone <link>`: unsolicited replies
//! * `hold`: from here on replies have to be given by `reply`; `log <lsn>`: the position that puts,
//!   settlements and commits depend on; `durable <lsn>`: that much is synced
//! * `after <ms>`, `timeout`, `half-close`, `shutdown`, `drain` (the server stores nothing more),
//!   `facts`
//! * `offer [password] [certificate] [anonymous] [token]`: the peer has to log in, by these ways or
//!   SCRAM; the answer to its step is `login granted <user> [proof=<text>] [sessions=<n>]`,
//!   `login full`, `login challenge <text>`, `login refused` or `login busy`
//! * `in-pieces`: from here on the peer's bytes come one at a time

use std::collections::VecDeque;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use amqp::{Connection, Event, InputBuffer, Options};
use model::{
    Bound, Command, DeadLetter, DeadReason, Delivery, DependsOn, Destination, Draining, Durability,
    LinkId, LoginAnswer, LoginOffer, Lsn, MessageId, Nanos, QueueFull, QueueName, Quota,
    QuotaReached, Quotas, Refusal, Reply, Rights, SessionId, Subscription,
};
use testkit::scripts;

use crate::peer::{self, Words};
use crate::words;

/// One connection, and an engine that replies as the script says.
struct World {
    connection: Connection,
    input: InputBuffer,
    out: Vec<u8>,
    now: Nanos,
    /// Commands that have no reply yet.
    asked: VecDeque<Command>,
    holds: bool,
    log: u64,
    durable: u64,
    held: VecDeque<(DependsOn, Event)>,
    stored: u64,
    draining: Draining,
    in_pieces: bool,
    lines: String,
}

/// Runs the scripts of a folder, each with a world of its own, which gives the results of a line.
pub(crate) fn run_all<S: FnMut(&str) -> String>(folder: &str, world: impl Fn() -> S) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(folder);
    scripts::check_all(&folder, 1, |script| {
        let mut step = world();
        scripts::repeat(script, |lines| lines.iter().map(|line| step(line)).collect())
    });
}

/// A world of one connection.
pub(crate) fn alone() -> impl FnMut(&str) -> String {
    let mut world = World::new();
    move |line| {
        world.step(line);
        std::mem::take(&mut world.lines)
    }
}

impl World {
    fn new() -> Self {
        let draining = Draining::default();
        let options = Options {
            container_id: "dunlin".into(),
            product: "Dunlin".into(),
            version: "0".into(),
            max_message_bytes: 4_000,
            links_max: 8,
            draining: draining.clone(),
            channels_max: 4,
            ..Options::default()
        };
        let now = Nanos::from_secs(1_000_000);
        Self {
            connection: Connection::new(SessionId(1), Arc::new(options), now),
            input: InputBuffer::new(),
            out: Vec::new(),
            now,
            asked: VecDeque::new(),
            holds: false,
            log: 0,
            durable: 0,
            held: VecDeque::new(),
            stored: 0,
            draining,
            in_pieces: false,
            lines: String::new(),
        }
    }

    fn step(&mut self, line: &str) {
        if let Some(bytes) = peer::bytes(line) {
            let piece = if self.in_pieces { 1 } else { bytes.len() };
            for piece in bytes.chunks(piece) {
                self.input.append(piece);
                self.settle_down();
            }
        } else {
            self.act(&Words::new(line));
        }
        self.settle_down();
    }

    fn act(&mut self, words: &Words<'_>) {
        match words.at(0) {
            "hold" => self.holds = true,
            "log" => self.log = words.number(1),
            "durable" => self.durable = words.number(1),
            "reply" => {
                let command = self.asked.pop_front().expect("the engine was asked");
                let reply = reply(words, &command);
                self.reply(at(words), reply);
            }
            "waits" => {
                self.asked.pop_front().expect("the engine was asked");
                self.reply(at(words), Reply::Waits { ticket: words.number(1) });
            }
            "late" => {
                let reply = match words.at(2) {
                    "stored" => Reply::Stored { message: MessageId(1) },
                    "done" => Reply::Done,
                    _ => Reply::Refused(full()),
                };
                let late = Reply::Late { ticket: words.number(1), reply: Box::new(reply) };
                self.reply(at(words), late);
            }
            "deliver" => self.reply(at(words), Reply::Delivered(Box::new(delivery(words)))),
            "drained" => {
                let (link, delivered) = (LinkId(words.number(1)), words.number(2));
                self.reply(at(words), Reply::Drained { link, delivered });
            }
            "gone" => {
                let link = LinkId(words.number(1));
                self.reply(at(words), Reply::ConsumerClosed { link });
            }
            "after" => self.now = self.now + Nanos::from_millis(words.number(1)),
            "timeout" => self.connection.handle_timeout(self.now, &mut self.out),
            "half-close" => self.connection.handle_half_close(),
            "shutdown" => self.connection.begin_shutdown(&mut self.out),
            "drain" => self.draining.begin(),
            "facts" => self.facts(),
            "in-pieces" => self.in_pieces = true,
            "offer" => self.connection.set_offer(Some(LoginOffer {
                password: words.has("password"),
                certificate: words.has("certificate"),
                unix: words.has("unix"),
                anonymous: words.has("anonymous"),
                token: words.has("token"),
                listener: words.has("listener"),
            })),
            "login" => self.connection.handle_login(login_answer(words), &mut self.out),
            other => panic!("no such word: {other}"),
        }
    }

    fn facts(&mut self) {
        let connection = &self.connection;
        let timeout = connection.poll_timeout().map(|at| at.since(self.now));
        writeln!(
            self.lines,
            "closes={} half-sent={} held={} timeout={}",
            connection.wants_close(),
            connection.half_sent(),
            connection.held_bytes(),
            timeout.map_or("never".into(), |span| span.to_string())
        )
        .unwrap();
        if let Some(user) = connection.user() {
            writeln!(self.lines, "user={user}").unwrap();
        }
    }

    fn reply(&mut self, after: DependsOn, reply: Reply) {
        self.held.extend(self.connection.handle_reply(after, reply));
    }

    /// Goes round until nothing happens any more, as a server does.
    fn settle_down(&mut self) {
        loop {
            self.poll();
            self.emit();
            if !self.connection.has_more() {
                break;
            }
        }
        self.lines += &words::sent(&std::mem::take(&mut self.out), u32::MAX);
        if let Some(step) = self.connection.poll_login() {
            writeln!(self.lines, "log in {}", words::login(&step)).unwrap();
        }
    }

    fn poll(&mut self) {
        while let Some(command) =
            self.connection.poll_command(self.now, &mut self.input, &mut self.out)
        {
            self.lines += &words::sent(&std::mem::take(&mut self.out), u32::MAX);
            if !is_nothing(&command) {
                writeln!(self.lines, "ask {}", words::asked(&command)).unwrap();
            }
            if matches!(command, Command::Credit { .. }) {
                continue;
            }
            self.asked.push_back(command);
        }
        // In their order: a held event holds up those behind it.
        while let Some(command) =
            self.asked.pop_front_if(|command| !self.holds || is_close(command))
        {
            let after = self.after(&command);
            let reply = self.default_reply(&command);
            self.reply(after, reply);
        }
    }

    fn emit(&mut self) {
        for (after, event) in std::mem::take(&mut self.held) {
            if after.lsn.0 <= self.durable {
                self.connection.emit(event, &mut self.out);
            } else {
                self.held.push_back((after, event));
            }
        }
        self.connection.flush(&mut self.out);
    }

    fn after(&self, command: &Command) -> DependsOn {
        let writes = matches!(
            command,
            Command::Put { transaction: None, .. }
                | Command::Settle { transaction: None, .. }
                | Command::Commit { .. }
        );
        let lsn = if writes { Lsn(self.log) } else { Lsn::ZERO };
        DependsOn::new(lsn, if writes { Durability::Synced } else { Durability::None })
    }

    fn default_reply(&mut self, command: &Command) -> Reply {
        match command {
            Command::Put { transaction: None, .. } | Command::PutTo { transaction: None, .. } => {
                self.stored += 1;
                Reply::Stored { message: MessageId(self.stored) }
            }
            Command::CreateTemporary { topic: true, .. } => Reply::Created(topic("temporary-1")),
            Command::CreateTemporary { .. } => Reply::Created(queue("temporary-1")),
            Command::FindSubscription { .. } => Reply::NotFound,
            _ => Reply::Done,
        }
    }
}

/// The command that only asks for a reply in its turn.
fn is_nothing(command: &Command) -> bool {
    matches!(command, Command::CloseProducer { link: LinkId(u32::MAX) })
}

/// A command that the script need not reply to.
fn is_close(command: &Command) -> bool {
    matches!(command, Command::CloseProducer { .. } | Command::CloseConsumer { .. })
}

fn at(words: &Words<'_>) -> DependsOn {
    match words.value("at") {
        Some(lsn) => DependsOn::new(Lsn(lsn), Durability::Synced),
        None => DependsOn::NOTHING,
    }
}

fn reply(words: &Words<'_>, command: &Command) -> Reply {
    match words.at(1) {
        "done" => Reply::Done,
        "stored" => Reply::Stored { message: MessageId(words.number(2)) },
        "not-found" => Reply::NotFound,
        "created" => Reply::Created(queue(words.at(2))),
        "subscription" => {
            let Command::FindSubscription { name } = command else {
                panic!("nobody looked: {command:?}")
            };
            Reply::Subscription(Box::new(Subscription {
                name: Some(name.clone()),
                selector: words.get("selector").map(Into::into),
                shared: words.has("shared"),
                ..Subscription::new(QueueName::new(words.at(2)).unwrap())
            }))
        }
        "refused" => Reply::Refused(match words.at(2) {
            "store-full" => Refusal::StoreFull,
            "client" => Refusal::ClientInUse,
            "subscription" => Refusal::SubscriptionInUse,
            "selector" => Refusal::InvalidSelector { position: 3, reason: "no operand".into() },
            "no-transaction" => Refusal::NoSuchTransaction,
            "failed" => Refusal::TransactionFailed,
            "large" => Refusal::TransactionTooLarge,
            "quota" => Refusal::QuotaReached(Box::new(quota_reached(Quota::Messages, 5))),
            other => panic!("no such refusal: {other}"),
        }),
        other => panic!("no such reply: {other}"),
    }
}

fn login_answer(words: &Words<'_>) -> LoginAnswer {
    match words.at(1) {
        "granted" => LoginAnswer::Granted {
            rights: rights(words).into(),
            proof: words.get("proof").unwrap_or_default().into(),
        },
        "challenge" => LoginAnswer::Challenge(words.at(2).into()),
        "refused" => LoginAnswer::Refused,
        "busy" => LoginAnswer::Busy,
        "full" => LoginAnswer::Full(Box::new(quota_reached(Quota::Connections, 2))),
        other => panic!("no such answer: {other}"),
    }
}

fn rights(words: &Words<'_>) -> Rights {
    let mut quotas = Quotas::default();
    quotas.set(Quota::Sessions, words.get("sessions").map(|max| max.parse().unwrap()));
    Rights::everything(words.at(2)).within(quotas)
}

fn quota_reached(quota: Quota, max: u64) -> QuotaReached {
    QuotaReached { user: "alice".into(), quota, max }
}

fn full() -> Refusal {
    let queue = QueueName::new("orders").unwrap();
    Refusal::QueueFull(Box::new(QueueFull { queue, bound: Bound::Messages(1_000) }))
}

fn queue(name: &str) -> Destination {
    Destination::Queue(QueueName::new(name).unwrap())
}

fn topic(name: &str) -> Destination {
    Destination::Topic(QueueName::new(name).unwrap())
}

/// A message as it was stored: by default one that came by AMQP with a string as its body.
fn delivery(words: &Words<'_>) -> Delivery {
    let body = match words.get("raw") {
        Some(body) => body.as_bytes().to_vec(),
        None => peer::message(words),
    };
    let format = if words.get("raw").is_some() { model::Format::RAW } else { amqp::FORMAT };
    Delivery {
        link: Some(LinkId(words.number(1))),
        failed: words.value("failed").unwrap_or(0),
        priority: words.value("urgency").unwrap_or(0),
        created: Nanos::from_secs(900_000),
        expires: words.value("until").map(Nanos::from_secs),
        durability: if words.has("persistent") { Durability::Synced } else { Durability::None },
        dead: words.has("dead").then(|| {
            Box::new(DeadLetter {
                reason: DeadReason::Attempts,
                from: QueueName::new("orders").unwrap(),
                subscription: None,
                at: Nanos::from_secs(950_000),
                attempts: 10,
            })
        }),
        format,
        ..Delivery::new(MessageId(words.number(2)), body.into())
    }
}
