//! The bodies of SASL frames (5.3.3), and the words of the mechanism PLAIN.

use alloc::vec::Vec;
use core::fmt;

use crate::decode_error::{DecodeError, DecodeErrorKind as Kind};
use crate::encode;
use crate::types::list_reader::ListReader;
use crate::types::reader::Reader;
use crate::types::{Symbols, descriptor};

/// The body of a SASL frame. Credentials are not shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub enum SaslBody<'a> {
    /// The mechanisms of the server.
    Mechanisms(Symbols),
    /// The client's choice.
    Init {
        /// The mechanism.
        mechanism: &'a str,
        /// The mechanism's first response.
        initial_response: Option<&'a [u8]>,
        /// The host that the client wanted to reach.
        hostname: Option<&'a str>,
    },
    /// The server asks.
    Challenge(&'a [u8]),
    /// The client answers.
    Response(&'a [u8]),
    /// The end.
    Outcome {
        /// How it ended.
        code: SaslCode,
        /// The mechanism's last data.
        additional_data: Option<&'a [u8]>,
    },
}

/// How an authentication ended (5.3.3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaslCode {
    /// The peer is authentic.
    Ok,
    /// Wrong credentials.
    Auth,
    /// A failure of the system.
    Sys,
    /// A failure that stays.
    SysPerm,
    /// A failure that may pass.
    SysTemp,
}

impl<'a> SaslBody<'a> {
    /// Decodes the body of a SASL frame.
    ///
    /// # Errors
    /// When the bytes are none, or something follows.
    pub fn decode(body: &'a [u8]) -> Result<SaslBody<'a>, DecodeError> {
        let mut reader = Reader::new(body);
        let unknown = reader.error(Kind::UnknownDescriptor);
        let code = reader.composite()?;
        let mut list = ListReader::new(&mut reader)?;
        let sasl = match code {
            descriptor::SASL_MECHANISMS => mechanisms(&mut list)?,
            descriptor::SASL_INIT => init(&mut list)?,
            descriptor::SASL_CHALLENGE => SaslBody::Challenge(needed(&mut list, "challenge")?),
            descriptor::SASL_RESPONSE => SaslBody::Response(needed(&mut list, "response")?),
            descriptor::SASL_OUTCOME => outcome(&mut list)?,
            _ => return Err(unknown),
        };
        list.finish(&mut reader)?;
        reader.finish()?;
        Ok(sasl)
    }

    /// Appends the body, without the head of its frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let code = match self {
            SaslBody::Mechanisms(_) => descriptor::SASL_MECHANISMS,
            SaslBody::Init { .. } => descriptor::SASL_INIT,
            SaslBody::Challenge(_) => descriptor::SASL_CHALLENGE,
            SaslBody::Response(_) => descriptor::SASL_RESPONSE,
            SaslBody::Outcome { .. } => descriptor::SASL_OUTCOME,
        };
        encode::composite(out, code, |list| match self {
            SaslBody::Mechanisms(mechanisms) => list.symbols(mechanisms),
            SaslBody::Init { mechanism, initial_response, hostname } => {
                list.symbol(Some(mechanism));
                list.binary(*initial_response);
                list.string(*hostname);
            }
            SaslBody::Challenge(bytes) | SaslBody::Response(bytes) => list.binary(Some(bytes)),
            SaslBody::Outcome { code, additional_data } => {
                list.ubyte(Some(*code as u8));
                list.binary(*additional_data);
            }
        });
    }
}

fn mechanisms<'a>(list: &mut ListReader<'_>) -> Result<SaslBody<'a>, DecodeError> {
    let mechanisms = list.symbols("sasl-server-mechanisms")?;
    let some = (!mechanisms.is_empty()).then_some(mechanisms);
    list.need(some, "sasl-server-mechanisms").map(SaslBody::Mechanisms)
}

fn init<'a>(list: &mut ListReader<'a>) -> Result<SaslBody<'a>, DecodeError> {
    let mechanism = list.symbol()?;
    Ok(SaslBody::Init {
        mechanism: list.need(mechanism, "mechanism")?,
        initial_response: list.binary()?,
        hostname: list.str()?,
    })
}

fn needed<'a>(list: &mut ListReader<'a>, name: &'static str) -> Result<&'a [u8], DecodeError> {
    let bytes = list.binary()?;
    list.need(bytes, name)
}

fn outcome<'a>(list: &mut ListReader<'a>) -> Result<SaslBody<'a>, DecodeError> {
    let code = list.ubyte()?;
    let code = SaslCode::of(list.need(code, "code")?).ok_or(list.invalid("code"))?;
    Ok(SaslBody::Outcome { code, additional_data: list.binary()? })
}

impl SaslCode {
    const ALL: [SaslCode; 5] = [Self::Ok, Self::Auth, Self::Sys, Self::SysPerm, Self::SysTemp];

    fn of(code: u8) -> Option<SaslCode> {
        Self::ALL.into_iter().find(|known| *known as u8 == code)
    }
}

impl fmt::Debug for SaslBody<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SaslBody::Mechanisms(mechanisms) => write!(f, "Mechanisms({mechanisms:?})"),
            SaslBody::Init { mechanism, .. } => write!(f, "Init({mechanism})"),
            SaslBody::Challenge(bytes) => write!(f, "Challenge({} bytes)", bytes.len()),
            SaslBody::Response(bytes) => write!(f, "Response({} bytes)", bytes.len()),
            SaslBody::Outcome { code, .. } => write!(f, "Outcome({code:?})"),
        }
    }
}

/// A client's response by the mechanism PLAIN (RFC 4616). The password is not shown by `Debug`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Plain<'a> {
    /// The user that the client wants to act for; empty: itself.
    pub authorization_id: &'a str,
    /// The user that the client is; empty: the one of the token that is its password.
    pub user: &'a str,
    /// The proof of it.
    pub password: &'a str,
}

impl<'a> Plain<'a> {
    /// Parses `[authzid] NUL authcid NUL passwd`; nothing if it is not that.
    pub fn parse(response: &'a [u8]) -> Option<Plain<'a>> {
        let mut parts = core::str::from_utf8(response).ok()?.split('\0');
        let plain =
            Plain { authorization_id: parts.next()?, user: parts.next()?, password: parts.next()? };
        parts.next().is_none().then_some(plain)
    }

    /// True if it says who the client is.
    #[must_use]
    pub const fn has_user(&self) -> bool {
        !self.user.is_empty()
    }

    /// True if the client wants to act for no other user.
    #[must_use]
    pub fn is_for_itself(&self) -> bool {
        self.authorization_id.is_empty() || self.authorization_id == self.user
    }
}

impl fmt::Debug for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plain({:?} for {:?})", self.user, self.authorization_id)
    }
}
