//! The user of a command, for the header `Authorization`: a secret comes from a file or a terminal,
//! never from an argument or a variable, which other processes can read.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::IpAddr;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::Secret;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use ureq::http::Uri;
use ureq::http::header::HeaderValue;

use crate::cli::ServerAt;
use crate::exit::Error;

/// The value of the header for a command; `None`: it names no user.
///
/// # Errors
/// A secret that cannot be read, or that would leave this machine in the clear.
pub(super) fn authorization(server: &ServerAt, url: &str) -> Result<Option<HeaderValue>, Error> {
    let value = match (&server.token_file, &server.user) {
        (Some(file), _) => bearer(&read(file)?)?,
        (None, Some(user)) => basic(user, &password(user, server.password_file.as_deref())?)?,
        (None, None) if server.password_file.is_some() => {
            return Err(Error::Settings(
                "--password-file, or DUNLIN_PASSWORD_FILE, is given without --user".into(),
            ));
        }
        (None, None) => return Ok(None),
    };
    if !is_private(url) {
        return Err(Error::Settings(format!(
            "{url} is another machine, and a password or a token would go there in the clear: use \
             https"
        )));
    }
    Ok(Some(value))
}

fn basic(user: &str, password: &Secret) -> Result<HeaderValue, Error> {
    if user.contains(':') {
        return Err(Error::Settings(format!("--user is {user:?}, and no name has a colon")));
    }
    let pair = Secret::new([user.as_bytes(), b":", password.expose()].concat());
    header(&Secret::new(format!("Basic {}", STANDARD.encode(pair.expose())).into_bytes()))
}

fn bearer(token: &Secret) -> Result<HeaderValue, Error> {
    header(&Secret::new([b"Bearer ", token.expose()].concat()))
}

fn header(value: &Secret) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_bytes(value.expose())
        .map_err(|_| Error::Settings("the token is no text of a header".into()))?;
    value.set_sensitive(true);
    Ok(value)
}

fn password(user: &str, file: Option<&Path>) -> Result<Secret, Error> {
    match file {
        Some(file) => read(file),
        None => ask(user),
    }
}

/// The first line of a file.
fn read(file: &Path) -> Result<Secret, Error> {
    let shown = file.display();
    let failed = |error| Error::Settings(format!("cannot read {shown}: {error}"));
    first_line(File::open(file).map_err(failed)?)
        .map_err(failed)?
        .ok_or_else(|| Error::Settings(format!("{shown} has no secret in its first line")))
}

/// The secret that a user types, which no terminal shows.
fn ask(user: &str) -> Result<Secret, Error> {
    let failed = |_| {
        Error::Settings(
            "no terminal can ask for the password: give --password-file, or the variable \
             DUNLIN_PASSWORD_FILE"
                .into(),
        )
    };
    let mut terminal = File::options().read(true).write(true).open(TERMINAL).map_err(failed)?;
    let before = tcgetattr(&terminal).map_err(|error| failed(error.into()))?;
    let hiding = Hiding { terminal: terminal.try_clone().map_err(failed)?, before };
    hiding.hide().map_err(failed)?;
    write!(terminal, "Password of {user}: ").map_err(failed)?;
    let typed = first_line(&terminal).map_err(failed)?;
    drop(hiding);
    let _ = writeln!(terminal);
    typed.ok_or_else(|| Error::Settings("no password was typed".into()))
}

/// A terminal that shows nothing of what is typed, until this is dropped.
struct Hiding {
    terminal: File,
    before: Termios,
}

impl Hiding {
    fn hide(&self) -> std::io::Result<()> {
        let mut silent = self.before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        Ok(tcsetattr(&self.terminal, OptionalActions::Flush, &silent)?)
    }
}

impl Drop for Hiding {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}

/// The first line without its end; `None` if it is empty.
fn first_line(from: impl std::io::Read) -> std::io::Result<Option<Secret>> {
    let mut line = Vec::with_capacity(SECRET_BYTES_MAX);
    BufReader::new(from.take(SECRET_BYTES_MAX as u64)).read_until(b'\n', &mut line)?;
    let end = line.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |at| at + 1);
    line.truncate(end);
    Ok((end > 0).then(|| Secret::new(line)))
}

/// True if no other machine can read what is sent there.
fn is_private(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else { return true };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
    uri.scheme_str() == Some("https")
        || host == "localhost"
        || host.parse::<IpAddr>().is_ok_and(is_loopback)
}

/// The terminal of the user, whatever standard input is.
const TERMINAL: &str = "/dev/tty";

/// Bytes of the line of a secret.
const SECRET_BYTES_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_line_is_the_secret() {
        for (text, secret) in [
            ("a b\n", Some("a b")),
            ("a\r\nb", Some("a")),
            ("a", Some("a")),
            ("\n", None),
            ("", None),
        ] {
            let found = first_line(text.as_bytes()).unwrap();
            assert_eq!(found, secret.map(|it| Secret::from(it.as_bytes())), "{text:?}");
        }
    }

    #[test]
    fn headers_hide_their_secret() {
        let secret = Secret::from(&b"secret"[..]);
        let basic = basic("alice", &secret).unwrap();
        assert_eq!(basic, "Basic YWxpY2U6c2VjcmV0");
        assert_eq!(bearer(&secret).unwrap(), "Bearer secret");
        assert!(basic.is_sensitive() && bearer(&secret).unwrap().is_sensitive());
        assert!(super::basic("a:b", &secret).is_err());
        assert!(bearer(&Secret::from(&b"a\nb"[..])).is_err());
    }

    #[test]
    fn secrets_stay_on_this_machine() {
        for url in ["http://127.0.0.1:8422", "http://[::1]:1", "http://localhost", "https://a.b"] {
            assert!(is_private(url), "{url}");
        }
        for url in ["http://192.0.2.7:8422", "http://broker", "http://localhost.evil.example"] {
            assert!(!is_private(url), "{url}");
        }
    }
}
