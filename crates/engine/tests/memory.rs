//! The whole cost of a ready message, as the operating system sees it. Alone in its process, so
//! that nothing else is measured.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a broken test may panic")]

use engine::{Effects, Engine, EngineOptions, QueuePolicies};
use model::{
    Capacity, Command, Destination, LinkId, Nanos, NewMessage, QueueName, SessionId, StorePolicy,
};
use testkit::resident_bytes;

const MESSAGES: u64 = 1_000_000;
/// The most bytes of memory for each message. Of these, 8 are for the line of bodies that may
/// leave memory.
const BYTES_EACH_MAX: u64 = 250;

#[test]
fn million_small_ready_messages_fit() {
    let queue_policies = QueuePolicies::default();
    let mut engine =
        Engine::new(EngineOptions { queue_policies, ..EngineOptions::new(StorePolicy::Always) });
    let mut effects = Effects::default();
    let (session, link) = (SessionId(1), LinkId(0));
    engine.open_session(session);
    let queue = QueueName::new("default").unwrap();
    engine.handle(
        Nanos(1),
        session,
        Command::OpenProducer { link, to: Destination::Queue(queue) },
        Capacity::UNBOUNDED,
        &mut effects,
    );
    let before = resident_bytes();
    for number in 0..MESSAGES {
        let message = NewMessage {
            priority: 1024,
            delay: Nanos::ZERO,
            lease: Nanos::from_secs(60),
            ..NewMessage::new(vec![b'x'; 100].into())
        };
        engine.handle(
            Nanos(number),
            session,
            Command::Put { link, message, transaction: None },
            Capacity::UNBOUNDED,
            &mut effects,
        );
        effects.clear();
    }
    let each = (resident_bytes() - before) / MESSAGES;
    assert_eq!(engine.statistics().ready, MESSAGES);
    assert!((200..=BYTES_EACH_MAX).contains(&each), "{each} bytes a message");
}
