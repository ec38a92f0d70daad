//! Messages as consumers see them.

use alloc::boxed::Box;

use model::{Delivery, DependsOn, LinkId, MessageId, Payload, Reply};

use crate::bodies::Bodies;
use crate::directory::Directory;
use crate::log::FrameWriter;
use crate::outcome::Outcome;
use crate::store::MessageStore;

impl Directory {
    /// The answer that delivers a message, and the position that it waits for.
    pub(crate) fn delivered(
        &self,
        link: Option<LinkId>,
        id: MessageId,
        bodies: &Bodies,
        store: &MessageStore,
    ) -> (DependsOn, Reply) {
        let delivery = Box::new(self.delivery_of(link, id, bodies, store));
        (store.message(id).after(), Reply::Delivered(delivery))
    }

    /// The message as a consumer sees it.
    pub(crate) fn delivery_of(
        &self,
        link: Option<LinkId>,
        id: MessageId,
        bodies: &Bodies,
        store: &MessageStore,
    ) -> Delivery {
        let message = store.message(id);
        let body = bodies.body_of(id, message, store);
        Delivery {
            link,
            message: id,
            count: message.delivered(),
            failed: message.counters().failed,
            priority: message.priority(),
            created: message.created(),
            expires: message.expires(),
            durability: message.durability(),
            topic: message.topic().cloned(),
            dead: message.dead().map(|dead| Box::new(self.letter_of(dead))),
            format: message.format(),
            payload: Payload::by(bodies.formats()),
            charge: body.bytes_max() as u64,
            body,
        }
    }
}

impl Bodies {
    pub(crate) fn found(
        &self,
        id: Option<MessageId>,
        store: &MessageStore,
        log: &FrameWriter,
    ) -> Outcome {
        let message = id.and_then(|id| Some((id, store.find(id)?)));
        let Some((id, message)) = message else { return log.not_found() };
        let reply = Reply::Found { message: id, element: Box::new(self.element_of(id, store)) };
        Outcome::reply(message.after(), reply)
    }
}
