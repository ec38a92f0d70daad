//! How a peer logs in: by SASL (5.3), or without a name where the listener allows that.
//!
//! The connection gives a step and reads nothing more until its answer has come. Only SCRAM takes
//! two steps. A client of OAUTHBEARER whose token is refused is told so by a challenge, and hears
//! the outcome once it has responded (RFC 7628, section 3.2.3).
//!
//! ```text
//!   mechanisms -> init -> step -> answer: outcome
//!                   |       +---> answer: challenge -> response -> step -> answer: outcome
//!                   |       +---> answer: refused -> challenge -> response -> outcome
//!                   +-> empty challenge -> response -> step ...         without initial response
//! ```

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{LoginAnswer, LoginOffer, LoginStep, Principal, Rights, ScramHash, Secret};

use crate::Connection;
use crate::bearer::Bearer;
use crate::connection::Phase;
use crate::connection::handshake::{ANONYMOUS, PLAIN, write_sasl};
use crate::connection::limits::{LOGIN_BYTES_MAX, TOKEN_LOGIN_BYTES_MAX};
use crate::protocol_header::ProtocolHeader;
use crate::sasl::{Plain, SaslBody, SaslCode};
use crate::types::Symbols;

const EXTERNAL: &str = "EXTERNAL";
const OAUTHBEARER: &str = "OAUTHBEARER";
const XOAUTH2: &str = "XOAUTH2";
const SCRAM_SHA_256: &str = "SCRAM-SHA-256";
const SCRAM_SHA_512: &str = "SCRAM-SHA-512";

/// The login of a peer that needs one.
#[derive(Debug)]
pub(super) struct Login {
    offer: LoginOffer,
    turn: Turn,
    /// The step that the server has not taken.
    step: Option<LoginStep>,
    /// Bytes that the peer may still send before it has logged in.
    bytes_left: u32,
    rights: Option<Arc<Rights>>,
    /// The server has not been told of them.
    are_new: bool,
}

/// The next response of the peer, or the step that is being answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// The first response of a mechanism.
    First(Mechanism),
    /// The last message of SCRAM.
    ScramFinal,
    /// The response to the challenge that tells of a refused token.
    TokenRefused,
    /// No response: there is no layer of SASL.
    Bare,
}

/// A mechanism that a listener may offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mechanism {
    External,
    Scram(ScramHash),
    Plain,
    OauthBearer,
    Xoauth2,
    Anonymous,
}

impl Mechanism {
    /// The strongest first: some clients take the first that they know. Those of tokens come behind
    /// PLAIN, so that no client with a name and a password sends the password as a token.
    const ALL: [Self; 7] = [
        Self::External,
        Self::Scram(ScramHash::Sha512),
        Self::Scram(ScramHash::Sha256),
        Self::Plain,
        Self::OauthBearer,
        Self::Xoauth2,
        Self::Anonymous,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::External => EXTERNAL,
            Self::Scram(ScramHash::Sha512) => SCRAM_SHA_512,
            Self::Scram(ScramHash::Sha256) => SCRAM_SHA_256,
            Self::Plain => PLAIN,
            Self::OauthBearer => OAUTHBEARER,
            Self::Xoauth2 => XOAUTH2,
            Self::Anonymous => ANONYMOUS,
        }
    }

    fn is_offered(self, offer: LoginOffer) -> bool {
        match self {
            Self::External => offer.certificate || offer.unix,
            Self::Scram(_) => true,
            Self::Plain => offer.password,
            Self::OauthBearer | Self::Xoauth2 => offer.token,
            Self::Anonymous => offer.nameless_step().is_some(),
        }
    }

    /// The mechanisms of an offer, in its order.
    fn offered(offer: LoginOffer) -> impl Iterator<Item = Self> {
        let is_taken = move |it: &Self| !offer.listener || *it == Self::Anonymous;
        Self::ALL.into_iter().filter(is_taken).filter(move |it| it.is_offered(offer))
    }

    /// True if the client is asked for the first response that it has left out.
    const fn needs_response(self) -> bool {
        !matches!(self, Self::External | Self::Anonymous)
    }

    /// The step of the first response; nothing if it is malformed.
    fn first_step(self, offer: LoginOffer, response: &[u8]) -> Option<LoginStep> {
        Some(match self {
            Self::External => {
                return offer.external_step(core::str::from_utf8(response).ok()?.into());
            }
            Self::Scram(hash) => LoginStep::ScramFirst { hash, message: Secret::from(response) },
            Self::Plain => {
                let plain = Plain::parse(response).filter(Plain::is_for_itself)?;
                let (user, secret) = (plain.user.into(), Secret::from(plain.password.as_bytes()));
                match plain.has_user() {
                    true => LoginStep::Password { user, password: secret },
                    false => LoginStep::Token { user, token: secret },
                }
            }
            Self::OauthBearer => token_step(Bearer::parse_oauthbearer(response)?),
            Self::Xoauth2 => token_step(Bearer::parse_xoauth2(response)?),
            Self::Anonymous => return offer.nameless_step(),
        })
    }
}

fn token_step(bearer: Bearer<'_>) -> LoginStep {
    LoginStep::Token { user: bearer.user, token: Secret::from(bearer.token.as_bytes()) }
}

impl Login {
    const fn new(offer: LoginOffer) -> Self {
        Self {
            offer,
            turn: Turn::Bare,
            step: None,
            bytes_left: if offer.token { TOKEN_LOGIN_BYTES_MAX } else { LOGIN_BYTES_MAX },
            rights: None,
            are_new: true,
        }
    }

    /// The rights of the user that the peer has logged in as.
    pub(super) const fn rights(&self) -> Option<&Arc<Rights>> {
        self.rights.as_ref()
    }

    /// Bytes of the next frame: the limit is on all that the peer sends before it has logged in.
    pub(super) const fn frame_bytes_max(&self) -> u32 {
        self.bytes_left
    }

    /// The peer has sent so many of them.
    pub(super) fn count(&mut self, bytes: usize) {
        self.bytes_left = self.bytes_left.saturating_sub(u32::try_from(bytes).unwrap_or(u32::MAX));
    }
}

impl Connection {
    /// Makes the peer log in by one of the ways of the offer before it may open the connection.
    /// `None`: every peer may, by any name. Call it before the first
    /// [`poll_command`](Self::poll_command).
    pub fn set_offer(&mut self, offer: Option<LoginOffer>) {
        debug_assert!(self.phase == Phase::Header, "the offer comes before the peer's first bytes");
        self.login = offer.map(|offer| Box::new(Login::new(offer)));
    }

    /// The next step of the peer's login, after [`poll_command`](Self::poll_command) gave nothing.
    /// Nothing more is read until [`handle_login`](Self::handle_login) has come.
    pub fn poll_login(&mut self) -> Option<LoginStep> {
        if self.phase != Phase::LoggingIn {
            return None;
        }
        self.login.as_mut()?.step.take()
    }

    /// Takes the answer to the last step. Without effect once the peer has gone.
    /// [`Connection::has_more`] tells that there is something to read again.
    pub fn handle_login(&mut self, answer: LoginAnswer, out: &mut Vec<u8>) {
        if self.phase != Phase::LoggingIn {
            return;
        }
        let Some(login) = &mut self.login else { return };
        login.step = None;
        match (login.turn, answer) {
            (Turn::First(Mechanism::Scram(_)), LoginAnswer::Challenge(challenge)) => {
                login.turn = Turn::ScramFinal;
                self.phase = Phase::SaslResponse;
                write_sasl(out, &SaslBody::Challenge(&challenge));
            }
            (turn, LoginAnswer::Granted { rights, proof }) => {
                login.rights = Some(rights);
                login.are_new = true;
                self.accept_login(turn, &proof, out);
            }
            (Turn::First(Mechanism::OauthBearer), LoginAnswer::Refused) => {
                self.refuse_token(INVALID_TOKEN, out);
            }
            (_, LoginAnswer::Refused) => self.refuse_login(SaslCode::Auth, out),
            (_, LoginAnswer::Busy | LoginAnswer::Full(_)) => {
                self.refuse_login(SaslCode::SysTemp, out);
            }
            (_, LoginAnswer::Challenge(_)) => self.refuse_login(SaslCode::Sys, out),
        }
        self.reading.is_paused = true;
    }

    /// The name by which the peer has logged in.
    #[must_use]
    pub fn user(&self) -> Option<&Arc<str>> {
        self.login.as_ref()?.rights.as_ref().map(|rights| rights.user())
    }

    /// The one for whom the peer's commands are done from now on, if that has changed since the
    /// last call.
    pub fn take_principal(&mut self) -> Option<Principal> {
        let are_new = core::mem::take(&mut self.login.as_mut()?.are_new);
        are_new.then(|| self.principal())
    }

    /// The rights of the peer's user have changed.
    pub fn set_rights(&mut self, rights: Arc<Rights>) {
        if let Some(login) = &mut self.login {
            login.rights = Some(rights);
            login.are_new = true;
        }
    }

    /// The one for whom the peer's commands are done.
    #[must_use]
    pub fn principal(&self) -> Principal {
        match &self.login {
            None => Principal::Everyone,
            Some(login) => login.rights.clone().map_or(Principal::Stranger, Principal::User),
        }
    }

    /// The peer has to log in and has not done so.
    #[must_use]
    pub fn needs_login(&self) -> bool {
        self.login.is_some() && self.user().is_none()
    }

    /// The mechanisms for the peer.
    pub(super) fn mechanisms(&self) -> Symbols {
        match &self.login {
            None => Symbols::from([PLAIN, ANONYMOUS]),
            Some(login) => Mechanism::offered(login.offer).map(Mechanism::name).collect(),
        }
    }

    /// The peer begins without a layer of SASL. Gives false if it may not.
    pub(super) fn begin_bare_login(&mut self) -> bool {
        let Some(login) = &mut self.login else { return false };
        let Some(step) = login.offer.nameless_step() else { return false };
        login.step = Some(step);
        self.phase = Phase::LoggingIn;
        true
    }

    /// The peer has chosen a mechanism. Without an initial response it is asked for one, but for
    /// EXTERNAL: clients leave out an empty one there, and do not answer a challenge.
    pub(super) fn begin_login(
        &mut self,
        mechanism: &str,
        response: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) {
        let Some(login) = &mut self.login else { return };
        let mut offered = Mechanism::offered(login.offer);
        let Some(mechanism) = offered.find(|offered| offered.name() == mechanism) else {
            return self.refuse_login(SaslCode::Auth, out);
        };
        login.turn = Turn::First(mechanism);
        match (mechanism, response) {
            (mechanism, None) if mechanism.needs_response() => {
                self.phase = Phase::SaslResponse;
                write_sasl(out, &SaslBody::Challenge(&[]));
            }
            (_, response) => self.respond(response.unwrap_or_default(), out),
        }
    }

    /// The peer has responded.
    pub(super) fn respond(&mut self, response: &[u8], out: &mut Vec<u8>) {
        let Some(login) = &mut self.login else { return };
        login.step = match login.turn {
            Turn::First(mechanism) => mechanism.first_step(login.offer, response),
            Turn::ScramFinal => Some(LoginStep::ScramFinal { message: Secret::from(response) }),
            Turn::TokenRefused | Turn::Bare => None,
        };
        match (login.turn, &login.step) {
            (_, Some(_)) => self.phase = Phase::LoggingIn,
            (Turn::First(Mechanism::OauthBearer), None) => self.refuse_token(INVALID_REQUEST, out),
            (_, None) => self.refuse_login(SaslCode::Auth, out),
        }
    }

    /// Tells a client of OAUTHBEARER that its token is refused. Whatever it responds, the outcome
    /// follows.
    fn refuse_token(&mut self, why: &str, out: &mut Vec<u8>) {
        let Some(login) = &mut self.login else { return };
        login.turn = Turn::TokenRefused;
        self.phase = Phase::SaslResponse;
        write_sasl(out, &SaslBody::Challenge(why.as_bytes()));
    }

    fn accept_login(&mut self, turn: Turn, proof: &[u8], out: &mut Vec<u8>) {
        if turn == Turn::Bare {
            self.phase = Phase::Open;
            out.extend_from_slice(&ProtocolHeader::AMQP.encode());
            return;
        }
        self.phase = Phase::AmqpHeader;
        let additional_data = Some(proof).filter(|proof| !proof.is_empty());
        write_sasl(out, &SaslBody::Outcome { code: SaslCode::Ok, additional_data });
    }

    /// Tells the outcome, and ends the connection. A peer without SASL hears that we expect SASL.
    fn refuse_login(&mut self, code: SaslCode, out: &mut Vec<u8>) {
        let is_bare = self.login.as_ref().is_none_or(|login| login.turn == Turn::Bare);
        if is_bare && self.phase == Phase::LoggingIn {
            out.extend_from_slice(&ProtocolHeader::SASL.encode());
        } else {
            write_sasl(out, &SaslBody::Outcome { code, additional_data: None });
        }
        self.phase = Phase::Closed;
    }
}

/// The words of RFC 7628, section 3.2.2, for a token that is refused, of which nothing more is
/// told, and for a response that makes no sense.
const INVALID_TOKEN: &str = "{\"status\":\"invalid_token\"}";
const INVALID_REQUEST: &str = "{\"status\":\"invalid_request\"}";
