//! The named limits of the codec: how much a peer may make us hold, walk or recurse into.
//!
//! Each is checked on the claimed size or count, before anything is allocated or walked.

/// Bytes that every peer accepts in one frame: MIN-MAX-FRAME-SIZE (2.8.19). A smaller
/// `max-frame-size` in an open is refused.
pub const FRAME_BYTES_MIN: u32 = 512;

/// Bytes of a frame before the peer's open was read, SASL included. The specification asks for 512
/// (2.4.1, 5.3.1); clients with long properties or tokens send more.
pub const FRAME_BYTES_BEFORE_OPEN_MAX: u32 = 4096;

/// Bytes of a delivery tag (2.8.7).
pub const DELIVERY_TAG_BYTES_MAX: usize = 32;

/// Lists, maps, arrays and described values inside one another.
pub const NESTING_MAX: u32 = 32;

/// Elements without bytes, such as null, of the arrays in one frame or message: nothing else bounds
/// them. The bytes of an array are passed over at once, for any count.
pub const EMPTY_ELEMENTS_MAX: u32 = 1024;

/// Elements of lists, maps and arrays in all sections of a message that a producer sends, but for
/// the body, which the broker does not look into. Each is looked at while all other clients wait.
pub const SECTION_ELEMENTS_MAX: u32 = 65_536;

/// Sections that make the body of a message that a producer sends.
pub const BODY_SECTIONS_MAX: u32 = 1_024;

/// Symbols in one field, such as capabilities or outcomes.
pub const SYMBOLS_MAX: u32 = 128;

/// Application properties of a message that a producer sends. A selector looks through all of them
/// for each name in it, while all other clients wait.
pub const APPLICATION_PROPERTIES_MAX: usize = 1024;
