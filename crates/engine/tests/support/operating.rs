//! Commands of operators and the replies, in the language of the scripts.

use model::{
    AdminCommand, Command, MessageState, OwnPolicy, Page, PageEnd, PolicyChange, QueueRule, Reply,
    RuleKey, SubscriptionStatistics,
};

use super::script::{Words, message, name, shown_fields};

/// The command of these words, if they are an operator's.
pub(crate) fn command(all: &Words<'_>, words: &[&str]) -> Option<Command> {
    let named = |name| all.named.get(name).copied();
    let state = named("state").map(state);
    let selector = named("selector").map(Into::into);
    let after = named("after").map(place);
    let admin = match *words {
        ["page", queue] => {
            let max = named("max").map_or(usize::MAX, |max| max.parse().unwrap());
            AdminCommand::Browse { queue: name(queue), state, selector, after, max }
        }
        ["show", id] => AdminCommand::Show { message: message(id) },
        ["purge", queue] => AdminCommand::Purge { queue: name(queue), state, selector, after },
        ["move", from, ref to @ ..] => AdminCommand::MoveMessages {
            from: name(from),
            to: to.first().map(|to| name(to)),
            message: named("message").map(message),
            selector,
            before: message(named("before").unwrap_or("1000000")),
            max: named("max").map_or(u64::MAX, |max| max.parse().unwrap()),
            after,
        },
        ["delete-queue", queue] => AdminCommand::Delete { queue: name(queue) },
        ["policy", queue] => AdminCommand::Policy { queue: name(queue) },
        ["set-policy", queue, ref forget @ ..] => {
            let forget = forget.iter().map(|word| RuleKey::named(word).unwrap()).collect();
            let change = Box::new(PolicyChange { forget, set: rules(all) });
            AdminCommand::ChangePolicy { queue: name(queue), change }
        }
        ["reset-policy", queue] => {
            let change = Box::new(PolicyChange::to(rules(all)));
            AdminCommand::ChangePolicy { queue: name(queue), change }
        }
        ["policies"] => {
            let max = named("max").map_or(usize::MAX, |max| max.parse().unwrap());
            AdminCommand::ListPolicies { after: named("after").map(name), max }
        }
        ["subscriptions"] => AdminCommand::ListSubscriptions,
        ["next-message"] => AdminCommand::NextMessage,
        _ => return None,
    };
    Some(Command::Admin(Box::new(admin)))
}

pub(crate) fn shown_reply(reply: &Reply) -> String {
    match reply {
        Reply::CountUntil { count, next } => format!("count {count} until {}", shown_place(next)),
        Reply::Page(page) => shown_page(page),
        Reply::Policy(policy) => {
            // Only the queue's own part of redelivery.
            let holds = format!("{:?}", policy.holds);
            let holds = shown_fields(holds.split(", redelivery").next().unwrap());
            format!("{holds}{}", shown_rules(&policy.own))
        }
        Reply::OwnPolicies(all) => {
            let all = all.iter().map(|(name, own)| format!("{name}:{}", shown_rules(own)));
            ["policies".to_owned()].into_iter().chain(all).collect::<Vec<_>>().join(", ")
        }
        Reply::Subscriptions(all) => {
            let all = all.iter().map(shown_subscription);
            ["subscriptions".to_owned()].into_iter().chain(all).collect::<Vec<_>>().join(", ")
        }
        other => format!("{other:?}"),
    }
}

fn rules(all: &Words<'_>) -> OwnPolicy {
    let mut own = OwnPolicy::default();
    for (key, text) in &all.named {
        own.set(QueueRule::parse(RuleKey::named(key).unwrap(), text).unwrap());
    }
    own
}

/// The rules of a queue's own.
pub(crate) fn shown_rules(own: &OwnPolicy) -> String {
    own.iter().map(|rule| format!(" {}={rule}", rule.key().word())).collect()
}

fn shown_page(page: &Page) -> String {
    let mut shown = vec!["page".to_owned()];
    for message in &page.messages {
        let delivery = &message.delivery;
        let left = match message.time_left.0 {
            0 => String::new(),
            left => format!(" for {}ms", left / 1_000_000),
        };
        let dead = delivery.dead.as_ref().map_or(String::new(), |dead| {
            let of = dead.subscription.as_ref();
            let of = of.map_or(String::new(), |of| format!(" by {}", of.name));
            format!(" dead: {} from {}{of}", dead.reason.word(), dead.from)
        });
        let (id, body) = (delivery.message, delivery.body.escape_ascii());
        let (queue, state) = (&message.queue, word(message.state));
        shown.push(format!("{id} {body} {state} in {queue}{left}{dead}"));
    }
    shown.extend(page.next.as_ref().map(|next| format!("next {}", shown_place(next))));
    shown.join(", ")
}

fn shown_subscription(statistics: &SubscriptionStatistics) -> String {
    let SubscriptionStatistics { subscription, ready, leased, consumers, .. } = statistics;
    let name = subscription.name.as_ref().map_or("nameless", |name| name.name.as_str());
    let topic = &subscription.topic;
    format!("{name} of {topic} ready {ready} leased {leased} consumers {consumers}")
}

fn shown_place(place: &PageEnd) -> String {
    let PageEnd { state, priority, place, message } = place;
    format!("{}:{priority}:{place}:{message}", word(*state))
}

fn place(word: &str) -> PageEnd {
    let parts: Vec<_> = word.split(':').collect();
    let [state, priority, place, id] = parts[..] else { panic!("{word}") };
    PageEnd {
        state: self::state(state),
        priority: priority.parse().unwrap(),
        place: place.parse().unwrap(),
        message: message(id),
    }
}

fn state(word: &str) -> MessageState {
    *STATES.iter().find(|state| self::word(**state) == word).unwrap()
}

fn word(state: MessageState) -> &'static str {
    match state {
        MessageState::Ready => "ready",
        MessageState::Leased => "leased",
        MessageState::Delayed => "delayed",
        MessageState::Buried => "buried",
    }
}

const STATES: [MessageState; 4] =
    [MessageState::Ready, MessageState::Leased, MessageState::Delayed, MessageState::Buried];
