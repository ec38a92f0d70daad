//! The language of the scripts in `testdata`.
//!
//! ```text
//! store always|never|memory|25ms [release-order=back] [kept=QUEUE] [attempts=N] [dead=park|drop]
//!       [pop-lease=T] [frame=BYTES] [window=T] [ids=N] [max-messages=N] [max-bytes=N]
//!       [full=block|drop-oldest|dead-letter|disconnect] [age=T] [memory=BYTES]
//!       [dead-max=N] [dead-bytes=N]                     of dead letters, where DLQ has no bounds
//!                                                       begins, with an empty engine; the
//!                                                       bounds are of all queues but DLQ
//! SESSION open | SESSION close [begun=ID,…] | SESSION dismiss
//! SESSION producer|watch|unwatch LINK QUEUE
//! SESSION put LINK BODY [priority=N] [delay=T] [lease=T] [persistence=none|written|synced]
//!         [expires=T] [id=NAME]                         at that moment; its sender's name for it
//!         [pad=BYTES]                                   so many, with dots behind what is given
//!                                                       BODY `group:a` is of group a; with `end:1`
//!                                                       too its consumer gives the group up
//! SESSION receive LINK [wait=T] [margin=T] [lease=T]    without wait: for ever
//! SESSION cancel LINK
//! SESSION consume LINK QUEUE [SELECTOR…] | SESSION browse LINK QUEUE [SELECTOR…]
//! SESSION credit LINK LIMIT [drain] | SESSION unconsume LINK
//! SESSION lease|delete|kick-message|peek|message ID | SESSION renew ID [lease=T]
//! SESSION release ID [priority=N] [delay=T|rule] | SESSION bury ID [priority=N]
//! SESSION kick LINK MAX | SESSION peek-ready|peek-delayed|peek-buried LINK
//! SESSION pause QUEUE T | SESSION queue NAME | SESSION broker | SESSION queues
//! SESSION identify CLIENT
//! SESSION cancel-sends   what of it waits for a place
//! SESSION producer LINK topic:NAME | SESSION close-producer LINK | SESSION put-to TO BODY …
//! SESSION begin|commit|rollback N; with tx=N a put or a settlement is part of it
//! SESSION settle ID accept|release|fail|return|park|undeliverable [delay=T]
//! SESSION subscribe LINK TOPIC [name=N] [client=C] [durable=yes] [shared=yes] [selector=S]
//!         [without=C] [words=yes] [ends=consumers|session [spared=T]]
//! SESSION unsubscribe|subscription NAME [client=C] [durable=yes]
//! SESSION temporary queue|topic | SESSION delete-temporary TO
//! SESSION page QUEUE [state=S] [selector=S] [max=N] [after=PLACE] | SESSION show ID
//! SESSION purge QUEUE [state=S] [selector=S] [after=PLACE]
//! SESSION move FROM [TO] [message=ID] [selector=S] [before=ID] [max=N] [after=PLACE]
//! SESSION delete-queue|policy QUEUE | SESSION subscriptions | SESSION next-message
//! SESSION set-policy QUEUE [RULE=VALUE]… [RULE]…      rules of its own; those named are forgotten
//! SESSION reset-policy QUEUE [RULE=VALUE]…            no others than these
//! SESSION policies [after=QUEUE] [max=N]
//! SESSION set KEY VALUE [after=T|at=T|keep=yes] [rule=none|some] [old=yes]
//! SESSION get KEY [take=yes] | SESSION kind KEY | SESSION count-of|del KEY… | SESSION del-all
//! SESSION rename FROM TO [new=yes] | SESSION keys
//! SESSION deadline KEY after=T|at=T [rule=none|some|later|earlier|some-earlier]
//! SESSION persist|lifetime KEY | SESSION names [after=KEY] [max=N] [kind=list|value]
//! SESSION publish TOPIC BODY … | SESSION psubscribe LINK PATTERN
//! SESSION push QUEUE head|tail BODY… [existing=yes] | SESSION pop QUEUE head|tail [max=N]
//! SESSION pop-first head|tail QUEUE… [max=N] [wait=T]   without wait: for ever
//! SESSION pass FROM head|tail TO head|tail [wait=T] | SESSION cancel-pop | SESSION length QUEUE
//! SESSION range|keep QUEUE FIRST LAST [from=tail] | SESSION replace QUEUE AT BODY [from=tail]
//! SESSION insert QUEUE PIVOT head|tail BODY [from=tail] | SESSION remove QUEUE BODY [max=N]
//!         [from=tail] | SESSION locate QUEUE BODY [origin=tail] [from=tail] [skip=N] [max=N]
//!         [scan=N]
//! SESSION batch COMMAND [/ COMMAND]… | SESSION observe KEY… | SESSION unobserve
//! wait T          time goes on; what is due on the way happens at its moment
//! late T          so does this, but nothing happens yet of what is due
//! room BYTES      what puts may use in each call
//! room-made       for the commit that waits for it; no-room: there will be none
//! refuse-waiting  nobody waits for a place any more
//! restate LSN     compaction of a frame
//! snapshot        takes one, whole
//! crash [N]       all is lost but the last snapshot and the log, or its first N frames
//! ```
//! Times are like `3s` or `250ms`. Sessions are numbers. A body like `colour:blue,size:3` has
//! properties. A place is as replies show it. The words of operators are in `operating.rs`,
//! those about keys in `keying.rs`, those about lists in `listing.rs`.

use std::collections::BTreeMap;
use std::fmt::Write;

use engine::{
    DeadLetters, DeadLettersMax, DeadView, Effects, Engine, EngineOptions, Place, QueueBounds,
    QueuePolicies, QueuePolicy, RecordView, ReleaseOrder, Standing, StoredState, WhenFull,
    describe,
};
use model::{
    Capacity, Command, ConsumerMode, DeadReason, DependsOn, Destination, Durability, Expiry,
    Format, Formats, Found, LinkId, Matching, MessageGroup, MessageId, Nanos, NewMessage, Output,
    Peek, Persistence, PropertyValue, QueueName, Reply, Secrets, SessionId, Settlement,
    StorePolicy, Subject, Subscription, SubscriptionName, SubscriptionOwner, TransactionId,
};

use super::log::{Log, Snapshot};
use super::{keying, listing, operating};

pub(crate) struct Script {
    options: EngineOptions,
    engine: Engine,
    now: Nanos,
    capacity: Capacity,
    log: Log,
    snapshot: Option<Snapshot>,
    effects: Effects,
    secrets: Secrets,
}

/// A line's words: those with a `=` by name, the others by place.
pub(crate) struct Words<'a> {
    pub(crate) placed: Vec<&'a str>,
    pub(crate) named: BTreeMap<&'a str, &'a str>,
}

impl Default for Script {
    fn default() -> Self {
        Self::new(StorePolicy::Always, QueuePolicies::default(), &Words::new(""))
    }
}

impl Script {
    fn new(policy: StorePolicy, queue_policies: QueuePolicies, words: &Words<'_>) -> Self {
        let formats = Formats { property, group, ..Formats::RAW };
        let options = EngineOptions::new(policy);
        let frame = words.named.get("frame").map(|bytes| bytes.parse().unwrap());
        let frame_bytes_max = frame.unwrap_or(options.frame_bytes_max);
        let window = words.named.get("window").map(|span| time(span));
        let ids = words.named.get("ids").map(|count| count.parse().unwrap());
        let memory = words.named.get("memory").map(|bytes| bytes.parse().unwrap());
        let most = |name| words.named.get(name).map_or(u64::MAX, |most| most.parse().unwrap());
        let dead_letters_max =
            DeadLettersMax { messages: most("dead-max"), bytes: most("dead-bytes") };
        let options = EngineOptions {
            queue_policies,
            formats,
            dead_letters_max,
            frame_bytes_max,
            dedup_window: window.unwrap_or(options.dedup_window),
            dedup_max_ids: ids.unwrap_or(options.dedup_max_ids),
            memory_limit: memory.unwrap_or(options.memory_limit),
            ..options
        };
        Self {
            engine: Engine::new(options.clone()),
            options,
            now: Nanos::ZERO,
            capacity: Capacity::UNBOUNDED,
            log: Log::default(),
            snapshot: None,
            effects: Effects::default(),
            secrets: Secrets::default(),
        }
    }

    /// The results of one line, a line each.
    pub(crate) fn run(&mut self, line: &str) -> String {
        if let Some((session, commands)) = line.split_once(" batch ") {
            let (session, command) = (self::session(session), listing::batch(commands));
            self.engine.handle(self.now, session, command, self.capacity, &mut self.effects);
            return self.outcome();
        }
        let words = Words::new(line);
        match words.placed[..] {
            ["store", policy] => *self = Self::new(store(policy), words.queue_policies(), &words),
            ["wait", span] => return self.wait(time(span)),
            ["late", span] => self.now = self.now + time(span),
            ["room", bytes] => {
                self.capacity.room_bytes = bytes.parse().unwrap();
                self.engine.handle_capacity(self.capacity);
            }
            ["room-made"] => {
                self.engine.commit_awaiting(self.now, true, self.capacity, &mut self.effects)
            }
            ["no-room"] => {
                self.engine.commit_awaiting(self.now, false, self.capacity, &mut self.effects)
            }
            ["refuse-waiting"] => self.engine.refuse_waiting(),
            ["restate", lsn] => self.restate(lsn.parse().unwrap()),
            ["snapshot"] => self.snapshot = Some(Snapshot::whole(&self.engine)),
            ["crash"] => self.crash(self.log.frames.len()),
            ["crash", frames] => self.crash(frames.parse().unwrap()),
            [session, "open"] => self.engine.open_session(self::session(session)),
            [session, "close"] => {
                let session = self::session(session);
                if let Some(begun) = words.named.get("begun") {
                    let ids = begun.split(',').filter(|id| !id.is_empty());
                    self.engine.note_begun(
                        session,
                        ids.map(|id| MessageId(id.parse().unwrap())).collect(),
                    );
                }
                self.engine.close_session(self.now, session, self.capacity, &mut self.effects);
            }
            [session, "dismiss"] => {
                let session = self::session(session);
                self.engine.dismiss_session(self.now, session, self.capacity, &mut self.effects);
            }
            [session, ref command @ ..] => {
                let mut command = words.command(command);
                if let Command::CreateTemporary { secret, .. } = &mut command {
                    *secret = self.secrets.next();
                }
                let session = self::session(session);
                self.engine.handle(self.now, session, command, self.capacity, &mut self.effects);
            }
            [] => panic!("an empty line"),
        }
        self.outcome()
    }

    fn wait(&mut self, span: Nanos) -> String {
        let end = self.now + span;
        let mut outcome = String::new();
        while let Some(at) = self.engine.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.engine.handle_timeout(self.now, self.capacity, &mut self.effects);
            for line in self.outcome().lines() {
                writeln!(outcome, "at {}: {line}", shown_time(self.now)).unwrap();
            }
        }
        self.now = end;
        outcome
    }

    fn restate(&mut self, lsn: u64) {
        let (frame, payload) = self.log.frames[lsn as usize - 1].clone();
        self.engine.restate(frame.lsn, &payload, &mut self.effects).unwrap();
    }

    fn crash(&mut self, frames: usize) {
        let is_whole = frames >= self.log.frames.len();
        if !is_whole {
            self.log = self.log.cut(frames);
        }
        self.engine = self.log.recover(self.options.clone(), self.snapshot.as_ref());
        self.capacity = Capacity::UNBOUNDED;
        if is_whole {
            self.log.relearn(&self.engine);
        } else {
            self.log.adopt(&self.engine);
        }
    }

    fn outcome(&mut self) -> String {
        self.engine.check();
        let frames = self.log.frames.len();
        self.log.absorb(&self.effects);
        self.log.check_live(&self.engine);
        let mut shown = String::new();
        for (frame, payload) in &self.log.frames[frames..] {
            let records: Vec<_> =
                describe(payload).map(|record| shown_record(&record.unwrap())).collect();
            let level = shown_level(frame.level);
            writeln!(shown, "frame {} {level}: {}", frame.lsn, records.join(", ")).unwrap();
        }
        for freed in &self.effects.freed {
            writeln!(shown, "freed {} bytes of frame {}", freed.bytes, freed.lsn).unwrap();
        }
        for Output { session, after, reply } in &self.effects.outputs {
            writeln!(shown, "{} <- {}{}", session.0, shown_reply(reply), shown_after(*after))
                .unwrap();
        }
        self.effects.clear();
        shown
    }
}

impl<'a> Words<'a> {
    pub(crate) fn new(line: &'a str) -> Self {
        let (mut placed, mut named) = (Vec::new(), BTreeMap::new());
        for word in line.split_whitespace() {
            match word.split_once('=') {
                Some((name, value)) => assert!(named.insert(name, value).is_none(), "{line}"),
                None => placed.push(word),
            }
        }
        Self { placed, named }
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        if let Some(command) = keying::command(self, words) {
            return command;
        }
        if let Some(command) = listing::command(self, words) {
            return command;
        }
        if let Some(command) = operating::command(self, words) {
            return command;
        }
        match *words {
            ["producer", link, to] => {
                Command::OpenProducer { link: self::link(link), to: destination(to) }
            }
            ["close-producer", link] => Command::CloseProducer { link: self::link(link) },
            ["put", link, body] => Command::Put {
                link: self::link(link),
                message: self.new_message(body),
                transaction: self.transaction(),
            },
            ["put-to", to, body] => Command::PutTo {
                to: destination(to),
                message: self.new_message(body),
                transaction: self.transaction(),
            },
            ["settle", id, how] => Command::Settle {
                message: message(id),
                settlement: settlement(how, self.named.get("delay").map(|span| time(span))),
                transaction: self.transaction(),
            },
            ["identify", client] => Command::Identify { client: name(client) },
            ["begin", id] => Command::Begin { transaction: transaction(id) },
            ["commit", id] => Command::Commit { transaction: transaction(id) },
            ["rollback", id] => Command::Rollback { transaction: transaction(id) },
            ["subscribe", link, topic] => Command::Subscribe {
                link: self::link(link),
                subscription: Box::new(self.subscription(topic)),
            },
            ["unsubscribe", name] => Command::Unsubscribe { name: self.subscription_name(name) },
            ["subscription", name] => {
                Command::FindSubscription { name: self.subscription_name(name) }
            }
            ["temporary", kind] => Command::CreateTemporary { topic: kind == "topic", secret: 0 },
            ["delete-temporary", to] => Command::DeleteTemporary { destination: destination(to) },
            ["watch", link, queue] => Command::Watch { link: self::link(link), queue: name(queue) },
            ["unwatch", link, queue] => {
                Command::Unwatch { link: self::link(link), queue: name(queue) }
            }
            ["receive", link] => Command::Receive {
                link: self::link(link),
                wait: self.named.get("wait").map(|span| time(span)),
                margin: self.time("margin"),
                lease: self.named.get("lease").map(|span| time(span)),
            },
            ["renew", id] => Command::Renew {
                message: message(id),
                lease: self.named.get("lease").map(|span| time(span)),
            },
            ["consume", link, queue, ref selector @ ..] => {
                open_consumer(link, queue, selector, ConsumerMode::Take)
            }
            ["browse", link, queue, ref selector @ ..] => {
                open_consumer(link, queue, selector, ConsumerMode::Browse)
            }
            ["unconsume", link] => Command::CloseConsumer { link: self::link(link) },
            ["credit", link, limit, ref drain @ ..] => Command::Credit {
                link: self::link(link),
                limit: limit.parse().unwrap(),
                bytes: u64::MAX,
                drain: drain == ["drain"],
            },
            ["cancel-sends"] => Command::CancelSends,
            ["cancel-send", ticket] => Command::CancelSend { ticket: ticket.parse().unwrap() },
            ["cancel", link] => Command::CancelReceive { link: self::link(link) },
            ["release", id] => Command::Release {
                message: message(id),
                priority: self.priority(),
                delay: (self.named.get("delay") != Some(&"rule")).then(|| self.time("delay")),
            },
            ["bury", id] => Command::Bury { message: message(id), priority: self.priority() },
            ["kick", link, max] => {
                Command::Kick { link: self::link(link), max: max.parse().unwrap() }
            }
            ["pause", queue, span] => Command::Pause { queue: name(queue), duration: time(span) },
            ["queue", queue] => Command::QueueStatistics { queue: name(queue) },
            ["broker"] => Command::BrokerStatistics,
            ["queues"] => Command::ListQueues,
            [word, which] => one_message(word, which),
            _ => panic!("{words:?}"),
        }
    }

    pub(crate) fn new_message(&self, body: &str) -> NewMessage {
        let persistence = self.persistence();
        NewMessage {
            priority: self.priority(),
            delay: self.time("delay"),
            lease: self.named.get("lease").map_or(Nanos::from_secs(60), |span| time(span)),
            expires: self.named.get("expires").map(|at| time(at)),
            send_id: self.named.get("id").map(|id| (*id).into()),
            persistence,
            group: group(Format::RAW, body.as_bytes()),
            ..NewMessage::new(self.padded(body).into_bytes().into())
        }
    }

    fn padded(&self, body: &str) -> String {
        let bytes = self.named.get("pad").map_or(0, |bytes| bytes.parse().unwrap());
        format!("{body:.<bytes$}")
    }

    pub(crate) fn persistence(&self) -> Persistence {
        match self.named.get("persistence") {
            None => Persistence::Persistent,
            Some(&"none") => Persistence::NonPersistent,
            Some(&"written") => Persistence::Exactly(Durability::Written),
            Some(&"synced") => Persistence::Exactly(Durability::Synced),
            Some(other) => panic!("{other}"),
        }
    }

    fn transaction(&self) -> Option<TransactionId> {
        self.named.get("tx").map(|id| transaction(id))
    }

    fn subscription(&self, topic: &str) -> Subscription {
        Subscription {
            name: self.named.get("name").map(|name| self.subscription_name(name)),
            selector: self.named.get("selector").map(|text| (*text).into()),
            shared: self.named.contains_key("shared"),
            without: self.named.get("without").map(|client| name(client)),
            matching: match self.named.contains_key("words") {
                true => Matching::Words,
                false => Matching::Name,
            },
            expiry: self.named.get("ends").map(|with| Expiry {
                with: match *with {
                    "session" => SubscriptionOwner::Session,
                    "consumers" => SubscriptionOwner::Consumers,
                    other => panic!("{other}"),
                },
                after: self.time("spared"),
            }),
            ..Subscription::new(name(topic))
        }
    }

    fn subscription_name(&self, word: &str) -> SubscriptionName {
        SubscriptionName {
            user: None,
            client: self.named.get("client").map(|client| name(client)),
            name: name(word),
            durable: self.named.contains_key("durable"),
        }
    }

    fn priority(&self) -> u32 {
        self.named.get("priority").map_or(1024, |priority| priority.parse().unwrap())
    }

    fn time(&self, name: &str) -> Nanos {
        self.named.get(name).map_or(Nanos::ZERO, |span| time(span))
    }

    fn queue_policies(&self) -> QueuePolicies {
        let release_order = match self.named.get("release-order") {
            None => ReleaseOrder::Front,
            Some(&"back") => ReleaseOrder::Back,
            Some(other) => panic!("{other}"),
        };
        let attempts = self.named.get("attempts").map(|attempts| attempts.parse().unwrap());
        let dead_letters = match self.named.get("dead") {
            None => DeadLetters::default(),
            Some(&"park") => DeadLetters::Park,
            Some(&"drop") => DeadLetters::Drop,
            Some(other) => panic!("{other}"),
        };
        let pop_lease = self.named.get("pop-lease").map(|span| time(span));
        let bounds = self.queue_bounds();
        let policy = QueuePolicy {
            release_order,
            dead_letters,
            pop_lease,
            bounds,
            ..QueuePolicy::default()
        };
        let default = QueuePolicy {
            max_delivery_attempts: attempts.unwrap_or(policy.max_delivery_attempts),
            ..policy
        };
        let unbounded = QueuePolicy { bounds: QueueBounds::default(), ..default };
        let named = BTreeMap::from([(QueueName::new("DLQ").unwrap(), unbounded)]);
        let mut policies = QueuePolicies { default, named };
        if let Some(queue) = self.named.get("kept") {
            policies.keep(QueueName::new(queue).unwrap());
        }
        policies
    }
}

/// The bounds of a queue.
impl Words<'_> {
    fn queue_bounds(&self) -> QueueBounds {
        let number = |name| self.named.get(name).map(|number: &&str| number.parse().unwrap());
        let when_full = match self.named.get("full") {
            None => WhenFull::Reject,
            Some(&"block") => WhenFull::Block,
            Some(&"drop-oldest") => WhenFull::DropOldest,
            Some(&"dead-letter") => WhenFull::DeadLetter,
            Some(&"disconnect") => WhenFull::Disconnect,
            Some(other) => panic!("{other}"),
        };
        QueueBounds {
            messages_max: number("max-messages"),
            bytes_max: number("max-bytes"),
            when_full,
            target_age: self.named.get("age").map(|span| time(span)),
        }
    }
}

pub(crate) fn body(word: &str) -> std::sync::Arc<[u8]> {
    word.as_bytes().into()
}

fn one_message(word: &str, which: &str) -> Command {
    match word {
        "lease" => Command::Lease { message: message(which) },
        "delete" => Command::Delete { message: message(which) },
        "kick-message" => Command::KickMessage { message: message(which) },
        "message" => Command::MessageStatistics { message: message(which) },
        "peek" => Command::Peek(Peek::Message(message(which))),
        "peek-ready" => Command::Peek(Peek::Ready(link(which))),
        "peek-delayed" => Command::Peek(Peek::Delayed(link(which))),
        "peek-buried" => Command::Peek(Peek::Buried(link(which))),
        other => panic!("{other}"),
    }
}

fn open_consumer(link: &str, queue: &str, selector: &[&str], mode: ConsumerMode) -> Command {
    let selector = (!selector.is_empty()).then(|| selector.join(" ").into());
    Command::OpenConsumer { link: self::link(link), queue: name(queue), selector, mode }
}

fn session(word: &str) -> SessionId {
    SessionId(word.parse().unwrap_or_else(|_| panic!("{word} is not a session")))
}

pub(crate) fn link(word: &str) -> LinkId {
    LinkId(word.parse().unwrap())
}

pub(crate) fn message(word: &str) -> MessageId {
    MessageId(word.parse().unwrap())
}

pub(crate) fn name(word: &str) -> QueueName {
    QueueName::new(word).unwrap()
}

fn transaction(word: &str) -> TransactionId {
    TransactionId(word.parse().unwrap())
}

pub(crate) fn destination(word: &str) -> Destination {
    match word.strip_prefix("topic:") {
        Some(topic) => Destination::Topic(name(topic)),
        None => Destination::Queue(name(word)),
    }
}

fn settlement(word: &str, delay: Option<Nanos>) -> Settlement {
    match (word, delay) {
        ("release" | "fail", Some(delay)) => Settlement::GiveBack { failed: word == "fail", delay },
        _ => settlement_at_once(word),
    }
}

fn settlement_at_once(word: &str) -> Settlement {
    match word {
        "accept" => Settlement::Accept,
        "return" => Settlement::Return,
        "release" => Settlement::Release,
        "fail" => Settlement::Fail,
        "park" => Settlement::Park(DeadReason::Rejected),
        "undeliverable" => Settlement::Park(DeadReason::Undeliverable),
        other => panic!("{other}"),
    }
}

/// The group of a body like `group:a,n:1`, which ends with one like `group:a,end:1`.
pub(crate) fn group(_: Format, body: &[u8]) -> Option<MessageGroup> {
    let text = std::str::from_utf8(body).unwrap_or_default();
    let mut pairs = text.split(',').filter_map(|pair| pair.split_once(':'));
    let (_, name) = pairs.find(|(key, _)| *key == "group")?;
    let group = MessageGroup::named(name);
    Some(if text.contains("end:1") { group.ending() } else { group })
}

/// Properties of a body like `colour:blue,size:3`.
fn property<'m>(seen: &Subject<'m>, _: Found<'_, 'm>, name: &str) -> PropertyValue<'m> {
    if name == "failed" {
        return PropertyValue::Integer(seen.failed.into());
    }
    let text = std::str::from_utf8(seen.body).unwrap_or_default();
    let pairs = text.split(',').filter_map(|pair| pair.split_once(':'));
    let value = pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).next();
    match value.map(|value| (value, value.parse())) {
        Some((_, Ok(number))) => PropertyValue::Integer(number),
        Some((text, Err(_))) => PropertyValue::String(text),
        None => PropertyValue::Null,
    }
}

fn store(word: &str) -> StorePolicy {
    match word {
        "always" => StorePolicy::Always,
        "never" => StorePolicy::Never,
        "memory" => StorePolicy::Memory,
        period => StorePolicy::Periodic(time(period)),
    }
}

pub(crate) fn time(word: &str) -> Nanos {
    match word.strip_suffix("ms") {
        Some(millis) => Nanos::from_millis(millis.parse().unwrap()),
        None => Nanos::from_secs(word.strip_suffix('s').unwrap().parse().unwrap()),
    }
}

pub(crate) fn shown_time(moment: Nanos) -> String {
    match moment.0 {
        nanos if nanos % 1_000_000_000 == 0 => format!("{}s", nanos / 1_000_000_000),
        nanos => format!("{}ms", nanos / 1_000_000),
    }
}

fn shown_level(level: Durability) -> &'static str {
    match level {
        Durability::None => "none",
        Durability::Written => "written",
        Durability::Synced => "synced",
    }
}

fn shown_after(after: DependsOn) -> String {
    match after.level {
        Durability::None => String::new(),
        level => format!(", once {} is {}", after.lsn, shown_level(level)),
    }
}

fn shown_record(record: &RecordView<'_>) -> String {
    match record {
        RecordView::Message { envelope, .. } => {
            let standing = shown_standing(&envelope.standing);
            format!("message {} of {} {standing}", envelope.message, shown_place(envelope.place))
        }
        RecordView::Changed { message, standing, moved } => {
            let moved = moved.map_or(String::new(), |to| format!(" in {}", shown_place(to)));
            format!("changed {message}{moved} {}", shown_standing(standing))
        }
        RecordView::Deleted { message } => format!("deleted {message}"),
        RecordView::Shared { copies, .. } => {
            let copies = copies
                .iter()
                .map(|copy| format!("{} of {}", copy.message, shown_place(copy.place)));
            format!("shared {}", copies.collect::<Vec<_>>().join(" and "))
        }
        RecordView::Subscribed(subscription) => {
            format!("subscribed {} to {}", subscription.number, subscription.topic)
        }
        RecordView::Unsubscribed { number } => format!("unsubscribed {number}"),
        RecordView::SendId(sent) => {
            let topic = if sent.to_topic { "topic:" } else { "" };
            format!("id {} to {topic}{} of {} x{}", sent.id, sent.to, sent.message, sent.copies)
        }
        RecordView::OwnPolicy(policy) => {
            format!("rules of {}:{}", policy.name, operating::shown_rules(&policy.own))
        }
        RecordView::Chained { first, more: true } => format!("chained from {first}, more"),
        RecordView::Chained { first, more: false } => format!("chained from {first}"),
        other @ (RecordView::ValueSet(_)
        | RecordView::ValueDeleted { .. }
        | RecordView::KeyDeadline(_)) => shown_key(other),
        other => panic!("{other} is not of a frame"),
    }
}

/// Without the names of the fields.
fn shown_key(record: &RecordView<'_>) -> String {
    let moment = |word: &str, at: Option<Nanos>| {
        at.map_or(String::new(), |at| format!(" {word} {}", shown_time(at)))
    };
    match record {
        RecordView::ValueSet(value) => {
            let bytes = value.bytes.escape_ascii();
            format!("value {} {bytes}{}", value.name, moment("until", value.at))
        }
        RecordView::ValueDeleted { name } => format!("value {name} deleted"),
        RecordView::KeyDeadline(deadline) => {
            let kind = if deadline.of_value { "value" } else { "list" };
            let at = moment("until", deadline.at);
            let at = if at.is_empty() { " stays".to_owned() } else { at };
            let over = deadline.over.map_or(String::new(), |over| {
                format!(" over {} below {}", shown_time(over.at), over.below)
            });
            format!("{kind} {}{at}{over}", deadline.name)
        }
        other => panic!("{other} is not of a key"),
    }
}

fn shown_place(place: Place<'_>) -> String {
    match place {
        Place::Queue(queue) => queue.to_owned(),
        Place::Subscription(number) => format!("subscription {number}"),
    }
}

fn shown_standing(standing: &Standing<'_>) -> String {
    let state = match standing.state {
        StoredState::Ready => "ready".to_owned(),
        StoredState::Delayed { until } => format!("delayed until {}", shown_time(until)),
        StoredState::Buried { order } => format!("buried as {order}"),
    };
    let mut shown = format!("{state} priority {} order {}", standing.priority, standing.order);
    if standing.counters.failed > 0 {
        write!(shown, " failed {}", standing.counters.failed).unwrap();
    }
    if let Some(at) = standing.expires {
        write!(shown, " expires {}", shown_time(at)).unwrap();
    }
    if let Some(DeadView { reason, from, subscription, at, attempts }) = standing.dead {
        let (word, at) = (reason.word(), shown_time(at));
        let of = subscription.map_or(String::new(), |number| format!(" by subscription {number}"));
        write!(shown, " dead: {word} from {from}{of} at {at} attempts {attempts}").unwrap();
    }
    shown
}

pub(crate) fn shown_reply(reply: &Reply) -> String {
    match reply {
        Reply::Done => "done".to_owned(),
        Reply::Stored { message } => format!("stored {message}"),
        Reply::Refused(refusal) => format!("refused: {refusal:?}"),
        Reply::Delivered(delivery) => {
            let link = delivery.link.map_or(String::new(), |link| format!(" on {}", link.0));
            let body = delivery.body.escape_ascii();
            let failed = match delivery.failed {
                0 => String::new(),
                failed => format!(" failed {failed}"),
            };
            let dead = delivery.dead.as_ref().map_or(String::new(), |dead| {
                format!(" dead: {} from {}", dead.reason.word(), dead.from)
            });
            let topic = delivery.topic.as_ref().map(|topic| format!(" published to {topic}"));
            let topic = topic.unwrap_or_default();
            let (message, count) = (delivery.message, delivery.count);
            format!("delivered {message} {body} x{count}{link}{topic}{failed}{dead}")
        }
        Reply::Drained { link, delivered } => format!("drained {} after {delivered}", link.0),
        Reply::ConsumerClosed { link } => format!("consumer {} closed", link.0),
        Reply::TimedOut { .. } => "timed out".to_owned(),
        Reply::Created(Destination::Queue(name)) => format!("created {name}"),
        Reply::Created(Destination::Topic(name)) => format!("created topic:{name}"),
        Reply::Subscription(subscription) => {
            let selector = subscription.selector.as_deref().unwrap_or("all");
            format!("subscription to {} of {selector}", subscription.topic)
        }
        Reply::LeaseEnding => "lease ending".to_owned(),
        Reply::NotFound => "not found".to_owned(),
        Reply::Found { message, element } => {
            format!("found {message} {}", element.payload().escape_ascii())
        }
        Reply::Count(count) => format!("count {count}"),
        Reply::CountSoFar(count) => format!("count {count} so far"),
        Reply::MessageStatistics(statistics) => shown_fields(&format!("{statistics:?}")),
        Reply::QueueStatistics(statistics) => shown_fields(&format!("{statistics:?}")),
        Reply::BrokerStatistics(statistics) => shown_fields(&format!("{statistics:?}")),
        Reply::Queues(names) => {
            let names = names.iter().map(|name| name.as_str());
            ["queues"].into_iter().chain(names).collect::<Vec<_>>().join(" ")
        }
        other => keying::shown_reply(other)
            .or_else(|| listing::shown_reply(other))
            .unwrap_or_else(|| operating::shown_reply(other)),
    }
}

/// Fields that are not zero.
pub(crate) fn shown_fields(debug: &str) -> String {
    let (_, fields) = debug.trim_end_matches(" }").split_once(" { ").unwrap();
    let fields = fields.split(", ").filter(|field| !field.ends_with(": 0"));
    let fields = fields.filter(|field| !field.ends_with("Nanos(0)"));
    let fields = fields.map(|field| field.replace("000000000)", "s)").replace(": ", " "));
    fields.collect::<Vec<_>>().join(", ")
}
