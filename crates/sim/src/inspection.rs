//! What a broker that has just recovered holds, asked for command by command.

use std::collections::BTreeMap;
use std::rc::Rc;

use broker::Broker;
use model::{
    BrokerStatistics, Command, LinkId, MessageId, MessageState, MessageStatistics, Nanos, Output,
    Peek, QueueName, Reply, SessionId,
};

use crate::{Content, Kept, Standing, workload};

/// All messages of a broker, as of `now`; looks for ids up to a few beyond `last_id`. Leaves a
/// session behind that watches every queue, so that none ends while it is empty.
///
/// # Panics
/// When the broker holds something that no id leads to, or a reply is held back.
pub fn inspect<F: Clone>(broker: &mut Broker<F>, now: Nanos, last_id: u64) -> BTreeMap<u64, Kept> {
    let mut outputs = Vec::new();
    broker.handle_timeout(now, &mut outputs);
    assert!(outputs.is_empty(), "nobody is there to hear of a delay's end: {outputs:?}");
    broker.check();
    broker.open_session(ANCHOR);
    for queue in workload::QUEUES {
        let queue = QueueName::new(queue).expect("invariant: a queue's name");
        ask(broker, now, Command::Watch { link: LinkId(0), queue });
    }
    let ids = 1..=last_id + IDS_BEYOND;
    let found: BTreeMap<u64, Kept> =
        ids.filter_map(|id| Some((id, message(broker, now, MessageId(id))?))).collect();
    let Reply::BrokerStatistics(all) = ask(broker, now, Command::BrokerStatistics) else {
        panic!("statistics are always there");
    };
    let BrokerStatistics { ready, leased, delayed, buried, .. } = *all;
    assert_eq!(leased, 0, "nobody holds a lease after a recovery");
    assert_eq!(ready + delayed + buried, found.len() as u64, "messages that no id leads to");
    found
}

fn message<F: Clone>(broker: &mut Broker<F>, now: Nanos, message: MessageId) -> Option<Kept> {
    let statistics = match ask(broker, now, Command::MessageStatistics { message }) {
        Reply::MessageStatistics(statistics) => statistics,
        Reply::NotFound => return None,
        other => panic!("{other:?} is no statistics"),
    };
    let Reply::Found { body, .. } = ask(broker, now, Command::Peek(Peek::Message(message))) else {
        panic!("{message} has statistics and no body");
    };
    let MessageStatistics { queue, state, priority, lease, time_left, .. } = *statistics;
    let standing = match state {
        MessageState::Ready | MessageState::Leased => Standing::Ready,
        MessageState::Delayed => Standing::Delayed(now + time_left),
        MessageState::Buried => Standing::Buried,
    };
    let lease = u32::try_from(lease.as_secs()).expect("invariant: clients ask for 32 bits");
    let content = Content { queue: queue.as_str().into(), priority, lease, body: Rc::from(body) };
    Some((content, standing))
}

fn ask<F: Clone>(broker: &mut Broker<F>, now: Nanos, command: Command) -> Reply {
    let mut outputs = Vec::new();
    broker.handle(now, ANCHOR, command, &mut outputs);
    let Some(Output { session: ANCHOR, after, reply }) = outputs.pop() else {
        panic!("a command is answered at once");
    };
    assert!(outputs.is_empty(), "one command, one reply");
    assert!(broker.durable().covers(after), "what was recovered is durable: {after:?}");
    reply
}

/// No client's session has this number.
const ANCHOR: SessionId = SessionId(0);

/// Ids beyond those known that are looked for.
const IDS_BEYOND: u64 = 40;
