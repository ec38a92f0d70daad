//! The end of a page, as a text with which the client asks for the next one.

use std::fmt;
use std::str::FromStr;

use model::{MessageId, MessageState, PageEnd};

/// The end of a page: `ready-1280-17-17`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor(pub(crate) PageEnd);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PageEnd { state, priority, place, message } = self.0;
        write!(f, "{}-{priority}-{place}-{message}", state_word(state))
    }
}

/// A text that is no cursor.
#[derive(Debug)]
pub(crate) struct NotACursor;

impl FromStr for Cursor {
    type Err = NotACursor;

    fn from_str(text: &str) -> Result<Self, NotACursor> {
        let mut parts = text.split('-');
        let state = parts.next().and_then(state_named).ok_or(NotACursor)?;
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (priority, place) = (number().ok_or(NotACursor)?, number().ok_or(NotACursor)?);
        let message = number().map(MessageId).ok_or(NotACursor)?;
        let priority = u32::try_from(priority).map_err(|_| NotACursor)?;
        let cursor = Self(PageEnd { state, priority, place, message });
        if cursor.to_string() == text { Ok(cursor) } else { Err(NotACursor) }
    }
}

/// The word for a state.
pub(crate) const fn state_word(state: MessageState) -> &'static str {
    match state {
        MessageState::Ready => "ready",
        MessageState::Delayed => "delayed",
        MessageState::Leased => "leased",
        MessageState::Buried => "buried",
    }
}

/// The state of a word.
pub(crate) fn state_named(word: &str) -> Option<MessageState> {
    use MessageState::{Buried, Delayed, Leased, Ready};
    [Ready, Delayed, Leased, Buried].into_iter().find(|state| state_word(*state) == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_text_round_trips() {
        for state in ["ready", "delayed", "leased", "buried"] {
            let text = format!("{state}-4294967295-18446744073709551615-7");
            assert_eq!(text.parse::<Cursor>().unwrap().to_string(), text);
        }
        for wrong in
            ["", "ready", "ready-1-2", "gone-1-2-3", "ready-01-2-3", "ready-4294967296-1-1"]
        {
            assert!(wrong.parse::<Cursor>().is_err(), "{wrong}");
        }
    }
}
