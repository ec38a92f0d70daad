//! Defects of a careless engine, for tests of the oracle of keys.

use model::{Command, End, ListCommand, Nanos, Output, Persistence, Reply, SessionId};

use crate::Paged;

/// A defect of lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListDefect {
    /// The commands of a batch are frames of their own.
    SplitsBatches,
    /// Pushed elements are kept in memory.
    PushesToMemory,
    /// Pops take from the other end.
    PopsFromWrongEnd,
    /// A popped element is still there.
    GivesTwice,
    /// One element more than the popped ones goes.
    LosesOne,
}

impl ListDefect {
    /// Performs the command, with the defect; the answer comes first.
    pub(super) fn handle<F: Clone>(
        self,
        broker: &mut Paged<F>,
        now: Nanos,
        session: SessionId,
        command: Command,
    ) -> Vec<Output> {
        if let (Self::SplitsBatches, Command::Batch { commands }) = (self, &command)
            && commands.len() > 1
        {
            return split(broker, now, session, commands);
        }
        let mut outputs = Vec::new();
        let also = match &command {
            Command::List(list) if self == Self::LosesOne => another_pop(list),
            _ => None,
        };
        broker.handle(now, session, self.spoil(command), &mut outputs);
        if let Some(also) = also {
            broker.handle(now, session, also, &mut Vec::new());
        }
        outputs
    }

    fn spoil(self, command: Command) -> Command {
        let Command::List(mut list) = command else { return command };
        match (self, &mut list) {
            (Self::PushesToMemory, ListCommand::Push { persistence, .. }) => {
                *persistence = Persistence::NonPersistent;
            }
            (Self::PopsFromWrongEnd, ListCommand::Pop { end, .. }) => *end = end.opposite(),
            (Self::GivesTwice, ListCommand::Pop { queue, end, max: 1 }) => {
                let (queue, origin) = (queue.clone(), *end);
                list = ListCommand::Range { queue, origin, first: 0, last: 0 };
            }
            _ => {}
        }
        Command::List(list)
    }
}

fn another_pop(list: &ListCommand) -> Option<Command> {
    let ListCommand::Pop { queue, max: 1, .. } = list else { return None };
    let pop = ListCommand::Pop { queue: queue.clone(), end: End::Tail, max: 1 };
    Some(Command::List(pop))
}

fn split<F: Clone>(
    broker: &mut Paged<F>,
    now: Nanos,
    session: SessionId,
    commands: &[Command],
) -> Vec<Output> {
    let (mut replies, mut others, mut answer) = (Vec::new(), Vec::new(), None);
    for command in commands {
        let mut outputs = Vec::new();
        let part = Command::Batch { commands: vec![command.clone()] };
        broker.handle(now, session, part, &mut outputs);
        let mut own = outputs.remove(0);
        others.append(&mut outputs);
        let Reply::Batch(parts) = &mut own.reply else { return vec![own] };
        replies.append(parts);
        answer = Some(own);
    }
    let own = answer.map(|own| Output { reply: Reply::Batch(replies), ..own });
    own.into_iter().chain(others).collect()
}
