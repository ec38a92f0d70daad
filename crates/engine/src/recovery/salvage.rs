//! The state that a damaged log still tells.
//!
//! Recovery applies all records of a log or refuses it. [`Salvage`] applies those that are left and
//! gives the state as records of a new log. It holds no bodies: they are copied frame by frame. The
//! order of calls is:
//!
//! 1. [`Salvage::load`] each chunk of the snapshot, and each stretch that is lost;
//! 2. if [`Salvage::wants_older`], [`Salvage::replay_older`] each frame up to the snapshot's begin,
//!    and [`Salvage::merge_older`];
//! 3. [`Salvage::replay`] each frame after the snapshot's begin, and [`Salvage::finish`];
//! 4. write the records of [`Salvage::head`], those of [`Salvage::restore`] for each frame, and
//!    those of [`Salvage::tail`].
//!
//! A message is there again if the record of its deletion is lost. A message is named in the report
//! if its own record is lost.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::string::ToString as _;
use alloc::vec::Vec;
use core::mem;

use model::{Durability, Format, LiveRecords, Lsn, MessageId, Nanos};
use records::{
    CollectionView, CopiesDraft, DeadlineView, FieldsDraft, Link, MessageCounters, Place,
    RecordError, RecordView, Records, Standing, StoredEnvelope, StoredState, SubscriptionView,
    ValueView, decode_envelope, encode, place_of, put_envelope,
};

/// The state in the making: see the module.
#[derive(Debug, Default)]
pub struct Salvage {
    now: Fold,
    /// The state by frames from before the snapshot, for a snapshot that is not whole.
    older: Fold,
    /// Numbers of messages that a lost stretch of the snapshot may have shown.
    lost_numbers: Vec<(u64, u64)>,
    /// A stretch is lost behind this message, and nothing behind it was read yet.
    lost_behind: Option<u64>,
    /// The last message that the snapshot showed.
    last_shown: u64,
    /// A stretch is lost in which the snapshot may have shown other things than messages, which
    /// come first.
    lost_others: bool,
    report: SalvageReport,
}

/// Losses, and things that came back although they may have been gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// Messages that are known, with a lost record.
    pub messages_lost: Vec<LostMessage>,
    /// Messages that stood in lost stretches of the snapshot and were found in older frames: some
    /// of them may have been settled since.
    pub messages_doubtful: u64,
    /// The same of values, deadlines, rules of queues, durable subscriptions and deduplication ids.
    pub others_doubtful: u64,
    /// Numbers of subscriptions that are lost; their messages are in a queue of this name each.
    pub subscriptions_lost: BTreeMap<u64, String>,
    /// Commits of which some frames are lost; the rest is kept.
    pub commits_partial: u64,
    /// Frames with records that cannot be read, with the cause.
    pub frames_unreadable: Vec<(Lsn, RecordError)>,
}

/// A message with a lost record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostMessage {
    /// Its number.
    pub message: MessageId,
    /// The queue in which it was, or its subscription in words.
    pub place: String,
    /// When it was stored.
    pub created: Nanos,
    /// The frame in which its record was.
    pub frame: Lsn,
}

/// Applies frames, those of a chain once its last is there.
#[derive(Debug, Default)]
struct Fold {
    state: State,
    last: Lsn,
    chain: Option<Chain>,
}

#[derive(Debug)]
struct Chain {
    first: Lsn,
    frames: Vec<(Lsn, Vec<u8>)>,
    /// A frame of it is missing.
    broken: bool,
}

/// The last record of each thing, by its name.
#[derive(Debug, Default)]
struct State {
    messages: BTreeMap<u64, Held>,
    /// The messages of each subscription.
    of_subscription: BTreeMap<u64, BTreeSet<u64>>,
    subscriptions: BTreeMap<u64, Box<[u8]>>,
    values: BTreeMap<Box<str>, Box<[u8]>>,
    /// Of each collection, its fields with their values.
    entries: BTreeMap<u64, Fields>,
    policies: BTreeMap<Box<str>, Box<[u8]>>,
    deadlines: BTreeMap<Box<str>, Box<[u8]>>,
    send_ids: BTreeMap<SendIdKey, Box<[u8]>>,
    next_message: u64,
    next_subscription: u64,
    latest: Nanos,
}

/// Fields of a collection, with their values.
type Fields = BTreeMap<Box<[u8]>, Box<[u8]>>;

/// "To a topic", the destination's name, and the id.
type SendIdKey = (bool, Box<str>, Box<str>);

/// A message: its envelope as a record has it, and the frame with its body.
#[derive(Debug)]
struct Held {
    location: Lsn,
    envelope: Box<[u8]>,
    written: bool,
}

impl Held {
    fn new(location: Lsn, envelope: &StoredEnvelope<'_>) -> Self {
        let mut bytes = Vec::new();
        put_envelope(&mut bytes, &StoredEnvelope { group: 0, ..*envelope });
        Self { location, envelope: bytes.into(), written: false }
    }

    fn envelope(&self) -> StoredEnvelope<'_> {
        decode_envelope(&self.envelope).expect("invariant: it was encoded here")
    }
}

impl Salvage {
    /// Takes in a chunk of the snapshot; `None`: a stretch that is lost.
    pub fn load(&mut self, chunk: Option<&[u8]>) {
        let Some(chunk) = chunk else { return self.lose() };
        let mut at = 0;
        for record in Records::new(chunk) {
            let Ok((record, size)) = record else { return self.lose() };
            if let RecordView::Located { envelope, .. } = &record {
                let number = envelope.message.0;
                if let Some(behind) = self.lost_behind.take() {
                    self.lost_numbers.push((behind + 1, number - 1));
                }
                self.last_shown = number;
            }
            let raw = chunk.get(at..at + size).unwrap_or_default();
            self.now.state.apply(&record, raw, Lsn::ZERO);
            at += size;
        }
    }

    fn lose(&mut self) {
        self.lost_behind.get_or_insert(self.last_shown);
        self.lost_others |= self.last_shown == 0;
    }

    /// True if a part of the snapshot is lost, so that older frames have to tell the state that
    /// they can.
    pub fn wants_older(&mut self) -> bool {
        if let Some(behind) = self.lost_behind.take() {
            self.lost_numbers.push((behind + 1, u64::MAX));
        }
        !self.lost_numbers.is_empty()
    }

    /// Takes in a frame up to the snapshot's begin.
    pub fn replay_older(&mut self, lsn: Lsn, payload: &[u8]) {
        self.older.replay(lsn, payload, &mut self.report);
    }

    /// Takes from older frames the state that lost stretches of the snapshot may have shown.
    pub fn merge_older(&mut self) {
        self.older.finish(true, &mut self.report);
        let State {
            messages, subscriptions, values, entries, policies, deadlines, send_ids, ..
        } = mem::take(&mut self.older).state;
        let now = &mut self.now.state;
        for (number, held) in messages {
            // The stretches ascend, as messages do in a snapshot.
            let behind = self.lost_numbers.partition_point(|(_, to)| *to < number);
            let is_lost = self.lost_numbers.get(behind).is_some_and(|(from, _)| *from <= number);
            if is_lost && !now.messages.contains_key(&number) {
                self.report.messages_doubtful += 1;
                now.hold(number, held);
            }
        }
        if self.lost_others {
            self.report.others_doubtful += fill(&mut now.subscriptions, subscriptions)
                + fill(&mut now.values, values)
                + fill_entries(&mut now.entries, entries)
                + fill(&mut now.policies, policies)
                + fill(&mut now.deadlines, deadlines)
                + fill(&mut now.send_ids, send_ids);
        }
    }

    /// Takes in a frame after the snapshot's begin.
    pub fn replay(&mut self, lsn: Lsn, payload: &[u8]) {
        self.now.replay(lsn, payload, &mut self.report);
    }

    /// All frames were taken in. `cut`: frames behind the last one are lost.
    pub fn finish(&mut self, cut: bool) {
        self.now.finish(cut, &mut self.report);
        self.settle_subscriptions();
        self.settle_places();
        self.report.others_doubtful += self.now.state.same_collections().len() as u64;
    }

    /// The losses; complete once all frames were restored and [`Salvage::tail`] was called.
    #[must_use]
    pub fn report(&self) -> &SalvageReport {
        &self.report
    }

    /// Hands over records that come before all messages, one by one.
    pub fn head(&self, take: &mut dyn FnMut(&[u8])) {
        let State { subscriptions, values, policies, send_ids, .. } = &self.now.state;
        policies.values().for_each(|record| take(record));
        subscriptions.values().for_each(|record| take(record));
        let left_out = self.now.state.same_collections();
        for (_, record) in values.iter().filter(|(name, _)| !left_out.contains(&***name)) {
            self.now.state.give_value(record, take);
        }
        send_ids.values().for_each(|record| take(record));
    }

    /// Hands over the records of all messages with bodies in this frame, one by one, each with the
    /// live records that it counts for.
    pub fn restore(&mut self, lsn: Lsn, payload: &[u8], take: &mut dyn FnMut(&[u8], LiveRecords)) {
        let mut give = |record: &RecordView<'_>| {
            let mut bytes = Vec::new();
            encode(record, &mut bytes);
            take(&bytes, LiveRecords::one(bytes.len() as u64));
        };
        for (record, _) in Records::new(payload).map_while(Result::ok) {
            match record {
                RecordView::Message { envelope, body } => {
                    if let Some(envelope) = self.now.state.written(envelope.message, lsn) {
                        give(&RecordView::Message { envelope, body });
                    }
                }
                RecordView::Shared { copies, body } => {
                    let mut draft = CopiesDraft::default();
                    for copy in copies.iter() {
                        let Some(envelope) = self.now.state.written(copy.message, lsn) else {
                            continue;
                        };
                        draft.push(&envelope);
                        if draft.bytes() >= ENVELOPES_BYTES_MAX {
                            give(&RecordView::Shared { copies: draft.copies(), body });
                            draft = CopiesDraft::default();
                        }
                    }
                    if draft.bytes() > 0 {
                        give(&RecordView::Shared { copies: draft.copies(), body });
                    }
                }
                _ => {}
            }
        }
    }

    /// Hands over the records that come after all messages, one by one.
    pub fn tail(&mut self, take: &mut dyn FnMut(&[u8])) {
        let state = &self.now.state;
        for (number, held) in &state.messages {
            if held.written {
                continue;
            }
            let StoredEnvelope { place, created, .. } = held.envelope();
            let place = match place {
                Place::Queue(name) => name.to_string(),
                Place::Subscription(number) => format!("subscription {number}"),
            };
            let (message, frame) = (MessageId(*number), held.location);
            self.report.messages_lost.push(LostMessage { message, place, created, frame });
        }
        state.deadlines.values().for_each(|record| take(record));
        state.numbers(take);
    }

    /// A subscription with a lost end may have a successor of its name: only the last of a name
    /// stays. Messages of a subscription that is not there go to a queue.
    fn settle_subscriptions(&mut self) {
        let state = &mut self.now.state;
        let mut by_name = BTreeMap::new();
        for (number, record) in &state.subscriptions {
            if let Some(view) = subscription(record) {
                let name = (view.client.map(String::from), String::from(view.name));
                by_name.insert(name, *number);
            }
        }
        let numbers: BTreeSet<u64> = by_name.into_values().collect();
        state.subscriptions.retain(|number, _| numbers.contains(number));
        let of_subscription = mem::take(&mut state.of_subscription);
        for (subscription, messages) in of_subscription {
            if state.subscriptions.contains_key(&subscription) {
                continue;
            }
            let name = format!("{SALVAGED}-subscription-{subscription}");
            for number in messages {
                state.move_to(number, &name);
            }
            self.report.subscriptions_lost.insert(subscription, name);
        }
    }

    /// Each place in an order belongs to one message. If the record of a change is lost, two may
    /// claim one place: then the later claimant goes to the place of its number.
    fn settle_places(&mut self) {
        let state = &mut self.now.state;
        let (mut claims, mut buried) = (BTreeMap::<i64, u64>::new(), BTreeSet::new());
        let mut reset = Vec::new();
        let mut last_buried = 0;
        for (number, held) in &state.messages {
            let Standing { order, state: stored, .. } = held.envelope().standing;
            let is_own = order == place_of(MessageId(*number));
            let of_another = order > 0 && state.messages.contains_key(&(order as u64));
            if !is_own && (of_another || claims.insert(order, *number).is_some()) {
                reset.push(*number);
            }
            if let StoredState::Buried { order } = stored {
                last_buried = last_buried.max(order);
                if !buried.insert(order) {
                    reset.push(*number);
                }
            }
        }
        for number in reset {
            last_buried += 1;
            state.reset_place(number, last_buried);
        }
    }
}

impl Fold {
    fn replay(&mut self, lsn: Lsn, payload: &[u8], report: &mut SalvageReport) {
        let follows = self.last.next() == lsn;
        self.last = lsn;
        let link = match Link::of(payload) {
            Ok(link) => link,
            Err(error) => return report.frames_unreadable.push((lsn, error)),
        };
        let Some(Link { first, more, .. }) = link else {
            self.end_chain(!follows, report);
            return self.apply(lsn, payload, report);
        };
        let continues = self.chain.as_ref().is_some_and(|chain| chain.first == first);
        if !continues {
            self.end_chain(!follows, report);
            self.chain = Some(Chain { first, frames: Vec::new(), broken: first != lsn });
        }
        let Some(chain) = &mut self.chain else { return };
        chain.broken |= continues && !follows;
        chain.frames.push((lsn, payload.to_vec()));
        if !more {
            let broken = chain.broken;
            self.apply_chain(broken, report);
        }
    }

    /// The log ended; `cut`: frames behind the last one are lost.
    fn finish(&mut self, cut: bool, report: &mut SalvageReport) {
        self.end_chain(cut, report);
    }

    /// The last frame of the chain did not come. If frames are missing, it may be one of them; else
    /// a crash cut the commit off, and nothing of it took effect.
    fn end_chain(&mut self, may_be_lost: bool, report: &mut SalvageReport) {
        if may_be_lost {
            self.apply_chain(true, report);
        }
        self.chain = None;
    }

    fn apply_chain(&mut self, partial: bool, report: &mut SalvageReport) {
        let Some(chain) = self.chain.take() else { return };
        report.commits_partial += u64::from(partial);
        for (lsn, payload) in chain.frames {
            self.apply(lsn, &payload, report);
        }
    }

    fn apply(&mut self, lsn: Lsn, payload: &[u8], report: &mut SalvageReport) {
        let mut at = 0;
        for record in Records::new(payload) {
            match record {
                Ok((record, size)) => {
                    let raw = payload.get(at..at + size).unwrap_or_default();
                    self.state.apply(&record, raw, lsn);
                    at += size;
                }
                Err(error) => report.frames_unreadable.push((lsn, error)),
            }
        }
    }
}

impl State {
    fn apply(&mut self, record: &RecordView<'_>, raw: &[u8], lsn: Lsn) {
        match *record {
            RecordView::Message { ref envelope, .. } => self.store(envelope, lsn),
            RecordView::Shared { copies, .. } => {
                copies.iter().for_each(|envelope| self.store(&envelope, lsn));
            }
            RecordView::Located { ref envelope, location, .. } => self.store(envelope, location),
            RecordView::Changed { message, standing, moved } => {
                self.change(message, standing, moved)
            }
            RecordView::Deleted { message } => self.delete(message.0),
            RecordView::Subscribed(view) => {
                self.next_subscription = self.next_subscription.max(view.number + 1);
                self.subscriptions.insert(view.number, raw.into());
            }
            RecordView::Unsubscribed { number } => {
                self.next_subscription = self.next_subscription.max(number + 1);
                self.subscriptions.remove(&number);
                let messages = self.of_subscription.remove(&number).unwrap_or_default();
                messages.into_iter().for_each(|message| self.delete(message));
            }
            RecordView::Sequence { next_message, latest, .. } => {
                self.next_message = self.next_message.max(next_message);
                self.latest = self.latest.max(latest);
            }
            RecordView::Subscriptions { next } => {
                self.next_subscription = self.next_subscription.max(next);
            }
            RecordView::ValueSet(view) => {
                self.values.insert(view.name.into(), raw.into());
            }
            RecordView::ValueDeleted { name } => {
                self.values.remove(name);
            }
            RecordView::KeyDeadline(view) => self.set_deadline(&view, raw),
            RecordView::Collection(view) => {
                self.values.insert(view.name.into(), raw.into());
            }
            RecordView::FieldsSet(fields) => {
                let entries = self.entries.entry(fields.number()).or_default();
                entries.extend(fields.iter().map(|(field, value)| (field.into(), value.into())));
            }
            RecordView::FieldsGone(fields) => {
                if let Some(entries) = self.entries.get_mut(&fields.number()) {
                    fields.iter().for_each(|(field, _)| drop(entries.remove(field)));
                }
            }
            // Numbers that nothing refers to any more may be given again.
            RecordView::Collections { .. } => {}
            RecordView::SendId(view) => {
                let key = (view.to_topic, view.to.into(), view.id.into());
                self.send_ids.insert(key, raw.into());
            }
            RecordView::OwnPolicy(view) => {
                self.policies.insert(view.name.into(), raw.into());
            }
            RecordView::Chained { .. } => {}
        }
    }

    fn store(&mut self, envelope: &StoredEnvelope<'_>, location: Lsn) {
        self.latest = self.latest.max(envelope.created);
        self.hold(envelope.message.0, Held::new(location, envelope));
    }

    fn hold(&mut self, number: u64, held: Held) {
        self.delete(number);
        let StoredEnvelope { place, standing, .. } = held.envelope();
        let largest = number.max(u64::try_from(standing.order).unwrap_or(0));
        self.next_message = self.next_message.max(largest + 1);
        let from = standing.dead.and_then(|dead| dead.subscription).unwrap_or(0);
        self.next_subscription = self.next_subscription.max(from + 1);
        if let Place::Subscription(subscription) = place {
            self.next_subscription = self.next_subscription.max(subscription + 1);
            self.of_subscription.entry(subscription).or_default().insert(number);
        }
        self.messages.insert(number, held);
    }

    fn delete(&mut self, number: u64) {
        self.next_message = self.next_message.max(number + 1);
        let Some(held) = self.messages.remove(&number) else { return };
        if let Place::Subscription(subscription) = held.envelope().place
            && let Some(messages) = self.of_subscription.get_mut(&subscription)
        {
            messages.remove(&number);
        }
    }

    /// Puts a message into a queue.
    fn move_to(&mut self, number: u64, queue: &str) {
        if let Some(held) = self.messages.get_mut(&number) {
            let place = Place::Queue(queue);
            *held = Held::new(held.location, &StoredEnvelope { place, ..held.envelope() });
        }
    }

    /// Puts a message where its number is, and a buried one behind all that are buried.
    fn reset_place(&mut self, number: u64, buried: u64) {
        let Some(held) = self.messages.get_mut(&number) else { return };
        let old = held.envelope();
        let state = match old.standing.state {
            StoredState::Buried { .. } => StoredState::Buried { order: buried },
            other => other,
        };
        let order = place_of(MessageId(number));
        let standing = Standing { order, state, ..old.standing };
        *held = Held::new(held.location, &StoredEnvelope { standing, ..old });
    }

    fn change(&mut self, message: MessageId, standing: Standing<'_>, moved: Option<Place<'_>>) {
        let Some(held) = self.messages.get(&message.0) else {
            self.next_message = self.next_message.max(message.0 + 1);
            return;
        };
        let old = held.envelope();
        let place = moved.unwrap_or(old.place);
        let changed = Held::new(held.location, &StoredEnvelope { place, standing, ..old });
        self.hold(message.0, changed);
    }

    fn set_deadline(&mut self, view: &DeadlineView<'_>, raw: &[u8]) {
        if !view.of_value {
            if view.at.is_none() && view.over.is_none() {
                self.deadlines.remove(view.name);
            } else {
                self.deadlines.insert(view.name.into(), raw.into());
            }
            return;
        }
        let Some(record) = self.values.get(view.name) else { return };
        let at = view.at;
        let changed = match Records::new(record).next() {
            Some(Ok((RecordView::ValueSet(value), _))) => {
                RecordView::ValueSet(ValueView { at, ..value })
            }
            Some(Ok((RecordView::Collection(it), _))) => {
                RecordView::Collection(CollectionView { at, ..it })
            }
            _ => return,
        };
        let mut bytes = Vec::new();
        encode(&changed, &mut bytes);
        self.values.insert(view.name.into(), bytes.into());
    }

    /// Names of collections that another name stands for too, since the record of a rename is lost:
    /// all but the last of them.
    fn same_collections(&self) -> BTreeSet<&str> {
        let mut by_number = BTreeMap::new();
        let mut same = BTreeSet::new();
        for (name, record) in &self.values {
            if let Some(Ok((RecordView::Collection(view), _))) = Records::new(record).next() {
                same.extend(by_number.insert(view.number, &**name));
            }
        }
        same
    }

    /// Hands over the record of a value; of a collection with all its entries, if it has any.
    fn give_value(&self, record: &[u8], take: &mut dyn FnMut(&[u8])) {
        let Some(Ok((RecordView::Collection(view), _))) = Records::new(record).next() else {
            return take(record);
        };
        let Some(entries) = self.entries.get(&view.number).filter(|them| !them.is_empty()) else {
            return;
        };
        take(record);
        let mut draft = FieldsDraft::new(view.number);
        for (field, value) in entries {
            draft.push_with([field, &[]], value);
            if draft.record_bytes_max() >= ENVELOPES_BYTES_MAX {
                give(&RecordView::FieldsSet(draft.set()), take);
                draft = FieldsDraft::new(view.number);
            }
        }
        if draft.count() > 0 {
            give(&RecordView::FieldsSet(draft.set()), take);
        }
    }

    /// The envelope of a message with its body in that frame; it is written from now on.
    fn written(&mut self, message: MessageId, lsn: Lsn) -> Option<StoredEnvelope<'_>> {
        let held = self.messages.get_mut(&message.0);
        let held = held.filter(|held| held.location == lsn && !held.written)?;
        held.written = true;
        Some(held.envelope())
    }

    /// Records that use up the last numbers, unless kept records do: numbers are never given again.
    fn numbers(&self, take: &mut dyn FnMut(&[u8])) {
        let kept = self.messages.iter().filter(|(_, held)| held.written);
        let used = kept.map(|(number, held)| {
            let order = held.envelope().standing.order;
            (*number).max(u64::try_from(order).unwrap_or(0))
        });
        let used = used.max().unwrap_or(0);
        let number = self.next_message.saturating_sub(1);
        if number > used {
            self.last_message(MessageId(number), take);
        }
        let used = self.subscriptions.keys().next_back().copied().unwrap_or(0);
        let number = self.next_subscription.saturating_sub(1);
        if number > used {
            last_subscription(number, take);
        }
    }

    fn last_message(&self, message: MessageId, take: &mut dyn FnMut(&[u8])) {
        let standing = Standing {
            priority: 0,
            delay: Nanos::ZERO,
            state: StoredState::Ready,
            order: place_of(message),
            counters: MessageCounters::default(),
            expires: None,
            dead: None,
        };
        let envelope = StoredEnvelope {
            message,
            place: Place::Queue(SALVAGED),
            durability: Durability::Written,
            created: self.latest,
            lease: Nanos::SECOND,
            format: Format::RAW,
            group: 0,
            sender: 0,
            standing,
        };
        give(&RecordView::Message { envelope, body: &[] }, take);
        give(&RecordView::Deleted { message }, take);
    }
}

fn give(record: &RecordView<'_>, take: &mut dyn FnMut(&[u8])) {
    let mut bytes = Vec::new();
    encode(record, &mut bytes);
    take(&bytes);
}

fn last_subscription(number: u64, take: &mut dyn FnMut(&[u8])) {
    let name = format!("{SALVAGED}-subscription-{number}");
    let view = SubscriptionView {
        number,
        name: &name,
        topic: SALVAGED,
        client: Some(SALVAGED),
        selector: None,
        without: None,
        shared: false,
        is_pattern: false,
        expiry: None,
        user: None,
    };
    give(&RecordView::Subscribed(view), take);
    give(&RecordView::Unsubscribed { number }, take);
}

fn subscription(record: &[u8]) -> Option<SubscriptionView<'_>> {
    match Records::new(record).next() {
        Some(Ok((RecordView::Subscribed(view), _))) => Some(view),
        _ => None,
    }
}

/// Takes the entries that are not there yet, and counts them.
fn fill<K: Ord, V>(now: &mut BTreeMap<K, V>, older: BTreeMap<K, V>) -> u64 {
    let before = now.len();
    for (key, value) in older {
        now.entry(key).or_insert(value);
    }
    (now.len() - before) as u64
}

/// The same of entries.
fn fill_entries(now: &mut BTreeMap<u64, Fields>, older: BTreeMap<u64, Fields>) -> u64 {
    older.into_iter().map(|(number, fields)| fill(now.entry(number).or_default(), fields)).sum()
}

/// Bytes of envelopes of one Shared record: the rest goes into another, with the body again.
const ENVELOPES_BYTES_MAX: usize = 256 * 1024;

/// The prefix of the names of queues that hold messages of lost subscriptions.
const SALVAGED: &str = "salvaged";
