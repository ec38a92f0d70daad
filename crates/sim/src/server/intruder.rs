//! A user without rights, who tries everything on the names and messages of others.

use std::sync::Arc;

use journal::Disk;
use model::{
    AdminCommand, Command, ConsumerMode, Destination, End, KeyCommand, LinkId, ListCommand,
    MessageId, Nanos, NewMessage, OneOrMany, Output, Peek, Persistence, Principal, QueueName,
    Refusal, Reply, Rights, SessionId, Subscription,
};

use super::{Outside, Server};
use crate::workload::QUEUES;

impl<D: Disk> Server<D> {
    /// The users of this life: all clients are one who may do everything, and there is the
    /// intruder.
    pub fn invite_intruder(&mut self) {
        self.principal = Principal::almighty("sim");
        self.broker.open_session(SESSION);
        let rights = Rights::new("intruder".into(), [], []);
        self.broker.act_for(SESSION, Principal::User(Arc::new(rights)));
    }

    /// The intruder tries one thing, and nothing comes of it.
    ///
    /// # Panics
    /// When something does.
    pub fn intrude(&mut self, outside: &mut Outside) {
        if self.principal == Principal::Everyone || !self.is_serving() {
            return;
        }
        let now = self.tick(outside);
        self.intrusions += 1;
        let command = attempt(self.intrusions);
        if !self.broker.takes(SESSION, &command) {
            return;
        }
        let asked = format!("{command:?}");
        let mut outputs = Vec::new();
        self.tell_room(outside);
        let (before, frames) = (self.broker.memory_bytes(), self.broker.unwritten());
        self.broker.handle(now, SESSION, command, &mut outputs);
        self.tell_memory(before, outside);
        // A commit of another client may go on at any time.
        let is_quiet = self.committing.is_empty();
        let writes = self.broker.unwritten() != frames;
        assert!(!writes || !is_quiet, "{asked} leaves nothing in the log");
        let own = outputs.iter().position(|output| output.session == SESSION);
        let Output { reply, .. } = outputs.remove(own.expect("the intruder is answered"));
        let is_denied = matches!(&reply, Reply::Refused(Refusal::NotPermitted(_)))
            || matches!(&reply, Reply::NotFound);
        assert!(is_denied, "{asked}: {reply:?}");
        self.route(None, outputs, outside);
    }
}

/// One attempt after the other, on each queue and on messages of late.
fn attempt(number: u64) -> Command {
    let at = number as usize;
    let name = QUEUES.iter().cycle().nth(at % QUEUES.len()).expect("a queue of the workload");
    let queue = QueueName::new(name).expect("a name of the workload");
    let message = MessageId(1 + number % 500);
    let (link, body) = (LinkId(0), Arc::<[u8]>::from(&b"intruder"[..]));
    let destination = Destination::Queue(queue.clone());
    let of_list = |command| Command::List(command);
    let of_operator = |command| Command::Admin(Box::new(command));
    match number / QUEUES.len() as u64 % 20 {
        0 => Command::PutTo { to: destination, message: NewMessage::new(body), transaction: None },
        1 => Command::Publish { topic: queue, message: NewMessage::new(body) },
        2 => Command::Watch { link, queue },
        3 => Command::OpenConsumer { link, queue, selector: None, mode: ConsumerMode::Take },
        4 => Command::Subscribe { link, subscription: Box::new(Subscription::new(queue)) },
        5 => Command::Lease { message },
        6 => Command::Delete { message },
        7 => Command::Release { message, priority: 0, delay: None },
        8 => Command::KickMessage { message },
        9 => Command::Peek(Peek::Message(message)),
        10 => Command::Pause { queue, duration: Nanos::SECOND },
        11 => of_list(ListCommand::Push {
            queue,
            end: End::Head,
            elements: OneOrMany::One(body),
            only_existing: false,
            persistence: Persistence::Persistent,
        }),
        12 => of_list(ListCommand::Pop { queue, end: End::Head, max: 1 }),
        13 => of_list(ListCommand::Range { queue, origin: End::Head, first: 0, last: -1 }),
        14 => Command::Key(KeyCommand::Delete { names: vec![queue] }),
        15 => Command::Key(KeyCommand::DeleteAll { database: None }),
        16 => of_operator(AdminCommand::Purge { queue, state: None, selector: None, after: None }),
        17 => of_operator(AdminCommand::Delete { queue }),
        18 => of_operator(AdminCommand::MoveMessages {
            from: queue.clone(),
            to: Some(queue),
            message: None,
            selector: None,
            before: MessageId(u64::MAX),
            max: 10,
            after: None,
        }),
        _ => Command::OpenProducer { link, to: destination },
    }
}

/// No client's session has this number.
const SESSION: SessionId = SessionId(u64::MAX - 1);
