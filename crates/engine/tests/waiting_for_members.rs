//! Commands that wait for a member of a sorted set: in which order they are served, and what ends
//! them.

use std::sync::Arc;

use engine::{Effects, Engine, EngineOptions};
use model::{
    Capacity, CollectionCommand, CollectionKind, Command, Entries, KeyCommand, ListCommand, Nanos,
    OneOrMany, QueueName, Reply, Score, ScoreRule, ScoredPopped, SessionId, StorePolicy,
};

const ADA: SessionId = SessionId(1);
const BOB: SessionId = SessionId(2);
const CYD: SessionId = SessionId(3);

struct Harness {
    engine: Engine,
    now: u64,
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

fn member(text: &str) -> Arc<[u8]> {
    text.as_bytes().into()
}

fn collection(command: CollectionCommand) -> Command {
    command.into()
}

fn add(key: &str, members: &[&str]) -> Command {
    let members = members.iter().map(|it| (Score::ONE, member(it))).collect();
    collection(CollectionCommand::SetScores {
        name: name(key),
        members,
        rule: ScoreRule::default(),
    })
}

fn pop(keys: &[&str], wait: Option<u64>) -> Command {
    let names = keys.iter().map(|it| name(it)).collect();
    let wait = wait.map(Nanos);
    collection(CollectionCommand::PopScored { names, highest: false, max: 1, wait })
}

fn popped(key: &str, text: &str) -> Reply {
    let mut entries = Entries::default();
    entries.fields.push(text.as_bytes());
    entries.scores.push(Score::ONE);
    Reply::ScoredPopped(Box::new(ScoredPopped { name: name(key), entries }))
}

fn count(key: &str) -> Command {
    let kind = CollectionKind::SortedSet;
    collection(CollectionCommand::CountFields { name: name(key), kind })
}

impl Harness {
    fn new() -> Self {
        let mut engine = Engine::new(EngineOptions::new(StorePolicy::Always));
        [ADA, BOB, CYD].into_iter().for_each(|session| engine.open_session(session));
        Self { engine, now: 1 }
    }

    /// All that the sessions hear of a command.
    fn ask(&mut self, by: SessionId, command: Command) -> Vec<(SessionId, Reply)> {
        let mut effects = Effects::default();
        let now = Nanos(self.now);
        self.engine.handle(now, by, command, Capacity::UNBOUNDED, &mut effects);
        self.heard(effects)
    }

    fn pass_time(&mut self, now: u64) -> Vec<(SessionId, Reply)> {
        self.now = now;
        let mut effects = Effects::default();
        self.engine.handle_timeout(Nanos(now), Capacity::UNBOUNDED, &mut effects);
        self.heard(effects)
    }

    fn heard(&self, effects: Effects) -> Vec<(SessionId, Reply)> {
        self.engine.check();
        let last = self.engine.last_lsn();
        for output in &effects.outputs {
            let is_told = matches!(output.reply, Reply::ScoredPopped(_));
            assert!(!is_told || output.after.lsn == last, "it waits for the frame of the pop");
        }
        effects.outputs.into_iter().map(|output| (output.session, output.reply)).collect()
    }
}

#[test]
fn longest_waiting_is_served_first() {
    let mut all = Harness::new();
    assert_eq!(all.ask(BOB, pop(&["z", "y"], None)), []);
    assert_eq!(all.ask(ADA, pop(&["y"], None)), []);
    let heard = all.ask(CYD, add("y", &["m", "n", "o"]));
    let expected = [(CYD, Reply::Count(3)), (BOB, popped("y", "m")), (ADA, popped("y", "n"))];
    assert_eq!(heard, expected);
    assert_eq!(all.ask(CYD, add("z", &["m"])), [(CYD, Reply::Count(1))], "nobody waits any more");
    assert_eq!(all.ask(CYD, count("y")), [(CYD, Reply::Count(1))]);
}

#[test]
fn waits_end_by_time_and_by_cancel() {
    let mut all = Harness::new();
    let timed_out = |by| (by, Reply::TimedOut { link: None });
    assert_eq!(all.ask(BOB, pop(&["z"], Some(10))), []);
    assert_eq!(all.ask(ADA, pop(&["z"], None)), []);
    assert_eq!(all.engine.poll_timeout(), Some(Nanos(11)));
    assert_eq!(all.pass_time(11), [timed_out(BOB)]);
    let cancel = Command::List(ListCommand::CancelPop);
    assert_eq!(all.ask(ADA, cancel), [timed_out(ADA)]);
    assert_eq!(all.ask(ADA, pop(&["z"], None)), []);
    let mut effects = Effects::default();
    all.engine.close_session(Nanos(12), ADA, Capacity::UNBOUNDED, &mut effects);
    assert_eq!(all.heard(effects), []);
    assert_eq!(all.ask(CYD, add("z", &["m"])), [(CYD, Reply::Count(1))]);
    assert_eq!(all.ask(BOB, pop(&["z"], Some(10))), [(BOB, popped("z", "m"))]);
}

#[test]
fn batches_and_renames_bring_members() {
    let mut all = Harness::new();
    all.ask(ADA, pop(&["z"], None));
    // In a batch nothing waits, and nobody is served before its end.
    let commands = vec![add("z", &["m"]), pop(&["z"], None), pop(&["z"], None)];
    let replies = vec![Reply::Count(1), popped("z", "m"), Reply::TimedOut { link: None }];
    assert_eq!(all.ask(CYD, Command::Batch { commands }), [(CYD, Reply::Batch(replies))]);
    all.ask(CYD, add("other", &["m"]));
    let rename = KeyCommand::Rename { from: name("other"), to: name("z"), only_new: false };
    let heard = all.ask(CYD, Command::Key(rename));
    assert_eq!(heard, [(CYD, Reply::Done), (ADA, popped("z", "m"))]);
    // A set of the name is no sorted set.
    all.ask(ADA, pop(&["z"], None));
    let members = OneOrMany::One(member("m"));
    let command = CollectionCommand::AddMembers { name: name("z"), members };
    assert_eq!(all.ask(CYD, collection(command)), [(CYD, Reply::Count(1))]);
}
