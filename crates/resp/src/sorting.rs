//! SORT and SORT_RO: elements in the order of numbers or texts, their own or those of other keys.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

use model::{
    CollectionCommand, CollectionKind, Command, Database, Element, End, KeyCommand, KeyKind,
    ListCommand, OneOrMany, Persistence, QueueName, Refusal, Reply, ScriptValue, limits,
};

use crate::arguments::Arguments;
use crate::fault::Fault;
use crate::key_names::name_of;
use crate::keys::QueryResult;
use crate::number::parse_weight;
use crate::programs::{Commands, program};
use crate::shared::Side;

/// Elements that one command sorts.
const ELEMENTS_MAX: u64 = 20_000;

/// Values of other keys that it looks at.
const LOOKUPS_MAX: usize = 20_000;

/// Bytes of a field that are looked at in the time of one value.
const FIELD_BYTES_PER_LOOKUP: usize = 256;

/// Names of one question for values.
const NAMES_PER_QUESTION: usize = 1_000;

type Bytes = Arc<[u8]>;

/// The wishes of one command.
#[derive(Debug)]
struct Sort {
    key: QueueName,
    database: Database,
    /// The first end of a list.
    first: End,
    by: Option<Pattern>,
    gets: Vec<Pattern>,
    limit: (i64, i64),
    descending: bool,
    alpha: bool,
    store: Option<QueueName>,
    /// Bytes of the answer.
    bytes_max: usize,
}

/// The place of another key's value: `*` stands for the element.
#[derive(Debug)]
enum Pattern {
    /// The element itself.
    Element,
    /// No place: there is no `*`.
    Nothing,
    /// A value.
    Key(Vec<u8>, Vec<u8>),
    /// The field of a hash.
    Field(Vec<u8>, Vec<u8>, Bytes),
}

/// An element, and its place in the order.
struct Sorted {
    element: Bytes,
    number: f64,
    text: Option<Bytes>,
}

/// SORT, or SORT_RO, which stores nothing.
pub(crate) fn sort(arguments: Arguments<'_>, may_store: bool) -> QueryResult {
    let sort = Sort::parse(arguments, may_store)?;
    Ok(program(move |commands| sort.run(commands)))
}

impl Sort {
    fn parse(arguments: Arguments<'_>, may_store: bool) -> Result<Self, Fault> {
        let mut sort = Self {
            key: arguments.key(1)?,
            database: arguments.database(),
            first: arguments.side(Side::Left),
            by: None,
            gets: Vec::new(),
            limit: (0, -1),
            descending: false,
            alpha: false,
            store: None,
            bytes_max: arguments.shared().options.reply_bytes_max,
        };
        let mut at = 2;
        while at < arguments.len() {
            let left = arguments.len() - at - 1;
            match () {
                () if arguments.is(at, "asc") => sort.descending = false,
                () if arguments.is(at, "desc") => sort.descending = true,
                () if arguments.is(at, "alpha") => sort.alpha = true,
                () if arguments.is(at, "limit") && left >= 2 => {
                    sort.limit = (arguments.integer(at + 1)?, arguments.integer(at + 2)?);
                    at += 2;
                }
                () if may_store && arguments.is(at, "store") && left >= 1 => {
                    sort.store = Some(arguments.key(at + 1)?);
                    at += 1;
                }
                () if arguments.is(at, "by") && left >= 1 => {
                    sort.by = Some(Pattern::read(arguments.word(at + 1)));
                    at += 1;
                }
                () if arguments.is(at, "get") && left >= 1 => {
                    sort.gets.push(Pattern::read(arguments.word(at + 1)));
                    at += 1;
                }
                () => return Err(Fault::SYNTAX),
            }
            at += 1;
        }
        Ok(sort)
    }

    fn run(&self, commands: &mut Commands<'_>) -> Result<ScriptValue, Fault> {
        let (kind, elements) = self.elements(commands)?;
        let is_sorted = !matches!(self.by, Some(Pattern::Nothing | Pattern::Element));
        let (first, end) = self.range(elements.len());
        let by = self.by.as_ref().map_or(0, |by| elements.len().saturating_mul(by.lookups()));
        let each = self.gets.iter().map(Pattern::lookups).fold(0, usize::saturating_add);
        if by.saturating_add(each.saturating_mul(end - first)) > LOOKUPS_MAX {
            return Err(Fault::of("ERR SORT looks at 20000 values of other keys at most here"));
        }
        let elements = match (is_sorted, kind) {
            (true, _) => self.sorted(elements, self.by.as_ref(), self.alpha, commands)?,
            // As in Redis: what is stored of a set is in an order.
            (false, Some(KeyKind::Set)) if self.store.is_some() => {
                self.sorted(elements, None, true, commands)?
            }
            (false, Some(KeyKind::Set)) => elements,
            (false, _) if self.descending => elements.into_iter().rev().collect(),
            (false, _) => elements,
        };
        let chosen = elements.get(first..end).unwrap_or_default();
        let told = self.told(chosen, commands)?;
        if told.iter().flatten().map(|bytes| bytes.len()).sum::<usize>() > self.bytes_max {
            return Err(Fault::refused(&Refusal::TooManyBytes { max: self.bytes_max }));
        }
        match &self.store {
            Some(to) => self.store(to, told, commands),
            None => Ok(ScriptValue::Array(told.into_iter().map(value).collect())),
        }
    }

    /// The places of the elements that are asked for.
    fn range(&self, length: usize) -> (usize, usize) {
        let most = length as i64;
        let first = self.limit.0.clamp(0, most);
        let count = self.limit.1.clamp(-1, most);
        let end = if count < 0 { most } else { (first + count).min(most) };
        (first as usize, end.max(first) as usize)
    }

    /// The elements of the key, in their order.
    fn elements(
        &self,
        commands: &mut Commands<'_>,
    ) -> Result<(Option<KeyKind>, Vec<Bytes>), Fault> {
        let name = || self.key.clone();
        let kind = match commands.ask(KeyCommand::Kind { name: name() })? {
            Reply::Kind(kind) => kind,
            _ => return Err(Fault::INTERNAL),
        };
        let collection = match kind {
            None => return Ok((None, Vec::new())),
            Some(KeyKind::List) => {
                check_count(commands.count(ListCommand::Length { queue: name() })?)?;
                let (origin, first, last) = (self.first, 0, -1);
                let range = ListCommand::Range { queue: name(), origin, first, last };
                let elements = match commands.ask(range)? {
                    Reply::Elements(elements) => elements,
                    Reply::NotFound => return Ok((kind, Vec::new())),
                    _ => return Err(Fault::INTERNAL),
                };
                let elements = elements.iter().map(|it| Arc::from(Element::payload(it)));
                return Ok((kind, elements.collect()));
            }
            Some(KeyKind::Set) => CollectionKind::Set,
            Some(KeyKind::SortedSet) => CollectionKind::SortedSet,
            Some(KeyKind::Value | KeyKind::Hash | KeyKind::Stream) => {
                return Err(Fault::refused(&Refusal::WrongKind));
            }
        };
        let count = CollectionCommand::CountFields { name: name(), kind: collection };
        check_count(commands.count(count)?)?;
        let show = CollectionCommand::ShowFields { name: name(), kind: collection };
        match commands.ask(show)? {
            Reply::Entries(entries) => Ok((kind, entries.fields.iter().map(Arc::from).collect())),
            _ => Err(Fault::INTERNAL),
        }
    }

    fn sorted(
        &self,
        elements: Vec<Bytes>,
        by: Option<&Pattern>,
        alpha: bool,
        commands: &mut Commands<'_>,
    ) -> Result<Vec<Bytes>, Fault> {
        let weights: Vec<Option<Bytes>> = match by {
            Some(by) => self.find(by, &elements, commands)?,
            None => elements.iter().cloned().map(Some).collect(),
        };
        let mut all = Vec::with_capacity(elements.len());
        for (element, weight) in elements.into_iter().zip(weights) {
            let number = match &weight {
                Some(weight) if !alpha => parse_weight(weight)
                    .ok_or(Fault::of("ERR One or more scores can't be converted into double"))?,
                _ => 0.0,
            };
            all.push(Sorted { element, number, text: weight });
        }
        let order = |one: &Sorted, other: &Sorted| {
            let order = if alpha {
                one.text.cmp(&other.text)
            } else {
                let numbers = one.number.partial_cmp(&other.number).unwrap_or(Ordering::Equal);
                numbers.then_with(|| one.element.cmp(&other.element))
            };
            if self.descending { order.reverse() } else { order }
        };
        all.sort_by(order);
        Ok(all.into_iter().map(|it| it.element).collect())
    }

    /// The answer: the elements, or what stands at the places of each.
    fn told(
        &self,
        elements: &[Bytes],
        commands: &mut Commands<'_>,
    ) -> Result<Vec<Option<Bytes>>, Fault> {
        if self.gets.is_empty() {
            return Ok(elements.iter().cloned().map(Some).collect());
        }
        let columns = self.gets.iter().map(|get| self.find(get, elements, commands));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let row = |at: usize| columns.iter().map(move |column| column.get(at).cloned().flatten());
        Ok((0..elements.len()).flat_map(row).collect())
    }

    fn store(
        &self,
        to: &QueueName,
        told: Vec<Option<Bytes>>,
        commands: &mut Commands<'_>,
    ) -> Result<ScriptValue, Fault> {
        let count = told.len() as i64;
        let mut all = vec![Command::Key(KeyCommand::Delete { names: vec![to.clone()] })];
        if !told.is_empty() {
            all.push(Command::List(ListCommand::Push {
                queue: to.clone(),
                end: self.first.opposite(),
                elements: OneOrMany::Many(
                    told.into_iter().map(Option::unwrap_or_default).collect(),
                ),
                only_existing: false,
                persistence: Persistence::Persistent,
            }));
        }
        commands.ask_all(all)?;
        Ok(ScriptValue::Integer(count))
    }

    /// The values at this place, one for each of these elements.
    fn find(
        &self,
        pattern: &Pattern,
        elements: &[Bytes],
        commands: &mut Commands<'_>,
    ) -> Result<Vec<Option<Bytes>>, Fault> {
        let name = |before: &[u8], element: &[u8], behind: &[u8]| {
            // No key is so long: not even the text of it is made.
            let bytes = before.len() + element.len() + behind.len();
            if bytes > limits::QUEUE_NAME_BYTES_MAX {
                return None;
            }
            name_of(self.database, &[before, element, behind].concat())
        };
        match pattern {
            Pattern::Element => Ok(elements.iter().cloned().map(Some).collect()),
            Pattern::Nothing => Ok(vec![None; elements.len()]),
            Pattern::Key(before, behind) => {
                let names = elements.iter().map(|element| name(before, element, behind));
                values_of(&names.collect::<Vec<_>>(), commands)
            }
            Pattern::Field(before, behind, field) => {
                let names = elements.iter().map(|element| name(before, element, behind));
                names.map(|name| field_of(name, field, commands)).collect()
            }
        }
    }
}

impl Pattern {
    /// How many values it counts for beside each element: a long field is compared for long.
    fn lookups(&self) -> usize {
        match self {
            Self::Field(_, _, field) => 1 + field.len() / FIELD_BYTES_PER_LOOKUP,
            Self::Element | Self::Nothing | Self::Key(..) => 1,
        }
    }

    /// As Redis reads it, up to a NUL.
    fn read(word: &[u8]) -> Self {
        if word == b"#" {
            return Self::Element;
        }
        let text = word.split(|byte| *byte == 0).next().unwrap_or_default();
        let Some(star) = text.iter().position(|byte| *byte == b'*') else { return Self::Nothing };
        let (before, behind) = word.split_at(star);
        let behind = behind.get(1..).unwrap_or_default();
        let arrow = behind.windows(2).position(|pair| pair == b"->");
        match arrow.and_then(|at| Some((behind.get(..at)?, behind.get(at + 2..)?))) {
            Some((key, field)) if !field.is_empty() => {
                Self::Field(before.to_vec(), key.to_vec(), field.into())
            }
            _ => Self::Key(before.to_vec(), behind.to_vec()),
        }
    }
}

fn check_count(count: u64) -> Result<(), Fault> {
    if count > ELEMENTS_MAX {
        return Err(Fault::of("ERR SORT sorts 20000 elements at most here"));
    }
    Ok(())
}

fn value(bytes: Option<Bytes>) -> ScriptValue {
    bytes.map_or(ScriptValue::Null, |bytes| ScriptValue::Bulk(bytes.to_vec()))
}

/// The values of these names; nothing for one that is no name, or that of another kind of key.
fn values_of(
    names: &[Option<QueueName>],
    commands: &mut Commands<'_>,
) -> Result<Vec<Option<Bytes>>, Fault> {
    let all: Vec<QueueName> = names.iter().flatten().cloned().collect();
    let mut found = Vec::with_capacity(all.len());
    for part in all.chunks(NAMES_PER_QUESTION) {
        let mut left = part.to_vec();
        while !left.is_empty() {
            let Reply::Values(values) = commands.ask(KeyCommand::ValueEach { names: left })? else {
                return Err(Fault::INTERNAL);
            };
            found.extend(values.found.into_iter().map(|value| value.ok().flatten()));
            left = values.rest;
        }
    }
    let mut found = found.into_iter();
    Ok(names.iter().map(|name| name.as_ref().and_then(|_| found.next().flatten())).collect())
}

fn field_of(
    name: Option<QueueName>,
    field: &Bytes,
    commands: &mut Commands<'_>,
) -> Result<Option<Bytes>, Fault> {
    let Some(name) = name else { return Ok(None) };
    let fields = OneOrMany::One(Arc::clone(field));
    let kind = CollectionKind::Hash;
    match commands.ask(CollectionCommand::FindFields { name, kind, fields }) {
        Ok(Reply::Value(value)) => Ok(value),
        Ok(_) => Err(Fault::INTERNAL),
        Err(fault) if fault == Fault::refused(&Refusal::WrongKind) => Ok(None),
        Err(fault) => Err(fault),
    }
}
