//! An operator: it gives queues and topics rules of their own while others work.

use journal::Disk;
use model::{AdminCommand, Command, Output, PolicyChange, QueueName, SessionId};

use super::{Outside, Server, brief};

impl<D: Disk> Server<D> {
    /// The operator changes the rules of a name, if the broker takes anything now.
    pub fn rule(&mut self, queue: QueueName, change: PolicyChange, outside: &mut Outside) {
        let now = self.tick(outside);
        let rules = Box::new(change.clone());
        let command = AdminCommand::ChangePolicy { queue: queue.clone(), change: rules };
        let command = Command::Admin(Box::new(command));
        if !self.is_serving() || !self.broker.takes(SESSION, &command) {
            return;
        }
        outside.trace(now, || format!("the operator asks for {}", brief(&command)));
        self.stepped_at = now;
        let mut outputs = Vec::new();
        self.tell_room(outside);
        let before = self.broker.memory_bytes();
        self.broker.handle(now, SESSION, command, &mut outputs);
        self.tell_memory(before, outside);
        let own = outputs.iter().position(|output| output.session == SESSION);
        let Output { after, reply, .. } = outputs.remove(own.expect("the operator is answered"));
        outside.trace(now, || format!("the operator hears {reply:?}"));
        let changes = outside.oracle.ruled(now, &queue, &change, &reply);
        self.writing.note_awaited(after);
        self.stated.push((after, changes));
        self.route(None, outputs, outside);
        self.poll(outside);
    }

    /// The operator reads the answers to its changes that are safe.
    pub fn tell_operator(&mut self, outside: &mut Outside) {
        let durable = self.broker.durable();
        let (now, open) = (self.now, self.gate_is_open);
        let safe = self.stated.extract_if(.., |(after, _)| open || durable.covers(*after));
        safe.for_each(|(_, changes)| outside.oracle.told(now, changes));
    }
}

/// No client's session has this number.
pub(super) const SESSION: SessionId = SessionId(u64::MAX);
