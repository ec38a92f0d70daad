//! MULTI: commands that wait for EXEC, and what becomes of them then.

use alloc::vec::Vec;

use model::{Command, Refusal, Reply, limits};

use crate::arguments::Arguments;
use crate::context::Context;
use crate::fault::Fault;
use crate::reader::COMMAND_BYTES_MAX;
use crate::shared::Shared;
use crate::table::{Does, Say, Spec};
use crate::wording::{Next, Wording};
use crate::words::Words;

/// The commands of a client since MULTI.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    queue: Vec<(&'static Spec, Words)>,
    bytes: usize,
    /// One of them was refused already.
    pub(crate) is_faulty: bool,
}

/// One command of EXEC, and where its answer comes from.
enum Part {
    /// From the engine's next reply.
    Asked(Wording),
    /// From what the server knows.
    Said(Say, Words),
    Failed(Fault),
    Okay,
}

/// All commands of EXEC, in their order.
pub(crate) struct Parts(Vec<Part>);

impl Transaction {
    /// Puts a command behind those that wait.
    pub(crate) fn push(&mut self, spec: &'static Spec, words: &Words) -> Result<(), Fault> {
        self.bytes += words.cost_bytes();
        if self.queue.len() >= limits::BATCH_COMMANDS_MAX || self.bytes > COMMAND_BYTES_MAX {
            return Err(Fault::of("ERR too many commands, or too large ones, since MULTI"));
        }
        self.queue.push((spec, words.clone()));
        Ok(())
    }

    /// How many commands wait.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether any of them may store something.
    pub(crate) fn may_store(&self) -> bool {
        self.queue.iter().any(|(spec, _)| spec.may_store())
    }

    /// What the commands that wait hold in memory.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// What the engine is to be asked, and what else there is to answer.
    pub(crate) fn plan(self, shared: &Shared) -> (Vec<Command>, Parts) {
        let mut commands = Vec::new();
        let parts = self.queue.into_iter().map(|(spec, words)| match spec.does {
            Does::Ask(plan) => match plan(Arguments::new(&words, shared)) {
                Ok(plan) => {
                    commands.push(plan.command);
                    Part::Asked(plan.wording.at_once())
                }
                Err(fault) => Part::Failed(fault),
            },
            Does::Say(say) | Does::Subcommands(Some(say)) => Part::Said(say, words),
            // Of what the session itself does, only UNWATCH waits for EXEC, which ends it anyway.
            Does::Verb(_) | Does::Subcommands(None) | Does::Never(_) => Part::Okay,
        });
        let parts = parts.collect();
        (commands, Parts(parts))
    }
}

impl Parts {
    /// Answers all of them, each that asked the engine with the next of its replies.
    pub(crate) fn word(self, replies: Vec<Reply>, context: &mut Context<'_>) {
        let mut replies = replies.into_iter();
        context.answer().array(self.0.len());
        for part in self.0 {
            match part {
                Part::Asked(wording) => match replies.next() {
                    Some(reply) => word_once(wording, reply, context),
                    None => context.refuse(&Fault::INTERNAL),
                },
                Part::Said(say, words) => {
                    if let Err(fault) = say(context, &words) {
                        context.refuse(&fault);
                    }
                }
                Part::Failed(fault) => context.refuse(&fault),
                Part::Okay => context.answer().ok(),
            }
        }
    }
}

fn word_once(wording: Wording, reply: Reply, context: &mut Context<'_>) {
    if let Next::Ask(_) = wording.word(reply, context) {
        context.refuse(&Fault::of("ERR too much for one transaction"));
    }
}

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
