//! The named limits of a connection: how much a peer may make us hold or do.

use model::Nanos;

/// Messages that a producer may send before an earlier one is answered. A smaller number would
/// make it wait, a larger one lets more pile up before a slow disk.
pub(crate) const PRODUCER_CREDIT: u32 = 1_000;

/// Transfer frames that a session's peer may send; renewed once half of them were.
pub(crate) const INCOMING_WINDOW: u32 = 8_192;

/// Deliveries that the engine may be ahead of those sent to one consumer, however much credit that
/// has. Deliveries that wait here are held, and other consumers cannot have them.
pub(crate) const CONSUMER_AHEAD_MAX: u32 = 2_048;

/// Bytes of their bodies, beyond which one more is the last. The engine may let a body leave memory
/// that waits here, which is then here alone and counted nowhere.
pub(crate) const CONSUMER_AHEAD_BYTES_MAX: u64 = 1024 * 1024;

/// The same for a browser. Its copies are in memory for it alone, so that each counts as its
/// connection's. Few, since a message may have 16 MiB.
pub(crate) const BROWSER_AHEAD_MAX: u32 = 4;

/// Runs of neighbouring deliveries that a session remembers since they went back with their links.
/// Beyond it the oldest two runs of a link become one, with all between them.
pub(crate) const TAKEN_BACK_MAX: usize = 1_024;

/// Bytes of output beyond which deliveries wait: until they are sent they share their bodies with
/// the engine, as long as it has them.
pub(crate) const OUTPUT_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of a link's name. JMS makes them of an address and a few numbers.
pub(crate) const LINK_NAME_BYTES_MAX: usize = 1_024;

/// The shortest idle timeout of a peer that is served: an empty frame every half of it (2.4.5).
pub(crate) const PEER_IDLE_MIN: Nanos = Nanos::from_millis(200);

/// How long a connection that was closed by us waits for its peer's close, so that the peer can
/// read why.
pub(crate) const CLOSE_WAIT: Nanos = Nanos::from_secs(5);

/// Bytes that a peer may send before it has logged in, if it has to. SCRAM takes some 400.
pub(crate) const LOGIN_BYTES_MAX: u32 = 4_096;

/// The same where it may send a token of an issuer: one of 8 KiB, and what stands around it.
pub(crate) const TOKEN_LOGIN_BYTES_MAX: u32 = 12_288;

/// How long a consumer of another protocol may hold a message that came by AMQP before it is
/// ready again, unless it asks for another time.
pub(crate) const LEASE: Nanos = Nanos::from_secs(60);

/// Bytes of memory that a link takes here and in the engine, but for its name, which stands in two
/// collections. Measured.
pub(crate) const LINK_BYTES: usize = 1_024;

/// Bytes of memory that a transaction takes which is open and empty, here and in the engine.
/// Measured.
pub(crate) const TRANSACTION_BYTES: usize = 640;

/// Bytes of memory that a session takes. Measured.
pub(crate) const SESSION_BYTES: usize = 512;

/// Bytes of sessions, links and transactions that every connection may have: those of some thirty
/// links.
pub(crate) const ENDS_BYTES_FREE: usize = 32 * 1_024;

/// Frames that ask the engine for nothing, after which others have their turn.
pub(crate) const FRAMES_PER_POLL: u64 = 64;

/// Steps of some 50 ns that such a frame counts for.
pub(crate) const FRAME_STEPS: u64 = 3;

/// Bytes of a performative, or of the sections before the body of a message, that count for nothing
/// beside the command that comes of it.
pub(crate) const LOOKED_BYTES_FREE: usize = 512;

/// How many of those beyond are looked at in a step: an element may take one byte.
pub(crate) const LOOKED_BYTES_PER_STEP: usize = 8;
