//! The bytes that one call may append to a log that is nearly full: no more than it was told, in
//! however many frames. The rest waits for the next calls.

use engine::{Effects, Engine, EngineOptions, QueueBounds, QueuePolicies, QueuePolicy};
use model::{
    Capacity, Command, End, ListCommand, Nanos, Output, Persistence, QueueName, Refusal, Reply,
    SessionId, StorePolicy,
};

const BY: SessionId = SessionId(100);
const NOW: Nanos = Nanos::SECOND;
const WAITING: u64 = 10;
const ROOM: usize = 20_000;

struct World {
    engine: Engine,
    effects: Effects,
    capacity: Capacity,
}

impl World {
    fn new(policy: QueuePolicy) -> Self {
        let queue_policies = QueuePolicies { default: policy, ..QueuePolicies::default() };
        let options = EngineOptions { queue_policies, ..EngineOptions::new(StorePolicy::Always) };
        let mut engine = Engine::new(options);
        for session in 0..=BY.0 {
            engine.open_session(SessionId(session));
        }
        Self { engine, effects: Effects::default(), capacity: Capacity::UNBOUNDED }
    }

    /// The log has so much room for what is new, and [`ROOM`] for what settles.
    fn bound(&mut self, room_bytes: u64) {
        self.capacity = Capacity { room_bytes, settling_bytes: ROOM, ..Capacity::UNBOUNDED };
    }

    /// One call; the appended bytes are within the room of the log.
    fn call(&mut self, act: impl FnOnce(&mut Engine, Capacity, &mut Effects)) -> Vec<Output> {
        self.effects.clear();
        act(&mut self.engine, self.capacity, &mut self.effects);
        self.engine.check();
        let (appended, frames) = (self.effects.records.len(), self.effects.frames.len());
        let room = ROOM.max(usize::try_from(self.capacity.room_bytes).unwrap());
        assert!(appended <= room, "{appended} bytes in {frames} frames, of {room}");
        std::mem::take(&mut self.effects.outputs)
    }

    fn list(&mut self, by: SessionId, command: ListCommand) -> Vec<Output> {
        let command = Command::List(command);
        self.call(|engine, capacity, effects| engine.handle(NOW, by, command, capacity, effects))
    }

    fn push(&mut self, queue: &str, count: usize, bytes: usize) -> Reply {
        let elements = vec![vec![0; bytes].into(); count];
        let (queue, end, persistence) = (name(queue), End::Tail, Persistence::Persistent);
        let push = ListCommand::Push {
            queue,
            end,
            elements: model::OneOrMany::Many(elements),
            only_existing: false,
            persistence,
        };
        self.list(BY, push).remove(0).reply
    }

    fn pause(&mut self, duration: Nanos) -> Vec<Output> {
        let pause = Command::Pause { queue: name("l"), duration };
        self.call(|engine, capacity, effects| engine.handle(NOW, BY, pause, capacity, effects))
    }

    fn pop_first(&mut self, by: u64, max: u64) -> Vec<Output> {
        let (queues, end) = (vec![name("l")], End::Head);
        self.list(SessionId(by), ListCommand::PopFirst { queues, end, max, wait: None })
    }

    /// All that is due now, call by call; how many there were.
    fn go_on(&mut self, heard: &mut Vec<Output>) -> usize {
        let mut calls = 0;
        while self.engine.poll_timeout().is_some_and(|at| at <= NOW) {
            heard.extend(
                self.call(|engine, capacity, effects| {
                    engine.handle_timeout(NOW, capacity, effects)
                }),
            );
            calls += 1;
            assert!(calls <= 1_000, "each goes on");
        }
        calls
    }
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

fn who(heard: &[Output]) -> Vec<u64> {
    heard.iter().map(|output| output.session.0).collect()
}

/// Sends that go on by themselves append no more in one call than settlements may, but for the
/// first. A log that has room for the largest frame has none for others before it.
#[test]
fn blocked_sends_resume_call_by_call() {
    let bounds = QueueBounds { messages_max: Some(1), ..QueueBounds::default() };
    let mut world = World::new(QueuePolicy { bounds, ..QueuePolicy::default() });
    assert_eq!(world.push("q", 1, 1), Reply::Count(1));
    world.push("r", 1, 1);
    world.push("s", 1, 1);
    for (queue, bytes) in [("q", 5_000), ("r", 1_000_000), ("s", 10)] {
        assert!(matches!(world.push(queue, 1, bytes), Reply::Waits { .. }));
    }
    for queue in ["q", "r", "s"] {
        let (queue, end) = (name(queue), End::Head);
        world.list(BY, ListCommand::Pop { queue, end, max: 1 });
    }
    world.capacity.settling_bytes = ROOM;
    let mut calls = Vec::new();
    while world.engine.poll_timeout().is_some_and(|at| at <= NOW) {
        let heard =
            world.call(|engine, capacity, effects| engine.handle_timeout(NOW, capacity, effects));
        let (bytes, frames) = (world.effects.records.len(), world.effects.frames.len());
        assert!(bytes <= ROOM || frames == 1, "{bytes} bytes in {frames} frames");
        calls.push(heard.len());
    }
    assert_eq!(calls.iter().sum::<usize>(), 3, "{calls:?}");
    assert!(calls.len() > 1, "{calls:?}");
}

/// Each of them needed a frame of its own, which was held against all of the room.
#[test]
fn waiting_pops_go_call_by_call() {
    let mut world = World::new(QueuePolicy::default());
    world.push("l", 1_000 * WAITING as usize, 1);
    world.pause(Nanos::from_secs(1_000));
    for by in 0..WAITING {
        assert_eq!(world.pop_first(by, 1_000), []);
    }
    world.bound(0);
    let mut heard = world.pause(Nanos::ZERO).split_off(1);
    let at_once = heard.len();
    assert!((1..WAITING as usize).contains(&at_once), "{at_once} at once");
    assert!(world.go_on(&mut heard) > 1);
    assert_eq!(who(&heard), Vec::from_iter(0..WAITING), "in their order");
    for output in heard {
        assert!(matches!(&output.reply, Reply::Popped { elements, .. } if elements.len() == 1_000));
    }
}

/// Each move leaves as much room for the message's own record. A move that found no room was
/// refused, though all of it was there again for the next call.
#[test]
fn waiting_moves_go_call_by_call() {
    const MOVES: u64 = 100;
    let mut world = World::new(QueuePolicy::default());
    world.push("l", MOVES as usize, 1);
    world.pause(Nanos::from_secs(1_000));
    for by in 0..MOVES {
        let (from, to, wait) = (name("l"), name(&"m".repeat(255)), None);
        let (from_end, to_end) = (End::Head, End::Tail);
        let waits = ListCommand::Move { from, from_end, to, to_end, wait };
        assert_eq!(world.list(SessionId(by), waits), []);
    }
    world.bound(ROOM as u64);
    let mut heard = world.pause(Nanos::ZERO).split_off(1);
    world.go_on(&mut heard);
    assert_eq!(who(&heard), Vec::from_iter(0..MOVES));
    assert!(heard.iter().all(|output| matches!(output.reply, Reply::Elements(_))));
}

/// The deletions were a frame before the command, and not held against its room.
#[test]
fn confirmed_pops_count_against_push_room() {
    let pop_lease = Some(Nanos::from_secs(60));
    let mut world = World::new(QueuePolicy { pop_lease, ..QueuePolicy::default() });
    world.push("l", 1_000, 1);
    assert_eq!(world.pop_first(BY.0, 1_000).len(), 1);
    world.bound(30_000);
    assert_eq!(world.push("m", 1, 29_000), Reply::Refused(Refusal::StoreFull));
    assert_eq!(world.push("m", 1, 29_000), Reply::Count(1), "they are gone by now");
}

/// An element that replaces another is stored behind the other's deletion, in the same frame.
#[test]
fn replacement_leaves_room_for_deletion() {
    let mut world = World::new(QueuePolicy::default());
    world.push("l", 1, 1);
    let mut done = 0;
    for room in 25_000..25_100 {
        world.bound(room);
        let (queue, origin, at) = (name("l"), End::Head, 0);
        let (element, persistence) = (vec![0; 25_000].into(), Persistence::Persistent);
        let replace = ListCommand::Replace { queue, origin, at, element, persistence };
        done += usize::from(world.list(BY, replace)[0].reply == Reply::Done);
    }
    assert!((1..100).contains(&done), "{done}");
}
