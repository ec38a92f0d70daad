//! The client's token of a lease.

use std::fmt;
use std::str::FromStr;

use model::MessageId;

/// A lease: the message, and a number that no other lease has had. The number tells a lease that is
/// over from the next one of the same message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token {
    /// Which message.
    pub message: MessageId,
    /// Which lease of it.
    pub nonce: u64,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}", self.message, self.nonce)
    }
}

/// A text that is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAToken;

impl FromStr for Token {
    type Err = NotAToken;

    fn from_str(text: &str) -> Result<Self, NotAToken> {
        let (message, nonce) = text.split_once('-').ok_or(NotAToken)?;
        let message = message.parse().map(MessageId).map_err(|_| NotAToken)?;
        let nonce = u64::from_str_radix(nonce, 16).map_err(|_| NotAToken)?;
        let token = Self { message, nonce };
        // One spelling each: all comparisons, logs and caches see the same text.
        if token.to_string() == text { Ok(token) } else { Err(NotAToken) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_has_one_spelling() {
        let token = Token { message: MessageId(17), nonce: 0xab };
        assert_eq!(token.to_string(), "17-00000000000000ab");
        assert_eq!(token.to_string().parse(), Ok(token));
        for wrong in ["", "17", "17-", "17-ab", "017-00000000000000ab", "17-00000000000000AB"] {
            assert_eq!(wrong.parse::<Token>(), Err(NotAToken), "{wrong}");
        }
    }
}
