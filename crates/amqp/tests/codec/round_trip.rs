//! Encoded values decode to the same, and no shorter encoding would do.

use amqp::encode;
use amqp::performative::Performative;
use amqp::sasl::{SaslBody, SaslCode};
use amqp::transaction::CoordinatorRequest;
use amqp::types::{Symbols, Value};
use proptest::prelude::*;

use crate::strategy;

proptest! {
    #![proptest_config(strategy::config())]

    #[test]
    fn performatives_come_back(performative in strategy::performative(), payload: [u8; 3]) {
        let mut encoded = Vec::new();
        performative.encode(&mut encoded);
        prop_assert_ne!(last_field(&encoded), Some(Value::Null), "nulls at the end are left out");
        let has_payload = matches!(performative, Performative::Transfer(_));
        let payload = if has_payload { &payload[..] } else { &[] };
        encoded.extend_from_slice(payload);
        prop_assert_eq!(Performative::decode(&encoded), Ok((performative, payload)));
    }

    #[test]
    fn performative_prefixes_are_truncated(performative in strategy::performative()) {
        let mut encoded = Vec::new();
        performative.encode(&mut encoded);
        for end in 0..encoded.len() {
            let error = Performative::decode(&encoded[..end]).unwrap_err();
            prop_assert_eq!(error.kind, amqp::DecodeErrorKind::Truncated);
            prop_assert!(error.offset <= end);
        }
    }

    #[test]
    fn scalars_come_back(value in strategy::scalar()) {
        let mut encoded = Vec::new();
        encode::value(&mut encoded, value);
        prop_assert_eq!(Value::decode(&encoded), Ok(value));
    }

    #[test]
    fn maps_of_any_size_come_back(values in prop::collection::vec(strategy::scalar(), 0..200)) {
        let mut encoded = Vec::new();
        encode::map(&mut encoded, |map| {
            for (number, value) in values.iter().enumerate() {
                map.string(&number.to_string(), *value);
            }
        });
        let Ok(Value::Map(map)) = Value::decode(&encoded) else { panic!("{encoded:?}") };
        prop_assert_eq!(map.iter().map(|(_, value)| value).collect::<Vec<_>>(), values);
        let mut again = Vec::new();
        encode::value(&mut again, Value::Map(map));
        prop_assert_eq!(again, encoded);
    }
}

fn last_field(composite: &[u8]) -> Option<Value<'_>> {
    let Ok(Value::Described(described)) = Value::decode(composite) else { panic!("no composite") };
    let Value::List(fields) = described.value() else { panic!("no list") };
    fields.iter().last()
}

#[test]
fn sasl_bodies_come_back() {
    let bodies = [
        SaslBody::Mechanisms(["PLAIN"].into()),
        SaslBody::Mechanisms(["PLAIN", "ANONYMOUS"].into()),
        SaslBody::Init { mechanism: "ANONYMOUS", initial_response: None, hostname: None },
        SaslBody::Init { mechanism: "PLAIN", initial_response: Some(b"x"), hostname: Some("h") },
        SaslBody::Challenge(b"c"),
        SaslBody::Response(b""),
        SaslBody::Outcome { code: SaslCode::Auth, additional_data: None },
        SaslBody::Outcome { code: SaslCode::Ok, additional_data: Some(b"v=") },
    ];
    for body in bodies {
        let mut encoded = Vec::new();
        body.encode(&mut encoded);
        assert_eq!(SaslBody::decode(&encoded), Ok(body));
    }
}

#[test]
fn requests_to_the_coordinator_come_back() {
    let requests = [
        CoordinatorRequest::Declare { global_id: None },
        CoordinatorRequest::Declare { global_id: Some(b"xid") },
        CoordinatorRequest::Discharge { txn_id: b"7", fail: false },
        CoordinatorRequest::Discharge { txn_id: b"7", fail: true },
    ];
    for request in requests {
        let mut encoded = Vec::new();
        request.encode(&mut encoded);
        assert_eq!(CoordinatorRequest::decode(&encoded), Ok(request));
    }
}

#[test]
fn long_symbols_make_a_long_array() {
    let (long, longer) = ("x".repeat(255), "x".repeat(256));
    for several in [[&*long, "short"], [&*longer, "short"]] {
        let mut open = amqp::performative::Open::new("c");
        open.desired_capabilities = Symbols::from(several);
        let mut encoded = Vec::new();
        open.encode(&mut encoded);
        let (performative, _) = Performative::decode(&encoded).unwrap();
        assert_eq!(performative, Performative::Open(Box::new(open)));
    }
}
