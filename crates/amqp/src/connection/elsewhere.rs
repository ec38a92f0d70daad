//! Addresses that mean something to another broker, and nothing here: made a queue, each would
//! collect messages that nobody looks at, or let its consumer wait for ever.

use alloc::format;

use crate::error::{Error, condition};

/// Why a name is one of another broker's, if it is. A queue that is there may have it all the same.
pub(crate) fn meaning(name: &str) -> Option<&'static str> {
    let is_service = name.split('/').any(|part| part.starts_with('$')) || name == "/management";
    let is_virtual = name.starts_with("Consumer.") && name.contains(".VirtualTopic.");
    let is_advice = name.starts_with("ActiveMQ.Advisory.");
    let is_path = PATHS.iter().any(|path| name.starts_with(path));
    let has_options = name.split_once('?').is_some_and(|(_, options)| options.contains('='));
    let meanings = [
        (is_service, "it is a service of other brokers, which is not there"),
        (is_path, "it is a path of RabbitMQ: name the queue or topic itself"),
        (name.contains("://"), "it is a URL: name the queue or topic itself"),
        (name.contains("::"), "queues have no name of their own beside their address"),
        (has_options, "destinations have no options: set them with the client, or by --queue"),
        (is_virtual, "there are no virtual topics: use a shared or durable subscription"),
        (is_advice, "there are no advisory topics: ask by HTTP or the command line"),
        (name.contains(','), "a link has one destination: use several"),
    ];
    meanings.into_iter().find(|(is_it, _)| *is_it).map(|(_, meaning)| meaning)
}

/// How the addresses of RabbitMQ begin, of both versions.
const PATHS: [&str; 6] =
    ["/queues/", "/exchanges/", "/queue/", "/exchange/", "/topic/", "/amq/queue/"];

/// What a peer is told that wants to send or receive there.
pub(crate) fn refusal(meaning: &str) -> Error {
    Error::new(condition::NOT_FOUND, format!("there is no such destination: {meaning}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_other_brokers_are_known() {
        for name in [
            "$management",
            "$cbs",
            "orders/$management",
            "orders/Subscriptions/a/$DeadLetterQueue",
            "$share/group/news",
            "/management",
            "/queues/orders",
            "/exchanges/amq.direct/key",
            "/exchange/orders/key",
            "/amq/queue/orders",
            "orders?consumer.prefetchSize=1",
            "orders?broadcast=true",
            "orders,copies",
            "orders::orders",
            "temp-queue://x",
            "amqp://localhost/orders",
            "Consumer.A.VirtualTopic.Orders",
            "ActiveMQ.Advisory.Connection",
        ] {
            assert!(meaning(name).is_some(), "{name}");
        }
        for name in [
            "orders",
            "a/b",
            "/orders",
            "really?",
            "a?b",
            "a:b",
            "price$",
            "VirtualTopic.Orders",
            "Consumer.A",
            "queue.management",
            "temporary/queue/1",
            "größe & mehr",
        ] {
            assert_eq!(meaning(name), None, "{name}");
        }
    }
}
