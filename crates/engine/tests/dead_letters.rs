//! Dead letters block no sends: however many there are, senders find memory and log.

use engine::{DeadLettersMax, Effects, Engine, EngineOptions, QueuePolicies, QueuePolicy};
use model::{
    Capacity, Command, DeadLetters, Destination, Nanos, NewMessage, Persistence, QueueName, Reply,
    SessionId, StorePolicy,
};

const SENDER: SessionId = SessionId(1);
const MEMORY: u64 = 1024 * 1024;
const BODY: usize = 4_096;

struct World {
    now: Nanos,
    engine: Engine,
    effects: Effects,
}

impl World {
    fn new(policy: StorePolicy, rule: DeadLetters, most: DeadLettersMax) -> Self {
        let default = QueuePolicy { dead_letters: rule, ..QueuePolicy::default() };
        let mut engine = Engine::new(EngineOptions {
            queue_policies: QueuePolicies { default, ..QueuePolicies::default() },
            dead_letters_max: most,
            memory_limit: MEMORY,
            ..EngineOptions::new(policy)
        });
        engine.open_session(SENDER);
        Self { now: Nanos::SECOND, engine, effects: Effects::default() }
    }

    /// Sends messages that live for a moment, four times as much as memory holds. Gives how many
    /// were not taken at once.
    fn flood(&mut self, persistence: Persistence) -> usize {
        (0..4 * MEMORY as usize / BODY).filter(|_| !self.send(persistence)).count()
    }

    fn send(&mut self, persistence: Persistence) -> bool {
        let message = NewMessage {
            persistence,
            expires: Some(self.now + Nanos::from_millis(1)),
            ..NewMessage::new([7; BODY].into())
        };
        let to = Destination::Queue(QueueName::new("telemetry").unwrap());
        let put = Command::PutTo { to, message, transaction: None };
        self.engine.handle(self.now, SENDER, put, Capacity::UNBOUNDED, &mut self.effects);
        let is_stored = matches!(self.effects.outputs[0].reply, Reply::Stored { .. });
        self.effects.clear();
        self.now = self.now + Nanos::from_millis(2);
        while self.engine.poll_timeout().is_some_and(|due| due <= self.now) {
            self.engine.handle_timeout(self.now, Capacity::UNBOUNDED, &mut self.effects);
            // The log has written all of it.
            let written = Some(self.engine.last_lsn());
            self.engine.handle_capacity(Capacity { written, ..Capacity::UNBOUNDED });
        }
        self.effects.clear();
        self.engine.check();
        is_stored
    }
}

#[test]
fn expired_memory_only_messages_fill_nothing() {
    let mut world =
        World::new(StorePolicy::Always, DeadLetters::default(), DeadLettersMax::default());
    assert_eq!(world.flood(Persistence::NonPersistent), 0, "all are taken");
    let counts = world.engine.dead_letters();
    assert_eq!((counts.parked_total, counts.dropped_total), (0, 1_024));
    assert_eq!(world.engine.statistics().queues, 0, "none is left");
}

#[test]
fn bounded_dead_letters_refuse_no_sender() {
    let most = DeadLettersMax { messages: 1_000, bytes: MEMORY / 8 };
    for (policy, persistence) in [
        (StorePolicy::Always, Persistence::NonPersistent),
        (StorePolicy::Always, Persistence::Persistent),
        (StorePolicy::Memory, Persistence::Persistent),
    ] {
        let mut world = World::new(policy, DeadLetters::Park, most);
        assert_eq!(world.flood(persistence), 0, "all are taken: {policy:?}");
        let counts = world.engine.dead_letters();
        assert_eq!(counts.parked_total, 1_024, "{policy:?}");
        assert_eq!(counts.evicted_total, 1_024 - MEMORY / 8 / BODY as u64, "{policy:?}");
        let is_durable = policy == StorePolicy::Always && persistence == Persistence::Persistent;
        let durable = if is_durable { counts.evicted_total } else { 0 };
        assert_eq!(counts.evicted_durable_total, durable, "{policy:?}");
    }
}

/// The case that the two above prevent.
#[test]
fn unbounded_dead_letters_fill_memory() {
    let mut world = World::new(StorePolicy::Always, DeadLetters::Park, DeadLettersMax::default());
    assert!(world.flood(Persistence::NonPersistent) > 0, "memory is full of them");
}
