//! Clients that speak the wrong protocol: the log names them, so that an operator with a wrong port
//! finds out.

use std::fmt;

use input::{BEGINNING_BYTES_MAX, Beginning, WrongProtocol, beginning};

/// The first bytes of a connection, until they tell its protocol.
#[derive(Debug, Default)]
pub(crate) struct Head {
    bytes: [u8; BEGINNING_BYTES_MAX],
    count: usize,
}

impl Head {
    /// Appends received bytes. Tells the protocol they begin, once it is known.
    pub(crate) fn append(&mut self, received: &[u8]) -> Beginning {
        let free = self.bytes.get_mut(self.count..).unwrap_or_default();
        for (free, byte) in free.iter_mut().zip(received) {
            *free = *byte;
            self.count += 1;
        }
        match beginning(self.bytes.get(..self.count).unwrap_or_default()) {
            Beginning::TooShort if self.count == BEGINNING_BYTES_MAX => Beginning::Unknown,
            found => found,
        }
    }
}

/// The log line about a client of the wrong protocol, with the advice for the operator.
#[derive(Debug)]
pub(crate) struct Advice<'a> {
    /// Its connection, as operators know it.
    pub(crate) connection: &'a str,
    pub(crate) wrong: WrongProtocol,
}

impl fmt::Display for Advice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { connection, wrong } = self;
        write!(f, "closed {connection}: it speaks {}, ", wrong.name())?;
        f.write_str(match wrong {
            WrongProtocol::Http => "which has a listener of its own (--listen http=ADDRESS)",
            WrongProtocol::Amqp => "which has a listener of its own (--listen amqp=ADDRESS)",
            WrongProtocol::Redis => "which has a listener of its own (--listen redis=ADDRESS)",
            WrongProtocol::Tls => "and no listener here does: let it connect without",
            WrongProtocol::OldAmqp => "use a client of AMQP 1.0",
            WrongProtocol::Mqtt | WrongProtocol::Stomp => {
                "and no listener here does: use AMQP 1.0, HTTP, Redis or beanstalkd"
            }
            WrongProtocol::Proxy => {
                "which is taken from proxies that the listener names only (,proxy-from=ADDRESS)"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_may_come_in_pieces() {
        let mut head = Head::default();
        assert_eq!(head.append(b"AM"), Beginning::TooShort);
        assert_eq!(head.append(b"QP\x00\x00"), Beginning::TooShort);
        let found = Beginning::Of(WrongProtocol::OldAmqp);
        assert_eq!(head.append(b"\x09\x01 and much more than is kept"), found);
        assert_eq!(Head::default().append(&[b'x'; 100]), Beginning::Unknown);
    }
}
