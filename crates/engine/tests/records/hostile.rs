//! Checks that must hold of a recovery with any records of a log and a snapshot: run by the fuzzer
//! in `fuzz/`, and by a test.
//!
//! Checksums keep damaged records away from it. They do not keep away records that a defect wrote,
//! in this version or in another, nor records of an edited log.

use engine::{Effects, Engine, EngineOptions, describe};
use model::{
    Capacity, Command, Destination, LinkId, Lsn, MessageId, Nanos, NewMessage, Peek, QueueName,
    Reply, SessionId, StorePolicy, limits,
};

/// A chunk of a snapshot.
pub(crate) const LOAD: u8 = 0;
/// A frame behind the snapshot's begin.
pub(crate) const REPLAY: u8 = 1;
/// A frame before it.
pub(crate) const RESTORE: u8 = 2;
/// The snapshot may hold that frame's effect.
pub(crate) const FUZZY: u8 = 4;
/// The position of a frame to restore is in the bits from here.
pub(crate) const LSN_SHIFT: u8 = 3;

/// The first byte is the snapshot's begin. Then come pieces, each behind its kind and its length.
/// Those that come too late are taken for one of the last kind that came. Gives whether an engine
/// came of them.
pub(crate) fn recovery(input: &[u8]) -> bool {
    let Some((&begin, mut rest)) = input.split_first() else { return false };
    let mut pieces = Vec::new();
    while let Some(piece) = piece(&mut rest) {
        pieces.push(piece);
    }
    let Some((engine, last)) = recovered(Lsn((begin & 31).into()), &pieces) else {
        return false;
    };
    engine.check();
    come_again(&engine, last, &pieces, Lsn((begin & 31).into()));
    if engine.latest_time() < LATEST_MAX {
        go_on(engine);
    }
    true
}

/// Shows the records, and makes an engine of them, unless it refuses.
fn recovered(begin: Lsn, pieces: &[(u8, &[u8])]) -> Option<(Engine, Lsn)> {
    let mut engine = Engine::new(EngineOptions::new(StorePolicy::Always));
    let (mut stage, mut last) = (LOAD, begin);
    for (how, payload) in pieces {
        show(payload);
        stage = stage.max(how & 3);
        let taken = match stage {
            LOAD => engine.load(payload),
            REPLAY => {
                last = last.next();
                engine.replay(last, payload, how & FUZZY != 0)
            }
            _ => engine.restore_body(before(begin, *how), payload),
        };
        taken.ok()?;
    }
    engine.finish_recovery(last).ok()?;
    Some((engine, last))
}

fn piece<'a>(rest: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&[how, length], bytes) = rest.split_first_chunk()?;
    let (payload, bytes) = bytes.split_at(usize::from(length).min(bytes.len()));
    *rest = bytes;
    Some((how, payload))
}

/// The position of a frame to restore: not behind the begin.
fn before(begin: Lsn, how: u8) -> Lsn {
    begin.min(Lsn(u64::from(how >> LSN_SHIFT)))
}

fn show(payload: &[u8]) {
    for record in describe(payload) {
        match record {
            Ok(record) => assert!(!format!("{record:?}").is_empty()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// A snapshot of it is one of which the same comes again.
fn come_again(engine: &Engine, last: Lsn, pieces: &[(u8, &[u8])], begin: Lsn) {
    let mut cursor = engine.snapshot_begin();
    cursor.chunk_messages_max = 2;
    let mut again = Engine::new(EngineOptions::new(StorePolicy::Always));
    let mut snapshot = Vec::new();
    loop {
        let mut chunk = Vec::new();
        let more = engine.snapshot_chunk(&mut cursor, &mut chunk);
        again.load(&chunk).expect("what was just written is read");
        snapshot.extend_from_slice(&chunk);
        if !more {
            break;
        }
    }
    assert!(snapshot.len() as u64 <= engine.snapshot_bytes_max(), "as much as was said");
    let (mut stage, mut lsn) = (LOAD, begin);
    for (how, payload) in pieces {
        stage = stage.max(how & 3);
        let restored = match stage {
            LOAD => continue,
            REPLAY => {
                lsn = lsn.next();
                again.restore_body(lsn, payload)
            }
            _ => again.restore_body(before(begin, *how), payload),
        };
        // Records of a chain that was cut off are never read, so they may be unreadable.
        let readable = describe(payload).all(|record| record.is_ok());
        assert!(restored.is_ok() || !readable, "what was replayed is read again: {restored:?}");
    }
    again.finish_recovery(last).expect("nothing is missing");
    again.check();
    assert_eq!(again.statistics(), engine.statistics());
    // It may find another growth of a record: a change that was taken back is history.
    let lives = |engine: &Engine| {
        let mut lives: Vec<Lsn> = engine.live().map(|(lsn, _)| lsn).collect();
        lives.sort_unstable();
        lives
    };
    assert_eq!(lives(&again), lives(engine));
}

/// A client can be served. Its message to a queue that may have rules may have no place there; no
/// piece is long enough to name the other one.
fn go_on(mut engine: Engine) {
    const SESSION: SessionId = SessionId(7);
    let (mut effects, now) = (Effects::default(), engine.latest_time());
    let capacity = Capacity { room_bytes: 1 << 20, ..Capacity::UNBOUNDED };
    engine.open_session(SESSION);
    let name = QueueName::new("q").expect("a name");
    let unheard = QueueName::new(&"u".repeat(limits::QUEUE_NAME_BYTES_MAX)).expect("a name");
    let put = |to: &QueueName| {
        let to = Destination::Queue(to.clone());
        Command::PutTo { to, message: NewMessage::new(b"new"[..].into()), transaction: None }
    };
    let commands = [
        put(&unheard),
        put(&name),
        Command::Watch { link: LinkId(0), queue: name },
        Command::Peek(Peek::Message(MessageId(1))),
        Command::Delete { message: MessageId(2) },
        Command::ListQueues,
    ];
    for command in commands {
        engine.handle(now, SESSION, command, capacity, &mut effects);
    }
    let heard = effects.outputs.first().map(|output| &output.reply);
    assert!(matches!(heard, Some(Reply::Stored { .. })), "it stores: {heard:?}");
    engine.check();
    engine.handle_timeout(now + Nanos::from_secs(86_400), capacity, &mut effects);
    engine.check();
}

/// The year 2262: beyond it there may be no moment left in which something could happen later.
const LATEST_MAX: Nanos = Nanos(u64::MAX / 2);
