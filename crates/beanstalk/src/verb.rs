//! The command words, how a line is recognised, and how often each was given.

/// A command. Those that `stats` shows come first, in the order of its `cmd-` keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Put,
    Peek,
    PeekReady,
    PeekDelayed,
    PeekBuried,
    Reserve,
    ReserveWithTimeout,
    Delete,
    Release,
    Use,
    Watch,
    Ignore,
    Bury,
    Kick,
    Touch,
    Stats,
    StatsJob,
    StatsTube,
    ListTubes,
    ListTubeUsed,
    ListTubesWatched,
    PauseTube,
    ReserveJob,
    KickJob,
    Quit,
}

/// The words that begin a line, in the order of trying: `reserve` matches every line that begins so
/// and is nothing longer. A space at the end belongs to the word: without it the word is unknown.
const WORDS: [(&[u8], Verb); 25] = [
    (b"put ", Verb::Put),
    (b"peek ", Verb::Peek),
    (b"peek-ready", Verb::PeekReady),
    (b"peek-delayed", Verb::PeekDelayed),
    (b"peek-buried", Verb::PeekBuried),
    (b"reserve-with-timeout ", Verb::ReserveWithTimeout),
    (b"reserve-job ", Verb::ReserveJob),
    (b"reserve", Verb::Reserve),
    (b"delete ", Verb::Delete),
    (b"release ", Verb::Release),
    (b"bury ", Verb::Bury),
    (b"kick ", Verb::Kick),
    (b"kick-job ", Verb::KickJob),
    (b"touch ", Verb::Touch),
    (b"stats-job ", Verb::StatsJob),
    (b"stats-tube ", Verb::StatsTube),
    (b"stats", Verb::Stats),
    (b"use ", Verb::Use),
    (b"watch ", Verb::Watch),
    (b"ignore ", Verb::Ignore),
    (b"list-tubes-watched", Verb::ListTubesWatched),
    (b"list-tube-used", Verb::ListTubeUsed),
    (b"list-tubes", Verb::ListTubes),
    (b"quit", Verb::Quit),
    (b"pause-tube", Verb::PauseTube),
];

impl Verb {
    /// The command that a line gives, and the rest behind the word.
    pub(crate) fn of(line: &[u8]) -> Option<(Self, &[u8])> {
        WORDS.iter().find_map(|(word, verb)| Some((*verb, line.strip_prefix(*word)?)))
    }
}

/// The keys of `stats` for the first verbs, in their order.
const COUNT_KEYS: [&str; 22] = [
    "cmd-put",
    "cmd-peek",
    "cmd-peek-ready",
    "cmd-peek-delayed",
    "cmd-peek-buried",
    "cmd-reserve",
    "cmd-reserve-with-timeout",
    "cmd-delete",
    "cmd-release",
    "cmd-use",
    "cmd-watch",
    "cmd-ignore",
    "cmd-bury",
    "cmd-kick",
    "cmd-touch",
    "cmd-stats",
    "cmd-stats-job",
    "cmd-stats-tube",
    "cmd-list-tubes",
    "cmd-list-tube-used",
    "cmd-list-tubes-watched",
    "cmd-pause-tube",
];

const _: () = assert!(Verb::PauseTube as usize + 1 == COUNT_KEYS.len(), "a key for each verb");

/// How many well-formed commands were given, by verb. The last three verbs are not shown by
/// `stats` and not counted.
#[derive(Debug, Default)]
pub(crate) struct Counts([u64; COUNT_KEYS.len()]);

impl Counts {
    /// One more.
    pub(crate) fn count(&mut self, verb: Verb) {
        if let Some(count) = self.0.get_mut(verb as usize) {
            *count += 1;
        }
    }

    /// Each count with its key in `stats`.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'static str, u64)> {
        COUNT_KEYS.into_iter().zip(self.0)
    }
}
