//! Scripts: EVAL and its kin, and the commands that a script gives.
//!
//! A session makes a program of a script, its keys and arguments, and gives it to the engine, which
//! runs it as one command. Each command of the script is read and worded as a client's is.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{
    Command, Database, Nanos, Reply, Script, ScriptCommands, ScriptProgram, ScriptValue, WallClock,
};

use crate::answer::Version;
use crate::arguments::Arguments;
use crate::clients::Slot;
use crate::context::Context;
use crate::fault::Fault;
use crate::interpreter::{Interpreter, ScriptHost, ScriptRun};
use crate::keys::QueryResult;
use crate::moments::by_engine_clock;
use crate::query::Query;
use crate::reply_format::{Next, ReplyFormat};
use crate::script_values::value_of;
use crate::shared::{ListenerState, Options};
use crate::table::{Handler, Spec};
use crate::words::Words;

/// EVAL, EVAL_RO
pub(crate) fn evaluate(arguments: Arguments<'_>, read_only: bool) -> QueryResult {
    let interpreter = arguments.interpreter()?;
    let source: Arc<[u8]> = arguments.element(1);
    let inputs = Inputs::parse(arguments)?;
    interpreter.check(&source).map_err(Fault::from_text)?;
    arguments.scripts().remember(interpreter.digest(&source), &source);
    Ok(inputs.into_query(arguments, interpreter, source, read_only))
}

/// EVALSHA, EVALSHA_RO
pub(crate) fn evaluate_known(arguments: Arguments<'_>, read_only: bool) -> QueryResult {
    let interpreter = arguments.interpreter()?;
    let inputs = Inputs::parse(arguments)?;
    let digest = digest_of(arguments.word(1));
    let source = digest.and_then(|digest| arguments.scripts().find(&digest));
    let source = source.ok_or(Fault::of("NOSCRIPT No matching script. Please use EVAL."))?;
    Ok(inputs.into_query(arguments, interpreter, source, read_only))
}

/// The digest that a word of hexadecimal digits names.
pub(crate) fn digest_of(word: &[u8]) -> Option<[u8; 20]> {
    let (pairs, rest) = word.as_chunks::<2>();
    let mut digest = [0; 20];
    if pairs.len() != digest.len() || !rest.is_empty() {
        return None;
    }
    for (place, [high, low]) in digest.iter_mut().zip(pairs) {
        let [high, low] = [high, low].map(|digit| char::from(*digit).to_digit(16));
        *place = u8::try_from(high? * 16 + low?).ok()?;
    }
    Some(digest)
}

/// The keys and arguments of a script.
struct Inputs {
    keys: Vec<Vec<u8>>,
    arguments: Vec<Vec<u8>>,
}

impl Inputs {
    fn parse(arguments: Arguments<'_>) -> Result<Self, Fault> {
        let count = arguments.integer(2)?;
        let most = arguments.len() - 3;
        let count = match usize::try_from(count) {
            Ok(count) if count <= most => count,
            Ok(_) => {
                return Err(Fault::of("ERR Number of keys can't be greater than number of args"));
            }
            Err(_) => return Err(Fault::of("ERR Number of keys can't be negative")),
        };
        let mut keys: Vec<_> = arguments.from(3).map(<[u8]>::to_vec).collect();
        let rest = keys.split_off(count);
        Ok(Self { keys, arguments: rest })
    }

    fn into_query(
        self,
        arguments: Arguments<'_>,
        interpreter: Arc<dyn Interpreter>,
        source: Arc<[u8]>,
        read_only: bool,
    ) -> Query {
        let Self { keys, arguments: words } = self;
        let shared = arguments.shared();
        let program = Program {
            interpreter,
            source,
            keys,
            arguments: words,
            seed: shared.chance.draw(),
            options: shared.options,
            database: arguments.database(),
            clock: shared.wall_clock.clone(),
            is_draining: shared.draining.has_begun(),
            read_only,
        };
        let command = Command::Script(Script(Arc::new(program)));
        Query { command, format: ReplyFormat::Scripted }
    }
}

/// A script that is to run once.
#[derive(Debug)]
struct Program {
    interpreter: Arc<dyn Interpreter>,
    source: Arc<[u8]>,
    keys: Vec<Vec<u8>>,
    arguments: Vec<Vec<u8>>,
    seed: u64,
    options: Options,
    database: Database,
    clock: WallClock,
    is_draining: bool,
    /// It may only look.
    read_only: bool,
}

impl ScriptProgram for Program {
    fn run(&self, commands: &mut dyn ScriptCommands) -> ScriptValue {
        let Self { source, keys, arguments, seed, .. } = self;
        let run = ScriptRun { source, keys, arguments, seed: *seed };
        self.interpreter.run(run, &mut Host::new(self, commands))
    }
}

/// The commands of a script that runs.
struct Host<'p> {
    program: &'p Program,
    commands: &'p mut dyn ScriptCommands,
    /// Of a client that is the script.
    shared: ListenerState,
    slot: Slot,
    now: Nanos,
    out: Vec<u8>,
}

impl<'p> Host<'p> {
    fn new(program: &'p Program, commands: &'p mut dyn ScriptCommands) -> Self {
        let mut shared = ListenerState::new(program.options, Box::new(()));
        shared.wall_clock = program.clock.clone();
        let slot = shared.clients.enter(model::SessionId(0), None, Nanos::ZERO);
        shared.clients.at_mut(slot).database = program.database;
        let now = commands.now();
        Self { program, commands, shared, slot, now, out: Vec::new() }
    }

    /// The database that the script has selected.
    fn database(&self) -> Database {
        self.shared.clients.at(self.slot).database
    }

    /// Does a command; its answer is in `out` then.
    fn answer(&mut self, words: &Words) -> Result<(), Fault> {
        let spec = self.admit(words)?;
        match spec.handler {
            Handler::Ask(query) => {
                let query = query(Arguments::new(words, &self.shared, self.database()))?;
                self.ask(query)
            }
            Handler::Say(say) | Handler::Subcommands(Some(say)) => say(&mut self.context(), words),
            Handler::Verb(_) | Handler::Subcommands(None) | Handler::Never(_) => Err(NOT_ALLOWED),
        }
    }

    /// The command, if a script may give it.
    fn admit(&self, words: &Words) -> Result<&'static Spec, Fault> {
        let is_arity = |fault: &Fault| fault.0.starts_with(b"ERR wrong number");
        let spec = Spec::find(words)
            .map_err(|fault| Fault::of(if is_arity(&fault) { WRONG_ARITY } else { UNKNOWN }))?;
        let is_write = spec.flags.contains(&"write");
        match () {
            () if spec.flags.contains(&"noscript") => Err(NOT_ALLOWED),
            () if spec.name.starts_with("pubsub|") => Err(NOT_ALLOWED),
            () if is_write && self.program.read_only => {
                Err(Fault::of("ERR Write commands are not allowed from read-only scripts."))
            }
            () if self.program.is_draining && spec.may_store() => Err(Fault::DRAINING),
            () => Ok(spec),
        }
    }

    fn ask(&mut self, mut query: Query) -> Result<(), Fault> {
        // Some ask again: for the rest of many names, or for a value once its kind is known.
        for _ in 0..QUESTIONS_MAX {
            let Query { mut command, format } = query;
            by_engine_clock(&mut command, &self.program.clock);
            let mut reply = match command {
                // A program is no script in a script, but commands of it.
                Command::Script(program) => Reply::Scripted(Box::new(program.0.run(self.commands))),
                command => self.commands.perform(command),
            };
            reply.tell_by(&self.program.clock);
            match format.at_once().word(reply, &mut self.context()) {
                Next::Ask(next) => query = next,
                Next::Said | Next::AskEach(_) => return Ok(()),
            }
        }
        Err(Fault::of("ERR too much for one script"))
    }

    const fn context(&mut self) -> Context<'_> {
        let Self { shared, slot, now, out, .. } = self;
        Context { slot: *slot, shared, now: *now, out }
    }
}

impl ScriptHost for Host<'_> {
    fn call(&mut self, words: &[Vec<u8>], resp3: bool) -> ScriptValue {
        let mut all = Words::new();
        for word in words {
            all.extend(word);
            all.end_word();
        }
        let version = if resp3 { Version::Resp3 } else { Version::Resp2 };
        self.shared.clients.at_mut(self.slot).version = version;
        self.out.clear();
        if let Err(fault) = self.answer(&all) {
            return ScriptValue::Error(fault.0.into_owned());
        }
        value_of(&self.out).unwrap_or(ScriptValue::Null)
    }
}

impl Fault {
    /// A message with its code.
    pub(crate) fn from_text(text: String) -> Self {
        Self(text.into_bytes().into())
    }
}

const NOT_ALLOWED: Fault = Fault::of("ERR This Redis command is not allowed from script");

const UNKNOWN: &str = "ERR Unknown Redis command called from script";
const WRONG_ARITY: &str = "ERR Wrong number of args calling Redis command from script";

/// Questions to the engine by one command of a script.
const QUESTIONS_MAX: usize = 1_000;
