//! Frames and commands as lines of a script.

use std::fmt::Write;

use amqp::frame::{Frame, FrameKind, Split};
use amqp::message::Message;
use amqp::performative::{Attach, Flow, Performative, Role, SenderSettleMode, Transfer};
use amqp::protocol_header::ProtocolHeader;
use amqp::sasl::SaslBody;
use amqp::state::{DeliveryState, Outcome};
use amqp::terminus::{AttachTarget, DistributionMode, ExpiryPolicy, LifetimePolicy, Source};
use amqp::types::{Fields, Symbols};
use model::{Command, LoginStep, Nanos, Persistence, Secret};

/// Each header and frame that was sent.
pub(crate) fn sent(mut bytes: &[u8], frame_bytes_max: u32) -> String {
    let mut lines = String::new();
    while !bytes.is_empty() {
        if let Ok(Some(header)) = ProtocolHeader::decode(bytes) {
            let layer = if header == ProtocolHeader::SASL { "sasl" } else { "amqp" };
            writeln!(lines, "<- header {layer}").unwrap();
            bytes = &bytes[ProtocolHeader::BYTES..];
            continue;
        }
        let split = Frame::split(bytes, frame_bytes_max).expect("a frame");
        let Split::Frame { frame, length } = split else { panic!("a frame that is not whole") };
        writeln!(lines, "<- {}", one(&frame)).unwrap();
        bytes = &bytes[length..];
    }
    lines
}

fn one(frame: &Frame<'_>) -> String {
    if frame.kind == FrameKind::Sasl {
        return sasl(&SaslBody::decode(frame.body).expect("a SASL body"));
    }
    if frame.body.is_empty() {
        return "alive".into();
    }
    let (performative, payload) = Performative::decode(frame.body).expect("a performative");
    let channel = frame.channel;
    let error = |error: &Option<Box<amqp::error::Error>>| match error {
        Some(error) => format!(
            " error={} ({}){}",
            error.condition,
            error.description.as_deref().unwrap_or_default(),
            if error.info.is_empty() { String::new() } else { format!(" {:?}", error.info) }
        ),
        None => String::new(),
    };
    match &performative {
        Performative::Open(open) => format!(
            "open {:?} max={} channels={} idle={:?} offered={} {:?}",
            open.container_id,
            open.max_frame_size,
            open.channel_max,
            open.idle_time_out,
            symbols(&open.offered_capabilities),
            open.properties
        ),
        Performative::Begin(begin) => format!(
            "begin {channel} of={:?} next={} window={} handles={}",
            begin.remote_channel, begin.next_outgoing_id, begin.incoming_window, begin.handle_max
        ),
        Performative::Attach(it) => format!("attach {channel} {}", attach(it)),
        Performative::Flow(it) => format!("flow {channel} {}", flow(it)),
        Performative::Transfer(it) => format!("transfer {channel} {}", transfer(it, payload)),
        Performative::Disposition(it) => {
            let role = if it.role == Role::Sender { "sender" } else { "receiver" };
            let last = it.last.map(|last| format!("..{last}")).unwrap_or_default();
            let settled = if it.settled { " settled" } else { "" };
            let state = it.state.as_ref().map(state).unwrap_or_default();
            format!("disposition {channel} {role} {}{last}{settled}{state}", it.first)
        }
        Performative::Detach(it) => {
            let closed = if it.closed { " closed" } else { "" };
            format!("detach {channel} {}{closed}{}", it.handle, error(&it.error))
        }
        Performative::End(end) => format!("end {channel}{}", error(&end.error)),
        Performative::Close(close) => format!("close{}", error(&close.error)),
    }
}

/// With the bytes that `Debug` hides.
fn sasl(body: &SaslBody<'_>) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match body {
        SaslBody::Challenge(bytes) if !bytes.is_empty() => format!("Challenge({})", text(bytes)),
        SaslBody::Outcome { code, additional_data: Some(bytes) } => {
            format!("Outcome({code:?}, {})", text(bytes))
        }
        body => format!("{body:?}"),
    }
}

fn symbols(symbols: &Symbols) -> String {
    symbols.iter().collect::<Vec<_>>().join(",")
}

fn attach(attach: &Attach) -> String {
    let role = if attach.role == Role::Sender { "sender" } else { "receiver" };
    let mut line = format!("{} {role} {:?}", attach.handle, attach.name);
    if attach.snd_settle_mode != SenderSettleMode::Unsettled {
        write!(line, " send={:?}", attach.snd_settle_mode).unwrap();
    }
    write!(line, " receive={:?}", attach.rcv_settle_mode).unwrap();
    match &attach.source {
        Some(source) if attach.role == Role::Sender => {
            write!(line, " source={}", terminus(source)).unwrap();
            let default = source.default_outcome.as_ref().map(outcome_words);
            if default.as_deref() != Some("released") {
                write!(line, " default={}", default.unwrap_or("none".into())).unwrap();
            }
        }
        // The peer's own end.
        Some(source) => {
            write!(line, " source={}", source.address.as_deref().unwrap_or("-")).unwrap()
        }
        None => line += " no-source",
    }
    match &attach.target {
        Some(AttachTarget::Node(target)) => {
            let address = target.address.as_deref().unwrap_or("-");
            let dynamic = if target.dynamic { " dynamic" } else { "" };
            write!(line, " target={address}{dynamic}").unwrap();
            if attach.role == Role::Receiver {
                let (policy, timeout) = (target.expiry_policy, target.timeout);
                line += &ends(policy, timeout, &target.dynamic_node_properties);
            }
        }
        Some(AttachTarget::Coordinator(it)) => {
            write!(line, " coordinator={}", symbols(&it.capabilities)).unwrap();
        }
        None => line += " no-target",
    }
    if let Some(bytes) = attach.max_message_size {
        write!(line, " message-max={bytes}").unwrap();
    }
    if !attach.offered_capabilities.is_empty() {
        write!(line, " offered={}", symbols(&attach.offered_capabilities)).unwrap();
    }
    assert!(attach.unsettled.is_empty() && !attach.incomplete_unsettled);
    line
}

fn terminus(source: &Source) -> String {
    let mut line = source.address.clone().unwrap_or("-".into());
    if source.dynamic {
        line += " dynamic";
    }
    if source.distribution_mode == Some(DistributionMode::Copy) {
        line += " copy";
    }
    if source.durable != amqp::terminus::TerminusDurability::None {
        write!(line, " durable={:?}", source.durable).unwrap();
    }
    if !source.filter.is_empty() {
        write!(line, " filter={:?}", source.filter).unwrap();
    }
    if !source.capabilities.is_empty() {
        write!(line, " is={}", symbols(&source.capabilities)).unwrap();
    }
    line + &ends(source.expiry_policy, source.timeout, &source.dynamic_node_properties)
}

/// When a terminus and its node end, if that is not with the link.
fn ends(policy: ExpiryPolicy, timeout: u32, properties: &Fields) -> String {
    let mut line = String::new();
    if (policy, timeout) != (ExpiryPolicy::LinkDetach, 0) {
        write!(line, " ends={policy:?}+{timeout}").unwrap();
    }
    let lifetime = LifetimePolicy::of(properties);
    if lifetime.is_some_and(|lifetime| lifetime != LifetimePolicy::DeleteOnClose) {
        write!(line, " lifetime={lifetime:?}").unwrap();
    }
    line
}

fn flow(flow: &Flow) -> String {
    let mut line = format!("seen={:?} window={}", flow.next_incoming_id, flow.incoming_window);
    write!(line, " next={}", flow.next_outgoing_id).unwrap();
    if let Some(handle) = flow.handle {
        let (count, credit) = (flow.delivery_count, flow.link_credit);
        write!(line, " handle={handle} count={count:?} credit={credit:?}").unwrap();
    }
    if flow.drain {
        line += " drain";
    }
    line
}

fn transfer(transfer: &Transfer<'_>, payload: &[u8]) -> String {
    let mut line = format!("{}", transfer.handle);
    if let Some(id) = transfer.delivery_id {
        write!(line, " id={id} tag={:?}", transfer.delivery_tag.unwrap()).unwrap();
    }
    if transfer.settled == Some(true) {
        line += " settled";
    }
    if transfer.more {
        line += " more";
    }
    if transfer.delivery_id.is_none() || transfer.more {
        write!(line, " {} bytes", payload.len()).unwrap();
        return line;
    }
    let message = Message::scan(payload).expect("a message");
    let header = message.header();
    write!(line, " durable={} priority={}", header.durable, header.priority).unwrap();
    write!(line, " ttl={:?} failed={}", header.ttl, header.delivery_count).unwrap();
    if let Some(annotations) = message.message_annotations().filter(|map| !map.is_empty()) {
        write!(line, " {annotations:?}").unwrap();
    }
    if let Some(properties) = message.application_properties() {
        let own = properties.iter().map(|(name, value)| format!("{name:?}={value:?}"));
        write!(line, " with {}", own.collect::<Vec<_>>().join(" ")).unwrap();
    }
    match message.value() {
        // The inside of a body is the receiver's to judge.
        Err(error) => write!(line, " {error}").unwrap(),
        Ok(Some(value)) => write!(line, " {value:?}").unwrap(),
        Ok(None) => {
            let data: Vec<_> = message.data().map(String::from_utf8_lossy).collect();
            write!(line, " data={data:?}").unwrap();
        }
    }
    line
}

fn state(state: &DeliveryState<'_>) -> String {
    match state {
        DeliveryState::Outcome(outcome) => format!(" {}", outcome_words(outcome)),
        DeliveryState::Transactional { txn_id, outcome } => {
            let outcome = outcome.as_ref().map(outcome_words).unwrap_or_default();
            format!(" txn={txn_id:?} {outcome}")
        }
        DeliveryState::Declared { txn_id } => format!(" declared={txn_id:?}"),
        DeliveryState::Received { .. } => " received".into(),
    }
}

fn outcome_words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Rejected(Some(error)) => format!(
            "rejected {} ({})",
            error.condition,
            error.description.as_deref().unwrap_or_default()
        ),
        other => format!("{other:?}").to_lowercase(),
    }
}

/// A step of a login, with the secrets that `Debug` hides.
pub(crate) fn login(step: &LoginStep) -> String {
    let text = |secret: &Secret| String::from_utf8_lossy(secret.expose()).into_owned();
    match step {
        LoginStep::Password { user, password } => format!("password {user} {}", text(password)),
        LoginStep::ScramFirst { hash, message } => format!("{hash:?} first {}", text(message)),
        LoginStep::ScramFinal { message } => format!("final {}", text(message)),
        LoginStep::Certificate { user } => format!("certificate {user:?}"),
        LoginStep::UnixUser { user } => format!("unix {user:?}"),
        LoginStep::Anonymous => "anonymous".into(),
        LoginStep::ListenerUser => "listener".into(),
        LoginStep::Token { user, token } => {
            format!("token {} {user}", String::from_utf8_lossy(token.expose())).trim_end().into()
        }
    }
}

/// A command in a few words; the rest of it is as it is debugged.
pub(crate) fn asked(command: &Command) -> String {
    let (to, message, transaction) = match command {
        Command::Put { link, message, transaction } => {
            (format!("put {}", link.0), message, transaction)
        }
        Command::PutTo { to, message, transaction } => {
            (format!("put-to {to:?}"), message, transaction)
        }
        other => return format!("{other:?}"),
    };
    let mut line = to;
    let durable = if message.persistence == Persistence::Persistent { " persistent" } else { "" };
    write!(line, " {} bytes{durable} priority={}", message.body.len(), message.priority).unwrap();
    if message.delay > Nanos::ZERO {
        write!(line, " delay={}", message.delay).unwrap();
    }
    if let Some(expires) = message.expires {
        write!(line, " expires={expires}").unwrap();
    }
    if let Some(id) = &message.send_id {
        write!(line, " id={id}").unwrap();
    }
    if let Some(transaction) = transaction {
        write!(line, " in={}", transaction.0).unwrap();
    }
    line
}
