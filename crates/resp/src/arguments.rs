//! The arguments of one command, read by place.

use alloc::sync::Arc;
use alloc::vec::Vec;

use model::{Database, End, Nanos, OneOrMany, QueueName, parse_integer};

use crate::cursors::Place;
use crate::fault::Fault;
use crate::interpreter::Interpreter;
use crate::key_names::{name_of, topic_of};
use crate::number::{NoTimeout, parse_double, parse_timeout};
use crate::scripts::{self, Scripts};
use crate::shared::{ListenerState, Side};
use crate::words::Words;

/// A command's words with the means to understand them. The name is at place 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments<'a> {
    words: &'a Words,
    shared: &'a ListenerState,
    database: Database,
}

impl<'a> Arguments<'a> {
    /// Its keys are those of this database.
    pub(crate) const fn new(
        words: &'a Words,
        shared: &'a ListenerState,
        database: Database,
    ) -> Self {
        Self { words, shared, database }
    }

    /// The database that the client has selected.
    pub(crate) const fn database(&self) -> Database {
        self.database
    }

    pub(crate) const fn shared(&self) -> &'a ListenerState {
        self.shared
    }

    /// The scripts that clients have brought.
    pub(crate) const fn scripts(&self) -> &'a Scripts {
        &self.shared.scripts
    }

    /// The interpreter of scripts, if there is one.
    pub(crate) fn interpreter(&self) -> Result<Arc<dyn Interpreter>, Fault> {
        self.shared.scripts.interpreter.clone().ok_or(scripts::OFF)
    }

    /// How many words there are, with the name.
    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    pub(crate) fn word(&self, at: usize) -> &'a [u8] {
        self.words.word(at)
    }

    /// The words from one place on.
    pub(crate) fn from(&self, at: usize) -> impl Iterator<Item = &'a [u8]> {
        self.words.from(at)
    }

    /// True if that word is this one, in letters of any size. `word` is in lower case.
    pub(crate) fn is(&self, at: usize, word: &str) -> bool {
        self.words.is(at, word)
    }

    pub(crate) fn element(&self, at: usize) -> Arc<[u8]> {
        self.word(at).into()
    }

    pub(crate) fn elements(&self, from: usize) -> OneOrMany<Arc<[u8]>> {
        self.from(from).map(Arc::from).collect()
    }

    pub(crate) fn key(&self, at: usize) -> Result<QueueName, Fault> {
        self.shared.familiar.key(self.database, self.word(at))
    }

    pub(crate) fn keys(&self, from: usize) -> Result<Vec<QueueName>, Fault> {
        self.from(from).map(|word| key(self.database, word)).collect()
    }

    /// So many keys from one place on.
    pub(crate) fn some_keys(&self, from: usize, count: usize) -> Result<Vec<QueueName>, Fault> {
        self.from(from).take(count).map(|word| key(self.database, word)).collect()
    }

    /// The same key of another database.
    pub(crate) fn key_in(&self, database: Database, at: usize) -> Result<QueueName, Fault> {
        key(database, self.word(at))
    }

    /// The topic of a channel.
    pub(crate) fn topic(&self, at: usize) -> Result<QueueName, Fault> {
        topic(self.word(at))
    }

    /// The topics of all channels from one place on.
    pub(crate) fn topics(&self, from: usize) -> Result<Vec<QueueName>, Fault> {
        self.from(from).map(topic).collect()
    }

    /// The database of this number.
    pub(crate) fn database_at(&self, at: usize) -> Result<Database, Fault> {
        self.shared.options.database(self.word(at), None)
    }

    /// A glob.
    pub(crate) fn pattern(&self, at: usize) -> Result<&'a [u8], Fault> {
        pattern(self.word(at))
    }

    pub(crate) fn integer(&self, at: usize) -> Result<i64, Fault> {
        parse_integer(self.word(at)).ok_or(Fault::NOT_INTEGER)
    }

    /// A number that is not negative.
    pub(crate) fn count(&self, at: usize) -> Result<u64, Fault> {
        let count = parse_integer(self.word(at)).and_then(|count| u64::try_from(count).ok());
        count.ok_or(Fault::NOT_POSITIVE)
    }

    /// A number with a fraction; infinity is one.
    pub(crate) fn double(&self, at: usize) -> Result<f64, Fault> {
        parse_double(self.word(at)).ok_or(Fault::NOT_FLOAT)
    }

    /// A number by chance.
    pub(crate) fn chance(&self) -> u64 {
        self.shared.chance.draw()
    }

    /// How long to wait, in seconds; zero is for ever.
    pub(crate) fn timeout(&self, at: usize) -> Result<Option<Nanos>, Fault> {
        let wait = parse_timeout(self.word(at)).map_err(|error| {
            Fault::of(match error {
                NoTimeout::NotAFloat => "ERR timeout is not a float or out of range",
                NoTimeout::Negative => "ERR timeout is negative",
                NoTimeout::OutOfRange => "ERR timeout is out of range",
            })
        })?;
        Ok(Some(wait).filter(|wait| *wait != Nanos::ZERO))
    }

    /// The name from which a cursor of SCAN goes on; 0 is the beginning.
    pub(crate) fn cursor(&self, at: usize) -> Result<Option<QueueName>, Fault> {
        match self.place(at)? {
            None => Ok(None),
            Some(Place::Key(name)) => Ok(Some(name.clone())),
            Some(Place::Field(_)) => Err(Fault::CURSOR),
        }
    }

    /// The same of the field from which one of HSCAN, SSCAN or ZSCAN goes on.
    pub(crate) fn field_cursor(&self, at: usize) -> Result<Option<Arc<[u8]>>, Fault> {
        match self.place(at)? {
            None => Ok(None),
            Some(Place::Field(field)) => Ok(Some(Arc::clone(field))),
            Some(Place::Key(_)) => Err(Fault::CURSOR),
        }
    }

    fn place(&self, at: usize) -> Result<Option<&'a Place>, Fault> {
        match parse_integer(self.word(at)).and_then(|number| u64::try_from(number).ok()) {
            Some(0) => Ok(None),
            Some(number) => self.shared.cursors.find(number).map(Some).ok_or(Fault::CURSOR),
            None => Err(Fault::CURSOR),
        }
    }

    /// LEFT or RIGHT.
    pub(crate) fn end(&self, at: usize) -> Result<End, Fault> {
        match () {
            () if self.is(at, "left") => Ok(self.side(Side::Left)),
            () if self.is(at, "right") => Ok(self.side(Side::Right)),
            () => Err(Fault::SYNTAX),
        }
    }

    /// Which end of a queue that side is.
    pub(crate) fn side(&self, side: Side) -> End {
        if self.shared.options.list_head == side { End::Head } else { End::Tail }
    }
}

/// The name of a key of this database.
pub(crate) fn key(database: Database, word: &[u8]) -> Result<QueueName, Fault> {
    name_of(database, word).ok_or(Fault::KEY)
}

/// The name of a channel's topic, or of a pattern of such names.
pub(crate) fn topic(word: &[u8]) -> Result<QueueName, Fault> {
    topic_of(word).ok_or(Fault::CHANNEL)
}

/// A glob that is not so long that holding names against it would take too long.
pub(crate) fn pattern(word: &[u8]) -> Result<&[u8], Fault> {
    if word.len() > PATTERN_BYTES_MAX { Err(Fault::LONG_PATTERN) } else { Ok(word) }
}

/// Bytes of a pattern: each name may be held against all of it for each of its bytes.
pub(crate) const PATTERN_BYTES_MAX: usize = 1_024;
