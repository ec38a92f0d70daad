//! The words of the mechanisms that send a bearer token: OAUTHBEARER (RFC 7628) and XOAUTH2, its
//! forerunner, which some clients speak alone.
//!
//! ```text
//! OAUTHBEARER   n,a=USER,^Ahost=HOST^Aauth=Bearer TOKEN^A^A       a=USER, host and others may lack
//! XOAUTH2       user=USER^Aauth=Bearer TOKEN^A^A
//! ```

use alloc::boxed::Box;
use core::fmt;

/// A bearer token, as a client sends it. The token is not shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Bearer<'a> {
    /// The user that the client wants to be; empty: the one of the token.
    pub user: Box<str>,
    /// The token.
    pub token: &'a str,
}

impl<'a> Bearer<'a> {
    /// Parses a client's response by OAUTHBEARER; nothing if it is not that. A binding to the
    /// channel is none of ours.
    #[must_use]
    pub fn parse_oauthbearer(response: &'a [u8]) -> Option<Self> {
        let (header, pairs) = core::str::from_utf8(response).ok()?.split_once(SEPARATOR)?;
        let name = header.strip_prefix("n,").or_else(|| header.strip_prefix("y,"))?;
        let name = name.strip_suffix(',')?;
        let user = match name.strip_prefix("a=") {
            Some(name) => sasl_name(name)?,
            None if name.is_empty() => Box::default(),
            None => return None,
        };
        Some(Self { user, token: token_of(pairs)? })
    }

    /// Parses a client's response by XOAUTH2; nothing if it is not that.
    #[must_use]
    pub fn parse_xoauth2(response: &'a [u8]) -> Option<Self> {
        let (user, pairs) = core::str::from_utf8(response).ok()?.split_once(SEPARATOR)?;
        Some(Self { user: user.strip_prefix("user=")?.into(), token: token_of(pairs)? })
    }
}

impl fmt::Debug for Bearer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bearer(for {:?})", self.user)
    }
}

/// The token of pairs of which each has its end, as has their list. It is given once.
fn token_of(pairs: &str) -> Option<&str> {
    let pairs = pairs.strip_suffix("\u{1}\u{1}")?;
    let mut tokens = None;
    for pair in pairs.split(SEPARATOR) {
        let (key, value) = pair.split_once('=')?;
        if key != "auth" {
            continue;
        }
        let (scheme, token) = value.split_once(' ')?;
        let is_new = tokens.replace(token).is_none();
        if !is_new || !scheme.eq_ignore_ascii_case("bearer") || !is_token(token) {
            return None;
        }
    }
    tokens
}

/// True if it is a `b64token` (RFC 6750, section 2.1).
fn is_token(text: &str) -> bool {
    let word = text.trim_end_matches('=');
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    !word.is_empty() && word.bytes().all(is_plain)
}

/// The name that a `saslname` stands for (RFC 5801, section 4): `=2C` is a comma, `=3D` an equals
/// sign. Nothing if it has another escape, a bare comma, or is empty.
fn sasl_name(text: &str) -> Option<Box<str>> {
    let mut pieces = text.split('=');
    let mut name = alloc::string::String::from(pieces.next()?);
    for piece in pieces {
        let (character, rest) = match (piece.strip_prefix("2C"), piece.strip_prefix("3D")) {
            (Some(rest), _) => (',', rest),
            (None, Some(rest)) => ('=', rest),
            (None, None) => return None,
        };
        name.push(character);
        name.push_str(rest);
    }
    (!text.is_empty() && !text.contains(',')).then(|| name.into())
}

/// Stands behind each pair.
const SEPARATOR: char = '\u{1}';

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn bearer<'a>(user: &str, token: &'a str) -> Option<Bearer<'a>> {
        Some(Bearer { user: user.into(), token })
    }

    #[test]
    fn oauthbearer_has_header_and_pairs() {
        let parse = |text: &'static str| Bearer::parse_oauthbearer(text.as_bytes());
        assert_eq!(
            parse("n,,\u{1}auth=Bearer a.b-c_d~e+f/==\u{1}\u{1}"),
            bearer("", "a.b-c_d~e+f/==")
        );
        // The example of RFC 7628, section 4.1, with a token of its own.
        let example =
            "n,a=user@example.com,\u{1}host=h\u{1}port=143\u{1}auth=bEARER tok=\u{1}\u{1}";
        assert_eq!(parse(example), bearer("user@example.com", "tok="));
        assert_eq!(parse("y,a=a=2Cb=3Dc,\u{1}auth=Bearer x\u{1}\u{1}"), bearer("a,b=c", "x"));
        for wrong in [
            "",
            "n,,",
            "n,,\u{1}\u{1}",
            "n,,\u{1}auth=\u{1}\u{1}",
            "n,,\u{1}auth=Bearer x\u{1}",
            "n,,\u{1}auth=Bearer x",
            "n,,\u{1}auth=Bearer \u{1}\u{1}",
            "n,,\u{1}auth=Bearer =\u{1}\u{1}",
            "n,,\u{1}auth=Bearer a b\u{1}\u{1}",
            "n,,\u{1}auth=Basic x\u{1}\u{1}",
            "n,,\u{1}auth=Bearer x\u{1}auth=Bearer y\u{1}\u{1}",
            "n,,\u{1}host\u{1}auth=Bearer x\u{1}\u{1}",
            "n,,auth=Bearer x\u{1}\u{1}",
            "n,\u{1}auth=Bearer x\u{1}\u{1}",
            "n,a=,\u{1}auth=Bearer x\u{1}\u{1}",
            "n,a=b=2c,\u{1}auth=Bearer x\u{1}\u{1}",
            "n,a=b,c,\u{1}auth=Bearer x\u{1}\u{1}",
            "n,b,\u{1}auth=Bearer x\u{1}\u{1}",
            "p=tls-exporter,,\u{1}auth=Bearer x\u{1}\u{1}",
            "user=a\u{1}auth=Bearer x\u{1}\u{1}",
        ] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
        assert_eq!(Bearer::parse_oauthbearer(b"n,,\x01auth=Bearer \xff\x01\x01"), None);
    }

    #[test]
    fn xoauth2_has_user_and_token() {
        let parse = |text: &'static str| Bearer::parse_xoauth2(text.as_bytes());
        let found = parse("user=ann\u{1}auth=Bearer x.y.z\u{1}\u{1}");
        assert_eq!(found, bearer("ann", "x.y.z"));
        assert_eq!(format!("{found:?}"), "Some(Bearer(for \"ann\"))");
        assert_eq!(parse("user=\u{1}auth=Bearer x\u{1}\u{1}"), bearer("", "x"));
        for wrong in
            ["", "user=ann", "auth=Bearer x\u{1}\u{1}", "user=ann\u{1}\u{1}", "n,,\u{1}\u{1}"]
        {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }
}
