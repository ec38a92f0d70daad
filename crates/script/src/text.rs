//! Plain text in strings.

use memchr::memmem;
use mlua::{Lua, MultiValue};

use crate::native::{Refusal, bytes, number};

/// `string.find` without a pattern, in linear time: its subject, the text, and where to begin.
pub(crate) fn find(
    lua: &Lua,
    arguments: &MultiValue,
) -> Result<(Option<f64>, Option<f64>), Refusal> {
    let subject = bytes(arguments, 1, "find")?;
    let text = bytes(arguments, 2, "find")?;
    let start = start(number(lua, arguments, 3, "find")?, subject.len());
    let found = subject.get(start..).and_then(|rest| memmem::find(rest, &text));
    Ok(match found {
        Some(place) => {
            let place = start + place;
            (Some((place + 1) as f64), Some((place + text.len()) as f64))
        }
        None => (None, None),
    })
}

/// The index at which a search begins: places count from 1, and from the end if they are
/// negative.
fn start(init: f64, length: usize) -> usize {
    let from_end = if init < 0.0 { init + length as f64 } else { init - 1.0 };
    from_end.max(0.0) as usize
}
