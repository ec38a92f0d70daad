//! The limits of commands on collections, alone and in a batch: what is refused, what goes in
//! steps, and that a batch never comes to more than was counted.

use std::sync::Arc;

use engine::{Effects, Engine, EngineOptions};
use model::{
    Capacity, CollectionCommand, CollectionKind, Combination, CombinationTarget, Command, End,
    KeyCommand, ListCommand, MemberBound, Nanos, OneOrMany, Persistence, QueueName, Refusal, Reply,
    Score, ScoreRule, ScoreSum, ScoredPart, ScoredRange, SessionId, SetOperation, StorePolicy,
    ValueEdit, limits,
};

const ADA: SessionId = SessionId(1);
const FIRST_WAITING: u32 = 10;

struct Harness {
    engine: Engine,
    effects: Effects,
    frame_bytes_max: usize,
}

impl Harness {
    fn new(frame_bytes_max: usize) -> Self {
        let options = EngineOptions::new(StorePolicy::Always);
        let mut engine = Engine::new(EngineOptions { frame_bytes_max, ..options });
        engine.open_session(ADA);
        Self { engine, effects: Effects::default(), frame_bytes_max }
    }

    fn with_memory(memory: u64) -> Self {
        let options = EngineOptions::new(StorePolicy::Always);
        let mut engine = Engine::new(EngineOptions { memory_limit: memory, ..options });
        engine.open_session(ADA);
        Self { engine, effects: Effects::default(), frame_bytes_max: usize::MAX }
    }

    /// All that sessions hear of it. No frame is larger than the journal takes.
    fn give(&mut self, by: SessionId, command: Command) -> Vec<(SessionId, Reply)> {
        self.effects.clear();
        self.engine.handle(Nanos(1), by, command, Capacity::UNBOUNDED, &mut self.effects);
        self.heard()
    }

    fn heard(&mut self) -> Vec<(SessionId, Reply)> {
        self.engine.check();
        let mut start = 0;
        for frame in &self.effects.frames {
            assert!(frame.end - start <= self.frame_bytes_max, "a frame fits into the journal");
            start = frame.end;
        }
        let outputs = self.effects.outputs.drain(..);
        outputs.map(|output| (output.session, output.reply)).collect()
    }

    fn ask(&mut self, command: impl Into<Command>) -> Reply {
        let mut all = self.give(ADA, command.into());
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0).1
    }

    fn batch(&mut self, commands: Vec<Command>) -> Reply {
        self.ask(Command::Batch { commands })
    }

    /// Members `0` to `count` with these scores, each as long.
    fn fill(&mut self, key: &str, count: usize, bytes: usize, score: f64) {
        let at_once = (60_000 / bytes).max(1);
        for first in (0..count).step_by(at_once) {
            let numbers = first..count.min(first + at_once);
            let added = numbers.len() as u64;
            let members = numbers.map(|it| (Score::new(score).unwrap(), long(it, bytes)));
            let command = set_scores(key, members.collect()).into();
            self.engine.handle(Nanos(1), ADA, command, Capacity::UNBOUNDED, &mut self.effects);
            let outputs = core::mem::take(&mut self.effects).outputs;
            assert_eq!(outputs[0].reply, Reply::Count(added));
        }
    }
}

fn long(number: usize, bytes: usize) -> Arc<[u8]> {
    format!("{number:0bytes$}").into_bytes().into()
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

fn set_scores(key: &str, members: Vec<(Score, Arc<[u8]>)>) -> CollectionCommand {
    CollectionCommand::SetScores { name: name(key), members, rule: ScoreRule::default() }
}

fn remove(key: &str, range: ScoredRange) -> CollectionCommand {
    CollectionCommand::RemoveRange { name: name(key), range }
}

fn scores(low: f64, high: f64) -> ScoredRange {
    use std::ops::Bound::Included;
    let [low, high] = [low, high].map(|it| Included(Score::new(it).unwrap()));
    ScoredRange::Scores { low, high }
}

fn hash(key: &str, fields: &[(&[u8], usize)]) -> CollectionCommand {
    let fields = fields.iter().map(|(field, bytes)| ((*field).into(), vec![0; *bytes].into()));
    CollectionCommand::SetFields { name: name(key), fields: fields.collect(), only_new: false }
}

fn count(key: &str) -> CollectionCommand {
    let kind = CollectionKind::SortedSet;
    CollectionCommand::CountFields { name: name(key), kind }
}

#[test]
fn range_of_another_kind_is_refused_in_a_batch() {
    let mut all = Harness::new(1 << 20);
    all.ask(hash("h", &[(b"f", 1)]));
    let bound = |text: &str| MemberBound::Included(text.as_bytes().into());
    let range = ScoredRange::Members { low: bound("a"), high: bound("b") };
    let reply = all.batch(vec![remove("h", range).into()]);
    assert_eq!(reply, Reply::Batch(vec![Reply::Refused(Refusal::WrongKind)]));
}

#[test]
fn renamed_members_are_counted_for_a_batch() {
    let mut all = Harness::new(256 * 1024);
    all.fill("z", 30, 10_000, 9.0);
    all.fill("other", 29, 10_000, 1.0);
    all.ask(set_scores("other", vec![(Score::new(9.0).unwrap(), long(99, 10_000))]));
    let rename = KeyCommand::Rename { from: name("other"), to: name("z"), only_new: false };
    let commands = vec![Command::Key(rename), remove("z", scores(0.0, 2.0)).into()];
    assert_eq!(all.batch(commands), Reply::Refused(Refusal::BatchTooLarge));
}

#[test]
fn served_pop_has_a_frame_of_its_own_where_one_is_full() {
    let mut all = Harness::new(usize::MAX);
    for number in 0..20 {
        let elements = OneOrMany::Many(vec![(*b"e").into(); limits::FRAME_RECORDS_MAX]);
        let queue = name(&format!("l{number}"));
        let persistence = Persistence::Persistent;
        let (end, only_existing) = (End::Tail, false);
        all.ask(Command::List(ListCommand::Push {
            queue,
            end,
            elements,
            only_existing,
            persistence,
        }));
    }
    let waiting = SessionId(FIRST_WAITING.into());
    all.engine.open_session(waiting);
    assert_eq!(all.give(waiting, pop("z", 1).into()), []);
    let mut commands: Vec<_> = (0..20)
        .map(|number| {
            let max = limits::FRAME_RECORDS_MAX as u64 - if number == 0 { 2 } else { 0 };
            let queue = name(&format!("l{number}"));
            Command::List(ListCommand::Pop { queue, end: End::Head, max })
        })
        .collect();
    commands.push(set_scores("z", vec![(Score::ONE, long(1, 1))]).into());
    let heard = all.give(ADA, Command::Batch { commands });
    assert!(matches!(&heard[..], [(ADA, Reply::Batch(_)), (_, Reply::ScoredPopped(_))]));
}

fn pop(key: &str, max: u64) -> CollectionCommand {
    let (names, highest, wait) = (vec![name(key)], false, None);
    CollectionCommand::PopScored { names, highest, max, wait }
}

/// More members wait to be taken than one call has room for.
#[test]
fn sessions_that_wait_are_served_over_several_calls() {
    let mut all = Harness::new(128 * 1024);
    let sessions: Vec<_> = (0..40).map(|it| SessionId((FIRST_WAITING + it).into())).collect();
    for session in &sessions {
        all.engine.open_session(*session);
        assert_eq!(all.give(*session, pop("z", 1).into()), []);
    }
    all.fill("other", 50, 20_000, 1.0);
    let rename = KeyCommand::Rename { from: name("other"), to: name("z"), only_new: false };
    let mut heard = all.give(ADA, Command::Key(rename));
    for _ in 0..100 {
        all.effects.clear();
        all.engine.handle_timeout(Nanos(1), Capacity::UNBOUNDED, &mut all.effects);
        heard.extend(all.heard());
    }
    let served = heard.iter().filter(|(_, reply)| matches!(reply, Reply::ScoredPopped(_)));
    assert_eq!(served.count(), sessions.len());
    assert_eq!(all.ask(count("z")), Reply::Count(10));
}

#[test]
fn long_range_is_removed_in_steps() {
    let mut all = Harness::new(usize::MAX);
    all.fill("z", 50_000, 8, 1.0);
    all.ask(set_scores("z", vec![(Score::new(9.0).unwrap(), long(7, 3))]));
    let mut range = scores(0.0, 2.0);
    let (mut gone, mut steps) = (0, 0);
    loop {
        steps += 1;
        match all.ask(remove("z", range)) {
            Reply::RangeLeft { count, rest } => {
                gone += count;
                range = rest;
            }
            Reply::Count(count) => break gone += count,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((gone, steps), (50_000, 3));
    assert_eq!(all.ask(count("z")), Reply::Count(1));
    all.ask(Command::Key(KeyCommand::Delete { names: vec![name("z")] }));
    all.fill("z", 50_001, 8, 1.0);
    // By places, which stay where they are as the end goes.
    let range = ScoredRange::Ranks { first: 10, last: -2 };
    let Reply::RangeLeft { count, rest } = all.ask(remove("z", range)) else { panic!() };
    assert_eq!(rest, ScoredRange::Ranks { first: 10, last: 50_000 - 1 - count as i64 });
}

#[test]
fn command_with_too_many_entries_is_refused() {
    let mut all = Harness::new(usize::MAX);
    let too_many = limits::COMMAND_ENTRIES_MAX + 1;
    let members = (0..too_many).map(|it| (Score::ONE, long(it, 8))).collect();
    let refused = Reply::Refused(Refusal::BatchTooLarge);
    assert_eq!(all.ask(set_scores("z", members)), refused);
    let members: OneOrMany<_> = (0..too_many).map(|it| long(it, 8)).collect();
    let kind = CollectionKind::SortedSet;
    all.fill("z", 1, 8, 1.0);
    let remove = CollectionCommand::RemoveFields { name: name("z"), kind, fields: members };
    assert_eq!(all.ask(remove), refused);
    let field = vec![0; limits::FIELD_BYTES_MAX + 1];
    let refused = Reply::Refused(Refusal::FieldTooLong);
    assert_eq!(all.ask(hash("h", &[(&field, 1)])), refused);
    let field = vec![0; limits::FIELD_BYTES_MAX];
    assert_eq!(all.ask(hash("h", &[(&field, 1)])), Reply::Count(1));
}

#[test]
fn combinations_of_a_batch_count_together() {
    let mut all = Harness::new(usize::MAX);
    all.fill("z", 20_000, 8, 1.0);
    let combine = || {
        let (how, kind) = (SetOperation::Intersection, CollectionKind::SortedSet);
        let names = vec![(name("z"), Score::ONE), (name("z"), Score::ONE)];
        let (sum, target) = (ScoreSum::Sum, CombinationTarget::Counted { max: 0 });
        Command::from(CollectionCommand::Combine(Combination { how, kind, names, sum, target }))
    };
    let reply = all.batch((0..20).map(|_| combine()).collect());
    assert!(matches!(reply, Reply::Batch(_)));
    let reply = all.batch((0..30).map(|_| combine()).collect());
    assert_eq!(reply, Reply::Refused(Refusal::BatchTooLarge));
}

#[test]
fn small_parts_of_large_sets_are_small_in_a_batch() {
    let mut all = Harness::new(usize::MAX);
    all.fill("z", 300_000, 8, 1.0);
    let show = || {
        let range = ScoredRange::Ranks { first: 0, last: 0 };
        let part = ScoredPart { range, reverse: false, skip: 0, max: None };
        Command::from(CollectionCommand::ShowRange { name: name("z"), part })
    };
    let reply = all.batch((0..20).map(|_| show()).collect());
    assert!(matches!(reply, Reply::Batch(_)), "{reply:?}");
}

#[test]
fn field_that_comes_twice_counts_once_for_memory() {
    let memory = 16 * 1024 * 1024;
    let mut all = Harness::with_memory(memory);
    all.ask(hash("h", &[(b"f", 60_000)]));
    // The old value of a field goes once, however often the field is named.
    let mut fields: Vec<(&[u8], usize)> = vec![(b"f", 0); 14];
    fields.push((b"f", 60_000));
    let others: Vec<_> = (0..40).map(|it| format!("g{it}").into_bytes()).collect();
    fields.extend(others.iter().map(|field| (&**field, 60_000)));
    assert_eq!(all.ask(hash("h", &fields)), Reply::Refused(Refusal::TooManyValues));
    assert_eq!(all.ask(hash("h", &fields[..20])), Reply::Count(5));
}

/// A refusal that tells what a field is waits until that is durable.
#[test]
fn refusal_that_tells_of_a_value_waits_for_it() {
    let mut all = Harness::new(1 << 20);
    let fields = vec![((*b"f").into(), (*b"abc").into())];
    all.ask(CollectionCommand::SetFields { name: name("h"), fields, only_new: false });
    let infinite = vec![(Score::new(f64::INFINITY).unwrap(), long(1, 1))];
    all.ask(set_scores("z", infinite));
    let last = all.engine.last_lsn();
    let edit = ValueEdit::Add(1);
    let field = (*b"f").into();
    let rule = ScoreRule { adds: true, ..ScoreRule::default() };
    let members = vec![(Score::new(f64::NEG_INFINITY).unwrap(), long(1, 1))];
    for (command, refusal) in [
        (CollectionCommand::EditField { name: name("h"), field, edit }, Refusal::NotAnInteger),
        (CollectionCommand::SetScores { name: name("z"), members, rule }, Refusal::ScoreNotANumber),
    ] {
        all.effects.clear();
        let command = command.into();
        all.engine.handle(Nanos(1), ADA, command, Capacity::UNBOUNDED, &mut all.effects);
        let output = &all.effects.outputs[0];
        assert_eq!(output.reply, Reply::Refused(refusal));
        assert_eq!(output.after.lsn, last);
    }
}

fn take_picture(key: &str) -> CollectionCommand {
    CollectionCommand::TakePicture { name: name(key), kind: CollectionKind::Hash }
}

impl Harness {
    /// How many fields a picture shows; nothing if it is over.
    fn fields_of_picture(&mut self, key: &str, picture: u64) -> Option<usize> {
        let (name, from, max) = (name(key), std::ops::Bound::Unbounded, 1_000);
        match self.ask(CollectionCommand::ShowPicture { picture, name, from, max }) {
            Reply::Entries(entries) => Some(entries.fields.iter().count()),
            Reply::NotFound => None,
            other => panic!("{other:?}"),
        }
    }

    fn picture_of(&mut self, key: &str) -> u64 {
        match self.ask(take_picture(key)) {
            Reply::Picture(number) => number,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn pictures_are_bounded_in_number_and_time() {
    let mut all = Harness::new(1 << 20);
    all.ask(hash("h", &[(b"f", 1)]));
    let pictures: Vec<_> = (0..limits::PICTURES_MAX).map(|_| all.picture_of("h")).collect();
    all.ask(hash("h", &[(b"g", 1)]));
    assert_eq!(all.fields_of_picture("h", pictures[0]), Some(1));
    assert_eq!(all.fields_of_picture("other", pictures[0]), None, "a name has its own");
    let last = all.picture_of("h");
    assert_eq!(all.fields_of_picture("h", pictures[1]), None, "it was asked for longest ago");
    assert_eq!(all.fields_of_picture("h", pictures[0]), Some(1));
    assert_eq!(all.fields_of_picture("h", last), Some(2));
    let ends = Nanos(1) + limits::PICTURE_TIME_MAX;
    assert_eq!(all.engine.poll_timeout(), Some(ends));
    all.engine.handle_timeout(ends, Capacity::UNBOUNDED, &mut all.effects);
    all.engine.check();
    assert_eq!(all.engine.poll_timeout(), None);
    assert_eq!(all.fields_of_picture("h", last), None);
}

#[test]
fn pictures_end_where_too_much_is_copied() {
    let mut all = Harness::with_memory(64 << 20);
    let names: Vec<_> = (0..200).map(|it| format!("f{it}").into_bytes()).collect();
    let fields: Vec<(&[u8], usize)> = names.iter().map(|it| (&**it, 10_000)).collect();
    all.ask(hash("h", &fields));
    let old = all.picture_of("h");
    assert_eq!(all.ask(hash("h", &fields[..20])), Reply::Count(0));
    assert_eq!(all.fields_of_picture("h", old), Some(7), "a page of 64 KiB");
    let mut rounds = 0;
    while all.fields_of_picture("h", old).is_some() {
        assert_eq!(all.ask(hash("h", &fields)), Reply::Count(0));
        // Each round is shared by a picture of its own, and copied in the next.
        all.picture_of("h");
        rounds += 1;
        assert!(rounds < 100, "it ends");
    }
    assert!(rounds > 0);
    let newest = all.picture_of("h");
    assert_eq!(all.fields_of_picture("h", newest), Some(7), "the youngest stays");
}

/// A table that is deleted is dropped in steps, which copy what pictures share.
#[test]
fn deleted_table_is_shown_by_its_picture() {
    let mut all = Harness::new(1 << 20);
    let names: Vec<_> = (0..900).map(|it| format!("f{it}").into_bytes()).collect();
    let fields: Vec<(&[u8], usize)> = names.iter().map(|it| (&**it, 1)).collect();
    all.ask(hash("h", &fields));
    let picture = all.picture_of("h");
    let delete = KeyCommand::Delete { names: vec![name("h")] };
    assert_eq!(all.ask(Command::Key(delete)), Reply::Count(1));
    while all.engine.poll_timeout().is_some_and(|at| at <= Nanos(1)) {
        all.engine.handle_timeout(Nanos(1), Capacity::UNBOUNDED, &mut all.effects);
        all.engine.check();
    }
    assert_eq!(all.fields_of_picture("h", picture), Some(900));
    let end = CollectionCommand::EndPicture { picture, name: name("h") };
    assert_eq!(all.ask(end), Reply::Done);
    assert_eq!(all.fields_of_picture("h", picture), None);
}
