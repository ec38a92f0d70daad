//! Headers, authentication and open: everything before the first session.

use alloc::boxed::Box;
use alloc::vec::Vec;

use input::InputBuffer;
use model::{Command, Nanos};

use crate::Connection;
use crate::connection::event::Awaited;
use crate::connection::limits::PEER_IDLE_MIN;
use crate::connection::{Fault, Peer, Phase, address};
use crate::error::{Error, condition};
use crate::frame::{self, FrameKind};
use crate::limits::FRAME_BYTES_MIN;
use crate::performative::{Open, Performative};
use crate::protocol_header::ProtocolHeader;
use crate::sasl::{Plain, SaslBody, SaslCode};
use crate::types::{Fields, Symbols, Value};

pub(super) const ANONYMOUS: &str = "ANONYMOUS";
pub(super) const PLAIN: &str = "PLAIN";

/// A client that wants no other connection of its container.
const SOLE_CONNECTION: &str = "sole-connection-for-container";

/// Capabilities that JMS clients look for before they use them.
const OFFERED: [&str; 4] = ["ANONYMOUS-RELAY", "DELAYED_DELIVERY", "SHARED-SUBS", SOLE_CONNECTION];

impl Peer {
    pub(super) const fn unknown() -> Self {
        Self {
            frame_bytes_max: FRAME_BYTES_MIN,
            channel_max: 0,
            idle_timeout: None,
            client: None,
            is_identified: false,
        }
    }
}

impl Connection {
    /// Answers the header of a layer with ours. Another protocol or version gets ours as well, and
    /// the end of the connection (2.2).
    pub(super) fn read_header(&mut self, input: &mut InputBuffer, out: &mut Vec<u8>) -> bool {
        let header = match ProtocolHeader::decode(input.unread()) {
            Ok(None) => return false,
            Ok(Some(header)) => header,
            Err(_) => return self.refuse_header(input, out),
        };
        match (self.phase, header) {
            (Phase::Header, ProtocolHeader::SASL) => {
                self.phase = Phase::SaslInit;
                out.extend_from_slice(&header.encode());
                write_sasl(out, &SaslBody::Mechanisms(self.mechanisms()));
            }
            (Phase::Header, ProtocolHeader::AMQP) if self.login.is_some() => {
                if !self.begin_bare_login() {
                    return self.refuse_header(input, out);
                }
            }
            (_, ProtocolHeader::AMQP) => {
                self.phase = Phase::Open;
                out.extend_from_slice(&header.encode());
            }
            _ => return self.refuse_header(input, out),
        }
        if let Some(login) = &mut self.login {
            login.count(ProtocolHeader::BYTES);
        }
        input.consume(ProtocolHeader::BYTES);
        true
    }

    fn refuse_header(&mut self, input: &mut InputBuffer, out: &mut Vec<u8>) -> bool {
        let ours =
            if self.phase == Phase::Header { ProtocolHeader::SASL } else { ProtocolHeader::AMQP };
        out.extend_from_slice(&ours.encode());
        self.phase = Phase::Closed;
        input.consume(input.len());
        false
    }

    pub(super) fn handle_sasl(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        match (self.phase, SaslBody::decode(body)?) {
            (Phase::SaslInit, SaslBody::Init { mechanism, initial_response, .. })
                if self.login.is_some() =>
            {
                self.begin_login(mechanism, initial_response, out);
            }
            (Phase::SaslResponse, SaslBody::Response(response)) if self.login.is_some() => {
                self.respond(response, out);
            }
            (Phase::SaslInit, SaslBody::Init { mechanism: PLAIN, initial_response: None, .. }) => {
                self.phase = Phase::SaslResponse;
                write_sasl(out, &SaslBody::Challenge(&[]));
            }
            (Phase::SaslInit, SaslBody::Init { mechanism, initial_response, .. }) => {
                self.authenticate(mechanism, initial_response.unwrap_or_default(), out);
            }
            (Phase::SaslResponse, SaslBody::Response(response)) => {
                self.authenticate(PLAIN, response, out);
            }
            _ => {
                let error = Error::new(condition::NOT_ALLOWED, "not the server's part of SASL");
                return Err(Fault::Connection(error));
            }
        }
        Ok(())
    }

    fn authenticate(&mut self, mechanism: &str, response: &[u8], out: &mut Vec<u8>) {
        let known = is_authentic(mechanism, response);
        let code = if known { SaslCode::Ok } else { SaslCode::Auth };
        self.phase = if known { Phase::AmqpHeader } else { Phase::Closed };
        write_sasl(out, &SaslBody::Outcome { code, additional_data: None });
    }

    /// Takes the peer's open. One that wants to be the only connection of its container is
    /// answered once the engine has agreed.
    pub(super) fn handle_open(&mut self, open: &Open, out: &mut Vec<u8>) -> Result<(), Fault> {
        self.peer = Peer {
            frame_bytes_max: open.max_frame_size,
            channel_max: open.channel_max,
            idle_timeout: peer_idle_timeout(open)?,
            client: address::name(&open.container_id).ok(),
            is_identified: false,
        };
        if !open.desired_capabilities.contains(SOLE_CONNECTION) {
            self.emit_open(out);
            return Ok(());
        }
        let Some(client) = self.peer.client.clone() else {
            self.refuse_open(invalid_container("the container id is no name"), out);
            return Ok(());
        };
        self.phase = Phase::Identifying;
        self.ask(Command::Identify { client }, Awaited::Identified);
        Ok(())
    }

    pub(super) fn emit_open(&mut self, out: &mut Vec<u8>) {
        if matches!(self.phase, Phase::Open | Phase::Identifying) {
            self.phase = Phase::Ready;
            self.write_open(out);
        }
    }

    pub(super) fn write_open(&mut self, out: &mut Vec<u8>) {
        let options = self.options.clone();
        let open = Open {
            max_frame_size: options.max_frame_bytes.max(FRAME_BYTES_MIN),
            channel_max: self.channels_max().saturating_sub(1),
            // "Peers SHOULD advertise half of the actual timeout" (2.4.5).
            idle_time_out: options.idle_timeout.map(|span| millis(Nanos(span.0 / 2))),
            offered_capabilities: Symbols::from(OFFERED),
            properties: Fields::default()
                .with("product", Value::String(&options.product))
                .with("version", Value::String(&options.version)),
            ..Open::new(options.container_id.as_str())
        };
        self.write(0, &Performative::Open(Box::new(open)), out);
    }

    /// Writes an open that offers no service; the close after it tells why. So clients know that
    /// the refusal is meant for them.
    pub(super) fn refuse_open(&mut self, error: Error, out: &mut Vec<u8>) {
        let failed = "amqp:connection-establishment-failed";
        let properties = Fields::default().with(failed, Value::Boolean(true));
        let open = Open { properties, ..Open::new("") };
        self.phase = Phase::Ready;
        self.write_unchecked(0, &Performative::Open(Box::new(open)), out);
        self.fail(error, out);
    }
}

/// True if a peer is authentic. Without users every peer is, but PLAIN has to name one.
fn is_authentic(mechanism: &str, response: &[u8]) -> bool {
    match mechanism {
        ANONYMOUS => true,
        PLAIN => Plain::parse(response).is_some_and(|plain| plain.has_user()),
        _ => false,
    }
}

/// The error that clients take for a container id in use.
pub(super) fn invalid_container(description: &str) -> Error {
    let mut error = Error::new(condition::INVALID_FIELD, description);
    error.info.insert("invalid-field", Value::Symbol("container-id"));
    error
}

/// "If a peer can not support a proposed idle timeout, then it SHOULD close the connection using a
/// close frame with an error explaining why" (2.4.5). Zero stands for none, as some clients say it.
fn peer_idle_timeout(open: &Open) -> Result<Option<Nanos>, Fault> {
    let span = open.idle_time_out.filter(|millis| *millis > 0);
    let span = span.map(|millis| Nanos::from_millis(millis.into()));
    if span.is_some_and(|span| span < PEER_IDLE_MIN) {
        let error = Error::new(condition::NOT_ALLOWED, "the idle timeout is too short");
        return Err(Fault::Connection(error));
    }
    Ok(span)
}

pub(super) fn write_sasl(out: &mut Vec<u8>, body: &SaslBody<'_>) {
    frame::write(out, FrameKind::Sasl, 0, |out| body.encode(out));
}

fn millis(span: Nanos) -> u32 {
    u32::try_from(span.0 / 1_000_000).unwrap_or(u32::MAX)
}
