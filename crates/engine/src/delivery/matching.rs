//! Selectors held against messages.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::cell::{Cell, OnceCell};

use model::{
    Death, Durability, Formats, Found, Nanos, NewMessage, Outline, Persistence, PropertyValue,
    Refusal, Subject, limits,
};
use records::DeadView;
use selector::{PropertySource, Selector};

use crate::store::message::Message;

/// One message as selectors see it. All selectors that are held against it share the findings.
pub(crate) struct Seen<'m> {
    subject: Subject<'m>,
    formats: &'m Formats,
    /// How often something was looked for.
    asked: Cell<usize>,
    index: OnceCell<Vec<(&'m str, PropertyValue<'m>)>>,
    outline: OnceCell<Outline>,
}

/// So many names are looked for one by one. A selector that asks for more gets them from an index.
const ASKED_WITHOUT_INDEX: usize = 8;

/// A selector, or why it is none.
pub(crate) fn parse_selector(text: &str) -> Result<Selector, Refusal> {
    Selector::parse(text).map_err(|error| Refusal::InvalidSelector {
        position: error.position,
        reason: error.reason.to_string().into(),
    })
}

/// Steps that it takes to read a selector.
pub(crate) const fn reading_steps(text: &str) -> usize {
    text.len() / READ_BYTES_PER_STEP
}

/// Steps that a match takes at most.
pub(crate) fn steps_of(selector: &Selector) -> usize {
    match selector.weight() {
        0..USUAL_WEIGHT => 1,
        weight => weight / WEIGHT_PER_STEP,
    }
}

/// For how many messages that are looked at by a usual selector one counts.
pub(crate) fn looks_of(selector: &Selector) -> usize {
    1 + selector.weight() / USUAL_WEIGHT
}

const READ_BYTES_PER_STEP: usize = 4;

const WEIGHT_PER_STEP: usize = 2;

/// Nearly all selectors weigh less.
const USUAL_WEIGHT: usize = 32;

impl<'m> Seen<'m> {
    /// Of a message that is there, with this body.
    pub(crate) fn of(message: &'m Message, body: &'m [u8], formats: &'m Formats) -> Self {
        let death = message.dead().map(|dead| {
            let DeadView { reason, at, attempts, .. } = dead.view();
            Death { reason, from: dead.from(), at, attempts }
        });
        let subject = Subject {
            format: message.format(),
            body,
            priority: message.priority(),
            is_persistent: message.durability() != Durability::None,
            created: message.created(),
            expires: message.expires(),
            failed: message.counters().failed,
            death,
        };
        Self::new(subject, formats)
    }

    /// Of a message that comes now.
    pub(crate) fn of_new(new: &'m NewMessage, now: Nanos, formats: &'m Formats) -> Self {
        let subject = Subject {
            format: new.format,
            body: &new.body,
            priority: new.priority,
            is_persistent: new.persistence != Persistence::NonPersistent,
            created: now,
            expires: new.expires,
            failed: 0,
            death: None,
        };
        Self::new(subject, formats)
    }

    fn new(subject: Subject<'m>, formats: &'m Formats) -> Self {
        let (asked, index) = (Cell::new(0), OnceCell::new());
        Self { subject, formats, asked, index, outline: OnceCell::new() }
    }

    /// True if a consumer with this selector wants it.
    pub(crate) fn matches(&self, selector: &Selector) -> bool {
        selector.matches(self)
    }

    fn index(&self) -> &[(&'m str, PropertyValue<'m>)] {
        self.asked.set(self.asked.get() + 1);
        if self.asked.get() <= ASKED_WITHOUT_INDEX {
            return &[];
        }
        let Subject { format, body, .. } = self.subject;
        self.index.get_or_init(|| (self.formats.index)(format, body))
    }
}

impl PropertySource for Seen<'_> {
    fn property(&self, name: &str) -> PropertyValue<'_> {
        let Subject { format, body, .. } = self.subject;
        let outline = self.outline.get_or_init(|| (self.formats.outline)(format, body));
        let found = Found { outline, index: self.index() };
        match (self.formats.property)(&self.subject, found, name) {
            // Each step of each selector may look at all of it.
            PropertyValue::String(text) if text.len() > limits::SELECTED_TEXT_BYTES_MAX => {
                PropertyValue::Opaque
            }
            value => value,
        }
    }
}
