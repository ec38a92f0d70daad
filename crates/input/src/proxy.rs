//! The header of the PROXY protocol, version 2, in which a proxy tells where its client is.
//!
//! ```text
//!  offset  bytes
//!       0     12  signature
//!      12      1  version (2) and command: 0 LOCAL, 1 PROXY
//!      13      1  family and transport: 0x11 TCP over IPv4, 0x21 TCP over IPv6, …
//!      14      2  how many bytes follow
//!      16      …  addresses by family, then extensions: kind, two bytes of length, value
//! ```
//! A header is taken iff (1) its signature, version and command are these, (2) it has at most
//! [`PROXY_HEADER_BYTES_MAX`] bytes, and by the command PROXY (3) the family is one of the
//! specification, (4) its addresses are whole, (5) its extensions fill the rest, and (6) a checksum
//! among them fits. By LOCAL everything behind the length is skipped, as the specification wants.
//!
//! The reader says how many bytes it wants, and never wants one behind the header: these belong to
//! TLS or to the protocol.

use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes of a header with its extensions. The specification promises 536 to all who stay below.
pub const PROXY_HEADER_BYTES_MAX: usize = 2_048;

/// The client that a proxy tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxied {
    /// There is none: the proxy itself connects, as to see whether the server lives.
    Own,
    /// One that has no address in the network.
    Nameless,
    /// One that is there.
    From {
        /// Its address.
        client: SocketAddr,
        /// The address that it connected to.
        to: SocketAddr,
    },
}

impl Proxied {
    /// The address that counts as the client's: the proxy's where it tells none.
    #[must_use]
    pub const fn client(self, proxy: SocketAddr) -> SocketAddr {
        match self {
            Self::From { client, .. } => client,
            Self::Own | Self::Nameless => proxy,
        }
    }
}

/// Why bytes are no header that is taken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProxyFault {
    /// They do not begin as one.
    NoHeader,
    /// They are one of version 1.
    Version1,
    /// They say this version and command.
    Version(u8),
    /// They say this family and transport.
    Family(u8),
    /// So many bytes were to follow, more than are taken.
    TooLong(u16),
    /// The addresses or an extension are longer than the header.
    CutOff,
    /// The checksum is another one.
    Checksum,
}

/// Reads a header as its bytes come. Allocates for those that have come, never by the length that
/// they claim.
#[derive(Debug, Default)]
pub struct ProxyReader {
    bytes: Vec<u8>,
}

impl ProxyReader {
    /// How many bytes of the header are to be read next, at most; zero once it is whole.
    #[must_use]
    pub fn wanted(&self) -> usize {
        let whole =
            self.claimed().map_or(FIXED_BYTES, |claimed| FIXED_BYTES + usize::from(claimed));
        whole.saturating_sub(self.bytes.len())
    }

    /// Takes bytes, as many as are wanted at most. `None`: more have to come.
    ///
    /// # Errors
    /// [`ProxyFault`], at the first byte that makes it one; then the reader is of no more use.
    pub fn append(&mut self, received: &[u8]) -> Result<Option<Proxied>, ProxyFault> {
        debug_assert!(received.len() <= self.wanted(), "bytes behind the header are not its own");
        self.bytes.extend_from_slice(received);
        self.check_beginning()?;
        match self.claimed() {
            Some(_) if self.wanted() == 0 => self.read().map(Some),
            _ => Ok(None),
        }
    }

    /// How many bytes follow the fixed ones, once that is known.
    fn claimed(&self) -> Option<u16> {
        let length = self.bytes.get(LENGTH_AT..FIXED_BYTES)?;
        length.try_into().ok().map(u16::from_be_bytes)
    }

    fn check_beginning(&self) -> Result<(), ProxyFault> {
        let beginning = self.bytes.get(..SIGNATURE.len()).unwrap_or(&self.bytes);
        if !SIGNATURE.starts_with(beginning) {
            let is_version_1 = beginning.starts_with(VERSION_1);
            let may_be = VERSION_1.starts_with(beginning);
            return match (is_version_1, may_be) {
                (true, _) => Err(ProxyFault::Version1),
                (_, true) => Ok(()),
                _ => Err(ProxyFault::NoHeader),
            };
        }
        if let Some(version) = self.bytes.get(COMMAND_AT)
            && !matches!(*version, LOCAL | PROXY)
        {
            return Err(ProxyFault::Version(*version));
        }
        match self.claimed() {
            Some(claimed) if FIXED_BYTES + usize::from(claimed) > PROXY_HEADER_BYTES_MAX => {
                Err(ProxyFault::TooLong(claimed))
            }
            _ => Ok(()),
        }
    }

    fn read(&self) -> Result<Proxied, ProxyFault> {
        if self.bytes.get(COMMAND_AT) == Some(&LOCAL) {
            return Ok(Proxied::Own);
        }
        let family = self.bytes.get(FAMILY_AT).copied().unwrap_or_default();
        let block = self.bytes.get(FIXED_BYTES..).unwrap_or_default();
        let (addresses, extensions) = match family {
            // The length of such addresses is not known, and they are to be ignored.
            UNSPECIFIED => return Ok(Proxied::Nameless),
            TCP4 | UDP4 => block.split_at_checked(2 * (4 + 2)),
            TCP6 | UDP6 => block.split_at_checked(2 * (16 + 2)),
            UNIX_STREAM | UNIX_DATAGRAM => block.split_at_checked(2 * UNIX_BYTES),
            other => return Err(ProxyFault::Family(other)),
        }
        .ok_or(ProxyFault::CutOff)?;
        self.check_extensions(extensions)?;
        match family {
            TCP4 | UDP4 => ends(addresses, |ip: [u8; 4]| Ipv4Addr::from(ip).into()),
            TCP6 | UDP6 => ends(addresses, |ip: [u8; 16]| Ipv6Addr::from(ip).to_canonical()),
            _ => Some(Proxied::Nameless),
        }
        .ok_or(ProxyFault::CutOff)
    }

    /// Walks over the extensions. All but the checksum are skipped.
    fn check_extensions(&self, mut rest: &[u8]) -> Result<(), ProxyFault> {
        while let Some((kind, behind)) = rest.split_first() {
            let (length, behind) = behind.split_first_chunk().ok_or(ProxyFault::CutOff)?;
            let length = usize::from(u16::from_be_bytes(*length));
            let (value, behind) = behind.split_at_checked(length).ok_or(ProxyFault::CutOff)?;
            if *kind == CHECKSUM {
                let at = self.bytes.len() - behind.len() - length;
                self.check_sum(at, value)?;
            }
            rest = behind;
        }
        Ok(())
    }

    /// The checksum is that of the header with zeros in its place.
    fn check_sum(&self, at: usize, value: &[u8]) -> Result<(), ProxyFault> {
        let told: [u8; 4] = value.try_into().map_err(|_| ProxyFault::Checksum)?;
        let before = self.bytes.get(..at).unwrap_or_default();
        let behind = self.bytes.get(at + told.len()..).unwrap_or_default();
        let sum = crc32c::crc32c_append(crc32c::crc32c(before), &[0; 4]);
        let sum = crc32c::crc32c_append(sum, behind);
        if sum == u32::from_be_bytes(told) { Ok(()) } else { Err(ProxyFault::Checksum) }
    }
}

/// The addresses of both ends, then their ports.
fn ends<const N: usize>(bytes: &[u8], ip: fn([u8; N]) -> IpAddr) -> Option<Proxied> {
    let (client, rest) = bytes.split_first_chunk::<N>()?;
    let (to, ports) = rest.split_first_chunk::<N>()?;
    let (from_port, to_port) = ports.split_first_chunk::<2>()?;
    let port = |port: &[u8; 2]| u16::from_be_bytes(*port);
    let client = SocketAddr::new(ip(*client), port(from_port));
    let to = SocketAddr::new(ip(*to), port(to_port.first_chunk()?));
    Some(Proxied::From { client, to })
}

impl fmt::Display for ProxyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHeader => f.write_str(
                "it began without a PROXY header: have the proxy send one (haproxy: \
                 send-proxy-v2), or leave its address out of proxy-from",
            ),
            Self::Version1 => f.write_str(
                "its PROXY header has version 1, and only 2 is taken (haproxy: send-proxy-v2)",
            ),
            Self::Version(byte) => {
                write!(f, "its PROXY header has the unknown version and command {byte:#04x}")
            }
            Self::Family(byte) => {
                write!(f, "its PROXY header has the unknown family and transport {byte:#04x}")
            }
            Self::TooLong(claimed) => write!(
                f,
                "its PROXY header has {} bytes, and {PROXY_HEADER_BYTES_MAX} are taken: have the \
                 proxy send fewer extensions",
                FIXED_BYTES + usize::from(*claimed)
            ),
            Self::CutOff => f.write_str("its PROXY header is shorter than what it holds"),
            Self::Checksum => f.write_str("its PROXY header does not fit its checksum"),
        }
    }
}

impl core::error::Error for ProxyFault {}

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
const VERSION_1: &[u8] = b"PROXY ";
const COMMAND_AT: usize = 12;
const FAMILY_AT: usize = 13;
const LENGTH_AT: usize = 14;
const FIXED_BYTES: usize = 16;

const LOCAL: u8 = 0x20;
const PROXY: u8 = 0x21;

const UNSPECIFIED: u8 = 0x00;
const TCP4: u8 = 0x11;
const UDP4: u8 = 0x12;
const TCP6: u8 = 0x21;
const UDP6: u8 = 0x22;
const UNIX_STREAM: u8 = 0x31;
const UNIX_DATAGRAM: u8 = 0x32;

/// Bytes of one address of a Unix socket.
const UNIX_BYTES: usize = 108;

/// The kind of an extension that is a checksum.
const CHECKSUM: u8 = 0x03;

#[cfg(test)]
#[path = "proxy_test.rs"]
mod tests;
