//! Records that do not fit together are refused, with the reason. Records that fit are tested in
//! `tests/random.rs`.

use model::{Durability, Format, Nanos, StorePolicy};
use records::{MessageCounters, StoredState, encode};

use super::*;
use crate::{EngineOptions, QueuePolicies};

#[test]
fn change_of_unknown_message_needs_fuzziness() {
    let unknown = Err(RecordError::UnknownMessage(MessageId(7)));
    for record in [changed(7), deleted(7)] {
        let mut engine = empty();
        assert_eq!(engine.replay(Lsn(1), &bytes(&[record]), true), Ok(()));
        assert_eq!(engine.replay(Lsn(2), &bytes(&[record]), false), unknown);
    }
}

#[test]
fn record_after_fuzzy_one_is_replayed() {
    let mut engine = empty();
    let frame = bytes(&[deleted(7), message(8, b"body")]);
    assert_eq!(engine.replay(Lsn(1), &frame, true), Ok(()));
    assert_eq!(engine.finish_recovery(Lsn(1)), Ok(()));
    engine.check();
    assert_eq!(engine.live().collect::<Vec<_>>(), [(Lsn(1), size(&message(8, b"body")))]);
    assert_eq!(engine.last_lsn(), Lsn(1));
}

#[test]
fn frames_come_in_order() {
    let mut engine = empty();
    let frame = bytes(&[message(1, b"")]);
    assert_eq!(engine.replay(Lsn(5), &frame, false), Ok(()));
    assert_eq!(engine.replay(Lsn(5), &frame, false), Err(RecordError::OutOfOrder(Lsn(5))));
    assert_eq!(engine.finish_recovery(Lsn(4)), Err(RecordError::OutOfOrder(Lsn(4))));
}

#[test]
fn frames_and_snapshots_are_not_mistaken() {
    let sequence = RecordView::Sequence { next_message: 9, next_buried: 9, latest: Nanos(1) };
    for record in [sequence, located(1, 30)] {
        let misplaced = Err(RecordError::Misplaced(record.kind()));
        assert_eq!(empty().replay(Lsn(1), &bytes(&[record]), true), misplaced);
    }
    for record in [message(1, b""), changed(1), deleted(1)] {
        let misplaced = Err(RecordError::Misplaced(record.kind()));
        assert_eq!(empty().load(&bytes(&[record])), misplaced);
    }
}

#[test]
fn snapshot_holds_a_message_once() {
    let twice = bytes(&[located(1, 30), located(1, 30)]);
    assert_eq!(empty().load(&twice), Err(RecordError::DuplicateMessage(MessageId(1))));
}

#[test]
fn messages_need_their_own_body() {
    let record = message(1, b"body");
    let mut engine = empty();
    engine.load(&bytes(&[located(1, size(&record) as u32)])).unwrap();
    let missing = Err(RecordError::MissingBody(MessageId(1)));
    assert_eq!(engine.finish_recovery(Lsn(20)), missing);
    assert_eq!(engine.restore_body(Lsn(11), &bytes(&[record])), Ok(()));
    assert_eq!(engine.finish_recovery(Lsn(20)), missing, "it was another frame");
    let other = bytes(&[message(1, b"longer body")]);
    let wrong = Err(RecordError::WrongBody(MessageId(1)));
    assert_eq!(engine.restore_body(Lsn(12), &other), wrong);
    assert_eq!(engine.restore_body(Lsn(12), &bytes(&[deleted(1), record])), Ok(()));
    assert_eq!(engine.finish_recovery(Lsn(20)), Ok(()));
    engine.check();
    assert_eq!(**engine.store.message(MessageId(1)).body().here().unwrap(), *b"body");
}

#[test]
fn deleted_message_needs_no_body() {
    let mut engine = empty();
    engine.load(&bytes(&[located(1, 30)])).unwrap();
    engine.replay(Lsn(20), &bytes(&[deleted(1)]), false).unwrap();
    assert_eq!(engine.finish_recovery(Lsn(20)), Ok(()));
    engine.check();
    assert_eq!(engine.store.queues.count(), 0, "nothing is in the queue");
}

#[test]
fn place_is_taken_once() {
    let buried = Standing { state: StoredState::Buried { order: 3 }, ..standing(1) };
    let first = RecordView::Changed { message: MessageId(1), standing: buried, moved: None };
    let second = Standing { order: 2, ..buried };
    let second = RecordView::Changed { message: MessageId(2), standing: second, moved: None };
    let frame = bytes(&[message(1, b""), message(2, b""), first, second]);
    assert_eq!(empty().replay(Lsn(1), &frame, false), Err(RecordError::DuplicateOrder(3)));

    let reordered = Standing { order: 1, ..standing(2) };
    let second = RecordView::Changed { message: MessageId(2), standing: reordered, moved: None };
    let frame = bytes(&[message(1, b""), message(2, b""), second]);
    assert_eq!(empty().replay(Lsn(1), &frame, false), Err(RecordError::DuplicateOrder(1)));

    let first = Standing { order: 2, ..standing(1) };
    let first = RecordView::Changed { message: MessageId(1), standing: first, moved: None };
    let second = Standing { order: 3, ..standing(2) };
    let second = StoredEnvelope { standing: second, ..envelope(2) };
    let second = RecordView::Message { envelope: second, body: b"" };
    let frame = bytes(&[message(1, b""), first, second]);
    assert_eq!(empty().replay(Lsn(1), &frame, false), Err(RecordError::DuplicateOrder(2)));
}

fn empty() -> Engine {
    let queue_policies = QueuePolicies::default();
    Engine::new(EngineOptions { queue_policies, ..EngineOptions::new(StorePolicy::Always) })
}

fn bytes(records: &[RecordView<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    records.iter().for_each(|record| encode(record, &mut bytes));
    bytes
}

fn size(record: &RecordView<'_>) -> u64 {
    bytes(&[*record]).len() as u64
}

fn message(number: u64, body: &[u8]) -> RecordView<'_> {
    RecordView::Message { envelope: envelope(number), body }
}

fn located(number: u64, record_bytes: u32) -> RecordView<'static> {
    RecordView::Located { envelope: envelope(number), location: Lsn(12), record_bytes }
}

fn changed(number: u64) -> RecordView<'static> {
    RecordView::Changed { message: MessageId(number), standing: standing(number), moved: None }
}

fn deleted(number: u64) -> RecordView<'static> {
    RecordView::Deleted { message: MessageId(number) }
}

fn envelope(number: u64) -> StoredEnvelope<'static> {
    StoredEnvelope {
        message: MessageId(number),
        place: Place::Queue("mail"),
        format: Format::RAW,
        group: 0,
        sender: 0,
        durability: Durability::Synced,
        created: Nanos(5),
        lease: Nanos::from_secs(60),
        standing: standing(number),
    }
}

fn standing(number: u64) -> Standing<'static> {
    Standing {
        priority: 1,
        delay: Nanos::ZERO,
        state: StoredState::Ready,
        order: number as i64,
        counters: MessageCounters::default(),
        expires: None,
        dead: None,
    }
}
