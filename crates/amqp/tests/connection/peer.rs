//! Frames from lines of a script.

use amqp::encode;
use amqp::error::Error;
use amqp::frame::{self, FrameKind};
use amqp::message::{self, Header, Properties};
use amqp::performative::{
    Attach, Begin, Close, Detach, Disposition, End, Flow, Open, Performative, ReceiverSettleMode,
    Role, SenderSettleMode, Transfer,
};
use amqp::protocol_header::ProtocolHeader;
use amqp::sasl::SaslBody;
use amqp::state::{DeliveryState, Modified, Outcome};
use amqp::terminus::{
    AttachTarget, Coordinator, DistributionMode, ExpiryPolicy, LifetimePolicy, Source, Target,
    TerminusDurability,
};
use amqp::transaction::CoordinatorRequest;
use amqp::types::{Fields, Symbols, Value};

/// The words of a line: some by their place, some as `key=value`, some as flags.
pub(crate) struct Words<'l> {
    words: Vec<&'l str>,
}

impl<'l> Words<'l> {
    pub(crate) fn new(line: &'l str) -> Self {
        Self { words: line.split_whitespace().collect() }
    }

    pub(crate) fn at(&self, index: usize) -> &'l str {
        self.words.get(index).copied().unwrap_or_else(|| panic!("too few words: {:?}", self.words))
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, index: usize) -> T {
        parse(self.at(index))
    }

    pub(crate) fn has(&self, flag: &str) -> bool {
        self.words.contains(&flag)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'l str> {
        self.words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    pub(crate) fn value<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.get(key).map(parse)
    }

    fn symbols(&self, key: &str) -> Symbols {
        self.get(key).iter().flat_map(|list| list.split(',')).collect()
    }
}

fn parse<T: std::str::FromStr>(word: &str) -> T {
    word.parse().ok().unwrap_or_else(|| panic!("not a number: {word}"))
}

/// The bytes of a line that is the peer's; `None`: it is not.
pub(crate) fn bytes(line: &str) -> Option<Vec<u8>> {
    let words = Words::new(line);
    let mut out = Vec::new();
    match words.at(0) {
        "header" => out.extend(header(words.at(1))),
        "hex" => out.extend(line.split_whitespace().skip(1).flat_map(octets)),
        "init" | "response" => sasl(&words, &mut out),
        "alive" => frame::write(&mut out, FrameKind::Amqp, 0, |_| ()),
        "open" => put(0, &Performative::Open(Box::new(open(&words))), &mut out),
        "close" => put(0, &Performative::Close(Close::default()), &mut out),
        "transfer" => transfer(&words, &mut out),
        _ => {
            let performative = of_session(&words)?;
            put(words.number(1), &performative, &mut out);
        }
    }
    Some(out)
}

fn put(channel: u16, performative: &Performative<'_>, out: &mut Vec<u8>) {
    frame::write(out, FrameKind::Amqp, channel, |out| performative.encode(out));
}

fn octets(word: &str) -> Vec<u8> {
    let pairs = word.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

fn header(layer: &str) -> [u8; 8] {
    match layer {
        "amqp" => ProtocolHeader::AMQP.encode(),
        "sasl" => ProtocolHeader::SASL.encode(),
        "tls" => ProtocolHeader::TLS.encode(),
        "http" => *b"GET / HT",
        _ => panic!("no layer: {layer}"),
    }
}

fn sasl(words: &Words<'_>, out: &mut Vec<u8>) {
    // Stand for NUL, for the separator of OAUTHBEARER, and for a space.
    let bytes = |text: &str| text.replace('.', "\0").replace('^', "\u{1}").replace('~', " ");
    let response = words.get("response").map(bytes);
    let response = response.as_deref().map(str::as_bytes);
    let body = match words.at(0) {
        "init" => {
            SaslBody::Init { mechanism: words.at(1), initial_response: response, hostname: None }
        }
        _ => SaslBody::Response(response.unwrap_or_default()),
    };
    frame::write(out, FrameKind::Sasl, 0, |out| body.encode(out));
}

fn open(words: &Words<'_>) -> Open {
    Open {
        max_frame_size: words.value("max").unwrap_or(u32::MAX),
        channel_max: words.value("channels").unwrap_or(u16::MAX),
        idle_time_out: words.value("idle"),
        desired_capabilities: words.symbols("desired"),
        ..Open::new(words.at(1))
    }
}

fn of_session<'w>(words: &Words<'w>) -> Option<Performative<'w>> {
    Some(match words.at(0) {
        "begin" => Performative::Begin(Box::new(Begin {
            next_outgoing_id: words.value("next").unwrap_or(0),
            incoming_window: words.value("window").unwrap_or(2047),
            outgoing_window: 2047,
            handle_max: words.value("handles").unwrap_or(65535),
            ..Begin::default()
        })),
        "attach" => Performative::Attach(Box::new(attach(words))),
        "flow" => Performative::Flow(Flow {
            next_incoming_id: Some(words.value("seen").unwrap_or(0)),
            incoming_window: words.value("window").unwrap_or(2047),
            next_outgoing_id: 0,
            outgoing_window: 2047,
            handle: words.value("handle"),
            delivery_count: words.value("count"),
            link_credit: words.value("credit"),
            drain: words.has("drain"),
            echo: words.has("echo"),
            ..Flow::default()
        }),
        "disposition" => Performative::Disposition(Disposition {
            role: if words.has("sender") { Role::Sender } else { Role::Receiver },
            first: words.number(2),
            last: words.value("last"),
            settled: words.has("settled"),
            state: state(words),
            batchable: false,
        }),
        "detach" => Performative::Detach(Detach {
            handle: words.number(2),
            closed: words.has("closed"),
            error: words.has("error").then(|| Box::new(Error::new("amqp:not-allowed", "so"))),
        }),
        "end" => Performative::End(End::default()),
        _ => return None,
    })
}

fn state<'w>(words: &Words<'w>) -> Option<DeliveryState<'w>> {
    let modified = |delivery_failed, undeliverable_here| {
        Outcome::Modified(Modified { delivery_failed, undeliverable_here, ..Modified::default() })
    };
    let outcome = [
        ("accepted", Outcome::Accepted),
        ("rejected", Outcome::Rejected(None)),
        ("released", Outcome::Released),
        ("modified", modified(false, false)),
        ("failed", modified(true, false)),
        ("undeliverable", modified(true, true)),
    ];
    let outcome = outcome.into_iter().find(|(word, _)| words.has(word)).map(|(_, it)| it);
    match words.get("txn") {
        Some(transaction) => {
            Some(DeliveryState::Transactional { txn_id: txn_id(transaction), outcome })
        }
        None => outcome.map(DeliveryState::Outcome),
    }
}

/// The id that the connection gives to its transaction of that number.
fn txn_id(number: &str) -> &'static [u8] {
    match number {
        "odd" => b"?",
        _ => Vec::leak(parse::<u64>(number).to_be_bytes().to_vec()),
    }
}

fn attach(words: &Words<'_>) -> Attach {
    let role = if words.at(3) == "sender" { Role::Sender } else { Role::Receiver };
    let outcomes = || Symbols::from(["amqp:accepted:list", "amqp:rejected:list"]);
    let mut properties = Fields::default();
    let lifetime = match words.get("lifetime") {
        Some("no-links") => Some(LifetimePolicy::DeleteOnNoLinks),
        Some("no-messages") => Some(LifetimePolicy::DeleteOnNoMessages),
        Some("no-links-or-messages") => Some(LifetimePolicy::DeleteOnNoLinksOrMessages),
        _ => words.has("dynamic").then_some(LifetimePolicy::DeleteOnClose),
    };
    if let Some(lifetime) = lifetime {
        lifetime.insert_into(&mut properties);
    }
    let durable = if words.has("durable") {
        TerminusDurability::UnsettledState
    } else {
        TerminusDurability::None
    };
    let expiry_policy = match words.get("ends") {
        Some("link-detach") => ExpiryPolicy::LinkDetach,
        Some("session-end") => ExpiryPolicy::SessionEnd,
        Some("connection-close") => ExpiryPolicy::ConnectionClose,
        _ if words.has("durable") => ExpiryPolicy::Never,
        _ => ExpiryPolicy::LinkDetach,
    };
    let default = Words::new(words.get("default").unwrap_or_default());
    let source = Source {
        address: words.get("source").map(Into::into),
        durable,
        expiry_policy,
        timeout: words.value("timeout").unwrap_or_default(),
        distribution_mode: words.has("copy").then_some(DistributionMode::Copy),
        dynamic: words.has("dynamic") && role == Role::Receiver,
        dynamic_node_properties: properties.clone(),
        filter: filter(words),
        default_outcome: match state(&default) {
            Some(DeliveryState::Outcome(outcome)) => Some(outcome),
            _ => None,
        },
        outcomes: words.get("outcomes").map_or_else(outcomes, |_| words.symbols("outcomes")),
        capabilities: words.symbols("is"),
    };
    let target = Target {
        address: words.get("target").map(Into::into),
        durable,
        expiry_policy,
        timeout: words.value("timeout").unwrap_or_default(),
        dynamic: words.has("dynamic") && role == Role::Sender,
        dynamic_node_properties: properties,
        capabilities: words.symbols("is"),
    };
    let coordinator = Coordinator { capabilities: Symbols::from(["amqp:local-transactions"]) };
    let target = if words.has("coordinator") {
        AttachTarget::Coordinator(coordinator)
    } else {
        AttachTarget::Node(target)
    };
    Attach {
        snd_settle_mode: match words.get("send") {
            Some("settled") => SenderSettleMode::Settled,
            Some("mixed") => SenderSettleMode::Mixed,
            _ => SenderSettleMode::Unsettled,
        },
        rcv_settle_mode: match words.get("receive") {
            Some("second") => ReceiverSettleMode::Second,
            _ => ReceiverSettleMode::First,
        },
        source: (!words.has("no-source")).then_some(source),
        target: (!words.has("no-target")).then_some(target),
        initial_delivery_count: (role == Role::Sender).then_some(0),
        max_message_size: words.value("message-max"),
        desired_capabilities: words.symbols("desired"),
        ..Attach::new(words.at(4), words.number(2), role)
    }
}

/// The filters as Qpid JMS writes them.
fn filter(words: &Words<'_>) -> Fields {
    let mut filter = Fields::default();
    let mut add = |key: &str, code: u64, text: &str| {
        let mut described = vec![0, 0x80];
        described.extend(code.to_be_bytes());
        encode::value(&mut described, Value::String(text));
        filter.insert(key, Value::decode(&described).unwrap());
    };
    if let Some(selector) = words.get("selector") {
        add("jms-selector", 0x0000_468c_0000_0004, &selector.replace('_', " "));
    }
    if words.has("no-local") {
        add("no-local", 0x0000_468c_0000_0003, "NoLocalFilter{}");
    }
    if words.has("odd-filter") {
        add("odd", 77, "?");
    }
    filter
}

fn transfer(words: &Words<'_>, out: &mut Vec<u8>) {
    let payload = message(words);
    let is_first = !words.has("goes-on");
    let tag = [7];
    let transfer = Transfer {
        handle: words.number(2),
        delivery_id: is_first.then(|| words.number(3)),
        delivery_tag: (is_first && !words.has("no-tag")).then_some(&tag[..]),
        message_format: is_first.then(|| words.value("format").unwrap_or(0)),
        settled: words.has("settled").then_some(true),
        more: words.has("more"),
        state: state(words),
        resume: words.has("resume"),
        aborted: words.has("aborted"),
        ..Transfer::default()
    };
    frame::write(out, FrameKind::Amqp, words.number(1), |out| {
        transfer.encode(out);
        out.extend_from_slice(&payload);
    });
}

/// A word as a long, else a ulong, else a double, else a string.
fn scalar(word: &str) -> Value<'_> {
    let long = word.parse().map(Value::Long);
    let ulong = long.or_else(|_| word.parse().map(Value::Ulong));
    let double = ulong.or_else(|_| word.parse().map(Value::Double));
    double.unwrap_or(Value::String(word))
}

/// A message, a request to the coordinator, or a piece of a message as it is.
pub(crate) fn message(words: &Words<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(piece) = words.get("hex") {
        return octets(piece);
    }
    if words.has("declare") {
        CoordinatorRequest::Declare { global_id: None }.encode(&mut out);
        return out;
    }
    let discharge = words.get("commit").map(|id| (id, false));
    if let Some((id, fail)) = discharge.or(words.get("rollback").map(|id| (id, true))) {
        CoordinatorRequest::Discharge { txn_id: txn_id(id), fail }.encode(&mut out);
        return out;
    }
    let header = Header {
        durable: words.has("durable"),
        priority: words.value("priority").unwrap_or(4),
        ttl: words.value("ttl"),
        ..Header::default()
    };
    header.encode(&mut out);
    message::message_annotations(&mut out, |map| {
        if let Some(time) = words.get("delivery-time") {
            map.symbol("x-opt-delivery-time", scalar(time));
        }
        if let Some(delay) = words.get("delivery-delay") {
            map.symbol("x-opt-delivery-delay", scalar(delay));
        }
        if let Some(id) = words.get("send-id") {
            map.symbol("x-opt-dunlin-send-id", Value::String(id));
        }
        if let Some(number) = words.value("send-number") {
            map.symbol("x-opt-dunlin-send-id", Value::Uint(number));
        }
        if let Some(kind) = words.value("jms-dest") {
            map.symbol("x-opt-jms-dest", Value::Byte(kind));
        }
    });
    Properties {
        to: words.get("to"),
        absolute_expiry_time: words.value("expires"),
        ..Properties::default()
    }
    .encode(&mut out);
    if let Some(value) = words.get("amount") {
        message::application_properties(&mut out, |map| map.string("amount", scalar(value)));
    }
    if let Some(body) = words.get("body") {
        message::value(&mut out, Value::String(body));
    }
    if let Some(bytes) = words.value::<usize>("bytes") {
        message::data(&mut out, &vec![b'x'; bytes]);
    }
    out
}
