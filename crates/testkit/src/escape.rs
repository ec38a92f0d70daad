//! Bytes as readable text and back.

/// `\r`, `\n`, `\t`, `\0`, `\\` and `\xNN`; `{abc*70}` is a text 70 times.
///
/// # Panics
/// When what is escaped is not whole.
#[must_use]
pub fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '\\' => escaped(rest, &mut bytes),
            '{' => repeated(rest, &mut bytes),
            _ => plain(rest, &mut bytes),
        };
    }
    bytes
}

fn plain<'a>(text: &'a str, bytes: &mut Vec<u8>) -> &'a str {
    let end = text.find(['\\', '{']).unwrap_or(text.len());
    bytes.extend_from_slice(&text.as_bytes()[..end]);
    &text[end..]
}

fn escaped<'a>(text: &'a str, bytes: &mut Vec<u8>) -> &'a str {
    let (byte, length) = match text.as_bytes()[1] {
        b'r' => (b'\r', 2),
        b'n' => (b'\n', 2),
        b't' => (b'\t', 2),
        b'0' => (0, 2),
        b'x' => (u8::from_str_radix(&text[2..4], 16).unwrap(), 4),
        other => (other, 2),
    };
    bytes.push(byte);
    &text[length..]
}

fn repeated<'a>(text: &'a str, into: &mut Vec<u8>) -> &'a str {
    let end = text.find('}').expect("a repetition ends");
    let (part, times) = text[1..end].rsplit_once('*').expect("a repetition has a count");
    into.extend(bytes(part).repeat(times.parse().unwrap()));
    &text[end + 1..]
}

/// Long texts are cut short.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    const SHOWN_MAX: usize = 1_600;
    let (shown, hidden) = bytes.split_at(bytes.len().min(SHOWN_MAX));
    let mut text = shown.escape_ascii().to_string();
    text = text.replace("\\'", "'").replace("\\\"", "\"").replace("\\x00", "\\0");
    if !hidden.is_empty() {
        text.push_str(&format!(" and {} bytes more", hidden.len()));
    }
    text
}
