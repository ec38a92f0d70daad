//! Bytes that are no text, in JSON (RFC 4648, section 4).

/// Bytes as text.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let sextet = bits >> (18 - 6 * place) & 63;
            text.push(if place <= group.len() { letter(sextet) } else { '=' });
        }
    }
    text
}

/// The bytes of a text; `None` where it is not of this kind.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let digits = text.trim_end_matches('=');
    if text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for group in digits.as_bytes().chunks(4) {
        let mut bits = 0;
        for place in 0..4 {
            bits = bits << 6 | group.get(place).map_or(Some(0), |letter| sextet(*letter))?;
        }
        let [_, octets @ ..] = u32::to_be_bytes(bits);
        let (octets, rest) = octets.split_at_checked(group.len().checked_sub(1)?)?;
        // One spelling each: bits that no byte needs are zero.
        if octets.is_empty() || rest.iter().any(|octet| *octet != 0) {
            return None;
        }
        bytes.extend_from_slice(octets);
    }
    Some(bytes)
}

fn letter(sextet: u32) -> char {
    let letter = ALPHABET.get(sextet as usize).copied();
    char::from(letter.expect("invariant: six bits have 64 values"))
}

fn sextet(letter: u8) -> Option<u32> {
    let place = ALPHABET.iter().position(|known| *known == letter)?;
    u32::try_from(place).ok()
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc_hold() {
        let examples = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (bytes, text) in examples {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).unwrap(), bytes.as_bytes());
        }
        let all: Vec<u8> = (0..=u8::MAX).collect();
        assert_eq!(decode(&encode(&all)).unwrap(), all);
    }

    #[test]
    fn other_texts_are_refused() {
        for wrong in ["Z", "Zg", "Zg=", "Zh==", "Zm9=", "Z===", "====", "Zg==Zg==", "Zm-v", " Zm9"]
        {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
