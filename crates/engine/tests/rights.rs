//! Rights, one by one: what belongs to a user, and what lists, subscriptions and dead letters tell.

use std::ops::Bound;
use std::sync::Arc;

use engine::{Effects, Engine, EngineOptions};
use model::{
    AdminCommand, Capacity, ClaimedAs, ClockLead, CollectionCommand, CollectionKind, Combination,
    CombinationTarget, Command, Database, Destination, End, Expected, GroupName, GroupStart,
    KeyCommand, KeyKind, LinkId, ListCommand, Matching, Nanos, NewMessage, NewStreamId, OneOrMany,
    Persistence, Principal, QueueName, ReadPlace, Refusal, Reply, Right, Rights, Rule, Score,
    ScoreRule, ScoreSum, ScoredPart, ScoredRange, SessionId, SetOperation, Settlement, StorePolicy,
    StreamClaim, StreamCommand, StreamId, StreamKept, StreamRange, StreamRead, StreamReader,
    StreamTrim, Subscription, SubscriptionName, TableAction, TableStep, TransactionId, UserRights,
    ValueEdit, limits,
};

const ROOT: SessionId = SessionId(1);
const ANN: SessionId = SessionId(2);
const BOB: SessionId = SessionId(3);
const LINK: LinkId = LinkId(0);

struct Harness {
    engine: Engine,
    effects: Effects,
    users: UserRights,
}

impl Harness {
    fn new() -> Self {
        let mut engine = Engine::new(EngineOptions::new(StorePolicy::Always));
        [ROOT, ANN, BOB].into_iter().for_each(|session| engine.open_session(session));
        let mut engine = Self { engine, effects: Effects::default(), users: UserRights::new() };
        engine.grant(ROOT, "root", &["send,receive,look,manage,operate *"], &[]);
        engine
    }

    fn grant(&mut self, session: SessionId, user: &str, allow: &[&str], deny: &[&str]) {
        let read = |rules: &[&str]| {
            rules.iter().map(|rule| Rule::parse(rule).unwrap()).collect::<Vec<_>>()
        };
        let rights = Arc::new(Rights::new(user.into(), &read(allow), &read(deny)));
        self.users.insert(user.into(), Arc::clone(&rights));
        self.engine.set_users(Some(Arc::new(self.users.clone())));
        self.engine.act_for(session, Principal::User(rights));
    }

    fn ask(&mut self, session: SessionId, command: Command) -> Reply {
        self.all(session, command).remove(0)
    }

    /// The replies to this session.
    fn all(&mut self, session: SessionId, command: Command) -> Vec<Reply> {
        let capacity = Capacity::UNBOUNDED;
        self.engine.handle(Nanos::SECOND, session, command, capacity, &mut self.effects);
        let outputs = self.effects.outputs.drain(..);
        let of_session = outputs.filter(|output| output.session == session);
        let replies = of_session.map(|output| output.reply).collect();
        self.effects.clear();
        self.engine.check();
        replies
    }

    /// Each of these is denied to one who has all rights on `v` but this one.
    fn assert_each_needs(&mut self, right: Right, commands: Vec<impl Into<Command>>) {
        let others = Right::ALL.into_iter().filter(|it| *it != right && *it != Right::Operate);
        let others: Vec<_> = others.map(Right::word).collect();
        let rules = [format!("{} v", others.join(",")), "send,receive,look,manage w".into()];
        self.grant(ANN, "ann", &rules.each_ref().map(String::as_str), &[]);
        for command in commands {
            let reply = self.ask(ANN, command.into());
            assert_denied(&reply, right, "v");
        }
    }

    fn admin(&mut self, session: SessionId, command: AdminCommand) -> Reply {
        self.ask(session, Command::Admin(Box::new(command)))
    }

    fn put(&mut self, session: SessionId, queue: &str) -> Reply {
        let (to, message) = (Destination::Queue(name(queue)), NewMessage::new((*b"x").into()));
        self.ask(session, Command::PutTo { to, message, transaction: None })
    }
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

#[track_caller]
fn assert_denied(reply: &Reply, right: Right, of: &str) {
    let Reply::Refused(Refusal::NotPermitted(lack)) = reply else { panic!("{reply:?}") };
    let found = (lack.right, lack.name.as_ref().map(QueueName::as_str));
    assert_eq!(found, (right, Some(of)));
}

fn stored(reply: Reply) -> model::MessageId {
    let Reply::Stored { message } = reply else { panic!("{reply:?}") };
    message
}

#[test]
fn stranger_may_do_nothing() {
    let mut engine = Harness::new();
    engine.engine.act_for(ANN, Principal::Stranger);
    let reply = engine.put(ANN, "a");
    let Reply::Refused(Refusal::NotPermitted(lack)) = &reply else { panic!("{reply:?}") };
    assert_eq!(lack.user, None);
    assert_eq!(engine.ask(ANN, Command::ListQueues), Reply::Queues(Vec::new()));
}

#[test]
fn message_by_number_is_hidden() {
    let mut engine = Harness::new();
    engine.grant(ANN, "ann", &["send,receive,look,manage a"], &[]);
    let message = stored(engine.put(ROOT, "b"));
    for command in [
        Command::Lease { message },
        Command::Delete { message },
        Command::KickMessage { message },
        Command::MessageStatistics { message },
        Command::Peek(model::Peek::Message(message)),
        Command::Admin(Box::new(AdminCommand::Show { message })),
    ] {
        let missing = Command::Delete { message: model::MessageId(99) };
        assert_eq!(engine.ask(ANN, command.clone()), engine.ask(ANN, missing), "{command:?}");
    }
}

#[test]
fn held_message_is_its_sessions_own() {
    let mut engine = Harness::new();
    engine.grant(ANN, "ann", &["receive a"], &[]);
    let message = stored(engine.put(ROOT, "a"));
    engine.ask(ANN, Command::Watch { link: LINK, queue: name("a") });
    let receive = Command::Receive { link: LINK, wait: None, margin: Nanos::ZERO, lease: None };
    assert!(matches!(engine.ask(ANN, receive), Reply::Delivered(_)));
    let look = Command::MessageStatistics { message };
    assert!(matches!(engine.ask(ANN, look), Reply::MessageStatistics(_)));
    assert_eq!(engine.ask(ANN, Command::Delete { message }), Reply::Done);
}

#[test]
fn denied_part_rolls_transaction_back() {
    let mut engine = Harness::new();
    engine.grant(ANN, "ann", &["send a", "look *"], &[]);
    let transaction = TransactionId(1);
    engine.ask(ANN, Command::Begin { transaction });
    let put = |queue: &str| Command::PutTo {
        to: Destination::Queue(name(queue)),
        message: NewMessage::new((*b"x").into()),
        transaction: Some(transaction),
    };
    assert_eq!(engine.ask(ANN, put("a")), Reply::Done);
    assert_denied(&engine.ask(ANN, put("b")), Right::Send, "b");
    let end = engine.ask(ANN, Command::Commit { transaction });
    assert_eq!(end, Reply::Refused(Refusal::TransactionFailed));
    assert_eq!(engine.ask(ANN, Command::QueueStatistics { queue: name("a") }), Reply::NotFound);
}

#[test]
fn denied_part_denies_whole_batch() {
    let mut engine = Harness::new();
    engine.grant(ANN, "ann", &["send,look a"], &[]);
    let push = |queue: &str| {
        Command::List(ListCommand::Push {
            queue: name(queue),
            end: End::Tail,
            elements: OneOrMany::One((*b"x").into()),
            only_existing: false,
            persistence: Persistence::Persistent,
        })
    };
    let batch = Command::Batch { commands: vec![push("a"), push("b")] };
    assert_denied(&engine.ask(ANN, batch), Right::Send, "b");
    let length = Command::List(ListCommand::Length { queue: name("a") });
    assert_eq!(engine.ask(ANN, length), Reply::Count(0));
}

#[test]
fn move_needs_both_ends() {
    let mut engine = Harness::new();
    engine.grant(ANN, "ann", &["receive a", "send b"], &[]);
    engine.put(ROOT, "a");
    engine.put(ROOT, "b");
    let shift = |from: &str, to: &str| {
        Command::List(ListCommand::Move {
            from: name(from),
            from_end: End::Head,
            to: name(to),
            to_end: End::Tail,
            wait: None,
        })
    };
    assert_denied(&engine.ask(ANN, shift("b", "a")), Right::Receive, "b");
    assert_denied(&engine.ask(ANN, shift("a", "a")), Right::Send, "a");
    assert!(matches!(engine.ask(ANN, shift("a", "b")), Reply::Elements(_)));
}

#[test]
fn lists_show_names_to_look_at() {
    let mut engine = Harness::new();
    engine.grant(ANN, "ann", &["look a*", "send,receive b"], &["look ab"]);
    for queue in ["aa", "ab", "ac", "b"] {
        engine.put(ROOT, queue);
    }
    let seen = || vec![name("aa"), name("ac")];
    assert_eq!(engine.ask(ANN, Command::ListQueues), Reply::Queues(seen()));
    let names = KeyCommand::Names { database: None, after: None, max: 100, kind: None };
    let Reply::Names { names, .. } = engine.ask(ANN, Command::Key(names)) else { panic!() };
    assert_eq!(names, seen());
    let listing = AdminCommand::ListQueues { after: None, max: 100 };
    let Reply::QueuePage { queues, next: None } = engine.admin(ANN, listing) else { panic!() };
    assert_eq!(queues.into_iter().map(|it| it.queue).collect::<Vec<_>>(), seen());
}

#[test]
fn database_of_others_is_out_of_reach() {
    let mut engine = Harness::new();
    engine.grant(ANN, "ann", &["send,receive,look,manage mail*"], &[]);
    engine.grant(BOB, "bob", &["send,receive,look,manage \u{f101}mail*"], &[]);
    let other = || name("\u{f101}mail");
    engine.put(ROOT, "\u{f101}mail");
    engine.put(ANN, "mail");
    let text = || Arc::from(*b"x");
    let database = Database::new(1);
    let move_key = |from, to| KeyCommand::Rename { from, to, only_new: true };
    let commands = [
        KeyCommand::Kind { name: other() },
        KeyCommand::CountOf { names: vec![other()] },
        KeyCommand::Value { name: other(), take: false },
        KeyCommand::SetValues { values: vec![(other(), text())], only_new: false },
        KeyCommand::Delete { names: vec![other()] },
        KeyCommand::DeleteAll { database },
        move_key(name("mail"), other()),
        move_key(other(), name("mail")),
    ];
    for command in commands {
        let reply = engine.ask(ANN, Command::Key(command.clone()));
        assert!(
            matches!(reply, Reply::Refused(Refusal::NotPermitted(_))),
            "{command:?}: {reply:?}"
        );
    }
    let names = KeyCommand::Names { database, after: None, max: 100, kind: None };
    let Reply::Names { names, .. } = engine.ask(ANN, Command::Key(names)) else { panic!() };
    assert_eq!(names, []);
    let kind = |name| Command::Key(KeyCommand::Kind { name });
    assert_eq!(engine.ask(BOB, kind(other())), Reply::Kind(Some(KeyKind::List)));
    assert!(matches!(engine.ask(BOB, kind(name("mail"))), Reply::Refused(_)));
    assert_eq!(engine.ask(ANN, kind(name("mail"))), Reply::Kind(Some(KeyKind::List)));
}

#[test]
fn page_passes_over_hidden_names_in_steps() {
    let mut engine = Harness::new();
    engine.grant(ANN, "ann", &["look z"], &[]);
    for number in 0..=limits::PAGE_LOOKS_MAX + 1 {
        engine.put(ROOT, &format!("{number:06}"));
    }
    engine.put(ROOT, "z");
    let listing = |after| AdminCommand::ListQueues { after, max: 1 };
    let Reply::QueuePage { queues, next } = engine.admin(ANN, listing(None)) else { panic!() };
    assert!(queues.is_empty() && next.is_some());
    let Reply::QueuePage { queues, next: None } = engine.admin(ANN, listing(next)) else {
        panic!()
    };
    assert_eq!(queues[0].queue, name("z"));
}

#[test]
fn deduplication_ids_belong_to_users() {
    let mut engine = Harness::new();
    engine.grant(ANN, "ann", &["send q"], &[]);
    engine.grant(BOB, "bob", &["send q"], &[]);
    let put = |body: &[u8]| Command::PutTo {
        to: Destination::Queue(name("q")),
        message: NewMessage { send_id: Some("id".into()), ..NewMessage::new(body.into()) },
        transaction: None,
    };
    let first = engine.ask(ANN, put(b"ann"));
    assert_eq!(engine.ask(ANN, put(b"ann")), first);
    let other = engine.ask(BOB, put(b"bob"));
    assert!(matches!(other, Reply::Stored { .. }) && other != first, "{other:?}");
    assert_eq!(engine.ask(BOB, put(b"bob")), other);
}

fn durable(topic: &str, matching: Matching) -> Subscription {
    let named = SubscriptionName {
        user: None,
        client: Some(name("client")),
        name: name("sub"),
        durable: true,
    };
    Subscription { name: Some(named), matching, ..Subscription::new(name(topic)) }
}

fn subscribe(it: Subscription) -> Command {
    Command::Subscribe { link: LINK, subscription: Box::new(it) }
}

#[test]
fn subscriptions_belong_to_users() {
    let mut engine = Harness::new();
    engine.grant(ANN, "ann", &["receive t"], &[]);
    engine.grant(BOB, "bob", &["receive t"], &[]);
    assert_eq!(engine.ask(ANN, subscribe(durable("t", Matching::Name))), Reply::Done);
    engine.ask(ANN, Command::CloseConsumer { link: LINK });
    let publish = Command::Publish { topic: name("t"), message: NewMessage::new((*b"x").into()) };
    assert_eq!(engine.ask(ROOT, publish), Reply::Count(1));
    // Of the same client and name, and another one.
    let named = durable("t", Matching::Name).name.unwrap();
    assert_eq!(engine.ask(BOB, Command::FindSubscription { name: named.clone() }), Reply::NotFound);
    assert_eq!(engine.ask(BOB, Command::Unsubscribe { name: named.clone() }), Reply::NotFound);
    assert_eq!(engine.all(BOB, subscribe(durable("t", Matching::Name))), [Reply::Done]);
    let credit = Command::Credit { link: LINK, limit: 9, bytes: 1 << 20, drain: false };
    assert_eq!(engine.all(BOB, credit.clone()), []);
    engine.ask(ANN, subscribe(durable("t", Matching::Name)));
    assert_eq!(engine.all(ANN, credit).len(), 1);
    // An operator names the user.
    engine.ask(BOB, Command::CloseConsumer { link: LINK });
    let of_bob = SubscriptionName { user: Some("bob".into()), ..named };
    assert_eq!(engine.ask(ANN, Command::Unsubscribe { name: of_bob.clone() }), Reply::NotFound);
    assert_eq!(engine.ask(ROOT, Command::Unsubscribe { name: of_bob }), Reply::Done);
}

#[test]
fn clients_belong_to_users() {
    let mut engine = Harness::new();
    engine.grant(ANN, "ann", &["send c.{client}"], &[]);
    engine.grant(BOB, "bob", &[], &[]);
    let identify = || Command::Identify { client: name("c1") };
    assert_denied(&engine.put(ANN, "c.c1"), Right::Send, "c.c1");
    assert_eq!(engine.ask(ANN, identify()), Reply::Done);
    assert_eq!(engine.ask(BOB, identify()), Reply::Done);
    assert!(matches!(engine.put(ANN, "c.c1"), Reply::Stored { .. }));
    assert_denied(&engine.put(ANN, "c.c2"), Right::Send, "c.c2");
}

#[test]
fn pattern_takes_what_its_user_may_receive() {
    let mut engine = Harness::new();
    engine.grant(ANN, "ann", &["receive a.*"], &["receive a.secret"]);
    engine.grant(BOB, "bob", &["send *"], &[]);
    let publish = |topic: &str| Command::Publish {
        topic: name(topic),
        message: NewMessage::new((*b"x").into()),
    };
    let pattern = Command::Subscribe {
        link: LinkId(7),
        subscription: Subscription::of_glob(name("*")).into(),
    };
    assert_eq!(engine.ask(ANN, pattern.clone()), Reply::Done);
    assert_eq!(engine.ask(ANN, subscribe(durable("#", Matching::Words))), Reply::Done);
    for (topic, takers) in [("a.b", 2), ("a.secret", 0), ("b", 0)] {
        assert_eq!(engine.ask(ROOT, publish(topic)), Reply::Count(takers), "{topic}");
    }
    // Also while its user is away, and by the rights of that time.
    engine.ask(ANN, Command::CloseConsumer { link: LINK });
    engine.engine.close_session(Nanos::SECOND, ANN, Capacity::UNBOUNDED, &mut engine.effects);
    assert_eq!(engine.ask(ROOT, publish("a.b")), Reply::Count(1));
    engine.users.remove("ann");
    engine.engine.set_users(Some(Arc::new(engine.users.clone())));
    assert_eq!(engine.ask(ROOT, publish("a.b")), Reply::Count(0));
    assert!(matches!(engine.ask(BOB, pattern), Reply::Refused(Refusal::NotPermitted(_))));
}

#[test]
fn subscription_from_before_users_goes_on() {
    let mut engine = Harness::new();
    engine.grant(ANN, "ann", &["receive t"], &[]);
    engine.engine.act_for(ROOT, Principal::Everyone);
    assert_eq!(engine.ask(ROOT, subscribe(durable("t", Matching::Name))), Reply::Done);
    engine.ask(ROOT, Command::CloseConsumer { link: LINK });
    let publish = Command::Publish { topic: name("t"), message: NewMessage::new((*b"x").into()) };
    assert_eq!(engine.ask(ROOT, publish), Reply::Count(1));
    assert_eq!(engine.ask(ANN, subscribe(durable("t", Matching::Name))), Reply::Done);
    let credit = Command::Credit { link: LINK, limit: 9, bytes: 1 << 20, drain: false };
    assert!(matches!(engine.all(ANN, credit)[..], [Reply::Delivered(_)]));
}

#[test]
fn pattern_from_before_users_is_the_operators() {
    let mut engine = Harness::new();
    engine.grant(ANN, "ann", &["receive t"], &[]);
    engine.engine.act_for(ROOT, Principal::Everyone);
    assert_eq!(engine.ask(ROOT, subscribe(durable("#", Matching::Words))), Reply::Done);
    engine.ask(ROOT, Command::CloseConsumer { link: LINK });
    let publish =
        Command::Publish { topic: name("secret"), message: NewMessage::new((*b"x").into()) };
    assert_eq!(engine.ask(ROOT, publish), Reply::Count(1));
    assert_eq!(engine.ask(ANN, subscribe(durable("#", Matching::Words))), Reply::Done);
    let credit = Command::Credit { link: LINK, limit: 9, bytes: 1 << 20, drain: false };
    assert_eq!(engine.all(ANN, credit), []);
}

#[test]
fn dead_letter_is_allowed_what_its_origin_allows() {
    let mut engine = Harness::new();
    engine.grant(ANN, "ann", &["look,send,receive a"], &[]);
    let dead = "dead-letters";
    let die = |engine: &mut Harness, queue: &str| {
        let message = stored(engine.put(ROOT, queue));
        let open = Command::OpenConsumer {
            link: LINK,
            queue: name(queue),
            selector: None,
            mode: model::ConsumerMode::Take,
        };
        engine.ask(ROOT, open);
        engine.all(ROOT, Command::Credit { link: LINK, limit: 1, bytes: 1 << 20, drain: false });
        let settlement = Settlement::Park(model::DeadReason::Rejected);
        engine.ask(ROOT, Command::Settle { message, settlement, transaction: None });
        engine.ask(ROOT, Command::CloseConsumer { link: LINK });
        message
    };
    let (mine, other) = (die(&mut engine, "a"), die(&mut engine, "b"));
    let Reply::Page(page) = engine.admin(ROOT, AdminCommand::Show { message: mine }) else {
        panic!()
    };
    let queue = page.messages[0].queue.clone();
    assert_ne!(queue, name("a"), "it is in {dead}");
    assert!(matches!(engine.admin(ANN, AdminCommand::Show { message: mine }), Reply::Page(_)));
    assert_eq!(engine.admin(ANN, AdminCommand::Show { message: other }), Reply::NotFound);
    let back = |message| AdminCommand::MoveMessages {
        from: queue.clone(),
        to: None,
        message,
        selector: None,
        before: model::MessageId(u64::MAX),
        max: 9,
        after: None,
    };
    assert_eq!(engine.admin(ANN, back(Some(other))), Reply::NotFound);
    assert_eq!(engine.admin(ANN, back(Some(mine))), Reply::Count(1));
    // One who may receive the dead letters sends back those that it may.
    let rule = format!("receive {queue}");
    engine.grant(ANN, "ann", &[&rule], &[]);
    assert_eq!(engine.admin(ANN, back(None)), Reply::Count(0));
}

#[test]
fn temporary_destinations_need_a_right() {
    let mut engine = Harness::new();
    engine.grant(ANN, "ann", &["receive temporary/*"], &[]);
    engine.grant(BOB, "bob", &["send a"], &[]);
    let make = || Command::CreateTemporary { topic: false, secret: 7 };
    assert_denied(&engine.ask(BOB, make()), Right::Receive, "temporary/");
    let Reply::Created(made) = engine.ask(ANN, make()) else { panic!() };
    // Others send there, if they were told its name, and do no more.
    let message = NewMessage::new((*b"x").into());
    let put = Command::PutTo { to: made.clone(), message, transaction: None };
    assert!(matches!(engine.ask(BOB, put), Reply::Stored { .. }));
    let queue = made.name().clone();
    let watch = Command::Watch { link: LINK, queue: queue.clone() };
    assert_denied(&engine.ask(BOB, watch.clone()), Right::Receive, queue.as_str());
    assert_eq!(engine.ask(ANN, watch), Reply::Done);
}

#[test]
fn flush_is_for_operators() {
    let mut engine = Harness::new();
    engine.grant(ANN, "ann", &["send,receive,look,manage *"], &[]);
    let flush = || Command::Key(KeyCommand::DeleteAll { database: None });
    let reply = engine.ask(ANN, flush());
    let Reply::Refused(Refusal::NotPermitted(lack)) = &reply else { panic!("{reply:?}") };
    assert_eq!((lack.right, &lack.name), (Right::Operate, &None));
    engine.grant(ANN, "ann", &["operate"], &[]);
    assert!(matches!(engine.ask(ANN, flush()), Reply::Done | Reply::Count(_)));
}

#[test]
fn changed_rights_hold_at_once() {
    let mut engine = Harness::new();
    engine.grant(ANN, "ann", &["send a"], &[]);
    assert!(matches!(engine.put(ANN, "a"), Reply::Stored { .. }));
    engine.grant(ANN, "ann", &["send b"], &[]);
    assert_denied(&engine.put(ANN, "a"), Right::Send, "a");
    assert!(matches!(engine.put(ANN, "b"), Reply::Stored { .. }));
}

#[test]
fn named_user_of_subscription_is_its_sessions() {
    let mut engine = Harness::new();
    engine.grant(ANN, "ann", &["receive t"], &[]);
    engine.grant(BOB, "bob", &["receive t"], &[]);
    assert_eq!(engine.ask(ANN, subscribe(durable("t", Matching::Name))), Reply::Done);
    let mut as_ann = durable("t", Matching::Name);
    as_ann.name.as_mut().unwrap().user = Some("ann".into());
    // Not in use: it is another one.
    assert_eq!(engine.ask(BOB, subscribe(as_ann)), Reply::Done);
}

#[test]
fn commands_by_link_need_rights_of_their_own() {
    let mut engine = Harness::new();
    let message = stored(engine.put(ROOT, "q"));
    engine.ask(ROOT, Command::Lease { message });
    engine.ask(ROOT, Command::Bury { message, priority: 0 });
    let open = || Command::OpenProducer { link: LINK, to: Destination::Queue(name("q")) };
    let put = || {
        let message = NewMessage::new((*b"x").into());
        Command::Put { link: LINK, message, transaction: None }
    };
    let peek = || Command::Peek(model::Peek::Buried(LINK));
    let kick = || Command::Kick { link: LINK, max: 9 };
    engine.grant(ANN, "ann", &["receive q"], &[]);
    assert_denied(&engine.ask(ANN, open()), Right::Send, "q");
    engine.grant(ANN, "ann", &["send q"], &[]);
    assert_eq!(engine.ask(ANN, open()), Reply::Done);
    assert_denied(&engine.ask(ANN, peek()), Right::Look, "q");
    assert_denied(&engine.ask(ANN, kick()), Right::Manage, "q");
    assert!(matches!(engine.ask(ANN, put()), Reply::Stored { .. }));
    engine.grant(ANN, "ann", &["look,manage q"], &[]);
    assert_denied(&engine.ask(ANN, put()), Right::Send, "q");
    assert!(matches!(engine.ask(ANN, peek()), Reply::Found { .. }));
    assert_eq!(engine.ask(ANN, kick()), Reply::Count(1));
}

#[test]
fn kick_by_number_needs_management() {
    let mut engine = Harness::new();
    let message = stored(engine.put(ROOT, "q"));
    engine.ask(ROOT, Command::Lease { message });
    engine.ask(ROOT, Command::Bury { message, priority: 0 });
    engine.grant(ANN, "ann", &["send,receive,look q"], &[]);
    let kick = || Command::KickMessage { message };
    assert_eq!(engine.ask(ANN, kick()), Reply::NotFound);
    engine.grant(ANN, "ann", &["manage q"], &[]);
    assert_eq!(engine.ask(ANN, kick()), Reply::Done);
}

#[test]
fn values_are_shown_to_those_who_may_look() {
    let mut engine = Harness::new();
    engine.grant(ANN, "ann", &["send v"], &[]);
    let set = |want_old| {
        Command::Key(KeyCommand::SetValue {
            name: name("v"),
            value: (*b"x").into(),
            deadline: model::ValueDeadline::Never,
            rule: model::SetRule::Always,
            want_old,
        })
    };
    assert!(matches!(engine.ask(ANN, set(false)), Reply::Replaced { .. }));
    assert_denied(&engine.ask(ANN, set(true)), Right::Look, "v");
    let names = || vec![name("v")];
    for command in [
        KeyCommand::CountOf { names: names() },
        KeyCommand::ValueEach { names: names() },
        KeyCommand::ValuesAtOnce { names: names() },
        KeyCommand::ValueUntil { name: name("v"), deadline: None },
        KeyCommand::EditValue { name: name("v"), edit: ValueEdit::Add(1) },
        KeyCommand::Value { name: name("v"), take: false },
        KeyCommand::Kind { name: name("v") },
        KeyCommand::Lifetime { name: name("v") },
    ] {
        assert_denied(&engine.ask(ANN, Command::Key(command)), Right::Look, "v");
    }
    let values = vec![(name("v"), (*b"x").into()), (name("w"), (*b"x").into())];
    let set = KeyCommand::SetValues { values, only_new: false };
    assert_denied(&engine.ask(ANN, Command::Key(set)), Right::Send, "w");
    let take = KeyCommand::Value { name: name("v"), take: true };
    assert_denied(&engine.ask(ANN, Command::Key(take)), Right::Receive, "v");
}

#[test]
fn collections_need_the_rights_of_their_effects() {
    let mut engine = Harness::new();
    let field = || -> Arc<[u8]> { (*b"x").into() };
    let one = || OneOrMany::One(field());
    let (kind, range) = (CollectionKind::SortedSet, ScoredRange::Ranks { first: 0, last: -1 });
    let part = || ScoredPart { range: range.clone(), reverse: false, skip: 0, max: None };
    let combine = |target| {
        let (how, sum) = (SetOperation::Union, ScoreSum::Sum);
        let names = vec![(name("v"), Score::ONE)];
        CollectionCommand::Combine(Combination { how, kind, names, sum, target })
    };
    let pick = |take| {
        let (max, distinct, seed) = (1, true, 0);
        CollectionCommand::PickFields { name: name("v"), kind, max, distinct, take, seed }
    };
    let scores = |adds| {
        let rule = ScoreRule { adds, ..ScoreRule::default() };
        CollectionCommand::SetScores { name: name("v"), members: vec![(Score::ONE, field())], rule }
    };
    let v = || name("v");
    let edit = ValueEdit::Add(1);
    let (names, wait) = (vec![v()], Some(Nanos::ZERO));
    let move_member =
        || CollectionCommand::MoveMember { from: v(), to: name("w"), member: field() };
    let store_range = || CollectionCommand::StoreRange { from: v(), to: name("w"), part: part() };
    let by_right = [
        (
            Right::Look,
            vec![
                scores(true),
                CollectionCommand::EditField { name: v(), field: field(), edit },
                CollectionCommand::FindFields { name: v(), kind, fields: one() },
                CollectionCommand::CountFields { name: v(), kind },
                CollectionCommand::ShowFields { name: v(), kind },
                CollectionCommand::ScanFields { name: v(), kind, from: Bound::Unbounded, max: 1 },
                CollectionCommand::TakePicture { name: v(), kind },
                CollectionCommand::ShowPicture {
                    picture: 1,
                    name: v(),
                    from: Bound::Unbounded,
                    max: 1,
                },
                CollectionCommand::EndPicture { picture: 1, name: v() },
                pick(false),
                combine(CombinationTarget::Shown),
                combine(CombinationTarget::Counted { max: 0 }),
                combine(CombinationTarget::Stored(name("w"))),
                CollectionCommand::ShowRange { name: v(), part: part() },
                store_range(),
                CollectionCommand::CountRange { name: v(), range: range.clone() },
                CollectionCommand::Rank { name: v(), member: field(), reverse: false },
            ],
        ),
        (
            Right::Receive,
            vec![
                CollectionCommand::RemoveFields { name: v(), kind, fields: one() },
                CollectionCommand::RemoveRange { name: v(), range: range.clone() },
                pick(true),
                move_member(),
                CollectionCommand::PopScored { names, highest: false, max: 1, wait },
            ],
        ),
        (
            Right::Send,
            vec![
                scores(false),
                CollectionCommand::SetFields {
                    name: v(),
                    fields: vec![(field(), field())],
                    only_new: false,
                },
                CollectionCommand::AddMembers { name: v(), members: one() },
            ],
        ),
    ];
    for (right, commands) in by_right {
        engine.assert_each_needs(right, commands);
    }
    engine.grant(ANN, "ann", &["send,receive,look,manage v"], &[]);
    let targets = [move_member(), store_range(), combine(CombinationTarget::Stored(name("w")))];
    for command in targets {
        let reply = engine.ask(ANN, command.into());
        assert_denied(&reply, Right::Send, "w");
    }
}

#[test]
fn table_steps_need_the_rights_of_their_effects() {
    let mut engine = Harness::new();
    let transaction = TransactionId(1);
    for (right, action) in [
        (Right::Look, TableAction::Expect(Expected::Absent)),
        (Right::Send, TableAction::Put((*b"1").into())),
        (Right::Look, TableAction::Add(1)),
        (Right::Send, TableAction::Add(1)),
        (Right::Receive, TableAction::Delete),
    ] {
        assert_eq!(engine.ask(ANN, Command::Begin { transaction }), Reply::Done);
        let step = Box::new(TableStep { table: name("v"), key: (*b"f").into(), action });
        engine.assert_each_needs(right, vec![Command::Table { step, transaction }]);
        let end = engine.ask(ANN, Command::Commit { transaction });
        assert_eq!(end, Reply::Refused(Refusal::TransactionFailed));
    }
}

#[test]
fn streams_need_the_rights_of_their_effects() {
    let mut engine = Harness::new();
    let v = || name("v");
    let of = || GroupName { stream: v(), group: (*b"g").into() };
    let consumer = || -> Arc<[u8]> { (*b"c").into() };
    let (ids, start) = (|| vec![StreamId::ZERO], GroupStart { last: None, read: None });
    let range = StreamRange { first: StreamId::ZERO, last: StreamId::MAX, max: None };
    let trim = StreamTrim { keep: StreamKept::Last(0), max: None };
    let append = |trim| StreamCommand::Append {
        name: v(),
        id: NewStreamId::Next,
        fields: vec![(consumer(), consumer())],
        trim,
        only_existing: false,
        lead: ClockLead::default(),
    };
    let read = |in_group: bool| {
        let (group, consumer, acknowledges) = (consumer(), consumer(), true);
        let reader = in_group.then_some(StreamReader { group, consumer, acknowledges });
        let places = vec![(name("w"), ReadPlace::New), (v(), ReadPlace::New)];
        StreamCommand::Read(StreamRead { reader, places, max: None, wait: Some(Nanos::ZERO) })
    };
    let claim = || {
        let (min_idle, only_ids) = (Nanos::ZERO, false);
        StreamClaim { of: of(), consumer: consumer(), min_idle, only_ids }
    };
    let claimed = ClaimedAs::default();
    let (from, max, min_idle) = (StreamId::ZERO, 1, Nanos::ZERO);
    engine.assert_each_needs(Right::Send, vec![append(None), append(Some(trim))]);
    engine.assert_each_needs(
        Right::Receive,
        vec![
            append(Some(trim)),
            StreamCommand::Trim { name: v(), trim },
            StreamCommand::Remove { name: v(), ids: ids() },
            read(true),
            StreamCommand::CreateGroup { of: of(), start, makes_stream: true },
            StreamCommand::CreateConsumer { of: of(), consumer: consumer() },
            StreamCommand::Acknowledge { of: of(), ids: ids() },
            StreamCommand::Claim { claim: claim(), ids: ids(), claimed },
            StreamCommand::ClaimNext { claim: claim(), from, max },
        ],
    );
    engine.assert_each_needs(
        Right::Look,
        vec![
            read(false),
            StreamCommand::Length { name: v() },
            StreamCommand::Range { name: v(), range, reverse: false },
            StreamCommand::CountPending { of: of() },
            StreamCommand::ShowPending { of: of(), range, consumer: None, min_idle },
            StreamCommand::Describe { name: v(), whole: None },
            StreamCommand::DescribeGroups { name: v() },
            StreamCommand::DescribeConsumers { of: of() },
        ],
    );
    let (last, added, removed) = (StreamId::ZERO, None, None);
    engine.assert_each_needs(
        Right::Manage,
        vec![
            StreamCommand::SetLast { name: v(), last, added, removed },
            StreamCommand::SetGroup { of: of(), start },
            StreamCommand::RemoveGroup { of: of() },
            StreamCommand::RemoveConsumer { of: of(), consumer: consumer() },
        ],
    );
}
