//! An issuer of tokens (JWT), made by `openssl`: a key of Ed25519, the file of its public half, and
//! tokens that it signs.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::Result;
use crate::secured::openssl;

const NAME: &str = "https://login.example.com/realms/tests";
const KEYS_FILE: &str = "tests.jwks";

/// Far longer than all suites take.
const TOKEN_SECONDS: u64 = 24 * 3_600;

/// Bytes of a public key, which are the last of its DER form.
const POINT_BYTES: usize = 32;

/// The table of a users file that makes Dunlin take the issuer's tokens.
pub(crate) fn table() -> String {
    format!("\n[[jwt]]\nissuer = {NAME:?}\naudience = \"dunlin\"\njwks-file = {KEYS_FILE:?}\n")
}

/// Makes the key and the file of its public half in this folder, and a token of the user.
///
/// # Errors
/// When `openssl` fails or a file cannot be written.
pub(crate) fn issue_token(folder: &Path, user: &str) -> Result<String> {
    openssl(folder, &["genpkey", "-algorithm", "ED25519", "-out", "issuer.key"])?;
    let public = openssl(folder, &["pkey", "-in", "issuer.key", "-pubout", "-outform", "DER"])?;
    let point = public.last_chunk::<POINT_BYTES>().ok_or("the public key is too short")?;
    let point = URL_SAFE_NO_PAD.encode(point);
    let key = json!({ "kty": "OKP", "crv": "Ed25519", "kid": "tests", "x": point });
    fs::write(folder.join(KEYS_FILE), json!({ "keys": [key] }).to_string())?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let header = json!({ "alg": "EdDSA", "typ": "JWT", "kid": "tests" });
    let end = now + TOKEN_SECONDS;
    let claims = json!({ "iss": NAME, "aud": "dunlin", "sub": user, "iat": now, "exp": end });
    let signed = format!("{}.{}", part(&header), part(&claims));
    fs::write(folder.join("signed"), &signed)?;
    let sign = ["pkeyutl", "-sign", "-rawin", "-inkey", "issuer.key", "-in", "signed"];
    let signature = URL_SAFE_NO_PAD.encode(openssl(folder, &sign)?);
    Ok(format!("{signed}.{signature}"))
}

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}
