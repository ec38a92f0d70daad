//! The interface of a broker to the gateway.

use std::sync::Arc;

use model::{Command, DependsOn, Nanos, Output, SessionId};

use crate::Actor;

/// A broker during one turn of the gateway. The server implements it over the core that it has
/// locked, the simulator over its simulated broker. Only the gateway gives commands meanwhile.
pub trait BrokerTurn {
    /// The present moment, the same for the whole turn.
    fn now(&self) -> Nanos;

    /// Commands that all sessions gave so far.
    fn steps(&self) -> u64;

    /// True if all commands wait until a write or a chore completes.
    fn stalled(&self) -> bool;

    /// True if some commands that add to the log or to memory have to wait.
    fn holds_back(&self) -> bool;

    /// True if this command can be given now.
    fn takes(&self, session: SessionId, command: &Command) -> bool;

    /// Bytes of messages that all open transactions may have stored.
    fn uncommitted_max(&self) -> usize;

    /// The id of the gateway's session of this number, from 1. No other session has it.
    fn session_id(&self, number: u64) -> SessionId;

    /// Begins a session.
    fn open_session(&mut self, session: SessionId);

    /// Sets the name by which operators know a session.
    fn name_session(&mut self, session: SessionId, name: Arc<str>);

    /// The session acts for this one from now on.
    fn act_for(&mut self, session: SessionId, actor: &Actor);

    /// Lets commands of this session be done before earlier ones of it that wait for bodies.
    fn let_overtake(&mut self, session: SessionId);

    /// Ends a session through no fault of its own: none of its leases counts as a failed delivery.
    fn dismiss_session(&mut self, session: SessionId, outputs: &mut Vec<Output>);

    /// Gives a command. Adds its outputs for sessions of the gateway to `outputs`. The reply comes
    /// before the outputs that the command causes, or later in [`BrokerTurn::poll_output`].
    fn handle(&mut self, session: SessionId, command: Command, outputs: &mut Vec<Output>);

    /// The next output for a session of the gateway that another thread caused.
    fn poll_output(&mut self) -> Option<Output>;

    /// A client waits until the log is this durable.
    fn note_awaited(&mut self, after: DependsOn);
}
