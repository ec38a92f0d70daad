//! fe2o3-amqp as the oracle: it reads our bytes, and we read its bytes.
//!
//! A performative goes ours → theirs → ours and has to be the same. Two fields that we had
//! confused would come back all the same, so one of each kind is compared field by field as well.

use amqp::performative::{Performative, Role, Transfer};
use amqp::sasl::{SaslBody, SaslCode};
use amqp::state::{DeliveryState, Outcome};
use amqp::terminus::{ExpiryPolicy, Source, TerminusDurability};
use amqp::transaction::CoordinatorRequest;
use fe2o3_amqp_types::performatives::Performative as Theirs;
use fe2o3_amqp_types::{definitions, messaging, performatives, sasl, transaction};
use proptest::prelude::*;
use serde_amqp::primitives::{Array, Symbol};
use serde_amqp::{from_slice, to_vec};

use crate::strategy;

proptest! {
    #![proptest_config(strategy::config())]

    #[test]
    fn performatives_pass_through_the_oracle(ours in strategy::performative()) {
        let mut encoded = Vec::new();
        ours.encode(&mut encoded);
        let theirs: Theirs = from_slice(&encoded).unwrap();
        let encoded = to_vec(&theirs).unwrap();
        prop_assert_eq!(Performative::decode(&encoded), Ok((ours, &[][..])));
    }
}

fn theirs_of(ours: &Performative<'_>) -> Theirs {
    let mut encoded = Vec::new();
    ours.encode(&mut encoded);
    from_slice(&encoded).unwrap()
}

#[test]
fn open_fields_match_oracle() {
    let mut open = amqp::performative::Open::new("container");
    open.hostname = Some("host".into());
    open.max_frame_size = 1000;
    open.channel_max = 77;
    open.idle_time_out = Some(5);
    open.outgoing_locales = ["out"].into();
    open.incoming_locales = ["in"].into();
    open.offered_capabilities = ["offered", "more"].into();
    open.desired_capabilities = ["desired"].into();
    let theirs = performatives::Open {
        container_id: "container".into(),
        hostname: Some("host".into()),
        max_frame_size: 1000.into(),
        channel_max: 77.into(),
        idle_time_out: Some(5),
        outgoing_locales: symbols(&["out"]),
        incoming_locales: symbols(&["in"]),
        offered_capabilities: symbols(&["offered", "more"]),
        desired_capabilities: symbols(&["desired"]),
        properties: None,
    };
    assert_eq!(theirs_of(&Performative::Open(Box::new(open))), Theirs::Open(theirs));
}

fn symbols(symbols: &[&str]) -> Option<Array<Symbol>> {
    Some(Array::from(symbols.iter().map(|symbol| Symbol::from(*symbol)).collect::<Vec<_>>()))
}

#[test]
fn begin_and_flow_fields_match_oracle() {
    let begin = amqp::performative::Begin {
        remote_channel: Some(1),
        next_outgoing_id: 2,
        incoming_window: 3,
        outgoing_window: 4,
        handle_max: 5,
        offered_capabilities: ["offered"].into(),
        desired_capabilities: ["desired"].into(),
        ..Default::default()
    };
    let theirs = performatives::Begin {
        remote_channel: Some(1),
        next_outgoing_id: 2,
        incoming_window: 3,
        outgoing_window: 4,
        handle_max: definitions::Handle(5),
        offered_capabilities: symbols(&["offered"]),
        desired_capabilities: symbols(&["desired"]),
        properties: None,
    };
    assert_eq!(theirs_of(&Performative::Begin(Box::new(begin))), Theirs::Begin(theirs));

    let flow = amqp::performative::Flow {
        next_incoming_id: Some(1),
        incoming_window: 2,
        next_outgoing_id: 3,
        outgoing_window: 4,
        handle: Some(5),
        delivery_count: Some(6),
        link_credit: Some(7),
        available: Some(8),
        drain: true,
        echo: false,
        properties: Default::default(),
    };
    let theirs = performatives::Flow {
        next_incoming_id: Some(1),
        incoming_window: 2,
        next_outgoing_id: 3,
        outgoing_window: 4,
        handle: Some(definitions::Handle(5)),
        delivery_count: Some(6),
        link_credit: Some(7),
        available: Some(8),
        drain: true,
        echo: false,
        properties: None,
    };
    assert_eq!(theirs_of(&Performative::Flow(flow)), Theirs::Flow(theirs));
}

#[test]
fn source_fields_match_oracle() {
    let mut attach = amqp::performative::Attach::new("name", 9, Role::Receiver);
    attach.max_message_size = Some(8);
    attach.initial_delivery_count = Some(7);
    attach.source = Some(Source {
        address: Some("address".into()),
        durable: TerminusDurability::UnsettledState,
        expiry_policy: ExpiryPolicy::Never,
        timeout: 6,
        outcomes: ["amqp:accepted:list"].into(),
        capabilities: ["queue"].into(),
        ..Source::default()
    });
    let Theirs::Attach(theirs) = theirs_of(&Performative::Attach(Box::new(attach))) else {
        panic!()
    };
    assert_eq!((&*theirs.name, theirs.handle.0), ("name", 9));
    assert_eq!(theirs.role, definitions::Role::Receiver);
    assert_eq!((theirs.initial_delivery_count, theirs.max_message_size), (Some(7), Some(8)));
    let source = *theirs.source.unwrap();
    assert_eq!(source.address.as_deref(), Some("address"));
    assert_eq!(source.durable, messaging::TerminusDurability::UnsettledState);
    assert_eq!(source.expiry_policy, messaging::TerminusExpiryPolicy::Never);
    assert_eq!((source.timeout, source.dynamic), (6, false));
    assert_eq!(source.outcomes, symbols(&["amqp:accepted:list"]));
    assert_eq!(source.capabilities, symbols(&["queue"]));
    assert_eq!(theirs.target, None);
}

#[test]
fn transfer_fields_match_oracle() {
    let transfer = Transfer {
        handle: 1,
        delivery_id: Some(2),
        delivery_tag: Some(b"tag"),
        message_format: Some(3),
        settled: Some(true),
        more: false,
        state: Some(DeliveryState::Transactional {
            txn_id: b"txn",
            outcome: Some(Outcome::Accepted),
        }),
        aborted: true,
        ..Transfer::default()
    };
    let Theirs::Transfer(theirs) = theirs_of(&Performative::Transfer(transfer)) else { panic!() };
    assert_eq!((theirs.handle.0, theirs.delivery_id, theirs.message_format), (1, Some(2), Some(3)));
    assert_eq!(theirs.delivery_tag.as_ref().map(|tag| &tag[..]), Some(&b"tag"[..]));
    let flags = (theirs.settled, theirs.more, theirs.resume, theirs.aborted, theirs.batchable);
    assert_eq!(flags, (Some(true), false, false, true, false));
    let Some(messaging::DeliveryState::TransactionalState(state)) = theirs.state else { panic!() };
    assert_eq!(&state.txn_id[..], b"txn");
    assert_eq!(state.outcome, Some(messaging::Outcome::Accepted(messaging::Accepted {})));
}

#[test]
fn sasl_is_read_both_ways() {
    let init = sasl::SaslInit {
        mechanism: "PLAIN".into(),
        initial_response: Some(b"\0u\0p".to_vec().into()),
        hostname: Some("host".into()),
    };
    let ours = SaslBody::Init {
        mechanism: "PLAIN",
        initial_response: Some(b"\0u\0p"),
        hostname: Some("host"),
    };
    assert_eq!(SaslBody::decode(&to_vec(&init).unwrap()), Ok(ours));

    let mut encoded = Vec::new();
    SaslBody::Mechanisms(["PLAIN", "ANONYMOUS"].into()).encode(&mut encoded);
    let theirs: sasl::SaslMechanisms = from_slice(&encoded).unwrap();
    assert_eq!(Some(theirs.sasl_server_mechanisms), symbols(&["PLAIN", "ANONYMOUS"]));

    encoded.clear();
    SaslBody::Outcome { code: SaslCode::SysTemp, additional_data: None }.encode(&mut encoded);
    let theirs: sasl::SaslOutcome = from_slice(&encoded).unwrap();
    assert_eq!(theirs.code, sasl::SaslCode::SysTemp);
}

#[test]
fn coordinator_requests_match_oracle() {
    let discharge = transaction::Discharge { txn_id: b"7".to_vec().into(), fail: Some(true) };
    let message = [&[0x00, 0x53, 0x77], &to_vec(&discharge).unwrap()[..]].concat();
    let ours = CoordinatorRequest::Discharge { txn_id: b"7", fail: true };
    assert_eq!(CoordinatorRequest::decode(&message), Ok(ours));

    let mut encoded = Vec::new();
    CoordinatorRequest::Declare { global_id: None }.encode(&mut encoded);
    let theirs: transaction::Declare = from_slice(&encoded[3..]).unwrap();
    assert_eq!(theirs, transaction::Declare { global_id: None });
}
