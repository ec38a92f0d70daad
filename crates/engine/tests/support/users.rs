//! Sessions of users, and some of none.

use engine::Engine;
use model::{Principal, SessionId};

/// Opens a session. Several act for the same user, and each fourth for none.
pub(crate) fn open(engine: &mut Engine, session: SessionId) {
    engine.open_session(session);
    let number = session.0 % 4;
    if number < 3 {
        engine.act_for(session, Principal::almighty(&format!("user {}", number % 2)));
    }
}
