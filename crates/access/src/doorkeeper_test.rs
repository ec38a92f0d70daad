//! Logins as clients make them, with a clock that the test sets.

use std::collections::BTreeSet;
use std::string::{String, ToString as _};

use testkit::Rng;

use super::*;
use crate::KeySet;
use crate::test_client;
use crate::test_signer::{Signer, key_set};

const PASSWORD: &str = "correct horse";
const WRONG: &str = "battery staple";
const TOKEN: &str = "a-bearer-token";

/// A users file with one of each kind of user.
fn users(password: &str) -> Users {
    let secret = Secret::from(password.as_bytes());
    let verifier = |hash| Verifier::derive(hash, &secret, b"0123456789abcdef").text();
    let keys = format!(
        "scram-sha-256 = \"{}\"\nscram-sha-512 = \"{}\"\n",
        verifier(ScramHash::Sha256),
        verifier(ScramHash::Sha512)
    );
    let token: String =
        token_digest(TOKEN.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let text = format!(
        "anonymous = \"guest\"\n\
         [users.orders]\n{keys}certificates = [\"CN=orders\"]\n\
         [users.mail]\n{keys}\
         [users.off]\n{keys}disabled = true\ncertificates = [\"CN=off\"]\n\
         [users.gone]\n{keys}expires = 2000-01-01\n\
         [users.guest]\n\
         [tokens]\nci = {{ sha256 = \"{token}\", user = \"orders\", expires = 2026-01-01 }}\n"
    );
    Users::parse(&text).unwrap()
}

fn doorkeeper() -> Doorkeeper {
    Doorkeeper::new(users(PASSWORD), Secrets::default())
}

fn peer(connection: u64, address: &str) -> LoginPeer {
    LoginPeer {
        connection: ConnectionId(connection),
        address: Some(address.parse().unwrap()),
        certificate: Arc::from([]),
        introduction: Introduction::Unknown,
    }
}

/// In 2025, before the token expires.
const NOW: Nanos = Nanos::from_secs(1_750_000_000);

fn later(millis: u64) -> Nanos {
    NOW + Nanos::from_millis(millis)
}

fn password(user: &str, password: &str) -> LoginStep {
    LoginStep::Password { user: user.into(), password: Secret::from(password.as_bytes()) }
}

fn token(text: &str) -> LoginStep {
    LoginStep::Token { user: "".into(), token: Secret::from(text.as_bytes()) }
}

fn granted_to(answer: &LoginAnswer) -> Option<&str> {
    match answer {
        LoginAnswer::Granted { rights, .. } => Some(rights.user()),
        _ => None,
    }
}

/// Logs in by SCRAM; gives the last answer.
fn scram(
    door: &mut Doorkeeper,
    now: Nanos,
    peer: &LoginPeer,
    hash: ScramHash,
    user: &str,
    password: &str,
) -> LoginAnswer {
    let bare = format!("n={user},r=abc");
    let message = Secret::from(format!("n,,{bare}").as_bytes());
    let answer = door.handle(now, peer, LoginStep::ScramFirst { hash, message });
    let LoginAnswer::Challenge(challenge) = answer else { return answer };
    let challenge = String::from_utf8(challenge).unwrap();
    let last = test_client::answer(hash, password, &bare, &challenge);
    door.handle(now, peer, LoginStep::ScramFinal { message: Secret::from(last.as_bytes()) })
}

#[test]
fn password_grants_and_refuses() {
    let mut door = doorkeeper();
    let ask = |door: &mut Doorkeeper, n: u64, user: &str, secret: &str| {
        // Each from an address and at a time of its own: nothing is held off.
        let peer = peer(n, &format!("10.0.0.{n}"));
        door.handle(later(n * 20_000), &peer, password(user, secret))
    };
    assert_eq!(granted_to(&ask(&mut door, 1, "orders", PASSWORD)), Some("orders"));
    for (n, (user, secret)) in (2..).zip([
        ("orders", WRONG),
        ("orders", ""),
        ("nobody", PASSWORD),
        ("off", PASSWORD),
        ("gone", PASSWORD),
        ("guest", ""),
        ("", PASSWORD),
        ("orders\0", PASSWORD),
        ("Orders", PASSWORD),
    ]) {
        assert_eq!(ask(&mut door, n, user, secret), LoginAnswer::Refused, "{user}");
    }
    let long = "x".repeat(PASSWORD_BYTES_MAX + 1);
    assert_eq!(ask(&mut door, 60, "orders", &long), LoginAnswer::Refused);
}

#[test]
fn scram_grants_and_refuses() {
    let mut door = doorkeeper();
    for hash in [ScramHash::Sha256, ScramHash::Sha512] {
        let answer = scram(&mut door, NOW, &peer(1, "10.0.0.1"), hash, "orders", PASSWORD);
        assert_eq!(granted_to(&answer), Some("orders"));
        let LoginAnswer::Granted { proof, .. } = answer else { panic!("it is granted") };
        assert!(proof.starts_with(b"v="));
    }
    for (n, (user, secret)) in (2..).zip([
        ("orders", WRONG),
        ("nobody", PASSWORD),
        ("off", PASSWORD),
        ("gone", PASSWORD),
        ("guest", PASSWORD),
    ]) {
        let peer = peer(n, &format!("10.0.0.{n}"));
        let at = later(n * 20_000);
        let answer = scram(&mut door, at, &peer, ScramHash::Sha256, user, secret);
        assert_eq!(answer, LoginAnswer::Refused, "{user}");
    }
}

#[test]
fn scram_step_out_of_order_is_refused() {
    let mut door = doorkeeper();
    let last = || LoginStep::ScramFinal { message: Secret::from(&b"c=biws,r=x,p=AAAA"[..]) };
    assert_eq!(door.handle(NOW, &peer(1, "10.0.0.1"), last()), LoginAnswer::Refused);
    let first = |text: &str| LoginStep::ScramFirst {
        hash: ScramHash::Sha256,
        message: Secret::from(text.as_bytes()),
    };
    for (n, text) in (2..).zip(["p=tls-unique,,n=orders,r=x", "n,a=mail,n=orders,r=x", "garbage"]) {
        let peer = peer(n, &format!("10.0.0.{n}"));
        assert_eq!(door.handle(later(n * 20_000), &peer, first(text)), LoginAnswer::Refused);
    }
    // Closing ends an exchange; another connection has no part in it.
    let (mine, other) = (peer(50, "10.0.1.1"), peer(51, "10.0.1.2"));
    let at = later(200_000);
    let begun = door.handle(at, &mine, first("n,,n=orders,r=x"));
    assert!(matches!(begun, LoginAnswer::Challenge(_)));
    assert_eq!(door.handle(at, &other, last()), LoginAnswer::Refused);
    door.handle_closed(mine.connection);
    assert!(door.exchanges.is_empty());
}

#[test]
fn unknown_users_get_lasting_challenges() {
    let challenge = |door: &mut Doorkeeper, n: u64, user: &str| {
        let message = Secret::from(format!("n,,n={user},r=x").as_bytes());
        let step = LoginStep::ScramFirst { hash: ScramHash::Sha256, message };
        let LoginAnswer::Challenge(bytes) = door.handle(NOW, &peer(n, "10.0.0.1"), step) else {
            panic!("each name is challenged")
        };
        let text = String::from_utf8(bytes).unwrap();
        let (_, rest) = text.split_once(',').unwrap();
        rest.to_string()
    };
    let mut door = doorkeeper();
    let [orders, nobody, other] = ["orders", "nobody", "other"].map(|user| {
        let (one, two) = (challenge(&mut door, 1, user), challenge(&mut door, 2, user));
        assert_eq!(one, two, "the salt of a name stays");
        one
    });
    assert_eq!(BTreeSet::from([&orders, &nobody, &other]).len(), 3);
    assert_eq!((orders.len(), &orders[26..]), (nobody.len(), &nobody[26..]), "no other mark");
    // With a key in the file they stay over a restart.
    let keyed = || {
        let key = "decoy-key = \"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\"";
        let mut drawn = 7;
        drawn += 1;
        Doorkeeper::new(Users::parse(key).unwrap(), Secrets::new(move || drawn))
    };
    let before = challenge(&mut keyed(), 1, "nobody");
    assert_eq!(before, challenge(&mut keyed(), 1, "nobody"));
}

#[test]
fn failures_hold_user_and_address_off() {
    let mut door = doorkeeper();
    let (one, two) = (peer(1, "10.0.0.1"), peer(2, "10.0.0.2"));
    assert_eq!(door.handle(NOW, &one, password("orders", WRONG)), LoginAnswer::Refused);
    // The user anywhere, and everyone at the address, wait; the right password too.
    assert_eq!(door.handle(later(50), &two, password("orders", PASSWORD)), LoginAnswer::Busy);
    assert_eq!(door.handle(later(50), &one, password("mail", PASSWORD)), LoginAnswer::Busy);
    assert_eq!(door.handle(later(50), &one, token(TOKEN)), LoginAnswer::Busy);
    // Steps in that time do not make it longer.
    let answer = door.handle(later(100), &one, password("orders", WRONG));
    assert_eq!(answer, LoginAnswer::Refused);
    assert_eq!(door.handle(later(250), &two, password("orders", PASSWORD)), LoginAnswer::Busy);
    let answer = door.handle(later(300), &two, password("orders", PASSWORD));
    assert_eq!(granted_to(&answer), Some("orders"));
}

#[test]
fn neighbours_in_a_network_share_failures() {
    let mut door = doorkeeper();
    let ask = |door: &mut Doorkeeper, address: &str, user: &str| {
        door.handle(NOW, &peer(1, address), password(user, WRONG))
    };
    assert_eq!(ask(&mut door, "2001:db8:0:1::1", "a"), LoginAnswer::Refused);
    assert_eq!(ask(&mut door, "2001:db8:0:1:ffff::2", "b"), LoginAnswer::Busy);
    assert_eq!(ask(&mut door, "2001:db8:0:2::1", "c"), LoginAnswer::Refused);
    assert_eq!(ask(&mut door, "10.0.0.1", "d"), LoginAnswer::Refused);
    assert_eq!(ask(&mut door, "::ffff:10.0.0.1", "e"), LoginAnswer::Busy);
    assert_eq!(ask(&mut door, "10.0.0.2", "f"), LoginAnswer::Refused);
    let local = LoginPeer { address: None, ..peer(1, "10.0.0.9") };
    for user in ["g", "h"] {
        let answer = door.handle(NOW, &local, password(user, WRONG));
        assert_eq!(answer, LoginAnswer::Refused, "a socket file has no address");
    }
}

#[test]
fn familiar_clients_outlive_an_attack() {
    let mut door = doorkeeper();
    let (client, attacker) = (peer(1, "10.0.0.1"), peer(2, "10.0.0.2"));
    let login = |door: &mut Doorkeeper, at, peer: &LoginPeer, secret| {
        door.handle(at, peer, password("orders", secret))
    };
    assert!(granted_to(&login(&mut door, NOW, &client, PASSWORD)).is_some());
    for n in 1..8 {
        // As the user from elsewhere, and as others from the same address.
        login(&mut door, later(n * 20_000), &attacker, WRONG);
        door.handle(later(n * 20_000), &client, password("mail", WRONG));
    }
    let at = later(7 * 20_000);
    assert_eq!(login(&mut door, at, &attacker, PASSWORD), LoginAnswer::Busy);
    assert!(granted_to(&login(&mut door, at, &client, PASSWORD)).is_some());
    // Its own failures there hold it off there.
    assert_eq!(login(&mut door, at, &client, WRONG), LoginAnswer::Refused);
    assert_eq!(login(&mut door, at, &client, PASSWORD), LoginAnswer::Busy);
}

#[test]
fn parallel_exchanges_count_one_guess() {
    let mut door = doorkeeper();
    let bare = "n=orders,r=x";
    let challenges: Vec<_> = (0..8)
        .map(|n| {
            let message = Secret::from(format!("n,,{bare}").as_bytes());
            let step = LoginStep::ScramFirst { hash: ScramHash::Sha256, message };
            let peer = peer(n, &format!("10.0.0.{n}"));
            let LoginAnswer::Challenge(bytes) = door.handle(NOW, &peer, step) else {
                panic!("each is challenged")
            };
            (peer, String::from_utf8(bytes).unwrap())
        })
        .collect();
    let answers: Vec<_> = challenges
        .iter()
        .map(|(peer, challenge)| {
            let last = test_client::answer(ScramHash::Sha256, WRONG, bare, challenge);
            let message = Secret::from(last.as_bytes());
            door.handle(NOW, peer, LoginStep::ScramFinal { message })
        })
        .collect();
    assert_eq!(answers[0], LoginAnswer::Refused);
    assert!(answers[1..].iter().all(|answer| *answer == LoginAnswer::Busy));
}

#[test]
fn right_password_is_remembered() {
    let mut door = doorkeeper();
    let client = peer(1, "10.0.0.1");
    door.handle(NOW, &client, password("orders", PASSWORD));
    let mark = door.mark(&[b"password", b"orders", PASSWORD.as_bytes()]);
    assert!(door.passwords.contains(later(299_999), &mark));
    // Its use does not prolong it.
    door.handle(later(200_000), &client, password("orders", PASSWORD));
    assert!(!door.passwords.contains(later(300_000), &mark));
    let answer = door.handle(later(300_001), &client, password("orders", PASSWORD));
    assert!(granted_to(&answer).is_some() && door.passwords.contains(later(300_002), &mark));
    // Neither a wrong password nor a disabled user is remembered.
    door.handle(later(400_000), &peer(2, "10.0.0.2"), password("off", PASSWORD));
    let mark = door.mark(&[b"password", b"off", PASSWORD.as_bytes()]);
    assert!(!door.passwords.contains(later(400_000), &mark));
}

#[test]
fn reload_forgets_passwords_and_exchanges() {
    let mut door = doorkeeper();
    let client = peer(1, "10.0.0.1");
    assert!(granted_to(&door.handle(NOW, &client, password("orders", PASSWORD))).is_some());
    let bare = "n=orders,r=x";
    let message = Secret::from(format!("n,,{bare}").as_bytes());
    let step = LoginStep::ScramFirst { hash: ScramHash::Sha256, message };
    let LoginAnswer::Challenge(challenge) = door.handle(NOW, &client, step) else {
        panic!("it is challenged")
    };
    door.reload(users(WRONG));
    let challenge = String::from_utf8(challenge).unwrap();
    let last = test_client::answer(ScramHash::Sha256, PASSWORD, bare, &challenge);
    let message = Secret::from(last.as_bytes());
    let answer = door.handle(NOW, &client, LoginStep::ScramFinal { message });
    assert_eq!(answer, LoginAnswer::Busy, "the client may begin anew");
    assert_eq!(door.handle(NOW, &client, password("orders", PASSWORD)), LoginAnswer::Refused);
    let answer = door.handle(later(1_000), &client, password("orders", WRONG));
    assert!(granted_to(&answer).is_some());
}

#[test]
fn exchanges_are_bounded() {
    let mut door = doorkeeper();
    let begin = |door: &mut Doorkeeper, now, n: u64| {
        let message = Secret::from(&b"n,,n=orders,r=x"[..]);
        let step = LoginStep::ScramFirst { hash: ScramHash::Sha256, message };
        door.handle(now, &peer(n, "10.0.0.1"), step)
    };
    for n in 0..EXCHANGES_MAX as u64 {
        assert!(matches!(begin(&mut door, NOW, n), LoginAnswer::Challenge(_)));
    }
    assert_eq!(begin(&mut door, NOW, 1 << 40), LoginAnswer::Busy);
    assert!(matches!(begin(&mut door, NOW, 0), LoginAnswer::Challenge(_)), "it replaces its own");
    let at = later(60_000);
    assert!(matches!(begin(&mut door, at, 1 << 40), LoginAnswer::Challenge(_)));
    assert_eq!(door.exchanges.len(), 1, "all others had waited for too long");
}

#[test]
fn certificates_name_their_user() {
    let mut door = doorkeeper();
    let ask = |door: &mut Doorkeeper, n: u64, names: &[&str], user: &str| {
        let certificate = names.iter().map(|name| Box::from(*name)).collect();
        let peer = LoginPeer { certificate, ..peer(n, &format!("10.0.0.{n}")) };
        door.handle(NOW, &peer, LoginStep::Certificate { user: user.into() })
    };
    let names = ["SAN:DNS:x", "CN=orders"];
    assert_eq!(granted_to(&ask(&mut door, 1, &names, "")), Some("orders"));
    assert_eq!(granted_to(&ask(&mut door, 1, &names, "orders")), Some("orders"));
    assert_eq!(ask(&mut door, 2, &names, "mail"), LoginAnswer::Refused);
    assert_eq!(ask(&mut door, 3, &[], "orders"), LoginAnswer::Refused);
    assert_eq!(ask(&mut door, 4, &["CN=off"], ""), LoginAnswer::Refused);
    // Nothing is guessed here, so no failure counts.
    assert_eq!(granted_to(&ask(&mut door, 4, &names, "")), Some("orders"));
}

#[test]
fn only_new_passwords_are_derived() {
    let (mut door, client) = (doorkeeper(), peer(1, "10.0.0.1"));
    let derives = |door: &Doorkeeper, now, step: &LoginStep| door.derives(now, &client, step);
    let (right, wrong) = (password("orders", PASSWORD), password("orders", WRONG));
    assert!(derives(&door, NOW, &right));
    assert_eq!(granted_to(&door.handle(NOW, &client, right.clone())), Some("orders"));
    assert!(!derives(&door, NOW, &right), "it is remembered");
    assert!(derives(&door, NOW, &wrong));
    assert_eq!(door.handle(NOW, &client, wrong.clone()), LoginAnswer::Refused);
    assert!(!derives(&door, NOW, &wrong), "it is held off");
    assert!(derives(&door, later(200), &wrong));
    assert!(derives(&door, later(301_000), &right), "and forgotten");
    let long = password("mail", &"x".repeat(PASSWORD_BYTES_MAX + 1));
    for step in [long, LoginStep::Anonymous, token(TOKEN)] {
        assert!(!derives(&door, later(200), &step), "{step:?}");
    }
}

#[test]
fn tokens_and_anonymous_clients_have_users() {
    let mut door = doorkeeper();
    let answer = door.handle(NOW, &peer(1, "10.0.0.1"), token(TOKEN));
    assert_eq!(granted_to(&answer), Some("orders"));
    let answer = door.handle(NOW, &peer(1, "10.0.0.2"), token("another"));
    assert_eq!(answer, LoginAnswer::Refused);
    let answer = door.handle(NOW, &peer(1, "10.0.0.3"), token(&"x".repeat(5_000)));
    assert_eq!(answer, LoginAnswer::Refused);
    // The failures of neighbours do not hold a familiar token off, and do another.
    let answer = door.handle(NOW, &peer(1, "10.0.0.1"), token("another"));
    assert_eq!(answer, LoginAnswer::Refused);
    let answer = door.handle(NOW, &peer(2, "10.0.0.1"), token(TOKEN));
    assert_eq!(granted_to(&answer), Some("orders"));
    let answer = door.handle(NOW, &peer(3, "10.0.0.1"), token("another"));
    assert_eq!(answer, LoginAnswer::Busy);
    let in_2027 = Nanos::from_secs(1_800_000_000);
    let answer = door.handle(in_2027, &peer(1, "10.0.0.1"), token(TOKEN));
    assert_eq!(answer, LoginAnswer::Refused, "it has expired");
    let answer = door.handle(NOW, &peer(1, "10.0.0.9"), LoginStep::Anonymous);
    assert_eq!(granted_to(&answer), Some("guest"));
    let mut none = Doorkeeper::new(Users::default(), Secrets::default());
    let answer = none.handle(NOW, &peer(1, "10.0.0.9"), LoginStep::Anonymous);
    assert_eq!(answer, LoginAnswer::Refused);
}

/// A doorkeeper that knows an issuer, whose tokens name `orders`, `mail` and so on.
fn doorkeeper_with_issuer() -> Doorkeeper {
    let mut door = doorkeeper();
    door.reload(users_with_issuer());
    door
}

fn users_with_issuer() -> Users {
    let text = "[users.orders]\n[users.gone]\nexpires = 2000-01-01\n[users.short]\n\
                expires = 2025-06-15T15:07:00Z\n\
                [jwt]\nissuer = \"i\"\naudience = \"a\"\njwks-file = \"f\"\n";
    let mut users = Users::parse(text).unwrap();
    users.set_keys("f", &Arc::new(KeySet::parse(&key_set()).unwrap()));
    users
}

fn jwt(user: &str, end: u64) -> String {
    let claims = format!("{{\"iss\":\"i\",\"aud\":\"a\",\"sub\":\"{user}\",\"exp\":{end}}}");
    Signer::Rsa.token("{\"alg\":\"RS256\",\"kid\":\"rsa\"}", &claims)
}

const END: u64 = 1_750_000_300;

#[test]
fn jwt_grants_until_its_end() {
    let mut door = doorkeeper_with_issuer();
    let one = peer(1, "10.0.0.1");
    let answer = door.handle(NOW, &one, token(&jwt("orders", END)));
    let LoginAnswer::Granted { rights, .. } = answer else { panic!("{answer:?}") };
    assert_eq!((&**rights.user(), rights.expires()), ("orders", Some(Nanos::from_secs(END))));
    // The user's own end is sooner.
    let answer = door.handle(NOW, &one, token(&jwt("short", END)));
    let LoginAnswer::Granted { rights, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(rights.expires(), Nanos::of_rfc3339("2025-06-15T15:07:00.000Z"));
    // A remembered signature lets no time pass.
    let answer = door.handle(Nanos::from_secs(END), &one, token(&jwt("orders", END)));
    assert_eq!(answer, LoginAnswer::Refused);
    assert_eq!(door.take_token_fault(), Some(TokenFault::Expired));
    assert_eq!(door.take_token_fault(), None);
}

#[test]
fn jwt_client_is_its_own_user() {
    let mut door = doorkeeper_with_issuer();
    let ask = |door: &mut Doorkeeper, n: u64, wanted: &str, subject: &str| {
        let token = Secret::from(jwt(subject, END).as_bytes());
        let step = LoginStep::Token { user: wanted.into(), token };
        let answer = door.handle(NOW, &peer(n, &format!("10.0.0.{n}")), step);
        (granted_to(&answer).is_some(), door.take_token_fault())
    };
    assert_eq!(ask(&mut door, 1, "orders", "orders"), (true, None));
    assert_eq!(ask(&mut door, 2, "short", "orders"), (false, Some(TokenFault::OtherUser)));
    assert_eq!(ask(&mut door, 3, "a b", "orders"), (false, Some(TokenFault::OtherUser)));
    assert_eq!(ask(&mut door, 4, "gone", "gone"), (false, Some(TokenFault::User)));
    assert_eq!(ask(&mut door, 5, "", "nobody"), (false, Some(TokenFault::User)));
}

#[test]
fn familiar_jwt_user_is_not_held_off() {
    let mut door = doorkeeper_with_issuer();
    let one = peer(1, "10.0.0.1");
    let (good, new) = (jwt("orders", END), jwt("orders", END + 1));
    assert!(granted_to(&door.handle(NOW, &one, token(&good))).is_some());
    assert_eq!(door.handle(NOW, &one, token("wrong")), LoginAnswer::Refused);
    assert_eq!(door.handle(NOW, &one, token(&jwt("short", END))), LoginAnswer::Busy);
    // Neither this token nor a new one of the same user waits for the failures of others.
    assert!(granted_to(&door.handle(NOW, &one, token(&good))).is_some());
    assert!(granted_to(&door.handle(NOW, &one, token(&new))).is_some());
    // It does for its own, and others at the address do not.
    let forged = format!("{}AAAA", &new[..new.len() - 4]);
    assert_eq!(door.handle(later(100), &one, token(&forged)), LoginAnswer::Refused);
    assert_eq!(door.handle(later(100), &one, token(&jwt("orders", END + 2))), LoginAnswer::Busy);
    assert!(granted_to(&door.handle(later(100), &one, token(&good))).is_some());
    assert!(granted_to(&door.handle(later(100), &one, token(&jwt("short", END)))).is_some());
}

#[test]
fn forged_jwt_holds_off_its_address_alone() {
    let mut door = doorkeeper_with_issuer();
    let (one, two) = (peer(1, "10.0.0.1"), peer(2, "10.0.0.2"));
    let good = jwt("orders", END);
    let forged = format!("{}AAAA", &good[..good.len() - 4]);
    assert_eq!(door.handle(NOW, &one, token(&forged)), LoginAnswer::Refused);
    assert_eq!(door.take_token_fault(), Some(TokenFault::Signature));
    assert_eq!(door.handle(NOW, &one, token(&good)), LoginAnswer::Busy);
    assert!(granted_to(&door.handle(NOW, &two, token(&good))).is_some());
}

#[test]
fn remembered_signatures_end_with_keys() {
    let mut door = doorkeeper_with_issuer();
    let one = peer(1, "10.0.0.1");
    assert!(granted_to(&door.handle(NOW, &one, token(&jwt("orders", END)))).is_some());
    let mut users = users_with_issuer();
    let rotated = format!("{{\"keys\":[{}]}}", Signer::P256.jwk());
    users.set_keys("f", &Arc::new(KeySet::parse(&rotated).unwrap()));
    door.reload(users);
    let answer = door.handle(NOW, &one, token(&jwt("orders", END)));
    assert_eq!((answer, door.take_token_fault()), (LoginAnswer::Refused, Some(TokenFault::Key)));
}

#[test]
fn jwt_may_be_longer_than_tokens() {
    let claims = |filler: usize| {
        let filler = "x".repeat(filler);
        format!(
            "{{\"iss\":\"i\",\"aud\":\"a\",\"sub\":\"orders\",\"exp\":{END},\"f\":\"{filler}\"}}"
        )
    };
    let sized =
        |filler| Signer::Ed25519.token("{\"alg\":\"EdDSA\",\"kid\":\"ed\"}", &claims(filler));
    let largest = (0..JWT_BYTES_MAX).rev().find(|it| sized(*it).len() <= JWT_BYTES_MAX).unwrap();
    let mut door = doorkeeper_with_issuer();
    let answer = door.handle(NOW, &peer(1, "10.0.0.1"), token(&sized(largest)));
    assert!(granted_to(&answer).is_some());
    let answer = door.handle(NOW, &peer(2, "10.0.0.2"), token(&sized(largest + 1)));
    assert_eq!((answer, door.take_token_fault()), (LoginAnswer::Refused, None), "not looked at");
}

/// A step of a client that guesses, with the users that the file of the test has.
fn random_step(rng: &mut Rng) -> LoginStep {
    let user = rng.pick(&["orders", "mail", "off", "gone", "guest", "nobody", "", "ö\u{301}"]);
    let secret = rng.pick(&[WRONG, "", "\0", "x", "\u{fb01}"]);
    let hash = rng.pick(&[ScramHash::Sha256, ScramHash::Sha512]);
    let message = |text: String| Secret::from(text.as_bytes());
    match rng.below(12) {
        0 => password(user, secret),
        1..4 => LoginStep::ScramFirst { hash, message: message(format!("n,,n={user},r=x")) },
        4 => LoginStep::ScramFirst { hash, message: message("y,a=mail,n=mail,r=x".into()) },
        5..8 => LoginStep::ScramFinal { message: message("c=biws,r=x,p=AAAA".into()) },
        8 => LoginStep::Certificate { user: user.into() },
        9 => token(secret),
        10 => LoginStep::ScramFinal { message: message(secret.into()) },
        _ => LoginStep::Anonymous,
    }
}

#[test]
fn guesses_are_never_granted() {
    let mut door = doorkeeper();
    let mut rng = Rng::new(33);
    let mut now = NOW;
    for _ in 0..3_000 {
        let step = random_step(&mut rng);
        let address = format!("10.0.{}.1", rng.below(40));
        let peer = peer(rng.below(30), &address);
        let anonymous = step == LoginStep::Anonymous;
        let answer = door.handle(now, &peer, step);
        assert_eq!(granted_to(&answer), anonymous.then_some("guest"));
        now = now + Nanos::from_millis(rng.below(300));
        if rng.one_in(10) {
            door.handle_closed(ConnectionId(rng.below(30)));
        }
        if rng.one_in(500) {
            door.reload(users(PASSWORD));
        }
    }
}

#[test]
fn introduced_clients_are_their_user() {
    let file = "[users.jobs]\nunix-users = [\"7\"]\n[users.off]\ndisabled = true\n\
                unix-users = [\"8\"]\n[users.other]\n";
    let users = Users::parse(file).unwrap().resolve_unix_users(|_| None).unwrap();
    let mut door = Doorkeeper::new(users, Secrets::default());
    let mut ask = |introduction, step| {
        let peer = LoginPeer { introduction, ..peer(1, "10.0.0.1") };
        granted_to(&door.handle(NOW, &peer, step)).map(|name| name.to_string())
    };
    let process = |user: &str| LoginStep::UnixUser { user: user.into() };
    let jobs = Some("jobs".to_string());
    assert_eq!(ask(Introduction::UnixUser(7), process("")), jobs);
    assert_eq!(ask(Introduction::UnixUser(7), process("jobs")), jobs);
    assert_eq!(ask(Introduction::UnixUser(7), process("other")), None);
    for number in [8, 9] {
        assert_eq!(ask(Introduction::UnixUser(number), process("")), None);
    }
    let listener = |name: &str| Introduction::ListenerUser(name.into());
    assert_eq!(ask(listener("jobs"), LoginStep::ListenerUser), jobs);
    for name in ["off", "gone"] {
        assert_eq!(ask(listener(name), LoginStep::ListenerUser), None);
    }
    // One way is not the other.
    assert_eq!(ask(listener("jobs"), process("")), None);
    assert_eq!(ask(Introduction::UnixUser(7), LoginStep::ListenerUser), None);
    assert_eq!(ask(Introduction::Unknown, LoginStep::ListenerUser), None);
}
