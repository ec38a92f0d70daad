//! The links of a client: their attach frames, and their credit.

use amqp::encode;
use amqp::performative::{Attach, Role, SenderSettleMode};
use amqp::state::Outcome;
use amqp::terminus::{
    AttachTarget, Coordinator, DistributionMode, ExpiryPolicy, Source, Target, TerminusDurability,
};
use amqp::types::{Fields, Symbols, Value};

/// The address that messages go to and come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its address.
    pub name: String,
    /// Queue or topic.
    pub kind: Kind,
}

/// The kind of destination: each message is for one consumer, or for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// For one consumer.
    Queue,
    /// For all.
    Topic,
}

/// How a consumer gets messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Copies; the messages stay.
    pub browse: bool,
    /// Only those that this is true of.
    pub selector: Option<String>,
    /// By a subscription of this name, which outlives the connection.
    pub subscription: Option<String>,
}

/// A link of the client.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) role: Role,
    /// Its name at both ends.
    pub(super) name: String,
    /// True if the broker has attached it.
    pub(super) is_attached: bool,
    /// True if it was detached: its number may be used again.
    pub(super) is_gone: bool,
    /// Deliveries sent or received.
    pub(super) count: u32,
    /// How many deliveries more may follow.
    pub(super) credit: u32,
}

impl Link {
    pub(super) fn new(role: Role, name: String) -> Self {
        Self { role, name, is_attached: false, is_gone: false, count: 0, credit: 0 }
    }

    /// True if it can send or receive: a sender once it has credit.
    pub(super) fn is_ready(&self) -> bool {
        self.is_attached && (self.role == Role::Receiver || self.credit > 0)
    }
}

impl Place {
    /// Artemis and Classic tell queues from topics by the capability; Dunlin takes both.
    fn capability(&self) -> Symbols {
        Symbols::from([if self.kind == Kind::Queue { "queue" } else { "topic" }])
    }
}

/// A link by which messages go to a place.
pub(super) fn producer(handle: u32, to: &Place) -> Attach {
    let target = Target {
        address: Some(to.name.clone()),
        capabilities: to.capability(),
        ..Target::default()
    };
    sender(handle, "producer", AttachTarget::Node(target))
}

/// The link by which transactions are begun and ended.
pub(super) fn coordinator(handle: u32) -> Attach {
    let capabilities = Symbols::from(["amqp:local-transactions"]);
    sender(handle, "coordinator", AttachTarget::Coordinator(Coordinator { capabilities }))
}

fn sender(handle: u32, name: &str, target: AttachTarget) -> Attach {
    let outcomes = OUTCOMES.into_iter().collect();
    Attach {
        snd_settle_mode: SenderSettleMode::Unsettled,
        source: Some(Source { outcomes, ..Source::default() }),
        target: Some(target),
        initial_delivery_count: Some(0),
        ..Attach::new(format!("{name}-{handle}"), handle, Role::Sender)
    }
}

/// A link by which messages come.
pub(super) fn consumer(handle: u32, from: &Place, wanted: &Wanted) -> Attach {
    let is_durable = wanted.subscription.is_some();
    let source = Source {
        address: Some(from.name.clone()),
        durable: match is_durable {
            true => TerminusDurability::UnsettledState,
            false => TerminusDurability::None,
        },
        expiry_policy: if is_durable { ExpiryPolicy::Never } else { ExpiryPolicy::SessionEnd },
        distribution_mode: wanted.browse.then_some(DistributionMode::Copy),
        filter: wanted.selector.as_deref().map(selector_filter).unwrap_or_default(),
        default_outcome: Some(Outcome::Released),
        outcomes: OUTCOMES.into_iter().collect(),
        capabilities: from.capability(),
        ..Source::default()
    };
    let name = wanted.subscription.clone().unwrap_or_else(|| format!("consumer-{handle}"));
    Attach {
        snd_settle_mode: SenderSettleMode::Unsettled,
        source: Some(source),
        target: Some(AttachTarget::Node(Target::default())),
        ..Attach::new(name, handle, Role::Receiver)
    }
}

/// The filter of a source that selects so, as JMS clients write it.
fn selector_filter(selector: &str) -> Fields {
    let mut described = vec![0];
    encode::value(&mut described, Value::Symbol(SELECTOR_FILTER));
    encode::value(&mut described, Value::String(selector));
    let filter = Value::decode(&described).expect("invariant: a described string is a value");
    Fields::default().with("jms-selector", filter)
}

const SELECTOR_FILTER: &str = "apache.org:selector-filter:string";

const OUTCOMES: [&str; 4] =
    ["amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_says_the_selector() {
        let source = Source { filter: selector_filter("a >= 0"), ..Default::default() };
        assert_eq!(source.filter(0, SELECTOR_FILTER), Some(Value::String("a >= 0")));
    }
}
