//! Sources of passwords and tokens. None is an argument or a variable: other processes can read
//! those, and shells keep them in a history.

use std::io::{self, IsTerminal as _, Read as _, Stdin, Write as _};

use access::{limits, new_password};
use model::Secret;
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use crate::exit::Error;
use crate::user::cli::Source;

/// The password that is to be set.
pub(super) fn ask(source: Source) -> Result<Secret, Error> {
    if source.generate {
        return Ok(Secret::new(base32(&random::<20>()?)));
    }
    let given = if source.stdin { read_all()? } else { prompt_twice()? };
    new_password(given.expose()).map_err(|fault| {
        Error::Settings(format!(
            "the password {fault}: choose another, or have one made (--generate)"
        ))
    })
}

/// A bearer token of 256 random bits. Its beginning lets scanners of source code find it.
pub(super) fn new_token() -> Result<Secret, Error> {
    let mut token = b"dunlin_".to_vec();
    token.extend(base32(&random::<32>()?));
    Ok(Secret::new(token))
}

/// Random bytes of the system.
pub(super) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    loop {
        match getrandom(&mut bytes, GetRandomFlags::empty()) {
            Ok(count) if count == N => return Ok(bytes),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => {
                let what = format!("the system gives no random numbers: {errno}");
                return Err(Error::Other(what));
            }
        }
    }
}

/// Five bits a character (RFC 4648, in small letters and without padding): easy to read out.
fn base32(bytes: &[u8]) -> Vec<u8> {
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
    let digits = (0..bytes.len() * 8).step_by(5);
    let value = |at: usize| (at..at + 5).fold(0, |value, at| value << 1 | bit(at));
    digits.map(|at| if value(at) < 26 { b'a' + value(at) } else { b'2' + value(at) - 26 }).collect()
}

/// One line of standard input, with or without a line end.
fn read_all() -> Result<Secret, Error> {
    let mut bytes = Vec::with_capacity(INPUT_BYTES_MAX);
    let read = io::stdin().take(INPUT_BYTES_MAX as u64).read_to_end(&mut bytes);
    read.map_err(|error| Error::Other(format!("cannot read standard input: {error}")))?;
    if bytes.ends_with(b"\n") {
        bytes.pop();
    }
    if bytes.ends_with(b"\r") {
        bytes.pop();
    }
    Ok(Secret::new(bytes))
}

/// Two more than a password may have, for the line end, and one so that a longer one is noticed.
const INPUT_BYTES_MAX: usize = limits::PASSWORD_BYTES_MAX + 3;

fn prompt_twice() -> Result<Secret, Error> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return Err(Error::Settings(
            "standard input is no terminal, so no password can be asked for: say --stdin to read \
             it there, or --generate to have one made"
                .into(),
        ));
    }
    let (first, second) = (prompt(&stdin, "Password: ")?, prompt(&stdin, "The same again: ")?);
    if first != second {
        return Err(Error::Settings("the two passwords differ: nothing was changed".into()));
    }
    Ok(first)
}

/// Reads a line without showing it.
fn prompt(stdin: &Stdin, text: &str) -> Result<Secret, Error> {
    let failed = |error: io::Error| Error::Other(format!("cannot read the terminal: {error}"));
    let silence = Silence::begin(stdin).map_err(|errno| failed(errno.into()))?;
    // Without standard error there is no prompt, and the answer can still be typed.
    let _ = write!(io::stderr(), "{text}");
    let mut line = Vec::with_capacity(INPUT_BYTES_MAX);
    let end = loop {
        let mut byte = [0];
        match stdin.lock().read(&mut byte).map_err(failed)? {
            0 => break Some(END_OF_INPUT),
            _ => {
                let [byte] = byte;
                match byte {
                    b'\r' | b'\n' => break None,
                    INTERRUPT | END_OF_INPUT => break Some(byte),
                    BACKSPACE | DELETE => erase_character(&mut line),
                    ERASE_LINE => line.clear(),
                    byte if line.len() < INPUT_BYTES_MAX => line.push(byte),
                    _ => {}
                }
            }
        }
    };
    let line = Secret::new(line);
    drop(silence);
    let _ = writeln!(io::stderr());
    match end {
        None => Ok(line),
        Some(_) => Err(Error::Other("no password was given: nothing was changed".into())),
    }
}

/// A character of UTF-8 is as long as its continuation bytes, and one more.
fn erase_character(line: &mut Vec<u8>) {
    while line.pop().is_some_and(|byte| byte & 0xC0 == 0x80) {}
}

const INTERRUPT: u8 = 3;
const END_OF_INPUT: u8 = 4;
const BACKSPACE: u8 = 8;
const ERASE_LINE: u8 = 21;
const DELETE: u8 = 127;

/// A terminal that shows nothing of what is typed, and sends no signals: an interrupt is read as a
/// byte, so that the terminal is always as before in the end.
struct Silence<'a> {
    terminal: &'a Stdin,
    before: Termios,
}

impl<'a> Silence<'a> {
    fn begin(terminal: &'a Stdin) -> Result<Self, Errno> {
        let before = tcgetattr(terminal)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        silent.special_codes[SpecialCodeIndex::VMIN] = 1;
        silent.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(terminal, OptionalActions::Flush, &silent)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Silence<'_> {
    fn drop(&mut self) {
        // The terminal may be gone: then there is nothing to show.
        let _ = tcsetattr(self.terminal, OptionalActions::Now, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base32_is_that_of_rfc_4648() {
        for (plain, encoded) in [
            ("", ""),
            ("f", "my"),
            ("fo", "mzxq"),
            ("foo", "mzxw6"),
            ("foob", "mzxw6yq"),
            ("fooba", "mzxw6ytb"),
            ("foobar", "mzxw6ytboi"),
        ] {
            assert_eq!(base32(plain.as_bytes()), encoded.as_bytes());
        }
    }

    #[test]
    fn erasing_takes_whole_characters() {
        let mut line = "aö".as_bytes().to_vec();
        erase_character(&mut line);
        assert_eq!(line, b"a");
        erase_character(&mut line);
        erase_character(&mut line);
        assert!(line.is_empty());
    }

    #[test]
    fn generated_secrets_are_long() {
        let source = Source { stdin: false, generate: true };
        let (one, two) = (ask(source).unwrap(), ask(source).unwrap());
        assert!(one.expose().len() == 32 && one != two);
        assert!(new_password(one.expose()).is_ok());
        assert_eq!(new_token().unwrap().expose().len(), 7 + 52);
    }
}
