//! Memory beside messages: small values, the names that senders give messages, and selectors of
//! subscriptions. All of it counts, and none of it is without bound.

use engine::{Effects, Engine, EngineOptions};
use model::{
    Capacity, Command, Destination, KeyCommand, LinkId, Nanos, NewMessage, QueueName, Refusal,
    Reply, SessionId, SetRule, StorePolicy, Subscription, SubscriptionName, ValueDeadline,
};

const BY: SessionId = SessionId(1);
/// Bytes that messages may take, and an eighth of it: bytes that values may take, and names too.
const LIMIT: u64 = 32 << 20;
const SHARE: u64 = 4 << 20;

struct World {
    engine: Engine,
    effects: Effects,
}

impl World {
    fn new() -> Self {
        let options = EngineOptions::new(StorePolicy::Always);
        let mut engine = Engine::new(EngineOptions { memory_limit: LIMIT, ..options });
        engine.open_session(BY);
        Self { engine, effects: Effects::default() }
    }

    fn ask(&mut self, command: Command) -> Reply {
        self.effects.clear();
        self.engine.handle(Nanos::SECOND, BY, command, Capacity::UNBOUNDED, &mut self.effects);
        self.effects.outputs.remove(0).reply
    }

    /// How many commands are done before one is refused, and why that is.
    fn done_until_refused(&mut self, command: impl Fn(usize) -> Command) -> (u64, Refusal) {
        for number in 0..1_000_000 {
            if let Reply::Refused(refusal) = self.ask(command(number)) {
                self.engine.check();
                return (number as u64, refusal);
            }
        }
        panic!("nothing was refused");
    }
}

fn name(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

fn set(number: usize, bytes: usize) -> Command {
    Command::Key(KeyCommand::SetValue {
        name: name(&format!("{number:0200}")),
        value: vec![0; bytes].into(),
        deadline: ValueDeadline::Never,
        rule: SetRule::Always,
        want_old: false,
    })
}

#[test]
fn values_may_take_eighth_of_memory() {
    for bytes in [10, 60_000] {
        let mut world = World::new();
        let (count, refusal) = world.done_until_refused(|number| set(number, bytes));
        assert_eq!(refusal, Refusal::TooManyValues);
        // Names that differ in their last bytes share the others.
        let (least, most) = (bytes as u64 + 4, bytes as u64 + 200 + 96);
        assert!((SHARE / most - 1..=SHARE / least).contains(&count), "{count} of {bytes}");
        let taken = world.engine.memory_bytes();
        assert!((SHARE / 8 * 7..SHARE + 2_560).contains(&taken), "{taken} bytes");
        // Another in the place of one is as large.
        let replaced = Reply::Replaced { set: true, old: None };
        assert_eq!(world.ask(set(0, bytes)), replaced);
        // Memory comes back by leaves, so some have to go.
        let gone = count.min(500);
        let names = (0..gone).map(|number| name(&format!("{number:0200}"))).collect();
        assert_eq!(world.ask(Command::Key(KeyCommand::Delete { names })), Reply::Count(gone));
        assert_eq!(world.ask(set(1_000_000, bytes)), replaced);
    }
}

#[test]
fn send_ids_count_and_oldest_go() {
    let mut world = World::new();
    let send = |number: u64| {
        let send_id = Some(format!("{number:0200}").into());
        let message = NewMessage { send_id, ..NewMessage::new((*b"x").into()) };
        Command::PutTo { to: Destination::Queue(name("q")), message, transaction: None }
    };
    for number in 1..=20_000 {
        let Reply::Stored { message } = world.ask(send(number)) else { panic!("{number}") };
        assert_eq!(world.ask(Command::Delete { message }), Reply::Done);
    }
    world.engine.check();
    let taken = world.engine.memory_bytes();
    assert!((SHARE / 8 * 7..SHARE + 2_560).contains(&taken), "{taken} bytes");
    let sent_again = |world: &mut World, number: u64| {
        let before = world.engine.statistics().messages_total;
        world.ask(send(number));
        world.engine.statistics().messages_total == before
    };
    assert!(sent_again(&mut world, 20_000) && sent_again(&mut world, 20_000 - SHARE / 620));
    assert!(!sent_again(&mut world, 1), "the oldest is forgotten");
}

#[test]
fn subscription_selectors_count_and_are_bounded() {
    let mut world = World::new();
    let subscribe = |number: usize, bytes: usize| Command::Subscribe {
        link: LinkId(number as u32),
        subscription: Box::new(Subscription {
            name: Some(SubscriptionName {
                user: None,
                client: Some(name("client")),
                name: name(&format!("{}", number % 1_000)),
                durable: true,
            }),
            selector: Some(format!("a = '{}'", "x".repeat(bytes)).into()),
            ..Subscription::new(name("news"))
        }),
    };
    let close = |number: usize| Command::CloseConsumer { link: LinkId(number as u32) };
    let (count, refusal) = world.done_until_refused(|number| subscribe(number, 60_000));
    assert_eq!(refusal, Refusal::TooManySubscriptions);
    assert!((LIMIT / 4 / 600_000..=LIMIT / 4 / 600_000 + 1).contains(&count), "{count}");
    assert!(world.engine.memory_bytes() > LIMIT / 5, "{}", world.engine.memory_bytes());
    // Nor may one become larger, in the place of another.
    for number in 0..2 {
        assert_eq!(world.ask(close(number)), Reply::Done);
    }
    assert_eq!(world.ask(subscribe(1_000, 60_001)), Reply::Refused(refusal));
    assert_eq!(world.ask(subscribe(1_000, 100)), Reply::Done);
    assert_eq!(world.ask(subscribe(1_001, 100)), Reply::Done);
    world.engine.check();
    assert!(world.engine.memory_bytes() < LIMIT / 4, "{}", world.engine.memory_bytes());
}
