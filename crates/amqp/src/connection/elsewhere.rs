//! Addresses that mean something to another broker, and nothing here. Made a queue, each would
//! collect messages that no consumer reads, or let its consumer wait for ever.

use alloc::format;

use model::{Destination, words};

use crate::error::{Error, condition};

/// Why a link's destination means something else elsewhere, if it does. Only a consumer of topics
/// may name a pattern.
pub(crate) fn meaning_of(destination: &Destination, is_consumer: bool) -> Option<&'static str> {
    let name = destination.name().as_str();
    let may_be_pattern = is_consumer && matches!(destination, Destination::Topic(_));
    let is_pattern = !may_be_pattern && words::is_pattern(name);
    meaning(name).or(is_pattern.then_some(PATTERN))
}

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

/// The reason why a pattern is refused that can match nothing.
const PATTERN: &str = "it is a pattern, which only consumers of topics may name (topic://a.*)";

/// How the addresses of RabbitMQ begin, of both versions.
const PATHS: [&str; 6] =
    ["/queues/", "/exchanges/", "/queue/", "/exchange/", "/topic/", "/amq/queue/"];

/// The refusal for a peer that wants to send or receive there.
pub(crate) fn refusal(meaning: &str) -> Error {
    Error::new(condition::NOT_FOUND, format!("there is no such destination: {meaning}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_for_topic_consumers() {
        let name = |text| model::QueueName::new(text).expect("a name");
        for pattern in ["news.*", "news.#", "news.>", "*", "#"] {
            let (topic, queue) =
                (Destination::Topic(name(pattern)), Destination::Queue(name(pattern)));
            assert_eq!(meaning_of(&topic, true), None, "{pattern}");
            for (destination, is_consumer) in [(&topic, false), (&queue, true), (&queue, false)] {
                assert!(meaning_of(destination, is_consumer).is_some(), "{pattern}");
            }
        }
        assert_eq!(meaning_of(&Destination::Queue(name("c#")), true), None);
    }

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
