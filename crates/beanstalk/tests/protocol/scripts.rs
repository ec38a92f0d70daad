//! The files in `testdata/scripts`: a peer's bytes and the engine's replies, `----`, and the
//! session's commands and answers. `UPDATE=1` writes the results of today; read the difference.
//!
//! Each script also runs with its input cut into pieces of many sizes: that must change nothing.

use std::fmt::Write as _;
use std::path::Path;

use beanstalk::ListenerState;
use model::{
    BrokerStatistics, Command, Delivery, Destination, Element, LoginAnswer, LoginOffer, LoginStep,
    MessageId, MessageState, MessageStatistics, Nanos, Peek, QueueName, QueueStatistics, Refusal,
    Reply,
};
use testkit::{escape, scripts};

use crate::connection::Connection;
use crate::facts;

#[test]
fn scripts_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/scripts");
    scripts::check_all(&folder, 9, |script| run(script, &|_, _| false));
    for (path, script) in scripts::read_all(&folder, 9) {
        for size in [1, 2, 3, 5, 8, 13, 100] {
            let pieces = run(&script, &|_, offset| offset % size == 0);
            assert_eq!(pieces, script, "{} in pieces of {size}", path.display());
        }
        for cut in 1..400 {
            let pieces = run(&script, &|_, offset| offset == cut);
            assert_eq!(pieces, script, "{} cut after {cut} bytes of each send", path.display());
        }
    }
}

/// Repeats the script with its results. `cut(byte, offset)` decides if the bytes received before
/// this byte of a send are handed over.
fn run(script: &str, cut: &dyn Fn(u8, usize) -> bool) -> String {
    let mut player = Player::new(cut);
    scripts::repeat(script, |lines| {
        lines.iter().for_each(|line| player.obey(line));
        player.take_results()
    })
}

struct Player<'a> {
    cut: &'a dyn Fn(u8, usize) -> bool,
    shared: ListenerState,
    connection: Connection,
    results: String,
    /// Commands given so far wait for their replies.
    asked: bool,
}

impl<'a> Player<'a> {
    fn new(cut: &'a dyn Fn(u8, usize) -> bool) -> Self {
        let mut shared = facts::shared();
        let connection = Connection::opened(1, &mut shared);
        Self { cut, shared, connection, results: String::new(), asked: false }
    }

    fn obey(&mut self, line: &str) {
        let (directive, argument) = line.split_once(' ').unwrap_or((line, ""));
        match directive {
            "send" => self.send(&escape::bytes(argument)),
            "reply" => self.reply(argument),
            "drain" => self.shared.draining.begin(),
            "limit" => {
                self.shared =
                    ListenerState::new(argument.parse().unwrap(), Box::new(facts::FixedFacts))
            }
            "half-close" => self.half_close(),
            "connect" => self.connect(),
            "offer" => self.offer(argument),
            "login" => self.login(argument),
            "close" => self.connection.close(&mut self.shared),
            other => panic!("{other:?} is no directive"),
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        let mut start = 0;
        for (offset, byte) in bytes.iter().enumerate().skip(1) {
            if (self.cut)(*byte, offset) {
                self.receive(&bytes[start..offset]);
                start = offset;
            }
        }
        self.receive(&bytes[start..]);
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.connection.receive(bytes);
        self.poll();
    }

    fn poll(&mut self) {
        while let Some(command) = self.connection.poll(&mut self.shared) {
            assert!(!self.asked, "a command while another waits for its reply");
            self.asked = true;
            self.show_answers();
            writeln!(self.results, "ask {}", command_text(&command)).unwrap();
        }
        self.show_answers();
        self.show_login();
    }

    fn reply(&mut self, text: &str) {
        self.asked = false;
        self.connection.reply(reply(text), &mut self.shared);
        self.show_answers();
        self.poll();
    }

    fn half_close(&mut self) {
        if let Some(command) = self.connection.half_close() {
            writeln!(self.results, "ask {}", command_text(&command)).unwrap();
        }
    }

    fn connect(&mut self) {
        self.connection = Connection::new(2, &mut self.shared);
        self.poll();
    }

    /// A new client, which has to log in.
    fn offer(&mut self, ways: &str) {
        self.asked = false;
        self.connection = Connection::new(3, &mut self.shared);
        self.connection.offer(LoginOffer {
            password: ways.contains("password"),
            certificate: ways.contains("certificate"),
            unix: ways.contains("unix"),
            anonymous: ways.contains("anonymous"),
            token: false,
            listener: ways.contains("listener"),
        });
        self.poll();
    }

    /// The answer to the client's login, and the replies that open its producer and consumer.
    fn login(&mut self, answer: &str) {
        self.connection.answer_login(match answer.split_once(' ') {
            Some(("granted", user)) => LoginAnswer::Granted {
                rights: model::Rights::everything(user).into(),
                proof: Vec::new(),
            },
            None if answer == "refused" => LoginAnswer::Refused,
            None if answer == "busy" => LoginAnswer::Busy,
            _ => panic!("{answer:?} is no answer"),
        });
        self.show_answers();
        self.poll();
    }

    fn show_login(&mut self) {
        match self.connection.poll_login() {
            Some(LoginStep::Password { user, password }) => {
                let password = escape::text(password.expose());
                writeln!(self.results, "log in {user} {password:?}").unwrap();
            }
            Some(step) => writeln!(self.results, "log in {step:?}").unwrap(),
            None => {}
        }
    }

    fn show_answers(&mut self) {
        let answers = self.connection.take_out();
        for line in answers.split_inclusive(|byte| *byte == b'\n') {
            writeln!(self.results, "{}", escape::text(line)).unwrap();
        }
    }

    fn take_results(&mut self) -> String {
        self.show_answers();
        if self.connection.is_open() && self.connection.session().half_sent() {
            self.results.push_str("(half sent)\n");
        }
        if self.connection.is_open()
            && let Some(user) = self.connection.session().user()
        {
            writeln!(self.results, "(user {user})").unwrap();
        }
        if self.connection.is_open() && self.connection.session().wants_close() {
            self.results.push_str("(closes)\n");
        }
        core::mem::take(&mut self.results)
    }
}

fn command_text(command: &Command) -> String {
    match command {
        Command::OpenProducer { link, to: Destination::Queue(queue) } => {
            format!("open-producer {} {queue}", link.0)
        }
        Command::Put { link, message, .. } => format!(
            "put {} priority={} delay={} lease={} {:?} \"{}\"",
            link.0,
            message.priority,
            message.delay,
            message.lease,
            message.persistence,
            escape::text(&message.body),
        ),
        Command::Watch { link, queue } => format!("watch {} {queue}", link.0),
        Command::Unwatch { link, queue } => format!("unwatch {} {queue}", link.0),
        Command::Receive { link, wait, margin, .. } => {
            let wait = wait.map_or("for-ever".into(), |wait| wait.to_string());
            format!("receive {} wait={wait} margin={margin}", link.0)
        }
        Command::CancelReceive { link } => format!("cancel-receive {}", link.0),
        Command::Lease { message } => format!("lease {message}"),
        Command::Delete { message } => format!("delete {message}"),
        Command::Release { message, priority, delay } => {
            let delay = delay.unwrap();
            format!("release {message} priority={priority} delay={delay}")
        }
        Command::Bury { message, priority } => format!("bury {message} priority={priority}"),
        Command::Renew { message, .. } => format!("renew {message}"),
        Command::Kick { link, max } => format!("kick {} max={max}", link.0),
        Command::KickMessage { message } => format!("kick-message {message}"),
        Command::Pause { queue, duration } => format!("pause {queue} {duration}"),
        Command::Peek(Peek::Message(message)) => format!("peek {message}"),
        Command::Peek(Peek::Ready(link)) => format!("peek-ready {}", link.0),
        Command::Peek(Peek::Delayed(link)) => format!("peek-delayed {}", link.0),
        Command::Peek(Peek::Buried(link)) => format!("peek-buried {}", link.0),
        Command::MessageStatistics { message } => format!("message-statistics {message}"),
        Command::QueueStatistics { queue } => format!("queue-statistics {queue}"),
        Command::BrokerStatistics => "broker-statistics".into(),
        Command::ListQueues => "list-queues".into(),
        other => panic!("this protocol never asks for {other:?}"),
    }
}

fn reply(text: &str) -> Reply {
    let words: Vec<&str> = text.split(' ').collect();
    let message = || MessageId(words[1].parse().unwrap());
    let body = || escape::bytes(words.get(2).copied().unwrap_or_default()).into_boxed_slice();
    match words[0] {
        "done" => Reply::Done,
        "stored" => Reply::Stored { message: message() },
        "refused" => Reply::Refused(refusal(words[1])),
        "delivered" => Reply::Delivered(Box::new(Delivery::new(message(), body().into()))),
        "waits" => Reply::Waits { ticket: 7 },
        "late" => {
            let (_, what) = text.split_once(' ').unwrap();
            Reply::Late { ticket: 7, reply: Box::new(reply(what)) }
        }
        "timed-out" => Reply::TimedOut { link: None },
        "lease-ending" => Reply::LeaseEnding,
        "not-found" => Reply::NotFound,
        "found" => {
            Reply::Found { message: message(), element: Box::new(Element::raw(body().into())) }
        }
        "count" => Reply::Count(words[1].parse().unwrap()),
        "count-so-far" => Reply::CountSoFar(words[1].parse().unwrap()),
        "message" => Reply::MessageStatistics(Box::new(message_statistics(words[1]))),
        "queue" => Reply::QueueStatistics(Box::new(queue_statistics(words[1]))),
        "broker" => Reply::BrokerStatistics(Box::new(broker_statistics())),
        "queues" => Reply::Queues(words[1..].iter().map(|name| queue(name)).collect()),
        other => panic!("{other:?} is no reply"),
    }
}

fn refusal(text: &str) -> Refusal {
    match text {
        "store-full" => Refusal::StoreFull,
        "too-many-queues" => Refusal::TooManyQueues { max: 1_000_000 },
        "no-such-destination" => Refusal::NoSuchDestination,
        "of-another-session" => Refusal::OfAnotherSession,
        "too-many-watched" => Refusal::TooManyWatched,
        "no-such-link" => Refusal::NoSuchLink,
        other => panic!("{other:?} is no refusal"),
    }
}

fn queue(name: &str) -> QueueName {
    QueueName::new(&name.replace('_', " ")).unwrap()
}

/// Every number is another, with a fraction that must be cut off.
fn message_statistics(state: &str) -> MessageStatistics {
    MessageStatistics {
        message: MessageId(u64::MAX),
        queue: queue("123"),
        state: match state {
            "ready" => MessageState::Ready,
            "delayed" => MessageState::Delayed,
            "leased" => MessageState::Leased,
            _ => MessageState::Buried,
        },
        priority: u32::MAX,
        age: Nanos(11_999_999_999),
        delay: Nanos::from_secs(12),
        lease: Nanos::from_secs(13),
        time_left: Nanos(14_999_999_999),
        delivered: 15,
        expired: 16,
        released: 17,
        buried: 18,
        kicked: 19,
    }
}

fn queue_statistics(name: &str) -> QueueStatistics {
    QueueStatistics {
        queue: queue(name),
        urgent: 21,
        ready: 22,
        leased: 23,
        delayed: 24,
        buried: 25,
        messages_total: 26,
        producers: 27,
        consumers: 28,
        waiting: 29,
        deleted_total: 30,
        paused_total: 31,
        pause: Nanos::from_secs(32),
        pause_left: Nanos(31_999_999_999),
        body_bytes: 33,
        blocked_sends: 34,
    }
}

fn broker_statistics() -> BrokerStatistics {
    BrokerStatistics {
        urgent: 41,
        ready: 42,
        leased: 43,
        delayed: 44,
        buried: 45,
        expired_total: 46,
        messages_total: u64::MAX,
        queues: 47,
        waiting: 48,
        ..BrokerStatistics::default()
    }
}
