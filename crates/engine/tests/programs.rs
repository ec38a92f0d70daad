//! Scripts: commands that a program gives by the answers to those before, all in one frame.

use std::fmt;
use std::sync::{Arc, Mutex};

use engine::{Effects, Engine, EngineOptions};
use model::{
    Capacity, CollectionCommand, CollectionKind, Command, End, KeyCommand, KeyKind, ListCommand,
    Nanos, OneOrMany, Persistence, Principal, QueueName, Refusal, Reply, Right, Rights, Rule,
    Score, ScoreRule, Script, ScriptCommands, ScriptProgram, ScriptValue, SessionId, SetRule,
    StorePolicy, ValueDeadline, ValueEdit,
};

const ADA: SessionId = SessionId(1);
const BOB: SessionId = SessionId(2);

/// Gives these commands, and keeps the replies.
struct Listed {
    commands: Vec<Command>,
    replies: Mutex<Vec<Reply>>,
}

impl fmt::Debug for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.commands.fmt(f)
    }
}

impl ScriptProgram for Listed {
    fn run(&self, commands: &mut dyn ScriptCommands) -> ScriptValue {
        let replies = self.commands.iter().map(|command| commands.perform(command.clone()));
        *self.replies.lock().unwrap() = replies.collect();
        ScriptValue::Integer(self.commands.len() as i64)
    }
}

/// Gives these commands together, and keeps the result.
struct Together {
    commands: Vec<Command>,
    result: Mutex<Option<Result<Vec<Reply>, Refusal>>>,
}

impl fmt::Debug for Together {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.commands.fmt(f)
    }
}

impl ScriptProgram for Together {
    fn run(&self, commands: &mut dyn ScriptCommands) -> ScriptValue {
        *self.result.lock().unwrap() = Some(commands.perform_all(self.commands.clone()));
        ScriptValue::Null
    }
}

struct Harness {
    engine: Engine,
    capacity: Capacity,
    outputs: Vec<(SessionId, Reply)>,
    frames: usize,
}

impl Harness {
    fn new(frame_bytes_max: usize) -> Self {
        let options = EngineOptions::new(StorePolicy::Always);
        let mut engine = Engine::new(EngineOptions { frame_bytes_max, ..options });
        [ADA, BOB].into_iter().for_each(|session| engine.open_session(session));
        Self { engine, capacity: Capacity::UNBOUNDED, outputs: Vec::new(), frames: 0 }
    }

    fn ask(&mut self, by: SessionId, command: Command) {
        let mut effects = Effects::default();
        self.engine.handle(Nanos(1), by, command, self.capacity, &mut effects);
        self.engine.check();
        let last = self.engine.last_lsn();
        for output in &effects.outputs {
            let is_result = matches!(output.reply, Reply::Scripted(_));
            assert!(!is_result || output.after.lsn == last, "it waits for its frame");
        }
        self.frames = effects.frames.len();
        let outputs = effects.outputs.into_iter().map(|output| (output.session, output.reply));
        self.outputs = outputs.collect();
    }

    fn run(&mut self, commands: Vec<Command>) -> Vec<Reply> {
        let program = Arc::new(Listed { commands, replies: Mutex::default() });
        self.ask(ADA, Command::Script(Script(Arc::clone(&program) as Arc<dyn ScriptProgram>)));
        program.replies.lock().unwrap().clone()
    }
}

impl Harness {
    fn run_together(&mut self, commands: Vec<Command>) -> Result<Vec<Reply>, Refusal> {
        let program = Arc::new(Together { commands, result: Mutex::default() });
        self.ask(ADA, Command::Script(Script(Arc::clone(&program) as Arc<dyn ScriptProgram>)));
        program.result.lock().unwrap().take().unwrap()
    }
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

fn add(key: &str) -> Command {
    Command::Key(KeyCommand::EditValue { name: name(key), edit: ValueEdit::Add(1) })
}

fn set(key: &str, bytes: usize) -> Command {
    Command::Key(KeyCommand::SetValue {
        name: name(key),
        value: vec![b'x'; bytes].into(),
        deadline: ValueDeadline::Never,
        rule: SetRule::Always,
        want_old: false,
    })
}

fn push(key: &str) -> Command {
    Command::List(ListCommand::Push {
        queue: name(key),
        end: End::Tail,
        elements: OneOrMany::One((*b"element").into()),
        only_existing: false,
        persistence: Persistence::Persistent,
    })
}

fn pop(key: &str, wait: Option<Nanos>) -> Command {
    Command::List(ListCommand::PopFirst { queues: vec![name(key)], end: End::Head, max: 1, wait })
}

#[test]
fn script_is_one_frame() {
    let mut all = Harness::new(1 << 20);
    let score = CollectionCommand::SetScores {
        name: name("z"),
        members: vec![(Score::ONE, (*b"m").into())],
        rule: ScoreRule::default(),
    };
    let kind = CollectionKind::SortedSet;
    let count = CollectionCommand::CountFields { name: name("z"), kind };
    let replies = all.run(vec![add("n"), add("n"), score.into(), count.into(), push("l")]);
    let expected =
        [Reply::Integer(1), Reply::Integer(2), Reply::Count(1), Reply::Count(1), Reply::Count(1)];
    assert_eq!(replies, expected);
    assert_eq!(all.frames, 1);
    let result = Reply::Scripted(Box::new(ScriptValue::Integer(5)));
    assert_eq!(all.outputs, [(ADA, result)]);
}

#[test]
fn waiting_clients_are_served_behind_the_script() {
    let mut all = Harness::new(1 << 20);
    all.ask(BOB, pop("l", None));
    assert_eq!(all.outputs, []);
    // It takes the element itself, and waits for none.
    let replies = all.run(vec![push("l"), pop("l", None), pop("l", None), push("l"), push("l")]);
    assert!(matches!(replies[1], Reply::Popped { .. }), "{replies:?}");
    assert!(matches!(replies[2], Reply::TimedOut { .. }), "{replies:?}");
    let [(ADA, Reply::Scripted(_)), (BOB, Reply::Popped { .. })] = &all.outputs[..] else {
        panic!("{:?}", all.outputs)
    };
}

#[test]
fn command_that_no_frame_holds_is_refused_alone() {
    let mut all = Harness::new(64 * 1024);
    let replies = all.run(vec![set("a", 30_000), set("b", 30_000), set("c", 30_000), add("n")]);
    assert!(matches!(replies[0], Reply::Replaced { set: true, .. }));
    assert!(matches!(replies[1], Reply::Replaced { set: true, .. }));
    assert_eq!(replies[2], Reply::Refused(Refusal::BatchTooLarge));
    assert_eq!(replies[3], Reply::Integer(1));
    assert_eq!(all.frames, 1);
    // The next script has a frame of its own.
    assert!(matches!(all.run(vec![set("c", 30_000)])[0], Reply::Replaced { set: true, .. }));
    all.capacity = Capacity { room_bytes: 100, ..Capacity::UNBOUNDED };
    let replies = all.run(vec![set("d", 30_000), add("n")]);
    assert_eq!(replies[0], Reply::Refused(Refusal::StoreFull));
}

#[test]
fn script_in_a_batch_shares_its_frame() {
    let mut all = Harness::new(64 * 1024);
    let program = Arc::new(Listed {
        commands: vec![set("a", 30_000), set("b", 30_000), add("n")],
        replies: Mutex::default(),
    });
    let script = Command::Script(Script(Arc::clone(&program) as Arc<dyn ScriptProgram>));
    all.ask(ADA, Command::Batch { commands: vec![script, set("c", 30_000)] });
    assert_eq!(all.frames, 1);
    let [(ADA, Reply::Batch(replies))] = &all.outputs[..] else { panic!("{:?}", all.outputs) };
    assert!(matches!(replies[1], Reply::Replaced { set: true, .. }), "it was counted before");
    let told = program.replies.lock().unwrap().clone();
    assert_eq!(told[1], Reply::Refused(Refusal::BatchTooLarge));
    assert_eq!(told[2], Reply::Integer(1));
}

#[test]
fn each_command_of_a_script_needs_its_right() {
    let mut all = Harness::new(1 << 20);
    let rule = Rule::parse("look,send n").unwrap();
    let rights = Rights::new("ann".into(), [&rule], []);
    all.engine.act_for(ADA, Principal::User(Arc::new(rights)));
    let replies = all.run(vec![add("n"), add("m"), Command::BrokerStatistics]);
    assert_eq!(replies[0], Reply::Integer(1));
    let Reply::Refused(Refusal::NotPermitted(lack)) = &replies[1] else { panic!("{replies:?}") };
    assert_eq!((lack.right, lack.name.as_ref().unwrap().as_str()), (Right::Look, "m"));
    assert_eq!(replies[2], Reply::Refused(Refusal::NotInBatch));
}

#[test]
fn commands_together_are_all_done_or_none() {
    let mut all = Harness::new(1 << 20);
    let delete = |key: &str| Command::Key(KeyCommand::Delete { names: vec![name(key)] });
    all.run(vec![set("a", 10), push("l"), push("l")]);
    let replies = all.run_together(vec![delete("l"), push("l"), add("n")]).unwrap();
    assert_eq!(replies, [Reply::Count(1), Reply::Count(1), Reply::Integer(1)]);
    // The last is more than a frame holds, or is none of a batch.
    let large = vec![delete("a"), set("b", 900_000), set("c", 900_000)];
    assert_eq!(all.run_together(large), Err(Refusal::BatchTooLarge));
    let alone = vec![delete("a"), Command::BrokerStatistics];
    assert_eq!(all.run_together(alone), Err(Refusal::NotInBatch));
    let rule = Rule::parse("look,manage a").unwrap();
    let rights = Rights::new("ann".into(), [&rule], []);
    all.engine.act_for(ADA, Principal::User(Arc::new(rights)));
    let denied = all.run_together(vec![delete("a"), push("l")]);
    assert!(matches!(denied, Err(Refusal::NotPermitted(_))), "{denied:?}");
    let kind = |key| Command::Key(KeyCommand::Kind { name: name(key) });
    assert_eq!(all.run(vec![kind("a")]), [Reply::Kind(Some(KeyKind::Value))]);
}
