//! Properties that hold for any bytes: run by the fuzzer in `fuzz/`, and by a test.

use std::sync::Arc;

use access::{ConnectionId, Doorkeeper, KeySet, LoginPeer, Users, limits};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::{Introduction, LoginAnswer, LoginStep, Nanos, ScramHash, Secret, Secrets};
use ring::signature::{Ed25519KeyPair, KeyPair as _};

/// A file that has each key. The password of `user` is `pencil`.
pub(crate) const USERS: &str = include_str!("../users.txt");

/// The bytes are a users file.
pub(crate) fn users(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    match Users::parse(text) {
        Ok(users) => check_users(&users),
        Err(problems) => {
            assert!((1..=limits::PROBLEMS_MAX).contains(&problems.0.len()));
            let lines = text.matches('\n').count() + 1;
            for problem in &problems.0 {
                assert!((1..=lines).contains(&problem.line), "{problem}");
                assert!(!problem.what.contains(char::is_control), "{problem:?}");
            }
        }
    }
}

fn check_users(users: &Users) {
    for user in users.iter() {
        assert_eq!(access::check_user_name(user.name()), Ok(()));
        assert!(users.user(user.name()).is_some());
        assert_eq!(users.is_active(user.name(), Nanos::MAX), user.is_active(Nanos::MAX));
    }
    for (_, token) in users.tokens() {
        assert!(users.user(token.user()).is_some());
    }
    assert!(users.issuers().len() <= limits::JWT_ISSUERS_MAX);
    assert!(users.anonymous().is_none_or(|name| users.user(name).is_some()));
}

/// The bytes are a token, a file of keys, and the header and the claims, a line each, of a token
/// that the issuer has signed: true if that is let in.
pub(crate) fn jwt(bytes: &[u8]) -> bool {
    let key = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("it has 32 bytes");
    let point = URL_SAFE_NO_PAD.encode(key.public_key());
    let jwk = format!(r#"{{"kty":"OKP","crv":"Ed25519","kid":"k","x":"{point}"}}"#);
    let keys = || KeySet::parse(&format!(r#"{{"keys":[{jwk}]}}"#)).expect("it is sound");
    assert_eq!(log_in_by_jwt(keys(), bytes), None, "the issuer has signed nothing");
    if let Ok(text) = str::from_utf8(bytes)
        && let Ok(keys) = KeySet::parse(text)
    {
        assert!((1..=limits::JWKS_KEYS_MAX).contains(&keys.count()));
        log_in_by_jwt(keys, bytes);
    }
    let mut lines = bytes.splitn(2, |byte| *byte == b'\n');
    let (header, claims) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part));
    let signed = format!("{header}.{claims}");
    let signature = URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes()));
    let end = log_in_by_jwt(keys(), format!("{signed}.{signature}").as_bytes());
    assert!(end.is_none_or(|end| end > NOW));
    end.is_some()
}

/// The end of the rights that a token gives.
fn log_in_by_jwt(keys: KeySet, token: &[u8]) -> Option<Nanos> {
    let mut users = Users::parse(USERS).expect("it is sound");
    users.set_keys("keys.jwks", &Arc::new(keys));
    let mut door = Doorkeeper::new(users, Secrets::default());
    let peer = LoginPeer {
        connection: ConnectionId(1),
        address: None,
        certificate: Arc::from([]),
        introduction: Introduction::Unknown,
    };
    let step = LoginStep::Token { user: "".into(), token: Secret::from(token) };
    match door.handle(NOW, &peer, step) {
        LoginAnswer::Granted { rights, .. } => {
            assert_eq!(&**rights.user(), "user");
            rights.expires()
        }
        LoginAnswer::Refused => None,
        other => panic!("{other:?}"),
    }
}

const NOW: Nanos = Nanos::from_secs(1_750_000_000);

/// Each line is a message of a SCRAM exchange: first and last in turn. One that ends with `2` has
/// SHA-512. Each comes ten minutes after the one before it, so that no failure holds it off.
pub(crate) fn scram(bytes: &[u8]) {
    let users = Users::parse(USERS).expect("it is sound");
    let mut door = Doorkeeper::new(users, Secrets::default());
    let peer = LoginPeer {
        connection: ConnectionId(1),
        address: None,
        certificate: Arc::from(Vec::new()),
        introduction: Introduction::Unknown,
    };
    let mut now = Nanos::from_secs(1_750_000_000);
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let message = Secret::from(line);
        let is_first = number % 2 == 0;
        let hash = if line.ends_with(b"2") { ScramHash::Sha512 } else { ScramHash::Sha256 };
        let step = if is_first {
            now = now + Nanos::from_secs(600);
            LoginStep::ScramFirst { hash, message }
        } else {
            LoginStep::ScramFinal { message }
        };
        match door.handle(now, &peer, step) {
            LoginAnswer::Challenge(challenge) => {
                assert!(is_first && challenge.starts_with(b"r="), "{challenge:?}");
                assert!(challenge.ends_with(b",i=16384"), "{challenge:?}");
            }
            LoginAnswer::Granted { rights, proof } => {
                assert!(!is_first && &**rights.user() == "user" && proof.starts_with(b"v="));
            }
            LoginAnswer::Refused | LoginAnswer::Busy => {}
            LoginAnswer::Full(_) => panic!("the server counts connections"),
        }
    }
}
