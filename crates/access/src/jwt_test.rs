//! Tokens that are right, and the ways in which others are wrong.

use std::borrow::ToOwned as _;
use std::format;
use std::string::{String, ToString as _};
use std::vec::Vec;

use super::*;
use crate::Users;
use crate::limits::{JWKS_BYTES_MAX, JWKS_KEYS_MAX};
use crate::test_signer::{N, Signer, decode, encode, key_set};

const NOW: Nanos = Nanos::from_secs(1_750_000_000);
const ISSUER: &str = "https://login.example.com/realms/corp";

/// The user of a token, by an issuer with these further lines of a users file.
fn user_by(lines: &str, keys: &str, token: &str) -> Result<(String, Nanos), TokenFault> {
    let text = format!(
        "[users.ann]\n[users.bob]\n[jwt]\nissuer = \"{ISSUER}\"\naudience = \"dunlin\"\n\
         jwks-file = \"keys\"\n{lines}\n"
    );
    let mut users = Users::parse(&text).unwrap();
    users.set_keys("keys", &Arc::new(KeySet::parse(keys).unwrap()));
    let claimed = users.claimed(token.as_bytes())?;
    let (user, end) = users.of_jwt(&claimed, NOW, false)?;
    Ok((user.name().to_string(), end.unwrap()))
}

fn user(token: &str) -> Result<(String, Nanos), TokenFault> {
    user_by("", &key_set(), token)
}

fn header(signer: Signer) -> String {
    let (algorithm, id) = (signer.algorithm(), signer.key_id());
    format!("{{\"alg\":\"{algorithm}\",\"typ\":\"JWT\",\"kid\":\"{id}\"}}")
}

/// Claims that are right, but for members that take their place; `-` leaves one out.
fn claims(changes: &[(&str, &str)]) -> String {
    let issuer = format!("\"{ISSUER}\"");
    let usual =
        [("iss", &*issuer), ("aud", "\"dunlin\""), ("sub", "\"ann\""), ("exp", "1750000300")];
    let mut all: Vec<(&str, &str)> = usual.to_vec();
    all.retain(|(name, _)| changes.iter().all(|(other, _)| other != name));
    all.extend(changes.iter().filter(|(_, value)| *value != "-"));
    let members: Vec<_> = all.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}

fn signed(changes: &[(&str, &str)]) -> String {
    Signer::Ed25519.token(&header(Signer::Ed25519), &claims(changes))
}

fn with_header(header: &str) -> Result<(String, Nanos), TokenFault> {
    user(&Signer::Ed25519.token(header, &claims(&[])))
}

/// The members of RFC 7515, A.2 and A.3, and of RFC 8037, A.4.
#[test]
fn printed_signatures_are_right() {
    let set = KeySet::parse(&key_set()).unwrap();
    let verifies = |id: &str, signed: &str, signature: &str| {
        set.key(Some(id)).unwrap().verifies(signed.as_bytes(), &decode(signature))
    };
    let claims = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc1\
                  9yb290Ijp0cnVlfQ";
    assert!(verifies("rsa", &format!("eyJhbGciOiJSUzI1NiJ9.{claims}"), RS256));
    assert!(verifies("p256", &format!("eyJhbGciOiJFUzI1NiJ9.{claims}"), ES256));
    let example = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
    assert!(verifies("ed", example, EDDSA));
    assert!(!verifies("ed", claims, EDDSA) && !verifies("p256", example, EDDSA));
}

#[test]
fn genuine_token_has_user_and_end() {
    for signer in Signer::ALL {
        let found = user(&signer.token(&header(signer), &claims(&[])));
        assert_eq!(found, Ok(("ann".to_owned(), Nanos::from_secs(1_750_000_300))), "{signer:?}");
    }
    let more = [("aud", "[\"other\",\"dunlin\"]"), ("exp", "1750000300.5"), ("x", "{\"y\":[1]}")];
    let end = Nanos(1_750_000_300_500_000_000);
    assert_eq!(user(&signed(&more)), Ok(("ann".to_owned(), end)));
    assert_eq!(user(&signed(&[("exp", "99999999999999999999")])).unwrap().1, Nanos::MAX);
}

#[test]
fn header_decides_nothing() {
    let none = format!("{}.{}.", encode(b"{\"alg\":\"none\"}"), encode(claims(&[]).as_bytes()));
    assert_eq!(user(&none), Err(TokenFault::Header));
    let signed = "{\"alg\":\"none\",\"kid\":\"ed\"}";
    assert_eq!(with_header(signed), Err(TokenFault::Header));
    for named in ["HS256", "RS512", "PS256", "ES384", "Ed448", "eddsa", "", "ECDH-ES"] {
        let fault = with_header(&format!("{{\"alg\":\"{named}\",\"kid\":\"ed\"}}"));
        assert_eq!(fault, Err(TokenFault::Header), "{named}");
    }
    // The key's type has the last word.
    for named in ["RS256", "ES256"] {
        let fault = with_header(&format!("{{\"alg\":\"{named}\",\"kid\":\"ed\"}}"));
        assert_eq!(fault, Err(TokenFault::Algorithm), "{named}");
    }
    let own_key =
        format!("{{\"alg\":\"EdDSA\",\"kid\":\"rsa\",\"jwk\":{}}}", Signer::Ed25519.jwk());
    assert_eq!(with_header(&own_key), Err(TokenFault::Algorithm));
}

/// The public key as a shared secret: the classic confusion of keys.
#[test]
fn public_key_is_no_shared_secret() {
    for named in ["HS256", "RS256"] {
        let header = format!("{{\"alg\":\"{named}\",\"kid\":\"rsa\"}}");
        let signed = format!("{}.{}", encode(header.as_bytes()), encode(claims(&[]).as_bytes()));
        for secret in [decode(N), N.as_bytes().to_vec(), Signer::Rsa.jwk().into_bytes()] {
            let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &secret);
            let tag = ring::hmac::sign(&key, signed.as_bytes());
            assert!(user(&format!("{signed}.{}", encode(tag.as_ref()))).is_err());
        }
    }
}

#[test]
fn header_is_understood_or_refused() {
    for good in ["\"typ\":\"at+jwt\"", "\"typ\":\"application/AT+JWT\"", "\"cty\":\"x\""] {
        let header = format!("{{\"alg\":\"EdDSA\",\"kid\":\"ed\",{good}}}");
        assert!(with_header(&header).is_ok(), "{good}");
    }
    for bad in ["\"typ\":\"dpop+jwt\"", "\"typ\":1", "\"crit\":[\"exp\"]", "\"crit\":[]"] {
        let header = format!("{{\"alg\":\"EdDSA\",\"kid\":\"ed\",{bad}}}");
        assert_eq!(with_header(&header), Err(TokenFault::Header), "{bad}");
    }
    assert_eq!(with_header("{\"alg\":\"EdDSA\",\"kid\":7}"), Err(TokenFault::Header));
    assert_eq!(with_header("{\"kid\":\"ed\"}"), Err(TokenFault::Header));
}

#[test]
fn key_is_named_unless_only() {
    let nameless = "{\"alg\":\"EdDSA\"}";
    assert_eq!(with_header(nameless), Err(TokenFault::Key));
    assert_eq!(with_header("{\"alg\":\"EdDSA\",\"kid\":\"gone\"}"), Err(TokenFault::Key));
    let one = format!("{{\"keys\":[{}]}}", Signer::Ed25519.jwk());
    let token = Signer::Ed25519.token(nameless, &claims(&[]));
    assert!(user_by("", &one, &token).is_ok());
    let other = format!("{{\"keys\":[{}]}}", Signer::P256.jwk());
    assert_eq!(user_by("", &other, &token), Err(TokenFault::Algorithm));
}

#[test]
fn tampered_token_is_refused() {
    for signer in Signer::ALL {
        let token = signer.token(&header(signer), &claims(&[]));
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let (head, _) = signed.split_once('.').unwrap();
        let other = encode(claims(&[("sub", "\"bob\"")]).as_bytes());
        assert_eq!(user(&format!("{head}.{other}.{signature}")), Err(TokenFault::Signature));
        let mut bytes = decode(signature);
        bytes[7] ^= 1;
        assert_eq!(user(&format!("{signed}.{}", encode(&bytes))), Err(TokenFault::Signature));
        bytes.truncate(20);
        assert_eq!(user(&format!("{signed}.{}", encode(&bytes))), Err(TokenFault::Signature));
        assert_eq!(user(&format!("{signed}.")), Err(TokenFault::Signature));
        assert_eq!(user(&format!("{signed}.{}", encode(&[0; 64]))), Err(TokenFault::Signature));
    }
    let others = Signer::P256.token(&header(Signer::Ed25519), &claims(&[]));
    assert_eq!(user(&others), Err(TokenFault::Signature));
}

#[test]
fn malformed_tokens_are_refused() {
    let good = signed(&[]);
    let parts: Vec<&str> = good.split('.').collect();
    let bad = [
        "..".to_owned(),
        "a.b.c".to_owned(),
        format!("{}.{}", parts[0], parts[1]),
        format!("{good}.{}", parts[2]),
        format!("{good}="),
        format!("{good} "),
        format!("{}=.{}.{}", parts[0], parts[1], parts[2]),
        good.replace('.', "+."),
        format!("\u{f6}{good}"),
        Signer::Ed25519.token("[]", &claims(&[])),
        Signer::Ed25519.token(&header(Signer::Ed25519), "[]"),
        Signer::Ed25519.token(&header(Signer::Ed25519), "\"x\""),
        Signer::Ed25519.token(&header(Signer::Ed25519), ""),
        Signer::Ed25519.token(&header(Signer::Ed25519), &format!("{}x", claims(&[]))),
        Signer::Ed25519.token(&format!("{} ,", header(Signer::Ed25519)), &claims(&[])),
        Signer::Ed25519.token(&header(Signer::Ed25519), &claims(&[("x", &"[".repeat(2_000))])),
        signed(&[("x", &format!("{}{}", "[".repeat(300), "]".repeat(300)))]),
    ];
    for token in bad {
        assert_eq!(user(&token), Err(TokenFault::Malformed), "{token}");
    }
    // A text that is no UTF-8 is no JSON. The last bit of a text in base64 may not be lost, either.
    let with_claims = |claims: &[u8]| format!("{}.{}.{}", parts[0], encode(claims), parts[2]);
    assert_eq!(user(&with_claims(b"{\"iss\":\"\xff\"}")), Err(TokenFault::Malformed));
    let last = parts[2].char_indices().last().unwrap().0;
    let same_bits = format!("{}.{}.{}B", parts[0], parts[1], &parts[2][..last]);
    assert!(user(&same_bits).is_err());
}

#[test]
fn names_stand_once() {
    let twice = |name: &str, value: &str| {
        let claims = claims(&[]);
        let claims = format!("{},\"{name}\":{value}}}", claims.strip_suffix('}').unwrap());
        user(&Signer::Ed25519.token(&header(Signer::Ed25519), &claims))
    };
    assert!(twice("other", "1").is_ok());
    assert_eq!(twice("sub", "\"ann\""), Err(TokenFault::Malformed));
    assert_eq!(twice("exp", "1"), Err(TokenFault::Malformed));
    // The same name in another spelling.
    assert_eq!(twice("\\u0073ub", "\"bob\""), Err(TokenFault::Malformed));
    let header = "{\"alg\":\"EdDSA\",\"kid\":\"ed\",\"alg\":\"EdDSA\"}";
    assert_eq!(with_header(header), Err(TokenFault::Malformed));
}

#[test]
fn issuer_and_audience_are_exact() {
    let longer = format!("\"{ISSUER}/\"");
    for value in ["-", "1", "null", "\"\"", "\"https://other\"", &longer] {
        assert_eq!(user(&signed(&[("iss", value)])), Err(TokenFault::Issuer), "{value}");
    }
    for value in ["-", "1", "[]", "\"Dunlin\"", "[\"a\"]", "[\"dunlin\",1]", "{\"dunlin\":1}"] {
        assert_eq!(user(&signed(&[("aud", value)])), Err(TokenFault::Audience), "{value}");
    }
}

#[test]
fn times_are_kept() {
    for value in ["-", "1750000000", "1749999999", "0", "-1", "\"1750000300\"", "null", "true"] {
        assert_eq!(user(&signed(&[("exp", value)])), Err(TokenFault::Expired), "{value}");
    }
    for name in ["nbf", "iat"] {
        for value in ["1749999999", "1750000060", "1750000059.9", "0"] {
            assert!(user(&signed(&[(name, value)])).is_ok(), "{name} {value}");
        }
        for value in ["1750000061", "-5", "\"1\"", "[]", "1e300"] {
            assert_eq!(user(&signed(&[(name, value)])), Err(TokenFault::Early), "{name} {value}");
        }
    }
}

#[test]
fn claim_or_table_names_user() {
    for value in ["-", "\"eve\"", "\"Ann\"", "1", "[\"ann\"]", "\"\""] {
        assert_eq!(user(&signed(&[("sub", value)])), Err(TokenFault::User), "{value}");
    }
    let name = |found: Result<(String, Nanos), TokenFault>| found.map(|(name, _)| name);
    let token = signed(&[("sub", "\"7f:1\""), ("preferred_username", "\"bob\"")]);
    let by_name = "user-claim = \"preferred_username\"";
    assert_eq!(name(user_by(by_name, &key_set(), &token)), Ok("bob".to_owned()));
    // With a table only its subjects are users, whatever they call themselves.
    let table = "subjects = { \"7f:1\" = \"bob\" }";
    assert_eq!(name(user_by(table, &key_set(), &token)), Ok("bob".to_owned()));
    assert_eq!(user_by(table, &key_set(), &signed(&[])), Err(TokenFault::User));
}

#[test]
fn issuer_without_keys_refuses() {
    let text = format!(
        "[users.ann]\n[[jwt]]\nissuer = \"{ISSUER}\"\naudience = \"dunlin\"\njwks-file = \"a\"\n\
         [[jwt]]\nissuer = \"https://b\"\naudience = \"dunlin\"\njwks-file = \"b\"\n"
    );
    let mut users = Users::parse(&text).unwrap();
    let token = signed(&[]);
    let claimed =
        |users: &Users| users.of_jwt(&users.claimed(token.as_bytes())?, NOW, false).map(drop);
    let fault = |users: &Users| claimed(users).err();
    assert_eq!(fault(&users), Some(TokenFault::Key));
    let keys = Arc::new(KeySet::parse(&key_set()).unwrap());
    // The keys of one issuer are not those of another one.
    users.set_keys("b", &keys);
    assert_eq!(fault(&users), Some(TokenFault::Key));
    users.set_keys("a", &keys);
    assert_eq!(fault(&users), None);
}

fn set_of(keys: &[&str]) -> Result<usize, String> {
    let set = KeySet::parse(&format!("{{\"keys\":[{}]}}", keys.join(",")));
    set.map(|set| set.count()).map_err(|error| error.to_string())
}

#[test]
fn other_keys_are_passed_over() {
    let ed = Signer::Ed25519.jwk();
    let with = |more: &str| ed.replace("\"ed\"", &format!("\"x\",{more}"));
    for other in [
        "{\"kty\":\"oct\",\"k\":\"c2VjcmV0\",\"kid\":\"o\"}",
        "{\"kty\":\"EC\",\"crv\":\"P-384\",\"x\":\"\",\"y\":\"\"}",
        "{\"kty\":\"OKP\",\"crv\":\"X25519\",\"x\":\"\"}",
        "{\"kty\":\"new\"}",
        &with("\"use\":\"enc\""),
        &with("\"key_ops\":[\"sign\"]"),
        &with("\"alg\":\"Ed448\""),
        &Signer::Rsa.jwk().replace("\"kid\"", "\"alg\":\"RS512\",\"kid\""),
    ] {
        assert_eq!(set_of(&[other, &ed]), Ok(1), "{other}");
        assert!(set_of(&[other]).unwrap_err().contains("no key for RS256"), "{other}");
    }
    let used = with("\"use\":\"sig\",\"key_ops\":[\"verify\"],\"alg\":\"EdDSA\",\"x5c\":[\"\"]");
    assert_eq!(set_of(&[&used, &ed]), Ok(2));
}

#[test]
fn broken_keys_are_named() {
    let (rsa, p256, ed) = (Signer::Rsa.jwk(), Signer::P256.jwk(), Signer::Ed25519.jwk());
    let short = encode(&[0xff; 128]);
    let long = encode(&[0xff; 1025]);
    for (key, told) in [
        ("{}", "kty is missing"),
        ("1", "kty is missing"),
        ("{\"kty\":\"EC\"}", "crv is missing"),
        (&rsa.replace("AQAB", "Ag"), "e is not odd"),
        (&rsa.replace("AQAB", "AQ"), "e is not odd"),
        (&rsa.replace("AQAB", "________"), "e is not odd"),
        (&rsa.replace("AQAB", ""), "e is not odd"),
        (&rsa.replace(N, &short), "2,048 to 8,192"),
        (&rsa.replace(N, &long), "2,048 to 8,192"),
        (&rsa.replace(N, "="), "base64url"),
        (&rsa.replace("\"n\"", "\"d\":\"AQAB\",\"n\""), "private"),
        (&p256.replace("\"y\"", "\"z\""), "x and y, are missing"),
        (&p256.replace("f83O", "83O"), "base64url"),
        (&ed.replace("11qY", ""), "32 bytes"),
        (&ed.replace("\"ed\"", "5"), "kid is no text"),
    ] {
        let error = set_of(&[&ed.replace("\"ed\"", "\"one\""), key]).unwrap_err();
        assert!(error.starts_with("key 2 (kid ") && error.contains(told), "{key}: {error}");
    }
    let nameless = ed.replace("\"kid\":\"ed\",", "");
    assert!(set_of(&[&ed, &p256.replace("p256", "ed")]).unwrap_err().contains("same kid"));
    assert!(set_of(&[&nameless, &nameless]).unwrap_err().contains("none either"));
    // Zeros in front do not count.
    let padded = encode(&[&[0][..], &decode(N)].concat());
    assert_eq!(set_of(&[&rsa.replace(N, &padded)]), Ok(1));
}

#[test]
fn key_set_is_bounded() {
    for text in ["", "[]", "{}", "{\"keys\":1}", "{\"keys\":[],\"keys\":[]}", "{\"keys\":[]}"] {
        assert!(KeySet::parse(text).is_err(), "{text}");
    }
    let many: Vec<_> = (0..=JWKS_KEYS_MAX)
        .map(|n| Signer::Ed25519.jwk().replace("\"ed\"", &format!("\"{n}\"")))
        .collect();
    let all: Vec<_> = many.iter().map(String::as_str).collect();
    assert_eq!(set_of(&all[1..]), Ok(JWKS_KEYS_MAX));
    assert!(set_of(&all).unwrap_err().contains("65 keys are too many"));
    let large = format!("{}{}", key_set(), " ".repeat(JWKS_BYTES_MAX));
    assert!(KeySet::parse(&large).unwrap_err().to_string().contains("262144 bytes"));
}

const ES256: &str =
    "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
const EDDSA: &str =
    "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
const RS256: &str = "\
    cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_\
    O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIA\
    RNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPq\
    vhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77\
    Rw";
