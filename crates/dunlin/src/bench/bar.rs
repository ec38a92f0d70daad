//! A progress bar for each phase, on a terminal.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressStyle};

/// On standard error, if that is a terminal.
#[derive(Default)]
pub(super) struct Bar {
    shown: Option<(String, ProgressBar)>,
}

impl Bar {
    /// How far a phase is.
    pub(super) fn show(&mut self, phase: &str, done: u64, total: u64) {
        if !std::io::stderr().is_terminal() {
            return;
        }
        if self.shown.as_ref().is_none_or(|(shown, _)| shown != phase) {
            self.clear();
            let bar = ProgressBar::new(total).with_style(style());
            bar.set_message(phase.to_owned());
            self.shown = Some((phase.to_owned(), bar));
        }
        if let Some((_, bar)) = &self.shown {
            bar.set_length(total);
            bar.set_position(done);
        }
    }

    pub(super) fn clear(&mut self) {
        if let Some((_, bar)) = self.shown.take() {
            bar.finish_and_clear();
        }
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{msg:16} {wide_bar} {human_pos}/{human_len} {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}
