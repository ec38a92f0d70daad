//! The limits of commands on streams, alone and in a batch: what is refused, what goes in parts,
//! and who is served when an entry comes.

use std::sync::Arc;

use engine::{Effects, Engine, EngineOptions};
use model::{
    Capacity, ClockLead, CollectionCommand, Command, Deadline, DeadlineRule, GroupName, GroupStart,
    KeyCommand, LinkId, Nanos, NewStreamId, QueueName, ReadPlace, Refusal, Reply, SessionId,
    StorePolicy, StreamClaim, StreamCommand, StreamEntries, StreamId, StreamKept, StreamRange,
    StreamRead, StreamReader, StreamRefusal, StreamReply, StreamTrim, limits,
};

const ADA: SessionId = SessionId(1);
const READERS: [SessionId; 3] = [SessionId(10), SessionId(11), SessionId(12)];

struct Harness {
    engine: Engine,
    effects: Effects,
    capacity: Capacity,
    now: Nanos,
}

impl Harness {
    fn new(options: EngineOptions) -> Self {
        let mut engine = Engine::new(options);
        engine.open_session(ADA);
        READERS.into_iter().for_each(|reader| engine.open_session(reader));
        let (effects, capacity) = (Effects::default(), Capacity::UNBOUNDED);
        Self { engine, effects, capacity, now: Nanos(1) }
    }

    fn give(&mut self, by: SessionId, command: Command) -> Vec<(SessionId, Reply)> {
        self.effects.clear();
        self.engine.handle(self.now, by, command, self.capacity, &mut self.effects);
        self.engine.check();
        let outputs = self.effects.outputs.drain(..);
        outputs.map(|output| (output.session, output.reply)).collect()
    }

    fn ask(&mut self, command: StreamCommand) -> Reply {
        let mut all = self.give(ADA, command.into());
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0).1
    }

    fn refusal(&mut self, command: StreamCommand) -> Refusal {
        match self.ask(command) {
            Reply::Refused(refusal) => refusal,
            other => panic!("{other:?}"),
        }
    }

    /// So many entries, which have the ids from 1 on.
    fn fill(&mut self, count: u64, bytes: usize) {
        for millis in 1..=count {
            let command = append(millis, bytes).into();
            self.engine.handle(self.now, ADA, command, self.capacity, &mut self.effects);
            let outputs = core::mem::take(&mut self.effects).outputs;
            assert_eq!(outputs[0].reply, told(StreamReply::Id(StreamId::new(millis, 0))));
        }
    }

    fn with_group(&mut self) {
        let start = GroupStart { last: Some(StreamId::ZERO), read: None };
        let create = StreamCommand::CreateGroup { of: of(), start, makes_stream: true };
        assert_eq!(self.ask(create), Reply::Done);
    }

    fn length(&mut self) -> u64 {
        match self.ask(StreamCommand::Length { name: name("s") }) {
            Reply::Count(count) => count,
            other => panic!("{other:?}"),
        }
    }
}

fn always() -> EngineOptions {
    EngineOptions::new(StorePolicy::Always)
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

fn of() -> GroupName {
    GroupName { stream: name("s"), group: b"g"[..].into() }
}

fn told(reply: StreamReply) -> Reply {
    Reply::Stream(Box::new(reply))
}

fn append(millis: u64, bytes: usize) -> StreamCommand {
    append_with(millis, bytes, None)
}

fn append_with(millis: u64, bytes: usize, trim: Option<StreamTrim>) -> StreamCommand {
    StreamCommand::Append {
        name: name("s"),
        id: NewStreamId::Given(StreamId::new(millis, 0)),
        fields: vec![(b"f"[..].into(), vec![b'v'; bytes].into())],
        trim,
        only_existing: false,
        lead: ClockLead::default(),
    }
}

fn read(consumer: &str, max: Option<u64>, wait: Option<Nanos>) -> StreamCommand {
    let reader = StreamReader {
        group: b"g"[..].into(),
        consumer: consumer.as_bytes().into(),
        acknowledges: true,
    };
    let places = vec![(name("s"), ReadPlace::New)];
    StreamCommand::Read(StreamRead { reader: Some(reader), places, max, wait })
}

fn read_alone(behind: StreamId, wait: Option<Nanos>) -> StreamCommand {
    let places = vec![(name("s"), ReadPlace::Behind(behind))];
    StreamCommand::Read(StreamRead { reader: None, places, max: None, wait })
}

fn keep(count: u64) -> StreamTrim {
    StreamTrim { keep: StreamKept::Last(count), max: None }
}

fn claim(consumer: &str) -> StreamClaim {
    let (min_idle, only_ids) = (Nanos::ZERO, false);
    StreamClaim { of: of(), consumer: consumer.as_bytes().into(), min_idle, only_ids }
}

/// The entries of the only stream that was read.
fn entries(reply: Reply) -> StreamEntries {
    match reply {
        Reply::Stream(reply) => match *reply {
            StreamReply::Read(mut streams) => streams.remove(0).1,
            StreamReply::Claimed { entries, .. } | StreamReply::Entries(entries) => entries,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn long_names_and_many_groups_are_refused() {
    let mut all = Harness::new(always());
    all.with_group();
    let long: Arc<[u8]> = vec![b'g'; limits::STREAM_NAME_BYTES_MAX + 1].into();
    let start = GroupStart { last: None, read: None };
    let create = |group: &Arc<[u8]>| {
        let of = GroupName { stream: name("s"), group: Arc::clone(group) };
        StreamCommand::CreateGroup { of, start, makes_stream: true }
    };
    let too_long = Refusal::Stream(StreamRefusal::NameTooLong);
    assert_eq!(all.refusal(create(&long)), too_long);
    let consumer = Arc::clone(&long);
    assert_eq!(all.refusal(StreamCommand::CreateConsumer { of: of(), consumer }), too_long);
    let longest = "c".repeat(limits::STREAM_NAME_BYTES_MAX + 1);
    assert_eq!(all.refusal(read(&longest, None, Some(Nanos::ZERO))), too_long);
    let from = StreamId::ZERO;
    let command = StreamCommand::ClaimNext { claim: claim(&longest), from, max: 1 };
    assert_eq!(all.refusal(command), too_long);
    for number in 1..limits::STREAM_GROUPS_MAX {
        assert_eq!(all.ask(create(&format!("{number}").into_bytes().into())), Reply::Done);
    }
    let refusal = all.refusal(create(&b"more"[..].into()));
    assert_eq!(refusal, Refusal::Stream(StreamRefusal::TooManyGroups));
    assert!(refusal.to_string().contains("remove some"), "{refusal}");
}

#[test]
fn large_entries_are_refused() {
    let mut all = Harness::new(always());
    assert_eq!(all.refusal(append(1, limits::VALUE_BYTES_MAX)), Refusal::TooManyValues);
    let StreamCommand::Append { name, id, trim, only_existing, lead, .. } = append(1, 0) else {
        unreachable!("it appends");
    };
    let field: Arc<[u8]> = Arc::from([]);
    let fields = vec![(Arc::clone(&field), field); limits::COMMAND_ENTRIES_MAX + 1];
    let command = StreamCommand::Append { name, id, fields, trim, only_existing, lead };
    assert_eq!(all.refusal(command), Refusal::TooManyValues);
    assert_eq!(all.length(), 0);
}

#[test]
fn many_entries_leave_in_parts() {
    let mut all = Harness::new(always());
    all.fill(45_000, 1);
    let trim = |trim| StreamCommand::Trim { name: name("s"), trim };
    assert_eq!(all.refusal(append_with(50_000, 1, Some(keep(10)))), Refusal::BatchTooLarge);
    let batch = Command::Batch { commands: vec![trim(keep(10)).into()] };
    let reply = all.give(ADA, batch).remove(0).1;
    assert_eq!(reply, Reply::Batch(vec![Reply::Refused(Refusal::BatchTooLarge)]));
    assert_eq!(all.ask(trim(keep(10))), Reply::CountSoFar(20_000));
    assert_eq!(all.ask(trim(keep(10))), Reply::CountSoFar(20_000));
    assert_eq!(all.ask(trim(keep(10))), Reply::Count(4_990));
    assert_eq!(all.ask(trim(keep(10))), Reply::Count(0));
    let few = StreamTrim { max: Some(3), ..keep(1) };
    assert_eq!(all.ask(trim(few)), Reply::Count(3));
    assert_eq!(all.length(), 7);
}

#[test]
fn consumer_with_much_pending_goes_in_parts() {
    let mut all = Harness::new(always());
    all.fill(25_000, 1);
    all.with_group();
    let read = || read("c", None, Some(Nanos::ZERO));
    let counts: Vec<_> = (0..3).map(|_| entries(all.ask(read())).len()).collect();
    assert_eq!(counts, [10_000, 10_000, 5_000], "one command gives so many");
    let remove = || StreamCommand::RemoveConsumer { of: of(), consumer: b"c"[..].into() };
    let batch = Command::Batch { commands: vec![remove().into()] };
    let reply = all.give(ADA, batch).remove(0).1;
    assert_eq!(reply, Reply::Batch(vec![Reply::Refused(Refusal::BatchTooLarge)]));
    assert_eq!(all.ask(remove()), Reply::CountSoFar(20_000));
    assert_eq!(all.ask(remove()), Reply::Count(5_000));
    assert_eq!(all.ask(remove()), Reply::Count(0));
    let range = StreamRange { first: StreamId::ZERO, last: StreamId::MAX, max: None };
    let (consumer, min_idle) = (None, Nanos::ZERO);
    let pending = StreamCommand::ShowPending { of: of(), range, consumer, min_idle };
    assert_eq!(all.ask(pending), told(StreamReply::Pending(Vec::new())));
}

#[test]
fn reads_show_no_more_than_a_reply_may() {
    let mut all = Harness::new(EngineOptions { reply_bytes_max: 10_000, ..always() });
    all.fill(20, 1_000);
    all.with_group();
    let alone = entries(all.ask(read_alone(StreamId::ZERO, Some(Nanos::ZERO))));
    assert_eq!(alone.ids().last(), Some(StreamId::new(9, 0)), "a client reads on from there");
    assert_eq!(entries(all.ask(read("c", None, Some(Nanos::ZERO)))).len(), 9);
    let (from, max) = (StreamId::ZERO, 100);
    let next = StreamCommand::ClaimNext { claim: claim("d"), from, max };
    let Reply::Stream(reply) = all.ask(next) else { panic!("it claims") };
    let StreamReply::Claimed { entries, next: None, .. } = *reply else { panic!("{reply:?}") };
    assert_eq!(entries.len(), 9);
    let range = StreamRange { first: StreamId::ZERO, last: StreamId::MAX, max: None };
    let range = StreamCommand::Range { name: name("s"), range, reverse: false };
    assert_eq!(all.refusal(range), Refusal::TooManyBytes { max: 10_000 });
    let large = append(100, 20_000);
    all.ask(large);
    let behind = StreamId::new(99, 0);
    let refusal = all.refusal(read_alone(behind, Some(Nanos::ZERO)));
    assert_eq!(refusal, Refusal::TooManyBytes { max: 10_000 }, "not even one");
}

#[test]
fn full_memory_takes_no_entries_and_gives_those_it_has() {
    let mut all = Harness::new(EngineOptions { memory_limit: 8 << 20, ..always() });
    all.with_group();
    let mut last = 0;
    let refusal = loop {
        match all.ask(append(last + 1, 10_000)) {
            Reply::Stream(_) => last += 1,
            Reply::Refused(refusal) => break refusal,
            other => panic!("{other:?}"),
        }
    };
    assert!(last > 50, "{last}");
    assert!(matches!(refusal, Refusal::TooManyValues | Refusal::MemoryFull), "{refusal:?}");
    let ids: Vec<_> = entries(all.ask(read("c", None, Some(Nanos::ZERO)))).ids().collect();
    assert_eq!(ids.len() as u64, last);
    let acknowledge = StreamCommand::Acknowledge { of: of(), ids: ids.clone() };
    assert_eq!(all.ask(acknowledge), Reply::Count(last));
    assert_eq!(all.ask(StreamCommand::Remove { name: name("s"), ids }), Reply::Count(last));
    assert!(matches!(all.ask(append(last + 1, 10_000)), Reply::Stream(_)));
}

#[test]
fn full_device_takes_what_frees_room() {
    let mut all = Harness::new(always());
    all.fill(3, 100);
    all.with_group();
    all.ask(read("c", Some(2), Some(Nanos::ZERO)));
    all.capacity = Capacity { room_bytes: 0, settling_bytes: 1 << 20, ..Capacity::UNBOUNDED };
    assert_eq!(all.refusal(append(9, 1)), Refusal::StoreFull);
    assert_eq!(all.refusal(read("c", None, Some(Nanos::ZERO))), Refusal::StoreFull);
    let ids = vec![StreamId::new(1, 0)];
    let acknowledge = StreamCommand::Acknowledge { of: of(), ids: ids.clone() };
    assert_eq!(all.ask(acknowledge), Reply::Count(1));
    assert_eq!(all.ask(StreamCommand::Remove { name: name("s"), ids }), Reply::Count(1));
    let trim = StreamCommand::Trim { name: name("s"), trim: keep(0) };
    assert_eq!(all.ask(trim), Reply::Count(2));
    assert_eq!(all.ask(StreamCommand::RemoveGroup { of: of() }), Reply::Count(1));
}

#[test]
fn entry_is_for_all_that_read_and_for_one_of_a_group() {
    let mut all = Harness::new(always());
    all.with_group();
    let [one, two, three] = READERS;
    assert_eq!(all.give(one, read("a", None, None).into()), []);
    assert_eq!(all.give(two, read("b", None, None).into()), []);
    assert_eq!(all.give(three, read_alone(StreamId::ZERO, None).into()), []);
    let heard = |all: Vec<(SessionId, Reply)>| {
        let read = all.into_iter().filter(|(session, _)| *session != ADA);
        read.map(|(session, reply)| (session, entries(reply).len())).collect::<Vec<_>>()
    };
    assert_eq!(heard(all.give(ADA, append(1, 1).into())), [(one, 1), (three, 1)]);
    assert_eq!(heard(all.give(ADA, append(2, 1).into())), [(two, 1)]);
    assert_eq!(heard(all.give(ADA, append(3, 1).into())), []);
}

#[test]
fn reader_waits_no_longer_than_it_said() {
    let mut all = Harness::new(always());
    all.with_group();
    let wait = Some(Nanos::from_secs(5));
    assert_eq!(all.give(READERS[0], read("a", None, wait).into()), []);
    all.now = Nanos::from_secs(6);
    all.effects.clear();
    all.engine.handle_timeout(all.now, Capacity::UNBOUNDED, &mut all.effects);
    all.engine.check();
    let replies: Vec<_> = all.effects.outputs.drain(..).map(|it| (it.session, it.reply)).collect();
    assert_eq!(replies, [(READERS[0], Reply::TimedOut { link: None::<LinkId> })]);
}

#[test]
fn reader_of_too_many_streams_is_refused() {
    let mut all = Harness::new(always());
    let places = (0..=limits::CONSUMER_QUEUES_MAX)
        .map(|number| (name(&format!("s{number}")), ReadPlace::Behind(StreamId::ZERO)));
    let places = places.collect();
    let read = StreamRead { reader: None, places, max: None, wait: None };
    assert_eq!(all.refusal(StreamCommand::Read(read)), Refusal::TooManyWatched);
}

#[test]
fn refused_read_makes_no_consumer() {
    let mut all = Harness::new(EngineOptions { reply_bytes_max: 10_000, ..always() });
    all.with_group();
    all.ask(append(1, 20_000));
    let start = GroupStart { last: None, read: None };
    let other = GroupName { stream: name("a"), group: b"g"[..].into() };
    let create = StreamCommand::CreateGroup { of: other.clone(), start, makes_stream: true };
    assert_eq!(all.ask(create), Reply::Done);
    let before = all.engine.last_lsn();
    let StreamCommand::Read(mut both) = read("c", None, Some(Nanos::ZERO)) else {
        unreachable!("it reads");
    };
    both.places.insert(0, (name("a"), ReadPlace::New));
    let refusal = all.refusal(StreamCommand::Read(both));
    assert_eq!(refusal, Refusal::TooManyBytes { max: 10_000 });
    assert_eq!(all.engine.last_lsn(), before, "nothing was logged");
    for of in [other, of()] {
        let reply = all.ask(StreamCommand::DescribeConsumers { of });
        assert_eq!(reply, told(StreamReply::Consumers(Vec::new())));
    }
}

#[test]
fn one_read_gives_so_many_entries() {
    let mut all = Harness::new(always());
    all.fill(12_000, 1);
    all.with_group();
    let alone = entries(all.ask(read_alone(StreamId::ZERO, Some(Nanos::ZERO))));
    assert_eq!(alone.len(), 10_000);
    let StreamCommand::Read(mut read) = read("c", None, Some(Nanos::ZERO)) else {
        unreachable!("it reads");
    };
    if let Some(reader) = &mut read.reader {
        reader.acknowledges = false;
    }
    assert_eq!(entries(all.ask(StreamCommand::Read(read))).len(), 10_000);
}

#[test]
fn claim_takes_those_that_are_gone_in_turns() {
    let mut all = Harness::new(always());
    all.fill(24_000, 1);
    all.with_group();
    (0..3).for_each(|_| drop(all.ask(read("c", None, Some(Nanos::ZERO)))));
    let ids = (1..=24_000).step_by(2).map(|millis| StreamId::new(millis, 0)).collect();
    assert_eq!(all.ask(StreamCommand::Remove { name: name("s"), ids }), Reply::Count(12_000));
    let next = StreamCommand::ClaimNext { claim: claim("d"), from: StreamId::ZERO, max: 50_000 };
    let Reply::Stream(reply) = all.ask(next) else { panic!("it claims") };
    let StreamReply::Claimed { entries, next, removed } = *reply else { panic!("{reply:?}") };
    assert_eq!((entries.len(), removed.len()), (5_000, 5_000), "one command takes so many");
    assert_eq!(next, Some(StreamId::new(10_001, 0)));
}

#[test]
fn only_news_are_held_against_those_who_wait() {
    let mut all = Harness::new(always());
    all.fill(3, 1);
    all.with_group();
    all.ask(read("c", None, Some(Nanos::ZERO)));
    for (number, session) in (100..600).map(|number| (number, SessionId(number))) {
        all.engine.open_session(session);
        assert_eq!(all.give(session, read(&format!("c{number}"), None, None).into()), []);
    }
    let steps = |all: &mut Harness, command: StreamCommand| {
        let before = all.engine.steps();
        all.ask(command);
        all.engine.steps() - before
    };
    let ids = vec![StreamId::new(1, 0)];
    let acknowledged = steps(&mut all, StreamCommand::Acknowledge { of: of(), ids: ids.clone() });
    let removed = steps(&mut all, StreamCommand::Remove { name: name("s"), ids });
    assert!(acknowledged < 200 && removed < 200, "{acknowledged}, {removed}");
    let heard = all.give(ADA, append(4, 1).into());
    assert_eq!(heard.len(), 2, "one of the group has it");
}

#[test]
fn expired_stream_ends_the_wait_of_its_readers() {
    let mut all = Harness::new(always());
    all.with_group();
    assert_eq!(all.give(READERS[0], read("a", None, None).into()), []);
    let (deadline, rule) = (Deadline::After(Nanos(10)), DeadlineRule::Always);
    let expire = KeyCommand::SetDeadline { name: name("s"), deadline, rule };
    all.give(ADA, Command::Key(expire));
    all.now = Nanos(50);
    // Nobody has noticed yet that it is over.
    all.give(ADA, Command::Key(KeyCommand::CountAll { database: None }));
    all.effects.clear();
    all.engine.handle_timeout(all.now, Capacity::UNBOUNDED, &mut all.effects);
    all.engine.check();
    let heard: Vec<_> = all.effects.outputs.drain(..).map(|it| (it.session, it.reply)).collect();
    let gone = Refusal::Stream(StreamRefusal::NoSuchGroup(name("s")));
    assert_eq!(heard, [(READERS[0], Reply::Refused(gone))]);
}

#[test]
fn batch_counts_the_consumers_that_it_looks_at() {
    let mut all = Harness::new(always());
    all.with_group();
    for number in 0..3_000 {
        let consumer = format!("{number}").into_bytes().into();
        let command = StreamCommand::CreateConsumer { of: of(), consumer }.into();
        all.engine.handle(all.now, ADA, command, all.capacity, &mut all.effects);
        all.effects.clear();
    }
    let describe = || StreamCommand::DescribeConsumers { of: of() }.into();
    let batch = Command::Batch { commands: (0..100).map(|_| describe()).collect() };
    assert_eq!(all.give(ADA, batch).remove(0).1, Reply::Refused(Refusal::BatchTooLarge));
    let batch = Command::Batch { commands: vec![describe()] };
    assert!(matches!(all.give(ADA, batch).remove(0).1, Reply::Batch(_)));
}

#[test]
fn full_memory_takes_what_lets_as_much_leave() {
    let mut all = Harness::new(EngineOptions { memory_limit: 8 << 20, ..always() });
    let mut last = 0;
    while matches!(all.ask(append(last + 1, 10_000)), Reply::Stream(_)) {
        last += 1;
    }
    let length = all.length();
    for millis in last + 1..last + 10 {
        assert_eq!(all.refusal(append(millis, 10_000)), Refusal::TooManyValues);
        let reply = all.ask(append_with(millis, 10_000, Some(keep(length))));
        assert_eq!(reply, told(StreamReply::Id(StreamId::new(millis, 0))));
    }
    assert_eq!(all.length(), length);
}

#[test]
fn refusal_is_not_hidden_by_an_empty_history() {
    let mut all = Harness::new(EngineOptions { reply_bytes_max: 10_000, ..always() });
    all.with_group();
    all.ask(append(1, 20_000));
    let StreamCommand::Read(mut both) = read("c", None, Some(Nanos::ZERO)) else {
        unreachable!("it reads");
    };
    both.places.insert(0, (name("s"), ReadPlace::Behind(StreamId::ZERO)));
    let refusal = all.refusal(StreamCommand::Read(both));
    assert_eq!(refusal, Refusal::TooManyBytes { max: 10_000 });
}

#[test]
fn key_of_another_kind_looks_at_nobody_who_waits_for_members() {
    let mut all = Harness::new(always());
    for session in (100..600).map(SessionId) {
        all.engine.open_session(session);
        let (names, wait) = (vec![name("s")], None);
        let pop = CollectionCommand::PopScored { names, highest: false, max: 1, wait };
        assert_eq!(all.give(session, pop.into()), []);
    }
    all.with_group();
    let before = all.engine.steps();
    assert!(matches!(all.ask(append(1, 1)), Reply::Stream(_)));
    assert!(all.engine.steps() - before < 200);
}
