//! Attach: attaches a link to a session (2.7.3).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::encode;
use crate::performative::{ReceiverSettleMode, Role};
use crate::state::DeliveryState;
use crate::terminus::{AttachTarget, Source};
use crate::types::keys;
use crate::types::list_reader::ListReader;
use crate::types::reader::{Reader, Result};
use crate::types::{Fields, Map, Symbols, Value, code, descriptor};

/// Attaches a link to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attach {
    /// The link's name, unique between two containers in one direction.
    pub name: String,
    /// The number by which the peer will speak of the link.
    pub handle: u32,
    /// The end that the peer is.
    pub role: Role,
    /// How the sender settles its deliveries.
    pub snd_settle_mode: SenderSettleMode,
    /// Which end settles first.
    pub rcv_settle_mode: ReceiverSettleMode,
    /// The source of messages.
    pub source: Option<Source>,
    /// The target of messages.
    pub target: Option<AttachTarget>,
    /// Deliveries of an earlier attachment that the peer has not settled.
    pub unsettled: Unsettled,
    /// True if `unsettled` is a part of all, for want of room in the frame.
    pub incomplete_unsettled: bool,
    /// The sender's first delivery count; a sender has to set it.
    pub initial_delivery_count: Option<u32>,
    /// Bytes of the largest message that the peer takes; absent or 0: any.
    pub max_message_size: Option<u64>,
    /// Extensions that the peer has.
    pub offered_capabilities: Symbols,
    /// Extensions that the peer would use.
    pub desired_capabilities: Symbols,
    /// Properties of the link.
    pub properties: Fields,
}

/// How a sender settles its deliveries (2.8.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SenderSettleMode {
    /// Never: the receiver does.
    Unsettled,
    /// Always.
    Settled,
    /// As each transfer tells.
    #[default]
    Mixed,
}

/// Deliveries that are not settled, by tag, with their known states. These were checked.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Unsettled {
    /// Tags and states counted each.
    count: u32,
    elements: Vec<u8>,
}

impl Attach {
    /// An attach of a link that has nothing but a name.
    pub fn new(name: impl Into<String>, handle: u32, role: Role) -> Attach {
        Attach {
            name: name.into(),
            handle,
            role,
            snd_settle_mode: SenderSettleMode::default(),
            rcv_settle_mode: ReceiverSettleMode::default(),
            source: None,
            target: None,
            unsettled: Unsettled::default(),
            incomplete_unsettled: false,
            initial_delivery_count: None,
            max_message_size: None,
            offered_capabilities: Symbols::default(),
            desired_capabilities: Symbols::default(),
            properties: Fields::default(),
        }
    }

    pub(super) fn read(list: &mut ListReader<'_>) -> Result<Attach> {
        let name = list.string()?;
        let name = list.need(name, "name")?;
        let handle = list.uint()?;
        let handle = list.need(handle, "handle")?;
        let role = Role::read(list)?;
        Ok(Attach {
            name,
            handle,
            role,
            snd_settle_mode: SenderSettleMode::read(list)?,
            rcv_settle_mode: ReceiverSettleMode::read(list)?.unwrap_or_default(),
            source: list.described(Source::decode)?,
            target: list.described(AttachTarget::decode)?,
            unsettled: Unsettled::read(list)?,
            incomplete_unsettled: list.flag()?,
            initial_delivery_count: initial_delivery_count(list, role)?,
            max_message_size: list.ulong()?,
            offered_capabilities: list.symbols("offered-capabilities")?,
            desired_capabilities: list.symbols("desired-capabilities")?,
            properties: list.fields()?,
        })
    }

    /// Appends the performative.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode::composite(out, descriptor::ATTACH, |list| {
            list.string(Some(&self.name));
            list.uint(Some(self.handle));
            list.boolean(self.role.field());
            list.ubyte(self.snd_settle_mode.field());
            let first = self.rcv_settle_mode == ReceiverSettleMode::First;
            list.ubyte((!first).then_some(self.rcv_settle_mode.code()));
            list.field(self.source.as_ref(), |out, source| source.encode(out));
            list.field(self.target.as_ref(), |out, target| target.encode(out));
            list.field(self.unsettled.as_map(), encode::copied_map);
            list.flag(self.incomplete_unsettled);
            list.uint(self.initial_delivery_count);
            list.ulong(self.max_message_size);
            list.symbols(&self.offered_capabilities);
            list.symbols(&self.desired_capabilities);
            list.fields(&self.properties);
        });
    }
}

/// "This MUST NOT be null if role is sender, and it is ignored if the role is receiver" (2.7.3).
fn initial_delivery_count(list: &mut ListReader<'_>, role: Role) -> Result<Option<u32>> {
    let count = list.uint()?;
    match role {
        Role::Sender => list.need(count, "initial-delivery-count").map(Some),
        Role::Receiver => Ok(count),
    }
}

impl SenderSettleMode {
    fn read(list: &mut ListReader<'_>) -> Result<SenderSettleMode> {
        match list.ubyte()? {
            Some(0) => Ok(SenderSettleMode::Unsettled),
            Some(1) => Ok(SenderSettleMode::Settled),
            Some(2) | None => Ok(SenderSettleMode::Mixed),
            Some(_) => Err(list.invalid("snd-settle-mode")),
        }
    }

    /// The field's value; absent if it is the default.
    fn field(self) -> Option<u8> {
        (self != Self::default()).then_some(self as u8)
    }
}

impl Unsettled {
    /// Adds a delivery, and its state as far as it is known.
    pub fn insert(&mut self, tag: &[u8], state: Option<&DeliveryState<'_>>) {
        encode::binary(&mut self.elements, tag);
        match state {
            Some(state) => state.encode(&mut self.elements),
            None => encode::value(&mut self.elements, Value::Null),
        }
        self.count += 2;
    }

    /// The tags, with the state of each delivery as far as the peer knows it.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<DeliveryState<'_>>)> {
        let mut reader = Reader::new(&self.elements);
        (0..self.count / 2).map_while(move |_| delivery(&mut reader).ok())
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A map from tags to states or null (2.7.3), each of which has to be one.
    fn read(list: &mut ListReader<'_>) -> Result<Unsettled> {
        let read = list.field(|reader, code| {
            let (mut body, count) = reader.map_body(code)?;
            let (start, elements) = (body.position(), body.rest());
            for _ in 0..count / 2 {
                delivery(&mut body)?;
            }
            keys::compare(elements, count, start)?;
            body.finish()?;
            reader.rejoin(&body);
            Ok(Unsettled { count, elements: elements.to_vec() })
        });
        read.map(Option::unwrap_or_default)
    }

    fn as_map(&self) -> Option<Map<'_>> {
        (!self.is_empty()).then_some(Map { count: self.count, elements: &self.elements })
    }
}

impl fmt::Debug for Unsettled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// The next tag and state.
fn delivery<'a>(reader: &mut Reader<'a>) -> Result<(&'a [u8], Option<DeliveryState<'a>>)> {
    let code = reader.byte()?;
    let tag = reader.binary_of(code)?;
    if reader.peek() == Some(code::NULL) {
        reader.byte()?;
        return Ok((tag, None));
    }
    Ok((tag, Some(DeliveryState::decode(reader)?)))
}
