//! Descriptors: which composite type a described value is (1.2).

use crate::types::code;

/// The name of a type in one of its two forms. Both mean the same and both are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descriptor<'a> {
    /// The numeric form, which we send.
    Code(u64),
    /// The symbolic form.
    Symbol(&'a str),
}

impl Descriptor<'_> {
    /// The numeric form of a type of the specification.
    pub fn code(&self) -> Option<u64> {
        match *self {
            Descriptor::Code(code) => Some(code),
            Descriptor::Symbol(symbol) => {
                NAMES.iter().find(|(_, name)| *name == symbol).map(|(code, _)| *code)
            }
        }
    }
}

/// True if `byte` may begin a descriptor.
pub(crate) fn is_descriptor(byte: u8) -> bool {
    matches!(
        byte,
        code::SMALL_ULONG | code::ULONG | code::ULONG_0 | code::SYMBOL_8 | code::SYMBOL_32
    )
}

macro_rules! descriptors {
    ($($constant:ident = $code:literal, $name:literal;)*) => {
        $(pub(crate) const $constant: u64 = $code;)*
        const NAMES: &[(u64, &str)] = &[$(($code, $name)),*];
    };
}

descriptors! {
    OPEN = 0x10, "amqp:open:list";
    BEGIN = 0x11, "amqp:begin:list";
    ATTACH = 0x12, "amqp:attach:list";
    FLOW = 0x13, "amqp:flow:list";
    TRANSFER = 0x14, "amqp:transfer:list";
    DISPOSITION = 0x15, "amqp:disposition:list";
    DETACH = 0x16, "amqp:detach:list";
    END = 0x17, "amqp:end:list";
    CLOSE = 0x18, "amqp:close:list";
    ERROR = 0x1d, "amqp:error:list";
    RECEIVED = 0x23, "amqp:received:list";
    ACCEPTED = 0x24, "amqp:accepted:list";
    REJECTED = 0x25, "amqp:rejected:list";
    RELEASED = 0x26, "amqp:released:list";
    MODIFIED = 0x27, "amqp:modified:list";
    SOURCE = 0x28, "amqp:source:list";
    TARGET = 0x29, "amqp:target:list";
    DELETE_ON_CLOSE = 0x2b, "amqp:delete-on-close:list";
    DELETE_ON_NO_LINKS = 0x2c, "amqp:delete-on-no-links:list";
    DELETE_ON_NO_MESSAGES = 0x2d, "amqp:delete-on-no-messages:list";
    DELETE_ON_NO_LINKS_OR_MESSAGES = 0x2e, "amqp:delete-on-no-links-or-messages:list";
    COORDINATOR = 0x30, "amqp:coordinator:list";
    DECLARE = 0x31, "amqp:declare:list";
    DISCHARGE = 0x32, "amqp:discharge:list";
    DECLARED = 0x33, "amqp:declared:list";
    TRANSACTIONAL_STATE = 0x34, "amqp:transactional-state:list";
    SASL_MECHANISMS = 0x40, "amqp:sasl-mechanisms:list";
    SASL_INIT = 0x41, "amqp:sasl-init:list";
    SASL_CHALLENGE = 0x42, "amqp:sasl-challenge:list";
    SASL_RESPONSE = 0x43, "amqp:sasl-response:list";
    SASL_OUTCOME = 0x44, "amqp:sasl-outcome:list";
    HEADER = 0x70, "amqp:header:list";
    DELIVERY_ANNOTATIONS = 0x71, "amqp:delivery-annotations:map";
    MESSAGE_ANNOTATIONS = 0x72, "amqp:message-annotations:map";
    PROPERTIES = 0x73, "amqp:properties:list";
    APPLICATION_PROPERTIES = 0x74, "amqp:application-properties:map";
    DATA = 0x75, "amqp:data:binary";
    AMQP_SEQUENCE = 0x76, "amqp:amqp-sequence:list";
    AMQP_VALUE = 0x77, "amqp:amqp-value:*";
    FOOTER = 0x78, "amqp:footer:map";
}
