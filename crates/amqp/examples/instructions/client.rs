//! Clients with frames that are made beforehand: their cost is not measured.

use amqp::encode;
use amqp::frame::{self, FrameKind};
use amqp::message::{self, Header, Properties};
use amqp::performative::{
    Attach, Begin, Detach, Disposition, Flow, Open, Performative, Role, Transfer,
};
use amqp::protocol_header::ProtocolHeader;
use amqp::state::{DeliveryState, Outcome};
use amqp::terminus::{AttachTarget, Coordinator, Source, Target};
use amqp::transaction::CoordinatorRequest;
use amqp::types::{Fields, Symbols, Value};

/// Stands for a delivery's number in frames that are numbered later: encoded in four octets.
pub(crate) const DELIVERY: u32 = 0x0100_0000;

/// Stands for the number of a transaction, as the broker numbers them.
pub(crate) const TRANSACTION: [u8; 8] = [0, 0, 0, 0, 2, 0, 0, 0];

/// Frames of one kind, which are numbered before they are sent.
pub(crate) struct Frames {
    bytes: Vec<u8>,
    deliveries: Vec<usize>,
    transactions: Vec<usize>,
}

impl Frames {
    /// `count` times `bytes`, with [`DELIVERY`] and maybe [`TRANSACTION`] in them.
    pub(crate) fn of(bytes: &[u8], count: usize) -> Self {
        let bytes = bytes.repeat(count);
        let deliveries = places(&bytes, &DELIVERY.to_be_bytes());
        assert_eq!(deliveries.len(), count, "each is of one delivery");
        let transactions = places(&bytes, &TRANSACTION);
        Self { bytes, deliveries, transactions }
    }

    /// The frames, numbered from `first` on.
    pub(crate) fn numbered(&mut self, first: u32) -> &[u8] {
        for (number, at) in (first..).zip(&self.deliveries) {
            self.bytes[*at..at + 4].copy_from_slice(&number.to_be_bytes());
        }
        &self.bytes
    }

    /// The frames, numbered from `first` on, and all in one transaction.
    pub(crate) fn enlisted(&mut self, first: u32, transaction: u32) -> &[u8] {
        let transaction = u64::from(transaction).to_be_bytes();
        for at in &self.transactions {
            self.bytes[*at..at + 8].copy_from_slice(&transaction);
        }
        self.numbered(first)
    }
}

fn places(bytes: &[u8], mark: &[u8]) -> Vec<usize> {
    let windows = bytes.windows(mark.len()).enumerate();
    windows.filter(|(_, window)| *window == mark).map(|(at, _)| at).collect()
}

fn put(out: &mut Vec<u8>, performative: &Performative<'_>, payload: &[u8]) {
    frame::write(out, FrameKind::Amqp, 0, |out| {
        performative.encode(out);
        out.extend_from_slice(payload);
    });
}

/// Header, open and begin.
pub(crate) fn hello(name: &str) -> Vec<u8> {
    let mut out = ProtocolHeader::AMQP.encode().to_vec();
    let open = Open { max_frame_size: 1 << 20, ..Open::new(name) };
    put(&mut out, &Performative::Open(Box::new(open)), &[]);
    let begin = Begin { incoming_window: 1 << 30, outgoing_window: 1 << 30, ..Begin::default() };
    put(&mut out, &Performative::Begin(Box::new(begin)), &[]);
    out
}

/// A link that sends to the queue.
pub(crate) fn producer(handle: u32) -> Vec<u8> {
    let target = Target { address: Some("orders".into()), ..Target::default() };
    attach(handle, Role::Sender, Fields::default(), AttachTarget::Node(target))
}

/// A link to the coordinator of transactions.
pub(crate) fn coordinator(handle: u32) -> Vec<u8> {
    let coordinator = Coordinator { capabilities: Symbols::from(["amqp:local-transactions"]) };
    attach(handle, Role::Sender, Fields::default(), AttachTarget::Coordinator(coordinator))
}

/// A link that receives the messages of the queue that the selector matches.
pub(crate) fn consumer(handle: u32, selector: Option<&str>) -> Vec<u8> {
    let mut filter = Fields::default();
    if let Some(selector) = selector {
        let mut described = vec![0, 0x80];
        described.extend(0x0000_468c_0000_0004_u64.to_be_bytes());
        encode::value(&mut described, Value::String(selector));
        filter.insert("jms-selector", Value::decode(&described).unwrap());
    }
    attach(handle, Role::Receiver, filter, AttachTarget::Node(Target::default()))
}

fn attach(handle: u32, role: Role, filter: Fields, target: AttachTarget) -> Vec<u8> {
    let source = Source { address: Some("orders".into()), filter, ..Source::default() };
    let attach = Attach {
        source: Some(source),
        target: Some(target),
        initial_delivery_count: (role == Role::Sender).then_some(0),
        ..Attach::new(format!("link {handle}"), handle, role)
    };
    let mut out = Vec::new();
    put(&mut out, &Performative::Attach(Box::new(attach)), &[]);
    out
}

/// A link that receives from the queue, and detaches.
pub(crate) fn link_and_its_end(handle: u32) -> Vec<u8> {
    let mut out = consumer(handle, None);
    put(&mut out, &Performative::Detach(Detach { handle, closed: true, error: None }), &[]);
    out
}

/// Credit for `credit` messages after the first `delivered`.
pub(crate) fn credit(handle: u32, delivered: u32, credit: u32) -> Vec<u8> {
    let flow = Flow {
        next_incoming_id: Some(delivered),
        incoming_window: 1 << 30,
        outgoing_window: 1 << 30,
        handle: Some(handle),
        delivery_count: Some(delivered),
        link_credit: Some(credit),
        ..Flow::default()
    };
    let mut out = Vec::new();
    put(&mut out, &Performative::Flow(flow), &[]);
    out
}

/// A transfer of `payload`, in a transaction or none.
pub(crate) fn transfer(handle: u32, payload: &[u8], is_enlisted: bool) -> Vec<u8> {
    let state = DeliveryState::Transactional { txn_id: &TRANSACTION, outcome: None };
    let state = is_enlisted.then_some(state);
    let transfer = Transfer {
        handle,
        delivery_id: Some(DELIVERY),
        delivery_tag: Some(&[0, 1]),
        message_format: Some(0),
        settled: Some(false),
        state,
        ..Transfer::default()
    };
    let mut out = Vec::new();
    put(&mut out, &Performative::Transfer(transfer), payload);
    out
}

/// The disposition that accepts a delivery, in a transaction or none.
pub(crate) fn accept(is_enlisted: bool) -> Vec<u8> {
    let outcome = Outcome::Accepted;
    let state = if is_enlisted {
        DeliveryState::Transactional { txn_id: &TRANSACTION, outcome: Some(outcome) }
    } else {
        DeliveryState::Outcome(outcome)
    };
    let disposition = Disposition {
        role: Role::Receiver,
        first: DELIVERY,
        last: None,
        settled: true,
        state: Some(state),
        batchable: false,
    };
    let mut out = Vec::new();
    put(&mut out, &Performative::Disposition(disposition), &[]);
    out
}

/// The message that begins a transaction, sent to the coordinator.
pub(crate) fn declare(handle: u32) -> Vec<u8> {
    let mut request = Vec::new();
    CoordinatorRequest::Declare { global_id: None }.encode(&mut request);
    transfer(handle, &request, false)
}

/// The message that commits one.
pub(crate) fn commit(handle: u32) -> Vec<u8> {
    let mut request = Vec::new();
    CoordinatorRequest::Discharge { txn_id: &TRANSACTION, fail: false }.encode(&mut request);
    transfer(handle, &request, false)
}

/// A persistent message of 1 KiB with all that Qpid JMS gives it, and properties as a shop has.
pub(crate) fn message() -> Vec<u8> {
    let mut out = Vec::new();
    Header { durable: true, ..Header::default() }.encode(&mut out);
    message::message_annotations(&mut out, |map| {
        map.symbol("x-opt-jms-dest", Value::Byte(0));
        map.symbol("x-opt-jms-msg-type", Value::Byte(3));
    });
    Properties {
        message_id: Some(Value::String("ID:b9573a37-5632-4a3a-b494-87ff9156963e:1:1:1-1")),
        to: Some("orders"),
        content_type: Some("application/octet-stream"),
        absolute_expiry_time: Some(0),
        creation_time: Some(1_795_266_669_240),
        ..Properties::default()
    }
    .encode(&mut out);
    message::application_properties(&mut out, |map| {
        map.string("region", Value::String("north"));
        map.string("customer", Value::String("C-1042"));
        map.string("express", Value::Boolean(true));
        map.string("colour", Value::String("blue"));
        map.string("weight", Value::Int(2_501));
    });
    message::data(&mut out, &[b'x'; 1024]);
    out
}
