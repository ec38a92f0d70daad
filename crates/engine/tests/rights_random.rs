//! A user reaches nothing that its rights deny. Two engines get the same commands of an operator;
//! one gets those of a user as well, all that the model can name, by random rights. Afterwards the
//! queues and values that the user may not change are the same in both. And no reply tells the user
//! of a name, or shows it a byte, that it may neither receive from nor look at.
//!
//! The test knows no rule of a command: it sees effects and replies alone.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Bound;
use std::sync::Arc;

use engine::{Effects, Engine, EngineOptions};
use model::{
    AdminCommand, BitAction, BitField, BitOperation, BitOverflow, Capacity, ClaimedAs, ClientName,
    ClockLead, CollectionCommand, CollectionKind, Combination, CombinationTarget, Command,
    ConsumerMode, Deadline, DeadlineRule, Destination, End, Expected, GroupName, GroupStart,
    KeyCommand, LinkId, ListCommand, Matching, MessageId, Nanos, NewMessage, NewStreamId,
    OneOrMany, OwnPolicy, Peek, Persistence, PolicyChange, Principal, QueueName, QueueRule,
    ReadPlace, Reply, Right, Rights, Rule, Score, ScoreRule, ScoreSum, ScoredPart, ScoredRange,
    SessionId, SetOperation, SetRule, Settlement, StorePolicy, StreamClaim, StreamCommand,
    StreamId, StreamKept, StreamRange, StreamRead, StreamReader, StreamTrim, Subscription,
    SubscriptionName, TableAction, TableStep, TransactionId, UserRights, ValueDeadline, ValueEdit,
};
use testkit::{Rng, seeds};

const SEEDS: u64 = 200;
const STEPS: usize = 400;
const OPERATOR: SessionId = SessionId(1);
const USER: SessionId = SessionId(2);
/// Links of the operator that no random command uses.
const KEPT_LINKS: u32 = 100;
const NAMES: [&str; 6] = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot"];

/// Words that the names are recognised by in the text of a reply, as text and as bytes.
fn marks(name: &str) -> [String; 2] {
    let bytes: Vec<_> = name.bytes().map(|byte| byte.to_string()).collect();
    [name.into(), bytes.join(", ")]
}

/// One engine, and what its operator holds.
struct World {
    engine: Engine,
    effects: Effects,
    held: Vec<MessageId>,
    now: Nanos,
}

impl World {
    fn new(rights: &Arc<Rights>) -> Self {
        let mut engine = Engine::new(EngineOptions::new(StorePolicy::Always));
        engine.open_session(OPERATOR);
        engine.open_session(USER);
        engine.act_for(OPERATOR, Principal::almighty("operator"));
        engine.act_for(USER, Principal::User(Arc::clone(rights)));
        let all = [Arc::clone(rights), Arc::new(Rights::everything("operator"))];
        let users: UserRights = all.map(|rights| (Arc::clone(rights.user()), rights)).into();
        engine.set_users(Some(Arc::new(users)));
        let (held, now) = (Vec::new(), Nanos::SECOND);
        let mut world = Self { engine, effects: Effects::default(), held, now };
        // A queue goes when it is empty and no link points to it, with its pause. A user that may
        // look at it may open a producer, and so keep it: the operator keeps all.
        for (text, number) in NAMES.into_iter().zip(KEPT_LINKS..) {
            let to = Destination::Queue(name(text));
            world.give(OPERATOR, Command::OpenProducer { link: LinkId(number), to });
        }
        world
    }

    /// The replies to the user that a command brings.
    fn give(&mut self, session: SessionId, command: Command) -> Vec<Reply> {
        let capacity = Capacity::UNBOUNDED;
        self.engine.handle(self.now, session, command, capacity, &mut self.effects);
        self.take_replies()
    }

    fn pass(&mut self, time: Nanos) -> Vec<Reply> {
        self.now = self.now + time;
        while self.engine.poll_timeout().is_some_and(|at| at <= self.now) {
            self.engine.handle_timeout(self.now, Capacity::UNBOUNDED, &mut self.effects);
        }
        self.take_replies()
    }

    fn take_replies(&mut self) -> Vec<Reply> {
        let mut of_user = Vec::new();
        for output in self.effects.outputs.drain(..) {
            match output.reply {
                reply if output.session == USER => of_user.push(reply),
                Reply::Delivered(delivery) => self.held.push(delivery.message),
                _ => {}
            }
        }
        self.effects.clear();
        self.engine.check();
        of_user
    }

    /// The state of a name as an operator sees it, without numbers that others' messages move.
    fn state(&mut self, name: &str) -> String {
        let queue = self::name(name);
        let mut told = String::new();
        let browse = AdminCommand::Browse {
            queue: queue.clone(),
            state: None,
            selector: None,
            after: None,
            max: 1_000,
        };
        let policy = AdminCommand::Policy { queue: queue.clone() };
        let show = |kind| CollectionCommand::ShowFields { name: queue.clone(), kind };
        let kinds = [CollectionKind::Hash, CollectionKind::Set, CollectionKind::SortedSet];
        let mut commands: Vec<_> = kinds.map(|kind| Command::from(show(kind))).into();
        let describe = StreamCommand::Describe { name: queue.clone(), whole: Some(0) };
        commands.push(describe.into());
        commands.extend([
            Command::Admin(Box::new(browse)),
            Command::Key(KeyCommand::Value { name: queue.clone(), take: false }),
            Command::Key(KeyCommand::Lifetime { name: queue }),
            Command::Admin(Box::new(policy)),
        ]);
        for command in commands {
            let capacity = Capacity::UNBOUNDED;
            self.engine.handle(self.now, OPERATOR, command, capacity, &mut self.effects);
            let reply = self.effects.outputs.pop().unwrap().reply;
            self.effects.clear();
            match reply {
                Reply::Page(page) => {
                    for it in page.messages {
                        let body = it.delivery.payload();
                        let (state, priority) = (it.state, it.delivery.priority);
                        write!(told, "{state:?} {priority} {body:?};").unwrap();
                    }
                }
                other => write!(told, "{other:?};").unwrap(),
            }
        }
        told
    }
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

fn random_rights(rng: &mut Rng) -> Rights {
    let words = Right::ALL.map(Right::word);
    let names_only = words.iter().filter(|word| **word != "operate").collect::<Vec<_>>();
    let mut rules = |count: u64| {
        let rule = |_| {
            let first = rng.pick(&NAMES);
            let (half, _) = first.split_at(2);
            let pattern = rng.pick(&[first.to_owned(), format!("{half}*"), format!("*{half}*")]);
            Rule::parse(&format!("{} {pattern}", rng.pick(&names_only))).unwrap()
        };
        (0..count).map(rule).collect::<Vec<_>>()
    };
    let (allow, deny) = (rules(6), rules(2));
    Rights::new("eve".into(), &allow, &deny)
}

fn message(rng: &mut Rng, name: &str) -> NewMessage {
    let send_id = rng.one_in(4).then(|| rng.pick(&["one", "two"]).into());
    let delay = if rng.one_in(5) { Nanos::SECOND } else { Nanos::ZERO };
    NewMessage { send_id, delay, ..NewMessage::new(name.as_bytes().into()) }
}

/// A command of the operator, which acts on one name, so that no name's content reaches another.
fn of_operator(rng: &mut Rng) -> Command {
    let text = rng.pick(&NAMES);
    let (queue, link) =
        (name(text), LinkId(NAMES.iter().position(|it| *it == text).unwrap() as u32));
    let key = |command| Command::Key(command);
    match rng.below(18) {
        0..4 => {
            let to = Destination::Queue(queue);
            Command::PutTo { to, message: message(rng, text), transaction: None }
        }
        4 => Command::Publish { topic: queue, message: message(rng, text) },
        5 => Command::Watch { link, queue },
        6 => Command::Receive {
            link,
            wait: Some(Nanos::ZERO),
            margin: Nanos::ZERO,
            lease: Some(Nanos::from_secs(1_000)),
        },
        7 => Command::List(ListCommand::Push {
            queue,
            end: End::Tail,
            elements: OneOrMany::One(text.as_bytes().into()),
            only_existing: false,
            persistence: Persistence::Persistent,
        }),
        13..17 if rng.one_in(4) => entry(queue, text).into(),
        13..17 => filled(rng, queue, text).into(),
        8 => key(KeyCommand::SetValue {
            name: queue,
            value: text.as_bytes().into(),
            deadline: ValueDeadline::Never,
            rule: SetRule::Always,
            want_old: false,
        }),
        9 => key(KeyCommand::Delete { names: vec![queue] }),
        10 => Command::Pause { queue, duration: Nanos::from_secs(2) },
        11 => Command::OpenProducer { link, to: Destination::Queue(queue) },
        12 => Command::Kick { link, max: 3 },
        _ => Command::Admin(Box::new(AdminCommand::Purge {
            queue,
            state: None,
            selector: None,
            after: None,
        })),
    }
}

/// An entry of a stream with its own name in it.
fn entry(name: QueueName, text: &str) -> StreamCommand {
    let fields = vec![(b"f"[..].into(), text.as_bytes().into())];
    let (id, lead) = (NewStreamId::Next, ClockLead::default());
    StreamCommand::Append { name, id, fields, trim: None, only_existing: false, lead }
}

fn stream(rng: &mut Rng, name: QueueName, other: QueueName, text: Arc<[u8]>) -> StreamCommand {
    let (group, consumer) = (Arc::clone(&text), text);
    let of = GroupName { stream: name.clone(), group: Arc::clone(&group) };
    let ids = vec![StreamId::new(rng.below(400_000), 0)];
    let trim = StreamTrim { keep: StreamKept::Last(rng.below(2)), max: None };
    let start = GroupStart { last: rng.coin().then_some(StreamId::ZERO), read: None };
    let range = StreamRange { first: StreamId::ZERO, last: StreamId::MAX, max: None };
    let (only_ids, min_idle, from) = (rng.coin(), Nanos::ZERO, StreamId::ZERO);
    let claim = StreamClaim { of: of.clone(), consumer: consumer.clone(), min_idle, only_ids };
    match rng.below(20) {
        0 => StreamCommand::Append {
            name,
            id: NewStreamId::Next,
            fields: vec![(Arc::clone(&group), group)],
            trim: rng.coin().then_some(trim),
            only_existing: rng.coin(),
            lead: ClockLead::default(),
        },
        1 => StreamCommand::Trim { name, trim },
        2 => StreamCommand::Remove { name, ids },
        3 => StreamCommand::Length { name },
        4 => StreamCommand::Range { name, range, reverse: rng.coin() },
        5..8 => {
            let reader = StreamReader { group, consumer, acknowledges: rng.coin() };
            let place = rng.pick(&[ReadPlace::New, ReadPlace::Behind(StreamId::ZERO)]);
            StreamCommand::Read(StreamRead {
                reader: rng.coin().then_some(reader),
                places: vec![(name, place), (other, ReadPlace::New)],
                max: None,
                wait: rng.pick(&[None, Some(Nanos::ZERO), Some(Nanos::SECOND)]),
            })
        }
        8 => {
            let (last, added, removed) = (StreamId::new(500_000, 0), None, None);
            StreamCommand::SetLast { name, last, added, removed }
        }
        9 | 10 => StreamCommand::CreateGroup { of, start, makes_stream: rng.coin() },
        11 => StreamCommand::SetGroup { of, start },
        12 if rng.coin() => StreamCommand::RemoveGroup { of },
        12 => StreamCommand::CreateConsumer { of, consumer },
        13 => StreamCommand::RemoveConsumer { of, consumer },
        14 => StreamCommand::Acknowledge { of, ids },
        15 => StreamCommand::CountPending { of },
        16 => StreamCommand::ShowPending { of, range, consumer: None, min_idle },
        17 if rng.coin() => StreamCommand::ClaimNext { claim, from, max: 2 },
        17 => StreamCommand::Claim { claim, ids, claimed: ClaimedAs::default() },
        18 => StreamCommand::DescribeConsumers { of },
        _ if rng.coin() => StreamCommand::DescribeGroups { name },
        _ => StreamCommand::Describe { name, whole: Some(0) },
    }
}

/// A collection with its own name in it.
fn filled(rng: &mut Rng, name: QueueName, text: &str) -> CollectionCommand {
    let field: Arc<[u8]> = text.as_bytes().into();
    match rng.below(3) {
        0 => {
            let fields = vec![(Arc::clone(&field), field)];
            CollectionCommand::SetFields { name, fields, only_new: false }
        }
        1 => CollectionCommand::AddMembers { name, members: OneOrMany::One(field) },
        _ => {
            let rule = ScoreRule::default();
            CollectionCommand::SetScores { name, members: vec![(Score::ONE, field)], rule }
        }
    }
}

fn collection(
    rng: &mut Rng,
    name: QueueName,
    other: QueueName,
    field: Arc<[u8]>,
) -> CollectionCommand {
    let kinds = [CollectionKind::Hash, CollectionKind::Set, CollectionKind::SortedSet];
    let (kind, fields) = (rng.pick(&kinds), OneOrMany::One(Arc::clone(&field)));
    let range = ScoredRange::Ranks { first: 0, last: -1 };
    let part = ScoredPart { range: range.clone(), reverse: false, skip: 0, max: None };
    match rng.below(18) {
        0 => {
            let fields = vec![(Arc::clone(&field), field)];
            CollectionCommand::SetFields { name, fields, only_new: rng.coin() }
        }
        1 => CollectionCommand::EditField { name, field, edit: ValueEdit::Add(1) },
        2 => CollectionCommand::AddMembers { name, members: fields },
        3 => {
            let rule = ScoreRule { adds: rng.coin(), ..ScoreRule::default() };
            CollectionCommand::SetScores { name, members: vec![(Score::ONE, field)], rule }
        }
        4 => CollectionCommand::RemoveFields { name, kind, fields },
        5 => CollectionCommand::FindFields { name, kind, fields },
        6 => CollectionCommand::CountFields { name, kind },
        7 => CollectionCommand::ShowFields { name, kind },
        8 => match rng.below(4) {
            0 => CollectionCommand::TakePicture { name, kind },
            // As another client of the same moment may have it.
            1 => CollectionCommand::ShowPicture {
                picture: Nanos::SECOND.0 + rng.below(3),
                name,
                from: Bound::Unbounded,
                max: 9,
            },
            2 => CollectionCommand::EndPicture { picture: Nanos::SECOND.0 + rng.below(3), name },
            _ => CollectionCommand::ScanFields { name, kind, from: Bound::Unbounded, max: 9 },
        },
        9 => {
            let (distinct, take, seed) = (true, rng.coin(), rng.draw());
            CollectionCommand::PickFields { name, kind, max: 1, distinct, take, seed }
        }
        10 => CollectionCommand::MoveMember { from: name, to: other, member: field },
        11 | 12 => {
            let target = match rng.below(3) {
                0 => CombinationTarget::Shown,
                1 => CombinationTarget::Counted { max: 0 },
                _ => CombinationTarget::Stored(name.clone()),
            };
            let (how, sum) = (SetOperation::Union, ScoreSum::Sum);
            let names = vec![(name, Score::ONE), (other, Score::ONE)];
            let kind = rng.pick(&[CollectionKind::Set, CollectionKind::SortedSet]);
            CollectionCommand::Combine(Combination { how, kind, names, sum, target })
        }
        13 => CollectionCommand::ShowRange { name, part },
        14 => CollectionCommand::StoreRange { from: name, to: other, part },
        15 => CollectionCommand::CountRange { name, range },
        16 if rng.coin() => CollectionCommand::RemoveRange { name, range },
        16 => CollectionCommand::Rank { name, member: field, reverse: rng.coin() },
        _ => {
            let (highest, max, wait) = (rng.coin(), 1, Some(Nanos::ZERO));
            CollectionCommand::PopScored { names: vec![name, other], highest, max, wait }
        }
    }
}

/// Any change of a value by what it was.
fn edit(rng: &mut Rng, bytes: Arc<[u8]>) -> ValueEdit {
    match rng.below(5) {
        0 => ValueEdit::Add(1),
        1 => ValueEdit::AddDecimal(Arc::from(&b"0.5"[..])),
        2 => ValueEdit::Append(bytes),
        3 => ValueEdit::Overwrite { offset: rng.below(9), bytes },
        _ => {
            let field = BitField { is_signed: rng.coin(), bits: 5, offset: rng.below(99) };
            let action = rng.pick(&[BitAction::Get, BitAction::Set(1), BitAction::Add(1)]);
            let overflow = BitOverflow::Wrap;
            ValueEdit::Bits(vec![BitOperation { field, action, overflow }])
        }
    }
}

/// Any command of the model, on any name, link, message and subscription.
fn of_user(rng: &mut Rng, last: MessageId, is_part: bool) -> Command {
    let text = rng.pick(&NAMES);
    let (queue, other) = (name(text), name(rng.pick(&NAMES)));
    let link = LinkId(rng.below(4) as u32);
    let message = MessageId(1 + rng.below(last.0 + 2));
    let transaction = rng.one_in(4).then(|| TransactionId(rng.below(2)));
    let end = rng.pick(&[End::Head, End::Tail]);
    let to = if rng.coin() {
        Destination::Queue(queue.clone())
    } else {
        Destination::Topic(queue.clone())
    };
    let subscription_name = SubscriptionName {
        user: rng.pick(&[None, Some("operator".into()), Some("eve".into())]),
        client: None,
        name: name(rng.pick(&["s", "t"])),
        durable: true,
    };
    let element = Arc::<[u8]>::from(&b"eve"[..]);
    let names = vec![queue.clone(), other.clone()];
    let (priority, persistence) = (rng.below(3) as u32, Persistence::Persistent);
    let wait = rng.pick(&[None, Some(Nanos::ZERO), Some(Nanos::SECOND)]);
    let kind = if is_part { 42 + rng.below(27) } else { rng.below(75) };
    // Commands by a link need one that was opened.
    let kind = match rng.below(8) {
        0 if !is_part => rng.pick(&[1, 1, 3, 33, 36]),
        _ => kind,
    };
    match kind {
        0 => Command::Identify { client: ClientName::new("c").unwrap() },
        1 => Command::OpenProducer { link, to },
        2 => Command::CloseProducer { link },
        3 | 4 => {
            let message = NewMessage { send_id: Some("one".into()), ..NewMessage::new(element) };
            Command::Put { link, message, transaction }
        }
        5 => Command::CreateTemporary { topic: rng.coin(), secret: rng.draw().into() },
        6 => Command::DeleteTemporary { destination: to },
        7 => {
            let mode = rng.pick(&[ConsumerMode::Take, ConsumerMode::Browse]);
            Command::OpenConsumer { link, queue, selector: None, mode }
        }
        8 | 9 => {
            let matching = rng.pick(&[Matching::Name, Matching::Words]);
            let topic = if matching == Matching::Words { name("*") } else { queue };
            let name = rng.coin().then_some(subscription_name);
            let asked = Subscription { name, matching, ..Subscription::new(topic) };
            Command::Subscribe { link, subscription: Box::new(asked) }
        }
        10 => Command::Subscribe { link, subscription: Subscription::of_glob(name("*")).into() },
        11 => Command::CloseConsumer { link },
        12 | 13 => Command::Credit { link, limit: 1_000, bytes: 1 << 20, drain: rng.one_in(5) },
        14 => Command::Unsubscribe { name: subscription_name },
        15 => Command::FindSubscription { name: subscription_name },
        16 => {
            let settlement = rng.pick(&[Settlement::Accept, Settlement::Fail, Settlement::Return]);
            Command::Settle { message, settlement, transaction }
        }
        17 => Command::Begin { transaction: TransactionId(rng.below(2)) },
        18 => Command::Commit { transaction: TransactionId(rng.below(2)) },
        19 if rng.coin() => {
            let action = rng.pick(&[
                TableAction::Expect(Expected::Present),
                TableAction::Put((*b"1").into()),
                TableAction::Add(1),
                TableAction::Delete,
            ]);
            let step = Box::new(TableStep { table: queue, key: (*b"f").into(), action });
            Command::Table { step, transaction: TransactionId(rng.below(2)) }
        }
        19 => Command::Rollback { transaction: TransactionId(rng.below(2)) },
        20 | 21 => Command::Watch { link, queue },
        22 => Command::Unwatch { link, queue },
        23 | 24 => Command::Receive { link, wait, margin: Nanos::ZERO, lease: None },
        25 => Command::CancelReceive { link },
        26 => Command::CancelSends,
        27 => Command::CancelSend { ticket: rng.below(10) },
        28 => Command::Lease { message },
        29 => Command::Delete { message },
        30 => Command::Release { message, priority, delay: None },
        31 => Command::Bury { message, priority },
        32 => Command::Renew { message, lease: None },
        33 => Command::Kick { link, max: 5 },
        34 => Command::KickMessage { message },
        35 => Command::Pause { queue, duration: Nanos::SECOND },
        36 => Command::Peek(rng.pick(&[
            Peek::Message(message),
            Peek::Ready(link),
            Peek::Delayed(link),
            Peek::Buried(link),
        ])),
        37 => Command::MessageStatistics { message },
        38 => Command::QueueStatistics { queue },
        39 => Command::BrokerStatistics,
        40 => Command::ListQueues,
        41 => Command::Observe { names },
        42..45 => {
            let message = NewMessage::new(element);
            Command::PutTo { to, message, transaction: transaction.filter(|_| !is_part) }
        }
        45 => Command::Publish { topic: queue, message: NewMessage::new(element) },
        46..58 => Command::List(match kind {
            46 | 47 => {
                let elements = OneOrMany::One(element);
                ListCommand::Push { queue, end, elements, only_existing: rng.coin(), persistence }
            }
            48 => ListCommand::Pop { queue, end, max: 2 },
            49 => ListCommand::PopFirst { queues: names, end, max: 2, wait },
            50 => {
                let (from, to) = (queue, other);
                ListCommand::Move { from, from_end: end, to, to_end: end, wait }
            }
            51 => ListCommand::Length { queue },
            52 => ListCommand::Range { queue, origin: end, first: 0, last: -1 },
            53 => ListCommand::Replace { queue, origin: end, at: 0, element, persistence },
            54 => {
                let pivot = text.as_bytes().into();
                ListCommand::Insert {
                    queue,
                    origin: end,
                    pivot,
                    towards: end,
                    element,
                    persistence,
                }
            }
            55 => {
                let element = text.as_bytes().into();
                ListCommand::Remove { queue, origin: end, element, max: 2 }
            }
            56 => ListCommand::Keep { queue, origin: end, first: 0, last: 0 },
            _ => ListCommand::Locate {
                queue,
                origin: end,
                from: end,
                element: text.as_bytes().into(),
                skip: 0,
                max: 5,
                scan_max: None,
            },
        }),
        58..69 => Command::Key(match kind {
            58..67 if rng.below(4) > 0 => match rng.coin() {
                true => KeyCommand::Collection(Box::new(collection(rng, queue, other, element))),
                false => KeyCommand::Stream(Box::new(stream(rng, queue, other, element))),
            },
            58 => KeyCommand::Kind { name: queue },
            59 => KeyCommand::CountOf { names },
            60 => KeyCommand::Delete { names },
            61 => {
                let rule = DeadlineRule::Always;
                KeyCommand::SetDeadline { name: queue, deadline: Deadline::After(Nanos(1)), rule }
            }
            62 => KeyCommand::ClearDeadline { name: queue },
            63 if rng.coin() => {
                let deadline = rng.coin().then_some(Deadline::After(Nanos::SECOND));
                KeyCommand::ValueUntil { name: queue, deadline }
            }
            63 => KeyCommand::Lifetime { name: queue },
            64 => KeyCommand::Names { database: None, after: None, max: 100, kind: None },
            65 if rng.coin() => KeyCommand::EditValue { name: queue, edit: edit(rng, element) },
            65 if rng.coin() => {
                let values = names.into_iter().map(|name| (name, Arc::clone(&element))).collect();
                KeyCommand::SetValues { values, only_new: rng.coin() }
            }
            65 => {
                let (deadline, rule) = (ValueDeadline::Never, SetRule::Always);
                let (name, want_old) = (queue, rng.coin());
                KeyCommand::SetValue { name, value: element, deadline, rule, want_old }
            }
            66 => KeyCommand::Value { name: queue, take: rng.coin() },
            67 if rng.coin() => KeyCommand::ValuesAtOnce { names },
            67 => KeyCommand::ValueEach { names },
            _ => KeyCommand::Rename { from: queue, to: other, only_new: rng.coin() },
        }),
        69 => Command::Unobserve,
        70 => {
            let commands = (0..3).map(|_| of_user(rng, last, true)).collect();
            Command::Batch { commands }
        }
        71 => Command::Key(KeyCommand::DeleteAll { database: None }),
        _ => Command::Admin(Box::new(match rng.below(10) {
            0 => AdminCommand::Browse { queue, state: None, selector: None, after: None, max: 100 },
            1 => AdminCommand::Show { message },
            2 => AdminCommand::Purge { queue, state: None, selector: None, after: None },
            3 | 4 => AdminCommand::MoveMessages {
                from: queue,
                to: rng.coin().then_some(other),
                message: rng.coin().then_some(message),
                selector: None,
                before: MessageId(u64::MAX),
                max: 10,
                after: None,
            },
            5 => AdminCommand::Delete { queue },
            6 => AdminCommand::Policy { queue },
            7 => {
                let mut set = OwnPolicy::default();
                set.set(QueueRule::MessagesMax(Some(5)));
                AdminCommand::ChangePolicy { queue, change: Box::new(PolicyChange::to(set)) }
            }
            8 => AdminCommand::ListPolicies { after: None, max: 100 },
            _ => rng.pick(&[
                AdminCommand::ListQueues { after: None, max: 100 },
                AdminCommand::ListSubscriptions,
                AdminCommand::NextMessage,
            ]),
        })),
    }
}

/// The replies tell the user of no name that it may neither receive from nor look at.
fn check_replies(replies: &[Reply], secret: &BTreeSet<&str>, asked: &str) {
    for reply in replies {
        // It repeats the name that was asked for.
        if matches!(reply, Reply::Refused(_)) {
            continue;
        }
        let text = format!("{reply:?}");
        for name in secret {
            let found = marks(name).into_iter().find(|mark| text.contains(mark));
            assert_eq!(found, None, "{asked} tells of {name}: {text}");
        }
    }
}

fn run(seed: u64) -> usize {
    let mut rng = Rng::new(seed);
    let rights = Arc::new(random_rights(&mut rng));
    let on = |name: &&str| rights.on(name, None);
    let may_not =
        |name: &&str, denied: &[Right]| denied.iter().all(|right| !on(name).contains(*right));
    let changes = [Right::Send, Right::Receive, Right::Manage];
    let safe: Vec<_> = NAMES.into_iter().filter(|name| may_not(name, &changes)).collect();
    // Moves that the user may do take a body to where it may look.
    let reveals = [Right::Receive, Right::Look];
    let secret: BTreeSet<_> = NAMES
        .into_iter()
        .filter(|name| may_not(name, &reveals) && !on(name).contains(Right::Manage))
        .collect();
    let [mut with, mut without] = [World::new(&rights), World::new(&rights)];
    let mut done = 0;
    for _ in 0..STEPS {
        if rng.one_in(3) {
            let command = of_operator(&mut rng);
            check_replies(&with.give(OPERATOR, command.clone()), &secret, "a push");
            without.give(OPERATOR, command);
        } else if rng.one_in(20) {
            let settlement = rng.pick(&[Settlement::Return, Settlement::Accept]);
            for world in [&mut with, &mut without] {
                for message in std::mem::take(&mut world.held) {
                    let command = Command::Settle { message, settlement, transaction: None };
                    world.give(OPERATOR, command);
                }
            }
        } else if rng.one_in(20) {
            let time = Nanos::from_millis(rng.below(1_500));
            check_replies(&with.pass(time), &secret, "time");
            without.pass(time);
        } else {
            let next = AdminCommand::NextMessage;
            let capacity = Capacity::UNBOUNDED;
            let next = Command::Admin(Box::new(next));
            with.engine.handle(with.now, OPERATOR, next, capacity, &mut with.effects);
            let last = match with.effects.outputs.pop().unwrap().reply {
                Reply::Stored { message } => message,
                other => panic!("{other:?}"),
            };
            let command = of_user(&mut rng, last, false);
            let asked = format!("{command:?}");
            let replies = with.give(USER, command);
            done += replies.iter().filter(|it| !matches!(it, Reply::Refused(_))).count();
            check_replies(&replies, &secret, &asked);
        }
    }
    for name in safe {
        assert_eq!(with.state(name), without.state(name), "seed {seed}: {name} has changed");
    }
    done
}

#[test]
fn user_reaches_nothing_that_is_denied() {
    let done: usize = seeds(SEEDS).map(run).sum();
    assert!(done > 4_000, "the user does much that is allowed: {done}");
}
