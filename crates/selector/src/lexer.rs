//! Text into tokens, one at a time: section 3.8.1.1.

use crate::error::{ParseError, Reason};
use crate::identifier;
use crate::number::{self, Number};

/// A token of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Token<'t> {
    /// A property or header field.
    Name(&'t str),
    /// The same as it is written between double quotes: `""` still stands for `"`.
    Quoted(&'t str),
    /// A reserved word.
    Word(Word),
    /// A string as it is written between its quotes: `''` still stands for `'`.
    String(&'t str),
    Number(Number),
    Symbol(Symbol),
    End,
}

/// The words that no identifier may be, in any case of their letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    And,
    Between,
    Escape,
    False,
    In,
    Is,
    Like,
    Not,
    Null,
    Or,
    True,
}

const WORDS: [(&str, Word); 11] = [
    ("AND", Word::And),
    ("BETWEEN", Word::Between),
    ("ESCAPE", Word::Escape),
    ("FALSE", Word::False),
    ("IN", Word::In),
    ("IS", Word::Is),
    ("LIKE", Word::Like),
    ("NOT", Word::Not),
    ("NULL", Word::Null),
    ("OR", Word::Or),
    ("TRUE", Word::True),
];

/// Operators and punctuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbol {
    NotEqual,
    LessOrEqual,
    GreaterOrEqual,
    Equal,
    Less,
    Greater,
    Plus,
    Minus,
    Star,
    Slash,
    Open,
    Close,
    Comma,
}

/// The longer ones first: `<>` begins as `<` does.
const SYMBOLS: [(&str, Symbol); 13] = [
    ("<>", Symbol::NotEqual),
    ("<=", Symbol::LessOrEqual),
    (">=", Symbol::GreaterOrEqual),
    ("=", Symbol::Equal),
    ("<", Symbol::Less),
    (">", Symbol::Greater),
    ("+", Symbol::Plus),
    ("-", Symbol::Minus),
    ("*", Symbol::Star),
    ("/", Symbol::Slash),
    ("(", Symbol::Open),
    (")", Symbol::Close),
    (",", Symbol::Comma),
];

/// A token and where it stands, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed<'t> {
    pub(crate) token: Token<'t>,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Reads a text from its beginning to its end.
#[derive(Debug)]
pub(crate) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Lexer { text, at: 0 }
    }

    /// The next token; [`Token::End`] from the end on.
    pub(crate) fn poll_token(&mut self) -> Result<Placed<'t>, ParseError> {
        self.take_while(is_space);
        let start = self.at;
        let token = self.token().map_err(|reason| ParseError::new(self.text, start, reason))?;
        Ok(Placed { token, start, end: self.at })
    }

    fn token(&mut self) -> Result<Token<'t>, Reason> {
        let mut ahead = self.rest().chars();
        let Some(first) = ahead.next() else { return Ok(Token::End) };
        match first {
            '\'' => self.quoted('\'', Reason::OpenString).map(Token::String),
            '"' => match self.quoted('"', Reason::OpenName)? {
                "" => Err(Reason::EmptyName),
                name => Ok(Token::Quoted(name)),
            },
            '.' if ahead.next().is_some_and(|c| c.is_ascii_digit()) => self.number(),
            _ if first.is_ascii_digit() => self.number(),
            _ if identifier::is_start(first) => Ok(self.word()),
            _ => self.symbol(first),
        }
    }

    /// The text between two of these quotes, of which one that is doubled is a part of it.
    fn quoted(&mut self, quote: char, open: Reason) -> Result<&'t str, Reason> {
        self.at += 1;
        let start = self.at;
        loop {
            let Some(length) = self.rest().find(quote) else { return Err(open) };
            let end = self.at + length;
            self.at = end + 1;
            if !self.rest().starts_with(quote) {
                return Ok(self.text.get(start..end).unwrap_or_default());
            }
            self.at += 1;
        }
    }

    fn number(&mut self) -> Result<Token<'t>, Reason> {
        let (number, length) = number::scan(self.rest())?;
        self.at += length;
        Ok(Token::Number(number))
    }

    fn word(&mut self) -> Token<'t> {
        let name = self.take_while(identifier::is_part);
        let word = WORDS.into_iter().find(|(word, _)| name.eq_ignore_ascii_case(word));
        word.map_or(Token::Name(name), |(_, word)| Token::Word(word))
    }

    fn symbol(&mut self, first: char) -> Result<Token<'t>, Reason> {
        let rest = self.rest();
        let found = SYMBOLS.into_iter().find(|(written, _)| rest.starts_with(written));
        let (written, symbol) = found.ok_or(Reason::Character(first))?;
        self.at += written.len();
        Ok(Token::Symbol(symbol))
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn take_while(&mut self, wanted: fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }
}

/// White space is Java's: space, tab, form feed and line ends.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\x0c' | '\r' | '\n')
}
