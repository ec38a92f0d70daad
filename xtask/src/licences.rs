//! The licences of the crates that the binary is made of, with their texts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::Result;
use crate::run::run;
use crate::steps::Bench;

const LIST_MAX: Duration = Duration::from_secs(300);

/// The names that files with licences have, as they begin.
const FILES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

/// All crates that a build of `dunlin` links, each with its licence and the texts that it brings.
/// A text that several bring is there once.
pub(crate) fn text(bench: &Bench, source: &Path) -> Result<String> {
    let linked = linked(bench, source)?;
    let mut list = Command::new("cargo");
    list.args(["metadata", "--format-version", "1", "--locked"]).current_dir(source);
    let outcome = run(&mut list, &bench.log("licences"), LIST_MAX)?;
    let json = outcome.output.lines().find(|line| line.starts_with('{'));
    let metadata: Value = serde_json::from_str(json.ok_or("cargo metadata says nothing")?)?;
    let (mut crates, mut texts) = (String::new(), BTreeMap::<String, Vec<String>>::new());
    let packages = metadata.get("packages").and_then(Value::as_array);
    for package in packages.into_iter().flatten() {
        let field =
            |name: &str| package.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let name = format!("{} {}", field("name"), field("version"));
        // Those without a source are the project's own.
        if !linked.contains(&name) || package.get("source").is_none_or(Value::is_null) {
            continue;
        }
        writeln!(crates, "{name}: {}", field("license"))?;
        let manifest = field("manifest_path");
        let folder = Path::new(&manifest).parent().ok_or("a manifest lies in a folder")?;
        for text in files(folder)? {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    let mut all = format!("Dunlin is made of these crates besides its own:\n\n{crates}");
    for (text, names) in texts {
        write!(all, "\n{}\n{}:\n\n{}\n", "=".repeat(72), names.join(", "), text.trim_end())?;
    }
    Ok(all)
}

/// Names and versions of the crates that are linked, not those of tests and build scripts.
fn linked(bench: &Bench, source: &Path) -> Result<Vec<String>> {
    let mut tree = Command::new("cargo");
    tree.args(["tree", "--package", "dunlin", "--edges", "normal", "--prefix", "none"]);
    tree.args(["--locked", "--format", "{p}"]).current_dir(source);
    let outcome = run(&mut tree, &bench.log("licences-tree"), LIST_MAX)?;
    if !outcome.ended_well {
        return Err(format!("cargo tree failed\n{}", outcome.tail()).into());
    }
    let name = |line: &str| {
        let mut words = line.split(' ');
        Some(format!("{} {}", words.next()?, words.next()?.strip_prefix('v')?))
    };
    Ok(outcome.output.lines().filter_map(name).collect())
}

fn files(folder: &Path) -> Result<Vec<String>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        if entry.file_type()?.is_file() && FILES.iter().any(|it| name.starts_with(it)) {
            found.insert(name, String::from_utf8_lossy(&fs::read(entry.path())?).into_owned());
        }
    }
    Ok(found.into_values().collect())
}
