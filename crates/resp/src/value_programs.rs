//! BITOP and LCS: results of several values.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use model::{KeyCommand, QueueName, Refusal, Reply, ScriptValue, SetRule, ValueDeadline, limits};

use crate::arguments::Arguments;
use crate::fault::Fault;
use crate::keys::QueryResult;
use crate::programs::{Commands, program};

/// Bytes of all values that one BITOP reads.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// The product of the lengths of the two values of one LCS.
const CELLS_MAX: usize = 4_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    And,
    Or,
    Xor,
    Not,
}

/// BITOP
pub(crate) fn combine_bits(arguments: Arguments<'_>) -> QueryResult {
    let operation = match () {
        () if arguments.is(1, "and") => Operation::And,
        () if arguments.is(1, "or") => Operation::Or,
        () if arguments.is(1, "xor") => Operation::Xor,
        () if arguments.is(1, "not") => Operation::Not,
        () => return Err(Fault::SYNTAX),
    };
    if operation == Operation::Not && arguments.len() != 4 {
        return Err(Fault::of("ERR BITOP NOT must be called with a single source key."));
    }
    if arguments.len() - 3 > limits::BATCH_COMMANDS_MAX {
        return Err(Fault::of("ERR BITOP combines 10000 values at most here"));
    }
    let (to, from) = (arguments.key(2)?, arguments.keys(3)?);
    Ok(program(move |commands| {
        let mut values = Vec::new();
        let mut bytes = 0;
        for name in &from {
            let value = value_of(name, commands)?;
            bytes += value.len();
            if bytes > BYTES_MAX {
                return Err(Fault::of("ERR BITOP reads 16777216 bytes at most here"));
            }
            values.push(value);
        }
        let result = operation.of(&values);
        let count = result.len() as i64;
        if result.is_empty() {
            commands.ask(KeyCommand::Delete { names: vec![to.clone()] })?;
        } else {
            commands.ask(set(to.clone(), result.into()))?;
        }
        Ok(ScriptValue::Integer(count))
    }))
}

fn set(name: QueueName, value: Arc<[u8]>) -> KeyCommand {
    let (deadline, rule) = (ValueDeadline::Never, SetRule::Always);
    KeyCommand::SetValue { name, value, deadline, rule, want_old: false }
}

/// The bytes of a value; none if there is no such key.
fn value_of(name: &QueueName, commands: &mut Commands<'_>) -> Result<Arc<[u8]>, Fault> {
    match commands.ask(KeyCommand::Value { name: name.clone(), take: false })? {
        Reply::Value(value) => Ok(value.unwrap_or_default()),
        _ => Err(Fault::INTERNAL),
    }
}

impl Operation {
    /// As long as the longest, with zeros behind the others.
    fn of(self, values: &[Arc<[u8]>]) -> Vec<u8> {
        let longest = values.iter().map(|value| value.len()).max().unwrap_or(0);
        let mut values = values.iter();
        let mut result = values.next().map_or(Vec::new(), |value| value.to_vec());
        result.resize(longest, 0);
        if self == Self::Not {
            result.iter_mut().for_each(|byte| *byte = !*byte);
        }
        for value in values {
            let (common, rest) = result.split_at_mut(value.len());
            let pairs = common.iter_mut().zip(value.iter());
            match self {
                Self::And => {
                    pairs.for_each(|(byte, other)| *byte &= other);
                    rest.fill(0);
                }
                Self::Or => pairs.for_each(|(byte, other)| *byte |= other),
                Self::Xor | Self::Not => pairs.for_each(|(byte, other)| *byte ^= other),
            }
        }
        result
    }
}

/// The answer that LCS is to give.
#[derive(Clone, Copy, Debug, Default)]
struct Wanted {
    length: bool,
    matches: bool,
    with_lengths: bool,
    /// Shorter matches are not told.
    least: i64,
}

/// LCS
pub(crate) fn common_subsequence(arguments: Arguments<'_>) -> QueryResult {
    let wanted = Wanted::parse(arguments)?;
    let names = [arguments.key(1)?, arguments.key(2)?];
    Ok(program(move |commands| {
        let [one, other] = names.each_ref().map(|name| match value_of(name, commands) {
            Err(fault) if fault == Fault::refused(&Refusal::WrongKind) => {
                Err(Fault::of("ERR The specified keys must contain string values"))
            }
            value => value,
        });
        let (one, other) = (one?, other?);
        if (one.len() + 1).saturating_mul(other.len() + 1) > CELLS_MAX {
            return Err(Fault::of(
                "ERR the strings are too long for LCS: the product of their lengths is 4000000 at \
                 most here",
            ));
        }
        Ok(wanted.told(&Table::of(&one, &other)))
    }))
}

impl Wanted {
    fn parse(arguments: Arguments<'_>) -> Result<Self, Fault> {
        let (mut wanted, mut at) = (Self::default(), 3);
        while at < arguments.len() {
            match () {
                () if arguments.is(at, "idx") => wanted.matches = true,
                () if arguments.is(at, "len") => wanted.length = true,
                () if arguments.is(at, "withmatchlen") => wanted.with_lengths = true,
                () if arguments.is(at, "minmatchlen") && at + 1 < arguments.len() => {
                    at += 1;
                    wanted.least = arguments.integer(at)?;
                }
                () => return Err(Fault::SYNTAX),
            }
            at += 1;
        }
        if wanted.length && wanted.matches {
            return Err(Fault::of(
                "ERR If you want both the length and indexes, please just use IDX.",
            ));
        }
        Ok(wanted)
    }

    fn told(self, table: &Table<'_>) -> ScriptValue {
        let length =
            || ScriptValue::Integer(i64::from(table.at(table.one.len(), table.other.len())));
        if self.length {
            return length();
        }
        let (sequence, matches) = table.walk();
        if !self.matches {
            return ScriptValue::Bulk(sequence);
        }
        let is_told = |it: &&Match| self.least <= 0 || it.length as i64 >= self.least;
        let matches = matches.iter().filter(is_told).map(|it| it.told(self.with_lengths));
        let text = |text: &str| ScriptValue::Bulk(text.as_bytes().to_vec());
        let matches = ScriptValue::Array(matches.collect());
        ScriptValue::Map(vec![(text("matches"), matches), (text("len"), length())])
    }
}

/// The lengths of the longest common subsequences of all beginnings of two values.
struct Table<'v> {
    one: &'v [u8],
    other: &'v [u8],
    cells: Vec<u32>,
}

/// Equal parts of two values.
struct Match {
    one: usize,
    other: usize,
    length: usize,
}

impl Match {
    fn told(&self, with_length: bool) -> ScriptValue {
        let number = |number: usize| ScriptValue::Integer(number as i64);
        let range =
            |first: usize| ScriptValue::Array(vec![number(first), number(first + self.length - 1)]);
        let mut told = vec![range(self.one), range(self.other)];
        told.extend(with_length.then(|| number(self.length)));
        ScriptValue::Array(told)
    }
}

impl<'v> Table<'v> {
    fn of(one: &'v [u8], other: &'v [u8]) -> Self {
        let width = other.len() + 1;
        let mut cells = vec![0_u32; width];
        cells.reserve_exact(one.len() * width);
        for byte in one {
            let above = cells.len() - width;
            cells.push(0);
            let mut left = 0;
            for (at, theirs) in other.iter().enumerate() {
                let cell = |at: usize| cells.get(above + at).copied().unwrap_or(0);
                left = if byte == theirs { cell(at) + 1 } else { left.max(cell(at + 1)) };
                cells.push(left);
            }
        }
        Self { one, other, cells }
    }

    fn at(&self, one: usize, other: usize) -> u32 {
        self.cells.get(one * (self.other.len() + 1) + other).copied().unwrap_or(0)
    }

    /// The subsequence, and the matches that it has, the last first, as Redis finds them.
    fn walk(&self) -> (Vec<u8>, Vec<Match>) {
        let (mut i, mut j) = (self.one.len(), self.other.len());
        let (mut sequence, mut matches): (Vec<u8>, Vec<Match>) = (Vec::new(), Vec::new());
        let mut is_open = false;
        while let Some((one, other)) = i.checked_sub(1).zip(j.checked_sub(1)) {
            let byte = self.one.get(one).copied().unwrap_or_default();
            if self.other.get(other) == Some(&byte) {
                sequence.push(byte);
                match matches.last_mut().filter(|last| is_open && last.one == i && last.other == j)
                {
                    Some(last) => {
                        (last.one, last.other) = (one, other);
                        last.length += 1;
                    }
                    None => matches.push(Match { one, other, length: 1 }),
                }
                is_open = true;
                (i, j) = (one, other);
            } else {
                if self.at(one, j) > self.at(i, other) {
                    i = one;
                } else {
                    j = other;
                }
                is_open = false;
            }
        }
        sequence.reverse();
        (sequence, matches)
    }
}
