//! Messages (part 3): where the sections of one are, and how to read them.
//!
//! A message stays the bytes that its sender sent: the bare message, from properties to body, is
//! never encoded anew (3.2). [`Message::scan`] finds the sections and checks all of them but the
//! inside of the body, which is the receiver's alone. Later lookups cannot fail.

mod header;
mod properties;
mod sections;
mod write;

use alloc::vec::Vec;

use model::{MessageGroup, Outline};

use crate::decode_error::{DecodeError, DecodeErrorKind as Kind};
use crate::types::list_reader::ListReader;
use crate::types::reader::{Reader, Result};
use crate::types::{Map, Value, code, descriptor};

pub use header::{Header, PRIORITY_DEFAULT};
pub(crate) use properties::Place;
pub use properties::Properties;
pub use sections::{BodyKind, Section};
pub use write::{
    application_properties, data, data_head, delivery_annotations, message_annotations, value,
};

use sections::Sections;

/// The format of messages that this module reads, as transfers name it (3.2.16).
pub const MESSAGE_FORMAT: u32 = 0;

/// A message with the places of its sections.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    bytes: &'a [u8],
    sections: Sections,
    header: Header,
}

impl<'a> Message<'a> {
    /// Finds the sections of a message. One without a body passes, although 3.2 wants one:
    /// clients send it.
    ///
    /// # Errors
    /// When a section is malformed, not known, or not where it may be, or there is more in it than
    /// the [`limits`](crate::limits) allow.
    pub fn scan(bytes: &'a [u8]) -> core::result::Result<Message<'a>, DecodeError> {
        let message = Message::walk(bytes, sections::check, |_| false)?;
        message.sections.check_body()?;
        Ok(message)
    }

    /// The sections of a message that was scanned before it was stored: their inside is not checked
    /// again. In bytes that were never scanned, lookups find something or nothing.
    pub(crate) fn stored(bytes: &'a [u8]) -> Option<Message<'a>> {
        Message::walk(bytes, |_, reader| reader.leap(), |_| false).ok()
    }

    /// The same, but for the sections of its body, which are not looked for: body and footer seem
    /// to be one. However many there are, the sections before them are found as soon.
    pub(crate) fn head_of_stored(bytes: &'a [u8]) -> Option<Message<'a>> {
        Message::walk(bytes, |_, reader| reader.leap(), |section| section == Section::Body).ok()
    }

    /// The offsets of its sections, to find them again by [`Message::of_outline`].
    pub(crate) fn outline(&self) -> Outline {
        self.sections.outline()
    }

    /// The message with that outline.
    pub(crate) fn of_outline(bytes: &'a [u8], outline: &Outline) -> Message<'a> {
        let sections = Sections::of_outline(outline);
        let mut reader =
            Reader::new(bytes.get(sections.range(Section::Header)).unwrap_or_default());
        let header = if reader.is_empty() {
            Header::default()
        } else {
            let read = reader.composite().and_then(|_| Header::read(&mut reader));
            read.unwrap_or_default()
        };
        Message { bytes, sections, header }
    }

    /// Finds the sections up to the first that `ends` it. Each but the header `pass` has to pass
    /// over.
    fn walk(
        bytes: &'a [u8],
        pass: impl Fn(u64, &mut Reader<'a>) -> Result<()>,
        ends: impl Fn(Section) -> bool,
    ) -> Result<Message<'a>> {
        let mut reader = Reader::of_message(bytes);
        let (mut sections, mut header) = (Sections::default(), Header::default());
        while !reader.is_empty() {
            let start = reader.position();
            let code = reader.composite()?;
            let Some(section) = Section::of(code) else {
                return Err(DecodeError::new(Kind::UnknownDescriptor, start));
            };
            if !sections.may_follow(code) {
                return Err(DecodeError::new(Kind::SectionOrder, start));
            }
            sections.begin(section, code, start);
            if ends(section) {
                break;
            }
            if section == Section::Header {
                header = Header::read(&mut reader)?;
            } else {
                pass(code, &mut reader)?;
            }
        }
        sections.end(bytes.len());
        Ok(Message { bytes, sections, header })
    }

    /// The header, with defaults for missing fields.
    pub fn header(&self) -> Header {
        self.header
    }

    /// The immutable properties (3.2.4), decoded now.
    pub fn properties(&self) -> Properties<'a> {
        let section = self.section(Section::Properties);
        if section.is_empty() {
            return Properties::default();
        }
        let mut reader = Reader::new(section);
        let properties = reader.composite().and_then(|_| Properties::read(&mut reader));
        debug_assert!(properties.is_ok(), "properties were checked by the scan");
        properties.unwrap_or_default()
    }

    /// One of the properties, by its place among them (3.2.4). Much cheaper than all.
    pub(crate) fn property(&self, place: Place) -> Option<Value<'a>> {
        let mut reader = Reader::new(self.section(Section::Properties));
        reader.composite().ok()?;
        ListReader::new(&mut reader).ok()?.value_at(place as usize).ok()?
    }

    /// The group that it belongs to (3.2.4), which is JMS's. An empty name is none.
    pub(crate) fn group(&self) -> Option<MessageGroup> {
        let name = self.property(Place::GroupId)?.as_str()?;
        let sequence = self.property(Place::GroupSequence);
        let group = MessageGroup::named((!name.is_empty()).then_some(name)?);
        // JMS's -1, as a number without sign.
        let is_last = matches!(sequence, Some(Value::Uint(u32::MAX)));
        Some(if is_last { group.ending() } else { group })
    }

    /// When it is worth nothing any more; milliseconds since 1970.
    pub(crate) fn absolute_expiry_time(&self) -> Option<i64> {
        self.property(Place::AbsoluteExpiryTime)?.as_i64()
    }

    /// The value of a message annotation (3.2.3).
    pub fn message_annotation(&self, symbol: &str) -> Option<Value<'a>> {
        self.message_annotations()?.get(symbol)
    }

    /// The value of an application property (3.2.5).
    pub fn application_property(&self, name: &str) -> Option<Value<'a>> {
        self.application_properties()?.get(name)
    }

    /// Annotations for the next hop only (3.2.2).
    pub fn delivery_annotations(&self) -> Option<Map<'a>> {
        self.map(Section::DeliveryAnnotations)
    }

    /// Annotations that stay with the message (3.2.3).
    pub fn message_annotations(&self) -> Option<Map<'a>> {
        self.map(Section::MessageAnnotations)
    }

    /// The properties that the application added (3.2.5).
    pub fn application_properties(&self) -> Option<Map<'a>> {
        self.map(Section::ApplicationProperties)
    }

    fn map(&self, section: Section) -> Option<Map<'a>> {
        let mut reader = Reader::new(self.section(section));
        reader.composite().ok()?;
        let code = reader.byte().ok()?;
        let (body, count) = reader.map_body(code).ok()?;
        Some(Map { count, elements: body.rest() })
    }
}

/// The body (3.2.6 to 3.2.8).
impl<'a> Message<'a> {
    /// The kind of sections in the body.
    pub fn body_kind(&self) -> BodyKind {
        self.sections.body_kind()
    }

    /// The contents of the data sections, in their order; none if the body is of another kind.
    pub fn data(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let is_data = self.body_kind() == BodyKind::Data;
        let mut reader = Reader::new(if is_data { self.section(Section::Body) } else { &[] });
        core::iter::from_fn(move || {
            reader.composite().ok()?;
            let code = reader.byte().ok()?;
            reader.binary_of(code).ok()
        })
    }

    /// The body if it is one value, decoded now; nothing if it is of another kind.
    ///
    /// # Errors
    /// When the value is malformed inside.
    pub fn value(&self) -> Result<Option<Value<'a>>> {
        match self.body_kind() {
            BodyKind::Value => self.value_reader()?.value().map(Some),
            _ => Ok(None),
        }
    }

    /// The elements of all sequence sections, in their order; nothing if the body is of another
    /// kind, or one of them is malformed.
    pub(crate) fn sequence(&self) -> Option<Vec<Value<'a>>> {
        let mut reader = Reader::new(self.section(Section::Body));
        let mut elements = Vec::new();
        while !reader.is_empty() {
            let descriptor::AMQP_SEQUENCE = reader.composite().ok()? else { return None };
            let Value::List(list) = reader.value().ok()? else { return None };
            elements.extend(list.iter());
        }
        (self.body_kind() == BodyKind::Sequence).then_some(elements)
    }

    /// The bytes of a body that is one string or binary; nothing if it is of another kind. They
    /// are not looked into.
    pub(crate) fn text_or_binary(&self) -> Option<&'a [u8]> {
        let mut reader = self.value_reader().ok()?;
        match reader.byte().ok()? {
            code::STRING_8 | code::BINARY_8 => reader.sized(true).ok(),
            code::STRING_32 | code::BINARY_32 => reader.sized(false).ok(),
            _ => None,
        }
    }

    /// A reader of the value that is the body.
    pub(crate) fn value_reader(&self) -> Result<Reader<'a>> {
        let mut reader = Reader::new(self.section(Section::Body));
        match reader.composite()? {
            descriptor::AMQP_VALUE => Ok(reader),
            _ => Err(DecodeError::new(Kind::UnknownDescriptor, 0)),
        }
    }
}

/// Its bytes.
impl<'a> Message<'a> {
    /// The whole message.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// A section with its descriptor; empty if it is absent. Several data or sequence sections
    /// are one body.
    pub fn section(&self, section: Section) -> &'a [u8] {
        self.bytes.get(self.sections.range(section)).unwrap_or_default()
    }

    /// Everything but the header and the delivery annotations, which a broker writes anew: these
    /// bytes go to the next receiver unchanged.
    pub fn without_header(&self) -> &'a [u8] {
        let start = self.sections.range(Section::MessageAnnotations).start;
        self.bytes.get(start..).unwrap_or_default()
    }

    /// The body and the footer, which follow the application properties.
    pub fn body_and_footer(&self) -> &'a [u8] {
        let start = self.sections.range(Section::Body).start;
        self.bytes.get(start..).unwrap_or_default()
    }
}
