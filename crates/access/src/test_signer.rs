//! The keys that RFC 7515 (A.2, A.3) and RFC 8037 (A.1) print, and tokens signed by them.

use std::format;
use std::string::String;
use std::vec::Vec;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::rsa::{KeyPairComponents, PublicKeyComponents};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};

/// The private half of a key of [`key_set`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signer {
    Rsa,
    P256,
    Ed25519,
}

impl Signer {
    pub(crate) const ALL: [Self; 3] = [Self::Rsa, Self::P256, Self::Ed25519];

    pub(crate) fn algorithm(self) -> &'static str {
        match self {
            Self::Rsa => "RS256",
            Self::P256 => "ES256",
            Self::Ed25519 => "EdDSA",
        }
    }

    pub(crate) fn key_id(self) -> &'static str {
        match self {
            Self::Rsa => "rsa",
            Self::P256 => "p256",
            Self::Ed25519 => "ed",
        }
    }

    /// The public key, as a JWK.
    pub(crate) fn jwk(self) -> String {
        let id = self.key_id();
        match self {
            Self::Rsa => {
                format!("{{\"kty\":\"RSA\",\"kid\":\"{id}\",\"n\":\"{N}\",\"e\":\"AQAB\"}}")
            }
            Self::P256 => format!(
                "{{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"{id}\",\"x\":\"{X}\",\"y\":\"{Y}\"}}"
            ),
            Self::Ed25519 => {
                format!("{{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"{id}\",\"x\":\"{ED_X}\"}}")
            }
        }
    }

    /// The token with this header and these claims.
    pub(crate) fn token(self, header: &str, claims: &str) -> String {
        let signed = format!("{}.{}", encode(header.as_bytes()), encode(claims.as_bytes()));
        let signature = encode(&self.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    fn sign(self, signed: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa => {
                let mut signature = std::vec![0; 256];
                let key = rsa_key();
                key.sign(&RSA_PKCS1_SHA256, &random, signed, &mut signature).unwrap();
                signature
            }
            Self::P256 => {
                let point = [&[4][..], &decode(X), &decode(Y)].concat();
                let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
                let key = EcdsaKeyPair::from_private_key_and_public_key(
                    algorithm,
                    &decode(P256_D),
                    &point,
                    &random,
                );
                key.unwrap().sign(&random, signed).unwrap().as_ref().to_vec()
            }
            Self::Ed25519 => {
                let (seed, point) = (decode(ED_D), decode(ED_X));
                let key = Ed25519KeyPair::from_seed_and_public_key(&seed, &point).unwrap();
                key.sign(signed).as_ref().to_vec()
            }
        }
    }
}

/// The public keys of all signers.
pub(crate) fn key_set() -> String {
    format!("{{\"keys\":[{}]}}", Signer::ALL.map(Signer::jwk).join(","))
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn decode(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}

fn rsa_key() -> RsaKeyPair {
    let components = KeyPairComponents {
        public_key: PublicKeyComponents { n: decode(N), e: decode("AQAB") },
        d: decode(D),
        p: decode(P),
        q: decode(Q),
        dP: decode(DP),
        dQ: decode(DQ),
        qInv: decode(QI),
    };
    RsaKeyPair::from_components(&components).unwrap()
}

pub(crate) const N: &str = "\
    ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP\
    1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63k\
    paSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9\
    kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXp\
    oQ";
const D: &str = "\
    Eq5xpGnNCivDflJsRQBXHx1hdR1k6Ulwe2JZD50LpXyWPEAeP88vLNO97IjlA7_GQ5sLKMgvfTeXZx9SE-7Yw\
    Vol2NXOoAJe46sui395IW_GO-pWJ1O0BkTGoVEn2bKVRUCgu-GjBVaYLU6f3l9kJfFNS3E0QbVdxzubSu3Mkq\
    zjkn439X0M_V51gfpRLI9JYanrC4D4qAdGcopV_0ZHHzQlBjudU2QvXt4ehNYTCBr6XCLQUShb1juUO1ZdiYo\
    FaFQT5Tw8bGUl_x_jTj3ccPDVZFD9pIuhLhBOneufuBiB4cS98l2SR_RQyGWSeWjnczT0QU91p1DhOVRuOopz\
    nQ";
const P: &str = "\
    4BzEEOtIpmVdVEZNCqS7baC4crd0pqnRH_5IB3jw3bcxGn6QLvnEtfdUdiYrqBdss1l58BQ3KhooKeQTa9AB0\
    Hw_Py5PJdTJNPY8cQn7ouZ2KKDcmnPGBY5t7yLc1QlQ5xHdwW1VhvKn-nXqhJTBgIPgtldC-KDV5z-y2XDwGU\
    c";
const Q: &str = "\
    uQPEfgmVtjL0Uyyx88GZFF1fOunH3-7cepKmtH4pxhtCoHqpWmT8YAmZxaewHgHAjLYsp1ZSe7zFYHj7C6ul7\
    TjeLQeZD_YwD66t62wDmpe_HlB-TnBA-njbglfIsRLtXlnDzQkv5dTltRJ11BKBBypeeF6689rjcJIDEz9RWd\
    c";
const DP: &str = "\
    BwKfV3Akq5_MFZDFZCnW-wzl-CCo83WoZvnLQwCTeDv8uzluRSnm71I3QCLdhrqE2e9YkxvuxdBfpT_PI7Yz-\
    FOKnu1R6HsJeDCjn12Sk3vmAktV2zb34MCdy7cpdTh_YVr7tss2u6vneTwrA86rZtu5Mbr1C1XsmvkxHQAdYo\
    0";
const DQ: &str = "\
    h_96-mK1R_7glhsum81dZxjTnYynPbZpHziZjeeHcXYsXaaMwkOlODsWa7I9xXDoRwbKgB719rrmI2oKr6N3D\
    o9U0ajaHF-NKJnwgjMd2w9cjz3_-kyNlxAr2v4IKhGNpmM5iIgOS1VZnOZ68m6_pbLBSp3nssTdlqvd0tIiTH\
    U";
const QI: &str = "\
    IYd7DHOhrWvxkwPQsRM2tOgrjbcrfvtQJipd-DlcxyVuuM9sQLdgjVk2oy26F0EmpScGLq2MowX7fhd_QJQ3y\
    dy5cY7YIBi87w93IKLEdfnbJtoOPLUW0ITrJReOgo1cq9SbsxYawBgfp_gh6A5603k2-ZQwVK0JKSHuLFkuQ3\
    U";
const X: &str = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
const Y: &str = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0";
const P256_D: &str = "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI";
const ED_X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
const ED_D: &str = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";
