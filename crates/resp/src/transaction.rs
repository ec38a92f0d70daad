//! MULTI: commands that wait for EXEC, and their fate then.

use alloc::borrow::Cow;
use alloc::format;
use alloc::vec::Vec;

use model::{Command, Database, Refusal, Reply, limits};

use crate::arguments::Arguments;
use crate::context::Context;
use crate::fault::Fault;
use crate::reply_format::{Next, ReplyFormat};
use crate::shared::ListenerState;
use crate::table::{Handler, Say, Spec};
use crate::words::Words;

/// The commands of a client since MULTI.
#[derive(Debug)]
pub(crate) struct Transaction {
    /// The commands for the engine.
    commands: Vec<Command>,
    /// The source of each answer.
    parts: Vec<Part>,
    /// The database that the next of them is about.
    database: Database,
    /// Bytes of their words.
    words_bytes: usize,
    /// One of them was refused already.
    pub(crate) is_faulty: bool,
    /// One of them may store something.
    pub(crate) may_store: bool,
}

/// One command of EXEC, and where its answer comes from.
#[derive(Debug)]
enum Part {
    /// From the engine's next reply.
    Asked(ReplyFormat),
    /// From the server's own knowledge.
    Said(Say, Words),
    Failed(Fault),
    Okay,
}

/// All commands of EXEC, in their order.
pub(crate) struct Parts(Vec<Part>);

impl Transaction {
    /// Its commands are about this database until one of them selects another.
    pub(crate) const fn of(database: Database) -> Self {
        Self {
            commands: Vec::new(),
            parts: Vec::new(),
            database,
            words_bytes: 0,
            is_faulty: false,
            may_store: false,
        }
    }

    /// Puts a command behind those that wait. It is read now, so that its words need not be kept;
    /// EXEC says the errors in them.
    pub(crate) fn push(
        &mut self,
        spec: &'static Spec,
        words: &Words,
        shared: &ListenerState,
    ) -> Result<(), Fault> {
        self.words_bytes += words.cost_bytes();
        let (commands, bytes) = (limits::BATCH_COMMANDS_MAX, shared.options.command_bytes_max);
        let waiting = self.parts.len().max(self.commands.len());
        if waiting >= commands || self.words_bytes > bytes {
            let text = format!(
                "ERR a transaction has {commands} commands and {bytes} bytes at most: send it in \
                 parts"
            );
            return Err(Fault(Cow::Owned(text.into_bytes())));
        }
        self.may_store |= spec.may_store();
        self.parts.push(match spec.handler {
            Handler::Ask(query) => match query(Arguments::new(words, shared, self.database)) {
                Ok(query) => {
                    self.commands.push(query.command);
                    self.commands.extend(query.format.second_question());
                    Part::Asked(query.format.at_once())
                }
                Err(fault) => Part::Failed(fault),
            },
            Handler::Say(say) | Handler::Subcommands(Some(say)) => {
                // The client itself selects it with EXEC.
                if spec.name == "select"
                    && let Ok(database) = shared.options.database(words.word(1), None)
                {
                    self.database = database;
                }
                Part::Said(say, words.clone())
            }
            // UNWATCH is the only one of the session's own commands that waits for EXEC, which ends
            // it anyway.
            Handler::Verb(_) | Handler::Subcommands(None) | Handler::Never(_) => Part::Okay,
        });
        Ok(())
    }

    /// How many commands wait.
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Bytes that the waiting commands hold in memory.
    pub(crate) fn bytes(&self) -> usize {
        let beside = self.parts.len() * (size_of::<Command>() + size_of::<Part>());
        self.words_bytes + beside
    }

    /// The commands for the engine, and the other parts of the answer.
    pub(crate) fn into_batch(self) -> (Vec<Command>, Parts) {
        (self.commands, Parts(self.parts))
    }
}

impl Parts {
    /// Answers all of them, each that asked the engine with the next of its replies.
    pub(crate) fn word(self, replies: Vec<Reply>, context: &mut Context<'_>) {
        let mut replies = replies.into_iter();
        let most = context.out.len() + context.shared.options.reply_bytes_max;
        context.answer().array(self.0.len());
        for part in self.0 {
            match part {
                Part::Asked(format) => word_once(format, &mut replies, context),
                Part::Said(..) if context.out.len() > most => context.refuse(&TOO_MUCH),
                Part::Said(say, words) => {
                    let before = context.out.len();
                    if let Err(fault) = say(context, &words) {
                        context.refuse(&fault);
                    }
                    if context.out.len() == before {
                        // CLIENT REPLY SKIP has no answer of its own, but its place has.
                        context.answer().ok();
                    }
                }
                Part::Failed(fault) => context.refuse(&fault),
                Part::Okay => context.answer().ok(),
            }
        }
    }
}

/// Words the next reply, or the next two if there were two questions.
fn word_once(
    format: ReplyFormat,
    replies: &mut impl Iterator<Item = Reply>,
    context: &mut Context<'_>,
) {
    let has_second = format.second_question().is_some();
    let Some(reply) = replies.next() else { return context.refuse(&Fault::INTERNAL) };
    let second = if has_second { replies.next() } else { None };
    let Next::Ask(next) = format.word(reply, context) else { return };
    match second {
        Some(reply) => drop(next.format.word(reply, context)),
        None => context.refuse(&TOO_MUCH),
    }
}

const TOO_MUCH: Fault = Fault::of("ERR too much for one transaction");

/// EXEC was refused as a whole.
pub(crate) fn aborted(refusal: &Refusal) -> Fault {
    let Fault(text) = Fault::refused(refusal);
    let reason = text.strip_prefix(b"ERR ").unwrap_or(&text);
    Fault::about("EXECABORT Transaction discarded because of: ", reason, "")
}

impl core::fmt::Debug for Parts {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Parts({})", self.0.len())
    }
}
