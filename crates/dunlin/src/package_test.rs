//! Files of the Debian package: the settings, and the man pages and completions, which
//! `cargo xtask package` makes by a test. So the program itself carries no generator.

use std::fs;
use std::path::PathBuf;

use clap::CommandFactory as _;
use clap_complete::Shell;
use testkit::Directory;

use crate::cli::{Cli, Serve};
use crate::settings;

/// The variable that names the folder for the pages; without it they are only checked.
const PAGES_FOLDER: &str = "PACKAGE_PAGES";

#[test]
fn man_pages_and_completions_cover_commands() {
    let scratch = Directory::new("pages");
    let folder = std::env::var_os(PAGES_FOLDER).map_or_else(|| scratch.0.clone(), PathBuf::from);
    let man = folder.join("man");
    fs::create_dir_all(&man).unwrap();
    clap_mangen::generate_to(Cli::command(), &man).unwrap();
    let shells = [
        (Shell::Bash, "bash/dunlin"),
        (Shell::Zsh, "zsh/_dunlin"),
        (Shell::Fish, "fish/dunlin.fish"),
    ];
    let scripts = shells.map(|(shell, name)| {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "dunlin", &mut script);
        fs::write(file, &script).unwrap();
        String::from_utf8(script).unwrap()
    });
    for command in Cli::command().get_subcommands() {
        let name = command.get_name();
        let page = fs::read_to_string(man.join(format!("dunlin-{name}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{name}");
        assert!(scripts.iter().all(|script| script.contains(name)), "{name}");
    }
    let serve = fs::read_to_string(man.join("dunlin-serve.1")).unwrap();
    assert!(serve.contains("memory\\-limit"), "the page names the settings");
}

#[test]
fn packaged_settings_are_accepted() {
    let directory = Directory::new("packaged");
    let read = |name, text: &str| {
        let config = Some(directory.file(name, text));
        settings::config(Serve { config, ..Serve::default() })
    };
    let shipped = include_str!("../../../packaging/dunlin.toml");
    let (as_is, default) = (read("shipped.toml", shipped), settings::config(Serve::default()));
    assert_eq!(format!("{:?}", as_is.unwrap()), format!("{:?}", default.unwrap()));
    let is_setting = |line: &&str| !line.is_empty() && !line.starts_with(' ');
    let values = shipped.lines().filter_map(|line| line.strip_prefix('#')).filter(is_setting);
    let all = read("all.toml", &values.collect::<Vec<_>>().join("\n")).unwrap();
    assert_eq!(all.disk_limit, Some(10 << 30));
    assert_eq!(all.queues.default.bounds.messages_max, Some(100_000));
}
