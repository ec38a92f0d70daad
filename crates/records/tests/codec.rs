//! Records come back, have the bytes of the tables, and any bytes are taken or refused.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use engine::{Engine, EngineOptions, QueuePolicies};
use model::{
    CollectionKind, DeadLetters, Durability, Format, Lsn, MessageId, Nanos, OwnPolicy, QueueRule,
    ReleaseOrder, RuleKey, StorePolicy, Thousandths, WhenFull, limits,
};
use records::{
    CHANGED_BYTES_MAX, CollectionView, DeadView, DeadlineView, ExpiredList, FieldsDraft,
    MessageCounters, OwnPolicyView, Place, RecordError, RecordView, Records, SendIdView, Standing,
    StoredEnvelope, StoredState, ValueView, describe, encode,
};
use testkit::Rng;

#[test]
fn record_kinds_round_trip() {
    for record in samples() {
        let mut bytes = Vec::new();
        encode(&record, &mut bytes);
        let decoded: Vec<_> = Records::new(&bytes).collect();
        assert_eq!(decoded, [Ok((record, bytes.len()))]);
    }
}

#[test]
fn record_cut_short_is_refused() {
    for record in samples() {
        let mut bytes = Vec::new();
        encode(&record, &mut bytes);
        for length in 1..bytes.len() {
            let decoded: Vec<_> = describe(&bytes[..length]).collect();
            assert_eq!(decoded, [Err(RecordError::Truncated)], "{record:?} cut to {length}");
        }
    }
}

#[test]
fn small_put_is_compact() {
    let mut bytes = Vec::new();
    let standing =
        Standing { counters: MessageCounters::default(), ..standing(StoredState::Ready, 1000) };
    let envelope =
        StoredEnvelope { message: MessageId(1000), standing, ..envelope("default", standing) };
    encode(&RecordView::Message { envelope, body: &[b'x'; 100] }, &mut bytes);
    assert_eq!(bytes.len(), 130);
}

#[test]
fn bytes_are_as_the_table_says() {
    let standing = Standing {
        priority: 300,
        delay: Nanos(1),
        state: StoredState::Delayed { until: Nanos(0x0102) },
        order: 9,
        counters: MessageCounters {
            delivered: 1,
            expired: 2,
            released: 3,
            buried: 4,
            kicked: 5,
            failed: 0,
        },
        expires: None,
        dead: None,
    };
    let envelope = StoredEnvelope {
        message: MessageId(7),
        place: Place::Queue("q"),
        format: Format::RAW,
        group: 0,
        sender: 0,
        durability: Durability::Synced,
        created: Nanos(0x0304),
        lease: Nanos(128),
        standing,
    };
    let mut bytes = Vec::new();
    encode(&RecordView::Message { envelope, body: b"hi" }, &mut bytes);
    let expected = [
        1, 0b11_1001, 7, 0xac, 2, 1, 2, 1, 0, 0, 0, 0, 0, 0, 9, 1, 2, 3, 4, 5, 4, 3, 0, 0, 0, 0, 0,
        0, 0x80, 1, 1, b'q', 2, b'h', b'i',
    ];
    assert_eq!(bytes, expected);
}

#[test]
fn keys_are_as_the_table_says() {
    let of = |record: RecordView<'_>| {
        let mut bytes = Vec::new();
        encode(&record, &mut bytes);
        bytes
    };
    let value = ValueView { name: "k", bytes: b"hi", at: Some(Nanos(0x0102)) };
    let expected = [11, 1, 1, b'k', 2, b'h', b'i', 2, 1, 0, 0, 0, 0, 0, 0];
    assert_eq!(of(RecordView::ValueSet(value)), expected);
    assert_eq!(of(RecordView::ValueDeleted { name: "k" }), [12, 1, b'k']);
    let expected = [
        13, 5, 4, b'm', b'a', b'i', b'l', 5, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0xac, 2,
        2,
    ];
    assert_eq!(of(deadline(false, Some(5), Some(4))), expected);
}

#[test]
fn collections_are_as_the_table_says() {
    let of = |record: RecordView<'_>| {
        let mut bytes = Vec::new();
        encode(&record, &mut bytes);
        bytes
    };
    let (kind, at) = (CollectionKind::SortedSet, Some(Nanos(0x0102)));
    let view = CollectionView { name: "k", kind, number: 300, at };
    let expected = [14, 0b111, 1, b'k', 0xac, 2, 2, 1, 0, 0, 0, 0, 0, 0];
    assert_eq!(of(RecordView::Collection(view)), expected);
    let view = CollectionView { kind: CollectionKind::Hash, at: None, ..view };
    assert_eq!(of(RecordView::Collection(view)), [14, 0b10, 1, b'k', 0xac, 2]);
    let mut draft = FieldsDraft::new(300);
    draft.push_with([b"f", b"g"], b"hi");
    draft.push_with([b"", b""], b"");
    let expected = [15, 0xac, 2, 2, 2, b'f', b'g', 2, b'h', b'i', 0, 0];
    assert_eq!(of(RecordView::FieldsSet(draft.set())), expected);
    assert!(expected.len() <= draft.record_bytes_max());
    let all: Vec<_> = draft.set().iter().collect();
    assert_eq!(all, [(&b"fg"[..], &b"hi"[..]), (b"", b"")]);
    let mut draft = FieldsDraft::new(300);
    draft.push([b"f", b""]);
    assert_eq!(of(RecordView::FieldsGone(draft.gone())), [16, 0xac, 2, 1, 1, b'f']);
    assert_eq!(of(RecordView::Collections { next: 300 }), [17, 0xac, 2]);
}

#[test]
fn negative_order_encodes_as_distance() {
    let changed = RecordView::Changed {
        message: MessageId(7),
        standing: Standing {
            counters: MessageCounters::default(),
            ..standing(StoredState::Ready, -300)
        },
        moved: None,
    };
    let mut bytes = Vec::new();
    encode(&changed, &mut bytes);
    assert_eq!(bytes, [2, 0b1001_0000, 7, 0xac, 2, 1, 0xac, 2]);
    assert_eq!(describe(&bytes).collect::<Vec<_>>(), [Ok(changed)]);
    assert!(changed.to_string().contains("order=-300"), "{changed}");
}

#[test]
fn extension_names_one_target() {
    let change = |extension: &[u8]| [&[2, 0b0100_0000, 7, 0, 0][..], extension].concat();
    let moved = change(&[0b0100_0000, 9]);
    let RecordView::Changed { moved, .. } = describe(&moved).next().unwrap().unwrap() else {
        panic!("it is a change");
    };
    assert_eq!(moved, subscription(9));
    for wrong in [&[0b0100_1000, 1, b'q', 9][..], &[0b1000_0000, 9], &[0b1000_0001, 3, 9], &[0]] {
        let bytes = change(wrong);
        let decoded: Vec<_> = describe(&bytes).collect();
        assert_eq!(decoded, [Err(RecordError::Invalid("extension"))], "{wrong:?}");
    }
}

#[test]
fn largest_change_fits_its_bound() {
    let (name, largest) = ("q".repeat(limits::QUEUE_NAME_BYTES_MAX), (1 << 62) - 1);
    let all = u32::MAX;
    let reason = model::DeadReason::Attempts;
    let dead = DeadView {
        reason,
        from: &name,
        subscription: Some(largest),
        at: Nanos::MAX,
        attempts: all,
    };
    let standing = Standing {
        priority: all,
        delay: Nanos::MAX,
        state: StoredState::Buried { order: largest },
        order: -(largest as i64),
        counters: MessageCounters {
            delivered: all,
            expired: all,
            released: all,
            buried: all,
            kicked: all,
            failed: all,
        },
        expires: Some(Nanos::MAX),
        dead: Some(dead),
    };
    for moved in [queue(&name), subscription(largest)] {
        let mut bytes = Vec::new();
        encode(&RecordView::Changed { message: MessageId(largest), standing, moved }, &mut bytes);
        assert!(bytes.len() <= CHANGED_BYTES_MAX, "{} for {moved:?}", bytes.len());
    }
}

#[test]
fn send_id_records_match_the_format() {
    let mut bytes = Vec::new();
    encode(&RecordView::SendId(send_id(true)), &mut bytes);
    let expected = b"\x14\x01\x04mail\x04once\xc8\x01\x03\x02\x01\0\0\0\0\0\0";
    assert_eq!(bytes, expected);
    bytes.clear();
    let fingerprint = Some(0x0304);
    encode(&RecordView::SendId(SendIdView { fingerprint, ..send_id(true) }), &mut bytes);
    assert_eq!(bytes, [b"\x14\x03", &expected[2..], b"\x04\x03\0\0\0\0\0\0"].concat());
    let longest = "x".repeat(255);
    let message = MessageId((1 << 62) - 1);
    let largest = SendIdView {
        to: &longest,
        id: &longest,
        message,
        copies: u32::MAX,
        fingerprint,
        ..send_id(false)
    };
    bytes.clear();
    encode(&RecordView::SendId(largest), &mut bytes);
    assert_eq!(bytes.len(), 2 * longest.len() + SendIdView::FIXED_BYTES_MAX);
    let too_long = "x".repeat(256);
    bytes.clear();
    encode(&RecordView::SendId(SendIdView { id: &too_long, ..send_id(false) }), &mut bytes);
    let decoded: Vec<_> = describe(&bytes).collect();
    assert_eq!(decoded, [Err(RecordError::Invalid("deduplication id"))]);
}

#[test]
fn own_policy_records_match_the_format() {
    let mut bytes = Vec::new();
    encode(&samples()[19], &mut bytes);
    assert_eq!(bytes, b"\x15\x04mail\x90\x01\xac\x02\x00");
    assert_eq!(
        samples()[19].to_string(),
        "own_policy name=\"mail\" max-messages=\"300\" \
                target-age=\"none\""
    );
    bytes.clear();
    encode(&own_policy(&[]), &mut bytes);
    assert_eq!(bytes, b"\x15\x04mail\x00");
}

/// Any rules, with values drawn at random, small ones and large ones.
#[test]
fn own_policies_round_trip() {
    let mut rng = Rng::new(1);
    let mut next = || {
        let random = rng.draw();
        (random >> 1) >> (random >> 58)
    };
    for _ in 0..20_000 {
        let given = next();
        let above_zero = |number: u64| (number > 0).then_some(number);
        let rules = [
            QueueRule::ReleaseOrder([ReleaseOrder::Front, ReleaseOrder::Back][next() as usize % 2]),
            QueueRule::MaxDeliveryAttempts(next() as u32),
            QueueRule::DeadLetters(
                [DeadLetters::Park, DeadLetters::Drop, DeadLetters::ParkPersistent]
                    [next() as usize % 3],
            ),
            QueueRule::PopLease(above_zero(next()).map(Nanos)),
            QueueRule::MessagesMax(above_zero(next())),
            QueueRule::BytesMax(above_zero(next())),
            QueueRule::WhenFull(ALL_WHEN_FULL[next() as usize % ALL_WHEN_FULL.len()]),
            QueueRule::TargetAge(above_zero(next()).map(Nanos)),
            QueueRule::RedeliveryDelay(above_zero(next()).map(Nanos)),
            QueueRule::RedeliveryFactor(Thousandths(1_000 + (next() % 999_001) as u32)),
            QueueRule::RedeliveryMax(above_zero(next()).map(Nanos)),
            QueueRule::RedeliveryJitter(Thousandths((next() % 1_001) as u32)),
        ];
        assert_eq!(rules.len(), RuleKey::ALL.len());
        let some = rules.iter().enumerate().filter(|(at, _)| given & (1 << at) != 0);
        let some: Vec<_> = some.map(|(_, rule)| *rule).collect();
        let record = own_policy(&some);
        let mut bytes = Vec::new();
        encode(&record, &mut bytes);
        let decoded: Vec<_> = Records::new(&bytes).collect();
        assert_eq!(decoded, [Ok((record, bytes.len()))]);
    }
}

const ALL_WHEN_FULL: [WhenFull; 5] = [
    WhenFull::Block,
    WhenFull::Reject,
    WhenFull::DropOldest,
    WhenFull::DeadLetter,
    WhenFull::Disconnect,
];

#[test]
fn fields_that_cannot_be_are_refused() {
    let cases: [(&[u8], RecordError); 30] = [
        (&[0], RecordError::UnknownKind(0)),
        (&[18], RecordError::UnknownKind(18)),
        (&[14, 0, 1, b'k', 1], RecordError::Invalid("flags")),
        (&[14, 0b1010, 1, b'k', 1], RecordError::Invalid("flags")),
        (&[14, 0b10, 1, b'k', 0], RecordError::Invalid("number")),
        (&[15, 1, 0], RecordError::Invalid("count")),
        (&[16, 0, 1, 1, b'f'], RecordError::Invalid("number")),
        (&[16, 1, 2, 1, b'f'], RecordError::Truncated),
        (&[21, 1, b'q', 1, 2], RecordError::Invalid("release-order")),
        (&[21, 1, b'q', 4, 3], RecordError::Invalid("dead-letters")),
        (&[21, 1, b'q', 64, 5], RecordError::Invalid("when-full")),
        (&[21, 1, b'q', 0x80, 0x20], RecordError::Invalid("rules")),
        (&[21, 1, b'q', 0x80, 4, 0xe7, 7], RecordError::Invalid("redelivery-factor")),
        (&[21, 1, b'q', 0x80, 4, 0xc1, 0x84, 0x3d], RecordError::Invalid("redelivery-factor")),
        (&[21, 1, b'q', 0x80, 0x10, 0xe9, 7], RecordError::Invalid("redelivery-jitter")),
        (&[10, 2, 1], RecordError::Invalid("more")),
        (&[3, 0], RecordError::Invalid("number")),
        (
            &[3, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40],
            RecordError::Invalid("number"),
        ),
        (&[2, 0b1000_0000, 1, 0, 0], RecordError::Invalid("flags")),
        (&[2, 0b1001_0000, 1, 0, 0, 0], RecordError::Invalid("number")),
        (&[2, 0b0011, 1, 0, 0], RecordError::Invalid("state")),
        (&[2, 0b0100, 1, 0, 0], RecordError::Invalid("durability")),
        (&[1, 0b1100, 1, 0, 0], RecordError::Invalid("durability")),
        (&[1, 0b0000, 1, 0, 0], RecordError::Invalid("durability")),
        (&[11, 0b10, 1, b'k', 0], RecordError::Invalid("flags")),
        (&[20, 4, 1, b'q', 1, b'i', 1, 1], RecordError::Invalid("flags")),
        (&[20, 0, 1, b'q', 1, 0xff, 1, 1], RecordError::Invalid("deduplication id")),
        (&[20, 0, 1, b'q', 1, b'i', 0, 1], RecordError::Invalid("number")),
        (&[13, 0b1000, 1, b'k'], RecordError::Invalid("flags")),
        (&[13, 0b110, 1, b'k', 0, 0, 0, 0, 0, 0, 0, 0], RecordError::Invalid("flags")),
    ];
    for (bytes, expected) in cases {
        assert_eq!(describe(bytes).collect::<Vec<_>>(), [Err(expected)], "{bytes:?}");
    }
    let not_text = [1, 0b0100, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0];
    let decoded: Vec<_> = describe(&not_text).collect();
    assert_eq!(decoded, [Err(RecordError::Invalid("queue name"))]);
}

#[test]
fn records_read_well() {
    let shown: Vec<_> = samples().iter().map(|record| record.to_string()).collect();
    let standing = "priority=300 delay_ns=1 state=\"buried\" buried_order=4 order=9 delivered=1 \
                    expired=0 released=2 buried=3 kicked=0 failed=0";
    let envelope = "durability=\"synced\" created_ns=5 lease_ns=60000000000 queue=\"mail\"";
    assert_eq!(shown[0], format!("message message=7 {standing} {envelope} body=3:\"a\\nb\""));
    assert_eq!(shown[1], format!("changed message=7 {standing}"));
    assert_eq!(shown[2], "deleted message=7");
    assert_eq!(shown[3], "sequence next_message=8 next_buried=5 latest_ns=6");
    let place = "location=12 record_bytes=90";
    assert_eq!(shown[4], format!("located message=7 {standing} {envelope} {place}"));
    let dead = "expires_ns=88 dead_reason=\"attempts\" dead_from=\"orders\" \
                dead_from_subscription=300 dead_at_ns=77 dead_attempts=10";
    assert!(shown[5].contains(&format!("failed=300 {dead} durability")), "{}", shown[5]);
    assert!(shown[5].contains("subscription=3 format=2 group=6 body"), "{}", shown[5]);
    assert_eq!(shown[10], "value_set name=\"k\" value=0:\"\" at_ns=258");
    assert_eq!(
        shown[12],
        "key_deadline name=\"mail\" of_value=0 at_ns=5 over_ns=4 below=300 above=-2"
    );
    assert!(shown[6].ends_with(&format!("failed=300 {dead} moved=\"DLQ\"")), "{}", shown[6]);
    assert!(shown[7].ends_with(&format!("{dead} moved_to_subscription=9")), "{}", shown[7]);
}

/// Damage that a checksum missed, or a foreign file, must be refused, not crash the server.
#[test]
fn arbitrary_bytes_are_taken_or_refused() {
    let mut rng = Rng::new(1);
    let (mut taken, mut refused) = (0, 0);
    for round in 0..20_000 {
        let (mut chunk, mut frame) = (Vec::new(), Vec::new());
        for number in 1..=4 {
            let [message, changed, deleted, sequence, located] = samples_of(number);
            encode(if number == 1 { &sequence } else { &located }, &mut chunk);
            encode(if number == 2 { &deleted } else { &changed }, &mut frame);
            encode(&message, &mut frame);
        }
        for record in [own_policy(&all_rules()), own_policy(&[QueueRule::BytesMax(Some(9))])] {
            encode(&record, &mut frame);
            encode(&record, &mut chunk);
        }
        for record in key_samples() {
            encode(&record, &mut frame);
            if !matches!(record, RecordView::ValueDeleted { .. } | RecordView::FieldsGone(_)) {
                encode(&record, &mut chunk);
            }
        }
        for _ in 0..round % 4 {
            for bytes in [&mut chunk, &mut frame] {
                let place = rng.index(bytes.len());
                bytes[place] = rng.draw() as u8;
            }
        }
        match recover(&chunk, &frame) {
            Ok(engine) => {
                engine.check();
                taken += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(taken > 6_000 && refused > 5_000, "{taken} taken, {refused} refused");
}

/// Keys in the queue of the other records, and beside it.
fn key_samples() -> [RecordView<'static>; 9] {
    let value = ValueView { name: "k", bytes: b"value", at: Some(Nanos(300)) };
    [
        RecordView::ValueSet(value),
        deadline(false, Some(200), Some(100)),
        RecordView::ValueSet(ValueView { name: "mail", bytes: b"", at: None }),
        RecordView::ValueDeleted { name: "mail" },
        RecordView::FieldsSet(fields().set()),
        collection(CollectionKind::Hash, None),
        RecordView::FieldsSet(members().set()),
        RecordView::Collection(CollectionView {
            name: "z",
            kind: CollectionKind::SortedSet,
            number: 8,
            at: None,
        }),
        RecordView::FieldsGone(gone().gone()),
    ]
}

fn collection(kind: CollectionKind, at: Option<Nanos>) -> RecordView<'static> {
    RecordView::Collection(CollectionView { name: "hash", kind, number: 7, at })
}

/// Fields that live as long as the test.
fn fields() -> &'static FieldsDraft {
    let mut draft = FieldsDraft::new(7);
    draft.push_with([b"field", b""], b"value");
    draft.push_with([b"", b"other"], b"longer");
    Box::leak(Box::new(draft))
}

fn members() -> &'static FieldsDraft {
    let mut draft = FieldsDraft::new(8);
    draft.push_with([b"member", b""], &1.5_f64.to_be_bytes());
    Box::leak(Box::new(draft))
}

fn gone() -> &'static FieldsDraft {
    let mut draft = FieldsDraft::new(7);
    draft.push([b"field", b""]);
    Box::leak(Box::new(draft))
}

fn recover(chunk: &[u8], frame: &[u8]) -> Result<Engine, RecordError> {
    let queue_policies = QueuePolicies::default();
    let mut engine =
        Engine::new(EngineOptions { queue_policies, ..EngineOptions::new(StorePolicy::Always) });
    engine.load(chunk)?;
    engine.replay(Lsn(13), frame, true)?;
    engine.restore_body(Lsn(12), frame)?;
    engine.finish_recovery(Lsn(13))?;
    Ok(engine)
}

fn samples_of(number: u64) -> [RecordView<'static>; 5] {
    let state = StoredState::Buried { order: 10 + number };
    let standing = standing(state, 20 + number as i64);
    let message = MessageId(number);
    let envelope = StoredEnvelope { message, ..envelope("mail", standing) };
    [
        RecordView::Message { envelope, body: b"body" },
        RecordView::Changed { message, standing, moved: None },
        RecordView::Deleted { message },
        RecordView::Sequence { next_message: 8, next_buried: 5, latest: Nanos(6) },
        RecordView::Located { envelope, location: Lsn(12), record_bytes: 90 },
    ]
}

fn samples() -> Vec<RecordView<'static>> {
    let standing = standing(StoredState::Buried { order: 4 }, 9);
    let envelope = envelope("mail", standing);
    let dead = dead_standing();
    let extended = extended_envelope();
    vec![
        RecordView::Message { envelope, body: b"a\nb" },
        RecordView::Changed { message: MessageId(7), standing, moved: None },
        RecordView::Deleted { message: MessageId(7) },
        RecordView::Sequence { next_message: 8, next_buried: 5, latest: Nanos(6) },
        RecordView::Located { envelope, location: Lsn(12), record_bytes: 90 },
        RecordView::Message { envelope: extended, body: b"body" },
        RecordView::Changed { message: MessageId(7), standing: dead, moved: queue("DLQ") },
        RecordView::Changed { message: MessageId(7), standing: dead, moved: subscription(9) },
        RecordView::Chained { first: Lsn(300), more: true },
        RecordView::ValueSet(ValueView { name: "k", bytes: b"v", at: None }),
        RecordView::ValueSet(ValueView { name: "k", bytes: b"", at: Some(Nanos(0x0102)) }),
        RecordView::ValueDeleted { name: "k" },
        deadline(false, Some(5), Some(4)),
        deadline(false, None, Some(4)),
        deadline(true, Some(5), None),
        deadline(true, None, None),
        RecordView::SendId(send_id(false)),
        RecordView::SendId(send_id(true)),
        own_policy(&[]),
        own_policy(&[QueueRule::MessagesMax(Some(300)), QueueRule::TargetAge(None)]),
        own_policy(&all_rules()),
        RecordView::SendId(SendIdView { fingerprint: Some(u64::MAX), ..send_id(false) }),
        collection(CollectionKind::Hash, None),
        collection(CollectionKind::Set, Some(Nanos(5))),
        collection(CollectionKind::Stream, None),
        RecordView::FieldsSet(fields().set()),
        RecordView::FieldsGone(gone().gone()),
        RecordView::Collections { next: 9 },
    ]
}

const fn queue(name: &str) -> Option<Place<'_>> {
    Some(Place::Queue(name))
}

const fn subscription(number: u64) -> Option<Place<'static>> {
    Some(Place::Subscription(number))
}

fn send_id(to_topic: bool) -> SendIdView<'static> {
    let (message, at) = (MessageId(200), Nanos(0x0102));
    SendIdView { to_topic, to: "mail", id: "once", message, copies: 3, at, fingerprint: None }
}

fn own_policy(rules: &[QueueRule]) -> RecordView<'static> {
    let mut own = OwnPolicy::default();
    rules.iter().for_each(|rule| own.set(*rule));
    RecordView::OwnPolicy(OwnPolicyView { name: "mail", own })
}

fn all_rules() -> [QueueRule; 8] {
    [
        QueueRule::ReleaseOrder(ReleaseOrder::Back),
        QueueRule::MaxDeliveryAttempts(u32::MAX),
        QueueRule::DeadLetters(DeadLetters::Drop),
        QueueRule::PopLease(Some(Nanos(u64::MAX))),
        QueueRule::MessagesMax(Some(u64::MAX)),
        QueueRule::BytesMax(Some(1)),
        QueueRule::WhenFull(WhenFull::DeadLetter),
        QueueRule::TargetAge(Some(Nanos(1))),
    ]
}

fn deadline(of_value: bool, at: Option<u64>, over: Option<u64>) -> RecordView<'static> {
    let over = over.map(|at| ExpiredList { at: Nanos(at), below: 300, above: -2 });
    let at = at.map(Nanos);
    RecordView::KeyDeadline(DeadlineView { name: "mail", of_value, at, over })
}

/// All that may be in an envelope's extension.
fn extended_envelope() -> StoredEnvelope<'static> {
    let place = Place::Subscription(3);
    StoredEnvelope { place, format: Format(2), group: 6, ..envelope("", dead_standing()) }
}

fn dead_standing() -> Standing<'static> {
    let (from, at) = ("orders", Nanos(77));
    let reason = model::DeadReason::Attempts;
    let dead = DeadView { reason, from, subscription: Some(300), at, attempts: 10 };
    let counters = MessageCounters { failed: 300, ..MessageCounters::default() };
    let ready = standing(StoredState::Ready, 7);
    Standing { counters, expires: Some(Nanos(88)), dead: Some(dead), ..ready }
}

fn standing(state: StoredState, order: i64) -> Standing<'static> {
    let counters =
        MessageCounters { delivered: 1, released: 2, buried: 3, ..MessageCounters::default() };
    Standing { priority: 300, delay: Nanos(1), state, order, counters, expires: None, dead: None }
}

fn envelope(queue: &'static str, standing: Standing<'static>) -> StoredEnvelope<'static> {
    StoredEnvelope {
        message: MessageId(7),
        place: Place::Queue(queue),
        format: Format::RAW,
        group: 0,
        sender: 0,
        durability: Durability::Synced,
        created: Nanos(5),
        lease: Nanos::from_secs(60),
        standing,
    }
}
