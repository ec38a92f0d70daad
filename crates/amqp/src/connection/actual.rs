//! The actual ends of a link, as our attach states them, though they be less than the peer asked
//! for (2.6.3, 3.5.3, 3.5.4). A peer that needs more can read that it does not get it.

use model::{Destination, Subscription};

use crate::connection::address;
use crate::state::Outcome;
use crate::terminus::{
    DistributionMode, ExpiryPolicy, LifetimePolicy, Source, Target, TerminusDurability,
};
use crate::types::{Fields, Symbols};

/// The outcomes that a consumer may use, all of them.
const OUTCOMES: [&str; 4] =
    ["amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list"];

/// A queue from which a consumer takes, or copies: the link keeps nothing that outlives it.
pub(crate) fn queue(source: &mut Source, browses: bool) {
    let mode = if browses { DistributionMode::Copy } else { DistributionMode::Move };
    source.distribution_mode = Some(mode);
    source.capabilities = known(&source.capabilities, &address::QUEUE);
    address::keep_known_filters(source, false);
    end_with_link(source);
    complete(source);
}

/// A subscription of a topic.
pub(crate) fn subscription(source: &mut Source, subscription: &Subscription) {
    source.distribution_mode = Some(DistributionMode::Copy);
    let kind = known(&source.capabilities, &address::TOPIC);
    let is_global = subscription.name.as_ref().is_some_and(|name| name.client.is_none());
    let shared = subscription.shared.then_some(address::SHARED);
    let global = is_global.then_some(address::GLOBAL);
    source.capabilities = kind.iter().chain(shared).chain(global).collect();
    address::keep_known_filters(source, subscription.without.is_some());
    if subscription.is_durable() {
        (source.expiry_policy, source.timeout) = address::expiry_fields(subscription.expiry);
    } else {
        end_with_link(source);
    }
    complete(source);
}

/// The target of a producer's messages: the node, and nothing of the link's own.
pub(crate) fn target(target: &mut Target, destination: Option<&Destination>) {
    let kinds: &[&str] = match destination {
        Some(Destination::Queue(_)) => &address::QUEUE,
        Some(Destination::Topic(_)) => &address::TOPIC,
        None => &[],
    };
    target.capabilities = known(&target.capabilities, kinds);
    target.durable = TerminusDurability::None;
    (target.expiry_policy, target.timeout) = (ExpiryPolicy::LinkDetach, 0);
    target.dynamic_node_properties = lifetime(target.dynamic);
}

fn end_with_link(source: &mut Source) {
    source.durable = TerminusDurability::None;
    (source.expiry_policy, source.timeout) = (ExpiryPolicy::LinkDetach, 0);
}

/// Completes the fields that all sources share.
fn complete(source: &mut Source) {
    source.dynamic_node_properties = lifetime(source.dynamic);
    source.default_outcome.get_or_insert(Outcome::Released);
    let asked = core::mem::take(&mut source.outcomes);
    source.outcomes = if asked.is_empty() { OUTCOMES.into() } else { known(&asked, &OUTCOMES) };
}

/// A node that was made for a link goes with it, whenever else it was to go.
fn lifetime(is_dynamic: bool) -> Fields {
    let mut properties = Fields::default();
    if is_dynamic {
        LifetimePolicy::DeleteOnClose.insert_into(&mut properties);
    }
    properties
}

/// Those of the asked symbols that mean something here.
fn known(asked: &Symbols, known: &[&str]) -> Symbols {
    asked.iter().filter(|symbol| known.contains(symbol)).collect()
}
