//! `cargo xtask package`: the Debian package, and its test in a bare Debian.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;

use crate::Result;
use crate::amqp::in_folder;
use crate::repository::{git, root};
use crate::run::run;
use crate::setup;
use crate::steps::{Bench, cargo};
use crate::tally::{Runner, Tally};
use crate::tools;

const BUILD_MAX: Duration = Duration::from_secs(3600);
const SUITE_MAX: Duration = Duration::from_secs(900);

/// Settings of `package`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Install, upgrade, remove and purge the package in a bare Debian, and run the broker under
    /// the limits of its unit (as root)
    #[arg(long)]
    test: bool,
    /// The folder for the package
    #[arg(long, value_name = "DIR", default_value = "target/package")]
    to: PathBuf,
}

/// Builds it, prints where it is, and tests it if that is asked.
pub(crate) fn run_all(bench: &Bench, options: &Options) -> Result<Tally> {
    fs::create_dir_all(&options.to)?;
    let folder = fs::canonicalize(&options.to)?;
    let made = debian_package(bench, &folder)?;
    println!("{}: {} bytes", made.display(), fs::metadata(&made)?.len());
    if options.test { test(bench, &made) } else { Ok(Tally::one(true)) }
}

fn test(bench: &Bench, package: &Path) -> Result<Tally> {
    setup::install_for_package_test(&bench.log("setup"))?;
    let mut suite = in_folder("package", &["/usr/bin/python3", "-m", "unittest", "-v"])?;
    suite.env("PACKAGE", fs::canonicalize(package)?);
    suite.env("ROOT_IMAGE", bench.scratch.join("bookworm.tar"));
    Ok(run(&mut suite, &bench.log("package-suite"), SUITE_MAX)?.tally(Runner::Unittest))
}

fn debian_package(bench: &Bench, folder: &Path) -> Result<PathBuf> {
    setup::install_for_package(&bench.log("setup"))?;
    bench.dunlin()?;
    make_pages(bench, &bench.release().join("pages"))?;
    pack(bench, &root(), bench.target(), folder)
}

/// Makes man pages and completions in a folder.
fn make_pages(bench: &Bench, folder: &Path) -> Result<()> {
    let mut make = cargo(&["test", "--package", "dunlin", "--bin", "dunlin", "--", "man_pages"]);
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    succeed(make.env("PACKAGE_PAGES", folder), bench, "package-pages")?;
    let mut compress = Command::new("gzip");
    compress.args(["--best", "--no-name"]).args(files(&folder.join("man"))?);
    succeed(&mut compress, bench, "package-gzip").map(drop)
}

/// Packs what lies in the folders of source and builds, and says where the package is.
fn pack(bench: &Bench, source: &Path, target: &Path, folder: &Path) -> Result<PathBuf> {
    let mut pack = Command::new(tools::DEB.installed(bench)?);
    pack.args(["--no-build", "--package", "dunlin", "--output"]).arg(folder);
    pack.current_dir(source).env("CARGO_TARGET_DIR", target);
    pack.env("SOURCE_DATE_EPOCH", committed_at()?);
    let packed = succeed(&mut pack, bench, "package-deb")?;
    let made = packed.lines().rev().find(|line| line.ends_with(".deb"));
    Ok(made.ok_or("cargo-deb names no package")?.trim().into())
}

/// The moment of the last commit, in seconds: that of the files in a package.
fn committed_at() -> Result<String> {
    let output = git(&root()).args(["log", "-1", "--format=%ct"]).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The files of a folder, in order of their names.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut files = entries.collect::<Result<Vec<PathBuf>>>()?;
    files.sort();
    Ok(files)
}

/// The output of a command that has to succeed.
fn succeed(command: &mut Command, bench: &Bench, name: &str) -> Result<String> {
    let outcome = run(command, &bench.log(name), BUILD_MAX)?;
    if outcome.ended_well {
        return Ok(outcome.output);
    }
    Err(format!("{name} failed\n{}", outcome.tail()).into())
}
