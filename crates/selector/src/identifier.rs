//! Which characters an identifier is made of: Java's letters and digits, as far as the core
//! library knows Unicode.
//!
//! Unicode's alphabetic characters are Java's letters and a few signs more; control characters,
//! which Java ignores inside identifiers, are refused.

/// True if an identifier may begin so: a letter, a currency sign, a connector.
pub(crate) fn is_start(c: char) -> bool {
    c.is_ascii_alphabetic()
        || matches!(c, '_' | '$')
        || (!c.is_ascii() && (c.is_alphabetic() || is_currency(c) || is_connector(c)))
}

/// True if an identifier may go on so: also a digit, a combining mark.
pub(crate) fn is_part(c: char) -> bool {
    is_start(c) || c.is_ascii_digit() || (!c.is_ascii() && (c.is_numeric() || is_mark(c)))
}

fn is_currency(c: char) -> bool {
    matches!(c,
        '\u{a2}'..='\u{a5}' | '\u{58f}' | '\u{60b}' | '\u{9f2}' | '\u{9f3}' | '\u{9fb}'
        | '\u{af1}' | '\u{bf9}' | '\u{e3f}' | '\u{17db}' | '\u{20a0}'..='\u{20c0}' | '\u{a838}'
        | '\u{fdfc}' | '\u{fe69}' | '\u{ff04}' | '\u{ffe0}' | '\u{ffe1}' | '\u{ffe5}' | '\u{ffe6}')
}

fn is_connector(c: char) -> bool {
    matches!(
        c,
        '\u{203f}' | '\u{2040}' | '\u{2054}' | '\u{fe33}' | '\u{fe34}' | '\u{fe4d}'
            ..='\u{fe4f}' | '\u{ff3f}'
    )
}

/// The marks that belong to no single script; those of scripts count as alphabetic, but for the
/// signs that silence a vowel.
fn is_mark(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{487}' | '\u{93c}' | '\u{94d}' | '\u{9bc}'
        | '\u{9cd}' | '\u{a3c}' | '\u{a4d}' | '\u{acd}' | '\u{bcd}' | '\u{c4d}' | '\u{ccd}'
        | '\u{d4d}' | '\u{dca}' | '\u{e47}'..='\u{e4e}' | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20dc}' | '\u{3099}' | '\u{309a}'
        | '\u{fe20}'..='\u{fe2f}')
}
