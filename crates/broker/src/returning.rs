//! Replies that name bodies which left memory, until these are back.
//!
//! A reply waits here, and behind it, in their order, all others of its session, unless that lets
//! them overtake. The frames that are needed are pinned, so that they stay where they are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU64;
use std::sync::Arc;

use model::{BodyPlace, Lsn, MessageId, Output, PagedOut, Reply, SessionId};

/// The replies that wait for bodies.
#[derive(Debug, Default)]
pub(crate) struct Returning {
    /// The replies of each session, by the number in which they came.
    lines: BTreeMap<SessionId, BTreeMap<u64, Held>>,
    /// Which of these lack it.
    needs: BTreeMap<Place, BTreeSet<(SessionId, u64)>>,
    /// Frames in the order in which they were asked for; some may have come since.
    asked: VecDeque<Lsn>,
    /// The same of the spill.
    asked_of_spill: VecDeque<NonZeroU64>,
    /// Sessions that tell replies apart by themselves.
    overtaking: BTreeSet<SessionId>,
    /// All sessions stand in one line.
    in_order: bool,
    next: u64,
}

/// The place of a body.
type Place = (BodyPlace, MessageId);

/// A reply that waits. It gets its bodies once, when all are here: it may have thousands.
#[derive(Debug)]
struct Held {
    output: Output,
    lacks: usize,
    came: BTreeMap<Place, Arc<[u8]>>,
}

impl Held {
    fn is_whole(&self) -> bool {
        self.lacks == 0
    }

    fn take_in(&mut self, place: Place, body: &Arc<[u8]>) {
        let before = self.came.insert(place, Arc::clone(body));
        assert!(before.is_none(), "a body comes once");
        self.lacks -= 1;
    }

    /// The output that may go out now.
    fn into_output(mut self) -> Output {
        assert!(self.is_whole(), "a reply goes out with all its bodies");
        if !self.came.is_empty() {
            self.output.reply.each_shown(&mut |shows| {
                if let Some(paged_out) = shows.body.paged_out() {
                    let body = self.came.get(&place_of(&paged_out));
                    let body = body.expect("invariant: what a reply lacked has come");
                    shows.fill(Arc::clone(body));
                }
            });
        }
        self.output
    }
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

    /// True if nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Keeps a reply that has to wait and gives back any other. `pin` is told of each frame that
    /// is needed anew.
    pub(crate) fn hold(&mut self, mut output: Output, mut pin: impl FnMut(Lsn)) -> Option<Output> {
        let session = if self.in_order { EVERYBODY } else { output.session };
        let paged_out = paged_out_in(&mut output.reply);
        let is_behind = self.lines.contains_key(&session) && !self.overtaking.contains(&session);
        if paged_out.is_empty() && !is_behind {
            return Some(output);
        }
        let number = self.next;
        self.next += 1;
        let held = Held { output, lacks: paged_out.len(), came: BTreeMap::new() };
        for place in paged_out {
            let waiting = self.needs.entry(place).or_default();
            if waiting.is_empty() {
                match place.0 {
                    BodyPlace::Frame(lsn) => {
                        pin(lsn);
                        self.asked.push_back(lsn);
                    }
                    BodyPlace::Spill(place) => self.asked_of_spill.push_back(place),
                }
            }
            waiting.insert((session, number));
        }
        self.lines.entry(session).or_default().insert(number, held);
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

    /// The place in the spill of the body that is to be fetched next.
    pub(crate) fn next_spilled(&mut self) -> Option<NonZeroU64> {
        while let Some(place) = self.asked_of_spill.front().copied() {
            if self.lacks(BodyPlace::Spill(place)) {
                return Some(place);
            }
            self.asked_of_spill.pop_front();
        }
        None
    }

    /// Returns true if a reply needs the body at that place.
    pub(crate) fn lacks(&self, place: BodyPlace) -> bool {
        self.needed_at(place).next().is_some()
    }

    /// The messages of a frame with bodies that are needed.
    pub(crate) fn needed_of(&self, lsn: Lsn) -> impl Iterator<Item = MessageId> {
        self.needed_at(BodyPlace::Frame(lsn))
    }

    fn needed_at(&self, place: BodyPlace) -> impl Iterator<Item = MessageId> {
        let all = (place, MessageId(0))..=(place, MessageId(u64::MAX));
        self.needs.range(all).map(|((_, message), _)| *message)
    }

    /// The body at that place in the spill has come.
    pub(crate) fn fill_spilled(
        &mut self,
        place: NonZeroU64,
        body: &Arc<[u8]>,
        outputs: &mut Vec<Output>,
    ) {
        let place = BodyPlace::Spill(place);
        let message = self.needed_at(place).next();
        if let Some(message) = message {
            self.fill((place, message), body, outputs);
        }
    }

    /// A body that was needed has come. Those go out that need no more.
    pub(crate) fn fill(&mut self, place: Place, body: &Arc<[u8]>, outputs: &mut Vec<Output>) {
        for (session, number) in self.needs.remove(&place).into_iter().flatten() {
            let line = self.lines.get_mut(&session).and_then(|line| line.get_mut(&number));
            let held = line.expect("invariant: who needs a body stands in line");
            held.take_in(place, body);
            if held.is_whole() {
                self.release(session, number, outputs);
            }
        }
    }

    /// A session is gone, and its replies with it. Calls `unpin` for each place that no reply needs
    /// any more.
    pub(crate) fn forget(&mut self, session: SessionId, mut unpin: impl FnMut(BodyPlace)) {
        self.overtaking.remove(&session);
        for (number, mut held) in self.lines.remove(&session).unwrap_or_default() {
            for place in paged_out_in(&mut held.output.reply) {
                let Some(waiting) = self.needs.get_mut(&place) else { continue };
                if waiting.remove(&(session, number)) && waiting.is_empty() {
                    self.needs.remove(&place);
                    unpin(place.0);
                }
            }
        }
    }

    /// A reply lacks no body any more: it goes out, if its session lets replies overtake. If not,
    /// the first replies in line go, as far as they lack no body.
    fn release(&mut self, session: SessionId, number: u64, outputs: &mut Vec<Output>) {
        let Some(line) = self.lines.get_mut(&session) else { return };
        if self.overtaking.contains(&session) {
            outputs.extend(line.remove(&number).map(|held| held.into_output()));
        } else {
            while let Some(first) = line.first_entry()
                && first.get().is_whole()
            {
                outputs.push(first.remove().into_output());
            }
        }
        if line.is_empty() {
            self.lines.remove(&session);
        }
    }
}

/// The session of all replies in the one line.
const EVERYBODY: SessionId = SessionId(u64::MAX);

/// The bodies that a reply lacks.
fn paged_out_in(reply: &mut Reply) -> BTreeSet<Place> {
    let mut paged_out = BTreeSet::new();
    reply.each_shown(&mut |shows| {
        paged_out.extend(shows.body.paged_out().map(|paged_out| place_of(&paged_out)))
    });
    paged_out
}

fn place_of(paged_out: &PagedOut) -> Place {
    (paged_out.place, paged_out.message)
}
