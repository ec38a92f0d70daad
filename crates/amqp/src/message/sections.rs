//! Which sections there are, their order (3.2), and where each ends.

use core::ops::Range;

use model::Outline;

use crate::decode_error::{DecodeError, DecodeErrorKind};
use crate::limits::BODY_SECTIONS_MAX;
use crate::message::Properties;
use crate::types::reader::{Reader, Result};
use crate::types::{code, descriptor};

/// The sections of a message in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// How to deliver it (3.2.1).
    Header,
    /// For the next hop (3.2.2).
    DeliveryAnnotations,
    /// For all hops (3.2.3).
    MessageAnnotations,
    /// Immutable, of the specification (3.2.4).
    Properties,
    /// Immutable, of the application (3.2.5).
    ApplicationProperties,
    /// Immutable as well (3.2.6 to 3.2.8).
    Body,
    /// Annotations that can be told only after the body (3.2.9).
    Footer,
}

/// The kind of sections in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// There is none.
    Empty,
    /// One or more data sections.
    Data,
    /// One or more sequence sections.
    Sequence,
    /// One value.
    Value,
}

const COUNT: usize = Section::Footer as usize + 1;

/// The offset of each section. It ends where the next one begins, and an absent one is empty.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sections {
    /// The start of each section, and at last the end of the message.
    starts: [usize; COUNT + 1],
    /// How many of these are known.
    known: usize,
    /// The descriptor of the section that was read last; 0 before the first.
    last: u64,
    body: u64,
    /// How many sections make the body.
    body_sections: u32,
}

impl Section {
    /// The section with this descriptor.
    pub(super) fn of(code: u64) -> Option<Section> {
        let section = match code {
            descriptor::HEADER => Section::Header,
            descriptor::DELIVERY_ANNOTATIONS => Section::DeliveryAnnotations,
            descriptor::MESSAGE_ANNOTATIONS => Section::MessageAnnotations,
            descriptor::PROPERTIES => Section::Properties,
            descriptor::APPLICATION_PROPERTIES => Section::ApplicationProperties,
            descriptor::DATA | descriptor::AMQP_SEQUENCE | descriptor::AMQP_VALUE => Section::Body,
            descriptor::FOOTER => Section::Footer,
            _ => return None,
        };
        Some(section)
    }
}

impl Sections {
    /// The offset of each.
    pub(super) fn outline(&self) -> Outline {
        self.starts.map(|start| u32::try_from(start).unwrap_or(u32::MAX))
    }

    /// Those of an outline, which does not tell the kind of the body.
    pub(super) fn of_outline(outline: &Outline) -> Self {
        Self { starts: outline.map(|start| start as usize), known: COUNT + 1, ..Self::default() }
    }

    /// True if a section may come next. Descriptors rise in the order of the sections; data and
    /// sequences may repeat, and a body is of one kind.
    pub(super) fn may_follow(&self, code: u64) -> bool {
        let in_body = |code| Section::of(code) == Some(Section::Body);
        if in_body(self.last) && in_body(code) {
            return code == self.last && code != descriptor::AMQP_VALUE;
        }
        code > self.last
    }

    /// Notes that `section` begins at `start`, or goes on there.
    pub(super) fn begin(&mut self, section: Section, code: u64, start: usize) {
        self.fill(section as usize + 1, start);
        self.last = code;
        if section == Section::Body {
            self.body = code;
            self.body_sections = self.body_sections.saturating_add(1);
        }
    }

    /// Notes that the message ends at `end`.
    pub(super) fn end(&mut self, end: usize) {
        self.fill(COUNT + 1, end);
    }

    /// A body in very many sections would be walked through again and again.
    pub(super) fn check_body(&self) -> Result<()> {
        if self.body_sections <= BODY_SECTIONS_MAX {
            return Ok(());
        }
        let too_many = DecodeErrorKind::TooMany("sections of a body", BODY_SECTIONS_MAX);
        Err(DecodeError::new(too_many, self.range(Section::Body).start))
    }

    /// Those of the first `count` that are not known begin at `start`.
    fn fill(&mut self, count: usize, start: usize) {
        let unknown = self.starts.get_mut(self.known..count).unwrap_or_default();
        unknown.fill(start);
        self.known = self.known.max(count);
    }

    pub(super) fn range(&self, section: Section) -> Range<usize> {
        let start = |index: usize| self.starts.get(index).copied().unwrap_or_default();
        start(section as usize)..start(section as usize + 1)
    }

    pub(super) fn body_kind(&self) -> BodyKind {
        match self.body {
            descriptor::DATA => BodyKind::Data,
            descriptor::AMQP_SEQUENCE => BodyKind::Sequence,
            descriptor::AMQP_VALUE => BodyKind::Value,
            _ => BodyKind::Empty,
        }
    }
}

/// Passes over the section `code`, which is no header, and checks it.
pub(super) fn check(code: u64, reader: &mut Reader<'_>) -> Result<()> {
    match code {
        descriptor::PROPERTIES => Properties::check(reader),
        descriptor::APPLICATION_PROPERTIES => check_map(reader, is_property_key),
        descriptor::DATA => {
            let code = reader.byte()?;
            reader.binary_of(code).map(drop)
        }
        descriptor::AMQP_SEQUENCE => {
            let code = reader.byte()?;
            reader.list_body(code).map(drop)
        }
        descriptor::AMQP_VALUE => reader.skip(),
        _ => check_map(reader, is_annotation_key),
    }
}

fn check_map(reader: &mut Reader<'_>, is_key: impl Fn(u8) -> bool) -> Result<()> {
    let code = reader.byte()?;
    reader.map_with_keys(code, 0, is_key).map(drop)
}

/// Keys of annotations and footers: symbols, and ulongs that are reserved (3.2.10).
fn is_annotation_key(code: u8) -> bool {
    matches!(
        code,
        code::SYMBOL_8 | code::SYMBOL_32 | code::SMALL_ULONG | code::ULONG | code::ULONG_0
    )
}

/// Keys of application properties (3.2.5).
fn is_property_key(code: u8) -> bool {
    matches!(code, code::STRING_8 | code::STRING_32)
}
