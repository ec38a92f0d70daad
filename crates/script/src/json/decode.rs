//! Reads JSON.

use mlua::{Lua, Value};

use super::DEPTH_MAX;
use super::settings::Values;
use crate::budget::Budget;
use crate::native::Refusal;
use crate::number;

/// The value that a text says. A byte of zero ends the text, as in C.
pub(crate) fn decode(
    lua: &Lua,
    text: &[u8],
    settings: Values,
    budget: &Budget,
) -> Result<Value, Refusal> {
    if text.len() >= 2 && text.iter().take(2).any(|byte| *byte == 0) {
        return Err("JSON parser does not support UTF-16 or UTF-32".into());
    }
    let mut decoder = Decoder { lua, text, settings, budget, place: 0, token_place: 0 };
    let first = decoder.token()?;
    let value = decoder.value(first, 0)?;
    match decoder.token()? {
        Token::End => Ok(value),
        token => Err(decoder.unexpected("the end", &token)),
    }
}

struct Decoder<'d> {
    lua: &'d Lua,
    text: &'d [u8],
    settings: Values,
    budget: &'d Budget,
    place: usize,
    /// The place at which the last token begins, or at which it is wrong.
    token_place: usize,
}

enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    Comma,
    Colon,
    End,
    String(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Wrong(&'static str),
}

impl Token {
    fn name(&self) -> &'static str {
        match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ArrayBegin => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::Comma => "T_COMMA",
            Self::Colon => "T_COLON",
            Self::End => "T_END",
            Self::String(_) => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Boolean(_) => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::Wrong(reason) => reason,
        }
    }
}

impl Decoder<'_> {
    fn value(&mut self, token: Token, depth: usize) -> Result<Value, Refusal> {
        Ok(match token {
            Token::String(bytes) => Value::String(self.lua.create_string(bytes)?),
            Token::Number(number) => Value::Number(number),
            Token::Boolean(is) => Value::Boolean(is),
            Token::Null => Value::NULL,
            Token::ObjectBegin => self.object(depth + 1)?,
            Token::ArrayBegin => self.array(depth + 1)?,
            token => return Err(self.unexpected("value", &token)),
        })
    }

    fn descend(&self, depth: usize) -> Result<(), Refusal> {
        if depth <= self.settings.decode_depth.min(DEPTH_MAX) {
            return Ok(());
        }
        let place = self.place;
        Err(format!("Found too many nested data structures ({depth}) at character {place}").into())
    }

    fn object(&mut self, depth: usize) -> Result<Value, Refusal> {
        self.descend(depth)?;
        let table = self.lua.create_table()?;
        let mut token = self.token()?;
        if matches!(token, Token::ObjectEnd) {
            return Ok(Value::Table(table));
        }
        loop {
            let Token::String(key) = token else {
                return Err(self.unexpected("object key string", &token));
            };
            let colon = self.token()?;
            if !matches!(colon, Token::Colon) {
                return Err(self.unexpected("colon", &colon));
            }
            let first = self.token()?;
            table.raw_set(self.lua.create_string(key)?, self.value(first, depth)?)?;
            match self.token()? {
                Token::ObjectEnd => return Ok(Value::Table(table)),
                Token::Comma => token = self.token()?,
                other => return Err(self.unexpected("comma or object end", &other)),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, Refusal> {
        self.descend(depth)?;
        let table = self.lua.create_table()?;
        let mut token = self.token()?;
        if matches!(token, Token::ArrayEnd) {
            return Ok(Value::Table(table));
        }
        for place in 1.. {
            table.raw_seti(place, self.value(token, depth)?)?;
            match self.token()? {
                Token::ArrayEnd => break,
                Token::Comma => token = self.token()?,
                other => return Err(self.unexpected("comma or array end", &other)),
            }
        }
        Ok(Value::Table(table))
    }

    fn unexpected(&self, expected: &str, found: &Token) -> Refusal {
        let place = self.token_place + 1;
        Refusal::Text(format!(
            "Expected {expected} but found {} at character {place}",
            found.name()
        ))
    }

    fn byte(&self, place: usize) -> u8 {
        self.text.get(place).copied().unwrap_or(0)
    }

    fn rest(&self) -> &[u8] {
        self.text.get(self.place..).unwrap_or_default()
    }

    fn token(&mut self) -> Result<Token, Refusal> {
        self.budget.take(0)?;
        while matches!(self.byte(self.place), b' ' | b'\t' | b'\n' | b'\r') {
            self.place += 1;
        }
        self.token_place = self.place;
        let mark = match self.byte(self.place) {
            0 => return Ok(Token::End),
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b',' => Token::Comma,
            b':' => Token::Colon,
            b'"' => return Ok(self.string()),
            _ => return Ok(self.word()),
        };
        self.place += 1;
        Ok(mark)
    }

    /// A number, or one of three words.
    fn word(&mut self) -> Token {
        let words = [
            (&b"true"[..], Token::Boolean(true)),
            (b"false", Token::Boolean(false)),
            (b"null", Token::Null),
        ];
        for (word, token) in words {
            if self.rest().starts_with(word) {
                self.place += word.len();
                return token;
            }
        }
        let first = self.byte(self.place);
        let is_plain = first == b'-' || first.is_ascii_digit();
        match (is_plain, is_invalid_number(self.rest())) {
            (true, true) if !self.settings.decode_invalid => Token::Wrong("invalid number"),
            (true, _) => self.number(),
            (false, true) if self.settings.decode_invalid => self.number(),
            _ => Token::Wrong("invalid token"),
        }
    }

    fn number(&mut self) -> Token {
        match number::leading(self.rest()) {
            Some((number, length)) => {
                self.place += length;
                Token::Number(number)
            }
            None => Token::Wrong("invalid number"),
        }
    }

    fn string(&mut self) -> Token {
        self.place += 1;
        let mut bytes = Vec::new();
        loop {
            match self.byte(self.place) {
                b'"' => break,
                0 => return self.wrong("unexpected end of string"),
                b'\\' if self.byte(self.place + 1) == b'u' => {
                    let Some((letter, length)) = self.unicode_escape() else {
                        return self.wrong("invalid unicode escape code");
                    };
                    push_letter(letter, &mut bytes);
                    self.place += length;
                }
                b'\\' => {
                    let Some(byte) = unescaped(self.byte(self.place + 1)) else {
                        return self.wrong("invalid escape code");
                    };
                    bytes.push(byte);
                    self.place += 2;
                }
                byte => {
                    bytes.push(byte);
                    self.place += 1;
                }
            }
        }
        self.place += 1;
        Token::String(bytes)
    }

    fn wrong(&mut self, reason: &'static str) -> Token {
        self.token_place = self.place;
        Token::Wrong(reason)
    }

    /// The letter that an escape at this place says, and how long the escape is.
    fn unicode_escape(&self) -> Option<(u32, usize)> {
        let first = self.hexadecimal(self.place + 2)?;
        if first & 0xf800 != 0xd800 {
            return Some((first, 6));
        }
        let has_second = self.byte(self.place + 6) == b'\\' && self.byte(self.place + 7) == b'u';
        if first & 0x400 != 0 || !has_second {
            return None;
        }
        let second = self.hexadecimal(self.place + 8).filter(|low| low & 0xfc00 == 0xdc00)?;
        Some(((((first & 0x3ff) << 10) | (second & 0x3ff)) + 0x1_0000, 12))
    }

    fn hexadecimal(&self, place: usize) -> Option<u32> {
        let digits = self.text.get(place..place + 4)?;
        digits.iter().try_fold(0, |sum, digit| Some(sum * 16 + char::from(*digit).to_digit(16)?))
    }
}

/// True if C takes it for a number, and JSON does not.
fn is_invalid_number(text: &[u8]) -> bool {
    let (text, is_plus) = match text.first() {
        Some(b'+') => (text, true),
        Some(b'-') => (text.get(1..).unwrap_or_default(), false),
        _ => (text, false),
    };
    let second = text.get(1).copied().unwrap_or(0);
    match text.first() {
        _ if is_plus => true,
        Some(b'0') => second.eq_ignore_ascii_case(&b'x') || second.is_ascii_digit(),
        Some(byte) if *byte > b'9' => text.get(..3).is_some_and(|word| {
            [b"inf", b"nan"].iter().any(|name| word.eq_ignore_ascii_case(*name))
        }),
        _ => false,
    }
}

fn unescaped(letter: u8) -> Option<u8> {
    Some(match letter {
        b'"' | b'\\' | b'/' => letter,
        b'b' => 8,
        b't' => b'\t',
        b'n' => b'\n',
        b'f' => 12,
        b'r' => b'\r',
        _ => return None,
    })
}

fn push_letter(letter: u32, bytes: &mut Vec<u8>) {
    let letter = char::from_u32(letter).unwrap_or(char::REPLACEMENT_CHARACTER);
    bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
}
