//! The login of a request: its header `Authorization` becomes a step, and the gateway knows the
//! users. Nothing is remembered between two requests.

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use model::{LoginAnswer, LoginOffer, LoginStep, Principal, Secret};

use crate::app::{App, Peer};
use crate::base64;
use crate::gateway::{Gateway, LoginClient};
use crate::problem::{Problem, Result};

/// The challenges for a client that has to log in, each a header `WWW-Authenticate`.
pub(crate) const CHALLENGES: [&str; 2] =
    ["Basic realm=\"dunlin\", charset=\"UTF-8\"", "Bearer realm=\"dunlin\""];

impl<G: Gateway> App<G> {
    /// The user who asks.
    ///
    /// # Errors
    /// 400 if the header makes no sense, 401, 403 for a secret in the clear, 503 if too many log
    /// in.
    pub(crate) async fn log_in(
        &self,
        headers: &HeaderMap,
        peer: &Peer,
        offer: LoginOffer,
    ) -> Result<Principal> {
        let step = step(headers, offer)?;
        match self.gateway.login(step, LoginClient::of(peer)).await {
            LoginAnswer::Granted { rights, .. } => Ok(Principal::User(rights)),
            LoginAnswer::Busy => Err(Problem::too_many_logins()),
            LoginAnswer::Full(reached) => Err(Problem::quota_reached(&reached)),
            LoginAnswer::Refused | LoginAnswer::Challenge(_) => Err(Problem::unauthorized(
                "the name, the password or the token is wrong, or the user may not log in",
            )),
        }
    }
}

impl LoginClient {
    fn of(peer: &Peer) -> Self {
        Self {
            address: peer.address,
            certificate: peer.certificate.clone(),
            introduction: peer.introduction.clone(),
        }
    }
}

/// The step of a request. One without the header is its listener's, its certificate's, its
/// process's or no user's, if these are offered.
fn step(headers: &HeaderMap, offer: LoginOffer) -> Result<LoginStep> {
    let mut given = headers.get_all(AUTHORIZATION).into_iter();
    match (given.next(), given.next()) {
        (Some(_), Some(_)) => Err(Problem::bad_request("the header Authorization is given twice")),
        (Some(_), None) if offer.listener => Err(Problem::forbidden(
            "this listener has a user of its own and takes no login: leave the header \
             Authorization out, or use another listener",
        )),
        (Some(_), None) if !offer.password => Err(Problem::forbidden(
            "the header Authorization comes in the clear, and anyone on the way can read it: use \
             https, and change the password or the token",
        )),
        (Some(header), None) => credentials(header),
        (None, _) => offer.unasked_step().ok_or_else(|| lacking(offer)),
    }
}

/// A login is needed, and the request has none.
fn lacking(offer: LoginOffer) -> Problem {
    if offer.password {
        return Problem::unauthorized(
            "a name and a password (Basic) or a token (Bearer) is needed, in the header \
             Authorization",
        );
    }
    Problem::forbidden("a login is needed, and this listener takes none in the clear: use https")
}

/// The step of a value of `Authorization`.
fn credentials(header: &HeaderValue) -> Result<LoginStep> {
    let malformed = || Problem::bad_request("the header Authorization makes no sense");
    let (scheme, rest) =
        header.to_str().ok().and_then(|it| it.split_once(' ')).ok_or_else(malformed)?;
    let rest = rest.trim_matches(' ');
    if scheme.eq_ignore_ascii_case("bearer") && is_token(rest) {
        let token = Secret::from(rest.as_bytes());
        return Ok(LoginStep::Token { user: Box::default(), token });
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(Problem::unauthorized("of Authorization only Basic and Bearer are known"));
    }
    let pair = base64::decode(rest).map(Secret::new).ok_or_else(malformed)?;
    let pair = pair.expose();
    let colon = pair.iter().position(|byte| *byte == b':').ok_or_else(malformed)?;
    let (user, password) = pair.split_at(colon);
    let user = std::str::from_utf8(user).map_err(|_| malformed())?;
    let password = password.get(1..).unwrap_or_default();
    Ok(LoginStep::Password { user: user.into(), password: Secret::from(password) })
}

/// True if it is a `token68` (RFC 9110, section 11.2).
fn is_token(text: &str) -> bool {
    let word = text.trim_end_matches('=');
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    !word.is_empty() && word.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: LoginOffer =
        LoginOffer { certificate: true, anonymous: true, token: true, ..PASSWORD };
    const NOTHING: LoginOffer = LoginOffer::NOTHING;
    const PASSWORD: LoginOffer = LoginOffer { password: true, ..NOTHING };

    fn step_of(values: &[&str], offer: LoginOffer) -> std::result::Result<LoginStep, u16> {
        let header = |value: &&str| (AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        let mut headers = HeaderMap::new();
        values.iter().map(header).for_each(|(name, value)| {
            headers.append(name, value);
        });
        step(&headers, offer).map_err(|problem| problem.status.as_u16())
    }

    fn password(user: &str, password: &str) -> std::result::Result<LoginStep, u16> {
        let password = Secret::from(password.as_bytes());
        Ok(LoginStep::Password { user: user.into(), password })
    }

    #[test]
    fn basic_gives_name_and_password() {
        let basic = |pair: &str| format!("Basic {}", base64::encode(pair.as_bytes()));
        for (pair, user, secret) in [
            ("alice:secret", "alice", "secret"),
            ("alice:a:b", "alice", "a:b"),
            ("\u{e4}:\u{f6}", "\u{e4}", "\u{f6}"),
            (":", "", ""),
        ] {
            assert_eq!(step_of(&[&basic(pair)], PASSWORD), password(user, secret), "{pair}");
        }
        assert_eq!(step_of(&["bAsIc  YTpi "], PASSWORD), password("a", "b"));
        for wrong in ["Basic", "Basic ", "Basic YTpi=", "Basic YWI=", "Basic a b", "Basic /zo="] {
            assert_eq!(step_of(&[wrong], PASSWORD), Err(400), "{wrong}");
        }
    }

    #[test]
    fn bearer_gives_token() {
        let token = |text: &str| {
            let token = Secret::from(text.as_bytes());
            Ok(LoginStep::Token { user: "".into(), token })
        };
        assert_eq!(step_of(&["Bearer abc.d-e_f~+/=="], PASSWORD), token("abc.d-e_f~+/=="));
        assert_eq!(step_of(&["BEARER x"], PASSWORD), token("x"));
        for wrong in ["Bearer =", "Bearer a b", "Bearer a\"", "Digest x", "Negotiate YTpi"] {
            assert_eq!(step_of(&[wrong], PASSWORD), Err(401), "{wrong}");
        }
    }

    #[test]
    fn missing_header_uses_what_is_offered() {
        assert_eq!(step_of(&[], ALL), Ok(LoginStep::Certificate { user: "".into() }));
        let anonymous = LoginOffer { certificate: false, ..ALL };
        assert_eq!(step_of(&[], anonymous), Ok(LoginStep::Anonymous));
        let unix = LoginOffer { unix: true, ..anonymous };
        assert_eq!(step_of(&[], unix), Ok(LoginStep::UnixUser { user: "".into() }));
        let listener = LoginOffer { listener: true, ..unix };
        assert_eq!(step_of(&[], listener), Ok(LoginStep::ListenerUser));
        assert_eq!(step_of(&["Basic YTpi"], listener), Err(403));
        assert_eq!(step_of(&[], PASSWORD), Err(401));
        assert_eq!(step_of(&[], NOTHING), Err(403));
    }

    #[test]
    fn secrets_in_the_clear_are_refused() {
        for offer in [NOTHING, LoginOffer { certificate: true, ..NOTHING }] {
            assert_eq!(step_of(&["Basic YTpi"], offer), Err(403));
            assert_eq!(step_of(&["Bearer x"], offer), Err(403));
        }
    }

    #[test]
    fn header_is_given_once() {
        assert_eq!(step_of(&["Basic YTpi", "Basic YTpi"], ALL), Err(400));
    }
}
