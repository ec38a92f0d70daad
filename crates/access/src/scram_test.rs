//! The exchanges that the RFCs print, and messages that are none.

use core::num::NonZeroU32;

use model::{ScramHash, Secret};
use std::string::ToString as _;
use std::vec::Vec;

use super::*;

/// RFC 7677, section 3. The same for SHA-512 was computed by Python's hashlib and hmac.
const USER: &str = "user";
const PASSWORD: &str = "pencil";
const SALT: &str = "W22ZaJ0SNY7soEsUEjb6gQ==";
const CLIENT_NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
const SERVER_NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";

fn exchange(hash: ScramHash, gs2_header: &str) -> (Exchange, String) {
    let salt = STANDARD.decode(SALT).unwrap();
    let password = Secret::from(PASSWORD.as_bytes());
    let iterations = NonZeroU32::new(4096).unwrap();
    let verifier = Verifier::derive_with(hash, &password, &salt, iterations);
    let first = format!("{gs2_header}n={USER},r={CLIENT_NONCE}");
    let first = ClientFirst::parse(first.as_bytes()).unwrap();
    assert_eq!(first.user, USER);
    Exchange::begin(&first, verifier, SERVER_NONCE)
}

fn finish(hash: ScramHash, gs2_header: &str, last: &str) -> Option<String> {
    exchange(hash, gs2_header).0.finish(last.as_bytes()).map(|it| String::from_utf8(it).unwrap())
}

fn last(channel: &str, proof: &str) -> String {
    format!("c={channel},r={CLIENT_NONCE}{SERVER_NONCE},p={proof}")
}

const PROOF_256: &str = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";

#[test]
fn rfc_7677_exchange_succeeds() {
    let (_, challenge) = exchange(ScramHash::Sha256, "n,,");
    assert_eq!(challenge, format!("r={CLIENT_NONCE}{SERVER_NONCE},s={SALT},i=4096"));
    let proof = finish(ScramHash::Sha256, "n,,", &last("biws", PROOF_256));
    assert_eq!(proof.unwrap(), "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
}

#[test]
fn sha_512_exchange_succeeds() {
    let proof = finish(ScramHash::Sha512, "n,,", &last("biws", PROOF_512));
    assert_eq!(proof.unwrap(), SIGNATURE_512);
}

#[test]
fn wrong_last_messages_fail() {
    let good = last("biws", PROOF_256);
    assert!(finish(ScramHash::Sha256, "n,,", &good).is_some());
    let bad = [
        last("eSws", PROOF_256),
        last("biw=", PROOF_256),
        last("", PROOF_256),
        last("biws", ""),
        last("biws", &PROOF_256.replace('d', "e")),
        last("biws", "AAAA"),
        last("biws", PROOF_512),
        good.replace("r=rO", "r=rP"),
        good.replace("$k0", "$k"),
        good.replace("c=biws,", ""),
        good.replace(",p=", ",q="),
        format!("m=x,{good}"),
        format!("{good},x=y"),
        good.replace(",p=", ",x,p="),
        good.to_uppercase(),
        String::new(),
    ];
    for message in bad {
        assert_eq!(finish(ScramHash::Sha256, "n,,", &message), None, "{message}");
    }
    // The client must repeat the header that it sent.
    assert_eq!(finish(ScramHash::Sha256, "y,,", &good), None);
}

/// Signs as a client does that knows the password.
fn client_proof(hash: ScramHash, exchange: &Exchange, without_proof: &str) -> String {
    // A client signs by its key, which the proof hides: the verifier of the test knows no key, so
    // the client derives it anew.
    let (algorithm, key) = crate::test_client::client_key(hash, PASSWORD, SALT, 4096);
    let signed = format!("{},{without_proof}", exchange.signed);
    crate::test_client::proof(algorithm, &key, signed.as_bytes())
}

#[test]
fn header_and_extensions_are_signed() {
    for (hash, header) in [
        (ScramHash::Sha256, "y,,"),
        (ScramHash::Sha512, "n,a=user,"),
        (ScramHash::Sha256, "y,a=other,"),
    ] {
        let (exchange, _) = exchange(hash, header);
        let binding = STANDARD.encode(header);
        let without_proof = format!("c={binding},r={CLIENT_NONCE}{SERVER_NONCE},x=1,y=2");
        let proof = client_proof(hash, &exchange, &without_proof);
        let message = format!("{without_proof},p={proof}");
        assert!(exchange.finish(message.as_bytes()).is_some(), "{header}");
    }
}

#[test]
fn first_messages_are_read() {
    let first = |text: &'static str| ClientFirst::parse(text.as_bytes());
    let escaped = first("n,a=a=2Cb=3D,n=a=2Cb=3D,r=x,e=1,F=2").unwrap();
    assert_eq!((escaped.user.to_string(), escaped.nonce), ("a,b=".into(), "x"));
    assert_eq!(escaped.authorization.as_deref(), Some("a,b="));
    assert_eq!(escaped.gs2_header, "n,a=a=2Cb=3D,");
    for text in [
        "",
        "n",
        "n,",
        "n,,",
        "n,,n=",
        "n,,n=user",
        "n,,n=,r=x",
        "n,,n=user,r=",
        "n,,n=user,r=x,",
        "n,,n=user,r=x,1=2",
        "n,,n=user,r=x,e=",
        "n,,m=x,n=user,r=x",
        "n,,n=us=er,r=x",
        "n,,n=user=2,r=x",
        "n,,r=x,n=user",
        "n,b=x,n=user,r=x",
        "n,a=,n=user,r=x",
        "p=tls-unique,,n=user,r=x",
        "p=tls-exporter,,n=user,r=x",
        "Y,,n=user,r=x",
        "n,,n=user\0,r=x",
    ] {
        assert_eq!(first(text), None, "{text}");
    }
    let long: Vec<u8> = [b"n,,n=user,r=".as_slice(), &[b'x'; 4096]].concat();
    assert_eq!(ClientFirst::parse(&long), None);
    assert_eq!(ClientFirst::parse(b"n,,n=\xff,r=x"), None);
}

const PROOF_512: &str =
    "gMGXRcevScNtxZ6/8lQYpGtnsNAc3mGcmNomv+xnoOMw+3R2xNJdMNnzMlTN8PPC6wdp6dybEmDYXYTxwnYPJQ==";

const SIGNATURE_512: &str =
    "v=ZQnYEgWQMFmmsM8aQMF0nDDCy/AgCzkwk8CmMZYcMg0vSVlKDanekLtifDSeVGT4+5ZxXnJq199RVG2rR7N7Zw==";
