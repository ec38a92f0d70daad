//! Arbitrary performatives, states and messages: every field absent, default and otherwise.

use amqp::error::Error;
use amqp::performative::{
    Attach, Begin, Close, Detach, Disposition, End, Flow, Open, Performative, ReceiverSettleMode,
    Role, SenderSettleMode, Transfer, Unsettled,
};
use amqp::state::{DeliveryState, Modified, Outcome};
use amqp::terminus::{
    AttachTarget, Coordinator, DistributionMode, ExpiryPolicy, LifetimePolicy, Source, Target,
    TerminusDurability,
};
use amqp::types::{Fields, Symbols, Value};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;

/// The same cases on every machine and in every run.
pub(crate) fn config() -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(0x5eed);
    ProptestConfig { cases: 512, rng_seed, failure_persistence: None, ..Default::default() }
}

/// Numbers on both sides of every change of form.
fn uint() -> BoxedStrategy<u32> {
    prop_oneof![select(&[0, 1, 127, 128, 255, 256, u32::MAX - 1, u32::MAX][..]), any::<u32>()]
        .boxed()
}

fn text() -> BoxedStrategy<String> {
    prop_oneof!["[a-zé]{0,9}", "x{250,260}"].boxed()
}

const WORDS: [&str; 6] = ["", "a", "queue", "amqp:accepted:list", "x-opt-y", "DELAYED_DELIVERY"];

const BYTES: [&[u8]; 4] = [b"", b"\0", b"txn", &[0xff; 32]];

pub(crate) fn bytes() -> BoxedStrategy<&'static [u8]> {
    select(&BYTES[..]).boxed()
}

fn symbols() -> BoxedStrategy<Symbols> {
    prop::collection::vec(select(&WORDS[..]), 0..4)
        .prop_map(|words| words.into_iter().collect())
        .boxed()
}

/// Scalars that both codecs hold in the same form.
pub(crate) fn scalar() -> BoxedStrategy<Value<'static>> {
    prop_oneof![
        any::<bool>().prop_map(Value::Boolean),
        any::<u8>().prop_map(Value::Ubyte),
        any::<u16>().prop_map(Value::Ushort),
        uint().prop_map(Value::Uint),
        any::<u64>().prop_map(Value::Ulong),
        select(&[0, 1, 255, 256, u64::MAX][..]).prop_map(Value::Ulong),
        any::<i8>().prop_map(Value::Byte),
        any::<i16>().prop_map(Value::Short),
        select(&[0, -1, 127, 128, -128, -129, i32::MIN][..]).prop_map(Value::Int),
        select(&[0, -1, 127, 128, -128, -129, i64::MIN][..]).prop_map(Value::Long),
        select(&[0.0, -1.5, f32::INFINITY][..]).prop_map(Value::Float),
        select(&[0.0, -1.5, f64::INFINITY][..]).prop_map(Value::Double),
        any::<char>().prop_map(Value::Char),
        any::<i64>().prop_map(Value::Timestamp),
        any::<[u8; 16]>().prop_map(Value::Uuid),
        bytes().prop_map(Value::Binary),
        select(&WORDS[..]).prop_map(Value::String),
        select(&WORDS[..]).prop_map(Value::Symbol),
    ]
    .boxed()
}

/// Keys are not repeated: the oracle keeps one of each.
fn fields() -> BoxedStrategy<Fields> {
    prop::collection::vec(scalar(), 0..4)
        .prop_map(|values| {
            let pairs = WORDS.into_iter().zip(values);
            pairs.fold(Fields::default(), |fields, (key, value)| fields.with(key, value))
        })
        .boxed()
}

fn node_properties() -> BoxedStrategy<Fields> {
    let policies = [
        LifetimePolicy::DeleteOnClose,
        LifetimePolicy::DeleteOnNoLinks,
        LifetimePolicy::DeleteOnNoMessages,
        LifetimePolicy::DeleteOnNoLinksOrMessages,
    ];
    (fields(), option::of(select(policies.to_vec())))
        .prop_map(|(mut fields, policy)| {
            if let Some(policy) = policy {
                policy.insert_into(&mut fields);
            }
            fields
        })
        .boxed()
}

fn error() -> BoxedStrategy<Box<Error>> {
    let conditions = ["amqp:not-found", "amqp:link:stolen", "amqp:transaction:rollback", "own:one"];
    (select(conditions.to_vec()), option::of(text()), fields())
        .prop_map(|(condition, description, info)| {
            Box::new(Error { condition: condition.into(), description, info })
        })
        .boxed()
}

fn outcome() -> BoxedStrategy<Outcome> {
    prop_oneof![
        Just(Outcome::Accepted),
        Just(Outcome::Released),
        option::of(error()).prop_map(Outcome::Rejected),
        (any::<bool>(), any::<bool>(), fields()).prop_map(|(failed, here, message_annotations)| {
            let (delivery_failed, undeliverable_here) = (failed, here);
            Outcome::Modified(Modified { delivery_failed, undeliverable_here, message_annotations })
        }),
    ]
    .boxed()
}

pub(crate) fn state() -> BoxedStrategy<DeliveryState<'static>> {
    prop_oneof![
        (uint(), any::<u64>()).prop_map(|(section_number, section_offset)| {
            DeliveryState::Received { section_number, section_offset }
        }),
        outcome().prop_map(DeliveryState::Outcome),
        bytes().prop_map(|txn_id| DeliveryState::Declared { txn_id }),
        (bytes(), option::of(outcome()))
            .prop_map(|(txn_id, outcome)| DeliveryState::Transactional { txn_id, outcome }),
    ]
    .boxed()
}

fn terminus() -> BoxedStrategy<Target> {
    let durable = [
        TerminusDurability::None,
        TerminusDurability::Configuration,
        TerminusDurability::UnsettledState,
    ];
    let policies = [
        ExpiryPolicy::LinkDetach,
        ExpiryPolicy::SessionEnd,
        ExpiryPolicy::ConnectionClose,
        ExpiryPolicy::Never,
    ];
    let (durable, expiry) = (select(durable.to_vec()), select(policies.to_vec()));
    let parts =
        (option::of(text()), durable, expiry, uint(), any::<bool>(), node_properties(), symbols());
    parts
        .prop_map(
            |(address, durable, expiry_policy, timeout, dynamic, properties, capabilities)| {
                let dynamic_node_properties = properties;
                Target {
                    address,
                    durable,
                    expiry_policy,
                    timeout,
                    dynamic,
                    dynamic_node_properties,
                    capabilities,
                }
            },
        )
        .boxed()
}

fn source() -> BoxedStrategy<Source> {
    let modes = vec![DistributionMode::Move, DistributionMode::Copy];
    let parts = (terminus(), option::of(select(modes)), fields(), option::of(outcome()), symbols());
    parts
        .prop_map(|(node, distribution_mode, filter, default_outcome, outcomes)| Source {
            address: node.address,
            durable: node.durable,
            expiry_policy: node.expiry_policy,
            timeout: node.timeout,
            dynamic: node.dynamic,
            dynamic_node_properties: node.dynamic_node_properties,
            distribution_mode,
            filter,
            default_outcome,
            outcomes,
            capabilities: node.capabilities,
        })
        .boxed()
}

fn target() -> BoxedStrategy<AttachTarget> {
    let local = Symbols::from(["amqp:local-transactions"]);
    let capabilities = select(vec![Symbols::default(), local]);
    prop_oneof![
        terminus().prop_map(AttachTarget::Node),
        capabilities
            .prop_map(|capabilities| AttachTarget::Coordinator(Coordinator { capabilities })),
    ]
    .boxed()
}

fn role() -> BoxedStrategy<Role> {
    select(vec![Role::Sender, Role::Receiver]).boxed()
}

fn unsettled() -> BoxedStrategy<Unsettled> {
    option::of((bytes(), option::of(state())))
        .prop_map(|delivery| {
            let mut unsettled = Unsettled::default();
            if let Some((tag, state)) = delivery {
                unsettled.insert(tag, state.as_ref());
            }
            unsettled
        })
        .boxed()
}

pub(crate) fn open() -> BoxedStrategy<Open> {
    let texts = (text(), option::of(text()));
    let numbers = (512_u32.., any::<u16>(), option::of(uint()));
    let lists = (symbols(), symbols(), symbols(), symbols(), fields());
    (texts, numbers, lists)
        .prop_map(|(texts, numbers, lists)| Open {
            container_id: texts.0,
            hostname: texts.1,
            max_frame_size: numbers.0,
            channel_max: numbers.1,
            idle_time_out: numbers.2,
            outgoing_locales: lists.0,
            incoming_locales: lists.1,
            offered_capabilities: lists.2,
            desired_capabilities: lists.3,
            properties: lists.4,
        })
        .boxed()
}

fn begin() -> BoxedStrategy<Begin> {
    let numbers = (option::of(any::<u16>()), uint(), uint(), uint(), uint());
    (numbers, symbols(), symbols(), fields())
        .prop_map(|(numbers, offered, desired, properties)| Begin {
            remote_channel: numbers.0,
            next_outgoing_id: numbers.1,
            incoming_window: numbers.2,
            outgoing_window: numbers.3,
            handle_max: numbers.4,
            offered_capabilities: offered,
            desired_capabilities: desired,
            properties,
        })
        .boxed()
}

fn attach() -> BoxedStrategy<Attach> {
    let senders =
        vec![SenderSettleMode::Unsettled, SenderSettleMode::Settled, SenderSettleMode::Mixed];
    let link = (text(), uint(), role(), select(senders), any::<bool>());
    let ends = (option::of(source()), option::of(target()), unsettled(), any::<bool>());
    let rest = (uint(), option::of(any::<u64>()), symbols(), symbols(), fields());
    (link, ends, rest)
        .prop_map(|(link, ends, rest)| Attach {
            name: link.0,
            handle: link.1,
            role: link.2,
            snd_settle_mode: link.3,
            rcv_settle_mode: second(link.4),
            source: ends.0,
            target: ends.1,
            unsettled: ends.2,
            incomplete_unsettled: ends.3,
            initial_delivery_count: (link.2 == Role::Sender).then_some(rest.0),
            max_message_size: rest.1,
            offered_capabilities: rest.2,
            desired_capabilities: rest.3,
            properties: rest.4,
        })
        .boxed()
}

fn second(is_second: bool) -> ReceiverSettleMode {
    if is_second { ReceiverSettleMode::Second } else { ReceiverSettleMode::First }
}

fn flow() -> BoxedStrategy<Flow> {
    let session = (option::of(uint()), uint(), uint(), uint());
    let link = (option::of(uint()), option::of(uint()), option::of(uint()), option::of(uint()));
    (session, link, any::<bool>(), any::<bool>(), fields())
        .prop_map(|(session, link, drain, echo, properties)| Flow {
            next_incoming_id: session.0,
            incoming_window: session.1,
            next_outgoing_id: session.2,
            outgoing_window: session.3,
            handle: link.0,
            delivery_count: link.1,
            link_credit: link.2,
            available: link.3,
            drain,
            echo,
            properties,
        })
        .boxed()
}

fn transfer() -> BoxedStrategy<Transfer<'static>> {
    let ids = (uint(), option::of(uint()), option::of(bytes()), option::of(uint()));
    let state = (option::of(any::<bool>()), option::of(any::<bool>()), option::of(state()));
    (ids, state, any::<[bool; 4]>())
        .prop_map(|(ids, state, [more, resume, aborted, batchable])| Transfer {
            handle: ids.0,
            delivery_id: ids.1,
            delivery_tag: ids.2,
            message_format: ids.3,
            settled: state.0,
            more,
            rcv_settle_mode: state.1.map(second),
            state: state.2,
            resume,
            aborted,
            batchable,
        })
        .boxed()
}

fn disposition() -> BoxedStrategy<Disposition<'static>> {
    let parts = (role(), uint(), option::of(uint()), option::of(state()), any::<[bool; 2]>());
    parts
        .prop_map(|(role, first, last, state, [settled, batchable])| Disposition {
            role,
            first,
            last,
            settled,
            state,
            batchable,
        })
        .boxed()
}

/// Any performative; boxes as [`Performative`] has them.
pub(crate) fn performative() -> BoxedStrategy<Performative<'static>> {
    let error = || option::of(error());
    prop_oneof![
        open().prop_map(|open| Performative::Open(Box::new(open))),
        begin().prop_map(|begin| Performative::Begin(Box::new(begin))),
        attach().prop_map(|attach| Performative::Attach(Box::new(attach))),
        flow().prop_map(Performative::Flow),
        transfer().prop_map(Performative::Transfer),
        disposition().prop_map(Performative::Disposition),
        (uint(), any::<bool>(), error()).prop_map(|(handle, closed, error)| {
            Performative::Detach(Detach { handle, closed, error })
        }),
        error().prop_map(|error| Performative::End(End { error })),
        error().prop_map(|error| Performative::Close(Close { error })),
    ]
    .boxed()
}
