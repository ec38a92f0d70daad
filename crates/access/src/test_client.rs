//! The client's side of SCRAM, by itself: it shares no code with the server's.

use std::string::String;
use std::vec::Vec;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::ScramHash;
use ring::{digest, hmac, pbkdf2};

/// The algorithm, and the client's key.
pub(crate) fn client_key(
    hash: ScramHash,
    password: &str,
    salt: &str,
    iterations: u32,
) -> (hmac::Algorithm, Vec<u8>) {
    let (pbkdf2, algorithm, length) = match hash {
        ScramHash::Sha256 => (pbkdf2::PBKDF2_HMAC_SHA256, hmac::HMAC_SHA256, 32),
        ScramHash::Sha512 => (pbkdf2::PBKDF2_HMAC_SHA512, hmac::HMAC_SHA512, 64),
    };
    let (salt, mut salted) = (STANDARD.decode(salt).unwrap(), std::vec![0; length]);
    let iterations = iterations.try_into().unwrap();
    pbkdf2::derive(pbkdf2, iterations, &salt, password.as_bytes(), &mut salted);
    let key = hmac::sign(&hmac::Key::new(algorithm, &salted), b"Client Key");
    (algorithm, key.as_ref().to_vec())
}

/// The proof over the messages.
pub(crate) fn proof(algorithm: hmac::Algorithm, client_key: &[u8], messages: &[u8]) -> String {
    let stored = digest::digest(algorithm.digest_algorithm(), client_key);
    let signature = hmac::sign(&hmac::Key::new(algorithm, stored.as_ref()), messages);
    let proof = client_key.iter().zip(signature.as_ref()).map(|(key, byte)| key ^ byte);
    STANDARD.encode(proof.collect::<Vec<u8>>())
}

/// Answers a challenge: the last message of the exchange that `bare` began.
pub(crate) fn answer(hash: ScramHash, password: &str, bare: &str, challenge: &str) -> String {
    let parts: Vec<&str> = challenge.splitn(3, ',').collect();
    let value = |index: usize| parts[index].get(2..).unwrap();
    let (nonce, salt, iterations) = (value(0), value(1), value(2).parse().unwrap());
    let (algorithm, key) = client_key(hash, password, salt, iterations);
    let without_proof = std::format!("c=biws,r={nonce}");
    let signed = std::format!("{bare},{challenge},{without_proof}");
    std::format!("{without_proof},p={}", proof(algorithm, &key, signed.as_bytes()))
}
