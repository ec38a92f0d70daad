//! Replies that name bodies which left memory, until these are back.
//!
//! A reply waits here, and behind it, in their order, all others of its session, unless that lets
//! them overtake. The frames that are needed are pinned, so that they stay where they are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use model::{Away, Formats, Lsn, MessageId, Output, Reply, SessionId};

/// Who waits for which bodies.
#[derive(Debug, Default)]
pub(crate) struct Returning {
    sessions: BTreeMap<SessionId, VecDeque<Output>>,
    needs: BTreeMap<(Lsn, MessageId), BTreeSet<SessionId>>,
    /// Frames in the order in which they were asked for; some may have come since.
    asked: VecDeque<Lsn>,
    /// Sessions that tell replies apart by themselves.
    overtaking: BTreeSet<SessionId>,
    /// All sessions stand in one line.
    in_order: bool,
}

impl Returning {
    /// Later replies of this session need not wait for earlier ones.
    pub(crate) fn let_overtake(&mut self, session: SessionId) {
        self.overtaking.insert(session);
    }

    /// No reply of any session overtakes another.
    pub(crate) fn keep_order(&mut self) {
        self.in_order = true;
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Keeps a reply that has to wait and gives back any other. `pin` is told of each frame that
    /// is needed anew.
    pub(crate) fn hold(&mut self, mut output: Output, mut pin: impl FnMut(Lsn)) -> Option<Output> {
        let session = if self.in_order { EVERYBODY } else { output.session };
        let away = away_in(&mut output.reply);
        let is_behind = self.sessions.contains_key(&session) && !self.overtaking.contains(&session);
        if away.is_empty() && !is_behind {
            return Some(output);
        }
        for Away { lsn, message, .. } in away {
            let waiting = self.needs.entry((lsn, message)).or_default();
            if waiting.is_empty() {
                pin(lsn);
                self.asked.push_back(lsn);
            }
            waiting.insert(session);
        }
        self.sessions.entry(session).or_default().push_back(output);
        None
    }

    /// The frame that is to be fetched next.
    pub(crate) fn next_frame(&mut self) -> Option<Lsn> {
        while let Some(lsn) = self.asked.front().copied() {
            if self.needed_of(lsn).next().is_some() {
                return Some(lsn);
            }
            self.asked.pop_front();
        }
        None
    }

    /// Whose bodies are needed of a frame.
    pub(crate) fn needed_of(&self, lsn: Lsn) -> impl Iterator<Item = MessageId> {
        let all = (lsn, MessageId(0))..=(lsn, MessageId(u64::MAX));
        self.needs.range(all).map(|((_, message), _)| *message)
    }

    /// A body that was needed has come. Those go out that need no more.
    pub(crate) fn fill(
        &mut self,
        place: (Lsn, MessageId),
        body: &Arc<[u8]>,
        formats: &Formats,
        outputs: &mut Vec<Output>,
    ) {
        for session in self.needs.remove(&place).into_iter().flatten() {
            let Some(held) = self.sessions.get_mut(&session) else { continue };
            for output in held.iter_mut() {
                output.reply.each_shown(&mut |shows| {
                    if shows.body.away().is_some_and(|away| (away.lsn, away.message) == place) {
                        shows.fill(Arc::clone(body), formats);
                    }
                });
            }
            self.release(session, outputs);
        }
    }

    /// A session is gone, and what it was to be told. `unpin` is told of each frame that nobody
    /// needs any more.
    pub(crate) fn forget(&mut self, session: SessionId, mut unpin: impl FnMut(Lsn)) {
        self.overtaking.remove(&session);
        for mut output in self.sessions.remove(&session).unwrap_or_default() {
            for Away { lsn, message, .. } in away_in(&mut output.reply) {
                let Some(waiting) = self.needs.get_mut(&(lsn, message)) else { continue };
                waiting.remove(&session);
                if waiting.is_empty() {
                    self.needs.remove(&(lsn, message));
                    unpin(lsn);
                }
            }
        }
    }

    /// What a session is to be told and lacks nothing goes out: in its order, unless it lets
    /// replies overtake.
    fn release(&mut self, session: SessionId, outputs: &mut Vec<Output>) {
        let Some(held) = self.sessions.get_mut(&session) else { return };
        if self.overtaking.contains(&session) {
            let all = std::mem::take(held).into_iter();
            for mut output in all {
                if away_in(&mut output.reply).is_empty() {
                    outputs.push(output);
                } else {
                    held.push_back(output);
                }
            }
        } else {
            while let Some(mut output) = held.pop_front() {
                if !away_in(&mut output.reply).is_empty() {
                    held.push_front(output);
                    break;
                }
                outputs.push(output);
            }
        }
        if held.is_empty() {
            self.sessions.remove(&session);
        }
    }
}

/// Who stands in the one line.
const EVERYBODY: SessionId = SessionId(u64::MAX);

/// The bodies that a reply lacks.
fn away_in(reply: &mut Reply) -> Vec<Away> {
    let mut away = Vec::new();
    reply.each_shown(&mut |shows| away.extend(shows.body.away()));
    away
}
