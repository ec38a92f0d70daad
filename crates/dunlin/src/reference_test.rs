//! The pages that tell the command line and the settings are made from it, and differ in nothing.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, Command, CommandFactory as _};

use crate::cli::Cli;

const COLUMNS: usize = 116;

#[test]
fn command_line_page_is_current() {
    let mut page = String::from("# Command line\n\n");
    let opening = "You learn here each command of `dunlin`, its arguments and its exit status. \
                   [Configuration](configuration.md) has the settings of `dunlin serve`. Options \
                   that an earlier command explains are named only. This page is generated: \
                   `UPDATE=1 cargo test -p dunlin page_is_current` writes it.";
    page.push_str(&wrapped(opening, "", ""));
    let mut seen = BTreeSet::new();
    let program = Cli::command();
    for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
        describe(&mut page, &mut seen, command, "dunlin");
    }
    let after = program.get_after_help().expect("an exit status is told");
    let _ = write!(page, "\n## Exit status\n\n```\n{}\n```\n", after.to_string().trim_end());
    check("command-line.md", &page);
}

#[test]
fn configuration_page_is_current() {
    let mut page = String::from("# Configuration\n\n");
    let opening = "You learn here each setting of `dunlin serve`. Each is a flag, a variable \
                   (`DUNLIN_` and the flag in capitals, with underscores) and a key of the TOML \
                   file of `--config`, named like the flag. Flags overrule variables, variables \
                   the file. Lists are divided by commas in variables. This page is generated: \
                   `UPDATE=1 cargo test -p dunlin page_is_current` writes it.";
    page.push_str(&wrapped(opening, "", ""));
    let program = Cli::command();
    let serve = program.find_subcommand("serve").expect("there is such a command");
    for argument in serve.get_arguments().filter(|argument| argument.get_env().is_some()) {
        let heading = format!("\n## {}\n\n", flag(argument));
        page.push_str(&heading);
        page.push_str(&wrapped(&sentence(argument), "", ""));
    }
    let after = serve.get_after_help().expect("examples are told").to_string();
    let file = after.split("named like the flag:\n").nth(1).expect("the file is told");
    let file = file.split("\nFlags overrule").next().unwrap_or_default();
    let lines: Vec<&str> = file.lines().map(|line| line.trim_start()).collect();
    let _ = write!(page, "\n## A file\n\n```toml\n{}\n```\n", lines.join("\n"));
    check("configuration.md", &page);
}

#[test]
fn packaged_settings_are_complete() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/dunlin.toml");
    let file = std::fs::read_to_string(file).unwrap();
    let is_there = |key: &str| file.lines().any(|line| line.starts_with(&format!("#{key} = ")));
    let program = Cli::command();
    let serve = program.find_subcommand("serve").expect("there is such a command");
    let settings = serve.get_arguments().filter(|argument| argument.get_env().is_some());
    for key in settings.filter_map(Arg::get_long) {
        // A file names no other file, confirms no clock, and has queues as tables.
        let is_key = !["config", "accept-clock", "queue"].contains(&key);
        assert_eq!(is_there(key), is_key, "{key} in packaging/dunlin.toml");
    }
}

/// A command, or those below it.
fn describe(page: &mut String, seen: &mut BTreeSet<String>, command: &Command, path: &str) {
    let path = format!("{path} {}", command.get_name());
    if command.has_subcommands() {
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            describe(page, seen, below, &path);
        }
        return;
    }
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = write!(page, "\n## {path}\n\n{}", wrapped(&format!("{about}."), "", ""));
    let is_own = |argument: &&Arg| !["help", "version"].contains(&argument.get_id().as_str());
    let arguments: Vec<&Arg> = command.get_arguments().filter(is_own).collect();
    if command.get_name() == "serve" || arguments.is_empty() {
        return;
    }
    page.push('\n');
    let mut named = Vec::new();
    for argument in arguments {
        let text = format!("* {}: {}", flag(argument), sentence(argument));
        if seen.insert(text.clone()) {
            page.push_str(&wrapped(&text, "", "  "));
        } else {
            named.push(flag(argument));
        }
    }
    if !named.is_empty() {
        page.push_str(&wrapped(&format!("* Also: {}.", named.join(", ")), "", "  "));
    }
}

/// A flag or an argument with its value, as a reader types it.
fn flag(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let is_optional = argument.get_num_args().is_some_and(|count| count.min_values() == 0);
    let takes = argument.get_action().takes_values() && !is_optional;
    let value = names.first().filter(|_| takes).map(|name| format!("<{name}>"));
    let value = value.unwrap_or_default();
    match (argument.get_long(), argument.get_short()) {
        (Some(long), Some(short)) => format!("`-{short}`, `--{long} {value}`").replace(" `", "`"),
        (Some(long), None) => format!("`--{long} {value}`").replace(" `", "`"),
        (None, _) => format!("`{value}`"),
    }
    .replace(",`", ", `")
}

/// The purpose of an argument, and its default.
fn sentence(argument: &Arg) -> String {
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let defaults = argument.get_default_values().iter();
    let default: Vec<_> = defaults.map(|value| value.to_string_lossy().into_owned()).collect();
    if default.is_empty() || argument.is_hide_default_value_set() || help.contains("[default") {
        return format!("{}.", help.trim_end_matches('.'));
    }
    format!("{} [default: {}].", help.trim_end_matches('.'), default.join(","))
}

/// The words wrapped into lines of at most `COLUMNS`, with Markdown's own characters escaped.
fn wrapped(text: &str, first: &str, rest: &str) -> String {
    let (mut lines, mut line) = (String::new(), String::from(first));
    let mut is_empty = true;
    for word in text.split_whitespace() {
        let word = escaped(word);
        if !is_empty && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            let _ = writeln!(lines, "{line}");
            (line, is_empty) = (String::from(rest), true);
        }
        let space = if is_empty { "" } else { " " };
        let _ = write!(line, "{space}{word}");
        is_empty = false;
    }
    let _ = writeln!(lines, "{line}");
    lines
}

fn escaped(word: &str) -> String {
    if word == "*" || word.contains('`') {
        return word.to_owned();
    }
    word.replace('<', "\\<").replace('*', "\\*")
}

/// Compares a page with the expected text, or writes it if `UPDATE` is set.
fn check(name: &str, page: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let file = folder.join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, page).expect("the page can be written");
        return;
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    let again = "UPDATE=1 cargo test -p dunlin page_is_current";
    assert!(written == page, "docs/reference/{name} is not what the program says: {again}");
}
