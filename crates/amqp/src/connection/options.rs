//! A server's options for its connections.

use alloc::string::String;

use model::{Draining, Nanos, Secrets, WallClock, limits};

/// A server's options for its connections; the same for all.
#[derive(Clone, Debug)]
pub struct Options {
    /// The broker's name, as its opens tell.
    pub container_id: String,
    /// Name and version of the server, as its opens tell.
    pub product: String,
    /// See `product`.
    pub version: String,
    /// Bytes of the largest frame that is read.
    pub max_frame_bytes: u32,
    /// Bytes of the largest message, in all its frames.
    pub max_message_bytes: u64,
    /// A peer that is silent for so long is taken for dead; it is told half of it (2.4.5).
    pub idle_timeout: Option<Nanos>,
    /// Sessions of one connection.
    pub channels_max: u16,
    /// Links of one connection.
    pub links_max: u32,
    /// Deliveries of one session that its peer has not settled; beyond it consumers get nothing.
    pub unsettled_max: usize,
    /// The machine's clock, by which peers tell absolute times.
    pub wall_clock: WallClock,
    /// Rejects all messages of peers while it is set.
    pub draining: Draining,
    /// The ends of the names of temporary queues and topics.
    pub secrets: Secrets,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            container_id: "dunlin".into(),
            product: "Dunlin".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            max_frame_bytes: FRAME_BYTES_DEFAULT,
            max_message_bytes: limits::MESSAGE_BYTES_DEFAULT as u64,
            idle_timeout: Some(IDLE_TIMEOUT_DEFAULT),
            channels_max: CHANNELS_DEFAULT,
            links_max: LINKS_DEFAULT,
            unsettled_max: UNSETTLED_DEFAULT,
            wall_clock: WallClock::default(),
            draining: Draining::default(),
            secrets: Secrets::default(),
        }
    }
}

/// Larger messages come in several frames, between which others get their turn.
const FRAME_BYTES_DEFAULT: u32 = 64 * 1024;

const IDLE_TIMEOUT_DEFAULT: Nanos = Nanos::from_secs(60);

/// A JMS connection has a session more than its application has.
const CHANNELS_DEFAULT: u16 = 1_024;

const LINKS_DEFAULT: u32 = 8_192;

const UNSETTLED_DEFAULT: usize = 262_144;
