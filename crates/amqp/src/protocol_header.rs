//! The eight octets with which each layer of a connection begins (2.2, 5.2.1, 5.3.2).

use crate::decode_error::{DecodeError, DecodeErrorKind as Kind};

/// Which layer a peer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolHeader {
    /// 0 for AMQP, 2 for TLS, 3 for SASL; others are not known.
    pub protocol_id: u8,
    /// Major, minor and revision.
    pub version: [u8; 3],
}

impl ProtocolHeader {
    /// Begins the connection itself.
    pub const AMQP: ProtocolHeader = ProtocolHeader { protocol_id: 0, version: [1, 0, 0] };
    /// Begins a layer of TLS.
    pub const TLS: ProtocolHeader = ProtocolHeader { protocol_id: 2, version: [1, 0, 0] };
    /// Begins the authentication.
    pub const SASL: ProtocolHeader = ProtocolHeader { protocol_id: 3, version: [1, 0, 0] };

    /// The bytes of a header.
    pub const BYTES: usize = 8;

    /// Reads the header at the front of `bytes`; nothing while it is not whole. A header of
    /// another protocol or version is answered with one of ours and the end of the connection
    /// (2.2).
    ///
    /// # Errors
    /// As soon as the bytes cannot become a header.
    pub fn decode(bytes: &[u8]) -> Result<Option<ProtocolHeader>, DecodeError> {
        let wrong = bytes.iter().zip(b"AMQP").position(|(byte, expected)| byte != expected);
        if let Some(offset) = wrong {
            return Err(DecodeError::new(Kind::BadProtocolHeader, offset));
        }
        let header = bytes.first_chunk::<{ ProtocolHeader::BYTES }>();
        Ok(header.map(|&[_, _, _, _, protocol_id, major, minor, revision]| ProtocolHeader {
            protocol_id,
            version: [major, minor, revision],
        }))
    }

    /// The bytes of this header.
    pub fn encode(&self) -> [u8; ProtocolHeader::BYTES] {
        let [major, minor, revision] = self.version;
        [b'A', b'M', b'Q', b'P', self.protocol_id, major, minor, revision]
    }
}
