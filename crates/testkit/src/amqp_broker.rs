//! A broker of AMQP of a few frames, for tests of clients.

use amqp::frame::{self, Frame, FrameKind, Split};
use amqp::performative::{
    Attach, Begin, Disposition, Flow, Open, Performative as P, Role, SenderSettleMode,
};
use amqp::protocol_header::ProtocolHeader;
use amqp::sasl::{SaslBody, SaslCode};
use amqp::state::DeliveryState;
use amqp::terminus::{AttachTarget, Source, Target};
use amqp::types::Symbols;
use client::{Event, Kind, Place, Session, Wrong};

/// The bytes that a broker sends, in order.
#[derive(Debug, Default)]
pub struct Broker(pub Vec<u8>);

impl Broker {
    /// A header.
    #[must_use]
    pub fn header(mut self, header: ProtocolHeader) -> Self {
        self.0.extend(header.encode());
        self
    }

    /// A frame of SASL.
    #[must_use]
    pub fn sasl(mut self, body: SaslBody<'_>) -> Self {
        frame::write(&mut self.0, FrameKind::Sasl, 0, |out| body.encode(out));
        self
    }

    /// Any other frame.
    #[must_use]
    pub fn say(mut self, performative: P<'_>, payload: &[u8]) -> Self {
        frame::write(&mut self.0, FrameKind::Amqp, 0, |out| {
            performative.encode(out);
            out.extend_from_slice(payload);
        });
        self
    }

    /// All that opens the connection and a session of two frames.
    #[must_use]
    pub fn open() -> Self {
        let mechanisms = Symbols::from(["PLAIN", "ANONYMOUS"]);
        let outcome = SaslBody::Outcome { code: SaslCode::Ok, additional_data: None };
        let open = Open { idle_time_out: Some(30_000), ..Open::new("broker") };
        let begin = Begin { incoming_window: 2, outgoing_window: 9, ..Begin::default() };
        Self::default()
            .header(ProtocolHeader::SASL)
            .sasl(SaslBody::Mechanisms(mechanisms))
            .sasl(outcome)
            .header(ProtocolHeader::AMQP)
            .say(P::Open(Box::new(open)), b"")
            .say(P::Begin(Box::new(begin)), b"")
    }

    /// Its numbers of links are not the client's.
    #[must_use]
    pub fn attach(self, name: &str, handle: u32, role: Role) -> Self {
        let target = Some(AttachTarget::Node(Target::default()));
        self.say(
            P::Attach(Box::new(Attach {
                snd_settle_mode: SenderSettleMode::Mixed,
                source: Some(Source::default()),
                target,
                initial_delivery_count: Some(0),
                ..Attach::new(name, handle, role)
            })),
            b"",
        )
    }

    /// Credit for a link after so many deliveries.
    #[must_use]
    pub fn credit(self, handle: u32, count: u32, credit: u32) -> Self {
        let flow = Flow {
            next_incoming_id: Some(count),
            incoming_window: 1000,
            handle: Some(handle),
            delivery_count: Some(count),
            link_credit: Some(credit),
            ..Flow::default()
        };
        self.say(P::Flow(flow), b"")
    }

    /// What became of deliveries of the client.
    #[must_use]
    pub fn answer(self, first: u32, last: u32, state: DeliveryState<'_>) -> Self {
        let disposition = Disposition {
            role: Role::Receiver,
            first,
            last: Some(last),
            settled: true,
            state: Some(state),
            batchable: false,
        };
        self.say(P::Disposition(disposition), b"")
    }

    /// Lets a client read all of it.
    ///
    /// # Errors
    /// The session's.
    pub fn tell(self, session: &mut Session) -> Result<Vec<Event>, Wrong> {
        session.handle_bytes(&self.0);
        let mut events = Vec::new();
        while let Some(event) = session.poll_event()? {
            events.push(event);
        }
        Ok(events)
    }
}

/// The place of every link here.
#[must_use]
pub fn queue() -> Place {
    Place { name: "q".to_owned(), kind: Kind::Queue }
}

/// One that is open.
///
/// # Panics
/// When it does not open.
#[must_use]
pub fn opened() -> Session {
    let mut session = Session::new(None, "bench", "localhost");
    assert_eq!(Broker::open().tell(&mut session).unwrap(), [Event::Opened]);
    session
}

/// The performatives that it sends; its headers and SASL frames are left out.
///
/// # Panics
/// When that is not AMQP.
pub fn spoken(session: &mut Session) -> Vec<String> {
    let mut out = std::mem::take(&mut session.out);
    let mut spoken = Vec::new();
    while !out.is_empty() {
        if out.starts_with(b"AMQP") {
            out.drain(..ProtocolHeader::BYTES);
            continue;
        }
        let Split::Frame { frame, length } = Frame::split(&out, u32::MAX).unwrap() else {
            panic!()
        };
        if frame.kind == FrameKind::Amqp && !frame.body.is_empty() {
            let (performative, _) = P::decode(frame.body).unwrap();
            let text = format!("{performative:?}");
            spoken.push(text.split('(').next().unwrap().to_owned());
        }
        out.drain(..length);
    }
    spoken
}
