//! Tokens into a program, by recursive descent: one function for each level of precedence.
//!
//! ```text
//! disjunction = conjunction { OR conjunction }
//! conjunction = negation { AND negation }
//! negation    = NOT negation | predicate
//! predicate   = sum [ ( = | <> | < | <= | > | >= ) sum
//!                   | [NOT] BETWEEN sum AND sum
//!                   | [NOT] IN ( string {, string} )
//!                   | [NOT] LIKE string [ESCAPE string]
//!                   | IS [NOT] NULL ]
//! sum         = product { ( + | - ) product }
//! product     = sign { ( * | / ) sign }
//! sign        = ( + | - ) sign | operand
//! operand     = string | number | TRUE | FALSE | identifier | "name" | ( disjunction )
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::draft::{Draft, unquote};
use crate::error::{ParseError, Reason};
use crate::field::{self, Kind};
use crate::lexer::{Lexer, Placed, Symbol, Token, Word};
use crate::limits;
use crate::number::Number;
use crate::operators::{Arithmetic, Comparison};
use crate::pattern::Pattern;
use crate::program::{Program, Step};

type Result<T> = core::result::Result<T, ParseError>;

/// The check of header fields against their possible values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fields {
    Checked,
    Unchecked,
}

/// An expression that has been read: its type, its form and its start.
#[derive(Clone, Copy, Debug)]
struct Operand<'t> {
    kind: Kind,
    term: Term<'t>,
    start: usize,
}

/// The form of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Term<'t> {
    /// A header field or property, by its name as it is written.
    Name(&'t str),
    /// A literal string as it is written.
    String(&'t str),
    Other,
}

/// The differences between AND and OR.
struct Connective<'t> {
    word: Word,
    step: Step,
    /// The value that decides alone.
    decisive: bool,
    operand: fn(&mut Parser<'t>) -> Result<Operand<'t>>,
}

struct Parser<'t> {
    text: &'t str,
    lexer: Lexer<'t>,
    /// The next token, not yet taken.
    next: Placed<'t>,
    depth: usize,
    draft: Draft<'t>,
    fields: Fields,
}

/// How many characters of an unexpected token an error shows.
const SHOWN_CHARS: usize = 20;

/// The program of a selector.
pub(crate) fn parse(text: &str, fields: Fields) -> Result<Program> {
    if text.len() > limits::TEXT_BYTES_MAX {
        return Err(ParseError::new(text, 0, Reason::TextTooLong));
    }
    let mut lexer = Lexer::new(text);
    let next = lexer.poll_token()?;
    let mut parser = Parser { text, lexer, next, depth: 0, draft: Draft::default(), fields };
    parser.selector()?;
    Ok(parser.draft.finish())
}

impl Operand<'_> {
    fn new(kind: Kind, start: usize) -> Self {
        Operand { kind, term: Term::Other, start }
    }
}

impl<'t> Parser<'t> {
    /// Nothing, which matches everything, or a condition.
    fn selector(&mut self) -> Result<()> {
        if self.next.token == Token::End {
            return self.push(Step::Boolean(true));
        }
        let whole = self.disjunction()?;
        if self.next.token != Token::End {
            return Err(self.expected("an operator or the end"));
        }
        self.require(whole, Kind::Boolean)
    }

    fn disjunction(&mut self) -> Result<Operand<'t>> {
        self.chain(&Connective {
            word: Word::Or,
            step: Step::Or,
            decisive: true,
            operand: Self::conjunction,
        })
    }

    fn conjunction(&mut self) -> Result<Operand<'t>> {
        self.chain(&Connective {
            word: Word::And,
            step: Step::And,
            decisive: false,
            operand: Self::negation,
        })
    }

    /// Operands with the same connective between them. One that decides skips all that follow.
    fn chain(&mut self, connective: &Connective<'t>) -> Result<Operand<'t>> {
        let mut left = (connective.operand)(self)?;
        let mut skips = Vec::new();
        while self.take(Token::Word(connective.word))? {
            self.require(left, Kind::Boolean)?;
            let skip = self.draft.push_skip(connective.decisive);
            skips.push(skip.map_err(|reason| self.refused(reason))?);
            let right = (connective.operand)(self)?;
            self.require(right, Kind::Boolean)?;
            self.push(connective.step)?;
            left = Operand::new(Kind::Boolean, left.start);
        }
        self.draft.land(skips);
        Ok(left)
    }

    fn negation(&mut self) -> Result<Operand<'t>> {
        let start = self.next.start;
        if !self.take(Token::Word(Word::Not))? {
            return self.predicate();
        }
        let operand = self.nested(Self::negation)?;
        self.require(operand, Kind::Boolean)?;
        self.push(Step::Not)?;
        Ok(Operand::new(Kind::Boolean, start))
    }

    fn predicate(&mut self) -> Result<Operand<'t>> {
        let left = self.sum()?;
        if let Some(comparison) = comparison(self.next.token) {
            self.advance()?;
            self.comparison(left, comparison)?;
        } else if self.take(Token::Word(Word::Is))? {
            self.is_null()?;
        } else {
            let negated = self.take(Token::Word(Word::Not))?;
            if self.take(Token::Word(Word::Between))? {
                self.between(left, negated)?;
            } else if self.take(Token::Word(Word::In))? {
                self.is_in(left)?;
                self.negate_if(negated)?;
            } else if self.take(Token::Word(Word::Like))? {
                self.like(left)?;
                self.negate_if(negated)?;
            } else if negated {
                return Err(self.expected("BETWEEN, IN or LIKE after NOT"));
            } else {
                return Ok(left);
            }
        }
        Ok(Operand::new(Kind::Boolean, left.start))
    }

    fn comparison(&mut self, left: Operand<'t>, comparison: Comparison) -> Result<()> {
        let is_quoted = matches!(self.next.token, Token::Quoted(_));
        let right = self.sum()?;
        if is_quoted && matches!(right.term, Term::Name(_)) && !comparison.orders() {
            return Err(ParseError::new(self.text, right.start, Reason::QuotedOperand));
        }
        if comparison.orders() {
            self.require(left, Kind::Number)?;
            self.require(right, Kind::Number)?;
        }
        self.check_field(left, right)?;
        self.check_field(right, left)?;
        self.push(Step::Compare(comparison))
    }

    /// Refuses to compare a header field with a value that it never has.
    fn check_field(&self, field: Operand<'t>, other: Operand<'t>) -> Result<()> {
        let Term::Name(name) = field.term else { return Ok(()) };
        if field.kind != Kind::Any {
            self.require(other, field.kind)?;
        }
        match other.term {
            Term::String(text) => self.check_mode(name, text, other.start),
            _ => Ok(()),
        }
    }

    /// Refuses to hold a field against the text of a literal that it never is.
    fn check_mode(&self, name: &str, text: &str, start: usize) -> Result<()> {
        let is_checked = name == field::DELIVERY_MODE && self.fields == Fields::Checked;
        if is_checked && !field::is_delivery_mode(text) {
            return Err(ParseError::new(self.text, start, Reason::NoDeliveryMode));
        }
        Ok(())
    }

    fn is_null(&mut self) -> Result<()> {
        let negated = self.take(Token::Word(Word::Not))?;
        if !self.take(Token::Word(Word::Null))? {
            return Err(self.expected("NULL or NOT NULL after IS"));
        }
        self.push(Step::IsNull)?;
        self.negate_if(negated)
    }

    fn between(&mut self, value: Operand<'t>, negated: bool) -> Result<()> {
        let low = self.sum()?;
        if !self.take(Token::Word(Word::And))? {
            return Err(self.expected("AND between the bounds of BETWEEN"));
        }
        let high = self.sum()?;
        for operand in [value, low, high] {
            self.require(operand, Kind::Number)?;
        }
        self.push(if negated { Step::Outside } else { Step::Between })
    }

    fn is_in(&mut self, value: Operand<'t>) -> Result<()> {
        self.require(value, Kind::String)?;
        if !self.take(Token::Symbol(Symbol::Open))? {
            return Err(self.expected("( after IN"));
        }
        let mut list: Vec<Box<str>> = Vec::new();
        loop {
            let start = self.next.start;
            let text = self.string("a string")?;
            if let Term::Name(name) = value.term {
                self.check_mode(name, text, start)?;
            }
            list.push(unquote(text, '\'').into());
            if self.take(Token::Symbol(Symbol::Close))? {
                return self.draft.push_in(list).map_err(|reason| self.refused(reason));
            }
            if !self.take(Token::Symbol(Symbol::Comma))? {
                return Err(self.expected(", or ) after a string of IN"));
            }
        }
    }

    fn like(&mut self, value: Operand<'t>) -> Result<()> {
        self.require(value, Kind::String)?;
        let start = self.next.start;
        let pattern = unquote(self.string("a pattern in single quotes")?, '\'');
        let escape = self.escape()?;
        let pattern = Pattern::new(&pattern, escape)
            .map_err(|reason| ParseError::new(self.text, start, reason))?;
        self.draft.push_like(pattern).map_err(|reason| self.refused(reason))
    }

    fn escape(&mut self) -> Result<Option<char>> {
        if !self.take(Token::Word(Word::Escape))? {
            return Ok(None);
        }
        let start = self.next.start;
        let escape = unquote(self.string("a character in single quotes")?, '\'');
        let mut chars = escape.chars();
        match (chars.next(), chars.next()) {
            (Some(escape), None) => Ok(Some(escape)),
            _ => Err(ParseError::new(self.text, start, Reason::LongEscape)),
        }
    }

    fn negate_if(&mut self, negated: bool) -> Result<()> {
        if negated { self.push(Step::Not) } else { Ok(()) }
    }

    fn sum(&mut self) -> Result<Operand<'t>> {
        self.arithmetic(Self::product, |symbol| match symbol {
            Symbol::Plus => Some(Arithmetic::Add),
            Symbol::Minus => Some(Arithmetic::Subtract),
            _ => None,
        })
    }

    fn product(&mut self) -> Result<Operand<'t>> {
        self.arithmetic(Self::sign, |symbol| match symbol {
            Symbol::Star => Some(Arithmetic::Multiply),
            Symbol::Slash => Some(Arithmetic::Divide),
            _ => None,
        })
    }

    /// Operands with operators of one level between them, from left to right.
    fn arithmetic(
        &mut self,
        operand: fn(&mut Self) -> Result<Operand<'t>>,
        operator: fn(Symbol) -> Option<Arithmetic>,
    ) -> Result<Operand<'t>> {
        let mut left = operand(self)?;
        while let Token::Symbol(symbol) = self.next.token
            && let Some(operator) = operator(symbol)
        {
            self.advance()?;
            let right = operand(self)?;
            self.require(left, Kind::Number)?;
            self.require(right, Kind::Number)?;
            self.push(Step::Arithmetic(operator))?;
            left = Operand::new(Kind::Number, left.start);
        }
        Ok(left)
    }

    fn sign(&mut self) -> Result<Operand<'t>> {
        let start = self.next.start;
        let step = match self.next.token {
            Token::Symbol(Symbol::Plus) => Step::Plus,
            Token::Symbol(Symbol::Minus) => Step::Negate,
            _ => return self.operand(),
        };
        self.advance()?;
        // -9223372036854775808 is a number although 9223372036854775808 is none.
        if step == Step::Negate
            && let Token::Number(Number::Exact(value)) = self.next.token
        {
            self.integer(-value)?;
        } else {
            let operand = self.nested(Self::sign)?;
            self.require(operand, Kind::Number)?;
            self.push(step)?;
        }
        Ok(Operand::new(Kind::Number, start))
    }

    fn operand(&mut self) -> Result<Operand<'t>> {
        let start = self.next.start;
        let mut term = Term::Other;
        let kind = match self.next.token {
            Token::Symbol(Symbol::Open) => return self.parentheses(),
            Token::Number(Number::Exact(value)) => {
                self.integer(value)?;
                return Ok(Operand::new(Kind::Number, start));
            }
            Token::Number(Number::Approximate(value)) => {
                self.push(Step::Float(value))?;
                Kind::Number
            }
            Token::String(written) => {
                let pushed = self.draft.push_string(unquote(written, '\''));
                pushed.map_err(|reason| self.refused(reason))?;
                term = Term::String(written);
                Kind::String
            }
            Token::Name(name) | Token::Quoted(name) => {
                term = Term::Name(name);
                self.name(name)?
            }
            Token::Word(Word::True | Word::False) => {
                self.push(Step::Boolean(self.next.token == Token::Word(Word::True)))?;
                Kind::Boolean
            }
            _ => return Err(self.expected("an identifier, a literal or (")),
        };
        self.advance()?;
        Ok(Operand { kind, term, start })
    }

    /// Pushes the name that is next. A quoted one of any text may be a property's.
    fn name(&mut self, written: &'t str) -> Result<Kind> {
        let kind = field::kind_of(written).filter(|_| self.fields == Fields::Checked);
        let is_refused = kind.is_none()
            && self.fields == Fields::Checked
            && matches!(self.next.token, Token::Name(_));
        if is_refused {
            return Err(self.refused(Reason::UnknownField));
        }
        let pushed = self.draft.push_name(written);
        pushed.map_err(|reason| self.refused(reason))?;
        Ok(kind.unwrap_or(Kind::Any))
    }

    fn parentheses(&mut self) -> Result<Operand<'t>> {
        let start = self.next.start;
        self.advance()?;
        let within = self.nested(Self::disjunction)?;
        if !self.take(Token::Symbol(Symbol::Close))? {
            return Err(self.expected("an operator or )"));
        }
        Ok(Operand { start, ..within })
    }

    /// Pushes the exact number that is next, its sign applied.
    fn integer(&mut self, value: i128) -> Result<()> {
        let value = i64::try_from(value).map_err(|_| self.refused(Reason::NumberTooLarge))?;
        self.push(Step::Integer(value))?;
        self.advance()
    }

    /// Takes the string that is next.
    fn string(&mut self, wanted: &'static str) -> Result<&'t str> {
        let Token::String(written) = self.next.token else {
            return Err(self.expected(wanted));
        };
        self.advance()?;
        Ok(written)
    }

    /// Reads an expression one level deeper.
    fn nested(&mut self, read: fn(&mut Self) -> Result<Operand<'t>>) -> Result<Operand<'t>> {
        if self.depth == limits::DEPTH_MAX {
            return Err(self.refused(Reason::TooDeep));
        }
        self.depth += 1;
        let operand = read(self)?;
        self.depth -= 1;
        Ok(operand)
    }

    fn push(&mut self, step: Step) -> Result<()> {
        self.draft.push(step).map_err(|reason| self.refused(reason))
    }

    fn advance(&mut self) -> Result<()> {
        self.next = self.lexer.poll_token()?;
        Ok(())
    }

    /// Takes the next token if it is this one.
    fn take(&mut self, token: Token<'_>) -> Result<bool> {
        let takes = self.next.token == token;
        if takes {
            self.advance()?;
        }
        Ok(takes)
    }

    /// Refuses a value that is of another kind in every message.
    fn require(&self, operand: Operand<'t>, kind: Kind) -> Result<()> {
        if operand.kind == kind || operand.kind == Kind::Any {
            return Ok(());
        }
        let wanted = match kind {
            Kind::Boolean => "a condition",
            Kind::Number => "a number",
            Kind::String | Kind::Any => "a string",
        };
        Err(ParseError::new(self.text, operand.start, Reason::WrongType { wanted }))
    }

    /// The next token is not the expected one.
    fn expected(&self, wanted: &'static str) -> ParseError {
        let Placed { token, start, end } = self.next;
        let found = match token {
            Token::End => "the end".into(),
            _ => self.text.get(start..end).unwrap_or_default().chars().take(SHOWN_CHARS).collect(),
        };
        self.refused(Reason::Expected { wanted, found })
    }

    fn refused(&self, reason: Reason) -> ParseError {
        ParseError::new(self.text, self.next.start, reason)
    }
}

fn comparison(token: Token<'_>) -> Option<Comparison> {
    match token {
        Token::Symbol(Symbol::Equal) => Some(Comparison::Equal),
        Token::Symbol(Symbol::NotEqual) => Some(Comparison::NotEqual),
        Token::Symbol(Symbol::Less) => Some(Comparison::Less),
        Token::Symbol(Symbol::LessOrEqual) => Some(Comparison::LessOrEqual),
        Token::Symbol(Symbol::Greater) => Some(Comparison::Greater),
        Token::Symbol(Symbol::GreaterOrEqual) => Some(Comparison::GreaterOrEqual),
        _ => None,
    }
}
