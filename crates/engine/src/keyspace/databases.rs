//! The keys of each database, counted.

use alloc::vec::Vec;

use model::{Database, DatabaseStatistics, KeyKind, QueueName, Reply};

use crate::keyspace::Keyspace;
use crate::log::FrameWriter;
use crate::outcome::Outcome;
use crate::store::MessageStore;
use crate::store::timers::Timer;

/// A count for each database. Those behind the last that ever had one take no memory.
#[derive(Debug, Default)]
pub(crate) struct PerDatabase(Vec<u64>);

impl PerDatabase {
    /// The count of a database.
    pub(crate) fn of(&self, database: Database) -> u64 {
        self.0.get(database.number()).copied().unwrap_or(0)
    }

    /// One more of the database of this name.
    pub(crate) fn add_one(&mut self, name: &QueueName) {
        self.add(Database::of(name.as_str()));
    }

    /// One less of the database of this name.
    pub(crate) fn take_one(&mut self, name: &QueueName) {
        let count = self.0.get_mut(Database::of(name.as_str()).number());
        let count = count.filter(|count| **count > 0);
        *count.expect("invariant: it was counted when it came") -= 1;
    }

    fn add(&mut self, database: Database) {
        let number = database.number();
        if self.0.len() <= number {
            self.0.resize(number + 1, 0);
        }
        if let Some(count) = self.0.get_mut(number) {
            *count += 1;
        }
    }

    /// Verifies the counts.
    pub(crate) fn check(&self, all: impl Iterator<Item = Database>) {
        let mut counted = Self::default();
        all.for_each(|database| counted.add(database));
        for number in 0..self.0.len().max(counted.0.len()) {
            let count = |of: &Self| of.0.get(number).copied().unwrap_or(0);
            assert_eq!(count(self), count(&counted), "keys of database {number}");
        }
    }
}

/// Keys that are still there though their time is over.
#[derive(Debug, Default)]
struct Ended {
    /// Values.
    values: PerDatabase,
    /// Lists of the same names, which are keys now.
    shown: PerDatabase,
    /// Lists that no value hides.
    lists: PerDatabase,
    /// All lists.
    limited_lists: PerDatabase,
}

impl Keyspace {
    /// How many keys a database has, or all have. Keys beyond their time that are still there are
    /// looked through.
    #[inline(never)]
    pub(crate) fn count_keys(
        &self,
        database: Option<Database>,
        store: &mut MessageStore,
        log: &FrameWriter,
    ) -> Outcome {
        let ended = self.ended_keys(store);
        let count = match database {
            Some(database) => self.keys_of(database, &ended),
            None => databases().map(|database| self.keys_of(database, &ended)).sum(),
        };
        Outcome::reply(log.after_all(), Reply::Count(count))
    }

    /// How many keys each database has.
    #[inline(never)]
    pub(crate) fn count_each(&self, store: &mut MessageStore, log: &FrameWriter) -> Outcome {
        store.took_steps(databases().count());
        let ended = self.ended_keys(store);
        let all = databases().map(|database| {
            let values = self.values.limited_of(database) - ended.values.of(database);
            let lists = self.limited_lists.of(database) - ended.limited_lists.of(database);
            let keys = self.keys_of(database, &ended);
            DatabaseStatistics { database, keys, limited: values + lists }
        });
        let all = all.filter(|statistics| statistics.keys > 0).collect();
        Outcome::reply(log.after_all(), Reply::Databases(all))
    }

    /// True if a database has a list, though it may be hidden; if any has one where none is given.
    pub(crate) fn has_lists(&self, database: Option<Database>) -> bool {
        let has = |database| self.lists.of(database) + self.hidden_lists.of(database) > 0;
        database.is_none_or(has)
    }

    /// How many lists of a database no value hides.
    pub(crate) fn lists_of(&self, database: Database) -> u64 {
        self.lists.of(database)
    }

    fn keys_of(&self, database: Database, ended: &Ended) -> u64 {
        let values = self.values.len_of(Some(database)) as u64 - ended.values.of(database);
        let lists = self.lists.of(database) + ended.shown.of(database);
        values + lists - ended.lists.of(database)
    }

    fn ended_keys(&self, store: &mut MessageStore) -> Ended {
        let (mut ended, mut steps) = (Ended::default(), 0);
        for name in self.values.due(store.latest) {
            steps += 1;
            ended.values.add_one(&name);
            if self.kind_of(&name, store) == Some(KeyKind::List) {
                ended.shown.add_one(&name);
            }
        }
        for timer in store.timers.due(store.latest) {
            steps += 1;
            let Timer::End(slot) = timer else { continue };
            let name = &store.queues.at(slot).name;
            ended.limited_lists.add_one(name);
            if !self.values.holds(name) {
                ended.lists.add_one(name);
            }
        }
        store.took_steps(steps);
        ended
    }
}

/// All that may have keys.
fn databases() -> impl Iterator<Item = Database> {
    (0..=Database::LAST.number()).filter_map(Database::new)
}
