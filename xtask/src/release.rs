//! `cargo xtask release`: the files of a release, from the last commit alone.
//!
//! The static binary is built twice, in two folders, and both have to be the same byte for byte.
//! Beside it lie the parts that it is made of (CycloneDX), their licences, and checksums of all.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;

use crate::Result;
use crate::licences;
use crate::repository::{git, root};
use crate::run::run;
use crate::setup;
use crate::steps::Bench;
use crate::tally::{Runner, Tally};
use crate::tools;

const BUILD_MAX: Duration = Duration::from_secs(3600);
const TEST_MAX: Duration = Duration::from_secs(600);

/// Settings of `release`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The folder for the files
    #[arg(long, value_name = "DIR", default_value = "target/release-files")]
    to: PathBuf,
    /// Sign the checksums by minisign with this secret key
    #[arg(long, value_name = "FILE")]
    sign: Option<PathBuf>,
    /// Run the static binary in an empty root, as another user (as root)
    #[arg(long)]
    test: bool,
}

/// A copy of the last commit, and the binary that is built of it.
struct Copy {
    source: PathBuf,
    binary: PathBuf,
}

/// Makes the files, and tests the binary if that is asked.
pub(crate) fn run_all(bench: &Bench, options: &Options) -> Result<Tally> {
    fs::create_dir_all(&options.to)?;
    let to = fs::canonicalize(&options.to)?;
    let target = host(bench)?;
    let copies = ["first", "second"].map(|name| build(bench, name, &target));
    let [first, second] = copies;
    let (first, second) = (first?, second?);
    if fs::read(&first.binary)? != fs::read(&second.binary)? {
        let (one, other) = (first.binary.display(), second.binary.display());
        return Err(format!("two builds differ: {one}, {other}").into());
    }
    let archive = pack(bench, &first, &to, &target)?;
    let parts = parts(bench, &first, &to)?;
    let sums = sum(bench, &to, &[&archive, &parts])?;
    if let Some(key) = &options.sign {
        sign(bench, key, &to.join(&sums))?;
    }
    for name in [&archive, &parts, &sums] {
        let file = to.join(name);
        println!("{}: {} bytes", file.display(), fs::metadata(&file)?.len());
    }
    let signed = options.sign.as_ref().map_or("not signed: --sign FILE", |_| "signed");
    println!("two builds are the same; {sums} is {signed}");
    if options.test { test(bench, &first.binary) } else { Ok(Tally::one(true)) }
}

/// The target of this machine: the binary links libc statically, so it has to be named.
fn host(bench: &Bench) -> Result<String> {
    let told = succeed(Command::new("rustc").arg("-vV"), bench, "release-host")?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("rustc names no host")?.to_owned())
}

fn build(bench: &Bench, name: &str, target: &str) -> Result<Copy> {
    let folder = bench.scratch.join("release").join(name);
    // All files have the time of their commit: what was built of an older one would seem new.
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let source = folder.join("source");
    fs::create_dir_all(&source)?;
    let archive = folder.join("source.tar");
    let mut export = git(&root());
    export.args(["archive", "--format=tar", "HEAD", "--output"]).arg(&archive);
    succeed(&mut export, bench, &format!("release-{name}-export"))?;
    let mut unpack = Command::new("tar");
    unpack.arg("-xf").arg(&archive).arg("-C").arg(&source);
    succeed(&mut unpack, bench, &format!("release-{name}-unpack"))?;
    let mut build = Command::new(tools::AUDITABLE.installed(bench)?);
    build.args(["auditable", "build", "--release", "--locked", "--package", "dunlin"]);
    build.args(["--target", target]).current_dir(&source);
    build.env("CARGO_TARGET_DIR", folder.join("target"));
    build.env("RUSTFLAGS", flags(&source)?);
    build.env("SOURCE_DATE_EPOCH", committed_at(bench)?);
    succeed(&mut build, bench, &format!("release-{name}"))?;
    let binary = folder.join("target").join(target).join("release/dunlin");
    Ok(Copy { source, binary })
}

/// No path of this machine is in the binary, and no library beside it.
fn flags(source: &Path) -> Result<String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let home = home.ok_or("neither CARGO_HOME nor HOME is set")?;
    let (source, home) = (source.display(), home.display());
    Ok(format!(
        "-C target-feature=+crt-static --remap-path-prefix={source}=/dunlin \
         --remap-path-prefix={home}=/cargo"
    ))
}

/// The moment of the last commit, in seconds: that of all files.
fn committed_at(bench: &Bench) -> Result<String> {
    let mut log = git(&root());
    log.args(["log", "-1", "--format=%ct"]);
    Ok(succeed(&mut log, bench, "release-moment")?.trim().to_owned())
}

/// The archive with the binary, its pages, and what a container and Kubernetes need.
fn pack(bench: &Bench, copy: &Copy, to: &Path, target: &str) -> Result<String> {
    let name = format!("dunlin-{}-{target}-static", version(copy)?);
    let folder = to.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(folder.join("data"))?;
    fs::copy(&copy.binary, folder.join("dunlin"))?;
    for (from, into) in FILES {
        fs::copy(copy.source.join(from), folder.join(into))?;
    }
    fs::write(folder.join("THIRD-PARTY.txt"), licences::text(bench, &copy.source)?)?;
    let archive = format!("{name}.tar.gz");
    let mut pack = Command::new("tar");
    pack.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"]);
    pack.arg(format!("--mtime=@{}", committed_at(bench)?));
    pack.args(["--mode=u+rwX,go+rX,go-w", "--use-compress-program=gzip -9 -n"]);
    pack.arg("-cf").arg(to.join(&archive)).arg("-C").arg(to).arg(&name);
    succeed(&mut pack, bench, "release-pack")?;
    fs::remove_dir_all(&folder)?;
    Ok(archive)
}

/// Files of the repository that come with the binary.
const FILES: [(&str, &str); 6] = [
    ("README.md", "README.md"),
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("LICENSE", "LICENSE"),
    ("packaging/dunlin.toml", "dunlin.toml"),
    ("packaging/container/Dockerfile", "Dockerfile"),
    ("packaging/kubernetes/dunlin.yaml", "kubernetes.yaml"),
];

fn version(copy: &Copy) -> Result<String> {
    let manifest = fs::read_to_string(copy.source.join("Cargo.toml"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
    Ok(line.ok_or("Cargo.toml has no version")?.trim_end_matches('"').to_owned())
}

/// The crates that the binary is made of, as CycloneDX says them.
fn parts(bench: &Bench, copy: &Copy, to: &Path) -> Result<String> {
    let mut list = Command::new(tools::CYCLONEDX.installed(bench)?);
    list.args(["cyclonedx", "--format", "json", "--spec-version", "1.5"]);
    list.args(["--override-filename", "dunlin.cdx", "--manifest-path"]);
    list.arg(copy.source.join("crates/dunlin/Cargo.toml")).current_dir(&copy.source);
    list.env("SOURCE_DATE_EPOCH", committed_at(bench)?);
    succeed(&mut list, bench, "release-parts")?;
    let name = "dunlin.cdx.json".to_owned();
    let told = fs::read_to_string(copy.source.join("crates/dunlin").join(&name))?;
    // As in the binary, no path of this machine.
    let source = copy.source.to_str().ok_or("the path of the target folder is no UTF-8")?;
    fs::write(to.join(&name), told.replace(source, "/dunlin"))?;
    Ok(name)
}

fn sum(bench: &Bench, to: &Path, names: &[&String]) -> Result<String> {
    let mut sum = Command::new("sha256sum");
    let sums = succeed(sum.args(names).current_dir(to), bench, "release-sums")?;
    let name = "SHA256SUMS".to_owned();
    fs::write(to.join(&name), sums)?;
    Ok(name)
}

fn sign(bench: &Bench, key: &Path, sums: &Path) -> Result<()> {
    setup::install_for_release(&bench.log("setup"))?;
    let mut sign = Command::new("minisign");
    // A key with a password asks for it at the terminal, which no release without a person has.
    sign.args(["-S", "-W", "-s"]).arg(key).arg("-m").arg(sums);
    succeed(&mut sign, bench, "release-sign").map(drop)
}

fn test(bench: &Bench, binary: &Path) -> Result<Tally> {
    let mut suite = Command::new("/usr/bin/python3");
    suite.args(["-m", "unittest", "-v"]).current_dir(root().join("interop/release"));
    suite.env("BINARY", binary);
    Ok(run(&mut suite, &bench.log("release-suite"), TEST_MAX)?.tally(Runner::Unittest))
}

/// The output of a command that has to succeed.
fn succeed(command: &mut Command, bench: &Bench, name: &str) -> Result<String> {
    let outcome = run(command, &bench.log(name), BUILD_MAX)?;
    if outcome.ended_well {
        return Ok(outcome.output);
    }
    Err(format!("{name} failed\n{}", outcome.tail()).into())
}
