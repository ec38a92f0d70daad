//! Deleting the messages that wait in a queue, and the queue with them: each call deletes as many
//! messages as fit into one frame.

use model::Reply;

use crate::log::FrameWriter;
use crate::outcome::Outcome;

impl FrameWriter {
    /// The answer to a command that has changed all that it could.
    pub(crate) fn outcome_of(&self, reply: Reply) -> Outcome {
        match reply {
            Reply::Refused(refusal) => Outcome::refused(refusal),
            reply => Outcome::reply(self.after_all(), reply),
        }
    }
}
