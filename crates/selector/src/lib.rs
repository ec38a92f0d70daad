//! Message selectors: the conditional expressions of Jakarta Messaging 3.1, section 3.8, by which a
//! consumer says which messages it wants.
//!
//! Pure: text in, [`Selector`] out; a message as a [`PropertySource`] in, yes or no out. It knows
//! no message, no queue and no protocol, keeps no state, and its cost is bounded by [`limits`]. A
//! selector is parsed once into a short program; matching runs each step of it at most once,
//! allocates nothing and calls itself nowhere.
//!
//! ```
//! # use selector::{PropertySource, Selector, PropertyValue};
//! struct Order;
//! impl PropertySource for Order {
//!     fn property(&self, name: &str) -> PropertyValue<'_> {
//!         match name {
//!             "colour" => PropertyValue::String("blue"),
//!             "weight" => PropertyValue::Integer(2501),
//!             _ => PropertyValue::Null,
//!         }
//!     }
//! }
//! let selector = Selector::parse("colour = 'blue' AND weight BETWEEN 2500 AND 3000")?;
//! assert!(selector.matches(&Order));
//! # Ok::<(), selector::ParseError>(())
//! ```
//!
//! # Points that the specification leaves open, or others do otherwise
//!
//! * An empty text, or one of white space, is no selector (3.8.1): it matches everything.
//! * NULL operands make a comparison unknown. Values of unlike types compare false under *every*
//!   operator, `<>` among them (3.8.1.2): `'1' <> 1` is false and `NOT ('1' = 1)` is true.
//!   ActiveMQ and Artemis take `<>` for `NOT =`.
//! * Strings and booleans know only `=` and `<>`; another comparison of two strings is false, and
//!   is refused if a literal shows it.
//! * `x NOT IN …` and `x NOT LIKE …` are `NOT (x IN …)` and `NOT (x LIKE …)`. For a value that is
//!   no string, IN is unknown and LIKE false, as in ActiveMQ and Qpid. So `x NOT LIKE …` is true
//!   for a number, `x NOT IN …` is not. `x NOT BETWEEN a AND b` is `x < a OR x > b`.
//! * A value that is no boolean is unknown as an operand of AND, OR and NOT, and does not match.
//! * Integers have 64 bits and divide as in Java, towards zero: 7 / 2 is 3, as in Open MQ.
//!   ActiveMQ, Artemis and Qpid make it 3.5. A result beyond 64 bits goes on as an approximate
//!   number; nothing wraps. Arithmetic with a value that is no number, and division by zero, exact
//!   or not, is unknown. An integer meets an approximate number as a double.
//! * NaN equals nothing and differs from everything, as in Java.
//! * NULL stands only behind IS. IN lists strings. LIKE, IN and IS NULL take any value on
//!   their left, not only an identifier. Comparisons do not chain: `a < b < c` is refused.
//! * `NOT a = b` is `NOT (a = b)`. There are no comments, and no `%` or `!=`.
//! * A name of any characters stands in double quotes, as in SQL: `"order-id" = 5`. `""` stands for
//!   one of them. Without quotes `order-id` is a difference. The right side of `=` or `<>` is no
//!   such name, unless in parentheses: the author of `colour = "blue"` means a string.
//! * `_` stands for one Unicode character. A pattern may not end with its escape character; before
//!   any other character than `%`, `_` and itself that is taken for nothing special.
//! * Any identifier is asked of [`PropertySource`], header fields among them, also those that the
//!   specification excludes (JMSDestination, JMSReplyTo, JMSExpiration, JMSRedelivered). A name
//!   reserved for JMS that JMS does not define is refused, unless it is quoted. So is a comparison
//!   of a header field with a value it never holds: `JMSPriority = 'high'`, `JMSDeliveryMode = 2`.
#![no_std]

extern crate alloc;

mod draft;
mod error;
mod field;
mod identifier;
mod lexer;
pub mod limits;
mod number;
mod operators;
mod parser;
mod pattern;
mod program;
mod selector;
mod value;

pub use error::{ParseError, Reason};
pub use model::PropertyValue;
pub use selector::Selector;
pub use value::PropertySource;
