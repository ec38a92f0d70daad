//! The errors in bytes of a peer, and where they are.

use core::fmt;

use crate::error::condition;

/// Bytes that AMQP does not allow there. Nothing was allocated for them, and nothing that was
/// decoded from them may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The kind of error.
    pub kind: DecodeErrorKind,
    /// Bytes from the beginning of the decoded bytes to the value that is wrong.
    pub offset: usize,
}

/// The kinds of errors in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The bytes end inside a value, or a value claims more than there is around it.
    Truncated,
    /// Bytes are left where a value should have ended.
    TrailingBytes,
    /// No type has this constructor (1.6).
    UnknownConstructor(u8),
    /// A value of another type than the field's.
    UnexpectedType(u8),
    /// The size of a list, map or array is not that of its elements.
    SizeMismatch,
    /// More elements than the bytes can hold, or than [`crate::limits`] allows.
    TooManyElements,
    /// More of something in a message than one of [`crate::limits`], which it tells.
    TooMany(&'static str, u32),
    /// A map with a key and no value (1.6.23).
    OddMap,
    /// A map with two equal keys (1.6.23).
    DuplicateKey,
    /// Deeper than [`crate::limits::NESTING_MAX`].
    TooDeep,
    /// A string that is not UTF-8 (1.6.20).
    NotUtf8,
    /// A symbol that is not ASCII (1.6.21).
    NotAscii,
    /// A boolean octet that is neither 0 nor 1 (1.6.2).
    NotBoolean,
    /// A char that is no Unicode scalar value (1.6.16).
    NotChar,
    /// A descriptor that is itself described, or neither ulong nor symbol (1.5).
    BadDescriptor,
    /// A composite type that is not known, or not allowed there.
    UnknownDescriptor,
    /// More fields than the composite type has (1.4).
    TooManyFields,
    /// A mandatory field is null or absent (1.4).
    MissingField(&'static str),
    /// A value that the field's definition does not allow.
    InvalidField(&'static str),
    /// No AMQP protocol header (2.2).
    BadProtocolHeader,
    /// A frame smaller than its header, or a data offset outside of the frame (2.3.1).
    BadFrameHeader,
    /// A frame larger than allowed.
    FrameTooLarge,
    /// Neither an AMQP nor a SASL frame (2.3.1).
    UnknownFrameType(u8),
    /// A section that may not stand after the one before it (3.2).
    SectionOrder,
}

impl DecodeError {
    pub(crate) fn new(kind: DecodeErrorKind, offset: usize) -> DecodeError {
        DecodeError { kind, offset }
    }

    /// The error condition that tells the peer (2.8.15, 2.8.16).
    pub fn condition(&self) -> &'static str {
        use DecodeErrorKind as Kind;
        match self.kind {
            Kind::InvalidField(_) => condition::INVALID_FIELD,
            Kind::BadFrameHeader | Kind::FrameTooLarge | Kind::UnknownFrameType(_) => {
                condition::CONNECTION_FRAMING_ERROR
            }
            Kind::TooMany(..) => condition::RESOURCE_LIMIT_EXCEEDED,
            _ => condition::DECODE_ERROR,
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.kind, self.offset)
    }
}

impl fmt::Display for DecodeErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the bytes end inside a value"),
            Self::TrailingBytes => f.write_str("bytes follow the last value"),
            Self::UnknownConstructor(code) => write!(f, "unknown constructor 0x{code:02x}"),
            Self::UnexpectedType(code) => write!(f, "unexpected type 0x{code:02x}"),
            Self::SizeMismatch => f.write_str("size and elements disagree"),
            Self::TooManyElements => f.write_str("too many elements"),
            Self::TooMany(what, max) => write!(f, "a message has {max} {what} at most: send fewer"),
            Self::OddMap => f.write_str("a map's key has no value"),
            Self::DuplicateKey => f.write_str("two keys of a map are equal"),
            Self::TooDeep => f.write_str("values are nested too deep"),
            Self::NotUtf8 => f.write_str("a string is not UTF-8"),
            Self::NotAscii => f.write_str("a symbol is not ASCII"),
            Self::NotBoolean => f.write_str("a boolean is neither 0 nor 1"),
            Self::NotChar => f.write_str("a char is no Unicode scalar value"),
            Self::BadDescriptor => f.write_str("a descriptor is neither ulong nor symbol"),
            Self::UnknownDescriptor => f.write_str("unknown or misplaced composite type"),
            Self::TooManyFields => f.write_str("more fields than the type has"),
            Self::MissingField(name) => write!(f, "{name} is missing"),
            Self::InvalidField(name) => write!(f, "{name} has a value that is not allowed"),
            Self::BadProtocolHeader => f.write_str("no AMQP protocol header"),
            Self::BadFrameHeader => f.write_str("size or data offset of a frame is wrong"),
            Self::FrameTooLarge => f.write_str("a frame is larger than allowed"),
            Self::UnknownFrameType(kind) => write!(f, "unknown frame type {kind}"),
            Self::SectionOrder => f.write_str("a message section is out of order"),
        }
    }
}

impl core::error::Error for DecodeError {}
