//! Selectors held against messages.

use alloc::string::ToString;

use model::{Format, Formats, Refusal, Value};
use selector::{Properties, Selector};

/// What a selector sees of a body.
struct Seen<'m> {
    formats: &'m Formats,
    format: Format,
    body: &'m [u8],
}

/// A selector, or why it is none.
pub(crate) fn parse_selector(text: &str) -> Result<Selector, Refusal> {
    Selector::parse(text).map_err(|error| Refusal::InvalidSelector {
        position: error.position,
        reason: error.reason.to_string().into(),
    })
}

/// Whether a consumer with this selector wants a message of this body.
pub(crate) fn matches(selector: &Selector, formats: &Formats, format: Format, body: &[u8]) -> bool {
    selector.matches(&Seen { formats, format, body })
}

impl Properties for Seen<'_> {
    fn property(&self, name: &str) -> Value<'_> {
        (self.formats.property)(self.format, self.body, name)
    }
}
