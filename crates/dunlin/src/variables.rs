//! Variables of the environment that look like settings and are none.

use clap::CommandFactory as _;

use crate::cli::Cli;

/// What to say of each of these names that begins like a setting, and which no command reads. A
/// misspelt setting would have its default without a word.
pub(crate) fn complaints(names: impl Iterator<Item = String>) -> Vec<String> {
    let known = known(&Cli::command());
    let unknown = names.filter(|name| {
        let is_ours = name.starts_with(PREFIX) && !known.contains(name);
        is_ours && !OF_CONTAINERS.iter().any(|prefix| name.starts_with(prefix))
    });
    unknown
        .map(|name| format!("{name} is no setting: dunlin serve --help shows which are"))
        .collect()
}

/// What this command and those below it read.
fn known(command: &clap::Command) -> Vec<String> {
    let own = command.get_arguments().filter_map(|argument| argument.get_env());
    let own = own.map(|name| name.to_string_lossy().into_owned());
    own.chain(command.get_subcommands().flat_map(known)).collect()
}

const PREFIX: &str = "DUNLIN_";

/// Kubernetes, and linked containers, tell by such names where a service called `dunlin` is.
const OF_CONTAINERS: [&str; 3] = ["DUNLIN_SERVICE_", "DUNLIN_PORT", "DUNLIN_ENV_"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_setting_is_named() {
        let names = [
            "DUNLIN_SYNK",
            "DUNLIN_SYNC",
            "DUNLIN_URL",
            "DUNLIN_SERVICE_HOST",
            "DUNLIN_PORT_8422_TCP",
            "PATH",
            "DUNLIN",
        ];
        let complaints = complaints(names.into_iter().map(str::to_owned));
        let [only] = complaints.as_slice() else { panic!("{complaints:?}") };
        assert!(only.starts_with("DUNLIN_SYNK is no setting"), "{only}");
    }
}
