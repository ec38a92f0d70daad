//! Moments that clients name by the machine's clock.

use model::{Command, Deadline, KeyCommand, WallClock};

/// The moments that a command names become the engine's.
pub(crate) fn by_engine_clock(command: &mut Command, clock: &WallClock) {
    match command {
        Command::Key(KeyCommand::Stream(command)) => command.tell_by(clock),
        Command::Key(command) => {
            if let Some(Deadline::At(at)) = command.deadline_mut() {
                *at = clock.engine_time(*at);
            }
        }
        Command::Batch { commands } => {
            commands.iter_mut().for_each(|command| by_engine_clock(command, clock));
        }
        _ => {}
    }
}
