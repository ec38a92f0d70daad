//! The bytes of answers.

use alloc::vec::Vec;

use model::{MessageId, Refusal};

pub(crate) const OK: &str = "OK\r\n";
pub(crate) const DENIED: &str = "DENIED\r\n";
pub(crate) const DELETED: &str = "DELETED\r\n";
pub(crate) const RELEASED: &str = "RELEASED\r\n";
pub(crate) const BURIED: &str = "BURIED\r\n";
pub(crate) const TOUCHED: &str = "TOUCHED\r\n";
pub(crate) const KICKED: &str = "KICKED\r\n";
pub(crate) const PAUSED: &str = "PAUSED\r\n";
pub(crate) const TIMED_OUT: &str = "TIMED_OUT\r\n";
pub(crate) const DEADLINE_SOON: &str = "DEADLINE_SOON\r\n";
pub(crate) const NOT_FOUND: &str = "NOT_FOUND\r\n";
pub(crate) const NOT_IGNORED: &str = "NOT_IGNORED\r\n";
pub(crate) const EXPECTED_CRLF: &str = "EXPECTED_CRLF\r\n";
pub(crate) const JOB_TOO_BIG: &str = "JOB_TOO_BIG\r\n";
pub(crate) const DRAINING: &str = "DRAINING\r\n";
pub(crate) const BAD_FORMAT: &str = "BAD_FORMAT\r\n";
pub(crate) const UNKNOWN_COMMAND: &str = "UNKNOWN_COMMAND\r\n";
pub(crate) const OUT_OF_MEMORY: &str = "OUT_OF_MEMORY\r\n";
pub(crate) const INTERNAL_ERROR: &str = "INTERNAL_ERROR\r\n";

/// Appends one of the words above.
pub(crate) fn word(out: &mut Vec<u8>, word: &str) {
    out.extend_from_slice(word.as_bytes());
}

/// Why nothing was done, in the only words that beanstalkd has for it: a limit of ours is
/// memory that the server does not have.
pub(crate) fn refusal(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::NotPermitted(_) => DENIED,
        Refusal::StoreFull
        | Refusal::ListTooLong
        | Refusal::QueueFull(_)
        | Refusal::QuotaReached(_)
        | Refusal::MemoryFull
        | Refusal::TooManyQueues { .. }
        | Refusal::TooManyWatched => OUT_OF_MEMORY,
        Refusal::Draining => DRAINING,
        // Such a name is not for clients to choose, or is another client's: to this one it is none.
        Refusal::NoSuchDestination | Refusal::OfAnotherSession => BAD_FORMAT,
        _ => INTERNAL_ERROR,
    }
}

/// `INSERTED 5`, `WATCHING 2`, `KICKED 7`
pub(crate) fn number(out: &mut Vec<u8>, name: &str, number: u64) {
    word(out, name);
    out.push(b' ');
    decimal(out, number);
    word(out, "\r\n");
}

/// `USING default`
pub(crate) fn text(out: &mut Vec<u8>, name: &str, text: &str) {
    for part in [name, " ", text, "\r\n"] {
        word(out, part);
    }
}

/// `RESERVED 5 3` or `FOUND 5 3`, and the body.
pub(crate) fn job(out: &mut Vec<u8>, name: &str, message: MessageId, body: &[u8]) {
    // All at once: growing behind a large body would double it.
    out.reserve(name.len() + JOB_WORDS_BYTES + body.len());
    word(out, name);
    out.push(b' ');
    decimal(out, message.0);
    out.push(b' ');
    decimal(out, body.len() as u64);
    word(out, "\r\n");
    out.extend_from_slice(body);
    word(out, "\r\n");
}

/// `OK 12`, and the document.
pub(crate) fn document(out: &mut Vec<u8>, document: &str) {
    number(out, "OK", document.len() as u64);
    word(out, document);
    word(out, "\r\n");
}

/// The most bytes of the spaces, two numbers and the ends of two lines in a job's answer.
const JOB_WORDS_BYTES: usize = 46;

/// Without the detour of `core::fmt`, which costs more than the rest of a short answer.
fn decimal(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let mut rest = number;
    let mut count = 0;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
        count += 1;
        if rest == 0 {
            break;
        }
    }
    let (_, written) = digits.split_at(digits.len() - count);
    out.extend_from_slice(written);
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn decimals_are_written_as_fmt_does() {
        for number in [0, 1, 9, 10, 99, 100, 12_345, u64::MAX / 10, u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            decimal(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }
}
