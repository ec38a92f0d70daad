//! The highest costs of a selector. Each has a tested refusal; docs/reference/limits.md lists them.

/// Bytes of a selector's text.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Parentheses, signs and NOTs within one another. The parser calls itself for each.
pub const DEPTH_MAX: usize = 128;

/// Values that wait for their operator at once while a selector is evaluated. Chains such as
/// `a + b + c` or `a OR b OR c` keep two; only nesting to the right keeps more.
pub const OPERANDS_MAX: usize = 128;

/// Steps of a parsed selector: one for each literal, identifier and operator. It bounds the cost of
/// one message; a long list of strings is better given to IN, which is one step.
pub const STEPS_MAX: usize = 4_096;

/// Characters between two `%` of a LIKE pattern when one of them is `_`: the bits of one word, by
/// which such a run is searched for in one pass.
pub const WILD_RUN_CHARS_MAX: usize = 64;
