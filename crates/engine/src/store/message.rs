//! One message as the engine keeps it, and where it can stand.
//!
//! ```text
//!                  put
//!                   │      receive, lease
//!   delay ends ┌────▼───┐ ───────────────▶ ┌────────┐
//!  ┌──────────▶│ Ready  │                  │ Leased │──▶ gone: delete (from any state)
//!  │   kick    └────────┘ ◀─────────────── └────────┘
//!  │            ▲          release, lease    │    │
//!  │            │ kick     ends, close       │    │
//!  │       ┌────┴───┐          bury          │    │
//!  │       │ Buried │ ◀──────────────────────┘    │
//!  │       └────────┘                             │
//!  │       ┌─────────┐      release with delay    │
//!  └───────┤ Delayed │ ◀──────────────────────────┘
//!          └─────────┘ ◀── put with delay
//! ```
//! A lease by the message's number takes it out of Delayed and Buried too. Held is like Leased, but
//! without a deadline: a consumer with a limit holds a message until it settles it or is gone.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::num::NonZeroU64;

use model::{
    DeadReason, DependsOn, Durability, Format, Lsn, MessageGroup, MessageId, MessageState, Nanos,
    QueueName,
};
use records::{DeadView, MessageCounters, Place, Standing, StoredEnvelope, StoredState, place_of};

use crate::bodies::{BodyRef, Stored};
use crate::ids::{QueueSlot, SessionSlot};
use crate::log::Placed;
use crate::store::accounts::AccountSlot;
use crate::store::dispatch::GroupNumber;

/// A million of these lie in memory, each with a body of its own: see the size below.
#[derive(Debug)]
pub(crate) struct Message {
    body: Stored,
    created: Nanos,
    lease: Nanos,
    /// The frame with its Message record. Without a record it is [`Lsn::ZERO`], or, as a number of
    /// the same size, one of two other things. It is the place of the body in the spill: see
    /// [`Message::kept`], or the name of the body that it shares: see [`Message::shared`].
    location: Lsn,
    /// The last frame about it, or that it came with, since the process started.
    changed: Lsn,
    /// When its delay or lease ends, or its place among the buried.
    moment: u64,
    /// State that most messages never have.
    history: Option<Box<History>>,
    queue: QueueSlot,
    priority: u32,
    delivered: u32,
    /// The size of the Message record at `location`.
    record_bytes: u32,
    holder: SessionSlot,
    /// The account of the user who stored it.
    account: Option<AccountSlot>,
    traits: Traits,
    format: Format,
}

/// Three small traits in one byte.
#[derive(Clone, Copy, Debug)]
struct Traits(u8);

/// The allocator rounds up to 16 here: 96 for this, 128 for a body of 100, 8 for the pointer in the
/// page and under 1 for indexes make 233 bytes a message.
const _: () = assert!(size_of::<Message>() <= 88);

/// The state of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    Delayed { until: Nanos },
    Leased { holder: SessionSlot, until: Nanos },
    Held { holder: SessionSlot, since: Nanos },
    Buried { order: u64 },
}

impl State {
    /// As statistics show it, and when its delay or lease ends.
    pub(crate) const fn shown(self) -> (MessageState, Nanos) {
        match self {
            Self::Ready => (MessageState::Ready, Nanos::ZERO),
            Self::Delayed { until } => (MessageState::Delayed, until),
            Self::Leased { until, .. } => (MessageState::Leased, until),
            Self::Held { .. } => (MessageState::Leased, Nanos::ZERO),
            Self::Buried { .. } => (MessageState::Buried, Nanos::ZERO),
        }
    }

    /// The session that has it.
    pub(crate) const fn holder(self) -> Option<SessionSlot> {
        match self {
            Self::Leased { holder, .. } | Self::Held { holder, .. } => Some(holder),
            Self::Ready | Self::Delayed { .. } | Self::Buried { .. } => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ready,
    Delayed,
    Leased,
    Held,
    Buried,
}

impl Traits {
    const fn new(durability: Durability) -> Self {
        Self(0).with_durability(durability)
    }

    const fn kind(self) -> Kind {
        match self.0 & Self::KIND {
            0 => Kind::Ready,
            1 => Kind::Delayed,
            2 => Kind::Leased,
            3 => Kind::Held,
            _ => Kind::Buried,
        }
    }

    const fn with_kind(self, kind: Kind) -> Self {
        Self(self.0 & !Self::KIND | kind as u8)
    }

    const fn durability(self) -> Durability {
        match self.0 & Self::DURABILITY {
            0 => Durability::None,
            Self::WRITTEN => Durability::Written,
            _ => Durability::Synced,
        }
    }

    const fn with_durability(self, durability: Durability) -> Self {
        let bits = match durability {
            Durability::None => 0,
            Durability::Written => Self::WRITTEN,
            Durability::Synced => Self::DURABILITY,
        };
        Self(self.0 & !Self::DURABILITY | bits)
    }

    /// In recovery: the body was not seen in the log yet.
    const fn body_missing(self) -> bool {
        self.0 & Self::BODY_MISSING != 0
    }

    const fn with_body_missing(self, missing: bool) -> Self {
        let bits = if missing { Self::BODY_MISSING } else { 0 };
        Self(self.0 & !Self::BODY_MISSING | bits)
    }

    const KIND: u8 = 0b111;
    const DURABILITY: u8 = 0b11 << 3;
    const WRITTEN: u8 = 0b01 << 3;
    const BODY_MISSING: u8 = 1 << 5;
}

/// State that a message never has if it was stored without delay and is deleted at its first
/// delivery.
#[derive(Debug, Default)]
pub(crate) struct History {
    delay: Nanos,
    /// Zero: the message's id.
    order: i64,
    expired: u32,
    released: u32,
    buried: u32,
    kicked: u32,
    failed: u32,
    expires: Option<Nanos>,
    dead: Option<Box<Dead>>,
    /// See [`StoredEnvelope::group`].
    group: u64,
    /// The topic that it was published to, where its subscription is of a pattern.
    topic: Option<QueueName>,
    /// The message group that its body names.
    message_group: Option<MessageGroup>,
    /// It is delayed only until there is room for it to become a dead letter.
    set_aside: bool,
    /// Its record at its location may name another queue.
    moved: bool,
    /// By how much its record at its location would be larger now.
    grown_bytes: u32,
    /// When it was taken out of its delay or from the buried last, since the process started.
    available: Nanos,
}

/// How it came to be among the dead letters: see [`model::DeadLetter`].
#[derive(Debug)]
pub(crate) struct Dead {
    reason: DeadReason,
    from: QueueName,
    /// The number of the subscription that it was taken from, if it was one's.
    subscription: Option<u64>,
    at: Nanos,
    attempts: u32,
}

impl Dead {
    /// The queue that it is from; of a message of a subscription, its topic.
    pub(crate) const fn from(&self) -> &QueueName {
        &self.from
    }

    /// All of it, in the terms of records.
    pub(crate) fn view(&self) -> DeadView<'_> {
        let Self { reason, subscription, at, attempts, .. } = *self;
        DeadView { reason, from: self.from.as_str(), subscription, at, attempts }
    }
}

impl Message {
    pub(crate) const fn body(&self) -> &Stored {
        &self.body
    }

    pub(crate) const fn created(&self) -> Nanos {
        self.created
    }

    /// The span of a lease that does not say how long it is.
    pub(crate) const fn lease(&self) -> Nanos {
        self.lease
    }

    /// The frame with its record, if it has one.
    pub(crate) const fn location(&self) -> Lsn {
        self.location
    }

    /// The last frame about it.
    pub(crate) const fn changed(&self) -> Lsn {
        self.changed
    }

    pub(crate) const fn queue(&self) -> QueueSlot {
        self.queue
    }

    pub(crate) const fn priority(&self) -> u32 {
        self.priority
    }

    /// How often it was delivered.
    pub(crate) const fn delivered(&self) -> u32 {
        self.delivered
    }

    pub(crate) const fn record_bytes(&self) -> u32 {
        self.record_bytes
    }

    pub(crate) const fn durability(&self) -> Durability {
        self.traits.durability()
    }

    pub(crate) const fn format(&self) -> Format {
        self.format
    }

    /// The account of the user who stored it.
    pub(crate) const fn account(&self) -> Option<AccountSlot> {
        self.account
    }

    /// It counts to this account. It is in no index.
    pub(crate) const fn set_account(&mut self, account: Option<AccountSlot>) {
        self.account = account;
    }

    /// True in recovery until its body is found in the log.
    pub(crate) const fn body_missing(&self) -> bool {
        self.traits.body_missing()
    }

    /// A message as a record describes it, not yet in the log.
    pub(crate) fn new(envelope: &StoredEnvelope<'_>, queue: QueueSlot, body: Stored) -> Self {
        let mut message = Self {
            body,
            created: envelope.created,
            lease: envelope.lease,
            location: Lsn::ZERO,
            changed: Lsn::ZERO,
            moment: 0,
            history: None,
            queue,
            priority: 0,
            delivered: 0,
            record_bytes: 0,
            holder: SessionSlot(0),
            account: None,
            traits: Traits::new(envelope.durability),
            format: envelope.format,
        };
        message.assume(envelope.message, &envelope.standing);
        if envelope.group != 0 {
            message.history_mut().group = envelope.group;
        }
        message
    }

    /// Takes over all changeable state that a record holds.
    pub(crate) fn assume(&mut self, id: MessageId, standing: &Standing<'_>) {
        self.priority = standing.priority;
        self.set_delay(standing.delay);
        self.set_order(id, standing.order);
        self.set_counters(standing.counters);
        self.set_expiry(standing.expires);
        self.set_dead(standing.dead);
        self.set_state(match standing.state {
            StoredState::Ready => State::Ready,
            StoredState::Delayed { until } => State::Delayed { until },
            StoredState::Buried { order } => State::Buried { order },
        });
    }

    fn set_state(&mut self, state: State) {
        let (kind, moment) = match state {
            State::Ready => (Kind::Ready, 0),
            State::Delayed { until } => (Kind::Delayed, until.0),
            State::Leased { holder, until } => {
                self.holder = holder;
                (Kind::Leased, until.0)
            }
            State::Held { holder, since } => {
                self.holder = holder;
                (Kind::Held, since.0)
            }
            State::Buried { order } => (Kind::Buried, order),
        };
        self.traits = self.traits.with_kind(kind);
        self.moment = moment;
    }

    /// Changes its state in the course of things.
    pub(crate) fn move_to(&mut self, state: State, now: Nanos) {
        assert!(
            !self.body_missing() || state.holder().is_none(),
            "no session holds it in recovery"
        );
        let available = match (self.state(), state) {
            (_, State::Delayed { .. } | State::Buried { .. }) => Nanos::ZERO,
            (State::Delayed { until }, _) => until.min(now),
            (State::Buried { .. }, _) => now,
            _ => Nanos::ZERO,
        };
        if available > self.available_since() {
            self.history_mut().available = available;
        }
        self.set_state(state);
    }

    /// Since when it was neither delayed nor buried.
    pub(crate) fn available_since(&self) -> Nanos {
        let available = self.history.as_ref().map_or(Nanos::ZERO, |history| history.available);
        self.created.max(available)
    }

    pub(crate) fn set_delay(&mut self, delay: Nanos) {
        if delay != self.delay() {
            self.history_mut().delay = delay;
        }
    }

    pub(crate) fn set_order(&mut self, id: MessageId, order: i64) {
        if order != self.order(id) {
            self.history_mut().order = if order == place_of(id) { 0 } else { order };
        }
    }

    pub(crate) fn set_expiry(&mut self, expires: Option<Nanos>) {
        if expires != self.expires() {
            self.history_mut().expires = expires;
        }
    }

    fn set_dead(&mut self, dead: Option<DeadView<'_>>) {
        if let Some(dead) = dead {
            // A name in the log was valid when it was written; an invalid one is not one of ours.
            let from = QueueName::new(dead.from).ok();
            self.history_mut().dead = from.map(|from| {
                let DeadView { reason, subscription, at, attempts, .. } = dead;
                Box::new(Dead { reason, from, subscription, at, attempts })
            });
        } else if self.dead().is_some() {
            self.history_mut().dead = None;
        }
    }

    /// Its record is there now, and has stored it as one of this group, as it stands.
    pub(crate) fn set_placed(&mut self, group: u64, placed: Placed) {
        (self.location, self.record_bytes) = (placed.lsn, placed.bytes);
        if group != self.group() {
            self.history_mut().group = group;
        }
        if let Some(history) = &mut self.history {
            (history.grown_bytes, history.moved) = (0, false);
        }
    }

    /// Its record was just written.
    pub(crate) fn set_stored(&mut self, group: u64, placed: Placed) {
        self.set_placed(group, placed);
        self.changed = placed.lsn;
    }

    /// A frame is about it, or came with it.
    pub(crate) fn set_changed(&mut self, changed: Lsn) {
        debug_assert!(changed >= self.changed, "frames about a message come in their order");
        self.changed = changed;
    }

    /// Its body takes another form: here, or elsewhere.
    pub(crate) fn set_body(&mut self, body: Stored) {
        assert!(!self.body_missing(), "a body is found before it changes");
        self.body = body;
    }

    /// In recovery: its body is not known yet, but for its largest size.
    pub(crate) fn miss_body(&mut self) {
        assert!(!self.is_here(), "a body that is here is not missing");
        self.traits = self.traits.with_body_missing(true);
    }

    /// Recovery has found its body, which has so many bytes; the log has it.
    pub(crate) fn find_body(&mut self, bytes: usize) {
        assert!(self.body_missing(), "a body is found once");
        assert!(bytes <= self.body.len(), "a record holds the whole body");
        self.traits = self.traits.with_body_missing(false);
        self.body = Stored::paged_out(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// It is in another queue now. It is in no index.
    pub(crate) const fn set_queue(&mut self, queue: QueueSlot) {
        self.queue = queue;
    }

    /// It has another priority. It is in no index.
    pub(crate) const fn set_priority(&mut self, priority: u32) {
        self.priority = priority;
    }

    /// It is delivered once more.
    pub(crate) const fn count_delivery(&mut self) {
        self.delivered = self.delivered.saturating_add(1);
    }

    /// A lease of it has ended by time.
    pub(crate) fn count_expiry(&mut self) {
        let history = self.history_mut();
        history.expired = history.expired.saturating_add(1);
    }

    /// Its holder gave it back.
    pub(crate) fn count_release(&mut self) {
        let history = self.history_mut();
        history.released = history.released.saturating_add(1);
    }

    /// It is set aside until it is kicked.
    pub(crate) fn count_burial(&mut self) {
        let history = self.history_mut();
        history.buried = history.buried.saturating_add(1);
    }

    /// It was delayed or buried, and is made ready.
    pub(crate) fn count_kick(&mut self) {
        let history = self.history_mut();
        history.kicked = history.kicked.saturating_add(1);
    }

    /// A delivery has failed. Gives how many have.
    pub(crate) fn count_failure(&mut self) -> u32 {
        let history = self.history_mut();
        history.failed = history.failed.saturating_add(1);
        history.failed
    }

    /// It came by a subscription of a pattern, from this topic.
    pub(crate) fn set_topic(&mut self, topic: QueueName) {
        self.history_mut().topic = Some(topic);
    }

    /// Its record may name another queue than it is in.
    pub(crate) fn mark_moved(&mut self) {
        self.history_mut().moved = true;
    }

    /// It becomes a dead letter: none of its deliveries counts as failed there, and it does not
    /// expire.
    pub(crate) fn die(&mut self, reason: DeadReason, from: QueueName, of: Option<u64>, at: Nanos) {
        assert!(self.dead().is_none(), "a message dies once");
        self.set_expiry(None);
        let history = self.history_mut();
        let attempts = core::mem::take(&mut history.failed);
        history.dead = Some(Box::new(Dead { reason, from, subscription: of, at, attempts }));
    }

    /// It has no record any more, and no reader will ask for its body.
    pub(crate) fn drop_record(&mut self) {
        self.set_placed(0, Placed { lsn: Lsn::ZERO, bytes: 0 });
        self.traits = self.traits.with_durability(Durability::None);
        if !self.is_here() {
            self.body = Stored::Here(Arc::default());
        }
    }

    /// Breaks an invariant, to see that the check finds it.
    #[cfg(test)]
    pub(crate) fn misplace(&mut self, location: Lsn) {
        self.location = location;
    }

    /// The same.
    #[cfg(test)]
    pub(crate) fn misplace_body(&mut self) {
        self.traits = self.traits.with_body_missing(true);
    }

    fn is_here(&self) -> bool {
        self.body.here().is_some()
    }

    /// It is no dead letter any more, and no delivery of it has failed.
    pub(crate) fn revive(&mut self) {
        if let Some(history) = &mut self.history {
            (history.dead, history.failed) = (None, 0);
        }
    }

    /// See [`crate::RecordView::Changed`].
    pub(crate) fn is_moved(&self) -> bool {
        self.history.as_ref().is_some_and(|history| history.moved || history.dead.is_some())
    }

    /// True if its record may not say all there is.
    pub(crate) const fn has_history(&self) -> bool {
        self.history.is_some()
    }

    fn history_mut(&mut self) -> &mut History {
        self.history.get_or_insert_default()
    }

    pub(crate) fn state(&self) -> State {
        match self.traits.kind() {
            Kind::Ready => State::Ready,
            Kind::Delayed => State::Delayed { until: Nanos(self.moment) },
            Kind::Leased => State::Leased { holder: self.holder, until: Nanos(self.moment) },
            Kind::Held => State::Held { holder: self.holder, since: Nanos(self.moment) },
            Kind::Buried => State::Buried { order: self.moment },
        }
    }

    /// The position that an answer waits for if it depends on all records about the message. Even a
    /// memory-only message may have come with a frame. A frame is written when it is as durable as
    /// it asks.
    pub(crate) fn after(&self) -> DependsOn {
        match self.durability() {
            Durability::None if self.changed == Lsn::ZERO => DependsOn::NOTHING,
            level => DependsOn::new(self.changed, level.max(Durability::Written)),
        }
    }

    pub(crate) fn body_bytes(&self) -> u64 {
        self.body.len() as u64
    }

    pub(crate) fn is_journalled(&self) -> bool {
        self.durability() != Durability::None
    }

    /// Its own body as memory keeps it, unless that is shared.
    pub(crate) fn kept(&self) -> Option<BodyRef<'_>> {
        let (frame, spilled) = match self.location {
            lsn if self.is_journalled() => (Some(lsn), None),
            Lsn(place) => (None, NonZeroU64::new(place)),
        };
        let kept = BodyRef::own(&self.body, self.queue, frame, spilled);
        self.shared().is_none().then_some(kept)
    }

    /// The spill has its body there, or nothing of it any more.
    pub(crate) fn set_spilled(&mut self, place: Option<NonZeroU64>) {
        assert!(self.shared().is_none(), "what is shared lies where all find it");
        self.location = Lsn(place.map_or(0, NonZeroU64::get));
    }

    /// The name of the body that it shares with others.
    pub(crate) fn shared(&self) -> Option<MessageId> {
        let is_shared = matches!(self.body, Stored::Elsewhere { shared: true, .. });
        let name = || if self.is_journalled() { self.group() } else { self.location.0 };
        is_shared.then(|| MessageId(name()))
    }

    /// Its body is from now on the one of that name. Gives the body that it had.
    pub(crate) fn share(&mut self, name: MessageId) -> Stored {
        let bytes = u32::try_from(self.body.len()).unwrap_or(u32::MAX);
        if self.is_journalled() {
            assert_eq!(self.group(), name.0, "what one record stored has one body");
        } else {
            self.location = Lsn(name.0);
        }
        core::mem::replace(&mut self.body, Stored::Elsewhere { bytes, shared: true })
    }

    /// The delay that was last asked for it.
    pub(crate) fn delay(&self) -> Nanos {
        self.history.as_ref().map_or(Nanos::ZERO, |history| history.delay)
    }

    /// Its place among ready messages of its priority.
    pub(crate) fn order(&self, id: MessageId) -> i64 {
        match &self.history {
            Some(history) if history.order != 0 => history.order,
            _ => place_of(id),
        }
    }

    pub(crate) fn counters(&self) -> MessageCounters {
        let delivered = self.delivered;
        self.history.as_ref().map_or(
            MessageCounters { delivered, ..MessageCounters::default() },
            |history| MessageCounters {
                delivered,
                expired: history.expired,
                released: history.released,
                buried: history.buried,
                kicked: history.kicked,
                failed: history.failed,
            },
        )
    }

    /// When its time is over.
    pub(crate) fn expires(&self) -> Option<Nanos> {
        self.history.as_ref()?.expires
    }

    /// The topic that it was published to, where its subscription is of a pattern.
    pub(crate) fn topic(&self) -> Option<&QueueName> {
        self.history.as_ref()?.topic.as_ref()
    }

    /// The message group: its messages go to one consumer at a time.
    pub(crate) fn message_group(&self) -> Option<MessageGroup> {
        self.history.as_ref()?.message_group
    }

    /// The number of that group.
    pub(crate) fn group_number(&self) -> GroupNumber {
        self.message_group().map(MessageGroup::number)
    }

    /// It belongs to this group. It is in no index.
    pub(crate) fn set_message_group(&mut self, group: Option<MessageGroup>) {
        if group != self.message_group() {
            self.history_mut().message_group = group;
        }
    }

    /// It is delayed, since one of its deliveries has to be repeated, and nothing of its group may
    /// overtake it.
    pub(crate) fn awaits_redelivery(&self) -> bool {
        let is_set_aside = self.history.as_ref().is_some_and(|history| history.set_aside);
        self.traits.kind() == Kind::Delayed && self.delivered > 0 && !is_set_aside
    }

    /// Notes if its group need not wait for it while it is delayed. No effect outside of a group.
    pub(crate) fn set_aside(&mut self, set_aside: bool) {
        if self.message_group().is_some() {
            self.history_mut().set_aside = set_aside;
        }
    }

    /// Why it is among the dead letters, if it is.
    pub(crate) fn dead(&self) -> Option<&Dead> {
        self.history.as_ref()?.dead.as_deref()
    }

    /// See [`StoredEnvelope::group`].
    pub(crate) fn group(&self) -> u64 {
        self.history.as_ref().map_or(0, |history| history.group)
    }

    /// Bytes that are counted for its record, unless it shares that with others: the record's size,
    /// and its growth since.
    pub(crate) fn live_bytes(&self) -> u64 {
        let grown = self.history.as_ref().map_or(0, |history| history.grown_bytes);
        u64::from(self.record_bytes) + u64::from(grown)
    }

    /// A record of so many bytes says how it stands, and all of that is to be stored anew with it.
    /// Gives by how much more it has grown than was known.
    pub(crate) fn grow(&mut self, changed_bytes: u32) -> u64 {
        let grown = &mut self.history_mut().grown_bytes;
        let more = changed_bytes.saturating_sub(*grown);
        *grown += more;
        more.into()
    }

    /// It has no record any more, since that frame.
    pub(crate) fn keep_in_memory(&mut self, since: Lsn) {
        self.set_placed(0, Placed { lsn: Lsn::ZERO, bytes: 0 });
        self.traits = self.traits.with_durability(Durability::None);
        self.changed = since;
    }

    /// The state that the log is told about it: a lease is not journalled.
    pub(crate) fn standing(&self, id: MessageId) -> Standing<'_> {
        Standing {
            priority: self.priority,
            delay: self.delay(),
            state: match self.state() {
                State::Ready | State::Leased { .. } | State::Held { .. } => StoredState::Ready,
                State::Delayed { until } => StoredState::Delayed { until },
                State::Buried { order } => StoredState::Buried { order },
            },
            order: self.order(id),
            counters: self.counters(),
            expires: self.expires(),
            dead: self.dead().map(Dead::view),
        }
    }

    pub(crate) fn envelope<'a>(
        &'a self,
        id: MessageId,
        place: Place<'a>,
        sender: u64,
    ) -> StoredEnvelope<'a> {
        StoredEnvelope {
            message: id,
            place,
            format: self.format,
            group: self.group(),
            durability: self.durability(),
            sender,
            created: self.created,
            lease: self.lease,
            standing: self.standing(id),
        }
    }

    fn set_counters(&mut self, counters: MessageCounters) {
        if counters == self.counters() {
            return;
        }
        self.delivered = counters.delivered;
        if counters != self.counters() {
            let history = self.history_mut();
            history.expired = counters.expired;
            history.released = counters.released;
            history.buried = counters.buried;
            history.kicked = counters.kicked;
            history.failed = counters.failed;
        }
    }
}
