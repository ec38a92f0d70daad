//! The server's side of SCRAM (RFC 5802, RFC 7677), without channel binding.
//!
//! ```text
//! client first   n,,n=USER,r=NONCE                 or y,,… or n,a=USER,…
//! challenge      r=NONCE+OURS,s=SALT,i=ITERATIONS
//! client final   c=biws,r=NONCE+OURS,p=PROOF
//! proof          v=SIGNATURE
//! ```

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::limits::SCRAM_MESSAGE_BYTES_MAX;
use crate::verifier::Verifier;

/// The client's first message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClientFirst<'m> {
    /// `n,,`, as the last message has to repeat it.
    gs2_header: &'m str,
    /// The rest of the message, which is signed.
    bare: &'m str,
    /// The user that the client wants to be, where it says one.
    pub(crate) authorization: Option<Cow<'m, str>>,
    /// The user that the client is.
    pub(crate) user: Cow<'m, str>,
    nonce: &'m str,
}

impl<'m> ClientFirst<'m> {
    /// Reads the message. `None`: it is none, or demands a channel binding (`p=`) or an extension
    /// (`m=`) that does not exist here.
    pub(crate) fn parse(message: &'m [u8]) -> Option<Self> {
        let message = text_of(message)?;
        let binding = message.strip_prefix("n,").or_else(|| message.strip_prefix("y,"))?;
        let (authorization, bare) = binding.split_once(',')?;
        let authorization = match authorization.strip_prefix("a=") {
            Some(name) => Some(unescape(name)?),
            None if authorization.is_empty() => None,
            None => return None,
        };
        let gs2_header = message.strip_suffix(bare)?;
        let (user, rest) = bare.strip_prefix("n=")?.split_once(',')?;
        let (nonce, extensions) = first_attribute(rest, "r=")?;
        if nonce.is_empty() || !are_extensions(extensions) {
            return None;
        }
        Some(Self { gs2_header, bare, authorization, user: unescape(user)?, nonce })
    }
}

/// An exchange that waits for the client's last message.
#[derive(Debug)]
pub(crate) struct Exchange {
    verifier: Verifier,
    gs2_header: String,
    /// The client's nonce and ours.
    nonce: String,
    /// The first messages, as both sign them.
    signed: String,
}

impl Exchange {
    /// Begins it with a nonce of ours that was never used before; gives the challenge as well.
    pub(crate) fn begin(first: &ClientFirst<'_>, verifier: Verifier, ours: &str) -> (Self, String) {
        let nonce = format!("{}{ours}", first.nonce);
        let challenge = format!("r={nonce},{}", verifier.challenge());
        let signed = format!("{},{challenge}", first.bare);
        (Self { verifier, gs2_header: first.gs2_header.into(), nonce, signed }, challenge)
    }

    /// Ends it by the client's last message. `Some`: the client has the password, and these bytes
    /// prove that the server has the verifier.
    pub(crate) fn finish(mut self, message: &[u8]) -> Option<Vec<u8>> {
        let message = text_of(message)?;
        let (without_proof, proof) = message.rsplit_once(",p=")?;
        let (binding, rest) = first_attribute(without_proof, "c=")?;
        let (nonce, extensions) = first_attribute(rest?, "r=")?;
        let repeats = STANDARD.decode(binding).ok()? == self.gs2_header.as_bytes();
        if !repeats || nonce != self.nonce || !are_extensions(extensions) {
            return None;
        }
        let proof = STANDARD.decode(proof).ok()?;
        self.signed.push(',');
        self.signed.push_str(without_proof);
        let signature = self.verifier.prove(self.signed.as_bytes(), &proof)?;
        Some(format!("v={}", STANDARD.encode(signature)).into_bytes())
    }
}

/// A message of a length that is read at all, in printable characters but for those of names.
fn text_of(message: &[u8]) -> Option<&str> {
    let text = str::from_utf8(message).ok()?;
    let is_short = text.len() <= SCRAM_MESSAGE_BYTES_MAX;
    (is_short && !text.contains(char::is_control)).then_some(text)
}

/// The value of the attribute that a text begins with, and the text behind its comma.
fn first_attribute<'t>(text: &'t str, name: &str) -> Option<(&'t str, Option<&'t str>)> {
    let value = text.strip_prefix(name)?;
    Some(match value.split_once(',') {
        Some((value, rest)) => (value, Some(rest)),
        None => (value, None),
    })
}

/// Optional attributes, which have no meaning here: a letter, `=` and a value each.
fn are_extensions(text: Option<&str>) -> bool {
    text.is_none_or(|text| {
        text.split(',').all(|attribute| {
            let mut letters = attribute.chars();
            let is_named = letters.next().is_some_and(|name| name.is_ascii_alphabetic());
            is_named && letters.next() == Some('=') && letters.next().is_some()
        })
    })
}

/// A name as the message says it, where `=2C` is a comma and `=3D` an equals sign.
fn unescape(name: &str) -> Option<Cow<'_, str>> {
    if name.is_empty() {
        return None;
    }
    if !name.contains('=') {
        return Some(name.into());
    }
    let mut pieces = name.split('=');
    let mut plain = String::from(pieces.next()?);
    for piece in pieces {
        let (sign, rest) = match (piece.strip_prefix("2C"), piece.strip_prefix("3D")) {
            (Some(rest), _) => (',', rest),
            (_, Some(rest)) => ('=', rest),
            _ => return None,
        };
        plain.push(sign);
        plain.push_str(rest);
    }
    Some(plain.into())
}

#[cfg(test)]
#[path = "scram_test.rs"]
mod tests;
