//! Moments that clients name by the machine's clock.

use model::{Command, Deadline, KeyCommand, ValueDeadline, WallClock};

/// The moments that a command names become the engine's.
pub(crate) fn by_engine_clock(command: &mut Command, clock: &WallClock) {
    match command {
        Command::Key(
            KeyCommand::SetDeadline { deadline: Deadline::At(at), .. }
            | KeyCommand::SetValue { deadline: ValueDeadline::New(Deadline::At(at)), .. },
        ) => *at = clock.engine_time(*at),
        Command::Batch { commands } => {
            commands.iter_mut().for_each(|command| by_engine_clock(command, clock));
        }
        _ => {}
    }
}
