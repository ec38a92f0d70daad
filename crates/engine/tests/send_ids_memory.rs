//! Remembered names of senders cost memory for each, as the operating system sees it. Alone in its
//! process, so that nothing else is measured.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a broken test may panic")]

use engine::{Effects, Engine, EngineOptions};
use model::{
    Capacity, Command, Destination, MessageId, Nanos, NewMessage, QueueName, SessionId, StorePolicy,
};
use testkit::resident_bytes;

const NAMES: u64 = 300_000;
const BYTES_EACH_MAX: u64 = 436;

#[test]
fn names_of_36_bytes_fit() {
    let options =
        EngineOptions { dedup_max_ids: NAMES as usize, ..EngineOptions::new(StorePolicy::Always) };
    let mut engine = Engine::new(options);
    let mut effects = Effects::default();
    let session = SessionId(1);
    engine.open_session(session);
    let to = Destination::Queue(QueueName::new("default").unwrap());
    let before = resident_bytes();
    // Twice as many as are remembered.
    for number in 1..=2 * NAMES {
        let send_id = Some(format!("{number:036}").into());
        let message = NewMessage { send_id, ..NewMessage::new((*b"x").into()) };
        let put = Command::PutTo { to: to.clone(), message, transaction: None };
        engine.handle(Nanos(number), session, put, Capacity::UNBOUNDED, &mut effects);
        let message = MessageId(number);
        engine.handle(
            Nanos(number),
            session,
            Command::Delete { message },
            Capacity::UNBOUNDED,
            &mut effects,
        );
        effects.clear();
    }
    let each = (resident_bytes() - before) / NAMES;
    assert_eq!(engine.statistics().messages_total, 2 * NAMES);
    assert!((100..=BYTES_EACH_MAX).contains(&each), "{each} bytes a name");
}
