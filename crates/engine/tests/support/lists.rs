//! Lists, told in the plainest way: vectors, the head first, and a line of waiting commands.

use std::collections::{BTreeMap, BTreeSet};

use model::{End, ListCommand, Nanos, PRIORITY_DEFAULT, Persistence, Refusal, SessionId};

/// An element and where it stands: lists are sorted by `rank`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Element {
    pub(crate) number: u64,
    pub(crate) rank: (u32, f64),
    pub(crate) body: Vec<u8>,
    pub(crate) durable: bool,
}

/// The answer to a command.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Count(u64),
    Elements(Vec<Vec<u8>>),
    Popped(String, Vec<Vec<u8>>),
    Places(Vec<u64>),
    Done,
    NotFound,
    TimedOut,
    Refused(Refusal),
    Batch(Vec<Self>),
    Stale,
}

/// A command that waits.
#[derive(Clone, Debug)]
struct Waiter {
    session: SessionId,
    command: ListCommand,
    until: Option<Nanos>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Lists {
    pub(crate) lists: BTreeMap<String, Vec<Element>>,
    next_number: u64,
    front: f64,
    back: f64,
    /// The longest wait comes first.
    waiters: Vec<Waiter>,
    pub(crate) paused: BTreeSet<String>,
    /// How long a popped element is leased.
    pub(crate) lease: Option<Nanos>,
    pub(crate) leased: BTreeMap<SessionId, Vec<(Nanos, String, Element)>>,
    observed: BTreeMap<SessionId, (BTreeSet<String>, bool)>,
    /// Lists that got something, in the order in which they serve waiting commands.
    woken: Vec<String>,
    now: Nanos,
    pub(crate) answers: Vec<(SessionId, Answer)>,
}

impl Lists {
    pub(crate) fn new(now: Nanos, lease: Option<Nanos>) -> Self {
        Self { now, lease, ..Self::default() }
    }

    /// The state of each list that a crash leaves.
    pub(crate) fn durable(&self) -> BTreeMap<String, Vec<Vec<u8>>> {
        let mut all = self.lists.clone();
        for (_, queue, element) in self.leased.values().flatten() {
            insert(all.entry(queue.clone()).or_default(), element.clone());
        }
        let durable = |list: Vec<Element>| {
            let durable = list.into_iter().filter(|element| element.durable);
            durable.map(|element| element.body).collect::<Vec<_>>()
        };
        let all = all.into_iter().map(|(queue, list)| (queue, durable(list)));
        all.filter(|(_, list)| !list.is_empty()).collect()
    }

    pub(crate) fn crash(&mut self) {
        for (_, queue, element) in std::mem::take(&mut self.leased).into_values().flatten() {
            insert(self.lists.entry(queue).or_default(), element);
        }
        self.lists.values_mut().for_each(|list| list.retain(|element| element.durable));
        self.waiters.clear();
        self.observed.clear();
        self.paused.clear();
    }

    /// A message of another protocol comes in.
    pub(crate) fn put(&mut self, queue: &str, priority: u32, body: &[u8]) {
        self.back += 1.0;
        let element = self.element((priority, self.back), body, true);
        insert(self.lists.entry(queue.to_owned()).or_default(), element);
        self.touch(queue);
        self.wake(queue);
        self.serve_all();
    }

    pub(crate) fn delete_keys(&mut self, names: &[String]) -> u64 {
        let mut count = 0;
        for name in names {
            if !self.list(name).is_empty() {
                self.lists.remove(name);
                self.touch(name);
                count += 1;
            }
        }
        count
    }

    pub(crate) fn observe(&mut self, by: SessionId, names: &[String]) {
        self.observed.entry(by).or_default().0.extend(names.iter().cloned());
    }

    /// True if an observed list has changed.
    pub(crate) fn stop_observing(&mut self, by: SessionId) -> bool {
        self.observed.remove(&by).is_some_and(|(_, stale)| stale)
    }

    pub(crate) fn waits(&self, by: SessionId) -> bool {
        self.waiters.iter().any(|waiter| waiter.session == by)
    }

    pub(crate) fn settle(&mut self, by: SessionId) {
        self.leased.remove(&by);
    }

    pub(crate) fn close(&mut self, by: SessionId) {
        self.waiters.retain(|waiter| waiter.session != by);
        self.observed.remove(&by);
        let mut leased = self.leased.remove(&by).unwrap_or_default();
        leased.sort_by_key(|(until, _, element)| (*until, element.number));
        for (_, queue, element) in leased {
            insert(self.lists.entry(queue.clone()).or_default(), element);
            self.touch(&queue);
            self.wake(&queue);
        }
        self.serve_all();
    }

    /// Performs all that has become due: leases end with the element taken, then waits end.
    pub(crate) fn pass_time(&mut self, now: Nanos) {
        self.now = now;
        for leased in self.leased.values_mut() {
            leased.retain(|(until, ..)| *until > now);
        }
        let (mut over, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiters)
            .into_iter()
            .partition(|waiter| waiter.until.is_some_and(|until| until <= now));
        self.waiters = waiting;
        over.sort_by_key(|waiter| waiter.until);
        for waiter in over {
            self.answers.push((waiter.session, Answer::TimedOut));
        }
    }

    pub(crate) fn unpause(&mut self, queue: &str) {
        self.paused.remove(queue);
        self.wake(queue);
        self.serve_all();
    }

    /// The answer, if there is one at once; waiting commands are not served yet.
    pub(crate) fn handle(&mut self, by: SessionId, command: &ListCommand) -> Option<Answer> {
        let answer = match command.clone() {
            ListCommand::Push { queue, end, elements, only_existing, persistence } => {
                let queue = queue.as_str();
                if only_existing && self.list(queue).is_empty() {
                    return Some(Answer::Count(0));
                }
                for body in elements {
                    let element = self.new_at(queue, end, &body, durable(persistence));
                    insert(self.lists.entry(queue.to_owned()).or_default(), element);
                }
                self.changed(queue)
            }
            ListCommand::Pop { queue, end, max } => {
                if !self.may_take(queue.as_str()) {
                    return Some(Answer::NotFound);
                }
                Answer::Elements(self.take(by, queue.as_str(), end, max))
            }
            ListCommand::PopFirst { ref queues, end, max, wait } => {
                let first = queues.iter().find(|queue| self.may_take(queue.as_str()));
                match first {
                    Some(queue) => {
                        let elements = self.take(by, queue.as_str(), end, max);
                        Answer::Popped(queue.to_string(), elements)
                    }
                    None if wait == Some(Nanos::ZERO) => Answer::TimedOut,
                    None => return self.wait(by, command, wait),
                }
            }
            ListCommand::Move { ref from, from_end, ref to, to_end, wait } => {
                if self.may_take(from.as_str()) {
                    self.pass(from.as_str(), from_end, to.as_str(), to_end)
                } else if wait == Some(Nanos::ZERO) {
                    Answer::TimedOut
                } else {
                    return self.wait(by, command, wait);
                }
            }
            ListCommand::CancelPop => {
                let before = self.waiters.len();
                self.waiters.retain(|waiter| waiter.session != by);
                return (self.waiters.len() < before).then_some(Answer::TimedOut);
            }
            ListCommand::Length { queue } => Answer::Count(self.list(queue.as_str()).len() as u64),
            ListCommand::Range { queue, origin, first, last } => {
                let list = self.from(queue.as_str(), origin);
                let (first, end) = within(list.len(), first, last);
                Answer::Elements(list[first..end].iter().map(|it| it.body.clone()).collect())
            }
            other => self.edit(other),
        };
        Some(answer)
    }

    fn edit(&mut self, command: ListCommand) -> Answer {
        match command {
            ListCommand::Replace { queue, origin, at, element, persistence } => {
                let queue = queue.as_str();
                let (count, durable) = (self.list(queue).len() as i64, durable(persistence));
                let place = if at < 0 { at + count } else { at };
                if count == 0 {
                    return Answer::NotFound;
                }
                if !(0..count).contains(&place) {
                    return Answer::Refused(Refusal::NoSuchPlace);
                }
                let place = if origin == End::Tail { count - 1 - place } else { place } as usize;
                let rank = self.list(queue)[place].rank;
                let element = self.element(rank, &element, durable);
                self.lists.get_mut(queue).unwrap()[place] = element;
                self.changed(queue);
                Answer::Done
            }
            ListCommand::Insert { queue, origin, pivot, towards, element, persistence } => {
                let queue = queue.as_str();
                let list = self.list(queue);
                if list.is_empty() {
                    return Answer::NotFound;
                }
                let mut places: Vec<_> = (0..list.len()).collect();
                if origin == End::Tail {
                    places.reverse();
                }
                let Some(at) = places.into_iter().find(|at| *list[*at].body == *pivot) else {
                    return Answer::Count(0);
                };
                // Between these two, if both are there.
                let behind = if towards == End::Head { at } else { at + 1 };
                let new = if behind == 0 || behind == list.len() {
                    self.new_at(queue, towards, &element, durable(persistence))
                } else {
                    let (before, behind) = (list[behind - 1].rank, list[behind].rank);
                    let middle = if before.0 < behind.0 {
                        self.back += 1.0;
                        self.back
                    } else {
                        f64::midpoint(before.1, behind.1)
                    };
                    self.element((before.0, middle), &element, durable(persistence))
                };
                insert(self.lists.get_mut(queue).unwrap(), new);
                self.changed(queue)
            }
            ListCommand::Remove { queue, origin, element, max } => {
                let found = self.from(queue.as_str(), origin);
                let found = found.into_iter().filter(|it| *it.body == *element);
                let gone = found.take(max as usize).map(|it| it.number).collect();
                self.remove(queue.as_str(), &gone)
            }
            ListCommand::Keep { queue, origin, first, last } => {
                let list = self.from(queue.as_str(), origin);
                let (first, end) = within(list.len(), first, last);
                let kept: BTreeSet<_> = list[first..end].iter().map(|it| it.number).collect();
                let gone = list.iter().map(|it| it.number).filter(|it| !kept.contains(it));
                self.remove(queue.as_str(), &gone.collect())
            }
            ListCommand::Locate { queue, origin, from, element, skip, max, scan_max } => {
                let list = self.from(queue.as_str(), from);
                let seen = list.iter().enumerate().take(scan_max.unwrap_or(u64::MAX) as usize);
                let found = seen.filter(|(_, it)| *it.body == *element).map(|(place, _)| place);
                let place = |place| if origin == from { place } else { list.len() - 1 - place };
                let found = found.skip(skip as usize).take(max as usize).map(place);
                Answer::Places(found.map(|place| place as u64).collect())
            }
            other => panic!("{other:?} is no edit"),
        }
    }

    /// Gives elements to waiting commands, after a command has ended: first of the list that got
    /// something first.
    pub(crate) fn serve_all(&mut self) {
        while !self.woken.is_empty() {
            let queue = self.woken.remove(0);
            self.woken.retain(|other| *other != queue);
            while let Some(waiter) = self.first_waiter(&queue).filter(|_| self.may_take(&queue)) {
                self.give(waiter, &queue);
            }
        }
    }

    fn give(&mut self, waiter: usize, queue: &str) {
        let command = self.waiters[waiter].command.clone();
        let session = self.waiters.remove(waiter).session;
        let answer = match command {
            ListCommand::PopFirst { end, max, .. } => {
                let elements = self.take(session, queue, end, max);
                Answer::Popped(queue.to_owned(), elements)
            }
            ListCommand::Move { from_end, to, to_end, .. } => {
                self.pass(queue, from_end, to.as_str(), to_end)
            }
            other => panic!("{other:?} does not wait"),
        };
        self.answers.push((session, answer));
    }

    fn wait(
        &mut self,
        session: SessionId,
        command: &ListCommand,
        wait: Option<Nanos>,
    ) -> Option<Answer> {
        let until = wait.map(|span| self.now + span);
        self.waiters.push(Waiter { session, command: command.clone(), until });
        None
    }

    fn first_waiter(&self, queue: &str) -> Option<usize> {
        self.waiters.iter().position(|waiter| match &waiter.command {
            ListCommand::PopFirst { queues, .. } => queues.iter().any(|it| it.as_str() == queue),
            ListCommand::Move { from, .. } => from.as_str() == queue,
            other => panic!("{other:?} does not wait"),
        })
    }

    fn may_take(&self, queue: &str) -> bool {
        !self.paused.contains(queue) && !self.list(queue).is_empty()
    }

    fn take(&mut self, by: SessionId, queue: &str, end: End, max: u64) -> Vec<Vec<u8>> {
        let mut taken = Vec::new();
        for _ in 0..max {
            let Some(element) = self.take_one(queue, end) else { break };
            taken.push(element.body.clone());
            if let Some(lease) = self.lease {
                let leased = (self.now + lease, queue.to_owned(), element);
                self.leased.entry(by).or_default().push(leased);
            }
        }
        taken
    }

    fn take_one(&mut self, queue: &str, end: End) -> Option<Element> {
        let list = self.lists.get_mut(queue)?;
        let at = if end == End::Head { 0 } else { list.len().checked_sub(1)? };
        let element = (at < list.len()).then(|| list.remove(at))?;
        self.touch(queue);
        Some(element)
    }

    fn pass(&mut self, from: &str, from_end: End, to: &str, to_end: End) -> Answer {
        let element = self.take_one(from, from_end).unwrap();
        let rank = self.rank_at(to, to_end);
        let body = element.body.clone();
        insert(self.lists.entry(to.to_owned()).or_default(), Element { rank, ..element });
        self.touch(to);
        self.wake(to);
        Answer::Elements(vec![body])
    }

    fn remove(&mut self, queue: &str, gone: &BTreeSet<u64>) -> Answer {
        if let Some(list) = self.lists.get_mut(queue)
            && !gone.is_empty()
        {
            list.retain(|element| !gone.contains(&element.number));
            self.touch(queue);
        }
        Answer::Count(gone.len() as u64)
    }

    /// A list has got an element.
    fn changed(&mut self, queue: &str) -> Answer {
        self.touch(queue);
        self.wake(queue);
        Answer::Count(self.list(queue).len() as u64)
    }

    fn touch(&mut self, queue: &str) {
        for (names, stale) in self.observed.values_mut() {
            *stale |= names.contains(queue);
        }
    }

    fn wake(&mut self, queue: &str) {
        self.woken.push(queue.to_owned());
    }

    fn new_at(&mut self, queue: &str, end: End, body: &[u8], durable: bool) -> Element {
        let rank = self.rank_at(queue, end);
        self.element(rank, body, durable)
    }

    fn rank_at(&mut self, queue: &str, end: End) -> (u32, f64) {
        let list = self.list(queue);
        if end == End::Head {
            let first = list.first().map_or(PRIORITY_DEFAULT, |first| first.rank.0);
            self.front -= 1.0;
            (first.min(PRIORITY_DEFAULT), self.front)
        } else {
            let last = list.last().map_or(PRIORITY_DEFAULT, |last| last.rank.0);
            self.back += 1.0;
            (last.max(PRIORITY_DEFAULT), self.back)
        }
    }

    fn element(&mut self, rank: (u32, f64), body: &[u8], durable: bool) -> Element {
        self.next_number += 1;
        Element { number: self.next_number, rank, body: body.to_vec(), durable }
    }

    fn list(&self, queue: &str) -> &[Element] {
        self.lists.get(queue).map_or(&[], Vec::as_slice)
    }

    fn from(&self, queue: &str, origin: End) -> Vec<Element> {
        let mut list = self.list(queue).to_vec();
        if origin == End::Tail {
            list.reverse();
        }
        list
    }
}

fn insert(list: &mut Vec<Element>, element: Element) {
    let at = list.partition_point(|other| other.rank < element.rank);
    list.insert(at, element);
}

fn durable(persistence: Persistence) -> bool {
    persistence != Persistence::NonPersistent
}

/// From the first place to behind the last, of so many elements.
fn within(count: usize, first: i64, last: i64) -> (usize, usize) {
    let count = count as i64;
    let from_front = |place: i64| if place < 0 { place + count } else { place };
    let first = from_front(first).clamp(0, count);
    let end = (from_front(last) + 1).clamp(first, count);
    (first as usize, end as usize)
}
